/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The readers of a derived database: connections that are opened, and connections that are kept.
 * A reader never reads a deleted or replaced file: rules (2) and (5) of derived.c.
 */
#include "index/db/derived_file.h"

#include "index/db/db.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"

#include <stdio.h>
#include <string.h>

/*
 * Sizes of SQLite's page cache in KiB. READER_CACHE_KIB: for a new connection; a walk through an
 * index reads the pages of its table repeatedly. The other size is for a connection that is kept
 * for later readers.
 */
#define READER_CACHE_KIB 32768
#define KEPT_CACHE_KIB   4096

bool annal__derived_exists(const struct derived *derived)
{
    return derived->private || annal__file_is_there(derived_io(derived), derived->path);
}

static void set_cache(sqlite3 *db, int kib)
{
    char sql[60];
    snprintf(sql, sizeof sql, "PRAGMA cache_size = -%d", kib);
    (void)annal__db_exec(db, sql, NULL);
}

/* A connection that was just opened. */
struct opened {
    sqlite3 *db;
    struct stamp stamp;
    int64_t cookie; /* SQLite's cookie of the schema: annal__derived_cookie() */
};

static annal_status open_reader(struct derived *derived, const char *uri, struct opened *out,
                                annal_error *err)
{
    sqlite3 *db = NULL;
    enum whose whose = EMPTY;
    bool current = true;
    annal_status status = derived->private ? ANNAL_OK
                                           : annal__file_check(derived_io(derived), derived->path,
                                                               derived->given_bytes, err);
    if (status >= 0 && annal__derived_is_marked(derived))
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the database '%s' is damaged", derived->path);
    if (status >= 0)
        status = annal__derived_open_db(derived, uri, SQLITE_OPEN_READONLY, &db, err);
    if (status < 0)
        return status;
    annal__patience_on(&derived->patience, db);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    set_cache(db, READER_CACHE_KIB);
    annal_error why = {0};
    status = annal__derived_inspect(derived, db, &whose, &out->cookie, &why);
    if (err != NULL && (status < 0 || whose == ALTERED))
        *err = why;
    if (status >= 0 && whose == ALTERED)
        status = ANNAL_ERR_CORRUPT;
    if (status >= 0 && whose != OURS)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "the database '%s' was not written by this version of annal",
                             derived->path);
    if (status >= 0)
        status = annal__derived_or_corrupt(
            derived, annal__derived_read_stamp(db, "main", &out->stamp, err), err);
    if (status >= 0 && !derived->frozen)
        status = annal__derived_is_current(derived, db, &current, err);
    if (status >= 0 && !current)
        status = annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "the tables of the database '%s' were written by a different version of annal",
            derived->path);
    /* the lock of a read transaction would stop writers of this database */
    if (derived->private || derived->rollback)
        annal__db_rollback(db);
    if (status == ANNAL_ERR_BUSY)
        status = annal__derived_fail_locked(derived, err);
    if (status < 0) {
        annal__db_close(db);
        return status;
    }
    out->db = db;
    return ANNAL_OK;
}

