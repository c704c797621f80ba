/* SPDX-License-Identifier: Apache-2.0 */
/* All sessions, live: filters, sort order, sub-agents and forks below their parents. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Event, Facets, Session, SessionPage } from './api';
import * as format from './format';
import { ImportProgress, NoSessions, useImport, Watching } from './found';
import { FRESH_MS, inOrder, isComputed } from './model';
import { Star, Tags, tagsOf, titleOf } from './notes';
import { RANGES, times } from './range';
import { go, keepView, keptView, link, parse, replace, type Route } from './route';
import { Agent, Ago, Empty, Failure, Icon, LogMark, read, useAnswer, useApp, useClock, useKeys, useRedraw } from './ui';
import { useVirtual } from './virtual';

const PAGE = 100;
const ROW = 54;

const COLUMNS: [sort: string, label: string, className: string][] = [
  ['title', 'Session', 'c-title'],
  ['activity', 'Active', 'c-active'],
  ['started', 'Length', 'c-length'],
  ['events', 'Events', 'c-events'],
  ['tokens', 'Tokens', 'c-tokens'],
  ['cost', 'Cost', 'c-cost'],
];

interface Row {
  session: Session;
  depth: number;
  end?: boolean;
}

/* The loaded part of the list, in the server's order. */
class Listing {
  rows: Session[] = [];
  total: number | null = null;
  next: string | null = null;
  error: string | null = null;
  children = new Map<string, Session[]>();
  private busy = false;
  private again = false;
  private stop = new AbortController();

  constructor(
    private fetchPage: (cursor: string | undefined, limit: number, signal: AbortSignal) => Promise<SessionPage>,
    private changed: () => void,
  ) {}

  close(): void {
    this.stop.abort();
  }

  get isAsked(): boolean {
    return this.busy || this.total !== null;
  }

  async more(limit = PAGE): Promise<void> {
    if (this.busy || (this.total !== null && this.next === null)) return;
    await this.run(async () => {
      const page = await this.fetchPage(this.next ?? undefined, limit, this.stop.signal);
      this.rows.push(...page.sessions);
      [this.next, this.total] = [page.next, page.total];
    });
  }

  /* Reload from the top as far as was loaded; rows beyond 500 are loaded again when the user scrolls to them. */
  async refresh(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    await this.run(async () => {
      const page = await this.fetchPage(undefined, Math.min(500, Math.max(PAGE, this.rows.length)), this.stop.signal);
      this.rows = page.sessions;
      [this.next, this.total] = [page.next, page.total];
    });
  }

  private async run(work: () => Promise<void>): Promise<void> {
    this.busy = true;
    try {
      await work();
      this.error = null;
    } catch (e) {
      if (!this.stop.signal.aborted) this.error = (e as Error).message;
    }
    this.busy = false;
    if (this.stop.signal.aborted) return;
    this.changed();
    if (this.again) {
      this.again = false;
      void this.refresh();
    }
  }

  /* Update from events alone: the session is active, and the number of its events. */
  saw(events: Event[]): boolean {
    let known = true;
    for (const event of events) {
      const lists = [this.rows, ...this.children.values()];
      const session = lists.flat().find((s) => s.session_id === event.session_id);
      if (!session) {
        known = false;
        continue;
      }
      session.events = Math.max(session.events, event.seq);
      session.last_activity_at = event.timestamp;
    }
    return known;
  }
}

const cost = (s: Session): number | null => (s.tree ? s.tree.cost_usd : s.total_cost_usd);

export const costText = (s: Session): string => format.cost(cost(s), isComputed(s));

const costTip = (s: Session): string | undefined => {
  if (cost(s) === null) return undefined;
  const what = isComputed(s) ? 'at least in part computed from list prices' : 'as its log says';
  return s.tree ? `with all sessions below, ${what}; itself ${costText({ ...s, tree: undefined })}` : what;
};

