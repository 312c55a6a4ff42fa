/** A page that is signed in, at a server with workflows. A violation of the content security policy fails the test. */
import { expect, test as base, type Page } from '@playwright/test';
import { Server } from './server';
import { APPROVAL, FAILING, GREETING, LOOP, PARENT, SIGNAL } from './workflows';

export interface Ids {
  greeting: string;
  transfer: string;
  loop: string;
  waits: string;
  parent: string;
  failing: string;
}

interface Fixtures {
  /** A page of the owner. */
  page: Page;
  /** Opens a page in a browser context of its own. */
  open: (token: string) => Promise<Page>;
}

interface WorkerFixtures {
  server: Server;
  ids: Ids;
}

/** Chromium's own report when text that replaces a selection in the editor would get a `style` attribute. */
const OF_EDITING = /^Applying inline style/;

/** Fails the test when the page breaks a rule of its policy or throws. */
function watch(page: Page, problems: string[]) {
  page.on('console', message => {
    const text = message.text();
    if (/content security policy/i.test(text) && !OF_EDITING.test(text)) problems.push(text);
  });
  page.on('pageerror', error => problems.push(String(error)));
}

export async function signIn(page: Page, token: string) {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  server: [
    async ({}, use) => {
      const server = new Server();
      await server.start();
      await use(server);
      await server.remove();
    },
    { scope: 'worker' },
  ],
  ids: [
    async ({ server }, use) => {
      await use({
        greeting: await server.save('greeting', GREETING),
        transfer: await server.save('transfer', APPROVAL),
        loop: await server.save('loop', LOOP),
        waits: await server.save('waits', SIGNAL),
        parent: await server.save('parent', PARENT),
        failing: await server.save('failing', FAILING),
      });
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ server }, use) => use(server.base),
  open: async ({ browser, server }, use) => {
    const problems: string[] = [];
    const contexts: { close: () => Promise<void> }[] = [];
    await use(async token => {
      const context = await browser.newContext({ baseURL: server.base });
      contexts.push(context);
      const page = await context.newPage();
      watch(page, problems);
      await page.goto('/login');
      await signIn(page, token);
      await expect(page).not.toHaveURL(/login/);
      return page;
    });
    for (const context of contexts) await context.close();
    expect(problems).toEqual([]);
  },
  page: async ({ page, server, ids: _ids }, use) => {
    const problems: string[] = [];
    watch(page, problems);
    await page.goto('/login');
    await signIn(page, server.token);
    await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
    await use(page);
    expect(problems).toEqual([]);
  },
});

export { expect };
