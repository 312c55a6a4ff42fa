/** The migration of running executions: the preview before an application, and its progress. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Migration } from '@/api/client';
import { Failed, Loading, Notice } from '@/design/parts';
import { Outside } from '@/design/text';
import { migrationQuery, migrationText } from './migrations';

function Executions({ executions }: { executions: Migration['executions'] }) {
  if (executions.length === 0) return null;
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Executions of the migration">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Execution</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          {executions.map(execution => (
            <tr key={execution.executionId}>
              <td>
                <Link to="/executions/$id" params={{ id: execution.executionId }}>
                  <code>{execution.executionId}</code>
                </Link>
              </td>
              <td>
                {execution.migrates
                  ? 'Continues with the change'
                  : execution.reasons.map(reason => (
                      <div key={`${reason.code} ${reason.stepId ?? ''}`}>
                        Stays: <Outside text={reason.message} max={300} />
                      </div>
                    ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface MigrationProps {
  workflowId: string;
  proposalId: string;
}

export function MigrationView({ workflowId, proposalId }: MigrationProps) {
  const query = useQuery(migrationQuery(workflowId, proposalId));
  if (query.isPending) return <Loading what="the migration" />;
  if (!query.data) return <Failed error={query.error} retry={() => void query.refetch()} />;
  const migration = query.data;
  return (
    <section className="stack" aria-label="Migration">
      <p role="status">{migrationText(migration)}</p>
      {migration.endReason && (
        <Notice tone="wait">
          It ended early: <Outside text={migration.endReason} max={300} />
        </Notice>
      )}
      <Executions executions={migration.executions} />
    </section>
  );
}
