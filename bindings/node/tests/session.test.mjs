// SPDX-License-Identifier: Apache-2.0
// Appending to a session, and reading it.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test } from 'node:test';
import * as annal from 'libannal';
import { collect, openStore, place, seqs } from './helpers.mjs';

const fill = (session, count) =>
  session.appendMany(Array.from({ length: count }, (_, place) => ['tool.called', { n: place + 1 }]));

test('the next process that opens the store reads an append', async (t) => {
  const at = await place(t);
  const first = await annal.open(at);
  assert.equal(await first.session('s1').append('tool.called', { tool: 'bäsh' }), 1);
  await first.close();
  const store = await annal.open(at, { create: false });
  const [event, ...others] = await collect(store.session('s1'));
  assert.deepEqual([event.seq, event.type, event.data, others], [1, 'tool.called', { tool: 'bäsh' }, []]);
  assert.deepEqual(await store.sessions(), ['s1']);
  assert.equal(await store.session('s2').exists(), false);
  await store.close();
});

test('several events are appended as one', async (t) => {
  const session = (await openStore(t)).session('s1');
  assert.deepEqual(await session.appendMany([['a.b', { n: 1 }], { type: 'a.c', data: [1, null, 2.5] }, ['a.d', 'x']]), [1, 2, 3]);
  assert.deepEqual((await collect(session)).map((event) => event.data), [{ n: 1 }, [1, null, 2.5], 'x']);
  assert.deepEqual(await session.appendMany([]), []);
  await assert.rejects(session.appendMany([['good', 1], ['NOT GOOD', 2]]), annal.Invalid);
  assert.equal(await session.lastSeq(), 3);
});

test('an id makes an append exactly once', async (t) => {
  const session = (await openStore(t)).session('s1');
  const append = (x) => session.append('a', { x }, { id: 'one' });
  assert.deepEqual(await Promise.all([append(1), session.append('b'), append(1)]), [1, 2, 1]);
  await assert.rejects(append(2), (error) => error instanceof annal.Conflict && /one/.test(error.message));
});

test('an expected seq refuses who does not know the end', async (t) => {
  const session = (await openStore(t)).session('s1');
  assert.equal(await session.append('a', null, { expectedSeq: 0 }), 1);
  await assert.rejects(session.append('a', null, { expectedSeq: 0 }), annal.Conflict);
  assert.equal(await session.append('a', null, { expectedSeq: 1n }), 2);
  const both = await Promise.allSettled([1, 2].map(() => session.append('a', null, { expectedSeq: 2 })));
  assert.deepEqual(both.map((answer) => answer.status), ['fulfilled', 'rejected']);
  assert.throws(() => { throw both[1].reason; }, annal.Conflict);
});

test('appends that are pending together keep their order', async (t) => {
  const session = (await openStore(t)).session('s1');
  const appended = [];
  for (let n = 1; n <= 500; n++) {
    appended.push(session.append('a', { n }, n % 3 === 0 ? { level: 'batch' } : n % 7 === 0 ? { id: `i${n}` } : undefined));
    if (n % 50 === 0) await new Promise(setImmediate);
  }
  assert.deepEqual(await Promise.all(appended), Array.from({ length: 500 }, (_, place) => place + 1));
  assert.deepEqual((await collect(session)).map((event) => event.data.n), Array.from({ length: 500 }, (_, place) => place + 1));
});

test('a bad append does not fail those beside it', async (t) => {
  const session = (await openStore(t)).session('s1');
  const answers = await Promise.allSettled([
    session.append('a', 1), session.append('NOT GOOD'), session.append('a', 2), session.append('a', 3, { expectedSeq: 9 }),
    session.append('a', 10n), session.append('a', 4),
  ]);
  assert.deepEqual(answers.map((answer) => answer.value ?? answer.reason.name), [1, 'Invalid', 2, 'Conflict', 'Invalid', 3]);
});

test('levels', async (t) => {
  const session = (await openStore(t)).session('s1');
  for (const level of ['sync', 'batch', 'os']) await session.append('a', { level }, { level });
  await session.sync();
  assert.deepEqual((await collect(session)).map((event) => event.data.level), ['sync', 'batch', 'os']);
  await assert.rejects(session.append('a', null, { level: 'soon' }), /not a level/);
});