static annal_status immutable_uri(const struct derived *derived, struct buf *uri, annal_error *err)
{
    annal_status status = annal__buf_printf(uri, "file:");
    for (const char *c = derived->path; status >= 0 && *c != '\0'; c++)
        status = strchr("?#%", *c) != NULL ? annal__buf_printf(uri, "%%%02x", (unsigned)*c)
                                           : annal__buf_append(uri, c, 1);
    status = annal__buf_printf(uri, "?immutable=1");
    if (status < 0 || annal__buf_cstr(uri) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compose a file name: out of memory");
    return ANNAL_OK;
}

/* Open the file of a read-only store. On read-only media a WAL database can be opened only as
 * immutable, and then without the content of its WAL. */
static annal_status open_frozen(struct derived *derived, struct opened *out, annal_error *err)
{
    SCOPED_BUF uri = {0};
    annal_status status = open_reader(derived, derived->path, out, err);
    /*
     * ANNAL_ERR_IO only: a file that other programs lock or write must not be opened as immutable
     */
    if (!annal__error_is_io(status))
        return status;
    status = immutable_uri(derived, &uri, err);
    return status < 0 ? status : open_reader(derived, uri.ptr, out, err);
}

static annal_status reader_until(struct derived *derived, int64_t deadline_us, struct opened *out,
                                 annal_error *err)
{
    if (derived->frozen)
        return open_frozen(derived, out, err);
    for (unsigned attempt = 0;; attempt++) {
        annal_status status = open_reader(derived, derived->path, out, err);
        if (status >= 0 || status == ANNAL_ERR_BUSY || attempt >= DERIVED_IO_ATTEMPTS ||
            (attempt > 0 && annal__deadline_passed(deadline_us)))
            return status;
        /* The file is missing, foreign, not current, or was just deleted: let the writer create
         * it. */
        status = annal__derived_begin(derived, deadline_us, err);
        if (status >= 0)
            status = annal__derived_end(derived, true, err);
        if (status < 0)
            return status;
        annal__deadline_pause(attempt);
    }
}

/* Get a connection from get() in at most wait_ms milliseconds. */
static annal_status get_within(struct derived *derived, uint32_t wait_ms,
                               annal_status (*get)(struct derived *derived, int64_t deadline_us,
                                                   struct opened *out, annal_error *err),
                               sqlite3 **out_db, struct stamp *out_stamp, annal_error *err)
{
    struct patience_limit limit;
    int64_t deadline_us = annal__deadline_after(wait_ms);
    annal__patience_limit(&derived->patience, &limit, deadline_us);
    struct opened opened = {0};
    annal_status status = get(derived, deadline_us, &opened, err);
    annal__patience_unlimit(&derived->patience, &limit);
    if (status < 0)
        return status;
    *out_db = opened.db;
    *out_stamp = opened.stamp;
    return ANNAL_OK;
}

annal_status annal__derived_reader(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err)
{
    return get_within(derived, wait_ms, reader_until, out_db, out_stamp, err);
}

/*
 * Find out whether any NOT NULL column in the database contains NULL. typeof() reads the value; IS
 * NULL is answered from the declaration.
 */
static annal_status holds_null(sqlite3 *db, bool *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(
        db,
        "SELECT printf('SELECT EXISTS (SELECT 1 FROM \"%w\" WHERE ''null'' IN (%s))', t.name, "
        "(SELECT group_concat(printf('typeof(\"%w\")', name)) FROM pragma_table_xinfo(t.name) "
        "WHERE \"notnull\")) FROM pragma_table_list AS t "
        "WHERE t.schema = 'main' AND t.type = 'table'",
        &stmt, err);
    int rc = SQLITE_DONE;
    *out = false;
    while (status >= 0 && !*out && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        int64_t found = 0;
        status = annal__db_integer(db, (const char *)sqlite3_column_text(stmt, 0), &found, err);
        *out = found != 0;
    }
    if (status >= 0 && !*out && rc != SQLITE_DONE)
        status =
            annal__db_fail(err, db, rc, "cannot check a database of the index for NULL values");
    sqlite3_finalize(stmt);
    return status;
}

/*
 * Check the whole database. Each page is compared with its hash when it is read (page_proof.h); in
 * a database without hashes the rows are compared with the indexes, too. SQLite 3.40.0 to 3.41.0
 * look at another column of a table WITHOUT ROWID whose key is not its first columns, and report a
 * NULL that does not exist: each such report is checked against the rows.
 */
static annal_status check(const struct derived *derived, sqlite3 *db, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *sql =
        derived->rollback ? "PRAGMA integrity_check(2147483647)" : "PRAGMA quick_check(2147483647)";
    bool maybe_null = false, null = false;
    int rc = SQLITE_DONE;
    annal_status status = derived->ops->add_functions == NULL
                              ? ANNAL_OK
                              : derived->ops->add_functions(derived->arg, db, err);
    if (status >= 0)
        status = annal__db_prepare(db, sql, &stmt, err);
    while (status >= 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(stmt, 0);
        if (found != NULL && strncmp(found, "NULL value in ", 14) == 0)
            maybe_null = true;
        else if (found == NULL || strcmp(found, "ok") != 0)
            status = annal__fail(err, ANNAL_ERR_CORRUPT, "%s", found == NULL ? "?" : found);
    }
    if (status >= 0 && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "cannot check the database '%s'", derived->path);
    sqlite3_finalize(stmt);
    if (status >= 0 && maybe_null)
        status = holds_null(db, &null, err);
    return status >= 0 && null
               ? annal__fail(err, ANNAL_ERR_CORRUPT, "a NOT NULL column contains NULL")
               : status;
}

bool annal__derived_heal_if_corrupt(struct derived *derived)
{
    struct stamp unused;
    sqlite3 *db = NULL;
    if (derived->frozen)
        return false;
    if (annal__derived_is_marked(derived))
        return annal__derived_heal(derived);
    annal_status status = annal__derived_reader(derived, derived->wait_ms, &db, &unused, NULL);
    if (status >= 0)
        status = check(derived, db, NULL);
    annal__db_close(db);
    return status == ANNAL_ERR_CORRUPT && annal__derived_heal(derived);
}

/* Open the file in its current state, without creating, deleting or moving a file. */
static annal_status open_as_is(struct derived *derived, sqlite3 **out_db, enum whose *out_whose,
                               annal_error *err)
{
    SCOPED_BUF uri = {0};
    int64_t unused;
    annal_status status =
        annal__derived_open_db(derived, derived->path, SQLITE_OPEN_READONLY, out_db, err);
    if (status >= 0)
        annal__patience_on(&derived->patience, *out_db);
    if (status >= 0)
        status = annal__derived_inspect(derived, *out_db, out_whose, &unused, err);
    if (!annal__error_is_io(status) || !derived->frozen)
        return status;
    annal__db_close(*out_db);
    *out_db = NULL;
    status = immutable_uri(derived, &uri, err);
    if (status >= 0)
        status = annal__derived_open_db(derived, uri.ptr, SQLITE_OPEN_READONLY, out_db, err);
    return status < 0 ? status : annal__derived_inspect(derived, *out_db, out_whose, &unused, err);
}

annal_status annal__derived_prove(struct derived *derived, bool all, annal_error *out_damage,
                                  annal_error *err)
{
    sqlite3 *db = NULL;
    enum whose whose = EMPTY;
    annal_error why = {0};
    annal_status status = ANNAL_OK;
    if (derived->private || !annal__file_is_there(derived_io(derived), derived->path))
        return ANNAL_OK;
    if (!annal__derived_is_marked(derived))
        status = open_as_is(derived, &db, &whose, &why);
    if (status >= 0 && whose == ALTERED)
        status = ANNAL_ERR_CORRUPT;
    if (status >= 0 && whose == OURS && all)
        status = check(derived, db, &why);
    annal__db_close(db);
    if (status != ANNAL_ERR_CORRUPT && annal__derived_is_marked(derived))
        status =
            annal__fail(&why, ANNAL_ERR_CORRUPT, "a page of the database does not match its hash");
    if (status == ANNAL_ERR_CORRUPT) {
        *out_damage = why;
        return ANNAL_DAMAGE;
    }
    return annal__error_pass(err, status, &why);
}

/* Return whether the schema has not changed since it was compared for this kept connection
 * (shape.h, rule 4). */
static bool has_same_schema(struct reader *reader)
{
    int64_t cookie = 0;
    return annal__derived_cookie(reader->db, &reader->get_cookie, &cookie, NULL) >= 0 &&
           cookie == reader->cookie;
}

static annal_status borrow_until(struct derived *derived, int64_t deadline_us, struct opened *out,
                                 annal_error *err)
{
    if (derived->frozen || derived->private || derived->rollback)
        return reader_until(derived, deadline_us, out, err);
    struct reader *reader =
        annal__readers_take(&derived->readers, derived_io(derived), derived->path);
    if (reader != NULL) {
        if (!annal__derived_is_marked(derived) &&
            annal__readers_run(reader->db, "BEGIN", NULL) >= 0 && has_same_schema(reader) &&
            annal__derived_stamp_step(reader->db, reader->get_stamp, &out->stamp, NULL) >= 0) {
            out->db = reader->db;
            return ANNAL_OK;
        }
        annal__readers_give(&derived->readers, reader->db, false);
    }
    annal_status status = reader_until(derived, deadline_us, out, err);
    if (status < 0)
        return status;
    set_cache(out->db, KEPT_CACHE_KIB);
    annal__readers_add(&derived->readers, derived_io(derived), derived->path, out->db, out->cookie);
    return ANNAL_OK;
}

annal_status annal__derived_borrow(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err)
{
    return get_within(derived, wait_ms, borrow_until, out_db, out_stamp, err);
}

annal_status annal__derived_take(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err)
{
    annal_status status = annal__derived_borrow(derived, wait_ms, out_db, out_stamp, err);
    if (status < 0)
        return status;
    annal__readers_let_go(&derived->readers, *out_db);
    annal__db_rollback(*out_db);
    set_cache(*out_db, READER_CACHE_KIB);
    return ANNAL_OK;
}

void annal__derived_give(struct derived *derived, sqlite3 *db, bool clean)
{
    annal__readers_give(&derived->readers, db, clean);
}

annal_status annal__derived_open_read_only(struct derived *derived, annal_error *err)
{
    struct opened opened = {0};
    annal_error why = {0};
    annal_status status = ANNAL_ERR_NOTFOUND;
    if (annal__file_is_there(derived_io(derived), derived->path))
        status = open_frozen(derived, &opened, &why);
    if (status == ANNAL_ERR_CORRUPT)
        annal__say(derived->store, ANNAL_LOG_WARNING,
                   "the store is open for reading only, so its index is built in memory: %s",
                   why.message);
    if (status < 0)
        return annal__derived_make_private(derived, err);
    annal__db_close(opened.db);
    derived->frozen = true;
    return ANNAL_OK;
}
