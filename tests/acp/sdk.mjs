// SPDX-License-Identifier: Apache-2.0
// sdk.mjs ANNAL [agent]: the official client, directly and through annal acp, to agent.py and to an agent that is made with the
// official library (sdk.mjs ANNAL agent). What the client receives must be the same.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';

const require = createRequire(`${process.cwd()}/`);
const acp = await import(pathToFileURL(require.resolve('@agentclientprotocol/sdk')));
const { methods } = acp;
const self = fileURLToPath(import.meta.url);
const annal = resolve(process.argv[2]);

if (process.argv[3] === 'agent') {
    const app = acp.agent({ name: 'official' });
    app.onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }));
    app.onRequest(methods.agent.session.new, () => ({ sessionId: `official-${process.env.NUMBER ?? 1}` }));
    app.onRequest(methods.agent.session.prompt, async context => {
        const { sessionId } = context.params;
        for (const text of ['a ', 'walrus ', 'é\u2028 "quoted"'])
            await context.client.notify(methods.client.session.update, {
                sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }
            });
        const { outcome } = await context.client.request(methods.client.session.requestPermission, {
            sessionId,
            toolCall: { toolCallId: 'c1', title: 'Remove', kind: 'delete', rawInput: { path: '/x' } },
            options: [{ optionId: 'no', name: 'No', kind: 'reject_once' }]
        });
        return { stopReason: outcome.outcome === 'selected' ? 'end_turn' : 'cancelled' };
    });
    app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
} else {
    const store = mkdtempSync(join(tmpdir(), 'annal-acp-sdk-'));
    const talk = async (words, act, number = 1) => {
        const child = spawn(words[0], words.slice(1), { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, NUMBER: number } });
        const updates = [];
        const app = acp.client({ name: 'annal-test' });
        app.onNotification(methods.client.session.update, ({ params }) => void updates.push(params));
        app.onRequest(methods.client.session.requestPermission, ({ params }) => ({
            outcome: { outcome: 'selected', optionId: params.options[0].optionId }
        }));
        const results = await app.connectWith(
            acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), agent => act(agent, updates));
        child.stdin.end();
        const status = await new Promise(done => child.on('exit', done));
        assert.equal(status, 0);
        return { results, updates };
    };
    const prompt = text => [{ type: 'text', text }];
    const converse = async agent => {
        const initialized = await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
        const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/w/sdk', mcpServers: [] });
        const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt('say 3 call ask') });
        return [initialized.agentInfo?.name, sessionId, stopReason];
    };
    const agents = { official: [process.execPath, self, annal, 'agent'], fake: [resolve(self, '../agent.py')] };
    for (const [name, words] of Object.entries(agents)) {
        const through = [annal, '--store', store, 'acp', '--', ...words];
        const direct = await talk(words, converse);
        assert.deepEqual(await talk(through, converse), direct);
        const [, sessionId] = direct.results;
        const loaded = await talk(through, async (agent, updates) => {
            const { agentCapabilities } = await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
            assert.equal(agentCapabilities.loadSession, true);
            const { sessions } = await agent.request(methods.agent.session.list, { cwd: '/w/sdk' });
            assert.deepEqual(sessions.map(session => session.sessionId), [sessionId]);
            await agent.request(methods.agent.session.load, { sessionId, cwd: '/w/sdk', mcpServers: [] });
            const replayed = updates.length;
            await agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt('say 3 call ask') });
            return replayed;
        }, 2);
        assert.deepEqual(loaded.updates.slice(1, loaded.results), direct.updates);
        assert.ok(loaded.updates.every(update => update.sessionId === sessionId));
        console.log(`official client and ${name} agent: ok, ${direct.updates.length} updates`);
    }
    rmSync(store, { recursive: true });
}
