/** Secrets: their names, and the workflows that may use each. A value is set here and never shown. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Secret } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Empty, Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { Ago } from '@/design/time';
import { useCan } from '@/features/session/queries';
import { workflowNamesQuery } from '@/features/workflows/queries';
import { SECRET_NAME, secretProblem, SECRET_WORKFLOWS_MAX } from './model';
import { More, Table } from './parts';
import { createSecret, putSecret, removeSecret, secretsQuery } from './queries';

/** Names of workflows by id. It is empty for sessions that may not read workflows. */
function useWorkflowNames(): { isRead: boolean; names: ReadonlyMap<string, string> } {
  const can = useCan();
  const list = useQuery({ ...workflowNamesQuery, enabled: can('workflows:read') });
  return { isRead: list.isSuccess, names: new Map((list.data ?? []).map(({ id, name }) => [id, name])) };
}

interface ChoiceProps {
  /** Ids of the chosen workflows; null for all. */
  chosen: ReadonlySet<string> | null;
  setChosen: (chosen: ReadonlySet<string> | null) => void;
  names: ReadonlyMap<string, string>;
}

/** All workflows, or those that are checked. */
function WorkflowChoice({ chosen, setChosen, names }: ChoiceProps) {
  const [text, setText] = useState('');
  const shown = [...names].filter(
    ([id, name]) => chosen?.has(id) || `${name} ${id}`.toLowerCase().includes(text.trim().toLowerCase()),
  );
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  return (
    <fieldset>
      <legend>Workflows that may use it</legend>
      <label className="row">
        <input type="radio" checked={chosen === null} onChange={() => setChosen(null)} /> All workflows
      </label>
      <label className="row">
        <input type="radio" checked={chosen !== null} onChange={() => setChosen(new Set())} /> Only the chosen ones
      </label>
      {chosen && (
        <div className="stack">
          <input
            className="input"
            aria-label="Find a workflow"
            placeholder="Find a workflow"
            value={text}
            onChange={event => setText(event.target.value)}
          />
          <div className="choices" tabIndex={0} role="group" aria-label="Workflows">
            {shown.map(([id, name]) => (
              <label key={id} className="row">
                <input type="checkbox" checked={chosen.has(id)} onChange={() => toggle(id)} /> <Name text={name} />
              </label>
            ))}
            {shown.length === 0 && <span className="muted">No workflow has this name.</span>}
          </div>
        </div>
      )}
    </fieldset>
  );
}

/** Creates a secret, or replaces the value of `secret`. The server replaces the workflows together with the value. */
function SetDialog({ secret, onClose }: { secret: Secret | null; onClose: () => void }) {
  const { names, isRead } = useWorkflowNames();
  const [name, setName] = useState(secret?.name ?? '');
  const [value, setValue] = useState('');
  const [isShown, setShown] = useState(false);
  const [chosen, setChosen] = useState<ReadonlySet<string> | null>(
    secret?.workflows ? new Set(secret.workflows) : null,
  );
  // The server refuses ids of workflows that were deleted since.
  const present = chosen && (isRead ? [...chosen].filter(id => names.has(id)) : [...chosen]);
  const isTooMany = (present?.length ?? 0) > SECRET_WORKFLOWS_MAX;
  const problem = value === '' ? undefined : secretProblem(value);
  const act = () => (secret ? putSecret : createSecret)(name, { value, workflows: present });
  return (
    <ActionDialog
      title={secret ? 'Set a new value' : 'Add a secret'}
      action={secret ? 'Set value' : 'Add'}
      isOpen
      isReady={SECRET_NAME.test(name) && secretProblem(value) === undefined && present?.length !== 0 && !isTooMany}
      onClose={onClose}
      act={act}
    >
      {secret ? (
        <p>
          <Name text={secret.name} /> gets this value. The present value is lost.
        </p>
      ) : (
        <Field
          label="Name"
          hint="1 to 64 letters, digits, -, _ and . A step refers to it with {secret: NAME}."
          problem={name === '' || SECRET_NAME.test(name) ? undefined : 'Use 1 to 64 letters, digits, -, _ and .'}
        >
          {attributes => (
            <input
              {...attributes}
              className="input"
              required
              autoComplete="off"
              spellCheck={false}
              value={name}
              onChange={event => setName(event.target.value)}
            />
          )}
        </Field>
      )}
      <Field
        label="Value"
        hint="8 bytes to 32 KiB of text. It is stored encrypted and not shown again."
        problem={problem}
      >
        {attributes => (
          <textarea
            {...attributes}
            className={isShown ? 'input' : 'input masked'}
            required
            rows={3}
            autoComplete="off"
            spellCheck={false}
            value={value}
            onChange={event => setValue(event.target.value)}
          />
        )}
      </Field>
      <label className="row">
        <input type="checkbox" checked={isShown} onChange={() => setShown(!isShown)} /> Show what I enter
      </label>
      <WorkflowChoice chosen={chosen} setChosen={setChosen} names={names} />
      {isTooMany && <p className="muted">Choose at most {SECRET_WORKFLOWS_MAX} workflows, or all.</p>}
    </ActionDialog>
  );
}

