/** Settings of a workflow: name, description, tags, whether it can be started, and its deletion. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { isStale, type Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field, Notice } from '@/design/parts';
import { deleteWorkflow, updateWorkflow, type TaggedWorkflow } from './queries';
import { settingsChange, settingsForm } from './settings';

const SAVING = 'Saving…';

interface SettingsProps {
  workflow: Workflow;
  etag: string | null;
  reload: () => Promise<{ data?: TaggedWorkflow | undefined }>;
}

export function SettingsView({ workflow, etag, reload }: SettingsProps) {
  const navigate = useNavigate();
  // The workflow as it was when the form began; later reads do not replace what was typed.
  const [base, setBase] = useState<TaggedWorkflow>({ workflow, etag });
  const [form, setForm] = useState(() => settingsForm(workflow));
  const [isDeleting, setDeleting] = useState(false);
  const [error, setError] = useState<unknown>();
  const [state, setState] = useState('');
  const change = settingsChange(settingsForm(base.workflow), form);
  const restart = async () => {
    const { data: now = { workflow, etag } } = await reload();
    setBase(now);
    setForm(settingsForm(now.workflow));
    setError(undefined);
  };
  const save = async () => {
    if (!change || state === SAVING) return;
    setError(undefined);
    setState(SAVING);
    try {
      await updateWorkflow(workflow.id, base.etag, change);
      await restart();
      setState('Saved.');
    } catch (failure) {
      setError(failure);
      setState('');
    }
  };
  const remove = async () => {
    await deleteWorkflow(workflow.id, etag);
    await navigate({ to: '/workflows' });
  };
  return (
    <form
      className="run-form"
      onSubmit={event => {
        event.preventDefault();
        void save();
      }}
    >
      <Field label="Name">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            value={form.name}
            onChange={event => setForm({ ...form, name: event.target.value })}
          />
        )}
      </Field>
      <Field label="Description">
        {attributes => (
          <textarea
            {...attributes}
            className="input prose"
            rows={3}
            value={form.description}
            onChange={event => setForm({ ...form, description: event.target.value })}
          />
        )}
      </Field>
      <Field label="Tags" hint="Separated by commas.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            value={form.tags}
            onChange={event => setForm({ ...form, tags: event.target.value })}
          />
        )}
      </Field>
      <label className="row">
        <input
          type="checkbox"
          checked={form.isEnabled}
          onChange={event => setForm({ ...form, isEnabled: event.target.checked })}
        />{' '}
        Enabled: the workflow can be started
      </label>
      {error !== undefined &&
        (isStale(error) ? (
          <Notice
            tone="bad"
            action={
              <button type="button" className="button small" onClick={() => void restart()}>
                Discard and read the present settings
              </button>
            }
          >
            Your change was not saved: the workflow has changed since you opened the form.
          </Notice>
        ) : (
          <Failed error={error} />
        ))}
      <div className="row wrap">
        <button className="button primary" disabled={!change || state === SAVING}>
          Save settings
        </button>
        <span className="muted" role="status">
          {state}
        </span>
        <span className="spacer" />
        <button type="button" className="button danger" onClick={() => setDeleting(true)}>
          Delete workflow…
        </button>
      </div>
      {isDeleting && (
        <ActionDialog
          title="Delete the workflow?"
          action="Delete workflow"
          isDanger
          isOpen
          onClose={() => setDeleting(false)}
          act={remove}
        >
          <p>The workflow and its triggers are deleted. Its executions and versions remain.</p>
        </ActionDialog>
      )}
    </form>
  );
}
