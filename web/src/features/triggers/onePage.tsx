/** One trigger: its source, next runs and runs so far, with test, run, enable, disable and delete. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError, type Delivery, type Trigger } from '@/api/client';
import { parseJson } from '@/api/json';
import { requestId } from '@/api/requestId';
import { useTitle } from '@/app/title';
import { ActionDialog, Dialog } from '@/design/dialog';
import { Json } from '@/design/json';
import { CopyButton, Empty, Failed, Field, Loading, Notice } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { useCan, useMayActFor } from '@/features/session/queries';
import { factsOf, outcomeOf } from './model';
import { TriggerState } from './page';
import {
  deleteTrigger,
  deliveriesQuery,
  redeliver,
  runTrigger,
  setEnabled,
  testTrigger,
  triggerQuery,
  type TriggerEvent,
} from './queries';

type Open = 'run' | 'test' | 'delete' | null;

const EXAMPLE = '{"body": {}}';

/** The event that a text describes; undefined if it is none. */
function eventOf(text: string): TriggerEvent | undefined {
  try {
    const event = parseJson(text.trim() || '{}');
    return typeof event === 'object' && event !== null && !Array.isArray(event) ? event : undefined;
  } catch {
    return undefined;
  }
}

function EventField({ text, change, isRead }: { text: string; change: (text: string) => void; isRead: boolean }) {
  return (
    <Field
      label="Event"
      hint="A JSON object with body, query and headers, for the variable mapping."
      problem={isRead ? undefined : 'This is not a JSON object.'}
    >
      {attributes => (
        <textarea
          {...attributes}
          className="input"
          rows={6}
          value={text}
          onChange={event => change(event.target.value)}
        />
      )}
    </Field>
  );
}

function RunDialog({ trigger, onClose }: { trigger: Trigger; onClose: () => void }) {
  const navigate = useNavigate();
  const [key] = useState(requestId);
  const [text, setText] = useState(EXAMPLE);
  const hasPrompt = trigger.prompts != null;
  const event = eventOf(text);
  const act = async () => {
    const id = await runTrigger(trigger.id, hasPrompt ? null : (event ?? {}), key);
    if (id) await navigate({ to: '/executions/$id', params: { id } });
  };
  if (hasPrompt) {
    return (
      <ActionDialog title="Send the prompt?" action="Send" isOpen onClose={onClose} act={act}>
        <p>The orchestrator of the organization gets the prompt now.</p>
      </ActionDialog>
    );
  }
  return (
    <ActionDialog title="Run the trigger?" action="Run" isOpen isReady={!!event} onClose={onClose} act={act}>
      <p>The workflow starts as you, with the variables that the mapping takes from the event.</p>
      <EventField text={text} change={setText} isRead={!!event} />
    </ActionDialog>
  );
}

