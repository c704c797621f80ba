#include "tests/packs/fixture.h"

#include <stdlib.h>
#include <string.h>

static struct memory m;

static void setup(void)
{
    memory_init(&m, "s", "core", NULL);
}

static void teardown(void)
{
    memory_done(&m);
}

#define ck_rows(select, rows) ck_memory(&m, select, rows)

/* ---- Tools ---- */

START_TEST(a_call_is_a_row_from_its_call_to_its_result)
{
    memory_apply(&m, "tool.called", "{\"call_id\":\"c1\",\"tool\":\"shell\",\"turn_id\":\"t1\"}");
    ck_rows("SELECT call_id, seq, tool, turn_id, status, called_at IS NOT NULL, result_seq "
            "FROM tool_calls",
            "c1|1|shell|t1|called|1|\n");
    memory_apply(&m, "tool.returned",
                 "{\"call_id\":\"c1\",\"success\":true,\"output\":\"a\\nb\",\"duration_ms\":12,"
                 "\"exit_code\":0,\"output_bytes\":3}");
    ck_rows("SELECT seq, status, result_seq, duration_ms, exit_code, output_bytes, "
            "returned_at > called_at FROM tool_calls",
            "1|returned|2|12|0|3|1\n");
}
END_TEST

START_TEST(a_failed_call_says_so_in_either_way)
{
    memory_apply(&m, "tool.called", "{\"call_id\":\"c1\",\"tool\":\"shell\"}");
    memory_apply(&m, "tool.failed", "{\"call_id\":\"c1\",\"exit_code\":1}");
    memory_apply(&m, "tool.called", "{\"call_id\":\"c2\",\"tool\":\"shell\"}");
    memory_apply(&m, "tool.returned", "{\"call_id\":\"c2\",\"success\":false}");
    ck_rows("SELECT call_id, status FROM tool_calls ORDER BY seq", "c1|failed\nc2|failed\n");
}
END_TEST

START_TEST(a_result_belongs_to_the_newest_call_of_its_id_and_the_first_result_stays)
{
    memory_apply(&m, "tool.called", "{\"call_id\":\"call_0\",\"tool\":\"a\"}");
    memory_apply(&m, "tool.called", "{\"call_id\":\"call_0\",\"tool\":\"b\"}");
    memory_apply(&m, "tool.returned", "{\"call_id\":\"call_0\"}");
    memory_apply(&m, "tool.failed", "{\"call_id\":\"call_0\"}");
    ck_rows("SELECT tool, status, result_seq FROM tool_calls ORDER BY seq",
            "a|called|\nb|returned|3\n");
}
END_TEST

START_TEST(a_result_without_a_call_has_a_row_and_calls_without_id_have_one_each)
{
    memory_apply(&m, "tool.returned", "{\"call_id\":\"lost\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"a\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"a\"}");
    ck_rows("SELECT call_id, seq, status, called_at IS NULL FROM tool_calls ORDER BY seq",
            "lost|1|returned|1\n#2|2|called|0\n#3|3|called|0\n");
}
END_TEST

START_TEST(a_result_in_an_artifact_names_it)
{
    memory_apply(&m, "tool.called", "{\"call_id\":\"c\",\"tool\":\"a\"}");
    memory_apply(&m, "tool.returned",
                 "{\"call_id\":\"c\",\"output_ref\":{\"sha256\":\"ab\",\"bytes\":200000}}");
    ck_rows("SELECT output_bytes, output_sha256 FROM tool_calls", "200000|ab\n");
}
END_TEST

START_TEST(at_g6_a_kill_between_call_and_result_leaves_exactly_one_dangling_call)
{
    memory_apply(&m, "turn.started", "{\"turn_id\":\"t1\"}");
    memory_apply(&m, "tool.called", "{\"call_id\":\"c1\",\"tool\":\"read\",\"turn_id\":\"t1\"}");
    memory_apply(&m, "tool.returned", "{\"call_id\":\"c1\"}");
    memory_apply(&m, "tool.called", "{\"call_id\":\"c2\",\"tool\":\"write\",\"turn_id\":\"t1\"}");
    ck_rows("SELECT session_id, call_id, seq, tool, turn_id FROM dangling", "s|c2|4|write|t1\n");
    memory_apply(&m, "tool.failed", "{\"call_id\":\"c2\"}");
    ck_rows("SELECT count(*) FROM dangling", "0\n");
}
END_TEST

/* ---- Turns ---- */

static void turn(const char *type)
{
    memory_apply(&m, type, "{\"turn_id\":\"t\"}");
}

