import { APPEARANCES, findings, setAppearance } from './axe';
import { expect, test } from './fixtures';
import type { Server } from './server';

/** An agent with budgets, a step that vouches for its output, and steps for the end. */
const AGENT = `
name: budgeted
constraints: {budget: {tokens: 50000}}
steps:
  - id: look
    type: agent
    goal: Look.
    budget: {tokens: 20000, modelCalls: 5}
  - id: check
    type: code
    input: {text: "@look.text"}
    code: export default ({ text }) => text
    trust: trusted
finally:
  - id: tidy
    type: code
    code: export default () => 1
  - id: each
    type: loop
    forEach: {ref: "@input.list"}
    steps:
      - {id: inner, type: code, code: "export default () => 1"}
`;

async function run(server: Server): Promise<string> {
  const workflow = await server.save('budgeted', AGENT);
  const id = await server.run(workflow, { input: { list: [1, 2] } });
  expect(await server.wait(id)).toMatchObject({ status: 'completed' });
  return id;
}

test('the usage of an execution and what its budget leaves are those of the API', async ({ page, server }) => {
  const id = await run(server);
  expect(await server.call('GET', `/api/executions/${id}`)).toMatchObject({
    usage: { used: { tokens: 1824, modelCalls: 1 }, left: { tokens: 48_176 } },
  });
  await page.goto(`/executions/${id}`);
  await page.getByRole('link', { name: 'Usage' }).click();
  const row = (name: string) =>
    page.getByRole('region', { name: 'Usage', exact: true }).getByRole('row').filter({ hasText: name });
  await expect(row('Tokens').getByRole('cell')).toHaveText(['1,824', '50,000', '48,176']);
  await expect(row('Model calls').getByRole('cell')).toHaveText(['1', '–', '–']);
  await page.reload();
  await expect(row('Tokens')).toBeVisible();
});

test('an execution without agents has no usage', async ({ page, server, ids }) => {
  const id = await server.run(ids.failing);
  await server.wait(id);
  await page.goto(`/executions/${id}`);
  await expect(page.getByRole('link', { name: 'Journal' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Usage' })).toHaveCount(0);
});

test('the drawer of an agent has its limits and the budget that is left', async ({ page, server }) => {
  const id = await run(server);
  for (const step of ['look', 'look#1']) {
    await page.goto(`/executions/${id}?step=${encodeURIComponent(step)}`);
    const budget = page.getByRole('complementary').getByRole('region', { name: 'Budget', exact: true });
    await expect(budget).toContainText('Limits of the step: 20,000 tokens, 5 model calls');
    await expect(budget).toContainText('Used by the step: 1,824 tokens');
    await expect(budget.getByRole('region', { name: 'Budget of the execution' })).toContainText('48,176');
  }
  await page.goto(`/executions/${id}?step=check`);
  const drawer = page.getByRole('complementary');
  await expect(drawer).toContainText('declares the output trusted: rules for untrusted values do not count it');
  await expect(drawer.getByRole('region', { name: 'Budget', exact: true })).toHaveCount(0);
});

test('steps of `finally` are marked in the timeline, the graph and the drawer, and others are not', async ({
  page,
  server,
}) => {
  const id = await run(server);
  await page.goto(`/executions/${id}`);
  const timeline = page.getByRole('list', { name: 'Steps in the order of their start' });
  const marked = timeline.getByRole('listitem').filter({ hasText: /finally/ });
  await expect(marked).toHaveCount(2);
  await expect(marked.nth(0)).toContainText('tidy');
  await expect(marked.nth(1)).toContainText('each');
  await expect(page.getByRole('button', { name: /tidy.*finally · code/ })).toBeVisible();
  await expect(page.getByRole('button', { name: /check.*finally/ })).toHaveCount(0);
  await page.goto(`/executions/${id}?step=${encodeURIComponent('each[1].inner')}`);
  await expect(page.getByRole('complementary')).toContainText('when all other steps have ended');
  await page.goto(`/executions/${id}?step=check`);
  await expect(page.getByRole('complementary')).toContainText('Output');
  await expect(page.getByRole('complementary')).not.toContainText('finally');
});

test('usage and the drawer of an agent fit 375 pixels, and axe finds nothing in them', async ({ page, server }) => {
  test.setTimeout(120_000);
  const id = await run(server);
  const paths = [`/executions/${id}?view=usage`, `/executions/${id}?step=look`, `/executions/${id}?step=check`];
  for (const appearance of APPEARANCES) {
    await setAppearance(page, appearance);
    await page.setViewportSize({ width: appearance.theme === 'light' ? 375 : 1280, height: 700 });
    for (const path of paths) {
      await page.goto(path);
      await expect(page.getByText(path.endsWith('check') ? /declares the output/ : '48,176')).toBeVisible();
      expect(await findings(page), `${path} ${appearance.theme} ${appearance.contrast}`).toEqual([]);
      const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect(width, path).toBeLessThanOrEqual(0);
    }
  }
});

test('the usage of the organization and its budgets are those of the API', async ({ page, server }) => {
  await run(server);
  await server.call('PUT', '/api/budgets', { period: 'month', tokens: 5_000_000, onExceeded: 'ask' });
  const { usage } = (await server.call('GET', '/api/usage?by=workflow')) as { usage: { used: { tokens: number } }[] };
  await page.goto('/installation?section=usage');
  const used = page.getByRole('region', { name: 'Usage by workflow' }).getByRole('row').filter({ hasText: 'budgeted' });
  await expect(used).toContainText(usage[0]!.used.tokens.toLocaleString('en'));
  const budget = page.getByRole('region', { name: 'Budgets' }).getByRole('row').filter({ hasText: 'Organization' });
  await expect(budget).toContainText('5,000,000');
  await expect(budget).toContainText('Asks admins');
  await server.call('DELETE', '/api/budgets/month');
  await page.reload();
  await expect(page.getByText('No budget limits a day or a month.')).toBeVisible();
});
