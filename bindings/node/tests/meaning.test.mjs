// SPDX-License-Identifier: Apache-2.0
// The core reads content of frameworks: titles, turns, messages, calls, tokens, ends, search. As test_meaning.py of the
// Python package, whose vectors (meaning.json) hold here, too.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint';
import * as annal from 'libannal';
import { AnnalSessionStore } from 'libannal/claude-agent';
import { AnnalSaver } from 'libannal/langgraph';
import { AnnalSession } from 'libannal/openai-agents';
import { collect, openStore } from './helpers.mjs';

const ASKED = 'How far does the pelican fly today, and why?';
const ANSWERED = 'The pelican flies as far as the "heron" does.';

/** The rows of a session in the tables. */
async function told(store, session) {
  const rows = async (sql) => [...(await store.sql(sql, [session]))];
  const [row] = (await store.sql('SELECT agent_id, title, input_tokens, output_tokens, status FROM sessions WHERE id = ?1', [session])).objects();
  const turns = (await rows('SELECT status FROM turns WHERE session_id = ?1 ORDER BY seq')).flat();
  const calls = await rows('SELECT tool, status FROM tool_calls WHERE session_id = ?1 ORDER BY seq');
  const said = await rows(
    "SELECT data->>'$.role', data->>'$.content' FROM events WHERE session_id = ?1 AND type = 'message.added' ORDER BY seq",
  );
  return { ...row, turns, calls, said };
}

const hits = async (store, word) => (await store.search(word)).map(({ type }) => type).sort();
const eventsOf = async (session) => (await collect(session.events())).map(({ type, data }) => [type, data]);

test('an adapter writes the events of the vectors', async (t) => {
  const store = await openStore(t);
  const vectors = JSON.parse(await fs.readFile(path.join(import.meta.dirname, 'meaning.json'), 'utf8'));
  for (const { appends, events } of vectors['claude-agent']) {
    const key = { projectKey: 'p', sessionId: `s${await store.session(annal.name('claude-agent', 'p', 's')).lastSeq()}` };
    const sessions = new AnnalSessionStore(store);
    for (const lines of appends) await sessions.append(key, lines);
    const session = store.session(annal.name('claude-agent', key.projectKey, key.sessionId));
    assert.deepEqual((await eventsOf(session)).slice(1), events);
    assert.deepEqual(await new AnnalSessionStore(store).load(key), appends.flat());
    await session.delete();
  }
});

test('a transcript of Claude is messages, calls, tokens and turns', async (t) => {
  const store = await openStore(t);
  const key = { projectKey: '/home/me', sessionId: '5f4c' };
  const used = { input_tokens: 10, cache_read_input_tokens: 80, cache_creation_input_tokens: 10, output_tokens: 5 };
  const line = (uuid, type, content, more) => ({ type, uuid, sessionId: '5f4c', cwd: '/home/me', message: { role: type, content, ...more } });
  const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'fly cormorant' } };
  const first = { id: 'msg_1', model: 'claude-x' };
  const lines = [
    { type: 'mode', mode: 'normal' },
    line('u1', 'user', ASKED),
    line('u2', 'assistant', [{ type: 'thinking', thinking: 'hm' }], { ...first, usage: used }),
    line('u3', 'assistant', [{ type: 'text', text: 'So:' }, call], { ...first, usage: { ...used, output_tokens: 9 } }),
    line('u4', 'user', [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '40 leagues' }]),
    line('u5', 'assistant', [{ type: 'text', text: ANSWERED }], { id: 'msg_2', model: 'claude-x', usage: used, stop_reason: 'end_turn' }),
  ];
  for (const one of lines) await new AnnalSessionStore(store).append(key, [one]);
  const subkey = { ...key, subpath: 'sub' };
  const whole = new AnnalSessionStore(store);
  await whole.append(subkey, lines);
  await whole.append(subkey, lines.slice(1)); // a retry
  assert.deepEqual(await whole.load(subkey), lines);
  assert.deepEqual(await new AnnalSessionStore(store).load(key), lines);
  const sub = annal.name('claude-agent', '/home/me', '5f4c', 'sub');
  for (const session of [annal.name('claude-agent', '/home/me', '5f4c'), sub]) {
    const found = await told(store, session);
    assert.deepEqual([found.title, found.input_tokens, found.output_tokens], [ASKED, 200, 14]);
    assert.deepEqual([found.turns, found.calls], [['completed'], [['Bash', 'returned']]]);
    assert.deepEqual(found.said.map(([role]) => role), ['user', 'assistant', 'assistant', 'assistant']);
  }
  const [[parent]] = await store.sql('SELECT parent_session_id FROM sessions WHERE id = ?1', [sub]);
  assert.equal(parent, annal.name('claude-agent', '/home/me', '5f4c'));
  assert.deepEqual(await hits(store, 'leagues'), ['tool.returned', 'tool.returned']);
  assert.equal((await hits(store, 'pelican')).length, 4);
  const text = (await collect(store.session(sub).events())).map(({ json }) => json).join();
  assert.equal(text.split('flies as far').length, 2); // stored once
});

