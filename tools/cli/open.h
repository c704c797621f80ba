/* SPDX-License-Identifier: Apache-2.0 */
/* Which store, and how it is opened. */
#ifndef TOOLS_CLI_OPEN_H
#define TOOLS_CLI_OPEN_H

#include "tools/cli/fields.h"

#include <annal/index.h>
#include <annal/store.h>

enum open_mode {
    OPEN_READ,  /* must be there; on read-only media it is read as it is; no keeper */
    OPEN_WRITE, /* must be there, and writable; no keeper */
    OPEN_CREATE /* made when missing; with a keeper, for those who append */
};

/*
 * 0 and a store, or an exit status after one line on stderr. wait_ms: how long each wait is at
 * most; 0: as long as --wait says. All of them together are a little shorter than that, so that the
 * verb ends within it where it has little else to do, until store_wait_anew().
 */
int store_open(const struct args *args, enum open_mode mode, uint32_t wait_ms,
               annal_store **out_store);

/* Open the store for writing, and its index; then fn's exit status, or that of a failure. */
int store_with_index(const struct args *args, int (*fn)(const struct args *args, annal_index *));

/* As store_open(), with the sentence in err in place of the line on stderr. */
int store_try(const struct args *args, enum open_mode mode, uint32_t wait_ms,
              annal_store **out_store, annal_error *err);

/*
 * For verbs that go on for as long as there is work: from now on --wait counts again; or it is what
 * each wait takes at most.
 */
void store_wait_anew(const struct args *args, annal_store *store);
void store_wait_each(annal_store *store);

/*
 * For what is told when it cannot be done: from now on the store waits no longer than until --wait
 * is over since begun_us (monotonic), however much of that was work.
 */
void store_wait_within(const struct args *args, annal_store *store, int64_t begun_us);

/* Whether a store stands where one would be opened, as far as that can be seen. */
bool store_is_there(const struct args *args);

/* Close it; the exit status stays unless closing failed. NULL is accepted. */
int store_close(annal_store *store, int exit_status);

/* Bytes of its disk that are free beyond what it keeps free; UINT64_MAX: not known. */
uint64_t store_free_bytes(const annal_store *store);

/* The path that would be opened; the caller frees it with annal__free(). NULL: there is no home. */
char *store_path(const struct args *args);

#endif
