/** The build of the console: hashed files without inline content, and a development server in front of a real one. */
import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Paths that the server answers itself. `crates/console` has the same list in reverse: the pages of the console. */
const SERVER_PATHS = ['/api', '/approve', '/sign-in', '/docs', '/openapi.json', '/style.css', '/healthz', '/readyz'];

const server = process.env['MAINSPRING_SERVER'] ?? 'http://127.0.0.1:7300';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Groups of libraries that change rarely keep their files, and so their places in caches, when only our code changes. */
const LIBRARY_GROUPS = [
  { name: 'elk', test: /node_modules[\\/]elkjs/ },
  { name: 'flow', test: /node_modules[\\/](@xyflow|d3-|classcat|zustand)/ },
  { name: 'editor', test: /node_modules[\\/](@codemirror|@lezer|style-mod|w3c-keyname|crelt|@marijn)/ },
  { name: 'yaml', test: /node_modules[\\/]yaml[\\/]/ },
  { name: 'react', test: /node_modules[\\/](react|react-dom|scheduler|use-sync-external-store)[\\/]/, priority: 10 },
];

export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: {
      '@': source('./src'),
      // The library writes a `<style>` element, which the content security policy forbids.
      'react-remove-scroll': source('./src/design/removeScroll.tsx'),
    },
  },
  server: {
    strictPort: true,
    proxy: Object.fromEntries(SERVER_PATHS.map(path => [path, { target: server, changeOrigin: false }])),
  },
  build: {
    target: 'es2023',
    outDir: 'target/build',
    emptyOutDir: true,
    manifest: true,
    // A `data:` URL would need an exception in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1600,
    rolldownOptions: { output: { codeSplitting: { groups: LIBRARY_GROUPS } } },
  },
});
