/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a derived database is opened, created and rebuilt.
 *
 * (1) Only the holder of its lock writes or checkpoints (index_lock.h). The writer's connection
 *     stays open between transactions; before each transaction it asks SQLite whether the file was
 *     moved or deleted.
 * (2) A reader opens the file for each query, so it never reads a deleted file.
 * (3) No connection checkpoints on close: a connection to a deleted file would otherwise remove the
 *     WAL of the file that replaced it.
 * (4) A new file is created only after the -wal and -shm of the old file are removed: SQLite finds
 *     them by name.
 * (5) The file, -wal and -shm may be deleted one by one, and a new file may appear in between. So
 *     the writer compares all three with the files that it opened, and if only some of them were
 *     deleted, removes the rest, too. A reader compares the stamp of the database that it opened
 *     with the stamp of the database that was caught up.
 * (6) A file that is ours by application_id and user_version is kept. A file of ours with another
 *     version, with a schema that this program does not create (shape.h), or found corrupt
 *     (page_proof.h), is deleted. Any other file belongs to another program, and is moved to
 *     <name>.foreign.
 * (7) A link with the name of a database is refused, not followed: its target is not ours. (Not by
 *     SQLITE_OPEN_NOFOLLOW, which would also refuse a store that is reached through a link.)
 * (8) If other programs write the file too, it has no WAL (in SQLite before 3.51.3 two connections
 *     that write and checkpoint at once can corrupt the file), and nothing is deleted, only moved
 *     aside. Another program may switch to WAL nevertheless: then -wal and -shm appear and
 *     disappear, and prove nothing about the file.
 */
#include "index/db/derived_file.h"

#include "index/db/db.h"
#include "index/db/page_proof.h"
#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdio.h>
#include <string.h>

#define CACHE_KIB 16384

/* ---- The writer's connection ---- */

static void close_writer(struct derived *derived)
{
    if (derived->db != NULL)
        derived->ops->closing(derived->arg);
    sqlite3_finalize(derived->get_stamp);
    sqlite3_finalize(derived->count_commit);
    sqlite3_finalize(derived->get_cookie);
    derived->get_stamp = derived->count_commit = derived->get_cookie = NULL;
    derived->cookie = -1;
    annal__db_close(derived->db);
    derived->db = NULL;
    derived->wal_pages = 0;
}

static int note_wal_pages(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct derived *)arg)->wal_pages = pages;
    return SQLITE_OK;
}

