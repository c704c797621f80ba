/* SPDX-License-Identifier: Apache-2.0 */
/* SQL queries, with the schema beside them; the answer as a table or a chart, the query in the link. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Table, Value } from './api';
import { Bars, Chart } from './charts';
import * as format from './format';
import { link, replace, type Route } from './route';
import { Copy, Empty, Failure, Icon, useAnswer, useApp } from './ui';
import { useVirtual } from './virtual';

const MOST_ROWS = 10_000;

const EXAMPLES: [string, string][] = [
  [
    'Tokens and cost by model',
    `SELECT model, sessions, input_tokens + output_tokens AS tokens, round(coalesce(cost_usd, computed_cost_usd), 2) AS cost_usd\nFROM usage_by_model ORDER BY tokens DESC`,
  ],
  [
    'Tools that fail most',
    `SELECT tool, calls, failed, failure_rate, p50_ms, p95_ms\nFROM tool_stats WHERE calls >= 5 ORDER BY failure_rate DESC LIMIT 20`,
  ],
  [
    'Tokens by day',
    `SELECT annal_period(timestamp, 'day') AS day, sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens\nFROM usage_events GROUP BY day ORDER BY day`,
  ],
  [
    'The slowest calls',
    `SELECT session_id, seq, tool, duration_ms FROM tool_durations ORDER BY duration_ms DESC LIMIT 30`,
  ],
  [
    'What users asked last',
    `SELECT session_id, seq, timestamp, substr(data->>'content', 1, 200) AS said\nFROM events WHERE type = 'message.added' AND data->>'role' = 'user'\nORDER BY timestamp DESC LIMIT 30`,
  ],
];

const isNumber = (value: Value): value is number => typeof value === 'number';

/* Draw the first numeric column after the first column, over the first column. */
function chartOf(table: Table): { y: number; time: boolean } | null {
  if (table.rows.length < 2 || table.columns.length < 2) return null;
  const numeric = table.columns.map(
    (_, i) =>
      i > 0 &&
      table.rows.every((row) => row[i] === null || isNumber(row[i]!)) &&
      table.rows.some((row) => isNumber(row[i]!)),
  );
  const y = numeric.indexOf(true);
  if (y < 0) return null;
  return {
    y,
    time: table.rows.every(
      (row) => typeof row[0] === 'string' && /^\d{4}-\d\d-\d\d/.test(row[0]) && !Number.isNaN(Date.parse(row[0])),
    ),
  };
}

function AnswerChart({ table }: { table: Table }) {
  const chart = chartOf(table);
  const [y, setY] = useState(chart?.y ?? 1);
  useEffect(() => setY(chart?.y ?? 1), [table]);
  if (!chart)
    return (
      <Empty title="Nothing to draw">A chart needs a first column of names or times, and a column of numbers.</Empty>
    );
  const numeric = table.columns
    .map((name, i) => [name, i] as const)
    .filter(([, i]) => i > 0 && table.rows.some((row) => isNumber(row[i]!)));
  const title = `${table.columns[y]} by ${table.columns[0]}`;
  const rows = chart.time ? [...table.rows].sort((a, b) => String(a[0]).localeCompare(String(b[0]))) : table.rows;
  const value = (row: Value[]): number => (isNumber(row[y]!) ? row[y] : 0);
  return (
    <div class="answer-chart">
      {numeric.length > 1 && (
        <label class="select on">
          <span class="hidden-label">Column</span>
          <select value={y} onChange={(e) => setY(Number(e.currentTarget.value))}>
            {numeric.map(([name, i]) => (
              <option value={i}>{name}</option>
            ))}
          </select>
        </label>
      )}
      {chart.time ? (
        <Chart
          key={title}
          title={title}
          x={rows.map((row) => Date.parse(String(row[0])) / 1000)}
          y={rows.map(value)}
          show={format.compact}
          bars={rows.length < 60}
        />
      ) : (
        <Bars
          title={title}
          rows={rows.slice(0, 100).map((row) => ({ name: String(row[0] ?? ''), value: value(row) }))}
          show={(n) => (Number.isInteger(n) ? format.count(n) : String(n))}
        />
      )}
    </div>
  );
}

