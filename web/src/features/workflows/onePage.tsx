/** One workflow: its graph and latest executions, its definition, a form to start it, its versions and settings. */
import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { ApiError, diagnosticsOf, type Diagnostic, type Workflow } from '@/api/client';
import { useTitle } from '@/app/title';
import { ActionDialog } from '@/design/dialog';
import { Empty, Failed, Loading, Notice, ShortId } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago } from '@/design/time';
import { newestExecutionsQuery } from '@/features/executions/queries';
import { ExecutionTable } from '@/features/executions/table';
import { useCan, useMayActFor } from '@/features/session/queries';
import { DefinitionView } from './definitionView';
import { planQuery, workflowQuery } from './queries';
import { endDrain } from './proposals';
import { ProposalsView } from './proposalsView';
import { RunView } from './runView';
import { ScenariosView } from './scenariosView';
import { SettingsView } from './settingsView';
import { VersionsView } from './versionsView';
import './style.css';
import { TAB_MATCH } from '@/design/tabs';

const Graph = lazy(() => import('@/features/graph/graph'));

type View = 'overview' | 'definition' | 'run' | 'scenarios' | 'versions' | 'proposals' | 'settings';

/** The warnings of the compiler, such as private values that reach other hosts. */
function Warnings({ warnings }: { warnings: Diagnostic[] }) {
  if (warnings.length === 0) return null;
  return (
    <section className="card" aria-labelledby="warnings">
      <div className="card-head">
        <h2 id="warnings">Warnings</h2>
      </div>
      <ul className="card-body stack">
        {warnings.map(({ code, path, message, help }, index) => (
          <li key={index}>
            <code>
              <Outside text={path} max={200} />
            </code>{' '}
            <Outside text={message} max={600} /> <span className="muted small">{code}</span>
            {help && (
              <p className="muted">
                <Outside text={help} max={600} />
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** A workflow whose new executions wait for those of older definitions. */
function Draining({ workflow, mayEnd }: { workflow: Workflow; mayEnd: boolean }) {
  const [isAsked, setAsked] = useState(false);
  const drain = workflow.draining;
  if (!drain) return null;
  return (
    <Notice tone="wait">
      New executions wait until those of older definitions have ended
      {typeof drain.waitsFor === 'number' && `: ${drain.waitsForMore ? 'at least ' : ''}${drain.waitsFor} left`}.
      Applied by <Name text={drain.by} /> <Ago at={drain.since} />.{' '}
      {mayEnd && (
        <button type="button" className="button" onClick={() => setAsked(true)}>
          End the drain…
        </button>
      )}
      {isAsked && (
        <ActionDialog
          title="End the drain?"
          action="End the drain"
          isOpen
          onClose={() => setAsked(false)}
          act={() => endDrain(workflow.id)}
        >
          <p>The executions that wait begin beside the older ones, within the limits of the organization.</p>
        </ActionDialog>
      )}
    </Notice>
  );
}

/** A workflow of which some new executions run the definition of a proposal. */
function RollingOut({ workflow }: { workflow: Workflow }) {
  const rollout = workflow.rollout;
  if (!rollout) return null;
  return (
    <Notice tone="wait">
      {rollout.percent} % of the new executions run version {rollout.candidateVersion}.{' '}
      <Link to="." search={{ view: 'proposals', proposal: rollout.proposalId }}>
        Show the rollout
      </Link>
    </Notice>
  );
}

function Overview({ workflow }: { workflow: Workflow }) {
  const can = useCan();
  const plan = useQuery(planQuery(workflow.data, workflow.workflowHash));
  const latest = useQuery({ ...newestExecutionsQuery({ workflow: workflow.id }, 20), enabled: can('executions:read') });
  const rows = latest.data?.executions ?? [];
  return (
    <div className="stack">
      {workflow.description && (
        <p>
          <Outside text={workflow.description} />
        </p>
      )}
      <section className="card" aria-label="Graph">
        {plan.isError && <Failed error={plan.error} />}
        <Suspense fallback={<Loading what="the graph" />}>{plan.data && <Graph plan={plan.data} />}</Suspense>
        {plan.data && (
          <p className="card-body small">
            <a href={`/api/workflows/${encodeURIComponent(workflow.id)}/drawing`} download={`${workflow.id}.svg`}>
              Download as a picture (SVG)
            </a>
          </p>
        )}
      </section>
      <Warnings warnings={diagnosticsOf(plan.data?.warnings)} />
      {can('executions:read') && (
        <>
          <div className="row">
            <h2>Latest executions</h2>
            <span className="spacer" />
            <Link to="/executions" search={{ workflow: workflow.id }}>
              All executions
            </Link>
          </div>
          {latest.isError && <Failed error={latest.error} />}
          {latest.isSuccess && rows.length === 0 && <Empty>The workflow was not started yet.</Empty>}
          {rows.length > 0 && <ExecutionTable rows={rows} label="Latest executions" />}
        </>
      )}
    </div>
  );
}

export function WorkflowPage() {
  const { id } = useParams({ from: '/signed-in/workflows/$id' });
  const search = useSearch({ from: '/signed-in/workflows/$id' });
  const can = useCan();
  const mayActFor = useMayActFor();
  const query = useQuery(workflowQuery(id));
  const workflow = query.data?.workflow;
  const etag = query.data?.etag ?? null;
  useTitle(workflow?.name ?? 'Workflow');
  if (query.isPending) return <Loading what="the workflow" />;
  if (!workflow) {
    const isGone = query.error instanceof ApiError && query.error.status === 404;
    return (
      <div className="page">
        {isGone ? (
          <Notice tone="idle">There is no workflow {id} in this organization.</Notice>
        ) : (
          <Failed error={query.error} retry={() => void query.refetch()} />
        )}
      </div>
    );
  }
  const mayChange = can('workflows:write') && mayActFor(workflow.userId);
  const view = (search.view ?? 'overview') as View;
  const views: [View, string][] = [
    ['overview', 'Overview'],
    ['definition', 'Definition'],
    ...(can('executions:start') ? ([['run', 'Run']] as [View, string][]) : []),
    ['scenarios', 'Scenarios'],
    ['versions', 'Versions'],
    ['proposals', 'Proposals'],
    ...(mayChange ? ([['settings', 'Settings']] as [View, string][]) : []),
  ];
  return (
    <div className="page">
      <div className="page-head">
        <h1>
          <Name text={workflow.name} />
        </h1>
        <span className="muted">{workflow.version}</span>
        {!workflow.enabled && <span className="status tone-idle">Disabled</span>}
        <span className="muted small row wrap">
          {workflow.slug && <Name text={workflow.slug} />}
          <ShortId id={workflow.workflowHash} label="the hash of the definition" keep={10} />
          owner <Name text={workflow.userId} /> · changed <Ago at={workflow.updatedAt} />
        </span>
        <span className="spacer" />
        <Link to="/triggers" search={{ workflow: workflow.id }}>
          Triggers
        </Link>
        {can('executions:start') && view !== 'run' && (
          <Link to="." search={{ view: 'run' }} className="button primary">
            Run…
          </Link>
        )}
      </div>
      <nav className="tabs" aria-label="Views of the workflow">
        {views.map(([name, label]) => (
          <Link
            key={name}
            to="."
            search={name === 'overview' ? {} : { view: name }}
            className="tab"
            activeOptions={TAB_MATCH}
            aria-current={name === view ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      {query.isError && <Failed error={query.error} />}
      <Draining workflow={workflow} mayEnd={mayActFor(workflow.userId) && can('approvals:decide')} />
      <RollingOut workflow={workflow} />
      {view === 'overview' && <Overview workflow={workflow} />}
      {view === 'definition' && (
        <DefinitionView key={workflow.id} workflow={workflow} etag={etag} reload={() => query.refetch()} />
      )}
      {view === 'run' && <RunView key={workflow.id} workflow={workflow} rerun={search.rerun} />}
      {view === 'scenarios' && <ScenariosView key={workflow.id} workflow={workflow} mayChange={mayChange} />}
      {view === 'versions' && <VersionsView workflow={workflow} etag={etag} from={search.from} to={search.to} />}
      {view === 'proposals' && <ProposalsView workflow={workflow} chosen={search.proposal} />}
      {view === 'settings' && mayChange && (
        <SettingsView key={workflow.id} workflow={workflow} etag={etag} reload={() => query.refetch()} />
      )}
    </div>
  );
}
