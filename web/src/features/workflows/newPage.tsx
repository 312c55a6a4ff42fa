/** Creates a workflow from a definition. */
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import type { Diagnostic } from '@/api/client';
import { useTitle } from '@/app/title';
import { Failed, Field, Loading } from '@/design/parts';
import { read } from './definitionView';
import { createWorkflow } from './queries';

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
  const create = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const saved = await createWorkflow(slug.trim(), await read(text));
      await navigate({ to: '/workflows/$id', params: { id: saved.id } });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
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
          void create();
        }}
      >
        <Field label="Slug" hint="Optional. A short id, unique among your workflows.">
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
      <Suspense fallback={<Loading what="the editor" />}>
        <Editor text={FIRST} syntax="yaml" onText={setText} onFound={setFound} />
      </Suspense>
    </div>
  );
}
