// SPDX-License-Identifier: Apache-2.0
// Storage of Mastra answers as Mastra's storage in memory, answer by answer, and what it stores is read by the core.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InMemoryDB, InMemoryMemory, WorkflowsInMemory } from '@mastra/core/storage';
import * as annal from 'libannal';
import { AnnalMemory, AnnalStorage, AnnalWorkflows } from 'libannal/mastra';
import { collect, openStore, run } from './helpers.mjs';

const at = (n) => new Date(Date.UTC(2026, 0, 1, 0, 0, n));
const thread = (id, more) => ({ id, resourceId: 'r1', title: `Thread ${id}`, metadata: { a: 1 }, createdAt: at(1), updatedAt: at(1), ...more });
const message = (id, threadId, n, role = 'user', more = {}) => ({
  id, threadId, resourceId: 'r1', role, type: 'v2', createdAt: at(n), content: { format: 2, parts: [{ type: 'text', text: `pelican ${id}` }] }, ...more,
});

/** What two storages must have in common: times of now and new ids are not compared. */
function shown(value) {
  const now = (key) => ['updatedAt', 'clonedAt'].includes(key);
  return JSON.parse(JSON.stringify(value ?? null, (key, member) => (now(key) ? undefined : member)));
}

async function both(ours, theirs, steps) {
  for (const [place, step] of steps.entries()) {
    const [mine, other] = await Promise.allSettled([step(ours()), step(theirs)]);
    const said = ({ status, value, reason }) => [status, status === 'rejected' ? reason.message : shown(value)];
    assert.deepEqual(said(mine), said(other), `step ${place}: ${step}`);
  }
}

test('memory answers as the memory of Mastra', async (t) => {
  const store = await openStore(t);
  const theirs = new InMemoryMemory({ db: new InMemoryDB() });
  let turn = 0;
  const one = new AnnalMemory(store);
  const ours = () => (turn++ % 2 === 0 ? one : new AnnalMemory(store)); // every other call reads the journals
  const lists = [
    (memory) => memory.listThreads({ filter: { resourceId: 'r1' }, orderBy: { field: 'createdAt', direction: 'ASC' } }),
    (memory) => memory.listMessages({ threadId: 't1' }),
    (memory) => memory.listMessages({ threadId: ['t1', 't2'], perPage: 2, page: 1, orderBy: { field: 'createdAt', direction: 'DESC' } }),
    (memory) => memory.listMessages({ threadId: 't1', perPage: 1, include: [{ id: 'm4', withPreviousMessages: 1, withNextMessages: 1 }] }),
    (memory) => memory.listMessages({ threadId: 't1', filter: { dateRange: { start: at(2), end: at(3) } } }),
    (memory) => memory.listMessagesByResourceId({ resourceId: 'r1', perPage: false }),
    (memory) => memory.listMessagesById({ messageIds: ['m3', 'none', 'm1'] }),
  ];
  await both(ours, theirs, [
    (memory) => memory.getThreadById({ threadId: 't1' }),
    (memory) => memory.updateThread({ id: 't1', title: 'x', metadata: {} }),
    ...lists,
    (memory) => memory.saveThread({ thread: thread('t1') }),
    (memory) => memory.saveThread({ thread: thread('t2', { createdAt: at(2), metadata: undefined, title: undefined }) }),
    (memory) => memory.getThreadById({ threadId: 't1', resourceId: 'r2' }),
    (memory) => memory.getThreadById({ threadId: 't2', resourceId: 'r1' }),
    (memory) => memory.saveMessages({ messages: [] }),
    (memory) => memory.saveMessages({ messages: [message('m1', 't1', 1), message('m2', 't1', 2, 'assistant'), message('m4', 't2', 4)] }),
    (memory) => memory.saveMessages({ messages: [message('m3', 't1', 3), message('m5', 't2', 5, 'assistant')] }),
    ...lists,
    (memory) => memory.listMessages({ threadId: ' ' }),
    (memory) => memory.listMessages({ threadId: 't1', page: -1 }),
    (memory) => memory.saveMessages({ messages: [message('m2', 't1', 2, 'assistant', { content: { format: 2, parts: [], content: 'again' } })] }),
    (memory) => memory.updateMessages({ messages: [{ id: 'm3', content: { metadata: { read: true } } }, { id: 'none', role: 'user' }] }),
    (memory) => memory.updateMessages({ messages: [{ id: 'm5', threadId: 't1' }] }),
    ...lists,
    (memory) => memory.updateThread({ id: 't1', title: 'New', metadata: { b: 2 } }),
    (memory) => memory.patchThread({ id: 't2', metadata: { c: 3 } }).then(({ metadata }) => metadata),
    (memory) => memory.updateThreadMetadata({ id: 't1', update: ({ metadata }) => ({ ...metadata, count: 1 }) }),
    (memory) => memory.updateThreadMetadata({ id: 'none', update: () => ({}) }),
    (memory) => memory.listThreads({ filter: { metadata: { count: 1 } } }),
    (memory) => memory.listThreads({ perPage: 1, orderBy: { field: 'createdAt', direction: 'ASC' } }),
    (memory) => memory.deleteMessages(['m1', 'none']),
    (memory) => memory.copyThread({ sourceThreadId: 't1', newThreadId: 't3' }).then(({ thread: { id, title }, messageIdMap }) => [id, title, Object.keys(messageIdMap)]),
    (memory) => memory.copyThread({ sourceThreadId: 't1', newThreadId: 't3' }),
    (memory) => memory.copyThread({ sourceThreadId: 'none' }),
    (memory) => memory.listMessages({ threadId: 't3' }).then(({ messages, total }) => [total, messages.map(({ content }) => content)]),
    (memory) => memory.deleteThread({ threadId: 't3' }),
    (memory) => memory.deleteThread({ threadId: 't3' }),
    ...lists,
    (memory) => memory.getResourceById({ resourceId: 'r1' }),
    (memory) => memory.updateResource({ resourceId: 'r1', workingMemory: 'likes birds' }).then(({ workingMemory }) => workingMemory),
    (memory) => memory.updateResource({ resourceId: 'r1', metadata: { a: 1 } }).then(({ metadata }) => metadata),
    (memory) => memory.saveResource({ resource: { id: 'r2', workingMemory: 'x', metadata: {}, createdAt: at(1), updatedAt: at(1) } }),
    (memory) => memory.getResourceById({ resourceId: 'r2' }),
    (memory) => memory.dangerouslyClearAll(),
    ...lists,
  ]);
  assert.deepEqual(await store.sessions(), []);
});

