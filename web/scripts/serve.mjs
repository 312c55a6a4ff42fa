/**
 * Serves `target/build/` with the headers of the embedded console, in front of a server that runs elsewhere:
 * `node scripts/serve.mjs PORT SERVER`. For tests, and to try a build without a build of the server.
 */
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const BUILD = fileURLToPath(new URL('../target/build', import.meta.url));

/** The same policy as in `crates/console`. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

const SERVER_PATHS = /^\/(api|approve|docs)(\/|$)|^\/(sign-in(\/oidc.*)?|openapi\.json|style\.css|healthz|readyz)$/;

/** Starts at the port, in front of the server with this address. */
export function serve(port, server) {
  return createServer(async (incoming, outgoing) => {
    const path = normalize(new URL(incoming.url, 'http://console').pathname);
    if (SERVER_PATHS.test(path)) {
      const target = new URL(incoming.url, server);
      const forwarded = request(target, { method: incoming.method, headers: incoming.headers }, response => {
        outgoing.writeHead(response.statusCode, response.headers);
        response.pipe(outgoing);
        // A stream that breaks off must break off for the browser as well.
        response.on('close', () => outgoing.destroy());
      });
      forwarded.on('error', () => (outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end()));
      outgoing.on('close', () => forwarded.destroy());
      incoming.pipe(forwarded);
      return;
    }
    const name = path.startsWith('/assets/') ? path : '/index.html';
    try {
      const content = await readFile(join(BUILD, name));
      outgoing.writeHead(200, {
        'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
        'content-security-policy': POLICY,
      });
      outgoing.end(content);
    } catch {
      outgoing.writeHead(404).end();
    }
  }).listen(port, '127.0.0.1');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port, server] = process.argv.slice(2);
  serve(Number(port), server);
  console.log(`http://127.0.0.1:${port}`);
}
