/* SPDX-License-Identifier: Apache-2.0 */
/* How the turns of a log end: of a log that ends early, and of the same log when it grows. */
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/import/import.h"
#include "tools/import/importers.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define CLAUDE(second, rest)                                                                       \
    "{\"sessionId\":\"s1\",\"uuid\":\"u" second "\",\"timestamp\":\"2026-01-02T03:04:" second      \
    "Z\"," rest "}\n"
#define CLAUDE_SAID(second, text)                                                                  \
    CLAUDE(second, "\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"" text "\"}")
#define CLAUDE_LINE(second, block, stop)                                                           \
    CLAUDE(second, "\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"role\":\"assistant\","     \
                   "\"stop_reason\":" stop ",\"content\":[{\"type\":" block "}]}")
#define CLAUDE_TEXT(second, stop) CLAUDE_LINE(second, "\"text\",\"text\":\"Low water\"", stop)
#define CLAUDE_CALL(second)                                                                        \
    CLAUDE_LINE(second, "\"tool_use\",\"id\":\"c1\",\"name\":\"Bash\",\"input\":{}", "\"tool_use\"")
#define CLAUDE_REFUSED(second)                                                                     \
    CLAUDE(second, "\"type\":\"assistant\",\"isApiErrorMessage\":true,\"message\":{"               \
                   "\"model\":\"<synthetic>\",\"stop_reason\":\"stop_sequence\","                  \
                   "\"content\":[{\"type\":\"text\",\"text\":\"Invalid API key\"}]}")
#define CLAUDE_HOOK(second) CLAUDE(second, "\"type\":\"system\",\"subtype\":\"stop_hook_summary\"")

#define PI_HEAD "{\"type\":\"session\",\"id\":\"s1\",\"cwd\":\"/\"}\n"
#define PI(second, rest)                                                                           \
    "{\"type\":\"message\",\"id\":\"p" second "\",\"timestamp\":\"2026-01-02T03:04:" second        \
    "Z\",\"message\":{" rest "}}\n"
#define PI_SAID(second) PI(second, "\"role\":\"user\",\"content\":\"Tides?\"")
#define PI_TEXT(second, stop)                                                                      \
    PI(second, "\"role\":\"assistant\",\"content\":[],\"stopReason\":\"" stop "\"")

#define GEMINI_HEAD "{\"sessionId\":\"s1\",\"projectHash\":\"p\"}\n"
#define GEMINI(second, rest)                                                                       \
    "{\"id\":\"g" second "\",\"timestamp\":\"2026-01-02T03:04:" second "Z\"," rest "}\n"
#define GEMINI_SAID(second) GEMINI(second, "\"type\":\"user\",\"content\":\"Tides?\"")
#define GEMINI_TEXT(second) GEMINI(second, "\"type\":\"gemini\",\"content\":\"Low water\"")
#define GEMINI_CALL(second)                                                                        \
    GEMINI(second, "\"type\":\"gemini\",\"content\":\"I look\",\"toolCalls\":[{\"id\":\"c1\"}]")

