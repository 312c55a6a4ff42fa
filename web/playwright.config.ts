/**
 * Tests in Chromium against a real server. `MAINSPRING_BINARY` is its executable; `CHROMIUM` the browser, where
 * Playwright has none of its own; `CONSOLE_PROXY=1` tests `target/build/` in front of a server without an embedded console.
 */
import { defineConfig } from '@playwright/test';

const chromium = process.env['CHROMIUM'];

export default defineConfig({
  testDir: 'tests',
  testMatch: '*.spec.ts',
  outputDir: 'target/test-results',
  // The machine of a test runs a server and a browser; more of them would only wait for each other.
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  reporter: [['list']],
  use: {
    trace: 'retain-on-failure',
    launchOptions: { ...(chromium ? { executablePath: chromium } : {}), args: ['--no-sandbox'] },
  },
});
