import { once } from 'node:events';
import { createServer } from 'node:http';
import { expect, test } from './fixtures';

test('a member is added, changed and removed', async ({ page }) => {
  await page.goto('/installation?section=members');
  await page.getByRole('button', { name: 'Add member…' }).click();
  await page.getByLabel('Id').fill('carol');
  await page.getByLabel('Role').selectOption('viewer');
  await page.getByRole('button', { name: 'Save' }).click();
  const row = page.getByRole('row').filter({ hasText: 'carol' });
  await expect(row).toContainText('viewer');
  await page.getByRole('button', { name: 'Change carol' }).click();
  await page.getByLabel('Role').selectOption('admin');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(row).toContainText('admin');
  await page.getByRole('button', { name: 'Remove carol' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await expect(row).toHaveCount(0);
});

test('a token is shown once and can be revoked', async ({ page }) => {
  await page.goto('/installation?section=tokens');
  await page.getByRole('button', { name: 'Create token…' }).click();
  await page.getByLabel('Name').fill('for a test');
  await page.getByLabel('executions:read').check();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByText(/^msp_/)).toBeVisible();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await expect(page.getByText(/^msp_/)).toHaveCount(0);
  await page.getByRole('button', { name: 'Revoke for a test' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'for a test' })).toHaveCount(0);
});

test('the audit log is searched, verified and exported', async ({ page }) => {
  await page.goto('/installation?section=audit');
  await page.getByLabel(/Text in action/).fill('session.create');
  await expect(page.getByRole('row').nth(1)).toContainText('session.create');
  await page.getByRole('button', { name: 'Verify' }).click();
  await expect(page.getByText(/unbroken chain up to the sealed head/)).toBeVisible();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export with proof' }).click();
  expect((await download).suggestedFilename()).toBe('audit.ndjson');
});

test('settings are saved', async ({ page }) => {
  await page.goto('/installation?section=settings');
  await page.getByLabel('Of one member').fill('40');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('Of one member')).toHaveValue('40');
});

test('a stale change of settings is reported, and only changed fields are written', async ({ page, open, server }) => {
  const other = await open(server.token);
  await other.goto('/installation?section=settings');
  await expect(other.getByLabel('Of one member')).toBeVisible();
  await page.goto('/installation?section=settings');
  await page.getByLabel('Of one member').fill('41');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  await other.getByLabel('Name of the organization').fill('Renamed');
  await other.getByRole('button', { name: 'Save settings' }).click();
  await expect(other.getByRole('alert')).toContainText('the settings have changed');
  await other.getByRole('button', { name: 'Discard and read' }).click();
  await expect(other.getByLabel('Of one member')).toHaveValue('41');
  expect(await server.call('GET', '/api/organization')).toMatchObject({ limits: { perUser: 41 } });
});

test('a stale change of a member is refused, and an existing id is not added', async ({ page, server }) => {
  await server.call('PUT', '/api/members/vic', { role: 'admin' });
  await page.goto('/installation?section=members');
  await page.getByRole('button', { name: 'Change vic' }).click();
  await expect(page.getByLabel('Role')).toHaveValue('admin');
  await server.call('PUT', '/api/members/vic', { role: 'viewer' });
  await page.getByLabel('Name').fill('Vic');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('alert')).toContainText('was not saved');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Add member…' }).click();
  await page.getByLabel('Id').fill('vic');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('alert')).toContainText('is a member already');
  expect(await server.call('GET', '/api/members/vic')).toMatchObject({ role: 'viewer' });
});

test('the search of the audit log continues with older entries', async ({ page, server }) => {
  await server.call('PUT', '/api/members/first-of-many', { role: 'viewer' });
  for (let count = 0; count < 210; count += 1) {
    await server.call('PUT', '/api/members/of-many', { role: 'viewer', name: `Name ${count}` });
  }
  await page.goto('/installation?section=audit&text=first-of-many');
  await expect(page.getByText(/0 of \d+ loaded entries/)).toBeVisible();
  await page.getByRole('button', { name: 'Search older entries' }).click();
  await expect(page.getByRole('row').nth(1)).toContainText('first-of-many');
});

const VALUE = 'first-value-of-a-test';