/* Statuses of turns after the first lines and after more, and the number of end events. */
static const struct {
    const char *kind, *first, *more;
    const char *is, *becomes;
    const char *ends;
} logs[] = {
    /* Claude Code: the message continues after the line with its stop reason. */
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_LINE("02", "\"thinking\"", "\"end_turn\""),
     CLAUDE_TEXT("03", "\"end_turn\"") CLAUDE_SAID("09", "And now?"), "completed",
     "completed started", "1"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_TEXT("02", "\"end_turn\"") CLAUDE_HOOK("03"),
     CLAUDE_SAID("09", "And now?") CLAUDE_TEXT("10", "null"), "completed", "completed completed",
     "2"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_CALL("02"), CLAUDE_SAID("09", "Go on"),
     "started", "completed started", "1"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_LINE("02", "\"thinking\"", "null"), "",
     "started", "started", "0"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_TEXT("02", "\"max_tokens\""), "", "started",
     "started", "0"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_TEXT("02", "\"end_turn\""),
     CLAUDE_CALL("03") CLAUDE_SAID("04", "[Request interrupted by user]"), "completed", "completed",
     "1"},
    {"claude-code", CLAUDE_SAID("01", "Tides?") CLAUDE_REFUSED("02"), CLAUDE_SAID("09", "Again"),
     "failed", "failed started", "1"},
    {"claude-code",
     CLAUDE_SAID("01", "Tides?") CLAUDE("02", "\"type\":\"system\",\"subtype\":\"api_error\""),
     CLAUDE_TEXT("03", "\"end_turn\"") CLAUDE_SAID("09", "And now?"), "failed", "failed started",
     "1"},
    {"pi", PI_HEAD PI_SAID("01") PI_TEXT("02", "stop"), PI_SAID("09") PI_TEXT("10", "toolUse"),
     "completed", "completed started", "1"},
    {"pi", PI_HEAD PI_SAID("01") PI_TEXT("02", "error"), "", "failed", "failed", "1"},
    {"gemini-cli", GEMINI_HEAD GEMINI_SAID("01") GEMINI_TEXT("02"),
     GEMINI_SAID("09") GEMINI_CALL("10"), "completed", "completed started", "1"},
};

static void import_log(size_t i, const char *more, const char *statuses)
{
    char text[4096];
    const char *path = tmpdir_path(&cli.dir, "session-1.jsonl");
    int len = snprintf(text, sizeof text, "%s%s", logs[i].first, more);
    file_write(path, text, (size_t)len);
    DONE(&cli, "import", logs[i].kind, path);
    DONE(&cli, "sql", "--json",
         "SELECT group_concat(replace(status, 'running', 'started'), ' ') AS is_now"
         " FROM (SELECT status FROM turns ORDER BY sequence)");
    snprintf(text, sizeof text, "{\"is_now\":\"%s\"}\n", statuses);
    ck_assert_str_eq(cli.out, text);
    DONE(&cli, "import", logs[i].kind, path, "--recheck", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":0,"));
}

START_TEST(an_answer_ends_its_turn_with_a_single_event)
{
    char text[64];
    import_log((size_t)_i, "", logs[_i].is);
    import_log((size_t)_i, logs[_i].more, logs[_i].becomes);
    DONE(&cli, "sql", "--json",
         "SELECT count(*) AS ends FROM event_index WHERE type IN"
         " ('turn.completed', 'turn.failed', 'turn.cancelled')");
    snprintf(text, sizeof text, "{\"ends\":%s}\n", logs[_i].ends);
    ck_assert_str_eq(cli.out, text);
}
END_TEST

static uint64_t take(struct import_job *job, enum import_until until)
{
    annal_error err = {0};
    uint64_t before = import_report(job)->events;
    ck_assert_msg(import_take(job, until, &err) == ANNAL_OK, "%s", err.message);
    return import_report(job)->events - before;
}

