// SPDX-License-Identifier: Apache-2.0
// Following sessions live.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as annal from 'libannal';
import { openStore, place } from './helpers.mjs';

test('history first, then live', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await session.append('a');
  const tail = store.tail();
  assert.equal((await tail.next()).type, 'a');
  assert.equal(await tail.next({ timeout: 0 }), null);
  const next = tail.next();
  await session.append('b');
  const event = await next;
  assert.deepEqual([event.session, event.seq, event.type], ['s1', 2, 'b']);
  const began = performance.now();
  assert.equal(await tail.next({ timeout: 100 }), null);
  assert.ok(performance.now() - began >= 95);
});

test('a tail starts at the requested event', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await session.appendMany(Array.from({ length: 5 }, (_, n) => ['tool.called', n]));
  await session.append('run.ended');
  assert.equal((await session.tail({ fromSeq: 4 }).next()).seq, 4);
  assert.equal((await store.tail({ last: 2 }).next()).seq, 5);
  assert.equal((await store.tail({ types: 'run.*' }).next()).seq, 6);
  assert.equal(await session.tail({ fromNow: true }).next({ timeout: 0 }), null);
  await assert.rejects(session.tail({ fromSeq: 4, last: 2 }).next(), annal.Invalid);
});

test('a named cursor continues after the committed events', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await session.appendMany(Array.from({ length: 4 }, (_, n) => ['a', n]));
  const first = store.tail({ cursor: 'worker' });
  assert.deepEqual([(await first.next()).seq, (await first.next()).seq], [1, 2]);
  await assert.rejects(store.tail({ cursor: 'worker' }).next(), annal.Busy);
  await first.commit();
  await first.next();
  await first.close();
  await assert.rejects(first.next(), annal.Closed);
  const second = store.tail({ cursor: 'worker' });
  assert.equal((await second.next()).seq, 3);
  await second.close();
  await assert.rejects(store.tail().commit(), annal.Invalid);
});

test('many tails wait on no thread of Node', async (t) => {
  const store = await openStore(t);
  const session = store.session('s1');
  await session.append('a');
  const read = async () => {
    const seqs = [];
    for await (const event of session.tail()) {
      seqs.push(event.seq);
      if (seqs.length === 20) return seqs;
    }
  };
  const readers = Array.from({ length: 30 }, read);
  for (let n = 0; n < 19; n++) await session.append('b', null, { level: 'batch' });
  for (const seqs of await Promise.all(readers)) assert.deepEqual(seqs, Array.from({ length: 20 }, (_, n) => n + 1));
});

test('an aborted wait loses nothing', async (t) => {
  const session = (await openStore(t)).session('s1');
  const tail = session.tail();
  for (let n = 0; n < 20; n++) {
    const abort = new AbortController();
    const next = tail.next({ signal: abort.signal });
    setTimeout(() => abort.abort(), n % 3);
    await assert.rejects(next, { name: 'AbortError' });
    await session.append('a', n, { level: 'os' });
    assert.equal((await tail.next()).data, n);
  }
});

test('closing the store or the tail ends a wait', async (t) => {
  const store = await annal.open(await place(t));
  const [one, two] = [store.tail(), store.tail()];
  const waits = [one, two].map((tail) => assert.rejects(tail.next(), (error) => error instanceof annal.Closed));
  await one.opened;
  await one.close();
  await store.close();
  await Promise.all(waits);
});

test('a tail of a session that is replaced says so', async (t) => {
  const session = (await openStore(t)).session('s1');
  await session.append('a');
  const tail = session.tail();
  await tail.next();
  await session.delete();
  await session.append('b');
  await assert.rejects(tail.next(), annal.Conflict);
});
