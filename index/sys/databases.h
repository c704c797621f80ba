/* SPDX-License-Identifier: Apache-2.0 */
/* The databases of an index as files and tables, for annal stats and similar commands. */
#ifndef INDEX_SYS_DATABASES_H
#define INDEX_SYS_DATABASES_H

#include <annal/index.h>

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal__index_count_fn)(void *arg, annal_slice type, uint64_t events);

/*
 * Report from counters how many events of each type are indexed, in one session or, if session is
 * empty, in all.
 */
ANNAL_MUST_CHECK annal_status annal__reader_counts(annal_index *index, annal_slice session,
                                                   annal__index_count_fn fn, void *arg,
                                                   annal_error *err);

typedef struct annal__database_info {
    const char *name; /* "sessions.db"; like path, below the store or absolute */
    /* false: the other members are unknown; the database is created when it is first needed */
    bool exists;
    uint64_t bytes;
    uint64_t wal_bytes;
    uint64_t free_bytes;      /* bytes that annal_index_vacuum() would release */
    const char *journal_mode; /* "wal", or "delete" if other programs write it too */
    const char *synchronous;  /* setting of the writing connection: "NORMAL" or "FULL" */
    /* pages after which our writer checkpoints; SQLite's own automatic checkpoint is off: only the
     * holder of the lock may checkpoint */
    uint32_t wal_autocheckpoint;
    uint32_t busy_timeout_ms; /* how long reading connections wait for a lock */
    bool foreign_keys;        /* whether our readers enforce them */
} annal__database_info;

/*
 * Return 0 to continue; any other value stops, and is returned. The argument is valid until the
 * callback returns.
 */
typedef int (*annal__database_fn)(void *arg, const annal__database_info *info);

/* Call fn for each database. Creates none. Any thread. */
ANNAL_MUST_CHECK annal_status annal__maintain_databases(annal_index *index, annal__database_fn fn,
                                                        void *arg, annal_error *err);

/*
 * users_write: users write this database, so it is not rebuilt automatically. Return 0 to continue.
 */
typedef int (*annal__damaged_fn)(void *arg, const char *name, bool users_write, const char *what);

/*
 * Examine each database in its current state, also those of these sessions, or of all sessions if
 * count is 0: the mark of a damaged page, the schema, and, if all, every page. Report the damaged
 * ones; the next query rebuilds them. Call it before anything else uses the index. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__maintain_prove(annal_index *index, const annal_slice *sessions,
                                                    size_t count, bool all, annal__damaged_fn fn,
                                                    void *arg, annal_error *err);

/*
 * Return 0 to continue; any other value stops, and is returned. Slices are valid until the callback
 * returns.
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
 * of sessions. name is the status, or empty. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__maintain_statuses(annal_index *index, annal__table_fn fn,
                                                       void *arg, annal_error *err);

#endif
