// SPDX-License-Identifier: Apache-2.0
// Several workers and processes on one store, and what is left of those that are killed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import * as annal from 'libannal';
import { memory, openStore, place, run, start } from './helpers.mjs';

const full = process.env.LIBANNAL_FULL === '1';

function work(at, name, count, sessions) {
  return new Worker(path.join(import.meta.dirname, 'worker.mjs'), { workerData: [at, name, count, sessions] });
}

/** Each name's events, as "session seq" by their number; none twice. */
async function found(at) {
  const store = await annal.open(at);
  const all = new Map();
  for (const id of await store.sessions()) {
    for await (const event of store.session(id)) {
      const { name, n } = event.data;
      const key = `${name} ${n}`;
      assert.ok(!all.has(key), `${key} is there twice`);
      all.set(key, `${event.session} ${event.seq}`);
    }
    assert.deepEqual(await store.session(id).verify(), []);
  }
  await store.close();
  return all;
}

test('two processes and four workers share one store', async (t) => {
  const at = await place(t);
  const count = full ? 5000 : 150;
  const processes = ['p1', 'p2'].map((name) => start('worker.mjs', at, name, count, 4));
  const workers = ['w1', 'w2', 'w3', 'w4'].map((name) => work(at, name, count, 4));
  for (const child of processes) child.stdout.resume();
  const codes = await Promise.all([...processes.map((child) => once(child, 'close')), ...workers.map((worker) => once(worker, 'exit'))]);
  assert.deepEqual(codes.map(([code]) => code), [0, 0, 0, 0, 0, 0], processes.map((child) => child.said).join());
  assert.equal((await found(at)).size, 6 * count);
});

test('acknowledged events survive a kill', async (t) => {
  for (let round = 0; round < (full ? 200 : 3); round++) {
    const at = await place(t);
    const child = start('worker.mjs', at, 'k', 1e9, 3);
    const acknowledged = [];
    const lines = createInterface(child.stdout);
    lines.on('line', (line) => {
      if (acknowledged.push(line) === 40 + 17 * (round % 9)) child.kill('SIGKILL');
    });
    await Promise.all([once(child, 'close'), once(lines, 'close')]);
    const events = await found(at);
    assert.ok(acknowledged.length >= 40, child.said);
    for (const line of acknowledged.slice(0, -1)) { // the last line may be cut short
      const [session, seq, n] = line.split(' ');
      assert.equal(events.get(`k ${n}`), `${session} ${seq}`);
    }
  }
});

test('a sync that fails refuses what it covered, and nothing else', async (t) => {
  const preloaded = path.join(path.dirname(await place(t)), 'failing_sync.so'); // a blank would end its name
  await promisify(execFile)('cc', ['-shared', '-fPIC', '-o', preloaded, path.join(import.meta.dirname, 'failing_sync.c')]);
  for (const [from, to] of [[20, 21], [26, 28], [31, 40], [20, 1e6]]) {
    const at = await place(t);
    const env = { ...process.env, LD_PRELOAD: preloaded, FAIL_FROM: String(from), FAIL_TO: String(to) };
    const { stdout } = await promisify(execFile)(process.execPath, [path.join(import.meta.dirname, 'failing.mjs'), at], { env });
    const answers = stdout.trim().split('\n').map((line) => JSON.parse(line));
    const store = await annal.open(at);
    const seen = new Map();
    for (const id of await store.sessions()) for await (const event of store.session(id)) seen.set(event.data.key, [id, event.seq]);
    await store.close();
    for (const [key, session, answer] of answers.filter(([key]) => key !== 'close')) {
      if (typeof answer === 'number') assert.deepEqual(seen.get(key), [session, answer]);
      else if (answer === 'IOFailed') assert.equal(seen.get(key), undefined, `${key} was refused and is there`);
      else assert.ok(['Unknown', 'Closed'].includes(answer), answer);
    }
    if (to === 1e6) assert.ok(answers.some(([, , answer]) => answer === 'IOFailed' || answer === 'Unknown'));
  }
});

test('a worker that is terminated in the middle loses nothing that was acknowledged', async (t) => {
  const at = await place(t);
  for (let round = 0; round < (full ? 100 : 4); round++) {
    const name = `t${round}`;
    const acknowledged = [];
    const [other, worker] = [work(at, `o${round}`, 60, 2), work(at, name, 1e9, 2)];
    const ended = once(other, 'exit');
    await new Promise((resolve) =>
      worker.on('message', (line) => {
        if (acknowledged.push(line) === 30 + round) resolve(worker.terminate());
      }),
    );
    assert.deepEqual(await ended, [0]);
    const events = await found(at);
    assert.equal([...events.keys()].filter((key) => key.startsWith(`o${round} `)).length, 60);
    for (const line of acknowledged) {
      const [session, seq, n] = line.split(' ');
      assert.equal(events.get(`${name} ${n}`), `${session} ${seq}`);
    }
  }
});

test('a worker that is terminated while it waits, reads and asks', async (t) => {
  const store = await openStore(t);
  await store.session('s1').appendMany(Array.from({ length: 5000 }, (_, n) => ['a', { n }]));
  const busy = `
    const { parentPort, workerData } = require('node:worker_threads');
    const annal = require('libannal');
    annal.open(workerData).then(async (store) => {
      store.tail({ fromNow: true }).next();
      const state = await store.session('s1').state();
      await store.session('s2').append('b');
      parentPort.postMessage('busy');
      for (;;) await Promise.all([store.sql('SELECT count(*) FROM events'), state.json(), store.session('s1').slice(-100), store.session('s2').append('b')]);
    });`;
  for (let round = 0; round < (full ? 50 : 4); round++) {
    const worker = new Worker(busy, { eval: true, workerData: store.path });
    await once(worker, 'message');
    await new Promise((resolve) => setTimeout(resolve, 3 * round));
    await worker.terminate();
  }
  assert.equal(await store.session('s1').lastSeq(), 5000);
  assert.deepEqual(await store.session('s2').verify(), []);
});

test('memory does not grow', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  const rounds = async (count) => {
    for (let round = 0; round < count; round++) {
      await Promise.all(Array.from({ length: 2500 }, (_, n) => session.append('a', { n }, { level: 'batch' })));
      for (let n = 0; n < 20; n++) await session.at(n);
      for await (const event of session.events({ fromSeq: 100 })) if (event.seq === 120) break;
      const tail = session.tail({ last: 3 });
      await tail.next();
      await tail.close();
      await store.sql('SELECT seq FROM events LIMIT 100');
      const state = await session.state({ at: 400 });
      await state.close();
      await session.append('NOT GOOD').catch(() => {});
    }
  };
  await rounds(20); // caches are full, and V8 has the heap that it wants
  const before = memory();
  await rounds(full ? 400 : 20);
  const after = memory();
  assert.ok(after.native - before.native < 32 << 20, `${(after.native - before.native) >> 20} MiB more outside of the heap`);
  assert.ok(after.heap - before.heap < 4 << 20, `${(after.heap - before.heap) >> 20} MiB more in the heap`);
});

for (const adapter of ['claude', 'openai', 'langgraph', 'mastra', 'stream', 'workflow'])
  test(`what the adapter of ${adapter} answered survives a kill`, { timeout: 3_600_000 }, async () => {
    const kills = full ? 100 : 3;
    assert.equal(await run('adapters.mjs', adapter, kills, 1), `${adapter}: ${kills} kills\n`);
  });
