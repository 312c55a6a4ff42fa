/** Settings of the organization: name, features and limits of concurrent executions. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Organization } from '@/api/client';
import { Failed, Field, Loading } from '@/design/parts';
import { organizationQuery, useCan } from '@/features/session/queries';
import { updateOrganization } from './queries';

/** A limit as the text of its field. */
function number(text: string): number | null {
  return text.trim() === '' ? null : Number(text);
}

function Form({ organization }: { organization: Organization }) {
  const can = useCan();
  const { limits, features } = organization;
  const [name, setName] = useState(organization.name);
  const [chosen, setChosen] = useState(features);
  const [perUser, setPerUser] = useState(String(limits.perUser));
  const [perOrganization, setPerOrganization] = useState(String(limits.perOrganization));
  const [perWorkflow, setPerWorkflow] = useState(String(limits.perWorkflow ?? ''));
  const [state, setState] = useState('');
  const [error, setError] = useState<unknown>();
  const isReadOnly = !can('organization:write');
  const save = async () => {
    setState('Saving…');
    setError(undefined);
    try {
      await updateOrganization({
        name,
        features: chosen as Record<string, boolean>,
        limits: {
          perUser: Number(perUser),
          perOrganization: Number(perOrganization),
          perWorkflow: number(perWorkflow),
        },
      });
      setState('Saved.');
    } catch (failure) {
      setState('');
      setError(failure);
    }
  };
  const limit = (label: string, value: string, set: (value: string) => void, isRequired: boolean) => (
    <Field label={label} {...(isRequired ? {} : { hint: 'Empty for no limit.' })}>
      {attributes => (
        <input
          {...attributes}
          className="input"
          type="number"
          min={1}
          required={isRequired}
          readOnly={isReadOnly}
          value={value}
          onChange={event => set(event.target.value)}
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
            value={name}
            onChange={event => setName(event.target.value)}
          />
        )}
      </Field>
      <fieldset className="stack">
        <legend>Concurrent executions</legend>
        <p className="muted small">Further executions wait in a queue.</p>
        {limit('Of one member', perUser, setPerUser, true)}
        {limit('Of the organization', perOrganization, setPerOrganization, true)}
        {limit('Of one workflow', perWorkflow, setPerWorkflow, false)}
      </fieldset>
      <fieldset className="stack">
        <legend>Features</legend>
        {Object.entries(chosen as Record<string, boolean>).map(([feature, isOn]) => (
          <label key={feature} className="row">
            <input
              type="checkbox"
              disabled={isReadOnly}
              checked={isOn}
              onChange={event => setChosen({ ...(chosen as object), [feature]: event.target.checked })}
            />
            <code>{feature}</code>
          </label>
        ))}
      </fieldset>
      {error !== undefined && <Failed error={error} />}
      {!isReadOnly && (
        <div className="row">
          <button className="button primary">Save settings</button>
          <span className="muted" role="status">
            {state}
          </span>
        </div>
      )}
    </form>
  );
}

export function Settings() {
  const organization = useQuery(organizationQuery);
  if (organization.isPending) return <Loading what="settings" />;
  if (organization.isError) return <Failed error={organization.error} retry={() => void organization.refetch()} />;
  return <Form key={organization.data.id} organization={organization.data} />;
}
