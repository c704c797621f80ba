/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs that repeat each other, take turns back, or name several sources of tokens:
 * tests/data/copies has a small log for each.
 */
#include "journal/base/buf.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 2

static void import_copy(const char *kind, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, ANNAL_SOURCE "/tests/data/copies/%s", name);
    DONE(&cli, "import", kind, path, "--recheck");
}

/* ---- One response is counted once ---- */

static const struct repeat {
    const char *kind, *files[FILES_MAX];
    const char *tokens; /* input, output and turns that are live or not, of the whole store */
    const char *parent; /* of the session of the second log, if the first is imported first */
} repeats[] = {
    {"claude-code",
     {"claude-code-1.jsonl", "claude-code-2.jsonl"},
     "700,3",
     "5a5a5a5a-0001-4000-8000-000000000001"},
    {"claude-code", {"claude-code-1.jsonl", "claude-code-moved.jsonl"}, "1100,3", ""},
    {"codex", {"codex-1.jsonl", "codex-2.jsonl"}, "3500,3", "019d0000-0000-7000-8000-000000000001"},
    {"codex", {"codex-1.jsonl", "codex-moved.jsonl"}, "3900,4", ""},
    {"pi", {"pi-1.jsonl", "pi-2.jsonl"}, "150,4", "11111111-1111-4111-8111-111111111111"},
    {"gemini-cli", {"gemini-1.jsonl", "gemini-2.jsonl"}, "150,4", "g1"},
};

static void assert_totals(const struct repeat *repeat, const char *when)
{
    static const char *const sources[] = {
        "(SELECT sum(input_tokens) FROM usage_by_session)",
        "(SELECT sum(input_tokens) FROM sessions)",
        "(SELECT sum(input_tokens) FROM turns)",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "SELECT %s, (SELECT sum(total_turns) FROM sessions)", sources[i]);
        DONE(&cli, "sql", sql, "--format", "csv");
        ck_assert_msg(strstr(cli.out, repeat->tokens) != NULL, "%s, %s, %s: no %s in %s",
                      repeat->files[0], when, sources[i], repeat->tokens, cli.out);
    }
}

START_TEST(a_response_in_two_logs_is_counted_once_in_any_order_and_after_a_rebuild)
{
    const struct repeat *repeat = &repeats[_i];
    for (int first = 0; first < FILES_MAX; first++) {
        import_copy(repeat->kind, repeat->files[first]);
        import_copy(repeat->kind, repeat->files[1 - first]);
        assert_totals(repeat, first == 0 ? "in order" : "the other way round");
        import_copy(repeat->kind, repeat->files[first]);
        assert_totals(repeat, "again");
        DONE(&cli, "reindex");
        assert_totals(repeat, "after a rebuild");
        DONE(&cli, "verify");
        if (first == 0) {
            DONE(&cli, "sql", "--format", "csv",
                 "SELECT coalesce(max(parent_session_id), '') FROM sessions");
            ck_assert_ptr_nonnull(strstr(cli.out, repeat->parent));
        }
        cli_teardown();
        cli_setup();
    }
}
END_TEST

START_TEST(copied_events_are_marked_and_give_no_title_call_or_message)
{
    import_copy("codex", "codex-1.jsonl");
    import_copy("codex", "codex-2.jsonl");
    DONE(&cli, "sql", "--format", "csv",
         "SELECT title, (SELECT count(*) FROM tool_calls c WHERE c.session_id = sessions.id), "
         "(SELECT "
         "count(*) FROM events e WHERE e.session_id = sessions.id AND e.data->>'$.source.copied') "
         "FROM sessions WHERE parent_session_id IS NOT NULL");
    ck_assert_msg(strstr(cli.out, "Count the knots.,1,15\r\n") != NULL, "%s", cli.out);
}
END_TEST

static void assert_input_tokens(const char *tokens, const char *when)
{
    DONE(&cli, "sql", "--format", "csv", "SELECT sum(input_tokens) FROM usage_by_session");
    ck_assert_msg(strstr(cli.out, tokens) != NULL, "%s: %s", when, cli.out);
}

START_TEST(a_deleted_session_is_counted_again_only_after_an_import_with_again)
{
    import_copy("claude-code", "claude-code-1.jsonl");
    import_copy("claude-code", "claude-code-2.jsonl");
    assert_input_tokens("\r\n700\r\n", "both");
    DONE(&cli, "delete", "5a5a5a5a-0001-4000-8000-000000000001", "--yes");
    assert_input_tokens("\r\n400\r\n", "one is deleted");
    import_copy("claude-code", "claude-code-2.jsonl");
    assert_input_tokens("\r\n400\r\n", "its copy is imported again");
    DONE(&cli, "reindex");
    assert_input_tokens("\r\n400\r\n", "after a rebuild");
    CLI(&cli, NULL, "import", "claude-code", ANNAL_SOURCE "/tests/data/copies/claude-code-1.jsonl");
    ck_assert_ptr_nonnull(strstr(cli.err, "--again imports the session"));
    assert_input_tokens("\r\n400\r\n", "the deleted one is left out");
    DONE(&cli, "import", "claude-code", ANNAL_SOURCE "/tests/data/copies/claude-code-1.jsonl",
         "--again");
    assert_input_tokens("\r\n700\r\n", "with --again");
    DONE(&cli, "verify");
}
END_TEST

