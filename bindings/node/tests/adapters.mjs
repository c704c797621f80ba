// SPDX-License-Identifier: Apache-2.0
// adapters.mjs ADAPTER KILLS SEED: a child makes calls of an adapter, prints each that is answered, and is killed with
// SIGKILL at a random moment. The next child looks: answered calls are found, any other one is whole or missing. Then it
// continues.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import * as annal from 'libannal';

const [adapter, kills, seed, at] = process.argv.slice(2);
const text = (n) => `message ${n} `.repeat(10);
const range = (count) => Array.from({ length: count }, (_, n) => n);

/** For each adapter: how many calls the store has, after a check of their content, and one more call. */
const ADAPTERS = {
  async claude(store) {
    const { AnnalSessionStore } = await import('libannal/claude-agent');
    const [sessions, key] = [new AnnalSessionStore(store), { projectKey: 'p', sessionId: 's' }];
    const lines = (n) => range(2).map((k) => ({ type: k === 0 ? 'user' : 'assistant', uuid: `${n}.${k}`, message: { content: text(n) } }));
    return {
      async done() {
        const loaded = (await sessions.load(key)) ?? [];
        assert.deepEqual(loaded, range(loaded.length / 2).flatMap(lines));
        return loaded.length / 2;
      },
      call: (n) => sessions.append(key, lines(n)),
    };
  },
  async openai(store) {
    const { AnnalSession } = await import('libannal/openai-agents');
    const session = new AnnalSession(store, { sessionId: 'user' });
    const items = (n) => range(2).map((k) => ({ role: k === 0 ? 'user' : 'assistant', content: text(n) }));
    return {
      async done() {
        const found = await session.getItems();
        assert.deepEqual(found, range(found.length / 2).flatMap(items));
        return found.length / 2;
      },
      call: (n) => session.applyHistoryTransaction({ operationId: `${n}`, transaction: { type: 'append_items', items: items(n) } }),
    };
  },
  async langgraph(store) {
    const { AnnalSaver } = await import('libannal/langgraph');
    const { emptyCheckpoint, uuid6 } = await import('@langchain/langgraph-checkpoint');
    const saver = new AnnalSaver(store);
    const messages = (n) => range(n).map((k) => ({ role: 'user', id: `m${k}`, content: text(k) }));
    let config = { configurable: { thread_id: 't', checkpoint_ns: '' } };
    return {
      async done() {
        const tuple = await saver.getTuple({ configurable: { thread_id: 't' } });
        if (tuple === undefined) return 0;
        config = tuple.config;
        const found = tuple.checkpoint.channel_values.messages;
        assert.deepEqual(found, messages(found.length));
        return found.length;
      },
      async call(n) {
        const checkpoint = { ...emptyCheckpoint(), id: uuid6(n), channel_values: { messages: messages(n + 1) }, channel_versions: { messages: n + 1 } };
        config = await saver.put(config, checkpoint, { source: 'loop', step: n, parents: {} }, { messages: n + 1 });
      },
    };
  },
  async mastra(store) {
    const { AnnalStorage } = await import('libannal/mastra');
    const { memory, workflows } = new AnnalStorage(store).stores;
    const run = { workflowName: 'w', runId: 'r' };
    const content = (n) => ({ format: 2, parts: [{ type: 'text', text: text(n) }] });
    const of = { threadId: 't', resourceId: 'r', role: 'user', type: 'v2' };
    const message = (n) => ({ id: `m${n}`, ...of, createdAt: new Date(n), content: content(n) });
    return {
      async done() {
        const { messages } = await memory.listMessages({ threadId: 't', perPage: false });
        assert.deepEqual(messages.map(({ id, content }) => [id, content.parts[0].text]), range(messages.length).map((n) => [`m${n}`, text(n)]));
        const context = (await workflows.loadWorkflowSnapshot(run))?.context ?? {};
        const steps = Object.keys(context).length;
        assert.ok(steps === messages.length || steps === messages.length - 1, `${steps} steps, ${messages.length} messages`);
        if (steps < messages.length) await this.step(steps); // it was killed between the two
        return messages.length;
      },
      async step(n) {
        if (n === 0) await workflows.persistWorkflowSnapshot({ ...run, snapshot: { runId: 'r', status: 'running', context: {} } });
        await workflows.updateWorkflowResults({ ...run, stepId: `s${n}`, result: { status: 'success', output: text(n) }, requestContext: {} });
      },
      async call(n) {
        await memory.saveMessages({ messages: [message(n)] });
        await this.step(n);
      },
    };
  },
  async stream(store) {
    const { createResumableStreamContext } = await import('libannal/resumable-stream');
    const context = createResumableStreamContext(store, { replayDone: true });
    const all = async (stream) => (await Array.fromAsync(stream)).join('');
    return {
      async done() {
        for (let n = 0; ; n++) {
          const state = await context.hasExistingStream(`s${n}`);
          if (state === null) return n;
          if (state === 'DONE') {
            assert.equal(await all(await context.resumeExistingStream(`s${n}`)), text(n));
            continue;
          }
          await store.delete(annal.name('resumable-stream', 'resumable-stream', `s${n}`)); // it has no end
          return n;
        }
      },
      async call(n) {
        const make = () => ReadableStream.from(text(n).split(/(?=m)/));
        assert.equal(await all(await context.resumableStream(`s${n}`, make)), text(n));
      },
    };
  },
  async workflow(store) {
    const { createWorld } = await import('libannal/workflow');
    const { SPEC_VERSION_CURRENT: specVersion } = await import('@workflow/world');
    const world = createWorld({ store });
    const runId = `wrun_${'0'.repeat(26)}`;
    const create = (eventType, n, eventData) => world.events.create(runId, { eventType, correlationId: n && `s${n}`, specVersion, eventData });
    const payload = (value) => new TextEncoder().encode(`devl${JSON.stringify([value])}`);
    const rest = async (n, status) => {
      if (status === undefined) await create('step_created', n, { stepName: 'step', input: payload(text(n)) });
      if (status !== 'running') await create('step_started', n);
      await create('step_completed', n, { result: payload(text(n)) });
      await world.streams.write(runId, 's', text(n));
    };
    return {
      async done() {
        if ((await world.runs.list()).data.length === 0)
          await create('run_started', undefined, { deploymentId: 'd', workflowName: 'w', input: payload('in') });
        const { data } = await world.steps.list({ runId, pagination: { sortOrder: 'asc', limit: 1000 } });
        const { data: chunks } = await world.streams.getChunks(runId, 's', { limit: 1000 });
        assert.deepEqual(chunks.map(({ data: chunk }) => Buffer.from(chunk).toString()), range(chunks.length).map((n) => text(n + 1)));
        for (const [at, { stepId, status, input, output }] of data.entries()) {
          assert.deepEqual([stepId, Buffer.from(input)], [`s${at + 1}`, Buffer.from(payload(text(at + 1)))]);
          if (status === 'completed') assert.deepEqual(output, input);
          else assert.equal(at, data.length - 1);
        }
        const last = data.at(-1);
        if (last !== undefined && last.status !== 'completed') await rest(data.length, last.status);
        else if (chunks.length < data.length) await world.streams.write(runId, 's', text(data.length));
        return data.length;
      },
      call: (n) => rest(n + 1),
    };
  },
};

