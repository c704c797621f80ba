// SPDX-License-Identifier: Apache-2.0
// What the adapters share: a session for a name of others, its events folded once and then followed.
'use strict';

const { Conflict, IOFailed, NotFound, Unknown } = require('./errors.cjs');
const { name } = require('./names.cjs');
const { REPORTS } = require('./session.cjs');

const NAMED = 'session.named';

/**
 * A session that belongs to a name, and what its events mean, in memory. Its first own event has the name.
 * refresh() reads what others appended since; if the session was deleted and began again, everything.
 */
class Folded {
  #file = '';
  #named = null;
  #last = Promise.resolve();

  constructor(session, parts, level) {
    this.session = session;
    this.parts = parts;
    this.level = level;
    this.seq = 0; // the last event that was read
    this.reset();
  }

  /** Call `use` alone: no other call with this lock runs until its promise is settled. */
  locked(use) {
    const result = this.#last.then(use);
    this.#last = result.catch(() => {});
    return result;
  }

  /** Bring it up to date, under the lock; false if the session does not exist. */
  async refresh() {
    let info;
    try {
      info = await this.session.info();
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      this.#forget('');
      return false;
    }
    if (info.file !== this.#file) this.#forget(info.file);
    if (info.forkSeq > 0 && info.lastSeq === info.forkSeq) await this.#finishFork(info.lastSeq);
    if (info.lastSeq > this.seq) for await (const event of this.session.events({ fromSeq: this.seq + 1 })) this.#take(event);
    if (this.#named !== null && JSON.stringify(this.#named) !== JSON.stringify(this.parts))
      throw new Conflict(`session '${this.session.id}' does not belong to ${JSON.stringify(this.parts)}`);
    return this.seq > 0;
  }

  /** A process died after it forked this session, and before the fork had a name of its own. */
  async #finishFork(expectedSeq) {
    try {
      await this.session.appendMany([this.#naming()], { expectedSeq, [REPORTS]: true });
    } catch (error) {
      if (!(error instanceof Conflict)) throw error; // another process did it
    }
  }

  #forget(file) {
    this.#file = file;
    this.seq = 0;
    this.#named = null;
    this.reset();
  }

  #take({ type, data, seq }) {
    if (type === NAMED) this.#named = data.name;
    else this.apply({ type, data, seq });
    this.seq = seq;
  }

  #naming() {
    return [NAMED, { name: this.parts }];
  }

  /** The events that follow the name in a new session. */
  birth() {
    return [];
  }

  /** Append drafts as one, after the event with the name if the session is new. */
  async append(drafts, expectedSeq) {
    while (this.seq === 0 && !(await this.refresh())) {
      try {
        await this.session.appendMany([this.#naming(), ...this.birth(), ...drafts], { expectedSeq: 0, [REPORTS]: true });
        return;
      } catch (error) {
        if (!(error instanceof Conflict)) throw error; // another process began it
      }
    }
    let seqs;
    try {
      seqs = await this.session.appendMany(drafts, { expectedSeq, level: this.level, [REPORTS]: true });
    } catch (error) {
      // Perhaps an event of level batch never happened: read what there is.
      if (error instanceof IOFailed || error instanceof Unknown) this.#forget('');
      throw error;
    }
    if (seqs[0] === 1) await this.session.appendMany([this.#naming()]); // it was deleted and began again
    else if (seqs[0] === this.seq + 1)
      drafts.forEach(([type, data], place) => this.#take({ type, data: structuredClone(data), seq: seqs[place] }));
  }
}

/** The sessions of an adapter in a store: their names begin with the adapter's name. */
class Named {
  #known = new Map();

  constructor(store, adapter, kind, level) {
    this.store = store;
    this.adapter = adapter;
    this.kind = kind;
    this.level = level;
  }

  get(...parts) {
    const key = JSON.stringify(parts);
    let known = this.#known.get(key);
    if (known === undefined) {
      if (this.#known.size >= 256) this.#known.delete(this.#known.keys().next().value); // it is read again
      const all = [this.adapter, ...parts];
      known = new this.kind(this.store.session(name(...all)), all, this.level);
      this.#known.set(key, known);
    }
    return known;
  }

  /** The names that have a session, without the adapter's own. */
  async *all() {
    for (const id of await this.store.sessions()) {
      if (!id.startsWith(this.adapter)) continue;
      const parts = await nameOf(this.store.session(id));
      if (parts[0] === this.adapter && id === name(...parts)) yield parts.slice(1);
    }
  }
}

/** The strings that a session belongs to; none if it belongs to no name. */
async function nameOf(session) {
  let first;
  try {
    first = (await session.info()).forkSeq + 1;
  } catch (error) {
    if (error instanceof NotFound) return [];
    throw error;
  }
  for await (const event of session.events({ fromSeq: first, toSeq: first + 1 })) if (event.type === NAMED) return event.data.name;
  return [];
}

/** Delete a session if it exists. */
async function remove(session) {
  try {
    await session.delete();
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
  }
}

module.exports = { Folded, Named, nameOf, remove };
