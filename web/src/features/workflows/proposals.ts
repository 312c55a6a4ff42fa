/** Requests of proposals: changes of a workflow that are reviewed before they apply. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { call, client, type Proposal, type ProposalDetail, type Workflow } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import type { Tone } from '@/design/status';

const PROPOSALS = ['proposals'];

/** Interval between two looks at a proposal, in milliseconds. */
const LOOK_MS = 5000;

export const proposalsQuery = (workflowId: string) =>
  infiniteQueryOptions({
    queryKey: [...PROPOSALS, workflowId, 'list'],
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: 50, ...(pageParam ? { cursor: pageParam } : {}) };
      return call(client.GET('/api/workflows/{id}/proposals', { params: { path: { id: workflowId }, query }, signal }));
    },
    initialPageParam: '',
    getNextPageParam: page => page.nextCursor ?? undefined,
    refetchInterval: LOOK_MS,
  });

export const proposalQuery = (workflowId: string, proposalId: string) =>
  queryOptions({
    queryKey: [...PROPOSALS, workflowId, 'one', proposalId],
    queryFn: ({ signal }) => {
      const params = { path: { id: workflowId, proposalId } };
      return call(client.GET('/api/workflows/{id}/proposals/{proposalId}', { params, signal }));
    },
    refetchInterval: LOOK_MS,
  });

const refresh = () => queryClient.invalidateQueries({ queryKey: PROPOSALS });

/** True if the server accepts proposals for the workflow: its definition must permit changes of itself. */
export function permitsProposals({ data }: Pick<Workflow, 'data'>): boolean {
  const constraints = data['constraints'];
  return typeof constraints === 'object' && constraints !== null && 'allowSelfModification' in constraints
    ? constraints.allowSelfModification === true
    : false;
}

/** Proposes a definition in place of the one with this hash. Returns the id of the proposal. */
export async function propose(
  workflowId: string,
  baseWorkflowHash: string,
  proposal: { proposedWorkflow: Record<string, unknown>; summary?: string; rationale?: string },
): Promise<string> {
  const params = { path: { id: workflowId } };
  const body = { baseWorkflowHash, proposal };
  const created = await call(client.POST('/api/workflows/{id}/proposals', { params, body }));
  await refresh();
  return created.id;
}

/** Reviews what was shown. Fails if something that was shown has changed since. */
export async function review(proposal: ProposalDetail, approve: boolean, notes: string): Promise<void> {
  const params = { path: { id: proposal.workflowId, proposalId: proposal.id } };
  const body = {
    approve,
    ...(notes.trim() ? { notes: notes.trim() } : {}),
    ...(proposal.reviewHash ? { reviewHash: proposal.reviewHash } : {}),
  };
  try {
    await call(client.POST('/api/workflows/{id}/proposals/{proposalId}/review', { params, body }));
  } finally {
    await refresh();
  }
}

/** What the executions that run mean for new ones, with the words of the choice. */
export const WHILE_RUNNING = {
  pin: 'begin at once, beside those that run',
  drain: 'wait until those that run have ended',
  migrate: 'begin at once; those that run continue with the change where they can',
  strict: 'begin at once; apply only if none runs now',
} as const;

export type WhileRunning = keyof typeof WHILE_RUNNING;

/** True if a rollout can be combined with the choice. */
export function permitsRollout(whileRunning: WhileRunning): boolean {
  return whileRunning === 'pin' || whileRunning === 'drain';
}

/** A rollout as the form asks for it. */
export interface RolloutForm {
  percent: number;
  minimum: number;
  /** Most percent of failures; null to leave the decision to people. */
  maxFailureRatePercent: number | null;
}

/** True if the server accepts the form. */
export function isValidRollout({ percent, minimum, maxFailureRatePercent }: RolloutForm): boolean {
  const within = (value: number, least: number, most: number) =>
    Number.isInteger(value) && value >= least && value <= most;
  const isRate = maxFailureRatePercent === null || (maxFailureRatePercent >= 0 && maxFailureRatePercent <= 100);
  return within(percent, 1, 99) && within(minimum, 1, 5000) && isRate;
}

