/* SPDX-License-Identifier: Apache-2.0 */
/* A store as large as one gets: a session of many events, and many sessions. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';

const TOOLS = ['Bash', 'Read', 'Edit', 'Grep', 'Task'];

/* Turns of twenty events each: a prompt, thoughts, calls with their results, tokens. */
export function* longSession(events, began = Date.parse('2026-03-02T09:00:00Z')) {
  let at = began;
  const event = (type, data) => ({ type, ts: new Date((at += 700)).toISOString(), data });
  yield event('session.created', {
    agent_id: 'claude-code',
    provider: 'anthropic',
    model: 'claude-opus-4-5',
    title: 'A session of many hours',
    working_directory: '/home/ada/tide-table',
  });
  for (let n = 1, turn = 1; n < events; turn++) {
    const id = `t${turn}`;
    yield event('turn.started', { turn_id: id, sequence: turn, status: 'running' });
    yield event('message.added', {
      id: `u${turn}`,
      role: 'user',
      content: `Prompt ${turn}: look at harbour ${turn % 97}.`,
      turn_id: id,
    });
    n += 2;
    for (let step = 0; step < 4 && n < events; step++, n += 4) {
      const call = `c${n}`;
      const tool = TOOLS[(turn + step) % TOOLS.length];
      yield event('message.added', {
        id: `m${n}`,
        role: 'assistant',
        content: [
          {
            type: 'text',
            text: `I look at **step ${step}** of turn ${turn}.\n\n- the table of harbour ${turn % 97}\n- the offset of its zone`,
          },
        ],
        turn_id: id,
      });
      yield event('tool.called', {
        call_id: call,
        tool,
        input:
          tool === 'Edit'
            ? { file_path: `src/h${turn}.py`, old_string: `offset = ${step}`, new_string: `offset = zone(${step})` }
            : { command: `tides --harbour ${turn}` },
        turn_id: id,
      });
      yield event(turn % 13 === 0 && step === 1 ? 'tool.failed' : 'tool.returned', {
        call_id: call,
        success: !(turn % 13 === 0 && step === 1),
        output: 'high water 14:32\n'.repeat(1 + (n % 20)),
        turn_id: id,
      });
      yield event('agent.turn.usage', {
        model: 'claude-opus-4-5',
        input_tokens: 12_000 + (n % 9000),
        output_tokens: 180,
        cached_input_tokens: 11_000,
        turn_id: id,
      });
    }
    yield event('turn.completed', { turn_id: id, timing: { totalMs: 14_000 } });
    n++;
    at += turn % 40 === 0 ? 3_600_000 : 20_000;
  }
}

function* manySessions(sessions) {
  for (let i = 0; i < sessions; i++) {
    const at = new Date(Date.parse('2026-01-01T00:00:00Z') + i * 600_000).toISOString();
    const line = (type, data) => ({ run: `many-${i}`, at, type, data });
    yield line('session.created', {
      agent_id: ['claude-code', 'codex', 'pi'][i % 3],
      model: `model-${i % 7}`,
      title: `Session ${i}: the tides of harbour ${i % 89}`,
      working_directory: `/home/ada/p${i % 40}`,
      parent_session_id: i % 10 === 1 ? `many-${i - 1}` : undefined,
    });
    yield line('message.added', { id: 'u', role: 'user', content: `What of harbour ${i}?` });
    yield line('agent.turn.usage', { model: `model-${i % 7}`, input_tokens: 100 * i, output_tokens: i });
  }
}

export function fillLarge(store, { events = 100_000, sessions = 5_000 } = {}) {
  const file = path.join(store.directory, 'many.jsonl');
  writeFileSync(file, [...manySessions(sessions)].map((line) => `${JSON.stringify(line)}\n`).join(''));
  const map = { session: '$.run', ts: '$.at', type: '$.type', data: '$.data' };
  store.run('import', 'jsonl', file, ...Object.entries(map).flatMap(([name, value]) => ['--map', `${name}=${value}`]));
  store.append('long', [...longSession(events)]);
}
