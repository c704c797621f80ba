// SPDX-License-Identifier: Apache-2.0
// A session: events in the order in which they happened.
'use strict';

const errors = require('./errors.cjs');
const { Args, integer, text } = require('./native.cjs');
const { choice, eventsOf, LEVELS } = require('./store.cjs');
const { openState } = require('./state.cjs');
const { readRecovery } = require('./recovery.cjs');
const { claimed } = require('./step.cjs');

const LAST = 2n ** 63n - 1n;
const REPORTS = Symbol('reports'); // an option of appends for events that report what has happened: no guard of core is checked
const FORMAT_NAMES = [null, 'json', 'msgpack'];

/** Content that is stored beside the journals, named by the SHA-256 of its bytes. */
class Artifact {
  constructor(session, sha256, bytes) {
    this.session = session;
    this.sha256 = sha256;
    this.bytes = bytes;
  }

  /** What an event contains to name it. */
  ref(mediaType = 'application/octet-stream') {
    const path = `artifacts/${this.session}/${this.sha256}.zst`;
    return { sha256: this.sha256, bytes: this.bytes, media_type: mediaType, path };
  }
}

/** One session of a store: append to it, and read it. Any number of these may have the same id. */
class Session {
  #steps = null;

  constructor(store, id) {
    this.store = store;
    this.id = id;
    Object.defineProperty(this, 'store', { enumerable: false });
  }

