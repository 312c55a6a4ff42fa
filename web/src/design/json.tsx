/** A JSON value as a tree. Branches open on demand, so depth and size cost nothing until they are looked at. */
import { useState } from 'react';
import { Outside } from './text';

/** Members of an object or a list that one press of a button adds. */
const PAGE = 100;

/** Levels that are open at first, and members up to which a branch is open at first. */
const OPEN_DEPTH = 2;
const OPEN_MEMBERS = 20;

function Scalar({ value }: { value: unknown }) {
  if (typeof value !== 'string') return <span className="other">{String(value)}</span>;
  return (
    <span className="string">
      <Outside text={value} />
    </span>
  );
}

function Branch({ value, depth }: { value: object; depth: number }) {
  const isList = Array.isArray(value);
  const members = Object.entries(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && members.length <= OPEN_MEMBERS);
  const [shown, setShown] = useState(PAGE);
  const summary = isList ? `[${members.length}]` : `{${members.length}}`;
  if (members.length === 0) return <span className="other">{isList ? '[]' : '{}'}</span>;
  return (
    <>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? '▾' : '▸'} {summary}
        <span className="visually-hidden">{isList ? ' items' : ' members'}</span>
      </button>
      {isOpen && (
        <ul>
          {members.slice(0, shown).map(([key, member]) => (
            <li key={key}>
              <span className="key">
                <Outside text={key} max={200} />:{' '}
              </span>
              <Node value={member} depth={depth + 1} />
            </li>
          ))}
          {members.length > shown && (
            <li>
              <button type="button" onClick={() => setShown(shown + PAGE)}>
                {members.length - shown} more
              </button>
            </li>
          )}
        </ul>
      )}
    </>
  );
}

function Node({ value, depth }: { value: unknown; depth: number }) {
  return typeof value === 'object' && value !== null ? (
    <Branch value={value} depth={depth} />
  ) : (
    <Scalar value={value} />
  );
}

/** The tree of a value. */
export function Json({ value }: { value: unknown }) {
  return (
    <div className="json">
      <Node value={value} depth={0} />
    </div>
  );
}
