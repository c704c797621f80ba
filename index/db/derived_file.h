/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a derived database, for its writer (derived.c) and its readers (derived_read.c):
 * whether this program can use it, its stamp, and what a failure of SQLite means.
 */
#pragma once

#include "index/db/derived.h"
#include "journal/sys/seam.h"

/* Number of attempts to open the file while other processes delete and create it. */
#define DERIVED_IO_ATTEMPTS 5

static inline const struct io *derived_io(const struct derived *derived)
{
    return annal__store_io(derived->store);
}

annal_status annal__derived_open_db(struct derived *derived, const char *uri, int flags,
                                    sqlite3 **out_db, annal_error *err);

/* Return whether a process marked the file as damaged (page_proof.h, rule 3). */
bool annal__derived_is_marked(const struct derived *derived);

enum whose { OURS, STALE, ALTERED, EMPTY, FOREIGN };

/*
 * Find out what a file is, before anything else reads it, in a transaction that stays open.
 * *out_cookie: see annal__derived_cookie(). ALTERED: err has the reason, although the status is
 * ANNAL_OK.
 */
annal_status annal__derived_inspect(const struct derived *derived, sqlite3 *db, enum whose *out,
                                    int64_t *out_cookie, annal_error *err);

/* Read SQLite's cookie of the schema, a number that changes with each change of the schema. *stmt
 * is NULL at first, and is prepared. */
annal_status annal__derived_cookie(sqlite3 *db, sqlite3_stmt **stmt, int64_t *out,
                                   annal_error *err);

/* Find out whether the tables were built from the current text: derived_ops.is_current, with the
 * same db. */
annal_status annal__derived_is_current(const struct derived *derived, sqlite3 *db, bool *out,
                                       annal_error *err);

/* Read the stamp with "SELECT id, commits FROM _stamp", and reset stmt. */
annal_status annal__derived_stamp_step(sqlite3 *db, sqlite3_stmt *stmt, struct stamp *out,
                                       annal_error *err);

/*
 * Turn ANNAL_ERR_SQL into ANNAL_ERR_CORRUPT: our own statements are correct, so an error in a
 * statement means that a table was dropped or altered. Returns any other status unchanged.
 */
annal_status annal__derived_or_corrupt(const struct derived *derived, annal_status status,
                                       annal_error *err);

/*
 * Fail with ANNAL_ERR_BUSY: another program, which the message names if it is known, keeps the
 * database locked.
 */
annal_status annal__derived_fail_locked(const struct derived *derived, annal_error *err);
