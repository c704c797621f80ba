// SPDX-License-Identifier: Apache-2.0
// Runs and steps: docs/steps.md, rule by rule.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import * as annal from 'libannal';
import { collect, openStore, run as inProcess } from './helpers.mjs';

const job = (store, use) => annal.run('job', { store, session: 'job', resume: true }, use);
const events = (store, type) => collect(store.query({ sessions: 'job', types: type }));

test('a step runs once and answers the recorded value', async (t) => {
  const store = await openStore(t);
  let ran = 0;
  const work = () => ((ran += 1), { when: new Date(0), none: undefined });
  for (let n = 0; n < 3; n++)
    await job(store, async (run) => {
      assert.deepEqual(await run.step('work', work), { when: '1970-01-01T00:00:00.000Z' });
      assert.equal(await run.step('none', () => undefined), null);
      assert.equal(annal.currentRun(), run);
    });
  assert.equal(ran, 1);
  assert.deepEqual([...(await store.sql('SELECT call_id, tool, status FROM tool_calls ORDER BY seq'))], [
    ['step:work', 'work', 'returned'], ['step:none', 'none', 'returned'],
  ]);
  await assert.rejects(annal.run('job', { store, session: 'job' }, () => {}), annal.Conflict);
});

test('a session has steps, and its steps have one owner', async (t) => {
  const store = await openStore(t);
  const one = store.session('job');
  assert.deepEqual(await Promise.all([0, 1, 2].map((n) => one.step(`step ${n}`, () => n))), [0, 1, 2]);
  const other = store.session('job');
  assert.equal(await other.step('step 1', () => 7), 1);
  await assert.rejects(one.step('step 3', () => 3), /resumed by another/);
  assert.equal(await one.step('step 2', () => 7), 2); // what is recorded needs no owner
});

/** The work of a line of steps.tsv. */
function work(does) {
  const [, verb, rest] = /^(\S*) ?(.*)$/.exec(does);
  if (verb === 'returns') return JSON.parse(rest);
  const [, kind, message] = /^(\S*) (.*)$/.exec(rest);
  throw Object.assign(new Error(message), { name: kind });
}

async function answer(ended) {
  try {
    return JSON.stringify(await ended);
  } catch (error) {
    if (error instanceof annal.Conflict || error instanceof annal.Invalid) return error.name.toLowerCase();
    return `failed ${error.kind ?? error.name} ${error.message}`;
  }
}

test('the shared examples hold', async (t) => {
  const store = await openStore(t);
  const lines = (await fs.readFile(new URL('steps.tsv', import.meta.url), 'utf8')).trimEnd().split('\n');
  let cases = 0;
  let [id, session, started, seq] = [];
  for (const line of lines) {
    const [action, key, does, wanted = '', ...events] = line.split('\t');
    if (action === 'case') [id, started, seq] = [`case-${(cases += 1)}`, new Map(), 0];
    if (action === 'open') session = store.session(id);
    if (!['step', 'start', 'end'].includes(action)) continue;
    let found = '';
    if (action === 'step') {
      found = await answer(session.step(key, () => work(does)));
    } else if (action === 'end') {
      const { end, ended } = started.get(key);
      end(does);
      found = await answer(ended);
    } else {
      let end;
      const does = new Promise((resolve) => (end = resolve));
      found = await new Promise((resolve) => {
        const ended = session.step(key, () => (started.set(key, { end, ended }), resolve(''), does.then(work)));
        ended.catch((error) => resolve(error.name.toLowerCase()));
      });
    }
    assert.equal(found, wanted, line);
    const appended = [];
    for await (const event of store.session(id).events({ fromSeq: seq + 1 })) {
      ({ seq } = event);
      const { duration_ms: _, ...data } = event.data;
      if (!event.type.startsWith('session.')) appended.push([event.type, data]);
    }
    assert.deepEqual(appended, events.map((event) => [event.slice(0, event.indexOf(' ')), JSON.parse(event.slice(event.indexOf(' ')))]), line);
  }
  assert.ok(cases > 5);
});

test('a step of a deleted session fails', async (t) => {
  const store = await openStore(t);
  const session = store.session('job');
  await assert.rejects(session.step('pay', () => store.delete('job')), /was deleted/);
  assert.equal(await session.exists(), false);
});

test('an error is recorded and thrown again', async (t) => {
  const store = await openStore(t);
  let ran = 0;
  const fail = () => {
    ran += 1;
    throw new TypeError('gone');
  };
  await assert.rejects(job(store, (run) => run.step('fail', fail, { retries: 1 })), TypeError);
  await assert.rejects(job(store, (run) => run.step('fail', fail)), (error) => {
    assert.ok(error instanceof annal.StepFailed);
    assert.deepEqual([error.message, error.kind, ran], ['gone', 'TypeError', 2]);
    return true;
  });
  const [{ data }] = await events(store, 'step.retried');
  assert.deepEqual([data.attempt, data.error], [1, { type: 'TypeError', message: 'gone' }]);
  const [[status]] = await store.sql('SELECT status FROM sessions');
  assert.equal(status, 'failed');
});

