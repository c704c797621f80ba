/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/state.h"
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <annal/artifact.h>

#include <stdio.h>
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

START_TEST(a_call_and_its_result_share_a_row)
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

START_TEST(a_duration_that_is_not_a_number_is_unknown)
{
    memory_apply(&m, "tool.returned",
                 "{\"call_id\":\"c1\",\"duration_ms\":\"12 ms\",\"exit_code\":\"none\"}");
    memory_apply(&m, "tool.returned",
                 "{\"call_id\":\"c2\",\"duration_ms\":\"12\",\"exit_code\":\"0\"}");
    memory_apply(&m, "tool.returned",
                 "{\"call_id\":\"c3\",\"duration_ms\":[1],\"exit_code\":true}");
    ck_rows("SELECT call_id, duration_ms, exit_code FROM tool_calls ORDER BY seq",
            "c1||\nc2|12|0\nc3||1\n");
}
END_TEST

START_TEST(a_failed_call_is_recognized_by_event_type_and_by_flag)
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

START_TEST(a_result_without_a_call_and_each_call_without_an_id_have_rows)
{
    memory_apply(&m, "tool.returned", "{\"call_id\":\"lost\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"a\"}");
    memory_apply(&m, "tool.called", "{\"tool\":\"a\"}");
    ck_rows("SELECT call_id, seq, status, called_at IS NULL FROM tool_calls ORDER BY seq",
            "lost|1|returned|1\n#2|2|called|0\n#3|3|called|0\n");
}
END_TEST

START_TEST(a_result_before_its_call_shares_the_row_of_the_call)
{
    memory_apply(&m, "tool.failed", "{\"call_id\":\"c1\",\"turn_id\":\"t1\",\"exit_code\":1}");
    memory_apply(&m, "tool.called", "{\"call_id\":\"c1\",\"tool\":\"a\"}");
    ck_rows("SELECT call_id, seq, tool, turn_id, status, exit_code, called_at > returned_at, "
            "result_seq FROM tool_calls",
            "c1|2|a|t1|failed|1|1|1\n");
    ck_rows("SELECT count(*) FROM dangling", "0\n");
    ck_rows("SELECT duration_ms FROM tool_durations", "\n"); /* below 0 */
    memory_apply(&m, "tool.called", "{\"call_id\":\"c1\",\"tool\":\"b\"}");
    memory_apply(&m, "tool.returned", "{\"call_id\":\"c1\"}");
    ck_rows("SELECT seq, tool, status, result_seq FROM tool_calls ORDER BY seq",
            "2|a|failed|1\n3|b|returned|4\n");
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

START_TEST(a_kill_between_call_and_result_leaves_exactly_one_dangling_call)
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

START_TEST(a_turn_goes_from_pending_to_an_end_and_never_back)
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

START_TEST(every_allowed_edge_and_no_other_changes_the_status_of_a_turn)
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

START_TEST(a_turn_with_a_producers_own_start_status_may_stream_and_end)
{
    memory_apply(&m, "turn.started", "{\"turn_id\":\"t\",\"status\":\"running\"}");
    turn("turn.streaming");
    ck_rows("SELECT status FROM turns", "streaming\n");
}
END_TEST

START_TEST(a_turn_that_ends_without_having_begun_is_a_row_and_ends_once)
{
    static const char end[] = "{\"turn_id\":\"t\",\"input_tokens\":5,\"output_tokens\":2}";
    turn("turn.started");
    memory_apply(&m, "turn.completed",
                 "{\"turn_id\":\"u\",\"input_tokens\":5,"
                 "\"output_tokens\":2,\"cost_usd\":0.5}");
    memory_apply(&m, "turn.failed", "{\"turn_id\":\"u\",\"input_tokens\":5}");
    memory_apply(&m, "turn.started", "{\"turn_id\":\"u\"}");
    memory_apply(&m, "turn.completed", end);
    memory_apply(&m, "turn.completed", end);
    ck_rows("SELECT turn_id, sequence, status, created_at = completed_at, input_tokens, seq "
            "FROM turns ORDER BY sequence",
            "t|1|completed|0|5|1\nu|2|completed|1|5|2\n");
    ck_rows("SELECT total_turns, input_tokens, output_tokens, total_tokens, total_cost_usd "
            "FROM sessions",
            "2|10|4|14|0.5\n");
}
END_TEST

START_TEST(tokens_that_are_not_a_number_are_ignored)
{
    memory_apply(&m, "turn.completed",
                 "{\"turn_id\":\"t\",\"input_tokens\":-5,"
                 "\"output_tokens\":\"12 or so\",\"cost_microusd\":\"7\"}");
    memory_apply(&m, "agent.turn.usage",
                 "{\"input_tokens\":{\"n\":3},\"inputTokens\":4,"
                 "\"output_tokens\":3.0}");
    ck_rows("SELECT input_tokens, output_tokens, total_tokens, cost_microusd FROM sessions",
            "4|3|7|0\n");
    memory_apply(&m, "agent.turn.usage", "{\"input_tokens\":-1,\"output_tokens\":-2}");
    ck_rows("SELECT input_tokens, output_tokens, total_tokens FROM sessions", "3|1|4\n");
}
END_TEST

/* ---- Sessions ---- */

START_TEST(a_transition_changes_the_status_and_the_end_of_a_session)
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

START_TEST(a_pruned_session_leaves_all_tables_and_later_events_create_it_again)
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

START_TEST(a_response_is_stored_under_its_ref_and_its_reads_are_counted)
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

/* ---- Events of other producers ---- */

START_TEST(event_types_of_older_producers_have_the_same_effect)
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
    ck_assert_uint_eq(annal__state_refused(m.state), 0);
    ck_rows("SELECT agent_id, status, events, total_turns, total_tokens FROM sessions",
            "a|ended|19|2|7\n");
    ck_rows("SELECT turn_id, status FROM turns ORDER BY sequence", "t1|completed\nt2|failed\n");
    ck_rows("SELECT call_id, status FROM tool_calls ORDER BY seq",
            "c1|returned\nc2|failed\nc3|called\n");
    ck_rows("SELECT ref, accesses FROM responses", "$1|1\n");
}
END_TEST

