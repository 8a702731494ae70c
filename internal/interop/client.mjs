// SPDX-License-Identifier: Apache-2.0

// Drives an MCP server with an official TypeScript client, on stdio or HTTP:
//   node client.mjs legacy|modern CALLS.json SERVER ARGS...
//   node client.mjs legacy|modern CALLS.json URL      with POSTERN_TOKEN
// CALLS.json is a list of {name, arguments}. Prints one JSON object: the server,
// the names of its tools and resources, what these hold, the resource of which a
// change was heard, and the results in order.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [era, callsFile, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(process.env.POSTERN_NPM, 'node_modules/@modelcontextprotocol', path)));

async function parts() {
  if (era === 'legacy') {
    const { Client } = await load('sdk/dist/esm/client/index.js');
    const { StdioClientTransport } = await load('sdk/dist/esm/client/stdio.js');
    const { StreamableHTTPClientTransport } = await load('sdk/dist/esm/client/streamableHttp.js');
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, options: { capabilities: {} } };
  }
  const { Client, StreamableHTTPClientTransport } = await load('client/dist/index.mjs');
  const { StdioClientTransport } = await load('client/dist/stdio.mjs');
  const options = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, options };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, options } = await parts();
const client = new Client({ name: 'interop', version: '1' }, options);
const headers = { Authorization: `Bearer ${process.env.POSTERN_TOKEN}` };
await client.connect(command.startsWith('http:')
  ? new StreamableHTTPClientTransport(new URL(command), { requestInit: { headers } })
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const contents = [];
for (const { uri } of resources) {
  contents.push((await client.readResource({ uri })).contents[0].text);
}
const results = [];
for (const call of JSON.parse(readFileSync(callsFile, 'utf8'))) {
  results.push(await client.callTool(call));
}
// Subscribes to the first resource, a directory, and writes a file into it.
async function hearOfAChange(uri) {
  const heard = withResolvers();
  const handler = (note) => heard.resolve(note.params.uri);
  let end;
  if (era === 'legacy') {
    const { ResourceUpdatedNotificationSchema } = await load('sdk/dist/esm/types.js');
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, handler);
    await client.subscribeResource({ uri });
    end = () => client.unsubscribeResource({ uri });
  } else {
    client.setNotificationHandler('notifications/resources/updated', handler);
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    end = () => subscription.close();
  }
  await client.callTool({ name: 'write_file', arguments: { path: join(fileURLToPath(uri), 'watched.txt'), content: 'new' } });
  const updated = await heard.promise;
  await end();
  return updated;
}

function withResolvers() {
  const parts = {};
  parts.promise = new Promise((resolve) => { parts.resolve = resolve; });
  return parts;
}

const updated = await hearOfAChange(resources[0].uri);
const names = (list) => list.map((entry) => entry.name);
console.log(JSON.stringify({ server: client.getServerVersion(), tools: names(tools), resources: names(resources), contents, updated, results }));
await client.close();
