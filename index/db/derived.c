/*
 * How a derived database is opened, created and rebuilt.
 *
 * (1) Only the holder of its lock writes or checkpoints (lock.h). The writer's connection stays
 *     open between transactions; before each, it asks SQLite whether the file was moved or deleted.
 * (2) A reader opens the file for each question, so it never reads a deleted one.
 * (3) No connection checkpoints on close: a connection to a deleted file would otherwise remove the
 *     WAL of the file that replaced it.
 * (4) A new file is created only after the -wal and -shm of an old one are gone: SQLite finds them
 *     by name.
 * (5) The file, -wal and -shm may be deleted one by one, and a new file may appear in between. So
 *     the writer compares all three with what it opened, and if only a part is gone, removes the
 *     rest, too. A reader compares the stamp of what it opened with that of what was caught up.
 * (6) A file that is ours by application_id and user_version is kept. One of ours with another
 *     version, or found corrupt, is deleted. Any other file belongs to somebody else, and is moved
 *     to <name>.foreign.
 * (7) A link in the place of a database is refused, not followed: its target is not ours. (Not by
 *     SQLITE_OPEN_NOFOLLOW, which would also refuse a store that is reached through a link.)
 * (8) If other programs write the file too, there is no WAL (in SQLite before 3.51.3 two
 *     connections that write and checkpoint at once can corrupt the file), and nothing is deleted,
 *     only moved aside. Another program may switch to WAL nevertheless: then -wal and -shm come and
 *     go, and say nothing about the file.
 */
#include "index/db/derived.h"

#include "index/db/database.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/lock_holder.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CACHE_KIB   16384
#define IO_ATTEMPTS 5

/* A walk through an index reads the pages of its table again and again; a connection that is kept
 * for long gets a smaller cache. */
#define READER_CACHE_KIB 32768
#define KEPT_CACHE_KIB   4096

static const struct io *io_of(const struct derived *derived)
{
    return annal__store_io(derived->store);
}

