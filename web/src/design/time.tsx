/** Times and durations as people read them. All relative times of a page share one clock. */
import { useSyncExternalStore } from 'react';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const readers = new Set<() => void>();

function subscribe(read: () => void) {
  readers.add(read);
  timer ??= setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const reader of readers) reader();
  }, SECOND);
  return () => {
    readers.delete(read);
    if (readers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The time in milliseconds, renewed every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** A duration, such as `1.2 s` or `3 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  const of = (large: number, small: number, names: [string, string]) => {
    const rest = Math.floor((ms % large) / small);
    return `${Math.floor(ms / large)} ${names[0]}${rest > 0 ? ` ${rest} ${names[1]}` : ''}`;
  };
  if (ms < HOUR) return of(MINUTE, SECOND, ['min', 's']);
  if (ms < DAY) return of(HOUR, MINUTE, ['h', 'min']);
  return of(DAY, HOUR, ['d', 'h']);
}

function relativeText(ms: number): string {
  const distance = Math.abs(ms);
  if (distance < 5 * SECOND) return 'now';
  const unit = distance < HOUR ? MINUTE : distance < DAY ? HOUR : DAY;
  const rounded =
    distance < MINUTE ? `${Math.floor(distance / SECOND)} s` : durationText(Math.floor(distance / unit) * unit);
  return ms < 0 ? `in ${rounded}` : `${rounded} ago`;
}

const FULL = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });

/** A time relative to now, with the full time as its title. */
export function Ago({ at }: { at: string }) {
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={FULL.format(time)} className="nowrap">
      {relativeText(useNow() - time)}
    </time>
  );
}

/** A full time in the time zone of the reader. */
export function At({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at}>
      {FULL.format(Date.parse(at))}
    </time>
  );
}

function RunningFor({ from }: { from: string }) {
  return <span className="nowrap">{durationText(useNow() - Date.parse(from))}</span>;
}

/** The time between two points, counting up while the second is open. */
export function Span({ from, to }: { from: string; to?: string | null | undefined }) {
  if (!to) return <RunningFor from={from} />;
  return <span className="nowrap">{durationText(Date.parse(to) - Date.parse(from))}</span>;
}
