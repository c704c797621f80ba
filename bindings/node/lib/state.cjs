// SPDX-License-Identifier: Apache-2.0
// The state of a session at any moment of its past.
'use strict';

const { Args, integer, text } = require('./native.cjs');
const { microseconds } = require('./time.cjs');
const { Handle, own, disown, readRows, writeParams } = require('./store.cjs');

/** The tables of one session after one event, as a database in memory. */
class State {
  #handle;
  #store;

  constructor(store, id, seq) {
    this.#store = store;
    this.#handle = own(this, new Handle(store.core, id));
    /** The seq of its last event; 0: before the first event. */
    this.seq = seq;
  }

  #run(op, write = (args) => args) {
    const handle = this.#handle;
    return handle.use(() => this.#store.core.run(op, write(new Args(64).number(handle.id))));
  }

  /** The rows of one SELECT over its tables; params are ?1, ?2, … */
  async sql(sql, params = []) {
    return readRows(await this.#run('state_sql', (args) => writeParams(args.slice(text(sql, 'sql')), params)));
  }

  /** All its tables: { sessions: [{…}], turns: [{…}, …], … }. */
  async json() {
    return JSON.parse((await this.#run('state_json')).whole());
  }

  /** 64 hex digits; two states are equal if it is. */
  async hash() {
    return (await this.#run('state_hash')).next().toString('hex');
  }

  /** A JSON patch (RFC 6902) that turns the json() of this state into that of `after`. */
  async diff(after) {
    const other = after.#handle;
    const patch = () => this.#run('state_patch', (args) => args.number(other.id));
    return JSON.parse((await (other === this.#handle ? patch() : other.use(patch))).whole());
  }

  /** Free it. A second time does nothing. */
  close() {
    disown(this.#handle);
    return this.#handle.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  [Symbol.dispose]() {
    void this.close();
  }
}

async function openState(store, session, at) {
  const args = new Args(256).slice(session);
  if (at === undefined || at === null) args.number(0).number(0);
  else if (typeof at === 'number' || typeof at === 'bigint') args.number(1).number(integer(at, 'at'));
  else args.number(2).number(microseconds(at));
  const table = await store.core.run('state', args);
  return new State(store, table.next(), table.next());
}

module.exports = { State, openState };