test('messages of Mastra are messages, calls, results and turns', async (t) => {
  const store = await openStore(t);
  const { memory } = new AnnalStorage(store).stores;
  await memory.saveThread({ thread: thread('t', { title: undefined }) });
  const call = (state, more) => ({ type: 'tool-invocation', toolInvocation: { state, toolCallId: 'c1', toolName: 'distance', args: { bird: 'cormorant' }, ...more } });
  const parts = (...all) => ({ content: { format: 2, parts: all } });
  await memory.saveMessages({ messages: [message('q', 't', 1)] });
  await memory.saveMessages({ messages: [message('a', 't', 2, 'assistant', parts(call('call')))] });
  await memory.saveMessages({ messages: [message('a', 't', 2, 'assistant', parts(call('result', { result: '40 leagues' })))] });
  await memory.saveMessages({ messages: [message('b', 't', 3, 'assistant', parts({ type: 'text', text: 'Forty.' }))] });
  const session = annal.name('mastra', 't');
  const rows = async (sql) => [...(await store.sql(sql, [session]))];
  assert.deepEqual(await rows('SELECT title, agent_id FROM sessions WHERE id = ?1'), [['pelican q', 'mastra']]);
  assert.deepEqual(await rows('SELECT status FROM turns WHERE session_id = ?1'), [['completed']]);
  assert.deepEqual(await rows('SELECT tool, status FROM tool_calls WHERE session_id = ?1'), [['distance', 'returned']]);
  assert.deepEqual((await store.search('leagues')).map(({ type, role, tool }) => [type, tool]), [['tool.returned', 'distance']]);
  const text = (await collect(store.session(session).events())).map(({ json }) => json).join();
  for (const once of ['pelican q', '40 leagues', 'Forty.']) assert.equal(text.split(once).length, 2, once);
  const { messages } = await new AnnalMemory(store).listMessages({ threadId: 't' });
  assert.deepEqual(messages.map(({ id, content }) => [id, content.parts[0].toolInvocation?.result]), [['q', undefined], ['a', '40 leagues'], ['b', undefined]]);
});

test('two stores count in the metadata of one thread', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const memories = [new AnnalMemory(store), new AnnalMemory(other)];
  await memories[0].saveThread({ thread: thread('t', { metadata: { count: 0 } }) });
  const update = ({ metadata }) => ({ count: metadata.count + 1 });
  await Promise.all(Array.from({ length: 20 }, (_, n) => memories[n % 2].updateThreadMetadata({ id: 't', update })));
  assert.deepEqual((await memories[1].getThreadById({ threadId: 't' })).metadata, { count: 20 });
  await other.close();
});

