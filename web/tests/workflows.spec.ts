import type { Page } from '@playwright/test';
import { expect, test } from './fixtures';
import { GREETING } from './workflows';

const editor = (page: Page) => page.getByRole('textbox', { name: 'Definition' });

/** Replaces the text of the editor. */
async function write(page: Page, text: string) {
  await editor(page).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

test('a mistake is shown as it is typed, and a repaired definition is saved as a version', async ({ page, server }) => {
  const id = await server.save('edited', GREETING.replace('name: greeting', 'name: edited'));
  await page.goto(`/workflows/${id}?view=definition`);
  await expect(page.getByText('Compiles')).toBeVisible();
  await write(page, GREETING.replace('type: code', 'type: cod'));
  await expect(page.getByText(/\d errors?/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Save as new version' })).toBeDisabled();
  await write(page, GREETING.replace('Hello', 'Good day'));
  await expect(page.getByText('Compiles')).toBeVisible();
  await page.getByRole('button', { name: 'Save as new version' }).click();
  await expect(page.getByText('Version 1.0.1')).toBeVisible();
  await page.getByRole('link', { name: 'Versions' }).click();
  await expect(page.getByRole('region', { name: 'From 1.0.0 to 1.0.1' })).toContainText('Good day');
  await page.getByRole('button', { name: 'Restore…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'Current' })).toContainText('1.0.0');
});

test('keys and values are completed', async ({ page }) => {
  await page.goto('/workflows/new');
  await write(page, 'name: a\nsteps:\n  - id: one\n    type: bash\n    comm');
  await page.keyboard.press('Control+Space');
  await expect(page.locator('.cm-tooltip-autocomplete')).toContainText('command');
});

test('of two who edit at once, the later is told', async ({ page, open, server }) => {
  const id = await server.save('contended', GREETING);
  const other = await open(server.token);
  for (const [one, word] of [
    [page, 'First'],
    [other, 'Second'],
  ] as const) {
    await one.goto(`/workflows/${id}?view=definition`);
    await write(one, GREETING.replace('Hello', word));
    await expect(one.getByText('Not saved')).toBeVisible();
    await expect(one.getByText('Compiles')).toBeVisible();
  }
  await page.getByRole('button', { name: 'Save as new version' }).click();
  await expect(page.getByText('Version 1.0.1')).toBeVisible();
  await other.getByRole('button', { name: 'Save as new version' }).click();
  await expect(other.getByRole('alert')).toContainText('was not saved');
});

test('a workflow is created, started from its form, and seen to its end', async ({ page }) => {
  await page.goto('/workflows');
  await page.getByRole('link', { name: 'New workflow' }).click();
  await page.getByLabel('Slug').fill('hello');
  await expect(page.getByText('Compiles')).toBeVisible();
  await page.getByRole('button', { name: 'Create workflow' }).click();
  await page.getByRole('link', { name: 'Run…' }).click();
  await page.getByLabel('name').fill('Ann');
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByRole('button', { name: 'Approve…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await expect(page.getByText('Completed', { exact: true }).first()).toBeVisible();
});

test('an invalid input is refused with its place', async ({ page, ids }) => {
  await page.goto(`/workflows/${ids.greeting}?view=run`);
  await page.getByLabel('Write as JSON').check();
  await page.getByLabel('Input', { exact: true }).fill('{"name": 5}');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('alert')).toBeVisible();
  await page.getByLabel('Input', { exact: true }).fill('{"name": ');
  await expect(page.getByText('This is not JSON.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Start' })).toBeDisabled();
});

test('a workflow is disabled, enabled and deleted', async ({ page, server }) => {
  const id = await server.save('short-lived', GREETING);
  await page.goto(`/workflows/${id}?view=settings`);
  await page.getByLabel(/Enabled/).uncheck();
  await page.getByRole('button', { name: 'Save settings' }).click();
  await expect(page.getByText('Disabled', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'Delete workflow…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete workflow' }).click();
  await expect(page).toHaveURL(/\/workflows$/);
});
