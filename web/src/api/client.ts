/**
 * Requests to the API. Every call goes through [`call`], which returns the body or throws an [`ApiError`]. The session
 * cookie is the credential; the browser adds it and the origin.
 */
import createClient from 'openapi-fetch';
import { parseJson, stringifyJson } from './json';
import type { components, paths } from './schema';

type Schemas = components['schemas'];

export type Approval = Schemas['Approval'];
export type Attempt = Schemas['Attempt'];
export type AuditEntry = Schemas['EntryBody'];
export type Delivery = Schemas['DeliveryBody'];
export type Execution = Schemas['ExecutionBody'];
export type ExecutionRow = Schemas['ExecutionListed'];
export type FrameBody = Schemas['FrameBody'];
export type Health = Schemas['Health'];
export type Me = Schemas['Me'];
export type Member = Schemas['MemberBody'];
export type Model = Schemas['ModelBody'];
export type ModelCheck = Schemas['ModelCheck'];
export type Organization = Schemas['OrganizationBody'];
export type Permission = Schemas['Permission'];
export type CallPolicy = Schemas['CallPolicy'];
export type Proposal = Schemas['ProposalBody'];
export type ProposalDetail = Schemas['DetailedProposal'];
export type Receipt = Schemas['ExecutionReceipt'];
export type Role = Schemas['Role'];
export type Rollout = Schemas['RolloutBody'];
export type Migration = Schemas['MigrationBody'];
export type ScenarioResults = Schemas['ScenarioResults'];
export type Secret = Schemas['SecretBody'];
export type Shadow = Schemas['ShadowBody'];
export type Subscription = Schemas['SubscriptionBody'];
export type Token = Schemas['TokenBody'];
export type Tool = Schemas['ToolBody'];
export type ToolServer = Schemas['ToolServerBody'];
export type ToolServerCheck = Schemas['ToolServerCheck'];
export type Trigger = Schemas['TriggerBody'];
export type Version = Schemas['VersionBody'];
export type Workflow = Schemas['WorkflowBody'];

/** An open approval inside of an execution, as `ExecutionBody.approvals` has it. */
export interface OpenGate {
  stepId: string;
  prompt: string;
  items: unknown;
  approvers: string[];
  count: number;
  approvedBy: string[];
  expiresAt: string;
  resumeToken?: string;
  executionId?: string;
  path?: string;
}

/** The error of an execution or an attempt. */
export interface Failure {
  code?: string | null;
  class?: string | null;
  message?: string | null;
  details?: unknown;
  stepId?: string | null;
}

/** One finding of the compiler. */
export interface Diagnostic {
  severity: 'error' | 'warning';
  code: string;
  message: string;
  path: string;
  line?: number | null;
  column?: number | null;
  help?: string | null;
}

/** A response that is not a success, or no response at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: unknown,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** A body of an error, as far as it is one. */
type ProblemBody = Partial<Schemas['ProblemBody']>;

function problemOf(text: string): ProblemBody {
  try {
    const body = parseJson(text);
    return typeof body === 'object' && body !== null ? (body as ProblemBody) : {};
  } catch {
    return {};
  }
}

/** Sends a request. JSON in the response keeps its integers. Throws an [`ApiError`] for a response that is no success. */
export async function fetchExact(request: Request): Promise<Response> {
  const response = await fetch(request);
  if (!response.ok) {
    const { error, code, details } = problemOf(await response.text());
    const message = error ?? `The server answered ${response.status}.`;
    throw new ApiError(response.status, code ?? 'UNKNOWN', message, details);
  }
  if (!response.headers.get('content-type')?.includes('json') || response.status === 204) return response;
  const text = await response.text();
  const headers = new Headers(response.headers);
  // The client library reads a response without a length as text, and parses that itself.
  headers.set('content-length', String(text.length));
  const exact = new Response(text, { status: response.status, statusText: response.statusText, headers });
  return Object.assign(exact, { json: () => Promise.resolve(parseJson(text)) });
}

export const client = createClient<paths>({
  credentials: 'same-origin',
  querySerializer: { array: { style: 'form', explode: false } },
  bodySerializer: body => stringifyJson(body),
  fetch: fetchExact,
});

let onUnauthorized: () => void = () => {};

/** Sets the function that runs when the server no longer accepts the session. */
export function whenUnauthorized(act: () => void) {
  onUnauthorized = act;
}

interface Answer<T> {
  data?: T;
  response: Response;
}

/** Returns the body of a response. Throws an [`ApiError`] for every other outcome. */
export async function call<T>(request: Promise<Answer<T>>): Promise<T> {
  return (await answerOf(request)).data;
}

/** As [`call`], with the version of the resource for `If-Match`. */
export async function callTagged<T>(request: Promise<Answer<T>>): Promise<{ data: T; etag: string | null }> {
  const { data, response } = await answerOf(request);
  return { data, etag: response.headers.get('etag') };
}

async function answerOf<T>(request: Promise<Answer<T>>): Promise<{ data: T; response: Response }> {
  try {
    const { data, response } = await request;
    return { data: data as T, response };
  } catch (cause) {
    if (cause instanceof ApiError && cause.status === 401) onUnauthorized();
    if (cause instanceof ApiError || (cause instanceof DOMException && cause.name === 'AbortError')) throw cause;
    throw new ApiError(
      0,
      'UNREACHABLE',
      'The server does not respond. Check the connection; the page tries again.',
      cause,
    );
  }
}

/** The header of a change that is refused if the resource was changed since this version was read. */
export function ifMatch(etag: string | null): { 'If-Match'?: string } {
  return etag ? { 'If-Match': etag } : {};
}

/** True if a change was refused because the resource was changed since it was read. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412;
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** True for a failure that another request may not have. */
export function isTransient(error: unknown): boolean {
  return error instanceof ApiError && [0, 408, 429, 502, 503, 504].includes(error.status);
}

/** Diagnostics of the compiler from a response. Releases up to 0.1 name the help text `mend`. */
export function diagnosticsOf(list: unknown): Diagnostic[] {
  if (!Array.isArray(list)) return [];
  return list.map(item => ({ ...item, help: item.help ?? item.mend ?? null }) as Diagnostic);
}