function Cell({ value, name, row, columns }: { value: Value; name: string; row: Value[]; columns: string[] }) {
  if (value === null) return <span class="dim">null</span>;
  if (
    (name === 'session_id' || name === 'id') &&
    typeof value === 'string' &&
    (name === 'session_id' || columns.includes('agent_id'))
  ) {
    const seq = row[columns.indexOf('seq')];
    return <a href={link('s', value, { see: isNumber(seq ?? null) ? (seq as number) : undefined })}>{value}</a>;
  }
  if (!isNumber(value)) return <span dir="auto">{value}</span>;
  if (/(^|_)usd$/.test(name)) return <>{format.money(value)}</>;
  return <>{Number.isInteger(value) && !/(^|_)(id|year|line)$/.test(name) ? format.count(value) : String(value)}</>;
}

function AnswerTable({ table }: { table: Table }) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtual({
    count: table.rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 27,
    overscan: 20,
    getItemKey: (i) => i,
  });
  const widths = table.columns.map((name, i) => {
    const longest = table.rows
      .slice(0, 60)
      .reduce((most, row) => Math.max(most, String(row[i] ?? '').length), name.length);
    return `${Math.min(60, Math.max(6, longest + 2))}ch`;
  });
  const style = { gridTemplateColumns: widths.join(' ') };
  return (
    <div
      class="answer"
      ref={scroller}
      role="table"
      aria-label="Answer"
      aria-rowcount={table.rows.length + 1}
      tabIndex={0}
    >
      <div role="rowgroup" class="answer-head">
        <div role="row" class="answer-row" style={style}>
          {table.columns.map((name, i) => (
            <div
              role="columnheader"
              class={isNumber(table.rows.find((row) => row[i] !== null)?.[i] ?? null) ? 'number' : ''}
            >
              {name}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="inner" style={{ height: `${list.getTotalSize()}px` }}>
        {list.getVirtualItems().map((item) => {
          const row = table.rows[item.index]!;
          return (
            <div
              role="row"
              aria-rowindex={item.index + 2}
              class="answer-row row"
              style={{ ...style, transform: `translateY(${item.start}px)` }}
              key={item.key}
            >
              {row.map((value, i) => (
                <div
                  role="cell"
                  class={isNumber(value) ? 'number' : ''}
                  title={typeof value === 'string' && value.length > 40 ? value.slice(0, 2000) : undefined}
                >
                  <Cell value={value} name={table.columns[i]!} row={row} columns={table.columns} />
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

const csv = (table: Table): string =>
  [table.columns, ...table.rows]
    .map((row) =>
      row
        .map((v) => (v === null ? '' : /[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v)))
        .join(','),
    )
    .join('\n');

export function Sql({ route }: { route: Route }) {
  const { server } = useApp();
  const asked = route.query.get('q') ?? '';
  const view = route.query.get('view') ?? 'table';
  const [text, setText] = useState(asked || EXAMPLES[0]![1]);
  const [run, setRun] = useState(0);
  const area = useRef<HTMLTextAreaElement>(null);
  const [find, setFind] = useState('');
  const schema = useAnswer(() => server!.schema(), []);
  const answer = useAnswer(asked ? (signal) => server!.sql(asked, MOST_ROWS, signal) : null, [asked, run]);
  useEffect(() => {
    if (asked) setText(asked);
  }, [asked]);
  const ask = (question: string) => {
    setText(question);
    replace(link('sql', '', { q: question, view: view === 'table' ? undefined : view }));
    setRun((n) => n + 1);
  };
  const insert = (word: string) => {
    const { selectionStart, selectionEnd, value } = area.current!;
    setText(value.slice(0, selectionStart) + word + value.slice(selectionEnd));
    area.current!.focus();
  };
  const tables = schema.value?.filter(
    (t) => !find || t.table.includes(find) || t.columns.some((c) => c.name.includes(find)),
  );
  const table = answer.value;
  return (
    <main class="sql">
      <h1 class="hidden-label">SQL</h1>
      <aside class="schema" aria-label="Schema">
        <input
          type="search"
          placeholder="Find a table or column"
          aria-label="Find a table or column"
          value={find}
          onInput={(e) => setFind(e.currentTarget.value)}
        />
        <ul tabIndex={0}>
          {tables?.map((t) => (
            <li>
              <details open={find !== ''}>
                <summary>
                  {t.table} <span class="dim">{t.kind === 'table' ? '' : t.kind}</span>
                </summary>
                <button class="link" onClick={() => ask(`SELECT * FROM ${t.table} LIMIT 100`)}>
                  show rows
                </button>
                {t.columns.map((c) => (
                  <button class="column" onClick={() => insert(c.name)} title={`Insert ${c.name} into the query`}>
                    {c.name} <span class="dim">{c.type.toLowerCase()}</span>
                  </button>
                ))}
              </details>
            </li>
          ))}
        </ul>
      </aside>
      <div class="sql-main">
        <form
          class="question"
          onSubmit={(e) => {
            e.preventDefault();
            ask(text);
          }}
        >
          <textarea
            ref={area}
            aria-label="SQL"
            spellcheck={false}
            rows={Math.min(14, Math.max(4, text.split('\n').length + 1))}
            value={text}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
                e.preventDefault();
                ask(text);
              }
            }}
          />
          <div class="question-buttons">
            <button class="button main" disabled={!text.trim()} title="Ctrl Enter">
              <Icon name="play" /> Run
            </button>
            <label class="select">
              <span class="hidden-label">Examples</span>
              <select
                value=""
                onChange={(e) => {
                  const example = EXAMPLES[Number(e.currentTarget.value)];
                  e.currentTarget.value = '';
                  if (example) ask(example[1]);
                }}
              >
                <option value="">Examples</option>
                {EXAMPLES.map(([name], i) => (
                  <option value={i}>{name}</option>
                ))}
              </select>
            </label>
            <span class="dim">read-only</span>
          </div>
        </form>
        {answer.error && <Failure text={answer.error} />}
        {answer.busy && asked && <p class="wait">Running…</p>}
        {!asked && (
          <Empty title="Query everything that was recorded">
            Choose an example, or a table at the left. The link of this page then contains the query.
          </Empty>
        )}
        {table && asked && !answer.error && (
          <section class="answer-box" aria-busy={answer.busy}>
            <div class="answer-bar">
              <div class="tabs" role="group" aria-label="Show as">
                {['table', 'chart'].map((name) => (
                  <button
                    aria-pressed={view === name}
                    onClick={() => replace(link('sql', '', { q: asked, view: name === 'table' ? undefined : name }))}
                  >
                    {name === 'table' ? 'Table' : 'Chart'}
                  </button>
                ))}
              </div>
              <span class="dim">
                {format.plural(table.rows.length, 'row')}
                {table.truncated && ', and more'}
                {table.elapsed_ms !== undefined && ` in ${format.duration(table.elapsed_ms)}`}
              </span>
              <span class="grow" />
              <span class="dim">CSV</span> <Copy text={csv(table)} label="Copy as CSV" />
              <span class="dim">link</span> <Copy text={location.href} label="Copy the link to this query" />
            </div>
            {table.rows.length === 0 ? (
              <Empty title="No rows" />
            ) : view === 'chart' ? (
              <AnswerChart table={table} />
            ) : (
              <AnswerTable table={table} />
            )}
          </section>
        )}
      </div>
    </main>
  );
}
