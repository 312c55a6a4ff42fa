import { expect, test } from './fixtures';

const GREETS = `
name: greets
constraints: {allowSelfModification: true}
steps:
  - {id: greet, type: bash, command: echo hello, onInterrupted: retry}
`;

const SCENARIO = `name: it greets
definition: flow.yaml
effects: {greet: {return: {stdout: hello}}}
expect: {status: completed, steps: {greet: completed}}
`;

test('scenarios are written, run and saved on the page of a workflow', async ({ page, server }) => {
  const id = await server.save('greets', GREETS);
  await page.goto(`/workflows/${id}?view=scenarios`);
  await expect(page.getByText('The workflow has no scenarios.')).toBeVisible();
  await page.getByLabel('New file').fill('greets.scenario.yaml');
  await page.getByRole('button', { name: 'Add file' }).click();
  // The first text has no answer for the command.
  await page.getByRole('button', { name: 'Run scenarios' }).click();
  await expect(page.getByText('0 passed, 1 failed.')).toBeVisible();
  await page.getByLabel('Scenarios', { exact: true }).fill(SCENARIO);
  await page.getByRole('button', { name: 'Run scenarios' }).click();
  await expect(page.getByText('1 passed, 0 failed.')).toBeVisible();
  await page.getByRole('button', { name: 'Save scenarios' }).click();
  await expect(page.getByText('Saved.')).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('Scenarios', { exact: true })).toHaveValue(SCENARIO);
  // Another page has changed them since: the later save is told.
  await server.call('PUT', `/api/workflows/${id}/scenarios`, { files: { other: SCENARIO } });
  await page.getByLabel('Scenarios', { exact: true }).fill(SCENARIO.replace('it greets', 'it still greets'));
  await page.getByRole('button', { name: 'Save scenarios' }).click();
  await expect(page.getByText('Your change was not saved')).toBeVisible();
});
