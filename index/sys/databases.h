/* The databases of an index as files and tables: for annal stats and its kin. */
#ifndef INDEX_SYS_DATABASES_H
#define INDEX_SYS_DATABASES_H

#include <annal/index.h>

/* Return 0 to go on; anything else stops and is handed through. */
typedef int (*annal__index_count_fn)(void *arg, annal_slice type, uint64_t events);

/* How many events of each type are indexed, in one session or, when session is empty, in all; by
 * counters. */
ANNAL_MUST_CHECK annal_status annal__index_counts(annal_index *index, annal_slice session,
                                                  annal__index_count_fn fn, void *arg,
                                                  annal_error *err);

typedef struct annal__database_info {
    const char *name; /* "sessions.db"; as path, below the store or absolute */
    bool exists;      /* false: nothing else is known; it is made when it is first asked for */
    uint64_t bytes;
    uint64_t wal_bytes;
    uint64_t free_bytes;         /* of bytes, what annal_index_vacuum() would give back */
    const char *journal_mode;    /* "wal", or "delete" where others write too */
    const char *synchronous;     /* of our writer: "NORMAL" or "FULL" */
    uint32_t wal_autocheckpoint; /* pages after which our writer checkpoints; SQLite's own
                                    automatic is off: only the holder of the lock may */
    uint32_t busy_timeout_ms;    /* of our readers */
    bool foreign_keys;           /* whether our readers enforce them */
} annal__database_info;

/* Return 0 to go on; anything else stops and is handed through. The info lives until it returns. */
typedef int (*annal__database_fn)(void *arg, const annal__database_info *info);

/* Look at each database; makes none. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_databases(annal_index *index, annal__database_fn fn,
                                                     void *arg, annal_error *err);

/* Return 0 to go on; anything else stops and is handed through. Slices live until it returns. */
typedef int (*annal__table_fn)(void *arg, const char *database, annal_slice name, uint64_t rows);

/* How many rows each table has, as the databases stand; private tables (_name) are left out, and
 * what does not exist is not made. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_tables(annal_index *index, annal__table_fn fn, void *arg,
                                                  annal_error *err);

/* How many sessions have each status, the most frequent first, in each database that has a table of
 * sessions; name is the status, empty where there is none. Any thread. */
ANNAL_MUST_CHECK annal_status annal__index_statuses(annal_index *index, annal__table_fn fn,
                                                    void *arg, annal_error *err);

#endif
