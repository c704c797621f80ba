/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Annal. "annal" as its command runs it: index and snapshots follow in the background;
 * "annal-journals" the journals alone. One event is appended at level sync. Of many events, each
 * stretch of one session is an append at level batch, and one annal_store_sync() makes all of them
 * durable.
 */
#include "snapshot/sys/snapshot.h"
#include "tests/bench/compare/contender.h"

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/query.h>
#include <annal/snapshot.h>
#include <annal/tail.h>

#include <stdlib.h>

struct store {
    const struct place *place;
    annal_store *store;
    annal_index *index;         /* NULL: journals alone */
    annal_snapshots *snapshots; /* NULL, too */
    annal_cursor *cursor;       /* where it stood last: one who reads on needs no search */
    unsigned cursor_session;
};

struct writers {
    struct store *store;
    annal_writer **by_session; /* opened when first needed */
    annal_draft *drafts;
    size_t room;
};

static void check(annal_status status, const annal_error *err)
{
    if (status < 0)
        bench_fail("annal: %s", err->message);
}

static void *open_store(const struct place *place, bool with_index)
{
    annal_error err;
    struct store *store = bench_alloc(sizeof *store);
    *store = (struct store){.place = place};
    check(annal_store_open(place->dir, &(annal_store_options){.create = true}, &store->store, &err),
          &err);
    if (!with_index)
        return store;
    check(
        annal_index_open(store->store, &(annal_index_options){.follow = true}, &store->index, &err),
        &err);
    check(annal_snapshots_open(store->index, NULL, &store->snapshots, &err), &err);
    return store;
}

static void *whole_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_store(place, true);
}

static void *journals_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_store(place, false);
}

static void annal_close(void *handle)
{
    struct store *store = handle;
    annal_error err;
    annal_cursor_close(store->cursor);
    annal_snapshots_close(store->snapshots);
    annal_index_close(store->index);
    check(annal_store_close(store->store, &err), &err);
    free(store);
}

static void *annal_writers_open(void *handle)
{
    struct writers *writers = bench_alloc(sizeof *writers);
    struct store *store = handle;
    *writers = (struct writers){store, bench_alloc(store->place->sessions * sizeof(annal_writer *)),
                                NULL, 0};
    return writers;
}

static void annal_writers_close(void *arg)
{
    struct writers *writers = arg;
    for (unsigned i = 0; i < writers->store->place->sessions; i++)
        annal_writer_close(writers->by_session[i]);
    free(writers->by_session);
    free(writers->drafts);
    free(writers);
}

static annal_writer *writer_of(struct writers *writers, const struct bench_event *event)
{
    annal_writer **writer = &writers->by_session[event->session];
    annal_error err;
    if (*writer == NULL)
        check(annal_writer_open(writers->store->store, event->name, NULL, writer, &err), &err);
    return *writer;
}

/* The stretch of events at the begin that belong to one session. */
static size_t append_stretch(struct writers *writers, const struct bench_event *events,
                             size_t count, annal_level level)
{
    annal_error err;
    uint64_t seq;
    size_t stretch = 0;
    if (count > writers->room) {
        free(writers->drafts);
        writers->drafts = bench_alloc(count * sizeof *writers->drafts);
        writers->room = count;
    }
    for (; stretch < count && events[stretch].session == events->session; stretch++)
        writers->drafts[stretch] = (annal_draft){.type = events[stretch].type,
                                                 .data = events[stretch].data,
                                                 .ts_us = ANNAL_TS(events[stretch].ts_us)};
    check(annal_writer_append(writer_of(writers, events), writers->drafts, stretch,
                              &(annal_append_options){.level = level}, &seq, &err),
          &err);
    if (seq != events->seq)
        bench_fail("annal: the session stands elsewhere");
    return stretch;
}

static void annal_append(void *arg, const struct bench_event *events, size_t count)
{
    struct writers *writers = arg;
    annal_error err;
    if (count == 1) {
        append_stretch(writers, events, 1, ANNAL_LEVEL_SYNC);
        return;
    }
    for (size_t i = 0; i < count;)
        i += append_stretch(writers, events + i, count - i, ANNAL_LEVEL_BATCH);
    check(annal_store_sync(writers->store->store, &err), &err);
}

static void annal_settle(void *handle)
{
    struct store *store = handle;
    annal_error err;
    check(annal_index_catch_up(
              store->index, (annal_slice){0},
              &(annal_catch_up_options){.timeout_ms = ANNAL_NO_TIMEOUT, .packs = true}, &err),
          &err);
    for (unsigned i = 0; i < store->place->sessions; i++) {
        annal_status status = annal__snapshot_catch_up(
            store->index, payloads_name(store->place->payloads, i), NULL, NULL, &err);
        if (status != ANNAL_ERR_NOTFOUND)
            check(status, &err);
    }
}

/* ---- Reading ---- */

