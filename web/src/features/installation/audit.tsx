/** The audit log: newest entries first, a search from the newest to older ones, verification, and an export with its proof. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { AuditEntry } from '@/api/client';
import { stringifyJson } from '@/api/json';
import { Json } from '@/design/json';
import { Failed, Loading, Notice, ShortId } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { At } from '@/design/time';
import { More, Table } from './parts';
import { auditProofQuery, auditQuery, exportAudit } from './queries';

function matches(entry: AuditEntry, wanted: string): boolean {
  const texts = [
    entry.action,
    entry.actor,
    entry.target,
    entry.at,
    String(entry.number),
    stringifyJson(entry.detail ?? ''),
  ];
  return texts.some(text => text.toLowerCase().includes(wanted));
}

/** Pages that one press of the button searches at most: 25 of 200 entries. */
const SEARCH_PAGES_MAX = 25;

export function Audit() {
  const { text } = useSearch({ from: '/signed-in/installation' });
  const navigate = useNavigate({ from: '/installation' });
  const pages = useInfiniteQuery(auditQuery);
  const proof = useQuery(auditProofQuery);
  const [error, setError] = useState<unknown>();
  const [isSearching, setSearching] = useState(false);
  const entries = pages.data?.pages.flatMap(page => page.entries) ?? [];
  const wanted = text?.trim().toLowerCase() ?? '';
  const shown = wanted ? entries.filter(entry => matches(entry, wanted)) : entries;
  /** Loads older pages up to the next one with a match. */
  const searchOlder = async () => {
    setSearching(true);
    for (let page = 0; page < SEARCH_PAGES_MAX; page += 1) {
      const { data, hasNextPage, isError } = await pages.fetchNextPage();
      const isFound = data?.pages.at(-1)?.entries.some(entry => matches(entry, wanted));
      if (isFound || !hasNextPage || isError) break;
    }
    setSearching(false);
  };
  if (pages.isPending) return <Loading what="the audit log" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  return (
    <div className="stack">
      <div className="row wrap">
        <input
          className="input"
          type="search"
          aria-label="Text in action, actor, target or detail"
          placeholder="Action, actor, target, detail…"
          value={text ?? ''}
          onChange={event =>
            void navigate({ search: before => ({ ...before, text: event.target.value }), replace: true })
          }
        />
        <span className="muted small" role="status">
          {shown.length} of {entries.length} loaded entries
        </span>
        <span className="spacer" />
        <button type="button" className="button" disabled={proof.isFetching} onClick={() => void proof.refetch()}>
          {proof.isFetching ? 'Verifying…' : 'Verify'}
        </button>
        <button
          type="button"
          className="button"
          onClick={() => void exportAudit().then(() => setError(undefined), setError)}
        >
          Export with proof
        </button>
      </div>
      {error !== undefined && <Failed error={error} />}
      {proof.isError && <Failed error={proof.error} />}
      {proof.data && (
        <Notice tone={proof.data.ok ? 'ok' : 'bad'}>
          {proof.data.ok ? (
            `The ${proof.data.entries} entries form an unbroken chain up to the sealed head.`
          ) : (
            <Outside text={proof.data.error ?? 'The log does not verify.'} />
          )}
        </Notice>
      )}
      <Table label="Audit log" heads={['Number', 'Time', 'Actor', 'Action', 'Target', 'Detail', 'Hash']}>
        {shown.map(entry => (
          <tr key={entry.number}>
            <td>{entry.number}</td>
            <td className="nowrap">
              <At at={entry.at} />
            </td>
            <td>
              <Name text={entry.actor} max={40} />
            </td>
            <td>
              <code>{entry.action}</code>
            </td>
            <td>
              <Name text={entry.target} max={80} />
            </td>
            <td>{entry.detail && <Json value={entry.detail} />}</td>
            <td>
              <ShortId id={entry.hash} label={`the hash of entry ${entry.number}`} />
            </td>
          </tr>
        ))}
      </Table>
      {wanted && pages.hasNextPage ? (
        <button type="button" className="button" disabled={isSearching} onClick={() => void searchOlder()}>
          {isSearching ? 'Searching…' : 'Search older entries'}
        </button>
      ) : (
        <More pages={pages} />
      )}
    </div>
  );
}