START_TEST(at_g3_a_turn_goes_from_pending_to_an_end_and_never_back)
{
    memory_apply(&m, "turn.started", "{\"turn_id\":\"t\",\"status\":\"pending\"}");
    ck_rows("SELECT status FROM turns", "pending\n");
    turn("turn.started");
    ck_rows("SELECT status FROM turns", "started\n");
    turn("turn.streaming");
    ck_rows("SELECT status FROM turns", "streaming\n");
    turn("turn.started");
    ck_rows("SELECT status FROM turns", "streaming\n");
    turn("turn.completed");
    ck_rows("SELECT status, completed_at IS NOT NULL FROM turns", "completed|1\n");
    turn("turn.streaming");
    turn("turn.failed");
    turn("turn.started");
    ck_rows("SELECT status FROM turns", "completed\n");
    ck_rows("SELECT total_turns FROM sessions", "1\n");
}
END_TEST

START_TEST(at_g3_every_edge_that_is_allowed_and_no_other)
{
    ck_rows("SELECT count(*) FROM turn_edges WHERE from_status IN "
            "('completed', 'failed', 'cancelled') OR to_status = 'pending'",
            "0\n");
    static const char *const ends[] = {"turn.completed", "turn.failed", "turn.cancelled"};
    for (int i = 0; i < 3; i++) {
        memory_done(&m);
        memory_init(&m, "s", "core", NULL);
        turn("turn.started");
        turn(ends[i]);
        ck_memory(&m, "SELECT 'turn.' || status FROM turns",
                  i == 0   ? "turn.completed\n"
                  : i == 1 ? "turn.failed\n"
                           : "turn.cancelled\n");
    }
}
END_TEST

START_TEST(a_producers_own_word_for_started_may_stream_and_end)
{
    memory_apply(&m, "turn.started", "{\"turn_id\":\"t\",\"status\":\"running\"}");
    turn("turn.streaming");
    ck_rows("SELECT status FROM turns", "streaming\n");
}
END_TEST

/* ---- Sessions ---- */

START_TEST(a_transition_changes_status_and_end)
{
    memory_apply(&m, "session.created", "{\"agent_id\":\"a\"}");
    memory_apply(&m, "session.transition",
                 "{\"expected\":[\"idle\"],\"to\":\"failed\",\"reason_code\":\"stale\","
                 "\"ended_at\":\"2026-01-06T07:24:00Z\"}");
    ck_rows("SELECT status, ended_at FROM sessions", "failed|2026-01-06T07:24:00.000000Z\n");
    memory_apply(&m, "session.transition", "{}");
    ck_rows("SELECT status FROM sessions", "failed\n");
}
END_TEST

START_TEST(a_pruned_session_leaves_all_tables_and_begins_anew_after)
{
    memory_apply(&m, "session.created", "{\"agent_id\":\"a\"}");
    turn("turn.started");
    memory_apply(&m, "tool.called", "{\"call_id\":\"c\",\"tool\":\"t\"}");
    memory_apply(&m, "response.stored", "{\"ref\":\"$1\"}");
    memory_apply(&m, "artifact.stored", "{\"path\":\"p\"}");
    memory_apply(&m, "session.pruned", "{\"keep_days\":30}");
    ck_rows("SELECT (SELECT count(*) FROM sessions) + (SELECT count(*) FROM turns) + "
            "(SELECT count(*) FROM tool_calls) + (SELECT count(*) FROM responses) + "
            "(SELECT count(*) FROM artifacts)",
            "0\n");
    memory_apply(&m, "message.added", "{\"id\":\"x\",\"role\":\"user\",\"content\":\"again\"}");
    ck_rows("SELECT id, agent_id, events, total_turns FROM sessions", "s||1|0\n");
}
END_TEST

/* ---- Responses and artifacts ---- */

START_TEST(a_response_is_stored_under_its_ref_and_counts_who_reads_it)
{
    memory_apply(&m, "response.stored", "{\"ref\":\"$claude\",\"content_ref\":\"m1\"}");
    memory_apply(&m, "response.accessed", "{\"ref\":\"$claude\"}");
    memory_apply(&m, "response.accessed", "{\"ref\":\"$claude\"}");
    memory_apply(&m, "response.stored", "{\"ref\":\"$claude\",\"content_ref\":\"m2\"}");
    ck_rows("SELECT ref, content_ref, seq, accesses FROM responses", "$claude|m2|4|2\n");
}
END_TEST

START_TEST(a_stored_artifact_is_listed)
{
    memory_apply(&m, "artifact.stored",
                 "{\"path\":\"report.pdf\",\"sha256\":\"ab\",\"bytes\":9,"
                 "\"media_type\":\"application/pdf\"}");
    memory_apply(&m, "artifact.stored", "{\"sha256\":\"cd\",\"bytes\":3}");
    ck_rows("SELECT path, sha256, bytes, media_type, seq FROM artifacts ORDER BY seq",
            "report.pdf|ab|9|application/pdf|1\nartifacts/s/cd.zst|cd|3||2\n");
}
END_TEST

