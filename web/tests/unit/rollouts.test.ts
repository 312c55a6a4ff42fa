import { expect, test } from 'vitest';
import { rolloutText } from '@/features/execution/model';
import { isValidRollout } from '@/features/workflows/proposals';
import { FIGURES, thresholdTexts } from '@/features/workflows/rollouts';

test.each([
  [1, 1, null, true],
  [99, 5000, 0, true],
  [0, 20, null, false],
  [100, 20, null, false],
  [1.5, 20, null, false],
  [10, 0, null, false],
  [10, 5001, null, false],
  [10, 20, 101, false],
  [10, 20, Number.NaN, false],
])('a rollout of %s % with a minimum of %s and a rate of %s is valid: %s', (percent, minimum, rate, expected) => {
  expect(isValidRollout({ percent, minimum, maxFailureRatePercent: rate })).toBe(expected);
});

test('a side that has not ended has dashes, and a cut count a sign', () => {
  const none = { failureRatePercent: null, durationP50Ms: null, durationP95Ms: null, costMean: null, tokensMean: null };
  const counts = {
    starts: 5000,
    startsMore: true,
    completed: 0,
    failed: 0,
    cancelled: 0,
    refused: 0,
    roots: 0,
    overdue: 0,
    costTotal: 0,
    tokensTotal: 0,
  };
  const texts = FIGURES.map(([, text]) => text({ ...none, ...counts }));
  expect(texts).toEqual(['5,000+', '0', '0', '0', '0', '0', '0', '–', '–', '–', '–', '–']);
});

test('thresholds are words, and none are none', () => {
  expect(thresholdTexts({ compare: { maxFailureRatePercent: 5, maxCostRatio: 1.5 } })).toEqual([
    'failure rate in percent: at most 5',
    'ratio of mean costs: at most 1.5',
  ]);
  expect(thresholdTexts({})).toEqual([]);
});

test.each([
  [null, null],
  [{ version: 'candidate', percent: 10 }, 'candidate of a rollout to 10 %'],
  [{ version: 'stable', percent: 10 }, 'stable definition beside a rollout to 10 %'],
  [{ version: 'other' }, null],
])('the rollout %j reads %s', (rollout, expected) => {
  expect(rolloutText({ rollout })).toBe(expected);
});
