import { parse } from 'yaml';
import { expect, test } from 'vitest';
import {
  afterSave,
  converted,
  hasChanges,
  opened,
  read,
  readAsServer,
  written,
  type Draft,
  type Syntax,
} from '@/features/workflows/definitionText';

const SYNTAXES: Syntax[] = ['yaml', 'json'];

const DATA = { name: 'a', steps: [{ id: 'one', input: { id: 9007199254740993n, small: 7, share: 0.5 } }] };

test.each(SYNTAXES)('a definition keeps its integers as %s', async syntax => {
  expect(await read(await written(DATA, syntax), syntax)).toEqual(DATA);
});

test('integers of YAML are exact in every notation that it has', async () => {
  const text = 'a: 18446744073709551615\nb: -9223372036854775808\nc: 0x7\nd: +5\ne: 1.0\nf: "9007199254740993"';
  expect(await read(text, 'yaml')).toEqual({
    a: 18446744073709551615n,
    b: -9223372036854775808n,
    c: 7,
    d: 5,
    e: 1,
    f: '9007199254740993',
  });
});

test.each(['5', '[]', 'null', ''])('%j is no definition', async text => {
  await expect(read(text, 'yaml')).rejects.toThrow('must be an object');
});

const typed = (draft: Draft, text: string): Draft => ({ ...draft, text });

test('after a change of the notation the screen has the edit, and it is what is saved', async () => {
  const draft = typed(await opened(DATA, 'yaml'), 'name: edited\nsteps: []\n');
  const next = await converted(draft, DATA, 'json');
  expect(next.start).toBe(next.text);
  expect(await read(next.text, next.syntax)).toEqual({ name: 'edited', steps: [] });
  expect(hasChanges(next)).toBe(true);
  expect(next.edition).not.toBe(draft.edition);
  expect(parse((await converted(next, DATA, 'yaml')).text)).toEqual({ name: 'edited', steps: [] });
});

test('a text that cannot be read stays in its notation', async () => {
  const draft = typed(await opened(DATA, 'yaml'), 'name: [');
  await expect(converted(draft, DATA, 'json')).rejects.toThrow();
});

test('without an edit a change of the notation is no change', async () => {
  const next = await converted(await opened(DATA, 'yaml'), DATA, 'json');
  expect([next.syntax, hasChanges(next)]).toEqual(['json', false]);
});

test('text that was typed during a save stays as a change', async () => {
  const draft = typed(await opened(DATA, 'yaml'), 'name: sent\n');
  expect(hasChanges(await afterSave(draft, draft.text, { name: 'sent' }))).toBe(false);
  const later = await afterSave(typed(draft, 'name: later\n'), draft.text, { name: 'sent' });
  expect([later.text, later.edition, hasChanges(later)]).toEqual(['name: later\n', draft.edition, true]);
});

test('a text that the server reads differently is not saved', async () => {
  const compile = (definition: unknown) =>
    Promise.resolve({ workflowHash: typeof definition === 'string' ? 'sha256:a' : 'sha256:b' });
  await expect(readAsServer('name: a', 'yaml', compile)).rejects.toThrow('was not saved');
  const same = () => Promise.resolve({ workflowHash: 'sha256:a' });
  expect(await readAsServer('name: a', 'yaml', same)).toEqual({ name: 'a' });
});
