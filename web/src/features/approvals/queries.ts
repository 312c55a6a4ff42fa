/** Requests of approvals: the open ones, and decisions. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call, client, type Approval } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import type { InputSchema } from '@/features/workflows/inputForm';

const OPEN = ['approvals'];

/** Interval between two looks for new approvals, in milliseconds. */
const REFRESH_MS = 5000;

/** The newest open approvals, for counts. */
export const openApprovalsQuery = queryOptions({
  queryKey: [...OPEN, 'newest'],
  queryFn: ({ signal }) => call(client.GET('/api/approvals', { params: { query: { limit: 100 } }, signal })),
  refetchInterval: REFRESH_MS,
});

/** All open approvals, page by page. */
export const approvalPagesQuery = infiniteQueryOptions({
  queryKey: [...OPEN, 'pages'],
  queryFn: ({ pageParam, signal }) => {
    const query = { limit: 100, ...(pageParam ? { cursor: pageParam } : {}) };
    return call(client.GET('/api/approvals', { params: { query }, signal }));
  },
  initialPageParam: '',
  getNextPageParam: page => page.nextCursor ?? undefined,
  refetchInterval: REFRESH_MS,
});

/** One open approval; also one that is on no loaded page. */
export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: [...OPEN, 'one', id],
    queryFn: ({ signal }) => call(client.GET('/api/approvals/{id}', { params: { path: { id } }, signal })),
    refetchInterval: REFRESH_MS,
  });

/** The part of an approval that a decision needs. The token is valid only for the question as it was shown. */
export interface Decidable {
  executionId: string;
  resumeToken: string;
}

export function decidable(approval: Approval): Decidable | null {
  const token = (approval.gate as { resumeToken?: unknown }).resumeToken;
  return typeof token === 'string' ? { executionId: approval.executionId, resumeToken: token } : null;
}

/** A form that a tool server asks people to fill in. All of its texts are the server's. */
export interface ServerForm {
  server: string;
  tool: string;
  message: string;
  schema: InputSchema;
}

/** The form of a gate; null if it asks for none. */
export function serverForm(gate: unknown): ServerForm | null {
  const { purpose, items } = gate as { purpose?: unknown; items?: Record<string, unknown> };
  if (purpose !== 'form' || !items) return null;
  const text = (key: string) => (typeof items[key] === 'string' ? items[key] : '');
  const schema = (items['form'] ?? {}) as InputSchema;
  return { server: text('server'), tool: text('tool'), message: text('message'), schema };
}

/** Decides what was shown. Fails if the approval was decided or changed since. */
export async function decide(
  approval: Decidable,
  approve: boolean,
  reason: string,
  answer: { content?: unknown; cancel?: boolean } = {},
): Promise<void> {
  const body = {
    approve,
    resumeToken: approval.resumeToken,
    ...(reason.trim() ? { reason: reason.trim() } : {}),
    ...answer,
  };
  try {
    await call(client.POST('/api/executions/{id}/approve', { params: { path: { id: approval.executionId } }, body }));
  } finally {
    await Promise.all([
      queryClient.invalidateQueries({ queryKey: OPEN }),
      queryClient.invalidateQueries({ queryKey: ['execution', approval.executionId] }),
    ]);
  }
}
