/** Requests of one execution. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call, client, type Execution } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import { isFinished } from '@/design/status';

/** Interval of looking at an unfinished execution, besides its events, in milliseconds. */
const LOOK_MS = 5000;

/** Pages of attempts that the history of a gate reads at most. */
const HISTORY_PAGES_MAX = 5;

export const executionQuery = (id: string) =>
  queryOptions({
    queryKey: ['execution', id, 'body'],
    queryFn: async ({ signal }): Promise<Execution> => {
      const params = { path: { id }, query: { include: 'runtimeState' } };
      return call(client.GET('/api/executions/{id}', { params, signal }));
    },
    refetchInterval: query => (query.state.data && isFinished(query.state.data.status) ? false : LOOK_MS),
  });

/** The definition of an execution as it was saved. It never changes. */
export const snapshotQuery = (id: string) =>
  queryOptions({
    queryKey: ['execution', id, 'snapshot'],
    queryFn: async ({ signal }) => {
      const params = { path: { id }, query: { include: 'workflowSnapshot' } };
      const execution = await call(client.GET('/api/executions/{id}', { params, signal }));
      return (execution.workflowSnapshot ?? null) as Record<string, unknown> | null;
    },
    staleTime: Infinity,
  });

/** Frames of the journal, page by page. */
export const journalQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['execution', id, 'journal'],
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: 100, ...(pageParam ? { cursor: pageParam } : {}) };
      return call(client.GET('/api/executions/{id}/journal', { params: { path: { id }, query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });

/** Receipts of attempts with the verdict on their signatures, page by page. */
export const receiptsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['execution', id, 'receipts'],
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: 200, ...(pageParam ? { cursor: pageParam } : {}) };
      return call(client.GET('/api/executions/{id}/receipts', { params: { path: { id }, query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });

/** A page of attempts. */
export function attemptsPage(id: string, cursor: string, signal?: AbortSignal) {
  const query = { limit: 200, ...(cursor ? { cursor } : {}) };
  return call(
    client.GET('/api/executions/{id}/steps', { params: { path: { id }, query }, ...(signal ? { signal } : {}) }),
  );
}

/** All decisions that were made at a step, oldest first. */
export const gateHistoryQuery = (id: string, step: string) =>
  queryOptions({
    queryKey: ['execution', id, 'history', step],
    queryFn: async ({ signal }) => {
      const decisions = [];
      let cursor = '';
      for (let page = 0; page < HISTORY_PAGES_MAX; page += 1) {
        const answer = await attemptsPage(id, cursor, signal);
        decisions.push(
          ...answer.steps.filter(attempt => attempt.stepId === step).flatMap(attempt => attempt.decisions ?? []),
        );
        if (!answer.nextCursor) break;
        cursor = answer.nextCursor;
      }
      return decisions;
    },
  });

/** Sends a signal. The id makes a repeated request harmless. */
export async function sendSignal(id: string, signal: { id: string; name: string; payload: unknown }): Promise<void> {
  await call(client.POST('/api/executions/{id}/signal', { params: { path: { id } }, body: signal }));
  await refresh(id);
}

/** Reads everything of an execution again. */
export function refresh(id: string): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ['execution', id] });
}
