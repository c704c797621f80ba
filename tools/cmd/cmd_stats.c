/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/databases.h"
#include "journal/sys/seam.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/plot/plot.h"
#include "tools/show/metrics_out.h"

#include <annal/index.h>
#include <annal/pack.h>

#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { LAGS_SHOWN = 20 };

struct stats {
    const struct args *args;
    annal_store *store;
    annal_index *index;
    uint64_t sessions, events, indexed, journal_bytes, lag_bytes, lag_sessions;
    uint64_t index_bytes, log_bytes, findings;
    bool has_index; /* whether sessions.db exists */
    struct table *lags;
};

static const struct column lag_columns[] = {
    {.name = "session_id", .title = "SESSION", .flexible = true},
    {.name = "journal_seq", .title = "JOURNAL SEQ", .right = true},
    {.name = "indexed_seq", .title = "INDEXED SEQ", .right = true},
    {.name = "journal_bytes", .title = "BYTES", .right = true},
    {.name = "indexed_bytes", .title = "INDEXED BYTES", .right = true}};

static uint64_t file_bytes(const char *directory, const char *name)
{
    SCOPED_BUF path = {0};
    struct stat info;
    uint64_t bytes = 0;
    must_printf(&path, "%s/%s", directory, name);
    if (lstat(path.ptr, &info) == 0 && S_ISREG(info.st_mode))
        bytes = (uint64_t)info.st_blocks * 512;
    return bytes;
}

/* Return the sum of the bytes that the commit logs take on the disk. */
static uint64_t commit_bytes(const char *store)
{
    SCOPED_BUF path = {0};
    uint64_t bytes = 0;
    must_printf(&path, "%s/commit", store);
    DIR *directory = opendir(path.ptr);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        bytes += file_bytes(path.ptr, entry->d_name);
    if (directory != NULL)
        closedir(directory);
    return bytes;
}

static int add_lag(void *arg, const annal_index_lag *lag)
{
    struct stats *stats = arg;
    bool behind = lag->indexed_bytes < lag->journal_bytes;
    stats->sessions++;
    stats->events += lag->journal_seq;
    stats->indexed += lag->indexed_seq;
    stats->journal_bytes += lag->journal_bytes;
    stats->lag_sessions += behind ? 1 : 0;
    stats->lag_bytes += behind ? lag->journal_bytes - lag->indexed_bytes : 0;
    /* People see at most LAGS_SHOWN sessions, only sessions that lag; programs get all. */
    if (!stats->args->json && (!behind || stats->lag_sessions > LAGS_SHOWN))
        return 0;
    table_text(stats->lags, lag->session);
    table_number(stats->lags, lag->journal_seq);
    table_number(stats->lags, lag->indexed_seq);
    table_number(stats->lags, lag->journal_bytes);
    table_number(stats->lags, lag->indexed_bytes);
    table_row(stats->lags);
    return 0;
}

static int count_finding(void *arg, const annal_index_finding *finding)
{
    struct stats *stats = arg;
    (void)finding;
    stats->findings++;
    return 0;
}

static int print_type(void *arg, annal_slice type, uint64_t events)
{
    struct stats *stats = arg;
    char text[HUMAN_BYTES];
    if (stats->args->json) {
        out_json("{\"type\":?,\"events\":#}\n", type, JSON_U64(events));
    } else {
        printf("  %15s  %.*s\n", human_count(text, events), ANNAL_FMT(type));
    }
    return 0;
}

static void print_line(const char *name, const char *value)
{
    printf("%-14s %s\n", name, value);
}

/* ---- The databases ---- */

static int print_database(void *arg, const annal__database_info *info)
{
    struct stats *stats = arg;
    char bytes[HUMAN_BYTES], wal[HUMAN_BYTES], unused[HUMAN_BYTES];
    if (stats->args->json) {
        out_json("{\"database\":?", annal_slice_of(info->name));
        printf(",\"exists\":%s,\"bytes\":%" PRIu64 ",\"wal_bytes\":%" PRIu64
               ",\"free_bytes\":%" PRIu64 ",\"journal_mode\":\"%s\",\"wal_autocheckpoint\":%" PRIu32
               ",\"busy_timeout\":%" PRIu32 ",\"synchronous\":\"%s\",\"foreign_keys\":%d}\n",
               info->exists ? "true" : "false", info->bytes, info->wal_bytes, info->free_bytes,
               info->journal_mode, info->wal_autocheckpoint, info->busy_timeout_ms,
               info->synchronous, info->foreign_keys ? 1 : 0);
    } else if (!info->exists) {
        printf("\n%s does not exist yet: the first query builds it\n", info->name);
    } else {
        printf("\n%s: %s, WAL %s, %s of them free\n", info->name, human_bytes(bytes, info->bytes),
               human_bytes(wal, info->wal_bytes), human_bytes(unused, info->free_bytes));
        printf("  journal_mode %s, wal_autocheckpoint %" PRIu32 ", busy_timeout %" PRIu32
               ",\n  synchronous %s, foreign_keys %d\n",
               info->journal_mode, info->wal_autocheckpoint, info->busy_timeout_ms,
               info->synchronous, info->foreign_keys ? 1 : 0);
    }
    return 0;
}

