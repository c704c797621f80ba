/*
 * How sessions.db is opened, made and made anew.
 *
 * (1) Only the holder of the index lock writes or checkpoints (lock.h). The writer's connection
 *     stays open between transactions; before each, it asks SQLite whether the file was moved or
 *     deleted.
 * (2) A reader opens the file each time it is asked something, so it never looks at a deleted one.
 * (3) No connection checkpoints on close: a connection to a deleted file would otherwise remove the
 *     WAL of the file that took its place.
 * (4) A new file is made only after the -wal and -shm of an old one are gone: SQLite finds them by
 *     name.
 * (5) Somebody may delete sessions.db, -wal and -shm one by one, and a new one may come between. So
 *     the writer compares all three with what it opened, and when only a part is gone, the rest
 *     goes too. A reader compares the stamp of what it opened with that of what was caught up.
 * (6) Ours by application_id and user_version is kept. Ours of another version, or found corrupt:
 *     deleted. Anything else is somebody's, and moved to sessions.db.foreign.
 */
#include "index/index.h"

#include "index/database.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/seam.h"

#include <stdio.h>
#include <string.h>

#define WAIT_MS_DEFAULT      10000
#define WAL_PAGES_CHECKPOINT 2000 /* 8 MiB */
#define CACHE_KIB            16384
#define FOLLOW_PERIOD_MS     100
#define IO_ATTEMPTS          5

static const struct io *io_of(const annal_index *index)
{
    return annal__store_io(index->store);
}

/* ---- The writer's connection ---- */

static void close_writer(struct writer *writer)
{
    annal__applier_free(writer->applier);
    sqlite3_finalize(writer->insert_event);
    sqlite3_finalize(writer->insert_finding);
    sqlite3_finalize(writer->add_count);
    sqlite3_finalize(writer->get_cursor);
    sqlite3_finalize(writer->put_cursor);
    annal__db_close(writer->db);
    *writer = (struct writer){0};
}

static int note_wal_pages(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    struct writer *writer = arg;
    writer->wal_pages = pages;
    return SQLITE_OK;
}

static annal_status prepare_writer(annal_index *index, annal_error *err)
{
    struct writer *writer = &index->writer;
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } statements[] = {
        {&writer->insert_event,
         "INSERT INTO event_index (session_id, seq, type, timestamp, offset, length) "
         "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (session_id, seq) DO UPDATE SET "
         "type = excluded.type, timestamp = excluded.timestamp, offset = excluded.offset, "
         "length = excluded.length"},
        {&writer->insert_finding,
         "INSERT INTO _findings (session_id, seq, offset, length, kind, what) "
         "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING"},
        {&writer->add_count, "INSERT INTO _counts (session_id, type, n) VALUES (?1, ?2, ?3) "
                             "ON CONFLICT (session_id, type) DO UPDATE SET n = n + excluded.n"},
        {&writer->get_cursor, INDEX_GET_CURSOR},
        {&writer->put_cursor,
         "INSERT INTO _cursor (session_id, seq, offset, h) VALUES (?1, ?2, ?3, ?4) "
         "ON CONFLICT (session_id) DO UPDATE SET seq = excluded.seq, offset = excluded.offset, "
         "h = excluded.h"},
    };
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < sizeof statements / sizeof *statements; i++)
        status = annal__db_prepare(writer->db, statements[i].sql, statements[i].stmt, err);
    if (status >= 0)
        status = annal__applier_new(writer->db, (const annal_pack *const[]){index->core}, 1,
                                    &writer->applier, err);
    return status;
}

static annal_status make_schema(annal_index *index, annal_error *err)
{
    sqlite3 *db = index->writer.db;
    char ids[96];
    snprintf(ids, sizeof ids, "PRAGMA application_id = %d; PRAGMA user_version = %lld; COMMIT",
             INDEX_APPLICATION_ID, (long long)index->user_version);
    annal_status status = ANNAL_OK;
    if (!index->private)
        status = annal__db_exec(db, "PRAGMA journal_mode = WAL", err);
    if (status >= 0)
        status = annal__db_exec(db, "BEGIN IMMEDIATE", err);
    if (status >= 0)
        status = annal__pack_make_tables(index->core, db, err);
    if (status >= 0)
        status = annal__db_exec(db, annal__sql_schema, err);
    if (status >= 0)
        status = annal__db_exec(db, ids, err);
    return status;
}

