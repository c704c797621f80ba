/* SPDX-License-Identifier: Apache-2.0 */
/* The files and tables of the databases of an index, for annal stats and similar commands. */
#pragma once

#include <annal/index.h>

/* A function that is called for each type. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. */
typedef int (*annal__index_count_fn)(void *arg, annal_slice type, uint64_t events);

/*
 * Report how many events of each type are indexed, in one session or, if session is empty, in all
 * sessions. The index contains these numbers, so no event is counted.
 */
ANNAL_MUST_CHECK annal_status annal__reader_counts(annal_index *index, annal_slice session,
                                                   annal__index_count_fn fn, void *arg,
                                                   annal_error *err);

typedef struct annal__database_info {
    const char *name; /* path of the database, below the store ("sessions.db") or absolute */
    /* whether the database exists; if not, the other members are unknown, and it is created when it
     * is first needed */
    bool exists;
    uint64_t bytes;
    uint64_t wal_bytes;
    uint64_t free_bytes;      /* bytes by which annal_index_vacuum() would reduce the file */
    const char *journal_mode; /* "wal", or "delete" if other programs write it too */
    const char *synchronous;  /* setting of the connection that writes: "NORMAL" or "FULL" */
    /* number of pages in the WAL after which our writer checkpoints; SQLite's own automatic
     * checkpoint is off, because only the holder of the lock may checkpoint */
    uint32_t wal_autocheckpoint;
    uint32_t busy_timeout_ms; /* time in ms that reading connections wait for a lock */
    bool foreign_keys;        /* whether our reading connections enforce foreign keys */
} annal__database_info;

/*
 * A function that is called for each database. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller. info is valid until it returns.
 */
typedef int (*annal__database_fn)(void *arg, const annal__database_info *info);

/* Call fn for each database of the store; creates none. Any thread. */
ANNAL_MUST_CHECK annal_status annal__maintain_databases(annal_index *index, annal__database_fn fn,
                                                        void *arg, annal_error *err);

/*
 * A function that is called for a damaged database. what: the damage. users_write: users write this
 * database, so it is not rebuilt automatically. It returns 0 to continue; any other value ends the
 * calls, and is returned to the caller.
 */
typedef int (*annal__damaged_fn)(void *arg, const char *name, bool users_write, const char *what);

/*
 * Examine each database except search.db in its current state, including the databases of these
 * sessions, or of all sessions if count is 0: the mark of a damaged page, the schema, and, if all
 * is set, every page. Damaged databases are reported; the next query rebuilds them. Call it before
 * anything else uses the index. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__maintain_prove(annal_index *index, const annal_slice *sessions,
                                                    size_t count, bool all, annal__damaged_fn fn,
                                                    void *arg, annal_error *err);

/* Examine search.db in the same way; if all is set, also the content of its index of words. Call it
 * before the first search. Any thread. */
ANNAL_MUST_CHECK annal_status annal__maintain_prove_search(annal_index *index, bool all,
                                                           annal__damaged_fn fn, void *arg,
                                                           annal_error *err);

/*
 * A function that is called with the number of rows of a table. It returns 0 to continue; any other
 * value ends the calls, and is returned to the caller. Slices are valid until it returns.
 */
typedef int (*annal__table_fn)(void *arg, const char *database, annal_slice name, uint64_t rows);

/*
 * Count the rows of each table in the existing databases. Skips private tables (_name) and creates
 * nothing. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__maintain_tables(annal_index *index, annal__table_fn fn,
                                                     void *arg, annal_error *err);

/*
 * Count the sessions by status, the most frequent status first, in each database that has a table
 * of sessions. fn is called with the status, which may be empty, as name. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__maintain_statuses(annal_index *index, annal__table_fn fn,
                                                       void *arg, annal_error *err);
