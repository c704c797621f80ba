/* SPDX-License-Identifier: Apache-2.0 */
/* One session: its conversation, the slider below it, and beside it the state at the moment of the slider. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, type Session } from './api';
import { ChartsPanel } from './charts';
import { Conversation, FirstMessages, VIEWS, type ConversationHandle } from './conversation';
import { FailuresPanel } from './failures';
import { FindBar } from './find';
import * as format from './format';
import { blocksOf, preview, splitContext } from './message';
import { isComputed, Model, takenBack, upTo, type Numbers, type Turn } from './model';
import { Controls, prompted, prompts, SPEEDS, steps, usePlay } from './replay';
import { EventNotes, Notes, Noting, titleOf } from './notes';
import { link, numberIn, parse, replace, type Route } from './route';
import { StatePanel } from './state';
import { Timeline } from './timeline';
import { Code } from './markdown';
import { useVirtual } from './virtual';
import {
  Agent,
  Ago,
  Button,
  Copy,
  Empty,
  Failure,
  Icon,
  LogMark,
  read,
  useAnswer,
  useApp,
  useClock,
  useKeys,
  useRedraw,
  useStream,
  useStored,
  write,
} from './ui';

const TABS = [
  ['overview', 'Overview'],
  ['state', 'State'],
  ['charts', 'Usage'],
  ['event', 'Event'],
  ['failures', 'Failed'],
] as const;

const REST_MS = 150;
const narrow = matchMedia('(max-width: 720px)');

function useModel(id: string): { model: Model | null; error: string | null; retry: () => void } {
  const { source, live } = useApp();
  const redraw = useRedraw();
  const [model, setModel] = useState<Model | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    let current: Model | null = null;
    let gone = false;
    const stops: (() => void)[] = [];
    setModel(null);
    setError(id ? null : 'The link names no session');
    if (!id) return;
    (live?.ready ?? Promise.resolve())
      .then(() => source.session(id))
      .then(
        (session) => {
          if (gone) return;
          current = new Model(source, id, session);
          stops.push(current.subscribe(redraw));
          setModel(current);
          void current.load();
        },
        async (e: Error) => {
          /* The begin of an id is enough, as for the command. */
          const ids = e instanceof ApiError && e.status !== 404 ? [] : await source.idsFrom(id).catch(() => []);
          if (gone) return;
          /* The id of a sub-agent begins with its parent's. */
          const [first = ''] = ids.toSorted((a, b) => a.length - b.length);
          const isOne = ids.length > 0 && ids.every((other) => other === first || other.startsWith(`${first}.`));
          if (isOne) replace(link('s', first, Object.fromEntries(parse(location.hash).query)));
          else setError(ids.length ? `${ids.length} sessions begin with ${id}: give more of the id` : e.message);
        },
      );
    if (live)
      stops.push(
        live.listen(
          (events) => {
            for (const event of events) if (event.session_id === id) current?.append(event);
            if (events.some((event) => event.session_id === `notes_${id}`)) void current?.readNoted().catch(() => {});
          },
          () => {
            void current?.load();
            if (current?.noted) void current.readNoted().catch(() => {});
          },
        ),
      );
    return () => {
      gone = true;
      for (const stop of stops) stop();
    };
  }, [id, source, tries]);
  return { model, error, retry: () => setTries((n) => n + 1) };
}

