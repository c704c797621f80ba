/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a session, without a browser: what it counts, whatever the order in which answers and events arrive. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

let Model, format, range, diff;

async function load(name) {
  const bundle = await rolldown({ input: fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url)) });
  const { output } = await bundle.generate({ format: 'esm' });
  return import(`data:text/javascript;base64,${Buffer.from(output[0].code).toString('base64')}`);
}

before(async () => {
  globalThis.document = { hidden: false };
  globalThis.matchMedia = () => ({ addEventListener() {} });
  globalThis.requestAnimationFrame = (fn) => queueMicrotask(fn);
  [{ Model }, format, range, diff] = await Promise.all(['model', 'format', 'range', 'diff'].map(load));
});

test('times are said by the calendar, and named ranges are whole days', () => {
  const at = (text) => new Date(text).getTime();
  const now = at('2026-11-30T00:20');
  const ages = ['2026-11-30T00:05', '2026-11-29T23:40', '2026-11-29T22:10', '2026-11-28T23:59', '2026-11-24T08:00', '2026-11-23T08:00'];
  assert.deepEqual(
    ages.map((text) => format.ago(at(text), now)),
    ['15 min ago', '40 min ago', 'yesterday 22:10', 'Sat 23:59', 'Tue 08:00', '2026-11-23'],
  );
  assert.deepEqual(range.namedDays('yesterday', now), { from: '2026-11-29', to: '2026-11-29' });
  assert.deepEqual(range.namedDays('week', now), { from: '2026-11-30', to: '2026-11-30' });
  assert.deepEqual(range.namedDays('lastweek', now), { from: '2026-11-23', to: '2026-11-29' });
  assert.deepEqual(range.namedDays('lastweek', at('2026-11-29T23:00')), { from: '2026-11-16', to: '2026-11-22' });
  const { since, until } = range.times('yesterday');
  assert.equal(at(until), new Date().setHours(0, 0, 0, 0));
  assert.ok(Math.abs(at(until) - at(since) - 86_400_000) <= 3_600_000);
  assert.deepEqual(range.times('2026-03-02', '2026-03-02'), {
    since: new Date('2026-03-02T00:00').toISOString(),
    until: new Date('2026-03-03T00:00').toISOString(),
  });
});

test('a diff has no line after the last newline', () => {
  const marks = (a, b) => diff.diffLines(a, b).map((line) => `${line.mark}${line.text}`);
  assert.deepEqual(marks('one\ntwo\n', 'one\n2\n'), [' one', '-two', '+2']);
  assert.deepEqual(marks('one', 'one\n'), [' one', '+']);
});

/* Numbers that a seed repeats. */
function random(seed) {
  return (n) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * n);
  };
}

const stamp = (seq) => new Date(1_790_000_000_000 + seq * 1000).toISOString();

/* The next event of a session that always has a reason for it. */
function nextEvent(journal, pick) {
  const seq = journal.length + 1;
  const turns = journal.filter((e) => e.type === 'turn.started');
  const ended = new Set(journal.filter((e) => /^turn\.(completed|failed)$/.test(e.type)).map((e) => e.data.turn_id));
  const turn = turns.findLast((t) => !ended.has(t.data.turn_id))?.data.turn_id;
  const returned = new Set(journal.filter((e) => e.type === 'tool.returned').map((e) => e.data.call_id));
  const open = journal.filter((e) => e.type === 'tool.called' && !returned.has(e.data.call_id));
  const kinds = {
    start: ['turn.started', { turn_id: `t${seq}`, sequence: turns.length + 1 }],
    ask: ['message.added', { role: 'user', content: `Prompt ${seq}` }],
    say: ['message.added', { role: 'assistant', content: 'Done.' }],
    call: ['tool.called', { call_id: `c${seq}`, tool: 'Bash', input: {}, turn_id: turn }],
    result: open.length && ['tool.returned', { call_id: open[pick(open.length)].data.call_id, success: pick(4) > 0 }],
    use: ['agent.turn.usage', { input_tokens: seq, output_tokens: 1, cost_usd: 0.01 }],
    end: turn && [pick(5) ? 'turn.completed' : 'turn.failed', { turn_id: turn }],
  };
  const names = Object.keys(kinds).filter((name) => kinds[name]);
  const [type, data] = kinds[names[pick(names.length)]];
  return { session_id: 's', seq, timestamp: stamp(seq), type, data };
}

const rows = (list) => ({ columns: Object.keys(list[0] ?? {}), rows: list.map((row) => Object.values(row)) });

