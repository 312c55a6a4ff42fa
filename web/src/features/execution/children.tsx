/** The children of an execution as a tree. A branch is loaded when it is opened. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Attempt } from '@/api/client';
import { Empty, Failed } from '@/design/parts';
import { Status } from '@/design/status';
import { Name } from '@/design/text';
import { Ago, Span } from '@/design/time';
import { attemptsPage, executionQuery } from './queries';

interface Child {
  id: string;
  step: string;
}

/** The children that attempts have started. */
export function childrenOf(attempts: Attempt[]): Child[] {
  return attempts.flatMap(attempt =>
    attempt.childExecutionId ? [{ id: attempt.childExecutionId, step: attempt.stepId }] : [],
  );
}

export function Children({ attempts }: { attempts: Attempt[] }) {
  const children = childrenOf(attempts);
  if (children.length === 0) return <Empty>The execution has started no children.</Empty>;
  return (
    <div className="card card-body">
      <Branches of={children} />
    </div>
  );
}

function Branches({ of }: { of: Child[] }) {
  return (
    <ul className="branches">
      {of.map(child => (
        <Branch key={child.id} child={child} />
      ))}
    </ul>
  );
}

function Branch({ child }: { child: Child }) {
  const execution = useQuery(executionQuery(child.id));
  const [isOpen, setOpen] = useState(false);
  const attempts = useQuery({
    queryKey: ['execution', child.id, 'children'],
    queryFn: ({ signal }) => attemptsPage(child.id, '', signal),
    enabled: isOpen,
  });
  const nested = childrenOf(attempts.data?.steps ?? []);
  return (
    <li>
      <div className="row wrap">
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          aria-label={`Children of ${child.id}`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? '▾' : '▸'}
        </button>
        <code>
          <Name text={child.step} />
        </code>
        {execution.data && (
          <>
            <Status status={execution.data.status} outcome={execution.data.outcome} />
            <Link to="/executions/$id" params={{ id: child.id }}>
              <Name text={execution.data.workflowName ?? child.id} />
            </Link>
            <span className="muted small">
              started <Ago at={execution.data.startedAt} />,{' '}
              <Span from={execution.data.startedAt} to={execution.data.completedAt} />
            </span>
          </>
        )}
        {execution.isError && <span className="muted">{child.id} cannot be read.</span>}
      </div>
      {isOpen && attempts.isError && <Failed error={attempts.error} />}
      {isOpen &&
        attempts.data &&
        (nested.length > 0 ? <Branches of={nested} /> : <p className="muted small">No children.</p>)}
    </li>
  );
}
