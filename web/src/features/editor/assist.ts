/** Help while typing: completion of keys and values, descriptions on hover, and the findings of the server's compiler. */
import {
  autocompletion,
  completionKeymap,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete';
import { linter, lintGutter, lintKeymap, type Diagnostic as Mark } from '@codemirror/lint';
import type { Extension, Text } from '@codemirror/state';
import { hoverTooltip, keymap } from '@codemirror/view';
import type { Diagnostic } from '@/api/client';
import { validate } from '@/features/workflows/queries';
import { descriptionOf, keysOf, parse, placeAt, schemasAt, valuesOf, type Schema } from './schema';

/** Pause after the last key before the server compiles, in milliseconds. */
const TYPING_MS = 350;

let schema: Promise<Schema> | undefined;

/** The schema of the workflow language; a chunk of its own. */
function language(): Promise<Schema> {
  schema ??= import('../../../../schemas/workflow.schema.json').then(module => module.default as unknown as Schema);
  return schema;
}

/** A key that stands for the one being typed, so that the text parses. */
const PLACEHOLDER = 'zzPlaceholder';

async function completeKey(context: CompletionContext): Promise<CompletionResult | null> {
  const word = context.matchBefore(/"?[\w-]*/);
  if (!word || (word.text === '' && !context.explicit)) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, word.from - line.from);
  const isQuoted = word.text.startsWith('"');
  if (!isQuoted && !/^[\s-]*$|[{,]\s*$/.test(before)) return null;
  const all = context.state.doc.toString();
  const after = all.slice(context.pos).replace(/^[\w-]*"?/, '');
  const quote = isQuoted ? '"' : '';
  const text = `${all.slice(0, word.from)}${quote}${PLACEHOLDER}${quote}: 0${/^\s*[:}\],]|^\s*\n|^\s*$/.test(after) ? '' : ', '}${after}`;
  const document = parse(text);
  const place = placeAt(document, word.from + quote.length + 1);
  if (place.path.at(-1) !== PLACEHOLDER) return null;
  const outer = place.path.slice(0, -1);
  const present = document.getIn(outer) as { has?: (key: string) => boolean } | undefined;
  const schemas = schemasAt(await language(), document.toJS() as unknown, outer);
  const options = [...keysOf(schemas)].filter(([key]) => !present?.has?.(key));
  return {
    from: word.from,
    options: options.map(([key, info]): Completion => ({
      label: `${quote}${key}${quote}`,
      apply: `${quote}${key}${quote}: `,
      type: 'property',
      ...(info ? { info } : {}),
    })),
    validFor: /^"?[\w-]*$/,
  };
}

async function completeValue(context: CompletionContext): Promise<CompletionResult | null> {
  const word = context.matchBefore(/[\w-]*/);
  const line = context.state.doc.lineAt(context.pos);
  if (!word || !/[\w"]:\s+$/.test(line.text.slice(0, word.from - line.from))) return null;
  const document = parse(context.state.doc.toString());
  const key = placeAt(
    document,
    word.from - 2 - (/\s*$/.exec(line.text.slice(0, word.from - line.from))?.[0].length ?? 1) + 1,
  );
  const values = valuesOf(schemasAt(await language(), document.toJS() as unknown, key.path));
  if (values.length === 0) return null;
  return {
    from: word.from,
    options: values.map(value => ({ label: String(value), type: 'enum' })),
    validFor: /^[\w-]*$/,
  };
}

const hover = hoverTooltip(async (view, position) => {
  const document = parse(view.state.doc.toString());
  const place = placeAt(document, position);
  if (!place.key || position > place.key[1]) return null;
  const [from, to] = place.key;
  const text = descriptionOf(schemasAt(await language(), document.toJS() as unknown, place.path));
  if (!text) return null;
  return {
    pos: from,
    end: to,
    create: () => {
      const dom = window.document.createElement('div');
      dom.textContent = text;
      return { dom };
    },
  };
});

/** The place of a finding: from its column to the end of the word. */
function rangeOf(doc: Text, { line, column }: Diagnostic): [number, number] {
  if (!line) return [0, Math.min(doc.length, doc.line(1).to)];
  const { from, to } = doc.line(Math.min(line, doc.lines));
  const start = Math.min(to, from + Math.max(0, (column ?? 1) - 1));
  const word = /^[^\s:,]+/.exec(doc.sliceString(start, to))?.[0].length ?? 0;
  return [start, Math.min(to, start + Math.max(1, word))];
}

function markOf(doc: Text, found: Diagnostic): Mark {
  const [from, to] = rangeOf(doc, found);
  const help = found.help ? `\n${found.help}` : '';
  return { from, to, severity: found.severity, source: found.code, message: `${found.message}${help}` };
}

/** Everything that helps while typing. `tell` receives the findings of each compilation. */
export function assist(tell: (found: Diagnostic[], text: string) => void): Extension {
  let aborter = new AbortController();
  const compile = linter(
    async view => {
      aborter.abort();
      aborter = new AbortController();
      const { doc } = view.state;
      const text = doc.toString();
      try {
        const found = await validate(text, aborter.signal);
        tell(found, text);
        return found.map(one => markOf(doc, one));
      } catch {
        return [];
      }
    },
    { delay: TYPING_MS },
  );
  return [
    compile,
    lintGutter(),
    hover,
    autocompletion({ override: [completeKey, completeValue], icons: false }),
    keymap.of([...completionKeymap, ...lintKeymap]),
  ];
}
