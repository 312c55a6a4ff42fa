import { expect, test } from 'vitest';
import type { Me, Member } from '@/api/client';
import { mayChangeMember, memberChange, secretProblem, settingsChange } from '@/features/installation/model';
import { mayActFor } from '@/features/session/queries';
import { settingsChange as workflowChange } from '@/features/workflows/settings';

const SETTINGS = {
  name: 'Org',
  features: { workflow_runtime_v1: true, other: false },
  perUser: '10',
  perOrganization: '100',
  perWorkflow: '',
};

test('settings: the request has the changed fields only', () => {
  expect(settingsChange(SETTINGS, { ...SETTINGS })).toBeNull();
  expect(settingsChange(SETTINGS, { ...SETTINGS, name: 'New' })).toEqual({ name: 'New' });
  expect(settingsChange(SETTINGS, { ...SETTINGS, perUser: '5' })).toEqual({ limits: { perUser: 5 } });
  expect(settingsChange({ ...SETTINGS, perWorkflow: '7' }, SETTINGS)).toEqual({ limits: { perWorkflow: null } });
  expect(settingsChange(SETTINGS, { ...SETTINGS, features: { ...SETTINGS.features, other: true } })).toEqual({
    features: { other: true },
  });
});

const MEMBER = { id: 'vic', name: 'Vic', role: 'admin', operator: false } as Member;

test('members: the request has the changed fields only', () => {
  expect(memberChange(MEMBER, { name: 'Vic', role: 'admin' })).toBeNull();
  expect(memberChange(MEMBER, { name: ' Victor ', role: 'admin' })).toEqual({ name: 'Victor' });
  expect(memberChange(MEMBER, { name: 'Vic', role: 'viewer' })).toEqual({ role: 'viewer' });
});

test('workflows: the request has the changed fields only', () => {
  const form = { name: 'a', description: 'b', tags: 'x, y', isEnabled: true };
  expect(workflowChange(form, { ...form })).toBeNull();
  expect(workflowChange(form, { ...form, isEnabled: false })).toEqual({ enabled: false });
  expect(workflowChange(form, { ...form, description: '', tags: ' ,' })).toEqual({ description: null, tags: null });
});

const me = (role: string, isPerson = true) => ({ userId: 'ann', role, isPerson }) as Me;

test.each([
  [me('member'), 'ann', true],
  [me('member'), 'bob', false],
  [me('viewer'), 'bob', false],
  [me('admin'), 'bob', true],
  [me('owner'), 'bob', true],
  [me('owner', false), 'bob', false],
  [me('member'), null, false],
  [null, 'ann', false],
])('%j acts for %s: %s', (who, userId, expected) => {
  expect(mayActFor(who, userId)).toBe(expected);
});

test.each([
  ['admin', [], { role: 'member', operator: false }, true],
  ['admin', [], { role: 'owner', operator: false }, false],
  ['owner', [], { role: 'owner', operator: false }, true],
  ['owner', [], { role: 'owner', operator: true }, false],
  ['owner', ['installation:write'], { role: 'owner', operator: true }, true],
] as const)('a member with the role %s and %j changes %j: %s', (role, permissions, member, expected) => {
  expect(mayChangeMember({ role, permissions }, member)).toBe(expected);
});

test('the bounds of a secret are in bytes', () => {
  expect(secretProblem('1234567')).toContain('7 of at least 8');
  expect(secretProblem('12345678')).toBeUndefined();
  expect(secretProblem('\u00fc\u00fc\u00fc\u00fc')).toBeUndefined();
  expect(secretProblem('x'.repeat(32_768))).toBeUndefined();
  expect(secretProblem('\u00fc'.repeat(16_385))).toContain('32770 bytes');
});
