/* SPDX-License-Identifier: Apache-2.0 */
/* The process that has a lock on a file, for messages about waiting. */
#ifndef JOURNAL_BASE_LOCK_HOLDER_H
#define JOURNAL_BASE_LOCK_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * The process that has a lock (flock or fcntl) on this file, according to /proc/locks, preferably a
 * writer; with writes, only a writer. 0 if no process holds the lock, or if the kernel does not
 * say: in another pid namespace, or on a filesystem whose files have another device number there.
 * Reads the list of all locks: not for a fast path.
 */
uint32_t annal__lock_holder_of(const struct stat *file, bool writes);

/*
 * "process 123", "process 123 (stopped)", or for pid 0 "another process". At most
 * HOLDER_BYTES, with the zero.
 */
#define HOLDER_BYTES 48
const char *annal__lock_holder_name(uint32_t pid, char out[HOLDER_BYTES]);

/* Stopped by a signal or a debugger. False if that is not known. */
bool annal__lock_holder_is_stopped(uint32_t pid);

#endif
