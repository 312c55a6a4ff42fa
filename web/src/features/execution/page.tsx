/** One execution: what it does now and has done, why, and the actions on it. Every view is in the address. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useState } from 'react';
import { ApiError, type Attempt, type Execution, type Failure, type OpenGate } from '@/api/client';
import type { StreamState } from '@/api/events';
import { stringifyJson } from '@/api/json';
import { useTitle } from '@/app/title';
import { Json } from '@/design/json';
import { CopyButton, Failed, Loading, Notice, ShortId } from '@/design/parts';
import { isFinished, Status } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { Ago, At, Span } from '@/design/time';
import { DecideDialog } from '@/features/approvals/decide';
import { serverForm } from '@/features/approvals/queries';
import { Items, hasItems } from '@/features/approvals/items';
import { useCan } from '@/features/session/queries';
import { planQuery, type Plan, type PlanStep } from '@/features/workflows/queries';
import { Actions, stepsByTemplate } from './actions';
import { useAttempts, type Attempts } from './attempts';
import { Children, childrenOf } from './children';
import { StepDrawer } from './drawer';
import { Journal } from './journal';
import { countsByTemplate, outermostOf, planNameOf, rolloutText, templateOf } from './model';
import { Pinned } from './pinned';
import { executionQuery, snapshotQuery } from './queries';
import { Receipts } from './receipts';
import { Timeline } from './timeline';
import { UsageView } from './usage';
import './style.css';
import { TAB_MATCH } from '@/design/tabs';

const Graph = lazy(() => import('@/features/graph/graph'));

type View = 'steps' | 'data' | 'children' | 'usage' | 'receipts' | 'journal' | 'definition';

/** The plan of the execution, for sessions that may read definitions. */
function usePlan(id: string) {
  const can = useCan();
  const snapshot = useQuery({ ...snapshotQuery(id), enabled: can('workflows:read') });
  return useQuery({ ...planQuery(snapshot.data, id), enabled: !!snapshot.data });
}

/** The steps of a plan with those of `finally`. */
function allSteps(plan: Plan | undefined): PlanStep[] {
  return [...(plan?.steps ?? []), ...(plan?.finally ?? [])];
}

const STREAMS: Record<StreamState, string> = {
  connecting: 'Connecting…',
  live: 'Live',
  reconnecting: 'Connection lost; trying again…',
  ended: '',
};

function Head({ execution, stream }: { execution: Execution; stream: StreamState | null }) {
  const { workflowId, workflowName } = execution;
  const name = <Name text={workflowName ?? 'unnamed'} />;
  const can = useCan();
  return (
    <>
      <div className="row wrap">
        <Status status={execution.status} outcome={execution.outcome} />
        <h1>
          {workflowId && can('workflows:read') ? (
            <Link to="/workflows/$id" params={{ id: workflowId }}>
              {name}
            </Link>
          ) : (
            name
          )}
        </h1>
        <span className="muted">{execution.workflowVersion}</span>
        {stream && STREAMS[stream] && !isFinished(execution.status) && (
          <span className="row muted small" role="status">
            <span className={stream === 'live' ? 'live-dot' : 'live-dot lost'} aria-hidden="true" />
            {STREAMS[stream]}
          </span>
        )}
      </div>
      <div className="row wrap muted small facts-line">
        <ShortId id={execution.id} label="the execution id" keep={36} />
        <span>
          started <Ago at={execution.startedAt} /> by{' '}
          {execution.initiatorUserId ? <Name text={execution.initiatorUserId} /> : execution.initiatorType}
        </span>
        <span>
          duration <Span from={execution.startedAt} to={execution.completedAt} />
        </span>
        <span>{execution.triggerType}</span>
        {rolloutText(execution) && <span>{rolloutText(execution)}</span>}
        {execution.parentExecutionId && (
          <Link to="/executions/$id" params={{ id: execution.parentExecutionId }}>
            Parent execution
          </Link>
        )}
      </div>
    </>
  );
}

