/* SPDX-License-Identifier: Apache-2.0 */
/* annal import: which events it appends, which lines it skips, and what it reports. */
#include "journal/base/buf.h"
#include "tests/support/real_logs.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/import/import.h"

#include <annal/import.h>
#include <annal/journal.h>
#include <annal/metrics.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIXTURES ANNAL_SOURCE "/tests/data"
#define MAIN_LOG FIXTURES "/claude-code/7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811.jsonl"
#define ODD_LOG  FIXTURES "/claude-code/e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066.jsonl"
#define CODEX_LOG                                                                                  \
    FIXTURES "/codex/rollout-2026-03-04T10-00-00-019cae51-7a10-7c33-9d02-4be0a1f35c70.jsonl"

/* Put bytes into a log of the test's own, import it, and assert that it went well. */
static const char *import_bytes(const char *kind, const char *name, const void *bytes, size_t len)
{
    const char *path = tmpdir_path(&cli.dir, name);
    file_write(path, bytes, len);
    DONE(&cli, "import", kind, path, "--json");
    return cli.out;
}

#define IMPORT_TEXT(cli, text) import_bytes("claude-code", "s-1.jsonl", text, sizeof(text) - 1)

#define ASSERT_OUT(cli, part)                                                                      \
    ck_assert_msg(strstr((cli)->out, part) != NULL, "'%s' is not in %s", part, (cli)->out)

START_TEST(a_second_import_adds_nothing)
{
    DONE(&cli, "import", "claude-code", FIXTURES "/claude-code", "--json");
    ck_assert_ptr_null(strstr(cli.out, "\"events\":0,"));
    ck_assert_int_eq(cli_journals(&cli), 4);
    DONE(&cli, "import", "claude-code", FIXTURES "/claude-code", "--recheck");
    ASSERT_OUT(&cli, " 0 events added");
    DONE(&cli, "verify");
}
END_TEST

/* The row of each event is in sessions.db before any query asks for it. */
START_TEST(an_import_brings_the_index_up_to_date)
{
    char rows[32] = "";
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    DONE(&cli, "import", "claude-code", FIXTURES "/claude-code");
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&cli.dir, "store/sessions.db"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM event_index", -1, &count, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(count), SQLITE_ROW);
    snprintf(rows, sizeof rows, "%lld\n", (long long)sqlite3_column_int64(count, 0));
    sqlite3_finalize(count);
    sqlite3_close(db);
    DONE(&cli, "query", "--count");
    ck_assert_str_eq(rows, cli.out);
}
END_TEST

static void import_lines(const char *name, unsigned count)
{
    struct buf lines = {0};
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_ge(annal__buf_printf(&lines, "{\"kind\":\"note\",\"text\":\"tide %u\"}\n", i),
                         0);
    const char *path = tmpdir_path(&cli.dir, name);
    file_write(path, lines.ptr, lines.len);
    annal__buf_done(&lines);
    DONE(&cli, "import", "jsonl", path, "--map", "session=s", "--map", "type=$.kind");
}

/* Assert how many documents search.db has, before any search adds some. */
static void assert_searchable(const char *documents)
{
    DONE(&cli, "search", "--info", "--json");
    ASSERT_OUT(&cli, documents);
}

START_TEST(an_import_fills_search_db_if_it_is_used_or_the_events_are_many)
{
    import_lines("few.jsonl", 10);
    assert_searchable("\"documents\":0");
    DONE(&cli, "search", "tide");
    import_lines("more.jsonl", 30);
    assert_searchable("\"documents\":30");
    ck_assert_int_eq(unlink(tmpdir_path(&cli.dir, "store/search.db")), 0);
    import_lines("many.jsonl", 20050);
    assert_searchable("\"documents\":20050");
    DONE(&cli, "search", "--off");
    import_lines("off.jsonl", 40);
    assert_searchable("\"documents\":0");
}
END_TEST

START_TEST(values_without_a_line_break_between_them_are_records)
{
    IMPORT_TEXT(
        &cli, "{\"type\":\"mode\",\"n\":1}{\"type\":\"mode\",\"n\":2} {\"type\":\"mode\",\"n\":3}\n"
              "{\"type\":\"mode\",\"n\":4}{\"type\":\"mode\",\"n\":1}\n"
              "{\"type\":\"mode\",\"n\":5}{\"type\":\"mode\"\n");
    ASSERT_OUT(&cli, "\"lines\":3,\"imported\":3");
    CLI(&cli, NULL, "sql",
        "SELECT group_concat(type || coalesce(data ->> '$.extra.n', ''), ' ') FROM events "
        "WHERE type LIKE 'import.%'",
        "--format", "csv");
    ASSERT_OUT(&cli, "import.record1 import.record2 import.record3 import.record4 import.record5 "
                     "import.unreadable\r\n");
}
END_TEST

/* The second log names no session and has a line of the first. */
START_TEST(an_importer_that_is_used_again_keeps_nothing_of_the_previous_log)
{
    static const char one[] =
        "{\"type\":\"mode\",\"n\":1}\n{\"type\":\"mode\",\"sessionId\":\"one\"}\n";
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "logs"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "logs/a.jsonl"), one, sizeof one - 1);
    file_write(tmpdir_path(&cli.dir, "logs/b.jsonl"), one, strcspn(one, "\n") + 1);
    const char *a = tmpdir_path(&cli.dir, "logs/a.jsonl");
    DONE(&cli, "import", "claude-code", a, tmpdir_path(&cli.dir, "logs/b.jsonl"), "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "/b.jsonl\""));
    ASSERT_OUT(&cli, "\"sessions\":[\"b\"],\"lines\":1,\"imported\":1");
}
END_TEST