/* The last seq that this browser has displayed, and whether newer events exist. */
const unseen = (s: Session): number => {
  const seen = Number(read(`seen.${s.session_id}`)?.split(' ')[0]);
  return seen > 0 ? Math.max(0, s.events - seen) : 0;
};

/* How much failed in a session itself. */
function Failed({ session: s }: { session: Session }) {
  const parts: [number | undefined, string][] = [
    [s.failed_calls, 'call'],
    [s.failed_turns, 'turn'],
    [s.failed_requests, 'request'],
  ];
  const some = parts.filter(([n]) => n).map(([n, word]) => format.plural(n!, word));
  const sum = parts.reduce((all, [n]) => all + (n ?? 0), 0);
  return sum ? (
    <span class="tag bad" title={`${some.join(', ')} failed`}>
      {format.count(sum)} failed
    </span>
  ) : null;
}

function SessionRow(props: { row: Row; chosen: boolean; open: boolean; toggle: () => void; flat: boolean }) {
  const { session: s, depth } = props.row;
  const began = Date.parse(s.tree?.first_at ?? s.created_at);
  const ended = Date.parse(s.tree?.last_at ?? s.last_activity_at);
  const isLive = Date.now() - Date.parse(s.last_activity_at) < FRESH_MS && s.time_from === null;
  const fresh = unseen(s);
  const up = s.fork_session_id ?? s.parent_session_id;
  const tokens = s.tree?.total_tokens ?? s.total_tokens;
  return (
    <>
      <div role="cell" class="c-title" style={{ '--depth': depth }}>
        {s.tree ? (
          <button
            class={props.open ? 'twist open' : 'twist'}
            aria-expanded={props.open}
            aria-label={`${format.plural(s.tree.sessions, 'session')} below`}
            onClick={props.toggle}
          >
            <Icon name="open" />
          </button>
        ) : (
          <span class="twist" />
        )}
        <div class="row-text">
          <div class="row-title">
            {isLive && <i class="pulse" title="active now" />}
            <Star session={s} />
            <a
              href={link('s', s.session_id)}
              class="row-link"
              dir="auto"
              title={s.name ? (s.title ?? s.session_id) : undefined}
              aria-current={props.chosen || undefined}
            >
              {titleOf(s)}
            </a>
            <Tags tags={tagsOf(s)} />
            {!!s.notes && <span class="tag">{format.plural(s.notes, 'note')}</span>}
            {s.fork_session_id && <span class="tag">fork at {format.count(s.fork_seq)}</span>}
            {fresh > 0 && <span class="tag new">{format.count(fresh)} new</span>}
            <LogMark session={s} />
            {s.findings > 0 && <span class="tag bad">{format.plural(s.findings, 'finding')}</span>}
            {!!s.unreadable_lines && (
              <span class="tag bad" title="Lines of its log that could not be read">
                {format.count(s.unreadable_lines)} unreadable
              </span>
            )}
            <Failed session={s} />
          </div>
          <div class="row-facts">
            <Agent name={s.agent_id} />
            {s.model && <span>{s.model}</span>}
            {s.status !== 'idle' && <span class={`status ${s.status}`}>{s.status}</span>}
            {s.working_directory && <span title={s.working_directory}>{format.lastPart(s.working_directory)}</span>}
            {props.flat && up && <span>of {up.slice(0, 8)}</span>}
            {s.tree && <span>{format.plural(s.tree.sessions, 'session')} below</span>}
            <span class="only-small">
              <Ago time={s.last_activity_at} />
              {tokens > 0 && ` · ${format.tokens(tokens)} tokens`}
              {cost(s) !== null && ` · ${costText(s)}`}
            </span>
          </div>
        </div>
      </div>
      <div role="cell" class="c-active">
        {s.time_from ? (
          <span title="the log has no times">–</span>
        ) : (
          <Ago time={s.tree?.last_at ?? s.last_activity_at} />
        )}
      </div>
      <div role="cell" class="c-length">
        {s.time_from || ended <= began ? '–' : format.duration(ended - began)}
      </div>
      <div role="cell" class="c-events">
        {format.count(s.tree?.events ?? s.events)}
      </div>
      <div role="cell" class="c-tokens" title={format.count(tokens)}>
        {format.tokens(tokens)}
      </div>
      <div role="cell" class="c-cost" title={costTip(s)}>
        {costText(s)}
      </div>
    </>
  );
}

