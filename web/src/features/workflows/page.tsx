/** The list of workflows with their latest executions. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { ExecutionRow } from '@/api/client';
import { useTitle } from '@/app/title';
import { Empty, Failed, Loading } from '@/design/parts';
import { Status, statusLabel, statusTone } from '@/design/status';
import { Name } from '@/design/text';
import { Ago } from '@/design/time';
import { newestExecutionsQuery } from '@/features/executions/queries';
import { useCan } from '@/features/session/queries';
import { workflowsQuery } from './queries';
import './style.css';

/** Executions of a workflow in its small chart. */
const SPARK = 16;

/** The latest executions of each workflow, newest first. */
function useLatest(): Map<string, ExecutionRow[]> {
  const can = useCan();
  const recent = useQuery({ ...newestExecutionsQuery({}, 200), enabled: can('executions:read') });
  return useMemo(() => {
    const found = new Map<string, ExecutionRow[]>();
    for (const row of recent.data?.executions ?? []) {
      if (!row.workflowId) continue;
      const rows = found.get(row.workflowId) ?? [];
      if (rows.length < SPARK) rows.push(row);
      found.set(row.workflowId, rows);
    }
    return found;
  }, [recent.data]);
}

/** One bar for an execution: its height is the duration, its tone the status. */
function Spark({ rows }: { rows: ExecutionRow[] }) {
  const bars = rows.toReversed();
  const duration = (row: ExecutionRow) =>
    row.completedAt ? Date.parse(row.completedAt) - Date.parse(row.startedAt) : 0;
  const most = Math.max(1, ...bars.map(duration));
  const failed = rows.filter(row => row.status === 'failed').length;
  return (
    <svg
      className="spark"
      width={SPARK * 6}
      height="18"
      role="img"
      aria-label={`${rows.length} latest executions, ${failed} failed`}
    >
      {bars.map((row, index) => {
        const height = 4 + (duration(row) / most) * 14;
        return (
          <rect
            key={row.id}
            className={`spark-${statusTone(row.status)}`}
            x={index * 6}
            y={18 - height}
            width="4"
            height={height}
          >
            <title>{statusLabel(row.status)}</title>
          </rect>
        );
      })}
    </svg>
  );
}

export function WorkflowsPage() {
  useTitle('Workflows');
  const can = useCan();
  const { text } = useSearch({ from: '/signed-in/workflows' });
  const navigate = useNavigate({ from: '/workflows' });
  const workflows = useQuery(workflowsQuery);
  const latest = useLatest();
  const wanted = text?.toLowerCase() ?? '';
  const shown = (workflows.data ?? []).filter(workflow =>
    [workflow.name, workflow.slug, workflow.id, workflow.userId, ...workflow.tags].some(part =>
      part?.toLowerCase().includes(wanted),
    ),
  );
  return (
    <div className="page">
      <div className="page-head">
        <h1>Workflows</h1>
        <input
          className="input"
          type="search"
          aria-label="Text in name, slug, tag or owner"
          placeholder="Name, slug, tag, owner…"
          value={text ?? ''}
          onChange={event => void navigate({ search: { text: event.target.value }, replace: true })}
        />
        <span className="spacer" />
        {can('workflows:write') && (
          <Link to="/workflows/new" className="button primary">
            New workflow
          </Link>
        )}
      </div>
      {workflows.isError && <Failed error={workflows.error} retry={() => void workflows.refetch()} />}
      {workflows.isPending && <Loading what="workflows" />}
      {workflows.isSuccess && shown.length === 0 && (
        <Empty>{workflows.data.length === 0 ? 'There are no workflows yet.' : 'No workflow matches.'}</Empty>
      )}
      {shown.length > 0 && (
        <div className="table-scroll card" tabIndex={0} role="region" aria-label="Workflows">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Latest executions</th>
                <th scope="col">Last outcome</th>
                <th scope="col">Version</th>
                <th scope="col">Owner</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(workflow => {
                const rows = latest.get(workflow.id) ?? [];
                const last = rows[0];
                return (
                  <tr key={workflow.id}>
                    <td>
                      <Link to="/workflows/$id" params={{ id: workflow.id }}>
                        <Name text={workflow.name} max={80} />
                      </Link>{' '}
                      {!workflow.enabled && <span className="status tone-idle">Disabled</span>}
                      {workflow.tags.map(tag => (
                        <span key={tag} className="tag">
                          <Name text={tag} max={30} />
                        </span>
                      ))}
                    </td>
                    <td>{rows.length > 0 && <Spark rows={rows} />}</td>
                    <td>
                      {last && (
                        <Link to="/executions/$id" params={{ id: last.id }}>
                          <Status status={last.status} outcome={last.outcome} />
                        </Link>
                      )}
                    </td>
                    <td className="muted">{workflow.version}</td>
                    <td className="muted">
                      <Name text={workflow.userId} max={40} />
                    </td>
                    <td className="muted">
                      <Ago at={workflow.updatedAt} />
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
