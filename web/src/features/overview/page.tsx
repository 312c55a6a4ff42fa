/** The first page: what runs, waits and fails, the reader's approvals, recent throughput, and the health of the node. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ExecutionRow } from '@/api/client';
import { useTitle } from '@/app/title';
import { Empty, Failed, Loading } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, durationText } from '@/design/time';
import { openApprovalsQuery } from '@/features/approvals/queries';
import { newestExecutionsQuery, unfinishedQuery } from '@/features/executions/queries';
import { ExecutionTable } from '@/features/executions/table';
import { useCan } from '@/features/session/queries';
import { Chart } from './chart';
import { Cost } from './cost';
import { DevFiles } from './devFiles';
import { failureRate, medianDuration } from './model';
import { healthQuery } from './queries';
import { Schedules } from './schedules';
import './style.css';

/** Executions behind the chart and the rates. */
const RECENT = 200;

/** Rows of each short list. */
const SHORT = 8;

interface FigureProps {
  label: string;
  value: string;
  tone?: string;
  status?: string;
  note?: string;
}

function Figure({ label, value, tone, status, note }: FigureProps) {
  const content = (
    <>
      <span className="figure-label">{label}</span>
      <span className={tone ? `figure-value ${tone}` : 'figure-value'}>{value}</span>
      {note && <span className="small muted">{note}</span>}
    </>
  );
  return status ? (
    <Link to="/executions" search={{ status }} className="figure card">
      {content}
    </Link>
  ) : (
    <div className="figure card">{content}</div>
  );
}

function Figures({
  unfinished,
  isMore,
  recent,
}: {
  unfinished: ExecutionRow[];
  isMore: boolean;
  recent: ExecutionRow[];
}) {
  const count = (...statuses: string[]) => {
    const found = unfinished.filter(row => statuses.includes(row.status)).length;
    return isMore ? `${found}+` : String(found);
  };
  const rate = failureRate(recent);
  const median = medianDuration(recent);
  const of = `of the last ${recent.length}`;
  return (
    <div className="figures">
      <Figure label="Running" value={count('running', 'cancel_requested')} status="running,cancel_requested" />
      <Figure label="Waiting for approval" value={count('waiting_approval')} status="waiting_approval" />
      <Figure label="Queued" value={count('pending')} status="pending" />
      <Figure
        label="Failed"
        value={String(recent.filter(row => row.status === 'failed').length)}
        status="failed"
        note={of}
      />
      <Figure
        label="Failure rate"
        value={rate === null ? '–' : `${rate.toFixed(1)} %`}
        note={`${of}, among the ended`}
      />
      <Figure label="Median duration" value={median === null ? '–' : durationText(median)} note={of} />
    </div>
  );
}

function MyApprovals() {
  const open = useQuery(openApprovalsQuery);
  const mine = open.data?.approvals.filter(approval => approval.mayDecide) ?? [];
  return (
    <section className="card" aria-labelledby="my-approvals">
      <div className="card-head">
        <h2 id="my-approvals">Approvals for you</h2>
        <span className="spacer" />
        <Link to="/approvals">All approvals</Link>
      </div>
      {open.isPending && <Loading what="approvals" />}
      {open.isSuccess && mine.length === 0 && <Empty>Nothing waits for your decision.</Empty>}
      <ul className="short-list">
        {mine.slice(0, SHORT).map(approval => (
          <li key={approval.id}>
            <Link to="/approvals" search={{ item: approval.id }} className="truncate">
              <Outside text={approval.message} max={160} />
            </Link>
            <span className="small muted row">
              <Name text={approval.workflowName ?? ''} max={40} /> · until <Ago at={approval.timeoutAt} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Node() {
  const health = useQuery(healthQuery);
  return (
    <section className="card" aria-labelledby="node">
      <div className="card-head">
        <h2 id="node">Node</h2>
        <span className="spacer" />
        {health.isSuccess && <span className="status tone-ok">Ready</span>}
        {health.isError && <span className="status tone-bad">Not ready</span>}
      </div>
      <div className="card-body">
        {health.isError && <Failed error={health.error} />}
        {health.data && (
          <dl className="facts">
            <dt>Release</dt>
            <dd>{health.data.release}</dd>
            <dt>Partitions</dt>
            <dd>{health.data.partitions}</dd>
          </dl>
        )}
      </div>
    </section>
  );
}

export function OverviewPage() {
  useTitle('Overview');
  const can = useCan();
  const unfinished = useQuery(unfinishedQuery());
  const recent = useQuery(newestExecutionsQuery({}, RECENT));
  const rows = recent.data?.executions ?? [];
  const failed = rows.filter(row => row.status === 'failed');
  return (
    <div className="page">
      <div className="page-head">
        <h1>Overview</h1>
      </div>
      {recent.isError && <Failed error={recent.error} retry={() => void recent.refetch()} />}
      {recent.isPending && <Loading what="executions" />}
      {recent.data && (
        <Figures unfinished={unfinished.data?.executions ?? []} isMore={!!unfinished.data?.nextCursor} recent={rows} />
      )}
      <DevFiles />
      <div className="overview-columns">
        <section className="card" aria-labelledby="throughput">
          <div className="card-head">
            <h2 id="throughput">Executions started</h2>
          </div>
          <div className="card-body">
            {rows.length > 0 ? <Chart rows={rows} /> : <Empty>There are no executions yet.</Empty>}
          </div>
        </section>
        <MyApprovals />
        <Node />
        {can('executions:read') && <Cost />}
        {can('workflows:read') && <Schedules />}
      </div>
      {failed.length > 0 && (
        <section className="stack" aria-labelledby="failures">
          <div className="row">
            <h2 id="failures">Latest failures</h2>
            <span className="spacer" />
            <Link to="/executions" search={{ status: 'failed' }}>
              All failures
            </Link>
          </div>
          <ExecutionTable rows={failed.slice(0, SHORT)} label="Latest failures" />
        </section>
      )}
    </div>
  );
}