static int print_table(void *arg, const char *database, annal_slice name, uint64_t rows)
{
    struct stats *stats = arg;
    char text[HUMAN_BYTES];
    if (stats->args->json) {
        out_json("{\"database\":?,\"table\":?,\"rows\":#}\n", annal_slice_of(database), name,
                 JSON_U64(rows));
    } else {
        printf("  %15s  %s: %.*s\n", human_count(text, rows), database, ANNAL_FMT(name));
    }
    return 0;
}

static int print_status(void *arg, const char *database, annal_slice name, uint64_t rows)
{
    struct stats *stats = arg;
    char text[HUMAN_BYTES];
    if (stats->args->json) {
        out_json("{\"database\":?,\"status\":!,\"sessions\":#}\n", annal_slice_of(database),
                 name.len > 0 ? name : (annal_slice){0}, JSON_U64(rows));
    } else {
        printf("  %15s  %s: %.*s\n", human_count(text, rows), database,
               ANNAL_FMT(name.len > 0 ? name : ANNAL_SLICE("(none)")));
    }
    return 0;
}

static int print_pack(void *arg, const annal_pack_info *info)
{
    static const char *const states[] = {"ready", "building", "failed"};
    struct stats *stats = arg;
    char text[HUMAN_BYTES];
    if (stats->args->json) {
        printf("{\"pack\":\"%s\",\"version\":%" PRIu32 ",\"state\":\"%s\",\"events\":%" PRIu64
               ",\"events_behind\":%" PRIu64 ",\"findings\":%" PRIu64 "}\n",
               info->name, info->version, states[info->state], info->events_applied,
               info->events_behind, info->findings);
    } else {
        printf("  %15s  %s: %s\n", human_count(text, info->events_behind), info->name,
               info->error != NULL ? info->error : states[info->state]);
    }
    return 0;
}

static int print_databases(struct stats *stats)
{
    annal_error err = {0};
    annal_status status = annal__maintain_databases(stats->index, print_database, stats, &err);
    if (status >= 0 && !stats->args->json)
        printf("\nrows by table\n");
    if (status >= 0)
        status = annal__maintain_tables(stats->index, print_table, stats, &err);
    if (status >= 0 && !stats->args->json)
        printf("\nsessions by status\n");
    if (status >= 0)
        status = annal__maintain_statuses(stats->index, print_status, stats, &err);
    if (status >= 0 && stats->has_index && !stats->args->json)
        printf("\nevents that packs have not seen yet\n");
    /* without an index, do not call annal_pack_each(): it would create one */
    if (status >= 0 && stats->has_index)
        status = annal_pack_each(stats->index, print_pack, stats, &err);
    return status < 0 ? fail_error(&err) : 0;
}

static void print_totals(const struct stats *stats)
{
    char text[HUMAN_BYTES];
    if (stats->args->json) {
        out_json("{\"store\":?,\"sessions\":#,\"events\":#,\"indexed_events\":#,\"journal_bytes\":#"
                 ",\"index_bytes\":#,\"commit_bytes\":#,\"lag_sessions\":#,\"lag_bytes\":#,"
                 "\"findings\":#}\n",
                 annal_slice_of(annal_store_path(stats->store)), JSON_U64(stats->sessions),
                 JSON_U64(stats->events), JSON_U64(stats->indexed), JSON_U64(stats->journal_bytes),
                 JSON_U64(stats->index_bytes), JSON_U64(stats->log_bytes),
                 JSON_U64(stats->lag_sessions), JSON_U64(stats->lag_bytes),
                 JSON_U64(stats->findings));
        return;
    }
    print_line("store", annal_store_path(stats->store));
    print_line("sessions", human_count(text, stats->sessions));
    print_line("events", human_count(text, stats->events));
    print_line("journals", human_bytes(text, stats->journal_bytes));
    print_line("index", human_bytes(text, stats->index_bytes));
    print_line("commit logs", human_bytes(text, stats->log_bytes));
    print_line("findings", human_count(text, stats->findings));
    if (stats->lag_sessions == 0) {
        print_line("index lag", "none");
        return;
    }
    printf("%-14s %s in ", "index lag", human_bytes(text, stats->lag_bytes));
    printf("%s sessions (the next reader catches up)\n", human_count(text, stats->lag_sessions));
}

