// SPDX-License-Identifier: Apache-2.0

/** What JSON can express. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/**
 * An integer of 64 bits: a Number where Number is exact (up to 2^53 - 1), else a BigInt. Times are one:
 * microseconds since 1970 are exact Numbers until the year 2255.
 */
export type Integer = number | bigint;

/** A moment: a Date, microseconds since 1970 in UTC, or ISO 8601. */
export type Time = Date | Integer | string;

/** When an append counts as done: "sync" survives a power cut, "batch" is durable within batchMs, "os" survives the end of the process. */
export type Level = 'sync' | 'batch' | 'os';
export type Format = 'json' | 'msgpack';

/** An error of the library; the base of all error classes of this package. */
declare class AnnalError extends globalThis.Error {
  constructor(message: string, osErrno?: number);
  /** The number of <annal/base.h>. */
  readonly status: number;
  /** ANNAL_CONFLICT and the like. */
  readonly code: string;
  /** The errno at the point of failure, or 0. */
  readonly osErrno: number;
}
export { AnnalError as Error };
/** An allocation failed. */
export class NoMemory extends AnnalError {}
/** The operating system refused; osErrno says why. */
export class IOFailed extends AnnalError {}
/** Bytes on disk are not what was written. */
export class Corrupt extends AnnalError {}
/** No such store, session, event or snapshot. */
export class NotFound extends AnnalError {}
/** The caller passed something that is not accepted. */
export class Invalid extends AnnalError {}
/** Another process holds it, and the time to wait is over. */
export class Busy extends AnnalError {}
/** Larger than a documented limit. */
export class LimitExceeded extends AnnalError {}
/** The store, session or tail is closed, or failed earlier. */
export class Closed extends AnnalError {}
/** expectedSeq or id does not match what exists. */
export class Conflict extends AnnalError {}
/** Storage failed during an append: open the store again to see what became of it. */
export class Unknown extends AnnalError {}
/** A network filesystem, or written by a newer version. */
export class Unsupported extends AnnalError {}
/** A query or a pack is wrong; the message is SQLite's. */
export class SQLError extends AnnalError {}
/** A guard of a pack refused; the message is the pack's sentence. */
export class Refused extends AnnalError {}
/** The disk, or the quota of the user, has no room; nothing was written. */
export class DiskFull extends IOFailed {}
/** The store was opened with readOnly, or its filesystem is read-only. */
export class ReadOnly extends IOFailed {}
/** The disk failed. */
export class DiskFailed extends IOFailed {}

/** One fact of a session. */
export class Event {
  private constructor();
  readonly session: string;
  /** 1, 2, 3, … without gaps. */
  readonly seq: number;
  /** UTC in microseconds since 1970. Order is by seq, never by time. */
  readonly tsUs: Integer;
  /** Dotted lower case. */
  readonly type: string;
  /** The caller's name for the event, or "". */
  readonly id: string;
  /** "session:seq" of the event that caused this event, or "". */
  readonly cause: string;
  /** The data as text, unchanged from the journal; integers above 2^53 are exact here. */
  readonly json: string;
  /** The data as a value. It is read once, and shared by all who ask. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly data: any;
  /** The data as a value of the caller's own, read again. */
  read(): unknown;
  readonly ts: Date;
  /** "session:seq", as a later event names it in `cause`. */
  readonly ref: string;
  /** What a tool returned, also if it was too large for the event and is an artifact. */
  output(member?: string): Promise<unknown>;
}

export interface AppendOptions {
  /** Makes the append exactly-once: the same again answers the first seq. */
  id?: string | null;
  /** The event that caused this event. */
  cause?: string | Event | null;
  /** For imports; else the event gets the time of its append. */
  ts?: Time | null;
  /** The seq of the last event that the caller knows, 0 for none; else Conflict. */
  expectedSeq?: Integer | null;
  level?: Level;
}

/** An event that has no seq yet. Data is anything that JSON can express, or bytes that are JSON already. */
export interface Draft {
  type: string;
  data?: unknown;
  id?: string | null;
  cause?: string | Event | null;
  ts?: Time | null;
}

/** Bytes of a journal that do not prove themselves. seq 0: the header. */
export interface Damage {
  session: string;
  seq: number;
  offset: number;
  length: number;
  what: string;
}

export interface SessionInfo {
  session: string;
  format: Format | null;
  createdUs: Integer;
  bytes: number;
  lastSeq: number;
  lastTsUs: Integer;
  torn: boolean;
  /** Of a fork: the session that has its history up to event forkSeq. */
  forkedFrom: string | null;
  forkSeq: number;
  /** The id of the journal file: a new id means that the session was deleted and began again. */
  file: string;
}

