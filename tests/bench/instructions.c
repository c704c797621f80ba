/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot paths, for callgrind: instructions.sh counts the instructions of hot_<path>() alone, and
 * compares them with instructions.txt. Counts hardly depend on other programs on the machine, so
 * they show a slower path that clocks cannot show.
 *
 *   instructions DIR PATH TIMES  appends TIMES times 400 events, and prints with how many events
 *                                hot_<path>() dealt
 *
 *   append   one durable event: group commit without other appends
 *   bulk     20 events at level os, and one sync for each 20 of these
 *   index    catching up, core tables included
 *   query    50 events of a session in the middle, by the index
 *   read     a session from its first event, every hash checked
 *   replay   its state after the last event, without snapshots
 */
#include "tests/bench/generate.h"

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/query.h>
#include <annal/replay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Until START_COUNTING() callgrind does not instrument, so what comes before takes less time. */
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define START_COUNTING() CALLGRIND_START_INSTRUMENTATION
#else
#define START_COUNTING() ((void)0)
#endif

#define QUERIES    20u
#define RANGE      50u
#define SYNC_EVERY 200u
#define SEED       1

static void check(annal_status status, const annal_error *err)
{
    if (status < 0) {
        fprintf(stderr, "instructions: %s\n", err->message);
        exit(3);
    }
}

/* What is counted. Called from main() alone, and never inlined, so that callgrind sees them. */
#define HOT __attribute__((noinline))

HOT uint64_t hot_append(annal_writer *writer, const annal_draft *drafts, size_t count);
HOT uint64_t hot_bulk(annal_writer *writer, const annal_draft *drafts, size_t count);
HOT void hot_bulk_sync(annal_store *store);
HOT void hot_index(annal_index *index);
HOT uint64_t hot_query(annal_index *index, annal_slice session, uint64_t from_seq);
HOT uint64_t hot_read(annal_store *store, annal_slice session);
HOT uint64_t hot_replay(annal_index *index, annal_slice session);

HOT uint64_t hot_append(annal_writer *writer, const annal_draft *drafts, size_t count)
{
    annal_error err;
    uint64_t seq;
    for (size_t i = 0; i < count; i++)
        check(annal_writer_append(writer, &drafts[i], 1, NULL, &seq, &err), &err);
    return count;
}

HOT uint64_t hot_bulk(annal_writer *writer, const annal_draft *drafts, size_t count)
{
    annal_error err;
    uint64_t seq;
    check(annal_writer_append(writer, drafts, count,
                              &(annal_append_options){.level = ANNAL_LEVEL_OS}, &seq, &err),
          &err);
    return count;
}

HOT void hot_bulk_sync(annal_store *store)
{
    annal_error err;
    check(annal_store_sync(store, &err), &err);
}

HOT void hot_index(annal_index *index)
{
    annal_error err;
    check(annal_index_catch_up(
              index, (annal_slice){0},
              &(annal_catch_up_options){.timeout_ms = ANNAL_NO_TIMEOUT, .packs = true}, &err),
          &err);
}

HOT uint64_t hot_query(annal_index *index, annal_slice session, uint64_t from_seq)
{
    annal_error err;
    annal_query *query;
    annal_slice found;
    annal_event event;
    annal_status status;
    uint64_t events = 0;
    check(annal_query_open(index,
                           &(annal_filter){.sessions = &session,
                                           .session_count = 1,
                                           .from_seq = from_seq,
                                           .to_seq = from_seq + RANGE - 1},
                           &query, &err),
          &err);
    while ((status = annal_query_next(query, &found, &event, &err)) == ANNAL_OK)
        events++;
    check(status, &err);
    annal_query_close(query);
    return events;
}

HOT uint64_t hot_read(annal_store *store, annal_slice session)
{
    annal_error err;
    annal_cursor *cursor;
    annal_event event;
    annal_status status;
    uint64_t events = 0;
    check(annal_cursor_open(store, session, 1, &cursor, &err), &err);
    while ((status = annal_cursor_next(cursor, &event, &err)) == ANNAL_OK)
        events++;
    check(status, &err);
    annal_cursor_close(cursor);
    return events;
}

HOT uint64_t hot_replay(annal_index *index, annal_slice session)
{
    annal_error err;
    annal_state *state;
    annal_replay_info info;
    check(annal_replay_open(index, session, (annal_moment){0},
                            &(annal_replay_options){.no_snapshots = true}, &state, &info, &err),
          &err);
    annal_state_free(state);
    return info.folded;
}

/* ---- Around them ---- */

static uint64_t append_all(annal_store *store, annal_slice session, uint64_t events, bool bulk)
{
    annal_error err;
    annal_writer *writer;
    struct generator *generator = generator_new(SEED, 0);
    const annal_draft *drafts;
    uint64_t done = 0, synced = 0;
    check(annal_writer_open(store, session, NULL, &writer, &err), &err);
    START_COUNTING();
    while (generator != NULL && done < events) {
        size_t count = generator_turn(generator, &drafts);
        done += bulk ? hot_bulk(writer, drafts, count) : hot_append(writer, drafts, count);
        if (bulk && done - synced >= SYNC_EVERY) {
            hot_bulk_sync(store);
            synced = done;
        }
    }
    generator_free(generator);
    annal_writer_close(writer);
    return done;
}

static uint64_t ask_all(annal_store *store, annal_slice session, uint64_t events, const char *path)
{
    annal_error err;
    annal_index *index;
    uint64_t done = events;
    check(generate_session(store, 0, events, SEED, &err), &err);
    bool reads = strcmp(path, "read") == 0, indexes = strcmp(path, "index") == 0;
    if (reads || indexes)
        START_COUNTING();
    if (reads)
        return hot_read(store, session);
    check(annal_index_open(store, NULL, &index, &err), &err);
    hot_index(index);
    START_COUNTING();
    if (strcmp(path, "query") == 0)
        for (uint64_t i = done = 0; i < QUERIES; i++)
            done += hot_query(index, session, 1 + i * (events - RANGE) / QUERIES);
    else if (strcmp(path, "replay") == 0)
        done = hot_replay(index, session);
    annal_index_close(index);
    return done;
}

int main(int argc, char **argv)
{
    annal_error err;
    annal_store *store;
    char name[GENERATE_NAME_BYTES];
    if (argc != 4) {
        fputs("usage: instructions DIR append|bulk|index|query|read|replay TIMES\n", stderr);
        return 2;
    }
    annal_slice session = annal_slice_of(generate_name(0, name));
    check(annal_store_open(argv[1], &(annal_store_options){.create = true, .no_keeper = true},
                           &store, &err),
          &err);
    bool appends = strcmp(argv[2], "append") == 0, bulk = strcmp(argv[2], "bulk") == 0;
    uint64_t events = 400 * strtoull(argv[3], NULL, 10);
    uint64_t counted = appends || bulk ? append_all(store, session, events, bulk)
                                       : ask_all(store, session, events, argv[2]);
    check(annal_store_close(store, &err), &err);
    printf("%llu\n", (unsigned long long)counted);
    return 0;
}
