/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/view.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static annal_status ask(const char *sql, annal_error *err)
{
    struct text text = {0};
    annal_status status = annal_index_sql(f.index, annal_slice_of(sql), NULL, text_row, &text, err);
    free(text.ptr);
    return status;
}

START_TEST(writing_is_refused_in_one_sentence)
{
    static const char *const bad[] = {"DELETE FROM sessions",
                                      "INSERT INTO turns VALUES (1)",
                                      "UPDATE event_index SET type = 'x'",
                                      "UPDATE sqlite_master SET name = 'x'",
                                      "CREATE TABLE x (y)",
                                      "CREATE TEMP TABLE x (y)",
                                      "DROP TABLE sessions",
                                      "ATTACH 'x.db' AS x",
                                      "VACUUM",
                                      "BEGIN",
                                      "PRAGMA user_version = 7",
                                      "PRAGMA wal_checkpoint",
                                      "SELECT load_extension('x')"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        annal_error err = {0};
        ck_assert_msg(ask(bad[i], &err) == ANNAL_ERR_SQL, "%s", bad[i]);
    }
    annal_error err = {0};
    ask("DELETE FROM sessions", &err);
    ck_assert_ptr_nonnull(strstr(err.message, "only statements that read"));
}
END_TEST

START_TEST(wrong_sql_is_refused_with_the_reason)
{
    annal_error err = {0};
    ck_assert_int_eq(ask("SELECT x FROM sessions", &err), ANNAL_ERR_SQL);
    ck_assert_str_eq(err.message, "SQL: no such column: x");
    ck_assert_int_eq(ask("", &err), ANNAL_ERR_SQL);
    ck_assert_int_eq(ask("SELECT 1; SELECT 2", &err), ANNAL_ERR_SQL);
    ck_assert_str_eq(err.message, "the text contains more than one SQL statement: run the "
                                  "statements one by one");
    ck_assert_int_eq(ask("SELECT 1 ; ", &err), ANNAL_OK);
}
END_TEST

static int note_columns(void *arg, const annal_row *row)
{
    ck_assert_ptr_null(row->values);
    for (size_t i = 0; i < row->count; i++) {
        text_add(arg, row->names[i], strlen(row->names[i]));
        text_add(arg, " ", 1);
    }
    return 0;
}

START_TEST(rows_have_their_column_names_and_parameters_are_bound)
{
    struct text text = {0};
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = ANNAL_SLICE("t")},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = -7},
                                  {.kind = ANNAL_VALUE_REAL, .real = 0.5},
                                  {.kind = ANNAL_VALUE_BLOB, .bytes = ANNAL_SLICE("b")},
                                  {.kind = ANNAL_VALUE_NULL}};
    const annal_sql_options options = {.params = params, .param_count = 5, .columns = note_columns};
    ck_ok(annal_index_sql(f.index,
                          ANNAL_SLICE("SELECT ?1 AS a, ?2 AS b, ?3 AS c, ?4 AS d, ?5 AS e"),
                          &options, text_row, &text, err));
    ck_assert_str_eq(text.ptr, "a b c d e t|-7|0.5|b|\n");
    text.len = 0;
    const annal_sql_options none = {.columns = note_columns};
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT id FROM sessions"), &none, text_row, &text,
                          err));
    ck_assert_str_eq(text.ptr, "id ");
    free(text.ptr);
}
END_TEST

static int stop_at_once(void *arg, const annal_row *row)
{
    (void)row;
    ++*(int *)arg;
    return ANNAL_ERR_CORRUPT; /* the callback's own status, not the index's */
}

