// SPDX-License-Identifier: Apache-2.0
// What the suite of the Workflow SDK (workflow.suite.mjs) does not ask of a World: the answers of world-local, one by one;
// several processes; crashes; what the core reads. It also runs with the packages of 4.x: see workflow4.sh.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import * as sdk from '@workflow/world';
import { createLocalWorld } from '@workflow/world-local';
import * as annal from 'libannal';
import { createWorld } from 'libannal/workflow';
import { collect, openStore, place } from './helpers.mjs';

const IS_OLD = sdk.SPEC_VERSION_CURRENT < 4;
const NAME = 'workflow//./src/fly//fly';
const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
let ids = 0n;

/** A run id of now, as the runtime makes it. */
function newRunId() {
  let left = (BigInt(Date.now()) << 80n) + (ids += 1n);
  let text = '';
  for (let at = 0; at < 26; at++, left /= 32n) text = letters[Number(left % 32n)] + text;
  return `wrun_${text}`;
}

const bytes = (text) => new TextEncoder().encode(text);
const payload = (value) => bytes(`devl${JSON.stringify([value])}`);
const of = (eventType, correlationId, eventData) => ({
  eventType, specVersion: sdk.SPEC_VERSION_CURRENT, ...(correlationId && { correlationId }), ...(eventData && { eventData }),
});
const created = (more) => of('run_created', undefined, { deploymentId: 'd', workflowName: NAME, input: payload('home'), ...more });

/** An answer without what differs from world to world: ids of events, times, owners, cursors. */
function shown(answer) {
  const places = new Map();
  const strip = (value, key) => {
    if (value instanceof Uint8Array) return `bytes ${Buffer.from(value)}`;
    if (value instanceof Date) return 'a date';
    if (['ownerId', 'projectId', 'environment', 'maxEvents', ...(IS_OLD ? ['attributes', 'isSystem'] : [])].includes(key) || value === undefined) return undefined;
    if (key === 'cursor') return value === null ? null : 'a cursor';
    if (Array.isArray(value)) return value.map((part) => strip(part));
    if (typeof value === 'object' && value !== null) {
      const entries = Object.entries(value).map(([member, part]) => [member, strip(part, member)]);
      return Object.fromEntries(entries.filter(([, part]) => part !== undefined).sort());
    }
    if (typeof value !== 'string' || !value.startsWith('evnt_')) return value;
    if (!places.has(value)) places.set(value, places.size);
    return `event ${places.get(value)}`;
  };
  return strip(answer);
}

async function answerOf(use) {
  try {
    return shown(await use());
  } catch (error) {
    if (error instanceof annal.Error) throw error;
    return error.name === 'EntityConflictError' ? [error.name] : [error.name, error.message.split('\n')[0]];
  }
}

/** A world on the store, and world-local, which shares nothing with it. */
async function worlds(t) {
  const made = [];
  const at = await place(t, () => Promise.all(made.map((one) => one.close?.())));
  const store = await annal.open(at);
  const [ours, theirs] = [createWorld({ store }), createLocalWorld({ dataDir: path.join(path.dirname(at), 'local') })];
  made.push(store, ours, theirs);
  return { store, ours, theirs };
}

