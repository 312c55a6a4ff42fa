/**
 * Compresses `target/build/` into `dist/`, which the crate `mainspring-console` embeds: each file as `.br` and `.gz`, nothing
 * uncompressed. With `--check` it writes nothing and fails if `dist/` has other content than a fresh build.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants, gunzipSync, gzipSync } from 'node:zlib';

const BUILD = fileURLToPath(new URL('../target/build', import.meta.url));
const DIST = fileURLToPath(new URL('../dist', import.meta.url));

/** Each form with the suffix of its files. */
const FORMS = {
  '.br': {
    compress: content =>
      brotliCompressSync(content, {
        params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
      }),
    decompress: brotliDecompressSync,
  },
  '.gz': { compress: content => gzipSync(content, { level: 9 }), decompress: gunzipSync },
};

async function filesBelow(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter(entry => entry.isFile())
    .map(entry => relative(folder, join(entry.parentPath, entry.name)));
  return files.sort();
}

/** Differences between `dist/` and the build; the compressed bytes may depend on the release of Node. */
async function differences(names) {
  const expected = new Set(names.flatMap(name => Object.keys(FORMS).map(suffix => name + suffix)));
  const present = new Set(await filesBelow(DIST).catch(() => []));
  const found = [...present].filter(name => !expected.has(name)).map(name => `${name} is not part of the build`);
  for (const name of names) {
    const content = await readFile(join(BUILD, name));
    for (const [suffix, { decompress }] of Object.entries(FORMS)) {
      const isPresent = present.has(name + suffix);
      if (!isPresent || !decompress(await readFile(join(DIST, name + suffix))).equals(content)) {
        found.push(`${name}${suffix} ${isPresent ? 'has other content' : 'is missing'}`);
      }
    }
  }
  return found;
}

// The manifest is for `budget.mjs` and not served.
const names = (await filesBelow(BUILD)).filter(name => !name.startsWith('.vite'));
if (process.argv.includes('--check')) {
  const found = await differences(names);
  if (found.length > 0) {
    console.error(
      `web/dist differs from a fresh build; run \`npm run build\` in web/ and commit it:\n  ${found.join('\n  ')}`,
    );
    process.exit(1);
  }
} else {
  await rm(DIST, { recursive: true, force: true });
  for (const name of names) {
    const content = await readFile(join(BUILD, name));
    await mkdir(dirname(join(DIST, name)), { recursive: true });
    for (const [suffix, { compress }] of Object.entries(FORMS))
      await writeFile(join(DIST, name + suffix), compress(content));
  }
}
