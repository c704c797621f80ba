/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a session as a conversation; only visible rows are in the document. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Event, Noted } from './api';
import * as format from './format';
import { Marks } from './notes';
import { keepView, keptView, link } from './route';
import { Blocks, blocksOf, errorText, Fold, isContext, preview, splitContext, textOf, type Block } from './message';
import { takenBack, upTo, type Model } from './model';
import { Output, outputOf, ToolCard } from './tool';
import { Copy, Empty, Icon, useRedraw } from './ui';
import { useVirtual, type List } from './virtual';

/* What of a session is shown: messages and calls; runs of calls as a line each; prompts and answers; all events. */
export const VIEWS: [string, string][] = [
  ['', 'Messages and calls'],
  ['runs', 'Runs of calls folded'],
  ['talk', 'Prompts and answers'],
  ['all', 'All events'],
];

interface Rows {
  index: number[]; /* in the outline */
  seq: number[];
  runs: Map<number, number[]>; /* by the seq of the first call: the indexes of a run of calls */
}

const LEAST_RUN = 3; /* calls */

/* The rows of a view; null for all events. */
function rowsOf(model: Model, view: string): Rows | null {
  if (view === 'all') return null;
  const runs = new Map<number, number[]>();
  const kind = (index: number) => model.kinds[model.type[index]!]!;
  if (!view) return { index: model.items, seq: model.itemSeq, runs };
  if (view === 'talk') {
    const index = model.items.filter((n) => kind(n) === 'message' || /^(turn|provider)[._](failed|error)$/.test(model.typeAt(n)));
    return { index, seq: index.map((n) => model.seq[n]!), runs };
  }
  const index: number[] = [];
  let run: number[] = [];
  const flush = () => {
    if (run.length >= LEAST_RUN) {
      runs.set(model.seq[run[0]!]!, run);
      index.push(run[0]!);
    } else index.push(...run);
    run = [];
  };
  for (const n of model.items) {
    if (kind(n) === 'call') run.push(n);
    else {
      flush();
      index.push(n);
    }
  }
  flush();
  return { index, seq: index.map((n) => model.seq[n]!), runs };
}

interface ItemProps {
  model: Model;
  index: number; /* in the outline */
  at: number;
  opened: Map<string, boolean>;
  redraw: () => void;
  all: boolean;
}

function Gutter({ model, index, choose }: { model: Model; index: number; choose: (seq: number) => void }) {
  const seq = model.seq[index]!;
  return (
    <button class="gutter" tabIndex={-1} onClick={() => choose(seq)} title={`Show event ${seq}`}>
      <span>{format.clock(model.time[index]!)}</span>
      <span class="gutter-seq">#{seq}</span>
    </button>
  );
}

/* Longer prompts are cut until the user expands them. */
const MOST_PROMPT = 3000;
const MOST_PROMPT_LINES = 30;

const sizes = (d: any): string => `${format.bytes(d.bytes_before ?? 0)} before, ${format.bytes(d.bytes_after ?? 0)} now`;
const noticed = (d: any): string => (d.noticed_at ? `, noticed ${format.moment(Date.parse(d.noticed_at))}` : '');

const NOTES: Record<string, (data: any) => string> = {
  'checkpoint.noted': (d) =>
    d.note === 'compaction'
      ? `History compacted${d.pre_tokens ? `, ${format.compact(d.pre_tokens)} tokens before` : ''}`
      : String(d.note),
  'provider.failed': (d) => `The provider failed: ${errorText(d.error)}`,
  'session.paused': (d) => `Paused${d.reason ? `: ${d.reason}` : ''}`,
  'session.resumed': (d) => `Resumed${d.reason ? `: ${d.reason}` : ''}`,
  'session.ended': (d) => `Session ended${d.reason ? `: ${d.reason}` : ''}`,
  'source.deleted': (d) => `Its log was deleted${noticed(d)}`,
  'source.shrank': (d) => `Its log was cut short: ${sizes(d)}${noticed(d)}`,
  'source.replaced': (d) => `Its log was replaced: ${sizes(d)}${noticed(d)}`,
  'source.returned': (d) => `Its log exists again${noticed(d)}`,
  'session.status_changed': (d) => `Status: ${d.to}${d.reason ? `, ${d.reason}` : ''}`,
  'annal.gap': (d) => `Events ${d.first_seq} to ${d.last_seq ?? '?'} are missing: ${d.why}`,
  'artifact.stored': (d) => `Stored ${d.name ?? d.path ?? 'an artifact'}${d.bytes ? `, ${format.bytes(d.bytes)}` : ''}`,
};