test('times and causes', async (t) => {
  const session = (await openStore(t)).session('s1');
  await session.append('a', null, { ts: new Date('2026-01-06T07:24:00.123Z') });
  await session.append('b', null, { cause: await session.at(0), ts: '2026-01-07T00:00:00.000001Z' });
  await session.append('c', null, { ts: 0 });
  await session.append('d', null, { ts: 253402300799999999n });
  const [a, b, c, d] = await collect(session);
  assert.equal(a.ts.toISOString(), '2026-01-06T07:24:00.123Z');
  assert.deepEqual([b.cause, b.tsUs, c.tsUs, c.ts.getTime()], ['s1:1', Date.UTC(2026, 0, 7) * 1000 + 1, 0, 0]);
  assert.equal(d.tsUs, 253402300799999999n);
  await assert.rejects(session.append('a', null, { ts: 'soon' }), annal.Invalid);
  await assert.rejects(session.append('a', null, { ts: new Date(NaN) }), annal.Invalid);
});

test('a session is read from any place', async (t) => {
  const session = (await openStore(t)).session('s1');
  assert.deepEqual([await seqs(session), await session.slice(), await session.at(0), await seqs(session.reversed())], [[], [], undefined, []]);
  await fill(session, 3000);
  const all = Array.from({ length: 3000 }, (_, place) => place + 1);
  assert.deepEqual(await seqs(session), all);
  assert.deepEqual(await seqs(session.reversed()), all.toReversed());
  for (const part of [[], [-10], [3, 9], [9, 3], [-3, 2], [2990, 5000], [0, -2995], [-5000, 3]]) {
    assert.deepEqual((await session.slice(...part)).map((event) => event.seq), all.slice(...part), part.join());
  }
  assert.deepEqual([(await session.at(0)).seq, (await session.at(-1)).seq, (await session.at(-3000)).seq], [1, 3000, 1]);
  assert.deepEqual([await session.at(3000), await session.at(-3001)], [undefined, undefined]);
  assert.deepEqual(await seqs(session.events({ fromSeq: 2998 })), [2998, 2999, 3000]);
  assert.deepEqual(await seqs(session.events({ fromSeq: 5n, toSeq: 7n })), [5, 6, 7]);
  assert.deepEqual(await seqs(session.events({ fromSeq: 5, toSeq: 4 })), []);
});

test('a reader that stops early frees what it has', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await fill(session, 3000);
  for await (const event of session) if (event.seq === 3) break;
  const abort = new AbortController();
  await assert.rejects(async () => {
    for await (const event of session.events({ signal: abort.signal })) if (event.seq === 7) abort.abort(new Error('enough'));
  }, /enough/);
  await assert.rejects(collect(store.query({ signal: AbortSignal.abort() })), { name: 'AbortError' });
});

test('data is any JSON', async (t) => {
  const session = (await openStore(t)).session('s1');
  const values = [null, true, -(2 ** 53), 1e-300, '𝄞\u2028"\\', '\ud800', [], {}, { ключ: [{}] }];
  for (const value of values) await session.append('a', value);
  await session.append('a', Buffer.from('{"written":  12345678901234567890}'));
  const events = await collect(session);
  assert.deepEqual(events.map((event) => event.data).slice(0, -1), values);
  assert.equal(events.at(-1).json, '{"written":  12345678901234567890}');
  const circle = {};
  circle.circle = circle;
  const deep = JSON.parse('['.repeat(600) + ']'.repeat(600));
  for (const bad of [circle, 1n, () => {}, Buffer.from('{'), Buffer.from([0x22, 0xff, 0x22])])
    await assert.rejects(session.append('a', bad), annal.Invalid);
  await assert.rejects(session.append('a', deep), annal.LimitExceeded);
  for (const bad of ['', '\ud800', 7]) await assert.rejects(session.append(bad), annal.Invalid);
  await assert.rejects(session.append('a', null, { id: '\udc00' }), annal.Invalid);
  assert.equal(await session.lastSeq(), values.length + 1);
});

