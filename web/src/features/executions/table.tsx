/** The rows of executions. Only those in view are in the document, so the length of the list costs nothing. */
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { ExecutionRow } from '@/api/client';
import { Status } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { Ago, Span } from '@/design/time';
import { rowError } from './queries';
import './style.css';

/** Height of a row in pixels; narrow windows stack the cells of a row. */
const ROW = 34;
const ROW_NARROW = 64;

const isNarrow = () => innerWidth <= 640;

interface TableProps {
  rows: ExecutionRow[];
  selection?: { ids: ReadonlySet<string>; isPossible: (row: ExecutionRow) => boolean; toggle: (id: string) => void };
  label?: string;
  /** Called when the end of the rows comes near. */
  onEnd?: () => void;
}

export function ExecutionTable({ rows, selection, onEnd, label = 'Executions' }: TableProps) {
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(
    () => setTop(list.current ? list.current.getBoundingClientRect().top + scrollY : 0),
    [rows.length === 0],
  );
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => (isNarrow() ? ROW_NARROW : ROW),
    overscan: 12,
    scrollMargin: top,
    getItemKey: index => rows[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last >= rows.length - 20) onEnd?.();
  }, [last, rows.length, onEnd]);

  return (
    <div
      className={selection ? 'executions selectable' : 'executions'}
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
    >
      <div role="rowgroup">
        <div role="row" className="execution-row head" aria-rowindex={1}>
          {selection && (
            <span role="columnheader">
              <span className="visually-hidden">Selected</span>
            </span>
          )}
          <span role="columnheader">Status</span>
          <span role="columnheader">Workflow</span>
          <span role="columnheader">Execution</span>
          <span role="columnheader">Trigger</span>
          <span role="columnheader">Started</span>
          <span role="columnheader">Duration</span>
          <span role="columnheader">Detail</span>
        </div>
      </div>
      <div role="rowgroup" ref={list} style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {items.map(item => {
          const row = rows[item.index];
          if (!row) return null;
          return (
            <div
              key={item.key}
              role="row"
              aria-rowindex={item.index + 2}
              className="execution-row"
              style={{ height: item.size, transform: `translateY(${item.start - top}px)` }}
            >
              {selection && (
                <span role="cell" className="cell-select">
                  {selection.isPossible(row) && (
                    <input
                      type="checkbox"
                      aria-label={`Select execution ${row.id}`}
                      checked={selection.ids.has(row.id)}
                      onChange={() => selection.toggle(row.id)}
                    />
                  )}
                </span>
              )}
              <Cells row={row} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Cells({ row }: { row: ExecutionRow }) {
  const error = rowError(row);
  return (
    <>
      <span role="cell" className="cell-status">
        <Status status={row.status} outcome={row.outcome} />
      </span>
      <span role="cell" className="cell-workflow truncate">
        <Link to="/executions/$id" params={{ id: row.id }}>
          <Name text={row.workflowName ?? 'unnamed'} max={80} />
        </Link>{' '}
        <span className="muted small">{row.workflowVersion}</span>
      </span>
      <span role="cell" className="cell-id truncate">
        <code>{row.id}</code>
      </span>
      <span role="cell" className="cell-trigger truncate muted">
        {row.triggerType}
        {row.initiatorUserId && (
          <>
            {' '}
            · <Name text={row.initiatorUserId} max={30} />
          </>
        )}
      </span>
      <span role="cell" className="cell-started muted">
        <Ago at={row.startedAt} />
      </span>
      <span role="cell" className="cell-duration">
        <Span from={row.startedAt} to={row.completedAt} />
      </span>
      <span role="cell" className="cell-detail truncate">
        {error && <Outside text={error.slice(0, 300)} max={300} />}
      </span>
    </>
  );
}
