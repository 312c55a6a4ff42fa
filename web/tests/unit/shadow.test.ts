import { expect, test } from 'vitest';
import { countsOf, outcomeText, withheldOf, type ShadowExecution } from '@/features/workflows/shadow';

const EXECUTION: ShadowExecution = {
  executionId: 'one',
  grade: 'no_answer',
  stop: 'horizon',
  recorded: { status: 'completed' },
  replayed: null,
  answered: 3,
  horizon: [
    { step: 'pay', number: 1, kind: 'http', reason: 'not_recorded' },
    { step: 'ask', number: 1, kind: 'approval', reason: 'other_input' },
  ],
  differences: [],
  differencesTotal: 0,
  notReached: 0,
};

test('an outcome has both ends if they differ', () => {
  expect(outcomeText(EXECUTION)).toBe('completed → open (horizon)');
  expect(outcomeText({ ...EXECUTION, replayed: { status: 'completed' } })).toBe('completed');
  expect(outcomeText({ ...EXECUTION, replayed: { status: 'failed', reason: 'bad' } })).toBe('completed → failed (bad)');
  expect(outcomeText({ ...EXECUTION, recorded: null, stop: 'its journal is missing' })).toBe('its journal is missing');
});

test('withheld effects are apart from waits, with their executions', () => {
  const { effects, waits } = withheldOf({ counts: {}, executions: [EXECUTION, { ...EXECUTION, executionId: 'two' }] });
  expect(effects.map(({ executionId, kind }) => [executionId, kind])).toEqual([
    ['one', 'http'],
    ['two', 'http'],
  ]);
  expect(waits.map(({ kind }) => kind)).toEqual(['approval', 'approval']);
});

test('the most severe grades come first, and those without executions not at all', () => {
  const counts = { same: 4, other_output: 0, other_input: 1, unusable: 2, of_a_later_release: 1 };
  expect(countsOf({ counts, executions: [] }).map(([grade]) => grade)).toEqual([
    'unusable',
    'other_input',
    'same',
    'of_a_later_release',
  ]);
});
