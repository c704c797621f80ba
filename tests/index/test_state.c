/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/pack.h"
#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void apply(annal_state *state, uint64_t seq, const char *type, const char *data)
{
    const annal_event event = {.seq = seq,
                               .ts_us = 1767684240000000 + (int64_t)seq * 1000000,
                               .type = annal_slice_of(type),
                               .data = annal_slice_of(data)};
    ck_ok(annal_state_apply(state, &event, err));
}

static annal_state *core_state(void)
{
    annal_state *state = NULL;
    ck_ok(annal__state_new(ANNAL_SLICE("s"), NULL, 0, &state, err));
    return state;
}

static char *json(annal_state *state)
{
    struct text text = {0};
    ck_ok(annal_state_json(state, text_write, &text, err));
    return text.ptr;
}

static char *sql(annal_state *state, const char *select)
{
    struct text text = {0};
    text_add(&text, "", 0);
    ck_ok(annal_state_sql(state, annal_slice_of(select), NULL, text_row, &text, err));
    return text.ptr;
}

#define ck_state(state, select, rows)                                                              \
    do {                                                                                           \
        char *got_ = sql(state, select);                                                           \
        ck_assert_str_eq(got_, rows);                                                              \
        free(got_);                                                                                \
    } while (0)

START_TEST(a_session_without_session_created_has_a_row)
{
    annal_state *state = core_state();
    apply(state, 1, "tool.called", "{}");
    ck_state(state, "SELECT agent_id, provider, model, status, created_at, events FROM sessions",
             "|||idle|2026-01-06T07:24:01.000000Z|1\n");
    annal_state_free(state);
}
END_TEST

START_TEST(session_created_fills_the_row)
{
    annal_state *state = core_state();
    apply(state, 1, "session.created",
          "{\"agent_id\":\"a\",\"provider\":\"p\",\"model\":\"m\",\"flow_id\":\"f\","
          "\"working_directory\":\"/w\",\"git_branch\":\"b\",\"created_at\":"
          "\"2026-01-05T21:24:22.735Z\",\"parent_session_id\":\"s0\",\"title\":\"t\"}");
    ck_state(state,
             "SELECT id, flow_id, agent_id, provider, model, status, created_at, "
             "working_directory, git_branch, parent_session_id, title FROM sessions",
             "s|f|a|p|m|idle|2026-01-05T21:24:22.735000Z|/w|b|s0|t\n");
    annal_state_free(state);
}
END_TEST

START_TEST(session_updated_accepts_columns_flat_or_under_set_and_is_not_activity)
{
    annal_state *state = core_state();
    apply(state, 1, "session.created", "{\"model\":\"m\"}");
    apply(state, 2, "session.updated", "{\"set\":{\"model\":\"n\"}}");
    apply(state, 3, "session.updated", "{\"git_branch\":\"b\"}");
    ck_state(state, "SELECT model, git_branch, updated_at, last_activity_at FROM sessions",
             "n|b|2026-01-06T07:24:03.000000Z|2026-01-06T07:24:01.000000Z\n");
    annal_state_free(state);
}
END_TEST

