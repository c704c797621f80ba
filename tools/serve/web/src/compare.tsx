/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions side by side: totals, turns aligned by their prompts, the first calls that differ, tools. `annal diff A B`
 * prints the same numbers. */
import type { Server, Session, Table } from './api';
import { objects } from './api';
import * as format from './format';
import { link, replace, type Route } from './route';
import { costText } from './sessions';
import { textOf } from './message';
import { gist, inputOf, patchOf, pathOf } from './tool';
import { Agent, Ago, Empty, Failure, useAnswer, useApp } from './ui';

interface Turn {
  seq: number;
  prompt: string;
  status: string;
  took: number;
  tokens: number;
  calls: string[]; /* of tools */
  failed: number;
}

const time = (text: unknown): number => (typeof text === 'string' ? Date.parse(text) : NaN);

/* The calls from the beginning of a turn to the next one are the turn's. */
export function turnsOf(turns: Table, tools: Table): Turn[] {
  const list = objects<any>(turns)
    .filter((row) => row.seq != null)
    .sort((a, b) => a.seq - b.seq)
    .map((row) => ({
      seq: row.seq,
      prompt: row.prompt ?? '',
      status: row.status,
      took: time(row.completed_at) - time(row.created_at),
      tokens: (row.input_tokens ?? 0) + (row.output_tokens ?? 0),
      calls: [] as string[],
      failed: 0,
    }));
  let n = 0;
  for (const call of objects<any>(tools)) {
    while (n + 1 < list.length && list[n + 1]!.seq <= call.seq) n++;
    list[n]?.calls.push(call.tool ?? '');
    if (list[n] && call.status === 'failed') list[n]!.failed++;
  }
  return list;
}

export type Pair = [Turn | undefined, Turn | undefined];

const MOST = 2000; /* turns that are aligned by their prompts; beyond it, by their number */

/* Pair the turns with equal prompts, in order, as many as possible; those between two pairs stand beside each other. */
export function align(a: Turn[], b: Turn[]): Pair[] {
  const same = (i: number, k: number): boolean => a[i]!.prompt === b[k]!.prompt;
  const pairs: Pair[] = [];
  const rest = (i: number, ends: number, k: number, endsB: number) => {
    for (; i < ends || k < endsB; i++, k++) pairs.push([i < ends ? a[i] : undefined, k < endsB ? b[k] : undefined]);
  };
  let begin = 0;
  while (begin < a.length && begin < b.length && same(begin, begin)) {
    pairs.push([a[begin], b[begin]]);
    begin++;
  }
  const [rows, columns] = [a.length - begin, b.length - begin];
  if (rows * columns > MOST * MOST) {
    rest(begin, a.length, begin, b.length);
    return pairs;
  }
  /* longest[i][k]: the most pairs among the turns from i and k on */
  const longest = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let i = rows - 1; i >= 0; i--)
    for (let k = columns - 1; k >= 0; k--)
      longest[i]![k] = same(begin + i, begin + k)
        ? longest[i + 1]![k + 1]! + 1
        : Math.max(longest[i + 1]![k]!, longest[i]![k + 1]!);
  let [i, k, i0, k0] = [0, 0, 0, 0];
  while (i < rows && k < columns) {
    if (same(begin + i, begin + k) && longest[i]![k] === longest[i + 1]![k + 1]! + 1) {
      rest(begin + i0, begin + i, begin + k0, begin + k);
      pairs.push([a[begin + i++], b[begin + k++]]);
      [i0, k0] = [i, k];
    } else if (longest[i + 1]![k]! >= longest[i]![k + 1]!) i++;
    else k++;
  }
  rest(begin + i0, a.length, begin + k0, b.length);
  return pairs;
}

const callsText = (turn: Turn): string => {
  const counts = new Map<string, number>();
  for (const tool of turn.calls) counts.set(tool || 'tool', (counts.get(tool || 'tool') ?? 0) + 1);
  return [...counts].map(([tool, n]) => (n > 1 ? `${n} ${tool}` : tool)).join(', ');
};

