/** Budgets as the API has them. */
import type { Execution } from '@/api/client';

export type Quantity = 'tokens' | 'cost' | 'modelCalls' | 'toolCalls' | 'timeMs';

/** The quantities in the order in which they are shown. */
export const QUANTITIES: { key: Quantity; label: string }[] = [
  { key: 'tokens', label: 'Tokens' },
  { key: 'cost', label: 'Cost' },
  { key: 'modelCalls', label: 'Model calls' },
  { key: 'toolCalls', label: 'Tool calls' },
  { key: 'timeMs', label: 'Milliseconds of calls' },
];

/** Amounts of quantities. An integer beyond 2^53 is a `bigint`. */
export type Amounts = Partial<Record<Quantity, number | bigint>>;

export interface Usage {
  used: Amounts;
  reserved?: Amounts;
  limits?: Amounts;
  left?: Amounts;
  raised?: Amounts;
  /** The used amounts of each step, by its id. */
  steps?: Record<string, Amounts>;
}

/** The usage of an execution; null for one without agents and budgets. */
export function usageOf(execution: Execution): Usage | null {
  return (execution.usage ?? null) as Usage | null;
}

/** An amount with separators; a dash for a quantity without a limit. */
export function amountText(amount: number | bigint | undefined): string {
  return amount === undefined ? '–' : amount.toLocaleString('en', { maximumFractionDigits: 9 });
}