/* The answers of the server for a journal. */
const answers = {
  outline(journal, from) {
    const part = journal.filter((e) => e.seq >= from);
    const types = [...new Set(part.map((e) => e.type))];
    return {
      types,
      seq: part.map((e) => e.seq),
      type: part.map((e) => types.indexOf(e.type)),
      time: part.map((e) => Date.parse(e.timestamp)),
      bytes: part.map(() => 100),
    };
  },
  tools(journal, from) {
    const calls = journal.filter((e) => e.type === 'tool.called');
    return rows(
      calls
        .map((call) => {
          const result = journal.find((e) => e.type === 'tool.returned' && e.data.call_id === call.data.call_id);
          return {
            seq: call.seq,
            result_seq: result?.seq ?? null,
            call_id: call.data.call_id,
            tool: call.data.tool,
            status: !result ? 'called' : result.data.success ? 'returned' : 'failed',
            called_at: call.timestamp,
            returned_at: result?.timestamp ?? null,
            duration_ms: null,
          };
        })
        .filter((row) => (row.result_seq ?? row.seq) >= from),
    );
  },
  turns(journal) {
    const begins = journal.filter((e) => e.type === 'turn.started');
    return rows(
      begins.map((e, i) => {
        const end = journal.find((x) => /^turn\.(completed|failed)$/.test(x.type) && x.data.turn_id === e.data.turn_id);
        const next = begins[i + 1]?.seq ?? Infinity;
        const asked = journal.find((x) => x.data.role === 'user' && x.seq > e.seq && x.seq < next);
        return {
          seq: e.seq,
          turn_id: e.data.turn_id,
          sequence: e.data.sequence,
          status: end ? end.type.slice(5) : 'started',
          created_at: e.timestamp,
          completed_at: end?.timestamp ?? null,
          prompt: asked?.data.content ?? null,
        };
      }),
    );
  },
  usage(journal, from) {
    return rows(
      journal
        .filter((e) => e.type === 'agent.turn.usage' && e.seq >= from)
        .map((e) => ({ seq: e.seq, time: e.timestamp, ...e.data, cost_microusd: 10_000, computed: 0 })),
    );
  },
  events: (journal, from, to) => journal.filter((e) => e.seq >= from && e.seq <= to),
  children: () => [],
};

/* A server whose requests wait: first for the moment that they are answered from, then for their answer to arrive. */
function slowServer(journal, pending) {
  const source = { isFile: false };
  for (const name of Object.keys(answers))
    source[name] = (id, ...args) =>
      new Promise((done) => {
        const request = { done };
        request.read = () => (request.answer = structuredClone(answers[name](journal, ...args)));
        pending.push(request);
      });
  return source;
}

const counted = (model) => ({
  seq: model.seq,
  items: model.itemSeq,
  calls: model.calls.map(({ seq, result, failed, id }) => ({ seq, result, failed, id })),
  turns: model.turns.map(({ seq, id, number, status, end, prompt }) => ({ seq, id, number, status, end, prompt })),
  tokens: model.tokens.at(-1) ?? 0,
  cost: Math.round((model.cost.at(-1) ?? 0) * 100),
});

const settle = async () => {
  for (let i = 0; i < 12; i++) await null;
};

async function play(seed) {
  const pick = random(seed);
  const [journal, pending, stream, timers] = [[], [], [], []];
  const later = globalThis.setTimeout;
  globalThis.setTimeout = (fn) => timers.push(fn);
  let connected = pick(3) > 0; /* a stream that starts late is followed by a resync */
  const append = () => {
    const event = nextEvent(journal, pick);
    journal.push(event);
    if (connected) stream.push(pick(12) ? event : { ...event, data: null }); /* too large for the stream */
  };
  for (let i = pick(12); i > 0; i--) append();
  stream.length = 0;
  const model = new Model(slowServer(journal, pending), 's', { session_id: 's', events: journal.length, model: '' });
  void model.load();
  const act = {
    append,
    stream: () => stream.length && model.append(structuredClone(stream.shift())),
    request: () => {
      const request = pending[pick(pending.length)];
      if (!request) return;
      if (!request.answer) return request.read();
      pending.splice(pending.indexOf(request), 1);
      request.done(request.answer);
    },
    timer: () => timers.splice(0).forEach((fn) => fn()),
    cut: () => {
      if (pick(8)) return;
      if (connected) stream.length = 0;
      else void model.load();
      connected = !connected;
    },
  };
  try {
    for (let i = 0; i < 120; i++) {
      act[['append', 'append', 'stream', 'stream', 'request', 'request', 'timer', 'cut'][pick(8)]]();
      if (pick(2)) await settle();
    }
    if (!connected) void model.load();
    for (let idle = 0; idle < 3; idle++) {
      if (stream.length || pending.length || timers.length) idle = 0;
      act.stream();
      act.request();
      act.timer();
      await settle();
    }
  } finally {
    globalThis.setTimeout = later;
  }
  const whole = { isFile: true };
  for (const name of Object.keys(answers)) whole[name] = async (id, ...args) => answers[name](journal, ...args);
  const fresh = new Model(whole, 's', { session_id: 's', events: journal.length, model: '' });
  await fresh.load();
  assert.equal(fresh.seq.length, journal.length);
  assert.deepEqual(counted(model), counted(fresh), `seed ${seed}`);
}

