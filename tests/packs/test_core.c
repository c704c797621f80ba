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

Suite *suite_core(void)
{
    Suite *suite = suite_create("core");
    TCase *tcase = suite_case(suite, "core", setup, teardown);
    tcase_add_loop_test(tcase, a_session_without_a_title_is_titled_after_its_first_user_message, 0,
                        sizeof titles / sizeof *titles);
    TCase *store = suite_case(suite, "store", packs_setup, packs_teardown);
    tcase_add_test(store, a_report_of_an_illegal_transition_is_appended_and_changes_no_row);
    tcase_add_test(store, a_repeated_event_is_stored_once_and_another_event_with_its_id_conflicts);
    tcase_add_test(store, an_output_of_any_length_stays_in_its_event);
    tcase_add_test(store, an_output_over_the_limit_of_a_pack_becomes_an_artifact);
    tcase_add_test(store, text_of_any_length_is_kept_in_full);
    tcase_add_test(store, an_event_of_64_mib_is_appended_and_a_larger_event_writes_no_byte);
    tcase_add_test(store, the_tables_equal_a_rebuild_after_any_events_in_any_order);
    return suite;
}
