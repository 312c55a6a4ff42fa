/** The journal frame by frame, with the verification of its hash chain in this browser. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { FrameBody } from '@/api/client';
import { Json } from '@/design/json';
import { Failed, Loading, Notice, ShortId } from '@/design/parts';
import { At } from '@/design/time';
import { canVerify, contentOf, verify, type Check } from './frames';
import { journalQuery } from './queries';

export function Journal({ id, chosen }: { id: string; chosen: string | undefined }) {
  const pages = useInfiniteQuery(journalQuery(id));
  const frames = useMemo(() => pages.data?.pages.flatMap(page => page.frames) ?? [], [pages.data]);
  const last = frames.at(-1);
  const checks = useQuery({
    queryKey: ['execution', id, 'checks', last?.hash ?? '', frames.length],
    queryFn: () => verify(frames),
    enabled: frames.length > 0 && canVerify(),
    staleTime: Infinity,
  });
  if (pages.isPending) return <Loading what="the journal" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  return (
    <div className="stack">
      <Verdict frames={frames} checks={checks.data} isMore={pages.hasNextPage} />
      <div className="table-scroll card" tabIndex={0} role="region" aria-label="Frames">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Frame</th>
              <th scope="col">Time</th>
              <th scope="col">Input</th>
              <th scope="col">Records</th>
              <th scope="col">Hash</th>
              <th scope="col">Verified</th>
            </tr>
          </thead>
          <tbody>
            {frames.map((frame, index) => (
              <Frame
                key={frame.sequence}
                frame={frame}
                check={checks.data?.[index]}
                isOpen={String(frame.sequence) === chosen}
              />
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
          {pages.isFetchingNextPage ? 'Loading…' : 'Load more frames'}
        </button>
      )}
    </div>
  );
}

function Verdict({ frames, checks, isMore }: { frames: FrameBody[]; checks: Check[] | undefined; isMore: boolean }) {
  if (!canVerify()) {
    return (
      <Notice tone="idle">
        The browser computes hashes only over HTTPS or on this machine. `mainspring verify` checks the journal
        everywhere.
      </Notice>
    );
  }
  if (!checks) return null;
  const broken = checks.findIndex(check => !check.isHash || !check.isLinked);
  if (broken >= 0) {
    return (
      <Notice tone="bad">
        Frame {frames[broken]?.sequence} does not fit: its bytes or its link to the frame before it were changed.
      </Notice>
    );
  }
  return (
    <Notice tone="ok">
      The hashes of {frames.length} {frames.length === 1 ? 'frame' : 'frames'} were computed in this browser and form an
      unbroken chain
      {isMore ? '; more frames are not loaded yet' : ''}.
    </Notice>
  );
}

function Frame({ frame, check, isOpen }: { frame: FrameBody; check: Check | undefined; isOpen: boolean }) {
  const content = useMemo(() => contentOf(frame), [frame]);
  return (
    <>
      <tr>
        <td>
          <Link
            to="."
            search={before => ({ ...before, frame: isOpen ? undefined : String(frame.sequence) })}
            resetScroll={false}
            aria-expanded={isOpen}
          >
            {isOpen ? '▾' : '▸'} {frame.sequence}
          </Link>
        </td>
        <td className="nowrap">
          <At at={frame.at} />
        </td>
        <td>{content?.input.name ?? 'unknown format'}</td>
        <td>{content?.records.map(record => record.name).join(', ')}</td>
        <td>
          <ShortId id={frame.hash} label={`the hash of frame ${frame.sequence}`} keep={12} />
        </td>
        <td>
          {check &&
            (check.isHash && check.isLinked ? (
              <span className="status tone-ok">Fits</span>
            ) : (
              <span className="status tone-bad">Broken</span>
            ))}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={6}>
            {content ? (
              <Json value={{ input: content.input, records: content.records }} />
            ) : (
              <p>This console does not know the format of the frame.</p>
            )}
            <p className="small muted">Payloads are stored beside the frame; it refers to them by salted hash.</p>
          </td>
        </tr>
      )}
    </>
  );
}
