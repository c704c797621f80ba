/* A parsed pack, as apply.c uses it. */
#ifndef INDEX_PACK_H
#define INDEX_PACK_H

#include <annal/pack.h>

#include <sqlite3.h>

/* One `-- on` section. */
struct pack_handler {
    char *types; /* one or more, each with a NUL behind it, and an empty one at the end */
    char *guard; /* the sentence of its guard; NULL when it has none */
    char *sql;
    unsigned line; /* where sql begins, 1 for the first line of the file */
};

struct annal_pack {
    char *name;
    char *database;
    char *file;   /* what messages call it */
    char *tables; /* the SQL above the first section */
    unsigned tables_line;
    uint32_t version;
    uint64_t hash; /* of name, version and text */
    struct pack_handler *handlers;
    size_t handler_count;
};

/* Read a pack's text; whether its SQL is right is not known yet. See annal_pack_parse(). */
annal_status annal__pack_read(const char *name, annal_slice text, annal_pack **out_pack,
                              annal_error *err);

/* Make the pack's tables. */
annal_status annal__pack_make_tables(const annal_pack *pack, sqlite3 *db, annal_error *err);

/*
 * Prepare the next statement of a handler: *at moves behind it, and *out_stmt is NULL at the end.
 * Messages name file and line.
 */
annal_status annal__pack_next_statement(const annal_pack *pack, const struct pack_handler *handler,
                                        const char **at, sqlite3 *db, sqlite3_stmt **out_stmt,
                                        annal_error *err);

#endif