START_TEST(a_log_that_continues_after_a_pause_has_each_end_once)
{
    static const char first[] = CLAUDE_SAID("01", "Tides?") CLAUDE_TEXT("02", "\"end_turn\"");
    static const char all[] = CLAUDE_SAID("01", "Tides?") CLAUDE_TEXT("02", "\"end_turn\"")
        CLAUDE_CALL("03") CLAUDE_SAID("09", "And now?");
    const char *path = tmpdir_path(&cli.dir, "s1.jsonl");
    annal_store *store = NULL;
    struct importer importer = {0};
    struct import_job *job = NULL;
    ck_assert(importer_find("claude-code", &importer));
    ck_assert_int_eq(annal_store_open(tmpdir_path(&cli.dir, "followed"),
                                      &(annal_store_options){.create = true}, &store, NULL),
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

START_TEST(an_answer_of_opencode_that_is_complete_ends_its_turn)
{
    static const char log[] =
        "{\"info\":{\"id\":\"ses_1\"},\"messages\":[\n"
        "{\"info\":{\"id\":\"m1\",\"sessionID\":\"ses_1\",\"role\":\"user\",\"time\":{\"created\":"
        "1767323045000}},"
        "\"parts\":[{\"type\":\"text\",\"text\":\"Tides?\"}]},\n"
        "{\"info\":{\"id\":\"m2\",\"sessionID\":\"ses_1\",\"role\":\"assistant\",\"parentID\":"
        "\"m1\","
        "\"finish\":\"%s\",\"time\":{\"created\":1767323046000,\"completed\":1767323047000}},"
        "\"parts\":[]}]}\n";
    char text[1024];
    const char *path = tmpdir_path(&cli.dir, "export.json");
    for (int stop = 0; stop < 2; stop++) {
        int len = snprintf(text, sizeof text, log, stop ? "stop" : "tool-calls");
        file_write(path, text, (size_t)len);
        DONE(&cli, "import", "opencode", path);
        DONE(&cli, "sql", "--json", "SELECT status, completed_at FROM turns");
        ck_assert_str_eq(cli.out, stop ? "{\"status\":\"completed\","
                                         "\"completed_at\":\"2026-01-02T03:04:07.000000Z\"}\n"
                                       : "{\"status\":\"running\",\"completed_at\":null}\n");
    }
}
END_TEST

START_TEST(a_call_that_the_api_refused_is_a_failure_of_the_provider)
{
    static const char log[] = CLAUDE_SAID("01", "Tides?") CLAUDE_REFUSED("02");
    const char *path = tmpdir_path(&cli.dir, "s1.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "claude-code", path);
    DONE(&cli, "query", "--type", "provider.failed", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"error\":\"Invalid API key\",\"turn_id\":\"u01\""));
    DONE(&cli, "sql", "--json", "SELECT error FROM turns");
    ck_assert_str_eq(cli.out, "{\"error\":\"Invalid API key\"}\n");
}
END_TEST

START_TEST(a_session_was_created_at_the_first_time_of_its_own_lines)
{
    static const char log[] =
        "{\"type\":\"file-history-snapshot\",\"snapshot\":{\"timestamp\":\"2026-01-02T03:09:00Z\"}}"
        "\n" CLAUDE_SAID("05", "Tides?")
            CLAUDE_HOOK("01") "{\"type\":\"file-history-snapshot\",\"snapshot\":{\"timestamp\":"
                              "\"2026-01-03T00:00:00Z\"}}\n";
    const char *path = tmpdir_path(&cli.dir, "s1.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "claude-code", path);
    DONE(&cli, "sql", "--json", "SELECT created_at, last_activity_at FROM sessions");
    ck_assert_str_eq(cli.out, "{\"created_at\":\"2026-01-02T03:04:01.000000Z\","
                              "\"last_activity_at\":\"2026-01-02T03:04:05.000000Z\"}\n");
}
END_TEST

START_TEST(a_session_of_pi_is_as_old_as_a_message_before_its_own_line)
{
    static const char log[] = "{\"type\":\"session\",\"id\":\"s1\",\"cwd\":\"/\",\"timestamp\":"
                              "\"2026-01-02T03:04:05Z\"}\n" PI_SAID("01") PI_SAID("09");
    const char *path = tmpdir_path(&cli.dir, "s1.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "pi", path);
    DONE(&cli, "sql", "--json", "SELECT created_at FROM sessions");
    ck_assert_str_eq(cli.out, "{\"created_at\":\"2026-01-02T03:04:01.000000Z\"}\n");
}
END_TEST

Suite *suite_ends(void)
{
    Suite *suite = suite_create("ends");
    TCase *tc = suite_case(suite, "ends", cli_setup, cli_teardown);
    tcase_add_loop_test(tc, an_answer_ends_its_turn_with_a_single_event, 0,
                        sizeof logs / sizeof *logs);
    tcase_add_test(tc, a_log_that_continues_after_a_pause_has_each_end_once);
    tcase_add_test(tc, an_answer_of_opencode_that_is_complete_ends_its_turn);
    tcase_add_test(tc, a_call_that_the_api_refused_is_a_failure_of_the_provider);
    tcase_add_test(tc, a_session_was_created_at_the_first_time_of_its_own_lines);
    tcase_add_test(tc, a_session_of_pi_is_as_old_as_a_message_before_its_own_line);
    return suite;
}
