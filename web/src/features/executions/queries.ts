/** Requests of execution lists. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call, client, type ExecutionRow } from '@/api/client';
import { UNFINISHED } from '@/design/status';

/** Filters that the server applies. */
export interface ServerFilter {
  status?: string | undefined;
  workflow?: string | undefined;
}

const PAGE = 100;

/** Interval between two looks at the newest executions, in milliseconds. */
const LIVE_MS = 2000;

export const EXECUTIONS = ['executions'];

function parameters(filter: ServerFilter, limit: number, cursor?: string) {
  return {
    limit,
    ...(filter.status ? { status: filter.status } : {}),
    ...(filter.workflow ? { workflowId: filter.workflow } : {}),
    ...(cursor ? { cursor } : {}),
  };
}

/** The list, page by page, newest first. */
export const executionPagesQuery = (filter: ServerFilter) =>
  infiniteQueryOptions({
    queryKey: [...EXECUTIONS, 'pages', filter],
    queryFn: ({ pageParam, signal }) =>
      call(client.GET('/api/executions', { params: { query: parameters(filter, PAGE, pageParam) }, signal })),
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });

/** The newest executions of a list, again and again. */
export const newestExecutionsQuery = (filter: ServerFilter, limit = PAGE) =>
  queryOptions({
    queryKey: [...EXECUTIONS, 'newest', filter, limit],
    queryFn: ({ signal }) =>
      call(client.GET('/api/executions', { params: { query: parameters(filter, limit) }, signal })),
    refetchInterval: LIVE_MS,
  });

/** Unfinished executions, whose rows change. */
export const unfinishedQuery = (workflow?: string) =>
  newestExecutionsQuery({ status: UNFINISHED.join(','), workflow }, 200);

/** Requests a cancel. */
export function cancelExecution(id: string, reason: string): Promise<unknown> {
  const body = reason.trim() ? { reason: reason.trim() } : {};
  return call(client.POST('/api/executions/{id}/cancel', { params: { path: { id } }, body }));
}

/** The error of a row in one line. */
export function rowError(row: ExecutionRow): string | null {
  const error = row.error as { code?: string; message?: string } | null | undefined;
  return error?.message ?? error?.code ?? row.errorCode ?? null;
}
