import { expect, test, vi } from 'vitest';
import { requestId, workflowId } from '@/api/requestId';

test('ids need no secure context, and differ', () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal('crypto', { getRandomValues: getRandomValues.bind(crypto) });
  const ids = Array.from({ length: 100 }, requestId);
  expect(new Set(ids).size).toBe(100);
  for (const id of ids) expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(workflowId()).toMatch(/^wf-[\da-f]{16}$/);
});
