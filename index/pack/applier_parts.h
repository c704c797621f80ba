/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an applier that applier.c, applier_guards.c and applier_fill.c share. */
#ifndef INDEX_PACK_APPLIER_PARTS_H
#define INDEX_PACK_APPLIER_PARTS_H

#include "index/pack/applier.h"
#include "index/pack/handler.h"

/* Sums until the flush, because one UPDATE per event would cost more than everything else. */
struct fold {
    bool begun; /* whether the session's row exists */
    uint64_t events;
    int64_t latest_us;
    int64_t activity_us;
};

/* The handlers of a type: looked up once, because sessions have few types. */
#define ROUTES     64
#define TYPE_BYTES 48 /* a longer type is looked up each time */

struct route {
    char type[TYPE_BYTES];
    size_t len; /* length of type; 0: empty */
    const struct handler **handlers;
    size_t count;
    bool guarded; /* whether one of the handlers has a guard */
};

struct applier {
    sqlite3 *db;
    struct handler *handlers;
    size_t handler_count;
    struct route routes[ROUTES];
    struct route long_route;
    bool has_core;
    bool settles; /* whether a pack has a section `-- settle` */
    struct fold fold;
    sqlite3_stmt *savepoint, *undo, *release;
    sqlite3_stmt *insert_session;
    sqlite3_stmt *update_session;
    /* array of struct spent: sections that are not run again */
    struct buf spent;
    struct outbox_reader *outbox;         /* NULL: no pack is writable */
    sqlite3_stmt *put_field, *copy_field; /* NULL until they are needed */
    char refused[512];
};

/* Return the route of a type; NULL: no memory. */
const struct route *annal__applier_route(struct applier *applier, annal_slice type);

/*
 * Run a section completely or not at all. *out_rc is SQLITE_OK, or SQLite's error, after which
 * nothing was changed; applier->refused has the reason: in our words if out_holds is not NULL, that
 * is, if a guard is checked (see annal__handler_run()).
 */
annal_status annal__applier_run(struct applier *applier, const struct handler *handler,
                                annal_slice session, const annal_event *event, bool *out_holds,
                                int *out_rc, annal_error *err);

#endif
