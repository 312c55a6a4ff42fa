import { parse } from 'yaml';
import { expect, test } from './fixtures';

/** Waits, and permits proposals. */
const WAITS = `
name: drained
constraints: {allowSelfModification: true}
steps:
  - {id: wait, type: signal, signal: go}
`;

test('a change is applied with a drain, and a member ends the drain', async ({ page, server }) => {
  const id = await server.save('drained', WAITS);
  const before = await server.run(id);
  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`);
  const definition = parse(WAITS) as { description?: string };
  const proposal = { proposedWorkflow: { ...definition, description: 'Waits for a signal, as before.' } };
  const body = { baseWorkflowHash: workflowHash, proposal };
  const created = await server.call<{ id: string }>('POST', `/api/workflows/${id}/proposals`, body);
  await page.goto(`/workflows/${id}?view=proposals&proposal=${created.id}`);
  await page.getByRole('button', { name: 'Approve…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('button', { name: 'Apply…' }).click();
  await page.getByRole('dialog').getByLabel('New executions').selectOption('drain');
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText('New executions wait until those of older definitions have ended')).toBeVisible();
  const waits = await server.run(id);
  await page.goto(`/executions/${waits}`);
  await expect(page.getByText('executions of an older definition have not ended')).toBeVisible();
  await page.goto(`/workflows/${id}`);
  await page.getByRole('button', { name: 'End the drain…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End the drain' }).click();
  await expect(page.getByText('New executions wait until')).toBeHidden();
  for (const execution of [before, waits]) await server.call('POST', `/api/executions/${execution}/cancel`, {});
});
