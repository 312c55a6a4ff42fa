/** Settings of a workflow: name, description, tags, whether it can be started, and its deletion. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field } from '@/design/parts';
import { deleteWorkflow, updateWorkflow } from './queries';

export function SettingsView({ workflow, etag }: { workflow: Workflow; etag: string | null }) {
  const navigate = useNavigate();
  const [name, setName] = useState(workflow.name);
  const [description, setDescription] = useState(workflow.description ?? '');
  const [tags, setTags] = useState(workflow.tags.join(', '));
  const [isEnabled, setEnabled] = useState(workflow.enabled);
  const [isDeleting, setDeleting] = useState(false);
  const [error, setError] = useState<unknown>();
  const [state, setState] = useState('');
  const save = async () => {
    setError(undefined);
    setState('Saving…');
    const list = tags.split(',').flatMap(tag => tag.trim() || []);
    const body = { name, description: description || null, tags: list.length > 0 ? list : null, enabled: isEnabled };
    try {
      await updateWorkflow(workflow.id, etag, body);
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
            value={name}
            onChange={event => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="Description">
        {attributes => (
          <textarea
            {...attributes}
            className="input prose"
            rows={3}
            value={description}
            onChange={event => setDescription(event.target.value)}
          />
        )}
      </Field>
      <Field label="Tags" hint="Separated by commas.">
        {attributes => (
          <input {...attributes} className="input" value={tags} onChange={event => setTags(event.target.value)} />
        )}
      </Field>
      <label className="row">
        <input type="checkbox" checked={isEnabled} onChange={event => setEnabled(event.target.checked)} /> Enabled: the
        workflow can be started
      </label>
      {error !== undefined && <Failed error={error} />}
      <div className="row wrap">
        <button className="button primary">Save settings</button>
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