static annal_status make_schema(struct derived *derived, annal_error *err)
{
    char ids[96];
    snprintf(ids, sizeof ids, "PRAGMA application_id = %d; PRAGMA user_version = %lld; COMMIT",
             (int)derived->application_id, (long long)derived->user_version);
    annal_status status = ANNAL_OK;
    if (!derived->private && !derived->rollback)
        status = annal__db_exec(derived->db, "PRAGMA page_size = 4096", err);
    if (!derived->private && status >= 0)
        status = annal__db_exec(
            derived->db,
            derived->rollback ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL", err);
    if (status >= 0)
        status = annal__db_exec(derived->db, "BEGIN IMMEDIATE", err);
    if (status >= 0)
        status = derived->ops->make(derived->arg, derived->db, err);
    return status < 0 ? status : annal__db_exec(derived->db, ids, err);
}

static annal_status open_writer(struct derived *derived, int flags, annal_error *err)
{
    annal_status status = annal__derived_open_db(derived, derived->path,
                                                 flags | SQLITE_OPEN_READWRITE, &derived->db, err);
    if (status < 0)
        return status;
    /* temp_store = MEMORY, because SQLite would otherwise write its statement journal into a file,
     * page by page, from the first 64 KiB of a transaction on. */
    char sql[160];
    snprintf(sql, sizeof sql,
             "PRAGMA synchronous = %s; PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY; "
             "PRAGMA secure_delete = ON", /* no byte of a deleted session may remain in the file */
             derived->rollback ? "FULL" : "NORMAL", CACHE_KIB);
    if (!derived->private && !derived->rollback)
        (void)annal__page_proof_reserve(derived->db);
    sqlite3_wal_hook(derived->db, note_wal_pages, derived);
    return annal__db_exec(derived->db, sql, err);
}

/*
 * Delete a file that cannot be used. If other programs write to it, it contains their data: move it
 * aside instead.
 */
static annal_status remove_unusable(const struct derived *derived, annal_error *err)
{
    return derived->rollback ? annal__files_move_aside(derived_io(derived), derived->path, err)
                             : annal__files_remove(derived_io(derived), derived->path, err);
}

/* Open an existing file as the writer. If it is not usable: move it aside or delete it, and leave
 * db closed. */
static annal_status open_existing(struct derived *derived, enum whose *out_whose, annal_error *err)
{
    annal_error why = {0};
    annal_status status = open_writer(derived, 0, &why);
    if (status >= 0)
        status = annal__derived_inspect(derived, derived->db, out_whose, &derived->cookie, &why);
    if (derived->db != NULL)
        annal__db_rollback(derived->db);
    if (status == ANNAL_ERR_CORRUPT)
        *out_whose = FOREIGN;
    else if (status < 0) {
        close_writer(derived);
        return annal__error_pass(err, status, &why);
    }
    if (*out_whose == OURS || *out_whose == EMPTY)
        return ANNAL_OK;
    close_writer(derived);
    if (*out_whose == ALTERED)
        annal__say(derived->store, ANNAL_LOG_WARNING,
                   "%s; the database is rebuilt from the journals", why.message);
    return *out_whose != FOREIGN ? remove_unusable(derived, err)
                                 : annal__files_move_aside(derived_io(derived), derived->path, err);
}

enum moved { IN_PLACE, MOVED, TORN_APART };

static enum moved was_moved(const struct derived *derived)
{
    int moved = 0;
    if (derived->private)
        return IN_PLACE;
    if (annal__derived_is_marked(derived))
        return TORN_APART;
    if (sqlite3_file_control(derived->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
        moved)
        return MOVED;
    /* other programs may create and delete -wal and -shm at any time, so these files do not show
     * whether the database was replaced: rule (8) */
    if (derived->rollback)
        return IN_PLACE;
    return annal__file_is_same(annal__file_id(derived_io(derived), derived->path, "-wal"),
                               derived->wal) &&
                   annal__file_is_same(annal__file_id(derived_io(derived), derived->path, "-shm"),
                                       derived->shm)
               ? IN_PLACE
               : TORN_APART;
}

/* Read the stamp on the writer's connection, as each transaction must do first. */
static annal_status read_own_stamp(struct derived *derived, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (derived->get_stamp == NULL)
        status = annal__db_prepare(derived->db, "SELECT id, commits FROM main._stamp",
                                   &derived->get_stamp, err);
    if (status >= 0)
        status = annal__derived_stamp_step(derived->db, derived->get_stamp, &derived->stamp, err);
    return annal__derived_or_corrupt(derived, status, err);
}

static annal_status count_commit(struct derived *derived, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (derived->count_commit == NULL)
        status = annal__db_prepare(derived->db, "UPDATE main._stamp SET commits = commits + 1",
                                   &derived->count_commit, err);
    return status < 0 ? status : annal__db_run(derived->count_commit, err);
}

annal_status annal__derived_renew(struct derived *derived, annal_error *err)
{
    int64_t id = 0;
    char sql[80];
    sqlite3_randomness((int)sizeof id, &id);
    snprintf(sql, sizeof sql, "UPDATE main._stamp SET id = %lld", (long long)id);
    annal_status status = annal__db_exec(derived->db, sql, err);
    if (status >= 0)
        derived->stamp.id = id;
    return status;
}

/* Open the writer's connection under the lock. Creates the file if it is missing, and removes or
 * moves aside a file that is not usable. */
static annal_status ensure_writer(struct derived *derived, annal_error *err)
{
    enum whose whose = EMPTY;
    annal_status status = ANNAL_OK;
    if (derived->db != NULL) {
        enum moved moved = was_moved(derived);
        if (moved == IN_PLACE)
            return ANNAL_OK;
        close_writer(derived);
        status = moved == TORN_APART ? annal__files_remove(derived_io(derived), derived->path, err)
                                     : ANNAL_OK;
        if (status < 0)
            return status;
    }
    if (!derived->private)
        status = annal__file_check(derived_io(derived), derived->path, derived->given_bytes, err);
    if (status >= 0 && annal__derived_is_marked(derived))
        status = annal__files_remove(derived_io(derived), derived->path, err);
    if (status >= 0 &&
        (derived->private || annal__file_is_there(derived_io(derived), derived->path)))
        status = open_existing(derived, &whose, err);
    bool fills = status >= 0 && (derived->db == NULL || whose == EMPTY);
    if (status >= 0 && derived->db == NULL) {
        status = annal__files_make(derived_io(derived), derived->path, derived->root_bytes, err);
        whose = EMPTY;
        if (status >= 0)
            status = open_writer(derived, SQLITE_OPEN_CREATE, err);
    }
    if (status >= 0 && whose == EMPTY)
        status = make_schema(derived, err);
    if (status >= 0)
        status = derived->ops->opened(derived->arg, derived->db, err);
    if (status >= 0)
        status = annal__derived_or_corrupt(
            derived, annal__derived_read_stamp(derived->db, "main", &derived->stamp, err), err);
    if (status < 0) {
        close_writer(derived);
        /* a new file could not be filled, for instance on a full disk: leave no empty file */
        if (fills && annal__error_is_io(status) && !derived->private)
            (void)annal__files_remove(derived_io(derived), derived->path, NULL);
        return status;
    }
    /* -wal and -shm exist now: SQLite opened them to read the stamp */
    derived->wal = annal__file_id(derived_io(derived), derived->path, "-wal");
    derived->shm = annal__file_id(derived_io(derived), derived->path, "-shm");
    return ANNAL_OK;
}

/* ---- Transactions ---- */

/*
 * Return the path of the store in whose directory the lock file is; NULL for a private database,
 * which needs no lock file.
 */
static const char *lock_place(const struct derived *derived)
{
    return derived->private ? NULL : annal_store_path(derived->store);
}

/* Take the lock of the database. Waits until the deadline, but no longer than the store may wait
 * (annal__store_may_wait()). */
static annal_status take_lock(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    int64_t begun_us = annal__clock_monotonic_us();
    int64_t most_us = annal__store_may_wait(derived->store, INT64_MAX);
    if (most_us < INT64_MAX && begun_us + most_us < deadline_us)
        deadline_us = begun_us + most_us;
    annal__store_wait_begin(derived->store);
    annal_status status =
        annal__index_lock_take(&derived->lock, lock_place(derived), deadline_us, err);
    annal__store_wait_end(derived->store);
    return status;
}

static bool gives_up(const struct derived *derived, int64_t deadline_us)
{
    return annal__deadline_passed(deadline_us) || annal__store_may_wait(derived->store, 1) <= 0;
}

/* Roll back the writer's transaction, unless SQLite already did so because of a failure. */
static void roll_back(struct derived *derived)
{
    if (derived->ops->undone != NULL)
        derived->ops->undone(derived->arg);
    if (sqlite3_get_autocommit(derived->db) == 0)
        (void)annal__db_exec(derived->db, "ROLLBACK", NULL);
}

/* Compare the schema with what this program creates, unless the schema has not changed since the
 * last comparison (shape.h, rule 4). */
static annal_status check_schema(struct derived *derived, annal_error *err)
{
    int64_t cookie = 0;
    if (derived->private)
        return ANNAL_OK;
    annal_status status = annal__derived_cookie(derived->db, &derived->get_cookie, &cookie, err);
    if (status < 0 || cookie == derived->cookie)
        return status;
    status = annal__derived_check(derived, derived->db, "main", err);
    if (status >= 0)
        derived->cookie = cookie;
    return status;
}

/* Begin a transaction on a usable file, and read the stamp in it. *out_current: whether the tables
 * were built from the current text; if not, the transaction is rolled back. */
static annal_status try_transaction(struct derived *derived, bool *out_current, annal_error *err)
{
    annal_status status = ensure_writer(derived, err);
    if (status >= 0)
        status = annal__db_exec(derived->db, "BEGIN IMMEDIATE", err);
    if (status == ANNAL_ERR_BUSY)
        return annal__derived_fail_locked(derived, err);
    if (status < 0)
        return status;
    status = check_schema(derived, err);
    if (status >= 0)
        status = read_own_stamp(derived, err);
    if (status >= 0)
        status = annal__derived_is_current(derived, NULL, out_current, err);
    if (status >= 0 && *out_current && derived->ops->begun != NULL)
        status = derived->ops->begun(derived->arg, err);
    if (status < 0 || !*out_current)
        roll_back(derived);
    return status;
}

static annal_status begin_transaction(struct derived *derived, annal_error *err)
{
    bool current = false;
    annal_status status = try_transaction(derived, &current, err);
    if (status < 0 || current)
        return status;
    /* another process rebuilt the tables from a different version of their SQL text, so open the
     * file again */
    close_writer(derived);
    status = try_transaction(derived, &current, err);
    if (status >= 0 && !current)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "the tables of '%s' were changed again right after they were rebuilt",
                             derived->path);
    return status;
}

static annal_status begin_once(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    struct patience_limit limit;
    annal_status status = take_lock(derived, deadline_us, err);
    if (status < 0)
        return status;
    annal__patience_limit(&derived->patience, &limit, deadline_us);
    status = begin_transaction(derived, err);
    if (status == ANNAL_ERR_CORRUPT) { /* the file can be rebuilt: delete it and try once more */
        close_writer(derived);
        status = remove_unusable(derived, err);
        if (status >= 0)
            status = begin_transaction(derived, err);
    }
    annal__patience_unlimit(&derived->patience, &limit);
    /* the file may have been deleted while it was being opened: the next attempt opens it again */
    if (annal__error_is_io(status))
        close_writer(derived);
    if (status < 0)
        annal__index_lock_give(&derived->lock);
    return status;
}

annal_status annal__derived_begin(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    if (derived->frozen)
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "the store is open for reading only, so its index is not updated");
    for (unsigned attempt = 0;; attempt++) {
        annal_error why = {0};
        annal_status status = begin_once(derived, deadline_us, &why);
        bool again = status == ANNAL_ERR_BUSY ||
                     (annal__error_is_io(status) && attempt < DERIVED_IO_ATTEMPTS &&
                      !annal__derived_is_hopeless(&why));
        if (!again || gives_up(derived, deadline_us))
            return annal__error_pass(err, status, &why);
        annal__store_wait_begin(derived->store);
        annal__deadline_pause(attempt);
        annal__store_wait_end(derived->store);
    }
}

