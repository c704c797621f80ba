/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits for a user's SQL: time, memory, room for temporary files.
 *
 * Time between steps of a statement does not count, so a slow reader does not use up the time of
 * its query. The memory that counts is what SQLite uses in this process beyond its use at the
 * beginning, and the temporary files are all that SQLite has open in this process: other queries at
 * the same time count, too.
 */
#pragma once

#include <annal/query.h>

#include <sqlite3.h>

struct bound {
    sqlite3 *db;
    annal_limits limits;
    bool each_row; /* whether the time limit is for each row, not for all rows together */
    int64_t left_us;
    int64_t begun_us; /* time at which the step began */
    int64_t looked_us;
    int64_t memory; /* number of bytes of memory that SQLite used when the limit began */
    /* SQLite's limit for the length of a value before annal__bound_begin(), which
     * annal__bound_end() sets again */
    int length;
    const char *what; /* name of the option whose limit was exceeded, or NULL */
};

/* Begin to limit statements of db that annal__bound_step() steps, until annal__bound_end(). */
void annal__bound_begin(struct bound *bound, sqlite3 *db, const annal_limits *limits);
void annal__bound_end(struct bound *bound);

/* Call sqlite3_step() within the limits. */
int annal__bound_step(struct bound *bound, sqlite3_stmt *stmt);

/*
 * Fill err and return its status if rc was caused by a limit; otherwise return ANNAL_OK. `what` is
 * the beginning of the message: "SQL".
 */
annal_status annal__bound_fail(const struct bound *bound, int rc, const char *what,
                               annal_error *err);
