/* SPDX-License-Identifier: Apache-2.0 */
/* annal note: what is noted on sessions and events, and where it is shown. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static void init(void)
{
    CLI(&cli, "{\"title\":\"a title\"}\n{\"text\":\"x\"}\n", "append", "sess_1", "--type",
        "session.created");
    cli_assert_done(&cli);
    CLI(&cli, "{\"title\":\"another\"}\n", "append", "sess_2", "--type", "session.created");
    cli_assert_done(&cli);
}

static void ck_says(const char *part)
{
    cli_assert_done(&cli);
    ck_assert_msg(strstr(cli.out, part) != NULL, "%s", cli.out);
}

static void ck_says_not(const char *part)
{
    cli_assert_done(&cli);
    ck_assert_msg(strstr(cli.out, part) == NULL, "%s", cli.out);
}

START_TEST(a_found_note_names_its_session_and_no_list_shows_its_own)
{
    static const char ask[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"list\"}}\n";
    init();
    CLI(&cli, NULL, "note", "name", "sess_1", "the login bug");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "search", "login", "bug");
    ck_says("sess_1  (note)");
    ck_says("a title");
    ck_says_not("notes_");
    CLI(&cli, NULL, "search", "login", "--events", "--json");
    ck_says("\"session_id\":\"notes_sess_1\",\"about\":\"sess_1\"");
    CLI(&cli, ask, "mcp");
    ck_says("sess_1");
    ck_says_not("notes_sess_1");
}
END_TEST

START_TEST(a_note_on_an_event_has_its_id_and_the_hash_of_its_line)
{
    init();
    CLI(&cli, NULL, "note", "add", "sess_1:2", "the wrong file");
    cli_assert_done(&cli);
    char path[PATH_MAX], journal[2000] = "";
    snprintf(path, sizeof path, "%s/events/sess_1.jsonl", cli.store);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(journal, 1, sizeof journal - 1, file), 0);
    fclose(file);
    const char *hash = strstr(strstr(journal, "\"seq\":2"), "\"h\":\"");
    ck_assert_ptr_nonnull(hash);
    char expected[200];
    snprintf(expected, sizeof expected,
             "{\"event_seq\":2,\"text\":\"the wrong file\",\"h\":\"%.16s\"}\n", hash + 5);
    CLI(&cli, NULL, "sql", "--json",
        "SELECT event_seq, text, event_hash AS h FROM annotations.notes");
    ck_says(expected);
    CLI(&cli, NULL, "show", "sess_1");
    ck_says("the wrong file");
    CLI(&cli, NULL, "cat", "sess_1");
    ck_says_not("wrong");
    CLI(&cli, NULL, "note", "add", "sess_1:9", "no");
    ck_assert_int_ne(cli.exit_status, 0);
    ck_assert_ptr_nonnull(strstr(cli.err, "session 'sess_1' has no event 9"));
    CLI(&cli, NULL, "note", "name", "sess_1:2", "no");
    ck_assert_int_ne(cli.exit_status, 0);
    CLI(&cli, NULL, "note", "star", "sess_3");
    ck_assert_int_ne(cli.exit_status, 0);
}
END_TEST

Suite *suite_note(void)
{
    Suite *suite = suite_create("note");
    TCase *noted = suite_case(suite, "noted", cli_setup, cli_teardown);
    tcase_add_test(noted, a_found_note_names_its_session_and_no_list_shows_its_own);
    tcase_add_test(noted, a_note_on_an_event_has_its_id_and_the_hash_of_its_line);
    return suite;
}