test('a secret is added, gets a new value, and is removed; no answer has its value', async ({ page, server, ids }) => {
  const bodies: string[] = [];
  await page.route('**/api/secrets**', async route => {
    const response = await route.fetch();
    bodies.push(await response.text());
    await route.fulfill({ response });
  });
  await page.goto('/installation?section=secrets');
  await page.getByRole('button', { name: 'Add secret…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('API_KEY');
  await dialog.getByLabel('Value').fill('short');
  await expect(dialog.getByText('It has 5 of at least 8 bytes.')).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'Add' })).toBeDisabled();
  await dialog.getByLabel('Value').fill(VALUE);
  await dialog.getByLabel('Only the chosen ones').check();
  await expect(dialog.getByRole('button', { name: 'Add' })).toBeDisabled();
  await dialog.getByLabel('Find a workflow').fill('greet');
  await dialog.getByLabel('greeting').check();
  await dialog.getByRole('button', { name: 'Add' }).click();
  const row = page.getByRole('row').filter({ hasText: 'API_KEY' });
  await expect(row).toContainText('greeting');
  expect(await server.call('GET', '/api/secrets')).toMatchObject({
    secrets: [{ name: 'API_KEY', workflows: [ids.greeting] }],
  });

  await page.getByRole('button', { name: 'Add secret…' }).click();
  await dialog.getByLabel('Name').fill('API_KEY');
  await dialog.getByLabel('Value').fill('another-value');
  await dialog.getByRole('button', { name: 'Add' }).click();
  await expect(dialog.getByRole('alert')).toContainText('API_KEY exists already');
  await dialog.getByRole('button', { name: 'Close' }).click();

  await page.getByRole('button', { name: 'Set a new value of API_KEY' }).click();
  await expect(dialog.getByLabel('Value')).toHaveValue('');
  await dialog.getByLabel('Value').fill('second-value-of-a-test');
  await dialog.getByLabel('All workflows').check();
  await dialog.getByRole('button', { name: 'Set value' }).click();
  await expect(row).toContainText('All workflows');
  await page.reload();
  await expect(row).toBeVisible();
  expect(bodies.length).toBeGreaterThan(2);
  expect(bodies.join()).not.toMatch(/value-of-a-test/);
  await expect(page.getByText(/value-of-a-test/)).toHaveCount(0);

  await page.getByRole('button', { name: 'Remove API_KEY' }).click();
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await expect(page.getByText('The organization has no secrets.')).toBeVisible();
  expect(await server.call('GET', '/api/secrets')).toMatchObject({ secrets: [] });
});

test('reading and changing secrets need their permissions', async ({ server, open }) => {
  await server.call('PUT', '/api/secrets/shared', { value: VALUE });
  const member = await open(await server.member('secret-reader', 'member'));
  await member.goto('/installation?section=secrets');
  await expect(member.getByRole('row').filter({ hasText: 'shared' })).toContainText('All workflows');
  await expect(member.getByRole('main').getByRole('button')).toHaveCount(0);
  const viewer = await open(await server.member('secret-viewer', 'viewer'));
  await viewer.goto('/installation?section=secrets');
  await expect(viewer.getByRole('link', { name: 'Tokens' })).toBeVisible();
  await expect(viewer.getByRole('link', { name: 'Secrets' })).toHaveCount(0);
  await expect(viewer.getByText('shared')).toHaveCount(0);
  await server.call('DELETE', '/api/secrets/shared');
});

test('secrets are set by keyboard alone, at 375 pixels', async ({ page, server }) => {
  await page.setViewportSize({ width: 375, height: 700 });
  await page.goto('/installation?section=secrets');
  const add = page.getByRole('button', { name: 'Add secret…' });
  await expect(add).toBeVisible();
  await add.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.type('BY_KEYBOARD');
  await page.keyboard.press('Tab');
  await page.keyboard.type('value-from-the-keyboard');
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await expect(page.getByLabel('All workflows')).toBeFocused();
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('cell', { name: 'BY_KEYBOARD', exact: true })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  await server.call('DELETE', '/api/secrets/BY_KEYBOARD');
});