/* ---- Complete or unknown ---- */

START_TEST(an_advisor_counts_under_its_model_and_a_tier_without_a_price_is_marked)
{
    import_copy("claude-code", "claude-code-usage.jsonl");
    DONE(&cli, "sql", "--format", "csv",
         "SELECT model, tier, input_tokens, output_tokens, cache_write_1h_tokens, web_searches, "
         "cost_microusd FROM usage_costs ORDER BY 1, 2");
    ck_assert_str_eq(cli.out,
                     "model,tier,input_tokens,output_tokens,cache_write_1h_tokens,web_searches,"
                     "cost_microusd\r\n"
                     "claude-opus-4-5,,1002,30,600,2,29260\r\n"
                     "claude-opus-4-5,fast,7,7,,,\r\n"
                     "claude-opus-4-7,,5000,50,,,26250\r\n");
    DONE(&cli, "ls");
    ck_assert_msg(strstr(cli.out, "~$0.06 of 99%") != NULL, "%s", cli.out);
}
END_TEST

START_TEST(an_agent_span_gives_the_tokens_if_no_span_below_it_does)
{
    import_copy("otel", "otel-agents.jsonl");
    DONE(&cli, "sql", "--format", "csv",
         "SELECT session_id, sum(input_tokens), sum(output_tokens) FROM usage GROUP BY 1");
    ck_assert_msg(strstr(cli.out, "t1,100,10\r\nt2,30,3\r\n") != NULL, "%s", cli.out);
}
END_TEST

/* ---- Live or taken back ---- */

static const struct taken {
    const char *kind, *file, *statuses;
} takens[] = {
    {"claude-code", "claude-code-edited.jsonl", "completed completed abandoned completed"},
    {"codex", "codex-moved.jsonl", "completed rolled_back rolled_back completed"},
    {"pi", "pi-1.jsonl", "completed abandoned completed"},
    {"gemini-cli", "gemini-1.jsonl", "completed rolled_back completed"},
};

START_TEST(a_turn_that_a_log_takes_back_is_kept_and_marked)
{
    const struct taken *taken = &takens[_i];
    import_copy(taken->kind, taken->file);
    DONE(&cli, "sql", "--format", "csv",
         "SELECT group_concat(status, ' ') FROM (SELECT status FROM turns ORDER BY sequence)");
    ck_assert_msg(strstr(cli.out, taken->statuses) != NULL, "%s: %s", taken->file, cli.out);
    DONE(&cli, "verify");
}
END_TEST

START_TEST(a_transcript_folds_and_a_search_hit_marks_turns_that_were_taken_back)
{
    import_copy("claude-code", "claude-code-edited.jsonl");
    DONE(&cli, "export", "5e5e5e5e-0003-4000-8000-000000000003", "--format", "markdown");
    ck_assert_ptr_nonnull(strstr(cli.out, "## Turn 3 (abandoned)\n\n<details>"));
    ck_assert_ptr_nonnull(strstr(cli.out, "</details>\n\n## Turn 4\n"));
    ck_assert_ptr_null(strstr(cli.out, "## Turn 2 ("));
    DONE(&cli, "export", "5e5e5e5e-0003-4000-8000-000000000003", "--format", "otlp");
    const char *taken = strstr(cli.out, "{\"key\":\"annal.turn.taken_back\",\"value\":{"
                                        "\"stringValue\":\"abandoned\"}}");
    ck_assert_ptr_nonnull(taken);
    ck_assert_ptr_null(strstr(taken + 20, "annal.turn.taken_back"));
    DONE(&cli, "search", "swim");
    ck_assert_ptr_nonnull(strstr(cli.out, "  user  abandoned\n"));
    DONE(&cli, "search", "sink");
    ck_assert_ptr_null(strstr(cli.out, "abandoned"));
    DONE(&cli, "search", "swim", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, ",\"turn_status\":\"abandoned\"}"));
}
END_TEST

#define RECORD(ns, attributes)                                                                     \
    "{\"timeUnixNano\":\"" ns "\",\"attributes\":[{\"key\":\"session.id\",\"value\":"              \
    "{\"stringValue\":\"b7b7b7b7-1111-4111-8111-111111111111\"}}," attributes "]}"
