/** Requests of triggers. */
import { queryOptions } from '@tanstack/react-query';
import { call, callTagged, client, ifMatch, type Trigger } from '@/api/client';
import { queryClient } from '@/app/queryClient';

const TRIGGERS = ['triggers'];

/** Interval between two looks at triggers and their runs, in milliseconds. */
const LOOK_MS = 5000;

/** Pages that a list of all triggers loads at most: 20 of 200. */
const PAGES_MAX = 20;

/** The triggers of the organization, or of one workflow. */
export const triggersQuery = (workflowId?: string) =>
  queryOptions({
    queryKey: [...TRIGGERS, 'list', workflowId ?? ''],
    queryFn: async ({ signal }) => {
      const all: Trigger[] = [];
      let cursor: string | null | undefined;
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const query = { limit: 200, ...(workflowId ? { workflowId } : {}), ...(cursor ? { cursor } : {}) };
        const answer = await call(client.GET('/api/triggers', { params: { query }, signal }));
        all.push(...answer.triggers);
        cursor = answer.nextCursor;
        if (!cursor) break;
      }
      return all;
    },
    refetchInterval: LOOK_MS,
  });

/** A trigger with the version for `If-Match`. */
export const triggerQuery = (id: string) =>
  queryOptions({
    queryKey: [...TRIGGERS, 'one', id],
    queryFn: async ({ signal }) => {
      const answer = await callTagged(client.GET('/api/triggers/{id}', { params: { path: { id } }, signal }));
      return { trigger: answer.data, etag: answer.etag };
    },
    refetchInterval: LOOK_MS,
  });

/** The newest runs of a trigger. */
export const deliveriesQuery = (id: string) =>
  queryOptions({
    queryKey: [...TRIGGERS, 'deliveries', id],
    queryFn: async ({ signal }) => {
      const params = { path: { id } };
      return (await call(client.GET('/api/triggers/{id}/deliveries', { params, signal }))).deliveries;
    },
    refetchInterval: LOOK_MS,
  });

const refresh = () => queryClient.invalidateQueries({ queryKey: TRIGGERS });

export async function setEnabled(id: string, enabled: boolean): Promise<void> {
  const options = { params: { path: { id } }, body: {} };
  await (enabled
    ? call(client.POST('/api/triggers/{id}/enable', options))
    : call(client.POST('/api/triggers/{id}/disable', options)));
  await refresh();
}

/** The parts of an event that a mapping reads. */
export interface TriggerEvent {
  body?: unknown;
  query?: Record<string, unknown>;
  headers?: Record<string, unknown>;
}

/**
 * Starts the workflow of a trigger, or sends its prompt, which has no event. The key makes a repeated request harmless.
 * Returns the id of the execution; null for a prompt.
 */
export async function runTrigger(id: string, event: TriggerEvent | null, key: string): Promise<string | null> {
  const body = { clientRequestId: key, ...(event ? { event } : {}) };
  const started = await call(client.POST('/api/triggers/{id}/run', { params: { path: { id } }, body }));
  await refresh();
  return 'executionId' in started ? started.executionId : null;
}

/** The variables that the mapping of a trigger takes from an event. Starts nothing. */
export function testTrigger(id: string, event: TriggerEvent) {
  return call(client.POST('/api/triggers/{id}/test', { params: { path: { id } }, body: event }));
}

/** Delivers the event or the prompt of an earlier run again. Returns the id of the execution; null for a prompt. */
export async function redeliver(id: string, deliveryId: string): Promise<string | null> {
  const params = { path: { id, deliveryId } };
  const started = await call(client.POST('/api/triggers/{id}/deliveries/{deliveryId}/redeliver', { params, body: {} }));
  await refresh();
  return started.executionId ?? null;
}

export async function deleteTrigger(id: string, etag: string | null): Promise<void> {
  await call(client.DELETE('/api/triggers/{id}', { params: { path: { id }, header: ifMatch(etag) } }));
  await refresh();
}
