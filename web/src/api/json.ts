/**
 * JSON with exact integers. `JSON.parse` rounds integers beyond 2^53, and the API has integers from -2^63 to 2^64 - 1:
 * ids in inputs, items and outputs. Such an integer is a `bigint` here; every other number is a `number`. Browsers that
 * the console supports lack `JSON.rawJSON`, and libraries for this lose a member with the name `__proto__`.
 */

/** Digits of the shortest integer that is not safe. Most texts have no such run and need no second reading. */
const LONG_NUMBER = /\d{16}/;

const INTEGER = /^-?\d+$/;

/** The number that a JSON literal describes. */
export function numberOf(literal: string): number | bigint {
  const number = Number(literal);
  return INTEGER.test(literal) && !Number.isSafeInteger(number) ? BigInt(literal) : number;
}

/** Parses a JSON text. Throws a `SyntaxError` as `JSON.parse` does. */
export function parseJson(text: string): unknown {
  const rounded = JSON.parse(text) as unknown;
  return LONG_NUMBER.test(text) ? new Reader(text).value() : rounded;
}

const NUMBER = /[-+.\deE]+/y;

/** Reads a text that is known to be valid JSON. */
class Reader {
  private at = 0;

  constructor(private readonly text: string) {}

  value(): unknown {
    this.skipSpace();
    switch (this.text[this.at]) {
      case '{':
        return this.object();
      case '[':
        return this.list();
      case '"':
        return this.string();
      case 't':
        return this.word('true', true);
      case 'f':
        return this.word('false', false);
      case 'n':
        return this.word('null', null);
      default:
        return this.number();
    }
  }

  private object(): Record<string, unknown> {
    const members: [string, unknown][] = [];
    this.at += 1;
    for (;;) {
      this.skipSpace();
      const sign = this.text[this.at];
      if (sign === '"') {
        const key = this.string();
        this.skipSpace();
        this.at += 1;
        members.push([key, this.value()]);
      } else {
        this.at += 1;
        // `Object.fromEntries` defines members, where an assignment to `__proto__` would change the prototype.
        if (sign === '}') return Object.fromEntries(members);
      }
    }
  }

  private list(): unknown[] {
    const items: unknown[] = [];
    this.at += 1;
    for (;;) {
      this.skipSpace();
      const sign = this.text[this.at];
      if (sign === ']' || sign === ',') {
        this.at += 1;
        if (sign === ']') return items;
      } else {
        items.push(this.value());
      }
    }
  }

  private string(): string {
    const from = this.at;
    let end = this.text.indexOf('"', from + 1);
    while (this.isEscaped(end)) end = this.text.indexOf('"', end + 1);
    this.at = end + 1;
    return JSON.parse(this.text.slice(from, this.at)) as string;
  }

  /** True if an odd number of backslashes stands before the position. */
  private isEscaped(position: number): boolean {
    let before = position;
    while (this.text[before - 1] === '\\') before -= 1;
    return (position - before) % 2 === 1;
  }

  private number(): number | bigint {
    NUMBER.lastIndex = this.at;
    const literal = NUMBER.exec(this.text)?.[0] ?? '';
    this.at += literal.length;
    return numberOf(literal);
  }

  private word<T>(word: string, value: T): T {
    this.at += word.length;
    return value;
  }

  private skipSpace() {
    while (' \t\n\r'.includes(this.text[this.at] ?? '-')) this.at += 1;
  }
}

/** Writes a value as JSON, `bigint` as an integer. With `indent` each member has its own line. */
export function stringifyJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent) ?? 'null';
  } catch (error) {
    // `JSON.stringify` refuses every `bigint`.
    if (!(error instanceof TypeError)) throw error;
    return write(value, ' '.repeat(indent), '') ?? 'null';
  }
}

/** The text of a value; undefined for one that JSON leaves out. */
function write(value: unknown, indent: string, outer: string): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const inner = outer + indent;
  const isList = Array.isArray(value);
  const parts = isList
    ? value.map(item => write(item, indent, inner) ?? 'null')
    : Object.entries(value).flatMap(([key, member]) => {
        const text = write(member, indent, inner);
        return text === undefined ? [] : [`${JSON.stringify(key)}:${indent && ' '}${text}`];
      });
  const [open, close] = isList ? '[]' : '{}';
  if (parts.length === 0) return `${open}${close}`;
  return indent
    ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${outer}${close}`
    : `${open}${parts.join(',')}${close}`;
}
