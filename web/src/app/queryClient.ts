/** The cache of responses. A response is fresh for a moment, so that pages that need the same data ask once. */
import { QueryClient } from '@tanstack/react-query';
import { isTransient } from '@/api/client';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      retry: (count, error) => isTransient(error) && count < 3,
      retryDelay: count => Math.min(8000, 500 * 2 ** count),
    },
  },
});
