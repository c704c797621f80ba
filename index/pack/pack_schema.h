/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of one pack in a database of packs: how they are created, dropped and changed, and the
 * record of the text from which they were created. The functions run in a transaction of the
 * writer, unless their comment says otherwise. The rules are in pack_database.c.
 */
#pragma once

#include "index/pack/packs.h"

static inline sqlite3 *pack_fill_db(const struct pack_fill *fill)
{
    return fill->follower.derived->db;
}

/* Drop the tables of a pack, create them from its current text, and delete its cursors, so that
 * they are filled again (pack_database.c, rule 2). */
annal_status annal__pack_schema_remake(struct pack_fill *fill, annal_error *err);

/* The record of the text from which the existing tables were created and filled. */
struct made {
    bool known;
    int64_t version;
    uint64_t tables_hash, rest_hash, handlers_hash;
};

/*
 * Read the record on a connection of the caller, to which the database is attached under this name.
 * The caller may be on another thread.
 */
annal_status annal__pack_schema_made_read(const struct pack_fill *fill, sqlite3 *db,
                                          const char *schema, struct made *out, annal_error *err);

/* Read the record on the writer's connection, as each transaction must do. */
annal_status annal__pack_schema_made_read_own(struct pack_fill *fill, struct made *out,
                                              annal_error *err);

bool annal__pack_schema_made_is_same(const struct made *made, const annal_pack *pack);

/*
 * Change the tables in place after the text of the pack's tables changed. *out_mended becomes true
 * if this was possible.
 */
annal_status annal__pack_schema_mend(struct pack_fill *fill, const struct made *made,
                                     bool *out_mended, annal_error *err);
