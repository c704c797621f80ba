/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that are read before their turn, by several threads: the store is as if each was read alone,
 * one after the other. */
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/import/import.h"

#include <annal/index.h>

#include <string.h>

#define COPIES ANNAL_SOURCE "/tests/data/copies/"

static const char events[] =
    "SELECT session_id, seq, timestamp, type, id, data FROM events ORDER BY session_id, seq";
static const char sessions[] = "SELECT * FROM sessions ORDER BY id";

/* ---- One log, whose turn begins when the log has been read ---- */

static const char first_log[] =
    "{\"type\":\"user\",\"sessionId\":\"a\",\"uuid\":\"u1\",\"timestamp\":"
    "\"2026-01-01T00:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"Hello.\"}}\n";
/* Session b begins with the message of session a. */
static const char second_log[] =
    "{\"type\":\"user\",\"sessionId\":\"b\",\"uuid\":\"u1\",\"timestamp\":"
    "\"2026-01-01T00:00:01.000Z\",\"message\":{\"role\":\"user\",\"content\":\"Hello.\"}}\n"
    "{\"type\":\"user\",\"sessionId\":\"b\",\"uuid\":\"u2\",\"timestamp\":"
    "\"2026-01-01T00:00:02.000Z\",\"message\":{\"role\":\"user\",\"content\":\"More.\"}}\n";

struct turn {
    annal_store *store;
    struct importer importer;
    struct import_options options;
    int asked, waited;
};

static void import_one(struct turn *turn, const char *path, const struct import_options *options,
                       uint64_t *out_events)
{
    struct import_report report = {0};
    annal_error err = {0};
    ck_assert_msg(import_file(turn->store, &turn->importer, path, options, &report, &err) ==
                      ANNAL_OK,
                  "%s", err.message);
    *out_events = report.events;
    import_report_done(&report);
}

/* Import the log before as late as possible: when the second log waits for its turn. */
static bool wait_for_first(void *arg, bool waits)
{
    struct turn *turn = arg;
    struct import_options alone = turn->options;
    uint64_t count = 0;
    turn->asked++;
    if (!waits)
        return false;
    ck_assert_int_eq(turn->waited++, 0);
    alone.turn = NULL;
    import_one(turn, tmpdir_path(&cli.dir, "a.jsonl"), &alone, &count);
    ck_assert_uint_gt(count, 0);
    return true;
}

START_TEST(a_record_that_an_earlier_log_took_in_the_meantime_is_marked_as_a_copy)
{
    struct turn turn = {0};
    annal_index *index = NULL;
    struct buf expected = {0};
    uint64_t count = 0;
    file_write(tmpdir_path(&cli.dir, "a.jsonl"), first_log, sizeof first_log - 1);
    file_write(tmpdir_path(&cli.dir, "b.jsonl"), second_log, sizeof second_log - 1);
    DONE(&cli, "import", "claude-code", tmpdir_path(&cli.dir, "a.jsonl"), "--store",
         tmpdir_path(&cli.dir, "expected"));
    DONE(&cli, "import", "claude-code", tmpdir_path(&cli.dir, "b.jsonl"), "--store",
         tmpdir_path(&cli.dir, "expected"));
    DONE(&cli, "sql", events, "--store", tmpdir_path(&cli.dir, "expected"));
    ck_assert_int_eq(annal__buf_append(&expected, cli.out, cli.out_len + 1), ANNAL_OK);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"copied\":true"));

    ck_assert(importer_find("claude-code", &turn.importer));
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &turn.store, NULL),
        ANNAL_OK);
    ck_assert_int_eq(annal_index_open(turn.store, NULL, &index, NULL), ANNAL_OK);
    turn.options.owners = owners_new(turn.store, index);
    turn.options.turn = wait_for_first;
    turn.options.turn_arg = &turn;
    import_one(&turn, tmpdir_path(&cli.dir, "b.jsonl"), &turn.options, &count);
    ck_assert_uint_gt(count, 0);
    ck_assert_int_eq(turn.waited, 1);
    owners_free(turn.options.owners);
    annal_index_close(index);
    annal_store_close(turn.store, NULL);
    DONE(&cli, "sql", events);
    ck_assert_msg(strcmp(cli.out, expected.ptr) == 0, "the events differ");
    annal__buf_done(&expected);
}
END_TEST

static bool end(void *arg, bool waits)
{
    (void)arg;
    return !waits;
}

START_TEST(a_log_without_a_turn_adds_nothing)
{
    struct turn turn = {.options = {.turn = end}};
    struct import_report report = {0};
    ck_assert(importer_find("claude-code", &turn.importer));
    ck_assert_int_eq(
        annal_store_open(cli.store, &(annal_store_options){.create = true}, &turn.store, NULL),
        ANNAL_OK);
    ck_assert_int_eq(import_file(turn.store, &turn.importer, COPIES "claude-code-1.jsonl",
                                 &turn.options, &report, NULL),
                     ANNAL_ERR_CLOSED);
    ck_assert_uint_eq(report.events, 0);
    import_report_done(&report);
    annal_store_close(turn.store, NULL);
    ck_assert_int_eq(cli_journals(&cli), 0);
}
END_TEST

/* ---- All logs of a directory ---- */

/* The report, the events and the list of sessions. */
static void import_all(const char *path, const char *jobs, struct buf *out)
{
    CLI(&cli, NULL, "import", "auto", path, "--json", "--jobs", jobs);
    ck_assert_int_le(cli.exit_status, 1);
    ck_assert_int_eq(annal__buf_append(out, cli.out, cli.out_len), ANNAL_OK);
    ck_assert_int_eq(annal__buf_append(out, cli.err, cli.err_len), ANNAL_OK);
    DONE(&cli, "sql", events);
    ck_assert_int_eq(annal__buf_append(out, cli.out, cli.out_len), ANNAL_OK);
    DONE(&cli, "sql", sessions);
    ck_assert_int_eq(annal__buf_append(out, cli.out, cli.out_len + 1), ANNAL_OK);
}

START_TEST(the_number_of_jobs_changes_nothing)
{
    const char *path =
        full_or(1, 0) ? ANNAL_SOURCE "/tests/data" : ANNAL_SOURCE "/tests/data/copies";
    for (unsigned round = full_or(20, 1); round > 0; round--) {
        struct buf one = {0}, four = {0};
        import_all(path, "1", &one);
        cli_teardown();
        cli_setup();
        import_all(path, "4", &four);
        ck_assert_msg(strcmp(one.ptr, four.ptr) == 0, "the reports or the rows differ");
        annal__buf_done(&one);
        annal__buf_done(&four);
        cli_teardown();
        cli_setup();
    }
}
END_TEST

Suite *suite_ahead(void)
{
    Suite *suite = suite_create("ahead");
    TCase *tcase = suite_case(suite, "ahead", cli_setup, cli_teardown);
    tcase_add_test(tcase, a_record_that_an_earlier_log_took_in_the_meantime_is_marked_as_a_copy);
    tcase_add_test(tcase, a_log_without_a_turn_adds_nothing);
    tcase_add_test(tcase, the_number_of_jobs_changes_nothing);
    return suite;
}
