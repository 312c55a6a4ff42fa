import { expect, test } from 'vitest';
import { rulesOf, rulesText } from '@/features/installation/model';

test('rules are read from lines, and written as lines', () => {
  const text = 'payment: deny\ngithub.delete_*: ask';
  expect(rulesOf(`\n${text}\n\n`)).toEqual({ rules: { payment: 'deny', 'github.delete_*': 'ask' } });
  expect(rulesText(rulesOf(text).rules)).toBe(text);
  expect(rulesOf('s.a:b: allow').rules).toEqual({ 's.a:b': 'allow' });
});

test('the first mistake is named with its line', () => {
  expect(rulesOf('payment: deny\nwrite').problem).toMatch(/^Line 2: write a class/);
  expect(rulesOf(': ask').problem).toMatch(/^Line 1/);
  expect(rulesOf('payment: never').problem).toMatch(/must be allow, ask or deny/);
  expect(rulesOf('read: ask\nread: deny').problem).toMatch(/^Line 2: read has a rule/);
});
