/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The appender: one thread that appends what all clients of a store submit.
 *
 * (1) Appends happen in the order in which they were submitted. So two appends to a session whose
 *     promises are pending at the same time get their seqs in that order.
 * (2) What was submitted by the time the thread looks is one batch. It appends those of level sync
 *     at level batch, and then one annal_store_sync() makes all of them durable.
 * (3) annal_writer_sync() of each session reports which of its appends are durable. A promise is
 *     settled only after that.
 * (4) An append with an id may repeat an append whose fate is unknown. If the sync of the
 *     batch failed, it is appended again at level sync: that answer is certain.
 * (5) After an append that failed for reasons of storage the batch is settled before the next one,
 *     so that the failure is reported to the appends that it concerns.
 */
#include "native.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define FEW         8    /* this many drafts need no allocation */
#define WRITERS_MAX 4096 /* more are closed when a batch has ended */
#define BUCKETS     4096
/* Beside the level: events of the past; no guard of the core pack is checked. */
#define REPORTS 8

struct writer {
    char *session;
    annal_writer *writer;
    uint64_t round; /* of the sync whose answer follows */
    annal_status status;
    annal_sync_result result;
    annal_error err;
    struct writer *next;
};

/* One append, or with level 0 one sync. */
struct item {
    struct job *job;
    struct args args; /* of its drafts */
    struct writer *writer;
    int64_t expected; /* below 0: any */
    size_t count;
    annal_level level;
    bool has_id;
    bool reports;
    bool is_waiting; /* for the sync of the batch */
    annal_status status;
    uint64_t seq;
    annal_error *error;
};

struct appender {
    pthread_t thread;
    annal_store *store;
    struct base *base;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job *first; /* under the lock */
    struct job **last; /* the same */
    bool is_stopping;  /* the same */

    /* Of the thread alone. */
    struct writer *buckets[BUCKETS];
    size_t writer_count;
    struct item *items;
    size_t item_count;
    size_t item_room;
    size_t settled; /* the items before this index have their answer */
    uint64_t round;
};

/* ---- Writers ---- */

static struct writer **find_writer(struct appender *appender, annal_slice session)
{
    struct writer **at = &appender->buckets[libannal_hash(session.ptr, session.len) % BUCKETS];
    while (*at != NULL && (strlen((*at)->session) != session.len ||
                           memcmp((*at)->session, session.ptr, session.len) != 0))
        at = &(*at)->next;
    return at;
}

static annal_status get_writer(struct appender *appender, annal_slice session, struct writer **out,
                               annal_error *err)
{
    struct writer **at = find_writer(appender, session);
    if (*at == NULL) {
        struct writer *writer = calloc(1, sizeof *writer);
        if (writer == NULL)
            return ANNAL_ERR_NOMEM;
        writer->session = strndup(session.ptr, session.len);
        annal_status status =
            writer->session == NULL
                ? ANNAL_ERR_NOMEM
                : annal_writer_open(appender->store, session, NULL, &writer->writer, err);
        if (status < 0) {
            free(writer->session);
            free(writer);
            return status;
        }
        *at = writer;
        appender->writer_count++;
    }
    *out = *at;
    return ANNAL_OK;
}

static void close_writers(struct appender *appender)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (appender->buckets[i] != NULL) {
            struct writer *gone = appender->buckets[i];
            appender->buckets[i] = gone->next;
            annal_writer_close(gone->writer);
            free(gone->session);
            free(gone);
        }
    appender->writer_count = 0;
}

/* ---- Appends ---- */

static bool is_storage(annal_status status)
{
    return status == ANNAL_ERR_IO || status == ANNAL_ERR_FULL || status == ANNAL_ERR_READONLY ||
           status == ANNAL_ERR_DISK;
}

static void fail_item(struct item *item, annal_status status, const annal_error *err)
{
    item->is_waiting = false;
    item->status = status;
    if (item->error == NULL)
        item->error = malloc(sizeof *err);
    if (item->error != NULL)
        *item->error = *err;
}

