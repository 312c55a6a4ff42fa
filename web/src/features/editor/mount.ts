/**
 * Mounts CodeMirror. It writes style sheets at run time, which the content security policy forbids for a document; in a
 * shadow root it uses constructed style sheets instead, which the policy allows.
 */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { yaml } from '@codemirror/lang-yaml';
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language';
import { searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';

export type Syntax = 'yaml' | 'json';

/** Colors of the editor: the variables of the page, which reach into the shadow root. */
const THEME = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '0.8125rem', height: '100%' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
  '.cm-content': { fontFamily: 'var(--mono)', caretColor: 'var(--text)' },
  '.cm-scroller': { overflow: 'auto' },
  '.cm-gutters': {
    color: 'var(--text-2)',
    backgroundColor: 'var(--surface-2)',
    borderRight: '1px solid var(--border)',
  },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--hover) 60%, transparent)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--selected)',
  },
  '.cm-tooltip, .cm-panels': {
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--border-strong)',
  },
  '.cm-tooltip-hover, .cm-completionInfo': { maxWidth: '28rem', padding: '6px 8px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { color: 'var(--text)', backgroundColor: 'var(--selected)' },
  '.cm-diagnostic': { padding: '4px 8px', whiteSpace: 'pre-wrap' },
  // The library's marks are `data:` images, which the content security policy forbids.
  '.cm-lint-marker-error': { content: '"●"', color: 'var(--bad)' },
  '.cm-lint-marker-warning': { content: '"▲"', color: 'var(--wait)' },
  '.cm-lint-marker': { width: '1em', fontSize: '0.75em' },
  '.cm-lintRange': { backgroundImage: 'none', textDecoration: 'underline wavy' },
  '.cm-lintRange-error': { backgroundImage: 'none', textDecorationColor: 'var(--bad)' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecorationColor: 'var(--wait)' },
  '.cm-lintRange-active': { backgroundColor: 'var(--hover)' },
  '.cm-specialChar': { color: 'var(--bad)' },
  '.cm-panel button, .cm-panel input': {
    color: 'var(--text)',
    backgroundColor: 'var(--surface)',
    backgroundImage: 'none',
  },
});

const COLORS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.content], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--ok)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--text-2)' },
  { tag: [tags.meta, tags.labelName, tags.typeName], color: 'var(--wait)' },
]);

interface MountOptions {
  host: HTMLElement;
  text: string;
  label: string;
  syntax: Syntax;
  isReadOnly: boolean;
  extensions?: Extension;
}

export function mount({ host, text, label, syntax, isReadOnly, extensions = [] }: MountOptions): EditorView {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const parent = document.createElement('div');
  parent.style.height = '100%';
  root.replaceChildren(parent);
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(),
      codeFolding(),
      foldGutter(),
      history(),
      drawSelection(),
      highlightSpecialChars({ addSpecialChars: /[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u }),
      indentOnInput(),
      bracketMatching(),
      highlightActiveLine(),
      syntaxHighlighting(COLORS),
      // Tab stays with the browser, so that the keyboard can leave the editor.
      keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...searchKeymap]),
      syntax === 'json' ? json() : yaml(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
      isReadOnly ? [EditorState.readOnly.of(true), EditorView.contentAttributes.of({ 'aria-readonly': 'true' })] : [],
      THEME,
      extensions,
    ],
  });
  return new EditorView({ state, parent, root });
}
