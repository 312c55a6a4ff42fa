/** Starts the console: appearance, cache, router. */
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { whenUnauthorized } from './api/client';
import { queryClient } from './app/queryClient';
import { router } from './app/router';
import { startAppearance } from './app/theme';
import './design/tokens.css';
import './design/base.css';
import { forgetSession } from './features/session/queries';

startAppearance();
whenUnauthorized(() => {
  forgetSession();
  // The router leads to the sign-in, and from there back to this page.
  void router.invalidate();
});

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no element with the id "root".');
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
