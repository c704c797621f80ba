// SPDX-License-Identifier: Apache-2.0
// The C library of this process, which decides what addon fits.
'use strict';

const fs = require('node:fs');

/** "musl" or "glibc", from the mapped files of a process; undefined if they cannot be read. */
function libcOf(maps) {
  return /\/(ld-musl-[^/]*\.so\.1|libc\.musl-[^/]*|libc\.so)$/m.test(maps) ? 'musl' : 'glibc';
}

function libc() {
  try {
    return libcOf(fs.readFileSync('/proc/self/maps', 'latin1'));
  } catch {
    return undefined;
  }
}

module.exports = { libc, libcOf };
