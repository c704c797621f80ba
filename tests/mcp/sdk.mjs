// SPDX-License-Identifier: Apache-2.0
// Both official TypeScript clients, of the eras with and without a handshake, on stdio and by HTTP. Run by fixture.py.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are not beside this file, but in the directory in which this runs.
const require = createRequire(`${process.cwd()}/`);
const load = name => import(pathToFileURL(require.resolve(name)));
const old = {
    ...(await load('@modelcontextprotocol/sdk/client/index.js')),
    ...(await load('@modelcontextprotocol/sdk/client/stdio.js')),
    ...(await load('@modelcontextprotocol/sdk/client/streamableHttp.js'))
};
const current = { ...(await load('@modelcontextprotocol/client')), ...(await load('@modelcontextprotocol/client/stdio')) };

const { MCP_URL: url, MCP_COMMAND: command, MCP_STORE: store } = process.env;
const program = { command, args: ['--store', store, 'mcp'] };
const about = { name: 'annal-test', version: '1' };
const text = result => result.content[0].text;

async function exercise(name, client, transport) {
    await client.connect(transport);
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(tool => tool.name), ['search', 'open', 'list']);
    const found = text(await client.callTool({ name: 'search', arguments: { query: 'content' } }));
    assert.match(found, /^1 sessions.*of 1 searched/);
    assert.match(found, /:2 {2}[0-9a-f]{16} /);
    const whole = text(await client.callTool({ name: 'open', arguments: { handle: 'conformance:2' } }));
    assert.match(whole, /\| content: This is the content/);
    const wrong = await client.callTool({ name: 'open', arguments: { handle: 'nothing-here' } });
    assert.equal(wrong.isError, true);
    await assert.rejects(async () => {
        const answer = await client.callTool({ name: 'no-such-tool', arguments: {} });
        if (answer.isError) throw new Error(text(answer));
    });
    const { resources } = await client.listResources();
    assert.equal(resources[0].uri, 'annal://session/conformance');
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.equal(resourceTemplates.length, 4);
    const { contents } = await client.readResource({ uri: 'annal://session/conformance/event/2' });
    assert.match(contents[0].text, /This is the content/);
    await assert.rejects(client.readResource({ uri: 'annal://session/nobody' }));
    await client.close();
    console.log(`${name}: ok`);
}

await exercise('sdk 1, stdio', new old.Client(about), new old.StdioClientTransport(program));
await exercise('sdk 1, HTTP', new old.Client(about), new old.StreamableHTTPClientTransport(new URL(url)));
for (const mode of ['legacy', 'auto']) {
    const options = { versionNegotiation: { mode } };
    await exercise(`client 2, stdio, ${mode}`, new current.Client(about, options), new current.StdioClientTransport(program));
    await exercise(`client 2, HTTP, ${mode}`, new current.Client(about, options), new current.StreamableHTTPClientTransport(new URL(url)));
}