START_TEST(data_of_any_shape_is_accepted)
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
    ck_assert_uint_eq(annal__state_refused(m.state), 0);
}
END_TEST

/* ---- In a store ---- */

/* Build {"FIELD":"xxx…"} with count x; free() it. */
static char *data_with(const char *field, size_t len)
{
    char *data = malloc(len + 64);
    ck_assert_ptr_nonnull(data);
    int head = snprintf(data, 64, "{\"call_id\":\"c\",\"%s\":\"", field);
    memset(data + head, 'x', len);
    strcpy(data + head + len, "\"}");
    return data;
}

START_TEST(an_illegal_transition_is_refused_and_not_appended)
{
    ck_append(&p, "s", "turn.started", "{\"turn_id\":\"t\"}");
    ck_refused(&p, "s", "turn.started", "{\"turn_id\":\"t\"}", "the turn has begun already");
    ck_append(&p, "s", "turn.streaming", "{\"turn_id\":\"t\"}");
    ck_append(&p, "s", "turn.completed", "{\"turn_id\":\"t\"}");
    ck_refused(&p, "s", "turn.streaming", "{\"turn_id\":\"t\"}", "wait for an answer");
    ck_refused(&p, "s", "turn.cancelled", "{\"turn_id\":\"t\"}", "the turn has ended already");
    ck_refused(&p, "s", "turn.streaming", "{\"turn_id\":\"none\"}", "wait for an answer");
    ck_packs(&p, "SELECT events, total_turns FROM sessions", "3|1\n");
    ck_packs(&p, "SELECT status FROM turns", "completed\n");
}
END_TEST

START_TEST(a_report_of_an_illegal_transition_is_appended_and_changes_no_row)
{
    annal_writer *writer = NULL;
    const annal_draft twice[] = {
        {.type = ANNAL_SLICE("turn.completed"), .data = ANNAL_SLICE("{\"turn_id\":\"t\"}")},
        {.type = ANNAL_SLICE("turn.started"), .data = ANNAL_SLICE("{\"turn_id\":\"t\"}")}};
    annal_append_options options = {.reports = true};
    ck_append(&p, "s", "turn.started", "{\"turn_id\":\"t\"}");
    ck_ok(annal_writer_open(p.store, ANNAL_SLICE("s"), NULL, &writer, err));
    ck_ok(annal_pack_append(p.index, writer, twice, 2, &options, NULL, err));
    options.reports = false;
    ck_fails(ANNAL_ERR_REFUSED, "the turn has ended already",
             annal_pack_append(p.index, writer, twice, 1, &options, NULL, err));
    annal_writer_close(writer);
    ck_packs(&p, "SELECT events, total_turns FROM sessions", "3|1\n");
    ck_packs(&p, "SELECT status FROM turns", "completed\n");
}
END_TEST