START_TEST(the_status_follows_the_session)
{
    annal_state *state = core_state();
    static const char *const steps[][3] = {
        {"session.created", "{}", "idle\n"},
        {"session.status_changed", "{\"from\":\"idle\",\"to\":\"busy\"}", "busy\n"},
        {"turn.started", "{}", "busy\n"},
        {"session.paused", "{}", "paused\n"},
        {"session.resumed", "{}", "idle\n"},
        {"session.ended", "{\"status\":\"failed\"}", "failed\n"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        apply(state, i + 1, steps[i][0], steps[i][1]);
        ck_state(state, "SELECT status FROM sessions", steps[i][2]);
    }
    annal_state_free(state);
}
END_TEST

START_TEST(a_turn_is_started_and_completed_with_its_tokens)
{
    annal_state *state = core_state();
    apply(state, 1, "turn.started", "{\"turn_id\":\"t1\",\"sequence\":1}");
    apply(state, 2, "turn.streaming", "{\"turn_id\":\"t1\"}");
    ck_state(state, "SELECT status, completed_at FROM turns", "streaming|\n");
    apply(state, 3, "turn.completed",
          "{\"turn_id\":\"t1\",\"input_tokens\":10,\"output_tokens\":5,\"cost_usd\":0.5,"
          "\"timing\":{\"totalMs\":7}}");
    ck_state(state,
             "SELECT id, turn_id, sequence, status, completed_at, input_tokens, output_tokens, "
             "cost_usd, timing FROM turns",
             "s:t1|t1|1|completed|2026-01-06T07:24:03.000000Z|10|5|0.5|{\"totalMs\":7}\n");
    ck_state(state, "SELECT total_turns, total_tokens, total_cost_usd FROM sessions", "1|15|0.5\n");
    annal_state_free(state);
}
END_TEST

START_TEST(a_turn_that_ended_is_not_counted_twice)
{
    annal_state *state = core_state();
    apply(state, 1, "turn.started", "{\"turn_id\":\"t1\"}");
    apply(state, 2, "turn.started", "{\"turn_id\":\"t1\"}");
    apply(state, 3, "turn.failed",
          "{\"turn_id\":\"t1\",\"input_tokens\":4,\"error\":{\"code\":1}}");
    apply(state, 4, "turn.completed", "{\"turn_id\":\"t1\",\"input_tokens\":4}");
    ck_state(state, "SELECT status, input_tokens, error FROM turns", "failed|4|{\"code\":1}\n");
    ck_state(state, "SELECT total_turns, total_tokens FROM sessions", "1|4\n");
    annal_state_free(state);
}
END_TEST

START_TEST(usage_adds_up_in_the_session_and_in_the_turn_it_names)
{
    annal_state *state = core_state();
    apply(state, 1, "turn.started", "{\"turn_id\":\"t1\"}");
    apply(state, 2, "agent.turn.usage",
          "{\"turn_id\":\"t1\",\"input_tokens\":100,\"output_tokens\":7,"
          "\"cached_input_tokens\":60,\"cache_write_tokens\":3,\"model\":\"m\"}");
    apply(state, 3, "agent.turn.usage", "{\"input_tokens\":1,\"output_tokens\":2}");
    apply(state, 4, "turn.completed", "{\"turn_id\":\"t1\"}");
    ck_state(state,
             "SELECT input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, "
             "total_tokens, model FROM sessions",
             "101|9|60|3|110|m\n");
    ck_state(state, "SELECT input_tokens, output_tokens, cached_input_tokens FROM turns",
             "100|7|60\n");
    annal_state_free(state);
}
END_TEST

START_TEST(money_is_added_in_millionths)
{
    annal_state *state = core_state();
    for (uint64_t i = 1; i <= 10; i++)
        apply(state, i, "agent.turn.usage", "{\"cost_usd\":0.1}");
    apply(state, 11, "agent.turn.usage", "{\"cost_microusd\":1}");
    ck_state(state, "SELECT cost_microusd, total_cost_usd = 1.000001 FROM sessions", "1000001|1\n");
    annal_state_free(state);
}
END_TEST

START_TEST(a_turn_event_without_an_id_refers_to_the_newest_open_turn)
{
    annal_state *state = core_state();
    apply(state, 1, "turn.started", "{}");
    apply(state, 2, "turn.started", "{\"sequence\":1}");
    apply(state, 3, "turn.completed", "{}");
    ck_state(state, "SELECT sequence, status FROM turns ORDER BY sequence",
             "1|started\n2|completed\n");
    annal_state_free(state);
}
END_TEST

START_TEST(any_payload_is_accepted)
{
    static const char *const payloads[] = {
        "null",
        "7",
        "\"text\"",
        "[1,2]",
        "{}",
        "{\"turn_id\":{},\"sequence\":\"x\"}",
        "{\"turn_id\":null,\"input_tokens\":\"many\",\"cost_usd\":[],\"model\":{\"a\":1}}",
        "{\"input_tokens\":1e400,\"output_tokens\":99999999999999999999,\"status\":7}"};
    static const char *const types[] = {
        "session.created",        "session.updated",  "session.ended",
        "session.status_changed", "turn.started",     "turn.streaming",
        "turn.completed",         "agent.turn.usage", "other"};
    annal_state *state = core_state();
    uint64_t seq = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t j = 0; j < sizeof payloads / sizeof *payloads; j++)
            apply(state, ++seq, types[i], payloads[j]);
    ck_assert_uint_eq(annal__state_refused(state), 0);
    ck_state(state, "SELECT events FROM sessions", "72\n");
    annal_state_free(state);
}
END_TEST

/* A pack whose handler has two statements, of which the second fails for x = null. */
static const char STRICT[] = "-- pack strict   version 1   database s.db\n"
                             "CREATE TABLE a (id INTEGER PRIMARY KEY, x);\n"
                             "CREATE TABLE b (id INTEGER PRIMARY KEY, x NOT NULL);\n"
                             "-- on put\n"
                             "INSERT INTO a VALUES (:seq, $x);\n"
                             "INSERT INTO b VALUES (:seq, $x);\n";

