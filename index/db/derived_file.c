/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/derived_file.h"

#include "index/db/db.h"
#include "index/db/page_proof.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/lock_holder.h"

#include <errno.h>
#include <stdio.h>

bool annal__derived_is_hopeless(const annal_error *why)
{
    static const int numbers[] = {ENOSPC, EDQUOT, EFBIG,   EACCES, EPERM,
                                  EROFS,  EISDIR, ENOTDIR, ELOOP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (why->os_errno == numbers[i])
            return true;
    return false;
}

/* ---- Opening it ---- */

annal_status annal__derived_open_db(struct derived *derived, const char *uri, int flags,
                                    sqlite3 **out_db, annal_error *err)
{
    derived->patience.proves = !derived->rollback;
    return annal__db_open_on(derived->private ? NULL : annal__patience_vfs(&derived->patience), uri,
                             flags | SQLITE_OPEN_URI, out_db, err);
}

bool annal__derived_is_marked(const struct derived *derived)
{
    return !derived->private && !derived->rollback &&
           annal__file_id(derived_io(derived), derived->path, PROOF_MARK).inode != 0;
}

annal_status annal__derived_cookie(sqlite3 *db, sqlite3_stmt **stmt, int64_t *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (*stmt == NULL)
        status = annal__db_prepare(db, "PRAGMA main.schema_version", stmt, err);
    if (status < 0)
        return status;
    int rc = sqlite3_step(*stmt);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(*stmt, 0);
    else
        status = annal__db_fail(err, db, rc,
                                "cannot read the schema version of a database of the index");
    sqlite3_reset(*stmt);
    return status;
}

annal_status annal__derived_check(const struct derived *derived, sqlite3 *db, const char *schema,
                                  annal_error *err)
{
    return derived->private ? ANNAL_OK : derived->ops->check(derived->arg, db, schema, err);
}

/* Find out from the header what kind of file db is; nothing in its schema is run. */
static annal_status read_header(const struct derived *derived, sqlite3 *db, enum whose *out,
                                annal_error *err)
{
    int64_t application = 0, version = 0, tables = 0;
    annal_status status = annal__db_integer(db, "PRAGMA application_id", &application, err);
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA user_version", &version, err);
    bool ours = status >= 0 && application == derived->application_id;
    if (status >= 0)
        status = annal__db_integer(db, "SELECT COUNT(*) FROM sqlite_schema", &tables, err);
    if (status == ANNAL_ERR_CORRUPT && ours) {
        *out = STALE;
        return ANNAL_OK;
    }
    if (status < 0)
        return status;
    if (ours)
        *out = version == derived->user_version ? OURS : STALE;
    else
        *out = application == 0 && tables == 0 ? EMPTY : FOREIGN;
    /* an older program wrote the file without hashes of its pages: it must be rebuilt */
    if (*out != FOREIGN && !annal__page_proof_holds(db))
        *out = STALE;
    return ANNAL_OK;
}

/* Implementation: the first pragma begins the transaction. So the schema that is compared is the
 * one that SQLite parses in this transaction, and keeps while the cookie stays the same. */
annal_status annal__derived_inspect(const struct derived *derived, sqlite3 *db, enum whose *out,
                                    int64_t *out_cookie, annal_error *err)
{
    annal_status status = annal__db_exec(db, "BEGIN", err);
    if (status >= 0)
        status = read_header(derived, db, out, err);
    if (status < 0 || *out != OURS)
        return status;
    status = annal__db_integer(db, "PRAGMA main.schema_version", out_cookie, err);
    if (status >= 0)
        status = annal__derived_check(derived, db, "main", err);
    if (status != ANNAL_ERR_CORRUPT)
        return status;
    *out = ALTERED;
    return ANNAL_OK;
}

annal_status annal__derived_is_current(const struct derived *derived, sqlite3 *db, bool *out,
                                       annal_error *err)
{
    *out = true;
    if (derived->ops->is_current == NULL)
        return ANNAL_OK;
    return annal__derived_or_corrupt(derived, derived->ops->is_current(derived->arg, db, out, err),
                                     err);
}

/* ---- Stamps ---- */

annal_status annal__derived_stamp_step(sqlite3 *db, sqlite3_stmt *stmt, struct stamp *out,
                                       annal_error *err)
{
    annal_status status = ANNAL_OK;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (struct stamp){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    else
        status =
            rc == SQLITE_DONE
                ? annal__fail(err, ANNAL_ERR_CORRUPT, "a database of the index has no version")
                : annal__db_fail(err, db, rc, "cannot read the version of a database of the index");
    sqlite3_reset(stmt);
    return status;
}

annal_status annal__derived_read_stamp(sqlite3 *db, const char *schema, struct stamp *out,
                                       annal_error *err)
{
    char sql[160];
    sqlite3_stmt *stmt = NULL;
    sqlite3_snprintf((int)sizeof sql, sql, "SELECT id, commits FROM \"%w\"._stamp", schema);
    annal_status status = annal__db_prepare(db, sql, &stmt, err);
    if (status >= 0)
        status = annal__derived_stamp_step(db, stmt, out, err);
    sqlite3_finalize(stmt);
    return status;
}

bool annal__derived_stamp_holds(struct stamp opened, struct stamp caught_up)
{
    return opened.id == caught_up.id && opened.commits >= caught_up.commits;
}

/* ---- Failures ---- */

annal_status annal__derived_or_corrupt(const struct derived *derived, annal_status status,
                                       annal_error *err)
{
    return status == ANNAL_ERR_SQL
               ? annal__fail(err, ANNAL_ERR_CORRUPT,
                             "tables of the database '%s' were dropped or altered", derived->path)
               : status;
}

/*
 * Return the id of the process that has a lock on the database, or 0 if unknown. In WAL mode
 * SQLite's locks are on the -shm file.
 */
static uint32_t holder_of(const struct derived *derived)
{
    static const char *const suffixes[] = {"", "-shm"};
    const struct io *io = derived_io(derived);
    uint32_t pid = 0;
    for (size_t i = 0; i < 2 && pid == 0; i++) {
        SCOPED_BUF path = {0};
        struct stat file;
        if (annal__buf_printf(&path, "%s%s", derived->path, suffixes[i]) >= 0 &&
            annal__buf_cstr(&path) != NULL && io->stat(io->arg, path.ptr, &file) == 0)
            pid = annal__lock_holder_of(&file, true);
    }
    return pid;
}

annal_status annal__derived_fail_locked(const struct derived *derived, annal_error *err)
{
    char name[HOLDER_BYTES];
    uint32_t pid = holder_of(derived);
    return annal__fail(err, ANNAL_ERR_BUSY, "another program keeps the database '%s' locked%s%s",
                       derived->path, pid == 0 ? "" : ": ",
                       pid == 0 ? "" : annal__lock_holder_name(pid, name));
}