#define TEXT_OF(name, text) "{\"key\":\"" name "\",\"value\":{\"stringValue\":\"" text "\"}}"

/* The telemetry of a session, and then its log. */
/* Return the number of events of this type, a JSON string, in the outline of a page. */
static int count_type(const char *page, const char *type)
{
    int place = 0, count = 0;
    const char *types = strstr(page, "{\"types\":["), *all = NULL, *at = NULL;
    ck_assert_ptr_nonnull(types);
    all = strstr(types, "\"type\":[");
    at = strstr(types, type);
    ck_assert(all != NULL && at != NULL && at < all);
    for (const char *c = types; c < at; c++)
        place += *c == ',';
    for (all += strlen("\"type\":"); *all != ']'; all += 1 + strcspn(all + 1, ",]"))
        count += atoi(all + 1) == place;
    return count;
}

START_TEST(a_prompt_that_telemetry_and_a_later_log_contain_is_shown_and_found_once)
{
    static const char telemetry[] =
        "{\"resourceLogs\":[{\"resource\":{\"attributes\":[]},\"scopeLogs\":[{\"logRecords\":"
        "[" RECORD(
            "1789034400000000000",
            TEXT_OF("event.name", "user_prompt") "," TEXT_OF(
                "prompt",
                "Paint the pier")) "," RECORD("1789034405000000000",
                                              TEXT_OF("event.name", "api_request") "," TEXT_OF(
                                                  "input_tokens",
                                                  "10") "," TEXT_OF("output_tokens",
                                                                    "5")) "]}]}]}\n";
    static const char log[] =
        "{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"sessionId\":"
        "\"b7b7b7b7-1111-4111-8111-111111111111\",\"timestamp\":\"2026-09-10T10:00:00.000Z\","
        "\"message\":{\"role\":\"user\",\"content\":\"Paint the pier\"}}\n";
    const char *path = tmpdir_path(&cli.dir, "telemetry.jsonl");
    file_write(path, telemetry, sizeof telemetry - 1);
    DONE(&cli, "import", "otel-logs", path);
    DONE(&cli, "search", "pier");
    path = tmpdir_path(&cli.dir, "log.jsonl");
    file_write(path, log, sizeof log - 1);
    DONE(&cli, "import", "claude-code", path);
    DONE(&cli, "search", "pier", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "Paint the"));
    ck_assert_uint_eq(strlen(strchr(cli.out, '\n')), 1);
    DONE(&cli, "export", "b7b7b7b7-1111-4111-8111-111111111111", "--format", "markdown");
    const char *shown = strstr(cli.out, "> Paint the pier");
    ck_assert_ptr_nonnull(shown);
    ck_assert_ptr_null(strstr(shown + 1, "> Paint the pier"));
    ck_assert_ptr_null(strstr(cli.out, "10 tokens"));
    DONE(&cli, "export", "b7b7b7b7-1111-4111-8111-111111111111", "--format", "otlp");
    ck_assert_ptr_null(strstr(cli.out, "gen_ai.usage.input_tokens"));
    DONE(&cli, "export", "b7b7b7b7-1111-4111-8111-111111111111", "--format", "html");
    ck_assert_int_eq(count_type(cli.out, "\"message.added\""), 1);
    DONE(&cli, "verify");
}
END_TEST

/* ---- Logs that have no id of their own ---- */

/* Write a log of autogen to DIRECTORY/1.json: the first `count` messages of a talk whose answers
 * end with `end`. */
static const char *write_talk(const char *directory, int count, const char *end)
{
    static char path[600];
    struct buf text = {0};
    snprintf(path, sizeof path, "%s/%s", cli.dir.path, directory);
    (void)mkdir(path, 0700);
    annal__buf_printf(&text, "{\n\"question\": \"%s\",\n\"history\": [", end);
    for (int i = 0; i < count; i++)
        annal__buf_printf(&text,
                          "%s{\"content\": \"message %d%s\", \"role\": \"%s\", "
                          "\"name\": \"Ada\"}\n",
                          i > 0 ? "," : "", i, i > 1 ? end : "", i % 2 == 0 ? "user" : "assistant");
    annal__buf_printf(&text, "],\n\"mistake_agent\": \"Ada\"\n}\n");
    strcat(path, "/1.json");
    file_write(path, text.ptr, text.len);
    annal__buf_done(&text);
    return path;
}

