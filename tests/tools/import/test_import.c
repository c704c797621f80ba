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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXTURES ANNAL_SOURCE "/tests/data"
#define MAIN_LOG FIXTURES "/claude-code/7c1d52a0-3f0e-4b52-9a61-0d6c2f4be811.jsonl"
#define ODD_LOG  FIXTURES "/claude-code/e2a90d14-61b7-4c0e-8f35-b7c9d2a4f066.jsonl"
#define CODEX_LOG                                                                                  \
    FIXTURES "/codex/rollout-2026-03-04T10-00-00-019cae51-7a10-7c33-9d02-4be0a1f35c70.jsonl"

#define ASSERT_OUT(cli, part)                                                                      \
    ck_assert_msg(strstr((cli)->out, part) != NULL, "'%s' is not in %s", part, (cli)->out)

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

#define CLAUDE(second, rest)                                                                       \
    "{\"sessionId\":\"s1\",\"uuid\":\"u" second "\",\"timestamp\":\"2026-01-02T03:04:" second      \
    "Z\"," rest "}\n"
#define CLAUDE_SAID(second)                                                                        \
    CLAUDE(second, "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Tides?\"}")
#define CLAUDE_ANSWER(second, stop, block)                                                         \
    CLAUDE(second, "\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\","     \
                   "\"stop_reason\":\"" stop "\",\"content\":[{\"type\":" block "}]}")
#define CLAUDE_FIRST                                                                               \
    CLAUDE_SAID("01") CLAUDE_ANSWER("02", "end_turn", "\"text\",\"text\":\"Low water\"")

static uint64_t take(struct import_job *job, enum import_until until)
{
    annal_error err = {0};
    uint64_t before = import_report(job)->events;
    ck_assert_msg(import_take(job, until, &err) == ANNAL_OK, "%s", err.message);
    return import_report(job)->events - before;
}

START_TEST(a_log_that_continues_after_a_pause_has_each_end_once)
{
    static const char first[] = CLAUDE_FIRST;
    static const char all[] =
        CLAUDE_FIRST CLAUDE_ANSWER("03", "tool_use", "\"tool_use\",\"id\":\"c1\",\"name\":\"Bash\"")
            CLAUDE_SAID("09");
    const char *path = tmpdir_path(&cli.dir, "s1.jsonl");
    annal_store *store = NULL;
    struct importer importer = {0};
    struct import_job *job = NULL;
    ck_assert(importer_find("claude-code", &importer));
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &store, NULL),
        ANNAL_OK);
    file_write(path, first, sizeof first - 1);
    ck_assert_int_eq(import_open(store, &importer, path, NULL, false, &job, NULL), ANNAL_OK);
    ck_assert_uint_eq(take(job, IMPORT_WHOLE), 4);
    ck_assert_uint_eq(take(job, IMPORT_PAUSE), 1);
    ck_assert_uint_eq(take(job, IMPORT_PAUSE), 0);
    file_write(path, all, sizeof all - 1);
    ck_assert_uint_eq(take(job, IMPORT_WHOLE), 3); /* a call, the next turn, a message */
    ck_assert_uint_eq(take(job, IMPORT_LAST), 0);
    import_close(job);
    ck_assert_int_eq(annal_store_close(store, NULL), ANNAL_OK);
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

Suite *suite_import(void)
{
    Suite *suite = suite_create("import");
    TCase *import = suite_case(suite, "import", cli_setup, cli_teardown);
    tcase_add_test(import,
                   logs_of_a_group_are_synced_once_and_before_the_journal_of_their_session_is_read);
    tcase_add_test(import, a_file_imported_while_it_grows_gives_the_events_of_the_whole_file);
    tcase_add_loop_test(import, a_log_without_a_line_is_read_only_up_to_its_detected_bytes, 0, 2);
    tcase_add_test(import, a_log_that_continues_after_a_pause_has_each_end_once);
    tcase_add_test(import, the_next_import_finishes_one_that_a_power_cut_ended);
    tcase_add_loop_test(import, real_logs_import_once, 0, 2);
    return suite;
}
