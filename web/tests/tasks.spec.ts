/**
 * Ten tasks of people who run workflows. Each begins at the overview and takes at most three clicks; the confirmation of an
 * action that cannot be undone is not counted.
 */
import type { Locator, Page } from '@playwright/test';
import { parse } from 'yaml';
import { expect, test } from './fixtures';
import { GREETING } from './workflows';

const CLICKS_MAX = 3;

const CHECKED = `
name: checked
inputSchema: {type: object, properties: {count: {type: integer}}, required: [count]}
steps:
  - id: check
    type: code
    input: {count: "@input.count"}
    code: export default ({ count }) => { if (count < 0) throw new Error("it is negative"); return count }
`;

/** A reader who counts clicks. */
class Reader {
  private clicks = 0;

  constructor(readonly page: Page) {}

  async begin() {
    await this.page.goto('/');
    await expect(this.page.getByRole('heading', { name: 'Overview' })).toBeVisible();
    this.clicks = 0;
  }

  async click(target: Locator) {
    this.clicks += 1;
    expect(this.clicks, String(target)).toBeLessThanOrEqual(CLICKS_MAX);
    await target.click();
  }

  link = (name: string | RegExp) => this.page.getByRole('link', { name }).first();
  button = (name: string | RegExp) => this.page.getByRole('button', { name }).first();
}

const read = test.extend<{ reader: Reader }>({
  reader: async ({ page }, use) => {
    const reader = new Reader(page);
    await reader.begin();
    await use(reader);
  },
});

read('find why an execution failed', async ({ page, server, ids, reader }) => {
  await server.wait(await server.run(ids.failing));
  await reader.begin();
  const failed = page.getByRole('region', { name: 'Latest failures' }).getByRole('row').nth(1);
  await expect(failed).toContainText('the reason of the failure');
  await reader.click(failed.getByRole('link'));
  await reader.click(reader.link('Show the failed step'));
  await expect(page.getByRole('complementary')).toContainText('about to fail');
});

read('approve what waits', async ({ page, server, ids, reader }) => {
  const id = await server.run(ids.transfer, { input: { to: 'ann' } });
  await reader.begin();
  await reader.click(reader.link('Transfer to ann?'));
  await reader.click(reader.button(/^Approve/));
  await reader.click(page.getByRole('dialog').getByRole('button', { name: 'Approve' }));
  await expect.poll(async () => (await server.wait(id))['status']).toBe('completed');
});

read('run what has failed again with another input', async ({ page, server, reader }) => {
  const id = await server.save('checked', CHECKED);
  await server.wait(await server.run(id, { input: { count: -1 } }));
  await reader.begin();
  await reader.click(
    page.getByRole('region', { name: 'Latest failures' }).getByRole('link', { name: 'checked' }).first(),
  );
  await reader.click(reader.button('Run again…'));
  await page.getByLabel('count').fill('2');
  await reader.click(reader.button('Start'));
  await expect(page.getByText('Completed').first()).toBeVisible();
});

read('compare two versions', async ({ page, server, reader }) => {
  await server.save('compared', GREETING.replace('greeting', 'compared'));
  await server.save('compared', GREETING.replace('greeting', 'compared').replace('Greets someone', 'Greets a person'));
  await reader.begin();
  await reader.click(reader.link('Workflows'));
  await reader.click(page.getByRole('main').getByRole('link', { name: 'compared' }).first());
  await reader.click(reader.link('Versions'));
  await expect(page.getByRole('region', { name: /^From/ })).toContainText('Greets a person');
});

read('cancel an execution that waits', async ({ page, server, ids, reader }) => {
  const id = await server.run(ids.waits);
  await reader.begin();
  await reader.click(reader.link(/^Running/));
  await reader.click(page.getByRole('main').getByRole('link', { name: 'waits' }).first());
  await reader.click(reader.button('Cancel…'));
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel execution' }).click();
  await expect.poll(async () => (await server.wait(id))['status']).toBe('cancelled');
});

read('see what a workflow gets and returns', async ({ page, server, ids, reader }) => {
  const id = await server.run(ids.greeting, { input: { name: 'Cleo' } });
  await server.wait(id);
  await reader.begin();
  await reader.click(reader.link('Executions'));
  await reader.click(page.getByRole('main').getByRole('link', { name: 'greeting' }).first());
  await reader.click(reader.link('Input and output'));
  await expect(page.getByText('Hello Cleo')).toBeVisible();
});

read('check the proof of an execution', async ({ page, server, ids, reader }) => {
  await server.wait(await server.run(ids.greeting, { input: { name: 'Dora' } }));
  await reader.begin();
  await reader.click(reader.link('Executions'));
  await reader.click(page.getByRole('main').getByRole('link', { name: 'greeting' }).first());
  await reader.click(reader.link('Journal'));
  await expect(page.getByText(/frames/).first()).toBeVisible();
});

read('read a proposed change', async ({ page, server, reader }) => {
  const text = `${GREETING.replace('greeting', 'proposed')}constraints: {allowSelfModification: true}\n`;
  const id = await server.save('proposed', text);
  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${id}`);
  const changed = { ...(parse(text) as object), description: 'Greets the whole team.' };
  const proposal = { proposedWorkflow: changed, summary: 'Greet the team' };
  await server.call('POST', `/api/workflows/${id}/proposals`, { baseWorkflowHash: workflowHash, proposal });
  await reader.begin();
  await reader.click(reader.link('Workflows'));
  await reader.click(page.getByRole('main').getByRole('link', { name: 'proposed' }).first());
  await reader.click(reader.link('Proposals'));
  // One more for the proposal itself: a workflow can have many.
  await reader.link('Greet the team').click();
  await expect(page.getByText('Greets the whole team.').first()).toBeVisible();
});

read('see the next runs of a schedule', async ({ page, server, ids, reader }) => {
  const config = { type: 'schedule', cron: '0 3 * * *', timezone: 'Europe/Berlin' };
  await server.call('POST', '/api/triggers', { name: 'each night', workflowId: ids.greeting, config });
  await reader.begin();
  await reader.click(page.getByRole('region', { name: 'Next schedules' }).getByRole('link', { name: 'each night' }));
  await expect(page.getByText(/Europe\/Berlin/).first()).toBeVisible();
});

read('find who has changed a setting', async ({ page, server, reader }) => {
  await server.call('PATCH', '/api/organization', { name: 'Acme' });
  await reader.begin();
  await reader.click(reader.link('Installation'));
  await reader.click(reader.link(/Audit/));
  await expect(page.getByText('organization.update').first()).toBeVisible();
});
