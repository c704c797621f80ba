/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/readers.h"

#include "index/db/db.h"

#include <string.h>
#include <unistd.h>

/* maximum number of statements that a connection keeps; a connection with more is closed when it is
 * returned */
#define STATEMENTS_MAX 16

annal_status annal__readers_init(struct readers *readers)
{
    readers->pid = getpid();
    return pthread_mutex_init(&readers->mutex, NULL) == 0 ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

static void close_reader(struct reader *reader)
{
    if (reader->db != NULL)
        annal__db_finalize(reader->db);
    annal__db_close(reader->db);
    *reader = (struct reader){0};
}

/* Return whether this process is a child of fork(), so that the connections belong to its parent
 * (rule 3). */
static bool is_parents(const struct readers *readers)
{
    return readers->pid != getpid();
}

void annal__readers_rest(struct readers *readers)
{
    if (is_parents(readers))
        return;
    pthread_mutex_lock(&readers->mutex);
    for (size_t i = 0; i < READERS_MAX; i++)
        if (!readers->list[i].lent)
            close_reader(&readers->list[i]);
    pthread_mutex_unlock(&readers->mutex);
}

void annal__readers_done(struct readers *readers)
{
    annal__readers_rest(readers);
    pthread_mutex_destroy(&readers->mutex);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Return whether the database, -wal and -shm are the files that the connection opened, unchanged in
 * size and times (rule 1). */
static bool is_current(const struct reader *reader, const struct io *io, const char *path)
{
    struct stat now;
    const struct stat *was = &reader->file;
    return io->stat(io->arg, path, &now) == 0 && now.st_dev == was->st_dev &&
           now.st_ino == was->st_ino && now.st_size == was->st_size &&
           same_time(now.st_mtim, was->st_mtim) && same_time(now.st_ctim, was->st_ctim) &&
           annal__file_is_same(annal__file_id(io, path, "-wal"), reader->wal) &&
           annal__file_is_same(annal__file_id(io, path, "-shm"), reader->shm);
}

/* Find a slot that is not lent, with a connection if filled, otherwise an empty one, and mark it as
 * lent so that no other thread uses it. Returns NULL if there is none. */
static struct reader *pick(struct readers *readers, bool filled)
{
    struct reader *found = NULL;
    pthread_mutex_lock(&readers->mutex);
    for (size_t i = 0; i < READERS_MAX && found == NULL; i++) {
        struct reader *reader = &readers->list[i];
        if (!reader->lent && (reader->db != NULL) == filled)
            found = reader;
    }
    if (found != NULL)
        found->lent = true;
    pthread_mutex_unlock(&readers->mutex);
    return found;
}

/* Mark a slot as not lent, with this connection; db NULL: as empty. */
static void put_back(struct readers *readers, struct reader *reader, sqlite3 *db)
{
    pthread_mutex_lock(&readers->mutex);
    reader->db = db;
    reader->lent = false;
    pthread_mutex_unlock(&readers->mutex);
}

struct reader *annal__readers_take(struct readers *readers, const struct io *io, const char *path)
{
    struct reader *reader;
    if (is_parents(readers))
        return NULL;
    while ((reader = pick(readers, true)) != NULL) {
        if (is_current(reader, io, path))
            return reader;
        sqlite3 *db = reader->db;
        put_back(readers, reader, NULL);
        annal__db_finalize(db);
        annal__db_close(db);
    }
    return NULL;
}

void annal__readers_add(struct readers *readers, const struct io *io, const char *path, sqlite3 *db,
                        int64_t cookie)
{
    struct reader *reader = is_parents(readers) ? NULL : pick(readers, false);
    if (reader == NULL)
        return;
    int moved = 1;
    reader->get_cookie = NULL;
    reader->cookie = cookie;
    /* the connection has read from the database, which opened -wal and -shm */
    reader->wal = annal__file_id(io, path, "-wal");
    reader->shm = annal__file_id(io, path, "-shm");
    bool known = reader->wal.inode != 0 && reader->shm.inode != 0 &&
                 io->stat(io->arg, path, &reader->file) == 0 &&
                 sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK;
    if (!known || moved != 0 ||
        annal__db_prepare(db, "SELECT id, commits FROM main._stamp", &reader->get_stamp, NULL) <
            0) {
        put_back(readers, reader, NULL);
        return;
    }
    pthread_mutex_lock(&readers->mutex);
    reader->db = db;
    pthread_mutex_unlock(&readers->mutex);
}

static struct reader *find(struct readers *readers, const sqlite3 *db)
{
    struct reader *found = NULL;
    pthread_mutex_lock(&readers->mutex);
    for (size_t i = 0; i < READERS_MAX; i++)
        if (readers->list[i].lent && readers->list[i].db == db)
            found = &readers->list[i];
    pthread_mutex_unlock(&readers->mutex);
    return found;
}

static bool is_clean(sqlite3 *db)
{
    unsigned count = 0;
    for (sqlite3_stmt *stmt = sqlite3_next_stmt(db, NULL); stmt != NULL;
         stmt = sqlite3_next_stmt(db, stmt)) {
        sqlite3_reset(stmt);
        sqlite3_clear_bindings(stmt);
        count++;
    }
    if (sqlite3_get_autocommit(db) == 0)
        (void)annal__readers_run(db, "ROLLBACK", NULL);
    return count <= STATEMENTS_MAX && sqlite3_get_autocommit(db) != 0;
}

void annal__readers_give(struct readers *readers, sqlite3 *db, bool clean)
{
    if (db == NULL || is_parents(readers))
        return;
    struct reader *reader = find(readers, db);
    bool keep = reader != NULL && clean && is_clean(db);
    if (reader != NULL)
        put_back(readers, reader, keep ? db : NULL);
    if (!keep) {
        annal__db_finalize(db);
        annal__db_close(db);
    }
}

void annal__readers_let_go(struct readers *readers, sqlite3 *db)
{
    struct reader *reader = find(readers, db);
    if (reader != NULL)
        put_back(readers, reader, NULL);
    annal__db_finalize(db);
}

annal_status annal__readers_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                                    annal_error *err)
{
    for (sqlite3_stmt *stmt = sqlite3_next_stmt(db, NULL); stmt != NULL;
         stmt = sqlite3_next_stmt(db, stmt)) {
        if (sqlite3_stmt_busy(stmt) || strcmp(sqlite3_sql(stmt), sql) != 0)
            continue;
        sqlite3_reset(stmt);
        *out_stmt = stmt;
        return ANNAL_OK;
    }
    return annal__db_prepare(db, sql, out_stmt, err);
}

annal_status annal__readers_run(sqlite3 *db, const char *sql, annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    annal_status status = annal__readers_prepare(db, sql, &stmt, err);
    return status < 0 ? status : annal__db_run(stmt, err);
}
