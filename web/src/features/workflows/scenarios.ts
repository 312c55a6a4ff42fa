/** Requests of scenarios. */
import { queryOptions } from '@tanstack/react-query';
import { ApiError, call, callTagged, client, ifMatch, type ScenarioResults } from '@/api/client';
import { queryClient } from '@/app/queryClient';

/** The files of a workflow, with the version for `If-Match`; no files if it has no scenarios. */
export interface TaggedScenarios {
  files: Record<string, string>;
  etag: string | null;
}

const key = (id: string) => ['workflows', 'scenarios', id];

export const scenariosQuery = (id: string) =>
  queryOptions({
    queryKey: key(id),
    queryFn: async ({ signal }): Promise<TaggedScenarios> => {
      try {
        const params = { path: { id } };
        const { data, etag } = await callTagged(client.GET('/api/workflows/{id}/scenarios', { params, signal }));
        return { files: data.files, etag };
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return { files: {}, etag: null };
        throw error;
      }
    },
  });

/** Runs scenarios with the definition of a workflow. Nothing is saved or performed. */
export function runScenarios(workflowId: string, scenarios: string): Promise<ScenarioResults> {
  return call(client.POST('/api/scenarios/run', { body: { scenarios: scenarios as never, workflowId } }));
}

/** Replaces the scenarios of a workflow, if they have not changed since they were read. No files remove them. */
export async function saveScenarios(id: string, etag: string | null, files: Record<string, string>): Promise<void> {
  const params = { path: { id }, header: ifMatch(etag) };
  if (Object.keys(files).length > 0) {
    await call(client.PUT('/api/workflows/{id}/scenarios', { params, body: { files } }));
  } else {
    await call(client.DELETE('/api/workflows/{id}/scenarios', { params }));
  }
  await queryClient.invalidateQueries({ queryKey: key(id) });
}

/** A first scenario for a workflow. */
export const FIRST = `name: it completes
definition: workflow.yaml   # the definition of this workflow
effects: {}                 # by step id: {STEP: {return: {stdout: ok}}}
expect: {status: completed}
`;
