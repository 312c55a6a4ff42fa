/** The turns of an agent: each model call with its answer, and the tool calls that the answer asks for. */
import type { Attempt } from '@/api/client';

/** What a model has answered. */
interface Answer {
  text?: string;
  stopReason?: string;
  toolCalls?: { id?: string; name?: string; arguments?: unknown }[];
  usage?: { inputTokens?: number | bigint; outputTokens?: number | bigint };
}

/** A tool call of a turn. */
export interface ToolCall {
  /** The step instance; null for a call that was not made. */
  name: string | null;
  /** The tool in the model's words. */
  tool: string;
  arguments: unknown;
  attempts: Attempt[];
}

/** A turn of an agent. */
export interface Turn {
  /** From 1. */
  number: number;
  /** The step instance of the model call. */
  name: string;
  attempts: Attempt[];
  answer: Answer | null;
  calls: ToolCall[];
}

/** Turns that are shown before the button for earlier ones is pressed. */
export const TURNS_SHOWN = 30;

/** The turns of the agent with this name, from the attempts of the execution. */
export function turnsOf(agent: string, all: Attempt[]): Turn[] {
  const turns = new Map<number, Turn>();
  const made = new Map<number, Map<string, Attempt[]>>();
  for (const attempt of all) {
    if (!attempt.stepId.startsWith(`${agent}#`)) continue;
    const match = /^(\d+)(?:\.(\d+))?$/.exec(attempt.stepId.slice(agent.length + 1));
    if (!match) continue;
    const number = Number(match[1]);
    if (match[2] === undefined) {
      const turn = turns.get(number) ?? { number, name: attempt.stepId, attempts: [], answer: null, calls: [] };
      turn.attempts.push(attempt);
      if (attempt.status === 'completed') turn.answer = attempt.output as Answer | null;
      turns.set(number, turn);
    } else {
      const calls = made.get(number) ?? new Map<string, Attempt[]>();
      calls.set(attempt.stepId, [...(calls.get(attempt.stepId) ?? []), attempt]);
      made.set(number, calls);
    }
  }
  const sorted = [...turns.values()].sort((one, other) => one.number - other.number);
  for (const turn of sorted) turn.calls = callsOf(turn.answer, made.get(turn.number) ?? new Map());
  return sorted;
}

/** The calls of an answer in its order, each with its attempts. */
function callsOf(answer: Answer | null, made: Map<string, Attempt[]>): ToolCall[] {
  const byId = new Map<string, [string, Attempt[]]>();
  for (const [name, attempts] of made) {
    const { id } = (attempts[0]?.input ?? {}) as { id?: string };
    if (id !== undefined) byId.set(id, [name, attempts]);
  }
  return (answer?.toolCalls ?? []).map(call => {
    const [name, attempts] = byId.get(call.id ?? '') ?? [null, []];
    return { name, tool: call.name ?? '?', arguments: call.arguments, attempts };
  });
}

/** Tokens of an answer as words; null if the provider told none. */
export function tokensText(answer: Answer): string | null {
  const { inputTokens, outputTokens } = answer.usage ?? {};
  if (inputTokens === undefined || outputTokens === undefined) return null;
  return `${inputTokens} tokens in, ${outputTokens} out`;
}