START_TEST(an_event_on_which_a_handler_fails_changes_nothing_and_is_counted)
{
    annal_pack *pack = NULL;
    annal_state *state = NULL;
    ck_ok(annal_pack_parse("strict.sql", annal_slice_of(STRICT), &pack, err));
    const annal_pack *packs[] = {pack};
    ck_ok(annal__state_new(ANNAL_SLICE("s"), packs, 1, &state, err));
    apply(state, 1, "put", "{\"x\":{\"y\":[1, 2]}}");
    apply(state, 2, "put", "{}");
    apply(state, 3, "put", "{\"x\":1.5}");
    ck_assert_uint_eq(annal__state_refused(state), 1);
    ck_text(json(state), "{\"a\":[{\"id\":1,\"x\":\"{\\\"y\\\":[1,2]}\"},{\"id\":3,\"x\":1.5}],"
                         "\"b\":[{\"id\":1,\"x\":\"{\\\"y\\\":[1,2]}\"},{\"id\":3,\"x\":1.5}]}");
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

START_TEST(the_envelope_can_be_bound)
{
    static const char text[] =
        "-- pack e   version 1   database e.db\n"
        "CREATE TABLE e (session, seq, ts, type, id, cause, data);\n"
        "-- on x.y\n"
        "INSERT INTO e VALUES (:session, :seq, :ts, :type, :id, :cause, :data);\n";
    annal_pack *pack = NULL;
    annal_state *state = NULL;
    ck_ok(annal_pack_parse("e.sql", annal_slice_of(text), &pack, err));
    const annal_pack *packs[] = {pack};
    ck_ok(annal__state_new(ANNAL_SLICE("s"), packs, 1, &state, err));
    const annal_event event = {.seq = 4,
                               .ts_us = 0,
                               .type = ANNAL_SLICE("x.y"),
                               .cause = ANNAL_SLICE("r:2"),
                               .data = ANNAL_SLICE("[ 1 ]")};
    ck_ok(annal_state_apply(state, &event, err));
    ck_state(state, "SELECT *, id IS NULL FROM e",
             "s|4|1970-01-01T00:00:00.000000Z|x.y||r:2|[ 1 ]|1\n");
    annal_state_free(state);
    annal_pack_free(pack);
}
END_TEST

START_TEST(a_reset_state_equals_a_new_state_of_another_session)
{
    annal_state *state = core_state();
    char *first = json(state);
    for (int i = 0; i < 2; i++) { /* with and without an open transaction */
        apply(state, 1, "session.created", "{\"model\":\"m\"}");
        apply(state, 2, "turn.started", "{\"turn_id\":\"t\"}");
        if (i == 0)
            ck_state(state, "SELECT id, events FROM sessions", "s|2\n");
        ck_ok(annal__state_reset(state, ANNAL_SLICE("s2"), err));
        ck_assert_uint_eq(annal_state_seq(state), 0);
        ck_text(json(state), first);
    }
    apply(state, 1, "a", "{}");
    ck_state(state, "SELECT id, events, model FROM sessions", "s2|1|\n");
    ck_assert_int_eq(annal__state_reset(state, ANNAL_SLICE(".."), NULL), ANNAL_ERR_INVALID);
    free(first);
    annal_state_free(state);
}
END_TEST

static char *all_pages(annal_state *state, uint64_t *out_count)
{
    ck_ok(annal__state_page_count(state, out_count, err));
    char *pages = malloc(*out_count * ANNAL_STATE_PAGE_BYTES);
    for (uint64_t page = 1; page <= *out_count; page++)
        ck_ok(annal__state_page(state, page, pages + (page - 1) * ANNAL_STATE_PAGE_BYTES, err));
    return pages;
}

static int count_page(void *arg, uint64_t page)
{
    (void)page;
    ++*(uint64_t *)arg;
    return 0;
}

START_TEST(a_second_state_of_the_core_pack_has_the_same_pages_without_creating_tables)
{
    annal_pack *core = NULL;
    uint64_t count[2], changed = 0;
    char *pages[2];
    ck_ok(annal__pack_core(&core, err));
    for (int i = 0; i < 2; i++) {
        annal_state *state = NULL;
        ck_assert((atomic_load(core->blank) != NULL) == (i > 0));
        ck_ok(
            annal__state_new(ANNAL_SLICE("s"), (const annal_pack *const[]){core}, 1, &state, err));
        apply(state, 1, "session.created", "{\"model\":\"m\"}");
        apply(state, 2, "turn.started", "{\"turn_id\":\"t\"}");
        pages[i] = all_pages(state, &count[i]);
        memset(pages[i] + 24, 0, 4); /* SQLite's counter of changes */
        memset(pages[i] + 92, 0, 4);
        if (i > 0)
            ck_ok(annal__state_changed(state, count_page, &changed, err));
        annal_state_free(state);
    }
    ck_assert_uint_eq(count[0], count[1]);
    ck_assert_uint_eq(changed, count[1]); /* a snapshot contains only these pages */
    ck_assert_mem_eq(pages[0], pages[1], count[0] * ANNAL_STATE_PAGE_BYTES);
    free(pages[0]);
    free(pages[1]);
    annal_pack_free(core);
}
END_TEST

START_TEST(events_must_be_applied_in_order)
{
    annal_state *state = core_state();
    apply(state, 2, "x", "{}");
    const annal_event event = {.seq = 2, .type = ANNAL_SLICE("x"), .data = ANNAL_SLICE("{}")};
    ck_assert_int_eq(annal_state_apply(state, &event, NULL), ANNAL_ERR_INVALID);
    annal_state_free(state);
}
END_TEST

START_TEST(sql_over_a_state_only_reads)
{
    annal_state *state = core_state();
    struct text text = {0};
    static const char *const bad[] = {"DELETE FROM sessions", "DROP TABLE turns",
                                      "ATTACH 'x.db' AS x", "BEGIN"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        annal_error err = {0};
        ck_assert_int_eq(
            annal_state_sql(state, annal_slice_of(bad[i]), NULL, text_row, &text, &err),
            ANNAL_ERR_SQL);
        ck_assert_ptr_nonnull(strstr(err.message, "only statements that read"));
    }
    ck_assert_int_eq(
        annal_state_sql(state, ANNAL_SLICE("PRAGMA query_only = 0"), NULL, text_row, &text, NULL),
        ANNAL_ERR_SQL);
    annal_state_free(state);
}
END_TEST

START_TEST(the_pack_version_changes_with_any_byte_of_a_pack)
{
    annal_pack *one = NULL, *two = NULL;
    struct text text = {0};
    text_add(&text, STRICT, strlen(STRICT));
    ck_ok(annal_pack_parse("a.sql", (annal_slice){text.ptr, text.len}, &one, err));
    text_add(&text, "\n", 1);
    ck_ok(annal_pack_parse("a.sql", (annal_slice){text.ptr, text.len}, &two, err));
    ck_assert_uint_ne(annal__state_packs_version((const annal_pack *const[]){one}, 1),
                      annal__state_packs_version((const annal_pack *const[]){two}, 1));
    annal_pack_free(one);
    annal_pack_free(two);
    free(text.ptr);
}
END_TEST

Suite *suite_state(void)
{
    Suite *suite = suite_create("state");
    TCase *core = suite_case(suite, "core pack", NULL, NULL);
    tcase_add_test(core, a_session_without_session_created_has_a_row);
    tcase_add_test(core, session_created_fills_the_row);
    tcase_add_test(core, session_updated_accepts_columns_flat_or_under_set_and_is_not_activity);
    tcase_add_test(core, the_status_follows_the_session);
    tcase_add_test(core, a_turn_is_started_and_completed_with_its_tokens);
    tcase_add_test(core, a_turn_that_ended_is_not_counted_twice);
    tcase_add_test(core, usage_adds_up_in_the_session_and_in_the_turn_it_names);
    tcase_add_test(core, money_is_added_in_millionths);
    tcase_add_test(core, a_turn_event_without_an_id_refers_to_the_newest_open_turn);
    tcase_add_test(core, any_payload_is_accepted);
    TCase *state = suite_case(suite, "state", NULL, NULL);
    tcase_add_test(state, an_event_on_which_a_handler_fails_changes_nothing_and_is_counted);
    tcase_add_test(state, the_envelope_can_be_bound);
    tcase_add_test(state, a_reset_state_equals_a_new_state_of_another_session);
    tcase_add_test(state,
                   a_second_state_of_the_core_pack_has_the_same_pages_without_creating_tables);
    tcase_add_test(state, events_must_be_applied_in_order);
    tcase_add_test(state, sql_over_a_state_only_reads);
    tcase_add_test(state, the_pack_version_changes_with_any_byte_of_a_pack);
    return suite;
}