START_TEST(an_event_without_a_time_gets_the_nearest_time_and_names_its_source)
{
    static const char early[] =
        "{\"type\":\"mode\",\"sessionId\":\"early\"}\n"
        "{\"type\":\"x\",\"sessionId\":\"early\",\"timestamp\":\"2026-01-02T03:04:05Z\"}\n"
        "{\"type\":\"mode\",\"sessionId\":\"early\",\"n\":2}\n";
    static const char never[] = "{\"type\":\"mode\",\"sessionId\":\"never\"}\n";
    static const char named[] = "{\"type\":\"mode\",\"sessionId\":\"named\"}\n";
    import_bytes("claude-code", "early.jsonl", early, sizeof early - 1);
    import_bytes("claude-code", "never.jsonl", never, sizeof never - 1);
    import_bytes("claude-code", "log-2026-01-01T10-20-30.jsonl", named, sizeof named - 1);
    CLI(&cli, NULL, "sql",
        "SELECT group_concat(session_id || substr(timestamp, 11, 9) || ' ' || "
        "coalesce(data->>'time', 'its own'), ', ') AS times FROM "
        "(SELECT * FROM events WHERE session_id <> 'never' ORDER BY session_id, seq)",
        "--json");
    ck_assert_str_eq(cli.out,
                     "{\"times\":\"earlyT03:04:05 of the first line that has one, "
                     "earlyT03:04:05 of the first line that has one, earlyT03:04:05 its own, "
                     "earlyT03:04:05 its own, earlyT03:04:05 of the line before, "
                     "namedT10:20:30 of the name of the file, "
                     "namedT10:20:30 of the name of the file\"}\n");
    CLI(&cli, NULL, "sql",
        "SELECT count(*) AS n FROM events WHERE session_id = 'never' AND "
        "data->>'time' = 'of the file' AND timestamp > '2026'",
        "--json");
    ASSERT_OUT(&cli, "{\"n\":2}");
    CLI(&cli, NULL, "sql", "SELECT id FROM sessions WHERE time_from = 'of the file'", "--json");
    ck_assert_str_eq(cli.out, "{\"id\":\"never\"}\n");
    CLI(&cli, NULL, "ls", "--json"); /* it is listed last, although its file is the newest */
    ck_assert_ptr_nonnull(strstr(strstr(cli.out, "\"named\""), "\"never\""));
}
END_TEST

static void ck_unchanged(const char *log, bool unchanged, const char *events)
{
    DONE(&cli, "import", "auto", log, "--json");
    ck_assert_msg((strstr(cli.out, "\"unchanged\":true") != NULL) == unchanged, "%s", cli.out);
    ASSERT_OUT(&cli, events);
    ASSERT_OUT(&cli, "\"sessions\":[\"s-1\"],");
}

/* Times of files are as fine as the clock's tick, so an import reads a younger file again. */
static void let_it_age(void)
{
    const struct timespec tenths = {.tv_nsec = 150000000};
    nanosleep(&tenths, NULL);
}

START_TEST(a_log_that_did_not_change_is_not_read_again)
{
    static const char one[] =
        "{\"type\":\"user\",\"sessionId\":\"s-1\",\"uuid\":\"u1\",\"message\":"
        "{\"role\":\"user\",\"content\":\"one\"}}\n";
    static const char two[] =
        "{\"type\":\"user\",\"sessionId\":\"s-1\",\"uuid\":\"u2\",\"message\":"
        "{\"role\":\"user\",\"content\":\"two\"}}\n";
    const char *log = tmpdir_path(&cli.dir, "s-1.jsonl");
    const char *noted = tmpdir_path(&cli.dir, "store/imports.jsonl");
    file_write(log, one, sizeof one - 1);
    let_it_age();
    ck_unchanged(log, false, "\"events\":3,");
    ck_unchanged(log, true, "\"lines\":1,\"imported\":1,\"skipped\":0,\"events\":0,");
    CLI(&cli, NULL, "import", "claude-code", log);
    ASSERT_OUT(&cli, "1 file did not change since the last import (--recheck reads them)\n");
    CLI(&cli, NULL, "import", "auto", log, "--recheck", "--json");
    ck_assert_ptr_null(strstr(cli.out, "unchanged"));

    FILE *file = fopen(log, "a");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fputs(two, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_unchanged(log, false, "\"events\":3,");
    let_it_age();
    CLI(&cli, NULL, "import", "auto",
        log); /* the previous import may have been too early to be recorded */
    ck_unchanged(log, true, "\"events\":0,");

    DONE(&cli, "delete", "--yes", "s-1");
    CLI(&cli, NULL, "import", "auto", log, "--json");
    ck_assert_ptr_nonnull(strstr(cli.err, "session 's-1' was deleted, so the session is left out"));
    ASSERT_OUT(&cli, "\"events\":0,");
    DONE(&cli, "import", "auto", log, "--json", "--again");
    ASSERT_OUT(&cli, "\"events\":6,");
    ck_unchanged(log, true, "\"events\":0,");
    size_t len;
    char *bytes = file_read(noted, &len);
    bytes[len / 2] ^= 1;
    file_write(noted, bytes, len);
    free(bytes);
    ck_unchanged(log, false, "\"events\":0,");
    ck_unchanged(log, true, "\"events\":0,");
}
END_TEST

START_TEST(a_log_that_changes_often_has_few_lines_of_notes)
{
    const char *log = tmpdir_path(&cli.dir, "s-1.jsonl");
    const char *noted = tmpdir_path(&cli.dir, "store/imports.jsonl");
    size_t lines = 0;
    for (int i = 0; i < 8; i++) {
        FILE *file = fopen(log, "a");
        ck_assert_ptr_nonnull(file);
        fprintf(file,
                "{\"type\":\"user\",\"sessionId\":\"s-1\",\"uuid\":\"u%d\",\"message\":"
                "{\"role\":\"user\",\"content\":\"one\"}}\n",
                i);
        ck_assert_int_eq(fclose(file), 0);
        let_it_age();
        ck_unchanged(log, false, "\"kind\":\"claude-code\"");
    }
    ck_unchanged(log, true, "\"lines\":8,");
    char *bytes = file_read(noted, NULL);
    for (const char *at = bytes; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    free(bytes);
    ck_assert_uint_le(lines, 4);
}
END_TEST

START_TEST(each_log_has_its_report)
{
    DONE(&cli, "import", "claude-code", MAIN_LOG, "--json");
    ASSERT_OUT(&cli, "\"sessions\":[\"7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811\"],\"lines\":33,"
                     "\"imported\":32,\"skipped\":1,\"events\":");
    ASSERT_OUT(&cli, "\"skips\":[{\"reason\":\"duplicate\",\"lines\":1}]}\n");
    DONE(&cli, "import", "claude-code", ODD_LOG, "--json");
    ASSERT_OUT(&cli, "\"lines\":12,\"imported\":11,\"skipped\":1,");
    ASSERT_OUT(&cli, "\"skips\":[{\"reason\":\"blank\",\"lines\":1}]}\n");
}
END_TEST

/* Import the first len bytes of a log at path. */
static void import_prefix(annal_store *store, const char *kind, const char *path, const char *bytes,
                          size_t len)
{
    struct importer importer = {0};
    struct import_report report = {0};
    annal_error err = {0};
    file_write(path, bytes, len);
    ck_assert(importer_find(kind, &importer));
    ck_assert_msg(import_file(store, &importer, path, NULL, &report, &err) == ANNAL_OK, "%s",
                  err.message);
    ck_assert_uint_eq(report.imported + report.blank + report.duplicate + report.unfinished,
                      report.lines);
    import_report_done(&report);
}

static uint64_t import_in_group(annal_store *store, struct import_group *group, const char *path)
{
    struct importer importer = {0};
    struct import_report report = {0};
    annal_error err = {0};
    const struct import_options options = {.group = group};
    ck_assert(importer_find("claude-code", &importer));
    ck_assert_msg(import_file(store, &importer, path, &options, &report, &err) == ANNAL_OK, "%s",
                  err.message);
    uint64_t events = report.events;
    import_report_done(&report);
    return events;
}

static uint64_t groups_of(annal_store *store)
{
    annal_metrics metrics;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &metrics);
    return metrics.groups;
}

/* Another log of a session, whose events are not in a journal yet, adds only what is new. */
START_TEST(logs_of_a_group_are_synced_once_and_before_the_journal_of_their_session_is_read)
{
    struct import_group group = {0};
    annal_store *store = NULL;
    annal_session_info info;
    const annal_store_options options = {.create = true, .no_keeper = true, .batch_ms = 3600000};
    const annal_slice session = ANNAL_SLICE("7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811");
    const char *copy = tmpdir_path(&cli.dir, "copy.jsonl");
    size_t len = 0;
    char *bytes = file_read(MAIN_LOG, &len);
    file_write(copy, bytes, len);
    free(bytes);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&cli.dir, "grouped"), &options, &store, NULL),
                     ANNAL_OK);
    ck_assert_uint_gt(import_in_group(store, &group, MAIN_LOG), 20);
    ck_assert_uint_gt(import_in_group(store, &group, ODD_LOG), 5);
    ck_assert_int_eq(annal_session_info_get(store, session, &info, NULL), ANNAL_ERR_NOTFOUND);
    ck_assert_uint_eq(groups_of(store), 0);
    ck_assert_uint_le(import_in_group(store, &group, copy), 1); /* the second source */
    ck_assert_int_eq(annal_session_info_get(store, session, &info, NULL), ANNAL_OK);
    ck_assert_uint_eq(groups_of(store), 1);
    ck_assert_int_eq(import_group_sync(&group, store, NULL), ANNAL_OK);
    ck_assert_uint_le(groups_of(store), 2);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
}
END_TEST

