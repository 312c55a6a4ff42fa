/** The versions of a workflow, the difference between two of them, and a way back to an earlier one. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Version, Workflow } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Loading, ShortId } from '@/design/parts';
import { Name } from '@/design/text';
import { At } from '@/design/time';
import { useCan, useMayActFor } from '@/features/session/queries';
import { lines, type Line } from './diff';
import { updateWorkflow, versionsQuery } from './queries';

interface VersionsProps {
  workflow: Workflow;
  etag: string | null;
  from: string | undefined;
  to: string | undefined;
}

export function VersionsView({ workflow, etag, from, to }: VersionsProps) {
  const can = useCan();
  const mayActFor = useMayActFor();
  const mayChange = can('workflows:write') && mayActFor(workflow.userId);
  const navigate = useNavigate();
  const pages = useInfiniteQuery(versionsQuery(workflow.id));
  const versions = pages.data?.pages.flatMap(page => page.history) ?? [];
  const [restored, setRestored] = useState<Version | null>(null);
  const newer = versions.find(version => version.workflowVersion === to) ?? versions[0];
  const older = versions.find(version => version.workflowVersion === from) ?? versions[1];
  const choose = (part: { from?: string; to?: string }) =>
    void navigate({ to: '.', search: before => ({ ...before, ...part }), resetScroll: false });
  if (pages.isPending) return <Loading what="versions" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  return (
    <div className="stack">
      <div className="table-scroll card" tabIndex={0} role="region" aria-label="Versions">
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Compare</th>
              <th scope="col">Version</th>
              <th scope="col">Saved</th>
              <th scope="col">By</th>
              <th scope="col">Source</th>
              <th scope="col">Hash</th>
              <th scope="col">Notes</th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {versions.map(version => (
              <tr key={version.id}>
                <td className="nowrap">
                  {(['from', 'to'] as const).map(side => (
                    <input
                      key={side}
                      type="radio"
                      name={side}
                      aria-label={`Compare ${side} version ${version.workflowVersion}`}
                      checked={(side === 'from' ? older : newer) === version}
                      onChange={() => choose({ [side]: version.workflowVersion })}
                    />
                  ))}
                </td>
                <td>
                  {version.workflowVersion}{' '}
                  {version.workflowHash === workflow.workflowHash && <span className="status tone-ok">Current</span>}
                </td>
                <td>
                  <At at={version.createdAt} />
                </td>
                <td>
                  <Name text={version.createdBy} max={40} />
                </td>
                <td>{version.source}</td>
                <td>
                  <ShortId
                    id={version.workflowHash}
                    label={`the hash of version ${version.workflowVersion}`}
                    keep={10}
                  />
                </td>
                <td>{version.notes && <Name text={version.notes} />}</td>
                <td>
                  {mayChange && version.workflowHash !== workflow.workflowHash && (
                    <button type="button" className="button small" onClick={() => setRestored(version)}>
                      Restore…
                    </button>
                  )}
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
          Load older versions
        </button>
      )}
      {older && newer && older !== newer && <Difference older={older} newer={newer} />}
      {restored && (
        <ActionDialog
          title={`Restore version ${restored.workflowVersion}?`}
          action="Restore"
          isOpen
          onClose={() => setRestored(null)}
          act={() => updateWorkflow(workflow.id, etag, { data: restored.workflowData })}
        >
          <p>New executions run this definition. Running executions keep theirs.</p>
        </ActionDialog>
      )}
    </div>
  );
}

function Difference({ older, newer }: { older: Version; newer: Version }) {
  const found = useQuery({
    queryKey: ['difference', older.workflowHash, newer.workflowHash],
    queryFn: () => lines(older.workflowData, newer.workflowData),
    staleTime: Infinity,
  });
  return (
    <section className="card">
      <div className="card-head">
        <h2 id="difference">
          From {older.workflowVersion} to {newer.workflowVersion}
        </h2>
      </div>
      {found.isError && <Failed error={found.error} />}
      <div className="diff" tabIndex={0} role="region" aria-labelledby="difference">
        {found.data?.length === 0 && <p className="empty">The definitions are equal.</p>}
        {found.data?.map((line, index) => (
          <DiffLine key={index} line={line} />
        ))}
      </div>
    </section>
  );
}

export function DiffLine({ line }: { line: Line }) {
  if (line.kind === 'gap') return <div className="diff-gap">{line.text}</div>;
  const sign = { added: '+', removed: '−', same: ' ' }[line.kind];
  return (
    <div className={`diff-line ${line.kind}`}>
      <span aria-hidden="true">{sign} </span>
      {line.kind !== 'same' && <span className="visually-hidden">{line.kind}: </span>}
      {line.text}
    </div>
  );
}
