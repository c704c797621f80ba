// SPDX-License-Identifier: Apache-2.0
// Session ids for foreign names, by the same rule in every language: see bindings/python/src/libannal/_names.py.
'use strict';

const { Args, now, text } = require('./native.cjs');

const SLUG_BYTES = 120;

/** The id of the session that belongs to these strings. */
function name(...parts) {
  const encoded = parts.map((part) => Buffer.from(text(part, 'a part of a name')));
  // Each byte one character: the rule is about bytes.
  const joined = encoded.map((part) => part.toString('latin1')).join('.');
  const slug = joined.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+/, '').slice(0, SLUG_BYTES) || 'x';
  const framed = Buffer.concat(
    encoded.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, part];
    }),
  );
  const hash = BigInt.asUintN(64, BigInt(now('hash', new Args().slice(framed)).next()));
  return `${slug}.${hash.toString(16).padStart(16, '0')}`;
}

module.exports = { name };
