/** The definition of a workflow in the editor. Saving fails if the workflow was changed since it was read. */
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { isStale as isRefusedAsStale, messageOf, type Diagnostic, type Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field, Loading, Notice } from '@/design/parts';
import { useCan, useMayActFor } from '@/features/session/queries';
import { afterSave, converted, hasChanges, opened, readAsServer, type Draft, type Syntax } from './definitionText';
import { permitsProposals, propose } from './proposals';
import { compile, updateWorkflow, type TaggedWorkflow } from './queries';

const Editor = lazy(() => import('@/features/editor/editor'));
const Source = lazy(() => import('@/features/editor/source'));

interface DefinitionProps {
  workflow: Workflow;
  etag: string | null;
  reload: () => Promise<{ data?: TaggedWorkflow | undefined }>;
}

/** The definition of a workflow that the reader may not change. */
function ReadOnly({ workflow }: { workflow: Workflow }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => void opened(workflow.data, 'yaml').then(draft => setText(draft.text)), [workflow.data]);
  return (
    <Suspense fallback={<Loading what="the editor" />}>
      {text !== null && <Source text={text} label="Definition" />}
    </Suspense>
  );
}

export function DefinitionView(props: DefinitionProps) {
  const can = useCan();
  const mayActFor = useMayActFor();
  const maySave = can('workflows:write') && mayActFor(props.workflow.userId);
  const mayPropose = can('proposals:write') && permitsProposals(props.workflow);
  const mayEdit = maySave || mayPropose;
  return mayEdit ? (
    <DefinitionEditor {...props} maySave={maySave} mayPropose={mayPropose} />
  ) : (
    <ReadOnly workflow={props.workflow} />
  );
}

function Problem({ error }: { error: unknown }) {
  if (!isRefusedAsStale(error)) return <Failed error={error} />;
  return (
    <Notice tone="bad">
      Your change was not saved: the workflow has changed since you opened it. Copy your text, then read the new
      version.
    </Notice>
  );
}

interface ProposeProps {
  workflow: Workflow;
  read: () => Promise<Record<string, unknown>>;
  onClose: () => void;
}

/** Proposes the edited definition, for a review by others. */
function ProposeDialog({ workflow, read, onClose }: ProposeProps) {
  const navigate = useNavigate();
  const [summary, setSummary] = useState('');
  const [rationale, setRationale] = useState('');
  const act = async () => {
    const proposal = await propose(workflow.id, workflow.workflowHash, {
      proposedWorkflow: await read(),
      summary: summary.trim(),
      ...(rationale.trim() ? { rationale: rationale.trim() } : {}),
    });
    await navigate({ to: '/workflows/$id', params: { id: workflow.id }, search: { view: 'proposals', proposal } });
  };
  return (
    <ActionDialog
      title="Propose the change?"
      action="Propose"
      isOpen
      isReady={summary.trim() !== ''}
      onClose={onClose}
      act={act}
    >
      <p>Nothing changes until the proposal is approved and applied.</p>
      <Field label="Summary" hint="One sentence.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            maxLength={2000}
            value={summary}
            onChange={event => setSummary(event.target.value)}
          />
        )}
      </Field>
      <Field label="Reasons" hint="Optional.">
        {attributes => (
          <textarea
            {...attributes}
            className="input prose"
            rows={4}
            maxLength={10000}
            value={rationale}
            onChange={event => setRationale(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

interface EditorProps extends DefinitionProps {
  maySave: boolean;
  mayPropose: boolean;
}

function DefinitionEditor({ workflow, etag, reload, maySave, mayPropose }: EditorProps) {
  // The workflow as it was when editing began; later reads do not replace what was typed.
  const [base, setBase] = useState<TaggedWorkflow>({ workflow, etag });
  const [draft, setDraft] = useState<Draft | null>(null);
  const [found, setFound] = useState<Diagnostic[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isProposing, setProposing] = useState(false);
  const current = useRef(draft);
  current.current = draft;
  useEffect(() => void opened(workflow.data, 'yaml').then(setDraft), []);
  const isDirty = draft !== null && hasChanges(draft);
  useEffect(() => {
    if (!isDirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [isDirty]);
  if (!draft) return <Loading what="the definition" />;

  const isStale = etag !== base.etag && !isBusy;
  const restart = async () => {
    setBase({ workflow, etag });
    setError(undefined);
    setDraft(await opened(workflow.data, draft.syntax, draft));
  };
  const save = async () => {
    setBusy(true);
    setError(undefined);
    const { text, syntax } = draft;
    try {
      await updateWorkflow(workflow.id, base.etag, { data: await readAsServer(text, syntax, compile) });
      const { data: now = base } = await reload();
      const next = await afterSave(current.current ?? draft, text, now.workflow.data);
      setBase(now);
      setDraft(next);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const convert = async (syntax: Syntax) => {
    setError(undefined);
    try {
      setDraft(await converted(draft, base.workflow.data, syntax));
    } catch (failure) {
      setError(
        new Error(`The notation was not changed, because the text cannot be read: ${messageOf(failure)}`, {
          cause: failure,
        }),
      );
    }
  };
  const hasErrors = found.some(one => one.severity === 'error');
  return (
    <div className="stack">
      <div className="row wrap">
        <select
          className="input"
          aria-label="Notation"
          value={draft.syntax}
          disabled={isBusy}
          onChange={event => void convert(event.target.value as Syntax)}
        >
          <option value="yaml">YAML</option>
          <option value="json">JSON</option>
        </select>
        <span className="muted small">{isDirty ? 'Not saved' : `Version ${base.workflow.version}`}</span>
        <span className="spacer" />
        {isDirty && (
          <button type="button" className="button" disabled={isBusy} onClick={() => void restart()}>
            Discard changes
          </button>
        )}
        {mayPropose && (
          <button
            type="button"
            className={maySave ? 'button' : 'button primary'}
            disabled={!isDirty || hasErrors || isBusy}
            onClick={() => setProposing(true)}
          >
            Propose…
          </button>
        )}
        {maySave && (
          <button
            type="button"
            className="button primary"
            disabled={!isDirty || hasErrors || isBusy}
            onClick={() => void save()}
          >
            {isBusy ? 'Saving…' : 'Save as new version'}
          </button>
        )}
      </div>
      {isStale && (
        <Notice
          tone="wait"
          action={
            <button type="button" className="button small" onClick={() => void restart()}>
              Discard and read version {workflow.version}
            </button>
          }
        >
          Another change of this workflow was saved while you edit. Saving yours will be refused.
        </Notice>
      )}
      {error !== undefined && <Problem error={error} />}
      {isProposing && (
        <ProposeDialog
          workflow={base.workflow}
          read={() => readAsServer(draft.text, draft.syntax, compile)}
          onClose={() => setProposing(false)}
        />
      )}
      <Suspense fallback={<Loading what="the editor" />}>
        <Editor
          key={draft.edition}
          text={draft.start}
          syntax={draft.syntax}
          onText={text => setDraft(before => before && { ...before, text })}
          onFound={setFound}
        />
      </Suspense>
    </div>
  );
}
