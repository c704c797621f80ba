/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's data of one session: an outline of all events (columns of numbers, a few bytes per event), tool calls,
 * turns, token usage, and the events that were displayed.
 *
 * (1) Everything is drawn for a moment `at`, without later events. The outline is in the order of seq, so a moment is a
 *     prefix of it.
 * (2) Bodies of events are fetched in pages when they are displayed; the least recently displayed pages are dropped.
 * (3) Live events are added one after the other; after a gap, all missing events are fetched.
 */
import { objects, type Event, type Session, type Source, type Table } from './api';

export interface Call {
  seq: number;
  result: number; /* seq of the result, or Infinity */
  id: string;
  tool: string;
  failed: boolean;
  began: number;
  ended: number; /* ms since 1970; NaN if unknown */
  took: number | null;
}

export interface Turn {
  seq: number;
  id: string;
  number: number;
  status: string;
  began: number;
  ended: number;
  end: number; /* seq of the event that ended it, or Infinity */
  prompt: string | null; /* beginning of the user's text */
  answer: number; /* seq of the model's first answer, or Infinity */
}

/* The totals of a sub-agent or a fork with all its descendants, and their times. */
interface Piece {
  time: number;
  events: number;
  tokens: number;
  cost: number | null;
}

/* The totals of a sub-agent or fork at a moment. */
export type Numbers = Omit<Piece, 'time'>;

export interface Usage {
  seq: number;
  time: number;
  model: string;
  input: number;
  output: number;
  cached: number;
  written: number;
  cost: number | null; /* USD */
}

export type Kind = 'message' | 'call' | 'result' | 'note' | 'end' | 'other' | 'hidden';

const KINDS: Record<string, Kind> = {
  'message.added': 'message',
  'tool.called': 'call',
  tool_call: 'call',
  'tool.returned': 'result',
  'tool.failed': 'result',
  tool_result: 'result',
  tool_error: 'result',
  'turn.completed': 'end',
  'turn.failed': 'end',
  'turn.cancelled': 'end',
  'provider.failed': 'note',
  provider_error: 'note',
  'checkpoint.noted': 'note',
  'session.paused': 'note',
  'session.resumed': 'note',
  'session.ended': 'note',
  'session.status_changed': 'note',
  'source.deleted': 'note',
  'source.shrank': 'note',
  'source.replaced': 'note',
  'source.returned': 'note',
  'annal.gap': 'note',
  'artifact.stored': 'note',
  'import.record': 'hidden',
  'import.unreadable': 'hidden',
  'agent.turn.usage': 'hidden',
  'session.created': 'hidden',
  'session.updated': 'hidden',
  'turn.started': 'hidden',
  'turn.streaming': 'hidden',
  'turn.rolled_back': 'hidden',
  'turn.abandoned': 'hidden',
  'turn.restored': 'hidden',
  'price.set': 'hidden',
  'response.stored': 'hidden',
  'response.accessed': 'hidden',
  'provider.requested': 'hidden',
  'provider.responded': 'hidden',
};

/* Words for turns that were taken back, by status. */
const TAKEN: Record<string, string> = { rolled_back: 'rolled back', abandoned: 'abandoned' };

export const takenBack = (turn: Turn | undefined): string => TAKEN[turn?.status ?? ''] ?? '';

export const kindOf = (type: string): Kind => KINDS[type] ?? 'other';

export const FRESH_MS = 90_000;

const PAGE = 100; /* events */
const PAGES_KEPT = 120;
const RETRY_MS = 3000; /* after a page could not be fetched */

/* Between two events the axis of the timeline advances by the elapsed time, but at most by a pause. */
const PAUSE_MS = 30_000;
const STEP_MS = 25;

export const time = (text: unknown): number => (typeof text === 'string' ? Date.parse(text) : NaN);

