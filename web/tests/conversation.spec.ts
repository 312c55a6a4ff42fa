import { APPEARANCES, findings, setAppearance } from './axe';
import { expect, test } from './fixtures';

/** An agent that asks a person. */
const TALKS = `
name: talks
steps:
  - {id: think, type: agent, model: streamed, goal: Pick an issue., instructions: Be brief., tools: [ask]}
`;

test('an agent is a conversation: the answer as it grows, its tool calls, and their results', async ({
  page,
  server,
}) => {
  const workflow = await server.save('talks', TALKS);
  const id = await server.run(workflow);
  await page.goto(`/executions/${id}?step=think`);
  const conversation = page.getByRole('region', { name: 'Conversation' });
  await expect(conversation.getByText('Pick an issue.')).toBeVisible();
  // The beginning is shown before the end has come.
  await expect(conversation.getByLabel('The answer so far')).toContainText('Let me ask');
  await expect(conversation.getByText('before I go on with the work.')).toBeVisible();
  await expect(conversation.getByLabel('The answer so far')).toBeHidden();
  const first = conversation.getByRole('listitem', { name: 'Turn 1' });
  await expect(first).toContainText('1800 tokens in, 24 out');
  await expect(first.locator('details')).toContainText('ask');
  await expect(first.locator('details')).toContainText('Needs approval');
  await expect(page.getByRole('region', { name: 'Open approval' }).first()).toContainText('Which one?');
  const { approvals } = await server.call<{ approvals: { id: string }[] }>('GET', '/api/approvals');
  expect(approvals).toHaveLength(1);
  await server.call('POST', `/api/approvals/${encodeURIComponent(approvals[0]?.id ?? '')}/decide`, {
    approve: true,
    reason: 'The seventh.',
  });
  await expect(conversation.getByText('The seventh it is.')).toBeVisible();
  await first.locator('summary').click();
  await expect(first.getByText('Which one?')).toBeVisible();
  await expect(first.getByText('The seventh.')).toBeVisible();
  await page.reload();
  await expect(conversation.getByText('The seventh it is.')).toBeVisible();
  await page.setViewportSize({ width: 375, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  for (const appearance of APPEARANCES) {
    await setAppearance(page, appearance);
    expect(await findings(page)).toEqual([]);
  }
});