test('a step that ended with its process runs again, and recovery names it', async (t) => {
  const store = await openStore(t);
  let begun;
  const began = new Promise((resolve) => (begun = resolve));
  void store.session('job').step('pay', () => (begun(), new Promise(() => {}))); // an owner that is gone
  await began;
  await job(store, async (run) => {
    const { calls, status, lastUser } = run.recovery;
    assert.deepEqual([calls.map(({ callId, tool, seq }) => [callId, tool, seq]), status, lastUser], [[['step:pay', 'pay', 2]], 'running', null]);
    assert.equal(await run.step('pay', () => 7), 7);
  });
  assert.equal((await store.sql('SELECT 1 FROM dangling')).length, 0);
  assert.deepEqual((await events(store, 'step.retried')).map(({ data }) => data.reason), ['interrupted']);
});

test('two processes never both complete a step', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const slow = async () => {
    await job(other, async (run) => assert.equal(await run.step('pay', () => 'second'), 'second'));
    return 'first';
  };
  await assert.rejects(job(store, (run) => run.step('pay', slow)), /resumed by another process/);
  assert.deepEqual((await events(store, 'tool.returned')).map(({ data }) => data.output), ['second']);
  assert.equal((await events(store, 'session.ended')).length, 1);
  await other.close();
});

test('steps side by side, timeouts, values that are no JSON', async (t) => {
  const store = await openStore(t);
  await job(store, async (run) => {
    const keys = Array.from({ length: 20 }, (_, n) => `step ${n}`);
    assert.deepEqual(await Promise.all(keys.map((key, n) => run.step(key, () => n))), keys.map((_, n) => n));
    await assert.rejects(run.step('twice', () => run.step('twice', () => 1)), /runs already/);
    let aborted = false;
    const slow = (signal) => new Promise(() => signal.addEventListener('abort', () => (aborted = true)));
    await assert.rejects(run.step('slow', slow, { timeout: 20 }), { name: 'TimeoutError' });
    assert.ok(aborted);
    await assert.rejects(run.step('slow', () => 1), { kind: 'TimeoutError' });
    assert.equal(await run.step('quick', () => pause(1, 'x'), { timeout: 60_000 }), 'x');
    await assert.rejects(run.step('function', () => () => 1), annal.Invalid);
    for (const key of ['', 7]) await assert.rejects(run.step(key, () => 1), annal.Invalid);
    const like = { sha256: 'a', path: 'artifacts/x/a.zst' };
    assert.deepEqual(await run.step('like an artifact', () => like), like);
  });
});

test('a long result is an artifact', async (t) => {
  const store = await openStore(t);
  const long = 'x'.repeat(49 << 20);
  await job(store, async (run) => assert.equal(await run.step('long', () => long), long));
  await job(store, async (run) => assert.equal(await run.step('long', () => 0), long));
  const [{ data }] = await events(store, 'tool.returned');
  assert.equal(data.output, undefined);
  assert.equal(data.output_ref.media_type, 'application/json');
});

test('runs within runs, tools, recorded functions, the search for a session', async (t) => {
  const store = await openStore(t);
  const add = annal.record(function add(a, b) {
    return a + b;
  });
  assert.equal(await add(1, 2), 3); // outside of a run nothing is recorded
  const parent = await annal.run('triage', { store: store.path }, async (run) => {
    await run.message('user', 'Is the migration of the tables done?');
    assert.equal(await run.tool('bash', { command: 'make' }, () => 'ok'), 'ok');
    await assert.rejects(run.tool('bash', {}, () => Promise.reject(new RangeError('no'))), RangeError);
    assert.equal(await add(1, 2), 3);
    await run.usage({ inputTokens: 120, outputTokens: 7, model: 'm' });
    const sub = annal.record(async () => 'the answer', { name: 'sub', store });
    assert.equal(await sub(), 'the answer');
    return run.session.id;
  });
  const rows = (await store.sql('SELECT title, parent_session_id, input_tokens, status FROM sessions ORDER BY title')).objects();
  assert.deepEqual(rows, [
    { title: 'sub', parent_session_id: parent, input_tokens: null, status: 'ended' },
    { title: 'triage', parent_session_id: null, input_tokens: 120, status: 'ended' },
  ]);
  const calls = await store.sql('SELECT tool, status FROM tool_calls ORDER BY seq');
  assert.deepEqual([...calls], [['bash', 'returned'], ['bash', 'failed'], ['add', 'returned']]);
  const [found] = await store.find('when were the tables migrated?');
  assert.deepEqual([found.session, found.places[0].role, found.places.length], [parent, 'user', 1]);
  await assert.rejects(store.find('x', { places: 0 }), annal.Invalid);
});

test('killed in a loop of ten steps: none is recorded twice, none is lost', { timeout: 7_200_000 }, async () => {
  const kills = !process.env.LIBANNAL_FULL ? 25 : process.version.startsWith('v22.') ? 10_000 : 200;
  assert.match(await inProcess('killed.mjs', kills, 1), new RegExp(`^${kills} kills, `));
});
