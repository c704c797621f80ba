/* SPDX-License-Identifier: Apache-2.0 */
/* The limits for the SQL of a pack: which statements it may contain, and what they may cost; see
 * permit.c. */
#pragma once

#include "index/db/token.h"
#include "index/pack/pack.h"

struct permit {
    const annal_pack *pack;
    bool makes_tables; /* whether the statement is before the first section, and creates tables */
    /* whether SQLite called annal__permit() for the statement, as it does not for VACUUM */
    bool saw_rows;
    bool inserts;  /* whether makes_tables is set and the statement is an INSERT */
    char why[200]; /* why the statement was refused; empty if it was allowed */
};

/*
 * Check an action while a statement is compiled: sqlite3_set_authorizer(db, annal__permit, permit).
 */
int annal__permit(void *permit, int action, const char *first, const char *second,
                  const char *database, const char *trigger);

/*
 * Check a compiled statement, because VACUUM and EXPLAIN do not call the authorizer. Returns false,
 * and sets permit->why, if the statement is not allowed.
 */
bool annal__permit_statement(struct permit *permit, sqlite3_stmt *stmt);

/*
 * Return whether a call of a function of SQLite reads the clock or the time zone whatever the
 * event: it has no argument for the time, 'subsec' in its place, or 'localtime' or 'utc' after it.
 * at points behind the name.
 */
bool annal__permit_reads_clock(const struct token *function, const char *at);

/*
 * Disable clock and random functions on a connection on which handlers run: inside a transaction
 * they fail, outside they work as SQLite's own functions. Also limits the size of values. May be
 * called more than once.
 */
annal_status annal__permit_no_chance(sqlite3 *db, annal_error *err);

/* The cost of the statements since annal__permit_steps(). */
struct spending {
    sqlite3 *db;
    /* calls of the progress handler that remain before the limit of instructions is reached */
    unsigned left;
    bool looked;          /* whether memory and written are set */
    sqlite3_int64 memory; /* SQLite's memory at the first call of the progress handler */
    int written;          /* pages written at the first call of the progress handler */
    const char *why;      /* which limit stopped the statements; NULL if none did */
};

/*
 * Limit the statements from now on: a statement stops with SQLITE_INTERRUPT if all of them together
 * have run for about 100 million instructions of SQLite, or hold or write more than 256 MiB;
 * spending->why is the reason. spending NULL removes the limit; until then *spending must be valid.
 */
void annal__permit_steps(sqlite3 *db, struct spending *spending);
