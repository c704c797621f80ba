/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of one pack in a database of packs: created, dropped, mended, and the text from which
 * they were created. All of it happens in a transaction of the writer, unless a function says
 * otherwise; the rules are in pack_database.c.
 */
#ifndef INDEX_PACK_PACK_SCHEMA_H
#define INDEX_PACK_PACK_SCHEMA_H

#include "index/pack/packs.h"

static inline sqlite3 *pack_fill_db(const struct pack_fill *fill)
{
    return fill->follower.derived->db;
}

/* Rule 2: drop the tables, create them from the pack's text, and delete the pack's cursors. */
annal_status annal__pack_schema_remake(struct pack_fill *fill, annal_error *err);

/* The text from which the existing tables were created. */
struct made {
    bool known;
    int64_t version;
    uint64_t tables_hash, rest_hash, handlers_hash;
};

/*
 * Read it on a connection of the caller, which may be on another thread, where the database is
 * attached under this name.
 */
annal_status annal__pack_schema_made_read(const struct pack_fill *fill, sqlite3 *db,
                                          const char *schema, struct made *out, annal_error *err);

/* Read what a pack created on the writer's connection, as each transaction must. */
annal_status annal__pack_schema_made_read_own(struct pack_fill *fill, struct made *out,
                                              annal_error *err);

bool annal__pack_schema_made_is_same(const struct made *made, const annal_pack *pack);

/*
 * Change the tables in place if only they differ from the pack's text, and little. *out_mended is
 * set only if that was possible.
 */
annal_status annal__pack_schema_mend(struct pack_fill *fill, const struct made *made,
                                     bool *out_mended, annal_error *err);

#endif
