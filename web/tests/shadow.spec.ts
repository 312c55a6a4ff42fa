import type { Page } from '@playwright/test';
import { parse } from 'yaml';
import { APPEARANCES, findings, setAppearance } from './axe';
import { expect, test } from './fixtures';
import type { Server } from './server';

/** A greeting that permits proposals. */
const BEFORE = `
name: greets
constraints: {allowSelfModification: true}
steps:
  - id: greet
    type: code
    input: {name: "@input.name"}
    code: |
      export default ({ name }) => "Hello " + name
output: "@greet"
`;

/** Makes a call that no execution has recorded. */
const CALLS = BEFORE.replace('output:', '  - {id: tell, type: http, url: "https://example.com/"}\noutput:');

/** Returns other text for some inputs. */
const OTHER = BEFORE.replace('"Hello " + name', 'name === "b" ? "Bye b" : "Hello " + name');

interface Prepared {
  workflow: string;
  proposal: string;
  path: string;
}

let slugs = 0;

/** A workflow with two ended executions, and a proposal for it. */
async function prepare(server: Server, after: string, token?: string): Promise<Prepared> {
  slugs += 1;
  const workflow = await server.save(`shadow-${slugs}`, BEFORE);
  for (const name of ['a', 'b']) await server.wait(await server.run(workflow, { input: { name } }));
  const { workflowHash } = await server.call<{ workflowHash: string }>('GET', `/api/workflows/${workflow}`);
  const { id } = await server.call<{ id: string }>(
    'POST',
    `/api/workflows/${workflow}/proposals`,
    { baseWorkflowHash: workflowHash, proposal: { proposedWorkflow: parse(after) as unknown, summary: 'Another one' } },
    token,
  );
  return { workflow, proposal: id, path: `/workflows/${workflow}?view=proposals&proposal=${id}` };
}

async function replay(page: Page, button = 'Run…') {
  await page.getByRole('region', { name: 'Shadow report' }).getByRole('button', { name: button }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
}

test('a shadow run from the page shows each withheld effect, and what the replays do', async ({ page, server }) => {
  const { path } = await prepare(server, CALLS);
  await page.goto(path);
  const report = page.getByRole('region', { name: 'Shadow report' });
  await expect(report).toContainText('was not replayed');
  await replay(page);
  await expect(report.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  const withheld = report.getByRole('list', { name: '2 withheld effects' }).getByRole('listitem');
  await expect(withheld).toHaveCount(2);
  await expect(withheld.first()).toContainText('tell');
  await expect(withheld.first()).toContainText('http');
  await expect(withheld.first()).toContainText('the recorded execution did not have this call');
  await expect(report).toContainText('2 no recorded answer');
  const replayed = report.getByRole('list', { name: 'Replayed executions' }).locator('.replayed');
  await expect(replayed).toHaveCount(2);
  await expect(replayed.first()).toContainText('completed → open');
  await replayed.first().getByRole('link').click();
  await expect(page).toHaveURL(/\/executions\//);
});

test('the report says which executions end the same, and which have another output', async ({ page, server }) => {
  const { path, workflow, proposal } = await prepare(server, OTHER);
  await page.goto(path);
  await replay(page);
  const report = page.getByRole('region', { name: 'Shadow report' });
  await expect(report).toContainText('1 same');
  await expect(report).toContainText('1 other output');
  await expect(report).toContainText('0 withheld effects');
  await expect(report.getByText('greet', { exact: true })).toBeVisible();
  expect(
    await server.call('GET', `/api/workflows/${workflow}/proposals/${proposal}/shadow`),
    'the page shows the report of the server',
  ).toMatchObject({ report: { counts: { same: 1, other_output: 1 } } });
  // A run of more executions than the server accepts is not sent.
  await report.getByRole('button', { name: 'Run again…' }).click();
  await page.getByRole('dialog').getByLabel('Executions').fill('51');
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Replay' })).toBeDisabled();
  await page.getByRole('dialog').getByLabel('Executions').fill('1');
  await page.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
  await expect(report.locator('.replayed')).toHaveCount(1);
});

test('members without the permission to run it read the report, and a decided proposal is not replayed', async ({
  page,
  open,
  server,
}) => {
  const { path } = await prepare(server, CALLS);
  await page.goto(path);
  await replay(page);
  await expect(page.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  const viewer = await open(await server.member('shadow-viewer', 'viewer'));
  await viewer.goto(path);
  await expect(viewer.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  await expect(viewer.getByRole('button', { name: /^Run/ })).toHaveCount(0);
  const member = await open(await server.member('shadow-member', 'member'));
  await member.goto(path);
  await expect(member.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  await expect(member.getByRole('button', { name: /^Run/ })).toHaveCount(0);
  await page.getByRole('button', { name: 'Reject…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click();
  await expect(page.getByRole('button', { name: 'Reject…' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Run again…' })).toHaveCount(0);
});

test('hostile text in a report is inert, and a long report is bounded', async ({ page, server }) => {
  const { path } = await prepare(server, CALLS);
  await page.goto(path);
  await replay(page);
  await expect(page.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  const script = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>';
  await page.route('**/proposals/*/shadow', async route => {
    const response = await route.fetch();
    const body = (await response.json()) as { by: string; report: { executions: Record<string, unknown>[] } };
    body.by = `p\u0430ypal ${script}`;
    const [execution] = body.report.executions;
    if (!execution) throw new Error('The report has no execution.');
    execution['stop'] = `\u202egpj.exe ${script}`;
    execution['replayed'] = { status: 'failed', reason: `${script} ${'x'.repeat(100_000)}` };
    execution['differences'] = [
      { step: script, kind: 'output', before: null, after: '\u001b[2J', places: ['\u202eplace', 'y'.repeat(50_000)] },
    ];
    execution['horizon'] = Array.from({ length: 200 }, (_, index) => ({
      step: `${script}${index}`,
      number: 1,
      kind: `\u202e${script}`,
      reason: script,
    }));
    await route.fulfill({ response, json: body });
  });
  await page.setViewportSize({ width: 375, height: 700 });
  await page.reload();
  await expect(page.getByRole('heading', { name: '201 withheld effects' })).toBeVisible();
  const report = page.getByRole('region', { name: 'Shadow report' });
  await expect(report.getByRole('list', { name: '201 withheld effects' }).getByRole('listitem')).toHaveCount(30);
  await expect(report.getByText(/<img src=x/).first()).toBeVisible();
  await expect(report.getByText('U+202E').first()).toBeVisible();
  await expect(report.getByText('U+001B').first()).toBeVisible();
  await expect(report.getByText('mixed scripts').first()).toBeVisible();
  expect(await page.evaluate(() => 'hostile' in window)).toBe(false);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  await report.getByRole('button', { name: 'Show 171 more' }).click();
  await expect(report.getByRole('list', { name: '201 withheld effects' }).getByRole('listitem')).toHaveCount(201);
});

test('the report is run by keyboard, fits 375 pixels, and axe finds nothing in it', async ({ page, server }) => {
  test.setTimeout(120_000);
  const { path } = await prepare(server, CALLS);
  await page.setViewportSize({ width: 375, height: 700 });
  await page.goto(path);
  await page.getByRole('button', { name: 'Run…', exact: true }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  for (const appearance of APPEARANCES) {
    await setAppearance(page, appearance);
    await page.reload();
    await expect(page.getByRole('heading', { name: '2 withheld effects' })).toBeVisible();
    expect(await findings(page), `${appearance.theme} ${appearance.contrast}`).toEqual([]);
  }
});