/** Why the execution stands where it stands: its error, its queue, its cancel, its quarantine. */
function Reasons({ execution }: { execution: Execution }) {
  const error = execution.error as Failure | null | undefined;
  const deadline = execution.runtimeState?.deadlineAt;
  const timer = execution.runtimeState?.nextTimerAt;
  return (
    <>
      {execution.quarantined && (
        <Notice tone="bad">
          Quarantined: <Outside text={execution.quarantined} />
        </Notice>
      )}
      {error && (
        <Notice
          tone={execution.status === 'cancelled' ? 'idle' : 'bad'}
          action={
            error.stepId && (
              <Link
                to="."
                search={before => ({ ...before, view: undefined, step: error.stepId ?? undefined })}
                resetScroll={false}
              >
                Show the failed step
              </Link>
            )
          }
        >
          <strong>
            <Outside text={error.message ?? error.code ?? 'The execution failed.'} max={600} />
          </strong>
          <div className="small muted">
            {error.stepId && (
              <>
                step{' '}
                <code>
                  <Name text={error.stepId} />
                </code>{' '}
                ·{' '}
              </>
            )}
            code <code>{error.code ?? '–'}</code> · class <code>{error.class ?? '–'}</code>
          </div>
        </Notice>
      )}
      {execution.waitingFor && (
        <Notice tone="wait">
          Queued:{' '}
          {execution.waitingFor === 'draining'
            ? 'executions of an older definition have not ended'
            : execution.waitingFor === 'admission'
              ? 'the limits are being checked'
              : `the concurrency limit of the ${execution.waitingFor} is reached`}
          .
        </Notice>
      )}
      {execution.migrations.length > 0 && (
        <Notice tone="idle">
          Continues with version {execution.workflowVersion} since{' '}
          <At at={execution.migrations[execution.migrations.length - 1]!.at} />, when a change was applied with
          migration.
        </Notice>
      )}
      {execution.cancelRequested && !isFinished(execution.status) && (
        <Notice tone="wait">
          Cancel requested by <Name text={execution.cancelRequested.by} />:{' '}
          <Outside text={execution.cancelRequested.reason} />
        </Notice>
      )}
      {!isFinished(execution.status) && (deadline || timer) && (
        <p className="muted small">
          {timer && (
            <>
              Next timer <At at={timer} />.{' '}
            </>
          )}
          {deadline && (
            <>
              Timeout of the execution <At at={deadline} />.
            </>
          )}
        </p>
      )}
    </>
  );
}

