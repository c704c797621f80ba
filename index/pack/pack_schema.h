/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of one pack in a database of packs: created, dropped, mended, and what they were made
 * from. All of it happens in a transaction of the writer, unless a function says otherwise; the
 * rules are in pack_database.c.
 */
#ifndef INDEX_PACK_PACK_SCHEMA_H
#define INDEX_PACK_PACK_SCHEMA_H

#include "index/pack/packs.h"

static inline sqlite3 *pack_fill_db(const struct pack_fill *fill)
{
    return fill->follower.derived->db;
}

/* Rule 2: drop them, create them from the pack's text, and delete the pack's cursors. */
annal_status annal__pack_schema_remake(struct pack_fill *fill, annal_error *err);

/* Whether they are as they were created. If users write, the outbox sees what they changed. */
annal_status annal__pack_schema_whole(struct pack_fill *fill, sqlite3 *db, bool *out,
                                      annal_error *err);

/* What the existing tables were made from. */
struct made {
    bool known;
    int64_t version;
    uint64_t tables_hash, rest_hash, handlers_hash;
};

/* On the connection of a reader, which belongs to the caller, and may be on another thread. */
annal_status annal__pack_schema_made_read(const struct pack_fill *fill, sqlite3 *db,
                                          struct made *out, annal_error *err);

/* On the writer's connection, which asks in each transaction. */
annal_status annal__pack_schema_made_read_own(struct pack_fill *fill, struct made *out,
                                              annal_error *err);

bool annal__pack_schema_made_is_same(const struct made *made, const annal_pack *pack);

/*
 * If only the tables differ from the pack's text, and little: change them in place. *out_mended is
 * set only if that was possible.
 */
annal_status annal__pack_schema_mend(struct pack_fill *fill, const struct made *made,
                                     bool *out_mended, annal_error *err);

#endif
