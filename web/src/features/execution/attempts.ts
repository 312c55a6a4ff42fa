/**
 * The attempts of one execution, loaded page by page and kept up to date: an event marks the page of its attempt as
 * stale, and only stale pages are read again. Attempts are in the order of their start, so new ones are at the end.
 */
import { useEffect, useState, useSyncExternalStore } from 'react';
import { isTransient, type Attempt } from '@/api/client';
import { watchExecution, type ExecutionEvent, type PartialText, type StreamState } from '@/api/events';
import { attemptsPage, refresh } from './queries';

/** Shortest time between two reads of stale pages, in milliseconds. */
const REFRESH_MS = 400;

/** First and longest pause before a failed page is read again, in milliseconds. */
const RETRY_MS = 1000;
const RETRY_MAX_MS = 15_000;

/** Events that end an attempt. */
const ENDS = new Set(['step.completed', 'step.failed', 'step.retrying', 'step.cancelled']);

/** Characters of an answer that are kept while it grows. The server sends 64 KiB of an attempt. */
const PARTIAL_MAX = 64 * 1024;

interface Page {
  cursor: string;
  attempts: Attempt[];
}

/** The attempts as a page of the console reads them. */
export interface Attempts {
  all: Attempt[];
  isComplete: boolean;
  stream: StreamState | null;
  /** What models have said so far, by step instance; empty for answers that are not streamed. */
  partial: ReadonlyMap<string, string>;
  error: unknown;
  /** Reads again what failed. */
  retry?: () => void;
}

const NONE: Attempts = { all: [], isComplete: false, stream: null, partial: new Map(), error: undefined };

export class AttemptStore {
  private pages: Page[] = [];
  /** Page of each attempt, by step and number. */
  private places = new Map<string, number>();
  private stale = new Set<number>([0]);
  private view = NONE;
  private readers = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isReading = false;
  /** The page of the request in progress. */
  private requested: number | undefined;
  /** Failed reads since the last successful one. */
  private failures = 0;
  private unwatch: (() => void) | undefined;
  private aborter = new AbortController();

  constructor(private readonly id: string) {}

  subscribe = (reader: () => void) => {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  };

  read = () => this.view;

  /** Reads all pages, and follows the events of an execution that has not ended. */
  start(isLive: boolean): () => void {
    this.aborter = new AbortController();
    this.stale.add(this.pages.length === 0 ? 0 : this.pages.length - 1);
    void this.readStale();
    if (isLive) {
      this.unwatch = watchExecution(this.id, {
        onEvents: events => this.onEvents(events),
        onState: stream => this.show({ stream }),
        onTexts: texts => this.onTexts(texts),
      });
    } else {
      this.show({ stream: 'ended' });
    }
    return () => {
      this.unwatch?.();
      this.aborter.abort();
      if (this.requested !== undefined) this.stale.add(this.requested);
      this.requested = undefined;
      clearTimeout(this.timer);
      this.timer = undefined;
      this.isReading = false;
    };
  }

  /** Adds pieces of answers. An empty list says that the texts begin anew. */
  private onTexts(texts: PartialText[]) {
    if (texts.length === 0) {
      if (this.view.partial.size > 0) this.show({ partial: new Map() });
      return;
    }
    const partial = new Map(this.view.partial);
    for (const { stepId, text } of texts) {
      partial.set(stepId, ((partial.get(stepId) ?? '') + text).slice(-PARTIAL_MAX));
    }
    this.show({ partial });
  }

  /** Removes the texts of attempts that have ended: their answers are whole. */
  private dropTexts(events: ExecutionEvent[]) {
    const partial = new Map(this.view.partial);
    for (const event of events.filter(({ type }) => ENDS.has(type))) partial.delete(event.stepId ?? '');
    if (partial.size < this.view.partial.size) this.show({ partial });
  }

  private onEvents(events: ExecutionEvent[]) {
    this.dropTexts(events);
    for (const event of events) {
      const known = event.stepId ? this.places.get(`${event.stepId}#${event.attempt ?? 0}`) : undefined;
      this.stale.add(known ?? Math.max(0, this.pages.length - 1));
      // The end of a nested step also ends its containers, which have no attempt number in the event.
      if (known === undefined && event.stepId) this.markStep(event.stepId);
    }
    if (events.some(event => !event.type.startsWith('step.'))) void refresh(this.id);
    this.schedule();
  }

  private markStep(step: string) {
    const place = this.places.get(`${step}#1`);
    if (place !== undefined) this.stale.add(place);
  }

  private schedule(pauseMs = REFRESH_MS) {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.readStale();
    }, pauseMs);
  }

  private retry = () => {
    clearTimeout(this.timer);
    this.timer = undefined;
    void this.readStale();
  };

  private async readStale() {
    if (this.isReading) return this.schedule();
    this.isReading = true;
    const { signal } = this.aborter;
    try {
      for (let index = this.nextStale(); index !== undefined; index = this.nextStale()) {
        await this.readPage(index, signal);
      }
      this.failures = 0;
      this.show({ isComplete: true, error: undefined });
    } catch (error) {
      if (signal.aborted) return;
      this.show({ isComplete: false, error, retry: this.retry });
      if (isTransient(error)) this.schedule(Math.min(RETRY_MAX_MS, RETRY_MS * 2 ** this.failures));
      this.failures += 1;
    } finally {
      if (!signal.aborted) this.isReading = false;
    }
  }

  private nextStale(): number | undefined {
    return [...this.stale].sort((one, other) => one - other)[0];
  }

  private async readPage(index: number, signal: AbortSignal) {
    const cursor = this.pages[index]?.cursor ?? '';
    // An event during the request marks the page as stale again.
    this.stale.delete(index);
    this.requested = index;
    const answer = await attemptsPage(this.id, cursor, signal).catch((error: unknown) => {
      if (!signal.aborted) this.stale.add(index);
      throw error;
    });
    if (signal.aborted) throw signal.reason;
    this.requested = undefined;
    this.pages[index] = { cursor, attempts: answer.steps };
    for (const attempt of answer.steps) this.places.set(`${attempt.stepId}#${attempt.attempt}`, index);
    if (answer.nextCursor && !this.pages[index + 1]) {
      this.pages[index + 1] = { cursor: answer.nextCursor, attempts: [] };
      this.stale.add(index + 1);
    }
    this.show({ all: this.pages.flatMap(page => page.attempts) });
  }

  private show(change: Partial<Attempts>) {
    this.view = { ...this.view, ...change };
    for (const reader of this.readers) reader();
  }
}

/** The attempts of an execution. `isLive` is true while it has not ended. */
export function useAttempts(id: string, isLive: boolean): Attempts {
  const [store, setStore] = useState(() => new AttemptStore(id));
  const [of, setOf] = useState(id);
  if (of !== id) {
    setOf(id);
    setStore(new AttemptStore(id));
  }
  useEffect(() => store.start(isLive), [store, isLive]);
  return useSyncExternalStore(store.subscribe, store.read);
}
