/** Proposals of a workflow: the list, and one with its difference, findings and reviews, to approve, reject or apply. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { ApiError, type ProposalDetail, type Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Json } from '@/design/json';
import { Empty, Failed, Field, Loading, Notice, ShortId } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { useCan, useMayActFor, useMe } from '@/features/session/queries';
import {
  apply,
  WHILE_RUNNING,
  type WhileRunning,
  comparisonOf,
  isValidRollout,
  permitsRollout,
  kindText,
  permitsProposals,
  proposalQuery,
  proposalsQuery,
  proposalStatus,
  review,
  riskTone,
  textLines,
  type Change,
  type Comparison,
} from './proposals';
import { MigrationView } from './migrationView';
import { RolloutView } from './rolloutView';
import { ShadowView } from './shadowView';
import { DiffLine } from './versionsView';

interface ProposalsProps {
  workflow: Workflow;
  chosen: string | undefined;
}

function StatusOf({ status }: { status: string }) {
  const [label, tone] = proposalStatus(status);
  return <span className={`status tone-${tone}`}>{label}</span>;
}

export function ProposalsView({ workflow, chosen }: ProposalsProps) {
  const pages = useInfiniteQuery(proposalsQuery(workflow.id));
  const proposals = pages.data?.pages.flatMap(page => page.proposals) ?? [];
  if (chosen) return <OneProposal workflow={workflow} id={chosen} />;
  if (pages.isPending) return <Loading what="proposals" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  if (proposals.length === 0) {
    return (
      <Empty>
        {permitsProposals(workflow)
          ? 'No change is proposed. Edit the definition and choose Propose to have a change reviewed.'
          : 'The workflow accepts no proposals. Its definition permits them with constraints.allowSelfModification: true.'}
      </Empty>
    );
  }
  return (
    <div className="stack">
      <div className="table-scroll card" tabIndex={0} role="region" aria-label="Proposals">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Summary</th>
              <th scope="col">Status</th>
              <th scope="col">By</th>
              <th scope="col">Proposed</th>
              <th scope="col">Expires</th>
            </tr>
          </thead>
          <tbody>
            {proposals.map(proposal => (
              <tr key={proposal.id}>
                <td>
                  <Link to="." search={{ view: 'proposals', proposal: proposal.id }}>
                    <Name text={proposal.proposal.summary ?? `Proposal ${proposal.id.slice(-8)}`} />
                  </Link>
                </td>
                <td>
                  <StatusOf status={proposal.status} />
                </td>
                <td>
                  <Name text={proposal.proposedBy} max={40} />
                  {proposal.proposedBySessionId && <span className="tag">session</span>}
                </td>
                <td>
                  <Ago at={proposal.createdAt} />
                </td>
                <td>
                  <Ago at={proposal.expiresAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages.hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={pages.isFetchingNextPage}
          onClick={() => void pages.fetchNextPage()}
        >
          Load older proposals
        </button>
      )}
    </div>
  );
}

/** The actions that the status and the rights of the reader allow. */
function ProposalActions({ proposal, workflow }: { proposal: ProposalDetail; workflow: Workflow }) {
  const can = useCan();
  const me = useMe();
  const mayActFor = useMayActFor();
  // The dialog keeps the proposal that was shown when it opened: the review is bound to it.
  const [asked, setAsked] = useState<{ act: 'approve' | 'reject' | 'apply'; proposal: ProposalDetail } | null>(null);
  const [notes, setNotes] = useState('');
  const [whileRunning, setWhileRunning] = useState<WhileRunning>('pin');
  const [share, setShare] = useState('');
  const [minimum, setMinimum] = useState('20');
  const [failures, setFailures] = useState('');
  const rollout =
    share === ''
      ? null
      : {
          percent: Number(share),
          minimum: Number(minimum),
          maxFailureRatePercent: failures === '' ? null : Number(failures),
        };
  if (!can('approvals:decide') || me?.isPerson === false || !mayActFor(workflow.userId)) return null;
  const close = () => setAsked(null);
  const isOpen = proposal.status === 'pending' || proposal.status === 'approved';
  if (!isOpen) return null;
  return (
    <>
      {proposal.status === 'pending' && (
        <button type="button" className="button primary" onClick={() => setAsked({ act: 'approve', proposal })}>
          Approve…
        </button>
      )}
      {proposal.status === 'approved' && (
        <button type="button" className="button primary" onClick={() => setAsked({ act: 'apply', proposal })}>
          Apply…
        </button>
      )}
      <button type="button" className="button danger" onClick={() => setAsked({ act: 'reject', proposal })}>
        Reject…
      </button>
      {asked && asked.act !== 'apply' && (
        <ActionDialog
          title={asked.act === 'approve' ? 'Approve the change?' : 'Reject the change?'}
          action={asked.act === 'approve' ? 'Approve' : 'Reject'}
          isDanger={asked.act === 'reject'}
          isOpen
          onClose={close}
          act={() => review(asked.proposal, asked.act === 'approve', notes)}
        >
          <p>The review holds for the difference and the started workflows as they are shown.</p>
          <Field label="Notes" hint="Optional. For the author, recorded in the audit log.">
            {attributes => (
              <textarea
                {...attributes}
                className="input prose"
                rows={3}
                maxLength={2000}
                value={notes}
                onChange={event => setNotes(event.target.value)}
              />
            )}
          </Field>
        </ActionDialog>
      )}
      {asked?.act === 'apply' && (
        <ActionDialog
          title="Apply the change?"
          action="Apply"
          isOpen
          isReady={rollout === null || (isValidRollout(rollout) && permitsRollout(whileRunning))}
          onClose={close}
          act={() => apply(asked.proposal, whileRunning, rollout)}
        >
          <p>
            {rollout
              ? 'Some of the new executions run the proposed definition, until it is promoted or aborted.'
              : whileRunning === 'migrate'
                ? 'New executions run the proposed definition. Each running execution continues with it where what has begun is the same, or stays with its own.'
                : 'New executions run the proposed definition. Running executions keep theirs.'}
          </p>
          <Field label="Share in percent" hint="1 to 99 begins a rollout. Empty: all new executions.">
            {attributes => (
              <input
                {...attributes}
                className="input"
                type="number"
                min={1}
                max={99}
                value={share}
                onChange={event => setShare(event.target.value)}
              />
            )}
          </Field>
          {rollout && (
            <>
              <Field label="Abort above this failure rate in percent" hint="Optional. Empty: people decide.">
                {attributes => (
                  <input
                    {...attributes}
                    className="input"
                    type="number"
                    min={0}
                    max={100}
                    step="any"
                    value={failures}
                    onChange={event => setFailures(event.target.value)}
                  />
                )}
              </Field>
              <Field label="Minimum of ended executions" hint="Before them nothing is decided.">
                {attributes => (
                  <input
                    {...attributes}
                    className="input"
                    type="number"
                    required
                    min={1}
                    max={5000}
                    value={minimum}
                    onChange={event => setMinimum(event.target.value)}
                  />
                )}
              </Field>
            </>
          )}
          <Field label={rollout ? 'New executions after a promotion' : 'New executions'}>
            {attributes => (
              <select
                {...attributes}
                className="input"
                value={whileRunning}
                onChange={event => setWhileRunning(event.target.value as WhileRunning)}
              >
                {Object.entries(WHILE_RUNNING).map(([value, words]) => (
                  <option key={value} value={value}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {whileRunning === 'migrate' && rollout && (
            <Notice tone="bad">A rollout has executions of both definitions, so running executions stay.</Notice>
          )}
          {whileRunning === 'migrate' && !rollout && (
            <MigrationView workflowId={workflow.id} proposalId={asked.proposal.id} />
          )}
        </ActionDialog>
      )}
    </>
  );
}

function OneProposal({ workflow, id }: { workflow: Workflow; id: string }) {
  const query = useQuery(proposalQuery(workflow.id, id));
  if (query.isPending) return <Loading what="the proposal" />;
  const proposal = query.data;
  if (!proposal) {
    const isGone = query.error instanceof ApiError && query.error.status === 404;
    return isGone ? (
      <Notice tone="idle">There is no proposal {id} of this workflow.</Notice>
    ) : (
      <Failed error={query.error} retry={() => void query.refetch()} />
    );
  }
  const comparison = comparisonOf(proposal);
  return (
    <div className="stack">
      <div className="row wrap">
        <Link to="." search={{ view: 'proposals' }}>
          ← All proposals
        </Link>
        <StatusOf status={proposal.status} />
        {comparison && <span className={`status tone-${riskTone(comparison.risk)}`}>{comparison.risk} risk</span>}
        <span className="spacer" />
        <ProposalActions proposal={proposal} workflow={workflow} />
      </div>
      {query.isError && <Failed error={query.error} />}
      <h2>
        <Outside text={proposal.proposal.summary ?? 'Proposal without a summary'} max={400} />
      </h2>
      {proposal.proposal.rationale && (
        <p>
          <Outside text={proposal.proposal.rationale} />
        </p>
      )}
      {proposal.failure && (
        <Notice tone="bad">
          The application failed: <Outside text={proposal.failure} max={600} />
        </Notice>
      )}
      <Facts proposal={proposal} />
      {proposal.applied?.rolloutId && <RolloutView workflow={workflow} id={proposal.applied.rolloutId} />}
      {proposal.applied?.whileRunning === 'migrate' && (
        <MigrationView workflowId={workflow.id} proposalId={proposal.id} />
      )}
      {comparison && <Findings comparison={comparison} />}
      <ShadowView proposal={proposal} workflow={workflow} />
      {comparison && <Changes comparison={comparison} />}
      {comparison && <TextDifference diff={comparison.diff} />}
      {proposal.reviews.length > 0 && <Reviews proposal={proposal} />}
    </div>
  );
}

function Facts({ proposal }: { proposal: ProposalDetail }) {
  const started = Object.entries(proposal.workflows);
  return (
    <dl className="facts">
      <dt>Proposed</dt>
      <dd>
        <At at={proposal.createdAt} /> by <Name text={proposal.proposedBy} />
      </dd>
      {proposal.executionId && (
        <>
          <dt>Execution</dt>
          <dd>
            <Link to="/executions/$id" params={{ id: proposal.executionId }}>
              <code>{proposal.executionId}</code>
            </Link>
          </dd>
        </>
      )}
      <dt>Expires</dt>
      <dd>
        <At at={proposal.expiresAt} />
      </dd>
      {proposal.applied && (
        <>
          <dt>Applied</dt>
          <dd>
            as version {proposal.applied.version} by <Name text={proposal.applied.by} />,{' '}
            <At at={proposal.applied.at} />
          </dd>
        </>
      )}
      <dt>Definition</dt>
      <dd>
        <ShortId id={proposal.baseWorkflowHash} label="the hash of the present definition" keep={10} /> →{' '}
        <ShortId id={proposal.proposedWorkflowHash} label="the hash of the proposed definition" keep={10} />
      </dd>
      {proposal.scenarioFailure && (
        <>
          <dt>Scenarios</dt>
          <dd>
            <span className="status tone-bad">failed</span> <Outside text={proposal.scenarioFailure} max={1000} />
          </dd>
        </>
      )}
      {started.length > 0 && (
        <>
          <dt>Starts</dt>
          <dd>
            {started.map(([name, hash]) => (
              <div key={name}>
                <Name text={name} /> <span className="muted">{hash ? hash.slice(0, 17) : 'not found'}</span>
              </div>
            ))}
          </dd>
        </>
      )}
    </dl>
  );
}

function Findings({ comparison: { findings, findingsTotal } }: { comparison: Comparison }) {
  return (
    <section className="card" aria-labelledby="findings">
      <div className="card-head">
        <h2 id="findings">Findings</h2>
      </div>
      {findings.length === 0 && <Empty>The change gains no capability and loses no safeguard.</Empty>}
      <ul className="card-body stack">
        {findings.map((finding, index) => (
          <li key={index}>
            <span className={`status tone-${riskTone(finding.severity)}`}>{finding.severity}</span>{' '}
            <code>
              <Outside text={finding.path} max={200} />
            </code>{' '}
            <Outside text={finding.reason} max={400} /> <span className="muted small">{finding.code}</span>
          </li>
        ))}
      </ul>
      {findingsTotal > findings.length && (
        <p className="empty">{findingsTotal - findings.length} more are not shown.</p>
      )}
    </section>
  );
}

function Changes({ comparison: { changes, changesTotal } }: { comparison: Comparison }) {
  return (
    <section className="table-scroll card" tabIndex={0} role="region" aria-label="Changes by meaning">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col">Place</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change, index) => (
            <ChangeRow key={index} change={change} />
          ))}
        </tbody>
      </table>
      {changesTotal > changes.length && <p className="empty">{changesTotal - changes.length} more are not shown.</p>}
    </section>
  );
}

function ChangeRow({ change }: { change: Change }) {
  return (
    <tr>
      <td className="nowrap">{kindText(change.kind)}</td>
      <td>
        <code>
          <Outside text={[change.step, change.field].filter(Boolean).join(' · ') || change.path} max={200} />
        </code>
      </td>
      <td>{change.before !== undefined && <Json value={change.before} />}</td>
      <td>{change.after !== undefined && <Json value={change.after} />}</td>
    </tr>
  );
}

function TextDifference({ diff }: { diff: string }) {
  return (
    <section className="card">
      <div className="card-head">
        <h2 id="text-difference">Difference of the texts</h2>
      </div>
      <div className="diff" tabIndex={0} role="region" aria-labelledby="text-difference">
        {textLines(diff).map((line, index) => (
          <DiffLine key={index} line={line} />
        ))}
      </div>
    </section>
  );
}

function Reviews({ proposal }: { proposal: ProposalDetail }) {
  return (
    <section className="stack" aria-labelledby="reviews">
      <h2 id="reviews">Reviews</h2>
      <ul className="stack">
        {proposal.reviews.map((one, index) => (
          <li key={index}>
            <span className={`status tone-${one.approve ? 'ok' : 'bad'}`}>{one.approve ? 'Approved' : 'Rejected'}</span>{' '}
            by <Name text={one.by} />, <At at={one.at} />
            {one.isVoid && <span className="tag">void: something that was reviewed has changed since</span>}
            {one.notes && (
              <p>
                <Outside text={one.notes} max={600} />
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
