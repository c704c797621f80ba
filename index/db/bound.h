/*
 * What a user's SQL may cost: time, memory, room for temporary files.
 *
 * Between steps nothing is counted, so a reader who takes his time costs no query its own. Memory
 * is what SQLite has of it beyond what it had at the begin, in this process, and temporary files
 * are all that SQLite has open in this process: other queries at the same time count with it.
 */
#ifndef INDEX_DB_BOUND_H
#define INDEX_DB_BOUND_H

#include <annal/query.h>

#include <sqlite3.h>

struct bound {
    sqlite3 *db;
    annal_limits limits;
    bool each_row; /* the time is for each row, not for all of them */
    int64_t left_us;
    int64_t begun_us; /* of the step */
    int64_t looked_us;
    int64_t memory;   /* of SQLite at the begin */
    int length;       /* of values, before */
    const char *what; /* went over its limit, which option says so; NULL: nothing */
};

/* Until annal__bound_end(), statements of db that annal__bound_step() steps are bounded. */
void annal__bound_begin(struct bound *bound, sqlite3 *db, const annal_limits *limits);
void annal__bound_end(struct bound *bound);

/* sqlite3_step(). */
int annal__bound_step(struct bound *bound, sqlite3_stmt *stmt);

/* Fill err when rc comes from a limit, and return its status; else ANNAL_OK. what: "SQL". */
annal_status annal__bound_fail(const struct bound *bound, int rc, const char *what,
                               annal_error *err);

#endif