export class Artifact {
  private constructor();
  readonly session: string;
  readonly sha256: string;
  readonly bytes: number;
  /** What an event contains to name it. */
  ref(mediaType?: string): { sha256: string; bytes: number; media_type: string; path: string };
}

export interface EventsOptions {
  fromSeq?: Integer;
  toSeq?: Integer;
  /** Called for damage, after which reading continues; without it, damage is thrown as Corrupt. */
  onDamage?: (damage: Damage) => void;
  signal?: AbortSignal;
}

export interface TailOptions {
  types?: string | Iterable<string> | null;
  fromSeq?: Integer;
  since?: Time | null;
  last?: Integer;
  fromNow?: boolean;
  /** A named cursor: continue where commit() left it. */
  cursor?: string;
  signal?: AbortSignal;
}

/** One session of a store: append to it, and read it. */
export class Session {
  private constructor();
  readonly id: string;
  readonly store: Store;
  /** Append an event; resolves to its seq when it is durable, unless a level says otherwise. */
  append(type: string, data?: unknown, options?: AppendOptions): Promise<number>;
  /** Append events as one: all become durable, or none. Resolves to their seqs. */
  appendMany(
    drafts: Iterable<Draft | readonly [type: string, data?: unknown]>,
    options?: Pick<AppendOptions, 'expectedSeq' | 'level'>,
  ): Promise<number[]>;
  /** Resolve when everything that was appended to it in this process is durable, whatever its level. */
  sync(): Promise<void>;
  /** Rejects with NotFound if nothing was appended to it. */
  info(): Promise<SessionInfo>;
  exists(): Promise<boolean>;
  /** The seq of its last event, 0 without events. */
  lastSeq(): Promise<number>;
  /** Its events, read bit by bit, each proven by hash. */
  events(options?: EventsOptions): AsyncGenerator<Event, void, void>;
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, void>;
  /** Its events, the last one first. */
  reversed(): AsyncGenerator<Event, void, void>;
  /** The event in this place, from 0 on, or below 0 from the end. */
  at(index: number): Promise<Event | undefined>;
  /** Events by place, as Array.prototype.slice() counts. */
  slice(begin?: number, end?: number): Promise<Event[]>;
  /** Follow it live; it need not exist yet. */
  tail(options?: TailOptions): Tail;
  /** What of its journal does not prove itself. */
  verify(): Promise<Damage[]>;
  /** What a new process needs to continue it. */
  recovery(): Promise<Recovery>;
  /**
   * The recorded result of the step; if there is none, call the function and record its result, durably. The first step of
   * this object claims the session: steps of other owners are rejected with Conflict from then on.
   */
  step<T>(key: string, run: (signal?: AbortSignal) => T | Promise<T>, options?: StepOptions): Promise<T>;
  /** The tables of the core pack after event `at`, or at that time; default: now. */
  state(options?: { at?: Integer | Date | string }): Promise<State>;
  /** A new session with the history of this session up to event `at` (default: the last), by pointer. */
  fork(child: string, options?: { at?: Integer }): Promise<Session>;
  /** Copy its history into a new session, which is not a fork. */
  copy(to: string): Promise<Session>;
  /** Delete it: as Store.delete(). */
  delete(): Promise<string[]>;
  /** Store content beside the journals, durable when it resolves; then append an event with its ref(). */
  putArtifact(content: Uint8Array | string): Promise<Artifact>;
  /** The content of that hash, proven. */
  getArtifact(sha256: string, options?: { bytesMax?: Integer }): Promise<Buffer>;
}

/** Events that fit a filter: each iteration asks again, and reads the answer bit by bit. */
export class Query implements AsyncIterable<Event> {
  private constructor();
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, void>;
  /** How many events it would return, without reading them. */
  count(): Promise<number>;
}

export interface QueryOptions {
  sessions?: string | Iterable<string> | null;
  /** Types or patterns with *, ? and [abc]. */
  types?: string | Iterable<string> | null;
  /** since <= ts < until */
  since?: Time | null;
  until?: Time | null;
  fromSeq?: Integer;
  toSeq?: Integer;
  /** An SQL expression over session_id, seq, timestamp, type, id, cause and data. */
  where?: string;
  limit?: Integer;
  descending?: boolean;
  onDamage?: (damage: Damage) => void;
  signal?: AbortSignal;
}

