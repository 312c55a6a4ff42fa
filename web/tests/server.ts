/** A server of its own for the tests, in a temporary folder, with a client that prepares what the tests look at. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseJson, stringifyJson } from '../src/api/json';
import { parse } from 'yaml';
import { serve } from '../scripts/serve.mjs';

const BINARY = process.env['MAINSPRING_BINARY'] ?? new URL('../../target/release/mainspring', import.meta.url).pathname;
const IS_PROXIED = process.env['CONSOLE_PROXY'] === '1';

/** The URL of a PostgreSQL server without a database, as `postgres://postgres@127.0.0.1:5432`; else servers use SQLite. */
const POSTGRES = process.env['CONSOLE_POSTGRES'];

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

/** A model that answers from a script, so that agents need no account. */
const SETTINGS =
  'models:\n  scripted: {provider: anthropic, model: scripted-1, script: agent.yaml, default: true}\n' +
  '  streamed: {provider: anthropic, model: scripted-2, script: talk.yaml, stream: true}\n';
/** An answer that grows slowly and asks a person, and a last one. */
const TALK = `answers:
  - text: Let me ask which of the issues is meant before I go on with the work.
    toolCalls: [{name: ask, arguments: {question: Which one?}}]
    usage: {inputTokens: 1800, outputTokens: 24}
    stream: {deltaChars: 6, chunkBytes: 120, chunkDelayMs: 150}
  - {text: The seventh it is., usage: {inputTokens: 1900, outputTokens: 9}}
`;
const ANSWERS = 'answers:\n  - {text: done, usage: {inputTokens: 1800, outputTokens: 24}}\n';

/** A tool server with one tool, over streamable HTTP. */
const toolServer = () =>
  createHttpServer((request, response) => {
    let text = '';
    request.on('data', chunk => (text += String(chunk)));
    request.on('end', () => {
      const { id, method } = JSON.parse(text || '{}') as { id?: number; method?: string };
      const answer = {
        initialize: {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'shop', version: '1' },
        },
        'tools/list': { tools: [{ name: 'pay', description: 'Pays <b>', inputSchema: { type: 'object' } }] },
      }[method ?? ''];
      if (id === undefined) return void response.writeHead(202).end();
      const body = answer ? { result: answer } : { error: { code: -32601, message: 'no such method' } };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    });
  });

export class Server {
  private readonly tools = toolServer();
  private child: ChildProcess | undefined;
  private proxy: HttpServer | undefined;
  private readonly folder = mkdtempSync(join(tmpdir(), 'console-'));
  private port = 0;
  /** Arguments that name the store. */
  private store: string[] | undefined;
  /** The address of the console. */
  base = '';
  /** The token of the owner. */
  token = '';

  async start() {
    this.port ||= await freePort();
    const server = `http://127.0.0.1:${this.port}`;
    if (!this.base) {
      const port = IS_PROXIED ? await freePort() : this.port;
      if (IS_PROXIED) this.proxy = serve(port, server);
      this.base = `http://127.0.0.1:${port}`;
    }
    if (!this.tools.listening) await once(this.tools.listen(0, '127.0.0.1'), 'listening');
    const { port: toolPort } = this.tools.address() as { port: number };
    const servers = `mcpServers: {shop: {url: "http://127.0.0.1:${toolPort}/mcp?key=hidden"}}\n`;
    const rules = 'policy: {classes: {shop.pay: payment}}\n';
    writeFileSync(join(this.folder, 'config.yaml'), SETTINGS + servers + rules);
    writeFileSync(join(this.folder, 'agent.yaml'), ANSWERS);
    writeFileSync(join(this.folder, 'talk.yaml'), TALK);
    this.store ??= this.newStore();
    const options = [
      'up',
      ...this.store,
      '--dir',
      join(this.folder, 'data'),
      '--listen',
      `127.0.0.1:${this.port}`,
      '--base-url',
      this.base,
      '--config',
      join(this.folder, 'config.yaml'),
    ];
    const child = spawn(BINARY, [...options, '--anonymous-rate-limit-per-second', '0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      // Endpoints of the tests are on this machine.
      env: { ...process.env, MAINSPRING_HTTP_ALLOW: '127.0.0.1' },
    });
    this.child = child;
    let text = '';
    child.stderr.on('data', chunk => (text += String(chunk)));
    for (;;) {
      if (child.exitCode !== null) throw new Error(`The server ended at its start:\n${text}`);
      const isReady = await fetch(`${server}/readyz`).then(
        response => response.ok,
        () => false,
      );
      if (isReady) break;
      await new Promise(resolve => setImmediate(resolve));
    }
    this.token ||= readFileSync(join(this.folder, 'data', 'first-token'), 'utf8').trim();
  }

  /** Creates a database of this server. */
  private newStore(): string[] {
    if (!POSTGRES) return [];
    const name = `console_${process.pid}_${this.port}`;
    execFileSync('psql', [`${POSTGRES}/postgres`, '--quiet', '-c', `create database ${name}`]);
    return ['--store', `${POSTGRES}/${name}`];
  }

  /** Stops the process; the data stays for the next start. */
  async stop() {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }

  async remove() {
    await this.stop();
    this.proxy?.closeAllConnections();
    this.proxy?.close();
    this.tools.closeAllConnections();
    this.tools.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A request with a token; the owner's by default. */
  async call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    token = this.token,
  ): Promise<T> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: stringifyJson(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text ? parseJson(text) : {}) as T;
  }

  /** Saves a workflow; `definition` is YAML. Returns its id. */
  async save(slug: string, definition: string, name?: string): Promise<string> {
    const saved = await this.call<{ id: string }>('POST', '/api/workflows/sync', {
      slug,
      name,
      data: parse(definition, { intAsBigInt: true }) as unknown,
    });
    return saved.id;
  }

  private starts = 0;

  /** Starts a workflow. Returns the id of the execution. */
  async run(workflowId: string, more: { input?: unknown; variables?: unknown } = {}): Promise<string> {
    this.starts += 1;
    const body = { workflowId, clientRequestId: `test-${this.starts}`, ...more };
    return (await this.call<{ executionId: string }>('POST', '/api/triggers/manual/run', body)).executionId;
  }

  /** Waits until an execution has ended or waits for approvals only. */
  wait(id: string): Promise<{ status: string }> {
    return this.call('GET', `/api/executions/${id}/wait?timeoutMs=20000`);
  }

  /** Creates a member with a token. */
  async member(id: string, role: string): Promise<string> {
    await this.call('PUT', `/api/members/${id}`, { role });
    return (await this.call<{ token: string }>('POST', '/api/tokens', { name: `of ${id}`, userId: id })).token;
  }
}
