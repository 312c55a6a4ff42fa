/** Triggers as texts. */
import type { Trigger } from '@/api/client';
import type { Tone } from '@/design/status';

/** The configuration of a trigger in one line: the tick, or the address of the webhook. */
export function sourceOf({ config }: Pick<Trigger, 'config'>): string {
  switch (config.type) {
    case 'schedule':
      return `${config.cron} (${config.timezone})`;
    case 'webhook':
      return `${config.method} /webhooks/${config.path}`;
    default:
      return 'On request';
  }
}

/** The configuration as names and values, for a list of facts. */
export function factsOf({ config }: Pick<Trigger, 'config'>): [string, string][] {
  switch (config.type) {
    case 'schedule':
      return [
        ['Cron expression', config.cron],
        ['Time zone', `${config.timezone} (tzdata ${config.timezoneData})`],
        ['Target', config.target],
        ...(config.prompt ? ([['Prompt', config.prompt]] as [string, string][]) : []),
        ['Missed ticks', MISSED[config.missed] ?? config.missed],
        ...(config.prompt ? [] : ([['Overlap', OVERLAP[config.overlap] ?? config.overlap]] as [string, string][])),
        ['Jitter', config.jitterMs > 0 ? `up to ${config.jitterMs / 1000} s` : 'none'],
      ];
    case 'webhook':
      return [
        ['Method', config.method],
        ['Signature', config.signature?.scheme ?? (config.hasSecret ? 'standard_webhooks' : 'none')],
        ['Secrets', String(config.secretCount)],
        ['Required headers', config.headerNames.length > 0 ? config.headerNames.join(', ') : 'none'],
        ['Response', config.respond === 'wait' ? `the output, after at most ${config.waitMs / 1000} s` : 'accepted'],
      ];
    default:
      return [];
  }
}

const MISSED: Record<string, string> = {
  skip: 'do not run',
  once: 'the last one runs',
  all: 'all run, the oldest first',
};

const OVERLAP: Record<string, string> = {
  allow: 'the tick starts an execution',
  queue: 'the tick starts after the active execution has ended',
  skip: 'the tick does not run',
  cancel_previous: 'the active execution is canceled',
};

const OUTCOMES: Record<string, [label: string, tone: Tone]> = {
  started: ['Started', 'ok'],
  duplicate: ['Duplicate', 'idle'],
  refused: ['Refused', 'bad'],
  skipped: ['Skipped', 'wait'],
  missed: ['Missed', 'wait'],
  queued: ['Queued', 'wait'],
  delivered: ['Delivered', 'ok'],
  failed: ['Failed', 'bad'],
};

/** The outcome of a run as a label and a tone. */
export function outcomeOf(outcome: string): [label: string, tone: Tone] {
  return OUTCOMES[outcome] ?? [outcome, 'idle'];
}

/** The state of a trigger as a label and a tone. */
export function stateOf({ enabled, stopped }: Pick<Trigger, 'enabled' | 'stopped'>): [label: string, tone: Tone] {
  if (stopped) return ['Stopped', 'bad'];
  return enabled ? ['Enabled', 'ok'] : ['Disabled', 'idle'];
}
