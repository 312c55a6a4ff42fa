/**
 * Ids of requests. `crypto.randomUUID` exists over HTTPS and on this machine only; `crypto.getRandomValues` exists
 * everywhere.
 */

function randomHex(bytes: Uint8Array): string {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

/** A random UUID, version 4 (RFC 9562). */
export function requestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return randomHex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The id of a new workflow, in the form that the server gives. */
export function workflowId(): string {
  return `wf-${randomHex(crypto.getRandomValues(new Uint8Array(8)))}`;
}
