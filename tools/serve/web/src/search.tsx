/* SPDX-License-Identifier: Apache-2.0 */
/* The search results with marked words; each links to its event. */
import { useEffect } from 'preact/hooks';
import type { Hit } from './api';
import * as format from './format';
import { link, type Route } from './route';
import { costText } from './sessions';
import { Agent, Ago, Empty, Failure, useAnswer, useApp } from './ui';

const MOST_HITS = 100;

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

export function HitRow({ hit, title }: { hit: Hit; title?: string }) {
  return (
    <li class="hit">
      <a href={link('s', hit.session, { see: hit.seq })} class="hit-link">
        <p class="hit-text">{hit.snippet.map(([text, marked]) => (marked ? <mark>{text}</mark> : format.plain(text)))}</p>
        <p class="hit-facts">
          <span>{[hit.role || hit.tool, WHAT[hit.type] ?? hit.type].filter(Boolean).join(' ')}</span>
          <span>event {format.count(hit.seq)}</span>
          <Ago time={hit.time} />
          {title !== undefined && <span class="hit-session">{title}</span>}
        </p>
      </a>
    </li>
  );
}

export function Search({ route }: { route: Route }) {
  const { server } = useApp();
  const q = (route.query.get('q') ?? '').trim();
  const session = route.query.get('session') ?? undefined;
  const events = useAnswer(q ? (signal) => server!.search(q, session, MOST_HITS, signal) : null, [q, session]);
  const sessions = useAnswer(q && !session ? (signal) => server!.sessions({ q, limit: 8 }, signal) : null, [
    q,
    session,
  ]);
  const titles = useAnswer(
    events.value?.length
      ? async () => {
          const ids = [...new Set(events.value!.map((hit) => hit.session))];
          const found = await Promise.all(ids.map((id) => server!.session(id).catch(() => null)));
          return new Map(found.flatMap((s) => (s ? [[s.session_id, s.title ?? s.session_id] as const] : [])));
        }
      : null,
    [events.value],
  );
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
            Words of messages, calls of tools and what they returned; "in quotes" for a phrase, begin* for the begin of
            a word.
          </p>
        </Empty>
      </main>
    );
  const found = sessions.value?.sessions ?? [];
  const hits = events.value;
  return (
    <main class={`search-page ${events.busy && hits ? 'stale' : ''}`} aria-busy={events.busy}>
      <h1>
        {events.busy ? 'Searching for' : session ? 'Found in this session for' : 'Found for'} “{q}”
      </h1>
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
            Events <span class="total">{hits.length === MOST_HITS ? `the best ${MOST_HITS}` : hits.length}</span>
          </h2>
          <ul class="hits">
            {hits.map((hit) => (
              <HitRow hit={hit} title={titles.value?.get(hit.session) ?? hit.session} />
            ))}
          </ul>
        </section>
      )}
      {hits?.length === 0 && found.length === 0 && !events.busy && <Empty title="No results" />}
      {!hits && events.busy && <p class="wait">Searching…</p>}
    </main>
  );
}
