// SPDX-License-Identifier: Apache-2.0
// Between JavaScript and the addon: arguments as bytes, tables as values, tickets for what is on its way.
'use strict';

const path = require('node:path');
const errors = require('./errors.cjs');
const { libc } = require('./libc.cjs');

function load() {
  const place = `${process.platform}-${process.arch}`;
  const found = libc();
  let first;
  for (const kind of found === undefined ? ['glibc', 'musl'] : [found]) {
    try {
      return require(path.join(__dirname, '..', 'prebuilds', `${place}-${kind}`, 'annal.node'));
    } catch (error) {
      first ??= error;
    }
  }
  const [reason] = first.message.split('\n');
  throw new errors.Unsupported(
    `load the addon of libannal for ${place} with ${found ?? 'an unknown C library'}: ${reason}; the package has it for Linux on ` +
      'x64 and arm64, with glibc 2.34 or musl 1.2.5 (Alpine 3.20) and later, if those were built into it: docs/node.md says how',
  );
}

const addon = load();
const pending = new Map();
let lastTicket = 0;

addon.setup((ticket, status, errno, message, cells, bytes) => {
  const answer = pending.get(ticket);
  pending.delete(ticket);
  answer(status < 0 ? errors.failure(status, message, errno) : null, new Table(cells, bytes));
});

/** A ticket whose job will end in one call of `answer(error, table)`. */
function newTicket(answer) {
  do {
    lastTicket = lastTicket < 0xffffffff ? lastTicket + 1 : 1;
  } while (pending.has(lastTicket));
  pending.set(lastTicket, answer);
  return lastTicket;
}

/** Bytes that grow: what args_number() and args_slice() of native/node_codec.c read. */
class Args {
  constructor(room = 4096) {
    this.bytes = Buffer.allocUnsafeSlow(room);
    this.view = new DataView(this.bytes.buffer);
    this.length = 0;
  }

  #grow(more) {
    if (this.length + more <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(2 * (this.length + more));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  number(value) {
    this.#grow(8);
    if (typeof value === 'bigint') {
      this.view.setBigInt64(this.length, value, true);
    } else {
      this.view.setUint32(this.length, value >>> 0, true);
      this.view.setInt32(this.length + 4, Math.floor(value / 4294967296), true);
    }
    this.length += 8;
    return this;
  }

  real(value) {
    this.#grow(8);
    this.view.setFloat64(this.length, value, true);
    this.length += 8;
    return this;
  }

  slice(value) {
    const isText = typeof value === 'string';
    this.#grow(8 + (isText ? 3 * value.length : value.byteLength));
    let written = 0;
    if (isText) written = this.bytes.write(value, this.length + 8, 'utf8');
    else this.bytes.set(value, this.length + 8), (written = value.byteLength);
    this.number(written);
    this.length += written;
    return this;
  }

  slices(values) {
    const all = values === undefined || values === null ? [] : typeof values === 'string' ? [values] : [...values];
    this.number(all.length);
    for (const value of all) this.slice(text(value));
    return this;
  }
}

/** Text that UTF-8 can express. */
function text(value, what = 'text') {
  if (typeof value !== 'string') throw new errors.Invalid(`${what} must be a string, and is of type ${typeof value}`);
  if (!value.isWellFormed()) throw new errors.Invalid(`${what} is not valid Unicode: it has half of a surrogate pair`);
  return value;
}

/** An integer of at most 64 bits, as Number or BigInt. */
function integer(value, what) {
  if (typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value)) return value;
  throw new errors.Invalid(`${what} must be an integer of at most 64 bits, and is ${String(value)}`);
}

const realBits = new Int32Array(2);
const realValue = new Float64Array(realBits.buffer);

const [NULL, INTEGER, REAL, TEXT, BLOB, AGAIN, END] = [0, 1, 2, 3, 4, 5, 6];

/** The values of native/node_codec.c, one after the other. */
class Table {
  constructor(cells, bytes) {
    this.cells = cells === undefined ? new Int32Array() : new Int32Array(cells);
    this.bytes = bytes === undefined ? Buffer.alloc(0) : Buffer.from(bytes);
    this.at = 0;
    this.place = 0;
  }

  get more() {
    return this.at < this.cells.length;
  }

  get kind() {
    return this.cells[this.at];
  }

  /** All the text of the table as one. */
  whole() {
    return this.bytes.toString();
  }

  next() {
    const { cells } = this;
    const kind = cells[this.at];
    const low = cells[this.at + 1];
    const high = cells[this.at + 2];
    this.at += 3;
    switch (kind) {
      case INTEGER:
        return high >= -0x200000 && high < 0x200000
          ? high * 4294967296 + (low >>> 0)
          : (BigInt(high) << 32n) | BigInt(low >>> 0);
      case REAL:
        realBits[0] = low;
        realBits[1] = high;
        return realValue[0];
      case TEXT:
        return this.bytes.toString('utf8', this.place, (this.place += low >>> 0));
      case BLOB:
        return Buffer.from(this.bytes.subarray(this.place, (this.place += low >>> 0)));
      default:
        return kind === NULL ? null : undefined;
    }
  }

  /** A row of `count` values, which `make` turns into an object. */
  row(count, make) {
    return make(...Array.from({ length: count }, () => this.next()));
  }

  /** All rows of `count` values. */
  rows(count, make) {
    const rows = [];
    while (this.more) rows.push(this.row(count, make));
    return rows;
  }
}

/** An operation that never waits, here and now. */
function now(op, args) {
  let failure;
  let answered;
  const ticket = newTicket((error, table) => {
    failure = error;
    answered = table;
  });
  addon.now(op, 0, ticket, args.bytes, args.length);
  if (failure) throw failure;
  return answered;
}

module.exports = { addon, newTicket, Args, Table, text, integer, now, kinds: { NULL, INTEGER, REAL, TEXT, BLOB, AGAIN, END } };
