/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of all pages: location, search, state of the stream, keys. */
import { Component, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Compare } from './compare';
import { Failures } from './failures';
import { findNext } from './find';
import { Hints } from './hints';
import { go, link, parse, replace, useRoute } from './route';
import { Search, toFirstHit } from './search';
import { SessionPage } from './session';
import { Sessions, toList } from './sessions';
import { Sql } from './sql';
import { Usage } from './usage';
import { applyTheme, Empty, Failure, Icon, useApp, useKeys, useStored, useStream, useUnread } from './ui';
import * as format from './format';

const KEYS: [string, [string, string][]][] = [
  [
    'Everywhere',
    [
      ['/  Ctrl K', 'search'],
      ['?', 'these keys and pages'],
      ['.', 'letters at all controls: type those of one'],
      ['g s', 'sessions'],
      ['g u', 'usage'],
      ['g w', 'what failed'],
      ['g q', 'SQL'],
      ['g c', 'compare two sessions'],
      ['Esc', 'close, or go back to the list'],
    ],
  ],
  [
    'Sessions',
    [
      ['j  k', 'next, previous'],
      ['Enter', 'open'],
      ['→  ←', 'unfold, fold what is below'],
    ],
  ],
  [
    'A session',
    [
      ['space', 'play, pause'],
      ['→  ←', 'next, previous event'],
      ['Shift →  ←', 'next, previous prompt'],
      ['[  ]', 'end of the turn before, of the next'],
      ['f  F', 'next, previous failure'],
      ['Home  End', 'the beginning, now'],
      ['+  -', 'faster, slower'],
      ['j  k', 'scroll'],
      ['t  e', 'timeline; all events'],
      ['i  o', 'timeline larger, smaller'],
      ['r  R', 'prompts and answers; runs of calls folded'],
      ['1 to 5', 'overview, state, usage, event, failures'],
      ['*  #  m', 'star, tag, name of the session'],
      ['n  N', 'note on the session, on the event'],
      ['z', 'undo the last of these'],
    ],
  ],
];

const PAGES = [
  ['#/', 'Sessions'],
  ['#/usage', 'Usage'],
  ['#/failures', 'Failures'],
  ['#/search', 'Search'],
  ['#/compare', 'Compare two sessions'],
  ['#/sql', 'SQL'],
];

