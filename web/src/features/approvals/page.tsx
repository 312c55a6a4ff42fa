/** The inbox of approvals: a list and the chosen approval. `j` and `k` move, `a` approves, `d` denies. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useEffect, useState } from 'react';
import { ApiError, type Approval } from '@/api/client';
import { useTitle } from '@/app/title';
import { Empty, Failed, Loading, Notice } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { Ago } from '@/design/time';
import { ApprovalDetail } from './detail';
import { approvalPagesQuery, approvalQuery } from './queries';
import './style.css';

/** True if the key belongs to a field or a dialog. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest('input, textarea, select, [role="dialog"], [role="menu"]') !== null
  );
}

interface ListProps {
  approvals: Approval[];
  chosen: string | undefined;
  choose: (id: string) => void;
}

function ApprovalList({ approvals, chosen, choose }: ListProps) {
  return (
    <ul className="approval-list card" aria-label="Open approvals">
      {approvals.map(approval => (
        <li key={approval.id}>
          <button
            type="button"
            className="approval-entry"
            aria-current={approval.id === chosen}
            data-id={approval.id}
            onClick={() => choose(approval.id)}
          >
            <span className="truncate">
              <Outside text={approval.message.slice(0, 200)} max={200} />
            </span>
            <span className="small muted truncate">
              <Name text={approval.workflowName ?? ''} max={40} /> · <Ago at={approval.requestedAt} />
              {!approval.mayDecide && ' · not for you'}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** An approval by its link; it may be on no loaded page. */
function Linked({
  id,
  found,
  ...detail
}: { id: string; found: Approval | undefined } & Omit<Parameters<typeof ApprovalDetail>[0], 'approval'>) {
  const one = useQuery({ ...approvalQuery(id), enabled: !found });
  const approval = found ?? one.data;
  // A decision in progress keeps its question in view until its dialog is closed.
  const [last, setLast] = useState(approval);
  if (approval && approval !== last) setLast(approval);
  if (approval) return <ApprovalDetail approval={approval} {...detail} />;
  if (detail.decision && last) return <ApprovalDetail approval={last} {...detail} />;
  if (one.error instanceof ApiError && one.error.status === 404) {
    return <Notice tone="idle">This approval is no longer open: it was decided, or its time has run out.</Notice>;
  }
  return one.isError ? <Failed error={one.error} /> : <Loading what="the approval" />;
}

export function ApprovalsPage() {
  useTitle('Approvals');
  const { item, of } = useSearch({ from: '/signed-in/approvals' });
  const navigate = useNavigate({ from: '/approvals' });
  const pages = useInfiniteQuery(approvalPagesQuery);
  const [decision, setDecision] = useState<'approve' | 'deny' | null>(null);
  const all = pages.data?.pages.flatMap(page => page.approvals) ?? [];
  const approvals = of === 'all' ? all : all.filter(approval => approval.mayDecide);
  const found = all.find(approval => approval.id === item);

  const choose = useCallback(
    (id: string | undefined, isFocused = false) => {
      setDecision(null);
      const focus = () =>
        isFocused && id && document.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`)?.focus();
      void navigate({ search: before => ({ ...before, item: id }) }).then(focus);
    },
    [navigate],
  );

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const place = approvals.findIndex(approval => approval.id === item);
      const next = { j: place + 1, k: place - 1 }[event.key];
      if (next !== undefined) choose((approvals[next] ?? approvals[Math.max(0, place)])?.id, true);
      if (event.key === 'a' && found?.mayDecide && found.canBeApproved) setDecision('approve');
      if (event.key === 'd' && found?.mayDecide) setDecision('deny');
    };
    document.addEventListener('keyup', onKey);
    return () => document.removeEventListener('keyup', onKey);
  }, [approvals, item, found, choose]);

  return (
    <div className="page">
      <div className="page-head">
        <h1>Approvals</h1>
        <select
          className="input"
          aria-label="Which approvals"
          value={of ?? 'mine'}
          onChange={event => void navigate({ search: before => ({ ...before, of: event.target.value }) })}
        >
          <option value="mine">For you</option>
          <option value="all">All open</option>
        </select>
        <span className="spacer" />
        <span className="muted small hide-narrow">
          <kbd>j</kbd> <kbd>k</kbd> move · <kbd>a</kbd> approve · <kbd>d</kbd> deny
        </span>
      </div>
      {pages.isError && <Failed error={pages.error} retry={() => void pages.refetch()} />}
      {pages.isPending && <Loading what="approvals" />}
      <div className={item ? 'inbox has-item' : 'inbox'}>
        <div className="stack inbox-list">
          {approvals.length > 0 && <ApprovalList approvals={approvals} chosen={item} choose={id => choose(id)} />}
          {pages.isSuccess && approvals.length === 0 && (
            <Empty>{of === 'all' ? 'No approval is open.' : 'Nothing waits for your decision.'}</Empty>
          )}
          {pages.hasNextPage && (
            <button
              type="button"
              className="button"
              disabled={pages.isFetchingNextPage}
              onClick={() => void pages.fetchNextPage()}
            >
              Load more
            </button>
          )}
        </div>
        {item && (
          <div className="inbox-detail card">
            <button type="button" className="button plain back" onClick={() => choose(undefined)}>
              ← All approvals
            </button>
            <Linked key={item} id={item} found={found} decision={decision} setDecision={setDecision} />
          </div>
        )}
      </div>
    </div>
  );
}