const output = (callId, text) => ({ type: 'function_call_result', callId, name: 'distance', status: 'completed', output: { type: 'text', text } });

test('items of OpenAI are messages, calls and turns, and come back unchanged', async (t) => {
  const store = await openStore(t);
  const items = [
    { role: 'user', content: ASKED },
    { type: 'reasoning', id: 'rs1', content: [{ type: 'input_text', text: 'Look it up.' }], providerData: { a: 1 } },
    { type: 'reasoning', content: [] },
    { type: 'function_call', callId: 'c1', id: 'fc1', name: 'distance', arguments: '{"bird":"cormorant"}', status: 'completed' },
    output('c1', 'cormorant: 40 leagues'),
    { type: 'shell_call', callId: 'c2', action: { commands: ['ls'] } },
    { type: 'shell_call_output', callId: 'c2', output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exitCode: 0 } }] },
    { type: 'function_call', callId: 'c3', name: 'f', arguments: '{}' },
    output('c3', 'An error occurred while running the tool. Please try again. Error: Error: no wings'),
    { type: 'function_call', callId: 'c4', name: 'f', arguments: '{}', tool: 'mine' },
    { type: 'hosted_tool_call', id: 'h', name: 'web_search_call', arguments: 'q', status: 'completed' },
    { role: 'user', content: 'x', id: '~mine' },
    { role: 'user', content: 'x', item: true },
    {},
    { role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: ANSWERED }] },
  ];
  const session = new AnnalSession(store, { sessionId: 'user' });
  await session.addItems(items.slice(0, 1));
  await session.addItems(items.slice(1));
  for (const one of [session, new AnnalSession(store, { sessionId: 'user' })]) assert.deepEqual(await one.getItems(), items);
  const id = annal.name('openai-agents', 'user');
  const found = await told(store, id);
  assert.deepEqual([found.agent_id, found.title, found.turns], ['openai-agents', ASKED, ['completed']]);
  assert.deepEqual(found.calls, [['distance', 'returned'], ['shell', 'returned'], ['f', 'failed']]);
  assert.deepEqual(found.said.map(([role]) => role), ['user', 'assistant', 'assistant', 'assistant']);
  assert.deepEqual(await hits(store, 'leagues'), ['tool.returned']);
  await session.addItems([{ role: 'user', content: 'no' }]);
  await session.popItem();
  const transaction = { type: 'replace_suffix', expectedSuffix: [], replacement: [{ role: 'user', content: 'egret' }] };
  await session.applyHistoryTransaction({ operationId: 'o', transaction });
  assert.deepEqual((await told(store, id)).turns, ['completed', 'rolled_back', 'started']);
  assert.deepEqual(await hits(store, 'egret'), ['message.added']);
  for (const item of [{ role: 'user', content: 'egret' }, ...items.reverse()]) assert.deepEqual(await session.popItem(), item);
});

