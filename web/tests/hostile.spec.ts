import { expect, test } from './fixtures';

const SCRIPT = '<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>';
const REVERSED = '\u202egpj.exe';
const ESCAPE = '\u001b[2J\u001b[31mred';

test('hostile content is inert and readable, and deceptive characters are marked', async ({ page, server }) => {
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

test('hostile names of workflows are inert among the secrets', async ({ page, server }) => {
  const name = `p\u0430ypal ${REVERSED} ${SCRIPT} ${'x'.repeat(100)}`;
  const id = await server.save(
    'hostile-secret',
    'name: hostile\nsteps:\n  - {id: one, type: code, code: "export default () => 1"}\n',
    name,
  );
  await server.call('PUT', '/api/secrets/guarded', { value: 'value-of-a-test', workflows: [id] });
  await page.setViewportSize({ width: 375, height: 700 });
  await page.goto('/installation?section=secrets');
  const row = page.getByRole('row').filter({ hasText: 'guarded' });
  const check = async (text: ReturnType<typeof page.getByText>) => {
    await expect(text.getByText(/<img src=x/).first()).toBeVisible();
    await expect(text.getByText('U+202E').first()).toBeVisible();
    await expect(text.getByText('mixed scripts').first()).toBeVisible();
    expect(await page.evaluate(() => 'hostile' in window)).toBe(false);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  };
  await check(row);
  await page.getByRole('button', { name: 'Set a new value of guarded' }).click();
  await check(page.getByRole('dialog'));
  await page.keyboard.press('Escape');
  // A workflow that is deleted is named by its id, and is left out when the secret is set again.
  await server.call('DELETE', `/api/workflows/${id}`);
  await page.reload();
  await expect(row).toContainText(`${id} (deleted)`);
  await page.getByRole('button', { name: 'Set a new value of guarded' }).click();
  await page.getByRole('dialog').getByLabel('Value').fill('value-of-a-test');
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Set value' })).toBeDisabled();
  await page.getByRole('dialog').getByLabel('All workflows').check();
  await page.getByRole('dialog').getByRole('button', { name: 'Set value' }).click();
  await expect(row).toContainText('All workflows');
  await server.call('DELETE', '/api/secrets/guarded');
});