function TestDialog({ trigger, onClose }: { trigger: Trigger; onClose: () => void }) {
  const [text, setText] = useState(EXAMPLE);
  const [result, setResult] = useState<Awaited<ReturnType<typeof testTrigger>> | null>(null);
  const [error, setError] = useState<unknown>();
  const event = eventOf(text);
  const test = async () => {
    setError(undefined);
    setResult(null);
    await testTrigger(trigger.id, event ?? {}).then(setResult, setError);
  };
  return (
    <Dialog title="Test the variable mapping" isOpen onClose={onClose}>
      <form
        className="stack"
        onSubmit={submitted => {
          submitted.preventDefault();
          if (event) void test();
        }}
      >
        <p>Nothing is started.</p>
        <EventField text={text} change={setText} isRead={!!event} />
        {error !== undefined && <Failed error={error} />}
        {result && (
          <section className="stack" aria-label="Variables">
            <Json value={result.variables} />
            {result.missing.map(one => (
              <Notice key={one.variable} tone="wait">
                <code>{one.variable}</code> has no value: <Outside text={`${one.path} ${one.reason}`} max={300} />
              </Notice>
            ))}
          </section>
        )}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            Close
          </button>
          <button className="button primary" disabled={!event}>
            Test
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** True for a run whose event or prompt can be sent again. */
function canRepeat(run: Delivery): boolean {
  return run.promptId ? run.outcome !== 'queued' : run.source === 'webhook' && !!run.executionId;
}

function Deliveries({ trigger }: { trigger: Trigger }) {
  const can = useCan();
  const mayActFor = useMayActFor();
  const navigate = useNavigate();
  const runs = useQuery(deliveriesQuery(trigger.id));
  const [repeated, setRepeated] = useState<Delivery | null>(null);
  const mayRedeliver = can('executions:start') && mayActFor(trigger.userId) && trigger.enabled;
  if (runs.isPending) return <Loading what="runs" />;
  if (runs.isError) return <Failed error={runs.error} retry={() => void runs.refetch()} />;
  if (runs.data.length === 0) return <Empty>The trigger has not run yet.</Empty>;
  return (
    <div className="table-scroll card" tabIndex={0} role="region" aria-label="Runs">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Source</th>
            <th scope="col">Outcome</th>
            <th scope="col">Response</th>
            <th scope="col">Delivery</th>
            <th scope="col">Execution</th>
            <th scope="col">Reason</th>
            <th scope="col">
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.data.map(run => {
            const [label, tone] = outcomeOf(run.outcome);
            return (
              <tr key={run.id}>
                <td className="nowrap">
                  <At at={run.at} />
                </td>
                <td>{run.source}</td>
                <td>
                  <span className={`status tone-${tone}`}>{label}</span>
                </td>
                <td>{run.status}</td>
                <td>{run.deliveryId && <Name text={run.deliveryId} max={40} />}</td>
                <td>
                  {run.executionId && (
                    <Link to="/executions/$id" params={{ id: run.executionId }}>
                      <code>{run.executionId.slice(-8)}</code>
                    </Link>
                  )}
                </td>
                <td>{run.reason && <Outside text={run.reason} max={200} />}</td>
                <td>
                  {mayRedeliver && canRepeat(run) && (
                    <button type="button" className="button small" onClick={() => setRepeated(run)}>
                      Redeliver…
                    </button>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {repeated && (
        <ActionDialog
          title="Deliver the event again?"
          action="Redeliver"
          isOpen
          onClose={() => setRepeated(null)}
          act={async () => {
            const id = await redeliver(trigger.id, repeated.id);
            if (id) await navigate({ to: '/executions/$id', params: { id } });
          }}
        >
          <p>
            {repeated.promptId
              ? 'The orchestrator gets the present prompt as a new message.'
              : 'Another execution starts as the owner of the workflow, with the present variable mapping.'}
          </p>
        </ActionDialog>
      )}
    </div>
  );
}

function Facts({ trigger }: { trigger: Trigger }) {
  const mapping = Object.entries(trigger.variableMapping as Record<string, string>);
  return (
    <dl className="facts">
      <dt>{trigger.workflowId ? 'Workflow' : 'Acts for'}</dt>
      <dd>
        {trigger.workflowId && (
          <>
            <Link to="/workflows/$id" params={{ id: trigger.workflowId }}>
              <code>{trigger.workflowId}</code>
            </Link>
            {', as '}
          </>
        )}
        <Name text={trigger.userId} />
      </dd>
      {trigger.prompts && <FactRow name="Waiting prompts" value={String(trigger.prompts.waiting)} />}
      {trigger.webhookUrl && (
        <>
          <dt>Address</dt>
          <dd>
            <code>
              <Outside text={trigger.webhookUrl} max={300} />
            </code>
            <CopyButton text={trigger.webhookUrl} label="Copy the address of the webhook" />
          </dd>
        </>
      )}
      {factsOf(trigger).map(([name, value]) => (
        <FactRow key={name} name={name} value={value} />
      ))}
      {mapping.map(([variable, path]) => (
        <FactRow key={variable} name={`Variable ${variable}`} value={path} />
      ))}
      <dt>Created</dt>
      <dd>
        <At at={trigger.createdAt} /> by <Name text={trigger.createdBy} />
      </dd>
    </dl>
  );
}

function FactRow({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>
        <Outside text={name} max={80} />
      </dt>
      <dd>
        <Outside text={value} max={300} />
      </dd>
    </>
  );
}

export function TriggerPage() {
  const { id } = useParams({ from: '/signed-in/triggers/$id' });
  const can = useCan();
  const mayActFor = useMayActFor();
  const navigate = useNavigate();
  const query = useQuery(triggerQuery(id));
  const [open, setOpen] = useState<Open>(null);
  const [error, setError] = useState<unknown>();
  const trigger = query.data?.trigger;
  useTitle(trigger?.name ?? 'Trigger');
  if (query.isPending) return <Loading what="the trigger" />;
  if (!trigger) {
    const isGone = query.error instanceof ApiError && query.error.status === 404;
    return (
      <div className="page">
        {isGone ? (
          <Notice tone="idle">There is no trigger {id} in this organization.</Notice>
        ) : (
          <Failed error={query.error} retry={() => void query.refetch()} />
        )}
      </div>
    );
  }
  const mayChange = can('workflows:write') && can('executions:start') && mayActFor(trigger.userId);
  const toggle = () => void setEnabled(id, !trigger.enabled).then(() => setError(undefined), setError);
  const close = () => setOpen(null);
  return (
    <div className="page">
      <div className="page-head">
        <h1>
          <Name text={trigger.name} />
        </h1>
        <TriggerState trigger={trigger} />
        <span className="muted">{trigger.type}</span>
        <span className="spacer" />
        {can('workflows:read') && trigger.workflowId && (
          <button type="button" className="button" onClick={() => setOpen('test')}>
            Test…
          </button>
        )}
        {mayChange && (
          <>
            <button type="button" className="button" onClick={toggle}>
              {trigger.enabled ? 'Disable' : 'Enable'}
            </button>
            <button type="button" className="button danger" onClick={() => setOpen('delete')}>
              Delete…
            </button>
          </>
        )}
        {can('executions:start') && (trigger.workflowId ?? mayActFor(trigger.userId)) && (
          <button type="button" className="button primary" onClick={() => setOpen('run')}>
            Run…
          </button>
        )}
      </div>
      {(error !== undefined || query.isError) && <Failed error={error ?? query.error} />}
      {trigger.stopped && (
        <Notice tone="bad">
          The server has stopped the trigger <Ago at={trigger.stopped.at} />:{' '}
          <Outside text={trigger.stopped.message} max={600} /> (<code>{trigger.stopped.code}</code>)
        </Notice>
      )}
      {trigger.prompts?.lastFailure && (
        <Notice tone="wait">
          The last attempt to send a prompt failed <Ago at={trigger.prompts.lastFailure.at} />:{' '}
          <Outside text={trigger.prompts.lastFailure.error} max={300} />
        </Notice>
      )}
      <div className="card card-body">
        <Facts trigger={trigger} />
      </div>
      {trigger.nextRuns.length > 0 && (
        <section className="stack" aria-labelledby="next-runs">
          <h2 id="next-runs">Next runs</h2>
          <ol className="card card-body">
            {trigger.nextRuns.map(at => (
              <li key={at}>
                <At at={at} /> <span className="muted small">{at}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {can('executions:read') && (
        <section className="stack" aria-labelledby="runs">
          <h2 id="runs">Runs</h2>
          <Deliveries trigger={trigger} />
        </section>
      )}
      {open === 'run' && <RunDialog trigger={trigger} onClose={close} />}
      {open === 'test' && <TestDialog trigger={trigger} onClose={close} />}
      {open === 'delete' && (
        <ActionDialog
          title="Delete the trigger?"
          action="Delete trigger"
          isDanger
          isOpen
          onClose={close}
          act={async () => {
            await deleteTrigger(id, query.data?.etag ?? null);
            await navigate({ to: '/triggers' });
          }}
        >
          <p>Its executions are kept. A webhook with its address is refused from now on.</p>
        </ActionDialog>
      )}
    </div>
  );
}