static annal_status append(struct appender *appender, struct item *item, annal_level level,
                           annal_error *err)
{
    annal_index *index = NULL;
    annal_status status = base_index(appender->base, &index, err);
    if (status < 0)
        return status;
    annal_draft few[FEW];
    annal_draft *drafts = item->count > FEW ? malloc(item->count * sizeof *drafts) : few;
    if (drafts == NULL)
        return ANNAL_ERR_NOMEM;
    struct args args = item->args;
    for (size_t i = 0; i < item->count; i++) {
        drafts[i] = (annal_draft){.type = args_slice(&args)};
        drafts[i].data = args_slice(&args);
        drafts[i].id = args_slice(&args);
        drafts[i].cause = args_slice(&args);
        drafts[i].ts_us = args_number(&args);
        item->has_id = item->has_id || drafts[i].id.len > 0;
    }
    annal_append_options options = {.level = level, .reports = item->reports};
    if (item->expected >= 0) {
        options.expect = ANNAL_EXPECT_SEQ;
        options.expected_seq = (uint64_t)item->expected;
    }
    annal_appended appended = {0};
    status = annal_pack_append(index, item->writer->writer, drafts, item->count, &options,
                               &appended, err);
    if (status >= 0) {
        item->seq = appended.seq;
        annal_free(appended.data.ptr);
    }
    if (drafts != few)
        free(drafts);
    return status;
}

/* Step over the drafts of an append. */
static void skip_drafts(struct args *args, size_t count)
{
    for (size_t i = 0; i < 5 * count; i++)
        if (i % 5 == 4)
            args_number(args);
        else
            args_slice(args);
}

/* Ask each writer what became of its appends; one that failed alone does not fail the others. */
static void settle(struct appender *appender)
{
    size_t waiting = 0;
    for (size_t i = appender->settled; i < appender->item_count; i++)
        waiting += appender->items[i].is_waiting;
    annal_error err = {0};
    annal_status synced = waiting == 0 ? ANNAL_OK : annal_store_sync(appender->store, &err);
    appender->round++;
    for (size_t i = appender->settled; waiting > 0 && i < appender->item_count; i++) {
        struct item *item = &appender->items[i];
        struct writer *writer = item->writer;
        if (!item->is_waiting)
            continue;
        item->is_waiting = false;
        if (writer->round != appender->round) {
            writer->round = appender->round;
            writer->result = (annal_sync_result){0};
            writer->err = (annal_error){0};
            writer->status = annal_writer_sync(writer->writer, &writer->result, &writer->err);
        }
        uint64_t last = item->seq + item->count - 1;
        bool refused = writer->result.refused_seq > 0 && last >= writer->result.refused_seq;
        bool unknown = writer->result.unknown_seq > 0 && last >= writer->result.unknown_seq;
        bool is_reported = is_storage(writer->status) || writer->status == ANNAL_ERR_UNKNOWN;
        if (item->has_id && (synced < 0 || writer->status < 0)) {
            annal_status again = append(appender, item, ANNAL_LEVEL_SYNC, &err);
            if (again < 0)
                fail_item(item, again, &err);
        } else if (writer->status < 0 && (refused || unknown || !is_reported)) {
            fail_item(item,
                      !refused                     ? ANNAL_ERR_UNKNOWN
                      : is_storage(writer->status) ? writer->status
                                                   : ANNAL_ERR_IO,
                      &writer->err);
        }
    }
    appender->settled = appender->item_count;
}

/* Sync a session, or all sessions if it is empty. */
static annal_status sync_now(struct appender *appender, annal_slice session, annal_error *err)
{
    settle(appender);
    struct writer *writer = session.len > 0 ? *find_writer(appender, session) : NULL;
    return writer != NULL ? annal_writer_sync(writer->writer, NULL, err)
                          : annal_store_sync(appender->store, err);
}

static void run_item(struct appender *appender, struct item *item, bool alone)
{
    struct args *args = &item->job->args;
    annal_error err = {0};
    annal_slice session = args_slice(args);
    int64_t level = args_number(args);
    item->level = (annal_level)(level & ~REPORTS);
    item->reports = (level & REPORTS) != 0;
    item->expected = args_number(args);
    item->count = (size_t)args_number(args);
    item->args = *args;
    skip_drafts(args, item->count);
    annal_status status = ANNAL_OK;
    if (item->level == ANNAL_LEVEL_DEFAULT) {
        status = sync_now(appender, session, &err);
    } else if ((status = get_writer(appender, session, &item->writer, &err)) >= 0) {
        bool later = item->level == ANNAL_LEVEL_SYNC && !alone;
        status = append(appender, item, later ? ANNAL_LEVEL_BATCH : item->level, &err);
        item->is_waiting = later && status >= 0;
    }
    if (status >= 0)
        return;
    fail_item(item, status, &err);
    if (is_storage(status) || status == ANNAL_ERR_UNKNOWN || status == ANNAL_ERR_CLOSED)
        settle(appender);
}