  get #core() {
    return this.store.core;
  }

  #args() {
    return new Args(256).slice(this.id);
  }

  // ---- Appending ----

  /** Append an event; its seq, once it is durable, unless a level says otherwise. */
  append(type, data, options) {
    if (options === undefined) return this.#append([{ type, data }]);
    const { id, cause, ts, expectedSeq, level } = options;
    return this.#append([{ type, data, id, cause, ts }], { expectedSeq, level });
  }

  /** Append events as one: all become durable, or none. Their seqs. */
  async appendMany(drafts, options) {
    const wanted = [...drafts];
    if (wanted.length === 0) return [];
    const first = await this.#append(wanted, options);
    return wanted.map((_, place) => first + place);
  }

  async #append(drafts, { expectedSeq, level, [REPORTS]: reports } = {}) {
    const chosen = (level === undefined ? this.#core.level : choice(LEVELS, level, 'level')) | (reports ? 8 : 0);
    if (expectedSeq === undefined || expectedSeq === null) return this.#core.append(this.id, chosen, -1, drafts);
    if (integer(expectedSeq, 'expectedSeq') < 0) throw new errors.Invalid('expectedSeq must not be negative');
    return this.#core.append(this.id, chosen, expectedSeq, drafts);
  }

  /** Resolve when everything that was appended to it in this process is durable, whatever its level. */
  async sync() {
    await this.#core.append(this.id, 0, -1, []);
  }

  // ---- Looking ----

  /** What the header and the last lines of its journal say. */
  async info() {
    const table = await this.#core.run('info', this.#args());
    const [format, createdUs, bytes, lastSeq, lastTsUs, torn, forkedFrom, forkSeq, file] = Array.from({ length: 9 }, () =>
      table.next(),
    );
    return {
      session: this.id, format: FORMAT_NAMES[format] ?? null, createdUs, bytes, lastSeq, lastTsUs,
      torn: torn !== 0, forkedFrom, forkSeq, file,
    };
  }

  async exists() {
    return (await this.lastSeq()) > 0;
  }

  /** The seq of its last event; 0: it is empty. */
  async lastSeq() {
    try {
      return (await this.info()).lastSeq;
    } catch (error) {
      if (error instanceof errors.NotFound) return 0;
      throw error;
    }
  }

  // ---- Reading ----

  /** The events fromSeq to toSeq (default: the last one there is), read bit by bit, each proven by hash. */
  events({ fromSeq = 1, toSeq = LAST, onDamage, signal } = {}) {
    integer(fromSeq, 'fromSeq');
    integer(toSeq, 'toSeq');
    if (toSeq < fromSeq) return eventsOf(this.#core, this.store, () => ['events', this.#range(1, 0)]);
    const open = () => ['events', this.#range(fromSeq < 1 ? 1 : fromSeq, toSeq)];
    return eventsOf(this.#core, this.store, open, { onDamage, signal });
  }

  #range(from, to) {
    return this.#args().number(from).number(to);
  }

  [Symbol.asyncIterator]() {
    return this.events();
  }

  /** The events, the last one first. */
  async *reversed() {
    let last = await this.lastSeq();
    for (let size = 16; last > 0; size = Math.min(2 * size, 1024)) {
      const first = Math.max(1, last - size + 1);
      yield* (await this.#list(first, last)).reverse();
      last = first - 1;
    }
  }

  async #list(fromSeq, toSeq) {
    const events = [];
    for await (const event of this.events({ fromSeq, toSeq })) events.push(event);
    return events;
  }

  /** The event at this index, from 0 on, or below 0 from the end; undefined if it does not exist. */
  async at(index) {
    const place = index < 0 ? (await this.lastSeq()) + index : index;
    return place < 0 ? undefined : (await this.#list(place + 1, place + 1))[0];
  }

  /** The events in places begin to end, as Array.prototype.slice() counts them. */
  async slice(begin = 0, end = undefined) {
    if (begin >= 0 && end >= 0) return end > begin ? this.#list(begin + 1, end) : [];
    const count = await this.lastSeq();
    const place = (index) => (index < 0 ? Math.max(0, count + index) : Math.min(index, count));
    const [from, to] = [place(begin), place(end ?? count)];
    return to > from ? this.#list(from + 1, to) : [];
  }

  /** Follow it live; it need not exist yet. */
  tail(options = {}) {
    return this.store.tail({ ...options, sessions: this.id });
  }

  /** What of its journal does not prove itself. */
  async verify() {
    const table = await this.#core.run('verify', this.#args());
    return table.rows(4, (seq, offset, length, what) => ({ session: this.id, seq, offset, length, what }));
  }

  // ---- Continuing it ----

  /** What a new process needs to continue it: the last event, its status, and what was in progress. */
  async recovery() {
    return readRecovery(this, await this.#core.run('recovery', this.#args()));
  }

  /** The recorded result of a step; if there is none, call the function and record its result. */
  async step(key, run, options) {
    this.#steps ??= claimed(this);
    return (await this.#steps).run(key, run, options);
  }

  // ---- Its past, and other futures ----

  /** The tables of the core pack after event `at`, or at that time; default: now. */
  state({ at } = {}) {
    return openState(this.store, this.id, at);
  }

  /** A new session that shares the history of this session up to event `at` (default: the last). */
  async fork(child, { at = 0 } = {}) {
    const forked = this.store.session(child);
    await this.#core.run('fork', this.#args().number(integer(at, 'at')).slice(child));
    return forked;
  }

  /** Copy its history into a new session, which is not a fork. */
  async copy(to) {
    const copied = this.store.session(to);
    await this.#core.run('copy', this.#args().slice(to));
    return copied;
  }

  /** Delete it: as Store.delete(). */
  delete() {
    return this.store.delete(this.id);
  }

  // ---- Large content ----

  /** Store content beside the journals, durable when it resolves; then append an event with its ref(). */
  async putArtifact(content) {
    const bytes = typeof content === 'string' ? text(content, 'content') : content;
    const table = await this.#core.run('put_artifact', this.#args().slice(bytes));
    return new Artifact(this.id, table.next(), table.next());
  }

  /** The content of that hash, proven. */
  async getArtifact(sha256, { bytesMax = 1 << 30 } = {}) {
    const args = this.#args().slice(text(sha256, 'sha256')).number(integer(bytesMax, 'bytesMax'));
    return (await this.#core.run('get_artifact', args)).next();
  }
}

module.exports = { Session, Artifact, REPORTS };
