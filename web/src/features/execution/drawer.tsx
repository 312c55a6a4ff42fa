/** A step instance: its status and the reason for it, and for each attempt input, output, error, log and decisions. */
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { Attempt, Execution, Failure } from '@/api/client';
import { stringifyJson } from '@/api/json';
import { Json } from '@/design/json';
import { CopyButton, Notice } from '@/design/parts';
import { isFinished, Status } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { At, Span } from '@/design/time';
import { TAB_MATCH } from '@/design/tabs';
import type { PlanStep } from '@/features/workflows/queries';
import { Conversation } from './conversation';
import { AgentUsage } from './usage';

interface DrawerProps {
  step: string;
  attempts: Attempt[];
  /** The attempts of all steps. */
  all: Attempt[];
  /** What models have said so far, by step instance. */
  partial: ReadonlyMap<string, string>;
  number: string | undefined;
  execution: Execution;
  /** The step of the plan; undefined without the right to read definitions. */
  planned: PlanStep | undefined;
  /** True for a step of `finally`. */
  isCleanup: boolean;
}

export function StepDrawer({ step, attempts, all, partial, number, execution, planned, isCleanup }: DrawerProps) {
  const navigate = useNavigate();
  const heading = useRef<HTMLHeadingElement>(null);
  const attempt = attempts.find(one => String(one.attempt) === number) ?? attempts.at(-1);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [step]);
  const close = () =>
    void navigate({
      to: '.',
      search: before => ({ ...before, step: undefined, attempt: undefined }),
      resetScroll: false,
    });
  return (
    <aside className="drawer card" aria-label={`Step ${step}`} onKeyDown={event => event.key === 'Escape' && close()}>
      <div className="card-head">
        <h2 ref={heading} tabIndex={-1} className="truncate">
          <Name text={step} />
        </h2>
        {isCleanup && <span className="tag">finally</span>}
        <span className="spacer" />
        <button type="button" className="button small plain" onClick={close}>
          Close
        </button>
      </div>
      <div className="card-body stack">
        {attempts.length > 1 && (
          <nav className="row wrap" aria-label="Attempts">
            {attempts.map(one => (
              <Link
                key={one.attempt}
                to="."
                search={before => ({ ...before, attempt: String(one.attempt) })}
                resetScroll={false}
                className="tab"
                activeOptions={TAB_MATCH}
                aria-current={one === attempt ? 'page' : undefined}
              >
                Attempt {one.attempt}
              </Link>
            ))}
          </nav>
        )}
        {isCleanup && <p className="muted small">It runs when all other steps have ended, whatever the end is.</p>}
        {planned?.trust && <Trust trust={planned.trust} />}
        {planned?.turns && <Conversation agent={step} input={attempt?.input} all={all} partial={partial} />}
        {planned?.turns && <AgentUsage execution={execution} step={planned} output={attempt?.output} />}
        {attempt && isFinished(attempt.status) && (
          <p className="small">
            <Link to="." search={{ view: 'receipts', step }} resetScroll={false}>
              Receipts of this step
            </Link>
          </p>
        )}
        {attempt ? <AttemptDetail attempt={attempt} /> : <p className="muted">The step has not started.</p>}
      </div>
    </aside>
  );
}

/** What the definition declares the output to be, and the rules that therefore leave it out. */
function Trust({ trust }: { trust: string[] }) {
  return (
    <Notice tone="wait">
      The definition declares the output <Outside text={trust.join(' and ')} max={100} />: rules for{' '}
      {trust.map(word => (word === 'public' ? 'private' : 'untrusted')).join(' and ')} values do not count it.
    </Notice>
  );
}

function Value({ title, value }: { title: string; value: unknown }) {
  return (
    <section className="stack value">
      <div className="row">
        <h3>{title}</h3>
        <span className="spacer" />
        <CopyButton text={() => stringifyJson(value, 2)} label={`Copy ${title.toLowerCase()}`} />
      </div>
      <Json value={value} />
    </section>
  );
}

function AttemptDetail({ attempt }: { attempt: Attempt }) {
  const log = (attempt.log ?? []) as unknown as { level: string; text: string }[];
  return (
    <>
      <dl className="facts">
        <dt>Status</dt>
        <dd>
          <Status status={attempt.status} />
        </dd>
        <dt>Started</dt>
        <dd>
          <At at={attempt.startedAt} />
        </dd>
        <dt>Duration</dt>
        <dd>
          <Span from={attempt.startedAt} to={attempt.completedAt} />
        </dd>
        <dt>Cause</dt>
        <dd>
          <Outside text={attempt.because} max={600} />
        </dd>
        {attempt.note && (
          <>
            <dt>Note</dt>
            <dd>
              <Outside text={attempt.note} max={600} />
            </dd>
          </>
        )}
        {attempt.childExecutionId && (
          <>
            <dt>Child</dt>
            <dd>
              <Link to="/executions/$id" params={{ id: attempt.childExecutionId }}>
                <code>{attempt.childExecutionId}</code>
              </Link>
            </dd>
          </>
        )}
      </dl>
      {attempt.error && <ErrorDetail error={attempt.error as Failure} />}
      {attempt.decisions?.map((decision, index) => (
        <div key={index}>
          <span className={`status ${decision.decision === 'approve' ? 'tone-ok' : 'tone-bad'}`}>
            {decision.decision}
          </span>{' '}
          by {decision.by ? <Name text={decision.by} /> : 'the timeout'}, <At at={decision.at} />
          {decision.reason && (
            <p>
              <Outside text={decision.reason} />
            </p>
          )}
        </div>
      ))}
      {log.length > 0 && (
        <section className="stack value">
          <h3>Log</h3>
          <pre tabIndex={0}>
            {log.map((line, index) => (
              <div key={index}>
                {line.level} <Outside text={line.text} />
              </div>
            ))}
          </pre>
        </section>
      )}
      {attempt.output !== null && attempt.output !== undefined && <Value title="Output" value={attempt.output} />}
      <Value title="Input" value={attempt.input} />
    </>
  );
}

/** An error with its code and class. Output of a script is text, not JSON. */
export function ErrorDetail({ error }: { error: Failure }) {
  const details = (error.details ?? null) as Record<string, unknown> | null;
  const streams = ['stderr', 'stdout'].filter(name => typeof details?.[name] === 'string' && details[name] !== '');
  return (
    <section className="stack value">
      <div className="notice tone-bad">
        <div className="notice-text">
          <strong>
            <Outside text={error.message ?? 'The step failed.'} />
          </strong>
          <div className="small muted">
            code <code>{error.code ?? '–'}</code> · class <code>{error.class ?? '–'}</code>
          </div>
        </div>
      </div>
      {streams.map(name => (
        <div key={name}>
          <h3>{name}</h3>
          <pre tabIndex={0}>
            <Outside text={String(details?.[name])} />
          </pre>
        </div>
      ))}
      {details && Object.keys(details).length > 0 && <Json value={details} />}
    </section>
  );
}
