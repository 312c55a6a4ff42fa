/** Frames of a journal: decoding, names of records, and verification of the hash chain in the browser. */
import { decode, type DecodeOptions } from 'cborg';
import type { FrameBody } from '@/api/client';

/** Names and fields of records by number, as the stored format has them. A number never gets another meaning. */
const RECORDS: Record<number, [name: string, ...fields: string[]]> = {
  0: [
    'Started',
    'executionId',
    'workflowHash',
    'planHash',
    'decideVersion',
    'policy',
    'attempt',
    'by',
    'input',
    'variables',
    'context',
    'deadline',
  ],
  1: ['StepSkipped', 'instance', 'reason'],
  2: ['StepStarted', 'instance', 'input', 'intent'],
  3: ['BranchTaken', 'instance', 'block'],
  4: ['AttemptStarted', 'instance', 'attempt', 'timeoutAt'],
  5: ['AttemptStopping', 'instance', 'attempt', 'reason'],
  6: ['AttemptFailed', 'instance', 'attempt', 'fault', 'retryAt'],
  7: ['WaitStarted', 'instance', 'until'],
  8: ['GateOpened', 'instance', 'gate', 'question', 'approvers', 'count', 'expiresAt', 'onTimeout', 'purpose'],
  9: ['GateDecided', 'instance', 'gate', 'decision', 'by', 'reason'],
  10: ['StepCompleted', 'instance', 'output'],
  11: ['StepFailed', 'instance', 'fault', 'disposition'],
  12: ['StepCancelled', 'instance', 'reason'],
  13: ['SignalBuffered', 'id', 'name', 'payload'],
  14: ['SignalReceived', 'instance', 'id'],
  15: ['CancelRequested', 'reason', 'by'],
  16: ['DeadlinePaused', 'remainingMs'],
  17: ['DeadlineSet', 'at'],
  18: ['EndingStarted', 'ending'],
  19: ['Ended', 'withFailures'],
  20: ['TurnSplit'],
  21: ['TurnJoined'],
  22: ['RoundStarted', 'instance', 'round'],
  23: ['RoundEnded', 'instance', 'round'],
  24: ['FailureBoundReached', 'fault'],
  25: ['LineageSet', 'lineage'],
  26: ['StepLogged', 'instance', 'lines'],
  27: ['ChildWaits', 'instance', 'count'],
  28: ['ParentNotified'],
  29: ['Queued', 'queue'],
  30: ['Admitted'],
  31: ['ExecutionsGranted', 'instance', 'count'],
  32: ['ExecutionsReturned', 'instance', 'count'],
  33: ['TurnYielded', 'results'],
};

const INPUTS: Record<number, [name: string, ...fields: string[]]> = {
  0: ['Start', 'start'],
  1: ['Receipt', 'instance', 'attempt', 'outcome'],
  2: ['Timer', 'timer'],
  3: ['Decide', 'instance', 'gate', 'decision', 'by', 'reason'],
  4: ['Signal', 'id', 'name', 'payload'],
  5: ['Cancel', 'reason', 'by'],
  6: ['Continue'],
  7: ['ChildWaits', 'instance', 'attempt', 'count'],
  8: ['Admit'],
};

/** A named record with its fields. */
export interface Named {
  name: string;
  fields: Record<string, unknown>;
}

/** The content of a frame. */
export interface Content {
  version: number;
  input: Named;
  records: Named[];
}

/** Result of checking one frame. */
export interface Check {
  isHash: boolean;
  isLinked: boolean;
}

const OPTIONS: DecodeOptions = { useMaps: false, allowBigInt: true };

function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(hex.length / 2);
  for (let place = 0; place < bytes.length; place += 1)
    bytes[place] = Number.parseInt(hex.slice(2 * place, 2 * place + 2), 16);
  return bytes;
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
}

/** The value with byte strings as hexadecimal digits. */
function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return hexOf(value);
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, readable(member)]));
}

function named(item: unknown, table: typeof RECORDS): Named {
  const [number, ...values] = Array.isArray(item) ? (item as unknown[]) : [];
  const [name, ...keys] = table[Number(number)] ?? [`number ${String(number)}`];
  return {
    name,
    fields: Object.fromEntries(values.map((value, index) => [keys[index] ?? `field ${index}`, readable(value)])),
  };
}

/** Decodes a frame; null if this console does not know its format. */
export function contentOf(frame: FrameBody): Content | null {
  try {
    const [version, , , , input, , records] = decode(bytesOf(frame.frame), OPTIONS) as unknown[];
    const list = Array.isArray(records) ? records : [];
    return {
      version: Number(version),
      input: named(input, INPUTS),
      records: list.map(record => named(record, RECORDS)),
    };
  } catch {
    return null;
  }
}

/** True if the browser can compute hashes; over plain HTTP from another machine it cannot. */
export function canVerify(): boolean {
  return globalThis.crypto?.subtle !== undefined;
}

/** Checks the hash of each frame, and that it continues the frame before it. */
export async function verify(frames: FrameBody[]): Promise<Check[]> {
  const checks: Check[] = [];
  let before = `sha256:${'0'.repeat(64)}`;
  let sequence = 0;
  for (const frame of frames) {
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytesOf(frame.frame)));
    const isHash = `sha256:${hexOf(digest)}` === frame.hash;
    checks.push({ isHash, isLinked: frame.before === before && frame.sequence === sequence });
    before = frame.hash;
    sequence += 1;
  }
  return checks;
}
