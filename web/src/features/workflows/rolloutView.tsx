/** The rollout of a proposal: both definitions side by side, and the buttons that promote or abort the candidate. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Rollout, Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field, Loading, Notice, ShortId } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { useCan, useMayActFor, useMe } from '@/features/session/queries';
import { endRollout, FIGURES, rolloutQuery, rolloutStatus, thresholdTexts } from './rollouts';

/** The buttons, for those from whom the server accepts the decision. */
function Decide({ rollout, workflow }: { rollout: Rollout; workflow: Workflow }) {
  const can = useCan();
  const me = useMe();
  const mayActFor = useMayActFor();
  const [act, setAct] = useState<'promote' | 'abort' | null>(null);
  const [reason, setReason] = useState('');
  if (rollout.status !== 'running') return null;
  if (!can('approvals:decide') || me?.isPerson === false || !mayActFor(workflow.userId)) return null;
  return (
    <>
      <button type="button" className="button small primary" onClick={() => setAct('promote')}>
        Promote…
      </button>
      <button type="button" className="button small danger" onClick={() => setAct('abort')}>
        Abort…
      </button>
      {act && (
        <ActionDialog
          title={act === 'promote' ? 'Promote the candidate?' : 'Abort the rollout?'}
          action={act === 'promote' ? 'Promote' : 'Abort the rollout'}
          isDanger={act === 'abort'}
          isOpen
          isReady={reason.trim() !== ''}
          onClose={() => setAct(null)}
          act={() => endRollout(rollout, act, reason)}
        >
          <p>
            {act === 'promote'
              ? 'All new executions run the candidate.'
              : 'All new executions run the stable definition. Executions of the candidate end with it.'}
          </p>
          <Field label="Reason" hint="Recorded in the audit log.">
            {attributes => (
              <textarea
                {...attributes}
                className="input prose"
                rows={3}
                required
                maxLength={2000}
                value={reason}
                onChange={event => setReason(event.target.value)}
              />
            )}
          </Field>
        </ActionDialog>
      )}
    </>
  );
}

function Sides({ rollout: { stable, candidate } }: { rollout: Rollout }) {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label="Both definitions">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Since the begin</th>
            <th scope="col">Stable {stable.version}</th>
            <th scope="col">Candidate {candidate.version}</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Definition</th>
            <td>
              <ShortId id={stable.workflowHash} label="the hash of the stable definition" keep={10} />
            </td>
            <td>
              <ShortId id={candidate.workflowHash} label="the hash of the candidate" keep={10} />
            </td>
          </tr>
          {FIGURES.map(([label, text]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td className="number">{stable.figures ? text(stable.figures) : '–'}</td>
              <td className="number">{candidate.figures ? text(candidate.figures) : '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Judgment({ rollout }: { rollout: Rollout }) {
  const thresholds = thresholdTexts(rollout);
  const { ended, lastRefusal, verdict } = rollout;
  return (
    <div className="card-body stack">
      {ended && (
        <Notice tone={rollout.status === 'promoted' ? 'ok' : 'bad'}>
          {rollout.status === 'promoted' ? 'Promoted' : 'Aborted'}{' '}
          {ended.automatic ? 'at the thresholds, in the name of ' : 'by '}
          <Name text={ended.by} />, <At at={ended.at} />: <Outside text={ended.reason} max={600} />
        </Notice>
      )}
      {verdict && (
        <p>
          <span
            className={`status tone-${verdict.status === 'exceeded' ? 'bad' : verdict.status === 'kept' ? 'ok' : 'wait'}`}
          >
            thresholds: {verdict.status}
          </span>{' '}
          <Outside text={verdict.reasons.join('; ')} max={600} />
        </p>
      )}
      {lastRefusal && !ended && (
        <Notice tone="bad">
          The decision of the server was refused, <Ago at={lastRefusal.at} />:{' '}
          <Outside text={lastRefusal.message} max={600} /> It is repeated.
        </Notice>
      )}
      <p className="muted small">
        {rollout.percent} % of the new executions take the candidate, by the hash of their key, since{' '}
        <At at={rollout.since} />.{' '}
        {thresholds.length === 0
          ? 'No thresholds are set: people decide.'
          : `After ${rollout.minimum} executions of the candidate: ${thresholds.join('; ')}.${
              rollout.promote ? ' It is promoted when all are kept.' : ' People promote it.'
            }`}
      </p>
    </div>
  );
}

export function RolloutView({ workflow, id }: { workflow: Workflow; id: string }) {
  const query = useQuery(rolloutQuery(workflow.id, id));
  if (query.isPending) return <Loading what="the rollout" />;
  const rollout = query.data;
  if (!rollout) return <Failed error={query.error} retry={() => void query.refetch()} />;
  const [label, tone] = rolloutStatus(rollout.status);
  return (
    <section className="card" aria-labelledby="rollout">
      <div className="card-head">
        <h2 id="rollout">Rollout</h2>
        <span className={`status tone-${tone}`}>{label}</span>
        <span className="spacer" />
        <Decide rollout={rollout} workflow={workflow} />
      </div>
      {query.isError && <Failed error={query.error} />}
      <Sides rollout={rollout} />
      <Judgment rollout={rollout} />
    </section>
  );
}
