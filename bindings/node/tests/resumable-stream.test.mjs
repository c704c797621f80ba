// SPDX-License-Identifier: Apache-2.0
// Streams that are resumed: as the package resumable-stream answers, and beyond the end of their producer.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import * as annal from 'libannal';
import { createResumableStreamContext } from 'libannal/resumable-stream';
import { createResumableStreamContext as theirsOf } from 'resumable-stream/generic';
import { openStore, start } from './helpers.mjs';

/** What resumable-stream needs of Redis, in memory. */
function redis() {
  const values = new Map();
  const channels = new Map();
  const publisher = {
    connect: async () => {},
    publish: async (channel, message) => void (await channels.get(channel)?.(message)),
    set: async (key, value) => void values.set(key, value),
    get: async (key) => values.get(key) ?? null,
    async incr(key) {
      const next = Number(values.get(key) ?? 0) + 1;
      if (Number.isNaN(next)) throw new Error('ERR value is not an integer or out of range');
      values.set(key, String(next));
      return next;
    },
  };
  const subscriber = {
    connect: async () => {},
    subscribe: async (channel, use) => void channels.set(channel, use),
    unsubscribe: async (channel) => void channels.delete(channel),
  };
  return { publisher, subscriber };
}

function source() {
  const { readable, writable } = new TransformStream({}, undefined, { highWaterMark: 100 });
  return { readable, writer: writable.getWriter() };
}

async function text(stream) {
  let all = '';
  for await (const part of stream) all += part;
  return all;
}

/** What a context answers, step by step. */
async function played(context, makeOther) {
  const said = [];
  const never = () => assert.fail('it is not to be called');
  said.push(await context.hasExistingStream('a'), await context.resumeExistingStream('a'));
  const { readable, writer } = source();
  const first = await context.resumableStream('a', () => readable);
  said.push(await context.hasExistingStream('a'), await context.hasExistingStream('b'));
  await writer.write('1\n');
  const [second, skipped] = [await context.resumableStream('a', never), await context.resumeExistingStream('a', 1)];
  await writer.write('2\n');
  await writer.write('3\n');
  await writer.close();
  said.push(await Promise.all([first, second, skipped].map(text)));
  said.push(await context.hasExistingStream('a'), await context.resumableStream('a', never), await context.resumeExistingStream('a'));
  const again = await context.createNewResumableStream('a', makeOther);
  said.push(await text(again), await context.hasExistingStream('a'));
  return said;
}

test('a context answers as the context of resumable-stream', async (t) => {
  const store = await openStore(t);
  const other = () => ReadableStream.from(['other']);
  const theirs = await played(theirsOf({ waitUntil: null, ...redis() }), other);
  assert.deepEqual(theirs[4], ['1\n2\n3\n', '1\n2\n3\n', '\n2\n3\n']);
  assert.deepEqual(await played(createResumableStreamContext(store), other), theirs);
});

test('a stream is replayed after its end, in another context, and its reader may leave', async (t) => {
  const store = await openStore(t);
  let end;
  const context = createResumableStreamContext(store, { waitUntil: (promise) => (end = promise) });
  const reader = (await context.resumableStream('a', () => ReadableStream.from(['pelican ', 'heron ', 'egret']))).getReader();
  assert.equal((await reader.read()).value, 'pelican ');
  await reader.cancel();
  await end;
  const replay = createResumableStreamContext(store, { replayDone: true });
  assert.equal(await text(await replay.resumeExistingStream('a')), 'pelican heron egret');
  assert.equal(await text(await replay.resumeExistingStream('a', 10)), 'ron egret');
  assert.equal(await context.resumeExistingStream('a'), null);
  assert.deepEqual((await store.search('heron')).map(({ type }) => type), ['stream.chunk']);
  const [[title, status]] = await store.sql('SELECT title, status FROM sessions');
  assert.deepEqual([title, status], ['a', 'ended']);
});

test('a source that fails ends the stream for each reader', async (t) => {
  const store = await openStore(t);
  const context = createResumableStreamContext(store);
  const { readable, writer } = source();
  const first = await context.resumableStream('a', () => readable);
  const second = await context.resumeExistingStream('a');
  await writer.write('x');
  await writer.abort(new Error('no wings'));
  for (const stream of [first, second]) await assert.rejects(text(stream), /no wings/);
  assert.equal(await context.hasExistingStream('a'), 'DONE');
});

test('two stores: one of them produces, both read all of it', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  let made = 0;
  const make = () => ((made += 1), ReadableStream.from(Array.from({ length: 200 }, (_, n) => `${n} `)));
  const contexts = [store, other].map((one) => createResumableStreamContext(one, { replayDone: true }));
  const streams = await Promise.all(contexts.map((context) => context.resumableStream('a', make)));
  const [one, two] = await Promise.all(streams.map(text));
  assert.deepEqual([made, one === two, one.split(' ').length], [1, true, 201]);
  await other.close();
});

test('what a killed producer wrote is read, and its silence is noticed', async (t) => {
  const store = await openStore(t);
  const child = start('producer.mjs', store.path);
  await once(child.stdout, 'data');
  const context = createResumableStreamContext(store, { idleMs: 300 });
  const reader = (await context.resumeExistingStream('a')).getReader();
  child.kill('SIGKILL');
  await once(child, 'close');
  for (const part of ['one ', 'two ']) assert.equal((await reader.read()).value, part);
  await assert.rejects(reader.read(), /no chunk was appended for 300 ms/);
});