export function Select(props: { label: string; value: string; options: [string, string][]; choose: (value: string) => void }) {
  return (
    <label class={props.value ? 'select on' : 'select'}>
      <span class="hidden-label">{props.label}</span>
      <select value={props.value} onChange={(e) => props.choose(e.currentTarget.value)}>
        <option value="">{props.label}</option>
        {props.options.map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
      </select>
    </label>
  );
}

function Filters({
  facets,
  query,
  set,
}: {
  facets?: Facets;
  query: URLSearchParams;
  set: (name: string, value: string, without?: string) => void;
}) {
  const options = (list: [string, number][] = [], shorten = (x: string) => x): [string, string][] =>
    list.map(([name, n]) => [name, `${shorten(name)} (${format.count(n)})`]);
  const value = (name: string) => query.get(name) ?? '';
  const any = ['status', 'agent', 'model', 'dir', 'since', 'failed', 'starred', 'tag', 'q'].some((name) => query.get(name));
  return (
    <div class="filters" role="group" aria-label="Filters">
      <Select
        label="Any agent"
        value={value('agent')}
        options={options(facets?.agent)}
        choose={(v) => set('agent', v)}
      />
      <Select
        label="Any model"
        value={value('model')}
        options={options(facets?.model)}
        choose={(v) => set('model', v)}
      />
      <Select
        label="Any project"
        value={value('dir')}
        options={options(facets?.dir, format.shortPath)}
        choose={(v) => set('dir', v)}
      />
      {/* A status that all sessions share selects nothing. */}
      {((facets?.status?.length ?? 0) > 1 || value('status')) && (
        <Select
          label="Any status"
          value={value('status')}
          options={options(facets?.status)}
          choose={(v) => set('status', v)}
        />
      )}
      <Select
        label="Active at any time"
        value={value('since')}
        options={[
          ...RANGES.map(([key, text]): [string, string] => [key, `Active ${text}`]),
          ...(/^\d/.test(value('since')) && !RANGES.some(([key]) => key === value('since'))
            ? [[value('since'), `Active ${value('since')} to ${value('until') || 'now'}`] as [string, string]]
            : []),
        ]}
        choose={(v) => set('since', v, 'until')}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={value('failed') === '1'}
          onChange={(e) => set('failed', e.currentTarget.checked ? '1' : '')}
        />
        Something failed
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={value('starred') === '1'}
          onChange={(e) => set('starred', e.currentTarget.checked ? '1' : '')}
        />
        Starred
      </label>
      {value('tag') && (
        <button class="tag new" title="Show sessions without this tag, too" onClick={() => set('tag', '')}>
          {value('tag')} ×
        </button>
      )}
      {any && (
        <button class="link" onClick={() => replace('#/')}>
          Clear
        </button>
      )}
      <span class="grow" />
      <label class="check" title="Show sub-agents and forks below their sessions">
        <input
          type="checkbox"
          checked={query.get('flat') !== '1'}
          onChange={(e) => set('flat', e.currentTarget.checked ? '' : '1')}
        />
        Group sub-agents
      </label>
    </div>
  );
}

/* What the list shows beside its address. */
interface ListView {
  top: number;
  chosen: string | null;
  open: string[];
}

const LAST = 'annal.list';
const REST_MS = 150;

/* Go to the list that was shown last, and to the same place in it. */
export function toList(): void {
  try {
    const { hash, view } = JSON.parse(sessionStorage.getItem(LAST) ?? '');
    go(hash, view);
  } catch {
    go('#/');
  }
}

export function Sessions({ route }: { route: Route }) {
  const { server, live } = useApp();
  const redraw = useRedraw();
  const scroller = useRef<HTMLDivElement>(null);
  const before = useMemo(() => keptView<ListView>(), []);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set(before.open));
  const [chosenId, setChosen] = useState<string | null>(before.chosen ?? null);
  const { query } = route;
  const flat = query.get('flat') === '1';
  const sort = COLUMNS.some(([name]) => name === query.get('sort')) ? query.get('sort')! : 'activity';
  const listed = useRef(false);
  useClock(30_000);

  const listing = useMemo(() => {
    const asked = Object.fromEntries(
      ['status', 'agent', 'model', 'dir', 'failed', 'starred', 'tag', 'q'].map((name) => [name, query.get(name) ?? undefined]),
    );
    const fetchPage = (cursor: string | undefined, limit: number, signal: AbortSignal) =>
      server!.sessions(
        {
          ...asked,
          ...times(query.get('since') ?? '', query.get('until') ?? ''),
          sort, tree: flat ? undefined : 1, cursor, limit },
        signal,
      );
    return new Listing(fetchPage, redraw);
  }, [query.toString()]);
  listed.current ||= listing.total !== null;
  const facets = useAnswer(listed.current ? () => server!.facets() : null, [listed.current]); /* after the list */

  useEffect(() => {
    void live!.ready.then(() => listing.more());
    return () => listing.close();
  }, [listing]);

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (ms: number) => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void listing.refresh();
      }, ms);
    };
    const stop = live!.listen(
      (events) => {
        later(listing.saw(events) ? 1500 : 150);
        redraw();
      },
      () => listing.isAsked && later(0),
    );
    const stopUnread = server!.watchUnread(() => listing.isAsked && later(300));
    return () => {
      stop();
      stopUnread();
      clearTimeout(timer);
    };
  }, [listing]);

  const unfold = async (id: string) => {
    if (listing.children.has(id)) return;
    listing.children.set(id, inOrder(await server!.children(id).catch(() => [])));
    redraw();
  };
  const toggle = (id: string) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
    if (next.has(id)) void unfold(id);
  };
  const isListed = listing.total !== null;
  useEffect(() => {
    if (isListed) for (const id of open) void unfold(id);
  }, [listing, isListed]);

  const rows: Row[] = [];
  const add = (session: Session, depth: number) => {
    rows.push({ session, depth });
    if (open.has(session.session_id))
      for (const child of listing.children.get(session.session_id) ?? []) add(child, depth + 1);
  };
  for (const session of listing.rows) add(session, 0);
  const chosen = rows.findIndex((row) => row.session.session_id === chosenId);
  const more = Math.max(0, (listing.total ?? 0) - listing.rows.length);

  const list = useVirtual({
    count: rows.length + more,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 8,
    getItemKey: (i) => rows[i]?.session.session_id ?? `more-${i}`,
  });
  const items = list.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (lastShown >= rows.length && more) void listing.more(lastShown > rows.length + 200 ? 1000 : PAGE);
  });

  /* The place in the list, for Back, a reload and Esc. */
  const keep = () => {
    if (parse(location.hash).page !== '') return; /* a key has opened a session since the last drawing */
    const view: ListView = { top: scroller.current?.scrollTop ?? 0, chosen: chosenId, open: [...open] };
    keepView(view);
    sessionStorage.setItem(LAST, JSON.stringify({ hash: location.hash || '#/', view }));
  };
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useLayoutEffect(() => {
    if (isListed && before.top) scroller.current!.scrollTop = before.top;
    if (isListed) before.top = 0;
  }, [isListed]);
  useEffect(() => {
    if (isListed) keep();
  }, [isListed, chosenId, open, query.toString()]);
  useEffect(() => () => clearTimeout(rest.current), []);

  const set = (name: string, value: string, without?: string) => {
    const next = new URLSearchParams(query);
    if (without) next.delete(without);
    if (value) next.set(name, value);
    else next.delete(name);
    replace(link('', '', Object.fromEntries(next)));
  };

  const choose = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, chosen + by));
    if (rows[next]) setChosen(rows[next].session.session_id);
    list.scrollToIndex(next);
    /* Until the new row is drawn, Enter must not reach the link or the button that had the focus before. */
    (document.activeElement as HTMLElement | null)?.blur();
    requestAnimationFrame(() =>
      scroller.current
        ?.querySelector<HTMLElement>(`[aria-rowindex="${next + 2}"] .row-link`)
        ?.focus({ preventScroll: true }),
    );
  };
  useKeys({
    j: () => choose(1),
    k: () => choose(-1),
    ArrowDown: () => choose(1),
    ArrowUp: () => choose(-1),
    Enter: () => rows[chosen] && go(link('s', rows[chosen].session.session_id)),
    ArrowRight: () =>
      rows[chosen]?.session.tree &&
      !open.has(rows[chosen].session.session_id) &&
      void toggle(rows[chosen].session.session_id),
    ArrowLeft: () =>
      rows[chosen] && open.has(rows[chosen].session.session_id) && void toggle(rows[chosen].session.session_id),
  });

  const filtered = ['status', 'agent', 'model', 'dir', 'since', 'failed', 'starred', 'tag', 'q'].some((name) => query.get(name));
  const isEmpty = listing.total === 0 && !filtered;
  const importing = useImport(isEmpty);
  return (
    <main class="sessions">
      <h1 class="hidden-label">Sessions</h1>
      <Filters facets={facets.value} query={query} set={set} />
      <ImportProgress value={importing.value} />
      {listing.error && <Failure text={listing.error} retry={() => void listing.refresh()} />}
      {isEmpty && <NoSessions running={importing.value} start={importing.start} error={importing.error} />}
      <div class="list" hidden={isEmpty} role="table" aria-label="Sessions" aria-rowcount={(listing.total ?? 0) + 1}>
        <div role="rowgroup">
          <div class="list-head" role="row">
            {COLUMNS.map(([name, label, className]) => (
              <div
                role="columnheader"
                class={className}
                aria-sort={sort === name ? (name === 'title' ? 'ascending' : 'descending') : undefined}
              >
                <button onClick={() => set('sort', name === 'activity' ? '' : name)}>
                  {label}
                  {name === 'title' && listing.total !== null && (
                    <span class="total">{format.count(listing.total)}</span>
                  )}
                  {sort === name && <span aria-hidden="true">{name === 'title' ? ' ↑' : ' ↓'}</span>}
                </button>
              </div>
            ))}
          </div>
        </div>
        <div
          class="scroller"
          role="presentation"
          ref={scroller}
          onScroll={() => {
            clearTimeout(rest.current);
            rest.current = setTimeout(keep, REST_MS);
          }}
        >
          {listing.total === 0 && <Empty title="No session matches these filters" />}
          <div class="inner" role="rowgroup" style={{ height: `${list.getTotalSize()}px` }}>
            {items.map((item) => (
              <div
                role="row"
                key={item.key}
                class={`row ${item.index === chosen ? 'chosen' : ''}`}
                aria-rowindex={item.index + 2}
                style={{ transform: `translateY(${item.start}px)` }}
                onClick={(e) => {
                  if (!(e.target as Element).closest('a, button') && rows[item.index])
                    go(link('s', rows[item.index]!.session.session_id));
                }}
              >
                {rows[item.index] ? (
                  <SessionRow
                    row={rows[item.index]!}
                    chosen={item.index === chosen}
                    open={open.has(rows[item.index]!.session.session_id)}
                    toggle={() => void toggle(rows[item.index]!.session.session_id)}
                    flat={flat}
                  />
                ) : (
                  <div role="cell" class="c-title">
                    <span class="skeleton" />
                  </div>
                )}
              </div>
            ))}
          </div>
        </div>
      </div>
      {listed.current && <Watching />}
    </main>
  );
}