START_TEST(a_callback_can_stop_a_query)
{
    int calls = 0;
    ck_assert_int_eq(
        annal_index_sql(f.index, ANNAL_SLICE("VALUES (1), (2)"), NULL, stop_at_once, &calls, NULL),
        ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(calls, 1);

    annal__view *view = NULL;
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT count(*) FROM event_index", "8\n");
    ck_ok(annal__view_open(f.index, &view, err));
    ck_assert_int_eq(
        annal__view_sql(view, ANNAL_SLICE("VALUES (1), (2)"), NULL, stop_at_once, &calls, NULL),
        ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(calls, 2);
    annal__view_close(view);
    ck_ok(annal__view_open(f.index, &view, err));
    annal_position indexed;
    ck_ok(annal__view_position(view, ANNAL_SLICE("s1"), &indexed, err));
    ck_assert_uint_eq(indexed.seq, 9); /* the status of the callback does not condemn the index */
    annal__view_close(view);
}
END_TEST

START_TEST(a_view_shows_the_rows_of_the_moment_it_was_opened)
{
    annal__view *view = NULL;
    annal_position indexed;
    fixture_append_session(&f, "s1");
    ck_ok(annal__view_open(f.index, &view, err));
    ck_ok(annal__view_position(view, ANNAL_SLICE("s1"), &indexed, err));
    ck_assert_uint_eq(indexed.seq, 1);
    ck_assert_uint_eq(indexed.offset, 0);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    for (int i = 0; i < 2; i++) {
        struct text text = {0};
        ck_ok(annal__view_position(view, ANNAL_SLICE("s1"), &indexed, err));
        ck_ok(annal__view_sql(view, ANNAL_SLICE("SELECT count(*) FROM event_index"), NULL, text_row,
                              &text, err));
        ck_assert_str_eq(text.ptr, i == 0 ? "0\n" : "8\n");
        ck_assert_uint_eq(indexed.seq, i == 0 ? 1 : 9);
        free(text.ptr);
        annal__view_close(view);
        view = NULL;
        if (i == 0)
            ck_ok(annal__view_open(f.index, &view, err));
    }
}
END_TEST

START_TEST(the_table_events_contains_every_event_with_its_payload)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    ck_sql(&f, "SELECT COUNT(*), COUNT(data), COUNT(DISTINCT session_id) FROM events", "16|16|2\n");
    ck_sql(&f,
           "SELECT session_id, seq, timestamp, type, id, data FROM events WHERE seq = 6 "
           "ORDER BY session_id",
           "s1|6|2026-01-06T07:24:05.000000Z|tool.called||"
           "{\"call_id\":\"c1\",\"tool\":\"shell\"}\n"
           "s2|6|2026-01-06T07:24:05.000000Z|tool.called||"
           "{\"call_id\":\"c1\",\"tool\":\"shell\"}\n");
    ck_sql(&f,
           "SELECT e.seq, e.data ->> '$.model' FROM sessions s JOIN events e ON e.session_id = "
           "s.id WHERE s.id = 's2' AND e.type = 'session.created'",
           "1|m-1\n");
}
END_TEST

START_TEST(the_table_events_gives_the_rows_of_the_index_for_any_condition)
{
    static const char *const wheres[] = {
        "session_id = 's2'",
        "session_id = 's2' AND seq BETWEEN 3 AND 6",
        "session_id IN ('s1', 's3') AND seq > 5",
        "seq = '4'",
        "seq = 4.0 OR seq = 5.5",
        "type = 'tool.called'",
        "type GLOB 'turn.*' AND session_id >= 's2'",
        "type LIKE 'TURN.%'",
        "type = 'TURN.STARTED' COLLATE NOCASE",
        "timestamp >= '2026-01-06T07:24:05' AND timestamp < '2026-01-06T07:24:07'",
        "timestamp = NULL",
        "type IS NULL",
        "seq < 3 AND type != 'turn.started'",
        "1 ORDER BY seq DESC, session_id",
        "1 ORDER BY timestamp DESC, session_id",
        "session_id = 's1' ORDER BY seq DESC",
        ("type IN ('turn.started', 'turn.completed') AND session_id IN ('s1', 's2') "
         "ORDER BY session_id, seq"),
    };
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    fixture_append_session(&f, "s3");
    for (size_t i = 0; i < sizeof wheres / sizeof *wheres; i++) {
        char *sql[2] = {0};
        char *got[2] = {0};
        static const char *const tables[] = {"events", "event_index"};
        for (int j = 0; j < 2; j++) {
            struct text text = {0};
            const char *order =
                strstr(wheres[i], "ORDER BY") == NULL ? " ORDER BY session_id, seq" : "";
            const char *parts[] = {"SELECT session_id, seq, timestamp, type FROM ", tables[j],
                                   " WHERE ", wheres[i], order};
            for (size_t k = 0; k < 5; k++)
                text_add(&text, parts[k], strlen(parts[k]));
            sql[j] = text.ptr;
            got[j] = fixture_sql(&f, text.ptr);
        }
        ck_assert_msg(strcmp(got[0], got[1]) == 0, "%s:\n%s\nagainst\n%s", wheres[i], got[0],
                      got[1]);
        for (int j = 0; j < 2; j++) {
            free(sql[j]);
            free(got[j]);
        }
    }
}
END_TEST

START_TEST(a_join_with_events_starts_with_the_few_sessions)
{
    fixture_append_session(&f, "s1");
    char *plan = fixture_sql(&f, "EXPLAIN QUERY PLAN SELECT e.data FROM events e JOIN sessions s "
                                 "ON e.session_id = s.id WHERE s.status = 'ended' AND e.seq = 1");
    ck_assert_ptr_nonnull(strstr(plan, "SEARCH s USING INDEX idx_sessions_status"));
    ck_assert_ptr_nonnull(strstr(plan, "session_id = ?"));
    free(plan);
}
END_TEST

static void note_warning(void *arg, annal_log_level level, const char *message)
{
    if (level == ANNAL_LOG_WARNING) {
        text_add(arg, message, strlen(message));
        text_add(arg, "\n", 1);
    }
}

START_TEST(the_log_names_damaged_events_of_an_answer_indexed_before_or_after)
{
    struct text log = {0};
    const annal_store_options options = {.no_keeper = true, .log = note_warning, .log_arg = &log};
    fixture_append_many(&f, "x", 3, 1767684230000000);
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, &options, &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    size_t length = 0;
    const char *path = tmpdir_path(&f.dir, "store/events/x.jsonl");
    char *journal = file_read(path, &length);
    *strstr(strstr(journal, "\"seq\":2"), "something") = 'S';
    file_write(path, journal, length);
    free(journal);
    for (int round = 0; round < 2; round++) {
        text_add(&log, "", 0);
        log.len = 0;
        ck_sql(&f, "SELECT COUNT(data) FROM events WHERE session_id = 'x'", "2\n");
        ck_assert_ptr_nonnull(strstr(log.ptr, "session 'x', event 2 at byte"));
        ck_assert_ptr_null(strchr(strchr(log.ptr, '\n') + 1, '\n'));
        text_add(&log, "", 0);
        log.len = 0;
        log.ptr[0] = '\0';
        ck_sql(&f, "SELECT data IS NULL FROM events WHERE seq = 3", "0\n");
        ck_assert_str_eq(log.ptr, "");
        ck_ok(annal_index_rebuild(f.index, NULL, err));
    }
    free(log.ptr);
}
END_TEST

#define ENDLESS "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "

#define HELD(n) "max(hex(zeroblob(30000" n ")))"

static void ck_stopped(const char *sql, annal_limits limits, const char *says)
{
    annal_error err = {0};
    struct text text = {0};
    annal_status status =
        annal_index_sql(f.index, annal_slice_of(sql), &(annal_sql_options){.limits = limits},
                        text_row, &text, &err);
    free(text.ptr);
    ck_assert_int_eq(status, ANNAL_ERR_LIMIT);
    ck_assert_str_eq(err.message, says);
}

START_TEST(an_endless_or_unbounded_select_is_stopped_and_the_message_names_the_limit)
{
    ck_stopped(ENDLESS "SELECT count(*) FROM c", (annal_limits){.run_ms = 100},
               "SQL: the statement was stopped after 0.1 seconds");
    ck_stopped("SELECT length(zeroblob(30000000))", (annal_limits){.memory_bytes = 80 << 20},
               "SQL: a value is larger than 20 MB");
    ck_stopped(ENDLESS "SELECT x, hex(zeroblob(500)) FROM c ORDER BY 2",
               (annal_limits){.temp_bytes = 8 << 20},
               "SQL: the statement was stopped because it used more than 8 MB of temporary files");
    ck_stopped(ENDLESS "SELECT " HELD("1") "," HELD("2") "," HELD("3") "," HELD("4") " FROM c",
               (annal_limits){.memory_bytes = 3 << 20, .run_ms = 60000},
               "SQL: the statement was stopped because it used more than 3 MB of memory");
    ck_sql(&f, "SELECT length(zeroblob(30000000))", "30000000\n"); /* limits end with their call */
}
END_TEST

/* A slow callback; the SELECT itself is fast. */
static int take_time(void *arg, const annal_row *row)
{
    (void)row;
    usleep(30000);
    ++*(int *)arg;
    return 0;
}

START_TEST(the_time_of_the_callback_does_not_count)
{
    int rows = 0;
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("VALUES (1), (2), (3), (4), (5), (6)"),
                          &(annal_sql_options){.limits = {.run_ms = 100}}, take_time, &rows, err));
    ck_assert_int_eq(rows, 6);
}
END_TEST

