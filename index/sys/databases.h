/* SPDX-License-Identifier: Apache-2.0 */
/* The databases of an index as files and tables: for annal stats and the like. */
#ifndef INDEX_SYS_DATABASES_H
#define INDEX_SYS_DATABASES_H

#include <annal/index.h>

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__index_count_fn)(void *arg, annal_slice type, uint64_t events);

/* How many events of each type are indexed, in one session or, if session is empty, in all; from
 * counters. */
ANNAL_MUST_CHECK annal_status annal__index_counts(annal_index *index, annal_slice session,
                                                  annal__index_count_fn fn, void *arg,
                                                  annal_error *err);

typedef struct annal__database_info {
    const char *name; /* "sessions.db"; as path, below the store or absolute */
    bool exists;      /* false: nothing else is known; it is created when it is first needed */
    uint64_t bytes;
    uint64_t wal_bytes;
    uint64_t free_bytes;      /* in bytes: what annal_index_vacuum() would release */
    const char *journal_mode; /* "wal", or "delete" if other programs write it too */
    const char *synchronous;  /* of our writer: "NORMAL" or "FULL" */
    /* pages after which our writer checkpoints; SQLite's own automatic checkpoint is off: only the
     * holder of the lock may checkpoint */
    uint32_t wal_autocheckpoint;
    uint32_t busy_timeout_ms; /* of our readers */
    bool foreign_keys;        /* whether our readers enforce them */
} annal__database_info;

/* Return 0 to continue; any other value stops, and is returned. What it gets is valid until it
 * returns. */
typedef int (*annal__database_fn)(void *arg, const annal__database_info *info);

/* Look at each database; creates none. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_databases(annal_index *index, annal__database_fn fn,
                                                     void *arg, annal_error *err);

/* users_write: it is not rebuilt by itself. Return 0 to continue. */
typedef int (*annal__damaged_fn)(void *arg, const char *name, bool users_write, const char *what);

/*
 * Read each database as it is, from the first page to the last, before anything else of the index
 * is used, and pass on those that are damaged: the next question rebuilds them. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__index_prove(annal_index *index, annal__damaged_fn fn,
                                                 void *arg, annal_error *err);

/*
 * Return 0 to continue; any other value stops, and is returned. Slices are valid until it returns.
 */
typedef int (*annal__table_fn)(void *arg, const char *database, annal_slice name, uint64_t rows);

/* How many rows each table has, in the databases as they are; private tables (_name) are left out,
 * and what does not exist is not created. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_tables(annal_index *index, annal__table_fn fn, void *arg,
                                                  annal_error *err);

/* How many sessions have each status, the most frequent first, in each database that has a table of
 * sessions; name is the status, or empty. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_statuses(annal_index *index, annal__table_fn fn,
                                                    void *arg, annal_error *err);

#endif
