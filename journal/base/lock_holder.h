/* SPDX-License-Identifier: Apache-2.0 */
/* Find the process that holds a lock on a file, for messages about waiting. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * Return the process that holds a lock (flock or fcntl) on this file according to /proc/locks,
 * preferably a writer; with writes, only a writer. 0 if no process holds the lock, or if the kernel
 * does not show it: in another pid namespace, or on a filesystem whose files have another device
 * number in /proc/locks. Reads the list of all locks, so call it rarely.
 */
uint32_t annal__lock_holder_of(const struct stat *file, bool writes);

/* Write "process 123", "process 123 (stopped)" or, for pid 0, "another process" to out, and return
 * out. HOLDER_BYTES is enough for each, with the final NUL. */
#define HOLDER_BYTES 48
const char *annal__lock_holder_name(uint32_t pid, char out[HOLDER_BYTES]);

/* Return whether a process is stopped by a signal or a debugger; false if that is unknown. */
bool annal__lock_holder_is_stopped(uint32_t pid);