static int note_index(void *arg, const annal__database_info *info)
{
    if (strcmp(info->name, "sessions.db") == 0)
        ((struct stats *)arg)->has_index = info->exists;
    return 0;
}

/* Count a journal of a store without an index, because opening the index would create it. */
static int add_journal(void *arg, annal_slice session, uint64_t bytes)
{
    struct stats *stats = arg;
    annal_session_info info;
    if (annal__stray_is(stats->store, session))
        return 0;
    stats->sessions++;
    stats->journal_bytes += bytes;
    stats->lag_sessions++;
    stats->lag_bytes += bytes;
    if (annal_session_info_get(stats->store, session, &info, NULL) >= 0)
        stats->events += info.last_seq - info.fork_seq;
    return 0;
}

static int collect(struct stats *stats)
{
    annal_error err = {0};
    const char *path = annal_store_path(stats->store);
    stats->index_bytes = file_bytes(path, "sessions.db") + file_bytes(path, "sessions.db-wal");
    stats->log_bytes = commit_bytes(path);
    stats->lags = table_new(stats->args->json ? OUT_JSONL : OUT_TABLE, lag_columns,
                            sizeof lag_columns / sizeof lag_columns[0]);
    annal_status status = annal__maintain_databases(stats->index, note_index, stats, &err);
    if (status >= 0 && !stats->has_index)
        status = annal_session_each(stats->store, add_journal, stats, &err);
    if (status < 0 || !stats->has_index)
        return status < 0 ? fail_error(&err) : 0;
    status = annal_index_finding_each(stats->index, (annal_slice){0}, count_finding, stats, &err);
    if (status >= 0)
        status = annal_index_lag_each(stats->index, (annal_slice){0}, add_lag, stats, &err);
    return status < 0 ? fail_error(&err) : 0;
}

static int print_all(struct stats *stats)
{
    annal_error err = {0};
    int exit_status = collect(stats);
    if (exit_status != 0)
        return exit_status;
    print_totals(stats);
    if (!stats->args->json && stats->indexed > 0)
        printf("\nindexed events by type\n");
    if (stats->has_index &&
        annal__reader_counts(stats->index, (annal_slice){0}, print_type, stats, &err) < 0)
        return fail_error(&err);
    exit_status = print_databases(stats);
    if (exit_status != 0)
        return exit_status;
    annal_metrics metrics;
    annal_store_metrics_get(stats->store, ANNAL_METRICS_OF_STORE, &metrics);
    if (stats->args->json)
        metrics_print_json(&metrics);
    else
        metrics_print(&metrics);
    if (!stats->args->json && stats->lag_sessions > 0)
        fputc('\n', stdout);
    return EXIT_DONE;
}

static int run(const struct args *args)
{
    struct stats stats = {.args = args};
    annal_error err = {0};
    if (args_has(args, "plot"))
        return plot_run(args);
    if (args->operand_count > 0)
        return fail_usage("annal stats counts the whole store: 'annal show %s' prints one session, "
                          "--plot draws the session",
                          args->operands[0]);
    int exit_status = store_open(args, OPEN_READ, 0, &stats.store);
    if (exit_status == 0 && annal_index_open(stats.store, NULL, &stats.index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = print_all(&stats);
    table_free(stats.lags);
    annal_index_close(stats.index);
    return store_close(stats.store, exit_status);
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSION, NULL, "--plot: session to draw"),
    FLAG("plot", NULL, "draw the store, or SESSION, instead"),
    OPTION_WITH("by", "UNIT", FIELD_CHOICE, NULL, "--plot: unit of time of a bar",
                .choices = "hour|day|week|month", .with = "plot"),
    OPTION_WITH("since", "T", FIELD_TIME, NULL, "--plot: first time", .with = "plot"),
    OPTION_WITH("until", "T", FIELD_TIME, NULL, "--plot: time of the end", .with = "plot"),
    OPTION_WITH("svg", "FILE", FIELD_TEXT, NULL, "--plot: SVG file; -: standard output",
                .with = "plot"),
    FIELDS_END};

const struct command cmd_stats = {
    COMMAND("stats", "count the contents of the store, and its writes", stats, fields, run)};
