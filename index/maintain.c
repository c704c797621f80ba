/* SPDX-License-Identifier: Apache-2.0 */
/* Maintaining the databases of a store: their sizes, damage, tables, checkpoints, VACUUM,
 * rebuilding. */
#include "index/db/db.h"
#include "index/index.h"
#include "index/sys/databases.h"
#include "index/sys/wipe.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Time in ms that a checkpoint waits for readers while it holds the lock. */
#define READERS_WAIT_MS 500

typedef int (*database_fn)(void *arg, struct derived *derived, const char *name, annal_error *err);

/* Return the name of a database that users know: its path below the store, or its complete path. */
static const char *name_of(const annal_index *index, const char *path)
{
    const char *store = annal_store_path(index->store);
    size_t len = strlen(store);
    return strncmp(path, store, len) == 0 && path[len] == '/' ? path + len + 1 : path;
}

/* Call fn for sessions.db, then for the databases of packs, except those of single sessions. A
 * result of fn other than 0 ends the iteration and is returned. */
static annal_status each_database(annal_index *index, database_fn fn, void *arg, annal_error *err)
{
    struct pack_set *set = NULL;
    int verdict = index->derived.private ? 0 : fn(arg, &index->derived, "sessions.db", err);
    if (verdict != 0)
        return (annal_status)verdict;
    annal_status status = annal__packs_get(index, &set, err);
    if (status < 0)
        return status;
    struct pack_database *database = annal__packs_next(index, set, NULL);
    for (; verdict == 0 && database != NULL; database = annal__packs_next(index, set, database))
        if (!database->derived.private)
            verdict = fn(arg, &database->derived, name_of(index, database->derived.path), err);
    annal__packs_put(index, set);
    return (annal_status)verdict;
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char name[4096 + 8];
    struct stat info;
    int len = snprintf(name, sizeof name, "%s%s", path, suffix);
    return len > 0 && (size_t)len < sizeof name && lstat(name, &info) == 0 ? (uint64_t)info.st_size
                                                                           : 0;
}

static uint64_t all_bytes(const char *path)
{
    return file_bytes(path, "") + file_bytes(path, "-wal");
}

/* ---- Their sizes and settings ---- */

struct look {
    annal__database_fn fn;
    void *arg;
};

static int look_at(void *arg, struct derived *derived, const char *name, annal_error *err)
{
    struct look *look = arg;
    annal__database_info info = {.name = name,
                                 .journal_mode = derived->rollback ? "delete" : "wal",
                                 .synchronous = derived->rollback ? "FULL" : "NORMAL",
                                 .wal_autocheckpoint =
                                     derived->rollback ? 0 : DERIVED_WAL_PAGES_CHECKPOINT,
                                 .busy_timeout_ms = derived->wait_ms};
    sqlite3 *db = NULL;
    struct stamp stamp;
    int64_t page = 0, pages = 0, keys = 0;
    if (!annal__file_is_there(annal__store_io(derived->store), derived->path))
        return look->fn(look->arg, &info);
    info.exists = true;
    info.bytes = file_bytes(derived->path, "");
    info.wal_bytes = file_bytes(derived->path, "-wal");
    annal_status status = annal__derived_reader(derived, derived->wait_ms, &db, &stamp, err);
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA page_size", &page, err);
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA freelist_count", &pages, err);
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA foreign_keys", &keys, err);
    annal__db_close(db);
    if (status < 0)
        return status;
    info.free_bytes = (uint64_t)(page * pages);
    info.foreign_keys = keys != 0;
    return look->fn(look->arg, &info);
}

annal_status annal__maintain_databases(annal_index *index, annal__database_fn fn, void *arg,
                                       annal_error *err)
{
    return each_database(index, look_at, &(struct look){fn, arg}, err);
}

/* ---- Damage ---- */

struct proving {
    const annal_index *index;
    bool all; /* whether every page is read, or only the mark of damage and the schema */
    annal__damaged_fn fn;
    void *arg;
};

