/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of queries, compared with the least possible cost, pread of the same bytes without a
 * hash, and with a tuned SQLite table of the same events.
 *
 *   bench_query DIR [ROUNDS]
 *   bench_query --spread DIR                   create a store of 100 sessions that write in turn
 *   bench_query --many DIR SESSIONS            create a store of many small sessions
 *   bench_query --command DIR ANNAL [ROUNDS]   whole commands on a store: ls, query, query --count
 *   bench_query --extension DIR SO [ROUNDS]    the loadable extension: a statement, and a row
 *
 * DIR is a store of bench_generate, where few sessions append at the same time, or of --spread,
 * where all do: 1,000,000 events each. The table is built once, in DIR.tuned.db.
 *   window  the events of one type in a window of 2,000 of them, with payload; WINDOWS windows,
 *           spread evenly over those events in the order of their times
 *     warm        everything in the page cache, one index object for all questions
 *     cold        journals and databases dropped from it, an index without an earlier query
 *     cold_used   the same, but the index has answered other questions
 *   count   events of each type (annal__reader_counts), of one type (annal_query_count)
 * Cases take turns in rounds, so that other programs on a shared machine disturb all of them
 * equally. The program compares the number of events, their bytes and a sum over them. It prints a
 * table to stderr and one JSON object to stdout: milliseconds, medians and (_best) the best of all.
 */
#include "index/sys/databases.h"
#include "journal/base/hash.h"
#include "journal/sys/event_at.h"
#include "tests/bench/generate.h"

#include <annal/query.h>

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX  201
#define ROWS        2000u
#define WINDOWS     5
#define TYPE        "tool.called"
#define FRAME_BYTES ((size_t)1 << 20)

extern char **environ;

struct place {
    unsigned journal;
    uint64_t offset, length;
    int64_t ts_us;
};

struct journal {
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    int fd;
};

struct window {
    int64_t since_us, until_us;
    size_t first, count; /* of the places */
    uint64_t bytes, sum; /* of the payloads, in order */
};

struct bench {
    const char *dir;
    annal_store *store;
    annal_index *index;
    struct journal *journals;
    size_t journal_count;
    struct place *places; /* of the type, by time */
    size_t place_count;
    struct window windows[WINDOWS];
    char tuned[4096]; /* path */
    char *frame;
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_query: %s: %s\n", what, why);
    exit(3);
}

