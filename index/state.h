/* The state of one session, as the files of this folder share it. */
#ifndef INDEX_STATE_H
#define INDEX_STATE_H

#include "index/apply.h"
#include "journal/base/buf.h"

#include <annal/pack.h>

#include <sqlite3.h>

/*
 * A state is a SQLite database in memory with the tables of the packs and one of ours: _state, one
 * row that says which session and up to which event. Events are applied inside a transaction that
 * ends when somebody reads.
 */
struct annal_state {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    sqlite3 *db;
    struct applier *applier;
    const annal_pack **packs;
    size_t pack_count;
    annal_pack *core; /* ours, when the caller brought no packs */
    uint64_t seq;
    uint64_t refused;
    bool in_transaction;
};

/* End the transaction that events are applied in: what is read from here on is all there. */
annal_status annal__state_settle(annal_state *state, annal_error *err);

/* ---- state_json.c ---- */

/* One column of a row as JSON. */
annal_status annal__state_put_value(struct buf *out, sqlite3_stmt *stmt, int column);

#endif