function Side({ id, turn, withPrompt }: { id: string; turn: Turn | undefined; withPrompt: boolean }) {
  if (!turn) return <td class="dim">no such turn</td>;
  const facts = [
    callsText(turn) || 'no calls',
    turn.failed ? `${format.count(turn.failed)} failed` : '',
    turn.tokens ? `${format.compact(turn.tokens)} tokens` : '',
    turn.took >= 0 ? format.duration(turn.took) : '',
    turn.status === 'completed' ? '' : turn.status.replace('_', ' '),
  ].filter(Boolean);
  return (
    <td>
      {withPrompt && (
        <p class="compare-prompt" dir="auto">
          {turn.prompt || 'no prompt'}
        </p>
      )}
      <a href={link('s', id, { see: turn.seq })}>{facts.join(' · ')}</a>
    </td>
  );
}

const isEqual = ([a, b]: Pair): boolean =>
  !!a && !!b && a.prompt === b.prompt && a.failed === b.failed && a.calls.join('\n') === b.calls.join('\n');

const FACTS: [string, (s: Session) => string][] = [
  ['agent', (s) => s.agent_id || '–'],
  ['model', (s) => s.model || '–'],
  ['began', (s) => format.moment(Date.parse(s.created_at))],
];

const TOTALS: [string, (row: any) => string][] = [
  ['turns', (row) => format.count(row.turns)],
  ['tool calls', (row) => format.count(row.calls)],
  ['failed', (row) => format.count(row.failed)],
  ['tokens', (row) => format.tokens(row.total_tokens)],
  [
    'cost',
    (row) => format.cost(row.cost_microusd == null ? null : row.cost_microusd / 1e6, row.computed_microusd != null),
  ],
  ['length', (row) => (row.duration_ms == null ? '–' : format.duration(row.duration_ms))],
];

interface Work {
  files: Map<string, [added: number, removed: number]>;
  last: { seq: number; text: string } | null; /* what the agent said last */
}

const EDITS = ['edit', 'write', 'patch', 'replace', 'create'];
const MOST_EDITS = 2000;

/* The files that the calls of a session changed, and the last words of its agent. */
async function workOf(server: Server, s: Session, signal: AbortSignal): Promise<Work> {
  const own = `'${s.session_id.replaceAll("'", "''")}'`;
  const [edits, said] = await Promise.all([
    server.sql(
      `SELECT e.data -> '$.input' FROM tool_calls c JOIN events e ON e.session_id = c.session_id AND e.seq = c.seq
         WHERE c.session_id = ${own} AND c.status <> 'failed'
           AND (${EDITS.map((name) => `c.tool LIKE '%${name}%'`).join(' OR ')}) ORDER BY c.seq`,
      MOST_EDITS,
      signal,
    ),
    server.sql(
      `SELECT seq, data -> '$.content' FROM events WHERE session_id = ${own} AND type = 'message.added'
         AND data ->> '$.role' = 'assistant' ORDER BY seq DESC LIMIT 1`,
      1,
      signal,
    ),
  ]);
  const files: Work['files'] = new Map();
  for (const [json] of edits.rows) {
    const input = inputOf({ input: JSON.parse(String(json ?? 'null')) });
    const [path, lines] = [pathOf(input), patchOf(input)];
    if (!path || !lines) continue;
    const name = s.working_directory && path.startsWith(`${s.working_directory}/`) ? path.slice(s.working_directory.length + 1) : path;
    const [added, removed] = files.get(name) ?? [0, 0];
    const number = (mark: string): number => lines.filter((line) => line.mark === mark).length;
    files.set(name, [added + number('+'), removed + number('-')]);
  }
  const [row] = said.rows;
  return { files, last: row ? { seq: Number(row[0]), text: textOf(JSON.parse(String(row[1] ?? 'null'))) } : null };
}

const linesText = (lines: [number, number] | undefined): string => (lines ? `+${lines[0]} −${lines[1]}` : 'not changed');

