/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addon: jobs that JavaScript submits, and threads that run them.
 *
 * JavaScript writes the arguments of a call into one array of bytes, and gets a table of values
 * back (node_codec.c). So the addon has operations (ops.c) instead of a function for each method,
 * and nothing that waits runs on a thread of JavaScript:
 *
 * (1) Most operations run in the thread pool of Node.
 * (2) Appends and syncs of a store run on one thread, its appender (node_appender.c), in the order
 *     in which they were submitted. Appends that wait there are appended together and synced once.
 * (3) Tails wait together in one poll(2) on a thread of the store (wait.c).
 *
 * A thread of JavaScript, the main one or a worker, is a client (addon.c). Clients that open the
 * same directory with the same options share one base: one annal_store, one appender.
 *
 * A ticket names a job. JavaScript keeps what belongs to a ticket; no pointer goes there.
 */
#ifndef LIBANNAL_NATIVE_H
#define LIBANNAL_NATIVE_H

#include <annal/annal.h>
#include <pthread.h>

int libannal_own_locks(void);                          /* ../../python/native/locks.c */
uint64_t libannal_hash(const char *bytes, size_t len); /* ../../python/native/name.c */

/* ---- node_codec.c ---- */

/* Arguments: numbers of 8 bytes, and slices after their length. Reading past the end reads 0. */
struct args {
    const char *at;
    const char *end;
};

int64_t args_number(struct args *args);
annal_slice args_slice(struct args *args);

/* Several slices; free *out. */
annal_status args_slices(struct args *args, annal_slice **out, size_t *out_count);

/*
 * A table of values, in order. Each has three cells: its annal_value_kind, and its 64 bits, which
 * for bytes are the length alone; the bytes stand in `bytes`, one after another. AGAIN is the text
 * that the last value of the same place had.
 */
#define VALUE_AGAIN 5
#define VALUE_END   6 /* after the last event of a block */

struct table {
    uint32_t *cells;
    size_t cell_count;
    size_t cell_room;
    char *bytes;
    size_t len;
    size_t room;
    bool failed; /* no memory */
};

void table_number(struct table *table, int64_t number);
void table_text(struct table *table, annal_slice text);
void table_string(struct table *table, const char *text); /* NULL: null */
void table_value(struct table *table, const annal_value *value);
void table_kind(struct table *table, uint32_t kind);
void table_free(struct table *table);

/* ---- node_appender.c ---- */

struct appender;
struct waiters;
struct base;
struct job;
struct client;

/* The open store of a client. */
struct store {
    uint32_t id; /* from 1 */
    struct client *client;
    struct base *base;
    pthread_mutex_t lock; /* of the list and the numbers of handles */
    uint32_t last_handle;
    struct handle *handles;
    struct store *next;
};

enum handle_kind { HANDLE_CURSOR, HANDLE_QUERY, HANDLE_TAIL, HANDLE_STATE };

/* What a store gave out. JavaScript uses each in one job at a time. */
struct handle {
    uint32_t id;
    enum handle_kind kind;
    void *pointer;
    uint64_t to_seq;     /* of a cursor: the last event that is wanted */
    annal_slice session; /* of a cursor: the caller's, freed with the handle */
    struct handle *next;
};

typedef annal_status (*op_fn)(struct job *job, annal_error *err);

struct job {
    struct client *client;
    struct store *store; /* NULL: it opens one */
    uint32_t ticket;
    op_fn run; /* NULL: an append */
    char *bytes;
    struct args args;
    annal_status status;
    annal_error *error; /* NULL: none, or no memory */
    struct table table;
    struct handle *handle; /* of a job that waits */
    int fd;
    size_t max; /* events that it takes */
    bool cancelled;
    void *work; /* napi_async_work */
    struct job *next;
};

void job_failed(struct job *job, annal_status status, const annal_error *err);

/* Hand a job to its client, from any thread. The job is gone then. */
void job_done(struct job *job);

struct appender *appender_open(annal_store *store, struct base *base);
void appender_submit(struct appender *appender, struct job *job);
/* Run what was submitted, and end the thread. */
void appender_close(struct appender *appender);

/* ---- wait.c ---- */

/* NULL: no memory, or no descriptor. */
struct waiters *waiters_open(void);
void waiters_submit(struct waiters *waiters, struct job *job);
/* End the job with this ticket, or with ticket 0 all of a store; return when they have ended. */
void waiters_cancel(struct waiters *waiters, const struct store *store, uint32_t ticket);
void waiters_close(struct waiters *waiters);

/* ---- base.c ---- */

annal_status base_open(const char *path, const annal_store_options *options, bool follow,
                       struct base **out, annal_error *err);
/* Give it back; who is the last closes the store. */
annal_status base_close(struct base *base, annal_error *err);
annal_store *base_store(struct base *base);
/* The index, opened when it is first needed. */
annal_status base_index(struct base *base, annal_index **out, annal_error *err);
/* NULL: no memory, or no thread. */
struct appender *base_appender(struct base *base);
/* NULL: none waits yet, and it is not to begin; or no memory, or no thread. */
struct waiters *base_waiters(struct base *base, bool begin);

/* ---- ops.c ---- */

/* The operation of this name; NULL if the name is unknown. */
op_fn op_find(const char *name);

struct handle *handle_find(struct store *store, uint32_t id);
annal_status store_close(struct store *store, annal_error *err);

/* Put at most max events of a tail that can be had without waiting into the table. */
annal_status tail_read(struct handle *handle, size_t max, struct table *table, annal_error *err);

/* ---- addon.c ---- */

struct store *client_add(struct client *client, struct base *base);
void client_remove(struct client *client, struct store *store);

#endif
