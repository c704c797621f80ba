// SPDX-License-Identifier: Apache-2.0
// A store: the directory that holds every session. Everything that may wait returns a promise.
'use strict';

const errors = require('./errors.cjs');
const { addon, newTicket, Args, Table, text, integer, now, kinds } = require('./native.cjs');
const { microseconds, bound } = require('./time.cjs');
const { readBlock } = require('./event.cjs');

const LEVELS = { sync: 1, batch: 2, os: 3 };
const FORMATS = { json: 1, msgpack: 2 };
const PACK_STATES = ['ready', 'building', 'failed'];
const FLUSH_BYTES = 4 << 20;
const TS_ZERO = -(2n ** 63n) + 1n; // ANNAL_TS_ZERO: 1970 itself, because 0 means now

function choice(table, value, what) {
  if (Object.hasOwn(table, value)) return table[value];
  throw new errors.Invalid(`${JSON.stringify(value)} is not a ${what}: ${Object.keys(table).join(', ')}`);
}

const HIT = 8;
const hit = (session, seq, tsUs, type, role, tool, snippet, rank) => ({ session, seq, tsUs, type, role, tool, snippet, rank });

/** One JSON value as text; bytes are JSON that is written already. */
function written(data) {
  if (data === undefined) return 'null';
  if (data instanceof Uint8Array) return data;
  let json;
  try {
    json = JSON.stringify(data);
  } catch (error) {
    throw new errors.Invalid(`data cannot be written as JSON: ${error.message}`, 0, { cause: error });
  }
  if (json === undefined) throw new errors.Invalid(`data cannot be written as JSON: it is a ${typeof data}`);
  return json;
}

/** What is left when nothing holds a store any more: its number, and who is in it. */
class Core {
  constructor(id, path, level) {
    this.id = id;
    this.path = path;
    this.level = level;
    this.inside = 0;
    this.waits = new Set();
    this.closing = null;
    this.left = null; // tells close() that nothing is on its way any more
    this.queue = [];
    this.queued = new Args(65536);
    this.queued.number(0);
  }

  enter() {
    if (this.closing) throw new errors.Closed(`store '${this.path}' is closed`);
    this.inside += 1;
  }

  leave() {
    this.inside -= 1;
    if (this.left && this.inside === 0) this.left();
  }

  /** A promise for the table of one job; `submit` hands it to the addon. */
  job(submit, gated = true) {
    return new Promise((resolve, reject) => {
      if (gated) this.enter();
      const ticket = newTicket((error, table) => {
        if (gated) this.leave();
        if (error) reject(error);
        else resolve(table);
      });
      submit(ticket);
    });
  }

  run(op, args, gated = true) {
    return this.job((ticket) => addon.run(op, this.id, ticket, args.bytes, args.length), gated);
  }

  /** The next events of a tail. `cancelled` gets a function that ends the wait. */
  async wait(handle, max, cancelled) {
    const args = new Args(32).number(handle).number(max);
    let cancel;
    try {
      return await this.job((ticket) => {
        cancel = () => addon.cancel(this.id, ticket);
        this.waits.add(cancel);
        addon.wait(this.id, ticket, args.bytes, args.length);
        cancelled?.(cancel);
      });
    } finally {
      this.waits.delete(cancel);
    }
  }

  /** Queue an append; what is queued in one turn of the event loop is submitted as one. */
  append(session, level, expected, drafts) {
    return new Promise((resolve, reject) => {
      this.enter();
      const { queued } = this;
      const begin = queued.length;
      try {
        queued.slice(session).number(level).number(expected).number(drafts.length);
        for (const draft of drafts) writeDraft(queued, draft);
      } catch (error) {
        queued.length = begin;
        this.leave();
        throw error;
      }
      this.queue.push(resolve, reject);
      if (queued.length > FLUSH_BYTES) this.flush();
      else if (this.queue.length === 2) queueMicrotask(() => this.flush());
    });
  }

