import { expect, test } from './fixtures';

test('an approval is found and approved by keyboard alone', async ({ page, server, ids }) => {
  const id = await server.run(ids.transfer, { input: { to: 'keyboard' } });
  await server.wait(id);
  await page.goto('/approvals');
  await expect(page.getByText('Transfer to keyboard?').first()).toBeVisible();
  await page.keyboard.press('j');
  await expect(page.getByRole('article').getByText('Transfer to keyboard?')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Items' })).toContainText('1200');
  await page.keyboard.press('a');
  await expect(page.getByRole('dialog')).toContainText('Transfer to keyboard?');
  await page.getByLabel('Reason').press('Tab');
  await page.getByLabel('Reason').focus();
  await page.keyboard.type('checked twice');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(page.getByText('This approval is no longer open')).toBeVisible();
  const attempts = await server.call<{ steps: { decisions?: { reason: string }[] }[] }>(
    'GET',
    `/api/executions/${id}/steps`,
  );
  expect(attempts.steps.flatMap(step => step.decisions ?? [])[0]?.reason).toBe('checked twice');
});

test('a late decision on an approval is reported as such', async ({ page, open, server, ids }) => {
  const id = await server.run(ids.transfer, { input: { to: 'two' } });
  await server.wait(id);
  const other = await open(server.token);
  for (const one of [page, other]) {
    await one.goto('/approvals');
    await one.getByText('Transfer to two?').first().click();
  }
  await page.getByRole('button', { name: /^Approve/ }).click();
  await other.getByRole('button', { name: /^Deny/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('This approval is no longer open')).toBeVisible();
  await other.getByRole('dialog').getByRole('button', { name: 'Deny' }).click();
  await expect(other.getByRole('dialog').getByRole('alert')).toContainText('not recorded');
});

test('the inbox works at 375 pixels', async ({ page, server, ids }) => {
  await server.wait(await server.run(ids.transfer, { input: { to: 'phone' } }));
  await page.setViewportSize({ width: 375, height: 700 });
  await page.goto('/approvals');
  await page.getByText('Transfer to phone?').first().click();
  await expect(page.getByRole('list', { name: 'Open approvals' })).toBeHidden();
  await page.getByRole('button', { name: /^Deny/ }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('wrong account');
  await page.getByRole('dialog').getByRole('button', { name: 'Deny' }).click();
  await page.getByRole('button', { name: '← All approvals' }).click();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
});
