/** Event subscriptions: endpoints that receive signed events, their state, and events that were not delivered. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Subscription } from '@/api/client';
import { ActionDialog, Dialog } from '@/design/dialog';
import { CopyButton, Empty, Failed, Field, Loading, Notice } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { More, Table } from './parts';
import {
  createSubscription,
  failedEventsQuery,
  redeliver,
  removeSubscription,
  subscriptionsQuery,
  switchSubscription,
  testSubscription,
} from './queries';

/** Words that are separated by spaces, commas or lines. */
const words = (text: string) => text.split(/[\s,]+/).filter(word => word !== '');

function CreateDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (secret: string) => void }) {
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [types, setTypes] = useState('workflow.execution.*');
  const [workflows, setWorkflows] = useState('');
  const act = async () => {
    const named = words(workflows);
    onCreated(
      await createSubscription({
        name: name.trim(),
        url: url.trim(),
        types: words(types),
        workflows: named.length > 0 ? named : null,
      }),
    );
  };
  return (
    <ActionDialog
      title="Subscribe to events"
      action="Subscribe"
      isOpen
      isReady={name.trim() !== '' && url.trim() !== '' && words(types).length > 0}
      onClose={onClose}
      act={act}
    >
      <Field label="Name">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            maxLength={200}
            value={name}
            onChange={event => setName(event.target.value)}
          />
        )}
      </Field>
      <Field
        label="Endpoint"
        hint="Receives a POST request for each event. Private addresses need the operator's permission."
      >
        {attributes => (
          <input
            {...attributes}
            className="input"
            type="url"
            required
            maxLength={2000}
            value={url}
            onChange={event => setUrl(event.target.value)}
          />
        )}
      </Field>
      <Field label="Types" hint="Types of events or prefixes, as workflow.step.*">
        {attributes => (
          <input {...attributes} className="input" value={types} onChange={event => setTypes(event.target.value)} />
        )}
      </Field>
      <Field label="Workflows" hint="Ids or slugs; empty for all workflows of the organization.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            value={workflows}
            onChange={event => setWorkflows(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

function State({ subscription }: { subscription: Subscription }) {
  const { enabled, paused, overflowedAt, lastFailure } = subscription;
  const [tone, label] = !enabled
    ? ['tone-idle', 'Disabled']
    : paused
      ? ['tone-bad', 'Paused']
      : overflowedAt
        ? ['tone-bad', 'Overflowed']
        : subscription.failures > 0
          ? ['tone-wait', 'Failing']
          : ['tone-ok', 'Enabled'];
  return (
    <>
      <span className={`status ${tone}`}>{label}</span>
      {paused && (
        <div className="small muted">
          <Outside text={paused.message} max={200} />
        </div>
      )}
      {lastFailure && (
        <div className="small muted">
          <Outside text={lastFailure.error} max={100} />, <Ago at={lastFailure.at} />
        </div>
      )}
    </>
  );
}

function FailedDialog({ subscription, onClose }: { subscription: Subscription; onClose: () => void }) {
  const pages = useInfiniteQuery(failedEventsQuery(subscription.id));
  const [result, setResult] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const failed = pages.data?.pages.flatMap(page => page.failed) ?? [];
  const again = async (id: string) => {
    setBusy(true);
    try {
      const sent = await redeliver(subscription.id, id);
      setResult(sent.error ? `It failed again: ${sent.error}.` : 'It was delivered.');
    } catch (error) {
      setResult(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title="Events that were not delivered" isOpen isWide onClose={onClose}>
      {pages.isPending && <Loading what="failed events" />}
      {pages.isError && <Failed error={pages.error} retry={() => void pages.refetch()} />}
      {pages.data && failed.length === 0 && <Empty>Every event was delivered or still waits.</Empty>}
      {result && <p role="status">{result}</p>}
      {failed.length > 0 && (
        <Table label="Failed events" heads={['Event', 'Execution', 'Attempts', 'Error', 'Last attempt', '']}>
          {failed.map(event => (
            <tr key={event.id}>
              <td>
                <code>{event.eventType}</code>
              </td>
              <td>
                <Link to="/executions/$id" params={{ id: event.executionId }}>
                  <code>{event.executionId}</code>
                </Link>
              </td>
              <td>{event.attempts}</td>
              <td>
                <Outside text={event.error} max={100} />
              </td>
              <td className="muted">
                <At at={event.failedAt} />
              </td>
              <td>
                <button type="button" className="button small" disabled={isBusy} onClick={() => void again(event.id)}>
                  Send again
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <More pages={pages} />
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function Row({ subscription, onAct }: { subscription: Subscription; onAct: (asked: Asked) => void }) {
  const { id, name, enabled, paused, overflowedAt } = subscription;
  const isOff = !enabled || paused != null || overflowedAt != null;
  return (
    <tr>
      <td>
        <Name text={name} />
        <div className="small muted">
          <Outside text={subscription.url} max={200} />
        </div>
      </td>
      <td className="muted">
        {subscription.types.join(', ')}
        {subscription.workflows && <div className="small">{subscription.workflows.join(', ')}</div>}
      </td>
      <td>
        <State subscription={subscription} />
      </td>
      <td>{subscription.waitingExecutions}</td>
      <td className="nowrap">
        <button
          type="button"
          className="button small"
          aria-label={`Test ${name}`}
          onClick={() => onAct({ subscription, act: 'test' })}
        >
          Test
        </button>{' '}
        <button
          type="button"
          className="button small"
          aria-label={`Failed events of ${name}`}
          onClick={() => onAct({ subscription, act: 'failed' })}
        >
          Failed…
        </button>{' '}
        <button
          type="button"
          className="button small"
          aria-label={`${isOff ? 'Enable' : 'Disable'} ${name}`}
          onClick={() => onAct({ subscription, act: isOff ? 'enable' : 'disable' })}
        >
          {isOff ? 'Enable' : 'Disable'}…
        </button>{' '}
        <button
          type="button"
          className="button small danger"
          aria-label={`Delete ${name}`}
          data-id={id}
          onClick={() => onAct({ subscription, act: 'delete' })}
        >
          Delete…
        </button>
      </td>
    </tr>
  );
}

interface Asked {
  subscription: Subscription;
  act: 'test' | 'failed' | 'enable' | 'disable' | 'delete';
}

const QUESTIONS = {
  enable: {
    title: 'Enable the subscription?',
    action: 'Enable',
    text: 'Events are sent from now on, those that wait first. A pause ends.',
  },
  disable: {
    title: 'Disable the subscription?',
    action: 'Disable',
    text: 'Events that wait are dropped, and later ones are not recorded.',
  },
  delete: {
    title: 'Delete the subscription?',
    action: 'Delete',
    text: 'Events that wait and failed ones are removed.',
  },
} as const;

export function Subscriptions() {
  const pages = useInfiniteQuery(subscriptionsQuery);
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [result, setResult] = useState<{ ok: boolean; text: string } | null>(null);
  const subscriptions = pages.data?.pages.flatMap(page => page.subscriptions) ?? [];
  const begin = (next: Asked) => {
    if (next.act !== 'test') return setAsked(next);
    setResult(null);
    testSubscription(next.subscription.id).then(
      sent =>
        setResult(
          sent.error
            ? { ok: false, text: `${next.subscription.name} did not take the test event: ${sent.error}.` }
            : { ok: true, text: `${next.subscription.name} took the test event.` },
        ),
      (error: unknown) => setResult({ ok: false, text: error instanceof Error ? error.message : String(error) }),
    );
  };
  if (pages.isPending) return <Loading what="subscriptions" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  const question = asked && asked.act !== 'test' && asked.act !== 'failed' ? QUESTIONS[asked.act] : null;
  return (
    <div className="stack">
      <div className="row">
        <span className="spacer" />
        <button type="button" className="button primary" onClick={() => setCreating(true)}>
          Subscribe…
        </button>
      </div>
      {result && (
        <Notice tone={result.ok ? 'ok' : 'bad'}>
          <span role="status">
            <Outside text={result.text} max={400} />
          </span>
        </Notice>
      )}
      {subscriptions.length === 0 ? (
        <Empty>No endpoint receives events.</Empty>
      ) : (
        <Table label="Event subscriptions" heads={['Endpoint', 'Events', 'State', 'Waiting executions', '']}>
          {subscriptions.map(subscription => (
            <Row key={subscription.id} subscription={subscription} onAct={begin} />
          ))}
        </Table>
      )}
      <More pages={pages} />
      {isCreating && <CreateDialog onClose={() => setCreating(false)} onCreated={setSecret} />}
      {asked?.act === 'failed' && <FailedDialog subscription={asked.subscription} onClose={() => setAsked(null)} />}
      {asked && question && (
        <ActionDialog
          title={question.title}
          action={question.action}
          isDanger={asked.act !== 'enable'}
          isOpen
          onClose={() => setAsked(null)}
          act={() =>
            asked.act === 'delete'
              ? removeSubscription(asked.subscription.id)
              : switchSubscription(asked.subscription.id, asked.act === 'enable' ? 'enable' : 'disable')
          }
        >
          <p>
            <Name text={asked.subscription.name} />: {question.text}
          </p>
        </ActionDialog>
      )}
      <Dialog title="The secret of the subscription" isOpen={secret !== null} onClose={() => setSecret(null)}>
        <Notice tone="wait">Copy the secret now. It is not shown again. Endpoints check signatures with it.</Notice>
        <div className="row">
          <code className="created-token">{secret}</code>
          <CopyButton text={secret ?? ''} label="Copy the secret" />
        </div>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={() => setSecret(null)}>
            Close
          </button>
        </div>
      </Dialog>
    </div>
  );
}