static annal_status open_writer(annal_index *index, int flags, annal_error *err)
{
    struct writer *writer = &index->writer;
    annal_status status = annal__db_open(
        index->path, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, &writer->db, err);
    if (status < 0)
        return status;
    char sql[80];
    snprintf(sql, sizeof sql, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -%d", CACHE_KIB);
    sqlite3_wal_hook(writer->db, note_wal_pages, writer);
    return annal__db_exec(writer->db, sql, err);
}

enum whose { OURS, STALE, EMPTY, FOREIGN };

static annal_status inspect(const annal_index *index, sqlite3 *db, enum whose *out,
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
    if (application == INDEX_APPLICATION_ID)
        *out = version == index->user_version ? OURS : STALE;
    else
        *out = application == 0 && tables == 0 ? EMPTY : FOREIGN;
    return ANNAL_OK;
}

/* A file that is there: keep it, or take it out of the way. */
static annal_status open_existing(annal_index *index, enum whose *out_whose, annal_error *err)
{
    annal_error why = {0};
    annal_status status = open_writer(index, 0, &why);
    if (status >= 0)
        status = inspect(index, index->writer.db, out_whose, &why);
    if (status == ANNAL_ERR_CORRUPT)
        *out_whose = FOREIGN;
    else if (status < 0) {
        close_writer(&index->writer);
        if (err != NULL)
            *err = why;
        return status;
    }
    if (*out_whose == OURS || *out_whose == EMPTY)
        return ANNAL_OK;
    close_writer(&index->writer);
    return *out_whose == STALE ? annal__files_remove(io_of(index), index->path, err)
                               : annal__files_move_aside(io_of(index), index->path, err);
}

enum moved { IN_PLACE, MOVED, TORN_APART };

static enum moved was_moved(const annal_index *index)
{
    const struct writer *writer = &index->writer;
    int moved = 0;
    if (index->private)
        return IN_PLACE;
    if (sqlite3_file_control(writer->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
        moved)
        return MOVED;
    return annal__file_is_same(annal__file_id(io_of(index), index->path, "-wal"), writer->wal) &&
                   annal__file_is_same(annal__file_id(io_of(index), index->path, "-shm"),
                                       writer->shm)
               ? IN_PLACE
               : TORN_APART;
}

static annal_status read_stamp(sqlite3 *db, struct stamp *out, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__db_prepare(db, "SELECT id, commits FROM _stamp", &stmt, err);
    if (status < 0)
        return status;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = (struct stamp){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    else
        status = rc == SQLITE_DONE ? annal__fail(err, ANNAL_ERR_CORRUPT, "the index has no stamp")
                                   : annal__db_fail(err, db, rc, "read the index");
    sqlite3_finalize(stmt);
    return status;
}

/* Under the lock: the writer is open, on a file that is ours and stands where it should. */
static annal_status ensure_writer(annal_index *index, annal_error *err)
{
    struct writer *writer = &index->writer;
    enum whose whose = EMPTY;
    annal_status status = ANNAL_OK;
    if (writer->db != NULL) {
        enum moved moved = was_moved(index);
        if (moved == IN_PLACE)
            return ANNAL_OK;
        close_writer(writer);
        status =
            moved == TORN_APART ? annal__files_remove(io_of(index), index->path, err) : ANNAL_OK;
        if (status < 0)
            return status;
    }
    if (!index->private)
        status = annal__file_check(io_of(index), index->path, err);
    if (status >= 0 && (index->private || annal__file_is_there(io_of(index), index->path)))
        status = open_existing(index, &whose, err);
    bool fills = status >= 0 && (writer->db == NULL || whose == EMPTY);
    if (status >= 0 && writer->db == NULL) {
        status = annal__files_make(io_of(index), index->path, err);
        whose = EMPTY;
        if (status >= 0)
            status = open_writer(index, SQLITE_OPEN_CREATE, err);
    }
    if (status >= 0 && whose == EMPTY)
        status = make_schema(index, err);
    if (status >= 0)
        status = prepare_writer(index, err);
    if (status >= 0)
        status = read_stamp(writer->db, &writer->stamp, err);
    if (status < 0) {
        close_writer(writer);
        if (fills && status == ANNAL_ERR_IO && !index->private) /* a full disk: no empty file */
            (void)annal__files_remove(io_of(index), index->path, NULL);
        return status;
    }
    writer->wal = annal__file_id(io_of(index), index->path, "-wal"); /* reading has opened them */
    writer->shm = annal__file_id(io_of(index), index->path, "-shm");
    return ANNAL_OK;
}

/* ---- Transactions ---- */

/* Where the lock file is; a private database needs none. */
static const char *lock_place(const annal_index *index)
{
    return index->private ? NULL : annal_store_path(index->store);
}

/* A transaction on a file that is ours; its stamp is read in it. */
static annal_status begin_transaction(annal_index *index, annal_error *err)
{
    struct writer *writer = &index->writer;
    annal_status status = ensure_writer(index, err);
    if (status >= 0)
        status = annal__db_exec(writer->db, "BEGIN IMMEDIATE", err);
    if (status == ANNAL_ERR_BUSY)
        return annal__fail(err, status, "another program keeps '%s' locked", index->path);
    if (status < 0)
        return status;
    status = read_stamp(writer->db, &writer->stamp, err);
    if (status < 0)
        (void)annal__db_exec(writer->db, "ROLLBACK", NULL);
    return status;
}

static annal_status begin_once(annal_index *index, int64_t deadline_us, annal_error *err)
{
    annal_status status = annal__index_lock_take(&index->lock, lock_place(index), deadline_us, err);
    if (status < 0)
        return status;
    status = begin_transaction(index, err);
    if (status == ANNAL_ERR_CORRUPT) { /* a derived file: once more, from nothing */
        close_writer(&index->writer);
        status = annal__files_remove(io_of(index), index->path, err);
        if (status >= 0)
            status = begin_transaction(index, err);
    }
    if (status == ANNAL_ERR_IO) /* perhaps deleted while it was opened */
        close_writer(&index->writer);
    if (status < 0)
        annal__index_lock_give(&index->lock);
    return status;
}

annal_status annal__index_begin(annal_index *index, int64_t deadline_us, annal_error *err)
{
    if (index->frozen)
        return annal__fail(err, ANNAL_ERR_IO,
                           "the store is open for reading only, so its index stays as it is");
    for (unsigned attempt = 0;; attempt++) {
        annal_error why = {0};
        annal_status status = begin_once(index, deadline_us, &why);
        bool again = status == ANNAL_ERR_BUSY || (status == ANNAL_ERR_IO && attempt < IO_ATTEMPTS &&
                                                  !annal__index_is_hopeless(&why));
        if (!again || annal__deadline_passed(deadline_us)) {
            if (status < 0 && err != NULL)
                *err = why;
            return status;
        }
        annal__pause(attempt);
    }
}

annal_status annal__index_end(annal_index *index, bool keep, annal_error *err)
{
    struct writer *writer = &index->writer;
    annal_status status = ANNAL_OK;
    if (keep)
        status = annal__db_exec(writer->db, "UPDATE _stamp SET commits = commits + 1; COMMIT", err);
    if (!keep || status < 0) {
        annal__applier_forget(writer->applier);
        if (sqlite3_get_autocommit(writer->db) == 0)
            (void)annal__db_exec(writer->db, "ROLLBACK", NULL);
    }
    if (keep && writer->wal_pages >= WAL_PAGES_CHECKPOINT)
        (void)sqlite3_wal_checkpoint_v2(writer->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    annal__index_lock_give(&index->lock);
    return status;
}

/* A database in memory lives as long as somebody has it open: keep does. */
static annal_status open_keep(annal_index *index, annal_error *err)
{
    annal__db_close(index->keep);
    index->keep = NULL;
    return annal__db_open(index->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI,
                          &index->keep, err);
}

annal_status annal__index_discard(annal_index *index, int64_t deadline_us, annal_error *err)
{
    if (index->frozen)
        return annal__fail(err, ANNAL_ERR_IO, "the store is open for reading only");
    annal_status status = annal__index_lock_take(&index->lock, lock_place(index), deadline_us, err);
    if (status < 0)
        return status;
    close_writer(&index->writer);
    status = index->private ? open_keep(index, err)
                            : annal__files_remove(io_of(index), index->path, err);
    annal__index_lock_give(&index->lock);
    return status;
}

bool annal__index_heal(annal_index *index)
{
    return annal__index_discard(index, annal__deadline_after(index->wait_ms), NULL) >= 0;
}

/* ---- Readers ---- */

static annal_status open_reader(annal_index *index, const char *uri, uint32_t wait_ms,
                                sqlite3 **out_db, struct stamp *out_stamp, annal_error *err)
{
    sqlite3 *db = NULL;
    enum whose whose = EMPTY;
    annal_status status = annal__db_open(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, &db, err);
    if (status < 0)
        return status;
    sqlite3_busy_timeout(db, wait_ms > INT32_MAX ? INT32_MAX : (int)wait_ms);
    status = inspect(index, db, &whose, err);
    if (status >= 0 && whose != OURS)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "'%s' is not an index of this version",
                             index->path);
    if (status >= 0)
        status = read_stamp(db, out_stamp, err);
    if (status < 0) {
        annal__db_close(db);
        return status;
    }
    *out_db = db;
    return ANNAL_OK;
}

static annal_status immutable_uri(const annal_index *index, struct buf *uri, annal_error *err)
{
    annal_status status = annal__buf_printf(uri, "file:");
    for (const char *c = index->path; status >= 0 && *c != '\0'; c++)
        status = strchr("?#%", *c) != NULL ? annal__buf_printf(uri, "%%%02x", (unsigned)*c)
                                           : annal__buf_append(uri, c, 1);
    if (status >= 0)
        status = annal__buf_printf(uri, "?immutable=1");
    if (status < 0 || annal__buf_cstr(uri) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "a file name");
    return ANNAL_OK;
}

/*
 * On read-only media a WAL database opens only as immutable, and then without what is in its WAL.
 */
static annal_status open_frozen(annal_index *index, sqlite3 **out_db, struct stamp *out_stamp,
                                annal_error *err)
{
    struct buf uri = {0};
    annal_status status = open_reader(index, index->path, index->wait_ms, out_db, out_stamp, err);
    if (status != ANNAL_ERR_IO) /* a file that others lock or write is not immutable */
        return status;
    status = immutable_uri(index, &uri, err);
    if (status >= 0)
        status = open_reader(index, uri.ptr, index->wait_ms, out_db, out_stamp, err);
    annal__buf_done(&uri);
    return status;
}

annal_status annal__index_reader(annal_index *index, uint32_t wait_ms, sqlite3 **out_db,
                                 struct stamp *out_stamp, annal_error *err)
{
    if (index->frozen)
        return open_frozen(index, out_db, out_stamp, err);
    int64_t deadline_us = annal__deadline_after(wait_ms);
    for (unsigned attempt = 0;; attempt++) {
        annal_status status = open_reader(index, index->path, wait_ms, out_db, out_stamp, err);
        if (status >= 0 || status == ANNAL_ERR_BUSY || annal__deadline_passed(deadline_us) ||
            attempt >= IO_ATTEMPTS)
            return status;
        /* Missing, foreign, or deleted this moment: see to it that it is there; fails in time. */
        status = annal__index_begin(index, deadline_us, err);
        if (status >= 0)
            status = annal__index_end(index, true, err);
        if (status < 0)
            return status;
        annal__pause(attempt);
    }
}

/* ---- Open and close ---- */

/* A database in memory, under a name of its own. */
static annal_status make_private(annal_index *index, annal_error *err)
{
    annal__free(index->path);
    char name[64];
    snprintf(name, sizeof name, "file:/annal-index-%p?vfs=memdb", (void *)index);
    index->path = annal__strndup(name, strlen(name));
    if (index->path == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the index");
    index->private = true;
    return open_keep(index, err);
}

/* A read-only store: its sessions.db as it is, or a private database in memory. */
static annal_status open_read_only(annal_index *index, annal_error *err)
{
    sqlite3 *db = NULL;
    struct stamp stamp;
    if (!annal__file_is_there(io_of(index), index->path) ||
        open_frozen(index, &db, &stamp, NULL) < 0)
        return make_private(index, err);
    annal__db_close(db);
    index->frozen = true;
    return ANNAL_OK;
}

static annal_status follow(annal_index *index, annal_error *err)
{
    const annal_chore chore = {
        .name = "index", .period_ms = FOLLOW_PERIOD_MS, .run = annal__index_follow, .arg = index};
    annal_status status = annal_chore_add(index->store, &chore, err);
    index->follows = status >= 0;
    return status;
}

/* What makes the tables, as 31 bits: nobody has to remember to raise a number. */
static int64_t layout_of(const annal_pack *core)
{
    return (int64_t)(annal__hash(annal__sql_schema, strlen(annal__sql_schema),
                                 core->hash + INDEX_CODE_VERSION) &
                     INT32_MAX);
}

/* Without a database yet. */
static annal_status index_new(annal_store *store, uint32_t wait_ms, annal_index **out_index,
                              annal_error *err)
{
    const char *root = annal_store_path(store);
    size_t path_bytes = strlen(root) + sizeof "/sessions.db";
    annal_index *index = annal__zalloc(sizeof *index);
    if (index == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the index of '%s'", root);
    index->store = store;
    index->wait_ms = wait_ms == 0 ? WAIT_MS_DEFAULT : wait_ms;
    annal_status status = annal__index_lock_init(&index->lock, io_of(index), err);
    if (status >= 0 && pthread_mutex_init(&index->spare.mutex, NULL) != 0) {
        annal__index_lock_done(&index->lock);
        status = annal__fail(err, ANNAL_ERR_NOMEM, "the index of '%s'", root);
    }
    if (status < 0) {
        annal__free(index);
        return status;
    }
    index->path = annal__zalloc(path_bytes);
    if (index->path == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "the index of '%s'", root);
        goto done;
    }
    snprintf(index->path, path_bytes, "%s/sessions.db", root);
    status = annal_pack_core(&index->core, err);
    if (status >= 0)
        index->user_version = layout_of(index->core);
    if (status < 0)
        goto done;
    *out_index = index;
    index = NULL;

done:
    annal_index_close(index);
    return status;
}

annal_status annal_index_open(annal_store *store, const annal_index_options *options,
                              annal_index **out_index, annal_error *err)
{
    static const annal_index_options defaults;
    annal_index *index = NULL;
    if (options == NULL)
        options = &defaults;
    annal_status status = index_new(store, options->wait_ms, &index, err);
    if (status >= 0 && annal_store_is_read_only(store))
        status = open_read_only(index, err);
    else if (status >= 0 && options->follow)
        status = follow(index, err);
    if (status < 0)
        annal_index_close(index);
    else
        *out_index = index;
    return status;
}

annal_status annal__index_open_private(annal_store *store, uint32_t wait_ms,
                                       annal_index **out_index, annal_error *err)
{
    annal_index *index = NULL;
    annal_status status = index_new(store, wait_ms, &index, err);
    if (status >= 0)
        status = make_private(index, err);
    if (status < 0)
        annal_index_close(index);
    else
        *out_index = index;
    return status;
}

annal_store *annal_index_store(const annal_index *index)
{
    return index->store;
}

const annal_pack *annal_index_core(const annal_index *index)
{
    return index->core;
}

/* Leave a short WAL behind, when nobody is in the way. */
static void tidy(annal_index *index)
{
    if (annal__index_lock_take(&index->lock, lock_place(index), 0, NULL) < 0)
        return;
    if (was_moved(index) == IN_PLACE)
        (void)sqlite3_wal_checkpoint_v2(index->writer.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                        NULL);
    annal__index_lock_give(&index->lock);
}

void annal_index_close(annal_index *index)
{
    if (index == NULL || !annal__index_lock_is_ours(&index->lock))
        return; /* closing the parent's connection would change its shared memory */
    if (index->follows)
        annal_chore_remove(index->store, index);
    if (index->writer.db != NULL && !index->private)
        tidy(index);
    close_writer(&index->writer);
    annal__db_close(index->keep);
    annal_index_close(index->spare.index);
    pthread_mutex_destroy(&index->spare.mutex);
    annal__index_lock_done(&index->lock);
    annal_pack_free(index->core);
    annal__free(index->path);
    annal__free(index);
}