static void hand_on(unsigned session, annal_slice name, const annal_event *event, bench_event_fn fn,
                    void *arg)
{
    fn(arg, &(struct bench_event){.session = session,
                                  .name = name,
                                  .seq = event->seq,
                                  .ts_us = event->ts_us,
                                  .type = event->type,
                                  .data = event->data});
}

static bool place_cursor(struct store *store, unsigned session, annal_slice name, uint64_t from_seq)
{
    annal_error err;
    if (store->cursor != NULL && store->cursor_session == session) {
        check(annal_cursor_seek(store->cursor, from_seq, &err), &err);
        return true;
    }
    annal_cursor_close(store->cursor);
    store->cursor = NULL;
    store->cursor_session = session;
    annal_status status = annal_cursor_open(store->store, name, from_seq, &store->cursor, &err);
    if (status != ANNAL_ERR_NOTFOUND)
        check(status, &err);
    return status == ANNAL_OK;
}

static void read_journal(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                         bench_event_fn fn, void *arg)
{
    struct store *store = handle;
    annal_slice name = payloads_name(store->place->payloads, session);
    annal_event event;
    annal_error err;
    if (!place_cursor(store, session, name, from_seq))
        return;
    for (; count > 0; count--) {
        annal_status status = annal_cursor_next(store->cursor, &event, &err);
        check(status, &err);
        if (status == ANNAL_DAMAGE)
            bench_fail("annal: %.*s is damaged", ANNAL_FMT(name));
        if (status == ANNAL_END)
            return;
        hand_on(session, name, &event, fn, arg);
    }
}

static void read_by_index(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                          bench_event_fn fn, void *arg)
{
    struct store *store = handle;
    if (from_seq <= 1) {
        read_journal(handle, session, from_seq, count, fn, arg);
        return;
    }
    annal_slice name = payloads_name(store->place->payloads, session), found;
    annal_query *query;
    annal_event event;
    annal_error err;
    annal_status status;
    check(annal_query_open(store->index,
                           &(annal_filter){.sessions = &name,
                                           .session_count = 1,
                                           .from_seq = from_seq,
                                           .to_seq = from_seq + count - 1},
                           &query, &err),
          &err);
    while ((status = annal_query_next(query, &found, &event, &err)) == ANNAL_OK)
        hand_on(session, name, &event, fn, arg);
    check(status, &err);
    annal_query_close(query);
}

static void find_by_index(void *handle, annal_slice type, int64_t from_us, int64_t to_us,
                          bench_event_fn fn, void *arg)
{
    struct store *store = handle;
    const annal_filter filter = {
        .types = &type, .type_count = 1, .since_us = from_us, .until_us = to_us};
    annal_query *query;
    annal_event event;
    annal_slice session;
    annal_error err;
    annal_status status;
    check(annal_query_open(store->index, &filter, &query, &err), &err);
    while ((status = annal_query_next(query, &session, &event, &err)) == ANNAL_OK)
        hand_on(payloads_session(session), session, &event, fn, arg);
    check(status, &err);
    annal_query_close(query);
}

static uint64_t count_by_index(void *handle, annal_slice type)
{
    struct store *store = handle;
    uint64_t count;
    annal_error err;
    check(annal_query_count(store->index, &(annal_filter){.types = &type, .type_count = 1}, &count,
                            NULL, &err),
          &err);
    return count;
}

/* ---- Following ---- */

static void *annal_follow(void *handle, unsigned session)
{
    struct store *store = handle;
    annal_slice name = payloads_name(store->place->payloads, session);
    annal_tail *tail;
    annal_error err;
    check(annal_tail_open(
              store->store,
              &(annal_tail_options){.sessions = &name, .session_count = 1, .from_now = true}, &tail,
              &err),
          &err);
    return tail;
}

static bool annal_follow_next(void *tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    annal_event event;
    annal_error err;
    annal_status status = annal_tail_next(tail, timeout_ms, &event, &err);
    check(status, &err);
    if (status == ANNAL_OK)
        hand_on(0, (annal_slice){0}, &event, fn, arg);
    return status == ANNAL_OK;
}

static void annal_follow_end(void *tail)
{
    annal_tail_close(tail);
}

#define ANNAL                                                                                      \
    .promise = "on the disk, JSON checked", .durable = true, .ours = true, .close = annal_close,   \
    .writer_open = annal_writers_open, .writer_close = annal_writers_close,                        \
    .append = annal_append, .tail_open = annal_follow, .tail_next = annal_follow_next,             \
    .tail_close = annal_follow_end

const struct contender contender_annal = {.name = "annal",
                                          .open = whole_open,
                                          .settle = annal_settle,
                                          .read = read_by_index,
                                          .find_type = find_by_index,
                                          .count_type = count_by_index,
                                          ANNAL};
const struct contender contender_annal_journals = {
    .name = "annal-journals", .open = journals_open, .read = read_journal, ANNAL};
