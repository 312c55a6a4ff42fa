/** Requests of the overview. */
import { queryOptions } from '@tanstack/react-query';
import { call, client } from '@/api/client';
import { triggersQuery } from '@/features/triggers/queries';

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

/** Interval between two reads of schedules and usage, in milliseconds. */
const SLOW_MS = 30_000;

/** The triggers, of which schedules have next runs. */
export const schedulesQuery = queryOptions({ ...triggersQuery(), refetchInterval: SLOW_MS });

/** Days of the cost chart, today among them. */
export const DAYS = 30;

const DAY_MS = 86_400_000;

/** The usage of the organization on each of the last days, in UTC. */
export const dailyUsageQuery = queryOptions({
  queryKey: ['usage', 'overview'],
  queryFn: async ({ signal }) => {
    const from = new Date(Date.now() - (DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
    const query = { by: 'organization', period: 'day', from };
    return (await call(client.GET('/api/usage', { params: { query }, signal }))).usage;
  },
  refetchInterval: SLOW_MS,
});
