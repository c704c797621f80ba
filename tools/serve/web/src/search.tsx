/* SPDX-License-Identifier: Apache-2.0 */
/* The search results with marked words; each links to its event. */
import { useEffect } from 'preact/hooks';
import type { Filter, Found, Hit } from './api';
import * as format from './format';
import { RANGES, times } from './range';
import { link, replace, type Route } from './route';
import { costText, Select } from './sessions';
import { Agent, Ago, Days, Empty, Failure, useAnswer, useApp, useLater } from './ui';

const MOST_HITS = 100; /* of a session */
const MOST_SESSIONS = 30;
const SLOW_MS = 1500;

/* While one types, the last word may be the begin of a word; in quotes, or before a space, it is whole. */
export const begun = (q: string): string =>
  /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\d_]{2}$/u.test(q) && (q.match(/"/g) ?? []).length % 2 === 0
    ? `${q}*`
    : q;

/* Enter in the box moves to the results when they arrive. */
let wanted = false;

const focusHit = (): void => document.querySelector<HTMLElement>('.hit-link')?.focus();

export function toFirstHit(): void {
  const page = document.querySelector('.search-page');
  wanted = !page || page.getAttribute('aria-busy') === 'true';
  if (!wanted) focusHit();
}

const WHAT: Record<string, string> = {
  'message.added': 'said',
  'tool.called': 'called',
  'tool.returned': 'returned',
  'tool.failed': 'failed',
};

export function HitRow({ hit }: { hit: Hit }) {
  return (
    <li class="hit">
      <a href={link('s', hit.session, { see: hit.seq })} class="hit-link">
        <p class="hit-text" dir="auto">{hit.snippet.map(([text, marked]) => (marked ? <mark>{text}</mark> : format.plain(text)))}</p>
        <p class="hit-facts">
          <span>{[hit.role || hit.tool, WHAT[hit.type] ?? hit.type].filter(Boolean).join(' ')}</span>
          <span>event {format.count(hit.seq)}</span>
          <Ago time={hit.time} />
        </p>
      </a>
    </li>
  );
}

/* A session, why it was found, and its best places. */
function SessionHits({ found, hits, title, q }: { found: Found['sessions'][0]; hits: Hit[]; title?: string; q: string }) {
  const more = found.events - hits.length;
  return (
    <section class="session-hits">
      <h3 dir="auto">
        <a href={link('s', found.session)}>{title ?? '…'}</a>
      </h3>
      <p class="hit-facts">{found.why}</p>
      <ul class="hits">
        {hits.map((hit) => (
          <HitRow hit={hit} />
        ))}
      </ul>
      {more > 0 && (
        <a href={link('search', '', { q, session: found.session })}>{format.count(more)} more in this session</a>
      )}
    </section>
  );
}

const ROLES: [string, string][] = [
  ['user', 'Said by the user'],
  ['assistant', 'Said by the agent'],
];
const FILTERS = ['role', 'tool', 'dir', 'since', 'until'] as const;
const MOST_TOOLS = 60;

/* Role, tool, project and days, which are in the address. */
function Filters({ query }: { query: URLSearchParams }) {
  const { server } = useApp();
  const tools = useAnswer(
    (signal) => server!.sql(`SELECT tool FROM tool_calls WHERE tool <> '' GROUP BY tool ORDER BY count(*) DESC LIMIT ${MOST_TOOLS}`, MOST_TOOLS, signal),
    [],
  );
  const facets = useAnswer(() => server!.facets(), []);
  const value = (name: string) => query.get(name) ?? '';
  const projects = (facets.value?.dir ?? []).map(([dir]): [string, string] => [dir, format.shortPath(dir)]);
  /* A link may name a project that is not a directory of a session, such as the last part of a path. */
  if (value('dir') && !projects.some(([dir]) => dir === value('dir'))) projects.push([value('dir'), value('dir')]);
  const set = (name: string, to: string, without = '') =>
    replace(link('search', '', { ...Object.fromEntries(query), [without]: undefined, [name]: to }));
  return (
    <div class="filters" role="group" aria-label="Filters">
      <Select label="Said by anyone" value={value('role')} options={ROLES} choose={(v) => set('role', v)} />
      <Select
        label="Any tool"
        value={value('tool')}
        options={(tools.value?.rows ?? []).map(([tool]) => [String(tool), String(tool)])}
        choose={(v) => set('tool', v)}
      />
      {!value('session') && (
        <Select label="Any project" value={value('dir')} options={projects} choose={(v) => set('dir', v)} />
      )}
      <Select
        label="At any time"
        value={RANGES.some(([key]) => key === value('since')) ? value('since') : ''}
        options={RANGES}
        choose={(v) => set('since', v, 'until')}
      />
      <Days from={value('since')} to={value('until')} set={(name, day) => set(name === 'from' ? 'since' : 'until', day)} />
      {FILTERS.some((name) => value(name)) && (
        <button class="link" onClick={() => replace(link('search', '', { q: value('q'), session: value('session') }))}>
          Clear
        </button>
      )}
    </div>
  );
}

export function Search({ route }: { route: Route }) {
  const { server } = useApp();
  const q = (route.query.get('q') ?? '').trim();
  const session = route.query.get('session') ?? undefined;
  const given = FILTERS.map((name) => route.query.get(name) ?? '');
  const filtered = given.some(Boolean);
  const filter: Filter = {
    role: given[0],
    tool: given[1],
    dir: session ? '' : given[2],
    ...times(given[3]!, given[4]!),
  };
  const events = useAnswer(
    q
      ? async (signal) =>
          session
            ? { hits: await server!.searchIn(session, begun(q), MOST_HITS, filter, signal), sessions: [] }
            : server!.search(begun(q), MOST_SESSIONS, filter, signal)
      : null,
    [q, session, ...given],
  );
  const sessions = useAnswer(q && !session && !filtered ? (signal) => server!.sessions({ q, limit: 8 }, signal) : null, [
    q,
    session,
    filtered,
  ]);
  const titles = useAnswer(
    events.value?.sessions.length
      ? (signal) => server!.titles(events.value!.sessions.map((one) => one.session), signal)
      : null,
    [events.value],
  );
  const slow = useLater(events.busy, SLOW_MS) && events.busy;
  useEffect(() => {
    if (!wanted || events.busy || !events.value) return;
    wanted = false;
    focusHit();
  });
  if (!q)
    return (
      <main class="search-page">
        <Empty title="Type a text to search for">
          <p>
            Words of messages, calls of tools and what they returned; the last word may be the begin of one. "In
            quotes" for a phrase.
          </p>
        </Empty>
      </main>
    );
  const found = filtered ? [] : (sessions.value?.sessions ?? []);
  const hits = events.value?.hits;
  const total = session ? hits?.length : events.value?.sessions.length;
  const most = session ? MOST_HITS : MOST_SESSIONS;
  return (
    <main class={`search-page ${events.busy && hits ? 'stale' : ''}`} aria-busy={events.busy}>
      <h1>
        {events.busy ? 'Searching for' : session ? 'Found in this session for' : 'Found for'} “{q}”
      </h1>
      <Filters query={route.query} />
      {session && (
        <p>
          <a href={link('search', '', { q })}>Search in all sessions</a>
        </p>
      )}
      {events.error && <Failure text={events.error} />}
      {found.length > 0 && (
        <section>
          <h2>
            Sessions{' '}
            {sessions.value!.total > found.length && (
              <a href={link('', '', { q, flat: 1 })}>all {format.count(sessions.value!.total)}</a>
            )}
          </h2>
          <ul class="hits">
            {found.map((s) => (
              <li class="hit">
                <a class="hit-link" href={link('s', s.session_id)}>
                  <p class="hit-text">{s.title || s.session_id}</p>
                  <p class="hit-facts">
                    <Agent name={s.agent_id} />
                    {s.working_directory && <span title={s.working_directory}>{format.lastPart(s.working_directory)}</span>}
                    <span>{format.plural(s.events, 'event')}</span>
                    {costText(s) !== '–' && <span>{costText(s)}</span>}
                    <Ago time={s.last_activity_at} />
                  </p>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
      {hits && hits.length > 0 && (
        <section>
          <h2>
            Places <span class="total">{total === most ? `the best ${most}` : total}</span>
          </h2>
          {session ? (
            <ul class="hits">
              {hits.map((hit) => (
                <HitRow hit={hit} />
              ))}
            </ul>
          ) : (
            events.value!.sessions.map((one) => (
              <SessionHits
                key={one.session}
                found={one}
                hits={hits.filter((hit) => hit.session === one.session)}
                title={titles.value?.get(one.session)}
                q={q}
              />
            ))
          )}
        </section>
      )}
      {hits?.length === 0 && found.length === 0 && !events.busy && <Empty title="No results" />}
      {!hits && events.busy && <p class="wait">Searching…</p>}
      {slow && <p class="wait">The first search of a store reads all of it, once; later ones are quick.</p>}
    </main>
  );
}
