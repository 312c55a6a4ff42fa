/** Fails when the first load of the overview needs more compressed script than its budget. Brotli counts, as browsers receive it. */
import { readFile } from 'node:fs/promises';
import { brotliCompressSync } from 'node:zlib';

/** Bytes of compressed script for the overview: 180 KB. */
const BUDGET = 180_000;

const BUILD = new URL('../target/build/', import.meta.url);

/** Chunks that the document and the overview import, without those that are loaded on demand. */
const manifest = JSON.parse(await readFile(new URL('.vite/manifest.json', BUILD), 'utf8'));
const needed = new Set();
const visit = key => {
  if (needed.has(key)) return;
  needed.add(key);
  for (const next of manifest[key]?.imports ?? []) visit(next);
};
visit('index.html');
visit('src/features/overview/page.tsx');

let bytes = 0;
for (const key of needed) bytes += brotliCompressSync(await readFile(new URL(manifest[key].file, BUILD))).length;
console.log(
  `The overview loads ${(bytes / 1000).toFixed(1)} kB of compressed script; the budget is ${BUDGET / 1000} kB.`,
);
if (bytes > BUDGET) process.exit(1);