/* The sessions are those of the list, "ID MESSAGES" each; * stands for the end of an id. */
static void assert_talks(const char *wanted)
{
    DONE(&cli, "sql", "--format", "csv",
         "SELECT group_concat(CASE WHEN length(s.id) > 1 THEN substr(s.id, 1, 2) || '*' ELSE s.id "
         "END || ' ' || (SELECT count(*) FROM events e WHERE e.session_id = s.id AND type = "
         "'message.added'), ',') FROM (SELECT id FROM sessions ORDER BY id) s");
    ck_assert_msg(strstr(cli.out, wanted) != NULL, "no '%s' in %s", wanted, cli.out);
    DONE(&cli, "verify");
}

START_TEST(two_logs_with_one_name_are_two_sessions_and_a_log_read_again_is_one)
{
    DONE(&cli, "import", "autogen", write_talk("one", 4, " of one"));
    DONE(&cli, "import", "autogen", write_talk("two", 4, " of two"));
    assert_talks("1 4,1-* 4");
    DONE(&cli, "import", "autogen", write_talk("one", 6, " of one"));
    DONE(&cli, "import", "autogen", write_talk("two", 8, " of two"));
    DONE(&cli, "import", "autogen", write_talk("one", 6, " of one"), "--recheck");
    assert_talks("1 6,1-* 8");
}
END_TEST

START_TEST(a_copy_of_a_log_without_an_id_is_the_same_session)
{
    DONE(&cli, "import", "autogen", write_talk("one", 4, ""));
    DONE(&cli, "import", "autogen", write_talk("copy", 4, ""));
    DONE(&cli, "import", "autogen", write_talk("longer", 6, ""));
    DONE(&cli, "import", "autogen", write_talk("shorter", 2, ""));
    assert_talks("1 6");
}
END_TEST

START_TEST(a_log_without_an_id_that_was_moved_is_the_same_session_and_another_is_not)
{
    DONE(&cli, "import", "autogen", write_talk("one", 4, ""));
    ck_assert_int_eq(remove(write_talk("one", 4, "")), 0);
    DONE(&cli, "import", "autogen", write_talk("moved", 6, ""));
    assert_talks("1 6");
    DONE(&cli, "import", "autogen", write_talk("two", 4, " of two"));
    ck_assert_int_eq(remove(write_talk("two", 4, " of two")), 0);
    DONE(&cli, "import", "autogen", write_talk("two-moved", 4, " of two"));
    assert_talks("1 6,1-* 4");
}
END_TEST

START_TEST(two_lines_for_one_task_are_two_sessions_in_two_logs)
{
    static const char run[] =
        "{\"task_id\":0,\"trial\":0,\"reward\":1,\"traj\":[{\"role\":\"user\","
        "\"content\":\"%s\"}]}\n";
    static const char *const runs[][2] = {{"one", "first"}, {"two", "second"}, {"copy", "first"}};
    char path[600], line[200];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(path, sizeof path, "%s/%s", cli.dir.path, runs[i][0]);
        (void)mkdir(path, 0700);
        strcat(path, "/results.jsonl");
        snprintf(line, sizeof line, run, runs[i][1]);
        file_write(path, line, strlen(line));
        DONE(&cli, "import", "tau-bench", path);
    }
    DONE(&cli, "sql", "--format", "csv", "SELECT count(*), sum(total_turns) FROM sessions");
    ck_assert_ptr_nonnull(strstr(cli.out, "2,2"));
}
END_TEST

Suite *suite_copies(void)
{
    Suite *suite = suite_create("copies");
    TCase *tc = suite_case(suite, "copies", cli_setup, cli_teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_response_in_two_logs_is_counted_once_in_any_order_and_after_a_rebuild,
                        0, sizeof repeats / sizeof *repeats);
    tcase_add_test(tc, a_deleted_session_is_counted_again_only_after_an_import_with_again);
    tcase_add_test(tc, copied_events_are_marked_and_give_no_title_call_or_message);
    tcase_add_test(tc, an_advisor_counts_under_its_model_and_a_tier_without_a_price_is_marked);
    tcase_add_test(tc, an_agent_span_gives_the_tokens_if_no_span_below_it_does);
    tcase_add_loop_test(tc, a_turn_that_a_log_takes_back_is_kept_and_marked, 0,
                        sizeof takens / sizeof *takens);
    tcase_add_test(tc, a_transcript_folds_and_a_search_hit_marks_turns_that_were_taken_back);
    tcase_add_test(tc, a_prompt_that_telemetry_and_a_later_log_contain_is_shown_and_found_once);
    tcase_add_test(tc, two_logs_with_one_name_are_two_sessions_and_a_log_read_again_is_one);
    tcase_add_test(tc, a_copy_of_a_log_without_an_id_is_the_same_session);
    tcase_add_test(tc, a_log_without_an_id_that_was_moved_is_the_same_session_and_another_is_not);
    tcase_add_test(tc, two_lines_for_one_task_are_two_sessions_in_two_logs);
    return suite;
}
