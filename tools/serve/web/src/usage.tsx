/* SPDX-License-Identifier: Apache-2.0 */
/* What all sessions used and cost in a range of days: by day, model, project, agent, tool, session. Each bar leads to
 * its sessions. `annal report` prints the same numbers. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import * as format from './format';
import { DAY, namedDays, shifted } from './range';
import { link, replace, type Route } from './route';
import { Days, Empty, Failure, useAnswer, useApp } from './ui';

/* Of 7d and 30d the number of days before today. */
const RANGES: [string, string, number?][] = [
  ['today', 'Today'],
  ['yesterday', 'Yesterday'],
  ['week', 'This week'],
  ['lastweek', 'Last week'],
  ['7d', '7 days', 6],
  ['30d', '30 days', 29],
  ['all', 'All'],
];

const UNITS: [string, string][] = [
  ['day', 'Days'],
  ['week', 'Weeks'],
  ['month', 'Months'],
];

/* The first and the last day; undefined for no bound. */
function rangeOf(query: URLSearchParams): { name: string; from?: string; to?: string } {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  if (DAY.test(from) || DAY.test(to))
    return { name: '', from: DAY.test(from) ? from : undefined, to: DAY.test(to) ? to : undefined };
  const [name, , days] = RANGES.find(([key]) => key === query.get('range')) ?? RANGES.find(([key]) => key === '30d')!;
  return { name, ...(days ? { from: shifted(format.day(Date.now()), -days) } : namedDays(name)) };
}

interface Use {
  name: string;
  sessions: number;
  tokens: number;
  input: number;
  cached: number;
  cost: number | null;
  computed: number;
}

const useOf = (row: Record<string, any>): Use => ({
  name: String(row.name ?? ''),
  sessions: row.sessions,
  tokens: (row.input_tokens ?? 0) + (row.output_tokens ?? 0),
  input: row.input_tokens ?? 0,
  cached: row.cached_input_tokens ?? 0,
  cost: row.cost_usd,
  computed: row.computed_cost_usd ?? 0,
});

const costAndTokens = (use: Use): string =>
  `${format.cost(use.cost, use.computed > 0)} · ${format.compact(use.tokens)} tokens`;

/* The unit of a period as days: a week 2026-W10, a month 2026-03. */
function daysOf(period: string): { from: string; to: string } | null {
  const week = /^(\d{4})-W(\d\d)$/.exec(period);
  if (week) {
    /* The fourth of January is in the first week. */
    const first = new Date(Number(week[1]), 0, 4, 12);
    const monday = shifted(format.day(first.getTime()), (Number(week[2]) - 1) * 7 - ((first.getDay() + 6) % 7));
    return { from: monday, to: shifted(monday, 6) };
  }
  if (/^\d{4}-\d\d$/.test(period)) {
    const [year, month] = period.split('-').map(Number);
    return { from: `${period}-01`, to: format.day(new Date(year!, month!, 0, 12).getTime()) };
  }
  return DAY.test(period) ? { from: period, to: period } : null;
}

const MOST_ROWS = 12;

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short' });

const periodName = (name: string): string =>
  DAY.test(name) ? `${name} ${weekday.format(new Date(`${name}T12:00`))}` : name;

interface BarRow {
  key: string;
  name: string;
  value: number;
  text: ComponentChildren;
  href?: string;
}

/* The first rows of a list, and a button that shows the other rows; rest(n) is the cost after n rows. */
function Rows(props: { title: string; rows: BarRow[]; all?: boolean; rest?: (n: number) => string; children?: ComponentChildren }) {
  const [whole, setWhole] = useState(false);
  const shown = whole || props.all ? props.rows : props.rows.slice(0, MOST_ROWS);
  const left = props.rows.length - shown.length;
  const most = Math.max(...props.rows.map((row) => row.value), 1e-9);
  return (
    <section class="bars">
      <h2>
        {props.title} {props.children}
      </h2>
      {shown.map((row) => {
        const content = (
          <>
            <span class="bar-name" title={row.name}>
              {row.name}
            </span>
            <span class="bar-track">
              <i style={{ width: `${(100 * row.value) / most}%` }} />
            </span>
            <span class="bar-value">{row.text}</span>
          </>
        );
        return row.href ? (
          <a class="bar-row" key={row.key} href={row.href}>
            {content}
          </a>
        ) : (
          <div class="bar-row" key={row.key}>
            {content}
          </div>
        );
      })}
      {left > 0 && (
        <button class="link" onClick={() => setWhole(true)}>
          {format.count(left)} more{props.rest ? `: ${props.rest(shown.length)}` : ''}
        </button>
      )}
    </section>
  );
}