function Message({
  event,
  isOpen,
  toggle,
}: {
  event: Event;
  isOpen: (name: string, initial: boolean) => boolean;
  toggle: (name: string, open: boolean) => void;
}) {
  const { role, content } = event.data ?? {};
  const blocks = blocksOf(content);
  if (!blocks.length) return null;
  const text = textOf(content);
  const show = (list: Block[]) => (
    <Blocks
      blocks={list}
      isOpen={(n) => isOpen(`block${n}`, false)}
      toggle={(n) => toggle(`block${n}`, !isOpen(`block${n}`, false))}
    />
  );
  if (role === 'assistant' || role === 'agent' || role === 'model')
    return <div class="said assistant">{show(blocks)}</div>;
  const { context, said } = splitContext(blocks);
  if (role === 'user' && said.length && !isContext(text)) {
    const long = text.length > MOST_PROMPT || text.split('\n').length > MOST_PROMPT_LINES;
    const whole = !long || isOpen('whole', false);
    return (
      <div class="said user">
        <p class="said-by">User</p>
        {context && (
          <Fold
            class="context"
            label="Context"
            preview={preview(context)}
            open={isOpen('context', false)}
            toggle={() => toggle('context', !isOpen('context', false))}
          >
            <Output text={context} />
          </Fold>
        )}
        <div class={whole ? '' : 'clamped'}>{show(said)}</div>
        {!whole && (
          <button class="link" onClick={() => toggle('whole', true)}>
            Show all {format.plural(text.split('\n').length, 'line')}
          </button>
        )}
      </div>
    );
  }
  const open = isOpen('fold', false);
  return (
    <Fold
      class="context"
      label={role === 'user' ? 'Context' : String(role ?? 'message')}
      preview={preview(text)}
      open={open}
      toggle={() => toggle('fold', !open)}
    >
      {show(blocks)}
    </Fold>
  );
}

/* Whether the row before shows this error: a log may repeat it, as an answer, as a failed request and as the end. */
function isTold(model: Model, index: number, error: unknown): boolean {
  const before = model.items[upTo(model.items, index - 1) - 1];
  const { type, data } = (before !== undefined && model.event(model.seq[before]!)) || {};
  const told = type === 'message.added' ? textOf(data?.content) : type === 'provider.failed' ? errorText(data?.error) : '';
  return told.trim() !== '' && told.trim() === errorText(error).trim();
}

function TurnEnd({ model, seq, event, type }: { model: Model; seq: number; event: Event | undefined; type: string }) {
  const turn = model.turns.findLast((t) => t.seq < seq);
  const calls = turn ? upToCalls(model, seq) - upToCalls(model, turn.seq) : 0;
  const took = event?.data?.timing?.totalMs ?? (turn && turn.ended - turn.began);
  const used = turn ? model.used(seq).tokens - model.used(turn.seq).tokens : 0;
  const what = type === 'turn.failed' ? 'failed' : type === 'turn.cancelled' ? 'interrupted' : 'done';
  const facts = [
    turn && `Turn ${turn.number} ${what}`,
    took ? format.duration(took) : '',
    calls ? format.plural(calls, 'call') : '',
    used ? `${format.compact(used)} tokens` : '',
  ].filter(Boolean);
  return (
    <div class={`turn-end ${what}`}>
      <span>{facts.join(' · ') || what}</span>
      {event?.data?.error && !isTold(model, model.index(seq), event.data.error) && (
        <span class="bad-text">{errorText(event.data.error)}</span>
      )}
    </div>
  );
}

const upToCalls = (model: Model, seq: number): number => {
  let low = 0;
  let high = model.calls.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.calls[middle]!.seq <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
};

