/** Budgets of the organization and its workflows for a day or a month, and what each workflow has used. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Empty, Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { amountText, QUANTITIES, type Amounts } from '@/features/execution/budget';
import { More, Table } from './parts';
import { budgetsQuery, usageQuery, type UsagePeriod } from './queries';

/** The workflow of a row. A deleted one has no page. */
function Subject({ id, name }: { id: string | null | undefined; name: string | null | undefined }) {
  if (id == null) return <>Organization</>;
  if (name == null) return <code>{id}</code>;
  return (
    <Link to="/workflows/$id" params={{ id }}>
      <Name text={name} />
    </Link>
  );
}

function Budgets() {
  const budgets = useQuery(budgetsQuery);
  if (budgets.isPending) return <Loading what="budgets" />;
  if (budgets.isError) return <Failed error={budgets.error} retry={() => void budgets.refetch()} />;
  if (budgets.data.budgets.length === 0)
    return (
      <Empty>
        No budget limits a day or a month. Admins set one with <code>mainspring budgets set</code>.
      </Empty>
    );
  return (
    <Table label="Budgets" heads={['Budget', 'Period', 'Quantity', 'Used', 'Limit', 'Raised', 'Left', 'Then']}>
      {budgets.data.budgets.flatMap(budget => {
        const [limits, used, raised, left] = [budget.limits, budget.used, budget.raised, budget.left] as Amounts[];
        const limited = QUANTITIES.filter(({ key }) => limits?.[key] != null);
        return limited.map(({ key, label }) => (
          <tr key={`${budget.id} ${key}`}>
            <td>
              <Subject id={budget.workflow} name={budget.workflowName} />
            </td>
            <td>{budget.current}</td>
            <td>{label}</td>
            <td className="number">{amountText(used?.[key] ?? 0)}</td>
            <td className="number">{amountText(limits?.[key])}</td>
            <td className="number">{amountText(raised?.[key] ?? 0)}</td>
            <td className="number">{amountText(left?.[key])}</td>
            <td>{budget.onExceeded === 'ask' ? 'Asks admins' : 'Fails'}</td>
          </tr>
        ));
      })}
    </Table>
  );
}

const PERIODS: { value: UsagePeriod; label: string }[] = [
  { value: 'month', label: 'This month' },
  { value: 'day', label: 'Days of this month' },
];

export function OrganizationUsage() {
  const [period, setPeriod] = useState<UsagePeriod>('month');
  const pages = useInfiniteQuery(usageQuery(period));
  const rows = pages.data?.pages.flatMap(page => page.usage) ?? [];
  return (
    <div className="stack">
      <h2>Budgets</h2>
      <Budgets />
      <h2>Usage</h2>
      <Field label="Period">
        {attributes => (
          <select
            {...attributes}
            className="input"
            value={period}
            onChange={event => setPeriod(event.target.value as UsagePeriod)}
          >
            {PERIODS.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {pages.isPending ? (
        <Loading what="the usage" />
      ) : pages.isError ? (
        <Failed error={pages.error} retry={() => void pages.refetch()} />
      ) : rows.length === 0 ? (
        <Empty>No agent has called a model or a tool this month.</Empty>
      ) : (
        <>
          <Table label="Usage by workflow" heads={['Period', 'Workflow', ...QUANTITIES.map(({ label }) => label)]}>
            {rows.map(row => (
              <tr key={`${row.period} ${row.workflow ?? ''}`}>
                <td>{row.period}</td>
                <td>
                  <Subject id={row.workflow} name={row.workflowName} />
                </td>
                {QUANTITIES.map(({ key }) => (
                  <td key={key} className="number">
                    {amountText((row.used as Amounts)[key] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </Table>
          <More pages={pages} />
        </>
      )}
      <p className="muted small">Periods are in UTC. Reserved amounts of calls in progress count in budgets.</p>
    </div>
  );
}
