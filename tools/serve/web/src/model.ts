/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page's data of one session: an outline of all events (columns of numbers, a few bytes per event), tool calls,
 * turns, token usage, and the events that were displayed.
 *
 * (1) Everything is drawn for a moment `at`, without later events. The outline is in the order of seq, so a moment is a
 *     prefix of it.
 * (2) Bodies of events are fetched in pages when they are displayed; the least recently displayed pages are dropped.
 * (3) What is fetched is cut at one seq, the last of the outline, and live events are added from exactly there, one
 *     after the other; after a gap, all missing events are fetched. So an event is counted once, whatever the order in
 *     which answers and events arrive.
 * (4) A call that began a sub-agent is linked to it by the id in the call's result, else by the prompt that equals the
 *     first message of the child. If neither names one child, the call has no link.
 */
import { objects, type Event, type Noted, type Session, type Source, type Table } from './api';
import { blocksOf, splitContext } from './message';

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
  byProgram: boolean; /* a program wrote its message, as a notice to the agent; the user said nothing */
  answer: number; /* seq of the model's first answer, or Infinity */
}

/* The totals of a sub-agent or a fork with all its descendants, and their times. */
interface Piece {
  time: number;
  events: number;
  tokens: number;
  cost: number | null;
  computed: boolean; /* whether the cost was computed from list prices */
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
  computed: boolean; /* whether the cost was computed from list prices */
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

const FAILING = new Set(['turn.failed', 'provider.failed', 'provider_error', 'import.unreadable']);

/* Words for turns that were taken back, by status. */
const TAKEN: Record<string, string> = { rolled_back: 'rolled back', abandoned: 'abandoned' };

export const takenBack = (turn: Turn | undefined): string => TAKEN[turn?.status ?? ''] ?? '';

export const kindOf = (type: string): Kind => KINDS[type] ?? 'other';

export const FRESH_MS = 90_000;

const PAGE = 100; /* events */
const PAGES_KEPT = 120;
const RETRY_MS = 3000; /* after a page could not be fetched */
const AGAIN_MS = 1000; /* after an answer that lacked a received event */

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

/* In the order of their start; of those that began in the same moment, in the order of their calls, if these are known. */
export function inOrder(list: Session[], calls?: Map<string, number>): Session[] {
  const call = (s: Session): number => calls?.get(s.session_id) ?? Number.MAX_SAFE_INTEGER;
  return [...list].sort(
    (a, b) => time(a.created_at) - time(b.created_at) || call(a) - call(b) || (a.session_id < b.session_id ? -1 : 1),
  );
}

/* Whether some of a session's cost was computed from list prices, with all below it. */
export const isComputed = (s: Session): boolean => !!(s.tree ? s.tree.computed_cost_usd : s.computed_cost_usd);

const promptIn = (data: any): string | null => {
  const content = data.said ?? data.content;
  const text = typeof content === 'string' ? content : blocksOf(content).find((block) => block.kind === 'text')?.text;
  return text?.trim().replace(/\s+/g, ' ').slice(0, 160) || null;
};

/* ---- Which sub-agent a call began (rule 4) ---- */

export const isAgentTool = (tool: string): boolean =>
  /^(task|agent|(run|spawn|dispatch|delegate_to)?_?(sub)?_?agent)$/i.test(tool);

const ID_NAME = /^(agent|session|task|thread|child_?session)_?id$/i;
const ID_TEXT = /\b(?:agent|session|task)_?id["'*]*\s*[:=]\s*["'`]?([\w.-]+)/gi;
const TEXT_READ = 4000; /* at both ends of an output */
const DEPTH = 5;

const parsed = (text: string): any => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/* The ids that members of a value name, and those in its texts. */
function idsIn(value: any, names: Set<string>, texts: Set<string>, depth = 0): void {
  const json = typeof value === 'string' && /^\s*\{/.test(value) ? parsed(value) : undefined;
  if (json) {
    idsIn(json, names, texts, depth + 1);
  } else if (typeof value === 'string') {
    const part = value.length > 2 * TEXT_READ ? `${value.slice(0, TEXT_READ)}\n${value.slice(-TEXT_READ)}` : value;
    for (const found of part.matchAll(ID_TEXT)) texts.add(found[1]!.replace(/\.$/, ''));
  } else if (typeof value === 'object' && value !== null && depth < DEPTH) {
    for (const [name, item] of Object.entries(value)) {
      if (typeof item === 'string' && ID_NAME.test(name)) names.add(item);
      else idsIn(item, names, texts, depth + 1);
    }
  }
}

const isOf = (child: Session, id: string): boolean =>
  child.session_id === id || child.session_id.endsWith(`.agent-${id}`) || child.session_id.endsWith(`.${id}`);

const plainText = (text: string): string => text.replace(/\s+/g, ' ').trim();

const promptOfCall = (data: any): string => {
  const { input: given } = data ?? {};
  const input = typeof given === 'string' ? parsed(given) : given;
  const text = input?.prompt ?? input?.message ?? input?.task;
  return typeof text === 'string' ? plainText(text) : '';
};

const MOST_ORDERED = 100; /* calls */
const CHILD_EVENTS = 30; /* the first message is among these */

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
  computed: boolean[] = []; /* whether some of the cost was computed from list prices */
  usageSeq: number[] = [];
  children: Session[] = [];
  ready = false;
  counted = false; /* turns and usage were read, too */
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
  private wanted = 0; /* seq that a fetch must reach: the events before it were not all received */
  private loading: Promise<void> | null = null;
  private again = false;

  constructor(
    readonly source: Source,
    readonly id: string,
    public session: Session,
  ) {}

  /* Stars, names, tags and notes, the newest first; and the last change, for undo. */
  things: Noted[] = [];
  lastChange: Noted | null = null;
  noted = 0; /* how often it was read */
  private notedAsked = 0;

  async readNoted(): Promise<void> {
    const n = ++this.notedAsked;
    const { things, last } = await this.source.noted(this.id);
    if (n !== this.notedAsked) return;
    const all = (kind: Noted['kind']) => things.filter((thing) => thing.kind === kind);
    [this.things, this.lastChange] = [things, last];
    this.session = {
      ...this.session,
      name: all('name')[0]?.value ?? null,
      starred: all('star').some((thing) => !thing.event_seq) ? 1 : 0,
      tags: [...new Set(all('tag').map((thing) => thing.item))].sort().join(' '),
      notes: all('note').length,
    };
    this.noted++;
    this.changed();
  }

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

  /* Fetch everything after the known events. One fetch at a time; a later call asks again after it. */
  load(): Promise<void> {
    if (this.loading) {
      this.again = true;
      return this.loading;
    }
    this.loading = this.loadRest().finally(() => {
      this.loading = null;
      if (this.again) void this.load();
    });
    return this.loading;
  }

  private async loadRest(): Promise<void> {
    this.again = false;
    const from = this.last + 1;
    const first = this.seq.length === 0;
    if (first) {
      this.event(1); /* the beginning is displayed first */
      void this.readNoted().catch(() => {});
    }
    const ask = () => ({
      tools: this.source.tools(this.id, from),
      turns: this.source.turns(this.id),
      usage: this.source.usage(this.id, (this.usageSeq.at(-1) ?? 0) + 1),
    });
    const quiet = (asked: ReturnType<typeof ask>) => {
      for (const answer of Object.values(asked)) answer.catch(() => {}); /* reported where it is awaited */
      return asked;
    };
    try {
      /* These answers are as new as the session's row. If the outline is newer, they are asked for again after it. */
      let asked = first ? quiet(ask()) : null;
      const outline = await this.source.outline(this.id, from);
      const end = outline.seq.at(-1) ?? this.last;
      if (!asked || end > this.session.events) asked = quiet(ask());
      this.addTools(await asked.tools, end);
      const types = outline.types.map((name) => this.typeNumber(name));
      for (let i = 0; i < outline.seq.length; i++) {
        if (outline.seq[i]! > this.last)
          this.addOutline(outline.seq[i]!, types[outline.type[i]!]!, outline.time[i]!, outline.bytes[i] ?? 200);
      }
      /* The conversation can be read now; the rest may take longer. */
      this.ready = true;
      this.changed();
      if (first || this.children.length) await this.findChildren();
      this.setTurns(await asked.turns, end);
      this.changed();
      for (const row of objects<any>(await asked.usage)) if (row.seq <= end) this.addUsage(row);
      this.failed = null;
    } catch (e) {
      this.failed = (e as Error).message;
    }
    this.ready = true;
    this.counted = true;
    const waiting = this.waiting.sort((a, b) => a.seq - b.seq);
    this.waiting = [];
    for (const event of waiting) {
      if (event.seq === this.last + 1) this.take(event);
      else this.wanted = Math.max(this.wanted, event.seq);
    }
    this.changed();
    if (this.wanted > this.last) setTimeout(() => void this.load(), this.last >= from ? 0 : AGAIN_MS);
  }

  private async findChildren(): Promise<void> {
    const found = await this.source.children(this.id).catch(() => null);
    if (found) this.children = inOrder(found);
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

  private addTools(table: Table, end: number): void {
    for (const row of objects<any>(table)) {
      if (row.seq > end) continue;
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

  private setTurns(table: Table, end: number): void {
    this.turns = objects<any>(table)
      .filter((row) => row.seq != null && row.seq <= end)
      .map((row) => ({
        seq: row.seq,
        id: row.turn_id ?? '',
        number: row.sequence,
        status: row.status,
        began: time(row.created_at),
        ended: time(row.completed_at),
        end: Infinity,
        prompt: row.prompt ?? null,
        byProgram: row.prompt == null && !!row.by_program,
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
      computed: !!row.computed && row.cost_microusd != null,
    };
    if (use.seq <= (this.usageSeq.at(-1) ?? 0)) return;
    const before = this.cost.at(-1) ?? null;
    this.usage.push(use);
    this.usageSeq.push(use.seq);
    this.tokens.push((this.tokens.at(-1) ?? 0) + use.input + use.output);
    this.cost.push(use.cost === null ? before : (before ?? 0) + use.cost);
    this.computed.push(use.computed || (this.computed.at(-1) ?? false));
  }

  /* Add a live event. */
  append(event: Event): void {
    if (event.seq <= this.last) return;
    /* An event that is too large for the stream arrives without its data. */
    if (!this.ready || this.loading || event.seq !== this.last + 1 || event.data === null) {
      if (event.data !== null) this.waiting.push(event);
      else this.wanted = Math.max(this.wanted, event.seq);
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
      if (isAgentTool(call.tool)) void this.findChildren();
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
        byProgram: false,
        answer: Infinity,
      };
      this.turns.push(turn);
      this.turnOf.set(turn.id, turn);
    }
    if (kind === 'message' && data.role === 'user') {
      const turn = this.turns.at(-1);
      if (turn && turn.prompt === null) {
        turn.byProgram = data.said === '';
        if (!turn.byProgram) turn.prompt = promptIn(data);
      }
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
    if (event.type === 'import.recovered') this.recover(Number(data.lines) || 0);
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

  /* As the server's view `failures`: the newest lines that an import could not read were read by a later one. */
  private recover(lines: number): void {
    for (let i = this.seq.length - 1; i >= 0 && lines > 0; i--)
      if (this.typeAt(i) === 'import.unreadable') {
        this.type[i] = this.typeNumber('import.record');
        lines--;
      }
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

  used(seq: number): { tokens: number; cost: number | null; computed: boolean } {
    const n = upTo(this.usageSeq, seq);
    return n
      ? { tokens: this.tokens[n - 1]!, cost: this.cost[n - 1]!, computed: this.computed[n - 1]! }
      : { tokens: 0, cost: null, computed: false };
  }

  private failedSeqs: { shape: number; seqs: number[] } = { shape: -1, seqs: [] };

  /* The seqs of all failures: of calls, turns, requests to the provider, and lines that an importer could not read. */
  failures(): number[] {
    if (this.failedSeqs.shape !== this.shape) {
      const found = new Set<number>();
      for (const call of this.calls) if (call.failed && call.result !== Infinity) found.add(call.result);
      const failing = this.types.map((type) => FAILING.has(type));
      for (let i = 0; i < this.seq.length; i++) if (failing[this.type[i]!]) found.add(this.seq[i]!);
      this.failedSeqs = { shape: this.shape, seqs: [...found].sort((a, b) => a - b) };
    }
    return this.failedSeqs.seqs;
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
        cost: tree ? tree.cost_usd : child.total_cost_usd,
        computed: isComputed(child),
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
    const sum: Numbers = { events: 0, tokens: 0, cost: null, computed: false };
    for (const piece of pieces) {
      if (piece.time > when) continue;
      sum.events += piece.events;
      sum.tokens += piece.tokens;
      if (piece.cost !== null) sum.cost = (sum.cost ?? 0) + piece.cost;
      sum.computed ||= piece.computed;
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
      ...outline.time.map((at) => ({ time: at, events: 1, tokens: 0, cost: null, computed: false })),
      ...objects<any>(usage).map((row) => ({
        time: time(row.time),
        events: 0,
        tokens: n(row.input_tokens) + n(row.output_tokens),
        cost: row.cost_microusd == null ? null : n(row.cost_microusd) / 1e6,
        computed: !!row.computed && row.cost_microusd != null,
      })),
      ...below.flat(),
    ];
  }

  private said = new Map<string, string | null>(); /* first messages of children; null while requested */

  private firstMessage(id: string): string | null {
    if (!this.said.has(id)) {
      this.said.set(id, null);
      this.source.events(id, 1, CHILD_EVENTS).then(
        (events) => {
          const first = events.find((e) => e.type === 'message.added' && e.data?.role === 'user');
          const { said } = splitContext(blocksOf(first?.data?.content));
          this.said.set(id, plainText(said.map((block) => (block.kind === 'text' ? block.text : '')).join('\n')));
          this.changed();
        },
        () => setTimeout(() => this.said.delete(id), RETRY_MS),
      );
    }
    return this.said.get(id) ?? null;
  }

  /* Put children that began in the same moment in the order of their calls. Their events are fetched when it is called. */
  orderByCalls(): void {
    const times = this.children.map((child) => child.created_at);
    const calls = this.calls.filter((call) => isAgentTool(call.tool));
    if (new Set(times).size === times.length || calls.length > MOST_ORDERED) return;
    const found = new Map<string, number>();
    for (const call of calls) {
      const child = this.childOf(call, Infinity);
      if (child) found.set(child.session_id, call.seq);
    }
    const ordered = inOrder(this.children, found);
    if (ordered.every((child, i) => child === this.children[i])) return;
    this.children = ordered;
    this.changed();
  }

  /* The sub-agent that a call began; undefined if it is unknown, or while it is being looked for. */
  childOf(call: Call, at: number): Session | undefined {
    const children = this.children.filter((c) => !c.fork_session_id);
    const when = at === Infinity ? Infinity : this.timeOf(at);
    const child = isAgentTool(call.tool) && children.length ? this.childAmong(children, call, at) : undefined;
    return child && !(time(child.created_at) > when) ? child : undefined;
  }

  private childAmong(children: Session[], call: Call, at: number): Session | undefined {
    const event = this.event(call.seq);
    const known = this.known(call, at);
    const result = known ? this.event(call.result) : undefined;
    if (!event || (known && !result)) return undefined;
    const one = (ids: Iterable<string>): Session | undefined => {
      const list = [...ids];
      const found = children.filter((child) => list.some((id) => isOf(child, id)));
      return found.length === 1 ? found[0] : undefined;
    };
    const [names, texts] = [new Set<string>(), new Set<string>()];
    const { output, error, metadata, extra } = result?.data ?? {};
    idsIn([output, error, metadata, extra?.toolUseResult], names, texts);
    const by = one([call.id, ...names]) ?? (names.size ? undefined : one(texts));
    if (by || [...names].some((id) => id !== this.id)) return by;
    const prompt = promptOfCall(event.data);
    if (!prompt) return undefined;
    for (const other of this.calls) {
      if (other === call || !isAgentTool(other.tool)) continue;
      const data = this.event(other.seq)?.data;
      if (!data || promptOfCall(data) === prompt) return undefined;
    }
    const first = children.map((child) => this.firstMessage(child.session_id));
    if (first.includes(null)) return undefined;
    const found = children.filter((_, i) => first[i] === prompt);
    return found.length === 1 ? found[0] : undefined;
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

  /* Fetch all events, as far as they are kept. */
  async fetchAll(): Promise<void> {
    for (let page = 0; page <= (this.last - 1) / PAGE && page < PAGES_KEPT; page++)
      if ((this.events.get(page)?.size ?? 0) < Math.min(PAGE, this.last - page * PAGE)) await this.fetchPage(page);
  }

  /* The events of the first page, if they have arrived. */
  early(): Event[] {
    return [...(this.events.get(0)?.values() ?? [])];
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
