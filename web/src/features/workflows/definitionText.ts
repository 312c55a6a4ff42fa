/** Definitions as text: YAML or JSON, with exact integers, and the draft of an edit. */
import { parseJson, stringifyJson } from '@/api/json';
import type { Plan } from './queries';

export type Syntax = 'yaml' | 'json';

/** A definition as text. */
export async function written(data: unknown, syntax: Syntax): Promise<string> {
  if (syntax === 'json') return `${stringifyJson(data, 2)}\n`;
  return (await import('yaml')).stringify(data, { lineWidth: 110 });
}

/** The value with `bigint` only for integers that are not safe, as `parseJson` gives it. */
function narrowed(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(narrowed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, narrowed(member)]));
}

/** The object that a text describes. */
export async function read(text: string, syntax: Syntax): Promise<Record<string, unknown>> {
  const value = syntax === 'json' ? parseJson(text) : await readYaml(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('The text is not the definition of a workflow: it must be an object.');
  }
  return value as Record<string, unknown>;
}

async function readYaml(text: string): Promise<unknown> {
  return narrowed((await import('yaml')).parse(text, { intAsBigInt: true }) as unknown);
}

/** Compiles a text, or a value, at the server. */
export type Compile = (definition: unknown) => Promise<Pick<Plan, 'workflowHash'>>;

/**
 * The object that a text describes, if the server reads the same one. The server compiles the text, and stores the
 * object; two readers of YAML can differ.
 */
export async function readAsServer(text: string, syntax: Syntax, compile: Compile): Promise<Record<string, unknown>> {
  const data = await read(text, syntax);
  const [ofText, ofData] = await Promise.all([compile(text), compile(data)]);
  if (ofText.workflowHash === ofData.workflowHash) return data;
  throw new Error(
    'The definition was not saved: the browser reads the text differently from the server. Write it as JSON, or save the file with `mainspring save`.',
  );
}

/** A text that is being edited. */
export interface Draft {
  syntax: Syntax;
  /** The text as it is on the screen. */
  text: string;
  /** The saved definition in the same notation. The draft has changes if the two differ. */
  saved: string;
  /** The text that the editor starts with, and its number; another number starts the editor again. */
  start: string;
  edition: number;
}

export function hasChanges(draft: Draft): boolean {
  return draft.text !== draft.saved;
}

/** The draft of a definition without changes. It replaces `before`. */
export async function opened(data: unknown, syntax: Syntax, before?: Draft | null): Promise<Draft> {
  const text = await written(data, syntax);
  return { syntax, text, saved: text, start: text, edition: (before?.edition ?? 0) + 1 };
}

/** The draft in another notation, changes included. Fails if its text cannot be read. */
export async function converted(draft: Draft, data: unknown, syntax: Syntax): Promise<Draft> {
  if (syntax === draft.syntax) return draft;
  const clean = await opened(data, syntax, draft);
  if (!hasChanges(draft)) return clean;
  const text = await written(await read(draft.text, draft.syntax), syntax);
  return { ...clean, text, start: text };
}

/** The draft after `sent` was saved as `data`. Text that was typed since then stays, as a change. */
export async function afterSave(draft: Draft, sent: string, data: unknown): Promise<Draft> {
  const clean = await opened(data, draft.syntax, draft);
  return draft.text === sent ? clean : { ...draft, saved: clean.saved };
}