export type Value = null | Integer | string | Buffer;
export type Param = null | undefined | boolean | Integer | string | Uint8Array;

/** The rows of a SELECT: an array of arrays that knows its columns. */
export class Rows extends Array<Value[]> {
  private constructor();
  readonly columns: readonly string[];
  /** The rows as objects by column name. */
  objects(): Record<string, Value>[];
}

/** A place where the words of a search were found. rank is bm25: the lower the better. */
export interface Hit {
  session: string;
  seq: number;
  tsUs: Integer;
  type: string;
  role: string;
  tool: string;
  snippet: string;
  rank: number;
}

export interface SearchOptions {
  /** An expression of FTS5 instead of words. */
  expression?: string;
  sessions?: string | Iterable<string> | null;
  types?: string | Iterable<string> | null;
  role?: string;
  tool?: string;
  since?: Time | null;
  until?: Time | null;
  /** Default: 20; 0: all. */
  limit?: Integer;
  newestFirst?: boolean;
}

/** A session that a question is about, with its best places. */
export interface Found {
  session: string;
  /** The time of its latest event with text. */
  lastUs: Integer;
  /** How many of its events contain a word of the question. */
  events: number;
  /** The higher, the better; scores of two searches do not compare. */
  score: number;
  why: string;
  places: Hit[];
}

export interface FindOptions extends Omit<SearchOptions, 'expression' | 'newestFirst'> {
  /** The largest number of places of a session; default: 3. */
  places?: Integer;
}

export interface StepOptions {
  /** How often a function that failed is called again; default: 0. */
  retries?: number;
  /** Milliseconds after which an attempt has failed. */
  timeout?: number;
}

/** A call of a tool without a result: it may have had its effect. */
export interface OpenCall {
  callId: string;
  tool: string;
  input: Json | undefined;
  /** Its tool.called. */
  seq: number;
  calledAt: string;
  turnId: string | null;
}

/** A turn that has not ended. */
export interface OpenTurn {
  turnId: string;
  seq: number;
  status: string;
  createdAt: string;
  sequence: number;
}

/** The end of a session: the last event, its status, and everything that was in progress, oldest first. */
export interface Recovery {
  session: string;
  /** The last event: expectedSeq of the next append. */
  seq: number;
  status: string;
  calls: OpenCall[];
  turns: OpenTurn[];
  /** The last message of the user, in the newest 20,480 events. */
  lastUser: Event | null;
  lastAssistant: Event | null;
}

/** A step failed, in this process or an earlier one; the message is the message of its error. */
export class StepFailed extends globalThis.Error {
  private constructor();
  /** The name of the error's class. */
  readonly kind: string;
}

/** One run of an agent: a session that begins with session.created and ends with session.ended. */
export class Run {
  private constructor();
  readonly name: string;
  readonly session: Session;
  readonly owner: string;
  /** What was in progress when an earlier process left this run; null if the run is new. */
  readonly recovery: Recovery | null;
  /** Whether another process has resumed the run, or deleted its session, as far as a step of this process knows. */
  readonly isLost: boolean;
  append(type: string, data?: unknown, options?: AppendOptions): Promise<number>;
  message(role: 'user' | 'assistant' | 'system', content: unknown, fields?: Record<string, unknown>): Promise<number>;
  /** Record a call of a tool; what the function returns is its output. */
  tool<T>(tool: string, input: unknown, run: () => T | Promise<T>, options?: { callId?: string }): Promise<T>;
  /** Continue a call of recovery.calls. */
  reopen<T>(call: OpenCall, run: () => T | Promise<T>): Promise<T>;
  /** Record used tokens, as an increment. */
  usage(tokens: { inputTokens?: number; outputTokens?: number; [field: string]: unknown }): Promise<number>;
  /** The recorded result of the step; if there is none, call the function and record its result, durably. */
  step<T>(key: string, run: (signal?: AbortSignal) => T | Promise<T>, options?: StepOptions): Promise<T>;
}

export interface RunOptions {
  /** An open store, or its directory. A run within a run uses the store of that one. */
  store?: Store | string;
  /** The id of the session; default: a new one. */
  session?: string;
  /** Continue a session that exists; default: false. */
  resume?: boolean;
}

/** Record one run of an agent; an error that leaves the function ends it as failed. Within another run it is a sub-agent. */
export function run<T>(name: string, options: RunOptions, use: (run: Run) => T | Promise<T>): Promise<T>;

/** The run that this code is in, also across await. */
export function currentRun(): Run | undefined;

