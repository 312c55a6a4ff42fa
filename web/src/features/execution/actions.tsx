/** The actions on an execution: cancel, signal, run again with edited input, and copies as text. */
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Attempt, Execution } from '@/api/client';
import { parseJson } from '@/api/json';
import { requestId } from '@/api/requestId';
import { ActionDialog } from '@/design/dialog';
import { Menu, MenuItem } from '@/design/menu';
import { copyText, Field } from '@/design/parts';
import { isFinished } from '@/design/status';
import { cancelExecution } from '@/features/executions/queries';
import { useCan, useMayActFor } from '@/features/session/queries';
import { planQuery, type PlanStep } from '@/features/workflows/queries';
import { queryClient } from '@/app/queryClient';
import { curlOf, scenarioOf } from './copies';
import { templateOf } from './model';
import { refresh, sendSignal, snapshotQuery } from './queries';

type Open = 'cancel' | 'signal' | null;

/** The value of a JSON text; undefined if it is none. */
export function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: text.trim() === '' ? undefined : parseJson(text) };
  } catch {
    return undefined;
  }
}

function CancelDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [reason, setReason] = useState('');
  const act = async () => {
    await cancelExecution(id, reason);
    await refresh(id);
  };
  return (
    <ActionDialog title="Cancel the execution?" action="Cancel execution" isDanger isOpen onClose={onClose} act={act}>
      <p>
        Running attempts are stopped, and child executions are cancelled. Steps that are complete keep their results.
      </p>
      <Field label="Reason" hint="Optional. Recorded in the journal and the audit log.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            maxLength={200}
            value={reason}
            onChange={event => setReason(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

function SignalDialog({ id, names, onClose }: { id: string; names: string[]; onClose: () => void }) {
  const [key] = useState(() => requestId());
  const [name, setName] = useState(names[0] ?? '');
  const [payload, setPayload] = useState('');
  const value = parsed(payload);
  const act = () => sendSignal(id, { id: key, name, payload: value?.value ?? null });
  return (
    <ActionDialog
      title="Send a signal"
      action="Send"
      isOpen
      isReady={name !== '' && value !== undefined}
      onClose={onClose}
      act={act}
    >
      <p>A step that waits for the name receives the payload. A signal that arrives before its step is buffered.</p>
      <Field label="Name" hint={names.length > 0 ? `The workflow waits for ${names.join(', ')}.` : undefined}>
        {attributes => (
          <input
            {...attributes}
            className="input"
            maxLength={200}
            required
            value={name}
            onChange={event => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="Payload" hint="JSON; empty for null." problem={value ? undefined : 'This is not JSON.'}>
        {attributes => (
          <textarea
            {...attributes}
            className="input"
            rows={5}
            value={payload}
            onChange={event => setPayload(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

/** All steps of a plan with the names that their instances have, rounds as `[]`. */
export function stepsByTemplate(steps: PlanStep[], loops: string[] = []): [string, PlanStep][] {
  return steps.flatMap(step => {
    const own: [string, PlanStep] = [[...loops, step.id].join('.'), step];
    const inLoop = [...loops, `${step.id}[]`];
    const isLoop = step.type === 'loop' || step.type === 'each';
    // The body of a `forEach` step has the name of the round alone.
    const body = (step.body ?? []).map((inner): [string, PlanStep] => [inLoop.join('.'), inner]);
    const nested = [...(step.steps ?? []), ...(step.then ?? []), ...(step.else ?? [])];
    return [own, ...body, ...stepsByTemplate(nested, isLoop ? inLoop : loops)];
  });
}

/** The plan of an execution's own definition; null without the right to read definitions. */
async function planOf(id: string) {
  const snapshot = await queryClient.fetchQuery(snapshotQuery(id)).catch(() => null);
  return snapshot ? await queryClient.fetchQuery(planQuery(snapshot, id)).catch(() => null) : null;
}

async function copyScenario(execution: Execution, attempts: Attempt[]) {
  const plan = await planOf(execution.id);
  const kinds = new Map(
    stepsByTemplate([...(plan?.steps ?? []), ...(plan?.finally ?? [])]).map(([name, step]) => [name, step.type]),
  );
  const { stringify } = await import('yaml');
  await copyText(stringify(scenarioOf(execution, attempts, kinds, templateOf)));
}

export function Actions({
  execution,
  attempts,
  signals,
}: {
  execution: Execution;
  attempts: Attempt[];
  signals: string[];
}) {
  const can = useCan();
  const mayActFor = useMayActFor();
  const mayControl = can('executions:control') && mayActFor(execution.initiatorUserId);
  const navigate = useNavigate();
  const [open, setOpen] = useState<Open>(null);
  const [copied, setCopied] = useState('');
  const close = () => setOpen(null);
  const isOver = isFinished(execution.status);
  const copy = (name: string, act: () => Promise<void>) => () =>
    void act().then(
      () => setCopied(`${name} copied.`),
      () => setCopied(`${name} could not be copied.`),
    );
  const { workflowId, id } = execution;
  return (
    <div className="row wrap">
      <span className="muted small" role="status">
        {copied}
      </span>
      {mayControl && !isOver && (
        <>
          <button type="button" className="button" onClick={() => setOpen('signal')}>
            Signal…
          </button>
          <button
            type="button"
            className="button danger"
            disabled={execution.status === 'cancel_requested'}
            onClick={() => setOpen('cancel')}
          >
            {execution.status === 'cancel_requested' ? 'Cancelling…' : 'Cancel…'}
          </button>
        </>
      )}
      {can('executions:start') && workflowId && !execution.parentExecutionId && (
        <button
          type="button"
          className="button"
          onClick={() =>
            void navigate({ to: '/workflows/$id', params: { id: workflowId }, search: { view: 'run', rerun: id } })
          }
        >
          Run again…
        </button>
      )}
      <Menu label="Copy">
        <MenuItem act={copy('Link', () => copyText(location.href))}>Link to this view</MenuItem>
        <MenuItem act={copy('Command', () => copyText(curlOf(execution, location.origin, requestId())))}>
          Start as a curl command
        </MenuItem>
        <MenuItem act={copy('Scenario', () => copyScenario(execution, attempts))}>Scenario file</MenuItem>
      </Menu>
      {open === 'cancel' && <CancelDialog id={id} onClose={close} />}
      {open === 'signal' && <SignalDialog id={id} names={signals} onClose={close} />}
    </div>
  );
}