START_TEST(the_command_syncs_the_events_of_many_small_logs_in_one_group)
{
    char name[32], line[200];
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "many"), 0700), 0);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "many/%d.jsonl", i);
        int len = snprintf(line, sizeof line,
                           "{\"type\":\"progress\",\"uuid\":\"u\",\"sessionId\":\"s-%d\","
                           "\"timestamp\":\"2026-03-01T10:00:00.000Z\"}\n",
                           i);
        file_write(tmpdir_path(&cli.dir, name), line, (size_t)len);
    }
    DONE(&cli, "import", "claude-code", tmpdir_path(&cli.dir, "many"));
    ASSERT_OUT(&cli, "8 files, 8 lines, ");
    DONE(&cli, "stats", "--json");
    ASSERT_OUT(&cli, "\"groups\":1,");
}
END_TEST

/* Bytes of an event's data before the member that marks its time as a guess. */
static size_t said_before_time(const annal_slice *data)
{
    static const char guess[] = ",\"time\":\"of the f";
    const char *at = memmem(data->ptr, data->len, guess, sizeof guess - 1);
    return at != NULL ? (size_t)(at - data->ptr) : data->len;
}

/* Read the next event, except the ends of turns that an import of a shorter log adds. */
static annal_status next_of_line(annal_cursor *cursor, annal_event *out)
{
    annal_status status = annal_cursor_next(cursor, out, NULL);
    while (status == ANNAL_OK && out->id.len > 5 &&
           memcmp(out->id.ptr + out->id.len - 5, ".ends", 5) == 0)
        status = annal_cursor_next(cursor, out, NULL);
    return status;
}

static void assert_same_events(annal_store *a, annal_store *b, const char *session)
{
    annal_cursor *cursor_a = NULL, *cursor_b = NULL;
    annal_event one, other;
    annal_status status = ANNAL_OK;
    annal_slice id = annal_slice_of(session);
    ck_assert_int_eq(annal_cursor_open(a, id, 1, &cursor_a, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_cursor_open(b, id, 1, &cursor_b, NULL), ANNAL_OK);
    while (status == ANNAL_OK) {
        status = next_of_line(cursor_a, &one);
        ck_assert_int_eq(next_of_line(cursor_b, &other), status);
        if (status != ANNAL_OK)
            break;
        ck_assert_mem_eq(one.id.ptr, other.id.ptr, one.id.len);
        size_t len = said_before_time(&one.data);
        ck_assert_uint_eq(said_before_time(&other.data), len);
        ck_assert_mem_eq(one.data.ptr, other.data.ptr, len);
        if (len < one.data.len)
            continue; /* a longer file may give a better guess of the time */
        ck_assert_int_eq(one.ts_us, other.ts_us);
        ck_assert_uint_eq(one.data.len, other.data.len);
    }
    ck_assert_int_eq(status, ANNAL_END);
    annal_cursor_close(cursor_a);
    annal_cursor_close(cursor_b);
}

static int count_session(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)session;
    (void)journal_bytes;
    ++*(int *)arg;
    return 0;
}