test('a live session counts each event once, whatever the order of answers and events', async () => {
  for (let seed = 1; seed <= 200; seed++) await play(seed);
});

/* A session with calls of sub-agents, and its children. */
async function family({ calls, children, said }) {
  const journal = calls.flatMap(({ id, tool = 'Task', prompt, result }, i) => [
    {
      session_id: 's',
      seq: 2 * i + 1,
      timestamp: stamp(2 * i + 1),
      type: 'tool.called',
      data: { call_id: id, tool, input: { prompt } },
    },
    {
      session_id: 's',
      seq: 2 * i + 2,
      timestamp: stamp(2 * i + 2),
      type: 'tool.returned',
      data: { call_id: id, success: true, ...result },
    },
  ]);
  const source = { isFile: true };
  for (const name of Object.keys(answers)) source[name] = async (id, ...args) => answers[name](journal, ...args);
  source.children = async () =>
    children.map((id, i) => ({
      session_id: id,
      parent_session_id: 's',
      fork_session_id: null,
      created_at: stamp(i),
      title: '',
    }));
  source.events = async (id, from, to) =>
    id === 's'
      ? answers.events(journal, from, to)
      : [{ seq: 1, type: 'message.added', data: { role: 'user', content: said[id] ?? 'Warmup' } }];
  const model = new Model(source, 's', { session_id: 's', events: journal.length, model: '' });
  await model.load();
  const links = () => model.calls.map((call) => model.childOf(call, Infinity)?.session_id ?? null);
  for (let i = 0; i < 4; i++) {
    links();
    await new Promise((done) => setTimeout(done));
  }
  return links();
}

test('a call is linked to the sub-agent whose id its result names', async () => {
  const links = await family({
    calls: [
      { id: 'c1', prompt: 'Same', result: { extra: { toolUseResult: { agentId: 'a1' } } } },
      { id: 'c2', prompt: 'Same', result: { output: [{ type: 'text', text: "Done.\nagentId: a0 (to resume)" }] } },
      { id: 'c3', prompt: 'Warmup', tool: 'spawn_agent', result: { output: '{"agent_id":"other"}' } },
      { id: 'c4', prompt: 'Fourth', result: {} },
    ],
    children: ['s.agent-a0', 's.agent-a1', 's.c4'],
    said: {},
  });
  assert.deepEqual(links, ['s.agent-a1', 's.agent-a0', null, 's.c4']);
});

test('a call without an id is linked to the sub-agent that was given its prompt, or to none', async () => {
  const links = await family({
    calls: [
      { id: 'c1', prompt: 'Build the page', result: {} },
      { id: 'c2', prompt: 'Build\n  the model', result: {} },
      { id: 'c3', prompt: 'Twice', result: {} },
      { id: 'c4', prompt: 'Twice', result: {} },
      { id: 'c5', prompt: 'Not imported', result: {} },
      { id: 'c6', prompt: 'Build the page', tool: 'Bash', result: {} },
    ],
    children: ['s.side-1', 's.side-2', 's.side-3', 's.side-4'],
    said: {
      's.side-1': 'Build the model',
      's.side-2': '<system-reminder>Be brief.</system-reminder>\nBuild the page',
      's.side-3': 'Twice',
      's.side-4': 'Twice',
    },
  });
  assert.deepEqual(links, ['s.side-2', 's.side-1', null, null, null, null]);
});

test('a call whose sub-agent is not in the store is not linked to one with the same prompt', async () => {
  const links = await family({
    calls: [{ id: 'c1', prompt: 'Look', result: { extra: { toolUseResult: { agentId: 'gone' } } } }],
    children: ['s.agent-a1'],
    said: { 's.agent-a1': 'Look' },
  });
  assert.deepEqual(links, [null]);
});
