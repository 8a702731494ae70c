// SPDX-License-Identifier: Apache-2.0

// Drives an MCP server on stdio with an official TypeScript client:
//   node client.mjs legacy|modern CALLS.json SERVER ARGS...
// CALLS.json is a list of {name, arguments}. Prints one JSON object: the
// protocol version, the names of the tools, and the results in order.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [era, callsFile, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(process.env.POSTERN_NPM, 'node_modules/@modelcontextprotocol', path)));

async function connect() {
  if (era === 'legacy') {
    const { Client } = await load('sdk/dist/esm/client/index.js');
    const { StdioClientTransport } = await load('sdk/dist/esm/client/stdio.js');
    const client = new Client({ name: 'interop', version: '1' }, { capabilities: {} });
    await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
    return client;
  }
  const { Client } = await load('client/dist/index.mjs');
  const { StdioClientTransport } = await load('client/dist/stdio.mjs');
  const client = new Client({ name: 'interop', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
const results = [];
for (const call of JSON.parse(readFileSync(callsFile, 'utf8'))) {
  results.push(await client.callTool(call));
}
console.log(JSON.stringify({ server: client.getServerVersion(), tools: tools.map((t) => t.name), results }));
await client.close();
