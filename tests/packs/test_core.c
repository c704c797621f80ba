/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/packs/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Build {"call_id":"c","input":"xxx…"} with count x; free() it. */
static char *data_with(size_t count)
{
    static const char head[] = "{\"call_id\":\"c\",\"input\":\"";
    char *data = malloc(count + sizeof head + 2);
    ck_assert_ptr_nonnull(data);
    memcpy(data, head, sizeof head - 1);
    memset(data + sizeof head - 1, 'x', count);
    strcpy(data + sizeof head - 1 + count, "\"}");
    return data;
}

/* Through the packs and a handler that reads it; then an event with a byte more than allowed. */
START_TEST(an_event_of_64_mib_is_appended_and_a_larger_event_writes_no_byte)
{
    size_t room = ANNAL_DATA_BYTES_MAX - strlen("{\"call_id\":\"c\",\"input\":\"\"}");
    char *data = data_with(room), *larger = data_with(room + 1);
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

Suite *suite_core(void)
{
    Suite *suite = suite_create("core");
    TCase *store = suite_case(suite, "store", packs_setup, packs_teardown);
    tcase_add_test(store, a_report_of_an_illegal_transition_is_appended_and_changes_no_row);
    tcase_add_test(store, an_event_of_64_mib_is_appended_and_a_larger_event_writes_no_byte);
    tcase_add_test(store, the_tables_equal_a_rebuild_after_any_events_in_any_order);
    return suite;
}
