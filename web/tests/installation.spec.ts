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

test('of two who change settings, the later is told, and nothing else is written back', async ({
  page,
  open,
  server,
}) => {
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

test('a change of a member that another has changed since is refused, and an existing id is not added', async ({
  page,
  server,
}) => {
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

test('the search of the audit log goes on to older entries', async ({ page, server }) => {
  await server.call('PUT', '/api/members/first-of-many', { role: 'viewer' });
  for (let count = 0; count < 210; count += 1) {
    await server.call('PUT', '/api/members/of-many', { role: 'viewer', name: `Name ${count}` });
  }
  await page.goto('/installation?section=audit&text=first-of-many');
  await expect(page.getByText(/0 of \d+ loaded entries/)).toBeVisible();
  await page.getByRole('button', { name: 'Search older entries' }).click();
  await expect(page.getByRole('row').nth(1)).toContainText('first-of-many');
});
