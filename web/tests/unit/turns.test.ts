import { expect, test, vi } from 'vitest';
import type { Attempt } from '@/api/client';
import { watchExecution } from '@/api/events';
import { AttemptStore } from '@/features/execution/attempts';
import { turnsOf } from '@/features/execution/turns';

vi.mock('@/api/events', () => ({ watchExecution: vi.fn() }));
vi.mock('@/features/execution/queries', () => ({
  attemptsPage: () => Promise.resolve({ steps: [], nextCursor: null }),
  refresh: vi.fn(),
}));

const attempt = (stepId: string, more: object) =>
  ({ stepId, attempt: 1, status: 'completed', startedAt: '2026-01-01T00:00:00Z', ...more }) as unknown as Attempt;

test('turns have the calls of their answers, in the order of the answer, and those that were not made', () => {
  const toolCalls = [
    { id: 'b', name: 'two', arguments: 2 },
    { id: 'x', name: 'unknown', arguments: {} },
    { id: 'a', name: 'one', arguments: 1 },
  ];
  const all = [
    attempt('each[1].ask', {}),
    attempt('each[1].ask#2', { status: 'running' }),
    attempt('each[1].ask#1', { status: 'failed' }),
    attempt('each[1].ask#1', { attempt: 2, output: { text: 'Hm.', toolCalls } }),
    attempt('each[1].ask#1.calls', {}),
    attempt('each[1].ask#1.1', { input: { id: 'a' } }),
    attempt('each[1].ask#1.2', { input: { id: 'b' } }),
    attempt('each[10].ask#1', {}),
    attempt('each[1].asked#1', {}),
  ];
  const turns = turnsOf('each[1].ask', all);
  expect(turns.map(turn => [turn.number, turn.attempts.length, turn.answer?.text])).toEqual([
    [1, 2, 'Hm.'],
    [2, 1, undefined],
  ]);
  expect(turns[0]?.calls.map(call => [call.tool, call.name, call.attempts.length])).toEqual([
    ['two', 'each[1].ask#1.2', 1],
    ['unknown', null, 0],
    ['one', 'each[1].ask#1.1', 1],
  ]);
});

test('texts of an attempt grow until its end, and begin anew after a reconnect', () => {
  const store = new AttemptStore('e');
  store.start(true);
  const watcher = vi.mocked(watchExecution).mock.lastCall?.[1];
  const event = (type: string) => ({ type, executionId: 'e', ts: '', stepId: 'ask#1', attempt: 1 });
  const said = (text: string) => watcher?.onTexts([{ stepId: 'ask#1', attempt: 1, text }]);
  said('The ');
  watcher?.onEvents([event('step.started')]);
  said('end');
  expect(store.read().partial.get('ask#1')).toBe('The end');
  watcher?.onTexts([]);
  expect(store.read().partial.size).toBe(0);
  said('The end');
  watcher?.onEvents([event('step.completed')]);
  expect(store.read().partial.size).toBe(0);
});
