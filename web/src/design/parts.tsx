/** The small parts of every page: notices, loading, empty states, copy buttons, fields. */
import { useEffect, useId, useRef, useState, type ReactNode } from 'react';
import { messageOf } from '@/api/client';
import type { Tone } from './status';
import { Outside } from './text';

export function Notice({ tone, children, action }: { tone: Tone; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={`notice tone-${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      <div className="notice-text">{children}</div>
      {action}
    </div>
  );
}

/** A failed request, with a button to try again. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const again = retry && (
    <button type="button" className="button small" onClick={retry}>
      Try again
    </button>
  );
  return (
    <Notice tone="bad" action={again}>
      <Outside text={messageOf(error)} />
    </Notice>
  );
}

/** Stays invisible for a moment, so that fast answers do not flicker. */
export function Loading({ what }: { what: string }) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 250);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="empty" role="status">
      {isSlow && (
        <span className="row" style={{ justifyContent: 'center' }}>
          <span className="busy" aria-hidden="true" /> Loading {what}…
        </span>
      )}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className="empty">{children}</div>;
}

/** Copies a text, and says so for two seconds. */
export function CopyButton({ text, label }: { text: string | (() => string); label: string }) {
  const [isDone, setDone] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await copyText(typeof text === 'string' ? text : text());
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 2000);
  };
  return (
    <button type="button" className="button small plain" aria-label={label} onClick={() => void copy()}>
      {isDone ? 'Copied' : 'Copy'}
    </button>
  );
}

/** Writes to the clipboard; over plain HTTP, where browsers have no clipboard, through a selected field. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  problem?: string | undefined;
  children: (attributes: { id: string; 'aria-describedby': string | undefined; 'aria-invalid': boolean }) => ReactNode;
}

/** A labeled control with a hint and a message about what is wrong with it. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  const note = `${id}-note`;
  const described = hint || problem ? note : undefined;
  return (
    <div className="field">
      <label className="label" htmlFor={id}>
        {label}
      </label>
      {children({ id, 'aria-describedby': described, 'aria-invalid': problem !== undefined })}
      {described && (
        <div id={note} className={problem ? 'problem' : 'hint'}>
          {problem ?? hint}
        </div>
      )}
    </div>
  );
}

/** A hash or an id, shortened, with a button to copy the whole. */
export function ShortId({ id, label, keep = 8 }: { id: string; label: string; keep?: number }) {
  const [prefix, digits] = id.includes(':') ? id.split(':', 2) : ['', id];
  const shown = prefix === '' ? id.slice(-keep) : (digits ?? '').slice(0, keep);
  return (
    <span className="row nowrap" style={{ gap: 2, display: 'inline-flex' }}>
      <code title={id}>{shown}</code>
      <CopyButton text={id} label={`Copy ${label}`} />
    </span>
  );
}
