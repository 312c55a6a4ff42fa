/** The editor of definitions: text with help, findings below, and beside it the graph that follows the cursor. */
import type { EditorView } from '@codemirror/view';
import { EditorView as View } from '@codemirror/view';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import type { Diagnostic } from '@/api/client';
import { Loading } from '@/design/parts';
import { Outside } from '@/design/text';
import { planQuery } from '@/features/workflows/queries';
import { assist } from './assist';
import { mount, type Syntax } from './mount';
import { positionOfStep, stepAt } from './schema';
import './style.css';

const Graph = lazy(() => import('@/features/graph/graph'));

interface EditorProps {
  /** The text at first; later values replace what was typed. */
  text: string;
  syntax: Syntax;
  onText: (text: string) => void;
  onFound: (found: Diagnostic[]) => void;
}

/** Moves the cursor to a position and shows it. */
function go(view: EditorView, position: number) {
  view.dispatch({ selection: { anchor: position }, effects: View.scrollIntoView(position, { y: 'center' }) });
  view.focus();
}

export default function Editor({ text, syntax, onText, onFound }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const [found, setFound] = useState<Diagnostic[]>([]);
  const [compiled, setCompiled] = useState<string | null>(null);
  const [step, setStep] = useState<string | null>(null);
  const calls = useRef({ onText, onFound });
  calls.current = { onText, onFound };

  useEffect(() => {
    if (!host.current) return;
    const tell = (list: Diagnostic[], of: string) => {
      setFound(list);
      calls.current.onFound(list);
      if (!list.some(one => one.severity === 'error')) setCompiled(of);
    };
    const follow = View.updateListener.of(update => {
      if (update.docChanged) calls.current.onText(update.state.doc.toString());
      if (update.selectionSet || update.docChanged)
        setStep(stepAt(update.state.doc.toString(), update.state.selection.main.head));
    });
    const mounted = mount({
      host: host.current,
      text,
      label: 'Definition',
      syntax,
      isReadOnly: false,
      extensions: [assist(tell), follow],
    });
    view.current = mounted;
    return () => {
      view.current = null;
      mounted.destroy();
    };
  }, [text, syntax]);

  const plan = useQuery({
    ...planQuery(compiled, compiled ?? ''),
    enabled: compiled !== null,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  const choose = useCallback((template: string) => {
    const id = template.replaceAll('[]', '').split('.').at(-1) ?? '';
    const position = view.current && positionOfStep(view.current.state.doc.toString(), id);
    if (view.current && position !== null) go(view.current, position);
  }, []);
  const chosen = step && plan.data ? templateWith(plan.data.steps, step) : null;
  return (
    <div className="editor">
      <div className="stack">
        <div ref={host} className="editor-text card" />
        <Findings found={found} show={one => view.current && go(view.current, lineStart(view.current, one))} />
      </div>
      <div className="editor-graph card" aria-label="Graph" role="region">
        <Suspense fallback={<Loading what="the graph" />}>
          {plan.data && <Graph plan={plan.data} chosen={chosen ?? undefined} choose={choose} />}
        </Suspense>
        {found.some(one => one.severity === 'error') && (
          <p className="muted small editor-stale">The graph is of the last text that compiles.</p>
        )}
      </div>
    </div>
  );
}

function lineStart(view: EditorView, { line, column }: Diagnostic): number {
  const at = view.state.doc.line(Math.min(Math.max(1, line ?? 1), view.state.doc.lines));
  return Math.min(at.to, at.from + Math.max(0, (column ?? 1) - 1));
}

type Steps = { id: string; type: string; steps?: Steps; then?: Steps; else?: Steps }[];

/** The node of the graph for the step with this id. */
function templateWith(steps: Steps, id: string, loops: string[] = []): string | null {
  for (const step of steps) {
    if (step.id === id) return [...loops, id].join('.');
    const isLoop = step.type === 'loop' || step.type === 'each';
    const nested = [...(step.steps ?? []), ...(step.then ?? []), ...(step.else ?? [])];
    const found = templateWith(nested, id, isLoop ? [...loops, `${step.id}[]`] : loops);
    if (found) return found;
  }
  return null;
}

function Findings({ found, show }: { found: Diagnostic[]; show: (one: Diagnostic) => void }) {
  const errors = found.filter(one => one.severity === 'error').length;
  const warnings = found.length - errors;
  return (
    <section className="card" aria-label="Findings of the compiler">
      <div className="card-head" role="status">
        {errors > 0 ? (
          <span className="status tone-bad">{errors === 1 ? '1 error' : `${errors} errors`}</span>
        ) : (
          <span className="status tone-ok">Compiles</span>
        )}
        {warnings > 0 && (
          <span className="status tone-wait">{warnings === 1 ? '1 warning' : `${warnings} warnings`}</span>
        )}
      </div>
      {found.length > 0 && (
        <ul className="findings">
          {found.map((one, index) => (
            <li key={index}>
              <button type="button" className="finding" onClick={() => show(one)}>
                <span className={`status ${one.severity === 'error' ? 'tone-bad' : 'tone-wait'}`}>{one.severity}</span>
                <span>
                  <span className="muted">
                    {one.line ? `${one.line}:${one.column ?? 1} ` : ''}
                    <code>
                      <Outside text={one.path} max={120} />
                    </code>{' '}
                  </span>
                  <Outside text={one.message} max={400} />
                  {one.help && (
                    <span className="muted">
                      {' '}
                      <Outside text={one.help} max={400} />
                    </span>
                  )}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
