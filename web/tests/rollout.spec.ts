import { parse } from 'yaml';
import { expect, test } from './fixtures';

/** Ends at once, and permits proposals. */
const ENDS = `
name: rolled
constraints: {allowSelfModification: true}
steps:
  - {id: rest, type: sleep, durationMs: 1}
`;

test('a rollout gets some of the starts and is aborted', async ({ page, server }) => {
  const id = await server.save('rolled', ENDS);
  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`);
  const definition = parse(ENDS) as { description?: string };
  const proposal = { proposedWorkflow: { ...definition, description: 'Rests.' } };
  const body = { baseWorkflowHash: workflowHash, proposal };
  const created = await server.call<{ id: string }>('POST', `/api/workflows/${id}/proposals`, body);
  await server.call('POST', `/api/workflows/${id}/proposals/${created.id}/review`, { approve: true });
  await page.goto(`/workflows/${id}?view=proposals&proposal=${created.id}`);
  await page.getByRole('button', { name: 'Apply…' }).click();
  await page.getByRole('dialog').getByLabel('Share in percent').fill('50');
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByRole('region', { name: 'Both definitions' })).toBeVisible();
  const execution = await server.run(id);
  await page.goto(`/executions/${execution}`);
  await expect(page.getByText(/of a rollout to 50 %|beside a rollout to 50 %/)).toBeVisible();
  await page.goto(`/workflows/${id}`);
  await page.getByRole('link', { name: 'Show the rollout' }).click();
  await page.getByRole('button', { name: 'Abort…' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('It rests too long.');
  await page.getByRole('dialog').getByRole('button', { name: 'Abort the rollout' }).click();
  await expect(page.getByText('It rests too long.')).toBeVisible();
  await expect(page.getByText('of the new executions run version')).toBeHidden();
});
