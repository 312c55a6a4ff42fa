import { expect, test } from './fixtures';

test('a failed execution shows its error in the step, also after a reload', async ({ page, server, ids }) => {
  const id = await server.run(ids.failing);
  await server.wait(id);
  await page.goto('/executions');
  await page.locator(`a[href="/executions/${id}"]`).click();
  await page.getByRole('link', { name: 'Show the failed step' }).click();
  const drawer = page.getByRole('complementary', { name: 'Step broken' });
  await expect(drawer).toContainText('the reason of the failure');
  await expect(drawer).toContainText('about to fail');
  await expect(page).toHaveURL(/step=broken/);
  await page.reload();
  await expect(drawer).toContainText('the reason of the failure');
  await page.keyboard.press('Escape');
});

test('the graph and the timeline follow a live execution, a signal ends it', async ({ page, server, ids }) => {
  const id = await server.run(ids.waits);
  await page.goto(`/executions/${id}`);
  await expect(page.getByRole('list', { name: /Steps/ }).getByRole('link', { name: 'wait' })).toBeVisible();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect(page.locator('.node').filter({ hasText: 'last' })).toHaveClass(/not-reached/);
  await page.getByRole('button', { name: 'Signal…' }).click();
  await expect(page.getByLabel('Name')).toHaveValue('go');
  await page.getByLabel('Payload').fill('{"n": 7}');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByText('Completed', { exact: true }).first()).toBeVisible();
  await expect(page.locator('.node').filter({ hasText: 'last' })).toHaveClass(/tone-ok/);
  await page.locator('.node').filter({ hasText: 'last' }).getByRole('button').click();
  await expect(page.getByRole('complementary')).toContainText('n: 7');
});

