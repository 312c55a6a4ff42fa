/** The definition that the execution is pinned to, as it was when the execution started. */
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { CopyButton, Empty, Failed, Loading, ShortId } from '@/design/parts';
import type { Execution } from '@/api/client';
import { snapshotQuery } from './queries';

const Source = lazy(() => import('@/features/editor/source'));

export function Pinned({ execution }: { execution: Execution }) {
  const snapshot = useQuery(snapshotQuery(execution.id));
  const text = useQuery({
    queryKey: ['execution', execution.id, 'snapshot', 'text'],
    queryFn: async () => (await import('yaml')).stringify(snapshot.data),
    enabled: !!snapshot.data,
    staleTime: Infinity,
  });
  if (snapshot.isError) return <Failed error={snapshot.error} />;
  if (snapshot.isPending) return <Loading what="the definition" />;
  if (!snapshot.data) return <Empty>The history of the workflow does not have this definition.</Empty>;
  return (
    <div className="stack">
      <div className="row wrap">
        <span>Version {execution.workflowVersion ?? 'unknown'}</span>
        <ShortId id={execution.workflowHash} label="the hash of the definition" keep={16} />
        <span className="spacer" />
        <CopyButton text={text.data ?? ''} label="Copy the definition" />
      </div>
      <Suspense fallback={<Loading what="the editor" />}>
        {text.data !== undefined && <Source text={text.data} label="Definition" />}
      </Suspense>
    </div>
  );
}
