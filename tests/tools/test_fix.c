/* SPDX-License-Identifier: Apache-2.0 */
/* fix and how: what was done after an error, and for a task. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <string.h>

#define EVENT(day, type, data)                                                                     \
    "{\"type\":\"" type "\",\"ts\":\"2026-03-" day "T09:00:00Z\",\"data\":" data "}\n"
#define CREATED(day, title, dir)                                                                   \
    EVENT(day, "session.created",                                                                  \
          "{\"agent_id\":\"codex\",\"title\":\"" title "\",\"working_directory\":\"" dir "\"}")
#define TURN(day)        EVENT(day, "turn.started", "{\"turn_id\":\"t\"}")
#define ENDED(day, type) EVENT(day, type, "{\"turn_id\":\"t\"}")
#define ASKED(day, words)                                                                          \
    EVENT(day, "message.added", "{\"role\":\"user\",\"content\":\"" words "\"}")
#define CALL(day, id, tool, input)                                                                 \
    EVENT(day, "tool.called", "{\"call_id\":\"" id "\",\"tool\":\"" tool "\",\"input\":" input "}")
#define GOOD(day, id) EVENT(day, "tool.returned", "{\"call_id\":\"" id "\",\"output\":\"ok\"}")
#define BAD(day, id, output)                                                                       \
    EVENT(day, "tool.failed", "{\"call_id\":\"" id "\",\"output\":\"" output "\"}")
#define BASH(day, id, command) CALL(day, id, "Bash", "{\"command\":\"" command "\"}")
#define EDIT(day, id, path)    CALL(day, id, "Edit", "{\"file_path\":\"" path "\"}")

/* Two failures with the same error, a change, and the same command. */
static const char fixed[] = CREATED("01", "Tables", "/w") TURN("01")
    ASKED("01", "Add a migration for the users table") BASH("01", "1", "cd /w && npm test -- a")
        BAD("01", "1", "Exit code 1\\nError: Cannot find module 'zod' in /w/a.ts:12")
            BASH("01", "2", "npm test") BAD("01", "2", "Cannot find module 'yup' in /w/b.ts:7")
                EDIT("01", "3", "/w/package.json") GOOD("01", "3") BASH("01", "4", "npm install")
                    GOOD("01", "4") BASH("01", "5", "npm test") GOOD("01", "5")
                        ENDED("01", "turn.completed");

/* The error in the same directory; nothing ends it. */
static const char open_end[] = CREATED("02", "Release", "/w") TURN("02")
    ASKED("02", "Release a new version") BASH("02", "1", "npm test")
        BAD("02", "1", "Cannot find module \\\"left-pad\\\" in /w/c.ts:1")
            CALL("02", "2", "Read", "{\"path\":\"/w/c.ts\"}") GOOD("02", "2")
                ENDED("02", "turn.completed");

/* An error that occurs again in its session. The change of another file is not its end. */
static const char again[] = CREATED("03", "Edits", "/v") EDIT("03", "1", "/v/a.c")
    BAD("03", "1", "<tool_use_error>String to replace not found in file.</tool_use_error>")
        CALL("03", "2", "Read", "{\"path\":\"/v/a.c\"}") GOOD("03", "2") EDIT("03", "3", "/v/a.c")
            GOOD("03", "3") EDIT("03", "4", "/v/a.c")
                BAD("03", "4", "String to replace not found in file.") EDIT("03", "5", "/v/b.c")
                    GOOD("03", "5");

static void setup(void)
{
    cli_setup();
    DONE_WITH(&cli, fixed, "append", "fixed");
    DONE_WITH(&cli, open_end, "append", "open");
    DONE_WITH(&cli, again, "append", "again");
}

#define ASSERT_OUT(text) ck_assert_str_eq(cli.out, text)