export function Usage({ route }: { route: Route }) {
  const { server } = useApp();
  const { query } = route;
  const { name: range, from, to } = rangeOf(query);
  const unit = UNITS.find(([key]) => key === query.get('by'))?.[0] ?? (range === 'all' ? 'month' : 'day');
  const until = to && shifted(to, 1);
  const answer = useAnswer(
    async (signal) => {
      const rows = await server!.usageBy(`panels-${unit}`, from, until, signal);
      const panel = (name: string): Record<string, any>[] => rows.filter((row) => row.panel === name);
      const top = panel('session').slice(0, MOST_ROWS).map(useOf);
      return {
        models: panel('model').map(useOf),
        periods: panel('period').map(useOf).sort((a, b) => (a.name < b.name ? -1 : 1)),
        projects: panel('project').map(useOf),
        agents: panel('agent').map(useOf),
        top,
        titles: top.length ? await server!.titles(top.map((use) => use.name), signal) : new Map<string, string>(),
        tools: panel('tool'),
        sessions: panel('all')[0]?.sessions ?? 0,
      };
    },
    [from, to, unit],
  );
  const set = (changes: Record<string, string | undefined>) => {
    const next = { range: range || undefined, from: range ? undefined : from, to: range ? undefined : to, by: query.get('by') ?? undefined };
    replace(link('usage', '', { ...next, ...changes }));
  };
  const listOf = (filter: Record<string, string>): string => link('', '', { since: from, until: to, flat: 1, ...filter });
  const value = answer.value;
  const sum = (of: (use: Use) => number): number => value?.models.reduce((n, use) => n + of(use), 0) ?? 0;
  const cost = sum((use) => use.cost ?? 0);
  const computed = sum((use) => use.computed);
  const rows = (list: Use[], filter: string) => {
    const used = list.filter((use) => use.tokens > 0 || use.cost);
    return {
      rows: used.map((use) => ({
        key: use.name,
        name: use.name || 'not said',
        value: use.cost ?? 0,
        text: costAndTokens(use),
        href: use.name ? listOf({ [filter]: use.name }) : undefined,
      })),
      rest: (shown: number) => {
        const left = used.slice(shown);
        const cost = left.reduce((n, use) => n + (use.cost ?? 0), 0);
        return format.cost(cost, left.some((use) => use.computed > 0));
      },
    };
  };
  return (
    <main class={`search-page usage ${answer.busy && value ? 'stale' : ''}`} aria-busy={answer.busy}>
      <h1>Usage</h1>
      <div class="filters" role="group" aria-label="Range">
        {RANGES.map(([key, text]) => (
          <button
            class={key === range ? 'button main' : 'button'}
            aria-pressed={key === range}
            onClick={() => set({ range: key, from: undefined, to: undefined })}
          >
            {text}
          </button>
        ))}
        <Days from={from} to={to} set={(name, day) => set({ range: undefined, from, to, [name]: day })} />
      </div>
      {answer.error && <Failure text={answer.error} />}
      {!value && answer.busy && <p class="wait">Adding up…</p>}
      {value && !value.models.length && <Empty title="No tokens were counted in these days" />}
      {value && value.models.length > 0 && (
        <>
          <dl class="numbers">
            <div>
              <dt>cost</dt>
              <dd>{format.cost(cost, computed > 0)}</dd>
              {computed > 0 && (
                <dd class="dim more">{format.share(computed, cost)} computed from list prices</dd>
              )}
            </div>
            <div>
              <dt>tokens</dt>
              <dd>{format.compact(sum((use) => use.tokens))}</dd>
            </div>
            <div>
              <dt>input from cache</dt>
              <dd>{format.share(sum((use) => use.cached), sum((use) => use.input))}</dd>
            </div>
            <div>
              <dt>sessions</dt>
              <dd>
                <a href={listOf({})}>{format.count(value.sessions)}</a>
              </dd>
            </div>
          </dl>
          <Rows
            title="Over time"
            all
            rows={value.periods.map((use) => {
              const days = daysOf(use.name);
              return {
                key: use.name,
                name: periodName(use.name),
                value: use.cost ?? 0,
                text: costAndTokens(use),
                href: days ? link('', '', { since: days.from, until: days.to, flat: 1 }) : undefined,
              };
            })}
          >
            <span class="units">
              {UNITS.map(([key, text]) => (
                <button class="link" aria-pressed={key === unit} onClick={() => set({ by: key })}>
                  {text}
                </button>
              ))}
            </span>
          </Rows>
          <Rows title="By project" {...rows(value.projects, 'dir')} />
          <Rows title="By model" {...rows(value.models, 'model')} />
          <Rows title="By agent" {...rows(value.agents, 'agent')} />
          <Rows
            title="Most expensive sessions"
            rows={value.top.map((use) => ({
              key: use.name,
              name: value.titles.get(use.name) ?? use.name,
              value: use.cost ?? 0,
              text: costAndTokens(use),
              href: link('s', use.name),
            }))}
          />
          <Rows
            title="Calls by tool"
            rows={value.tools.map((tool) => ({
              key: String(tool.name),
              name: String(tool.name ?? 'not said'),
              value: tool.requests,
              text: `${format.count(tool.requests)}${tool.failed ? ` (${format.count(tool.failed)} failed)` : ''}`,
            }))}
          />
        </>
      )}
    </main>
  );
}