static void grow(const char *kind, const char *log, const char *name, const char *const *sessions,
                 size_t step)
{
    struct tmpdir folder;
    annal_store *grown = NULL, *whole = NULL;
    annal_store_options create = {.create = true};
    size_t len = 0;
    int count_grown = 0, count_whole = 0;
    char *bytes = file_read(log, &len);
    tmpdir_init(&folder);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&folder, "grown"), &create, &grown, NULL),
                     ANNAL_OK);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&folder, "whole"), &create, &whole, NULL),
                     ANNAL_OK);
    for (size_t k = 0; k < len; k += step)
        import_prefix(grown, kind, tmpdir_path(&folder, name), bytes, k);
    import_prefix(grown, kind, tmpdir_path(&folder, name), bytes, len);
    import_prefix(whole, kind, tmpdir_path(&folder, name), bytes, len);
    ck_assert_int_eq(annal_session_each(grown, count_session, &count_grown, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_session_each(whole, count_session, &count_whole, NULL), ANNAL_OK);
    ck_assert_int_eq(count_grown, count_whole);
    for (; *sessions != NULL; sessions++)
        assert_same_events(grown, whole, *sessions);
    ck_assert_int_eq(annal_store_close(grown, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_store_close(whole, NULL), ANNAL_OK);
    free(bytes);
    tmpdir_done(&folder);
}

START_TEST(a_file_imported_while_it_grows_gives_the_events_of_the_whole_file)
{
    static const char *const claude[] = {
        "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066",
        "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066.side-254b0c4e-010c-4759-882c-9cbc43435cc5", NULL};
    static const char *const codex[] = {"019cae51-7a10-7c33-9d02-4be0a1f35c70", NULL};
    grow("claude-code", ODD_LOG, "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066.jsonl", claude, 97);
    grow("codex", CODEX_LOG, "rollout-019cae51-7a10-7c33-9d02-4be0a1f35c70.jsonl", codex, 191);
}
END_TEST

START_TEST(an_incomplete_last_line_waits_for_its_rest)
{
    IMPORT_TEXT(&cli, "{\"type\":\"mode\"}\n{\"type\":\"b");
    ASSERT_OUT(&cli, "\"lines\":2,\"imported\":1,\"skipped\":1,\"events\":2,"
                     "\"skips\":[{\"reason\":\"unfinished\",\"lines\":1}]");
    IMPORT_TEXT(&cli, "{\"type\":\"mode\"}\n{\"type\":\"tag\"}");
    ASSERT_OUT(&cli, "\"lines\":2,\"imported\":2,\"skipped\":0,\"events\":1,\"skips\":[]");
    IMPORT_TEXT(&cli, "{\"type\":\"mode\"}\n{\"type\":\"tag\"}\n{\"type\":\"tag\"}\n12");
    ASSERT_OUT(&cli, "\"lines\":4,\"imported\":2,\"skipped\":2,\"events\":0,");
}
END_TEST

START_TEST(a_session_whose_first_lines_have_no_time_is_as_old_as_its_first_time)
{
    IMPORT_TEXT(
        &cli, "{\"type\":\"mode\"}\n{\"type\":\"user\",\"timestamp\":\"2026-01-02T03:04:05Z\"}\n");
    DONE(&cli, "sql", "SELECT created_at FROM sessions", "--json");
    ASSERT_OUT(&cli, "2026-01-02T03:04:05.000000Z");
}
END_TEST

START_TEST(a_byte_order_mark_and_cr_are_not_part_of_a_line)
{
    IMPORT_TEXT(&cli, "\xEF\xBB\xBF{\"type\":\"mode\"}\r\n\r\n{\"type\":\"tag\"}\r\n");
    ASSERT_OUT(&cli, "\"lines\":3,\"imported\":2,\"skipped\":1,\"events\":3,");
    IMPORT_TEXT(&cli, "{\"type\":\"mode\"}\n{\"type\":\"tag\"}\n");
    ASSERT_OUT(&cli, "\"events\":0,");
}
END_TEST

/* Its first bytes may be half a byte order mark, or blanks before a document. */
START_TEST(a_log_without_a_line_is_read_only_up_to_its_detected_bytes)
{
    static const struct {
        const char *kind, *first, *rest;
    } logs[] = {{"claude-code", "\xEF\xBB", "\xBF\n{\"type\":\"mode\"}\n"},
                {"gemini-cli", " ", "{\"sessionId\":\"s\",\n\"messages\":[\n"}};
    struct importer importer = {0};
    struct import_job *job = NULL;
    annal_store *store = NULL;
    annal_error err = {0};
    const char *path = tmpdir_path(&cli.dir, "session-1.json");
    ck_assert(importer_find(logs[_i].kind, &importer));
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &store, &err),
        ANNAL_OK);
    file_write(path, logs[_i].first, strlen(logs[_i].first));
    ck_assert_int_eq(import_open(store, &importer, path, NULL, true, &job, &err), ANNAL_OK);
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    fputs(logs[_i].rest, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(import_take(job, IMPORT_WHOLE, &err), ANNAL_OK);
    ck_assert_uint_eq(import_report(job)->lines, 0);
    ck_assert_uint_eq(import_report(job)->events, 0);
    ck_assert(!import_can_go_on(job));
    import_close(job);
    job = NULL;
    annal_status status = import_open(store, &importer, path, NULL, true, &job, &err);
    ck_assert_int_eq(status, _i == 0 ? ANNAL_OK : ANNAL_END);
    if (_i == 0) {
        ck_assert_int_eq(import_take(job, IMPORT_WHOLE, &err), ANNAL_OK);
        ck_assert_uint_eq(import_report(job)->lines, 2);
        ck_assert_uint_eq(import_report(job)->blank, 1);
        import_close(job);
    }
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}
END_TEST

START_TEST(odd_bytes_are_held)
{
    IMPORT_TEXT(&cli, "");
    ASSERT_OUT(&cli, "\"sessions\":[],\"lines\":0,\"imported\":0,\"skipped\":0,\"events\":0,");
    IMPORT_TEXT(&cli, "\0\0\0\0\n{\"a\":\"\\ud800\"}\n\xC3\n{}[]\n{\"type\":\"mode\"}\n");
    ASSERT_OUT(&cli, "\"lines\":5,\"imported\":5,\"skipped\":0,\"events\":6,");
    DONE(&cli, "cat", "s-1", "--raw");
    ASSERT_OUT(&cli, "\"text\":\"\\u0000\\u0000\\u0000\\u0000\"");
    ASSERT_OUT(&cli, "\"a\":\"\\ud800\"");
    ASSERT_OUT(&cli, "\"base64\":\"ww==\"");
    ASSERT_OUT(&cli, "\"text\":\"{}[]\"");
}
END_TEST

