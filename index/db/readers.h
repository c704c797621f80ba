/*
 * Connections that read a derived database, kept for the next question: opening one, and preparing
 * its statements, takes longer than most questions do.
 *
 * (1) A connection that is kept is used again only while the name still stands for the file that it
 *     opened, with the same size and times, and -wal and -shm for theirs: somebody may delete any
 *     of them, or write another file over it. Otherwise it is closed, and the file opened anew.
 * (2) It comes back as it was handed out: no transaction, nothing in temp, nothing attached. Who
 *     did more says so, and it is closed.
 * (3) In a child of fork() nothing of it is touched, not even closed: it belongs to the parent.
 */
#ifndef INDEX_DB_READERS_H
#define INDEX_DB_READERS_H

#include "index/db/files.h"

#include <pthread.h>
#include <sqlite3.h>
#include <sys/types.h>

#define READERS_MAX 8

struct reader {
    sqlite3 *db; /* NULL: this place is free */
    bool lent;
    sqlite3_stmt *get_stamp;
    int current_at; /* how often SQLite had prepared get_stamp again, which it does when the schema
                     * changed, when the tables were last found to be current; -1: never */
    struct stat file;
    struct file_id wal, shm;
};

struct readers {
    pthread_mutex_t mutex;
    pid_t pid;
    struct reader list[READERS_MAX];
};

annal_status annal__readers_init(struct readers *readers);

/* Close those that are not lent. */
void annal__readers_rest(struct readers *readers);

/* The same; none is lent. */
void annal__readers_done(struct readers *readers);

/* One that rule (1) holds for; NULL: there is none. */
struct reader *annal__readers_take(struct readers *readers, const struct io *io, const char *path);

/* One that was opened a moment ago, and has read: it is lent from now on. Where there is no room it
 * stays the caller's alone. */
void annal__readers_add(struct readers *readers, const struct io *io, const char *path,
                        sqlite3 *db);

/* Give back what is lent, or close what is not. clean: rule (2). NULL is accepted. */
void annal__readers_give(struct readers *readers, sqlite3 *db, bool clean);

/* An idle statement of the connection with this text, or a new one; it is not to be finalized:
 * annal__readers_give() sees to it. */
annal_status annal__readers_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out_stmt,
                                    annal_error *err);

#endif
