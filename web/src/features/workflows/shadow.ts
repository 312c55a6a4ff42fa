/** Shadow runs of a proposal: the request, and the report as the page shows it. */
import { queryOptions } from '@tanstack/react-query';
import { call, client, type ProposalDetail, type Shadow } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import type { Tone } from '@/design/status';

/** Executions that a run replays at most, and by default. The server has the same bounds. */
export const EXECUTIONS_MAX = 50;
export const EXECUTIONS_DEFAULT = 20;

/** The end of an execution. */
export interface End {
  status: string;
  reason?: string | null;
}

/** A call or a wait of the replay without a recorded answer. A call is not made: its effect is withheld. */
export interface Withheld {
  step: string;
  number: number;
  /** Kind of the effect, `approval` or `signal`. */
  kind: string;
  reason: string;
}

/** A property of a step that differs between the recording and the replay. */
export interface Difference {
  step: string;
  kind: string;
  before?: string | null;
  after?: string | null;
  places: string[];
}

/** The comparison of one recorded execution with its replay. */
export interface ShadowExecution {
  executionId: string;
  grade: string;
  stop: string;
  recorded?: End | null;
  replayed?: End | null;
  answered: number;
  horizon: Withheld[];
  differences: Difference[];
  differencesTotal: number;
  notReached: number;
}

/** The report of a shadow run. */
export interface ShadowReport {
  counts: Record<string, number>;
  executions: ShadowExecution[];
}

/** The report of the last run of a proposal. A later run has another hash, and so another key. */
export const shadowQuery = (proposal: ProposalDetail) =>
  queryOptions({
    queryKey: ['proposals', proposal.workflowId, 'shadow', proposal.id, proposal.shadowHash],
    queryFn: ({ signal }): Promise<Shadow> => {
      const params = { path: { id: proposal.workflowId, proposalId: proposal.id } };
      return call(client.GET('/api/workflows/{id}/proposals/{proposalId}/shadow', { params, signal }));
    },
    enabled: !!proposal.shadowHash,
    staleTime: Infinity,
  });

/** Replays the last ended executions with the proposed definition. */
export async function runShadow(proposal: ProposalDetail, last: number): Promise<void> {
  const params = { path: { id: proposal.workflowId, proposalId: proposal.id } };
  try {
    await call(client.POST('/api/workflows/{id}/proposals/{proposalId}/shadow', { params, body: { last } }));
  } finally {
    await queryClient.invalidateQueries({ queryKey: ['proposals'] });
  }
}

export function reportOf(shadow: Shadow): ShadowReport {
  return shadow.report as unknown as ShadowReport;
}

const GRADES: Record<string, [label: string, tone: Tone]> = {
  same: ['Same', 'ok'],
  other_output: ['Other output', 'wait'],
  other_path: ['Other path', 'wait'],
  other_input: ['Other input', 'bad'],
  no_answer: ['No recorded answer', 'wait'],
  bound: ['Stopped at a bound', 'bad'],
  unusable: ['Not replayed', 'bad'],
};

/** A grade as a label and a tone. */
export function gradeOf(grade: string): [label: string, tone: Tone] {
  return GRADES[grade] ?? [grade.replaceAll('_', ' '), 'idle'];
}

/** The grades that occur, the most severe first. */
export function countsOf(report: ShadowReport): [grade: string, count: number][] {
  const order = Object.keys(GRADES);
  return Object.entries(report.counts)
    .filter(([, count]) => count > 0)
    .sort(([one], [other]) => order.indexOf(other) - order.indexOf(one));
}

const endText = (end: End) => (end.reason ? `${end.status} (${end.reason})` : end.status);

/** The recorded and the replayed end, such as `completed → failed (too_large)`. */
export function outcomeText({ recorded, replayed, stop }: ShadowExecution): string {
  if (!recorded && !replayed) return stop;
  const before = recorded ? endText(recorded) : 'running';
  const after = replayed ? endText(replayed) : `open (${stop})`;
  return before === after ? before : `${before} → ${after}`;
}

const REASONS: Record<string, string> = {
  not_recorded: 'the recorded execution did not have this call',
  other_input: 'the recorded call had another input',
  more_attempts: 'the recorded execution had fewer attempts',
  unanswered: 'the recorded call was not answered',
  stopped: 'the recorded call was stopped',
  no_signal: 'the recorded execution received no signal for it',
};

/** The reason why no recorded answer counts, in words. */
export function reasonText(reason: string): string {
  return REASONS[reason] ?? reason.replaceAll('_', ' ');
}

/** Kinds of waits. Everything else without an answer is an effect. */
const WAITS = ['approval', 'signal'];

/** Calls that were not made, and waits without an answer, each with its execution. */
export function withheldOf(report: ShadowReport): {
  effects: (Withheld & { executionId: string })[];
  waits: (Withheld & { executionId: string })[];
} {
  const all = report.executions.flatMap(({ executionId, horizon }) =>
    horizon.map(withheld => ({ ...withheld, executionId })),
  );
  return {
    effects: all.filter(({ kind }) => !WAITS.includes(kind)),
    waits: all.filter(({ kind }) => WAITS.includes(kind)),
  };
}
