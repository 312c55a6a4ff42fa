/** The difference of two definitions by lines of their YAML. */

export interface Line {
  kind: 'added' | 'removed' | 'same' | 'gap';
  text: string;
}

/** Equal lines that are shown around a change. */
const AROUND = 3;

/** The changed lines with some lines around them; empty for equal definitions. */
export async function lines(older: unknown, newer: unknown): Promise<Line[]> {
  const [{ diffLines }, { stringify }] = await Promise.all([import('diff'), import('yaml')]);
  const options = { lineWidth: 110, sortMapEntries: true };
  const all = diffLines(stringify(older, options), stringify(newer, options)).flatMap(part => {
    const kind = part.added ? 'added' : part.removed ? 'removed' : 'same';
    return part.value
      .replace(/\n$/, '')
      .split('\n')
      .map((text): Line => ({ kind, text }));
  });
  const isNear = (index: number) =>
    all.slice(Math.max(0, index - AROUND), index + AROUND + 1).some(line => line.kind !== 'same');
  const shown: Line[] = [];
  let hidden = 0;
  const close = () => {
    if (hidden > 0) shown.push({ kind: 'gap', text: hidden === 1 ? '1 equal line' : `${hidden} equal lines` });
    hidden = 0;
  };
  all.forEach((line, index) => {
    if (!isNear(index)) {
      hidden += 1;
      return;
    }
    close();
    shown.push(line);
  });
  if (shown.length > 0) close();
  return shown;
}
