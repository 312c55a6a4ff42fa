/** Keys, values and descriptions of the workflow language at a place of a definition, from its JSON Schema. */
import { isMap, isPair, isScalar, isSeq, parseDocument, type Document, type Node, type YAMLMap } from 'yaml';

/** The part of JSON Schema that the generated schema uses. */
export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  required?: string[];
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  if?: Schema;
  then?: Schema;
  else?: Schema;
}

/** Nested references that are followed; a condition can contain conditions. */
const DEPTH_MAX = 30;

/** True if the value can be what a condition of the schema asks for. Unknown keywords do not exclude it. */
function matches(root: Schema, schema: Schema, value: unknown, depth = 0): boolean {
  if (depth > DEPTH_MAX) return true;
  const object =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  if (schema.$ref && !matches(root, resolve(root, schema.$ref), value, depth + 1)) return false;
  if (schema.const !== undefined && value !== schema.const) return false;
  if (schema.enum && !schema.enum.includes(value)) return false;
  if (schema.type && value !== undefined && !typesOf(value).some(type => [schema.type].flat().includes(type)))
    return false;
  if (schema.required && object && !schema.required.every(key => key in object)) return false;
  if (schema.not && matches(root, schema.not, value, depth + 1)) return false;
  for (const [key, member] of Object.entries(schema.properties ?? {})) {
    if (object && key in object && !matches(root, member, object[key], depth + 1)) return false;
  }
  if (schema.allOf && !schema.allOf.every(part => matches(root, part, value, depth + 1))) return false;
  if (schema.anyOf && !schema.anyOf.some(part => matches(root, part, value, depth + 1))) return false;
  return true;
}

function typesOf(value: unknown): string[] {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  if (typeof value === 'number') return Number.isInteger(value) ? ['integer', 'number'] : ['number'];
  return [typeof value];
}

function resolve(root: Schema, reference: string): Schema {
  return root.$defs?.[reference.replace('#/$defs/', '')] ?? {};
}

/** All schemas that apply to a value: the schema itself, its references, and the branches that the value takes. */
function applied(root: Schema, schema: Schema, value: unknown, depth = 0): Schema[] {
  if (depth > DEPTH_MAX) return [];
  const more = (part: Schema | undefined) => (part ? applied(root, part, value, depth + 1) : []);
  const branches = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  return [
    schema,
    ...(schema.$ref ? more(resolve(root, schema.$ref)) : []),
    ...(schema.allOf ?? []).flatMap(more),
    ...branches.flatMap(more),
    ...(schema.if ? more(matches(root, schema.if, value) ? schema.then : schema.else) : []),
  ];
}

type Path = (string | number)[];

/** The schemas at a path of a document. */
export function schemasAt(root: Schema, value: unknown, path: Path): Schema[] {
  let schemas = applied(root, root, value);
  let current = value;
  for (const part of path) {
    current =
      typeof current === 'object' && current !== null ? (current as Record<string | number, unknown>)[part] : undefined;
    const inner = schemas.flatMap(
      schema => (typeof part === 'number' ? schema.items : schema.properties?.[part]) ?? [],
    );
    schemas = inner.flatMap(schema => applied(root, schema, current));
  }
  return schemas;
}

/** Keys that an object at a place can have, with their descriptions. */
export function keysOf(schemas: Schema[]): Map<string, string> {
  const keys = new Map<string, string>();
  for (const schema of schemas) {
    for (const [key, member] of Object.entries(schema.properties ?? {})) {
      keys.set(key, keys.get(key) || member.description || '');
    }
  }
  return keys;
}

/** Values that a place can have, if they can be listed. */
export function valuesOf(schemas: Schema[]): unknown[] {
  const values = schemas.flatMap(schema => [
    ...(schema.const === undefined ? [] : [schema.const]),
    ...(schema.enum ?? []),
    ...(schema.type === 'boolean' ? [true, false] : []),
  ]);
  return [...new Set(values)];
}

export function descriptionOf(schemas: Schema[]): string {
  return schemas.find(schema => schema.description)?.description ?? '';
}

/** A key of a document with its path. */
export interface Place {
  path: Path;
  /** Position of the key in the text; null for a place without a key. */
  key: [number, number] | null;
}

function contains(node: unknown, offset: number): boolean {
  const range = (node as Node | null)?.range;
  return !!range && range[0] <= offset && offset <= range[2];
}

/** The innermost key or item at a position. */
export function placeAt(document: Document.Parsed, offset: number): Place {
  let node: unknown = document.contents;
  let place: Place = { path: [], key: null };
  for (;;) {
    if (isMap(node)) {
      const pair = (node as YAMLMap).items.find(
        item => isPair(item) && (contains(item.key, offset) || contains(item.value, offset)),
      );
      if (!pair || !isScalar(pair.key)) return place;
      const range = pair.key.range;
      place = { path: [...place.path, String(pair.key.value)], key: range ? [range[0], range[1]] : null };
      if (contains(pair.key, offset) && range && offset <= range[1]) return place;
      node = pair.value;
    } else if (isSeq(node)) {
      const index = node.items.findIndex(item => contains(item, offset));
      if (index < 0) return place;
      place = { path: [...place.path, index], key: null };
      node = node.items[index];
    } else {
      return place;
    }
  }
}

export function parse(text: string): Document.Parsed {
  return parseDocument(text, { strict: false, uniqueKeys: false, logLevel: 'silent' });
}

/** The position of the step with this id, for a click in the graph. */
export function positionOfStep(text: string, id: string): number | null {
  let found: number | null = null;
  const visit = (node: unknown): void => {
    if (found !== null) return;
    if (isSeq(node)) node.items.forEach(visit);
    if (!isMap(node)) return;
    for (const pair of node.items) {
      if (!isScalar(pair.key)) continue;
      const isName = pair.key.value === 'id' || pair.key.value === 'name';
      if (isName && isScalar(pair.value) && pair.value.value === id && node !== parsed.contents)
        found ??= pair.key.range?.[0] ?? null;
      visit(pair.value);
    }
  };
  const parsed = parse(text);
  visit(parsed.contents);
  return found;
}

/** The id of the innermost step around a position, for the graph that follows the cursor. */
export function stepAt(text: string, offset: number): string | null {
  const document = parse(text);
  const { path } = placeAt(document, offset);
  for (let length = path.length; length > 0; length -= 1) {
    if (typeof path[length - 1] !== 'number') continue;
    const node = document.getIn(path.slice(0, length), true);
    const id = isMap(node) ? (node.get('id') ?? node.get('name')) : undefined;
    if (typeof id === 'string') return id;
  }
  return null;
}
