/** The triggers of the organization, or of one workflow, with their next runs. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { Trigger } from '@/api/client';
import { useTitle } from '@/app/title';
import { Empty, Failed, Loading } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { workflowNamesQuery } from '@/features/workflows/queries';
import { sourceOf, stateOf } from './model';
import { triggersQuery } from './queries';

/** A trigger's state as a badge. */
export function TriggerState({ trigger }: { trigger: Trigger }) {
  const [label, tone] = stateOf(trigger);
  return <span className={`status tone-${tone}`}>{label}</span>;
}

export function TriggersPage() {
  useTitle('Triggers');
  const { workflow, text } = useSearch({ from: '/signed-in/triggers' });
  const navigate = useNavigate({ from: '/triggers' });
  const triggers = useQuery(triggersQuery(workflow));
  const names = useQuery(workflowNamesQuery);
  const nameOf = (id: string) => names.data?.find(one => one.id === id)?.name ?? id;
  const wanted = text?.toLowerCase() ?? '';
  const shown = (triggers.data ?? []).filter(trigger =>
    [
      trigger.name,
      trigger.id,
      trigger.type,
      sourceOf(trigger),
      trigger.workflowId ? nameOf(trigger.workflowId) : 'orchestrator',
    ].some(part => part.toLowerCase().includes(wanted)),
  );
  return (
    <div className="page">
      <div className="page-head">
        <h1>Triggers</h1>
        <input
          className="input"
          type="search"
          aria-label="Text in name, type, schedule or workflow"
          placeholder="Name, type, schedule, workflow…"
          value={text ?? ''}
          onChange={event =>
            void navigate({ search: before => ({ ...before, text: event.target.value }), replace: true })
          }
        />
        {workflow && (
          <Link to="/triggers" className="button plain">
            Show all workflows
          </Link>
        )}
      </div>
      {triggers.isError && <Failed error={triggers.error} retry={() => void triggers.refetch()} />}
      {triggers.isPending && <Loading what="triggers" />}
      {triggers.isSuccess && shown.length === 0 && (
        <Empty>
          {triggers.data.length > 0
            ? 'No trigger matches.'
            : 'There are no triggers yet. Create one with POST /api/triggers; the reference is at /docs.'}
        </Empty>
      )}
      {shown.length > 0 && (
        <div className="table-scroll card" tabIndex={0} role="region" aria-label="Triggers">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Workflow</th>
                <th scope="col">Source</th>
                <th scope="col">State</th>
                <th scope="col">Next run</th>
                <th scope="col">Last run</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(trigger => (
                <tr key={trigger.id}>
                  <td>
                    <Link to="/triggers/$id" params={{ id: trigger.id }}>
                      <Name text={trigger.name} max={80} />
                    </Link>
                  </td>
                  <td>
                    {trigger.workflowId ? (
                      <Link to="/workflows/$id" params={{ id: trigger.workflowId }}>
                        <Name text={nameOf(trigger.workflowId)} max={60} />
                      </Link>
                    ) : (
                      <span className="muted">orchestrator</span>
                    )}
                  </td>
                  <td>
                    <code>
                      <Outside text={sourceOf(trigger)} max={120} />
                    </code>
                  </td>
                  <td>
                    <TriggerState trigger={trigger} />
                  </td>
                  <td className="nowrap">{trigger.nextRuns[0] && <At at={trigger.nextRuns[0]} />}</td>
                  <td className="nowrap">
                    {trigger.lastRunAt && trigger.lastExecutionId && (
                      <Link to="/executions/$id" params={{ id: trigger.lastExecutionId }}>
                        <Ago at={trigger.lastRunAt} />
                      </Link>
                    )}
                    {trigger.lastRunAt && !trigger.lastExecutionId && <Ago at={trigger.lastRunAt} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