function Item({ model, index, at, opened, redraw, all }: ItemProps) {
  const seq = model.seq[index]!;
  const type = model.typeAt(index);
  const kind = model.kinds[model.type[index]!]!;
  const isOpen = (name: string, initial: boolean) => opened.get(`${seq}${name}`) ?? initial;
  const toggle = (name: string, open: boolean) => {
    opened.set(`${seq}${name}`, open);
    redraw();
  };
  const event = model.event(seq);
  if (kind === 'call') {
    const call = model.callAt.get(seq);
    if (call) {
      const known = model.known(call, at);
      const child = model.childOf(call, at);
      return (
        <ToolCard
          call={call}
          event={event}
          result={known && call.result !== seq ? model.event(call.result) : undefined}
          known={known}
          lost={model.lost(call, at)}
          open={opened.get(`${seq}card`)}
          toggle={(open) => toggle('card', open)}
          child={child && { href: link('s', child.session_id), title: child.title ?? child.session_id }}
        />
      );
    }
  }
  if (kind === 'end') return <TurnEnd model={model} seq={seq} event={event} type={type} />;
  if (!event) return <span class="skeleton" style={{ '--lines': Math.min(8, Math.ceil(model.bytes[index]! / 700)) }} />;
  if (kind === 'message') return <Message event={event} isOpen={isOpen} toggle={toggle} />;
  if (type === 'provider.failed' && isTold(model, index, event.data?.error))
    return <div class="note bad-text">The provider failed</div>;
  if (kind === 'note' && NOTES[type])
    return <div class={/failed|gap/.test(type) ? 'note bad-text' : 'note'}>{NOTES[type](event.data ?? {})}</div>;
  if (kind === 'result') {
    const { text } = outputOf(event.data);
    return (
      <Fold
        class="context"
        label={type}
        preview={preview(text)}
        open={isOpen('fold', false)}
        toggle={() => toggle('fold', !isOpen('fold', false))}
      >
        <Output text={text} />
      </Fold>
    );
  }
  const { extra, source, ...rest } = event.data && typeof event.data === 'object' ? event.data : { value: event.data };
  const short = JSON.stringify(rest);
  return (
    <Fold
      class={`raw ${all ? 'one-line' : ''}`}
      label={type}
      preview={short.length > 2 ? short.slice(1, 200) : ''}
      open={isOpen('fold', false)}
      toggle={() => toggle('fold', !isOpen('fold', false))}
    >
      <Output text={JSON.stringify(event.data, null, 2)} />
    </Fold>
  );
}

/* A run of calls as a line, which unfolds them. */
function Run({ run, ...props }: { run: number[] } & Omit<ItemProps, 'index' | 'all'>) {
  const { model, at, opened, redraw } = props;
  const known = run.filter((n) => model.seq[n]! <= at);
  const name = `${model.seq[run[0]!]}run`;
  const open = opened.get(name) ?? false;
  const calls = known.map((n) => model.callAt.get(model.seq[n]!));
  const counts = new Map<string, number>();
  for (const call of calls) counts.set(call?.tool || 'tool', (counts.get(call?.tool || 'tool') ?? 0) + 1);
  const failed = calls.filter((call) => call && call.failed && call.result <= at).length;
  return (
    <>
      <button
        class="fold-head run"
        aria-expanded={open}
        onClick={() => {
          opened.set(name, !open);
          redraw();
        }}
      >
        <span class="fold-label">{format.plural(known.length, 'call')}</span>
        <span class="fold-preview">{[...counts].map(([tool, n]) => (n > 1 ? `${n} ${tool}` : tool)).join(', ')}</span>
        {failed > 0 && <span class="tag bad">{format.count(failed)} failed</span>}
      </button>
      {open && known.map((index) => <Item key={model.seq[index]} {...props} index={index} all={false} />)}
    </>
  );
}

/* Copies of a row: the text of a message, and a link to the event. */
function Actions({ model, index, choose }: { model: Model; index: number; choose: (seq: number) => void }) {
  const seq = model.seq[index]!;
  const data = model.kinds[model.type[index]!] === 'message' ? model.event(seq)?.data : undefined;
  const text = data && textOf(data.content);
  return (
    <div class="item-actions">
      <button class="link only-small" tabIndex={-1} onClick={() => choose(seq)}>
        event
      </button>
      {text && <Copy text={text} label="Copy this message as Markdown" tabIndex={-1} />}
      {!model.source.isFile && (
        <Copy
          text={`${location.origin}/${link('s', model.id, { see: seq })}`}
          label={`Copy a link to event ${seq}`}
          tabIndex={-1}
        >
          <Icon name="link" />
        </Copy>
      )}
    </div>
  );
}

