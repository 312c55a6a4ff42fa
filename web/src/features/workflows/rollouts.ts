/** Requests of rollouts: a definition that some of the new starts take, until it is promoted or aborted. */
import { queryOptions } from '@tanstack/react-query';
import { call, client, type Rollout } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import type { Tone } from '@/design/status';

const ROLLOUTS = ['rollouts'];

/** Interval between two looks at a rollout, in milliseconds. */
const LOOK_MS = 5000;

export const rolloutQuery = (workflowId: string, rolloutId: string) =>
  queryOptions({
    queryKey: [...ROLLOUTS, workflowId, rolloutId],
    queryFn: ({ signal }) => {
      const params = { path: { id: workflowId, rolloutId } };
      return call(client.GET('/api/workflows/{id}/rollouts/{rolloutId}', { params, signal }));
    },
    refetchInterval: LOOK_MS,
  });

/** Promotes or aborts the candidate. */
export async function endRollout(rollout: Rollout, act: 'promote' | 'abort', reason: string): Promise<void> {
  const params = { path: { id: rollout.workflowId, rolloutId: rollout.id } };
  const body = { reason: reason.trim() };
  try {
    await (act === 'promote'
      ? call(client.POST('/api/workflows/{id}/rollouts/{rolloutId}/promote', { params, body }))
      : call(client.POST('/api/workflows/{id}/rollouts/{rolloutId}/abort', { params, body })));
  } finally {
    await queryClient.invalidateQueries({ queryKey: ROLLOUTS });
    await queryClient.invalidateQueries({ queryKey: ['workflows'] });
    await queryClient.invalidateQueries({ queryKey: ['proposals'] });
  }
}

const STATUSES: Record<Rollout['status'], [label: string, tone: Tone]> = {
  running: ['Running', 'wait'],
  promoted: ['Promoted', 'ok'],
  aborted: ['Aborted', 'bad'],
};

/** A status as a label and a tone. */
export function rolloutStatus(status: Rollout['status']): [label: string, tone: Tone] {
  return STATUSES[status];
}

/** The figures of one side. */
export type SideFigures = NonNullable<Rollout['stable']['figures']>;

const decimal = new Intl.NumberFormat('en-US', { maximumFractionDigits: 4 });

function text(value: number | null | undefined, unit = ''): string {
  return typeof value === 'number' ? `${decimal.format(value)}${unit}` : '–';
}

/** The figures in the order in which they are compared, each with its text. */
export const FIGURES: readonly [label: string, text: (figures: SideFigures) => string][] = [
  ['Starts', figures => text(figures.starts, figures.startsMore ? '+' : '')],
  ['Completed', figures => text(figures.completed)],
  ['Failed', figures => text(figures.failed)],
  ['Canceled', figures => text(figures.cancelled)],
  ['Refused starts', figures => text(figures.refused)],
  ['Unfinished for too long', figures => text(figures.overdue)],
  ['Starts that count for the minimum', figures => text(figures.roots)],
  ['Failure rate', figures => text(figures.failureRatePercent, ' %')],
  ['Duration, median', figures => text(figures.durationP50Ms, ' ms')],
  ['Duration, 95th percentile', figures => text(figures.durationP95Ms, ' ms')],
  ['Cost, mean', figures => text(figures.costMean)],
  ['Tokens, mean', figures => text(figures.tokensMean)],
];

const THRESHOLDS: readonly [key: keyof NonNullable<Rollout['compare']>, label: string][] = [
  ['maxFailureRatePercent', 'failure rate in percent'],
  ['maxFailureRatePointsOver', 'percentage points of failures over the stable one'],
  ['maxDurationP50Ratio', 'ratio of median durations'],
  ['maxDurationP95Ratio', 'ratio of 95th percentile durations'],
  ['maxCostRatio', 'ratio of mean costs'],
];

/** The thresholds as words; empty if only people decide. */
export function thresholdTexts({ compare }: Pick<Rollout, 'compare'>): string[] {
  return THRESHOLDS.flatMap(([key, label]) => {
    const limit = compare?.[key];
    return typeof limit === 'number' ? [`${label}: at most ${decimal.format(limit)}`] : [];
  });
}
