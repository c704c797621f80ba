/* SPDX-License-Identifier: Apache-2.0 */
/* Find and open the store. */
#ifndef TOOLS_CLI_STORE_OPEN_H
#define TOOLS_CLI_STORE_OPEN_H

#include "tools/cli/fields.h"

#include <annal/index.h>
#include <annal/store.h>

enum open_mode {
    OPEN_READ,  /* must exist; also on read-only media; no keeper */
    OPEN_WRITE, /* must exist and be writable; no keeper */
    OPEN_CREATE /* created if missing; with a keeper, for verbs that append */
};

/*
 * Open the store. 0, or an exit status after one line on stderr. wait_ms limits each wait; 0:
 * --wait does. Until store_wait_anew(), all waits together are a little shorter than that, so that
 * a verb with little other work ends within it.
 */
int store_open(const struct args *args, enum open_mode mode, uint32_t wait_ms,
               annal_store **out_store);

/* Open the store for writing, and its index, and call fn. Returns fn's exit status, or that of a
 * failure. */
int store_with_index(const struct args *args, int (*fn)(const struct args *args, annal_index *));

/* As store_open(), but returns the message in err instead of printing it. */
int store_try(const struct args *args, enum open_mode mode, uint32_t wait_ms,
              annal_store **out_store, annal_error *err);

/*
 * Start --wait again for a verb that keeps running while there is work, or limit each wait to
 * wait_ms.
 */
void store_wait_anew(const struct args *args, annal_store *store);
void store_wait_each(annal_store *store);

/*
 * Limit all further waits to --wait counted from begun_us (monotonic), including time spent
 * working. For operations that may fail.
 */
void store_wait_within(const struct args *args, annal_store *store, int64_t begun_us);

/* Return whether a store seems to exist at the path that would be opened. */
bool store_is_there(const struct args *args);

/* Close the store; the exit status is unchanged unless closing failed. Accepts NULL. */
int store_close(annal_store *store, int exit_status);

/* Return the free bytes of its disk beyond the bytes that it keeps free; UINT64_MAX: unknown. */
uint64_t store_free_bytes(const annal_store *store);

/* Return the path that would be opened; the caller frees it with annal__free(). NULL: no home
 * directory. */
char *store_path(const struct args *args);

#endif