function WorkflowsOf({
  secret,
  names,
  isRead,
}: {
  secret: Secret;
  names: ReadonlyMap<string, string>;
  isRead: boolean;
}) {
  if (!secret.workflows) return <>All workflows</>;
  return (
    <ul>
      {secret.workflows.map(id => (
        <li key={id}>
          <Name text={names.get(id) ?? id} /> {isRead && !names.has(id) && <span className="muted">(deleted)</span>}
        </li>
      ))}
    </ul>
  );
}

export function Secrets() {
  const can = useCan();
  const pages = useInfiniteQuery(secretsQuery);
  const workflows = useWorkflowNames();
  const [asked, setAsked] = useState<{ act: 'set' | 'remove'; secret: Secret | null } | null>(null);
  const secrets = pages.data?.pages.flatMap(page => page.secrets) ?? [];
  if (pages.isPending) return <Loading what="secrets" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  const mayWrite = can('secrets:write');
  return (
    <div className="stack">
      <div className="row wrap">
        <p className="muted">Values are stored encrypted. Steps refer to them by name, and nothing shows them again.</p>
        <span className="spacer" />
        {mayWrite && (
          <button type="button" className="button primary" onClick={() => setAsked({ act: 'set', secret: null })}>
            Add secret…
          </button>
        )}
      </div>
      {secrets.length === 0 ? (
        <Empty>The organization has no secrets.</Empty>
      ) : (
        <Table label="Secrets" heads={['Name', 'Workflows', 'Set by', 'Set', ...(mayWrite ? [''] : [])]}>
          {secrets.map(secret => (
            <tr key={secret.name}>
              <td>
                <code>
                  <Name text={secret.name} />
                </code>
              </td>
              <td>
                <WorkflowsOf secret={secret} {...workflows} />
              </td>
              <td>
                <Name text={secret.setBy} max={40} />
              </td>
              <td className="muted">
                <Ago at={secret.updatedAt} />
              </td>
              {mayWrite && (
                <td className="nowrap">
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Set a new value of ${secret.name}`}
                    onClick={() => setAsked({ act: 'set', secret })}
                  >
                    Set value…
                  </button>{' '}
                  <button
                    type="button"
                    className="button small danger"
                    aria-label={`Remove ${secret.name}`}
                    onClick={() => setAsked({ act: 'remove', secret })}
                  >
                    Remove…
                  </button>
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
      <More pages={pages} />
      {asked?.act === 'set' && <SetDialog secret={asked.secret} onClose={() => setAsked(null)} />}
      {asked?.act === 'remove' && asked.secret && (
        <RemoveDialog name={asked.secret.name} onClose={() => setAsked(null)} />
      )}
    </div>
  );
}

function RemoveDialog({ name, onClose }: { name: string; onClose: () => void }) {
  return (
    <ActionDialog
      title="Remove the secret?"
      action="Remove"
      isDanger
      isOpen
      onClose={onClose}
      act={() => removeSecret(name)}
    >
      <p>
        Steps that use <Name text={name} /> fail from now on. The value cannot be restored.
      </p>
    </ActionDialog>
  );
}
