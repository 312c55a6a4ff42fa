/** Step instances as a tree: loops contain rounds, rounds contain steps. Instances have names such as `each[3].send`. */
import type { Attempt } from '@/api/client';

/** One step instance, or a round of a loop, with its attempts. */
export interface Item {
  name: string;
  /** The part of the name that the item adds to its parent. */
  label: string;
  attempts: Attempt[];
  children: Item[];
  status: string;
  /** Milliseconds since 1970; `null` while it has not ended. */
  from: number;
  to: number | null;
}

/** Counts of instances by status. */
export type Counts = Record<string, number>;

/** Rounds up to which a loop is open at first. */
const OPEN_ROUNDS_MAX = 5;

/** The name of the item that contains another, or null for an item of the workflow itself. */
export function parentOf(name: string): string | null {
  const round = /^(.*)\[\d+\]$/.exec(name);
  if (round) return round[1] ?? null;
  const dot = name.lastIndexOf('.');
  return dot < 0 ? null : name.slice(0, dot);
}

/** The name without the numbers of rounds, the same for all instances of one step of the plan. */
export function templateOf(name: string): string {
  return name.replace(/\[\d+\]/g, '[]');
}

/** The name of the step in the plan that an instance belongs to; a turn of an agent belongs to the agent. */
export function planNameOf(name: string): string {
  return templateOf(name).replace(/#.*$/, '');
}

/** The outermost step of the workflow that contains an instance. */
export function outermostOf(name: string): string {
  return /^[^.[#]*/.exec(name)?.[0] ?? name;
}

/** The status of an instance: that of its last attempt, or while it waits for the next one, `retrying`. */
function statusOf(attempts: Attempt[]): string {
  return attempts.at(-1)?.status ?? 'running';
}

/** The worst status of the steps in a round, so that a folded loop shows what to look at. */
function worst(children: Item[]): string {
  const order = ['failed', 'waiting_approval', 'running', 'waiting', 'cancelled', 'completed', 'skipped'];
  return order.find(status => children.some(child => child.status === status)) ?? 'completed';
}

/** Builds the tree from attempts in the order of their start. */
export function treeOf(attempts: Attempt[]): Item[] {
  const items = new Map<string, Item>();
  const top: Item[] = [];
  const itemOf = (name: string): Item => {
    const known = items.get(name);
    if (known) return known;
    const parent = parentOf(name);
    const label = parent === null ? name : name.slice(parent.length).replace(/^\./, '');
    const item: Item = { name, label, attempts: [], children: [], status: 'running', from: Infinity, to: null };
    items.set(name, item);
    (parent === null ? top : itemOf(parent).children).push(item);
    return item;
  };
  for (const attempt of attempts) itemOf(attempt.stepId).attempts.push(attempt);
  const settle = (item: Item) => {
    item.children.forEach(settle);
    item.status = item.attempts.length > 0 ? statusOf(item.attempts) : worst(item.children);
    const ends = item.attempts.map(attempt => (attempt.completedAt ? Date.parse(attempt.completedAt) : null));
    const inner = item.attempts.length > 0 ? [] : item.children;
    item.from = Math.min(
      ...item.attempts.map(attempt => Date.parse(attempt.startedAt)),
      ...inner.map(child => child.from),
    );
    const all = [...ends, ...inner.map(child => child.to)];
    item.to = all.includes(null) ? null : Math.max(...(all as number[]));
  };
  top.forEach(settle);
  return top;
}

/** True if an item shows its children without being asked to. */
export function isOpenAtFirst(item: Item): boolean {
  return item.children.length <= OPEN_ROUNDS_MAX;
}

/** A visible row of the timeline. */
export interface Row {
  item: Item;
  depth: number;
  isOpen: boolean;
}

/** The visible rows. `toggled` has the items whose state differs from the first one. */
export function rowsOf(top: Item[], toggled: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  const visit = (item: Item, depth: number) => {
    const isOpen = item.children.length > 0 && isOpenAtFirst(item) !== toggled.has(item.name);
    rows.push({ item, depth, isOpen });
    if (isOpen) for (const child of item.children) visit(child, depth + 1);
  };
  for (const item of top) visit(item, 0);
  return rows;
}

/** Counts of the statuses of children, such as `118 completed, 2 failed`. */
export function countsOf(items: Item[]): Counts {
  const counts: Counts = {};
  for (const item of items) counts[item.status] = (counts[item.status] ?? 0) + 1;
  return counts;
}

/** Statuses of the instances of each step of the plan. */
export function countsByTemplate(attempts: Attempt[]): Map<string, Counts> {
  const last = new Map<string, string>();
  for (const attempt of attempts) last.set(attempt.stepId, attempt.status);
  const found = new Map<string, Counts>();
  for (const [name, status] of last) {
    const template = templateOf(name);
    const counts = found.get(template) ?? {};
    counts[status] = (counts[status] ?? 0) + 1;
    found.set(template, counts);
  }
  return found;
}

/** The side of a rollout that the execution took, as words; null without a rollout. */
export function rolloutText({ rollout }: { rollout?: unknown }): string | null {
  if (typeof rollout !== 'object' || rollout === null) return null;
  const { version, percent } = rollout as { version?: unknown; percent?: unknown };
  if (version === 'candidate') return `candidate of a rollout to ${String(percent)} %`;
  return version === 'stable' ? `stable definition beside a rollout to ${String(percent)} %` : null;
}
