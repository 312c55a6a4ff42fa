/** The receipts of an execution: who recorded each outcome, and whether the signature holds. The server verifies them. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Receipt } from '@/api/client';
import { Empty, Failed, Loading, Notice, ShortId } from '@/design/parts';
import { Status } from '@/design/status';
import { Name, Outside } from '@/design/text';
import { At } from '@/design/time';
import { receiptsQuery } from './queries';

const TONES = { verified: 'tone-ok', unsigned: 'tone-idle', broken: 'tone-bad' } as const;

function Signature({ receipt }: { receipt: Receipt }) {
  const tone = TONES[receipt.signature as keyof typeof TONES] ?? 'tone-idle';
  return (
    <>
      <span className={`status ${tone}`}>{receipt.signature}</span>
      {receipt.error && (
        <div className="small muted">
          <Outside text={receipt.error} max={300} />
        </div>
      )}
    </>
  );
}

function Verdict({ receipts, isMore }: { receipts: Receipt[]; isMore: boolean }) {
  const count = (signature: string) => receipts.filter(receipt => receipt.signature === signature).length;
  const [broken, unsigned] = [count('broken'), count('unsigned')];
  const rest = isMore ? '; more receipts are not loaded yet' : '';
  if (broken > 0) {
    return (
      <Notice tone="bad">
        {broken} of {receipts.length} receipts {broken === 1 ? 'is' : 'are'} not proven: the signature is missing or is
        not that of a certified executor{rest}.
      </Notice>
    );
  }
  return (
    <Notice tone={unsigned > 0 ? 'idle' : 'ok'}>
      {receipts.length - unsigned} of {receipts.length} receipts are signed by executors that this installation has
      certified
      {unsigned > 0 && `; ${unsigned} are from before receipts were signed`}
      {rest}.
    </Notice>
  );
}

/** True for the receipts of a step and of the calls of an agent, as `look#1.2`. */
function isOf(receipt: Receipt, step: string): boolean {
  return receipt.step === step || receipt.step.startsWith(`${step}#`);
}

export function Receipts({ id, step }: { id: string; step: string | undefined }) {
  const pages = useInfiniteQuery(receiptsQuery(id));
  if (pages.isPending) return <Loading what="receipts" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  const all = pages.data.pages.flatMap(page => page.receipts);
  const shown = step ? all.filter(receipt => isOf(receipt, step)) : all;
  if (all.length === 0) return <Empty>No attempt has an outcome yet.</Empty>;
  return (
    <div className="stack">
      <Verdict receipts={all} isMore={pages.hasNextPage} />
      {step && (
        <p className="row wrap">
          <span>
            Receipts of the step{' '}
            <code>
              <Name text={step} />
            </code>
          </span>
          <Link to="." search={before => ({ ...before, step: undefined })} resetScroll={false}>
            Show all
          </Link>
        </p>
      )}
      <div className="table-scroll card" tabIndex={0} role="region" aria-label="Receipts">
        <table className="table">
          <thead>
            <tr>
              {['Step', 'Attempt', 'Outcome', 'Time', 'Recorded by', 'Intent', 'Frame', 'Signature'].map(head => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((receipt, index) => (
              <Row key={index} receipt={receipt} />
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
          {pages.isFetchingNextPage ? 'Loading…' : 'Load more receipts'}
        </button>
      )}
    </div>
  );
}

function Row({ receipt }: { receipt: Receipt }) {
  return (
    <tr>
      <td>
        <code>
          <Name text={receipt.step || '–'} />
        </code>{' '}
        <span className="muted small">{receipt.effect}</span>
      </td>
      <td>{receipt.attempt}</td>
      <td>
        <Status status={receipt.status} />
      </td>
      <td className="nowrap">
        <At at={receipt.at} />
      </td>
      <td>
        {receipt.executor ? <Name text={receipt.executor.name} max={60} /> : <span className="muted">unknown</span>}
      </td>
      <td>
        {receipt.intent ? (
          <ShortId id={receipt.intent} label={`the intent of ${receipt.step}`} />
        ) : (
          <span className="muted">–</span>
        )}
      </td>
      <td>
        {receipt.frame ? (
          <Link to="." search={{ view: 'journal', frame: String(receipt.frame.sequence) }} resetScroll={false}>
            {receipt.frame.sequence}
          </Link>
        ) : (
          <span className="muted">late</span>
        )}
      </td>
      <td>
        <Signature receipt={receipt} />
      </td>
    </tr>
  );
}
