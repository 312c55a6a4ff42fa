/** Requests of migrations: running executions that continue with the definition of a proposal. */
import { queryOptions } from '@tanstack/react-query';
import { call, client, type Migration } from '@/api/client';

/** Interval between two reads of a migration that has not ended, in milliseconds. */
const READ_MS = 2000;

/** Executions of a preview that are read. */
export const PREVIEW_MAX = 20;

/** The preview of a migration, or its progress. */
export const migrationQuery = (workflowId: string, proposalId: string) =>
  queryOptions({
    queryKey: ['proposals', workflowId, proposalId, 'migration'],
    queryFn: ({ signal }) => {
      const params = { path: { id: workflowId, proposalId }, query: { limit: PREVIEW_MAX } };
      return call(client.GET('/api/workflows/{id}/proposals/{proposalId}/migration', { params, signal }));
    },
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? READ_MS : false),
  });

/** What a migration does or has done, in one sentence. */
export function migrationText({ status, migrated, stayed, executions, nextCursor }: Migration): string {
  if (status === 'preview') {
    if (executions.length === 0) return 'No execution runs now.';
    const continuing = executions.filter(execution => execution.migrates).length;
    const of = nextCursor ? `the newest ${executions.length} running executions` : `${executions.length} running`;
    return `Of ${of}, ${continuing} would continue with the change now.`;
  }
  const counts = `${migrated} continued with the change, ${stayed} stayed with their definition.`;
  return status === 'running' ? `In progress: ${counts}` : counts;
}