const snapshot = (runId, status, context) => ({
  runId, status, value: {}, context: { input: { n: 1 }, ...context }, serializedStepGraph: [], activePaths: [], activeStepsPath: {},
  suspendedPaths: {}, resumeLabels: {}, waitingPaths: {}, timestamp: 1,
});

test('workflows answer as the workflows of Mastra, and their steps are calls', async (t) => {
  const store = await openStore(t);
  const theirs = new WorkflowsInMemory({ db: new InMemoryDB() });
  let turn = 0;
  const one = new AnnalWorkflows(store);
  const ours = () => (turn++ % 2 === 0 ? one : new AnnalWorkflows(store));
  const run = { workflowName: 'fly', runId: 'r1' };
  const running = { add: { status: 'running', payload: { wings: 2 }, startedAt: 1 } };
  const result = { status: 'success', payload: { wings: 2 }, output: { leagues: 'forty leagues' }, startedAt: 1, endedAt: 2 };
  const lists = [
    (runs) => runs.loadWorkflowSnapshot(run),
    (runs) => runs.listWorkflowRuns(),
    (runs) => runs.listWorkflowRuns({ workflowName: 'fly', status: 'running', perPage: 1, page: 0 }),
    (runs) => runs.listWorkflowRuns({ resourceId: 'res', fromDate: at(1), toDate: at(3) }),
    (runs) => runs.getWorkflowRunById({ runId: 'r1' }),
    (runs) => runs.getWorkflowRunById({ runId: 'r1', workflowName: 'swim' }),
  ];
  await both(ours, theirs, [
    ...lists,
    (runs) => runs.updateWorkflowResults({ ...run, stepId: 'add', result, requestContext: {} }),
    (runs) => runs.updateWorkflowState({ ...run, opts: { status: 'running' } }),
    (runs) => runs.persistWorkflowSnapshot({ ...run, resourceId: 'res', snapshot: snapshot('r1', 'running', running), createdAt: at(1) }),
    (runs) => runs.persistWorkflowSnapshot({ workflowName: 'swim', runId: 'r2', snapshot: snapshot('r2', 'running', {}), createdAt: at(2) }),
    ...lists,
    (runs) => runs.updateWorkflowResults({ ...run, stepId: 'add', result, requestContext: { user: 'u' } }),
    (runs) => runs.updateWorkflowState({ ...run, opts: { status: 'success', expectedStatus: 'suspended' } }),
    (runs) => runs.updateWorkflowState({ ...run, opts: { status: 'success', result: { n: 2 } } }),
    ...lists,
    (runs) => runs.deleteWorkflowRunById({ workflowName: 'swim', runId: 'r2' }),
    ...lists,
  ]);
  const rows = async (sql) => [...(await store.sql(sql))];
  assert.deepEqual(await rows('SELECT agent_id, status FROM sessions'), [['fly', 'ended']]);
  assert.deepEqual(await rows('SELECT tool, status FROM tool_calls'), [['add', 'returned']]);
  assert.deepEqual((await store.search('leagues')).map(({ type }) => type), ['tool.returned']);
});

test('results of steps that several stores save at once are all kept', async (t) => {
  const store = await openStore(t);
  const other = await annal.open(store.path, { batchMs: 11 });
  const all = [new AnnalWorkflows(store), new AnnalWorkflows(other)];
  const run = { workflowName: 'fly', runId: 'r' };
  await all[0].persistWorkflowSnapshot({ ...run, snapshot: snapshot('r', 'running', {}) });
  const save = (n) => all[n % 2].updateWorkflowResults({ ...run, stepId: `s${n}`, result: { status: 'success', output: n }, requestContext: { [`k${n}`]: n } });
  await Promise.all(Array.from({ length: 20 }, (_, n) => save(n)));
  const { context, requestContext } = await all[0].loadWorkflowSnapshot(run);
  assert.deepEqual([Object.keys(context).length, Object.keys(requestContext).length], [21, 20]);
  await other.close();
});

test('two processes count in one thread, and save steps of one run', async (t) => {
  const store = await openStore(t);
  const { memory, workflows } = new AnnalStorage(store).stores;
  await memory.saveThread({ thread: thread('t', { metadata: { count: 0 } }) });
  await workflows.persistWorkflowSnapshot({ workflowName: 'fly', runId: 'r', snapshot: snapshot('r', 'running', {}) });
  await Promise.all([1, 2].map(() => run('mastra.counter.mjs', store.path, 15)));
  assert.deepEqual((await memory.getThreadById({ threadId: 't' })).metadata, { count: 30 });
  const { context } = await workflows.loadWorkflowSnapshot({ workflowName: 'fly', runId: 'r' });
  assert.equal(Object.keys(context).length, 31); // with its input
});
