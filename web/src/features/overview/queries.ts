/** Requests of the overview. */
import { queryOptions } from '@tanstack/react-query';
import { call, client } from '@/api/client';

/** The node that answers, and its partitions. */
export const healthQuery = queryOptions({
  queryKey: ['health'],
  queryFn: ({ signal }) => call(client.GET('/readyz', { signal })),
  refetchInterval: 10_000,
  retry: false,
});
