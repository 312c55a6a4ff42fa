/** The list of executions: it follows what happens, filters are in the address, and several can be cancelled at once. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { ExecutionRow } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import { useTitle } from '@/app/title';
import { Empty, Failed, Loading } from '@/design/parts';
import { isFinished } from '@/design/status';
import { useCan, useMayActFor } from '@/features/session/queries';
import { BulkCancel } from './bulkCancel';
import { Filters } from './filters';
import { hasEnded, hasGap, isPast, merge, passes, type ListFilter } from './model';
import { EXECUTIONS, executionPagesQuery, newestExecutionsQuery, unfinishedQuery } from './queries';
import { ExecutionTable } from './table';

/** Shortest time between two complete reloads of the pages, in milliseconds. */
const RELOAD_MS = 5000;

/** The rows of the list, kept up to date. */
function useRows(filter: ListFilter) {
  const server = useMemo(
    () => ({ status: filter.status, workflow: filter.workflow }),
    [filter.status, filter.workflow],
  );
  const pages = useInfiniteQuery(executionPagesQuery(server));
  const newest = useQuery(newestExecutionsQuery(server));
  const unfinished = useQuery(unfinishedQuery(filter.workflow));
  const loaded = useMemo(() => pages.data?.pages.flatMap(page => page.executions) ?? [], [pages.data]);
  const fresh = newest.data?.executions;
  const open = unfinished.data?.executions;
  const rows = useMemo(() => merge(loaded, fresh ?? [], open ?? []), [loaded, fresh, open]);

  const reloadedAt = useRef(0);
  useEffect(() => {
    if (!fresh || !open || Date.now() - reloadedAt.current < RELOAD_MS) return;
    const isStale =
      hasGap(loaded, fresh, !newest.data?.nextCursor) || hasEnded(rows, open, !unfinished.data?.nextCursor);
    if (!isStale) return;
    reloadedAt.current = Date.now();
    void queryClient.invalidateQueries({ queryKey: [...EXECUTIONS, 'pages', server] });
  }, [fresh, open, loaded, rows, server, newest.data, unfinished.data]);
  return { pages, rows, isLive: !newest.isError };
}

export function ExecutionsPage() {
  useTitle('Executions');
  const can = useCan();
  const mayActFor = useMayActFor();
  const filter = useSearch({ from: '/signed-in/executions' });
  const navigate = useNavigate({ from: '/executions' });
  const change = useCallback(
    (part: Partial<ListFilter>) =>
      void navigate({ search: before => ({ ...before, ...part }), replace: 'text' in part }),
    [navigate],
  );
  const { pages, rows, isLive } = useRows(filter);
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [isCancelling, setCancelling] = useState(false);

  const now = Date.now();
  const shown = rows.filter(row => passes(row, filter, now));
  const canLoad = pages.hasNextPage && !isPast(rows.at(-1), filter, now);
  const { fetchNextPage, isFetchingNextPage } = pages;
  const onEnd = useCallback(() => {
    if (canLoad && !isFetchingNextPage) void fetchNextPage();
  }, [canLoad, isFetchingNextPage, fetchNextPage]);
  const toggle = (id: string) => {
    const next = new Set(ids);
    if (!next.delete(id)) next.add(id);
    setIds(next);
  };
  const mayCancel = (row: ExecutionRow) => !isFinished(row.status) && mayActFor(row.initiatorUserId);
  const cancellable = shown.filter(mayCancel);
  const selected = cancellable.filter(row => ids.has(row.id));

  return (
    <div className="page">
      <div className="page-head">
        <h1>Executions</h1>
        <span className="row muted small" role="status">
          <span className={isLive ? 'live-dot' : 'live-dot lost'} aria-hidden="true" />
          {isLive ? 'Live' : 'The server does not respond; trying again'}
        </span>
        <span className="spacer" />
        {can('executions:control') && (
          <>
            <button
              type="button"
              className="button"
              disabled={cancellable.length === 0}
              onClick={() => setIds(new Set(selected.length > 0 ? [] : cancellable.map(row => row.id)))}
            >
              {selected.length > 0 ? 'Clear selection' : `Select ${cancellable.length} unfinished`}
            </button>
            <button
              type="button"
              className="button danger"
              disabled={selected.length === 0}
              onClick={() => setCancelling(true)}
            >
              Cancel {selected.length > 0 ? selected.length : ''} selected…
            </button>
          </>
        )}
      </div>
      <Filters filter={filter} change={change} />
      {pages.isError && rows.length === 0 && <Failed error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isPending && <Loading what="executions" />}
      {shown.length > 0 && (
        <ExecutionTable
          rows={shown}
          onEnd={onEnd}
          {...(can('executions:control') ? { selection: { ids, toggle, isPossible: mayCancel } } : {})}
        />
      )}
      {pages.isSuccess && (
        <div className="list-end">
          {shown.length === 0 && (
            <Empty>
              {rows.length === 0
                ? 'There are no executions yet. Start one from a workflow.'
                : 'No loaded execution matches.'}
            </Empty>
          )}
          {canLoad ? (
            <button type="button" className="button" disabled={isFetchingNextPage} onClick={onEnd}>
              {isFetchingNextPage ? 'Loading…' : 'Load older executions'}
            </button>
          ) : (
            shown.length > 0 && 'These are all.'
          )}
          {shown.length !== rows.length && (
            <div>
              {shown.length} of {rows.length} loaded executions match.
            </div>
          )}
        </div>
      )}
      {isCancelling && (
        <BulkCancel
          rows={selected}
          onClose={isDone => {
            setCancelling(false);
            if (isDone) setIds(new Set());
          }}
        />
      )}
    </div>
  );
}