async function both(server: Server, ids: [string, string], signal: AbortSignal) {
  const [diff, ...parts] = await Promise.all([
    server.diff(ids[0], ids[1], signal),
    ...ids.map((id) => Promise.all([server.turns(id), server.tools(id, 1), server.session(id)])),
  ]);
  const rows = objects<any>(diff.sessions!);
  const work = await Promise.all(parts.map(([, , session]) => workOf(server, session, signal)));
  return {
    totals: ids.map((id) => rows.find((row) => row.session_id === id) ?? {}),
    tools: objects<any>(diff.tools!),
    calls: objects<any>(diff.first_difference!),
    sessions: parts.map(([, , session]) => session),
    work,
    files: [...new Set(work.flatMap((one) => [...one.files.keys()]))].sort(),
    pairs: align(turnsOf(parts[0]![0], parts[0]![1]), turnsOf(parts[1]![0], parts[1]![1])),
  };
}

interface Other extends Session {
  again?: boolean; /* an attempt at the same task */
}

const isSameTask = (a: Session, b: Session): boolean => !!a.title && a.title === b.title;

/* Other attempts at the task of a session, its forks and parents, and others of its directory. */
async function others(server: Server, id: string): Promise<Other[]> {
  const self = await server.session(id);
  const up = self.fork_session_id ?? self.parent_session_id;
  const [attempts, below, beside, same] = await Promise.all([
    self.title ? server.sessions({ q: self.title, limit: 50 }).then((page) => page.sessions) : [],
    server.children(id),
    up ? server.children(up) : [],
    server.sessions({ dir: self.working_directory ?? undefined, limit: 50 }).then((page) => page.sessions),
  ]);
  const above = up ? [await server.session(up).catch(() => null)] : [];
  const again = attempts.filter((s) => isSameTask(s, self)).map((s) => ({ ...s, again: true }));
  const list: Other[] = [...again, ...above, ...below, ...beside, ...same].filter((s): s is Other => s !== null && s.session_id !== id);
  return list.filter((s, i) => list.findIndex((one) => one.session_id === s.session_id) === i);
}

function Choose({ a }: { a: string }) {
  const { server } = useApp();
  const { value, error } = useAnswer(() => others(server!, a), [a]);
  return (
    <main class="search-page">
      <h1>Compare with which session?</h1>
      {error && <Failure text={error} />}
      {value?.length === 0 && <Empty title="The store has one session" />}
      <ul class="hits">
        {value?.map((s) => (
          <li class="hit">
            <a class="hit-link" href={link('compare', '', { a, b: s.session_id })}>
              <p class="hit-text" dir="auto">
                {s.title || s.session_id}
              </p>
              <p class="hit-facts">
                {s.again && <span class="tag new">same task</span>}
                <Agent name={s.agent_id} />
                {s.model && <span>{s.model}</span>}
                <Ago time={s.last_activity_at} />
                {costText(s) !== '–' && <span>{costText(s)}</span>}
                {!!s.failed_calls && <span>{format.count(s.failed_calls)} failed</span>}
                {s.fork_session_id && <span>fork at {format.count(s.fork_seq)}</span>}
                <span>{format.plural(s.events, 'event')}</span>
              </p>
            </a>
          </li>
        ))}
      </ul>
    </main>
  );
}

export function Compare({ route }: { route: Route }) {
  const [a, b] = [route.query.get('a') ?? '', route.query.get('b') ?? ''];
  return a && !b ? <Choose a={a} /> : <Two a={a} b={b} only={route.query.get('only') === '1'} />;
}

