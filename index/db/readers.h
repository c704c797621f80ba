/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that read a derived database, kept for the next query: opening a connection, and
 * preparing its statements, takes longer than most queries do.
 *
 * (1) A kept connection is reused only while the name still belongs to the file that it opened,
 *     with the same size and times, and -wal and -shm likewise: any of them may be deleted, or
 *     overwritten by another file. Otherwise it is closed, and the file is opened again.
 * (2) A connection is lent in a read transaction, which ends when it is returned: so its schema is
 *     the one that was compared (shape.h). It is returned with nothing in temp and nothing
 *     attached. If the caller reports anything else, it is closed.
 * (3) In a child of fork() no connection is touched, not even closed: they belong to the parent.
 */
#pragma once

#include "index/db/files.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

#define READERS_MAX 8

struct reader {
    sqlite3 *db; /* the connection; NULL: this slot is free */
    bool lent;
    sqlite3_stmt *get_stamp;
    sqlite3_stmt *get_cookie; /* statement on db; NULL until it is needed */
    /* SQLite's cookie of the schema that was compared on this connection: shape.h, rule (4) */
    int64_t cookie;
    struct stat file;
    struct file_id wal, shm;
};

struct readers {
    pthread_mutex_t mutex;
    pid_t pid;
    struct reader list[READERS_MAX];
};

annal_status annal__readers_init(struct readers *readers);

/* Close the connections that are not lent. */
void annal__readers_rest(struct readers *readers);

/* Close all connections before the database is closed, when none is lent. */
void annal__readers_done(struct readers *readers);

/* Take a kept connection whose file was not replaced (rule 1), or return NULL. Other kept
 * connections are closed. */
struct reader *annal__readers_take(struct readers *readers, const struct io *io, const char *path);

/*
 * Add a connection that was just opened and has read from the database, with the cookie of its
 * schema; it counts as lent. If all slots are used, the connection is not added, and
 * annal__readers_give() closes it.
 */
void annal__readers_add(struct readers *readers, const struct io *io, const char *path, sqlite3 *db,
                        int64_t cookie);

/* Return a lent connection; a connection that was not added is closed. clean: whether it is in the
 * state in which it was lent (rule 2); if not, it is closed. db may be NULL. */
void annal__readers_give(struct readers *readers, sqlite3 *db, bool clean);

/* Remove a lent connection, which cannot be reused, from the kept connections, and finalize its
 * statements; the caller then closes it. */
void annal__readers_let_go(struct readers *readers, sqlite3 *db);

/*
 * Return an idle statement of the connection with this text, or a new statement. Do not finalize
 * it: annal__readers_give() keeps it for the next caller or finalizes it.
 */
annal_status annal__readers_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                                    annal_error *err);

/* Run a statement of which no row is needed; it is kept, too. */
annal_status annal__readers_run(sqlite3 *db, const char *sql, annal_error *err);