static annal_status prove(const struct proving *proving, struct derived *derived, annal_error *err)
{
    annal_error damage = {0};
    annal_status status = annal__derived_prove(derived, proving->all, &damage, err);
    if (status != ANNAL_DAMAGE)
        return status;
    return (annal_status)proving->fn(proving->arg, name_of(proving->index, derived->path),
                                     derived->rollback, damage.message);
}

static annal_status prove_database(void *arg, struct pack_database *database, annal_slice session,
                                   annal_error *err)
{
    (void)session;
    return prove(arg, &database->derived, err);
}

annal_status annal__maintain_prove_search(annal_index *index, bool all, annal__damaged_fn fn,
                                          void *arg, annal_error *err)
{
    const struct proving proving = {index, all, fn, arg};
    annal_status status = prove(&proving, &index->search.derived, err);
    return status == ANNAL_OK && all ? annal__search_check(&index->search, fn, arg, err) : status;
}

annal_status annal__maintain_prove(annal_index *index, const annal_slice *sessions, size_t count,
                                   bool all, annal__damaged_fn fn, void *arg, annal_error *err)
{
    struct proving proving = {index, all, fn, arg};
    struct pack_set *set = NULL;
    annal_status status = prove(&proving, &index->derived, err);
    if (status == ANNAL_OK)
        status = annal__packs_get(index, &set, err);
    if (status == ANNAL_OK)
        status = annal__packs_each(index, set, PACK_EVERYONE, sessions, count, prove_database,
                                   &proving, err);
    annal__packs_put(index, set);
    return status;
}

/* ---- Their tables ---- */

struct tables {
    annal__table_fn fn;
    void *arg;
    bool statuses;
};

/* Call fn for each row of sql, whose columns are a name and a number. */
static int hand_out(const struct tables *tables, sqlite3 *db, const char *sql, const char *database,
                    annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int verdict = annal__db_prepare(db, sql, &stmt, err);
    if (verdict < 0)
        return verdict;
    int rc = SQLITE_ROW;
    while (verdict == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        verdict = tables->fn(tables->arg, database, annal__db_column(stmt, 0),
                             (uint64_t)sqlite3_column_int64(stmt, 1));
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        verdict =
            annal__db_fail(err, db, rc, "cannot count the rows of the database '%s'", database);
    sqlite3_finalize(stmt);
    return verdict;
}

static int count_table(const struct tables *tables, sqlite3 *db, const char *table,
                       const char *database, annal_error *err)
{
    char *sql = sqlite3_mprintf("SELECT %Q, count(*) FROM \"%w\"", table, table);
    if (sql == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "count the rows of '%s': out of memory", database);
    int verdict = hand_out(tables, db, sql, database, err);
    sqlite3_free(sql);
    return verdict;
}

static int count_tables(const struct tables *tables, sqlite3 *db, const char *database,
                        annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int verdict =
        annal__db_prepare(db,
                          "SELECT name FROM sqlite_schema WHERE type = 'table' AND "
                          /* virtual tables are skipped, because their module may be missing on this
                           * connection */
                          "rootpage > 0 AND "
                          "substr(name, 1, 1) <> '_' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' "
                          "ORDER BY name",
                          &stmt, err);
    int rc = SQLITE_ROW;
    while (verdict == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        verdict =
            count_table(tables, db, (const char *)sqlite3_column_text(stmt, 0), database, err);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        verdict =
            annal__db_fail(err, db, rc, "cannot list the tables of the database '%s'", database);
    sqlite3_finalize(stmt);
    return verdict;
}

static int count_statuses(const struct tables *tables, sqlite3 *db, const char *database,
                          annal_error *err)
{
    int64_t has = 0;
    int verdict = annal__db_integer(
        db, "SELECT count(*) FROM pragma_table_info('sessions') WHERE name = 'status'", &has, err);
    if (verdict < 0 || has == 0)
        return verdict;
    return hand_out(tables, db,
                    "SELECT COALESCE(status, ''), count(*) FROM sessions GROUP BY status "
                    "ORDER BY 2 DESC, 1",
                    database, err);
}

static int look_inside(void *arg, struct derived *derived, const char *name, annal_error *err)
{
    const struct tables *tables = arg;
    sqlite3 *db = NULL;
    struct stamp stamp;
    if (!annal__file_is_there(annal__store_io(derived->store), derived->path))
        return 0;
    int verdict = annal__derived_reader(derived, derived->wait_ms, &db, &stamp, err);
    if (verdict >= 0)
        verdict = tables->statuses ? count_statuses(tables, db, name, err)
                                   : count_tables(tables, db, name, err);
    annal__db_close(db);
    return verdict;
}

annal_status annal__maintain_tables(annal_index *index, annal__table_fn fn, void *arg,
                                    annal_error *err)
{
    return each_database(index, look_inside, &(struct tables){fn, arg, false}, err);
}

annal_status annal__maintain_statuses(annal_index *index, annal__table_fn fn, void *arg,
                                      annal_error *err)
{
    return each_database(index, look_inside, &(struct tables){fn, arg, true}, err);
}

/* ---- Checkpoint and VACUUM ---- */

struct work {
    annal_maintenance_fn fn;
    void *arg;
    const char *checkpoint; /* PRAGMA of the checkpoint; NULL: VACUUM */
};

static annal_status run_checkpoint(sqlite3 *db, const char *pragma, annal_maintenance *what,
                                   annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, pragma, &stmt, err);
    if (status < 0)
        return status;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        what->busy = sqlite3_column_int(stmt, 0) != 0;
        what->log_pages = sqlite3_column_int64(stmt, 1);
        what->checkpointed = sqlite3_column_int64(stmt, 2);
    } else {
        status = annal__db_fail(err, db, rc, "%s", pragma);
    }
    sqlite3_finalize(stmt);
    return status;
}

