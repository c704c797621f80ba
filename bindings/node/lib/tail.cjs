// SPDX-License-Identifier: Apache-2.0
// Follow sessions live.
'use strict';

const errors = require('./errors.cjs');
const { Args, integer, text } = require('./native.cjs');
const { microseconds } = require('./time.cjs');
const { readEvents } = require('./event.cjs');
const { Handle, own, disown } = require('./store.cjs');

const BLOCK = 256;

/** Events of sessions, live. Iterate it, or ask for the next(); one at a time, others wait. */
class Tail {
  #store;
  #handle = null;
  #signal;
  #max;
  #ready = []; // events that were read and not yet handed out
  #closed = false;
  #cancel = null;
  #last = Promise.resolve();

  constructor(store, options) {
    const { sessions, types, fromSeq = 0, since, last = 0, fromNow, cursor = '', signal } = options;
    this.#store = store;
    this.#signal = signal;
    this.#max = cursor === '' ? BLOCK : 1; // commit() is about what was read: no more than what was handed out
    const args = new Args()
      .slices(sessions)
      .slices(types)
      .number(integer(fromSeq, 'fromSeq'))
      .number(since === undefined || since === null ? 0 : microseconds(since))
      .number(integer(last, 'last'))
      .number(fromNow ? 1 : 0)
      .slice(text(cursor, 'cursor'));
    /** Resolves when it is open: from there on fromNow misses nothing. */
    this.opened = store.core.run('tail', args).then((table) => {
      this.#handle = own(this, new Handle(store.core, table.next()));
    });
    this.opened.catch(() => {}); // next() rejects with it
  }

  /** The next event; null if none arrives within `timeout` milliseconds. */
  next({ timeout, signal = this.#signal } = {}) {
    const result = this.#last.then(() => this.#next(timeout, signal));
    this.#last = result.catch(() => {});
    return result;
  }

  async #next(timeout, signal) {
    await this.opened;
    const until = timeout === undefined ? Infinity : performance.now() + timeout;
    for (;;) {
      signal?.throwIfAborted();
      if (this.#closed) throw new errors.Closed('this tail was closed before');
      if (this.#ready.length > 0) return this.#ready.shift();
      const events = await this.#wait(Math.max(0, until - performance.now()), signal);
      this.#ready = events;
      if (events.length > 0 || signal?.aborted) continue;
      if (this.#store.core.closing) throw new errors.Closed(`store '${this.#store.path}' is closed`);
      if (performance.now() >= until) return null;
    }
  }

  /** Events, or none if the time is over or something ended the wait. Events that were read stay for the next call. */
  async #wait(timeout, signal) {
    let cancel = () => {};
    let timer;
    const abort = () => cancel();
    signal?.addEventListener('abort', abort, { once: true });
    if (timeout !== Infinity) timer = setTimeout(abort, Math.min(timeout, 2 ** 31 - 1));
    try {
      const table = await this.#store.core.wait(this.#handle.id, this.#max, (end) => {
        this.#cancel = cancel = end;
      });
      return readEvents(table, this.#store);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      this.#cancel = null;
    }
  }

  /** Ends without a return() of the tail: after a break it can be iterated again. */
  async *[Symbol.asyncIterator]() {
    for (;;) yield await this.next();
  }

  /** Mark every returned event as processed: the named cursor continues after it. */
  async commit() {
    await this.opened;
    const args = new Args(8).number(this.#handle.id);
    await this.#handle.use(() => this.#store.core.run('tail_commit', args));
  }

  /** End it; a next() that waits is rejected. */
  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancel?.();
    await this.#last;
    await this.opened.catch(() => {});
    if (this.#handle === null) return;
    disown(this.#handle);
    await this.#handle.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  [Symbol.dispose]() {
    void this.close();
  }
}

module.exports = { Tail };