export interface ConversationHandle {
  list: List;
  see(seq: number): void;
  scroll(by: number): void;
  end(): void; /* show the end, and follow new events of an active session */
}

/* What a session shows beside its address: the first row in view, and what was folded or unfolded. */
interface ConversationView {
  seq: number;
  top: number; /* of that row, in pixels below the upper edge */
  opened: [string, boolean][];
}

const REST_MS = 150;
const MOST_OPENED = 300; /* kept with an entry of the history */
const AIM_MS = 8000;
const MOST_PRINTED = 3000; /* rows */

/* The first messages, while the outline is on its way. */
export function FirstMessages({ model }: { model: Model }) {
  const messages = model.early().filter((event) => event.type === 'message.added');
  return (
    <div class="conversation" aria-busy="true">
      <div class="scroller" tabIndex={0}>
        <p class="wait">Reading the session…</p>
        {messages.map((event) => (
          <div class="item early" key={event.seq}>
            <span />
            <div class="item-body">
              <Message event={event} isOpen={() => false} toggle={() => {}} />
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}

interface Props {
  model: Model;
  at: number; /* seq of the moment; Infinity for now */
  see: number | null; /* the event to show */
  view: string; /* of VIEWS */
  seen: number; /* last seq seen at the previous visit, or 0 */
  choose: (seq: number) => void;
  read: (seq: number) => void; /* the first row in view */
  handle: { current: ConversationHandle | null };
}

export function Conversation({ model, at, see, view, seen, choose, read, handle }: Props) {
  const before = useMemo(() => keptView<ConversationView>(), [model]);
  const scroller = useRef<HTMLDivElement>(null);
  const opened = useMemo(() => new Map<string, boolean>(before.opened), [model]);
  const draw = useRedraw();
  const rest = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const redraw = () => {
    draw();
    rested();
  };
  const [behind, setBehind] = useState(0);
  const [flash, setFlash] = useState<number | null>(null);
  const all = view === 'all';
  const rows = useMemo(() => rowsOf(model, view), [model, model.shape, view]);
  const seqs = rows?.seq ?? model.seq;
  const shown = upTo(seqs, at);
  const indexOf = (n: number): number => (rows ? rows.index[n]! : n);

  const list = useVirtual({
    count: shown,
    getScrollElement: () => scroller.current,
    getItemKey: (n) => model.seq[indexOf(n)] ?? n,
    overscan: 6,
    estimateSize: (n) => {
      const index = indexOf(n);
      const kind = model.kinds[model.type[index]!];
      if (all && kind === 'hidden') return 30;
      return kind === 'message' ? Math.min(600, 44 + model.bytes[index]! / 12) : 40;
    },
    anchorTo: 'end',
    followOnAppend: true,
  });

  const position = (seq: number): number => Math.max(0, upTo(seqs, seq) - 1);
  /* What is noted on events, by the seq of the row that shows them. */
  const marks = useMemo(() => {
    const found = new Map<number, Noted[]>();
    for (const thing of model.things) {
      if (!thing.event_seq || thing.event_seq > at || !seqs.length) continue;
      const shownIn = (rows && model.callOfResult.get(thing.event_seq)?.seq) ?? thing.event_seq;
      const row = model.seq[indexOf(position(shownIn))]!;
      found.set(row, [thing, ...(found.get(row) ?? [])]);
    }
    return found;
  }, [model, model.noted, model.shape, view, at]);
  /*
   * The row that is to be in the middle, or `top` below the upper edge, until the user scrolls. The rows above it grow
   * when their events arrive, so its place is corrected after each drawing.
   */
  const target = useRef<{ seq: number; top: number | null; until: number } | null>(null);
  /*
   * Whether the end is followed: from when it was reached until the user scrolls or another place is shown. Rows that
   * grow move the end away, which the user did not ask for.
   */
  const following = useRef(false);
  const settled = useRef(0); /* until when the first rows move the end of a session that is not active */
  const free = () => {
    target.current = null;
    following.current = false;
  };
  const aim = () => {
    const [goal, box] = [target.current, scroller.current];
    if (box && following.current && at === Infinity && (model.isLive || performance.now() < settled.current))
      box.scrollTop = box.scrollHeight;
    if (!goal || !box) return;
    if (performance.now() > goal.until) return void (target.current = null);
    const row = box.querySelector<HTMLElement>(`[data-seq="${goal.seq}"]`);
    if (!row) {
      box.scrollTop = list.getOffsetForIndex(position(goal.seq), 'center')?.[0] ?? 0;
      return;
    }
    /* A message without content is not shown: the row before it is. */
    if (!row.offsetHeight && position(goal.seq) > 0 && model.event(goal.seq)) {
      goal.seq = model.seq[indexOf(position(goal.seq - 1))]!;
      if (goal.top === null) setFlash(goal.seq);
      return;
    }
    const top = goal.top ?? Math.max(8, (box.clientHeight - row.offsetHeight) / 2);
    const off = row.getBoundingClientRect().top - box.getBoundingClientRect().top - top;
    if (Math.abs(off) > 2) box.scrollTop += off;
  };
  useLayoutEffect(aim);
  handle.current = {
    list,
    see(seq) {
      const shownSeq = model.seq[indexOf(position(seq))] ?? seq;
      if (rows?.runs.has(shownSeq)) opened.set(`${shownSeq}run`, true);
      free();
      target.current = { seq: shownSeq, top: null, until: performance.now() + AIM_MS };
      setFlash(shownSeq);
      aim();
    },
    scroll(by) {
      free();
      list.scrollBy(by);
    },
    end() {
      free();
      following.current = true;
      settled.current = performance.now() + AIM_MS;
      list.scrollToEnd();
      aim();
    },
  };

  /* The place and the open rows, for Back and a reload. */
  const rested = (keeps = true) => {
    clearTimeout(rest.current);
    const address = location.href; /* a link that is followed makes an entry of its own */
    rest.current = setTimeout(() => {
      const box = scroller.current;
      if (!box) return;
      const edge = box.getBoundingClientRect().top;
      const row = [...box.querySelectorAll<HTMLElement>('.item')]
        .filter((item) => item.getBoundingClientRect().bottom > edge + 1)
        .sort((a, b) => Number(a.dataset.index) - Number(b.dataset.index))[0];
      if (!row) return;
      const goal = target.current; /* not reached while its rows are on their way */
      const aims = goal !== null && goal.top !== null;
      const view: ConversationView = {
        seq: aims ? goal.seq : Number(row.dataset.seq),
        top: aims ? goal.top! : Math.round(row.getBoundingClientRect().top - edge),
        opened: [...opened].slice(-MOST_OPENED),
      };
      if (keeps && location.href === address) keepView(view);
      read(view.seq);
    }, REST_MS);
  };
  useEffect(() => () => clearTimeout(rest.current), []);

  /* A past moment is shown at its last event, an active session is followed from the start. */
  const atEnd = useRef(true);
  const restored = useRef(false);
  useEffect(() => {
    if (!model.ready) return;
    const first = !restored.current;
    restored.current = true;
    if (first && before.seq) restore(before);
    else if (at !== Infinity) {
      free();
      list.scrollToIndex(shown - 1, { align: 'end' });
    } else if (first && model.isLive && see === null) handle.current?.end();
    rested(false);
  }, [at, model.ready]);
  useEffect(() => {
    if (see === null || !model.ready) return;
    const kept = keptView<ConversationView>();
    if (kept.seq) restore(kept);
    else handle.current?.see(see);
  }, [see, model.ready, view]);

  function restore({ seq, top = 0 }: Partial<ConversationView>): void {
    free();
    target.current = { seq: seq!, top, until: performance.now() + AIM_MS };
    aim();
  }

  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const print = (on: boolean) => () => setPrinting(on && shown <= MOST_PRINTED);
    const [begin, end] = [print(true), print(false)];
    /* The browser prints what is in the document, so all events are fetched first. */
    const key = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== 'p' || !(e.ctrlKey || e.metaKey) || e.shiftKey || shown > MOST_PRINTED) return;
      e.preventDefault();
      void model.fetchAll().then(() => window.print());
    };
    addEventListener('beforeprint', begin);
    addEventListener('afterprint', end);
    addEventListener('keydown', key);
    return () => {
      removeEventListener('beforeprint', begin);
      removeEventListener('afterprint', end);
      removeEventListener('keydown', key);
    };
  }, [model, shown]);

  const lastShown = useRef(shown);
  useEffect(() => {
    if (at !== Infinity || shown <= lastShown.current || atEnd.current) setBehind(0);
    else setBehind((n) => n + shown - lastShown.current);
    lastShown.current = shown;
  }, [shown, at]);

  const firstNew = seen > 0 ? (model.itemSeq[upTo(model.itemSeq, seen)] ?? 0) : 0;

  const last = useRef({ top: 0, height: 0 });
  const scrolled = (e: { currentTarget: HTMLElement }) => {
    const { scrollHeight, scrollTop, clientHeight } = e.currentTarget;
    const rises = scrollTop < last.current.top;
    atEnd.current = scrollHeight - scrollTop - clientHeight < 60;
    if (atEnd.current) setBehind(0);
    if (rises && scrollHeight === last.current.height) following.current = false; /* by a key or the scroll bar */
    else if (atEnd.current && !rises) following.current = target.current === null;
    last.current = { top: scrollTop, height: scrollHeight };
    rested();
  };

  const printed = (_: unknown, index: number) => ({ key: model.seq[indexOf(index)] ?? index, index, start: 0 });
  return (
    <div class={printing ? 'conversation printing' : 'conversation'}>
      {!printing && (
        <p class="print-only">
          Only the rows that were on the screen are printed. Share saves all of them as a file.
        </p>
      )}
      <div
        class="scroller"
        ref={scroller}
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Conversation"
        onScroll={scrolled}
        onWheel={free}
        onTouchMove={free}
        onPointerDown={free}
      >
        <div class="inner" style={{ height: `${list.getTotalSize()}px` }}>
          {(printing ? Array.from({ length: shown }, printed) : list.getVirtualItems()).map((item) => {
            const index = indexOf(item.index);
            if (index === undefined) return null;
            const seq = model.seq[index]!;
            const turn = at === Infinity ? model.turnAt(seq) : undefined;
            const taken = takenBack(turn);
            const run = rows?.runs.get(seq);
            const day = model.session.time_from ? '' : format.day(model.time[index]!);
            const dayBefore = item.index > 0 ? model.time[indexOf(item.index - 1)]! : model.time[index]!;
            return (
              <div
                key={item.key}
                ref={list.measureElement}
                data-index={item.index}
                data-seq={seq}
                class={`item ${model.kinds[model.type[index]!]} ${flash === seq ? 'flash' : ''} ${taken && 'taken'}`}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {day && day !== format.day(dayBefore) && <h2 class="day">{day}</h2>}
                {seq === firstNew && <p class="new-from">new since you were here</p>}
                {taken && seq === model.itemSeq[upTo(model.itemSeq, turn!.seq - 1)] && (
                  <p class="taken-from">
                    Turn {turn!.number} · {taken}
                  </p>
                )}
                <Gutter model={model} index={index} choose={choose} />
                <Actions model={model} index={index} choose={choose} />
                <div class="item-body">
                  {run ? (
                    <Run run={run} model={model} at={at} opened={opened} redraw={redraw} />
                  ) : (
                    <Item model={model} index={index} at={at} opened={opened} redraw={redraw} all={all} />
                  )}
                  {marks.has(seq) && <Marks things={marks.get(seq)!} choose={choose} />}
                </div>
              </div>
            );
          })}
        </div>
      </div>
      {shown === 0 && model.seq.length > 0 && (
        <Empty title={at === Infinity ? 'This session has no messages' : 'No messages yet'}>
          <p>“All events” shows the {format.plural(model.seq.length, 'event')} that it has.</p>
        </Empty>
      )}
      {behind > 0 && (
        <button
          class="to-end"
          onClick={() => {
            free();
            list.scrollToEnd();
          }}
        >
          ↓ {format.count(behind)} new
        </button>
      )}
    </div>
  );
}
