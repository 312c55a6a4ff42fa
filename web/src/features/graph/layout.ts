/** Lays a plan out: nodes, containers and edges, placed by ELK in a worker. */
import ELK, { type ElkExtendedEdge, type ElkNode } from 'elkjs/lib/elk-api';
import workerUrl from 'elkjs/lib/elk-worker.min.js?url';
import type { Plan, PlanStep } from '@/features/workflows/queries';

/** Size of a node in pixels. */
export const NODE_WIDTH = 188;
export const NODE_HEIGHT = 46;

/** Space at the top of a container for its name. */
const CONTAINER_TOP = 34;

/** A step with its place. The position is relative to the container. */
export interface Place {
  template: string;
  step: PlanStep;
  parent: string | null;
  isContainer: boolean;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Connection {
  id: string;
  from: string;
  to: string;
  label: string;
  kind: string;
}

export interface Layout {
  places: Place[];
  connections: Connection[];
}

export interface Draft {
  steps: Map<string, { step: PlanStep; parent: string | null; isContainer: boolean }>;
  connections: Connection[];
}

let elk: InstanceType<typeof ELK> | undefined;

/** Blocks of a container by the word that leads to them. */
function blocksOf(step: PlanStep): [string, PlanStep[]][] {
  const blocks: [string, PlanStep[] | undefined][] = [
    ['', step.steps],
    ['then', step.then],
    ['else', step.else],
  ];
  return blocks.flatMap(([label, block]) => (block && block.length > 0 ? [[label, block]] : []));
}

function label(edge: { kind?: string; condition?: unknown }): string {
  const kind = edge.kind && edge.kind !== 'on_success' ? edge.kind.replaceAll('_', ' ') : '';
  return [kind, edge.condition === undefined ? '' : 'if'].filter(Boolean).join(', ');
}

/** Collects the steps of a block and the order among them. */
function collect(
  draft: Draft,
  steps: PlanStep[],
  order: string,
  parent: string | null,
  loops: string[],
  within: string,
): ElkNode[] {
  const names = steps.map(step => [...loops, step.id].join('.'));
  const connect = (from: number, to: number, text: string, kind: string) => {
    const [source, target] = [names[from], names[to]];
    if (source === undefined || target === undefined) return;
    draft.connections.push({
      id: `${source}>${target}#${within}${draft.connections.length}`,
      from: source,
      to: target,
      label: text,
      kind,
    });
  };
  steps.forEach((step, index) => {
    for (const edge of step.edges ?? []) connect(edge.from, index, label(edge), edge.kind ?? 'ended');
    if (order === 'sequence' && index > 0) connect(index - 1, index, '', 'ended');
  });
  return steps.map((step, index): ElkNode => {
    const name = names[index] ?? step.id;
    const blocks = blocksOf(step);
    draft.steps.set(name, { step, parent, isContainer: blocks.length > 0 });
    if (blocks.length === 0) return { id: name, width: NODE_WIDTH, height: NODE_HEIGHT };
    const inLoop = step.type === 'loop' || step.type === 'each' ? [...loops, `${step.id}[]`] : loops;
    const inner = step.type === 'parallel' ? 'parallel' : 'sequence';
    const children = blocks.flatMap(([word, block]) => collect(draft, block, inner, name, inLoop, word));
    return {
      id: name,
      children,
      layoutOptions: { 'elk.padding': `[top=${CONTAINER_TOP},left=12,bottom=12,right=12]` },
    };
  });
}

function placesOf(draft: Draft, nodes: ElkNode[]): Place[] {
  return nodes.flatMap(node => {
    const known = draft.steps.get(node.id);
    if (!known) return [];
    const { x = 0, y = 0, width = NODE_WIDTH, height = NODE_HEIGHT } = node;
    // A container stands before its content, as the drawing requires.
    return [{ template: node.id, ...known, x, y, width, height }, ...placesOf(draft, node.children ?? [])];
  });
}

/** Steps without a container that nothing of their own block follows. */
function lastOf(steps: PlanStep[], connections: Connection[]): PlanStep[] {
  const followed = new Set(connections.map(({ from }) => from));
  return steps.filter(step => !followed.has(step.id));
}

/** The nodes and connections of a plan. `finally` follows every last step, whatever its outcome. */
export function draftOf(plan: Plan): { draft: Draft; nodes: ElkNode[] } {
  const draft: Draft = { steps: new Map(), connections: [] };
  const nodes = collect(draft, plan.steps, plan.order ?? 'sequence', null, [], '');
  const last = lastOf(plan.steps, draft.connections);
  nodes.push(...collect(draft, plan.finally ?? [], 'sequence', null, [], 'finally'));
  const [cleanup] = plan.finally ?? [];
  if (cleanup) {
    for (const { id } of last) {
      draft.connections.push({
        id: `${id}>${cleanup.id}#finally`,
        from: id,
        to: cleanup.id,
        label: 'always',
        kind: 'always',
      });
    }
  }
  return { draft, nodes };
}

/** Places the steps of a plan, from left to right or from top to bottom. */
export async function layoutOf(plan: Plan, direction: 'RIGHT' | 'DOWN'): Promise<Layout> {
  const { draft, nodes: children } = draftOf(plan);
  const edges: ElkExtendedEdge[] = draft.connections.map(({ id, from, to, label: text }) => ({
    id,
    sources: [from],
    targets: [to],
    ...(text ? { labels: [{ text, width: text.length * 6 + 8, height: 14 }] } : {}),
  }));
  elk ??= new ELK({ workerFactory: () => new Worker(workerUrl) });
  const placed = await elk.layout({
    id: 'plan',
    children,
    edges,
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': direction,
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.layered.spacing.nodeNodeBetweenLayers': '38',
      'elk.spacing.nodeNode': '18',
      'elk.layered.considerModelOrder.strategy': 'NODES_AND_EDGES',
    },
  });
  return { places: placesOf(draft, placed.children ?? []), connections: draft.connections };
}
