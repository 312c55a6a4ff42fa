/** The usage of an execution: what its agents and its ended children have used, and what its budget leaves. */
import type { Execution } from '@/api/client';
import type { PlanStep } from '@/features/workflows/queries';
import { amountText, QUANTITIES, usageOf, type Amounts, type Usage } from './budget';

/** One row for each quantity that is used or limited. */
export function UsageTable({ usage, label }: { usage: Usage; label: string }) {
  const rows = QUANTITIES.filter(({ key }) =>
    [usage.used, usage.reserved, usage.limits].some(part => part?.[key] != null),
  );
  const hasReserved = usage.reserved !== undefined;
  const hasLimits = usage.limits !== undefined;
  if (rows.length === 0) return <p className="muted">Nothing is used yet.</p>;
  return (
    <div className="table-scroll card" tabIndex={0} role="region" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Quantity</th>
            <th scope="col">Used</th>
            {hasReserved && <th scope="col">Reserved</th>}
            {hasLimits && <th scope="col">Limit</th>}
            {hasLimits && <th scope="col">Left</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, label: name }) => (
            <tr key={key}>
              <th scope="row">{name}</th>
              <td className="number">{amountText(usage.used[key] ?? 0)}</td>
              {hasReserved && <td className="number">{amountText(usage.reserved?.[key] ?? 0)}</td>}
              {hasLimits && <td className="number">{amountText(usage.limits?.[key])}</td>}
              {hasLimits && <td className="number">{amountText(usage.left?.[key])}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What each step has used, all its rounds together. */
function StepUsage({ steps }: { steps: Record<string, Amounts> }) {
  const columns = QUANTITIES.filter(({ key }) => Object.values(steps).some(used => used[key] != null));
  return (
    <div className="table-scroll card" tabIndex={0} role="region" aria-label="Usage by step">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Step</th>
            {columns.map(({ key, label }) => (
              <th key={key} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(steps).map(([id, used]) => (
            <tr key={id}>
              <th scope="row">
                <code>{id}</code>
              </th>
              {columns.map(({ key }) => (
                <td key={key} className="number">
                  {amountText(used[key] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The view of the usage. */
export function UsageView({ execution }: { execution: Execution }) {
  const usage = usageOf(execution);
  if (!usage) return <p className="muted">The execution has no agents and no budget.</p>;
  return (
    <div className="stack">
      <UsageTable usage={usage} label="Usage" />
      {usage.steps && <StepUsage steps={usage.steps} />}
      <p className="muted small">
        Calls in progress count as reserved. Children share the budget, and count when they have ended.
        {usage.raised && ' People have raised the budget; the limits include that.'}
      </p>
    </div>
  );
}

/** Usage and limits in the drawer of an agent. */
export function AgentUsage({ execution, step, output }: { execution: Execution; step: PlanStep; output: unknown }) {
  const usage = usageOf(execution);
  const budget = step.turns?.budget;
  const limits = QUANTITIES.filter(({ key }) => budget?.[key] != null);
  const counted = tokensOf(output);
  return (
    <section className="stack value" aria-label="Budget">
      <h3>Budget</h3>
      {limits.length > 0 && (
        <p>
          Limits of the step:{' '}
          {limits.map(({ key, label }) => `${amountText(budget?.[key])} ${label.toLowerCase()}`).join(', ')}
        </p>
      )}
      {counted !== null && <p>Used by the step: {amountText(counted)} tokens</p>}
      {usage ? (
        <UsageTable usage={usage} label="Budget of the execution" />
      ) : (
        <p className="muted">The execution has used nothing yet, and has no budget.</p>
      )}
    </section>
  );
}

/** Tokens of all answers, from the output of an ended agent. */
function tokensOf(output: unknown): number | bigint | null {
  const usage = (output as { usage?: Record<string, number | bigint> } | null)?.usage;
  if (!usage || usage['inputTokens'] === undefined || usage['outputTokens'] === undefined) return null;
  return Number(usage['inputTokens']) + Number(usage['outputTokens']);
}
