/** Settings of the organization: name, features and limits of concurrent executions. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isStale } from '@/api/client';
import { Failed, Field, Loading, Notice } from '@/design/parts';
import { useCan } from '@/features/session/queries';
import { settingsChange, settingsForm, type SettingsForm } from './model';
import { settingsQuery, updateOrganization, type TaggedOrganization } from './queries';

interface FormProps {
  settings: TaggedOrganization;
  /** Starts the form again with the present settings. */
  restart: (message: string) => void;
}

function Form({ settings, restart }: FormProps) {
  const can = useCan();
  // Later reads do not reach the form: `If-Match` names the version that the reader saw.
  const [base] = useState(settings);
  const before = settingsForm(base.organization);
  const [form, setForm] = useState<SettingsForm>(before);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const isReadOnly = !can('organization:write');
  const change = settingsChange(before, form);
  const save = async () => {
    if (!change || isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await updateOrganization(change, base.etag);
      restart('Saved.');
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  const limit = (label: string, key: 'perUser' | 'perOrganization' | 'perWorkflow', isRequired: boolean) => (
    <Field label={label} {...(isRequired ? {} : { hint: 'Empty for no limit.' })}>
      {attributes => (
        <input
          {...attributes}
          className="input"
          type="number"
          min={1}
          required={isRequired}
          readOnly={isReadOnly}
          value={form[key]}
          onChange={event => setForm({ ...form, [key]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <form
      className="settings stack"
      onSubmit={event => {
        event.preventDefault();
        void save();
      }}
    >
      <Field label="Name of the organization">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            maxLength={200}
            readOnly={isReadOnly}
            value={form.name}
            onChange={event => setForm({ ...form, name: event.target.value })}
          />
        )}
      </Field>
      <fieldset className="stack">
        <legend>Concurrent executions</legend>
        <p className="muted small">Further executions wait in a queue.</p>
        {limit('Of one member', 'perUser', true)}
        {limit('Of the organization', 'perOrganization', true)}
        {limit('Of one workflow', 'perWorkflow', false)}
      </fieldset>
      <fieldset className="stack">
        <legend>Features</legend>
        {Object.entries(form.features).map(([feature, isOn]) => (
          <label key={feature} className="row">
            <input
              type="checkbox"
              disabled={isReadOnly}
              checked={isOn}
              onChange={event => setForm({ ...form, features: { ...form.features, [feature]: event.target.checked } })}
            />
            <code>{feature}</code>
          </label>
        ))}
      </fieldset>
      {error !== undefined &&
        (isStale(error) ? (
          <Notice
            tone="bad"
            action={
              <button type="button" className="button small" onClick={() => restart('')}>
                Discard and read the present settings
              </button>
            }
          >
            Your change was not saved: the settings have changed since you opened them.
          </Notice>
        ) : (
          <Failed error={error} />
        ))}
      {!isReadOnly && (
        <div className="row">
          <button className="button primary" disabled={!change || isBusy}>
            {isBusy ? 'Saving…' : 'Save settings'}
          </button>
        </div>
      )}
    </form>
  );
}

export function Settings() {
  const settings = useQuery(settingsQuery);
  const [shown, setShown] = useState({ edition: 0, message: '' });
  if (settings.isPending) return <Loading what="settings" />;
  if (settings.isError) return <Failed error={settings.error} retry={() => void settings.refetch()} />;
  const restart = (message: string) =>
    void settings.refetch().then(() => setShown(({ edition }) => ({ edition: edition + 1, message })));
  return (
    <>
      <Form key={shown.edition} settings={settings.data} restart={restart} />
      <p className="muted" role="status">
        {shown.message}
      </p>
    </>
  );
}
