/* SPDX-License-Identifier: Apache-2.0 */
/* What the SQL of a pack may do, and what its functions may return; see permit.c. */
#ifndef INDEX_PACK_PERMIT_H
#define INDEX_PACK_PERMIT_H

#include "index/pack/pack.h"

struct permit {
    const annal_pack *pack;
    bool makes_tables; /* whether this is the part that creates tables, not a section */
    bool saw_rows;     /* whether the statement is about rows or tables at all */
    bool inserts;      /* whether makes_tables, and this statement is an INSERT */
    char why[200];     /* why something was refused; empty: nothing was */
};

/*
 * Check an action while statements are compiled: sqlite3_set_authorizer(db, annal__permit, permit).
 */
int annal__permit(void *permit, int action, const char *first, const char *second,
                  const char *database, const char *trigger);

/*
 * Check a compiled statement, because VACUUM and EXPLAIN do not call the authorizer. If it returns
 * false, see why.
 */
bool annal__permit_statement(struct permit *permit, sqlite3_stmt *stmt);

/*
 * Disable clock and random functions on a connection on which handlers run: inside a transaction
 * they fail; outside they behave as SQLite's. Also limits the size of values. May be called more
 * than once.
 */
annal_status annal__permit_no_chance(sqlite3 *db, annal_error *err);

/* What statements have cost since annal__permit_steps(). */
struct spending {
    sqlite3 *db;
    /* calls of the progress handler that are left before there are too many instructions */
    unsigned left;
    bool looked;          /* whether the next two members are known */
    sqlite3_int64 memory; /* memory of SQLite at the first look */
    int written;          /* pages written by then */
    const char *why;      /* why they were stopped, or NULL */
};

/*
 * Limit the statements from now on: a statement stops with SQLITE_INTERRUPT if it and those before
 * it have run for about 100 million instructions of SQLite, or hold or write more than 256 MiB; why
 * says so. NULL removes the limit. *spending must be valid until then.
 */
void annal__permit_steps(sqlite3 *db, struct spending *spending);

#endif
