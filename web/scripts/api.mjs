/**
 * Writes the types of the API from `schemas/openapi.json`. Operation ids repeat between resources there, so each
 * operation is written in place. With `--check` it fails when the written file differs.
 */
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const DESCRIPTION = new URL('../../schemas/openapi.json', import.meta.url);
const TYPES = new URL('../src/api/schema.d.ts', import.meta.url);

const description = JSON.parse(await readFile(DESCRIPTION, 'utf8'));
for (const item of Object.values(description.paths)) {
  for (const operation of Object.values(item)) delete operation.operationId;
}
const types = `// Written by \`npm run api\` from schemas/openapi.json.\n\n${astToString(await openapiTS(description, { emptyObjectsUnknown: true }))}`;
if (!process.argv.includes('--check')) {
  await writeFile(TYPES, types);
} else if ((await readFile(TYPES, 'utf8')) !== types) {
  console.error('web/src/api/schema.d.ts differs from schemas/openapi.json: run `npm run api` in web/.');
  process.exit(1);
}