async function child() {
  const store = await annal.open(at);
  const work = await ADAPTERS[adapter](store);
  let done = await work.done();
  assert.ok(done >= Number(kills), `${kills} calls were answered, and ${done} are found`);
  for (const session of await store.sessions()) assert.deepEqual(await store.session(session).verify(), []);
  for (fs.writeSync(1, `${done}\n`); ; ) {
    await work.call(done++);
    fs.writeSync(1, `${done}\n`);
  }
}

async function main() {
  let state = Number(seed);
  const chance = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  let folder;
  let answered = 0;
  for (let killed = 0; killed < Number(kills); killed++) {
    if (killed % 50 === 0) {
      if (folder !== undefined) fs.rmSync(folder, { recursive: true });
      folder = fs.mkdtempSync(path.join(os.tmpdir(), 'annal-adapter-'));
      answered = 0;
    }
    const arguments_ = [import.meta.filename, adapter, String(answered), seed, path.join(folder, 'store')];
    const work = spawn(process.execPath, arguments_, { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(work, 'close');
    let left = 1 + Math.floor(chance() * 10); // lines until it is killed, some microseconds later
    const wait = chance() * 4;
    for await (const line of createInterface({ input: work.stdout })) {
      answered = Number(line);
      if (--left === 0) setTimeout(() => work.kill('SIGKILL'), wait);
    }
    const [code, signal] = await ended;
    assert.equal(signal, 'SIGKILL', `a child ended with ${code}`);
  }
  fs.rmSync(folder, { recursive: true });
  console.log(`${adapter}: ${kills} kills`);
}

await (at === undefined ? main() : child());
