/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The speed of a rebuild of a pack's tables, in a store that has events already.
 *
 *     bench_pack [EVENTS [DIR [PACK [SESSIONS]]]]
 *
 * PACK tools_per_day (the default): 100,000 events (one in three a tool call) in 20 sessions, and
 * the pack of docs/packs.md: calls per tool and day. PACK lionagi: as many messages, each in a
 * branch. With fewer SESSIONS, each is longer; the rate must not depend on the length. Each round
 * rebuilds the tables and measures the time, then appends one event and repeats the query. The
 * store is created in DIR (default: /tmp).
 */
#include "journal/base/clock.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS 20
#define BATCH    500
#define ROUNDS   3

/* The events of a pack, number i of a session, and a question that counts them. */
struct bench {
    const char *pack;
    const char *text; /* NULL: built in */
    const char *question;
    annal_slice (*event)(unsigned i, const char *session, char *data, size_t room);
};

static const char tools_per_day[] =
    "-- pack tools_per_day   version 1   database tools.db\n"
    "CREATE TABLE tool_days (\n"
    "    session_id TEXT NOT NULL,\n"
    "    tool       TEXT NOT NULL,\n"
    "    day        TEXT NOT NULL,\n"
    "    calls      INTEGER NOT NULL,\n"
    "    PRIMARY KEY (session_id, tool, day)\n"
    ") WITHOUT ROWID;\n"
    "CREATE VIEW tools_per_day AS SELECT day, tool, sum(calls) AS calls, count(*) AS sessions\n"
    "    FROM tool_days GROUP BY day, tool;\n"
    "-- on tool.called\n"
    "INSERT INTO tool_days (session_id, tool, day, calls)\n"
    "VALUES (:session, COALESCE($tool, '?'), substr(:ts, 1, 10), 1)\n"
    "ON CONFLICT DO UPDATE SET calls = calls + 1;\n"
    "-- forget\n"
    "DELETE FROM tool_days WHERE session_id = :session;\n";

static double now_s(void)
{
    return (double)annal__system_clock.monotonic_us(annal__system_clock.arg) / 1e6;
}

static void must(annal_status status, const annal_error *err)
{
    if (status == ANNAL_OK)
        return;
    fprintf(stderr, "%s: %s\n", annal_status_name(status), err->message);
    exit(1);
}

/* Half a kilobyte of data, as tools take and give it. */
static annal_slice tool_event(unsigned i, const char *session, char *data, size_t room)
{
    static const char *const types[] = {"tool.called", "tool.result", "message.assistant"};
    static const char *const tools[] = {"Bash", "Read", "Edit", "Grep"};
    (void)session;
    snprintf(data, room, "{\"tool\":\"%s\",\"call_id\":\"c%u\",\"input\":\"%0480u\"}", tools[i % 4],
             i, i);
    return annal_slice_of(types[i % 3]);
}

/* The session and its branch, then messages; ids in random order, as in lionagi. */
static annal_slice lionagi_event(unsigned i, const char *session, char *data, size_t room)
{
    static const char *const roles[] = {"user", "assistant"};
    if (i == 0) {
        snprintf(data, room, "{\"name\":\"a session of the benchmark\"}");
        return ANNAL_SLICE("session.created");
    }
    if (i == 1) {
        snprintf(data, room, "{\"id\":\"branch of %s\",\"name\":\"main\"}", session);
        return ANNAL_SLICE("branch.created");
    }
    snprintf(data, room,
             "{\"id\":\"%08x-%s-%06u\",\"role\":\"%s\",\"sender\":\"%s\",\"branch_id\":\"branch "
             "of %s\",\"content\":{\"text\":\"%0400u\"},\"lion_class\":"
             "\"lionagi.protocols.messages.instruction.Instruction\",\"type_id\":2}",
             i * 2654435761u, session, i, roles[i % 2], roles[i % 2], session, i);
    return ANNAL_SLICE("message.added");
}

static const struct bench benches[] = {
    {.pack = "tools_per_day",
     .text = tools_per_day,
     .question = "SELECT sum(calls) FROM tools_per_day",
     .event = tool_event},
    {.pack = "lionagi",
     .question = "SELECT sum(json_array_length(collection)) FROM progressions",
     .event = lionagi_event}};

static void fill(const struct bench *bench, annal_store *store, const char *session, unsigned from,
                 unsigned count)
{
    annal_error err = {0};
    annal_writer *writer = NULL;
    static char data[BATCH][800];
    must(annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err), &err);
    for (unsigned done = from; done < from + count;) {
        annal_draft drafts[BATCH];
        unsigned n = 0;
        for (; n < BATCH && done < from + count; n++, done++) {
            annal_slice type = bench->event(done, session, data[n], sizeof data[n]);
            drafts[n] = (annal_draft){.type = type,
                                      .data = annal_slice_of(data[n]),
                                      .ts_us = 1767684240000000 + (int64_t)done * 1000000};
        }
        uint64_t seq;
        must(annal_writer_append(writer, drafts, n, NULL, &seq, &err), &err);
    }
    annal_writer_close(writer);
}

static int take(void *arg, const annal_row *row)
{
    *(int64_t *)arg = row->values[0].integer;
    return 0;
}

static int64_t ask(annal_index *index, const char *sql)
{
    int64_t n = 0;
    annal_error err = {0};
    must(annal_index_sql(index, annal_slice_of(sql), NULL, take, &n, &err), &err);
    return n;
}

static void measure(const struct bench *bench, annal_store *store, annal_index *index,
                    unsigned events, unsigned each)
{
    annal_error err = {0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        double begun = now_s();
        must(annal_pack_rebuild(index, bench->pack, NULL, &err), &err);
        double built = now_s() - begun;
        int64_t before = ask(index, bench->question);
        fill(bench, store, "sess_0", each + 3 * round, 3);
        begun = now_s();
        int64_t after = ask(index, bench->question);
        printf("rebuilt in %.3f s: %.0f events a second; three events more: %.2f ms%s\n", built,
               events / built, (now_s() - begun) * 1e3, after > before ? "" : " (WRONG)");
    }
}

static void switch_on(const struct bench *bench, annal_store *store)
{
    annal_error err = {0};
    char path[4200];
    if (bench->text == NULL) {
        must(annal_pack_enable(store, bench->pack, NULL, &err), &err);
        return;
    }
    snprintf(path, sizeof path, "%s/packs", annal_store_path(store));
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/packs/%s.sql", annal_store_path(store), bench->pack);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(bench->text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    unsigned events = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
    unsigned sessions = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : SESSIONS;
    const struct bench *bench = &benches[argc > 3 && strcmp(argv[3], "lionagi") == 0];
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    char path[4096], remove[4160];
    snprintf(path, sizeof path, "%s/bench-pack-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    if (sessions == 0 || mkdtemp(path) == NULL)
        return 1;
    must(annal_store_open(path, &(annal_store_options){.create = true}, &store, &err), &err);
    for (unsigned i = 0; i < sessions; i++) {
        char session[32];
        snprintf(session, sizeof session, "sess_%u", i);
        fill(bench, store, session, 0, events / sessions);
    }
    must(annal_index_open(store, NULL, &index, &err), &err);
    double begun = now_s();
    (void)ask(index, "SELECT count(*) FROM event_index");
    printf("core: %.0f events a second\n", events / (now_s() - begun));
    switch_on(bench, store);
    measure(bench, store, index, events, events / sessions);
    annal_index_close(index);
    must(annal_store_close(store, &err), &err);
    snprintf(remove, sizeof remove, "rm -r '%s'", path);
    return system(remove) == 0 ? 0 : 1;
}