  flush() {
    const { queue, queued } = this;
    if (queue.length === 0) return;
    this.queue = [];
    queued.view.setUint32(0, queue.length / 2, true);
    queued.view.setUint32(4, 0, true);
    const ticket = newTicket((error, table) => {
      for (let i = 0; i < queue.length; i += 2) {
        const first = error ? null : table.next();
        this.leave();
        if (error) queue[i + 1](error);
        else if (typeof first === 'string') queue[i + 1](errors.failure(table.next(), first, table.next()));
        else queue[i](first);
      }
    });
    addon.append(this.id, ticket, queued.bytes, queued.length);
    queued.length = 8;
    if (queued.bytes.length > 2 * FLUSH_BYTES) (this.queued = new Args(65536)).number(0);
  }

  /** Let no call in any more, wait for those that are inside, close. A second time it is the same. */
  close() {
    this.closing ??= (async () => {
      this.flush();
      for (const cancel of this.waits) cancel();
      if (this.inside > 0) await new Promise((resolve) => (this.left = resolve));
      await this.run('close', new Args(8), false);
    })();
    return this.closing;
  }
}

function writeDraft(args, draft) {
  const { type, data, id, cause, ts } = Array.isArray(draft) ? { type: draft[0], data: draft[1] } : draft;
  args.slice(text(type, 'type')).slice(written(data));
  if (id === '') throw new errors.Invalid('an id of an event must not be empty');
  args.slice(id === undefined || id === null ? '' : text(id, 'id'));
  if (cause === undefined || cause === null) args.slice('');
  else args.slice(text(typeof cause === 'object' ? cause.ref : cause, 'cause'));
  if (ts === undefined || ts === null) return args.number(0);
  const time = microseconds(ts);
  return args.number(time === 0 || time === 0n ? TS_ZERO : time);
}

const forgotten = new FinalizationRegistry((core) => {
  if (core.closing) return;
  process.emitWarning(`store '${core.path}' was not closed`, 'ResourceWarning');
  core.close().catch(() => {});
});

const released = new FinalizationRegistry((handle) => handle.close());

/** Something that the library gave out: used by one call at a time, freed once. */
class Handle {
  constructor(core, id) {
    this.core = core;
    this.id = id;
    this.last = Promise.resolve();
  }

  /** Call `use` when those before it are done. */
  use(use) {
    const result = this.last.then(use);
    this.last = result.catch(() => {});
    return result;
  }

  /** The next block of a cursor or a query. */
  read() {
    return this.use(() => this.core.run('read', new Args(8).number(this.id)));
  }

  close() {
    return this.use(() => {
      if (this.id === 0 || this.core.closing) return undefined;
      const args = new Args(8).number(this.id);
      this.id = 0;
      return this.core.run('release', args).then(() => undefined);
    });
  }
}

/** Free the handle when `owner` has no references any more. */
function own(owner, handle) {
  released.register(owner, handle, handle);
  return handle;
}

function disown(handle) {
  released.unregister(handle);
}

/** The events of blocks that `open` and then `read` return; the next block is read while this one is used. */
async function* eventsOf(core, store, open, { signal, onDamage } = {}) {
  signal?.throwIfAborted();
  let table;
  try {
    table = await core.run(...open());
  } catch (error) {
    if (error instanceof errors.NotFound) return;
    throw error;
  }
  let handle = null;
  let next = null;
  const guard = {}; // lives as long as this generator
  try {
    for (;;) {
      const block = readBlock(table, store);
      if (block.handle !== 0 && handle === null) handle = own(guard, new Handle(core, block.handle));
      if (block.handle === 0 && handle !== null) handle.id = 0;
      next = block.handle === 0 || block.damage ? null : handle.read();
      next?.catch(() => {}); // it is awaited below
      for (const event of block.events) {
        signal?.throwIfAborted();
        yield event;
      }
      if (block.damage && !onDamage)
        throw new errors.Corrupt(`event ${block.damage.seq} of session '${block.damage.session}': ${block.damage.what}`);
      if (block.damage) onDamage(block.damage);
      if (block.handle === 0) return;
      signal?.throwIfAborted();
      table = await (next ?? handle.read());
    }
  } finally {
    await next?.catch(() => {});
    if (handle !== null) {
      disown(handle);
      await handle.close().catch(() => {});
    }
    void guard;
  }
}

