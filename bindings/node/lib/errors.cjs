// SPDX-License-Identifier: Apache-2.0
// One class for each status of the library. The message is the library's sentence.
'use strict';

/** An error of the library; the base of all error classes of this package. */
class AnnalError extends Error {
  constructor(message, osErrno = 0) {
    super(message);
    this.osErrno = osErrno;
  }

  get status() {
    return this.constructor.status;
  }

  get code() {
    return `ANNAL_${this.name.toUpperCase()}`;
  }
}

Object.defineProperty(AnnalError, 'name', { value: 'Error' });
AnnalError.status = 0;

const classes = { Error: AnnalError };
const byStatus = new Map();

// In the order of their statuses, from -1 on: enum annal_status of <annal/base.h>.
const NAMES = [
  'NoMemory', // an allocation failed
  'IOFailed', // the operating system refused; osErrno says why
  'Corrupt', // bytes on disk are not what was written
  'NotFound', // no such store, session, event or snapshot
  'Invalid', // the caller passed something that is not accepted
  'Busy', // another process owns it, and the time to wait is over
  'LimitExceeded', // larger than a documented limit
  'Closed', // the store, session or tail is closed, or failed earlier
  'Conflict', // expectedSeq or id does not match the session
  'Unknown', // storage failed during an append: open the store again to see what became of it
  'Unsupported', // a network filesystem, or written by a newer version
  'SQLError', // a query or a pack is wrong; the message is SQLite's
  'Refused', // a guard of a pack refused; the message is the pack's sentence
  'DiskFull', // an IOFailed: the disk, or the quota of the user, has no room
  'ReadOnly', // an IOFailed: the store was opened with readOnly, or its filesystem is read-only
  'DiskFailed', // an IOFailed: the disk failed
];

NAMES.forEach((name, place) => {
  const base = ['DiskFull', 'ReadOnly', 'DiskFailed'].includes(name) ? classes.IOFailed : AnnalError;
  const kind = { [name]: class extends base {} }[name];
  kind.status = -1 - place;
  kind.prototype.name = name;
  classes[name] = kind;
  byStatus.set(kind.status, kind);
});
AnnalError.prototype.name = 'AnnalError';

function failure(status, message, osErrno) {
  return new (byStatus.get(status) ?? AnnalError)(message, osErrno);
}

module.exports = { ...classes, failure };