test('storage answers as world-local', async (t) => {
  const { store, ours, theirs } = await worlds(t);
  const [run, other, none] = [newRunId(), newRunId(), newRunId()];
  const later = new Date(Date.now() + 60_000);
  const failed = IS_OLD ? { error: { message: 'no wind' }, stack: 'at fly' } : { error: payload('no wind') };
  const create = (runId, ...args) => (world) => world.events.create(runId, of(...args));
  const list = (runId, pagination, more) => (world) => world.events.list({ runId, pagination, ...more });
  const looks = [
    (world) => world.runs.get(run),
    (world) => world.runs.get(run, { resolveData: 'none' }),
    (world) => world.runs.list(),
    (world) => world.runs.list({ status: 'running', pagination: { sortOrder: 'asc' } }),
    (world) => world.runs.list({ workflowName: NAME, pagination: { limit: 1 } }),
    (world) => world.runs.list({ workflowName: 'other' }),
    (world) => world.steps.get(run, 's1'),
    (world) => world.steps.list({ runId: run, resolveData: 'none', pagination: { sortOrder: 'asc' } }),
    list(run, { limit: 50 }),
    list(run, { limit: 2 }),
    list(run, { sortOrder: 'desc', limit: 3 }, { resolveData: 'none' }),
    (world) => world.events.listByCorrelationId({ correlationId: 's1' }),
    (world) => world.hooks.list({ runId: run }),
    (world) => world.hooks.get('h1'),
    (world) => world.hooks.getByToken('token'),
  ];
  const calls = [
    (world) => world.runs.get(none),
    (world) => world.runs.list(),
    (world) => world.hooks.getByToken('none'),
    (world) => world.events.create('wrun_no', created()),
    (world) => world.events.create(run, created()),
    (world) => world.events.create(run, created()),
    ...looks,
    create(run, 'run_started'),
    create(run, 'run_started'),
    (world) => world.events.create(other, created({ workflowName: 'workflow//./src/swim//swim' })),
    create(other, 'run_started'),
    create(run, 'step_created', 's1', { stepName: 'step//./src/fly//climb', input: payload('high') }),
    create(run, 'step_created', 's1', { stepName: 'step//./src/fly//climb', input: payload('high') }),
    create(run, 'step_started', 's2'),
    create(run, 'step_started', 's1'),
    create(run, 'step_retrying', 's1', { ...failed, retryAfter: new Date(0) }),
    create(run, 'step_started', 's1'),
    create(run, 'step_retrying', 's1', { ...failed, retryAfter: later }),
    create(run, 'step_started', 's1'),
    ...looks,
    create(run, 'step_completed', 's1', { result: payload({ leagues: 40 }) }),
    create(run, 'step_completed', 's1', { result: payload(1) }),
    create(run, 'step_failed', 's1', failed),
    create(run, 'step_created', 's3', { stepName: 'step//./src/fly//land', input: payload(null) }),
    create(run, 'step_started', 's3'),
    create(run, 'step_failed', 's3', failed),
    create(run, 'hook_created', 'h1', { token: 'token', metadata: payload('who') }),
    create(run, 'hook_created', 'h1', { token: 'token', metadata: payload('who') }),
    create(run, 'hook_created', 'h2', { token: 'token' }),
    create(other, 'hook_created', 'h3', { token: 'token' }),
    ...looks,
    create(run, 'hook_received', 'h1', { payload: payload('now') }),
    create(run, 'hook_received', 'h9', { payload: payload('now') }),
    create(run, 'hook_disposed', 'h1'),
    create(run, 'hook_received', 'h1', { payload: payload('late') }),
    create(other, 'hook_created', 'h4', { token: 'token', isWebhook: true }),
    create(run, 'wait_created', 'w1', { resumeAt: later }),
    create(run, 'wait_created', 'w1', { resumeAt: later }),
    create(run, 'wait_completed', 'w1'),
    create(run, 'wait_completed', 'w1'),
    create(run, 'wait_completed', 'w2'),
    ...looks,
    create(run, 'step_created', 's4', { stepName: 'step//./src/fly//rest', input: payload([1, { a: 2 }]) }),
    create(run, 'step_started', 's4'),
    create(run, 'run_completed', undefined, { output: payload('home again') }),
    create(run, 'run_completed', undefined, { output: payload('twice') }),
    create(run, 'run_started'),
    create(run, 'step_created', 's5', { stepName: 's', input: payload(1) }),
    create(run, 'step_completed', 's4', { result: bytes('no devalue') }),
    ...looks,
    create(other, 'run_failed', undefined, { ...failed, errorCode: 'USER_ERROR' }),
    create(run, 'hook_created', 'h5', { token: 'token' }),
    create(other, 'run_cancelled'),
    (world) => world.runs.get(other),
    (world) => world.events.create(none, created()),
    create(none, 'run_cancelled'),
    create(none, 'run_cancelled'),
    ...looks,
    list(none),
  ];
  let turn = 0;
  for (const call of calls) {
    const world = turn++ % 5 === 0 ? createWorld({ store }) : ours; // one that reads all of it again
    const [our, their] = [await answerOf(() => call(world)), await answerOf(() => call(theirs))];
    assert.deepEqual(our, their, `call ${turn}: ${call}`);
  }
});

test('streams answer as world-local, and one that is read waits for its chunks', async (t) => {
  const { ours, theirs } = await worlds(t);
  const run = newRunId();
  const name = (method) => ({ write: 'writeToStream', writeMulti: 'writeToStreamMulti', close: 'closeStream', get: 'readFromStream', list: 'listStreamsByRunId', getChunks: 'getStreamChunks', getInfo: 'getStreamInfo' })[method];
  const call = (world, method, stream, ...args) => {
    if (world.streams !== undefined && !(IS_OLD && world === ours)) return world.streams[method](run, ...(method === 'list' ? [] : [stream]), ...args);
    if (method === 'list') return world[name(method)](run);
    return method === 'get' ? world[name(method)](stream, ...args) : world[name(method)](stream, run, ...args);
  };
  const read = async (world, ...args) => (await collect(await call(world, 'get', 's', ...args))).map((chunk) => Buffer.from(chunk).toString('latin1'));
  const looks = [
    (world) => call(world, 'list'),
    (world) => call(world, 'getInfo', 's'),
    (world) => call(world, 'getChunks', 's'),
    (world) => call(world, 'getChunks', 's', { limit: 2 }),
  ];
  const calls = [
    ...looks,
    (world) => Promise.all(['a', 'é', Uint8Array.of(255, 0)].map((chunk) => call(world, 'write', 's', chunk))),
    (world) => call(world, 'writeMulti', 's', ['\ufeffb', bytes('c')]),
    ...looks,
    (world) => call(world, 'close', 's'),
    ...looks,
    ...[0, 2, 4, -2, -9].map((index) => (world) => read(world, index)),
    async (world) => {
      const live = collect(await call(world, 'get', 'live'));
      for (const chunk of ['one', 'two', 'three']) await call(world, 'write', 'live', chunk);
      await call(world, 'close', 'live');
      return (await live).map((chunk) => Buffer.from(chunk).toString());
    },
  ];
  for (const use of calls) assert.deepEqual(await answerOf(() => use(ours)), await answerOf(() => use(theirs)), `${use}`);
});

