import { APPEARANCES, findings, setAppearance } from './axe';
import { expect, test } from './fixtures';

/** A private value that reaches another host without an approval. */
const LEAKS = `
name: leaks
variables: {key: {type: string, private: true, default: abc}}
steps:
  - {id: tell, type: http, method: POST, url: "https://example.com/", body: {key: "@vars.key"}}
`;

test('a workflow shows where private values reach other hosts, and no warnings if there are none', async ({
  page,
  server,
  ids,
}) => {
  const id = await server.save('leaks', LEAKS);
  await page.setViewportSize({ width: 375, height: 700 });
  for (const appearance of APPEARANCES) {
    await setAppearance(page, appearance);
    await page.goto(`/workflows/${id}`);
    const warnings = page.getByRole('region', { name: 'Warnings' });
    await expect(warnings.getByRole('listitem')).toHaveCount(1);
    await expect(warnings).toContainText('private_flow');
    await expect(warnings).toContainText('steps[0]');
    expect(await findings(page), `${appearance.theme} ${appearance.contrast}`).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
  }
  await page.goto(`/workflows/${ids.greeting}`);
  await expect(page.getByRole('region', { name: 'Graph' }).getByText('greet', { exact: true })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Warnings' })).toHaveCount(0);
});
