/** An agent as a conversation: the answers of the model with its tool calls, each with a bar on the time axis of the agent. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Attempt } from '@/api/client';
import { Json } from '@/design/json';
import { isFinished, Status, statusTone } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { durationText, useNow } from '@/design/time';
import { tokensText, TURNS_SHOWN, turnsOf, type ToolCall, type Turn } from './turns';

interface ConversationProps {
  agent: string;
  /** The input of the agent. */
  input: unknown;
  all: Attempt[];
  /** What models have said so far, by step instance. */
  partial: ReadonlyMap<string, string>;
}

interface Axis {
  from: number;
  width: number;
  now: number;
}

export function Conversation({ agent, input, all, partial }: ConversationProps) {
  const [shown, setShown] = useState(TURNS_SHOWN);
  const now = useNow();
  const turns = turnsOf(agent, all);
  const first = turns[0]?.attempts[0];
  if (!first) return null;
  const from = Date.parse(first.startedAt);
  const ends = turns.flatMap(turn => [turn.attempts, ...turn.calls.map(call => call.attempts)]).flat();
  const to = Math.max(...ends.map(attempt => (attempt.completedAt ? Date.parse(attempt.completedAt) : now)));
  const axis = { from, width: Math.max(1, to - from), now };
  const { goal, instructions } = (input ?? {}) as { goal?: unknown; instructions?: unknown };
  const hidden = Math.max(0, turns.length - shown);
  return (
    <section className="stack value" aria-label="Conversation">
      <h3>Conversation</h3>
      {typeof instructions === 'string' && <Said by="Instructions" text={instructions} />}
      {typeof goal === 'string' && <Said by="Goal" text={goal} />}
      {hidden > 0 && (
        <button type="button" className="button small" onClick={() => setShown(shown + TURNS_SHOWN)}>
          Show {Math.min(hidden, TURNS_SHOWN)} earlier turns
        </button>
      )}
      <ol className="turns" start={hidden + 1}>
        {turns.slice(hidden).map(turn => (
          <li key={turn.number} aria-label={`Turn ${turn.number}`}>
            <TurnView turn={turn} axis={axis} partial={partial.get(turn.name)} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Said({ by, text }: { by: string; text: string }) {
  return (
    <div className="said">
      <div className="small muted">{by}</div>
      <Outside text={text} max={600} />
    </div>
  );
}

function TurnView({ turn, axis, partial }: { turn: Turn; axis: Axis; partial: string | undefined }) {
  const last = turn.attempts.at(-1);
  if (!last) return null;
  const { answer } = turn;
  const tokens = answer && tokensText(answer);
  return (
    <>
      <div className="row wrap small">
        <Link to="." search={before => ({ ...before, step: turn.name, attempt: undefined })} resetScroll={false}>
          Model call {turn.number}
        </Link>
        <Status status={last.status} />
        {turn.attempts.length > 1 && <span className="muted">{turn.attempts.length} attempts</span>}
        {tokens && <span className="muted">{tokens}</span>}
        {answer?.stopReason && <span className="muted">{answer.stopReason.replaceAll('_', ' ')}</span>}
      </div>
      <Bar attempts={turn.attempts} axis={axis} />
      {answer?.text && (
        <div className="said answer">
          <Outside text={answer.text} />
        </div>
      )}
      {!isFinished(last.status) && partial && (
        <div className="said answer" aria-busy="true" aria-label="The answer so far">
          <Outside text={partial} max={8000} />
        </div>
      )}
      {turn.calls.map((call, index) => (
        <Call key={call.name ?? index} call={call} axis={axis} />
      ))}
    </>
  );
}

function Call({ call, axis }: { call: ToolCall; axis: Axis }) {
  const last = call.attempts.at(-1);
  return (
    <details className="tool-call">
      <summary>
        <span className="row wrap small">
          <code>
            <Name text={call.tool} max={80} />
          </code>
          {last ? <Status status={last.status} /> : <span className="muted">not made</span>}
          {call.attempts.length > 1 && <span className="muted">{call.attempts.length} attempts</span>}
        </span>
        <Bar attempts={call.attempts} axis={axis} />
      </summary>
      <div className="stack">
        {call.name && (
          <Link
            to="."
            search={before => ({ ...before, step: call.name ?? undefined, attempt: undefined })}
            resetScroll={false}
          >
            Attempts of this call
          </Link>
        )}
        <div className="small muted">Arguments</div>
        <Json value={call.arguments} />
        {last?.error != null && <Json value={last.error} />}
        {last?.output != null && (
          <>
            <div className="small muted">Result, as the model gets it</div>
            <Json value={last.output} />
          </>
        )}
      </div>
    </details>
  );
}

/** The attempts on the time axis of the agent. */
function Bar({ attempts, axis }: { attempts: Attempt[]; axis: Axis }) {
  const share = (ms: number) => `${(Math.max(0, ms) / axis.width) * 100}%`;
  const first = attempts[0];
  if (!first) return null;
  const end = (attempt: Attempt) => (attempt.completedAt ? Date.parse(attempt.completedAt) : axis.now);
  const total = end(attempts.at(-1) ?? first) - Date.parse(first.startedAt);
  return (
    <span className="bars turn-bars" title={durationText(total)}>
      {attempts.map((attempt, index) => {
        const from = Date.parse(attempt.startedAt);
        const place = { left: share(from - axis.from), width: share(end(attempt) - from) };
        return <i key={index} className={`bar tone-${statusTone(attempt.status)}`} style={place} />;
      })}
      <span className="bar-text small muted">{durationText(total)}</span>
    </span>
  );
}
