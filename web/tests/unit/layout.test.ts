import { expect, test } from 'vitest';
import { draftOf } from '@/features/graph/layout';
import type { Plan } from '@/features/workflows/queries';

const step = (id: string, more: object = {}) => ({ id, type: 'effect', effect: 'bash', ...more });

function connections(plan: Partial<Plan>): string[] {
  return draftOf({ workflowHash: '', steps: [], ...plan }).draft.connections.map(
    ({ from, to, kind }) => `${from} ${kind} ${to}`,
  );
}

test('finally follows the last step of a sequence', () => {
  const plan = { steps: [step('a'), step('b')], finally: [step('c'), step('d')] };
  expect(connections(plan)).toEqual(['a ended b', 'c ended d', 'b always c']);
});

test('finally follows each end of a graph, and no step within a container', () => {
  const plan = {
    order: 'edges' as const,
    steps: [
      step('a'),
      step('b', { edges: [{ from: 0 }] }),
      { id: 'each', type: 'loop', forEach: '@input.list', steps: [step('inner')], edges: [{ from: 0 }] },
    ],
    finally: [step('c')],
  };
  expect(connections(plan)).toEqual(['a ended b', 'a ended each', 'b always c', 'each always c']);
});