/*
 * Commit. With a rollback journal, COMMIT waits until current readers end, and new readers are kept
 * out in the meantime. A COMMIT that gave up would roll back rows whose events are in a journal
 * already.
 */
static annal_status commit(struct derived *derived, annal_error *err)
{
    if (derived->rollback)
        annal__patience_on(&derived->patience, derived->db);
    annal_status status = annal__db_exec(derived->db, "COMMIT", err);
    sqlite3_busy_timeout(derived->db, 0);
    return status;
}

annal_status annal__derived_finish(struct derived *derived, bool keep, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (keep)
        status = count_commit(derived, err);
    if (keep && status >= 0)
        status = commit(derived, err);
    if (!keep || status < 0)
        roll_back(derived);
    if (keep && derived->wal_pages >= DERIVED_WAL_PAGES_CHECKPOINT)
        (void)sqlite3_wal_checkpoint_v2(derived->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return status;
}

annal_status annal__derived_end(struct derived *derived, bool keep, annal_error *err)
{
    annal_status status = annal__derived_finish(derived, keep, err);
    annal__index_lock_give(&derived->lock);
    return status;
}

annal_status annal__derived_hold(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    if (derived->frozen || derived->private)
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "cannot write '%s': the store is open for reading only", derived->path);
    annal_status status = take_lock(derived, deadline_us, err);
    if (status < 0)
        return status;
    if (!annal__file_is_there(derived_io(derived), derived->path))
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "the database '%s' does not exist", derived->path);
    if (status >= 0)
        status = ensure_writer(derived, err);
    if (status >= 0)
        status = check_schema(derived, err);
    if (status == ANNAL_ERR_BUSY)
        status = annal__derived_fail_locked(derived, err);
    if (status < 0)
        annal__index_lock_give(&derived->lock);
    return status;
}

