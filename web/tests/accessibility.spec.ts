import { APPEARANCES, findings, setAppearance } from './axe';
import { expect, test } from './fixtures';

for (const appearance of APPEARANCES) {
  test(`axe finds no violation on any page, ${appearance.theme} with ${appearance.contrast} contrast`, async ({
    page,
    server,
    ids,
  }) => {
    test.setTimeout(240_000);
    const failed = await server.run(ids.failing);
    const loop = await server.run(ids.loop, { input: { list: [1, 2, 3, 4, 5, 6, 7] } });
    const parent = await server.run(ids.parent);
    for (const id of [failed, loop, parent]) await server.wait(id);
    const { approvals } = await server.call<{ approvals: { id: string }[] }>('GET', '/api/approvals');
    const paths = [
      '/',
      '/executions',
      `/executions/${failed}?step=broken`,
      `/executions/${loop}`,
      `/executions/${parent}?view=children`,
      `/executions/${failed}?view=data`,
      `/executions/${failed}?view=journal&frame=0`,
      `/executions/${failed}?view=receipts`,
      `/executions/${failed}?view=definition`,
      `/approvals?item=${approvals[0]?.id}`,
      '/workflows',
      '/workflows/new',
      ...['', '?view=definition', '?view=run', '?view=versions', '?view=settings'].map(
        view => `/workflows/${ids.greeting}${view}`,
      ),
      ...[
        'members',
        'tokens',
        'secrets',
        'sessions',
        'events',
        'tools',
        'models',
        'policy',
        'audit',
        'settings',
        'quarantine',
        'node',
      ].map(section => `/installation?section=${section}`),
    ];
    await setAppearance(page, appearance);
    for (const path of paths) {
      await page.goto(path);
      await page.getByRole('main').waitFor();
      await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => undefined);
      expect.soft(await findings(page), path).toEqual([]);
    }
  });
}

test('pages fit 375 pixels and 200 percent zoom', async ({ page, server, ids }) => {
  const id = await server.run(ids.failing);
  await server.wait(id);
  for (const width of [375, 640]) {
    await page.setViewportSize({ width, height: 700 });
    for (const path of [
      '/',
      '/executions',
      '/approvals',
      `/executions/${id}`,
      `/executions/${id}?step=broken`,
      '/workflows',
    ]) {
      await page.goto(path);
      await page.getByRole('main').waitFor();
      await expect(page.getByRole('heading').first()).toBeVisible();
      expect(
        await page.evaluate(() => document.documentElement.scrollWidth),
        `${path} at ${width}`,
      ).toBeLessThanOrEqual(width);
    }
  }
});

test('the cause of a failure is reached from the overview by keyboard', async ({ page, server, ids }) => {
  await server.wait(await server.run(ids.failing));
  await page.goto('/');
  const reach = async (name: string | RegExp) => {
    const wanted = page.getByRole('link', { name }).first();
    await expect(wanted).toBeVisible();
    for (let presses = 0; presses < 80; presses += 1) {
      await page.keyboard.press('Tab');
      if (await wanted.evaluate(element => element === document.activeElement)) return page.keyboard.press('Enter');
    }
    throw new Error(`The keyboard does not reach ${String(name)}.`);
  };
  await reach('failing');
  await reach('Show the failed step');
  await expect(page.getByRole('complementary')).toContainText('the reason of the failure');
});