START_TEST(a_log_without_a_line_of_its_kind_ends_with_status_1)
{
    static const char *const kinds[] = {"autogen",   "claude-code", "codex",
                                        "langgraph", "otel",        "pi"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *path = strdup(tmpdir_path(&cli.dir, "page.jsonl"));
        file_write(path, "<html>\n<body>no\n</html>\n", 24);
        CLI(&cli, NULL, "import", kinds[i], path);
        ck_assert_msg(cli.exit_status == 1, "%s: %s", kinds[i], cli.err);
        ck_assert_ptr_nonnull(strstr(cli.err, "3 lines are not valid JSON"));
        free(path);
        cli_teardown();
        cli_setup();
    }
}
END_TEST

START_TEST(an_import_of_a_part_of_an_imported_file_adds_nothing)
{
    size_t len = 0;
    char *bytes = file_read(CODEX_LOG, &len);
    const char *rest = strchr(bytes, '\n') + 1;
    import_bytes("codex", "rollout-019cae51-7a10-7c33-9d02-4be0a1f35c70.jsonl", bytes, len);
    import_bytes("codex", "copy-019cae51-7a10-7c33-9d02-4be0a1f35c70.jsonl", rest,
                 len - (size_t)(rest - bytes));
    ASSERT_OUT(&cli, "\"events\":0,");
    free(bytes);
}
END_TEST

START_TEST(the_long_text_of_a_line_beyond_the_limit_becomes_an_artifact)
{
    static const char head[] = "{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"s-1\","
                               "\"message\":{\"role\":\"user\",\"content\":\"";
    size_t len = (size_t)ANNAL_IMPORT_LINE_BYTES_MAX + 5000;
    char *bytes = malloc(len);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', len);
    memcpy(bytes, head, sizeof head - 1);
    memcpy(bytes + len - 4, "\"}}\n", 4);
    import_bytes("claude-code", "s-1.jsonl", bytes, len - 100);
    ASSERT_OUT(&cli, "\"lines\":1,\"imported\":0,\"skipped\":1,\"events\":0,");
    import_bytes("claude-code", "s-1.jsonl", bytes, len);
    ASSERT_OUT(&cli, "\"lines\":1,\"imported\":1,\"skipped\":0,");
    CLI(&cli, NULL, "query", "--type", "message.added");
    ASSERT_OUT(&cli, "\"sha256\":");
    free(bytes);
}
END_TEST

START_TEST(an_importer_may_be_a_file)
{
    static const char sql[] =
        "-- importer mine\n-- once\nCREATE TABLE notes (x);\n-- batch\n"
        "SELECT 'mine', 1700000000000000 + n * 1000, 'note.taken', hash, NULL, json_fields('line', "
        "coalesce(json, "
        "unreadable), 'kind', (SELECT json_text(kind) FROM source)), n FROM lines ORDER BY row;\n";
    const char *importer = tmpdir_path(&cli.dir, "mine.sql");
    const char *log = tmpdir_path(&cli.dir, "x.log");
    file_write(importer, sql, sizeof sql - 1);
    file_write(log, "{\"a\":1}\nb\n", 10);
    DONE(&cli, "import", importer, log);
    CLI(&cli, NULL, "cat", "mine");
    ASSERT_OUT(&cli, "\"data\":{\"line\":{\"a\":1},\"kind\":\"mine\"}}");
    ASSERT_OUT(&cli, "\"ts\":\"2023-11-14T22:13:20.002000Z\",\"type\":\"note.taken\"");
}
END_TEST

START_TEST(the_name_of_an_importer_is_quoted_in_its_report)
{
    static const char sql[] = "-- importer mine\n-- batch\n"
                              "SELECT 'mine', 1700000000000000 + n * 1000, 'note.taken', hash, "
                              "NULL, json, n FROM lines ORDER BY row;\n";
    const char *importer = tmpdir_path(&cli.dir, "x\"y.sql");
    const char *log = tmpdir_path(&cli.dir, "x.log");
    file_write(importer, sql, sizeof sql - 1);
    file_write(log, "{\"a\":1}\n", 8);
    DONE(&cli, "import", importer, log, "--json");
    ASSERT_OUT(&cli, ",\"kind\":\"x\\\"y\",\"container\":\"lines\",\"sessions\":[\"mine\"],");
}
END_TEST

START_TEST(a_wrong_command_line_is_refused_with_a_reason_and_nothing_is_written)
{
    CLI(&cli, NULL, "import", "cobol", MAIN_LOG);
    cli_assert_refused(&cli, EXIT_USAGE, "claude-code, ");
    CLI(&cli, NULL, "import", "codex");
    cli_assert_refused(&cli, EXIT_USAGE, "import needs KIND PATH");
    CLI(&cli, NULL, "import", "codex", tmpdir_path(&cli.dir, "none.jsonl"));
    cli_assert_refused(&cli, EXIT_REFUSED, "none.jsonl");
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "empty"), 0700), 0);
    CLI(&cli, NULL, "import", "codex", tmpdir_path(&cli.dir, "empty"));
    cli_assert_refused(&cli, EXIT_REFUSED, "the path contains no log of kind codex");
    CLI(&cli, NULL, "import", tmpdir_path(&cli.dir, "none.sql"), MAIN_LOG);
    cli_assert_refused(&cli, EXIT_REFUSED, "none.sql");
    CLI(&cli, NULL, "import", "codex", "/dev/null");
    cli_assert_refused(&cli, EXIT_REFUSED, "neither a file nor a directory");
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

START_TEST(an_import_names_an_unreadable_file_and_imports_the_others)
{
    const char *locked = tmpdir_path(&cli.dir, "locked.jsonl");
    const char *none = tmpdir_path(&cli.dir, "none.jsonl");
    file_write(locked, "{}\n", 3);
    ck_assert_int_eq(chmod(locked, 0), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "closed"), 0), 0);
    ck_assert_int_eq(chmod(cli.dir.path, 0777), 0);
    cli.as_nobody = geteuid() == 0;
    CLI(&cli, NULL, "import", "codex", none, locked, tmpdir_path(&cli.dir, "closed"), MAIN_LOG);
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(
        strstr(cli.err, "none.jsonl': No such file or directory; this path is left out"));
    ck_assert_ptr_nonnull(
        strstr(cli.err, "locked.jsonl': Permission denied; this path is left out"));
    ck_assert_ptr_nonnull(strstr(cli.err, "closed': Permission denied; this path is left out"));
    ck_assert_ptr_nonnull(strstr(cli.out, "3 files or directories could not be read"));
    ck_assert_ptr_nonnull(strstr(cli.out, "1 file, "));
    ck_assert_int_eq(cli_journals(&cli), 1);
}
END_TEST