test('sessions are found by their key, and those of ended executions are reaped', async ({ page, server, ids }) => {
  const ended = await server.run(ids.greeting, { input: { name: 'Ann' } });
  await server.wait(ended);
  const waiting = await server.run(ids.waits);
  await page.goto('/installation?section=sessions');
  const rows = page.getByRole('region', { name: 'Sessions' }).getByRole('row');
  await expect(rows.filter({ hasText: ended })).toContainText('terminated');
  await expect(rows.filter({ hasText: waiting })).toContainText(/running|hibernated/);
  await page.getByLabel('Key').fill(`agent:*:workflow:*:run:${ended}`);
  await page.getByRole('button', { name: 'Search' }).click();
  await expect(rows).toHaveCount(2);
  await page.getByRole('button', { name: 'Reap ended sessions…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('status')).toContainText('1 sessions with 0 credentials');
  await dialog.getByRole('button', { name: 'Reap' }).click();
  await expect(dialog).toHaveCount(0);
  await page.getByLabel('Status').selectOption('running');
  await expect(page.getByText('No session matches.')).toBeVisible();
});

test('an endpoint subscribes, is tested, and its failed events are sent again', async ({ page, server, ids }) => {
  let status = 204;
  const endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(status).end();
  }).listen(0, '127.0.0.1');
  await once(endpoint, 'listening');
  const { port } = endpoint.address() as { port: number };
  await page.goto('/installation?section=events');
  await page.getByRole('button', { name: 'Subscribe…' }).click();
  await page.getByLabel('Name').fill('for a test');
  await page.getByLabel('Endpoint').fill(`http://127.0.0.1:${port}/hook`);
  await page.getByLabel('Types').fill('workflow.execution.finished');
  await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
  await expect(page.getByText(/^whsec_/)).toBeVisible();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Test for a test' }).click();
  await expect(page.getByText('for a test took the test event.')).toBeVisible();
  status = 503;
  await page.getByRole('button', { name: 'Test for a test' }).click();
  await expect(page.getByText('did not take the test event: http_status:503')).toBeVisible();
  // 410 pauses a subscription at once.
  status = 410;
  await server.wait(await server.run(ids.greeting, { input: { name: 'Ann' } }));
  const row = page
    .getByRole('region', { name: 'Event subscriptions' })
    .getByRole('row')
    .filter({ hasText: 'for a test' });
  await expect(async () => {
    await page.reload();
    await expect(row).toContainText('Paused', { timeout: 1000 });
  }).toPass();
  status = 204;
  await page.getByRole('button', { name: 'Enable for a test' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click();
  await expect(row).toContainText('Enabled');
  await page.getByRole('button', { name: 'Failed events of for a test' }).click();
  await expect(page.getByRole('dialog')).toContainText('Every event was delivered or still waits.');
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Delete for a test' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page.getByText('No endpoint receives events.')).toBeVisible();
  endpoint.close();
});

test('a tool server is checked, and its tools have their verdicts', async ({ page }) => {
  await page.goto('/installation?section=tools');
  await expect(page.getByText('hidden')).toHaveCount(0);
  await page.getByRole('button', { name: 'Check shop' }).click();
  const row = page.getByRole('row').filter({ hasText: 'shop.pay' });
  await expect(row).toContainText('payment');
  await expect(row).toContainText('ask');
  await expect(row).toContainText('Pays <b>');
  await page.getByRole('button', { name: 'Schema of shop.pay' }).click();
  await expect(page.getByText('inputSchema')).toBeVisible();
});

test('a model is checked', async ({ page }) => {
  await page.goto('/installation?section=models');
  await page.getByRole('button', { name: 'Check scripted' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Ask it' }).click();
  await expect(page.getByRole('status').filter({ hasText: 'It answered in' })).toContainText('done');
});

test('an organization sets rules of its own for calls', async ({ page, server }) => {
  await page.goto('/installation?section=policy');
  const rules = page.getByLabel('Rules of the organization');
  await rules.fill('payment: never');
  await expect(page.getByText('the verdict must be allow, ask or deny')).toBeVisible();
  await rules.fill('payment: deny\nshop.get_*: ask');
  await page.getByRole('button', { name: 'Save rules' }).click();
  await expect(page.getByText('Executions that start from now on have these rules.')).toBeVisible();
  expect(await server.call('GET', '/api/policy')).toMatchObject({
    verdicts: { payment: 'deny', 'shop.get_*': 'ask' },
  });
  await server.call('PUT', '/api/policy', { verdicts: {} });
  await rules.fill('payment: ask');
  await page.getByRole('button', { name: 'Save rules' }).click();
  await expect(page.getByRole('alert')).toContainText('have changed since you opened them');
});