function Help({ close }: { close: () => void }) {
  const { source } = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="dialog keys"
      aria-labelledby="keys-title"
      onClose={close}
      onClick={(e) => e.target === dialog.current && close()}
    >
      <h2 id="keys-title">Keys and pages</h2>
      <div class="keys-lists">
        {!source.isFile && (
          <section>
            <h3>Pages</h3>
            <ul class="pages">
              {PAGES.map(([to, name]) => (
                <li>
                  <a href={to} onClick={close}>
                    {name}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        )}
        {KEYS.map(([title, keys]) => (
          <section>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <>
                  <dt>
                    {key.split('  ').map((k) => (
                      <kbd>{k}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <button class="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

function SearchBox({ query, session, inside }: { query: string; session: string | undefined; inside: boolean }) {
  const [text, setText] = useState(query);
  const input = useRef<HTMLInputElement>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (document.activeElement !== input.current) setText(query);
  }, [query]);
  const search = (q: string) => {
    clearTimeout(timer.current);
    const now = parse(location.hash);
    const kept = now.page === 'search' ? Object.fromEntries(now.query) : {};
    const to = link('search', '', { ...kept, q: q.trim(), session });
    /* In a session the places are shown in it. */
    if (inside)
      replace(link('s', session, { ...Object.fromEntries(parse(location.hash).query), q: q.trim(), see: undefined }));
    else if (location.hash.startsWith('#/search')) replace(to);
    else if (q.trim()) go(to);
  };
  useKeys({ '/': () => input.current!.select() });
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== 'k' || !(e.ctrlKey || e.metaKey) || e.shiftKey || e.altKey) return;
      e.preventDefault();
      input.current!.select();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  return (
    <form
      class="search"
      role="search"
      onClick={() => input.current!.focus()}
      onSubmit={(e) => {
        e.preventDefault();
        if (inside) {
          if (text.trim() === query) findNext(1);
          else search(text);
          return;
        }
        const asked = text.trim() === query; /* the current results belong to this text */
        search(text);
        if (asked) toFirstHit();
        else requestAnimationFrame(() => requestAnimationFrame(toFirstHit));
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        value={text}
        placeholder={session ? 'Search in this session' : 'Search messages and tool calls'}
        aria-label="Search"
        aria-keyshortcuts="/"
        onInput={(e) => {
          const q = e.currentTarget.value;
          setText(q);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => search(q), 250);
        }}
        onKeyDown={(e) => {
          if (e.key === 'Enter' && e.shiftKey && inside) {
            e.preventDefault();
            findNext(-1);
          }
          if (e.key !== 'Escape') return;
          input.current!.blur();
          if (inside && query) search('');
        }}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

const STATUS = {
  live: 'Live: what is appended appears at once',
  connecting: 'Connecting',
  paused: 'Paused while the tab is hidden',
  lost: 'The server does not answer; trying again',
};

function StreamState() {
  const status = useStream();
  return (
    <>
      <span role="status" class="lost-text">
        {status === 'lost' && 'Not connected, trying again'}
      </span>
      {status && <i class={`stream ${status}`} role="img" aria-label={STATUS[status]} title={STATUS[status]} />}
    </>
  );
}

/* What the server still reads, as after an import: until then lists and results lack it. */
function Reading() {
  const { server } = useApp();
  const unread = useUnread();
  useEffect(() => {
    if (!unread) return;
    const timer = setInterval(() => void server!.info().catch(() => {}), 1000);
    return () => clearInterval(timer);
  }, [unread !== null]);
  if (!unread) return null;
  const { sessions, of } = unread;
  return (
    <p class="reading" role="status">
      <progress max={of} value={of - sessions} aria-label="Sessions that were read" />
      {format.count(sessions)} of {format.plural(of, 'session')} {sessions === 1 ? 'is' : 'are'} still being read; they
      appear here by themselves
    </p>
  );
}

class Guard extends Component<{ children: ComponentChildren; on: string }, { error: Error | null }> {
  state = { error: null as Error | null };
  static getDerivedStateFromError = (error: Error) => ({ error });
  componentDidUpdate(before: { on: string }): void {
    if (before.on !== this.props.on && this.state.error) this.setState({ error: null });
  }
  render() {
    return this.state.error ? (
      <Failure
        text={`This could not be shown: ${this.state.error.message}`}
        retry={() => this.setState({ error: null })}
      />
    ) : (
      this.props.children
    );
  }
}

const TITLES: Record<string, string> = { '': 'Sessions', search: 'Search', sql: 'SQL', failures: 'Failures', usage: 'Usage', compare: 'Compare' };

const THEMES = ['auto', 'light', 'dark'];

export function Frame() {
  const route = useRoute();
  const { source } = useApp();
  const [help, setHelp] = useState(false);
  const [theme, setTheme] = useStored('theme', 'auto');
  const pending = useRef(0);
  const afterG = (to: string) => () => Date.now() - pending.current < 1000 && go(to);
  useKeys({
    '?': () => setHelp(true),
    s: afterG('#/'),
    q: afterG('#/sql'),
    u: afterG('#/usage'),
    w: afterG('#/failures'),
    c: afterG('#/compare'),
    Escape: () => !source.isFile && route.page !== '' && toList(),
  });
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key === 'g') pending.current = Date.now();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
  useEffect(() => {
    if (route.page !== 's') document.title = TITLES[route.page] ? `${TITLES[route.page]} · Annal` : 'Annal';
  }, [route.page]);
  const page =
    route.page === 's' ? (
      <SessionPage key={route.id} route={route} />
    ) : source.isFile ? (
      <Empty title="This is not in the file">
        <a href="#/">Back to the session</a>
      </Empty>
    ) : route.page === 'sql' ? (
      <Sql route={route} />
    ) : route.page === 'usage' ? (
      <Usage route={route} />
    ) : route.page === 'failures' ? (
      <Failures route={route} />
    ) : route.page === 'compare' ? (
      <Compare route={route} />
    ) : route.page === 'search' ? (
      <Search route={route} />
    ) : route.page === '' ? (
      <Sessions route={route} />
    ) : (
      <Empty title="Page not found">
        <a href="#/">All sessions</a>
      </Empty>
    );
  return (
    <div class="frame">
      <a
        class="skip"
        href="#content"
        onClick={(e) => {
          e.preventDefault();
          for (const selector of ['.panel', 'main :is(a, button, textarea)'])
            for (const to of document.querySelectorAll<HTMLElement>(selector)) {
              to.focus(); /* a hidden element refuses it */
              if (document.activeElement === to) return;
            }
        }}
      >
        {route.page === 's' ? 'Skip to the details' : 'Skip to the content'}
      </a>
      <header class="top">
        <a class="brand" href="#/" aria-label="Annal: all sessions">
          <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
            <path d="M6 8h20M6 16h12M6 24h17" />
            <circle cx="24" cy="16" r="2.6" />
          </svg>
          <span>Annal</span>
        </a>
        {!source.isFile && (
          <>
            <nav aria-label="Pages">
              <a href="#/" aria-current={route.page === '' || route.page === 's' ? 'page' : undefined}>
                Sessions
              </a>
              <a href="#/usage" aria-current={route.page === 'usage' ? 'page' : undefined}>
                Usage
              </a>
              <a href="#/failures" aria-current={route.page === 'failures' ? 'page' : undefined}>
                Failures
              </a>
              <a href="#/sql" aria-current={route.page === 'sql' ? 'page' : undefined}>
                SQL
              </a>
            </nav>
            <SearchBox
              query={route.page === 'search' || route.page === 's' ? (route.query.get('q') ?? '') : ''}
              inside={route.page === 's'}
              session={route.page === 's' ? route.id : (route.query.get('session') ?? undefined)}
            />
          </>
        )}
        <span class="grow" />
        <StreamState />
        <button
          class="icon-button"
          aria-label={`Colours: ${theme}`}
          title={`Colours: ${theme}`}
          onClick={() => {
            setTheme(THEMES[(THEMES.indexOf(theme) + 1) % 3]!);
            applyTheme();
          }}
        >
          <Icon name="theme" />
        </button>
        <button class="icon-button text" aria-label="Keys and pages" title="Keys and pages (?)" onClick={() => setHelp(true)}>
          ?
        </button>
      </header>
      <Reading />
      <div id="content">
        <Guard on={location.hash}>{page}</Guard>
      </div>
      <Hints />
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}
