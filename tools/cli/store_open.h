/* SPDX-License-Identifier: Apache-2.0 */
/* Find and open the store. */
#pragma once

#include "tools/cli/fields.h"

#include <annal/index.h>
#include <annal/store.h>

enum open_mode {
    /* the store must exist, and may be on read-only media; no permanent thread is started */
    OPEN_READ,
    OPEN_WRITE, /* the store must exist and be writable; no permanent thread is started */
    /* create the store if it is missing; starts the store's permanent thread, for verbs that
     * append */
    OPEN_CREATE,
    /* as OPEN_CREATE, for a verb that calls annal_store_sync() before it reports anything: the
     * permanent thread leaves it to the verb when to sync */
    OPEN_FILL
};

/*
 * Open the store. Returns 0, or an exit status after one line on stderr. wait_ms limits each wait,
 * in ms; 0 stands for --wait. Until store_wait_anew(), all waits together are a little shorter than
 * --wait, so that a verb with little other work ends within that time.
 */
int store_open(const struct args *args, enum open_mode mode, uint32_t wait_ms,
               annal_store **out_store);

/* Open the store and its index, and call fn. Returns the exit status of fn or of a failure. */
int store_with_index(const struct args *args, enum open_mode mode,
                     int (*fn)(const struct args *args, annal_index *));

/* As store_open(), but return the message in err instead of printing it. */
int store_try(const struct args *args, enum open_mode mode, uint32_t wait_ms,
              annal_store **out_store, annal_error *err);

/*
 * store_wait_anew(): start the time limit --wait again, for a verb that continues as long as there
 * is work. store_wait_each(): limit each single wait to the store's wait_ms, without a limit for
 * all waits together.
 */
void store_wait_anew(const struct args *args, annal_store *store);
void store_wait_each(annal_store *store);

/*
 * Limit all further waits so that the verb ends within --wait, counted from begun_us (monotonic),
 * including its working time. For verbs that may fail when the time is over.
 */
void store_wait_within(const struct args *args, annal_store *store, int64_t begun_us);

/* Return whether a store seems to exist at the path that store_open() would open. */
bool store_is_there(const struct args *args);

/* Close the store; NULL is accepted. Returns exit_status, or another one if closing failed or the
 * store reported damage. */
int store_close(annal_store *store, int exit_status);

/* Return how many bytes may still be written to the disk of the store, beyond those that the store
 * keeps free; UINT64_MAX if that is unknown. */
uint64_t store_free_bytes(const annal_store *store);

/* Return the path that store_open() would open; the caller frees it with annal__free(). NULL if
 * there is no home directory. */
char *store_path(const struct args *args);
