/** The list of executions as data: merging pages with newer rows, and the filters that the page applies itself. */
import type { ExecutionRow } from '@/api/client';
import { isFinished } from '@/design/status';

/** The filters of the page, as its address has them. */
export interface ListFilter {
  status?: string | undefined;
  workflow?: string | undefined;
  outcome?: string | undefined;
  trigger?: string | undefined;
  text?: string | undefined;
  since?: string | undefined;
}

/** Choices of the filter by time, with their milliseconds. */
export const SINCE: Record<string, { label: string; ms: number }> = {
  '15m': { label: 'Last 15 minutes', ms: 15 * 60_000 },
  '1h': { label: 'Last hour', ms: 3_600_000 },
  '24h': { label: 'Last 24 hours', ms: 86_400_000 },
  '7d': { label: 'Last 7 days', ms: 7 * 86_400_000 },
};

export const TRIGGERS = ['manual', 'webhook', 'schedule', 'subworkflow', 'subworkflow_detached'];

/** The list after newer rows came: rows of `newest` replace older ones with the same id, and further ones stand in front. */
export function merge(pages: ExecutionRow[], newest: ExecutionRow[], unfinished: ExecutionRow[]): ExecutionRow[] {
  const newer = new Map([...unfinished, ...newest].map(row => [row.id, row]));
  const known = new Set(pages.map(row => row.id));
  const first = pages[0]?.startedAt ?? '';
  const added = newest.filter(row => !known.has(row.id) && row.startedAt >= first);
  return [...added, ...pages.map(row => newer.get(row.id) ?? row)];
}

/** True if rows between the newest ones and the first page are missing, so that the pages must be loaded again. */
export function hasGap(pages: ExecutionRow[], newest: ExecutionRow[], isWhole: boolean): boolean {
  if (pages.length === 0 || isWhole) return false;
  const known = new Set(pages.map(row => row.id));
  return newest.length > 0 && !newest.some(row => known.has(row.id));
}

/** True if a row that was unfinished when its page was loaded has ended since, and is not among the newer rows. */
export function hasEnded(rows: ExecutionRow[], unfinished: ExecutionRow[], isWhole: boolean): boolean {
  if (!isWhole) return false;
  const open = new Set(unfinished.map(row => row.id));
  return rows.some(row => !isFinished(row.status) && !open.has(row.id));
}

/** True if the row passes the filters that the server does not apply. */
export function passes(row: ExecutionRow, filter: ListFilter, now: number): boolean {
  const statuses = filter.status?.split(',');
  if (statuses && !statuses.includes(row.status)) return false;
  if (filter.outcome === 'with_failures' && row.outcome !== 'with_failures') return false;
  if (filter.outcome === 'clean' && !(row.status === 'completed' && !row.outcome)) return false;
  if (filter.trigger && row.triggerType !== filter.trigger) return false;
  const since = filter.since ? SINCE[filter.since] : undefined;
  if (since && Date.parse(row.startedAt) < now - since.ms) return false;
  const text = filter.text?.trim().toLowerCase();
  if (!text) return true;
  const error = row.error as { message?: string; code?: string } | null | undefined;
  const places = [
    row.id,
    row.workflowName,
    row.workflowVersion,
    row.initiatorUserId,
    row.idempotencyKey,
    error?.message,
    error?.code,
  ];
  return places.some(place => place?.toLowerCase().includes(text));
}

/** True if older rows can no longer pass, because the list is sorted by time. */
export function isPast(last: ExecutionRow | undefined, filter: ListFilter, now: number): boolean {
  const since = filter.since ? SINCE[filter.since] : undefined;
  return !!since && !!last && Date.parse(last.startedAt) < now - since.ms;
}