START_TEST(an_error_is_listed_with_its_end_its_changes_and_its_return)
{
    DONE(&cli, "fix", "Cannot find module 'react' in /home/x/y.ts:99", "--json");
    ASSERT_OUT(
        "{\"session_id\":\"fixed\",\"seq\":5,\"timestamp\":\"2026-03-01T09:00:00.000000Z\","
        "\"said\":\"Error: Cannot find module 'zod' in /w/a.ts:12\",\"steps\":["
        "{\"seq\":8,\"tool\":\"Edit\",\"input\":\"/w/package.json\"},"
        "{\"seq\":10,\"tool\":\"Bash\",\"input\":\"npm install\"},"
        "{\"seq\":12,\"tool\":\"Bash\",\"input\":\"npm test\"}],"
        "\"fact\":\"Bash succeeded at 12 after 2 failures; the error occurred again in open at "
        "5\",\"tool\":\"Bash\",\"tries\":2,\"success_seq\":12,\"back_session_id\":\"open\","
        "\"back_seq\":5}\n"
        "{\"session_id\":\"open\",\"seq\":5,\"timestamp\":\"2026-03-02T09:00:00.000000Z\","
        "\"said\":\"Cannot find module \\\"left-pad\\\" in /w/c.ts:1\",\"steps\":["
        "{\"seq\":6,\"tool\":\"Read\",\"input\":\"/w/c.ts\"}],\"fact\":\"Bash did not "
        "succeed again\",\"tool\":\"Bash\",\"tries\":1,\"success_seq\":null,"
        "\"back_session_id\":null,\"back_seq\":null}\n");
}
END_TEST

START_TEST(an_error_that_occurs_again_in_its_session_says_where)
{
    DONE(&cli, "fix", "string", "to", "replace", "not", "found");
    ASSERT_OUT("again  seq 3  2026-03-03T09:00:00.000000Z  Edit succeeded at 6; the error occurred "
               "again at 9\n"
               "    String to replace not found in file.\n"
               "    4  Read /v/a.c\n"
               "    6  Edit /v/a.c\n"
               "\n"
               "again  seq 9  2026-03-03T09:00:00.000000Z  Edit did not succeed again\n"
               "    String to replace not found in file.\n"
               "    10  Edit /v/b.c\n");
}
END_TEST

START_TEST(an_error_that_did_not_occur_again_is_before_others)
{
    DONE_WITH(&cli,
              CREATED("01", "Old", "/u") BASH("01", "1", "npm test")
                  BAD("01", "1", "Cannot find module 'a' in /u/a.ts:1") BASH("01", "2", "npm test")
                      GOOD("01", "2"),
              "append", "old");
    DONE(&cli, "fix", "Cannot find module", "--limit", "1");
    ASSERT_OUT("old  seq 3  2026-03-01T09:00:00.000000Z  Bash succeeded at 4\n"
               "    Cannot find module 'a' in /u/a.ts:1\n    4  Bash npm test\n");
}
END_TEST

START_TEST(filters_restrict_the_errors)
{
    DONE(&cli, "fix", "Cannot find module", "--since", "2026-03-02");
    ck_assert_ptr_nonnull(strstr(cli.out, "open  seq 5"));
    ck_assert_ptr_null(strstr(cli.out, "fixed  seq"));
    DONE(&cli, "fix", "Cannot find module", "--session", "fixed");
    ASSERT_OUT("fixed  seq 5  2026-03-01T09:00:00.000000Z  Bash succeeded at 12 after 2 failures\n"
               "    Error: Cannot find module 'zod' in /w/a.ts:12\n"
               "    8  Edit /w/package.json\n    10  Bash npm install\n    12  Bash npm test\n");
    CLI(&cli, NULL, "fix", "Cannot find module", "--agent", "claude");
    cli_assert_refused(&cli, 1, "no session matches --agent");
    CLI(&cli, NULL, "fix", "Cannot find module", "--status", "ended");
    cli_assert_refused(&cli, 1, "no session matches --status");
}
END_TEST

