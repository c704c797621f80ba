/* SPDX-License-Identifier: Apache-2.0 */
/* The session's tables at a moment, and the changes since the previously displayed moment. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { State, Table, Value } from './api';
import * as format from './format';
import type { Model } from './model';
import { Failure, useAnswer, useApp, useLater, useSeldom, useStored } from './ui';
import { Work } from './work';

const KEYS: Record<string, string[]> = {
  sessions: ['id'],
  turns: ['id'],
  tool_calls: ['session_id', 'call_id', 'seq'],
  usage: ['session_id', 'day', 'model', 'has_cost'],
  responses: ['session_id', 'ref'],
  artifacts: ['session_id', 'path'],
  price_settings: ['session_id', 'model', 'since'],
};

/* Columns that have no meaning within one session. */
const PLAIN = new Set(['session_id', 'flow_id']);

const keyOf = (name: string, table: Table, row: Value[]): string => {
  const names = KEYS[name] ?? table.columns.slice(0, 1);
  return JSON.stringify(names.map((column) => row[table.columns.indexOf(column)]));
};

interface Changed {
  row: Value[];
  key: string;
  change: 'new' | 'changed' | 'gone' | '';
  before?: Value[];
}

function compare(name: string, before: Table | undefined, after: Table): Changed[] {
  const old = new Map(before?.rows.map((row) => [keyOf(name, before, row), row]));
  const rows: Changed[] = after.rows.map((row) => {
    const key = keyOf(name, after, row);
    const was = old.get(key);
    old.delete(key);
    const same = was && was.every((value, i) => value === row[after.columns.indexOf(before!.columns[i]!)]);
    return { row, key, change: !before || same ? '' : was ? 'changed' : 'new', before: same ? undefined : was };
  });
  for (const [key, row] of old)
    rows.push({ row: after.columns.map((c) => row[before!.columns.indexOf(c)] ?? null), key, change: 'gone' });
  return rows;
}

const show = (value: Value | undefined): string =>
  value == null
    ? ''
    : typeof value === 'number'
      ? Number.isInteger(value)
        ? format.count(value)
        : String(value)
      : value;

function Cell({ value, was, changed }: { value: Value | undefined; was?: Value; changed: boolean }) {
  return (
    <td
      class={`${typeof value === 'number' ? 'number' : ''} ${changed ? 'cell-changed' : ''}`}
      title={
        changed ? `was: ${show(was) || 'empty'}` : typeof value === 'string' && value.length > 30 ? value : undefined
      }
    >
      {show(value)}
    </td>
  );
}

const SHOWN = 30;

function Rows({ name, table, rows, only }: { name: string; table: Table; rows: Changed[]; only: boolean }) {
  const [whole, setWhole] = useState(false);
  const list = (only ? rows.filter((r) => r.change) : rows).toReversed();
  const columns = table.columns
    .map((column, i) => ({ column, i }))
    .filter(
      ({ column, i }) =>
        !PLAIN.has(column) &&
        !(column === 'id' && name === 'turns') &&
        list.some((r) => r.row[i] !== null || r.before?.[i] != null),
    );
  if (!list.length) return <p class="dim">{rows.length ? 'No row changed' : 'Empty'}</p>;
  const shown = whole ? list : list.slice(0, SHOWN);
  return (
    <div class="table-box" tabIndex={0}>
      <table class="data">
        <thead>
          <tr>
            {columns.map(({ column }) => (
              <th>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((r) => (
            <tr key={r.key} class={r.change ? `row-${r.change}` : ''}>
              {columns.map(({ i }) => (
                <Cell
                  value={r.row[i]}
                  was={r.before?.[i]}
                  changed={r.change === 'changed' && r.before![i] !== r.row[i]}
                />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {list.length > shown.length && (
        <button class="link" onClick={() => setWhole(true)}>
          Show all {format.count(list.length)} rows
        </button>
      )}
    </div>
  );
}

/* The only row of `sessions`, shown vertically. */
function Facts({ table, changed }: { table: Table; changed: Changed | undefined }) {
  if (!changed) return <p class="dim">Not yet</p>;
  return (
    <table class="facts">
      <tbody>
        {table.columns.map((column, i) => {
          const value = changed.row[i];
          const differs = changed.change === 'changed' && changed.before![i] !== value;
          if (value === null && !differs) return null;
          return (
            <tr>
              <th scope="row">{column}</th>
              <Cell value={value} was={changed.before?.[i]} changed={differs} />
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/* Longer than a state near a snapshot needs, also on a slow machine. */
const SLOW_MS = 1500;

interface PanelProps {
  model: Model;
  at: number;
  playing: boolean;
  see: (seq: number) => void;
}

export function StatePanel({ model, at, playing, see }: PanelProps) {
  const [tables, setTables] = useStored('tables', '0');
  const { source } = useApp();
  const asked = Math.min(at, model.last);
  const seldom = useSeldom(asked, 400);
  const rested = useLater(asked, 20);
  const seq = playing ? seldom : rested;
  const took = useRef(0);
  const ask = async (signal: AbortSignal) => {
    const began = performance.now();
    const state = await source.state(model.id, seq, signal);
    took.current = performance.now() - began;
    return state;
  };
  const answer = useAnswer<State>(seq > 0 ? ask : null, [model, seq]);
  const [only, setOnly] = useState(false);
  /* The previous moment; none during a replay. */
  const stops = useRef<{ now?: State; before?: State }>({});
  useEffect(() => {
    if (answer.value && !playing && answer.value !== stops.current.now)
      stops.current = { now: answer.value, before: stops.current.now };
  }, [answer.value, playing]);
  const state = answer.value;
  if (answer.error && !state) return <Failure text={answer.error} />;
  if (!state) return <p class="wait">…</p>;
  const before = state === stops.current.now ? stops.current.before : stops.current.now;
  const all = Object.entries(state.tables).map(([name, table]) => ({
    name,
    table,
    rows: compare(name, before?.tables[name], table),
  }));
  const changes = all.reduce((n, t) => n + t.rows.filter((r) => r.change).length, 0);
  return (
    <div class="state" data-seq={state.seq} aria-busy={answer.busy}>
      <p class="state-head">
        After event {format.count(state.seq)}
        {before && (
          <span>
            {changes
              ? `, ${format.plural(changes, 'row')} changed since event ${format.count(before.seq)}`
              : `, the same as after event ${format.count(before.seq)}`}
          </span>
        )}
      </p>
      {!source.isFile && took.current > SLOW_MS && (
        <p class="dim">
          This took {format.duration(took.current)}. If far moments of this session always do, its snapshots are too far
          from each other: <code>annal snapshot drop {model.id}</code> has them made again.
        </p>
      )}
      <Work model={model} at={state.seq} see={see} />
      <details
        class="tables"
        open={tables === '1'}
        onToggle={(e) => setTables(e.currentTarget.open ? '1' : '0')}
      >
      <summary>Tables</summary>
      {before && changes > 0 && (
        <label class="check">
          <input type="checkbox" checked={only} onChange={(e) => setOnly(e.currentTarget.checked)} />
          Only what changed
        </label>
      )}
      {all
        .filter(({ rows }) => rows.length > 0)
        .map(({ name, table, rows }) => (
          <section key={name}>
            <h2>
              {name}{' '}
              {name !== 'sessions' && <span class="total">{format.count(table.total ?? table.rows.length)}</span>}
            </h2>
            {name === 'sessions' ? (
              <Facts table={table} changed={rows[0]} />
            ) : (
              <Rows name={name} table={table} rows={rows} only={only} />
            )}
          </section>
        ))}
      </details>
    </div>
  );
}
