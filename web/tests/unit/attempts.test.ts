import { beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '@/api/client';
import { watchExecution } from '@/api/events';
import { AttemptStore } from '@/features/execution/attempts';
import { attemptsPage } from '@/features/execution/queries';

vi.mock('@/api/events', () => ({ watchExecution: vi.fn() }));
vi.mock('@/features/execution/queries', () => ({ attemptsPage: vi.fn(), refresh: vi.fn() }));

/** Pages of one attempt each. */
const PAGES = ['', '1', '2', '3'];

const page = (cursor: string) => ({
  steps: [{ stepId: `s${cursor}`, attempt: 1, status: 'completed' }],
  nextCursor: PAGES[PAGES.indexOf(cursor) + 1] ?? null,
});

const read = vi.mocked(attemptsPage);
const asked = () => read.mock.calls.map(([, cursor]) => cursor);

beforeEach(() => {
  vi.useFakeTimers();
  read.mockReset();
  read.mockImplementation((_, cursor) => Promise.resolve(page(cursor) as never));
});

const settle = () => vi.advanceTimersByTimeAsync(0);

function failOnce(cursor: string, status: number) {
  let isDone = false;
  read.mockImplementation((_, asked) => {
    if (asked !== cursor || isDone) return Promise.resolve(page(asked) as never);
    isDone = true;
    return Promise.reject(new ApiError(status, 'X', 'no', null));
  });
}

test('a failed page is retried, and the attempts are incomplete until then', async () => {
  failOnce('2', 503);
  const store = new AttemptStore('e');
  store.start(false);
  await settle();
  expect([store.read().all.length, store.read().isComplete]).toEqual([2, false]);
  expect(store.read().error).toBeInstanceOf(ApiError);
  await vi.advanceTimersByTimeAsync(1000);
  expect([store.read().all.length, store.read().isComplete, store.read().error]).toEqual([4, true, undefined]);
});

test('a refused page is read again on request', async () => {
  failOnce('1', 403);
  const store = new AttemptStore('e');
  store.start(false);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([store.read().all.length, store.read().isComplete, asked()]).toEqual([1, false, ['', '1']]);
  store.read().retry?.();
  await settle();
  expect([store.read().all.length, store.read().isComplete]).toEqual([4, true]);
});

test('a page whose request was aborted is read again', async () => {
  const watch = vi.mocked(watchExecution).mockReturnValue(() => {});
  const store = new AttemptStore('e');
  const stop = store.start(true);
  await settle();
  read.mockImplementation(
    (_id, _cursor, signal) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error))),
  );
  const event = { type: 'step.completed', executionId: 'e', ts: '', stepId: 's1', attempt: 1 };
  watch.mock.calls[0]?.[1].onEvents([event]);
  await vi.advanceTimersByTimeAsync(400);
  expect(asked().at(-1)).toBe('1');
  stop();
  read.mockReset();
  read.mockImplementation((_, cursor) => Promise.resolve(page(cursor) as never));
  store.start(false);
  await settle();
  expect(asked()).toContain('1');
  expect(store.read().isComplete).toBe(true);
});

test('the pause before another try grows', async () => {
  read.mockRejectedValue(new ApiError(503, 'X', 'no', null));
  new AttemptStore('e').start(false);
  await vi.advanceTimersByTimeAsync(60_000);
  // After 0, 1, 3, 7, 15, 30, 45 and 60 seconds.
  expect(read).toHaveBeenCalledTimes(8);
});
