/** Takes the screenshots of the documentation: `npm run screens`. The variables are those of `playwright.config.ts`. */
import { defineConfig } from '@playwright/test';
import tests from './playwright.config';

export default defineConfig({
  ...tests,
  testDir: 'screens',
  use: {
    ...tests.use,
    trace: 'off',
    viewport: { width: 1280, height: 800 },
    colorScheme: 'light',
    contextOptions: { reducedMotion: 'reduce' },
    timezoneId: 'UTC',
    locale: 'en-US',
  },
});
