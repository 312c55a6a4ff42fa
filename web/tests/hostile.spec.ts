import { expect, test } from './fixtures';

const SCRIPT = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>';
const REVERSED = '\u202egpj.exe';
const ESCAPE = '\u001b[2J\u001b[31mred';

test('hostile content is inert, readable, and marked where it deceives', async ({ page, server }) => {
  const id = await server.save(
    'hostile',
    JSON.stringify({
      name: 'hostile',
      steps: [
        {
          id: 'ask',
          type: 'approval',
          prompt: `${SCRIPT} ${REVERSED} @input.text`,
          items: [{ [SCRIPT]: ESCAPE, reversed: REVERSED }],
        },
      ],
    }),
    `p\u0430ypal ${SCRIPT}`,
  );
  let deep: unknown = 'bottom';
  for (let depth = 0; depth < 90; depth += 1) deep = [deep];
  const execution = await server.run(id, {
    input: { text: SCRIPT, escape: ESCAPE, deep, long: 'x'.repeat(200_000), [REVERSED]: REVERSED },
  });
  await server.wait(execution);
  for (const path of [
    '/',
    '/executions',
    '/approvals',
    '/workflows',
    `/workflows/${id}`,
    `/executions/${execution}`,
    `/executions/${execution}?view=data`,
    `/executions/${execution}?step=ask`,
  ]) {
    await page.goto(path);
    await expect(
      page
        .getByText(/<img src=x/)
        .filter({ visible: true })
        .first(),
    ).toBeVisible();
    expect(await page.evaluate(() => 'hostile' in window)).toBe(false);
  }
  await page.goto('/approvals');
  await page.getByRole('list', { name: 'Open approvals' }).getByText(/<img/).first().click();
  const article = page.getByRole('article');
  await expect(article.getByText('U+202E').first()).toBeVisible();
  await expect(article.getByText('U+001B').first()).toBeVisible();
  await expect(article.getByText('mixed scripts').first()).toBeVisible();
});
