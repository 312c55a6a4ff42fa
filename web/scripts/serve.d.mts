import type { Server } from 'node:http';

export function serve(port: number, server: string): Server;