static void check(annal_status status, const char *what, const annal_error *err)
{
    if (status < 0)
        die(what, err->message);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts them: values[0] is the best one, which is what the neighbours of a busy machine leave
 * alone. */
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void open_store(struct bench *bench)
{
    annal_error err;
    check(annal_store_open(bench->dir, &(annal_store_options){.no_keeper = true}, &bench->store,
                           &err),
          "open the store", &err);
}

static annal_index *open_index(struct bench *bench)
{
    annal_error err;
    annal_index *index = NULL;
    check(annal_index_open(bench->store, &(annal_index_options){.wait_ms = 600000}, &index, &err),
          "open the index", &err);
    return index;
}

/* ---- Where the events stand ---- */

static unsigned journal_of(struct bench *bench, annal_slice session)
{
    char path[5000];
    for (size_t i = bench->journal_count; i > 0; i--) {
        const struct journal *journal = &bench->journals[i - 1];
        if (strlen(journal->name) == session.len &&
            memcmp(journal->name, session.ptr, session.len) == 0)
            return (unsigned)i - 1;
    }
    bench->journals =
        realloc(bench->journals, (bench->journal_count + 1) * sizeof *bench->journals);
    if (bench->journals == NULL)
        die("list the journals", "no memory");
    struct journal *journal = &bench->journals[bench->journal_count];
    snprintf(journal->name, sizeof journal->name, "%.*s", ANNAL_FMT(session));
    snprintf(path, sizeof path, "%s/events/%s.jsonl", bench->dir, journal->name);
    journal->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (journal->fd < 0)
        die(path, "cannot be opened");
    return (unsigned)bench->journal_count++;
}

static int add_place(void *arg, const annal_row *row)
{
    struct bench *bench = arg;
    if ((bench->place_count & (bench->place_count - 1)) == 0) {
        size_t room = bench->place_count == 0 ? 1 : bench->place_count * 2;
        bench->places = realloc(bench->places, room * sizeof *bench->places);
        if (bench->places == NULL)
            die("list the events", "no memory");
    }
    struct place *place = &bench->places[bench->place_count++];
    place->journal = journal_of(bench, row->values[0].bytes);
    place->offset = (uint64_t)row->values[1].integer;
    place->length = (uint64_t)row->values[2].integer;
    return annal_time_parse(row->values[3].bytes, &place->ts_us, NULL);
}

static void find_places(struct bench *bench)
{
    annal_error err;
    check(
        annal_index_sql(bench->index,
                        ANNAL_SLICE("SELECT session_id, offset, length, timestamp FROM event_index "
                                    "WHERE type = '" TYPE "' ORDER BY timestamp, session_id, seq"),
                        NULL, add_place, bench, &err),
        "list the events", &err);
    if (bench->place_count < ROWS * (WINDOWS + 1))
        die("list the events", "there are too few: make the store with bench_generate");
}

/* ---- Bare ---- */

static void read_bare(const struct bench *bench, const struct window *window)
{
    for (size_t i = window->first; i < window->first + window->count; i++) {
        const struct place *place = &bench->places[i];
        if (place->length > FRAME_BYTES ||
            pread(bench->journals[place->journal].fd, bench->frame, place->length,
                  (off_t)place->offset) != (ssize_t)place->length)
            die("pread", "fewer bytes than there should be");
    }
}

/* ---- Ours ---- */

static void ask_ours(const struct bench *bench, annal_index *index, const struct window *window,
                     bool sums)
{
    annal_error err;
    annal_query *query = NULL;
    annal_slice session, type = ANNAL_SLICE(TYPE);
    annal_event event;
    annal_status status;
    size_t count = 0;
    uint64_t bytes = 0, sum = 0;
    (void)bench;
    const annal_filter filter = {.types = &type,
                                 .type_count = 1,
                                 .since_us = window->since_us,
                                 .until_us = window->until_us};
    check(annal_query_open(index, &filter, &query, &err), "ask", &err);
    while ((status = annal_query_next(query, &session, &event, &err)) == ANNAL_OK) {
        count++;
        bytes += event.data.len;
        if (sums)
            sum = annal__hash(event.data.ptr, event.data.len, sum);
    }
    annal_query_close(query);
    check(status, "ask", &err);
    if (status != ANNAL_END || count != window->count || bytes != window->bytes ||
        (sums && sum != window->sum))
        die("ask", "these are not the events");
}

/* The windows, and what their events should be by a walk of another kind:
 * annal__event_read_at(). */
static void choose_windows(struct bench *bench)
{
    annal_error err;
    annal__event_buffer *buffer = NULL;
    for (size_t w = 0; w < WINDOWS; w++) {
        struct window *window = &bench->windows[w];
        size_t first = (bench->place_count - ROWS - 1) * (2 * w + 1) / (2 * WINDOWS);
        while (first > 0 && bench->places[first - 1].ts_us == bench->places[first].ts_us)
            first--;
        window->first = first;
        window->since_us = bench->places[first].ts_us;
        size_t end = first + ROWS;
        while (bench->places[end - 1].ts_us == bench->places[end].ts_us)
            end--;
        window->until_us = bench->places[end].ts_us;
        window->count = end - first;
        for (size_t i = first; i < end; i++) {
            const struct place *place = &bench->places[i];
            const struct journal *journal = &bench->journals[place->journal];
            annal_event event;
            /* The line begins with its seq. */
            if (pread(journal->fd, bench->frame, place->length, (off_t)place->offset) <= 0)
                die("read", journal->name);
            const char *seq = strstr(bench->frame, "\"seq\":");
            if (seq == NULL)
                die("read", "a line without its seq");
            check(annal__event_read_at(bench->store, annal_slice_of(journal->name),
                                       strtoull(seq + 6, NULL, 10), place->offset, place->length,
                                       &buffer, &event, &err),
                  "read", &err);
            window->bytes += event.data.len;
            window->sum = annal__hash(event.data.ptr, event.data.len, window->sum);
        }
    }
    annal__event_buffer_free(buffer);
}

/* ---- A tuned SQLite table ---- */

static void run_sql(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
    return stmt;
}

/* As it would be used by who knows SQLite: one row an event, an index by type and time, mmap. */
static sqlite3 *open_tuned(const struct bench *bench)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(bench->tuned, &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        die(bench->tuned, sqlite3_errmsg(db));
    run_sql(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
                "PRAGMA mmap_size=8589934592; PRAGMA wal_autocheckpoint=0");
    return db;
}

static void make_tuned(struct bench *bench)
{
    annal_error err;
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_status status;
    snprintf(bench->tuned, sizeof bench->tuned, "%s.tuned.db", bench->dir);
    if (access(bench->tuned, F_OK) == 0)
        return;
    sqlite3 *db = open_tuned(bench);
    run_sql(db, "CREATE TABLE types (id INTEGER PRIMARY KEY, type TEXT UNIQUE);"
                "CREATE TABLE events (id INTEGER PRIMARY KEY, session TEXT, seq INTEGER,"
                " ts INTEGER, type TEXT, data TEXT); BEGIN");
    sqlite3_stmt *insert = prepare(db, "INSERT INTO events VALUES (NULL, ?1, ?2, ?3, ?4, ?5)");
    for (size_t i = 0; i < bench->journal_count; i++) {
        annal_slice one = annal_slice_of(bench->journals[i].name);
        check(annal_query_open(bench->index, &(annal_filter){.sessions = &one, .session_count = 1},
                               &query, &err),
              "copy", &err);
        while ((status = annal_query_next(query, &session, &event, &err)) == ANNAL_OK) {
            sqlite3_bind_text64(insert, 1, session.ptr, session.len, SQLITE_STATIC, SQLITE_UTF8);
            sqlite3_bind_int64(insert, 2, (sqlite3_int64)event.seq);
            sqlite3_bind_int64(insert, 3, event.ts_us);
            sqlite3_bind_text64(insert, 4, event.type.ptr, event.type.len, SQLITE_STATIC,
                                SQLITE_UTF8);
            sqlite3_bind_text64(insert, 5, event.data.ptr, event.data.len, SQLITE_STATIC,
                                SQLITE_UTF8);
            if (sqlite3_step(insert) != SQLITE_DONE)
                die("copy", sqlite3_errmsg(db));
            sqlite3_reset(insert);
        }
        check(status, "copy", &err);
        annal_query_close(query);
    }
    sqlite3_finalize(insert);
    run_sql(db, "CREATE INDEX by_type ON events (type, ts); COMMIT; ANALYZE;"
                "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_close(db);
}

static void ask_tuned(sqlite3_stmt *stmt, const struct window *window)
{
    size_t count = 0;
    uint64_t bytes = 0;
    int rc;
    sqlite3_bind_int64(stmt, 1, window->since_us);
    sqlite3_bind_int64(stmt, 2, window->until_us);
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        volatile const unsigned char *data = sqlite3_column_text(stmt, 3);
        count += data[0] != 0;
        bytes += (uint64_t)sqlite3_column_bytes(stmt, 3);
    }
    sqlite3_reset(stmt);
    if (rc != SQLITE_DONE || count != window->count || bytes != window->bytes)
        die("the tuned table", "these are not the events");
}

#define TUNED_SELECT                                                                               \
    "SELECT session, seq, ts, data FROM events WHERE type = '" TYPE "' AND ts >= ?1 AND ts < ?2 "  \
    "ORDER BY ts"

/* ---- Cold ---- */

static void drop(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void drop_ours(const struct bench *bench)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/sessions.db", bench->dir);
    drop(path);
    snprintf(path, sizeof path, "%s/sessions.db-wal", bench->dir);
    drop(path);
    for (size_t i = 0; i < bench->journal_count; i++)
        posix_fadvise(bench->journals[i].fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* ---- Windows ---- */

enum { BARE, OURS, TUNED, BARE_COLD, OURS_COLD, OURS_COLD_USED, TUNED_COLD, KINDS };
static const char *const kind_names[KINDS] = {
    "bare",       "annal",           "tuned_sqlite",     "bare_cold",
    "annal_cold", "annal_cold_used", "tuned_sqlite_cold"};

static double cold_ours(struct bench *bench, const struct window *window, bool used)
{
    annal_index *index = used ? bench->index : open_index(bench);
    drop_ours(bench);
    double begun = now_ms();
    ask_ours(bench, index, window, false);
    double took = now_ms() - begun;
    if (!used)
        annal_index_close(index);
    return took;
}

/* No process has the file mapped: pages in use stay. */
static double cold_tuned(const struct bench *bench, const struct window *window)
{
    sqlite3 *db = open_tuned(bench);
    sqlite3_stmt *stmt = prepare(db, TUNED_SELECT);
    drop(bench->tuned);
    double begun = now_ms();
    ask_tuned(stmt, window);
    double took = now_ms() - begun;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return took;
}

static void measure_windows(struct bench *bench, size_t rounds)
{
    static double took[KINDS][ROUNDS_MAX * WINDOWS];
    static double by_window[KINDS][WINDOWS][ROUNDS_MAX];
    for (size_t w = 0; w < WINDOWS; w++)
        ask_ours(bench, bench->index, &bench->windows[w], true);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t w = 0; w < WINDOWS; w++) {
            const struct window *window = &bench->windows[w];
            double at[KINDS];
            drop_ours(bench);
            at[BARE_COLD] = now_ms();
            read_bare(bench, window);
            at[BARE_COLD] = now_ms() - at[BARE_COLD];
            at[OURS_COLD] = cold_ours(bench, window, false);
            at[OURS_COLD_USED] = cold_ours(bench, window, true);
            at[TUNED_COLD] = cold_tuned(bench, window);
            sqlite3 *db = open_tuned(bench);
            sqlite3_stmt *stmt = prepare(db, TUNED_SELECT);
            ask_tuned(stmt, window);
            at[BARE] = now_ms();
            read_bare(bench, window);
            at[BARE] = now_ms() - at[BARE];
            at[OURS] = now_ms();
            ask_ours(bench, bench->index, window, false);
            at[OURS] = now_ms() - at[OURS];
            at[TUNED] = now_ms();
            ask_tuned(stmt, window);
            at[TUNED] = now_ms() - at[TUNED];
            sqlite3_finalize(stmt);
            sqlite3_close(db);
            for (int kind = 0; kind < KINDS; kind++)
                by_window[kind][w][round] = took[kind][round * WINDOWS + w] = at[kind];
        }
    }
    fprintf(stderr, "%-18s %8s %8s   each window of %u rows, median ms\n", "", "median", "best",
            ROWS);
    printf("\"window\":{\"rows\":%u", ROWS);
    for (int kind = 0; kind < KINDS; kind++) {
        double all = median(took[kind], rounds * WINDOWS);
        fprintf(stderr, "%-18s %8.2f %8.2f  ", kind_names[kind], all, took[kind][0]);
        for (size_t w = 0; w < WINDOWS; w++)
            fprintf(stderr, " %7.2f", median(by_window[kind][w], rounds));
        fprintf(stderr, "\n");
        printf(",\"%s_ms\":%.3f,\"%s_best_ms\":%.3f", kind_names[kind], all, kind_names[kind],
               took[kind][0]);
    }
    printf("}");
}

/* ---- Counts ---- */

struct counts {
    uint64_t all, one;
};

static int add_count(void *arg, annal_slice type, uint64_t events)
{
    struct counts *counts = arg;
    counts->all += events;
    if (type.len == sizeof TYPE - 1 && memcmp(type.ptr, TYPE, type.len) == 0)
        counts->one = events;
    return 0;
}

static uint64_t count_tuned(sqlite3_stmt *stmt)
{
    uint64_t count = sqlite3_step(stmt) == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(stmt, 0) : 0;
    sqlite3_reset(stmt);
    return count;
}

static void measure_counts(struct bench *bench, size_t rounds)
{
    double counts_ms[ROUNDS_MAX], one_ms[ROUNDS_MAX], tuned_ms[ROUNDS_MAX];
    annal_error err;
    annal_slice type = ANNAL_SLICE(TYPE);
    const annal_filter filter = {.types = &type, .type_count = 1};
    sqlite3 *db = open_tuned(bench);
    sqlite3_stmt *stmt = prepare(db, "SELECT count(*) FROM events WHERE type = '" TYPE "'");
    (void)count_tuned(stmt);
    for (size_t round = 0; round < rounds; round++) {
        struct counts counts = {0};
        uint64_t one = 0;
        counts_ms[round] = now_ms();
        check(annal__reader_counts(bench->index, (annal_slice){0}, add_count, &counts, &err),
              "count", &err);
        counts_ms[round] = now_ms() - counts_ms[round];
        one_ms[round] = now_ms();
        check(annal_query_count(bench->index, &filter, &one, NULL, &err), "count", &err);
        one_ms[round] = now_ms() - one_ms[round];
        tuned_ms[round] = now_ms();
        uint64_t tuned = count_tuned(stmt);
        tuned_ms[round] = now_ms() - tuned_ms[round];
        if (counts.one != bench->place_count || one != counts.one || tuned != one)
            die("count", "the numbers differ");
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    double all = median(counts_ms, rounds), one = median(one_ms, rounds),
           tuned = median(tuned_ms, rounds);
    fprintf(stderr,
            "count, median and best ms: all types %.3f %.3f, one type %.3f %.3f, tuned SQLite %.3f "
            "%.3f\n",
            all, counts_ms[0], one, one_ms[0], tuned, tuned_ms[0]);
    printf(",\"count\":{\"types_ms\":%.3f,\"types_best_ms\":%.3f,\"one_type_ms\":%.3f,"
           "\"one_type_best_ms\":%.3f,\"tuned_sqlite_ms\":%.3f,\"tuned_sqlite_best_ms\":%.3f}",
           all, counts_ms[0], one, one_ms[0], tuned, tuned_ms[0]);
}

static int measure(const char *dir, size_t rounds)
{
    struct bench bench = {.dir = dir, .frame = calloc(1, FRAME_BYTES + 1)};
    if (bench.frame == NULL)
        die("memory", "none");
    open_store(&bench);
    bench.index = open_index(&bench);
    find_places(&bench);
    choose_windows(&bench);
    make_tuned(&bench);
    sync();
    printf("{");
    measure_windows(&bench, rounds);
    measure_counts(&bench, rounds);
    printf("}\n");
    for (size_t i = 0; i < bench.journal_count; i++)
        close(bench.journals[i].fd);
    free(bench.journals);
    free(bench.places);
    free(bench.frame);
    annal_index_close(bench.index);
    return annal_store_close(bench.store, NULL) < 0 ? 3 : 0;
}

/* ---- Stores ---- */

#define SPREAD          100u
#define SPREAD_EVENTS   1000000u
#define SPREAD_TURN_MAX 64

struct spread {
    struct generator *generator;
    annal_writer *writer;
};

/* One turn of this session: how many events there are now in all. */
static uint64_t spread_turn(struct spread *session, uint64_t count)
{
    annal_error err;
    annal_draft turn[SPREAD_TURN_MAX];
    const annal_draft *drafts;
    uint64_t seq;
    size_t events = generator_turn(session->generator, &drafts);
    if (events == 0 || events > SPREAD_TURN_MAX)
        die("make a turn", "no memory");
    for (size_t i = 0; i < events; i++) {
        turn[i] = drafts[i];
        turn[i].ts_us = INT64_C(1767690240000000) + (int64_t)(count + i) * 250000;
    }
    check(annal_writer_append(session->writer, turn, events, NULL, &seq, &err), "append", &err);
    return count + events;
}

static int make_spread(const char *dir)
{
    static struct spread sessions[SPREAD];
    annal_error err;
    annal_store *store = NULL;
    check(annal_store_open(dir, &(annal_store_options){.create = true}, &store, &err), "open",
          &err);
    for (unsigned i = 0; i < SPREAD; i++) {
        char name[GENERATE_NAME_BYTES];
        sessions[i].generator = generator_new(0, i);
        if (sessions[i].generator == NULL)
            die("make a session", "no memory");
        check(annal_writer_open(store, annal_slice_of(generate_name(i, name)),
                                &(annal_writer_options){.level = ANNAL_LEVEL_OS},
                                &sessions[i].writer, &err),
              "open", &err);
    }
    uint64_t count = 0;
    for (unsigned i = 0; count < SPREAD_EVENTS; i++)
        count = spread_turn(&sessions[i % SPREAD], count);
    for (unsigned i = 0; i < SPREAD; i++) {
        annal_writer_close(sessions[i].writer);
        generator_free(sessions[i].generator);
    }
    check(annal_store_close(store, &err), "close", &err);
    return 0;
}

static int make_many(const char *dir, unsigned sessions)
{
    annal_error err;
    annal_store *store = NULL;
    check(annal_store_open(dir, &(annal_store_options){.create = true}, &store, &err), "open",
          &err);
    for (unsigned i = 0; i < sessions; i++) {
        char name[32], created[200];
        annal_writer *writer = NULL;
        snprintf(name, sizeof name, "sess_%06u", i * 7919 % 1000003);
        snprintf(created, sizeof created,
                 "{\"agent_id\":\"a%u\",\"model\":\"m\",\"title\":\"Session %u\"}", i % 7, i);
        const int64_t ts_us = INT64_C(1767690240000000) + (int64_t)i * 1000003;
        const annal_draft drafts[] = {
            {.type = ANNAL_SLICE("session.created"),
             .data = annal_slice_of(created),
             .ts_us = ts_us},
            {.type = ANNAL_SLICE("turn.started"),
             .data = ANNAL_SLICE("{\"turn_id\":\"t1\"}"),
             .ts_us = ts_us + 1000},
            {.type = ANNAL_SLICE("message.added"),
             .data = ANNAL_SLICE("{\"id\":\"m1\",\"role\":\"user\",\"content\":\"hello\"}"),
             .ts_us = ts_us + 2000}};
        check(annal_writer_open(store, annal_slice_of(name),
                                &(annal_writer_options){.level = ANNAL_LEVEL_OS}, &writer, &err),
              "open", &err);
        uint64_t seq;
        check(annal_writer_append(writer, drafts, 3, NULL, &seq, &err), "append", &err);
        annal_writer_close(writer);
    }
    check(annal_store_close(store, &err), "close", &err);
    return 0;
}

/* ---- Commands ---- */

static double run_command(char **words)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    double begun = now_ms();
    if (posix_spawn(&pid, words[0], &files, NULL, words, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        die(words[0], "failed");
    double took = now_ms() - begun;
    posix_spawn_file_actions_destroy(&files);
    return took;
}

static int measure_commands(char *dir, char *annal, size_t rounds)
{
    char *lines[][8] = {{annal, "version", NULL},
                        {annal, "--store", dir, "ls", NULL},
                        {annal, "--store", dir, "ls", "--limit", "20", NULL},
                        {annal, "--store", dir, "ls", "--json", NULL},
                        {annal, "--store", dir, "query", "--limit", "1", NULL},
                        {annal, "--store", dir, "query", "--count", NULL}};
    static const char *const names[] = {"version", "ls", "ls_20", "ls_json", "query_1", "count"};
    static double took[sizeof lines / sizeof *lines][ROUNDS_MAX];
    for (size_t round = 0; round < rounds; round++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            took[i][round] = run_command(lines[i]);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        double middle = median(took[i], rounds);
        fprintf(stderr, "%-10s %8.2f ms, best %8.2f\n", names[i], middle, took[i][0]);
        printf("%s\"%s_ms\":%.3f,\"%s_best_ms\":%.3f", i == 0 ? "{" : ",", names[i], middle,
               names[i], took[i][0]);
    }
    printf("}\n");
    return 0;
}

/* ---- The extension ---- */

static double time_sql(sqlite3 *db, const char *sql, sqlite3_int64 expected)
{
    double begun = now_ms();
    sqlite3_stmt *stmt = prepare(db, sql);
    sqlite3_int64 got = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    double took = now_ms() - begun;
    if (expected >= 0 && got != expected)
        die(sql, "another answer");
    return took;
}

static int measure_extension(const char *dir, const char *so, size_t rounds)
{
    double one[ROUNDS_MAX], few[ROUNDS_MAX], rows[ROUNDS_MAX], lines[ROUNDS_MAX];
    char path[5000];
    char *why = NULL;
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/sessions.db", dir);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die(path, sqlite3_errmsg(db));
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
    if (sqlite3_load_extension(db, so, NULL, &why) != SQLITE_OK)
        die(so, why);
    for (size_t round = 0; round < rounds; round++) {
        one[round] =
            time_sql(db, "SELECT seq FROM events WHERE session_id = 'sess_000' AND seq = 77", 77);
        few[round] = time_sql(db,
                              "SELECT count(data) FROM events WHERE session_id = 'sess_000' AND "
                              "seq BETWEEN 1000 AND 1009",
                              10);
        rows[round] = time_sql(db,
                               "SELECT count(type) FROM (SELECT type FROM events WHERE session_id "
                               "= 'sess_000' AND seq BETWEEN 1001 AND 11000 LIMIT 10000)",
                               10000);
        lines[round] = time_sql(db,
                                "SELECT count(data) FROM events WHERE session_id = 'sess_000' AND "
                                "seq BETWEEN 1001 AND 11000",
                                10000);
    }
    double one_ms = median(one, rounds), few_ms = median(few, rounds),
           row_us = (median(rows, rounds) - one_ms) / 10,
           line_us = (median(lines, rounds) - one_ms) / 10;
    fprintf(
        stderr,
        "a statement %.3f ms, of 10 events with data %.3f ms; a row %.2f us, with data %.2f us\n",
        one_ms, few_ms, row_us, line_us);
    printf("{\"statement_ms\":%.3f,\"ten_ms\":%.3f,\"row_us\":%.3f,\"row_data_us\":%.3f}\n", one_ms,
           few_ms, row_us, line_us);
    sqlite3_close(db);
    return 0;
}

static size_t rounds_of(int argc, char **argv, int at, size_t rounds)
{
    if (argc > at)
        rounds = strtoul(argv[at], NULL, 10);
    return rounds == 0 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--spread") == 0)
        return make_spread(argv[2]);
    if (argc == 4 && strcmp(argv[1], "--many") == 0)
        return make_many(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
    if (argc >= 4 && strcmp(argv[1], "--command") == 0)
        return measure_commands(argv[2], argv[3], rounds_of(argc, argv, 4, 21));
    if (argc >= 4 && strcmp(argv[1], "--extension") == 0)
        return measure_extension(argv[2], argv[3], rounds_of(argc, argv, 4, 21));
    if (argc >= 2 && argv[1][0] != '-')
        return measure(argv[1], rounds_of(argc, argv, 2, 21));
    fputs("usage: bench_query DIR [ROUNDS] | --spread DIR | --many DIR SESSIONS |\n"
          "       --command DIR ANNAL [ROUNDS] | --extension DIR SO [ROUNDS]\n",
          stderr);
    return 2;
}