START_TEST(a_repeated_event_is_stored_once_and_another_event_with_its_id_conflicts)
{
    uint64_t first = 0, again = 0;
    ck_ok(packs_append_id(&p, "s", "tool.called", "{\"call_id\":\"c\"}", "s:1", &first, err));
    ck_ok(packs_append_id(&p, "s", "tool.called", "{\"call_id\":\"c\"}", "s:1", &again, err));
    ck_assert_uint_eq(first, again);
    ck_fails(ANNAL_ERR_CONFLICT, "s:1",
             packs_append_id(&p, "s", "tool.called", "{\"call_id\":\"d\"}", "s:1", &again, err));
    ck_packs(&p, "SELECT call_id FROM tool_calls", "c\n");
}
END_TEST

START_TEST(an_output_of_any_length_stays_in_its_event)
{
    char *data = data_with("output", (size_t)1 << 20);
    ck_append(&p, "s", "tool.returned", data);
    ck_packs(&p, "SELECT length(data ->> '$.output'), data ->> '$.output_ref' FROM events",
             "1048576|\n");
    free(data);
}
END_TEST

START_TEST(an_output_over_the_limit_of_a_pack_becomes_an_artifact)
{
    char *inline_data = data_with("output", 102398), *large = data_with("output", 102401);
    annal_slice content = {0};
    packs_add(&p, "limits",
              "-- pack limits version 1 database limits.db\n"
              "-- artifact tool.returned, tool.failed   output   over 102400\n");
    ck_append(&p, "s", "tool.returned", inline_data);
    ck_packs(&p, "SELECT count(*) FROM events WHERE length(data ->> '$.output') = 102398", "1\n");
    ck_append(&p, "t", "tool.called", "{\"call_id\":\"c\",\"tool\":\"x\"}");
    ck_append(&p, "t", "tool.returned", large);
    ck_packs(&p,
             "SELECT data ->> '$.output', data ->> '$.output_ref.bytes' FROM events "
             "WHERE session_id = 't' AND seq = 2",
             "|102401\n");
    char *hash = packs_rows(&p, "SELECT output_sha256 FROM tool_calls WHERE session_id = 't'");
    ck_ok(annal_artifact_get(p.store, ANNAL_SLICE("t"), (annal_slice){hash, 64}, 200000, &content,
                             err));
    ck_assert_uint_eq(content.len, 102401);
    annal_free(content.ptr);
    free(hash);
    free(inline_data);
    free(large);
}
END_TEST

START_TEST(text_of_any_length_is_kept_in_full)
{
    static const size_t lengths[] = {500, 501, (size_t)1 << 20};
    for (int i = 0; i < 3; i++) {
        char *data = data_with("content", lengths[i]), expected[32];
        ck_append(&p, "s", "message.added", data);
        snprintf(expected, sizeof expected, "%zu\n", lengths[i]);
        ck_packs(&p, "SELECT length(data ->> '$.content') FROM events ORDER BY seq DESC LIMIT 1",
                 expected);
        free(data);
    }
}
END_TEST

/* Through the packs and a handler that reads it; then an event with a byte more than allowed. */
START_TEST(an_event_of_64_mib_is_appended_and_a_larger_event_writes_no_byte)
{
    size_t room = ANNAL_DATA_BYTES_MAX - strlen("{\"call_id\":\"c\",\"input\":\"\"}");
    char *data = data_with("input", room), *larger = data_with("input", room + 1);
    ck_append(&p, "s", "tool.called", data);
    ck_fails(ANNAL_ERR_LIMIT, "data can have at most",
             packs_append(&p, "s", "tool.called", larger, err));
    ck_packs(&p, "SELECT call_id, seq, (SELECT events FROM sessions) FROM tool_calls", "c|1|1\n");
    free(data);
    free(larger);
}
END_TEST