/** The open approvals of the execution and its children, to be decided in place. */
function OpenGates({ execution }: { execution: Execution }) {
  const [asked, setAsked] = useState<{ gate: OpenGate; approve: boolean } | null>(null);
  const gates = (execution.approvals ?? []) as unknown as OpenGate[];
  const target = (gate: OpenGate) => ({
    executionId: gate.executionId ?? execution.id,
    resumeToken: gate.resumeToken ?? '',
  });
  return (
    <>
      {gates.map(gate => (
        <section
          key={`${gate.executionId}-${gate.stepId}-${gate.resumeToken}`}
          className="card gate"
          aria-label="Open approval"
        >
          <div className="row wrap">
            <span className="status tone-wait">Needs approval</span>
            <code>
              <Name text={gate.path ?? gate.stepId} />
            </code>
            <span className="muted small">
              {gate.approvedBy.length} of {gate.count} · until <Ago at={gate.expiresAt} />
            </span>
            <span className="spacer" />
            {gate.resumeToken && (
              <>
                <button type="button" className="button primary" onClick={() => setAsked({ gate, approve: true })}>
                  Approve…
                </button>
                <button type="button" className="button danger" onClick={() => setAsked({ gate, approve: false })}>
                  Deny…
                </button>
              </>
            )}
          </div>
          <p className="question">
            <Outside text={gate.prompt} max={1000} />
          </p>
          {hasItems(gate.items) && <Items items={gate.items} />}
        </section>
      ))}
      {asked && (
        <DecideDialog
          approval={target(asked.gate)}
          prompt={asked.gate.prompt}
          approve={asked.approve}
          form={serverForm(asked.gate)}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}

function Data({ execution }: { execution: Execution }) {
  const values: [string, unknown][] = [
    ['Output', execution.outputs],
    ['Input', execution.input],
    ['Variables', execution.variables],
    ['Trigger', execution.triggerMetadata],
    ['Runtime', execution.runtimeState],
  ];
  return (
    <div className="data-columns">
      {values
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([title, value]) => (
          <section key={title} className="card" aria-label={title}>
            <div className="card-head">
              <h2>{title}</h2>
              <span className="spacer" />
              <CopyButton text={() => stringifyJson(value, 2)} label={`Copy ${title.toLowerCase()}`} />
            </div>
            <div className="card-body">
              <Json value={value} />
            </div>
          </section>
        ))}
    </div>
  );
}

interface StepsProps {
  execution: Execution;
  attempts: Attempts;
  step: string | undefined;
  number: string | undefined;
}

function Steps({ execution, attempts, step, number }: StepsProps) {
  const plan = usePlan(execution.id);
  const [isGraph, setGraph] = useState(true);
  const counts = useMemo(() => countsByTemplate(attempts.all), [attempts.all]);
  const ofStep = useMemo(() => attempts.all.filter(attempt => attempt.stepId === step), [attempts.all, step]);
  const cleanup = useMemo(() => new Set((plan.data?.finally ?? []).map(({ id }) => id)), [plan.data]);
  const planned = useMemo(() => new Map(stepsByTemplate(allSteps(plan.data))), [plan.data]);
  return (
    <div className={step ? 'steps has-drawer' : 'steps'}>
      <div className="stack steps-main">
        {plan.data && (
          <section className="card" aria-label="Graph">
            <button
              type="button"
              className="button plain small"
              aria-expanded={isGraph}
              onClick={() => setGraph(!isGraph)}
            >
              {isGraph ? '▾' : '▸'} Graph
            </button>
            {isGraph && (
              <Suspense fallback={<Loading what="the graph" />}>
                <Graph
                  plan={plan.data}
                  counts={counts}
                  chosen={step && templateOf(step)}
                  link={template => instanceFor(attempts.all, template)}
                />
              </Suspense>
            )}
          </section>
        )}
        {attempts.error !== undefined && (
          <Failed error={attempts.error} {...(attempts.retry ? { retry: attempts.retry } : {})} />
        )}
        <Timeline execution={execution} attempts={attempts.all} chosen={step} cleanup={cleanup} />
        {!attempts.isComplete && attempts.error === undefined && <Loading what="attempts" />}
      </div>
      {step && (
        <StepDrawer
          key={step}
          step={step}
          attempts={ofStep}
          all={attempts.all}
          partial={attempts.partial}
          number={number}
          execution={execution}
          planned={planned.get(planNameOf(step))}
          isCleanup={cleanup.has(outermostOf(step))}
        />
      )}
    </div>
  );
}

/** The instance that a node of the graph leads to: a failed one if there is one, else the last. */
function instanceFor(attempts: Attempt[], template: string): string | null {
  const all = attempts.filter(attempt => templateOf(attempt.stepId) === template);
  return (all.find(attempt => attempt.status === 'failed') ?? all.at(-1))?.stepId ?? null;
}

export function ExecutionPage() {
  const { id } = useParams({ from: '/signed-in/executions/$id' });
  const search = useSearch({ from: '/signed-in/executions/$id' });
  const execution = useQuery(executionQuery(id));
  const attempts = useAttempts(id, execution.data ? !isFinished(execution.data.status) : false);
  const plan = usePlan(id);
  const can = useCan();
  useTitle(execution.data ? `${execution.data.workflowName ?? 'Execution'} ${id.slice(-6)}` : 'Execution');
  const signals = useMemo(
    () => [...new Set(stepsByTemplate(allSteps(plan.data)).flatMap(([, step]) => step.signal ?? []))],
    [plan.data],
  );
  if (execution.isPending) return <Loading what="the execution" />;
  if (!execution.data) {
    const isGone = execution.error instanceof ApiError && execution.error.status === 404;
    return (
      <div className="page">
        {isGone ? (
          <Notice tone="idle">There is no execution {id} in this organization.</Notice>
        ) : (
          <Failed error={execution.error} retry={() => void execution.refetch()} />
        )}
      </div>
    );
  }
  const view = (search.view ?? 'steps') as View;
  const children = childrenOf(attempts.all).length;
  const views: [View, string][] = [
    ['steps', 'Steps'],
    ['data', 'Input and output'],
    ...(children > 0 ? ([['children', `Children (${children})`]] as [View, string][]) : []),
    ...(execution.data.usage ? ([['usage', 'Usage']] as [View, string][]) : []),
    ['receipts', 'Receipts'],
    ['journal', 'Journal'],
    ...(can('workflows:read') ? ([['definition', 'Definition']] as [View, string][]) : []),
  ];
  return (
    <div className="page execution">
      <div className="page-head">
        <div className="stack head-texts">
          <Head execution={execution.data} stream={attempts.stream} />
        </div>
        <span className="spacer" />
        <Actions execution={execution.data} attempts={attempts.all} signals={signals} />
      </div>
      {execution.isError && <Failed error={execution.error} retry={() => void execution.refetch()} />}
      <Reasons execution={execution.data} />
      <OpenGates execution={execution.data} />
      <nav className="tabs" aria-label="Views of the execution">
        {views.map(([name, label]) => (
          <Link
            key={name}
            to="."
            search={name === 'steps' ? {} : { view: name }}
            className="tab"
            activeOptions={TAB_MATCH}
            aria-current={name === view ? 'page' : undefined}
            resetScroll={false}
          >
            {label}
          </Link>
        ))}
      </nav>
      {view === 'steps' && (
        <Steps execution={execution.data} attempts={attempts} step={search.step} number={search.attempt} />
      )}
      {view === 'data' && <Data execution={execution.data} />}
      {view === 'children' && <Children attempts={attempts.all} />}
      {view === 'usage' && <UsageView execution={execution.data} />}
      {view === 'receipts' && <Receipts id={id} step={search.step} />}
      {view === 'journal' && <Journal id={id} chosen={search.frame} />}
      {view === 'definition' && <Pinned execution={execution.data} />}
    </div>
  );
}