test('a live view recovers after a restart of the server', async ({ page, server, ids }) => {
  const id = await server.run(ids.waits);
  await page.goto(`/executions/${id}`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await server.stop();
  await expect(page.getByText(/Connection lost/)).toBeVisible();
  await server.start();
  await expect(page.getByText('Live', { exact: true })).toBeVisible({ timeout: 30_000 });
  await server.call('POST', `/api/executions/${id}/signal`, { id: 's1', name: 'go', payload: 1 });
  await expect(page.getByText('Completed', { exact: true }).first()).toBeVisible({ timeout: 20_000 });
});

test('loops are collapsed into counts and can be expanded', async ({ page, server, ids }) => {
  const id = await server.run(ids.loop, { input: { list: [1, 2, 3, 4, 5, 6, 7, 8] } });
  await server.wait(id);
  await page.goto(`/executions/${id}`);
  await expect(page.getByText(/1 failed/).first()).toBeVisible();
  await page.getByRole('button', { name: 'Rounds and steps of each', exact: true }).click();
  await page.getByRole('link', { name: 'square' }).nth(2).click();
  await expect(page.getByRole('complementary')).toContainText('three is refused');
  await expect(page.getByText('its condition does not hold')).toBeVisible();
});

test('an execution is canceled with a reason, and a second cancel is reported as late', async ({
  page,
  open,
  server,
  ids,
}) => {
  const id = await server.run(ids.waits);
  const other = await open(server.token);
  await page.goto(`/executions/${id}`);
  await other.goto(`/executions/${id}`);
  await other.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByRole('button', { name: 'Cancel…' }).click();
  await page.getByLabel('Reason').fill('no longer needed');
  await page.getByRole('button', { name: 'Cancel execution' }).click();
  await expect(page.getByText('Cancelled', { exact: true }).first()).toBeVisible();
  await expect(page.getByText(/no longer needed/).first()).toBeVisible();
  await other
    .getByRole('button', { name: 'Cancel execution' })
    .click({ timeout: 5000 })
    .catch(() => undefined);
  await expect(other.getByText('Cancelled', { exact: true }).first()).toBeVisible();
});

test('the journal is verified in the browser, and frames open', async ({ page, server, ids }) => {
  const id = await server.run(ids.greeting, { input: { name: 'Ann' } });
  await server.wait(id);
  await page.goto(`/executions/${id}?view=journal`);
  await expect(page.getByText(/form an unbroken chain/)).toBeVisible();
  await page.getByRole('link', { name: /▸ 0/ }).click();
  await expect(page.getByText('Started').first()).toBeVisible();
  await expect(page).toHaveURL(/frame=0/);
});

test('a changed frame is found', async ({ page, server, ids }) => {
  const id = await server.run(ids.greeting, { input: { name: 'Ann' } });
  await server.wait(id);
  await page.route('**/journal*', async route => {
    const response = await route.fetch();
    const body = (await response.json()) as { frames: { frame: string }[] };
    const frame = body.frames[0];
    if (frame) frame.frame = `${frame.frame.slice(0, -2)}00`;
    await route.fulfill({ response, json: body });
  });
  await page.goto(`/executions/${id}?view=journal`);
  await expect(page.getByRole('alert')).toContainText('Frame 0 does not fit');
});

/** A call of a model has a receipt. */
const LOOKS = 'name: looks\nsteps: [{id: look, type: agent, goal: Look.}]\n';

test('receipts show their executor and whether the signature is valid', async ({ page, server }) => {
  const id = await server.run(await server.save('looks', LOOKS));
  await server.wait(id);
  const { receipts } = await server.call<{ receipts: { executor: { name: string }; frame: { sequence: number } }[] }>(
    'GET',
    `/api/executions/${id}/receipts`,
  );
  await page.goto(`/executions/${id}?step=look`);
  await page.getByRole('complementary').getByRole('link', { name: 'Receipts of this step' }).click();
  await expect(page.getByText('1 of 1 receipts are signed by executors')).toBeVisible();
  const row = page.getByRole('region', { name: 'Receipts' }).getByRole('row').nth(1);
  await expect(row).toContainText('look');
  await expect(row).toContainText(receipts[0]!.executor.name);
  await expect(row).toContainText('verified');
  await page.reload();
  await row.getByRole('link', { name: String(receipts[0]!.frame.sequence), exact: true }).click();
  await expect(page).toHaveURL(/view=journal/);
  await expect(page.getByText(/form an unbroken chain/)).toBeVisible();
});

test('a broken signature is shown with its reason', async ({ page, server }) => {
  const id = await server.run(await server.save('looks', LOOKS));
  await server.wait(id);
  await page.route('**/receipts*', async route => {
    const response = await route.fetch();
    const body = (await response.json()) as { receipts: Record<string, unknown>[] };
    Object.assign(body.receipts[0]!, { signature: 'broken', error: 'its signature is missing', executor: null });
    await route.fulfill({ response, json: body });
  });
  await page.goto(`/executions/${id}?view=receipts`);
  await expect(page.getByRole('alert')).toContainText('1 of 1 receipts is not proven');
  await expect(page.getByRole('region', { name: 'Receipts' })).toContainText('its signature is missing');
});

test('children are a tree, and their approvals are decided at the parent', async ({ page, server, ids }) => {
  const id = await server.run(ids.parent);
  await server.wait(id);
  await page.goto(`/executions/${id}`);
  await expect(page.getByText('Transfer to child?')).toBeVisible();
  await page.getByRole('button', { name: 'Approve…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('Completed', { exact: true }).first()).toBeVisible();
  await page.getByRole('link', { name: /Children \(1\)/ }).click();
  await page.getByRole('link', { name: 'transfer' }).click();
  await expect(page.getByRole('link', { name: 'Parent execution' })).toBeVisible();
});

test('run again starts with the edited input', async ({ page, server, ids }) => {
  const id = await server.run(ids.greeting, { input: { name: 'Ann' } });
  await server.wait(id);
  await page.goto(`/executions/${id}`);
  await page.getByRole('button', { name: 'Run again…' }).click();
  await expect(page.getByLabel('name *')).toHaveValue('Ann');
  await page.getByLabel('name *').fill('Ben');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page).toHaveURL(/\/executions\/(?!.*view=run)/);
  await page.getByRole('link', { name: 'Input and output' }).click();
  await expect(page.getByRole('region', { name: 'Output' })).toContainText('Hello Ben');
});

test('an execution is copied as a command and as a scenario', async ({ page, context, server, ids }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const id = await server.run(ids.greeting, { input: { name: "O'Neil" } });
  await server.wait(id);
  await page.goto(`/executions/${id}`);
  const copied = async (item: string, done: string) => {
    await page
      .getByRole('button', { name: /^Copy ▾|^Copy$/ })
      .last()
      .click();
    await page.getByRole('menuitem', { name: item }).click();
    await expect(page.getByText(done)).toBeVisible();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  expect(await copied('Start as a curl command', 'Command copied.')).toContain(`O'\\''Neil`);
  const scenario = await copied('Scenario file', 'Scenario copied.');
  expect(scenario).toContain('cases:');
  expect(scenario).toContain('status: completed');
});

test('the pinned definition is that of the start', async ({ page, server, ids }) => {
  const id = await server.run(ids.greeting, { input: { name: 'Ann' } });
  await server.wait(id);
  await page.goto(`/executions/${id}?view=definition`);
  await expect(page.getByRole('textbox', { name: 'Definition' })).toContainText('name: greeting');
});

test('actions work where the browser has no secure context', async ({ page, ids }) => {
  await page.addInitScript(() => {
    Object.defineProperty(Crypto.prototype, 'randomUUID', { value: undefined });
    Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined });
  });
  await page.goto(`/workflows/${ids.waits}?view=run`);
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByRole('button', { name: 'Signal…' }).click();
  await page.getByLabel('Name').fill('go');
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByText('Completed', { exact: true }).first()).toBeVisible();
});

test('a page of attempts that failed is read again', async ({ page, server, ids }) => {
  const id = await server.run(ids.loop, { input: { list: Array.from({ length: 40 }, (_, index) => index + 10) } });
  await server.wait(id);
  let failures = 0;
  await page.route(/\/steps\?/, route => {
    const url = new URL(route.request().url());
    if (url.searchParams.has('cursor') && failures === 0) {
      failures += 1;
      return route.fulfill({ status: 503, json: { error: 'busy', code: 'UNAVAILABLE' } });
    }
    url.searchParams.set('limit', '20');
    return route.continue({ url: url.href });
  });
  await page.goto(`/executions/${id}`);
  await expect(page.getByText(/4\d attempts/)).toBeVisible();
  await expect(page.getByRole('alert')).toHaveCount(0);
  expect(failures).toBe(1);
});
