import { expect, test } from './fixtures';

test('filters are in the address and survive a reload', async ({ page, server, ids }) => {
  await server.wait(await server.run(ids.greeting, { input: { name: 'Ann' } }));
  await server.wait(await server.run(ids.failing));
  await page.goto('/executions');
  await page.getByLabel('Status').selectOption('failed');
  await expect(page).toHaveURL(/status=failed/);
  await expect(page.getByRole('table').getByText('Completed')).toHaveCount(0);
  await page.getByLabel('Text in id').fill('reason of the failure');
  await expect(page).toHaveURL(/text=reason/);
  await page.reload();
  await expect(page.getByLabel('Status')).toHaveValue('failed');
  await expect(page.getByRole('link', { name: 'failing' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expect(page).toHaveURL(/\/executions$/);
});

test('the list follows new executions, and their status', async ({ page, server, ids }) => {
  await page.goto('/executions');
  await expect(page.getByRole('table')).toBeVisible();
  const id = await server.run(ids.waits);
  const row = page.getByRole('row').filter({ has: page.locator(`a[href="/executions/${id}"]`) });
  await expect(row).toContainText(/Running|Queued/);
  await server.call('POST', `/api/executions/${id}/signal`, { id: 's2', name: 'go' });
  await expect(row).toContainText('Completed');
});

test('older pages are loaded as the list is scrolled', async ({ page, server, ids }) => {
  for (let count = 0; count < 130; count += 1) await server.run(ids.greeting, { input: { name: String(count) } });
  await page.goto('/executions');
  await expect(page.getByRole('table')).toBeVisible();
  await page.getByRole('table').hover();
  await expect(async () => {
    await page.mouse.wheel(0, 4000);
    expect(Number(await page.getByRole('table').getAttribute('aria-rowcount'))).toBeGreaterThan(120);
  }).toPass();
});

test('several executions are cancelled after a preview', async ({ page, server, ids }) => {
  const first = await server.run(ids.waits);
  const second = await server.run(ids.waits);
  await page.goto('/executions');
  for (const id of [first, second]) await page.getByLabel(`Select execution ${id}`).check();
  await page.getByRole('button', { name: 'Cancel 2 selected…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText(first);
  await expect(dialog).toContainText(second);
  await dialog.getByLabel('Reason').fill('a test');
  await dialog.getByRole('button', { name: 'Cancel 2' }).click();
  await expect(dialog.getByText('Cancel requested')).toHaveCount(2);
  await dialog.getByRole('button', { name: 'Close' }).click();
  for (const id of [first, second]) {
    const row = page.getByRole('row').filter({ has: page.locator(`a[href="/executions/${id}"]`) });
    await expect(row).toContainText('Cancelled');
  }
});