/** Events that fit a filter: each iteration asks again, and reads the answer bit by bit. */
class Query {
  #store;
  #options;

  constructor(store, options) {
    this.#store = store;
    this.#options = options;
    this.#filter(); // what is wrong with it is thrown here
  }

  #filter() {
    const { sessions, types, since, until, fromSeq = 0, toSeq = 0, where = '', limit = 0, descending } = this.#options;
    return new Args()
      .slices(sessions)
      .slices(types)
      .number(bound(since))
      .number(bound(until))
      .number(integer(fromSeq, 'fromSeq'))
      .number(integer(toSeq, 'toSeq'))
      .number(integer(limit, 'limit'))
      .number(descending ? 1 : 0)
      .slice(text(where, 'where'));
  }

  [Symbol.asyncIterator]() {
    return eventsOf(this.#store.core, this.#store, () => ['query', this.#filter()], this.#options);
  }

  /** How many events it would return, without reading them. */
  async count() {
    return (await this.#store.core.run('count', this.#filter())).next();
  }
}

/** The rows of a SELECT: an array of arrays that knows its `columns`. */
class Rows extends Array {
  static get [Symbol.species]() {
    return Array;
  }

  /** The rows as objects by column name. */
  objects() {
    return this.map((row) => Object.fromEntries(this.columns.map((column, place) => [column, row[place]])));
  }
}

function readRows(table) {
  const rows = new Rows();
  const count = table.next();
  const columns = Array.from({ length: count }, () => table.next());
  Object.defineProperty(rows, 'columns', { value: columns });
  while (table.more) {
    const row = new Array(count);
    for (let i = 0; i < count; i++) row[i] = table.next();
    rows.push(row);
  }
  return rows;
}

function writeParams(args, params) {
  args.number(params.length);
  params.forEach((value, place) => {
    if (value === null || value === undefined) args.number(kinds.NULL);
    else if (typeof value === 'boolean') args.number(kinds.INTEGER).number(value ? 1 : 0);
    else if (typeof value === 'bigint') args.number(kinds.INTEGER).number(integer(value, `parameter ${place + 1}`));
    else if (typeof value === 'number' && Number.isSafeInteger(value)) args.number(kinds.INTEGER).number(value);
    else if (typeof value === 'number') args.number(kinds.REAL).real(value);
    else if (typeof value === 'string') args.number(kinds.TEXT).slice(text(value, `parameter ${place + 1}`));
    else if (value instanceof Uint8Array) args.number(kinds.BLOB).slice(value);
    else throw new errors.Invalid(`parameter ${place + 1} is a ${typeof value}, which SQLite does not have`);
  });
  return args;
}

/** An open store; keep it: one object a directory and thread. */
class Store {
  constructor(core) {
    this.core = core;
    Object.defineProperty(this, 'core', { enumerable: false });
    /** The directory, as an absolute path. */
    this.path = core.path;
    forgotten.register(this, core);
  }

  /** Make everything durable and let go of all sessions; waits for calls that are on their way. */
  close() {
    return this.core.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  [Symbol.dispose]() {
    void this.close();
  }

  /** The session of that id. It exists once something is appended. */
  session(id) {
    const { Session } = require('./session.cjs');
    if (this.core.closing) throw new errors.Closed(`store '${this.path}' is closed`);
    now('check_id', new Args(256).slice(text(id, 'the id of a session')));
    return new Session(this, id);
  }

  /** The ids of all sessions, sorted. */
  async sessions() {
    return (await this.core.run('sessions', new Args(8))).rows(1, (id) => id);
  }

  /** Delete sessions; sentences about what remains for now. */
  async delete(...sessions) {
    return (await this.core.run('delete', new Args().slices(sessions))).rows(1, (note) => note);
  }

  /** Resolve when every append that was submitted before is durable, whatever its level. */
  async sync() {
    await this.core.append('', 0, -1, []);
  }

  query(options = {}) {
    return new Query(this, options);
  }

  async sql(sql, params = [], { session = '' } = {}) {
    const args = new Args().slice(text(sql, 'sql')).slice(text(session, 'session'));
    return readRows(await this.core.run('sql', writeParams(args, params)));
  }

  #search(words, options, limit, places) {
    const { expression = '', sessions, types, role = '', tool = '', since, until, newestFirst } = options;
    const args = new Args()
      .slices(typeof words === 'string' ? words.split(/\s+/).filter(Boolean) : words)
      .slices(sessions)
      .slices(types)
      .slice(text(expression))
      .slice(text(role))
      .slice(text(tool))
      .number(bound(since))
      .number(bound(until))
      .number(integer(limit, 'limit'))
      .number(newestFirst ? 1 : 0)
      .number(places);
    return this.core.run('search', args);
  }

  async search(words = [], options = {}) {
    return (await this.#search(words, options, options.limit ?? 20, 0)).rows(HIT, hit);
  }

  /** The sessions that a question is about, the best first. */
  async find(words, { places = 3, limit = 10, ...options } = {}) {
    if (!(integer(places, 'places') > 0)) throw new errors.Invalid('places must be at least 1');
    const table = await this.#search(words, options, limit, places);
    return table.rows(6, (session, lastUs, events, score, why, count) => ({
      session, lastUs, events, score, why, places: Array.from({ length: count }, () => table.row(HIT, hit)),
    }));
  }

  /** Follow sessions (none: all) live. */
  tail(options = {}) {
    const { Tail } = require('./tail.cjs');
    return new Tail(this, options);
  }

  async packs() {
    return (await this.core.run('packs', new Args(8))).rows(
      7,
      (name, version, state, source, error, eventsApplied, eventsBehind) => ({
        name, version, state: PACK_STATES[state], source, error, eventsApplied, eventsBehind,
      }),
    );
  }

  async enablePack(name, { at = '' } = {}) {
    await this.core.run('switch_pack', new Args().slice(text(name)).slice(text(at)).number(1));
  }

  async disablePack(name) {
    await this.core.run('switch_pack', new Args().slice(text(name)).slice('').number(0));
  }
}

/** Open the store in a directory, and recover what processes that died left. */
async function open(path, options = {}) {
  const { create = true, readOnly = false, level = 'sync', format, batchMs = 0, waitMs = 0 } = options;
  const { follow = true, unsafeFilesystem = false } = options;
  const args = new Args()
    .slice(text(path instanceof URL ? require('node:url').fileURLToPath(path) : path, 'the path of a store'))
    .number(create && !readOnly ? 1 : 0)
    .number(readOnly ? 1 : 0)
    .number(format === undefined ? 0 : choice(FORMATS, format, 'format'))
    .number(integer(batchMs, 'batchMs'))
    .number(integer(waitMs, 'waitMs'))
    .number(unsafeFilesystem ? 1 : 0)
    .number(follow && !readOnly ? 1 : 0);
  const core = new Core(0, path, choice(LEVELS, level, 'level'));
  const table = await core.run('open', args, false);
  core.id = table.next();
  core.path = table.next();
  return new Store(core);
}

module.exports = { open, Store, Query, Rows, Handle, own, disown, eventsOf, readRows, writeParams, choice, written, LEVELS, FORMATS, Table };
