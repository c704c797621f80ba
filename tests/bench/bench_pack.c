/*
 * How fast is a pack of the user's built, by a store that has events already?
 *
 *     bench_pack [EVENTS [DIR]]
 *
 * 100,000 events (one in three a tool call) in 20 sessions, and the pack of docs/packs.md: calls per
 * tool and day. Each round makes its tables anew and times that; then one event is appended and the
 * question asked again. The store is made in DIR (default: /tmp).
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
#define ROUNDS   5

static const char pack[] =
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
static void fill(annal_store *store, const char *session, unsigned count)
{
    static const char *const types[] = {"tool.called", "tool.result", "message.assistant"};
    static const char *const tools[] = {"Bash", "Read", "Edit", "Grep"};
    annal_error err = {0};
    annal_writer *writer = NULL;
    char data[BATCH][640];
    must(annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err), &err);
    for (unsigned done = 0; done < count;) {
        annal_draft drafts[BATCH];
        unsigned n = 0;
        for (; n < BATCH && done < count; n++, done++) {
            snprintf(data[n], sizeof data[n],
                     "{\"tool\":\"%s\",\"call_id\":\"c%u\",\"input\":\"%0480u\"}", tools[done % 4],
                     done, done);
            drafts[n] = (annal_draft){.type = annal_slice_of(types[done % 3]),
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
    must(annal_sql(index, annal_slice_of(sql), NULL, take, &n, &err), &err);
    return n;
}

static void measure(annal_store *store, annal_index *index, unsigned events)
{
    annal_error err = {0};
    for (int round = 0; round < ROUNDS; round++) {
        double begun = now_s();
        must(annal_pack_rebuild(index, "tools_per_day", NULL, &err), &err);
        double built = now_s() - begun;
        int64_t before = ask(index, "SELECT sum(calls) FROM tools_per_day");
        fill(store, "sess_0", 1);
        begun = now_s();
        int64_t after = ask(index, "SELECT sum(calls) FROM tools_per_day");
        printf("built in %.3f s: %.0f events a second; one event more: %.2f ms%s\n", built,
               events / built, (now_s() - begun) * 1e3, after == before + 1 ? "" : " (WRONG)");
    }
}

int main(int argc, char **argv)
{
    unsigned events = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    char path[4096], packs[4128], remove[4160];
    snprintf(path, sizeof path, "%s/bench-pack-XXXXXX", argc > 2 ? argv[2] : "/tmp");
    if (mkdtemp(path) == NULL)
        return 1;
    must(annal_store_open(path, &(annal_store_options){.create = true}, &store, &err), &err);
    for (int i = 0; i < SESSIONS; i++) {
        char session[32];
        snprintf(session, sizeof session, "sess_%d", i);
        fill(store, session, events / SESSIONS);
    }
    must(annal_index_open(store, NULL, &index, &err), &err);
    double begun = now_s();
    (void)ask(index, "SELECT count(*) FROM event_index");
    printf("core: %.0f events a second\n", events / (now_s() - begun));
    snprintf(packs, sizeof packs, "%s/packs", path);
    mkdir(packs, 0700);
    snprintf(packs, sizeof packs, "%s/packs/tools_per_day.sql", path);
    FILE *file = fopen(packs, "w");
    if (file == NULL || fputs(pack, file) < 0 || fclose(file) != 0)
        return 1;
    measure(store, index, events);
    annal_index_close(index);
    must(annal_store_close(store, &err), &err);
    snprintf(remove, sizeof remove, "rm -r '%s'", path);
    return system(remove) == 0 ? 0 : 1;
}
