// SPDX-License-Identifier: Apache-2.0
// What LangGraph's own suite (langgraph.suite.mjs) does not ask of the saver: other savers, size, branches.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test } from 'node:test';
import { HumanMessage } from '@langchain/core/messages';
import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint';
import * as annal from 'libannal';
import { AnnalSaver } from 'libannal/langgraph';
import { openStore, place } from './helpers.mjs';

const METADATA = { source: 'loop', step: 0, parents: {} };

function put(saver, config, values, versions) {
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions };
  return saver.put(config, checkpoint, METADATA, versions);
}

test('another saver reads the thread, and both append to it', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 }); // shares nothing with the first
  const [one, two] = [new AnnalSaver(store), new AnnalSaver(other)];
  let config = { configurable: { thread_id: 't/1' } };
  let version;
  const messages = [];
  for (let step = 0; step < 40; step++) {
    const saver = step % 3 === 0 ? two : one;
    messages.push({ role: 'user', content: `message ${step} `.repeat(20) });
    version = saver.getNextVersion(version);
    config = await put(saver, config, { messages }, { messages: version });
    await saver.putWrites(config, [['messages', step]], `task-${step}`);
    const tuple = await (saver === one ? two : one).getTuple({ configurable: { thread_id: 't/1' } });
    assert.deepEqual(tuple.checkpoint.channel_values, { messages });
    assert.deepEqual(tuple.pendingWrites, [[`task-${step}`, 'messages', step]]);
    assert.deepEqual(tuple.config, config);
  }
  const sizes = [];
  for await (const event of store.query({ types: 'checkpoint.saved' })) sizes.push(event.json.length);
  assert.ok(sizes.at(-1) < 2500, `a checkpoint that adds one message has ${sizes.at(-1)} bytes`);
  const third = new AnnalSaver(store);
  let n = 0;
  for await (const { checkpoint } of third.list({ configurable: { thread_id: 't/1' } }))
    assert.deepEqual(checkpoint.channel_values.messages, messages.slice(0, 40 - n++));
  assert.equal(n, 40);
  await other.close();
});

test('two branches of a thread do not share values', async (t) => {
  const saver = new AnnalSaver(await openStore(t));
  const root = await put(saver, { configurable: { thread_id: 't' } }, {}, {});
  const [left, right] = await Promise.all(
    ['left', 'right'].map((side) => put(saver, root, { x: side }, { x: saver.getNextVersion(undefined) })),
  );
  assert.equal((await saver.getTuple(left)).checkpoint.channel_values.x, 'left');
  assert.equal((await saver.getTuple(right)).checkpoint.channel_values.x, 'right');
});

test('a deleted thread is gone from the disk, and begins again', async (t) => {
  const at = await place(t);
  const store = await annal.open(at);
  const saver = new AnnalSaver(store);
  const config = { configurable: { thread_id: 'secret' } };
  await put(saver, config, { x: 'classified' }, { x: '1' });
  await saver.deleteThread('secret');
  await saver.deleteThread('secret');
  assert.equal(await saver.getTuple(config), undefined);
  await put(saver, config, { x: 'new' }, { x: '1' });
  assert.equal((await saver.getTuple(config)).checkpoint.channel_values.x, 'new');
  await store.close();
  for (const entry of await fs.readdir(at, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) assert.ok(!(await fs.readFile(`${entry.parentPath}/${entry.name}`)).includes(Buffer.from('classified').toString('base64').slice(0, 8)));
});

test('values are what the serializer of LangGraph makes of them', async (t) => {
  const saver = new AnnalSaver(await openStore(t));
  const odd = [
    new Map([['a', new Set([1])]]), { a: undefined }, /x/g, Uint8Array.of(1, 2), JSON.parse('{"__proto__":{"a":1},"b":2}'), { lc: 3 },
    ['\u0000', 'é'], new HumanMessage({ id: 'h', content: 'Hello' }), { plain: [1, null, { deep: 'text' }] }, new Error('no wind'),
  ];
  for (const [n, value] of odd.entries()) {
    await put(saver, { configurable: { thread_id: `t${n}`, checkpoint_ns: '' } }, { value }, { value: 1 });
    const { checkpoint } = await saver.getTuple({ configurable: { thread_id: `t${n}` } });
    const wanted = await saver.serde.loadsTyped(...(await saver.serde.dumpsTyped(value)));
    assert.deepEqual(checkpoint.channel_values.value, wanted);
    assert.deepEqual(Object.keys(checkpoint.channel_values.value ?? {}), Object.keys(wanted ?? {}));
  }
});