void annal__derived_release(struct derived *derived)
{
    annal__index_lock_give(&derived->lock);
}

/* Open the connection that keeps a database in memory alive, after closing the previous one, which
 * deletes its content. */
static annal_status open_keep(struct derived *derived, annal_error *err)
{
    annal__db_close(derived->keep);
    derived->keep = NULL;
    return annal__derived_open_db(derived, derived->path,
                                  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &derived->keep, err);
}

annal_status annal__derived_discard(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    if (derived->frozen)
        return annal__fail(err, ANNAL_ERR_READONLY,
                           "cannot write '%s': the store is open for reading only", derived->path);
    annal_status status = take_lock(derived, deadline_us, err);
    if (status < 0)
        return status;
    close_writer(derived);
    status = derived->private ? open_keep(derived, err) : remove_unusable(derived, err);
    annal__index_lock_give(&derived->lock);
    return status;
}

annal_status annal__derived_empty_wal(struct derived *derived, int64_t deadline_us,
                                      annal_error *err)
{
    for (unsigned attempt = 0;; attempt++) {
        int rc =
            sqlite3_wal_checkpoint_v2(derived->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        if (rc == SQLITE_OK)
            return ANNAL_OK;
        if (rc != SQLITE_BUSY && rc != SQLITE_LOCKED && rc != SQLITE_PROTOCOL)
            return annal__db_fail(err, derived->db, rc, "cannot checkpoint the database '%s'",
                                  derived->path);
        if (gives_up(derived, deadline_us))
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "cannot empty the WAL of the database '%s': another program is "
                               "reading the database",
                               derived->path);
        annal__store_wait_begin(derived->store);
        annal__deadline_pause(attempt);
        annal__store_wait_end(derived->store);
    }
}

