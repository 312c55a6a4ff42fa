/** Cancels several executions: first shows which, then cancels them a few at a time and tells the result of each. */
import { useState } from 'react';
import { messageOf, type ExecutionRow } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import { Dialog } from '@/design/dialog';
import { Field } from '@/design/parts';
import { isFinished, Status } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { cancelExecution, EXECUTIONS } from './queries';

/** Requests at a time, so that the cancel of many executions leaves the session its share of the server. */
const AT_A_TIME = 4;

type Result = 'requested' | 'busy' | { problem: string };

export function BulkCancel({ rows, onClose }: { rows: ExecutionRow[]; onClose: (isDone: boolean) => void }) {
  // The list behind the dialog goes on; the dialog keeps the rows that it asked about.
  const [open] = useState(() => rows.filter(row => !isFinished(row.status)));
  const [reason, setReason] = useState('');
  const [results, setResults] = useState<Record<string, Result>>({});
  const [phase, setPhase] = useState<'preview' | 'busy' | 'done'>('preview');

  const cancelAll = async () => {
    setPhase('busy');
    const left = [...open];
    const tell = (id: string, result: Result) => setResults(before => ({ ...before, [id]: result }));
    const work = async () => {
      for (let row = left.shift(); row; row = left.shift()) {
        tell(row.id, 'busy');
        await cancelExecution(row.id, reason).then(
          () => tell(row.id, 'requested'),
          error => tell(row.id, { problem: messageOf(error) }),
        );
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    await queryClient.invalidateQueries({ queryKey: EXECUTIONS });
    setPhase('done');
  };

  return (
    <Dialog
      title={`Cancel ${open.length} ${open.length === 1 ? 'execution' : 'executions'}`}
      isOpen
      isWide
      onClose={() => onClose(phase === 'done')}
    >
      <p>Running attempts are stopped. Steps that are complete keep their results.</p>
      <div className="table-scroll preview" tabIndex={0} role="region" aria-label="Executions to cancel">
        <table className="table">
          <thead>
            <tr>
              <th>Workflow</th>
              <th>Execution</th>
              <th>Status</th>
              <th>Result</th>
            </tr>
          </thead>
          <tbody>
            {open.map(row => (
              <tr key={row.id}>
                <td>
                  <Name text={row.workflowName ?? 'unnamed'} max={60} />
                </td>
                <td>
                  <code>{row.id}</code>
                </td>
                <td>
                  <Status status={row.status} outcome={row.outcome} />
                </td>
                <td>
                  <ResultText result={results[row.id]} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {phase === 'preview' && (
        <Field label="Reason" hint="Recorded in the journals and the audit log.">
          {attributes => (
            <input
              {...attributes}
              className="input"
              maxLength={200}
              value={reason}
              onChange={event => setReason(event.target.value)}
            />
          )}
        </Field>
      )}
      <div className="dialog-actions">
        <button type="button" className="button" onClick={() => onClose(phase === 'done')}>
          Close
        </button>
        {phase !== 'done' && (
          <button
            type="button"
            className="button danger"
            disabled={phase === 'busy' || open.length === 0}
            onClick={() => void cancelAll()}
          >
            {phase === 'busy' ? 'Cancelling…' : `Cancel ${open.length}`}
          </button>
        )}
      </div>
    </Dialog>
  );
}

function ResultText({ result }: { result: Result | undefined }) {
  if (result === undefined) return null;
  if (result === 'busy') return <span className="busy" role="img" aria-label="In progress" />;
  if (result === 'requested') return <>Cancel requested</>;
  return <Outside text={result.problem} />;
}
