/** Changes of forms: the fields that the reader has changed, and no others. */
import type { Member, Organization, Role } from '@/api/client';
import type { MemberChange, SettingsChange } from './queries';

/** The settings as their fields have them. */
export interface SettingsForm {
  name: string;
  features: Record<string, boolean>;
  perUser: string;
  perOrganization: string;
  perWorkflow: string;
}

export function settingsForm({ name, features, limits }: Organization): SettingsForm {
  return {
    name,
    features: features as Record<string, boolean>,
    perUser: String(limits.perUser),
    perOrganization: String(limits.perOrganization),
    perWorkflow: String(limits.perWorkflow ?? ''),
  };
}

/** The members of `now` that differ from `before`; null if none does. */
function changed<T extends object>(before: T, now: T): Partial<T> | null {
  const different = Object.entries(now).filter(([key, value]) => before[key as keyof T] !== value);
  return different.length > 0 ? (Object.fromEntries(different) as Partial<T>) : null;
}

/** The request for what the form changes; null if it changes nothing. */
export function settingsChange(before: SettingsForm, now: SettingsForm): SettingsChange | null {
  const { features: featuresBefore, name: nameBefore, ...limitsBefore } = before;
  const { features: featuresNow, name, ...limitsNow } = now;
  const features = changed(featuresBefore, featuresNow);
  const texts = changed(limitsBefore, limitsNow);
  const limits =
    texts &&
    Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, (text ?? '').trim() === '' ? null : Number(text)]),
    );
  if (name === nameBefore && !features && !limits) return null;
  return {
    ...(name === nameBefore ? {} : { name }),
    ...(features ? { features: features as Record<string, boolean> } : {}),
    ...(limits ? { limits } : {}),
  };
}

/** The request for what the form changes of a member; null if it changes nothing. */
export function memberChange(before: Member, now: { name: string; role: Role }): MemberChange | null {
  const name = now.name.trim();
  const isRenamed = name !== '' && name !== (before.name ?? '');
  if (!isRenamed && now.role === before.role) return null;
  return { ...(isRenamed ? { name } : {}), ...(now.role === before.role ? {} : { role: now.role }) };
}

/** True if the server lets the reader change the member: owners are changed by owners, operators by operators. */
export function mayChangeMember(
  me: { role: Role; permissions: readonly string[] } | null,
  member: Pick<Member, 'role' | 'operator'>,
): boolean {
  if (!me) return false;
  if (member.role === 'owner' && me.role !== 'owner') return false;
  return !member.operator || me.permissions.includes('installation:write');
}

/** Names of secrets that the server accepts. */
export const SECRET_NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** Workflows that a secret names at most. The server has the same limit. */
export const SECRET_WORKFLOWS_MAX = 100;

/** Bounds of a value in bytes, as in the API. */
const SECRET_BYTES = { min: 8, max: 32_768 };

/** The reason why the server would refuse a value; undefined if its length is accepted. */
export function secretProblem(value: string): string | undefined {
  const bytes = new TextEncoder().encode(value).length;
  if (bytes < SECRET_BYTES.min) return `It has ${bytes} of at least ${SECRET_BYTES.min} bytes.`;
  if (bytes > SECRET_BYTES.max) return `It has ${bytes} bytes. At most ${SECRET_BYTES.max} are stored.`;
  return undefined;
}

const VERDICTS: readonly string[] = ['allow', 'ask', 'deny'];

/** Rules as lines, `KEY: VERDICT`. */
export const rulesText = (verdicts: Record<string, string>): string =>
  Object.entries(verdicts)
    .map(([key, verdict]) => `${key}: ${verdict}`)
    .join('\n');

/** Reads rules from lines. The server checks the keys; `problem` is the first mistake in the form of a line. */
export function rulesOf(text: string): { rules: Record<string, string>; problem?: string } {
  const rules: Record<string, string> = {};
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const at = line.lastIndexOf(':');
    const [key, verdict] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    const where = `Line ${index + 1}:`;
    if (at < 0 || key === '') return { rules, problem: `${where} write a class or a pattern, a colon and a verdict.` };
    if (!VERDICTS.includes(verdict)) return { rules, problem: `${where} the verdict must be allow, ask or deny.` };
    if (Object.hasOwn(rules, key)) return { rules, problem: `${where} ${key} has a rule above.` };
    rules[key] = verdict;
  }
  return { rules };
}