function Two({ a, b, only }: { a: string; b: string; only: boolean }) {
  const { server } = useApp();
  const { value, error, busy } = useAnswer(a && b ? (signal) => both(server!, [a, b], signal) : null, [a, b]);
  const differing = value?.pairs.filter((pair) => !isEqual(pair)).length ?? 0;
  return (
    <main class="search-page compare" aria-busy={busy}>
      <h1>Compare two sessions</h1>
      {error && <Failure text={error} />}
      {!value && busy && <p class="wait">Comparing…</p>}
      {!a && <Empty title="The link names no session" />}
      {value && (
        <>
          <div class="table-box" tabIndex={0}>
            <table class="data totals">
              <thead>
                <tr>
                  <th scope="col">
                    <span class="hidden-label">what</span>
                  </th>
                  {value.sessions.map((s, n) => (
                    <th scope="col" dir="auto">
                      {'AB'[n]}: <a href={link('s', s.session_id)}>{s.title || s.session_id}</a>
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {[
                  ...FACTS.map(([name, of]) => [name, ...value.sessions.map(of)]),
                  ...TOTALS.map(([name, of]) => [name, ...value.totals.map(of)]),
                  ...value.files.map((file) => [file, ...value.work.map((one) => linesText(one.files.get(file)))]),
                ].map(([name, x, y]) => {
                  return (
                    <tr class={x === y ? '' : 'row-changed'}>
                      <th scope="row">{name}</th>
                      <td>{x}</td>
                      <td>{y}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          {value.work.some((one) => one.last) && (
            <section>
              <h2>How they ended</h2>
              <ul class="hits">
                {value.work.map(({ last }, n) => (
                  <li class="hit">
                    <a class="hit-link" href={link('s', [a, b][n], { see: last?.seq })}>
                      <p class="hit-facts">{'AB'[n]}</p>
                      <p class="hit-text" dir="auto">
                        {last ? last.text.trim() || 'no text' : 'no answer'}
                      </p>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )}
          {value.calls.length > 0 && (
            <section>
              <h2>The first calls that differ</h2>
              <ul class="hits">
                {value.calls.map((call) => (
                  <li class="hit">
                    <a class="hit-link" href={link('s', call.session_id, { see: call.seq })}>
                      <p class="hit-facts">
                        <span>{call.session_id === a ? 'A' : 'B'}</span>
                        <span>
                          call {format.count(call.call)}, {call.tool}
                        </span>
                      </p>
                      <p class="hit-text" dir="auto">
                        {gist(inputOf(typeof call.input === 'string' ? JSON.parse(call.input) : call.input))}
                      </p>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          )}
          <section>
            <h2>
              Turns{' '}
              <span class="total">
                {differing ? `${format.count(differing)} of ${format.count(value.pairs.length)} differ` : 'none differs'}
              </span>
            </h2>
            <label class="check">
              <input
                type="checkbox"
                checked={only}
                onChange={(e) => replace(link('compare', '', { a, b, only: e.currentTarget.checked ? 1 : undefined }))}
              />
              Only what differs
            </label>
            <div class="table-box" tabIndex={0}>
              <table class="data turns">
                <thead>
                  <tr>
                    <th scope="col">A</th>
                    <th scope="col">B</th>
                  </tr>
                </thead>
                {value.pairs
                  .filter((pair) => !only || !isEqual(pair))
                  .map((pair) => {
                    const one = pair[0]?.prompt === pair[1]?.prompt;
                    return (
                      <tbody class={isEqual(pair) ? '' : 'differs'}>
                        {one && (
                          <tr>
                            <td colSpan={2} class="compare-prompt" dir="auto">
                              {pair[0]!.prompt || 'no prompt'}
                            </td>
                          </tr>
                        )}
                        <tr>
                          <Side id={a} turn={pair[0]} withPrompt={!one} />
                          <Side id={b} turn={pair[1]} withPrompt={!one} />
                        </tr>
                      </tbody>
                    );
                  })}
              </table>
            </div>
          </section>
          <section>
            <h2>Tools</h2>
            <div class="table-box" tabIndex={0}>
              <table class="data">
                <thead>
                  <tr>
                    {['tool', 'calls A', 'calls B', 'failed A', 'failed B'].map((name) => (
                      <th scope="col">{name}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {value.tools.map((row) => (
                    <tr class={row.calls_a === row.calls_b && row.failed_a === row.failed_b ? '' : 'row-changed'}>
                      <th scope="row">{row.tool ?? 'not said'}</th>
                      {[row.calls_a, row.calls_b, row.failed_a, row.failed_b].map((n) => (
                        <td class="number">{format.count(n)}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        </>
      )}
    </main>
  );
}
