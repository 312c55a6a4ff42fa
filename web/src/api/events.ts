/**
 * The event stream of one execution. The browser reconnects by itself and sends the id of the last event, so no event is
 * lost or repeated. The stream ends after `execution.finished`.
 */
import { parseJson } from './json';

/** An event of an execution. */
export interface ExecutionEvent {
  type: string;
  executionId: string;
  ts: string;
  stepId?: string;
  stepType?: string;
  attempt?: number;
  error?: unknown;
  childExecutionId?: string;
  reason?: string;
  retryAt?: string | null;
}

/** State of the connection of a stream. */
export type StreamState = 'connecting' | 'live' | 'reconnecting' | 'ended';

/** All types of events; `EventSource` delivers only named ones. */
const TYPES = [
  'execution.started',
  'execution.queued',
  'execution.admitted',
  'execution.cancel_requested',
  'execution.migrated',
  'execution.resumed',
  'execution.finished',
  'step.started',
  'step.retrying',
  'step.completed',
  'step.failed',
  'step.skipped',
  'step.cancelled',
  'step.waiting',
  'approval.required',
  'approval.approved',
  'approval.denied',
  'budget.warning',
  'budget.raised',
  'signal.received',
];

/** First pause before a stream that the server refused is opened again, in milliseconds. */
const RETRY_MS = 2000;

/** Pause after which the events that came in the meantime are delivered together, in milliseconds. */
const BATCH_MS = 100;

/** A piece of what a model says while it answers. */
export interface PartialText {
  stepId: string;
  attempt: number;
  text: string;
}

interface Watcher {
  onEvents: (events: ExecutionEvent[]) => void;
  onState: (state: StreamState) => void;
  /** Called with pieces of answers that are streamed. After a reconnect they begin anew. */
  onTexts: (texts: PartialText[]) => void;
}

/** Opens the stream of an execution. Returns the function that closes it. */
export function watchExecution(id: string, watcher: Watcher): () => void {
  let source: EventSource | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let flush: ReturnType<typeof setTimeout> | undefined;
  let lastId = '';
  let batch: ExecutionEvent[] = [];
  let isClosed = false;

  const deliver = () => {
    flush = undefined;
    const events = batch;
    batch = [];
    watcher.onEvents(events);
    if (events.some(event => event.type === 'execution.finished')) close('ended');
  };
  const close = (state: StreamState) => {
    isClosed = true;
    source?.close();
    clearTimeout(retry);
    clearTimeout(flush);
    watcher.onState(state);
  };
  const open = () => {
    const after = lastId ? `&lastEventId=${encodeURIComponent(lastId)}` : '';
    source = new EventSource(`/api/executions/${encodeURIComponent(id)}/events?progress=true${after}`);
    source.onopen = () => {
      watcher.onTexts([]);
      watcher.onState('live');
    };
    source.addEventListener('step.progress', message => {
      const { texts } = parseJson(message.data as string) as { texts: PartialText[] };
      watcher.onTexts(texts.map(text => ({ ...text, attempt: Number(text.attempt) })));
    });
    source.onerror = () => {
      if (isClosed) return;
      watcher.onState('reconnecting');
      // A refused stream stays closed; the browser reconnects an interrupted one by itself.
      if (source?.readyState === EventSource.CLOSED) retry = setTimeout(open, RETRY_MS);
    };
    for (const type of TYPES) {
      source.addEventListener(type, message => {
        lastId = message.lastEventId;
        batch.push(parseJson(message.data as string) as ExecutionEvent);
        flush ??= setTimeout(deliver, BATCH_MS);
      });
    }
  };
  watcher.onState('connecting');
  open();
  return () => {
    isClosed = true;
    source?.close();
    clearTimeout(retry);
    clearTimeout(flush);
  };
}
