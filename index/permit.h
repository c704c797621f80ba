/*
 * What the SQL of a pack may do, and what its functions may say; see permit.c.
 */
#ifndef INDEX_PERMIT_H
#define INDEX_PERMIT_H

#include "index/pack.h"

struct permit {
    const annal_pack *pack;
    bool makes_tables; /* else it is a section */
    bool saw_rows;     /* it is about rows or tables at all */
    bool inserts;      /* makes_tables, and this statement is an INSERT */
    char why[200];     /* why something was refused; empty: nothing was */
};

/* While statements are compiled: sqlite3_set_authorizer(db, annal__permit, permit). */
int annal__permit(void *permit, int action, const char *first, const char *second,
                  const char *database, const char *trigger);

/* Afterwards, for VACUUM and EXPLAIN ask for nothing. False: why says so. */
bool annal__permit_statement(struct permit *permit, sqlite3_stmt *stmt);

/*
 * Take clock and dice from a connection on which handlers run: inside a transaction whatever asks
 * for them fails; outside they say what SQLite's say. More than once does no harm.
 */
annal_status annal__permit_no_chance(sqlite3 *db, annal_error *err);

/*
 * From now on a statement stops with SQLITE_INTERRUPT when it and those before it have run for some
 * 100 million instructions of SQLite's. NULL: as long as they like again. *left must live until then.
 */
void annal__permit_steps(sqlite3 *db, unsigned *left);

#endif
