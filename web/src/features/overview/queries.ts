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

/** The files that `mainspring dev` watches. Without files the server is not one of `dev`, and is not asked again. */
export const devFilesQuery = queryOptions({
  queryKey: ['dev', 'files'],
  queryFn: ({ signal }) => call(client.GET('/api/dev/files', { signal })),
  refetchInterval: query => (query.state.data?.files.length ? 2_000 : false),
  staleTime: Infinity,
});