/** Makes the proposed definition the one of the workflow, or of some of its new starts. */
export async function apply(
  proposal: Proposal,
  whileRunning: WhileRunning,
  rollout: RolloutForm | null = null,
): Promise<void> {
  const params = { path: { id: proposal.workflowId, proposalId: proposal.id } };
  const body = { whileRunning, ...(rollout ? { rollout: rolloutBody(rollout) } : {}) };
  try {
    await call(client.POST('/api/workflows/{id}/proposals/{proposalId}/apply', { params, body }));
  } finally {
    await refresh();
    await queryClient.invalidateQueries({ queryKey: ['workflows'] });
  }
}

function rolloutBody({ percent, minimum, maxFailureRatePercent }: RolloutForm) {
  const compare = maxFailureRatePercent === null ? {} : { compare: { maxFailureRatePercent } };
  return { percent, minimum, promote: false, ...compare };
}

/** Lets the executions that wait for older ones begin. */
export async function endDrain(workflowId: string): Promise<void> {
  try {
    await call(client.DELETE('/api/workflows/{id}/drain', { params: { path: { id: workflowId } } }));
  } finally {
    await queryClient.invalidateQueries({ queryKey: ['workflows'] });
  }
}

/** A finding of the comparison: something that a reviewer checks. */
export interface Finding {
  code: string;
  severity: string;
  path: string;
  reason: string;
}

/** A difference by meaning. */
export interface Change {
  kind: string;
  path: string;
  step?: string;
  field?: string;
  before?: unknown;
  after?: unknown;
}

/** The comparison of a proposed definition with the present one. */
export interface Comparison {
  risk: string;
  findings: Finding[];
  findingsTotal: number;
  changes: Change[];
  changesTotal: number;
  diff: string;
}

/** The comparison of a proposal; null for one whose base or result is no longer stored. */
export function comparisonOf(proposal: ProposalDetail): Comparison | null {
  return (proposal.report ?? null) as Comparison | null;
}

/** A kind of a change as words: `step_added` as `step added`. */
export function kindText(kind: string): string {
  return kind.replaceAll('_', ' ');
}

const RISKS: Record<string, Tone> = { low: 'ok', medium: 'wait', high: 'bad' };

/** The tone of a risk or a severity. */
export function riskTone(risk: string): Tone {
  return RISKS[risk] ?? 'idle';
}

const STATUSES: Record<string, [label: string, tone: Tone]> = {
  pending: ['Needs review', 'wait'],
  approved: ['Approved', 'ok'],
  rejected: ['Rejected', 'bad'],
  applied: ['Applied', 'ok'],
  failed: ['Failed', 'bad'],
  expired: ['Expired', 'idle'],
  superseded: ['Superseded', 'idle'],
};

/** A status as a label and a tone. */
export function proposalStatus(status: string): [label: string, tone: Tone] {
  return STATUSES[status] ?? [status, 'idle'];
}

/** A line of a text difference. */
export interface TextLine {
  kind: 'added' | 'removed' | 'same' | 'gap';
  text: string;
}

/** The lines of a unified difference without the names of its files. */
export function textLines(diff: string): TextLine[] {
  if (diff === '') return [];
  const lines = diff.replace(/\n$/, '').split('\n');
  const isNamed = lines[0]?.startsWith('--- ') && lines[1]?.startsWith('+++ ');
  return (isNamed ? lines.slice(2) : lines).map(line => {
    const kinds: Record<string, TextLine['kind']> = { '+': 'added', '-': 'removed', '@': 'gap' };
    const kind = kinds[line[0] ?? ''] ?? 'same';
    return { kind, text: kind === 'gap' ? line : line.slice(1) };
  });
}
