/** One approval: the question, its items, who may decide, how long, and the history of its gate. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Approval } from '@/api/client';
import { CopyButton } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago, At } from '@/design/time';
import { gateHistoryQuery } from '@/features/execution/queries';
import { useMe } from '@/features/session/queries';
import { DecideDialog } from './decide';
import { Items } from './items';
import { decidable, serverForm } from './queries';

/** The part of a gate that the page shows. */
interface Gate {
  items?: unknown;
  count?: number;
  approvedBy?: string[];
}

interface DetailProps {
  approval: Approval;
  decision: 'approve' | 'deny' | null;
  setDecision: (decision: 'approve' | 'deny' | null) => void;
}

function Approvers({ approval }: { approval: Approval }) {
  if (approval.approvers.length === 0) return <>The owner of the execution and the admins</>;
  return (
    <ul>
      {approval.approvers.map(approver => (
        <li key={approver.userId}>
          <Name text={approver.userId} />{' '}
          <span className="muted">
            {approver.role ?? 'unknown role'}
            {approver.hasApproved ? ', has approved' : approver.canDecide ? '' : ', cannot decide at present'}
          </span>
        </li>
      ))}
    </ul>
  );
}

function History({ approval }: { approval: Approval }) {
  const history = useQuery(gateHistoryQuery(approval.executionId, approval.stepId));
  const decisions = history.data ?? [];
  if (decisions.length === 0) return <p className="muted">No decision was made at this step yet.</p>;
  return (
    <ul className="stack">
      {decisions.map((decision, index) => (
        <li key={index}>
          <span className={`status ${decision.decision === 'approve' ? 'tone-ok' : 'tone-bad'}`}>
            {decision.decision === 'approve' ? 'Approved' : 'Denied'}
          </span>{' '}
          by {decision.by ? <Name text={decision.by} /> : 'the timeout'}, <At at={decision.at} />
          {decision.reason && (
            <p>
              <Outside text={decision.reason} max={500} />
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

export function ApprovalDetail({ approval, decision, setDecision }: DetailProps) {
  const me = useMe();
  const gate = approval.gate as Gate;
  const decided = decidable(approval);
  // The dialog keeps the question that was shown when it opened, even if the list changes behind it.
  const [asked, setAsked] = useState<{ approval: Approval; approve: boolean } | null>(null);
  if (decision && decided && !asked) setAsked({ approval, approve: decision === 'approve' });
  const shown = asked && decidable(asked.approval);
  const close = () => {
    setAsked(null);
    setDecision(null);
  };
  return (
    <article className="approval" aria-label="Approval">
      <div className="approval-actions row wrap">
        {decided ? (
          <>
            <button
              type="button"
              className="button primary"
              disabled={!approval.canBeApproved}
              onClick={() => setDecision('approve')}
            >
              Approve <kbd>a</kbd>
            </button>
            <button type="button" className="button danger" onClick={() => setDecision('deny')}>
              Deny <kbd>d</kbd>
            </button>
          </>
        ) : (
          <span className="muted">
            {me?.isPerson === false
              ? 'This credential does not represent a person.'
              : 'You may read this approval and not decide it.'}
          </span>
        )}
        <span className="spacer" />
        <CopyButton text={approval.url} label="Copy the link of this approval" />
      </div>
      <p className="question">
        <Outside text={approval.message} />
      </p>
      {!approval.canBeApproved && (
        <div className="notice tone-wait">
          <div className="notice-text">
            Too few approvers can decide at present. The approval can be denied, or it waits for its timeout.
          </div>
        </div>
      )}
      <Items items={gate.items ?? []} />
      <dl className="facts">
        <dt>Workflow</dt>
        <dd>
          <Name text={approval.workflowName ?? approval.workflowId ?? 'unnamed'} />
        </dd>
        <dt>Execution</dt>
        <dd>
          <Link to="/executions/$id" params={{ id: approval.executionId }} search={{ step: approval.stepId }}>
            <code>{approval.executionId}</code>
          </Link>
        </dd>
        <dt>Step</dt>
        <dd>
          <code>
            <Name text={approval.stepId} />
          </code>
        </dd>
        <dt>Requested</dt>
        <dd>
          <Ago at={approval.requestedAt} />
        </dd>
        <dt>Timeout</dt>
        <dd>
          <Ago at={approval.timeoutAt} />, then {approval.defaultAction === 'approve' ? 'approved' : 'denied'}{' '}
          automatically
        </dd>
        <dt>Approvals</dt>
        <dd>
          {gate.approvedBy?.length ?? 0} of {gate.count ?? 1}
        </dd>
        <dt>May decide</dt>
        <dd>
          <Approvers approval={approval} />
        </dd>
      </dl>
      <h2>History of this step</h2>
      <History approval={approval} />
      {asked && shown && (
        <DecideDialog
          approval={shown}
          prompt={asked.approval.message}
          approve={asked.approve}
          form={serverForm(asked.approval.gate)}
          onClose={close}
        />
      )}
    </article>
  );
}
