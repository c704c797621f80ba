// SPDX-License-Identifier: Apache-2.0
// Events, and blocks of them as the addon hands them over.
'use strict';

const errors = require('./errors.cjs');
const { kinds } = require('./native.cjs');

const UNREAD = Symbol('unread');

/** One fact of a session. */
class Event {
  #store;
  #value = UNREAD;

  constructor(store, session, seq, tsUs, type, id, cause, json) {
    this.#store = store;
    this.session = session;
    /** 1, 2, 3, … without gaps. */
    this.seq = seq;
    /** UTC in microseconds since 1970. Order is by seq, never by time. */
    this.tsUs = tsUs;
    this.type = type;
    this.id = id;
    this.cause = cause;
    /** The data in the form that the journal stores. */
    this.json = json;
  }

  /** The data as a value, read once and shared by all who ask. */
  get data() {
    if (this.#value === UNREAD) this.#value = JSON.parse(this.json);
    return this.#value;
  }

  /** The data as a value of the caller's own, read again. */
  read() {
    return JSON.parse(this.json);
  }

  get ts() {
    return new Date(Number(this.tsUs) / 1000);
  }

  /** "session:seq", as a later event names it in `cause`. */
  get ref() {
    return `${this.session}:${this.seq}`;
  }

  /** What a tool returned, also if it was too large for the event and is an artifact. */
  async output(member = 'output') {
    const { data } = this;
    const ref = data?.[`${member}_ref`] ?? (data?.[member]?.sha256 && data[member].path ? data[member] : undefined);
    if (ref === undefined) return data?.[member];
    const [, session] = /^artifacts\/([^/]+)\//.exec(ref.path) ?? [];
    if (session === undefined) throw new errors.Invalid(`event ${this.ref} names an artifact without a path`);
    const content = await this.#store.session(session).getArtifact(ref.sha256);
    return /^(text\/|application\/json)/.test(ref.media_type ?? '') ? content.toString() : content;
  }
}

/** Events up to the end of the table, or to the mark after them. */
function readEvents(table, store) {
  const events = [];
  let session = '';
  let type = '';
  while (table.more && table.kind !== kinds.END) {
    session = table.next() ?? session;
    const seq = table.next();
    const tsUs = table.next();
    type = table.next() ?? type;
    events.push(new Event(store, session, seq, tsUs, type, table.next(), table.next(), table.next()));
  }
  return events;
}

/** What read_block() of native/ops.c wrote. */
function readBlock(table, store) {
  const events = readEvents(table, store);
  table.next();
  const handle = table.next();
  let damage = null;
  if (table.more) {
    const [session, seq, offset, length, what] = Array.from({ length: 5 }, () => table.next());
    damage = { session, seq, offset, length, what };
  }
  return { events, handle, damage };
}

module.exports = { Event, readEvents, readBlock };