START_TEST(an_unknown_layout_is_reported_and_listed_and_the_other_logs_are_imported)
{
    static const char known[] = "{\"type\":\"mode\",\"sessionId\":\"s-1\"}\n";
    static const char unknown[] = "{\"type\":\"user\",\"sessionId\":\"s-2\",\"parts\":[1]}\n"
                                  "{\"type\":\"user\",\"sessionId\":\"s-2\",\"parts\":[2]}\n";
    const char *one = tmpdir_path(&cli.dir, "one.jsonl");
    file_write(one, known, sizeof known - 1);
    DONE(&cli, "import", "claude-code", one);
    const char *two = tmpdir_path(&cli.dir, "two.jsonl");
    file_write(two, unknown, sizeof unknown - 1);
    for (int again = 0; again < 2; again++) {
        CLI(&cli, NULL, "import", "claude-code", two, "--recheck");
        ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
        ck_assert_ptr_nonnull(strstr(cli.err, "2 records are of a layout that the importer "
                                              "claude-code does not know (user)"));
    }
    DONE(&cli, "ls");
    ck_assert_ptr_nonnull(strstr(cli.out, "layout unknown"));
    DONE(&cli, "query", "--type", "import.unknown", "--count");
    ck_assert_int_eq(atoi(cli.out), 1);
    CLI(&cli, NULL, "sql",
        "SELECT count(*) AS n FROM events WHERE type = 'session.created' AND "
        "data ->> 'source_host' <> '' AND data ->> 'source_path' LIKE '/%/two.jsonl'",
        "--json");
    ck_assert_str_eq(cli.out, "{\"n\":1}\n");
}
END_TEST

/* A directory of Claude Code: sub-agents at any depth, and files that are not logs. */
START_TEST(files_beside_logs_create_no_sessions_and_long_results_join_their_session)
{
    static const char line[] = "{\"type\":\"user\",\"uuid\":\"u%d\",\"sessionId\":\"s-1\",%s"
                               "\"timestamp\":\"2026-03-01T10:00:0%d.000Z\","
                               "\"message\":{\"role\":\"user\",\"content\":\"Look.\"}}\n";
    static const struct {
        const char *name, *text;
    } others[] = {{"logs/history.jsonl", "{\"display\":\"Look.\",\"sessionId\":\"s-9\"}\n"},
                  {"logs/s-1/subagents/wf/w/journal.jsonl", "{\"type\":\"started\"}\n"},
                  {"logs/s-1/subagents/wf/w/events.jsonl", "{\"type\":\"started\"}\n"},
                  {"logs/s-1/tool-results/toolu_1.txt", "a long table\nof tides\n"},
                  {"logs/s-1/notes.txt", "nothing"}};
    static const char *const folders[] = {"logs",
                                          "logs/s-1",
                                          "logs/s-1/tool-results",
                                          "logs/s-1/subagents",
                                          "logs/s-1/subagents/wf",
                                          "logs/s-1/subagents/wf/w"};
    char text[400];
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, folders[i]), 0700), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        file_write(tmpdir_path(&cli.dir, others[i].name), others[i].text, strlen(others[i].text));
    int len = snprintf(text, sizeof text, line, 1, "", 1);
    file_write(tmpdir_path(&cli.dir, "logs/s-1.jsonl"), text, (size_t)len);
    len = snprintf(text, sizeof text, line, 2, "\"isSidechain\":true,\"agentId\":\"a\",", 2);
    file_write(tmpdir_path(&cli.dir, "logs/s-1/subagents/wf/w/agent-a.jsonl"), text, (size_t)len);
    CLI(&cli, NULL, "import", "claude-code", tmpdir_path(&cli.dir, "logs"));
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_msg(strstr(cli.err, "events.jsonl' has the name of a log of claude-code, but not the "
                                  "content of such a log: left out\n") != NULL &&
                      strstr(cli.err, ": 1 file has no name of a log, such as '") != NULL &&
                      strstr(cli.err, "/notes.txt': left out\n") != NULL,
                  "%s", cli.err);
    CLI(&cli, NULL, "sql",
        "SELECT group_concat(session_id, ' ') AS ids, max(type = 'tool.output') AS texts FROM "
        "(SELECT DISTINCT session_id, type FROM events WHERE type IN ('message.added', "
        "'tool.output') ORDER BY session_id, type)",
        "--json");
    ck_assert_str_eq(cli.out, "{\"ids\":\"s-1 s-1 s-1.agent-a\",\"texts\":1}\n");
    DONE(&cli, "query", "s-1", "--type", "tool.output");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"call_id\":\"toolu_1\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "a long table\\nof tides\\n"));
    ck_assert_ptr_nonnull(strstr(cli.out, "2026-03-01T10:00:01.000000Z"));
}
END_TEST

START_TEST(a_chat_of_a_sub_agent_of_gemini_is_found_and_names_its_parent)
{
    static const char main_chat[] =
        "{\"sessionId\":\"m-1\",\"projectHash\":\"x\",\"kind\":\"main\"}\n"
        "{\"id\":\"u1\",\"type\":\"user\",\"content\":\"Look.\"}\n";
    static const char sub_chat[] =
        "{\"sessionId\":\"looker-1\",\"projectHash\":\"x\",\"kind\":\"subagent\"}\n"
        "{\"id\":\"u2\",\"type\":\"user\",\"content\":\"Look around.\"}\n";
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "chats"), 0700), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, "chats/m-1"), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "chats/session-1.jsonl"), main_chat, sizeof main_chat - 1);
    file_write(tmpdir_path(&cli.dir, "chats/m-1/looker-1.jsonl"), sub_chat, sizeof sub_chat - 1);
    DONE(&cli, "import", "gemini-cli", tmpdir_path(&cli.dir, "chats"));
    DONE(&cli, "sql", "SELECT id, parent_session_id FROM sessions ORDER BY id", "--format", "csv");
    ck_assert_str_eq(cli.out, "id,parent_session_id\r\nlooker-1,m-1\r\nm-1,\r\n");
}
END_TEST