static annal_status run_vacuum(sqlite3 *db, annal_maintenance *what, annal_error *err)
{
    annal_maintenance unused = {0};
    /* VACUUM writes a copy of the database: into a file, not into memory */
    annal_status status = annal__db_exec(db, "PRAGMA temp_store = FILE; VACUUM", err);
    (void)annal__db_exec(db, "PRAGMA temp_store = MEMORY", NULL);
    /* after VACUUM the new pages are in the WAL: a checkpoint copies them into the database */
    if (status >= 0)
        status = run_checkpoint(db, "PRAGMA wal_checkpoint(TRUNCATE)", &unused, err);
    what->busy = unused.busy;
    return status;
}

static int work_on(void *arg, struct derived *derived, const char *name, annal_error *err)
{
    struct work *work = arg;
    annal_error why = {0};
    annal_maintenance what = {.name = name, .log_pages = -1, .checkpointed = -1};
    if (!annal__file_is_there(annal__store_io(derived->store), derived->path))
        return 0;
    what.bytes_before = all_bytes(derived->path);
    annal_status status =
        annal__derived_hold(derived, annal__deadline_after(derived->wait_ms), &why);
    if (status >= 0) {
        sqlite3_busy_timeout(derived->db, READERS_WAIT_MS);
        status = work->checkpoint != NULL
                     ? run_checkpoint(derived->db, work->checkpoint, &what, &why)
                     : run_vacuum(derived->db, &what, &why);
        sqlite3_busy_timeout(derived->db, 0);
        annal__derived_release(derived);
    }
    if (status == ANNAL_ERR_NOMEM)
        return annal__error_pass(err, status, &why);
    what.bytes_after = all_bytes(derived->path);
    what.done = status >= 0;
    what.error = status >= 0 ? NULL : &why;
    return work->fn(work->arg, &what);
}

/* ---- Rebuilding ---- */

static annal_catch_up_options patient(const annal_catch_up_options *options)
{
    annal_catch_up_options own = {.timeout_ms = ANNAL_NO_TIMEOUT};
    if (options != NULL)
        own = *options;
    if (own.timeout_ms == 0)
        own.timeout_ms = ANNAL_NO_TIMEOUT;
    return own;
}

