/** The shadow report of a proposal: each replayed execution, and each effect that the replay would have caused. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ProposalDetail, Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Empty, Failed, Field, Loading } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { At } from '@/design/time';
import { useCan, useMayActFor, useMe } from '@/features/session/queries';
import {
  countsOf,
  EXECUTIONS_DEFAULT,
  EXECUTIONS_MAX,
  gradeOf,
  outcomeText,
  reasonText,
  reportOf,
  runShadow,
  shadowQuery,
  withheldOf,
  type Difference,
  type ShadowExecution,
  type ShadowReport,
  type Withheld,
} from './shadow';

/** Blocks that are shown before the button for the rest is pressed. */
const BLOCKS_MAX = 30;

/** The button for a run, for those from whom the server accepts it while the proposal waits for a review. */
function Run({ proposal, workflow }: { proposal: ProposalDetail; workflow: Workflow }) {
  const can = useCan();
  const me = useMe();
  const mayActFor = useMayActFor();
  const [isAsking, setAsking] = useState(false);
  const [count, setCount] = useState(String(EXECUTIONS_DEFAULT));
  const mayReview = me?.isPerson === true && mayActFor(workflow.userId);
  if (!can('proposals:write') || !(me?.userId === proposal.proposedBy || mayReview)) return null;
  if (proposal.status !== 'pending') return null;
  const last = Number(count);
  return (
    <>
      <button type="button" className="button small" onClick={() => setAsking(true)}>
        {proposal.shadowHash ? 'Run again…' : 'Run…'}
      </button>
      {isAsking && (
        <ActionDialog
          title="Replay recorded executions?"
          action="Replay"
          isOpen
          isReady={Number.isInteger(last) && last >= 1 && last <= EXECUTIONS_MAX}
          onClose={() => setAsking(false)}
          act={() => runShadow(proposal, last)}
        >
          <p>
            The proposed definition replays ended executions with their recorded answers. No effect is performed. The
            report becomes part of what a reviewer approves.
          </p>
          <Field label="Executions" hint={`The last ended ones, 1 to ${EXECUTIONS_MAX}, so that every branch occurs.`}>
            {attributes => (
              <input
                {...attributes}
                className="input"
                type="number"
                required
                min={1}
                max={EXECUTIONS_MAX}
                value={count}
                onChange={event => setCount(event.target.value)}
              />
            )}
          </Field>
        </ActionDialog>
      )}
    </>
  );
}

export function ShadowView({ proposal, workflow }: { proposal: ProposalDetail; workflow: Workflow }) {
  const query = useQuery(shadowQuery(proposal));
  return (
    <section className="card" aria-labelledby="shadow">
      <div className="card-head">
        <h2 id="shadow">Shadow report</h2>
        <span className="spacer" />
        <Run proposal={proposal} workflow={workflow} />
      </div>
      {!proposal.shadowHash && <Empty>The proposal was not replayed against recorded executions.</Empty>}
      {proposal.shadowHash && query.isPending && <Loading what="the shadow report" />}
      {query.isError && <Failed error={query.error} retry={() => void query.refetch()} />}
      {query.data && (
        <div className="card-body stack">
          <p className="muted small">
            Run by <Name text={query.data.by} max={40} />, <At at={query.data.at} />. The report names places of values,
            not the values.
          </p>
          <Report report={reportOf(query.data)} />
        </div>
      )}
    </section>
  );
}

function Report({ report }: { report: ShadowReport }) {
  const { effects, waits } = withheldOf(report);
  if (report.executions.length === 0) return <Empty>The workflow has no ended execution to replay.</Empty>;
  return (
    <>
      <p className="row wrap">
        {countsOf(report).map(([grade, count]) => (
          <span key={grade} className={`status tone-${gradeOf(grade)[1]}`}>
            {count} {gradeOf(grade)[0].toLowerCase()}
          </span>
        ))}
      </p>
      <Blocks
        title={effects.length === 1 ? '1 withheld effect' : `${effects.length} withheld effects`}
        empty="The replays make no call that was not recorded."
        blocks={effects}
      />
      {waits.length > 0 && (
        <Blocks title={waits.length === 1 ? '1 open wait' : `${waits.length} open waits`} empty="" blocks={waits} />
      )}
      <h3>Executions</h3>
      <ul className="stack" aria-label="Replayed executions">
        {report.executions.map(execution => (
          <Execution key={execution.executionId} execution={execution} />
        ))}
      </ul>
    </>
  );
}

function ExecutionLink({ id }: { id: string }) {
  const can = useCan();
  const name = <code title={id}>{id.slice(-8)}</code>;
  return can('executions:read') ? (
    <Link to="/executions/$id" params={{ id }} aria-label={`Execution ${id}`}>
      {name}
    </Link>
  ) : (
    name
  );
}

interface BlocksProps {
  title: string;
  empty: string;
  blocks: (Withheld & { executionId: string })[];
}

function Blocks({ title, empty, blocks }: BlocksProps) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? blocks : blocks.slice(0, BLOCKS_MAX);
  return (
    <>
      <h3>{title}</h3>
      {blocks.length === 0 && <p className="muted">{empty}</p>}
      {blocks.length > 0 && (
        <ul className="withheld" aria-label={title}>
          {shown.map(({ executionId, step, number, kind, reason }) => (
            <li key={`${executionId} ${step} ${number} ${kind}`}>
              <div className="row wrap">
                <code>
                  <Outside text={step} max={200} />
                </code>
                <span className="tag">
                  <Name text={kind} max={60} />
                </span>
                {number > 1 && <span className="muted small">attempt {number}</span>}
                <span className="spacer" />
                <ExecutionLink id={executionId} />
              </div>
              <div className="muted small">Withheld: {reasonText(reason)}.</div>
            </li>
          ))}
        </ul>
      )}
      {shown.length < blocks.length && (
        <button type="button" className="button small" onClick={() => setWhole(true)}>
          Show {blocks.length - shown.length} more
        </button>
      )}
    </>
  );
}

function Execution({ execution }: { execution: ShadowExecution }) {
  const { executionId, grade, answered, horizon, differences, differencesTotal, notReached } = execution;
  const [label, tone] = gradeOf(grade);
  return (
    <li className="stack replayed">
      <div className="row wrap">
        <ExecutionLink id={executionId} />
        <span className={`status tone-${tone}`}>{label}</span>
        <Outside text={outcomeText(execution)} max={300} />
        <span className="spacer" />
        <span className="muted small">
          {answered} answered{horizon.length > 0 && `, ${horizon.length} without an answer`}
        </span>
      </div>
      {differences.length > 0 && (
        <ul className="small">
          {differences.map((difference, index) => (
            <DifferenceLine key={index} difference={difference} />
          ))}
        </ul>
      )}
      {differencesTotal > differences.length && (
        <p className="muted small">{differencesTotal - differences.length} more differences are not shown.</p>
      )}
      {notReached > 0 && <p className="muted small">{notReached} recorded steps are beyond the missing answers.</p>}
    </li>
  );
}

function DifferenceLine({ difference: { step, kind, before, after, places } }: { difference: Difference }) {
  const named = places.filter(place => place !== '.');
  return (
    <li>
      <code>
        <Outside text={step} max={200} />
      </code>{' '}
      {kind}
      {named.length > 0 && (
        <span className="muted">
          {' '}
          at <Outside text={named.join(', ')} max={300} />
        </span>
      )}
      {(before || after) && (
        <span className="muted">
          : <Outside text={before ?? 'none'} max={200} /> → <Outside text={after ?? 'none'} max={200} />
        </span>
      )}
    </li>
  );
}
