/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an applier that applier.c, applier_guards.c and applier_fill.c share. */
#pragma once

#include "index/pack/applier.h"
#include "index/pack/handler.h"

/* Sums over the events of a session, kept until annal__applier_flush(), because an UPDATE for each
 * event would cost more than the rest of its handling. */
struct fold {
    bool begun; /* whether the session has its row in the core table sessions */
    uint64_t events;
    int64_t latest_us;
    int64_t activity_us;
};

#define ROUTES     64 /* number of slots of the table applier.routes */
#define TYPE_BYTES 48 /* longest type in the table; a longer type is looked up for each event */

/* The handlers of a type, which are looked up once, because sessions have few types. */
struct route {
    char type[TYPE_BYTES];
    size_t len; /* length of type; 0: the slot is empty */
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
    struct pack_members members; /* of the event that is applied */
    sqlite3_stmt *savepoint, *undo, *release;
    sqlite3_stmt *insert_session;
    sqlite3_stmt *update_session;
    /* array of struct spent: the sections and events that are left out because they ran too long */
    struct buf spent;
    /* applies the events of rows that users wrote; NULL: no pack is writable */
    struct outbox_reader *outbox;
    /* statements that set a field of data to a value, or to its value in other data; NULL until a
     * fill first runs */
    sqlite3_stmt *put_field, *copy_field;
    char refused[512];
};

/* Return the handlers of a type; NULL if memory ran out. */
const struct route *annal__applier_route(struct applier *applier, annal_slice type);

/*
 * Run a section completely or not at all. *out_rc is SQLITE_OK, or SQLite's error, in which case
 * the section changed nothing and applier->refused contains the reason. If out_holds is not NULL, a
 * guard is checked (see annal__handler_run()), and the reason is in our own words instead of
 * SQLite's.
 */
annal_status annal__applier_run(struct applier *applier, const struct handler *handler,
                                annal_slice session, const annal_event *event, bool *out_holds,
                                int *out_rc, annal_error *err);
