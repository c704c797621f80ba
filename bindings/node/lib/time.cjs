// SPDX-License-Identifier: Apache-2.0
// Moments: a Date, microseconds since 1970 in UTC as Number or BigInt, or ISO 8601.
'use strict';

const errors = require('./errors.cjs');
const { Args, integer, now, text } = require('./native.cjs');

function microseconds(moment) {
  if (moment instanceof Date) {
    if (Number.isNaN(moment.getTime())) throw new errors.Invalid('a Date that is no time');
    return BigInt(moment.getTime()) * 1000n;
  }
  if (typeof moment === 'string') return now('time', new Args(64).slice(text(moment))).next();
  return integer(moment, 'a time');
}

/** A bound of a range for the library, where 0 means no bound: 1970 itself becomes the microsecond before. */
function bound(moment) {
  if (moment === undefined || moment === null) return 0;
  const time = microseconds(moment);
  return time === 0 || time === 0n ? -1 : time;
}

module.exports = { microseconds, bound };
