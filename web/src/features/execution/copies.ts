/** An execution as text for elsewhere: a `curl` line that starts it again, and a scenario file that replays it. */
import type { Attempt, Execution } from '@/api/client';
import { stringifyJson } from '@/api/json';

/** A text in single quotes for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The request that starts the workflow with the same input. The token comes from the environment. */
export function curlOf(execution: Execution, origin: string, key: string): string {
  const body = {
    workflowId: execution.workflowId,
    clientRequestId: key,
    input: execution.input ?? undefined,
    variables: execution.variables,
  };
  return [
    `curl -X POST ${quoted(`${origin}/api/triggers/manual/run`)}`,
    `  -H "Authorization: Bearer $MAINSPRING_TOKEN"`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quoted(stringifyJson(body))}`,
  ].join(' \\\n');
}

/** Types of errors that a scenario can return. */
interface ScenarioError {
  class?: unknown;
  code?: unknown;
  message?: unknown;
}

/** What an effect returned in one attempt. */
function effectOf(attempt: Attempt): unknown {
  const error = attempt.error as ScenarioError | null;
  if (error) return { error: { class: error.class, code: error.code, message: error.message } };
  return { return: attempt.output };
}

/** A scenario with the effects and decisions of the execution, and its end as the expectation. */
export function scenarioOf(
  execution: Execution,
  attempts: Attempt[],
  kinds: Map<string, string>,
  templateOf: (name: string) => string,
): unknown {
  const calls = attempts.filter(attempt => attempt.attempt > 0 && kinds.get(templateOf(attempt.stepId)) === 'effect');
  const effects: Record<string, unknown> = {};
  for (const step of new Set(calls.map(attempt => attempt.stepId))) {
    const all = calls.filter(attempt => attempt.stepId === step && attempt.completedAt).map(effectOf);
    if (all.length > 0) effects[step] = all.length === 1 ? all[0] : all;
  }
  const start = Date.parse(execution.startedAt);
  const inbox = attempts
    .flatMap(attempt => attempt.decisions ?? [])
    .filter(decision => decision.by)
    .map(decision => ({
      at: { time: `${Math.ceil((Date.parse(decision.at) - start) / 1000)}s` },
      decide: decision.decision,
    }));
  const expect = {
    status: execution.status,
    ...(execution.outcome ? { outcome: execution.outcome } : {}),
    ...(execution.status === 'completed' ? { output: execution.outputs } : {}),
    ...(execution.errorCode ? { error_contains: [execution.errorCode] } : {}),
  };
  const scenario = {
    name: `as execution ${execution.id}`,
    definition: `${execution.workflowName ?? 'workflow'}.yaml`,
    ...(execution.input === null ? {} : { input: execution.input }),
    ...(Object.keys((execution.variables ?? {}) as object).length > 0 ? { variables: execution.variables } : {}),
    ...(Object.keys(effects).length > 0 ? { effects } : {}),
    ...(inbox.length > 0 ? { inbox } : {}),
    expect,
  };
  return { cases: [scenario] };
}