test('a run is a session, its steps are calls, and the core reads both', async (t) => {
  const store = await openStore(t);
  const world = createWorld({ store });
  const [run, child] = [newRunId(), newRunId()];
  await world.events.create(run, created());
  await world.events.create(run, of('run_started'));
  await world.events.create(child, created({ attributes: { $parentRunId: run }, allowReservedAttributes: true }));
  const input = bytes('devl[{"args":1,"thisVal":-1},[2],"cormorant"]');
  await world.events.create(run, of('step_created', 's1', { stepName: 'step//./src/fly//climb', input }));
  await world.events.create(run, of('step_started', 's1'));
  await world.events.create(run, of('step_completed', 's1', { result: payload('forty leagues') }));
  await world.events.create(run, of('run_completed', undefined, { output: payload('home') }));
  const id = annal.name('workflow', run);
  const [row] = (await store.sql('SELECT agent_id, title, status FROM sessions WHERE id = ?1', [id])).objects();
  assert.deepEqual(row, { agent_id: NAME, title: 'fly', status: 'ended' });
  assert.deepEqual([...(await store.sql('SELECT tool, status FROM tool_calls'))], [['climb', 'returned']]);
  if (!IS_OLD) assert.deepEqual((await store.sql('SELECT id FROM sessions WHERE parent_session_id = ?1', [id])).flat(), [annal.name('workflow', child)]);
  assert.deepEqual((await store.search('leagues')).map(({ type }) => type), ['tool.returned']);
  const events = await collect(store.session(id));
  assert.deepEqual(events.map(({ type }) => type), [
    'session.named', 'session.created', 'workflow.run_created', 'session.status_changed', 'workflow.run_started', 'tool.called',
    'workflow.step_started', 'tool.returned', 'workflow.run_completed', 'session.ended',
  ]);
  assert.deepEqual(events.find(({ type }) => type === 'tool.called').data.input, { args: ['cormorant'] });
  assert.equal(events.map(({ json }) => json).join().split('forty leagues').length, 2); // stored once
  assert.deepEqual(await createWorld({ store }).steps.get(run, 's1').then((step) => step.input), input);
});

test('of two worlds that start, end and claim at once, one does', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const all = [createWorld({ store }), createWorld({ store: other })];
  const won = async (calls) => (await Promise.allSettled(calls)).map(({ status }) => status === 'fulfilled').filter(Boolean).length;
  const both = (runIds, ...args) => won(all.map((world, n) => world.events.create(runIds[n % runIds.length], of(...args))));
  for (let turn = 0; turn < 8; turn++) {
    const runs = [newRunId(), newRunId()];
    assert.equal(await won(all.map((world) => world.events.create(runs[0], created()))), 1);
    await all[0].events.create(runs[1], created());
    assert.equal(await both(runs.slice(0, 1), 'step_created', 's', { stepName: 'step', input: payload(turn) }), 1);
    await both(runs.slice(0, 1), 'step_started', 's');
    assert.equal(await both(runs.slice(0, 1), 'step_completed', 's', { result: payload(turn) }), 1);
    await both(runs, 'hook_created', 'h', { token: `token ${turn}` });
    const hooks = await Promise.all(runs.map((runId) => all[0].hooks.list({ runId })));
    assert.equal(hooks.flatMap(({ data }) => data).length, 1);
    assert.equal((await all[0].steps.get(runs[0], 's')).attempt, 2);
  }
  await other.close();
});

test('a world that starts queues the runs that have not ended', async (t) => {
  const store = await openStore(t);
  const [ended, left] = [newRunId(), newRunId()];
  const before = createWorld({ store });
  for (const runId of [ended, left]) {
    await before.events.create(runId, created());
    await before.events.create(runId, of('run_started'));
  }
  await before.events.create(ended, of('run_completed', undefined, { output: payload(1) }));
  const found = [];
  const after = createWorld({ store });
  t.after(() => after.close());
  const handler = after.createQueueHandler('__wkf_workflow_', async (message, meta) => {
    found.push([message, meta.queueName, meta.attempt]);
    return found.length === 1 ? { timeoutSeconds: 0 } : undefined;
  });
  after.registerHandler('__wkf_workflow_', handler);
  await after.start();
  for (let turn = 0; found.length < 2 && turn < 1000; turn++) await pause(5);
  assert.deepEqual(found, [1, 2].map((attempt) => [{ runId: left }, `__wkf_workflow_${NAME}`, attempt]));
  await assert.rejects(after.queue('no queue', {}), /not the name of a queue/);
  assert.throws(() => createWorld({ store: '' }), annal.Invalid);
});
