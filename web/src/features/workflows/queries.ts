/** Requests of workflows and definitions. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import {
  ApiError,
  call,
  callTagged,
  client,
  diagnosticsOf,
  ifMatch,
  type Diagnostic,
  type Workflow,
} from '@/api/client';
import { workflowId } from '@/api/requestId';
import { queryClient } from '@/app/queryClient';
import { meQuery } from '@/features/session/queries';

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
export interface TaggedWorkflow {
  workflow: Workflow;
  etag: string | null;
}

/** Reads a workflow by its id or slug. */
async function readWorkflow(id: string, signal?: AbortSignal): Promise<TaggedWorkflow> {
  const options = { params: { path: { id } }, ...(signal ? { signal } : {}) };
  const { data, etag } = await callTagged(client.GET('/api/workflows/{id}', options));
  return { workflow: data, etag };
}

export const workflowQuery = (id: string) =>
  queryOptions({
    queryKey: [...WORKFLOWS, 'one', id],
    queryFn: ({ signal }) => readWorkflow(id, signal),
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
  const params = { path: { id }, header: ifMatch(etag) };
  const saved = await call(client.PUT('/api/workflows/{id}', { params, body }));
  await queryClient.invalidateQueries({ queryKey: WORKFLOWS });
  return saved;
}

/** The reader's own workflow with this slug; null if there is none. */
export async function ownWorkflow(slug: string): Promise<TaggedWorkflow | null> {
  try {
    const found = await readWorkflow(slug);
    // A slug of one's own comes before those of others; the name may also be an id.
    const me = queryClient.getQueryData(meQuery.queryKey);
    return found.workflow.slug === slug && found.workflow.userId === me?.userId ? found : null;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return null;
    throw error;
  }
}

/**
 * Creates a workflow, and fails if the reader has one with this slug. A sync by slug alone would replace that one; with
 * a new id the slug is taken, and the server refuses it in the same transaction.
 */
export async function createWorkflow(slug: string, data: Record<string, unknown>): Promise<Workflow> {
  const body = { id: workflowId(), ...(slug ? { slug } : {}), data };
  const saved = await call(client.POST('/api/workflows/sync', { body }));
  await queryClient.invalidateQueries({ queryKey: WORKFLOWS });
  return saved;
}

/** Creates a workflow, or returns the one of the reader that has the slug already. */
export async function createOrFind(
  slug: string,
  data: Record<string, unknown>,
): Promise<{ created: Workflow } | { existing: TaggedWorkflow }> {
  const existing = slug ? await ownWorkflow(slug) : null;
  if (existing) return { existing };
  try {
    return { created: await createWorkflow(slug, data) };
  } catch (error) {
    // Another page has saved the slug since it was looked up.
    const since = error instanceof ApiError && error.status === 409 && slug ? await ownWorkflow(slug) : null;
    if (since) return { existing: since };
    throw error;
  }
}

export async function deleteWorkflow(id: string, etag: string | null): Promise<void> {
  await call(client.DELETE('/api/workflows/{id}', { params: { path: { id }, header: ifMatch(etag) } }));
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
  /** What the definition declares the output to be: `trusted`, `public` or both. */
  trust?: string[];
  /** Settings of an agent. */
  turns?: { budget?: Partial<Record<'tokens' | 'cost' | 'modelCalls' | 'toolCalls' | 'timeMs', number | bigint>> };
}

/** A plan as the API gives it. */
export interface Plan {
  name?: string;
  order?: 'edges';
  steps: PlanStep[];
  /** Steps that run when all others have ended. */
  finally?: PlanStep[];
  /** Settings without effect, and values that reach calls which they should not. */
  warnings?: Diagnostic[];
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

/** Compiles a definition, text or value, without a cache. */
export async function compile(definition: unknown): Promise<Plan> {
  const body = { definition: definition as string };
  return (await call(client.POST('/api/definitions/plan', { body }))) as unknown as Plan;
}

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
