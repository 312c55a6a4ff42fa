/** The screenshots of the documentation, in `docs/images`. Each shows the state of a real server. */
import type { Page } from '@playwright/test';
import { parse } from 'yaml';
import { expect, test } from '../tests/fixtures';
import { CHARGE, RELEASE, REPORT, TRIAGE, UNGUARDED } from './workflows';

const FOLDER = new URL('../../docs/images/', import.meta.url).pathname;

async function take(page: Page, name: string) {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${FOLDER}${name}.png`, animations: 'disabled', caret: 'hide' });
}

test('the documentation has a picture of each main page', async ({ page, server }) => {
  test.setTimeout(180_000);
  const [release, charge, triage, report] = await Promise.all([
    server.save('release', RELEASE),
    server.save('charge', CHARGE),
    server.save('triage', TRIAGE),
    server.save('report', REPORT),
  ]);
  await server.call('POST', '/api/triggers', {
    workflowId: report,
    name: 'nightly report',
    config: { type: 'schedule', cron: '0 2 * * *', timezone: 'Europe/Berlin' },
  });
  for (let day = 0; day < 6; day += 1) await server.wait(await server.run(report));
  for (const version of ['1.3.0', '1.3.1', '1.3.2']) {
    const id = await server.run(release, { input: { version } });
    await server.wait(id);
    const { approvals } = await server.call<{ approvals: { id: string }[] }>('GET', '/api/approvals');
    await server.call('POST', `/api/approvals/${encodeURIComponent(approvals[0]?.id ?? '')}/decide`, { approve: true });
    expect((await server.wait(id)).status).toBe('completed');
  }
  const failed = await server.run(charge, { input: { customers: ['ann', 'ben', 'cleo', 'dan'] } });
  await server.wait(failed);

  await page.goto(`/executions/${failed}`);
  await page.getByRole('link', { name: 'Show the failed step' }).click();
  await expect(page.getByRole('complementary')).toContainText('has expired');
  await take(page, 'failed-step');

  const talk = await server.run(triage);
  await page.goto(`/executions/${talk}?step=think`);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await expect(conversation.getByText('before I go on with the work.')).toBeVisible();
  await expect(conversation.getByLabel('The answer so far')).toBeHidden();
  await conversation.getByRole('listitem', { name: 'Turn 1' }).locator('summary').click();
  await take(page, 'agent');

  const waiting = await server.run(release, { input: { version: '1.4.0' } });
  await server.wait(waiting);
  await page.goto(`/executions/${waiting}`);
  await expect(page.getByText('Publish 1.4.0?').first()).toBeVisible();
  await expect(page.locator('.react-flow__node').filter({ hasText: 'publish' })).toBeVisible();
  await take(page, 'execution');

  await page.goto('/approvals');
  await expect(page.getByText('Publish 1.4.0?').first()).toBeVisible();
  await page.getByText('Publish 1.4.0?').first().click();
  await take(page, 'approvals');

  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${release}`);
  const proposal = {
    proposedWorkflow: parse(UNGUARDED) as unknown,
    summary: 'Publish without waiting, and to the mirror',
  };
  const body = { baseWorkflowHash: workflowHash, proposal };
  const { id } = await server.call<{ id: string }>('POST', `/api/workflows/${release}/proposals`, body);
  await page.goto(`/workflows/${release}?view=proposals&proposal=${id}`);
  const shadow = page.getByRole('region', { name: 'Shadow report' });
  await shadow.getByRole('button', { name: 'Run…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
  await expect(shadow.getByRole('list', { name: 'Replayed executions' })).toBeVisible();
  await page.evaluate(() => scrollTo(0, 0));
  await take(page, 'change');
  await shadow.scrollIntoViewIfNeeded();
  await take(page, 'shadow-report');

  await page.goto(`/workflows/${release}?view=definition`);
  await expect(page.getByText('Compiles')).toBeVisible();
  await page.getByRole('textbox', { name: 'Definition' }).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(RELEASE.trimStart().replace('artifact: "@build', 'artifact: "@biuld'));
  await expect(page.getByText(/\d errors?/)).toBeVisible();
  await expect(page.locator('.react-flow__node').filter({ hasText: 'publish' })).toBeVisible();
  await page.keyboard.press('Control+Home');
  await take(page, 'editor');

  await page.goto('/');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await expect(page.getByText('nightly report').first()).toBeVisible();
  await take(page, 'overview');
});
