/** Requests of workflows and definitions. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { ApiError, call, client, diagnosticsOf, type Diagnostic, type Workflow } from '@/api/client';
import { queryClient } from '@/app/queryClient';

const WORKFLOWS = ['workflows'];

/** Pages that a list of all workflows loads at most: 20 of 200. */
const PAGES_MAX = 20;

/** All workflows of the organization. */
export const workflowsQuery = queryOptions({
  queryKey: [...WORKFLOWS, 'list'],
  queryFn: async ({ signal }) => {
    const all: Workflow[] = [];
    let cursor: string | null | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const query = { limit: 200, ...(cursor ? { cursor } : {}) };
      const answer = await call(client.GET('/api/workflows', { params: { query }, signal }));
      all.push(...answer.workflows);
      cursor = answer.nextCursor;
      if (!cursor) break;
    }
    return all;
  },
  staleTime: 10_000,
});

/** Ids and names, for choices. */
export const workflowNamesQuery = queryOptions({
  ...workflowsQuery,
  select: (list: Workflow[]) => list.map(({ id, name }) => ({ id, name })),
});

/** A workflow with the version for `If-Match`. */
export const workflowQuery = (id: string) =>
  queryOptions({
    queryKey: [...WORKFLOWS, 'one', id],
    queryFn: async ({ signal }) => {
      let etag: string | null = null;
      const request = client.GET('/api/workflows/{id}', { params: { path: { id } }, signal });
      const workflow = await call(
        request.then(answer => {
          etag = answer.response.headers.get('etag');
          return answer;
        }),
      );
      return { workflow, etag: etag as string | null };
    },
  });

export const versionsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...WORKFLOWS, 'versions', id],
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) };
      return call(client.GET('/api/workflows/{id}/history', { params: { path: { id }, query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
  });

/** Changes fields of a workflow, if it has not changed since it was read. */
export async function updateWorkflow(
  id: string,
  etag: string | null,
  body: Record<string, unknown>,
): Promise<Workflow> {
  const header = etag ? { 'If-Match': etag } : {};
  const saved = await call(client.PUT('/api/workflows/{id}', { params: { path: { id }, header }, body }));
  await queryClient.invalidateQueries({ queryKey: WORKFLOWS });
  return saved;
}

/** Creates a workflow. */
export async function createWorkflow(slug: string, data: Record<string, unknown>): Promise<Workflow> {
  const saved = await call(client.POST('/api/workflows/sync', { body: { ...(slug ? { slug } : {}), data } }));
  await queryClient.invalidateQueries({ queryKey: WORKFLOWS });
  return saved;
}

export async function deleteWorkflow(id: string, etag: string | null): Promise<void> {
  const header = etag ? { 'If-Match': etag } : {};
  await call(client.DELETE('/api/workflows/{id}', { params: { path: { id }, header } }));
  await queryClient.invalidateQueries({ queryKey: WORKFLOWS });
}

/** A request to start a workflow. */
export interface StartRequest {
  workflowId: string;
  input?: unknown;
  variables?: Record<string, unknown>;
}

/** Starts a workflow. The key makes a repeated request harmless. */
export async function startWorkflow(request: StartRequest, key: string): Promise<string> {
  const body = { ...request, clientRequestId: key };
  const started = await call(client.POST('/api/triggers/manual/run', { body }));
  return started.executionId;
}

/** A step of a plan. Blocks are lists of steps under `steps`, `body`, `then` and `else`. */
export interface PlanStep {
  id: string;
  type: string;
  effect?: string;
  workflow?: string;
  signal?: string;
  forEach?: string;
  when?: unknown;
  condition?: unknown;
  edges?: { from: number; kind?: string; condition?: unknown }[];
  steps?: PlanStep[];
  body?: PlanStep[];
  then?: PlanStep[];
  else?: PlanStep[];
}

/** A plan as the API gives it. */
export interface Plan {
  name?: string;
  order?: 'edges';
  steps: PlanStep[];
  workflowHash: string;
}

/** Compiles a definition to its plan. */
export const planQuery = (definition: unknown, key: string) =>
  queryOptions({
    queryKey: ['plan', key],
    queryFn: async ({ signal }) => {
      const body = { definition: definition as string };
      return (await call(client.POST('/api/definitions/plan', { body, signal }))) as unknown as Plan;
    },
    staleTime: Infinity,
  });

/** The findings of the compiler for a text. */
export async function validate(text: string, signal: AbortSignal): Promise<Diagnostic[]> {
  try {
    const body = { definition: text };
    const answer = (await call(client.POST('/api/definitions/validate', { body, signal }))) as Record<string, unknown>;
    return [...diagnosticsOf(answer['errors']), ...diagnosticsOf(answer['warnings'])];
  } catch (error) {
    if (error instanceof ApiError && error.status === 413) {
      return [{ severity: 'error', code: error.code, message: error.message, path: '', line: 1, column: 1 }];
    }
    throw error;
  }
}