static void append_some(struct random *random)
{
    static const char *const types[] = {
        "session.created", "session.updated",  "session.transition", "session.ended",
        "session.resumed", "turn.started",     "turn.started",       "turn.streaming",
        "turn.completed",  "turn.failed",      "agent.turn.usage",   "turn.rolled_back",
        "turn.abandoned",  "turn.restored",    "tool.called",        "tool.called",
        "tool.returned",   "tool.failed",      "response.stored",    "response.accessed",
        "artifact.stored", "checkpoint.noted", "message.added",      "tool_call",
        "tool_result",     "turn_start",       "turn_complete"};
    char session[8], data[300];
    unsigned n = (unsigned)random_below(random, 6);
    const char *type = types[random_below(random, sizeof types / sizeof *types)];
    if (random_below(random, 60) == 0)
        type = "session.pruned";
    snprintf(session, sizeof session, "s%u", (unsigned)random_below(random, 5));
    snprintf(data, sizeof data,
             "{\"call_id\":\"c%u\",\"tool\":\"t%u\",\"turn_id\":\"t%u\",\"ref\":\"$%u\","
             "\"path\":\"p%u\",\"sha256\":\"%02x\",\"bytes\":%u,\"to\":\"w%u\",\"success\":%s,"
             "\"input_tokens\":%u,\"output_tokens\":%u,\"cost_usd\":0.00%u,\"sequence\":%u}",
             n, n, (unsigned)random_below(random, 6), n, n, n, n * 7, n,
             random_below(random, 3) == 0 ? "false" : "true", n * 11, n * 3, n, n);
    if (random_below(random, 40) == 0)
        strcpy(data, "[1,2]");
    packs_append_past(&p, session, type, data);
}

START_TEST(the_tables_equal_a_rebuild_after_any_events_in_any_order)
{
    struct random random = random_init(20261121);
    for (int piece = 0; piece < 4; piece++) {
        for (int i = 0; i < 400; i++)
            append_some(&random);
        char *rows = packs_rows(&p, "SELECT count(*) FROM tool_calls");
        free(rows);
    }
    packs_ck_rebuild(&p, "sessions.db", 5);
}
END_TEST

/* ---- Costs ---- */

static void use(const char *model, const char *more)
{
    char data[300];
    snprintf(data, sizeof data,
             "{\"model\":\"%s\",\"input_tokens\":3000000,\"cached_input_tokens\":1000000,"
             "\"cache_write_tokens\":1000000,\"output_tokens\":1000000%s}",
             model, more);
    memory_apply(&m, "agent.turn.usage", data);
}

#define COSTS "SELECT cost_usd, computed_cost_usd, costed_tokens FROM usage_by_session"

START_TEST(an_unknown_cost_is_null)
{
    use("no-such-model", "");
    ck_rows("SELECT cost_microusd IS NULL, total_cost_usd IS NULL FROM sessions", "1|1\n");
    ck_rows(COSTS, "||0\n");
    use("no-such-model", ",\"cost_usd\":0.5");
    ck_rows("SELECT cost_microusd, total_cost_usd FROM sessions", "500000|0.5\n");
    ck_rows("SELECT has_cost, requests, cost_microusd FROM usage", "0|1|\n1|1|500000\n");
    ck_rows(COSTS, "0.5||4000000\n");
}
END_TEST

START_TEST(tokens_without_a_cost_are_priced_by_the_best_matching_price)
{
    memory_apply(&m, "price.set",
                 "{\"model\":\"m*\",\"input\":1,\"output\":10,\"cache_read\":0.1,"
                 "\"cache_write\":2}");
    use("m-1", "");
    ck_rows(COSTS, "13.1|13.1|4000000\n");
    memory_apply(&m, "price.set", "{\"model\":\"m-1\",\"input\":2,\"output\":1}");
    ck_rows(COSTS, "7|7|4000000\n");
    memory_apply(&m, "price.set",
                 "{\"model\":\"m-1\",\"since\":\"9999-01-01\",\"input\":9,\"output\":9}");
    ck_rows(COSTS, "7|7|4000000\n");
    use("provider/m-1", "");
    use("m-1", ",\"cost_usd\":0.5");
    ck_rows(COSTS, "14.5|14|12000000\n");
    ck_rows("SELECT model, cost_usd FROM usage_by_model", "m-1|7.5\nprovider/m-1|7\n");
}
END_TEST