test('msgpack journals', async (t) => {
  const session = (await openStore(t, { format: 'msgpack' })).session('s1');
  await session.append('a', { x: [1, 2.5] });
  assert.equal((await session.info()).format, 'msgpack');
  assert.deepEqual((await session.at(0)).data, { x: [1, 2.5] });
});

test('a fork has the history and its own future', async (t) => {
  const session = (await openStore(t)).session('s1');
  await fill(session, 5);
  const child = await session.fork('s2', { at: 3 });
  assert.equal(await child.append('b'), 4);
  assert.deepEqual((await collect(child)).map((event) => event.type), ['tool.called', 'tool.called', 'tool.called', 'b']);
  const info = await child.info();
  assert.deepEqual([info.forkedFrom, info.forkSeq, info.lastSeq], ['s1', 3, 4]);
  assert.deepEqual(await seqs(child.reversed()), [4, 3, 2, 1]);
  await assert.rejects(session.fork('s2'), annal.Conflict);
  await assert.rejects(session.delete(), (error) => error instanceof annal.Conflict && /fork/.test(error.message));
  await assert.rejects(session.fork('s3', { at: 77 }), annal.NotFound);
  assert.deepEqual(await seqs(await child.copy('s4')), [1, 2, 3, 4]);
});

test('a deleted session is gone', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await fill(session, 3);
  await session.delete();
  assert.deepEqual([await session.exists(), await store.sessions()], [false, []]);
  await assert.rejects(session.delete(), annal.NotFound);
  assert.equal(await session.append('a'), 1);
});

test('damage is named and skipped', async (t) => {
  const at = await place(t);
  const before = await annal.open(at);
  await fill(before.session('s1'), 9);
  await before.close();
  const journal = `${at}/events/s1.jsonl`;
  await fs.writeFile(journal, (await fs.readFile(journal, 'utf8')).replace('"n":5', '"n":6'));
  const store = await annal.open(at);
  const session = store.session('s1');
  await assert.rejects(collect(session), (error) => error instanceof annal.Corrupt && /event 5/.test(error.message));
  const damage = [];
  assert.deepEqual(await seqs(session.events({ onDamage: (place) => damage.push(place) })), [1, 2, 3, 4, 6, 7, 8, 9]);
  assert.deepEqual(damage.map((place) => place.seq), [5]);
  assert.deepEqual((await session.verify()).map((place) => place.seq), [5]);
  await assert.rejects(collect(store.query()), annal.Corrupt);
  await store.close();
});

test('artifacts', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  const content = Buffer.alloc(256_000, Buffer.from(Uint8Array.from({ length: 256 }, (_, place) => place)));
  const artifact = await session.putArtifact(content);
  await session.append('tool.returned', { call_id: 'c', output: artifact.ref() });
  assert.deepEqual(await session.getArtifact(artifact.sha256), content);
  assert.deepEqual(await (await session.at(0)).output(), content);
  await assert.rejects(session.getArtifact('0'.repeat(64)), annal.NotFound);
  await assert.rejects(session.getArtifact(artifact.sha256, { bytesMax: 10 }), annal.LimitExceeded);
  const output = 'é'.repeat(200_000);
  await session.append('tool.returned', { call_id: 'd', output });
  assert.equal((await session.at(1)).data.output, output);
  await fs.mkdir(`${store.path}/packs`, { recursive: true });
  await fs.writeFile(
    `${store.path}/packs/limits.sql`,
    '-- pack limits version 1 database limits.db\n-- artifact tool.returned output over 102400\n',
  );
  await session.append('tool.returned', { call_id: 'd', output });
  await session.append('tool.returned', { call_id: 'e', output: 'short' });
  assert.ok((await session.at(2)).data.output_ref);
  assert.equal(await (await session.at(2)).output(), output);
  assert.equal(await (await session.at(3)).output(), 'short');
});

test('an id that is not a file name is refused', async (t) => {
  const store = await openStore(t);
  for (const bad of ['', '.x', 'a/b', 'x'.repeat(201), '\x00', '\ud800', 7]) assert.throws(() => store.session(bad), annal.Invalid);
});
