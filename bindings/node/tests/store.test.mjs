// SPDX-License-Identifier: Apache-2.0
// Opening and closing, questions, states, packs.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test } from 'node:test';
import * as annal from 'libannal';
import { collect, openStore, place, run, seqs } from './helpers.mjs';

const events = (count) => Array.from({ length: count }, (_, n) => ['tool.called', { n }]);

test('a store that does not exist', async (t) => {
  const at = await place(t);
  await assert.rejects(annal.open(at, { create: false }), (error) => error instanceof annal.NotFound && /store/.test(error.message));
  await assert.rejects(annal.open(at, { readOnly: true }), annal.NotFound);
  await assert.rejects(annal.open(at, { format: 'xml' }), annal.Invalid);
  await assert.rejects(annal.open(7), annal.Invalid);
});

test('a closed store refuses every call', async (t) => {
  const store = await annal.open(await place(t));
  const session = store.session('s1');
  await session.appendMany(events(3000));
  const reading = session.events();
  await reading.next();
  const [tail, state] = [session.tail(), await session.state()];
  await tail.next();
  await Promise.all([store.close(), store.close()]);
  await store.close();
  assert.throws(() => store.session('s1'), annal.Closed);
  for (const call of [
    () => session.append('a'), () => session.lastSeq(), () => collect(reading), () => collect(session), () => collect(tail),
    () => state.json(), () => store.sessions(), () => collect(store.query()), () => store.sql('SELECT 1'), () => store.sync(),
  ])
    await assert.rejects(call, (error) => error instanceof annal.Closed && /closed/.test(error.message));
  await state.close();
  await tail.close();
});

test('close waits for what is on its way', async (t) => {
  const at = await place(t);
  const store = await annal.open(at);
  const pending = [store.session('s1').appendMany(events(2000)), store.sql('SELECT count(*) FROM events')];
  const appended = Array.from({ length: 100 }, (_, n) => store.session('s2').append('a', n));
  await store.close();
  assert.equal((await Promise.all(pending))[0].length, 2000);
  assert.deepEqual(await Promise.all(appended), Array.from({ length: 100 }, (_, n) => n + 1));
});

test('a store that is forgotten is closed, with a warning', async () => {
  const said = await run('forgotten.mjs');
  assert.match(said, /ResourceWarning: store .* was not closed/);
  assert.match(said, /2 events/);
});

test('read only', async (t) => {
  const store = await openStore(t);
  await store.session('s1').append('a');
  const reader = await annal.open(store.path, { readOnly: true });
  assert.equal(await reader.session('s1').lastSeq(), 1);
  assert.equal((await reader.sql('SELECT seq FROM events')).length, 1);
  await assert.rejects(reader.session('s1').append('a'), annal.IOFailed);
  await reader.close();
});

test('query', async (t) => {
  const store = await openStore(t);
  for (const id of ['s1', 's2']) {
    await store.session(id).appendMany(events(3000));
    await store.session(id).append('run.ended', { n: -1 });
  }
  assert.equal(await store.query().count(), 6002);
  assert.equal((await collect(store.query({ types: 'tool.*' }))).length, 6000);
  const ended = await collect(store.query({ types: ['run.ended'], descending: true }));
  assert.deepEqual(ended.map((event) => event.session), ['s2', 's1']);
  assert.deepEqual(await seqs(store.query({ sessions: 's2', fromSeq: 7, toSeq: 9 })), [7, 8, 9]);
  assert.deepEqual((await collect(store.query({ sessions: 's1', where: "data->>'$.n' > 2997" }))).map((event) => event.data.n), [2998, 2999]);
  const since = (await store.session('s2').at(0)).tsUs;
  assert.equal((await store.query({ since }).count()) + (await store.query({ until: since }).count()), 6002);
  await assert.rejects(collect(store.query({ where: 'no such thing' })), annal.SQLError);
  assert.deepEqual([await store.query({ since: 0 }).count(), await store.query({ until: new Date(0) }).count()], [6002, 0]);
  const question = store.query({ limit: 1 });
  assert.deepEqual(await seqs(question), await seqs(question));
  assert.throws(() => store.query({ limit: 1.5 }), annal.Invalid);
});