/** The function, whose calls are recorded: as calls of a tool in the current run or, with a store, as runs of their own. */
export function record<A extends unknown[], T>(
  wrapped: (...input: A) => T | Promise<T>,
  options?: { name?: string; store?: Store | string },
): (...input: A) => Promise<T>;

export interface Pack {
  name: string;
  version: number;
  state: 'ready' | 'building' | 'failed';
  source: string | null;
  error: string | null;
  eventsApplied: number;
  eventsBehind: number;
}

/** The tables of a session after an event, as a database in memory. */
export class State implements AsyncDisposable, Disposable {
  private constructor();
  /** The last event that was applied, 0 before the first. */
  readonly seq: number;
  /** The rows of a SELECT over its tables; params are ?1, ?2, … */
  sql(sql: string, params?: readonly Param[]): Promise<Rows>;
  /** All its tables. */
  json(): Promise<Record<string, Record<string, Json>[]>>;
  /** 64 hex digits; two states are equal if it is. */
  hash(): Promise<string>;
  /** A JSON patch (RFC 6902) that turns the json() of this state into the json() of `after`. */
  diff(after: State): Promise<{ op: string; path: string; value?: Json }[]>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/** Events of sessions, live. One call of next() at a time; others wait for it. */
export class Tail implements AsyncIterable<Event>, AsyncDisposable, Disposable {
  private constructor();
  /** Resolves when it is open: from there on fromNow misses nothing. */
  readonly opened: Promise<void>;
  /** The next event; null if none is appended within `timeout` milliseconds. */
  next(options?: { timeout?: number; signal?: AbortSignal }): Promise<Event | null>;
  /** Waits for each event without end. After a break the tail is still open. */
  [Symbol.asyncIterator](): AsyncGenerator<Event, void, void>;
  /** Every event that it returned is dealt with: its named cursor continues after them. */
  commit(): Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
}

/** An open store; keep it: one object a directory and thread. Workers of a process share what is below. */
export class Store implements AsyncDisposable, Disposable {
  private constructor();
  /** The directory, as an absolute path. */
  readonly path: string;
  /** Make everything durable and let go of all sessions; waits for calls that are on their way. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
  [Symbol.dispose](): void;
  /** The session of that id (1 to 200 of A-Z a-z 0-9 . _ -). It exists once something is appended. */
  session(id: string): Session;
  /** The ids of all sessions, sorted. */
  sessions(): Promise<string[]>;
  /** Delete sessions; resolves to sentences about what remains for now. */
  delete(...sessions: string[]): Promise<string[]>;
  /** Resolve when every append that was submitted before is durable, whatever its level. */
  sync(): Promise<void>;
  query(options?: QueryOptions): Query;
  /** The rows of a SELECT over sessions.db, the tables of packs, and `events`; params are ?1, ?2, … */
  sql(sql: string, params?: readonly Param[], options?: { session?: string }): Promise<Rows>;
  /** Places in messages and in results of tools; the best first. */
  search(words?: string | Iterable<string>, options?: SearchOptions): Promise<Hit[]>;
  /** The sessions that a question is about, the best first; a session need not contain all words. */
  find(words: string | Iterable<string>, options?: FindOptions): Promise<Found[]>;
  /** Follow sessions (none: all) live: what exists first, then each event once it is durable. */
  tail(options?: TailOptions & { sessions?: string | Iterable<string> | null }): Tail;
  packs(): Promise<Pack[]>;
  enablePack(name: string, options?: { at?: string }): Promise<void>;
  disablePack(name: string): Promise<void>;
}

export interface StoreOptions {
  /** Create the directory if it is missing; default: true. */
  create?: boolean;
  readOnly?: boolean;
  /** Of appends that ask for none; default: "sync". */
  level?: Level;
  /** Of new journals; default: "json". */
  format?: Format;
  /** How long an append of level "batch" may stay in memory; default: 10. */
  batchMs?: number;
  /** How long to wait for another process; default: 10,000. */
  waitMs?: number;
  /** Keep the tables up to date in the background once they are needed; default: true. */
  follow?: boolean;
  /** Also write on FUSE and network filesystems, where a crash may lose acknowledged events. */
  unsafeFilesystem?: boolean;
}

/** Open the store in a directory, and recover what processes that died left. */
export function open(path: string | URL, options?: StoreOptions): Promise<Store>;

/** The id of the session that belongs to these strings: the same in every language. */
export function name(...parts: string[]): string;

/** The version of the library that is linked in. */
export const version: string;
