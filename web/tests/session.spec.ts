import { expect, signIn, test } from './fixtures';

test('a wrong token is refused with a reason, and a right one leads back to the page', async ({
  browser,
  server,
  ids,
}) => {
  const page = await (await browser.newContext({ baseURL: server.base })).newPage();
  await page.goto(`/workflows/${ids.greeting}?view=versions`);
  await expect(page).toHaveURL(/\/login\?next=/);
  await signIn(page, 'msp_wrong');
  await expect(page.getByRole('alert')).toContainText('token');
  await signIn(page, server.token);
  await expect(page).toHaveURL(`${server.base}/workflows/${ids.greeting}?view=versions`);
  await page.context().close();
});

test('signing out ends the session at the server', async ({ page }) => {
  await page.getByRole('button', { name: /My organization/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await expect(page).toHaveURL(/\/login/);
  await page.goto('/executions');
  await expect(page).toHaveURL(/\/login/);
});

test('a token that is revoked while signed in leads to the sign-in', async ({ open, server }) => {
  const token = await server.member('leaver', 'member');
  const page = await open(token);
  await page.goto('/executions');
  await expect(page.getByRole('heading', { name: 'Executions' })).toBeVisible();
  const { tokens } = await server.call<{ tokens: { id: string; userId: string }[] }>('GET', '/api/tokens?limit=200');
  const own = tokens.find(one => one.userId === 'leaver');
  await server.call('DELETE', `/api/tokens/${own?.id}`);
  await expect(page).toHaveURL(/\/login/, { timeout: 20_000 });
});

test('a viewer sees no action that would be refused', async ({ open, server, ids }) => {
  const id = await server.run(ids.waits);
  await server.wait(id).catch(() => undefined);
  const page = await open(await server.member('viewer1', 'viewer'));
  await page.goto('/executions');
  await expect(page.getByRole('table')).toBeVisible();
  await expect(page.getByRole('button', { name: /Cancel/ })).toHaveCount(0);
  await page.goto(`/workflows/${ids.greeting}`);
  await expect(page.getByRole('heading', { name: 'greeting' })).toBeVisible();
  await expect(page.getByRole('link', { name: /^Run/ })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Settings' })).toHaveCount(0);
});

test('a member sees no action on what belongs to others', async ({ open, server, ids }) => {
  const id = await server.run(ids.waits);
  const token = await server.member('ann', 'member');
  const page = await open(token);
  await page.goto(`/executions/${id}`);
  await expect(page.getByRole('heading', { name: 'waits' })).toBeVisible();
  await expect(page.getByRole('button', { name: /Cancel|Signal/ })).toHaveCount(0);
  await page.goto('/executions');
  await expect(page.locator(`a[href="/executions/${id}"]`)).toBeVisible();
  await expect(page.getByLabel(`Select execution ${id}`)).toHaveCount(0);
  await page.goto(`/workflows/${ids.greeting}?view=definition`);
  await expect(page.getByRole('textbox', { name: 'Definition' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save as new version' })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Settings' })).toHaveCount(0);
  await page.goto('/executions');
  const own = await server.call<{ executionId: string }>(
    'POST',
    '/api/triggers/manual/run',
    { workflowId: ids.waits, clientRequestId: 'of-ann' },
    token,
  );
  await page.goto(`/executions/${own.executionId}`);
  await expect(page.getByRole('button', { name: 'Cancel…' })).toBeVisible();
});
