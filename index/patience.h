/*
 * How long SQLite waits for other programs: as long as a wait may take, and all waits of the store
 * together (annal__store_may_wait()).
 *
 * (1) A lock of another connection is waited for by SQLite's busy handler, which is ours.
 * (2) While the header of a WAL index is torn or being made, by a process that is stopped just
 *     there, SQLite tries a hundred times and sleeps ten seconds in all, whatever the busy handler
 *     says. So the sleep is ours as well: a VFS that is the usual one but for that. When time is up
 *     it does not sleep any more, the tries are over in no time, and SQLITE_PROTOCOL says that
 *     somebody is busy.
 */
#ifndef INDEX_PATIENCE_H
#define INDEX_PATIENCE_H

#include <annal/store.h>

#include <sqlite3.h>

#include <stdatomic.h>

struct patience {
    sqlite3_vfs vfs; /* zName is name */
    char name[40];
    annal_store *store; /* NULL: a foreign database, of no store */
    const uint32_t *wait_ms;
    int (*sleep)(sqlite3_vfs *vfs, int us);
    _Atomic int64_t begun_us; /* monotonic: the series of tries that is under way */
};

/* Both stay where they are until annal__patience_done(), when no connection is left. */
annal_status annal__patience_init(struct patience *patience, annal_store *store,
                                  const uint32_t *wait_ms, annal_error *err);
void annal__patience_done(struct patience *patience);

/* Rule (1), for a connection that is to wait. */
void annal__patience_on(struct patience *patience, sqlite3 *db);

#endif