/* Write the answers, one after the other, into the tables of their jobs. */
static void finish(struct appender *appender)
{
    settle(appender);
    for (size_t i = 0; i < appender->item_count; i++) {
        struct item *item = &appender->items[i];
        struct table *table = &item->job->table;
        if (item->status >= 0) {
            table_number(table, (int64_t)item->seq);
        } else {
            table_string(table, item->error != NULL ? item->error->message : "");
            table_number(table, item->status);
            table_number(table, item->error != NULL ? item->error->os_errno : 0);
        }
        free(item->error);
    }
    appender->item_count = appender->settled = 0;
    if (appender->writer_count > WRITERS_MAX)
        close_writers(appender);
}

static struct item *add_item(struct appender *appender, struct job *job)
{
    if (appender->item_count == appender->item_room) {
        size_t room = 2 * appender->item_room + 64;
        struct item *grown = realloc(appender->items, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        appender->items = grown;
        appender->item_room = room;
    }
    struct item *item = &appender->items[appender->item_count++];
    *item = (struct item){.job = job};
    return item;
}

/* A job has the number of its appends, and then these. */
static void run_batch(struct appender *appender, struct job *jobs)
{
    for (struct job *job = jobs; job != NULL; job = job->next) {
        size_t count = (size_t)args_number(&job->args);
        bool alone = job == jobs && job->next == NULL && count == 1;
        for (size_t i = 0; i < count; i++) {
            struct item *item = add_item(appender, job);
            if (item == NULL) {
                job->status = ANNAL_ERR_NOMEM;
                break;
            }
            run_item(appender, item, alone);
        }
    }
    finish(appender);
    while (jobs != NULL) {
        struct job *job = jobs;
        jobs = job->next;
        job_done(job);
    }
}

/* ---- The thread ---- */

static void *run_appender(void *arg)
{
    struct appender *appender = arg;
    pthread_mutex_lock(&appender->lock);
    for (;;) {
        while (appender->first == NULL && !appender->is_stopping)
            pthread_cond_wait(&appender->more, &appender->lock);
        struct job *jobs = appender->first;
        if (jobs == NULL)
            break;
        appender->first = NULL;
        appender->last = &appender->first;
        pthread_mutex_unlock(&appender->lock);
        run_batch(appender, jobs);
        pthread_mutex_lock(&appender->lock);
    }
    pthread_mutex_unlock(&appender->lock);
    close_writers(appender);
    free(appender->items);
    return NULL;
}

struct appender *appender_open(annal_store *store, struct base *base)
{
    struct appender *appender = calloc(1, sizeof *appender);
    if (appender == NULL)
        return NULL;
    appender->store = store;
    appender->base = base;
    appender->last = &appender->first;
    pthread_mutex_init(&appender->lock, NULL);
    pthread_cond_init(&appender->more, NULL);
    sigset_t blocked, before;
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int failed = pthread_create(&appender->thread, NULL, run_appender, appender);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return appender;
    free(appender);
    return NULL;
}

void appender_submit(struct appender *appender, struct job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&appender->lock);
    *appender->last = job;
    appender->last = &job->next;
    pthread_cond_signal(&appender->more);
    pthread_mutex_unlock(&appender->lock);
}

void appender_close(struct appender *appender)
{
    if (appender == NULL)
        return;
    pthread_mutex_lock(&appender->lock);
    appender->is_stopping = true;
    pthread_cond_signal(&appender->more);
    pthread_mutex_unlock(&appender->lock);
    pthread_join(appender->thread, NULL);
    pthread_mutex_destroy(&appender->lock);
    pthread_cond_destroy(&appender->more);
    free(appender);
}