/* ---- What other producers wrote ---- */

START_TEST(at_g10_the_names_of_older_producers_mean_the_same)
{
    static const char *const events[][2] = {
        {"session_start", "{\"agent_id\":\"a\",\"provider\":\"p\",\"model\":\"m\"}"},
        {"session_pause", "{}"},
        {"session_resume", "{}"},
        {"turn_start", "{\"turn_id\":\"t1\"}"},
        {"provider_request", "{\"provider\":\"p\"}"},
        {"provider_error", "{\"provider\":\"p\"}"},
        {"provider_response", "{\"provider\":\"p\"}"},
        {"tool_call", "{\"call_id\":\"c1\",\"tool\":\"x\"}"},
        {"tool_result", "{\"call_id\":\"c1\"}"},
        {"tool_call", "{\"call_id\":\"c2\",\"tool\":\"x\"}"},
        {"tool_error", "{\"call_id\":\"c2\"}"},
        {"tool_call", "{\"call_id\":\"c3\",\"tool\":\"x\"}"},
        {"turn_complete", "{\"turn_id\":\"t1\",\"input_tokens\":3,\"output_tokens\":4}"},
        {"turn_start", "{\"turn_id\":\"t2\"}"},
        {"turn_error", "{\"turn_id\":\"t2\"}"},
        {"response_stored", "{\"ref\":\"$1\"}"},
        {"response_access", "{\"ref\":\"$1\"}"},
        {"checkpoint.noted", "{\"note\":\"5 tool calls\"}"},
        {"session_end", "{}"},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        memory_apply(&m, events[i][0], events[i][1]);
    ck_assert_uint_eq(annal_state_refused(m.state), 0);
    ck_rows("SELECT agent_id, status, events, total_turns, total_tokens FROM sessions",
            "a|ended|19|2|7\n");
    ck_rows("SELECT turn_id, status FROM turns ORDER BY sequence", "t1|completed\nt2|failed\n");
    ck_rows("SELECT call_id, status FROM tool_calls ORDER BY seq",
            "c1|returned\nc2|failed\nc3|called\n");
    ck_rows("SELECT ref, accesses FROM responses", "$1|1\n");
}
END_TEST

START_TEST(data_of_any_shape_is_taken)
{
    static const char *const data[] = {"{}",
                                       "[]",
                                       "null",
                                       "17",
                                       "\"text\"",
                                       "{\"call_id\":{}}",
                                       "{\"call_id\":7,\"ref\":7,\"path\":7,\"turn_id\":[1]}"};
    static const char *const types[] = {
        "tool.called",     "tool.returned",     "tool.failed",        "response.stored",
        "artifact.stored", "response.accessed", "session.transition", "turn.started",
        "turn.streaming",  "turn.completed",    "agent.turn.usage"};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++)
        for (size_t j = 0; j < sizeof types / sizeof *types; j++)
            memory_apply(&m, types[j], data[i]);
    ck_assert_uint_eq(annal_state_refused(m.state), 0);
}
END_TEST

Suite *suite_core(void)
{
    Suite *suite = suite_create("core");
    TCase *tcase = tcase_create("core");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_call_is_a_row_from_its_call_to_its_result);
    tcase_add_test(tcase, a_failed_call_says_so_in_either_way);
    tcase_add_test(tcase, a_result_belongs_to_the_newest_call_of_its_id_and_the_first_result_stays);
    tcase_add_test(tcase, a_result_without_a_call_has_a_row_and_calls_without_id_have_one_each);
    tcase_add_test(tcase, a_result_in_an_artifact_names_it);
    tcase_add_test(tcase, at_g6_a_kill_between_call_and_result_leaves_exactly_one_dangling_call);
    tcase_add_test(tcase, at_g3_a_turn_goes_from_pending_to_an_end_and_never_back);
    tcase_add_test(tcase, at_g3_every_edge_that_is_allowed_and_no_other);
    tcase_add_test(tcase, a_producers_own_word_for_started_may_stream_and_end);
    tcase_add_test(tcase, a_transition_changes_status_and_end);
    tcase_add_test(tcase, a_pruned_session_leaves_all_tables_and_begins_anew_after);
    tcase_add_test(tcase, a_response_is_stored_under_its_ref_and_counts_who_reads_it);
    tcase_add_test(tcase, a_stored_artifact_is_listed);
    tcase_add_test(tcase, at_g10_the_names_of_older_producers_mean_the_same);
    tcase_add_test(tcase, data_of_any_shape_is_taken);
    suite_add_tcase(suite, tcase);
    return suite;
}