START_TEST(an_error_that_no_call_had_is_a_refusal)
{
    CLI(&cli, NULL, "fix", "Cannot find gold");
    cli_assert_refused(&cli, 1, "no call failed with this error");
    /* the words occur, but in no failure */
    CLI(&cli, NULL, "fix", "ok");
    cli_assert_refused(&cli, 1, "no call failed with this error");
    CLI(&cli, NULL, "fix", "'x' 17 /etc/passwd");
    cli_assert_refused(&cli, 1, "nothing to search for");
}
END_TEST

START_TEST(how_lists_the_shortest_calls_that_ended_well)
{
    DONE_WITH(
        &cli,
        CREATED("04", "Tables", "/w") TURN("04") ASKED("04", "Add a migration for the orders table")
            BASH("04", "1", "make migration") GOOD("04", "1") ENDED("04", "turn.completed"),
        "append", "short");
    DONE_WITH(&cli,
              CREATED("04", "Tables", "/w") TURN("04")
                  ASKED("04", "Add a migration for the carts table") BASH("04", "1", "make")
                      GOOD("04", "1") ENDED("04", "turn.failed"),
              "append", "failed");
    DONE_WITH(&cli,
              CREATED("04", "Tables", "/w") TURN("04")
                  ASKED("04", "Add a migration for the carts table") BASH("04", "1", "make")
                      BAD("04", "1", "no rule") ENDED("04", "turn.completed"),
              "append", "broken");
    DONE(&cli, "how", "add", "a", "migration");
    ASSERT_OUT("short  seq 3  2026-03-04T09:00:00.000000Z  1 call; ended at 4\n"
               "    Add a migration for the orders table\n"
               "    4  Bash make migration\n"
               "\n"
               "fixed  seq 3  2026-03-01T09:00:00.000000Z  3 calls, and 2 that failed; ended at "
               "12\n"
               "    Add a migration for the users table\n"
               "    8  Edit /w/package.json\n"
               "    10  Bash npm install\n"
               "    12  Bash npm test\n");
    DONE(&cli, "how", "add a migration", "--limit", "1", "--json");
    ASSERT_OUT("{\"session_id\":\"short\",\"seq\":3,\"timestamp\":\"2026-03-04T09:00:00.000000Z\","
               "\"said\":\"Add a migration for the orders table\",\"steps\":[{\"seq\":4,\"tool\":"
               "\"Bash\",\"input\":\"make migration\"}],\"fact\":\"1 call; ended at 4\","
               "\"calls\":1,\"failed\":0,\"end_seq\":4}\n");
    DONE(&cli, "how", "add a migration", "--until", "2026-03-02");
    ck_assert_ptr_null(strstr(cli.out, "short"));
    CLI(&cli, NULL, "how", "build", "a", "rocket");
    cli_assert_refused(&cli, 1, "no turn about this");
}
END_TEST

START_TEST(how_finds_a_session_by_its_title)
{
    DONE_WITH(&cli,
              CREATED("05", "Sharpen the lighthouse lens", "/w") TURN("05") ASKED("05", "Go on.")
                  BASH("05", "1", "make lens") GOOD("05", "1"),
              "append", "titled");
    DONE(&cli, "how", "lighthouse lens");
    ASSERT_OUT("titled  seq 1  2026-03-05T09:00:00.000000Z  1 call; ended at 4\n"
               "    Sharpen the lighthouse lens\n    4  Bash make lens\n");
}
END_TEST

Suite *suite_fix(void)
{
    Suite *suite = suite_create("fix");
    TCase *tcase = suite_case(suite, "errors and tasks", setup, cli_teardown);
    tcase_add_test(tcase, an_error_is_listed_with_its_end_its_changes_and_its_return);
    tcase_add_test(tcase, an_error_that_occurs_again_in_its_session_says_where);
    tcase_add_test(tcase, an_error_that_did_not_occur_again_is_before_others);
    tcase_add_test(tcase, filters_restrict_the_errors);
    tcase_add_test(tcase, an_error_that_no_call_had_is_a_refusal);
    tcase_add_test(tcase, how_lists_the_shortest_calls_that_ended_well);
    tcase_add_test(tcase, how_finds_a_session_by_its_title);
    return suite;
}
