/** Sessions of executions: who acts, what started them, and what ended ones have left. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ActionDialog } from '@/design/dialog';
import { Empty, Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { At } from '@/design/time';
import { useCan } from '@/features/session/queries';
import { More, Table } from './parts';
import { reapSessions, sessionsQuery } from './queries';

const ALL = 'agent:*:workflow:*:run:*';

const TONES: Record<string, string> = { running: 'tone-run', hibernated: 'tone-wait', terminated: 'tone-idle' };

function ReapDialog({ pattern, onClose }: { pattern: string; onClose: () => void }) {
  const preview = useQuery({
    queryKey: ['sessions', 'preview', pattern],
    queryFn: () => reapSessions(pattern, true),
    gcTime: 0,
  });
  return (
    <ActionDialog
      title="Reap sessions of ended executions?"
      action="Reap"
      isDanger
      isOpen
      isReady={(preview.data?.sessions ?? 0) > 0}
      onClose={onClose}
      act={() => reapSessions(pattern, false)}
    >
      <p>
        Keys like{' '}
        <code>
          <Name text={pattern} />
        </code>
        . Their credentials are revoked, and their workspaces on this server are removed. Executions and journals stay.
      </p>
      {preview.isPending && <Loading what="the sessions" />}
      {preview.isError && <Failed error={preview.error} retry={() => void preview.refetch()} />}
      {preview.data && (
        <p role="status">
          {preview.data.sessions} sessions with {preview.data.tokens} credentials and {preview.data.workspaces}{' '}
          workspaces.
        </p>
      )}
    </ActionDialog>
  );
}

export function Sessions() {
  const can = useCan();
  const [typed, setTyped] = useState('');
  const [key, setKey] = useState('');
  const [status, setStatus] = useState('');
  const [isReaping, setReaping] = useState(false);
  const pages = useInfiniteQuery(sessionsQuery({ key, status }));
  const sessions = pages.data?.pages.flatMap(page => page.sessions) ?? [];
  return (
    <div className="stack">
      <form
        className="row wrap end"
        onSubmit={event => {
          event.preventDefault();
          setKey(typed.trim());
        }}
      >
        <Field label="Key" hint={`A pattern, as ${ALL}`}>
          {attributes => (
            <input
              {...attributes}
              className="input"
              maxLength={1000}
              value={typed}
              onChange={event => setTyped(event.target.value)}
            />
          )}
        </Field>
        <Field label="Status">
          {attributes => (
            <select {...attributes} className="input" value={status} onChange={event => setStatus(event.target.value)}>
              <option value="">all</option>
              <option>running</option>
              <option>hibernated</option>
              <option>terminated</option>
            </select>
          )}
        </Field>
        <button type="submit" className="button">
          Search
        </button>
        <span className="spacer" />
        {can('executions:repair') && (
          <button type="button" className="button danger" onClick={() => setReaping(true)}>
            Reap ended sessions…
          </button>
        )}
      </form>
      {pages.isPending && <Loading what="sessions" />}
      {pages.isError && <Failed error={pages.error} retry={() => void pages.refetch()} />}
      {pages.data && sessions.length === 0 && !pages.hasNextPage && <Empty>No session matches.</Empty>}
      {sessions.length > 0 && (
        <Table label="Sessions" heads={['Session', 'Status', 'Member', 'Depth', 'Created', 'Ended']}>
          {sessions.map(session => (
            <tr key={session.id}>
              <td>
                <Link to="/executions/$id" params={{ id: session.executionId }}>
                  <code>
                    <Name text={session.key} />
                  </code>
                </Link>
                {session.spawnedBy && (
                  <div className="small muted">
                    by <Name text={session.spawnedBy} />
                  </div>
                )}
              </td>
              <td>
                <span className={`status ${TONES[session.status] ?? 'tone-idle'}`}>{session.status}</span>
              </td>
              <td>{session.userId ? <Name text={session.userId} max={40} /> : <span className="muted">–</span>}</td>
              <td>{session.spawnDepth ?? '–'}</td>
              <td className="muted">
                <At at={session.createdAt} />
              </td>
              <td className="muted">{session.endedAt ? <At at={session.endedAt} /> : '–'}</td>
            </tr>
          ))}
        </Table>
      )}
      <More pages={pages} />
      {isReaping && <ReapDialog pattern={key || ALL} onClose={() => setReaping(false)} />}
    </div>
  );
}