START_TEST(a_tier_a_long_prompt_a_cache_of_an_hour_and_a_search_have_prices_of_their_own)
{
    static const struct {
        const char *data, *cost;
    } cases[] = {
        {"{\"model\":\"claude-sonnet-4-5\",\"input_tokens\":200000}", "600000"},
        {"{\"model\":\"claude-sonnet-4-5\",\"input_tokens\":300000}", "1800000"},
        {"{\"model\":\"claude-sonnet-4-5\",\"input_tokens\":100000,\"prompt_tokens\":300000}",
         "600000"},
        {"{\"model\":\"claude-opus-4-5\",\"input_tokens\":2000,\"cache_write_tokens\":2000,"
         "\"cache_write_1h_tokens\":1000}",
         "16250"},
        {"{\"model\":\"claude-opus-4-5\",\"input_tokens\":1000,\"web_searches\":3}", "35000"},
        {"{\"model\":\"f\",\"input_tokens\":1000,\"tier\":\"fast\"}", "30000"},
        {"{\"model\":\"claude-opus-4-5\",\"input_tokens\":1000,\"tier\":\"batch\"}", "2500"},
        {"{\"model\":\"gpt-5\",\"input_tokens\":1000,\"tier\":\"priority\"}", ""},
        {"{\"model\":\"gpt-5\",\"input_tokens\":1000,\"web_searches\":1}", "11250"},
        {"{\"model\":\"f\",\"input_tokens\":1000,\"tier\":\"fast\",\"web_searches\":1}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char want[64];
        memory_apply(&m, "session.pruned", "{}");
        memory_apply(&m, "price.set",
                     "{\"model\":\"f\",\"tier\":\"fast\",\"input\":30,\"output\":150}");
        memory_apply(&m, "agent.turn.usage", cases[i].data);
        snprintf(want, sizeof want, "%s|%d\n", cases[i].cost, cases[i].cost[0] != '\0');
        ck_rows("SELECT CAST(round(1e6 * cost_usd) AS INTEGER), costed_tokens > 0 FROM "
                "usage_by_session",
                want);
    }
}
END_TEST

START_TEST(a_count_without_an_event_is_null_and_a_count_of_zero_is_0)
{
#define TOKENS "SELECT total_tokens, input_tokens, output_tokens, cached_input_tokens FROM sessions"
    memory_apply(&m, "session.created", "{}");
    ck_rows(TOKENS, "|||\n");
    memory_apply(&m, "agent.turn.usage", "{\"output_tokens\":0}");
    ck_rows(TOKENS, "0||0|\n");
    memory_apply(&m, "agent.turn.usage", "{\"input_tokens\":5}");
    ck_rows(TOKENS, "5|5|0|\n");
    ck_rows("SELECT input_tokens, output_tokens, cached_input_tokens FROM usage", "5|0|\n");
}
END_TEST

START_TEST(a_turn_taken_back_has_that_status_and_may_become_live_again)
{
    memory_apply(&m, "turn.started", "{\"turn_id\":\"t\"}");
    memory_apply(&m, "turn.completed", "{\"turn_id\":\"t\"}");
    memory_apply(&m, "turn.rolled_back", "{\"turn_id\":\"t\"}");
    ck_rows("SELECT status, live_status FROM turns", "rolled_back|completed\n");
    memory_apply(&m, "turn.abandoned", "{\"turn_id\":\"t\"}");
    ck_rows("SELECT status, live_status FROM turns", "abandoned|completed\n");
    memory_apply(&m, "turn.restored", "{\"turn_id\":\"t\"}");
    ck_rows("SELECT status, live_status FROM turns", "completed|\n");
    memory_apply(&m, "turn.started", "{\"turn_id\":\"u\"}");
    memory_apply(&m, "turn.abandoned", "{\"turn_id\":\"u\"}");
    memory_apply(&m, "turn.completed", "{\"turn_id\":\"u\"}");
    ck_rows("SELECT status FROM turns WHERE turn_id = 'u'", "abandoned\n");
    memory_apply(&m, "turn.restored", "{\"turn_id\":\"u\"}");
    ck_rows("SELECT status FROM turns WHERE turn_id = 'u'", "completed\n");
    memory_apply(&m, "turn.abandoned", "{\"turn_id\":\"none\"}");
    ck_rows("SELECT count(*) FROM turns", "2\n");
}
END_TEST

START_TEST(a_cost_without_tokens_covers_all_tokens)
{
    use("gpt-5", "");
    memory_apply(&m, "agent.turn.usage", "{\"cost_usd\":0.25}");
    ck_rows(COSTS, "0.25||4000000\n");
}
END_TEST

START_TEST(the_list_contains_one_price_per_model_and_day)
{
    ck_rows("SELECT model, since, tier, above, count(*) FROM list_prices GROUP BY 1, 2, 3, 4 "
            "HAVING count(*) > 1",
            "");
    ck_rows("SELECT count(*) FROM list_prices WHERE input <= 0 OR output <= input OR "
            "cache_read >= input OR source NOT IN ('anthropic', 'openai', 'google')",
            "0\n");
}
END_TEST

/* ---- Titles ---- */

#define BLOCK(text) "[{\"type\":\"input_text\",\"text\":\"" text "\"}]"

static const struct title {
    const char *content; /* of the user's message, as JSON */
    const char *want;
} titles[] = {
    {"\"Why is the\\n\\t tide late?\"", "Why is the tide late?"},
    {"[{\"type\":\"image\"}," BLOCK("And this?") "]", ""},
    {"[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"And this?\"}]", "And this?"},
    {BLOCK("<note>An agent said this.</note>Sort"), "<note>An agent said this.</note>Sort"},
    {"\"<command-message>review</command-message><command-name>/review</command-name>"
     "<command-args>PR 36</command-args>\"",
     "/review PR 36"},
    {"\"<command-name>/clear</command-name><command-args></command-args>\"", "/clear"},
    {"\"## <task>Count the \\ud83d\\udea2\"", "<task>Count the \xf0\x9f\x9a\xa2"},
    {"\"<b\"", "<b"},
    {"{\"instruction\":\"Tell a joke\"}", "Tell a joke"},
    {"7", ""},
    {"\"It is late.\",\"said\":\"\"", ""},
    {"\"<environment>here</environment> Why?\",\"said\":\"Why?\"", "Why?"},
};

START_TEST(a_session_without_a_title_is_titled_after_its_first_user_message)
{
    char data[600], want[200];
    snprintf(data, sizeof data, "{\"role\":\"user\",\"content\":%s}", titles[_i].content);
    snprintf(want, sizeof want, "%s\n", titles[_i].want);
    memory_apply(&m, "message.added", "{\"role\":\"developer\",\"content\":\"Obey.\"}");
    memory_apply(&m, "message.added", data);
    ck_rows("SELECT title FROM sessions", want);
}
END_TEST

START_TEST(a_title_is_cut_between_words_and_never_within_a_character)
{
    char data[900] = "{\"role\":\"user\",\"content\":\"";
    for (int i = 0; i < 40; i++)
        strcat(data, "drei Küsten ");
    strcat(data, "\"}");
    memory_apply(&m, "message.added", data);
    ck_rows("SELECT length(title), substr(title, -8) FROM sessions", "120| Küsten…\n");
    strcpy(data, "{\"title\":\"");
    for (int i = 0; i < 119; i++)
        strcat(data, "x");
    strcat(data, "e\\u0301y\"}");
    memory_apply(&m, "session.updated", data);
    ck_rows("SELECT length(title), substr(title, -2) FROM sessions", "120|x…\n");
}
END_TEST

START_TEST(a_given_title_replaces_the_title_from_messages_and_stays)
{
    memory_apply(&m, "message.added", "{\"role\":\"user\",\"content\":\"/clear\"}");
    memory_apply(&m, "message.added", "{\"role\":\"user\",\"content\":\"Hello\"}");
    memory_apply(&m, "message.added", "{\"role\":\"user\",\"content\":\"The first\"}");
    memory_apply(&m, "message.added", "{\"role\":\"user\",\"content\":\"Second\"}");
    ck_rows("SELECT title, title_from FROM sessions", "The first|said\n");
    memory_apply(&m, "session.updated", "{\"set\":{\"title\":\"Tides\"}}");
    memory_apply(&m, "message.added", "{\"role\":\"user\",\"content\":\"Third\"}");
    ck_rows("SELECT title, title_from FROM sessions", "Tides|\n");
}
END_TEST

Suite *suite_core(void)
{
    Suite *suite = suite_create("core");
    TCase *tcase = suite_case(suite, "core", setup, teardown);
    tcase_add_test(tcase, a_call_and_its_result_share_a_row);
    tcase_add_test(tcase, a_duration_that_is_not_a_number_is_unknown);
    tcase_add_test(tcase, a_failed_call_is_recognized_by_event_type_and_by_flag);
    tcase_add_test(tcase, a_result_belongs_to_the_newest_call_of_its_id_and_the_first_result_stays);
    tcase_add_test(tcase, a_result_without_a_call_and_each_call_without_an_id_have_rows);
    tcase_add_test(tcase, a_result_before_its_call_shares_the_row_of_the_call);
    tcase_add_test(tcase, a_result_in_an_artifact_names_it);
    tcase_add_test(tcase, an_unknown_cost_is_null);
    tcase_add_test(tcase, tokens_without_a_cost_are_priced_by_the_best_matching_price);
    tcase_add_test(tcase, a_cost_without_tokens_covers_all_tokens);
    tcase_add_test(tcase,
                   a_tier_a_long_prompt_a_cache_of_an_hour_and_a_search_have_prices_of_their_own);
    tcase_add_test(tcase, a_count_without_an_event_is_null_and_a_count_of_zero_is_0);
    tcase_add_test(tcase, a_turn_taken_back_has_that_status_and_may_become_live_again);
    tcase_add_test(tcase, the_list_contains_one_price_per_model_and_day);
    tcase_add_loop_test(tcase, a_session_without_a_title_is_titled_after_its_first_user_message, 0,
                        sizeof titles / sizeof *titles);
    tcase_add_test(tcase, a_title_is_cut_between_words_and_never_within_a_character);
    tcase_add_test(tcase, a_given_title_replaces_the_title_from_messages_and_stays);
    tcase_add_test(tcase, a_kill_between_call_and_result_leaves_exactly_one_dangling_call);
    tcase_add_test(tcase, a_turn_goes_from_pending_to_an_end_and_never_back);
    tcase_add_test(tcase, every_allowed_edge_and_no_other_changes_the_status_of_a_turn);
    tcase_add_test(tcase, a_turn_with_a_producers_own_start_status_may_stream_and_end);
    tcase_add_test(tcase, a_turn_that_ends_without_having_begun_is_a_row_and_ends_once);
    tcase_add_test(tcase, tokens_that_are_not_a_number_are_ignored);
    tcase_add_test(tcase, a_transition_changes_the_status_and_the_end_of_a_session);
    tcase_add_test(tcase, a_pruned_session_leaves_all_tables_and_later_events_create_it_again);
    tcase_add_test(tcase, a_response_is_stored_under_its_ref_and_its_reads_are_counted);
    tcase_add_test(tcase, a_stored_artifact_is_listed);
    tcase_add_test(tcase, event_types_of_older_producers_have_the_same_effect);
    tcase_add_test(tcase, data_of_any_shape_is_accepted);
    TCase *store = suite_case(suite, "store", packs_setup, packs_teardown);
    tcase_add_test(store, a_report_of_an_illegal_transition_is_appended_and_changes_no_row);
    tcase_add_test(store, an_illegal_transition_is_refused_and_not_appended);
    tcase_add_test(store, a_repeated_event_is_stored_once_and_another_event_with_its_id_conflicts);
    tcase_add_test(store, an_output_of_any_length_stays_in_its_event);
    tcase_add_test(store, an_output_over_the_limit_of_a_pack_becomes_an_artifact);
    tcase_add_test(store, text_of_any_length_is_kept_in_full);
    tcase_add_test(store, an_event_of_64_mib_is_appended_and_a_larger_event_writes_no_byte);
    tcase_add_test(store, the_tables_equal_a_rebuild_after_any_events_in_any_order);
    return suite;
}
