// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemorySession, isSessionHistoryRewriteAwareSession, isSessionHistoryTransactionAwareSession } from '@openai/agents-core';
import * as annal from 'libannal';
import { AnnalSession } from 'libannal/openai-agents';
import { collect, openStore } from './helpers.mjs';

const user = (text) => ({ role: 'user', content: [{ type: 'input_text', text }] });
const call = (callId, value) => ({ type: 'function_call', callId, name: 'f', status: 'completed', arguments: `{"n":${value}}` });

test('it answers as the session in memory of the SDK', async (t) => {
  const store = await openStore(t);
  const [ours, theirs] = [new AnnalSession(store, { sessionId: 'user 42' }), new MemorySession({ sessionId: 'user 42' })];
  assert.ok(isSessionHistoryRewriteAwareSession(ours) && isSessionHistoryTransactionAwareSession(ours));
  const steps = [
    (session) => session.getSessionId(),
    (session) => session.popItem(),
    (session) => session.addItems([]),
    (session) => session.addItems([user('one'), call('c', 1), call('c', 2), user('two')]),
    (session) => session.popItem(),
    (session) => session.getItems(2),
    (session) => session.getItems(0),
    (session) => session.applyHistoryMutations({ mutations: [{ type: 'replace_function_call', callId: 'c', replacement: call('c', 3) }] }),
    (session) => session.applyHistoryTransaction({ operationId: 'a', transaction: { type: 'append_items', items: [user('three')] } }),
    (session) => session.addItems([user('four')]),
    (session) => session.applyHistoryTransaction({ operationId: 'a', transaction: { type: 'append_items', items: [{ content: user('three').content, role: 'user' }] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'a', transaction: { type: 'append_items', items: [] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'b', transaction: { type: 'replace_suffix', expectedSuffix: [user('three'), user('four')], replacement: [user('five')] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'c', transaction: { type: 'replace_suffix', expectedSuffix: [user('four')], replacement: [] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'c', transaction: { type: 'replace_suffix', expectedSuffix: [], replacement: [user('six')] } }),
    (session) => session.applyHistoryTransaction({ operationId: ' ', transaction: { type: 'append_items', items: [] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'd', transaction: { type: 'append_items', items: [{ when: new Date() }] } }),
    (session) => session.applyHistoryTransaction({ operationId: 'd', transaction: { type: 'other' } }),
    (session) => session.clearSession(),
    (session) => session.applyHistoryTransaction({ operationId: 'a', transaction: { type: 'append_items', items: [user('after')] } }),
    (session) => session.popItem(),
    (session) => session.popItem(),
  ];
  for (const [place, step] of steps.entries()) {
    const [mine, other] = await Promise.allSettled([step(ours), step(theirs)]);
    assert.deepEqual([mine.status, mine.value], [other.status, other.value], `step ${place}: ${mine.reason}`);
    assert.deepEqual(await ours.getItems(), await theirs.getItems(), `step ${place}`);
    const next = new AnnalSession(store, { sessionId: 'user 42' }); // reads it from the disk
    assert.deepEqual(await next.getItems(), await theirs.getItems(), `step ${place}, read again`);
  }
});

test('two stores on one conversation: an operation is applied once, no item is taken back twice', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const both = [store, other].map((one) => new AnnalSession(one, { sessionId: 'x' }));
  const transaction = { type: 'append_items', items: [user('once')] };
  await Promise.all(both.flatMap((session) => [1, 2, 3].map(() => session.applyHistoryTransaction({ operationId: 'op', transaction }))));
  assert.deepEqual(await both[1].getItems(), [user('once')]);
  await both[0].addItems(Array.from({ length: 9 }, (_, n) => user(`${n}`)));
  const popped = await Promise.all(Array.from({ length: 12 }, (_, n) => both[n % 2].popItem()));
  const texts = popped.filter(Boolean).map((item) => item.content[0].text);
  assert.deepEqual([texts.length, new Set(texts).size], [10, 10]);
  await other.close();
});

test('an item that JSON would change is refused', async (t) => {
  const session = new AnnalSession(await openStore(t));
  for (const bad of [{ x: new Uint8Array(3) }, { x: new Map() }, { x: 1n }, { x: NaN }, 7])
    await assert.rejects(session.addItems([bad]), annal.Invalid);
  const item = user('start');
  await session.addItems([item]);
  item.content = 'changed';
  (await session.getItems())[0].content = 'changed';
  assert.deepEqual(await session.getItems(), [user('start')]);
  assert.deepEqual((await collect(session.annalSession.events())).map(({ type }) => type), ['session.named', 'session.created', 'turn.started', 'message.added']);
});

test('it reads items that the Python package wrote in events of the core pack', async (t) => {
  const store = await openStore(t);
  const raw = store.session(annal.name('openai-agents', 'user'));
  await raw.append('session.named', { name: ['openai-agents', 'user'] });
  await raw.append('session.created', { agent_id: 'openai-agents' });
  await raw.append('turn.started', { turn_id: '~1a2b3c4d' });
  await raw.append('message.added', { id: '~1a2b3c4d', role: 'user', content: 'Hello', item: true });
  await raw.append('message.added', { type: 'reasoning', id: 'r1', content: [], role: 'assistant', item: true });
  await raw.append('tool.called', { type: 'function_call', call_id: 'c1', tool: 'f', input: '{}', item: true });
  await raw.append('tool.called', { type: 'shell_call', call_id: 'c2', input: {}, tool: 'shell', item: true });
  await raw.append('tool.returned', { type: 'function_call_output', call_id: 'c1', output: 'x', item: true });
  await raw.append('message.added', { id: 'other', role: 'user', content: 'not an item' });
  const session = new AnnalSession(store, { sessionId: 'user' });
  await session.addItems([user('two')]);
  assert.deepEqual(await session.getItems(), [
    { role: 'user', content: 'Hello' },
    { type: 'reasoning', id: 'r1', summary: [] },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    { type: 'shell_call', call_id: 'c2', action: {} },
    { type: 'function_call_output', call_id: 'c1', output: 'x' },
    user('two'),
  ]);
});