static annal_status rebuild_core(annal_index *index, const annal_catch_up_options *options,
                                 annal_error *err)
{
    struct stamp stamp;
    bool stuck;
    annal_status status =
        annal__derived_discard(&index->derived, annal__deadline_after(options->timeout_ms), err);
    if (status >= 0)
        status = annal__indexer_run(&index->follower, NULL, 0, NULL, options, &stamp, &stuck, err);
    return status;
}

annal_status annal_index_rebuild(annal_index *index, const annal_catch_up_options *options,
                                 annal_error *err)
{
    const annal_catch_up_options own = patient(options);
    annal_status status = rebuild_core(index, &own, err);
    return status == ANNAL_OK ? annal__packs_rebuild(index, NULL, &own, err) : status;
}

annal_status annal_pack_rebuild(annal_index *index, const char *name,
                                const annal_catch_up_options *options, annal_error *err)
{
    const annal_catch_up_options own = patient(options);
    return strcmp(name, "core") == 0 ? rebuild_core(index, &own, err)
                                     : annal__packs_rebuild(index, name, &own, err);
}

/* ---- After a deletion ---- */

struct wiping {
    int64_t deadline_us;
    /* names of databases that may still contain deleted content, with the reasons */
    struct buf left;
};

static void note_left(struct wiping *wiping, const char *name, const char *why)
{
    (void)annal__buf_printf(&wiping->left, "%s%s (%s)", wiping->left.len == 0 ? "" : ", ", name,
                            why);
}

/*
 * Empty the WAL of a database: deleted rows were overwritten in their pages, but the WAL may still
 * contain older versions of these pages. A failure is added to wiping->left.
 */
static int wipe_database(void *arg, struct derived *derived, const char *name, annal_error *err)
{
    struct wiping *wiping = arg;
    annal_error why = {0};
    (void)err;
    if (derived->rollback || !annal__file_is_there(annal__store_io(derived->store), derived->path))
        return 0;
    annal_status status = annal__derived_hold(derived, wiping->deadline_us, &why);
    if (status >= 0) {
        status = annal__derived_empty_wal(derived, wiping->deadline_us, &why);
        annal__derived_release(derived);
    }
    if (status < 0)
        note_left(wiping, name, why.message);
    return 0;
}

annal_status annal__maintain_wipe(annal_index *index, const annal_slice *sessions, size_t count,
                                  annal_error *err)
{
    struct wiping wiping = {.deadline_us = annal__deadline_after(index->derived.wait_ms),
                            .left = {.limit = 400}};
    annal_error why = {0};
    struct stamp stamp;
    annal_index *used = index;
    annal_status status =
        annal__fallback_catch_up(index, sessions, count, NULL, &used, &stamp, &why);
    if (status >= 0)
        status = annal__packs_catch_up(used, PACK_SHARED, sessions, count, NULL, &why);
    if (status < 0)
        note_left(&wiping, "the index", why.message);
    status = each_database(index, wipe_database, &wiping, err);
    if (status >= 0 && annal__search_wipe(&index->search, wiping.deadline_us, &why) < 0)
        note_left(&wiping, "search.db", why.message);
    if (status >= 0 && wiping.left.len > 0)
        status = annal__fail(err, ANNAL_ERR_BUSY, "%.*s", (int)wiping.left.len, wiping.left.ptr);
    annal__buf_done(&wiping.left);
    return status;
}

annal_status annal_index_wal_checkpoint(annal_index *index, annal_wal_mode mode,
                                        annal_maintenance_fn fn, void *arg, annal_error *err)
{
    static const char *const pragmas[] = {
        "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(FULL)", "PRAGMA wal_checkpoint(RESTART)"};
    if ((size_t)mode >= sizeof pragmas / sizeof *pragmas)
        return annal__fail(err, ANNAL_ERR_INVALID, "checkpoint the index: %d is not a valid mode",
                           (int)mode);
    return each_database(index, work_on, &(struct work){fn, arg, pragmas[mode]}, err);
}

annal_status annal_index_vacuum(annal_index *index, annal_maintenance_fn fn, void *arg,
                                annal_error *err)
{
    return each_database(index, work_on, &(struct work){fn, arg, NULL}, err);
}
