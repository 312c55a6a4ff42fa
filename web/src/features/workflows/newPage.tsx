/** Creates a workflow from a definition. */
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import type { Diagnostic } from '@/api/client';
import { useTitle } from '@/app/title';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { readAsServer } from './definitionText';
import { compile, createOrFind, updateWorkflow, type TaggedWorkflow } from './queries';

const Editor = lazy(() => import('@/features/editor/editor'));

const FIRST = `name: hello
description: Greets someone after an approval.
inputSchema:
  type: object
  properties:
    name: {type: string, default: world}
steps:
  - id: greeting
    type: code
    input: {name: "@input.name"}
    code: |
      export default ({ name }) => "Hello " + name
  - id: ask
    type: approval
    prompt: Send "@greeting"?
output: "@greeting"
`;

export function NewWorkflowPage() {
  useTitle('New workflow');
  const navigate = useNavigate();
  const [slug, setSlug] = useState('');
  const [text, setText] = useState(FIRST);
  const [found, setFound] = useState<Diagnostic[]>([]);
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [existing, setExisting] = useState<(TaggedWorkflow & { data: Record<string, unknown> }) | null>(null);
  const show = (id: string) => navigate({ to: '/workflows/$id', params: { id } });
  const create = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const data = await readAsServer(text, 'yaml', compile);
      const result = await createOrFind(slug.trim(), data);
      if ('created' in result) await show(result.created.id);
      else setExisting({ ...result.existing, data });
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const replace = async ({ workflow, etag, data }: NonNullable<typeof existing>) => {
    await updateWorkflow(workflow.id, etag, { data });
    await show(workflow.id);
  };
  return (
    <div className="page">
      <div className="page-head">
        <h1>New workflow</h1>
      </div>
      <form
        className="row wrap"
        onSubmit={event => {
          event.preventDefault();
          if (!isBusy) void create();
        }}
      >
        <Field
          label="Slug"
          hint="Optional. A short id, unique among your workflows. You are asked before an existing one changes."
        >
          {attributes => (
            <input {...attributes} className="input" value={slug} onChange={event => setSlug(event.target.value)} />
          )}
        </Field>
        <span className="spacer" />
        <button className="button primary" disabled={isBusy || found.some(one => one.severity === 'error')}>
          {isBusy ? 'Creating…' : 'Create workflow'}
        </button>
      </form>
      {error !== undefined && <Failed error={error} />}
      {existing && (
        <ActionDialog
          title={`Save as a new version of ${existing.workflow.slug ?? existing.workflow.id}?`}
          action="Save as new version"
          isOpen
          onClose={() => setExisting(null)}
          act={() => replace(existing)}
        >
          <p>
            You already have a workflow with this slug: <Name text={existing.workflow.name} />, version{' '}
            {existing.workflow.version}. New executions of it will run this definition. Close the dialog and choose
            another slug to create a separate workflow.
          </p>
        </ActionDialog>
      )}
      <Suspense fallback={<Loading what="the editor" />}>
        <Editor text={FIRST} syntax="yaml" onText={setText} onFound={setFound} />
      </Suspense>
    </div>
  );
}
