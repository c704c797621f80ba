/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions side by side: totals, turns aligned by their prompts, the first calls that differ, tools. `annal diff A B`
 * prints the same numbers. */
import type { Server, Session, Table } from './api';
import { objects } from './api';
import * as format from './format';
import { link, replace, type Route } from './route';
import { gist, inputOf } from './tool';
import { Agent, Empty, Failure, useAnswer, useApp } from './ui';

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

async function both(server: Server, ids: [string, string], signal: AbortSignal) {
  const [diff, ...parts] = await Promise.all([
    server.diff(ids[0], ids[1], signal),
    ...ids.map((id) => Promise.all([server.turns(id), server.tools(id, 1), server.session(id)])),
  ]);
  const rows = objects<any>(diff.sessions!);
  return {
    totals: ids.map((id) => rows.find((row) => row.session_id === id) ?? {}),
    tools: objects<any>(diff.tools!),
    calls: objects<any>(diff.first_difference!),
    sessions: parts.map(([, , session]) => session),
    pairs: align(turnsOf(parts[0]![0], parts[0]![1]), turnsOf(parts[1]![0], parts[1]![1])),
  };
}

/* Forks and parents of a session, and others of its directory. */
async function others(server: Server, id: string): Promise<Session[]> {
  const self = await server.session(id);
  const up = self.fork_session_id ?? self.parent_session_id;
  const [below, beside, same] = await Promise.all([
    server.children(id),
    up ? server.children(up) : [],
    server.sessions({ dir: self.working_directory ?? undefined, limit: 50 }).then((page) => page.sessions),
  ]);
  const above = up ? [await server.session(up).catch(() => null)] : [];
  const list = [...above, ...below, ...beside, ...same].filter((s): s is Session => s !== null && s.session_id !== id);
  return [...new Map(list.map((s) => [s.session_id, s])).values()];
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
                <Agent name={s.agent_id} />
                {s.model && <span>{s.model}</span>}
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
            <table class="data">
              <thead>
                <tr>
                  <th scope="col">both</th>
                  {value.sessions.map((s, n) => (
                    <th scope="col" dir="auto">
                      {'AB'[n]}: <a href={link('s', s.session_id)}>{s.title || s.session_id}</a> {s.model}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {TOTALS.map(([name, of]) => {
                  const [x, y] = value.totals.map(of);
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
