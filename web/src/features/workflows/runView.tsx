/** Starts a workflow: a form from its input schema, or JSON; also again with the edited input of an earlier execution. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { requestId } from '@/api/requestId';
import { ApiError, type Execution, type Workflow } from '@/api/client';
import { Json } from '@/design/json';
import { Failed, Loading, Notice } from '@/design/parts';
import { executionQuery } from '@/features/execution/queries';
import { initialValue, isValid, JsonField, Members, type InputSchema } from './inputForm';
import { startWorkflow } from './queries';

/** A variable as definitions declare it. */
interface Variable {
  type?: string;
  default?: unknown;
  description?: string;
  required?: boolean;
}

/** The declared variables as the schema of an object. */
function variablesSchema(data: Record<string, unknown>): InputSchema | null {
  const declared = data['variables'];
  if (typeof declared !== 'object' || declared === null) return null;
  const entries = Array.isArray(declared)
    ? (declared as (Variable & { name: string })[]).map((variable): [string, Variable] => [variable.name, variable])
    : Object.entries(declared as Record<string, Variable>);
  const properties = Object.fromEntries(
    entries.map(([name, variable]) => [
      name,
      typeof variable === 'object' && variable !== null ? (variable as unknown as InputSchema) : {},
    ]),
  );
  const required = entries.filter(([, variable]) => variable?.required).map(([name]) => name);
  return { type: 'object', properties, required };
}

function RunForm({ workflow, from }: { workflow: Workflow; from: Execution | null }) {
  const navigate = useNavigate();
  const data = workflow.data as Record<string, unknown>;
  const schema = (data['inputSchema'] ?? null) as InputSchema | null;
  const variables = variablesSchema(data);
  const [input, setInput] = useState<unknown>(() => (from ? (from.input ?? undefined) : initialValue(schema)));
  const [vars, setVars] = useState<unknown>(() => (from ? from.variables : initialValue(variables)));
  const [isJson, setJson] = useState(!schema?.properties);
  const [key] = useState(() => requestId());
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const isReady = isValid(input) && isValid(vars) && workflow.enabled;

  const start = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const variablesGiven = vars !== undefined && Object.keys(vars as object).length > 0;
      const request = {
        workflowId: workflow.id,
        ...(input === undefined ? {} : { input }),
        ...(variablesGiven ? { variables: vars as Record<string, unknown> } : {}),
      };
      const id = await startWorkflow(request, key);
      await navigate({ to: '/executions/$id', params: { id } });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form
      className="run-form"
      onSubmit={event => {
        event.preventDefault();
        if (isReady && !isBusy) void start();
      }}
    >
      {from && (
        <Notice tone="idle">
          The fields have the input of execution {from.id}. The current version of the workflow, {workflow.version},
          will run
          {from.workflowVersion && from.workflowVersion !== workflow.version ? `, not ${from.workflowVersion}` : ''}.
        </Notice>
      )}
      {!workflow.enabled && (
        <Notice tone="wait">The workflow is disabled. Enable it under Settings to start it.</Notice>
      )}
      <fieldset className="stack">
        <legend>Input</legend>
        {schema?.properties && (
          <label className="row">
            <input type="checkbox" checked={isJson} onChange={event => setJson(event.target.checked)} /> Write as JSON
          </label>
        )}
        {isJson ? (
          <JsonField key="json" name="Input" value={input} change={setInput} />
        ) : (
          schema && <Members schema={schema} value={input} change={setInput} />
        )}
      </fieldset>
      {(variables || from) && (
        <fieldset className="stack">
          <legend>Variables</legend>
          {variables ? (
            <Members schema={variables} value={vars} change={setVars} />
          ) : (
            <JsonField name="Variables" value={vars} change={setVars} />
          )}
        </fieldset>
      )}
      {error !== undefined && (
        <>
          <Failed error={error} />
          {error instanceof ApiError && typeof error.details === 'object' && error.details !== null && (
            <Json value={error.details} />
          )}
        </>
      )}
      <div>
        <button className="button primary" disabled={!isReady || isBusy}>
          {isBusy ? 'Starting…' : 'Start'}
        </button>
      </div>
    </form>
  );
}

export function RunView({ workflow, rerun }: { workflow: Workflow; rerun: string | undefined }) {
  const from = useQuery({ ...executionQuery(rerun ?? ''), enabled: rerun !== undefined });
  if (rerun && from.isPending) return <Loading what="the earlier execution" />;
  if (rerun && from.isError) return <Failed error={from.error} />;
  return <RunForm key={rerun ?? ''} workflow={workflow} from={from.data ?? null} />;
}
