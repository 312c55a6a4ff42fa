/** The status of executions and attempts: a word, a shape and a tone, so that none depends on color alone. */

export type Tone = 'ok' | 'run' | 'wait' | 'bad' | 'idle';

interface Look {
  label: string;
  tone: Tone;
  /** Path of a 12 by 12 icon. */
  icon: string;
}

const ICONS = {
  check: 'M2.500 6.500 5 9l4.500-6',
  cross: 'M3 3l6 6M9 3l-6 6',
  play: 'M4 2.500v7l5-3.500z',
  pause: 'M4 2.500v7M8 2.500v7',
  clock: 'M6 2.500V6l2.500 1.500M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1',
  bar: 'M2.500 6h7',
  stop: 'M3 3h6v6H3z',
};

const LOOKS: Record<string, Look> = {
  pending: { label: 'Queued', tone: 'idle', icon: ICONS.clock },
  running: { label: 'Running', tone: 'run', icon: ICONS.play },
  waiting: { label: 'Waiting', tone: 'wait', icon: ICONS.clock },
  waiting_approval: { label: 'Needs approval', tone: 'wait', icon: ICONS.pause },
  cancel_requested: { label: 'Cancelling', tone: 'wait', icon: ICONS.stop },
  completed: { label: 'Completed', tone: 'ok', icon: ICONS.check },
  with_failures: { label: 'Completed with failures', tone: 'wait', icon: ICONS.check },
  failed: { label: 'Failed', tone: 'bad', icon: ICONS.cross },
  cancelled: { label: 'Cancelled', tone: 'idle', icon: ICONS.stop },
  skipped: { label: 'Skipped', tone: 'idle', icon: ICONS.bar },
  retrying: { label: 'Retrying', tone: 'wait', icon: ICONS.clock },
};

/** The label of a status. */
export function statusLabel(status: string): string {
  return LOOKS[status]?.label ?? status;
}

/** The tone of a status. */
export function statusTone(status: string): Tone {
  return LOOKS[status]?.tone ?? 'idle';
}

export function StatusIcon({ status }: { status: string }) {
  return (
    <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
      <path
        d={LOOKS[status]?.icon ?? ICONS.bar}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.6"
        strokeLinejoin="round"
      />
    </svg>
  );
}

/** A status as a badge. */
export function Status({ status, outcome }: { status: string; outcome?: string | null | undefined }) {
  const shown = status === 'completed' && outcome ? outcome : status;
  return (
    <span className={`status tone-${statusTone(shown)}`}>
      <StatusIcon status={shown} />
      {statusLabel(shown)}
    </span>
  );
}

/** Statuses of executions that have not ended. */
export const UNFINISHED = ['pending', 'running', 'waiting_approval', 'cancel_requested'];

export function isFinished(status: string): boolean {
  return !UNFINISHED.includes(status);
}
