/** The timeline: one row for a step instance, with a bar for each attempt on the time axis of the execution. */
import { Link } from '@tanstack/react-router';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Attempt, Execution } from '@/api/client';
import { StatusIcon, statusLabel, statusTone } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { durationText, useNow } from '@/design/time';
import { countsOf, outermostOf, rowsOf, treeOf, type Row } from './model';

/** Height of a row in pixels. */
const ROW = 28;

interface Scale {
  from: number;
  width: number;
}

interface TimelineProps {
  execution: Execution;
  attempts: Attempt[];
  chosen: string | undefined;
  /** Names of the steps of `finally`. */
  cleanup: ReadonlySet<string>;
}

export function Timeline({ execution, attempts, chosen, cleanup }: TimelineProps) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const tree = useMemo(() => treeOf(attempts), [attempts]);
  const rows = useMemo(() => rowsOf(tree, toggled), [tree, toggled]);
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const place = list.current ? Math.round(list.current.getBoundingClientRect().top + scrollY) : 0;
    if (place !== top) setTop(place);
  });
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW,
    overscan: 20,
    scrollMargin: top,
    getItemKey: index => rows[index]?.item.name ?? index,
  });
  const now = useNow();
  const from = Date.parse(execution.startedAt);
  const to = execution.completedAt ? Date.parse(execution.completedAt) : Math.max(now, from + 1);
  const scale = { from, width: Math.max(1, to - from) };
  const queued = attempts[0] ? Date.parse(attempts[0].startedAt) - from : 0;
  const toggle = (name: string) => {
    const next = new Set(toggled);
    if (!next.delete(name)) next.add(name);
    setToggled(next);
  };
  return (
    <div className="timeline card">
      <div className="timeline-head">
        <span>
          {rows.length} {rows.length === 1 ? 'row' : 'rows'}, {attempts.length}{' '}
          {attempts.length === 1 ? 'attempt' : 'attempts'}
          {queued > 50 && `, queued for ${durationText(queued)}`}
        </span>
        <span className="axis" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map(part => (
            <span key={part} style={{ left: `${part * 100}%` }}>
              {durationText(scale.width * part)}
            </span>
          ))}
        </span>
      </div>
      <div
        ref={list}
        role="list"
        aria-label="Steps in the order of their start"
        style={{ height: virtual.getTotalSize(), position: 'relative' }}
      >
        {virtual.getVirtualItems().map(place => {
          const row = rows[place.index];
          return (
            row && (
              <div
                key={place.key}
                role="listitem"
                aria-setsize={rows.length}
                aria-posinset={place.index + 1}
                className={row.item.name === chosen ? 'timeline-row chosen' : 'timeline-row'}
                style={{ height: ROW, transform: `translateY(${place.start - top}px)` }}
              >
                <Label row={row} toggle={toggle} isCleanup={cleanup.has(outermostOf(row.item.name))} />
                <Bars row={row} scale={scale} now={to} />
              </div>
            )
          );
        })}
      </div>
    </div>
  );
}

interface LabelProps {
  row: Row;
  toggle: (name: string) => void;
  isCleanup: boolean;
}

function Label({ row: { item, depth, isOpen }, toggle, isCleanup }: LabelProps) {
  const counts = item.children.length > 0 ? countsOf(item.children) : null;
  const tone = `tone-${statusTone(item.status)}`;
  return (
    <span className="timeline-label" style={{ paddingLeft: 6 + depth * 14 }}>
      {counts ? (
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          aria-label={`Rounds and steps of ${item.name}`}
          onClick={() => toggle(item.name)}
        >
          {isOpen ? '▾' : '▸'}
        </button>
      ) : (
        <span className="fold" />
      )}
      <span className={`status-dot ${tone}`} title={statusLabel(item.status)}>
        <StatusIcon status={item.status} />
      </span>
      <span className="visually-hidden">{statusLabel(item.status)}: </span>
      {item.attempts.length > 0 ? (
        <Link
          to="."
          search={before => ({ ...before, step: item.name, attempt: undefined })}
          className="truncate"
          resetScroll={false}
        >
          <Name text={item.label} max={60} />
        </Link>
      ) : (
        <span className="truncate">
          <Name text={item.label} max={60} />
        </span>
      )}
      {isCleanup && depth === 0 && <span className="tag">finally</span>}
      {counts && !isOpen && (
        <span className="small muted truncate">
          {Object.entries(counts)
            .map(([status, count]) => `${count} ${statusLabel(status).toLowerCase()}`)
            .join(', ')}
        </span>
      )}
      {item.attempts.length > 1 && <span className="small muted nowrap">{item.attempts.length} attempts</span>}
    </span>
  );
}

function Bars({ row: { item }, scale, now }: { row: Row; scale: Scale; now: number }) {
  const place = (from: number, to: number) => ({
    left: `${(Math.max(0, from - scale.from) / scale.width) * 100}%`,
    width: `${(Math.max(0, to - from) / scale.width) * 100}%`,
  });
  const end = item.to ?? now;
  const note = item.attempts.at(-1)?.note;
  return (
    <span className="bars">
      {item.attempts.length > 1 && <i className="wait-line" style={place(item.from, end)} />}
      {item.attempts.map((attempt, index) => {
        const from = Date.parse(attempt.startedAt);
        const to = attempt.completedAt ? Date.parse(attempt.completedAt) : now;
        return <i key={index} className={`bar tone-${statusTone(attempt.status)}`} style={place(from, to)} />;
      })}
      {item.attempts.length === 0 && <i className="bar round" style={place(item.from, end)} />}
      <span className="bar-text small muted">
        {item.status === 'skipped' && note ? (
          <Outside text={note.slice(0, 160)} max={160} />
        ) : (
          durationText(end - item.from)
        )}
      </span>
    </span>
  );
}
