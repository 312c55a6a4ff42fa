import { parse } from 'yaml';
import { expect, test } from './fixtures';

/** Waits, and permits proposals. */
const WAITS = `
name: migrated
constraints: {allowSelfModification: true}
steps:
  - {id: wait, type: signal, signal: go}
`;

test('a migration updates running executions and names those that cannot migrate', async ({ page, server }) => {
  const id = await server.save('migrated', WAITS);
  const execution = await server.run(id);
  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`);
  const definition = parse(WAITS) as { steps: unknown[] };
  const more = { id: 'more', type: 'signal', signal: 'more' };
  const proposal = { proposedWorkflow: { ...definition, steps: [...definition.steps, more] } };
  const body = { baseWorkflowHash: workflowHash, proposal };
  const created = await server.call<{ id: string }>('POST', `/api/workflows/${id}/proposals`, body);
  await server.call('POST', `/api/workflows/${id}/proposals/${created.id}/review`, { approve: true });
  await page.goto(`/workflows/${id}?view=proposals&proposal=${created.id}`);
  await page.getByRole('button', { name: 'Apply…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('New executions').selectOption('migrate');
  await expect(dialog.getByText('Of 1 running, 1 would continue with the change now.')).toBeVisible();
  await dialog.getByLabel('Share in percent').fill('50');
  await expect(dialog.getByText('A rollout has executions of both definitions')).toBeVisible();
  await expect(dialog.getByRole('button', { name: 'Apply' })).toBeDisabled();
  await dialog.getByLabel('Share in percent').fill('');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await expect(page.getByText('1 continued with the change, 0 stayed with their definition.')).toBeVisible();
  await page.goto(`/executions/${execution}`);
  await expect(page.getByText(/Continues with version .* since/)).toBeVisible();
  await server.call('POST', `/api/executions/${execution}/cancel`, {});
});