bool annal__derived_heal(struct derived *derived)
{
    return annal__derived_discard(derived, annal__deadline_after(derived->wait_ms), NULL) >= 0;
}

/* ---- Init and done ---- */

annal_status annal__derived_init(struct derived *derived, annal_store *store, const char *path,
                                 const char *lock_name, annal_error *err)
{
    derived->store = store;
    derived->cookie = -1;
    if (derived->wait_ms == 0)
        derived->wait_ms = annal__store_wait_ms(store);
    annal_status status =
        annal__index_lock_init(&derived->lock, derived_io(derived), lock_name, err);
    if (status < 0)
        return status;
    status = annal__patience_init(&derived->patience, store, &derived->wait_ms, err);
    if (status < 0) {
        annal__index_lock_done(&derived->lock);
        return status;
    }
    if (annal__readers_init(&derived->readers) < 0) {
        annal__patience_done(&derived->patience);
        annal__index_lock_done(&derived->lock);
        return annal__fail(err, ANNAL_ERR_NOMEM, "prepare the database '%s': out of memory", path);
    }
    const char *root = annal_store_path(store);
    size_t root_bytes = strlen(root);
    bool inside = strncmp(path, root, root_bytes) == 0 && path[root_bytes] == '/';
    const char *slash = strrchr(path, '/');
    derived->root_bytes = inside ? root_bytes : 0;
    derived->given_bytes = inside ? root_bytes : slash == NULL ? 0 : (size_t)(slash - path);
    derived->path = annal__strndup(path, strlen(path));
    if (derived->path != NULL)
        return ANNAL_OK;
    annal__readers_done(&derived->readers);
    annal__patience_done(&derived->patience);
    annal__index_lock_done(&derived->lock);
    return annal__fail(err, ANNAL_ERR_NOMEM, "prepare the database '%s': out of memory", path);
}

annal_status annal__derived_make_private(struct derived *derived, annal_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "file:/annal-%p?vfs=memdb", (void *)derived);
    char *path = annal__strndup(name, strlen(name));
    if (path == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open the index: out of memory");
    annal__free(derived->path);
    derived->path = path;
    derived->private = true;
    return open_keep(derived, err);
}

/* Copy the content of the WAL into the database and truncate the WAL, unless a reader prevents
 * it. */
static void tidy(struct derived *derived)
{
    if (derived->db != NULL && !derived->private && !derived->rollback &&
        was_moved(derived) == IN_PLACE)
        (void)sqlite3_wal_checkpoint_v2(derived->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                        NULL);
}

void annal__derived_rest(struct derived *derived)
{
    if (annal__index_lock_take(&derived->lock, lock_place(derived), 0, NULL) < 0)
        return;
    tidy(derived);
    close_writer(derived);
    annal__readers_rest(&derived->readers);
    annal__index_lock_rest(&derived->lock);
}

void annal__derived_done(struct derived *derived)
{
    if (derived->path == NULL)
        return;
    if (derived->db != NULL)
        annal__derived_rest(derived);
    /* annal__derived_rest() leaves the writer open if another process holds the lock; close it now,
     * because no thread of this process uses it any more */
    close_writer(derived);
    annal__readers_done(&derived->readers);
    annal__db_close(derived->keep);
    annal__patience_done(&derived->patience);
    annal__index_lock_done(&derived->lock);
    annal__free(derived->path);
    derived->path = NULL;
}
