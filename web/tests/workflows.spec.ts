import type { Page } from '@playwright/test';
import { readFile } from 'node:fs/promises';
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

test('a stale edit is reported', async ({ page, open, server }) => {
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

test('a workflow is created, started from its form, and completes', async ({ page }) => {
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

test('an invalid input is refused with its position', async ({ page, ids }) => {
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

/** A workflow with an integer that a double cannot hold, in its definition. */
const LARGE = `
name: large
steps:
  - id: ask
    type: approval
    prompt: "Transfer?"
    items:
      - {account: 9007199254740993, to: "@input.id"}
`;

test('integers beyond 2^53 are exact: when edited, restored, run again, shown and copied', async ({
  page,
  context,
  server,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const id = await server.save('large', LARGE);
  const before = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`);
  await page.goto(`/workflows/${id}?view=definition`);
  await expect(editor(page)).toContainText('9007199254740993');
  await expect(page.getByText('Compiles')).toBeVisible();
  await write(page, LARGE.replace('Transfer?', 'Pay?'));
  await expect(page.getByText('Not saved')).toBeVisible();
  await expect(page.getByText('Compiles')).toBeVisible();
  await page.getByRole('button', { name: 'Save as new version' }).click();
  await expect(page.getByText('Version 1.0.1')).toBeVisible();
  const saved = await server.call<{ data: { steps: { items: { account: unknown }[] }[] } }>(
    'GET',
    `/api/workflows/${id}`,
  );
  expect(saved.data.steps[0]?.items[0]?.account).toBe(9007199254740993n);

  await page.getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('button', { name: 'Restore…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await expect(page.getByRole('row').filter({ hasText: 'Current' })).toContainText('1.0.0');
  expect((await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`)).workflowHash).toBe(
    before.workflowHash,
  );

  await page.goto(`/workflows/${id}?view=run`);
  await page.getByLabel('Input', { exact: true }).fill('{"id": 18446744073709551615}');
  await page.getByRole('button', { name: 'Start' }).click();
  await expect(page.getByRole('region', { name: 'Items' })).toContainText('9007199254740993');
  await expect(page.getByRole('region', { name: 'Items' })).toContainText('18446744073709551615');
  await page.getByRole('link', { name: 'Input and output' }).click();
  await page.getByRole('button', { name: 'Copy input' }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('18446744073709551615');
  await page.getByRole('button', { name: 'Run again…' }).click();
  await expect(page.getByLabel('Input', { exact: true })).toHaveValue(/18446744073709551615/);
});

test('a change of the notation keeps the edit, and a text with errors keeps its notation', async ({ page, server }) => {
  const id = await server.save('notation', GREETING);
  await page.goto(`/workflows/${id}?view=definition`);
  await expect(page.getByText('Compiles')).toBeVisible();
  await write(page, GREETING.replace('Hello', 'Good day'));
  await expect(page.getByText('Not saved')).toBeVisible();
  await page.getByLabel('Notation').selectOption('json');
  await expect(editor(page)).toContainText('"name": "greeting"');
  await expect(editor(page)).toContainText('Good day');
  await expect(page.getByText('Not saved')).toBeVisible();
  await write(page, '{"name": ');
  await page.getByLabel('Notation').selectOption('yaml');
  await expect(page.getByRole('alert')).toContainText('The notation was not changed');
  await expect(page.getByLabel('Notation')).toHaveValue('json');
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await expect(editor(page)).toContainText('Hello');
  await expect(page.getByText('Version 1.0.0')).toBeVisible();
});

test('a new workflow asks before it changes one with the same slug', async ({ page, server }) => {
  const id = await server.save('taken', GREETING.replace('name: greeting', 'name: first'));
  await server.call('PUT', `/api/workflows/${id}`, { description: 'Kept.', tags: ['kept'] });
  await page.goto('/workflows/new');
  await page.getByLabel('Slug').fill('taken');
  await expect(page.getByText('Compiles')).toBeVisible();
  await page.getByRole('button', { name: 'Create workflow' }).click();
  await expect(page.getByRole('dialog')).toContainText('You already have a workflow with this slug');
  expect(await server.call('GET', `/api/workflows/${id}`)).toMatchObject({ version: '1.0.0' });
  await page.getByRole('dialog').getByRole('button', { name: 'Save as new version' }).click();
  await expect(page).toHaveURL(`${server.base}/workflows/${id}`);
  expect(await server.call('GET', `/api/workflows/${id}`)).toMatchObject({
    version: '1.0.1',
    description: 'Kept.',
    tags: ['kept'],
  });
});

test('the graph of a workflow is downloaded as a picture', async ({ page, ids }) => {
  await page.goto(`/workflows/${ids.greeting}`);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download as a picture (SVG)' }).click();
  const picture = await readFile(await (await download).path(), 'utf8');
  expect(picture).toMatch(/^<svg [^]*>greet<\/text>/);
});