/* With its sub-agents and forks, also before the page has asked for them. */
function Share({ session }: { session: Session }) {
  const { server } = useApp();
  const [busy, setBusy] = useState(false);
  const [bytes, setBytes] = useState(0);
  const [error, setError] = useState<string | null>(null);
  if (!server) return null;
  const share = async () => {
    setBusy(true);
    setBytes(0);
    setError(null);
    try {
      const url = URL.createObjectURL(await server.share(session.session_id, setBytes));
      const a = document.createElement('a');
      a.href = url;
      a.download = `${session.session_id}.html`;
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (e) {
      setError((e as Error).message);
    }
    setBusy(false);
  };
  return (
    <>
      <button
        class="button"
        disabled={busy}
        onClick={() => void share()}
        title="Save this session as one HTML file that opens anywhere, without a server"
      >
        <Icon name="share" />
        <span class="only-wide">{busy ? `Saving… ${bytes ? format.bytes(bytes) : ''}` : 'Share'}</span>
      </button>
      {error && <Failure text={error} />}
    </>
  );
}

function Fork({ model, at }: { model: Model; at: number }) {
  const { server, info } = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  const [name, setName] = useState('');
  const [error, setError] = useState<string | null>(null);
  if (!server || info?.read_only || info?.rights === 'read') return null;
  const seq = at === Infinity ? model.last : at;
  const fork = async (e: SubmitEvent) => {
    e.preventDefault();
    try {
      await server.fork(model.id, seq, name);
      dialog.current!.close();
      location.hash = link('s', name);
    } catch (e) {
      setError((e as Error).message);
    }
  };
  return (
    <>
      <button
        class="button"
        title="Start a new session with this history"
        onClick={() => {
          setName(`${model.id.slice(0, 40)}-${seq}`);
          setError(null);
          dialog.current!.showModal();
        }}
      >
        <Icon name="fork" />
        <span class="only-wide">Fork</span>
      </button>
      <dialog ref={dialog} class="dialog" aria-labelledby="fork-title">
        <form onSubmit={fork}>
          <h2 id="fork-title">Fork after event {format.count(seq)}</h2>
          <p>
            The new session has the history up to there, without a copy. Agents append to it; this one does not change.
          </p>
          <label>
            Id of the new session
            <input
              value={name}
              onInput={(e) => setName(e.currentTarget.value)}
              required
              maxLength={200}
              spellcheck={false}
            />
          </label>
          {error && <Failure text={error} />}
          <div class="dialog-buttons">
            <button type="button" class="button" onClick={() => dialog.current!.close()}>
              Cancel
            </button>
            <button class="button main">Fork</button>
          </div>
        </form>
      </dialog>
    </>
  );
}

function Header(props: { model: Model; at: number; view: string; setView: (view: string) => void }) {
  const { model, at, view, setView } = props;
  const { session: s } = model;
  const stream = useStream();
  const isLive = at === Infinity && model.isLive && stream !== 'lost';
  const up = s.fork_session_id ?? s.parent_session_id;
  return (
    <header class="session-head">
      <div class="session-title">
        {up && (
          <a class="up" href={link('s', up, { see: s.fork_seq ?? undefined })}>
            {s.fork_session_id
              ? `fork of ${up.slice(0, 8)} at ${format.count(s.fork_seq)}`
              : 'sub-agent of ' + up.slice(0, 8)}{' '}
            ↑
          </a>
        )}
        <h1 title={s.title ?? s.session_id} dir="auto">{titleOf(s)}</h1>
        <p class="session-facts">
          {isLive && (
            <span class="live-now">
              <i class="pulse" /> live
            </span>
          )}
          <Agent name={s.agent_id} />
          {s.model && <span>{s.model}</span>}
          {s.working_directory && <span title={s.working_directory}>{format.lastPart(s.working_directory)}</span>}
          {s.git_branch && <span>{s.git_branch}</span>}
          {!s.time_from && <Ago time={s.last_activity_at} />}
          <LogMark session={s} />
        </p>
        <div class="session-facts noted-facts">
          {s.name && s.title && <span dir="auto">{s.title}</span>}
          <Noting model={model} />
        </div>
      </div>
      <div class="session-buttons">
        <label class={view ? 'select on' : 'select'} title="What is shown (r, R, e)">
          <span class="hidden-label">What is shown</span>
          <select value={view} onChange={(e) => setView(e.currentTarget.value)}>
            {VIEWS.map(([name, text]) => (
              <option value={name}>{text}</option>
            ))}
          </select>
        </label>
        {!model.source.isFile && (
          <a
            class="button"
            href={link('compare', '', { a: s.fork_session_id ?? s.session_id, b: s.fork_session_id ? s.session_id : undefined })}
            title={s.fork_session_id ? 'Compare with the session of which it is a fork' : 'Compare with another session'}
          >
            <Icon name="compare" />
            <span class="only-wide">Compare</span>
          </a>
        )}
        <Fork model={model} at={at} />
        <Share session={s} />
      </div>
    </header>
  );
}

/* The server removes a tag at the beginning, because agents add it; if the closing tag remains, the user wrote it. */
function promptOf(model: Model, { prompt }: Turn, place: number): string {
  if (prompt !== null && !prompt.includes('</')) return prompt;
  const { said: words, content } = model.event(place)?.data ?? {};
  const { said } = splitContext(blocksOf(words ?? content));
  return preview(said.map((block) => ('text' in block ? block.text : '')).join(' ')) || (prompt ?? '');
}

function Prompts({
  model,
  seq,
  reading,
  choose,
  see,
}: {
  model: Model;
  seq: number;
  reading: number | null;
  choose: (seq: number) => void;
  see: (seq: number) => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const asked = useMemo(() => prompted(model), [model, model.shape]);
  const places = useMemo(() => prompts(model), [model, model.shape]);
  const last = upTo(places, seq) - 1;
  const current = Math.min(last, reading === null ? last : Math.max(0, upTo(places, reading) - 1));
  const later = places.length - last - 1;
  const list = useVirtual({
    count: last + 1,
    getScrollElement: () => scroller.current,
    estimateSize: () => 58,
    overscan: 4,
    getItemKey: (i) => i,
  });
  useEffect(() => list.scrollToIndex(Math.max(0, current), { align: 'auto' }), [current]);
  return (
    <section>
      <h2>
        Prompts <span class="total">{format.count(last + 1)}</span>
      </h2>
      <div class="prompts scroller" ref={scroller}>
        <ol class="inner" style={{ height: `${list.getTotalSize()}px` }}>
          {list.getVirtualItems().map(({ key, index, start }) => {
            const turn = asked[index]!;
            const next = asked[index + 1]?.seq ?? Infinity;
            const place = places[index]!;
            const used = model.used(Math.min(seq, next - 1)).tokens - model.used(turn.seq).tokens;
            const text = promptOf(model, turn, place);
            const notes = model.things.filter((thing) => thing.event_seq >= turn.seq && thing.event_seq < next).length;
            return (
              <li
                key={key}
                ref={list.measureElement}
                data-index={index}
                style={{ transform: `translateY(${start}px)` }}
                class={index === current ? 'current' : ''}
              >
                <button onClick={() => see(place)} title="Show it">
                  <span class="prompt-text" dir="auto">{text || `Turn ${turn.number}`}</span>
                  <span class="dim">
                    {format.clock(turn.began)}
                    {used > 0 && ` · ${format.compact(used)} tokens`}
                    {turn.status === 'failed' && turn.end <= seq && ' · failed'}
                    {notes > 0 && ` · ✎ ${format.count(notes)} noted`}
                    {seq >= model.last && takenBack(turn) && ` · ${takenBack(turn)}`}
                  </span>
                </button>
              </li>
            );
          })}
        </ol>
      </div>
      {later > 0 && (
        <button class="link" onClick={() => choose(places[last + 1]!)} title="Go to the next prompt (Shift →)">
          {format.count(later)} later
        </button>
      )}
    </section>
  );
}

function Child({ model, child, at }: { model: Model; child: Session; at: number }) {
  const numbers = model.numbersOf(child, at);
  return (
    <li>
      <a href={link('s', child.session_id)}>{titleOf(child)}</a>
      <span class="dim">
        {numbers
          ? `${format.plural(numbers.events, 'event')} · ${format.tokens(numbers.tokens)} tokens · ${format.cost(numbers.cost, numbers.computed)}`
          : '…'}
        {child.fork_session_id && !model.source.isFile && (
          <>
            {' · '}
            <a href={link('compare', '', { a: model.id, b: child.session_id })}>compare</a>
          </>
        )}
      </span>
    </li>
  );
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

const RESUME: Record<string, (id: string) => string> = {
  'claude-code': (id) => `claude --resume ${id}`,
  codex: (id) => `codex resume ${id}`,
  opencode: (id) => `opencode --session ${id}`,
};

/* Commands that show the same, and one that continues the session in its agent. */
function commandsOf(s: Session, at: number): [string, string][] {
  const id = quoted(s.session_id);
  const resume = s.parent_session_id || s.fork_session_id ? undefined : RESUME[s.agent_id];
  const there = s.working_directory ? `cd ${quoted(s.working_directory)} && ` : '';
  return [
    ...(resume ? [['resume', there + resume(id)] as [string, string]] : []),
    ['read', `annal cat ${id}`],
    ['state', `annal replay ${id}${at === Infinity ? '' : ` --at ${at}`}`],
  ];
}

function Overview({
  model,
  at,
  reading,
  choose,
  see,
}: {
  model: Model;
  at: number;
  reading: number | null;
  choose: (seq: number) => void;
  see: (seq: number) => void;
}) {
  const s = model.session;
  const seq = at === Infinity ? model.last : at;
  useEffect(() => model.orderByCalls(), [model, model.version]);
  const used = model.used(seq);
  const turns = model.turns.filter((turn) => turn.seq <= seq);
  const calls = model.calls.filter((call) => call.seq <= seq);
  const failed = calls.filter((call) => call.failed && call.result <= seq).length;
  const children = model.children.filter((c) => at === Infinity || !(Date.parse(c.created_at) > model.timeOf(at)));
  const began = model.time[0] ?? NaN;
  const length = model.timeOf(seq) - began;
  const first = turns
    .filter((turn) => turn.answer <= seq)
    .map((turn) => model.timeOf(turn.answer) - turn.began)
    .filter((ms) => ms >= 0 && ms < 3_600_000);
  /* With all sub-agents, if their totals are known; forks have the session's own events, too. */
  const below = children.filter((c) => !c.fork_session_id).map((c) => model.numbersOf(c, at));
  const known = below.length > 0 && below.every((numbers) => numbers !== undefined) ? below : [];
  const sum = (of: (numbers: Numbers) => number | null): number => known.reduce((n, x) => n + (of(x!) ?? 0), 0);
  const ownCost: [number | null, boolean] =
    used.cost !== null
      ? [used.cost, used.computed]
      : at === Infinity
        ? [s.total_cost_usd, isComputed({ ...s, tree: undefined })]
        : [null, false];
  const belowTokens = sum((x) => x.tokens);
  const belowCost = sum((x) => x.cost);
  const facts: [string, string, string?][] = [
    ['turns', model.counted ? format.count(turns.length) : '…'],
    ['tool calls', `${format.count(calls.length)}${failed ? ` (${format.count(failed)} failed)` : ''}`],
    [
      'tokens',
      model.counted ? format.tokens(used.tokens) : '…',
      belowTokens ? `with sub-agents ${format.tokens(used.tokens + belowTokens)}` : undefined,
    ],
    [
      'cost',
      format.cost(...ownCost),
      belowCost
        ? `with sub-agents ${format.cost((ownCost[0] ?? 0) + belowCost, ownCost[1] || known.some((x) => x!.computed))}`
        : undefined,
    ],
    ['length', s.time_from || !(length > 0) ? '–' : format.duration(length)],
    ['first answer after', first.length ? format.duration(first.reduce((a, b) => a + b, 0) / first.length) : model.counted ? '–' : '…'],
  ];
  return (
    <div class="overview">
      <dl class="numbers">
        {facts.map(([name, value, more]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
            {more && <dd class="dim more">{more}</dd>}
          </div>
        ))}
      </dl>
      <Notes model={model} see={see} />
      {children.length > 0 && (
        <section>
          <h2>
            Sub-agents and forks <span class="total">{children.length}</span>
          </h2>
          <ul class="children">
            {children.map((c) => (
              <Child model={model} child={c} at={at} />
            ))}
          </ul>
        </section>
      )}
      {turns.length > 0 && <Prompts model={model} seq={seq} reading={reading} choose={choose} see={see} />}
      <section>
        <h2>Session</h2>
        <dl class="about">
          <dt>id</dt>
          <dd>
            <code>{s.session_id}</code> <Copy text={s.session_id} label="Copy the id" />
          </dd>
          {commandsOf(s, at).map(([what, command]) => (
            <>
              <dt>{what}</dt>
              <dd>
                <code>{command}</code> <Copy text={command} label={`Copy the command: ${what}`} />
              </dd>
            </>
          ))}
          {s.working_directory && (
            <>
              <dt>directory</dt>
              <dd>{s.working_directory}</dd>
            </>
          )}
          {s.source_path && (
            <>
              <dt>log</dt>
              <dd>
                {s.source_path} <LogMark session={s} />
              </dd>
            </>
          )}
          {s.provider && (
            <>
              <dt>provider</dt>
              <dd>{s.provider}</dd>
            </>
          )}
          <dt>began</dt>
          <dd>{s.time_from ? 'the log gives no times' : format.moment(began)}</dd>
          <dt>events</dt>
          <dd>{format.count(upTo(model.seq, seq))}</dd>
        </dl>
      </section>
    </div>
  );
}

function EventPanel({
  model,
  seq,
  at,
  choose,
  select,
  writing,
  written,
}: {
  model: Model;
  seq: number | null;
  at: number;
  choose: (seq: number) => void;
  select: (seq: number) => void;
  writing: boolean; /* a note on this event was asked for */
  written: () => void;
}) {
  const { server } = useApp();
  const shown = seq ?? (at === Infinity ? null : at);
  const proof = useAnswer(server && shown !== null ? () => server.proof(model.id, shown) : null, [model, shown]);
  if (shown === null)
    return (
      <Empty title="No event chosen">
        <p class="only-wide">Choose one by the time at its left.</p>
        <p class="only-small">Tap a message or a call, then “event” at its upper right.</p>
        <button class="button" onClick={() => select(model.itemSeq.at(-1) ?? 1)}>
          Show the last event
        </button>
      </Empty>
    );
  const event = model.event(shown);
  if (!event) return <p class="wait">…</p>;
  const text = JSON.stringify(event, null, 2);
  const p = proof.value;
  return (
    <div class="event">
      <p class="event-head">
        <b>{event.type}</b> <span class="dim">event {format.count(shown)}</span>
      </p>
      <p class="dim">
        {event.timestamp} <Copy text={text} label="Copy the event" />
      </p>
      <p class="event-buttons">
        <Button icon="back" label="Previous event" onClick={() => select(Math.max(1, shown - 1))} />
        <Button icon="next" label="Next event" onClick={() => select(Math.min(model.last, shown + 1))} />
        {at !== shown && (
          <button class="button" onClick={() => choose(shown)}>
            State at this event
          </button>
        )}
        {server && (
          <Copy
            label="Copy link to this event"
            text={`${location.origin}/${link('s', model.id, { see: shown, event: shown, tab: 'event' })}`}
          >
            Copy link
          </Copy>
        )}
      </p>
      {server && (
        <div class="session-facts noted-facts">
          <Noting key={shown} model={model} seq={shown} asked={writing} end={written} />
        </div>
      )}
      <EventNotes model={model} event={event} hash={p?.hash} />
      {p?.proved !== undefined && (
        <p class={p.proved === false ? 'proof bad-text' : 'proof'}>
          {p.proved === false
            ? `Not proved: ${p.why ?? 'its hash does not match'}`
            : '✓ Proved by its hash, which covers the event before it, too'}
          {p.hash && <code>{p.hash}</code>}
        </p>
      )}
      <Code text={text} language="json" />
    </div>
  );
}

export function SessionPage({ route }: { route: Route }) {
  const { source } = useApp();
  const { model, error, retry } = useModel(route.id);
  const { query } = route;
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useStored('speed', '10');
  const [lanes, setLanes] = useStored('lanes', innerWidth > 700 ? '1' : '0');
  const selected = numberIn(query, 'event');
  const [writing, setWriting] = useState(false);
  const [reading, setReading] = useState<number | null>(null);
  const handle = useRef<ConversationHandle | null>(null);
  const given = numberIn(query, 'at') ?? Infinity;
  const asked = useMemo(() => (model?.ready && given >= model.last ? Infinity : given), [given, model?.ready]);
  const [at, setAt] = useState(asked);
  const see = numberIn(query, 'see');
  const view = query.get('all') === '1' ? 'all' : (VIEWS.find(([name]) => name === query.get('view'))?.[0] ?? '');
  const setView = (name: string) => set({ view: name, all: undefined });
  const tab = TABS.find(([name]) => name === query.get('tab'))?.[0] ?? 'overview';
  useClock(30_000);

  const set = (changes: Record<string, string | number | undefined>) => {
    const next = Object.fromEntries(new URLSearchParams(location.hash.split('?')[1] ?? ''));
    replace(link('s', route.id, { ...next, ...changes }));
  };
  /* The link is updated when the slider stops, because browsers limit the number of changes per second. */
  const later = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const move = (seq: number) => {
    setAt(seq);
    clearTimeout(later.current);
    later.current = setTimeout(() => {
      later.current = undefined;
      if (parse(location.hash).id === route.id) set({ at: seq === Infinity ? undefined : seq, see: undefined });
    }, REST_MS);
  };
  useEffect(() => {
    if (later.current === undefined) setAt(asked);
  }, [asked]);
  useEffect(() => () => clearTimeout(later.current), []);
  const choose = (seq: number) => {
    if (!model) return;
    if (seq >= model.last) {
      setPlaying(false);
      handle.current?.scroll(0);
      requestAnimationFrame(() => handle.current?.end());
    }
    move(seq < model.last ? Math.max(1, seq) : Infinity);
  };
  const play = (on: boolean) => {
    if (on && model && at === Infinity) move(model.itemSeq[0] ?? 1);
    setPlaying(on);
  };
  usePlay(model?.ready ? model : null, at, playing, Number(speed), choose);

  /* The last displayed seq, for the list and for the next visit. */
  const seen = useMemo(() => Number(read(`seen.${route.id}`)?.split(' ')[1] ?? 0), [route.id]);
  useEffect(() => {
    if (model?.ready && at === Infinity && !source.isFile && !document.hidden)
      write(`seen.${route.id}`, `${model.session.events} ${model.last}`);
  }, [model, model?.ready, model?.session.events, at]);

  useEffect(() => {
    if (model) document.title = `${titleOf(model.session)} · Annal`;
  }, [model && titleOf(model.session)]);

  const step = (to: (m: Model, at: number, by: number) => number, by: number) => () => {
    if (!model?.ready) return;
    setPlaying(false);
    choose(to(model, at, by));
  };
  const scroll = (by: number) => () => handle.current?.scroll(by * innerHeight * 0.25);
  useKeys({
    ' ': () => play(!playing),
    ArrowRight: step(steps.event, 1),
    ArrowLeft: step(steps.event, -1),
    'Shift+ArrowRight': step(steps.prompt, 1),
    'Shift+ArrowLeft': step(steps.prompt, -1),
    ']': step(steps.turn, 1),
    '[': step(steps.turn, -1),
    f: step(steps.failure, 1),
    F: step(steps.failure, -1),
    Home: () => model && choose(model.itemSeq[0] ?? 1),
    End: () => choose(Infinity),
    j: scroll(1),
    k: scroll(-1),
    ArrowDown: scroll(0.3),
    ArrowUp: scroll(-0.3),
    g: () => {
      handle.current?.scroll(0);
      handle.current?.list.scrollToOffset(0);
    },
    G: () => handle.current?.end(),
    '+': () => setSpeed(String(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(Number(speed)) + 1)])),
    '-': () => setSpeed(String(SPEEDS[Math.max(0, SPEEDS.indexOf(Number(speed)) - 1)])),
    t: () => setLanes(lanes === '1' ? '0' : '1'),
    e: () => setView(view === 'all' ? '' : 'all'),
    N: () => {
      if (!model?.ready) return;
      const moment = at === Infinity ? (reading ?? model.last) : at;
      look((tab === 'event' ? selected : null) ?? moment);
      setWriting(true);
    },
    r: () => setView(view === 'talk' ? '' : 'talk'),
    R: () => setView(view === 'runs' ? '' : 'runs'),
    1: () => set({ tab: 'overview' }),
    2: () => set({ tab: 'state' }),
    3: () => set({ tab: 'charts' }),
    4: () => set({ tab: 'event' }),
    5: () => set({ tab: 'failures' }),
  });

  const look = (seq: number) => set({ tab: 'event', event: seq });
  if (error)
    return (
      <main class="session">
        <Failure text={error} retry={retry} />
      </main>
    );
  if (!model) return <main class="session" aria-busy="true" />;
  /* On a phone the panel is shown only on request. */
  const show = (name: string) => set({ tab: narrow.matches && query.get('tab') === name ? undefined : name });
  return (
    <main class={query.has('tab') ? 'session at-panel' : 'session'}>
      <Header model={model} at={at} view={view} setView={setView} />
      {model.ready && query.get('q') && !source.isFile && (
        <FindBar
          id={model.id}
          q={query.get('q')!}
          see={(seq) => handle.current?.see(seq)}
          close={() => set({ q: undefined })}
        />
      )}
      {model.failed && <Failure text={model.failed} retry={() => void model.load()} />}
      <div class="work">
        {model.ready ? (
          <Conversation model={model} at={at} see={see} view={view} seen={seen} choose={look} read={setReading} handle={handle} />
        ) : (
          <FirstMessages model={model} />
        )}
        <aside class="side" aria-label="Details">
          <div
            class="tabs"
            role="tablist"
            onKeyDown={(e) => {
              const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
              if (by === undefined) return;
              e.preventDefault();
              const next = TABS[(TABS.findIndex(([name]) => name === tab) + by + TABS.length) % TABS.length]![0];
              set({ tab: next });
              document.getElementById(`tab-${next}`)?.focus();
            }}
          >
            {TABS.map(([name, label]) => (
              <button
                role="tab"
                id={`tab-${name}`}
                aria-selected={tab === name}
                aria-controls="panel"
                tabIndex={tab === name ? 0 : -1}
                onClick={() => show(name)}
              >
                {label}
                {name === 'failures' && model.ready && model.failures().length > 0 && (
                  <span class="total">{format.count(model.failures().length)}</span>
                )}
              </button>
            ))}
          </div>
          <div class="panel" role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
            {model.ready && tab === 'overview' && (
              <Overview model={model} at={at} reading={reading} choose={choose} see={(seq) => handle.current?.see(seq)} />
            )}
            {model.ready && tab === 'state' && (
              <StatePanel model={model} at={at} playing={playing} see={(seq) => handle.current?.see(seq)} />
            )}
            {model.ready && tab === 'charts' && <ChartsPanel model={model} at={at} />}
            {model.ready && tab === 'failures' && (
              <FailuresPanel model={model} at={at} see={(seq) => handle.current?.see(seq)} />
            )}
            {model.ready && tab === 'event' && (
              <EventPanel
                model={model}
                seq={selected}
                at={at}
                choose={choose}
                select={(seq) => set({ event: seq })}
                writing={writing}
                written={() => setWriting(false)}
              />
            )}
          </div>
        </aside>
      </div>
      <footer class="dock">
        <Controls
          model={model}
          at={at}
          playing={playing}
          speed={Number(speed)}
          choose={choose}
          play={play}
          setSpeed={(s) => setSpeed(String(s))}
          lanesOpen={lanes === '1'}
          setLanes={(open) => setLanes(open ? '1' : '0')}
        />
        <Timeline
          model={model}
          at={at}
          reading={reading}
          choose={(seq) => {
            setPlaying(false);
            choose(seq);
          }}
          lanesOpen={lanes === '1'}
        />
      </footer>
    </main>
  );
}
