import { expect, test } from 'vitest';
import { permitsProposals, textLines } from '@/features/workflows/proposals';

test('a unified difference becomes lines without the names of its files', () => {
  const diff = '--- base\n+++ proposed\n@@ -1,2 +1,2 @@\n name: a\n-x: 1\n+x: 2\n';
  expect(textLines(diff)).toEqual([
    { kind: 'gap', text: '@@ -1,2 +1,2 @@' },
    { kind: 'same', text: 'name: a' },
    { kind: 'removed', text: 'x: 1' },
    { kind: 'added', text: 'x: 2' },
  ]);
  expect(textLines('')).toEqual([]);
});

test.each([
  [{}, false],
  [{ constraints: {} }, false],
  [{ constraints: { allowSelfModification: 'true' } }, false],
  [{ constraints: { allowSelfModification: true } }, true],
])('a workflow with %j permits proposals: %s', (data, expected) => {
  expect(permitsProposals({ data } as never)).toBe(expected);
});
