// SPDX-License-Identifier: Apache-2.0
// The contract of the SDK's SessionStore (sdk.d.ts 0.3.332), method by method.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as annal from 'libannal';
import { AnnalSessionStore } from 'libannal/claude-agent';
import { openStore } from './helpers.mjs';

const line = (n) => ({ type: 'user', uuid: `u${n}`, message: { content: [`é ${n}`, null, 1.5] } });
const key = { projectKey: '-home-me', sessionId: 's1' };

test('loaded lines equal the appended lines', async (t) => {
  const store = await openStore(t);
  const sessions = new AnnalSessionStore(store);
  assert.equal(await sessions.load(key), null);
  await sessions.append(key, []);
  assert.equal(await sessions.load(key), null);
  const title = { type: 'title', title: 'x' };
  await Promise.all([sessions.append(key, [line(1), title]), sessions.append(key, [line(2)])]);
  await sessions.append(key, [line(2), title, line(3)]); // a retry: uuids count once, lines without a uuid each time
  const wanted = [line(1), title, line(2), title, line(3)];
  assert.deepEqual(await sessions.load(key), wanted);
  (await sessions.load(key))[0].type = 'changed';
  assert.deepEqual(await new AnnalSessionStore(store).load(key), wanted);
  await sessions.append({ ...key, sessionId: 'S1' }, [line(9)]);
  assert.deepEqual(await sessions.load(key), wanted);
});

test('lists, subkeys, deletion', async (t) => {
  const store = await openStore(t);
  const sessions = new AnnalSessionStore(store);
  const subs = ['subagents/agent-1', 'subagents/agent-2'];
  for (const sessionId of ['s1', 's2']) await sessions.append({ ...key, sessionId }, [line(1)]);
  for (const subpath of subs) await sessions.append({ ...key, subpath }, [line(2)]);
  await sessions.append({ projectKey: 'other', sessionId: 's1' }, [line(3)]);
  const listed = await sessions.listSessions(key.projectKey);
  assert.deepEqual(listed.map(({ sessionId }) => sessionId).sort(), ['s1', 's2']);
  for (const { mtime } of listed) assert.ok(Number.isInteger(mtime) && Math.abs(mtime - Date.now()) < 600_000);
  assert.deepEqual((await sessions.listSubkeys(key)).sort(), subs);
  await sessions.delete({ ...key, subpath: subs[0] });
  assert.deepEqual(await sessions.listSubkeys(key), [subs[1]]);
  await sessions.delete(key);
  await sessions.delete(key);
  assert.deepEqual([await sessions.load(key), await sessions.listSubkeys(key)], [null, []]);
  assert.deepEqual((await sessions.listSessions(key.projectKey)).map(({ sessionId }) => sessionId), ['s2']);
  assert.deepEqual(await sessions.load({ projectKey: 'other', sessionId: 's1' }), [line(3)]);
});

test('summaries equal those in the SDK, with the clock of the list', async (t) => {
  const store = await openStore(t);
  assert.equal(new AnnalSessionStore(store).listSessionSummaries, undefined);
  const fold = (previous, { sessionId }, entries) => ({ sessionId, mtime: 0, data: { lines: entries.length, previous } });
  const sessions = new AnnalSessionStore(store, { foldSessionSummary: fold });
  await sessions.append(key, [line(1), line(2)]);
  const [{ mtime }] = await sessions.listSessions(key.projectKey);
  assert.deepEqual(await sessions.listSessionSummaries(key.projectKey), [{ sessionId: 's1', mtime, data: { lines: 2, previous: undefined } }]);
});

test('two stores on one transcript', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const both = [store, other].map((one) => new AnnalSessionStore(one));
  await Promise.all(Array.from({ length: 20 }, (_, n) => both[n % 2].append(key, [line(n), line(n + 100)])));
  const loaded = await both[0].load(key);
  assert.deepEqual(new Set(loaded.map(({ uuid }) => uuid)).size, 40);
  for (let n = 0; n < 20; n++) assert.equal(loaded.findIndex(({ uuid }) => uuid === `u${n}`) + 1, loaded.findIndex(({ uuid }) => uuid === `u${n + 100}`));
  await other.close();
});

test('it reads lines that the Python package wrote in events of the core pack', async (t) => {
  const store = await openStore(t);
  const raw = store.session(annal.name('claude-agent', 'p', 's'));
  await raw.append('session.named', { name: ['claude-agent', 'p', 's'] });
  await raw.append('turn.started', { turn_id: 't1' });
  const hello = { value: { type: 'user', uuid: 'u1', message: { role: 'user', content: null } }, moved: [[['message', 'content']]] };
  await raw.append('message.added', { id: 'u1', role: 'user', content: 'Hello', extra: hello });
  await raw.append('message.added', { id: 'u2', role: 'assistant', content: 'So:' });
  const blocks = [
    { type: 'text', text: null },
    { type: 'tool_use', id: 'c1', name: 'Bash', input: null },
  ];
  const moved = [
    [['message', 'content', 0, 'text'], 1, 'content'],
    [['message', 'content', 1, 'input']],
  ];
  const extra = { value: { type: 'assistant', uuid: 'u2', message: { content: blocks } }, moved };
  await raw.append('tool.called', { call_id: 'c1', tool: 'Bash', input: { command: 'ls' }, extra });
  const sessions = new AnnalSessionStore(store);
  const key = { projectKey: 'p', sessionId: 's' };
  await sessions.append(key, [{ type: 'user', uuid: 'u1' }, { type: 'mode' }]);
  assert.deepEqual(await sessions.load(key), [
    { type: 'user', uuid: 'u1', message: { role: 'user', content: 'Hello' } },
    {
      type: 'assistant',
      uuid: 'u2',
      message: { content: [{ type: 'text', text: 'So:' }, { type: 'tool_use', id: 'c1', name: 'Bash', input: { command: 'ls' } }] },
    },
    { type: 'mode' },
  ]);
});
