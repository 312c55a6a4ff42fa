/** Figures of the overview, computed from lists of executions. */
import type { ExecutionRow, Trigger } from '@/api/client';

/** Number of executions in a status, and whether there are more than were loaded. */
export interface Count {
  count: number;
  isMore: boolean;
}

/** Executions that started in one interval. */
export interface Bucket {
  from: number;
  completed: number;
  failed: number;
  other: number;
}

/** Bars of the chart. */
export const BUCKETS = 30;

/** Splits the time that the rows cover into equal intervals. Rows are sorted, newest first. */
export function buckets(rows: ExecutionRow[], now: number): Bucket[] {
  const oldest = rows.at(-1);
  if (!oldest) return [];
  const start = Date.parse(oldest.startedAt);
  const width = Math.max(1000, Math.ceil((now - start + 1) / BUCKETS));
  const found: Bucket[] = Array.from({ length: BUCKETS }, (_, index) => ({
    from: start + index * width,
    completed: 0,
    failed: 0,
    other: 0,
  }));
  for (const row of rows) {
    const bucket = found[Math.min(BUCKETS - 1, Math.max(0, Math.floor((Date.parse(row.startedAt) - start) / width)))];
    if (bucket) bucket[row.status === 'completed' || row.status === 'failed' ? row.status : 'other'] += 1;
  }
  return found;
}

/** Share of failed executions among the ended ones, in percent; null if none has ended. */
export function failureRate(rows: ExecutionRow[]): number | null {
  const ended = rows.filter(row => row.completedAt);
  if (ended.length === 0) return null;
  return (100 * ended.filter(row => row.status === 'failed').length) / ended.length;
}

/** The middle duration of the ended executions in milliseconds. */
export function medianDuration(rows: ExecutionRow[]): number | null {
  const durations = rows.flatMap(row =>
    row.completedAt ? [Date.parse(row.completedAt) - Date.parse(row.startedAt)] : [],
  );
  durations.sort((one, other) => one - other);
  return durations[Math.floor(durations.length / 2)] ?? null;
}

/** The next start of each enabled schedule, the earliest first. */
export function nextRuns(triggers: Trigger[], most: number): { trigger: Trigger; at: string }[] {
  const next = triggers.flatMap(trigger => (trigger.nextRuns[0] ? [{ trigger, at: trigger.nextRuns[0] }] : []));
  return next.sort((one, other) => Date.parse(one.at) - Date.parse(other.at)).slice(0, most);
}

/** The amount of each day. */
export interface DailyCost {
  quantity: 'cost' | 'tokens';
  total: number;
  days: { day: string; amount: number }[];
}

/** Cost of the last days, or tokens if no model has a price; null if nothing was used. Days are in UTC. */
export function costOf(usage: { period: string; used: unknown }[], days: number, now: number): DailyCost | null {
  const used = new Map(usage.map(({ period, used }) => [period, used as Partial<Record<string, number | bigint>>]));
  const quantity = [...used.values()].some(amounts => amounts['cost'] != null) ? 'cost' : 'tokens';
  const all = Array.from({ length: days }, (_, index) => {
    const day = new Date(now - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10);
    return { day, amount: Number(used.get(day)?.[quantity] ?? 0) };
  });
  const total = all.reduce((sum, { amount }) => sum + amount, 0);
  return total > 0 ? { quantity, total, days: all } : null;
}
