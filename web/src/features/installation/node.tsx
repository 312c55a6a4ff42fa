/** The node that answers. */
import { useQuery } from '@tanstack/react-query';
import { Failed, Loading } from '@/design/parts';
import { healthQuery } from '@/features/overview/queries';

export function ThisNode() {
  const health = useQuery(healthQuery);
  if (health.isPending) return <Loading what="the node" />;
  if (health.isError) return <Failed error={health.error} retry={() => void health.refetch()} />;
  return (
    <div className="card card-body">
      <dl className="facts">
        <dt>Status</dt>
        <dd>{health.data.status}</dd>
        <dt>Release</dt>
        <dd>{health.data.release}</dd>
        <dt>Partitions that the node owns</dt>
        <dd>{health.data.partitions}</dd>
      </dl>
    </div>
  );
}