function graph(saver) {
  const used = { input_tokens: 100, output_tokens: 20, total_tokens: 120, input_token_details: { cache_read: 60 } };
  const model = ({ messages }) => {
    const more = { usage_metadata: used, id: `ai-${messages.length}` };
    if (messages.at(-1).type === 'tool') return { messages: [new AIMessage({ content: `${ANSWERED} `.repeat(3), ...more })] };
    const call = { name: 'distance', args: { bird: 'cormorant' }, id: `call_${messages.length}`, type: 'tool_call' };
    return { messages: [new AIMessage({ content: '', tool_calls: [call], ...more })] };
  };
  const tools = ({ messages }) => {
    const [call] = messages.at(-1).tool_calls;
    return { messages: [new ToolMessage({ content: `${call.args.bird}: 40 leagues `.repeat(5), tool_call_id: call.id })] };
  };
  return new StateGraph(MessagesAnnotation)
    .addNode('model', model)
    .addNode('tools', tools)
    .addEdge(START, 'model')
    .addConditionalEdges('model', ({ messages }) => (messages.at(-1).tool_calls?.length > 0 ? 'tools' : END))
    .addEdge('tools', 'model')
    .compile({ checkpointer: saver });
}

test('checkpoints of LangGraph refer to messages, calls and results', async (t) => {
  const store = await openStore(t);
  const config = { configurable: { thread_id: 't' } };
  const before = (await graph(new AnnalSaver(store)).invoke({ messages: [new HumanMessage(ASKED)] }, config)).messages;
  const shown = (messages) => messages.map(({ id, type, content }) => [id, type, content]);
  const saver = new AnnalSaver(store);
  assert.deepEqual(shown((await graph(saver).getState(config)).values.messages), shown(before));
  const lengths = [];
  for await (const state of graph(saver).getStateHistory(config)) lengths.push(state.values.messages?.length ?? 0);
  assert.deepEqual(lengths, [4, 3, 2, 1, 0]);
  const id = annal.name('langgraph', 't');
  const found = await told(store, id);
  assert.deepEqual([found.agent_id, found.title], ['langgraph', ASKED]);
  assert.deepEqual([found.input_tokens, found.output_tokens], [200, 40]);
  assert.deepEqual([found.turns, found.calls], [['completed'], [['distance', 'returned']]]);
  assert.deepEqual(found.said, [['user', ASKED], ['assistant', `${ANSWERED} `.repeat(3)]]);
  assert.deepEqual(await hits(store, 'leagues'), ['tool.returned']);
  const saved = await collect(store.query({ types: 'checkpoint.saved' }));
  const base64 = Buffer.from('flies as far').toString('base64').slice(0, 12);
  for (const { json } of saved) assert.ok(!Buffer.from(json).includes(base64));
  assert.ok(saved.some(({ json }) => json.includes(',"json"]'))); // the quotes in the answer have another form in JSON
});

test('messages that have no id, or no JSON, are kept', async (t) => {
  const saver = new AnnalSaver(await openStore(t));
  const odd = [
    new HumanMessage({ content: [{ type: 'text', text: 'é'.repeat(60) }], id: 'h1' }),
    new AIMessage({ content: 'x\n'.repeat(60), id: 'a1', tool_calls: [{ name: 'f', args: {}, id: 'c' }] }),
    { role: 'user', content: 'no id, '.repeat(20) },
    { role: 'user', content: 'no id, '.repeat(20) },
    { role: 'assistant', content: null, tool_calls: [{ id: 'd', function: { name: 'g', arguments: '{}' } }] },
  ];
  let config = { configurable: { thread_id: 't', checkpoint_ns: '' } };
  for (let count = 1; count <= odd.length; count++) {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: { messages: odd.slice(0, count) }, channel_versions: { messages: count } };
    config = await saver.put(config, checkpoint, { source: 'loop', step: count, parents: {} }, { messages: count });
  }
  for (const reader of [saver, new AnnalSaver(saver.store)]) {
    let count = odd.length;
    for await (const { checkpoint } of reader.list({ configurable: { thread_id: 't' } }))
      assert.equal(JSON.stringify(checkpoint.channel_values.messages), JSON.stringify(odd.slice(0, count--)));
    assert.equal(count, 0);
  }
  assert.deepEqual((await told(saver.store, annal.name('langgraph', 't'))).calls, [['f', 'called'], ['g', 'called']]);
});
