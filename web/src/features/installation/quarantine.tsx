/** Quarantined executions: why their journals were refused, and the two ways out. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ActionDialog } from '@/design/dialog';
import { Empty, Failed, Field, Loading } from '@/design/parts';
import { Outside } from '@/design/text';
import { More, Table } from './parts';
import { quarantineQuery, repair } from './queries';

interface Asked {
  id: string;
  act: 'release' | 'end';
}

function RepairDialog({ asked: { id, act }, onClose }: { asked: Asked; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const isRelease = act === 'release';
  return (
    <ActionDialog
      title={isRelease ? 'Release the execution?' : 'End the execution?'}
      action={isRelease ? 'Release' : 'End'}
      isDanger={!isRelease}
      isOpen
      isReady={reason.trim() !== ''}
      onClose={onClose}
      act={() => repair(id, act, reason.trim())}
    >
      <p>
        {isRelease
          ? 'The journal is verified again, and the execution resumes.'
          : 'The execution ends as failed, without its journal.'}
      </p>
      <Field label="Reason" hint="Recorded in the audit log.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            maxLength={2000}
            value={reason}
            onChange={event => setReason(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

export function Quarantine() {
  const pages = useInfiniteQuery(quarantineQuery);
  const [asked, setAsked] = useState<Asked | null>(null);
  const rows = pages.data?.pages.flatMap(page => page.quarantined) ?? [];
  if (pages.isPending) return <Loading what="quarantined executions" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  if (rows.length === 0) return <Empty>No execution is quarantined.</Empty>;
  return (
    <div className="stack">
      <Table label="Quarantined executions" heads={['Execution', 'Reason', '']}>
        {rows.map(row => (
          <tr key={row.executionId}>
            <td>
              <Link to="/executions/$id" params={{ id: row.executionId }}>
                <code>{row.executionId}</code>
              </Link>
            </td>
            <td>
              <Outside text={row.reason} />
            </td>
            <td className="nowrap">
              <button
                type="button"
                className="button small"
                onClick={() => setAsked({ id: row.executionId, act: 'release' })}
              >
                Release…
              </button>{' '}
              <button
                type="button"
                className="button small danger"
                onClick={() => setAsked({ id: row.executionId, act: 'end' })}
              >
                End…
              </button>
            </td>
          </tr>
        ))}
      </Table>
      <More pages={pages} />
      {asked && <RepairDialog asked={asked} onClose={() => setAsked(null)} />}
    </div>
  );
}