START_TEST(an_endless_expression_is_stopped_at_its_event)
{
    annal_query *query = NULL;
    annal_error why = {0};
    annal_slice session;
    annal_event event;
    fixture_append_many(&f, "s", 5, 1767684230000000);
    const annal_filter filter = {
        .where = ANNAL_SLICE("seq < 3 OR (" ENDLESS "SELECT max(x) FROM c) > 0"),
        .where_limits = {.run_ms = 100}};
    ck_ok(annal_query_open(f.index, &filter, &query, err));
    ck_assert_int_eq(annal_query_next(query, &session, &event, &why), ANNAL_OK);
    ck_assert_int_eq(annal_query_next(query, &session, &event, &why), ANNAL_OK);
    ck_assert_int_eq(annal_query_next(query, &session, &event, &why), ANNAL_ERR_LIMIT);
    ck_assert_str_eq(why.message,
                     "the expression, on event 3 of session 's': the statement was stopped after "
                     "0.1 seconds for one row");
    annal_query_close(query);
}
END_TEST

Suite *suite_view(void)
{
    Suite *suite = suite_create("view");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, writing_is_refused_in_one_sentence);
    tcase_add_test(all, wrong_sql_is_refused_with_the_reason);
    tcase_add_test(all, an_endless_or_unbounded_select_is_stopped_and_the_message_names_the_limit);
    tcase_add_test(all, the_time_of_the_callback_does_not_count);
    tcase_add_test(all, an_endless_expression_is_stopped_at_its_event);
    tcase_add_test(all, rows_have_their_column_names_and_parameters_are_bound);
    tcase_add_test(all, a_callback_can_stop_a_query);
    tcase_add_test(all, a_view_shows_the_rows_of_the_moment_it_was_opened);
    tcase_add_test(all, the_table_events_contains_every_event_with_its_payload);
    tcase_add_test(all, the_table_events_gives_the_rows_of_the_index_for_any_condition);
    tcase_add_test(all, a_join_with_events_starts_with_the_few_sessions);
    tcase_add_test(all, the_log_names_damaged_events_of_an_answer_indexed_before_or_after);
    return suite;
}
