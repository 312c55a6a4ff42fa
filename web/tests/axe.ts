/** Axe on a page, and the appearances in which it runs. */
import AxeBuilder from '@axe-core/playwright';
import type { Page } from '@playwright/test';

export const APPEARANCES = [
  { theme: 'light', contrast: 'normal' },
  { theme: 'dark', contrast: 'normal' },
  { theme: 'light', contrast: 'more' },
  { theme: 'dark', contrast: 'more' },
];

/** The violations on a page, one line each. */
export async function findings(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.flatMap(one =>
    one.nodes.map(node => `${one.id}: ${node.target.join(' ')} ${node.failureSummary ?? ''}`),
  );
}

/** Sets the appearance of the pages that are loaded from now on. */
export async function setAppearance(page: Page, appearance: (typeof APPEARANCES)[number]) {
  await page.evaluate(value => localStorage.setItem('mainspring.appearance', JSON.stringify(value)), appearance);
}
