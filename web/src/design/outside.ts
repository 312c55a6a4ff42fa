/** Text from outside made safe to look at: which characters deceive, and how they are written instead. */

/** Controls, invisible characters, and characters that change the direction of text. Tab and newline are none of them. */
const DECEIVING =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/u;

const EACH = new RegExp(DECEIVING.source, 'gu');

/** A piece of text: shown as it is, or as the code of one character. */
export interface Piece {
  text: string;
  isMark: boolean;
}

/** The written form of a character, such as `U+202E`. */
function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Splits text into pieces that are safe to show. Most text is one piece. */
export function pieces(text: string): Piece[] {
  if (!DECEIVING.test(text)) return [{ text, isMark: false }];
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(EACH)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index), isMark: false });
    found.push({ text: codeOf(match[0]), isMark: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), isMark: false });
  return found;
}

/** The same as one string, for titles and attributes. */
export function plain(text: string): string {
  return pieces(text)
    .map(piece => (piece.isMark ? `[${piece.text}]` : piece.text))
    .join('');
}

/** True for a name that mixes Latin letters with letters that look like them. */
export function isMixedScript(name: string): boolean {
  return (
    /\p{Script=Latin}/u.test(name) &&
    /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u.test(name)
  );
}