test('sql', async (t) => {
  const store = await openStore(t);
  await store.session('s1').appendMany(events(3));
  const rows = await store.sql("SELECT seq, data->>'$.n' AS n FROM events WHERE seq > ?1", [1]);
  assert.deepEqual([rows.columns, [...rows], rows.at(-1)], [['seq', 'n'], [[2, 1], [3, 2]], [3, 2]]);
  assert.deepEqual(rows.objects()[0], { seq: 2, n: 1 });
  const values = [null, 7, 2.5, 'é', Buffer.from([0, 255]), 2n ** 60n, -(2n ** 63n), -1];
  assert.deepEqual((await store.sql('SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8', values))[0], values);
  assert.deepEqual((await store.sql('SELECT ?1, ?2', [true, undefined]))[0], [1, null]);
  assert.deepEqual((await store.sql('SELECT 1 AS x WHERE 0')).columns, ['x']);
  for (const wrong of ['SELEC', 'DELETE FROM sessions']) await assert.rejects(store.sql(wrong), annal.SQLError);
  for (const bad of [2n ** 63n, {}, Symbol('s')]) await assert.rejects(store.sql('SELECT ?1', [bad]), annal.Invalid);
});

test('search', async (t) => {
  const store = await openStore(t);
  await store.session('s1').append('message.added', { role: 'user', content: 'Where is the Café?' });
  await store.session('s2').append('message.added', { role: 'assistant', content: 'the cafe is closed' });
  assert.deepEqual(new Set((await store.search('cafe the')).map((hit) => hit.session)), new Set(['s1', 's2']));
  const [hit] = await store.search('cafe', { role: 'user' });
  assert.deepEqual([hit.session, hit.seq, hit.role, typeof hit.rank], ['s1', 1, 'user', 'number']);
  assert.deepEqual((await store.search(['the cafe is'])).map((found) => found.session), ['s2']);
  assert.deepEqual((await store.search([], { expression: 'cafe NOT closed' })).map((found) => found.session), ['s1']);
  await assert.rejects(store.search(''), annal.Invalid);
});

test('states', async (t) => {
  const session = (await openStore(t)).session('s1');
  await session.appendMany([['tool.called', { call_id: 'c', tool: 'bäsh'.repeat(5000) }], ['tool.returned', { call_id: 'c' }]]);
  const [before, after] = [await session.state({ at: 1 }), await session.state()];
  assert.deepEqual([before.seq, after.seq], [1, 2]);
  const [call] = (await before.json()).tool_calls;
  assert.deepEqual([call.status, call.tool], ['called', 'bäsh'.repeat(5000)]);
  assert.deepEqual((await after.sql('SELECT status FROM tool_calls WHERE call_id = ?1', ['c']))[0], ['returned']);
  assert.notEqual(await before.hash(), await after.hash());
  assert.equal(await (await session.state({ at: 2 })).hash(), await after.hash());
  assert.ok((await before.diff(after)).some((change) => change.path === '/tool_calls/0/status'));
  assert.deepEqual(await before.diff(before), []);
  assert.ok((await session.state({ at: (await session.at(0)).ts })).seq >= 0);
  await assert.rejects(session.state({ at: 3 }), annal.NotFound);
  await before.close();
  await before.close();
  await assert.rejects(before.json(), annal.Closed);
  await Promise.all(Array.from({ length: 20 }, () => after.sql('SELECT 1')));
});

const PACK = `-- pack tasks   version 1   database tasks.db
CREATE TABLE tasks (session_id TEXT, id TEXT, taken_by TEXT, PRIMARY KEY (session_id, id));

-- on task.added
INSERT INTO tasks (session_id, id) VALUES (:session, $id);

-- on task.claimed   guarded "the task is not open, or somebody else has it"
UPDATE tasks SET taken_by = $by WHERE session_id = :session AND id = $id AND taken_by IS NULL;

-- forget
DELETE FROM tasks WHERE session_id = :session;
`;

test('a guard refuses with its sentence', async (t) => {
  const store = await openStore(t);
  await fs.mkdir(`${store.path}/packs`, { recursive: true });
  await fs.writeFile(`${store.path}/packs/tasks.sql`, PACK);
  const session = store.session('s1');
  const [, first, second] = await Promise.allSettled([
    session.append('task.added', { id: 't1' }), session.append('task.claimed', { id: 't1', by: 'a' }),
    session.append('task.claimed', { id: 't1', by: 'b' }),
  ]);
  assert.equal(first.value, 2);
  assert.ok(second.reason instanceof annal.Refused);
  assert.match(second.reason.message, /the task is not open, or somebody else has it/);
  assert.deepEqual([...(await store.sql('SELECT taken_by FROM tasks'))], [['a']]);
  assert.deepEqual((await store.packs()).map((pack) => [pack.name, pack.state]), [['core', 'ready'], ['tasks', 'ready']]);
});

test('built-in packs', async (t) => {
  const store = await openStore(t);
  await assert.rejects(store.enablePack('no-such-pack'), annal.NotFound);
  await store.enablePack('agentweaver');
  assert.ok((await store.packs()).some((pack) => pack.name === 'agentweaver'));
  await store.disablePack('agentweaver');
});