/* Longer than the part of a log that is read to find its session. */
START_TEST(a_long_result_of_a_single_line_joins_its_session_and_is_added_once)
{
    enum { BYTES = 3 << 20 };
    static const char line[] =
        "{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"s-1\",\"timestamp\":"
        "\"2026-03-01T10:00:01.000Z\",\"message\":{\"role\":\"user\","
        "\"content\":\"Look.\"}}\n";
    static const char *const folders[] = {"logs", "logs/s-1", "logs/s-1/tool-results"};
    static const char counts[] =
        "SELECT count(DISTINCT session_id) AS ids, count(*) AS events FROM events";
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_int_eq(mkdir(tmpdir_path(&cli.dir, folders[i]), 0700), 0);
    file_write(tmpdir_path(&cli.dir, "logs/s-1.jsonl"), line, sizeof line - 1);
    char *text = malloc(BYTES);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', BYTES);
    file_write(tmpdir_path(&cli.dir, "logs/s-1/tool-results/toolu_1.txt"), text, BYTES);
    file_write(tmpdir_path(&cli.dir, "logs/s-1/tool-results/toolu_2.txt"), text, 9);
    free(text);
    for (int again = 0; again < 2; again++) {
        DONE(&cli, "import", "claude-code", tmpdir_path(&cli.dir, "logs"), "--recheck");
        DONE(&cli, "sql", counts, "--json");
        ck_assert_str_eq(cli.out, "{\"ids\":1,\"events\":5}\n");
    }
    DONE(&cli, "import", "claude-code", tmpdir_path(&cli.dir, "logs"), "--recheck");
    ck_assert_ptr_nonnull(strstr(cli.out, ": 0 events added"));
}
END_TEST

START_TEST(a_long_path_keeps_its_end)
{
    cli.columns = "60";
    DONE(&cli, "import", "claude-code", MAIN_LOG);
    ck_assert_ptr_nonnull(strstr(cli.out, "\n\u2026"));
}
END_TEST

START_TEST(a_wrong_importer_is_refused_with_its_fault)
{
    const char *importer = tmpdir_path(&cli.dir, "mine.sql");
    file_write(importer, "-- batch\nSELECT nonsense;\n", 26);
    CLI(&cli, NULL, "import", importer, MAIN_LOG);
    ck_assert_int_eq(cli.exit_status, EXIT_REFUSED);
    ck_assert_ptr_nonnull(strstr(cli.err, "nonsense"));
}
END_TEST

/* ---- A power cut in the middle ---- */

#define LONG_LINES 3000

/* A log of more than 1 MiB. */
static void write_long_log(const char *path)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < LONG_LINES; i++)
        fprintf(file,
                "{\"type\":\"user\",\"uuid\":\"u%d\",\"sessionId\":\"s-1\",\"timestamp\":"
                "\"2026-03-01T10:%02d:%02d.000Z\",\"message\":{\"role\":\"user\",\"content\":"
                "\"%0600d\"}}\n",
                i, i / 60, i % 60, i);
    ck_assert_int_eq(fclose(file), 0);
}

static void die_later(void *arg, uint64_t bytes_done)
{
    (void)arg;
    if (bytes_done >= (uint64_t)1 << 20)
        kill(getpid(), SIGKILL);
}

static void import_and_die(const char *store_path, const char *log)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        annal_store *store = NULL;
        struct importer importer = {0};
        struct import_report report = {0};
        const struct import_options options = {.progress = die_later};
        const annal_store_options create = {.create = true};
        if (importer_find("claude-code", &importer) &&
            annal_store_open(store_path, &create, &store, NULL) == ANNAL_OK)
            (void)import_file(store, &importer, log, &options, &report, NULL);
        _exit(0);
    }
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

/* All events of s-1, and how many. */
static uint64_t read_all(const char *store_path, struct buf *out)
{
    annal_store *store = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t count = 0;
    ck_assert_int_eq(annal_store_open(store_path, NULL, &store, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_cursor_open(store, ANNAL_SLICE("s-1"), 1, &cursor, NULL), ANNAL_OK);
    while (annal_cursor_next(cursor, &event, NULL) == ANNAL_OK) {
        ck_assert_uint_eq(event.seq, ++count);
        ck_assert_int_eq(annal__buf_printf(out, "%.*s %.*s %.*s\n", ANNAL_FMT(event.type),
                                           ANNAL_FMT(event.id), ANNAL_FMT(event.data)),
                         ANNAL_OK);
    }
    annal_cursor_close(cursor);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
    return count;
}

/* After another boot, a store has no valid held list: as if without locks/. */
START_TEST(the_next_import_finishes_one_that_a_power_cut_ended)
{
    struct buf expected = {0}, got = {0}, part = {0};
    const char *log = tmpdir_path(&cli.dir, "s-1.jsonl");
    const char *broken = tmpdir_path(&cli.dir, "broken");
    const char *journal = tmpdir_path(&cli.dir, "broken/events/s-1.jsonl");
    write_long_log(log);
    DONE(&cli, "import", "claude-code", log);

    import_and_die(broken, log);
    size_t len;
    char *bytes = file_read(journal, &len);
    ck_assert_uint_gt(len, 600000);
    memset(bytes + len / 2, 0, len / 4); /* never written */
    file_write(journal, bytes, len - 1000);
    free(bytes);
    ck_assert_int_eq(rename(tmpdir_path(&cli.dir, "broken/locks"), tmpdir_path(&cli.dir, "old")),
                     0);
    uint64_t count = read_all(tmpdir_path(&cli.dir, "store"), &expected);
    ck_assert_uint_lt(read_all(broken, &part), count);

    DONE(&cli, "import", "claude-code", log, "--store", broken);
    ck_assert_uint_eq(read_all(broken, &got), count);
    ck_assert_uint_ge(count, LONG_LINES);
    ck_assert(got.len == expected.len && memcmp(got.ptr, expected.ptr, got.len) == 0);
    ck_assert(part.len > 0 && memcmp(part.ptr, expected.ptr, part.len) == 0);
    DONE(&cli, "verify", "--store", broken);
    annal__buf_done(&expected);
    annal__buf_done(&got);
    annal__buf_done(&part);
}
END_TEST

START_TEST(real_logs_import_once)
{
    static const char *const kinds[] = {"claude-code", "codex"};
    char *folder = real_logs(kinds[_i]);
    if (folder == NULL)
        return;
    DONE(&cli, "import", kinds[_i], folder);
    DONE(&cli, "import", kinds[_i], folder, "--recheck");
    ASSERT_OUT(&cli, " 0 events added");
    DONE(&cli, "verify");
    free(folder);
}
END_TEST

/* Only the journals know their format. */
START_TEST(an_import_into_msgpack_journals_gives_the_same_events_tables_and_states)
{
    static const char *const asked[][4] = {
        {"ls", "--json", NULL},
        {"query", "--json", NULL},
        {"sql", "SELECT * FROM turns ORDER BY 1, 2", "--json", NULL},
        {"sql", "SELECT session_id, seq, type, id, data FROM events ORDER BY 1, 2", "--json", NULL},
        {"replay", "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066", "--json", NULL},
        {"cat", "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066", NULL},
        {"tail", "e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066", NULL},
    };
    char *said[sizeof asked / sizeof *asked];
    for (int msgpack = 0; msgpack < 2; msgpack++) {
        DONE(&cli, "import", "claude-code", FIXTURES "/claude-code", "--format",
             msgpack ? "msgpack" : "jsonl");
        ck_assert_int_eq(cli_journals(&cli), 4);
        for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
            cli_run(&cli, NULL, asked[i]);
            cli_assert_done(&cli);
            if (!msgpack)
                said[i] = strdup(cli.out);
            else
                ck_assert_str_eq(cli.out, said[i]);
            if (msgpack)
                free(said[i]);
        }
        DONE(&cli, "verify", "--replay");
        CLI(&cli, NULL, "import", "claude-code", FIXTURES "/claude-code", "--recheck");
        ASSERT_OUT(&cli, " 0 events added");
        cli_teardown();
        cli_setup();
    }
}
END_TEST