bool annal__index_is_hopeless(const annal_error *why)
{
    static const int numbers[] = {ENOSPC, EDQUOT, EFBIG,   EACCES, EPERM,
                                  EROFS,  EISDIR, ENOTDIR, ELOOP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (why->os_errno == numbers[i])
            return true;
    return false;
}

/* ---- The writer's connection ---- */

/* Our own statements on our own tables are correct; if SQLite reports an error in them, a table is
 * gone. */
static annal_status or_corrupt(const struct derived *derived, annal_status status, annal_error *err)
{
    return status == ANNAL_ERR_SQL
               ? annal__fail(err, ANNAL_ERR_CORRUPT, "tables of '%s' were dropped or altered",
                             derived->path)
               : status;
}

static void close_writer(struct derived *derived)
{
    if (derived->db != NULL)
        derived->ops->closing(derived->arg);
    sqlite3_finalize(derived->get_stamp);
    sqlite3_finalize(derived->count_commit);
    derived->get_stamp = derived->count_commit = NULL;
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
    if (!derived->private)
        status = annal__db_exec(
            derived->db,
            derived->rollback ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL", err);
    if (status >= 0)
        status = annal__db_exec(derived->db, "BEGIN IMMEDIATE", err);
    if (status >= 0)
        status = derived->ops->make(derived->arg, derived->db, err);
    if (status >= 0)
        status = annal__db_exec(derived->db, ids, err);
    return status;
}

static annal_status open_on(struct derived *derived, const char *uri, int flags, sqlite3 **out_db,
                            annal_error *err)
{
    return annal__db_open_on(derived->private ? NULL : annal__patience_vfs(&derived->patience), uri,
                             flags | SQLITE_OPEN_URI, out_db, err);
}

static annal_status open_writer(struct derived *derived, int flags, annal_error *err)
{
    annal_status status =
        open_on(derived, derived->path, flags | SQLITE_OPEN_READWRITE, &derived->db, err);
    if (status < 0)
        return status;
    /* The statement journal is kept in memory: otherwise SQLite writes it into a file, page by
     * page, from the first 64 KiB of a transaction on. */
    char sql[160];
    snprintf(sql, sizeof sql,
             "PRAGMA synchronous = %s; PRAGMA cache_size = -%d; PRAGMA temp_store = MEMORY; "
             "PRAGMA secure_delete = ON", /* nothing of a deleted session may stay */
             derived->rollback ? "FULL" : "NORMAL", CACHE_KIB);
    sqlite3_wal_hook(derived->db, note_wal_pages, derived);
    return annal__db_exec(derived->db, sql, err);
}

enum whose { OURS, STALE, EMPTY, FOREIGN };

static annal_status inspect(const struct derived *derived, sqlite3 *db, enum whose *out,
                            annal_error *err)
{
    int64_t application = 0, version = 0, tables = 0;
    annal_status status = annal__db_integer(db, "PRAGMA application_id", &application, err);
    if (status >= 0)
        status = annal__db_integer(db, "PRAGMA user_version", &version, err);
    if (status >= 0)
        status = annal__db_integer(db, "SELECT COUNT(*) FROM sqlite_schema", &tables, err);
    if (status < 0)
        return status;
    if (application == derived->application_id)
        *out = version == derived->user_version ? OURS : STALE;
    else
        *out = application == 0 && tables == 0 ? EMPTY : FOREIGN;
    return ANNAL_OK;
}

/* Delete a file that cannot be used; but one that other programs write has data of theirs, so it is
 * kept. */
static annal_status take_away(const struct derived *derived, annal_error *err)
{
    return derived->rollback ? annal__files_move_aside(io_of(derived), derived->path, err)
                             : annal__files_remove(io_of(derived), derived->path, err);
}

/* A file that exists: keep it, or move it out of the way. */
static annal_status open_existing(struct derived *derived, enum whose *out_whose, annal_error *err)
{
    annal_error why = {0};
    annal_status status = open_writer(derived, 0, &why);
    if (status >= 0)
        status = inspect(derived, derived->db, out_whose, &why);
    if (status == ANNAL_ERR_CORRUPT)
        *out_whose = FOREIGN;
    else if (status < 0) {
        close_writer(derived);
        if (err != NULL)
            *err = why;
        return status;
    }
    if (*out_whose == OURS || *out_whose == EMPTY)
        return ANNAL_OK;
    close_writer(derived);
    return *out_whose == STALE ? take_away(derived, err)
                               : annal__files_move_aside(io_of(derived), derived->path, err);
}

enum moved { IN_PLACE, MOVED, TORN_APART };

static enum moved was_moved(const struct derived *derived)
{
    int moved = 0;
    if (derived->private)
        return IN_PLACE;
    if (sqlite3_file_control(derived->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
        moved)
        return MOVED;
    if (derived->rollback) /* rule 7 */
        return IN_PLACE;
    return annal__file_is_same(annal__file_id(io_of(derived), derived->path, "-wal"),
                               derived->wal) &&
                   annal__file_is_same(annal__file_id(io_of(derived), derived->path, "-shm"),
                                       derived->shm)
               ? IN_PLACE
               : TORN_APART;
}

static annal_status step_stamp(sqlite3 *db, sqlite3_stmt *stmt, struct stamp *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (struct stamp){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    else
        status = rc == SQLITE_DONE ? annal__fail(err, ANNAL_ERR_CORRUPT, "the index has no stamp")
                                   : annal__db_fail(err, db, rc, "read the index");
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
        status = step_stamp(db, stmt, out, err);
    sqlite3_finalize(stmt);
    return status;
}

/* The stamp, read on the writer's connection, which does this in each transaction. */
static annal_status read_own_stamp(struct derived *derived, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (derived->get_stamp == NULL)
        status = annal__db_prepare(derived->db, "SELECT id, commits FROM main._stamp",
                                   &derived->get_stamp, err);
    if (status >= 0)
        status = step_stamp(derived->db, derived->get_stamp, &derived->stamp, err);
    return or_corrupt(derived, status, err);
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

bool annal__stamp_holds(struct stamp opened, struct stamp caught_up)
{
    return opened.id == caught_up.id && opened.commits >= caught_up.commits;
}

/* Under the lock: open the writer, on a file that is ours and in its place. */
static annal_status ensure_writer(struct derived *derived, annal_error *err)
{
    enum whose whose = EMPTY;
    annal_status status = ANNAL_OK;
    if (derived->db != NULL) {
        enum moved moved = was_moved(derived);
        if (moved == IN_PLACE)
            return ANNAL_OK;
        close_writer(derived);
        status = moved == TORN_APART ? annal__files_remove(io_of(derived), derived->path, err)
                                     : ANNAL_OK;
        if (status < 0)
            return status;
    }
    if (!derived->private)
        status = annal__file_check(io_of(derived), derived->path, derived->given_bytes, err);
    if (status >= 0 && (derived->private || annal__file_is_there(io_of(derived), derived->path)))
        status = open_existing(derived, &whose, err);
    bool fills = status >= 0 && (derived->db == NULL || whose == EMPTY);
    if (status >= 0 && derived->db == NULL) {
        status = annal__files_make(io_of(derived), derived->path, derived->root_bytes, err);
        whose = EMPTY;
        if (status >= 0)
            status = open_writer(derived, SQLITE_OPEN_CREATE, err);
    }
    if (status >= 0 && whose == EMPTY)
        status = make_schema(derived, err);
    if (status >= 0)
        status = derived->ops->opened(derived->arg, derived->db, err);
    if (status >= 0)
        status = or_corrupt(
            derived, annal__derived_read_stamp(derived->db, "main", &derived->stamp, err), err);
    if (status < 0) {
        close_writer(derived);
        if (fills && status == ANNAL_ERR_IO && !derived->private) /* full disk: no empty file */
            (void)annal__files_remove(io_of(derived), derived->path, NULL);
        return status;
    }
    derived->wal =
        annal__file_id(io_of(derived), derived->path, "-wal"); /* reading has opened them */
    derived->shm = annal__file_id(io_of(derived), derived->path, "-shm");
    return ANNAL_OK;
}

/* ---- Transactions ---- */

/* The store whose directory has the lock file; a private database needs none. */
static const char *lock_place(const struct derived *derived)
{
    return derived->private ? NULL : annal_store_path(derived->store);
}

/* Wait until the deadline, but no longer than the store may wait at all. */
static annal_status take_lock(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    int64_t begun_us = annal__monotonic_us();
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

/* The process that has a lock on the database, as far as is known: SQLite's locks of a WAL are on
 * its -shm. */
static uint32_t holder_of(const struct derived *derived)
{
    static const char *const suffixes[] = {"", "-shm"};
    const struct io *io = io_of(derived);
    uint32_t pid = 0;
    for (size_t i = 0; i < 2 && pid == 0; i++) {
        struct buf path = {0};
        struct stat file;
        if (annal__buf_printf(&path, "%s%s", derived->path, suffixes[i]) >= 0 &&
            annal__buf_cstr(&path) != NULL && io->stat(io->arg, path.ptr, &file) == 0)
            pid = annal__holder_of(&file, true);
        annal__buf_done(&path);
    }
    return pid;
}

static annal_status tell_locked(const struct derived *derived, annal_error *err)
{
    char name[HOLDER_BYTES];
    uint32_t pid = holder_of(derived);
    return annal__fail(err, ANNAL_ERR_BUSY, "another program keeps '%s' locked%s%s", derived->path,
                       pid == 0 ? "" : ": ", pid == 0 ? "" : annal__holder_name(pid, name));
}

static annal_status is_current(const struct derived *derived, sqlite3 *db, bool *out,
                               annal_error *err)
{
    *out = true;
    if (derived->ops->is_current == NULL)
        return ANNAL_OK;
    return or_corrupt(derived, derived->ops->is_current(derived->arg, db, out, err), err);
}

/* Begin a transaction on a file that is ours; its stamp is read in it. */
static annal_status try_transaction(struct derived *derived, bool *out_current, annal_error *err)
{
    annal_status status = ensure_writer(derived, err);
    if (status >= 0)
        status = annal__db_exec(derived->db, "BEGIN IMMEDIATE", err);
    if (status == ANNAL_ERR_BUSY)
        return tell_locked(derived, err);
    if (status < 0)
        return status;
    status = read_own_stamp(derived, err);
    if (status >= 0)
        status = is_current(derived, NULL, out_current, err);
    if (status >= 0 && *out_current && derived->ops->begun != NULL)
        status = derived->ops->begun(derived->arg, err);
    if (status < 0 || !*out_current) {
        derived->ops->undone(derived->arg);
        (void)annal__db_exec(derived->db, "ROLLBACK", NULL);
    }
    return status;
}

static annal_status begin_transaction(struct derived *derived, annal_error *err)
{
    bool current = false;
    annal_status status = try_transaction(derived, &current, err);
    if (status < 0 || current)
        return status;
    close_writer(derived); /* another process rebuilt the tables from another text */
    status = try_transaction(derived, &current, err);
    if (status >= 0 && !current)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "the tables of '%s' do not stay as they are made", derived->path);
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
    if (status == ANNAL_ERR_CORRUPT) { /* a derived file: once more, from the beginning */
        close_writer(derived);
        status = take_away(derived, err);
        if (status >= 0)
            status = begin_transaction(derived, err);
    }
    annal__patience_unlimit(&derived->patience, &limit);
    if (status == ANNAL_ERR_IO) /* it may have been deleted while it was opened */
        close_writer(derived);
    if (status < 0)
        annal__index_lock_give(&derived->lock);
    return status;
}

annal_status annal__derived_begin(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    if (derived->frozen)
        return annal__fail(err, ANNAL_ERR_IO,
                           "the store is open for reading only, so its index stays as it is");
    for (unsigned attempt = 0;; attempt++) {
        annal_error why = {0};
        annal_status status = begin_once(derived, deadline_us, &why);
        bool again = status == ANNAL_ERR_BUSY || (status == ANNAL_ERR_IO && attempt < IO_ATTEMPTS &&
                                                  !annal__index_is_hopeless(&why));
        if (!again || gives_up(derived, deadline_us)) {
            if (status < 0 && err != NULL)
                *err = why;
            return status;
        }
        annal__store_wait_begin(derived->store);
        annal__pause(attempt);
        annal__store_wait_end(derived->store);
    }
}

/*
 * With a rollback journal a COMMIT waits for readers that are reading at that moment; new readers
 * are kept out meanwhile. Giving up would roll back rows that are in a journal already.
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
    if (!keep || status < 0) {
        derived->ops->undone(derived->arg);
        if (sqlite3_get_autocommit(derived->db) == 0)
            (void)annal__db_exec(derived->db, "ROLLBACK", NULL);
    }
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
        return annal__fail(err, ANNAL_ERR_IO, "the store is open for reading only");
    annal_status status = take_lock(derived, deadline_us, err);
    if (status < 0)
        return status;
    if (!annal__file_is_there(io_of(derived), derived->path))
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "'%s' is not there", derived->path);
    if (status >= 0)
        status = ensure_writer(derived, err);
    if (status == ANNAL_ERR_BUSY)
        status = tell_locked(derived, err);
    if (status < 0)
        annal__index_lock_give(&derived->lock);
    return status;
}

void annal__derived_release(struct derived *derived)
{
    annal__index_lock_give(&derived->lock);
}

/* A database in memory exists as long as a connection to it is open: keep is that connection. */
static annal_status open_keep(struct derived *derived, annal_error *err)
{
    annal__db_close(derived->keep);
    derived->keep = NULL;
    return open_on(derived, derived->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                   &derived->keep, err);
}

annal_status annal__derived_discard(struct derived *derived, int64_t deadline_us, annal_error *err)
{
    if (derived->frozen)
        return annal__fail(err, ANNAL_ERR_IO, "the store is open for reading only");
    annal_status status = take_lock(derived, deadline_us, err);
    if (status < 0)
        return status;
    close_writer(derived);
    status = derived->private ? open_keep(derived, err) : take_away(derived, err);
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
            return annal__db_fail(err, derived->db, rc, "checkpoint %s", derived->path);
        if (gives_up(derived, deadline_us))
            return annal__fail(err, ANNAL_ERR_BUSY, "another program reads it");
        annal__store_wait_begin(derived->store);
        annal__pause(attempt);
        annal__store_wait_end(derived->store);
    }
}

bool annal__derived_heal(struct derived *derived)
{
    return annal__derived_discard(derived, annal__deadline_after(derived->wait_ms), NULL) >= 0;
}

/* ---- Readers ---- */

bool annal__derived_exists(const struct derived *derived)
{
    return derived->private || annal__file_is_there(io_of(derived), derived->path);
}

static void set_cache(sqlite3 *db, int kib)
{
    char sql[60];
    snprintf(sql, sizeof sql, "PRAGMA cache_size = -%d", kib);
    (void)annal__db_exec(db, sql, NULL);
}

static annal_status open_reader(struct derived *derived, const char *uri, sqlite3 **out_db,
                                struct stamp *out_stamp, annal_error *err)
{
    sqlite3 *db = NULL;
    enum whose whose = EMPTY;
    bool current = true;
    annal_status status = derived->private ? ANNAL_OK
                                           : annal__file_check(io_of(derived), derived->path,
                                                               derived->given_bytes, err);
    if (status >= 0)
        status = open_on(derived, uri, SQLITE_OPEN_READONLY, &db, err);
    if (status < 0)
        return status;
    annal__patience_on(&derived->patience, db);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
    set_cache(db, READER_CACHE_KIB);
    status = inspect(derived, db, &whose, err);
    if (status >= 0 && whose != OURS)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "'%s' is not an index of this version",
                             derived->path);
    if (status >= 0)
        status = or_corrupt(derived, annal__derived_read_stamp(db, "main", out_stamp, err), err);
    if (status >= 0 && !derived->frozen)
        status = is_current(derived, db, &current, err);
    if (status >= 0 && !current)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the tables of '%s' are of another version",
                             derived->path);
    if (status == ANNAL_ERR_BUSY)
        status = tell_locked(derived, err);
    if (status < 0) {
        annal__db_close(db);
        return status;
    }
    *out_db = db;
    return ANNAL_OK;
}

static annal_status immutable_uri(const struct derived *derived, struct buf *uri, annal_error *err)
{
    annal_status status = annal__buf_printf(uri, "file:");
    for (const char *c = derived->path; status >= 0 && *c != '\0'; c++)
        status = strchr("?#%", *c) != NULL ? annal__buf_printf(uri, "%%%02x", (unsigned)*c)
                                           : annal__buf_append(uri, c, 1);
    if (status >= 0)
        status = annal__buf_printf(uri, "?immutable=1");
    if (status < 0 || annal__buf_cstr(uri) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "a file name");
    return ANNAL_OK;
}

/*
 * On read-only media a WAL database can be opened only as immutable, and then without the content
 * of its WAL.
 */
static annal_status open_frozen(struct derived *derived, sqlite3 **out_db, struct stamp *out_stamp,
                                annal_error *err)
{
    struct buf uri = {0};
    annal_status status = open_reader(derived, derived->path, out_db, out_stamp, err);
    if (status != ANNAL_ERR_IO) /* a file that others lock or write is not immutable */
        return status;
    status = immutable_uri(derived, &uri, err);
    if (status >= 0)
        status = open_reader(derived, uri.ptr, out_db, out_stamp, err);
    annal__buf_done(&uri);
    return status;
}

static annal_status reader_until(struct derived *derived, int64_t deadline_us, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err)
{
    if (derived->frozen)
        return open_frozen(derived, out_db, out_stamp, err);
    for (unsigned attempt = 0;; attempt++) {
        annal_status status = open_reader(derived, derived->path, out_db, out_stamp, err);
        if (status >= 0 || status == ANNAL_ERR_BUSY || attempt >= IO_ATTEMPTS ||
            (attempt > 0 && annal__deadline_passed(deadline_us)))
            return status;
        /* Missing, foreign, not current, or just deleted: make sure that it exists. */
        status = annal__derived_begin(derived, deadline_us, err);
        if (status >= 0)
            status = annal__derived_end(derived, true, err);
        if (status < 0)
            return status;
        annal__pause(attempt);
    }
}

annal_status annal__derived_reader(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err)
{
    struct patience_limit limit;
    int64_t deadline_us = annal__deadline_after(wait_ms);
    annal__patience_limit(&derived->patience, &limit, deadline_us);
    annal_status status = reader_until(derived, deadline_us, out_db, out_stamp, err);
    annal__patience_unlimit(&derived->patience, &limit);
    return status;
}

static annal_status check(sqlite3 *db, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, "PRAGMA integrity_check(1)", &stmt, err);
    int rc = status < 0 ? SQLITE_DONE : sqlite3_step(stmt);
    if (rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") != 0)
        status = ANNAL_ERR_CORRUPT;
    else if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = annal__db_fail(err, db, rc, "check a database");
    sqlite3_finalize(stmt);
    return status;
}

bool annal__derived_heal_if_corrupt(struct derived *derived)
{
    struct stamp unused;
    sqlite3 *db = NULL;
    if (derived->frozen)
        return false;
    annal_status status = annal__derived_reader(derived, derived->wait_ms, &db, &unused, NULL);
    if (status >= 0)
        status = check(db, NULL);
    annal__db_close(db);
    return status == ANNAL_ERR_CORRUPT && annal__derived_heal(derived);
}

/* The tables are looked at again only if the schema has changed. */
static bool is_still_current(struct derived *derived, struct reader *reader)
{
    int now = sqlite3_stmt_status(reader->get_stamp, SQLITE_STMTSTATUS_REPREPARE, 0);
    bool current = now == reader->current_at;
    if (!current && is_current(derived, reader->db, &current, NULL) >= 0 && current)
        reader->current_at = now;
    return current;
}

static annal_status borrow_until(struct derived *derived, int64_t deadline_us, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err)
{
    if (derived->frozen || derived->private || derived->rollback)
        return reader_until(derived, deadline_us, out_db, out_stamp, err);
    struct reader *reader = annal__readers_take(&derived->readers, io_of(derived), derived->path);
    if (reader != NULL) {
        if (step_stamp(reader->db, reader->get_stamp, out_stamp, NULL) >= 0 &&
            is_still_current(derived, reader)) {
            *out_db = reader->db;
            return ANNAL_OK;
        }
        annal__readers_give(&derived->readers, reader->db, false);
    }
    annal_status status = reader_until(derived, deadline_us, out_db, out_stamp, err);
    if (status >= 0)
        set_cache(*out_db, KEPT_CACHE_KIB);
    if (status >= 0)
        annal__readers_add(&derived->readers, io_of(derived), derived->path, *out_db);
    return status;
}

annal_status annal__derived_borrow(struct derived *derived, uint32_t wait_ms, sqlite3 **out_db,
                                   struct stamp *out_stamp, annal_error *err)
{
    struct patience_limit limit;
    int64_t deadline_us = annal__deadline_after(wait_ms);
    annal__patience_limit(&derived->patience, &limit, deadline_us);
    annal_status status = borrow_until(derived, deadline_us, out_db, out_stamp, err);
    annal__patience_unlimit(&derived->patience, &limit);
    return status;
}

void annal__derived_give(struct derived *derived, sqlite3 *db, bool clean)
{
    annal__readers_give(&derived->readers, db, clean);
}

/* ---- Init and done ---- */

annal_status annal__derived_init(struct derived *derived, annal_store *store, const char *path,
                                 const char *lock_name, annal_error *err)
{
    derived->store = store;
    if (derived->wait_ms == 0)
        derived->wait_ms = annal__store_wait_ms(store);
    annal_status status = annal__index_lock_init(&derived->lock, io_of(derived), lock_name, err);
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
        return annal__fail(err, ANNAL_ERR_NOMEM, "the database '%s'", path);
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
    return annal__fail(err, ANNAL_ERR_NOMEM, "the database '%s'", path);
}

annal_status annal__derived_make_private(struct derived *derived, annal_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "file:/annal-%p?vfs=memdb", (void *)derived);
    char *path = annal__strndup(name, strlen(name));
    if (path == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the index");
    annal__free(derived->path);
    derived->path = path;
    derived->private = true;
    return open_keep(derived, err);
}

annal_status annal__derived_open_read_only(struct derived *derived, annal_error *err)
{
    sqlite3 *db = NULL;
    struct stamp stamp;
    if (!annal__file_is_there(io_of(derived), derived->path) ||
        open_frozen(derived, &db, &stamp, NULL) < 0)
        return annal__derived_make_private(derived, err);
    annal__db_close(db);
    derived->frozen = true;
    return ANNAL_OK;
}

/* Leave only a short WAL. */
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
    close_writer(derived); /* no thread uses it any more, even if another process has the lock */
    annal__readers_done(&derived->readers);
    annal__db_close(derived->keep);
    annal__patience_done(&derived->patience);
    annal__index_lock_done(&derived->lock);
    annal__free(derived->path);
    derived->path = NULL;
}