/* Count the items of `sorted` that are not above `value`. */
export function upTo(sorted: ArrayLike<number>, value: number, length = sorted.length): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Model {
  types: string[] = [];
  kinds: Kind[] = [];
  seq: number[] = [];
  type: number[] = [];
  time: number[] = [];
  bytes: number[] = [];
  axis: number[] = [];
  /* Indexes of the events that a conversation shows. */
  items: number[] = [];
  itemSeq: number[] = [];

  calls: Call[] = [];
  callAt = new Map<number, Call>();
  callOfResult = new Map<number, Call>();
  turns: Turn[] = [];
  usage: Usage[] = [];
  /* Sums up to and including each use. */
  tokens: number[] = [];
  cost: (number | null)[] = [];
  usageSeq: number[] = [];
  children: Session[] = [];
  ready = false;
  failed: string | null = null;
  version = 0;
  /* Counts changes of the outline, calls and turns; fetched bodies do not count. */
  shape = 0;

  private typeIndex = new Map<string, number>();
  private open = new Map<string, Call>();
  private turnOf = new Map<string, Turn>();
  private events = new Map<number, Map<number, Event>>();
  private asked = new Set<number>();
  private pieces = new Map<string, Piece[] | null>(); /* null while requested */
  private listeners = new Set<() => void>();
  private drawn = false;
  private waiting: Event[] = [];
  private loading: Promise<void> | null = null;

  constructor(
    readonly source: Source,
    readonly id: string,
    public session: Session,
  ) {}

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /* At most once per frame. */
  changed(): void {
    if (this.drawn) return;
    this.drawn = true;
    const tell = () => {
      this.drawn = false;
      this.version++;
      for (const listener of this.listeners) listener();
    };
    if (document.hidden) setTimeout(tell, 100);
    else requestAnimationFrame(tell);
  }

  /* An event arrived recently; this is unknown for a log without times. */
  get isLive(): boolean {
    return this.session.time_from === null && Date.now() - time(this.session.last_activity_at) < FRESH_MS;
  }

  get last(): number {
    return this.seq.at(-1) ?? 0;
  }

  /* Fetch everything after the known events. One fetch at a time. */
  load(): Promise<void> {
    this.loading ??= this.loadRest().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private async loadRest(): Promise<void> {
    const from = this.last + 1;
    const first = this.seq.length === 0;
    if (first) this.event(1); /* the beginning is displayed first */
    try {
      const [outline, tools] = await Promise.all([
        this.source.outline(this.id, from),
        this.source.tools(this.id, from),
      ]);
      this.addTools(tools);
      const types = outline.types.map((name) => this.typeNumber(name));
      for (let i = 0; i < outline.seq.length; i++) {
        if (outline.seq[i]! > this.last)
          this.addOutline(outline.seq[i]!, types[outline.type[i]!]!, outline.time[i]!, outline.bytes[i] ?? 200);
      }
      /* The conversation can be read now; the rest may take longer. */
      this.ready = true;
      this.changed();
      if (first) this.children = await this.source.children(this.id).catch(() => []);
      this.setTurns(await this.source.turns(this.id));
      this.changed();
      for (const row of objects(await this.source.usage(this.id, (this.usageSeq.at(-1) ?? 0) + 1))) this.addUsage(row);
      this.failed = null;
    } catch (e) {
      this.failed = (e as Error).message;
    }
    this.ready = true;
    const waiting = this.waiting.sort((a, b) => a.seq - b.seq);
    this.waiting = [];
    for (const event of waiting) if (event.seq === this.last + 1) this.take(event);
    this.changed();
  }

  private typeNumber(name: string): number {
    let n = this.typeIndex.get(name);
    if (n === undefined) {
      n = this.types.length;
      this.types.push(name);
      this.kinds.push(kindOf(name));
      this.typeIndex.set(name, n);
    }
    return n;
  }

  private addOutline(seq: number, type: number, at: number, bytes: number): void {
    const n = this.seq.length;
    const before = n ? this.time[n - 1]! : at;
    const passed = Number.isFinite(at - before) ? Math.min(Math.max(at - before, STEP_MS), PAUSE_MS) : STEP_MS;
    this.shape++;
    this.axis.push(n ? this.axis[n - 1]! + passed : 0);
    this.seq.push(seq);
    this.type.push(type);
    this.time.push(at);
    this.bytes.push(bytes);
    const kind = this.kinds[type]!;
    if (kind === 'hidden' || (kind === 'result' && this.callOfResult.has(seq))) return;
    this.items.push(n);
    this.itemSeq.push(seq);
  }

  private addTools(table: Table): void {
    for (const row of objects<any>(table)) {
      const old = this.callAt.get(row.seq);
      const call: Call = old ?? {
        seq: row.seq,
        result: Infinity,
        id: row.call_id,
        tool: row.tool ?? '',
        failed: false,
        began: NaN,
        ended: NaN,
        took: null,
      };
      call.began = time(row.called_at);
      call.ended = time(row.returned_at);
      call.result = row.result_seq ?? (row.status === 'called' ? Infinity : row.seq);
      call.failed = row.status === 'failed';
      call.took = row.duration_ms ?? (call.ended >= call.began ? call.ended - call.began : null);
      if (!old) this.addCall(call);
      if (call.result !== Infinity && call.result !== call.seq) this.callOfResult.set(call.result, call);
    }
    this.calls.sort((a, b) => a.seq - b.seq);
    this.shape++;
  }

  private addCall(call: Call): void {
    this.calls.push(call);
    this.callAt.set(call.seq, call);
    this.open.set(call.id, call);
  }

  private setTurns(table: Table): void {
    this.turns = objects<any>(table)
      .filter((row) => row.seq != null)
      .map((row) => ({
        seq: row.seq,
        id: row.turn_id ?? '',
        number: row.sequence,
        status: row.status,
        began: time(row.created_at),
        ended: time(row.completed_at),
        end: Infinity,
        prompt: row.prompt ?? null,
        answer: Infinity,
      }))
      .sort((a, b) => a.seq - b.seq);
    this.turnOf = new Map(this.turns.map((turn) => [turn.id, turn]));
    for (const turn of this.turns) {
      turn.end = this.endOf(turn);
      if (turn.end === turn.seq + 1) turn.seq = this.began(turn);
    }
    this.turns.sort((a, b) => a.seq - b.seq);
    for (const turn of this.turns) turn.answer = this.firstAnswer(turn.seq);
    this.shape++;
  }

  /* Find the place, by time, of a turn whose event was appended after its end, as in traces. */
  private began(turn: Turn): number {
    let i = this.index(turn.seq);
    while (i > 0 && this.time[i - 1]! >= turn.began && this.typeAt(i - 1) !== 'turn.completed') i--;
    return this.seq[i]!;
  }

  /* The event that ended the turn has the time. */
  private endOf(turn: Turn): number {
    if (Number.isNaN(turn.ended)) return Infinity;
    for (let i = upTo(this.seq, turn.seq); i < this.seq.length; i++)
      if (this.kinds[this.type[i]!] === 'end' && this.time[i] === turn.ended) return this.seq[i]!;
    return Infinity;
  }

  /* The next message or call after the prompt. */
  private firstAnswer(seq: number): number {
    let messages = 0;
    for (let i = upTo(this.seq, seq); i < this.seq.length && i < upTo(this.seq, seq) + 200; i++) {
      const kind = this.kinds[this.type[i]!];
      if (this.types[this.type[i]!] === 'turn.started') break;
      if (kind === 'call' || (kind === 'message' && ++messages === 2)) return this.seq[i]!;
    }
    return Infinity;
  }

  private addUsage(row: Record<string, unknown>): void {
    const n = (value: unknown): number => Number(value) || 0;
    const use: Usage = {
      seq: n(row.seq),
      time: typeof row.time === 'number' ? row.time : time(row.time),
      model: String(row.model || this.session.model || ''),
      input: n(row.input_tokens),
      output: n(row.output_tokens),
      cached: n(row.cached_input_tokens),
      written: n(row.cache_write_tokens),
      cost: row.cost_microusd == null ? null : n(row.cost_microusd) / 1e6,
    };
    if (use.seq <= (this.usageSeq.at(-1) ?? 0)) return;
    const before = this.cost.at(-1) ?? null;
    this.usage.push(use);
    this.usageSeq.push(use.seq);
    this.tokens.push((this.tokens.at(-1) ?? 0) + use.input + use.output);
    this.cost.push(use.cost === null ? before : (before ?? 0) + use.cost);
  }

  /* Add a live event. */
  append(event: Event): void {
    if (event.seq <= this.last) return;
    /* An event that is too large for the stream arrives without its data. */
    if (!this.ready || this.loading || event.seq !== this.last + 1 || event.data === null) {
      if (event.data !== null) this.waiting.push(event);
      if (this.ready && !this.loading) void this.load();
      return;
    }
    this.take(event);
  }

  private take(event: Event): void {
    const at = time(event.timestamp);
    const data = event.data ?? {};
    const kind = kindOf(event.type);
    if (kind === 'call')
      this.addCall({
        seq: event.seq,
        result: Infinity,
        id: String(data.call_id ?? `#${event.seq}`),
        tool: String(data.tool ?? ''),
        failed: false,
        began: at,
        ended: NaN,
        took: null,
      });
    const call = kind === 'result' ? this.open.get(String(data.call_id)) : undefined;
    if (call && call.result === Infinity) {
      call.result = event.seq;
      call.failed = data.success === false || event.type === 'tool.failed';
      call.ended = at;
      call.took = data.duration_ms ?? (at >= call.began ? at - call.began : null);
      this.callOfResult.set(event.seq, call);
    }
    if (event.type === 'turn.started') {
      const turn: Turn = {
        seq: event.seq,
        id: String(data.turn_id ?? ''),
        number: data.sequence ?? this.turns.length + 1,
        status: 'started',
        began: at,
        ended: NaN,
        end: Infinity,
        prompt: null,
        answer: Infinity,
      };
      this.turns.push(turn);
      this.turnOf.set(turn.id, turn);
    }
    if (kind === 'end') {
      const turn = this.turnOf.get(String(data.turn_id ?? '')) ?? this.turns.at(-1);
      if (turn) {
        [turn.ended, turn.end] = [at, event.seq];
        if (!takenBack(turn)) turn.status = event.type.slice(5);
      }
    }
    if (/^turn\.(rolled_back|abandoned|restored)$/.test(event.type)) {
      const turn = this.turnOf.get(String(data.turn_id ?? ''));
      if (turn) turn.status = event.type.slice(5);
    }
    if (data.input_tokens !== undefined || data.output_tokens !== undefined) {
      const cost = data.cost_microusd ?? (data.cost_usd == null ? null : data.cost_usd * 1e6);
      this.addUsage({ ...data, seq: event.seq, time: at, cost_microusd: cost });
    }
    this.addOutline(event.seq, this.typeNumber(event.type), at, JSON.stringify(data).length);
    const turn = this.turns.at(-1);
    if (turn && turn.answer === Infinity) turn.answer = this.firstAnswer(turn.seq);
    this.keep(event);
    this.session = {
      ...this.session,
      events: Math.max(this.session.events, this.seq.length),
      last_activity_at: event.timestamp,
    };
    this.changed();
  }

  index(seq: number): number {
    return upTo(this.seq, seq) - 1;
  }

  typeAt(index: number): string {
    return this.types[this.type[index]!] ?? '';
  }

  timeOf(seq: number): number {
    return this.time[Math.max(0, this.index(seq))] ?? NaN;
  }

  /* The turn that was open, or that ended last. */
  turnAt(seq: number): Turn | undefined {
    let found: Turn | undefined;
    for (const turn of this.turns) {
      if (turn.seq > seq) break;
      found = turn;
    }
    return found;
  }

  known(call: Call, at: number): boolean {
    return call.result !== Infinity && call.result <= at;
  }

  /* A call that was still open when a later turn began will never have a result. */
  lost(call: Call, at: number): boolean {
    return call.result === Infinity && this.turns.some((turn) => turn.seq > call.seq && turn.seq <= at);
  }

  used(seq: number): { tokens: number; cost: number | null } {
    const n = upTo(this.usageSeq, seq);
    return n ? { tokens: this.tokens[n - 1]!, cost: this.cost[n - 1]! } : { tokens: 0, cost: null };
  }

  /* The tokens of the n-th turn up to a moment. */
  usedIn(n: number, at: number): number {
    const next = this.turns[n + 1]?.seq ?? Infinity;
    return this.used(Math.min(at, next - 1)).tokens - this.used(this.turns[n]!.seq).tokens;
  }

  /* The totals of a child at a moment; undefined while they are requested. */
  numbersOf(child: Session, at: number): Numbers | undefined {
    const { tree } = child;
    const when = at === Infinity ? Infinity : this.timeOf(at);
    const last = Math.max(time(child.last_activity_at), tree ? time(tree.last_at) : 0);
    if (when >= last || child.time_from !== null)
      return {
        events: tree?.events ?? child.events,
        tokens: tree?.total_tokens ?? child.total_tokens,
        cost: tree ? tree.cost_usd : (child.computed_cost_usd ?? child.total_cost_usd),
      };
    const pieces = this.pieces.get(child.session_id);
    if (pieces === undefined) {
      this.pieces.set(child.session_id, null);
      this.piecesOf(child).then(
        (found) => {
          this.pieces.set(child.session_id, found);
          this.changed();
        },
        () => setTimeout(() => this.pieces.delete(child.session_id), RETRY_MS),
      );
    }
    if (!pieces) return undefined;
    const sum: Numbers = { events: 0, tokens: 0, cost: null };
    for (const piece of pieces) {
      if (piece.time > when) continue;
      sum.events += piece.events;
      sum.tokens += piece.tokens;
      if (piece.cost !== null) sum.cost = (sum.cost ?? 0) + piece.cost;
    }
    return sum;
  }

  private async piecesOf({ session_id, fork_seq }: Session): Promise<Piece[]> {
    const from = (fork_seq ?? 0) + 1;
    const [outline, usage, children] = await Promise.all([
      this.source.outline(session_id, from),
      this.source.usage(session_id, from),
      this.source.children(session_id),
    ]);
    const below = await Promise.all(children.map((child) => this.piecesOf(child)));
    const n = (value: unknown): number => Number(value) || 0;
    return [
      ...outline.time.map((at) => ({ time: at, events: 1, tokens: 0, cost: null })),
      ...objects<any>(usage).map((row) => ({
        time: time(row.time),
        events: 0,
        tokens: n(row.input_tokens) + n(row.output_tokens),
        cost: row.cost_microusd == null ? null : n(row.cost_microusd) / 1e6,
      })),
      ...below.flat(),
    ];
  }

  private keep(event: Event): void {
    const page = Math.floor((event.seq - 1) / PAGE);
    let events = this.events.get(page);
    if (!events) this.events.set(page, (events = new Map()));
    events.set(event.seq, event);
  }

  /* Return the event if it was fetched; otherwise fetch it and notify the listeners. */
  event(seq: number): Event | undefined {
    const page = Math.floor((seq - 1) / PAGE);
    const events = this.events.get(page);
    const event = events?.get(seq);
    if (event) {
      this.events.delete(page); /* to the end: displayed last */
      this.events.set(page, events!);
      return event;
    }
    if (!this.asked.has(page)) {
      this.asked.add(page);
      void this.fetchPage(page);
    }
    return undefined;
  }

  private async fetchPage(page: number): Promise<void> {
    try {
      for (const event of await this.source.events(this.id, page * PAGE + 1, (page + 1) * PAGE)) this.keep(event);
      for (const old of this.events.keys()) {
        if (this.events.size <= PAGES_KEPT) break;
        if (old !== page) this.events.delete(old);
      }
      this.asked.delete(page);
    } catch (e) {
      this.failed = (e as Error).message;
      setTimeout(() => this.asked.delete(page), RETRY_MS);
    }
    this.changed();
  }
}
