/** Requests of members, tokens, secrets, settings, quarantine and the audit log. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import {
  ApiError,
  call,
  callTagged,
  client,
  ifMatch,
  type Member,
  type Organization,
  type Permission,
  type CallPolicy,
  type Role,
} from '@/api/client';
import { queryClient } from '@/app/queryClient';

const page = (cursor: string, limit = 200) => ({ limit, ...(cursor ? { cursor } : {}) });

export const membersQuery = infiniteQueryOptions({
  queryKey: ['members'],
  queryFn: ({ pageParam, signal }) => call(client.GET('/api/members', { params: { query: page(pageParam) }, signal })),
  initialPageParam: '',
  getNextPageParam: last => last.nextCursor ?? undefined,
});

export const budgetsQuery = queryOptions({
  queryKey: ['budgets'],
  queryFn: ({ signal }) => call(client.GET('/api/budgets', { signal })),
});

export type UsagePeriod = 'day' | 'month';

/** The usage of each workflow in this month. */
export const usageQuery = (period: UsagePeriod) =>
  infiniteQueryOptions({
    queryKey: ['usage', period],
    queryFn: ({ pageParam, signal }) => {
      const query = { by: 'workflow', period, ...(pageParam ? { cursor: pageParam } : {}) };
      return call(client.GET('/api/usage', { params: { query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: last => last.nextCursor ?? undefined,
  });

export interface MemberChange {
  name?: string;
  role?: Role;
}

/** A member with the version for `If-Match`. */
export interface TaggedMember {
  member: Member;
  etag: string | null;
}

export const memberQuery = (id: string) =>
  queryOptions({
    queryKey: ['members', 'one', id],
    queryFn: async ({ signal }): Promise<TaggedMember> => {
      const { data, etag } = await callTagged(client.GET('/api/members/{id}', { params: { path: { id } }, signal }));
      return { member: data, etag };
    },
    // A form begins with the present state, not with a cached one.
    gcTime: 0,
  });

/** Adds a member. The server would change an existing member, so the id is looked up before. */
export async function addMember(id: string, body: MemberChange): Promise<void> {
  const existing = await call(client.GET('/api/members/{id}', { params: { path: { id } } })).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  if (existing) throw new Error(`${id} is a member already, as ${existing.role}. Change the member in the list.`);
  await putMember(id, body, null);
}

/** Changes fields of a member, if the member has not changed since the version was read. */
export async function putMember(id: string, body: MemberChange, etag: string | null): Promise<void> {
  const params = { path: { id }, header: ifMatch(etag) };
  await call(client.PUT('/api/members/{id}', { params, body }));
  await queryClient.invalidateQueries({ queryKey: ['members'] });
}

export async function removeMember(id: string): Promise<void> {
  await call(client.DELETE('/api/members/{id}', { params: { path: { id } } }));
  await queryClient.invalidateQueries({ queryKey: ['members'] });
}

export const tokensQuery = infiniteQueryOptions({
  queryKey: ['tokens'],
  queryFn: ({ pageParam, signal }) => call(client.GET('/api/tokens', { params: { query: page(pageParam) }, signal })),
  initialPageParam: '',
  getNextPageParam: last => last.nextCursor ?? undefined,
});

export interface NewToken {
  name: string;
  userId?: string;
  scopes?: Permission[];
  expiresAt?: string;
}

/** Creates a token. Only this response has its text. */
export async function createToken(body: NewToken): Promise<string> {
  const created = await call(client.POST('/api/tokens', { body }));
  await queryClient.invalidateQueries({ queryKey: ['tokens'] });
  return created.token;
}

export async function revokeToken(id: string): Promise<void> {
  await call(client.DELETE('/api/tokens/{id}', { params: { path: { id } } }));
  await queryClient.invalidateQueries({ queryKey: ['tokens'] });
}

export const secretsQuery = infiniteQueryOptions({
  queryKey: ['secrets'],
  queryFn: ({ pageParam, signal }) => call(client.GET('/api/secrets', { params: { query: page(pageParam) }, signal })),
  initialPageParam: '',
  getNextPageParam: last => last.nextCursor ?? undefined,
});

export interface SecretChange {
  value: string;
  /** Ids of the workflows that may use it; null for all. */
  workflows: string[] | null;
}

/** Adds a secret. The server would replace an existing one, so the name is looked up before. */
export async function createSecret(name: string, body: SecretChange): Promise<void> {
  let cursor: string | null | undefined = '';
  do {
    const known: { secrets: { name: string }[]; nextCursor?: string | null } = await call(
      client.GET('/api/secrets', { params: { query: page(cursor) } }),
    );
    if (known.secrets.some(secret => secret.name === name)) {
      throw new Error(`${name} exists already. Set its value in the list.`);
    }
    cursor = known.nextCursor;
  } while (cursor);
  await putSecret(name, body);
}

export async function putSecret(name: string, body: SecretChange): Promise<void> {
  await call(client.PUT('/api/secrets/{name}', { params: { path: { name } }, body }));
  await queryClient.invalidateQueries({ queryKey: ['secrets'] });
}

export async function removeSecret(name: string): Promise<void> {
  await call(client.DELETE('/api/secrets/{name}', { params: { path: { name } } }));
  await queryClient.invalidateQueries({ queryKey: ['secrets'] });
}

export interface SettingsChange {
  name?: string;
  features?: Record<string, boolean>;
  limits?: { perUser?: number; perOrganization?: number; perWorkflow?: number | null };
}

/** Settings with the version for `If-Match`. */
export interface TaggedOrganization {
  organization: Organization;
  etag: string | null;
}

export const settingsQuery = queryOptions({
  queryKey: ['organization', 'settings'],
  queryFn: async ({ signal }): Promise<TaggedOrganization> => {
    const { data, etag } = await callTagged(client.GET('/api/organization', { signal }));
    return { organization: data, etag };
  },
  // A form begins with the present settings, not with cached ones.
  gcTime: 0,
});

/** Changes settings, if they have not changed since the version was read. */
export async function updateOrganization(body: SettingsChange, etag: string | null): Promise<void> {
  await call(client.PATCH('/api/organization', { params: { header: ifMatch(etag) }, body }));
  await queryClient.invalidateQueries({ queryKey: ['organization'] });
}

export interface SessionFilter {
  key: string;
  status: string;
}

/** Sessions of executions. */
export const sessionsQuery = ({ key, status }: SessionFilter) =>
  infiniteQueryOptions({
    queryKey: ['sessions', key, status],
    queryFn: ({ pageParam, signal }) => {
      const query = {
        ...page(pageParam, 50),
        purpose: 'workflow',
        ...(key ? { key } : {}),
        ...(status ? { status } : {}),
      };
      return call(client.GET('/api/sessions', { params: { query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: last => last.nextCursor ?? undefined,
  });

/** What the sessions of ended executions have left. */
export interface Reaped {
  sessions: number;
  tokens: number;
  workspaces: number;
}

/** Reaps the sessions of ended executions whose key matches, or only counts what would be reaped. */
export async function reapSessions(key: string, dryRun: boolean): Promise<Reaped> {
  const reaped = { sessions: 0, tokens: 0, workspaces: 0 };
  let cursor: string | null | undefined;
  do {
    const body = { key, dryRun, limit: 200, ...(cursor ? { cursor } : {}) };
    const answer: { sessions: { tokensRevoked: number; workspaceRemoved: boolean }[]; nextCursor?: string | null } =
      await call(client.POST('/api/sessions/reap', { body }));
    for (const session of answer.sessions) {
      reaped.sessions += 1;
      reaped.tokens += session.tokensRevoked;
      reaped.workspaces += session.workspaceRemoved ? 1 : 0;
    }
    cursor = answer.nextCursor;
  } while (cursor);
  if (!dryRun) await queryClient.invalidateQueries({ queryKey: ['sessions'] });
  return reaped;
}

export const subscriptionsQuery = infiniteQueryOptions({
  queryKey: ['subscriptions', 'list'],
  queryFn: ({ pageParam, signal }) =>
    call(client.GET('/api/event-subscriptions', { params: { query: page(pageParam) }, signal })),
  initialPageParam: '',
  getNextPageParam: last => last.nextCursor ?? undefined,
});

export interface NewSubscription {
  name: string;
  url: string;
  types: string[];
  workflows: string[] | null;
}

const refreshSubscriptions = () => queryClient.invalidateQueries({ queryKey: ['subscriptions'] });

/** Creates a subscription. Only this response has its secret. */
export async function createSubscription(body: NewSubscription): Promise<string> {
  const created = await call(client.POST('/api/event-subscriptions', { body }));
  await refreshSubscriptions();
  return created.secret ?? '';
}

export async function switchSubscription(id: string, act: 'enable' | 'disable'): Promise<void> {
  const params = { path: { id } };
  await (act === 'enable'
    ? call(client.POST('/api/event-subscriptions/{id}/enable', { params, body: {} }))
    : call(client.POST('/api/event-subscriptions/{id}/disable', { params, body: {} })));
  await refreshSubscriptions();
}

export async function removeSubscription(id: string): Promise<void> {
  await call(client.DELETE('/api/event-subscriptions/{id}', { params: { path: { id } } }));
  await refreshSubscriptions();
}

/** Sends an event of a test. */
export const testSubscription = (id: string) =>
  call(client.POST('/api/event-subscriptions/{id}/test', { params: { path: { id } }, body: {} }));

/** Events that were not delivered. */
export const failedEventsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['subscriptions', 'failed', id],
    queryFn: ({ pageParam, signal }) => {
      const params = { path: { id }, query: page(pageParam) };
      return call(client.GET('/api/event-subscriptions/{id}/failed', { params, signal }));
    },
    initialPageParam: '',
    getNextPageParam: last => last.nextCursor ?? undefined,
  });

export async function redeliver(id: string, failedId: string) {
  const params = { path: { id, failedId } };
  const result = await call(
    client.POST('/api/event-subscriptions/{id}/failed/{failedId}/redeliver', { params, body: {} }),
  );
  await refreshSubscriptions();
  return result;
}

export const toolServersQuery = queryOptions({
  queryKey: ['tool servers'],
  queryFn: ({ signal }) => call(client.GET('/api/tool-servers', { signal })),
});

export const checkToolServer = (name: string) =>
  call(client.POST('/api/tool-servers/{name}/check', { params: { path: { name } } }));

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: ({ signal }) => call(client.GET('/api/models', { signal })),
});

/** Asks a model a short question, which is paid for. */
export const checkModel = (name: string) =>
  call(client.POST('/api/models/{name}/check', { params: { path: { name } } }));

/** The policy with the version for `If-Match`. */
export interface TaggedPolicy {
  policy: CallPolicy;
  etag: string | null;
}

export const policyQuery = queryOptions({
  queryKey: ['policy'],
  queryFn: async ({ signal }): Promise<TaggedPolicy> => {
    const { data, etag } = await callTagged(client.GET('/api/policy', { signal }));
    return { policy: data, etag };
  },
});

/** Sets the rules of the organization, in place of the previous ones. */
export async function putPolicy(verdicts: Record<string, string>, etag: string | null): Promise<void> {
  await call(client.PUT('/api/policy', { params: { header: ifMatch(etag) }, body: { verdicts } }));
}

export const quarantineQuery = infiniteQueryOptions({
  queryKey: ['quarantine'],
  queryFn: ({ pageParam, signal }) =>
    call(client.GET('/api/quarantine', { params: { query: page(pageParam) }, signal })),
  initialPageParam: '',
  getNextPageParam: last => last.nextCursor ?? undefined,
});

export async function repair(id: string, act: 'release' | 'end', reason: string): Promise<void> {
  const params = { path: { id } };
  const body = { reason };
  await (act === 'release'
    ? call(client.POST('/api/executions/{id}/release', { params, body }))
    : call(client.POST('/api/executions/{id}/end', { params, body })));
  await queryClient.invalidateQueries({ queryKey: ['quarantine'] });
}

async function entriesAfter(after: number, limit: number) {
  return (await call(client.GET('/api/audit', { params: { query: { after, limit } } }))).entries;
}

/** The number of the last entry. The log is read in ascending order, so its end is found by bisection. */
async function lastNumber(): Promise<number> {
  const exists = async (number: number) => number === 0 || (await entriesAfter(number - 1, 1)).length > 0;
  let [low, high] = [0, 1];
  while (await exists(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await exists(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Entries of a page of the audit log. */
const AUDIT_PAGE = 200;

/** The audit log, newest entries first. A page begins after its parameter; the first one is found at the end of the log. */
export const auditQuery = infiniteQueryOptions({
  queryKey: ['audit'],
  queryFn: async ({ pageParam }) => {
    const after = pageParam ?? Math.max(0, (await lastNumber()) - AUDIT_PAGE);
    const entries = await entriesAfter(after, AUDIT_PAGE);
    return { after, entries: entries.toReversed() };
  },
  initialPageParam: null as number | null,
  getNextPageParam: last => (last.after > 0 ? Math.max(0, last.after - AUDIT_PAGE) : undefined),
  staleTime: 5000,
});

export const auditProofQuery = queryOptions({
  queryKey: ['audit', 'proof'],
  queryFn: ({ signal }) => call(client.GET('/api/audit/verify', { signal })),
  enabled: false,
});

/** Downloads the whole log with its signed head. */
export async function exportAudit(): Promise<void> {
  const content = await call(client.GET('/api/audit/export', { parseAs: 'blob' }));
  const url = URL.createObjectURL(content as unknown as Blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = 'audit.ndjson';
  link.click();
  URL.revokeObjectURL(url);
}
