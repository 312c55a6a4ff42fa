/** The definition of a workflow in the editor. Saving fails if the workflow was changed since it was read. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useState } from 'react';
import { ApiError, type Diagnostic, type Workflow } from '@/api/client';
import { Failed, Loading, Notice } from '@/design/parts';
import { useCan } from '@/features/session/queries';
import { updateWorkflow } from './queries';

const Editor = lazy(() => import('@/features/editor/editor'));
const Source = lazy(() => import('@/features/editor/source'));

type Syntax = 'yaml' | 'json';

/** A definition as text. */
export async function written(data: unknown, syntax: Syntax): Promise<string> {
  if (syntax === 'json') return `${JSON.stringify(data, null, 2)}\n`;
  return (await import('yaml')).stringify(data, { lineWidth: 110 });
}

/** The object that a text describes. YAML includes JSON. */
export async function read(text: string): Promise<Record<string, unknown>> {
  return (await import('yaml')).parse(text) as Record<string, unknown>;
}

interface DefinitionProps {
  workflow: Workflow;
  etag: string | null;
  reload: () => Promise<unknown>;
}

export function DefinitionView({ workflow, etag, reload }: DefinitionProps) {
  const can = useCan();
  // The workflow as it was when editing began; later reads do not replace what was typed.
  const [base, setBase] = useState({ workflow, etag });
  const [syntax, setSyntax] = useState<Syntax>('yaml');
  const [typed, setTyped] = useState<string | null>(null);
  const [found, setFound] = useState<Diagnostic[]>([]);
  const [state, setState] = useState<'idle' | 'busy' | 'saved'>('idle');
  const [error, setError] = useState<unknown>();
  const original = useQuery({
    queryKey: ['text', base.workflow.workflowHash, syntax],
    queryFn: () => written(base.workflow.data, syntax),
    staleTime: Infinity,
  });
  const [text, setText] = useState<string | null>(null);
  useEffect(() => setText(original.data ?? null), [original.data]);
  const isDirty = typed !== null && typed !== original.data;
  useEffect(() => {
    if (!isDirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [isDirty]);

  if (!can('workflows:write')) {
    return (
      <Suspense fallback={<Loading what="the editor" />}>
        {text !== null && <Source text={text} label="Definition" />}
      </Suspense>
    );
  }
  const isStale = etag !== base.etag;
  const restart = () => {
    setBase({ workflow, etag });
    setTyped(null);
    setError(undefined);
  };
  const save = async () => {
    setState('busy');
    setError(undefined);
    try {
      await updateWorkflow(workflow.id, base.etag, { data: await read(typed ?? text ?? '') });
      await reload();
      setState('saved');
      setTyped(null);
    } catch (failure) {
      setError(failure);
      setState('idle');
    }
  };
  const convert = async (next: Syntax) => {
    if (isDirty) setText(await written(await read(typed ?? ''), next).catch(() => typed));
    setSyntax(next);
  };
  if (state === 'saved' && isStale) {
    setBase({ workflow, etag });
    setState('idle');
  }
  const hasErrors = found.some(one => one.severity === 'error');
  return (
    <div className="stack">
      <div className="row wrap">
        <select
          className="input"
          aria-label="Notation"
          value={syntax}
          onChange={event => void convert(event.target.value as Syntax)}
        >
          <option value="yaml">YAML</option>
          <option value="json">JSON</option>
        </select>
        <span className="muted small">{isDirty ? 'Not saved' : `Version ${base.workflow.version}`}</span>
        <span className="spacer" />
        {isDirty && (
          <button type="button" className="button" onClick={restart}>
            Discard changes
          </button>
        )}
        <button
          type="button"
          className="button primary"
          disabled={!isDirty || hasErrors || state === 'busy'}
          onClick={() => void save()}
        >
          {state === 'busy' ? 'Saving…' : 'Save as new version'}
        </button>
      </div>
      {isStale && state === 'idle' && (
        <Notice
          tone="wait"
          action={
            <button type="button" className="button small" onClick={restart}>
              Discard and read version {workflow.version}
            </button>
          }
        >
          Another change of this workflow was saved while you edit. Saving yours will be refused.
        </Notice>
      )}
      {error !== undefined &&
        (error instanceof ApiError && error.status === 412 ? (
          <Notice tone="bad">
            Your change was not saved: the workflow has changed since you opened it. Copy your text, then read the new
            version.
          </Notice>
        ) : (
          <Failed error={error} />
        ))}
      <Suspense fallback={<Loading what="the editor" />}>
        {text !== null && <Editor text={text} syntax={syntax} onText={setTyped} onFound={setFound} />}
      </Suspense>
    </div>
  );
}