/* More events than the distance of two snapshots. */
START_TEST(an_import_of_a_long_log_leaves_a_snapshot)
{
    enum { LINES = 1100 };
    char *lines = malloc(LINES * 40);
    size_t len = 0;
    for (int i = 0; i < LINES; i++)
        len += (size_t)sprintf(lines + len, "{\"run\":\"s1\",\"kind\":\"n\",\"n\":%d}\n", i);
    file_write(tmpdir_path(&cli.dir, "a.jsonl"), lines, len);
    DONE(&cli, "import", "jsonl", tmpdir_path(&cli.dir, "a.jsonl"), "--map", "session=$.run",
         "--map", "type=$.kind");
    CLI(&cli, NULL, "snapshot", "list", "--json");
    ASSERT_OUT(&cli, "\"seq\":1000,");
    free(lines);
}
END_TEST

Suite *suite_import(void)
{
    Suite *suite = suite_create("import");
    TCase *import = suite_case(suite, "import", cli_setup, cli_teardown);
    tcase_add_test(import, a_chat_of_a_sub_agent_of_gemini_is_found_and_names_its_parent);
    tcase_add_test(import, a_second_import_adds_nothing);
    tcase_add_test(import, an_import_brings_the_index_up_to_date);
    tcase_add_test(import,
                   logs_of_a_group_are_synced_once_and_before_the_journal_of_their_session_is_read);
    tcase_add_test(import, the_command_syncs_the_events_of_many_small_logs_in_one_group);
    tcase_add_test(import, an_import_fills_search_db_if_it_is_used_or_the_events_are_many);
    tcase_add_test(import, values_without_a_line_break_between_them_are_records);
    tcase_add_test(import, an_importer_that_is_used_again_keeps_nothing_of_the_previous_log);
    tcase_add_test(import, an_event_without_a_time_gets_the_nearest_time_and_names_its_source);
    tcase_add_test(import, a_log_that_did_not_change_is_not_read_again);
    tcase_add_test(import, a_log_that_changes_often_has_few_lines_of_notes);
    tcase_add_test(import, each_log_has_its_report);
    tcase_add_test(import, an_import_into_msgpack_journals_gives_the_same_events_tables_and_states);
    tcase_add_test(import, a_file_imported_while_it_grows_gives_the_events_of_the_whole_file);
    tcase_add_test(import, an_incomplete_last_line_waits_for_its_rest);
    tcase_add_test(import, a_session_whose_first_lines_have_no_time_is_as_old_as_its_first_time);
    tcase_add_test(import, a_byte_order_mark_and_cr_are_not_part_of_a_line);
    tcase_add_loop_test(import, a_log_without_a_line_is_read_only_up_to_its_detected_bytes, 0, 2);
    tcase_add_test(import, odd_bytes_are_held);
    tcase_add_test(import, an_import_of_a_long_log_leaves_a_snapshot);
    tcase_add_test(import, a_log_without_a_line_of_its_kind_ends_with_status_1);
    tcase_add_test(import, an_import_of_a_part_of_an_imported_file_adds_nothing);
    tcase_add_test(import, the_long_text_of_a_line_beyond_the_limit_becomes_an_artifact);
    tcase_add_test(import, an_importer_may_be_a_file);
    tcase_add_test(import, the_name_of_an_importer_is_quoted_in_its_report);
    tcase_add_test(import, a_wrong_command_line_is_refused_with_a_reason_and_nothing_is_written);
    tcase_add_test(import, an_import_names_an_unreadable_file_and_imports_the_others);
    tcase_add_test(import, a_long_result_of_a_single_line_joins_its_session_and_is_added_once);
    tcase_add_test(import,
                   an_unknown_layout_is_reported_and_listed_and_the_other_logs_are_imported);
    tcase_add_test(import,
                   files_beside_logs_create_no_sessions_and_long_results_join_their_session);
    tcase_add_test(import, a_long_path_keeps_its_end);
    tcase_add_test(import, a_wrong_importer_is_refused_with_its_fault);
    tcase_add_test(import, the_next_import_finishes_one_that_a_power_cut_ended);
    tcase_add_loop_test(import, real_logs_import_once, 0, 2);
    return suite;
}
