/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000LL
#define START  (1767684240 * SECOND)

/* List every event of a filter as "session:seq ". free() it. */
static char *answer(const annal_filter *filter)
{
    struct text text = {0};
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_status status;
    text_add(&text, "", 0);
    ck_ok(annal_query_open(f.index, filter, &query, err));
    while ((status = annal_query_next(query, &session, &event, NULL)) != ANNAL_END) {
        char one[300];
        ck_assert_int_ge(status, 0);
        snprintf(one, sizeof one, "%.*s:%llu%s ", ANNAL_FMT(session), (unsigned long long)event.seq,
                 status == ANNAL_DAMAGE ? "!" : "");
        text_add(&text, one, strlen(one));
    }
    annal_query_close(query);
    return text.ptr;
}

/* Assert the events of annal_query_next(); "!" marks damage. */
#define ck_told(f, expected, ...)                                                                  \
    do {                                                                                           \
        const annal_filter filter_ = {__VA_ARGS__};                                                \
        char *got_ = answer(&filter_);                                                             \
        ck_assert_str_eq(got_, expected);                                                          \
        free(got_);                                                                                \
    } while (0)

/* The same, and assert that annal_query_count() agrees. */
#define ck_answer(f, expected, ...)                                                                \
    do {                                                                                           \
        const annal_filter asked_ = {__VA_ARGS__};                                                 \
        uint64_t count_ = 0, words_ = 0;                                                           \
        ck_told(f, expected, __VA_ARGS__);                                                         \
        for (const char *c_ = expected; *c_ != '\0'; c_++)                                         \
            words_ += *c_ == ' ';                                                                  \
        ck_ok(annal_query_count((f)->index, &asked_, &count_, NULL, err));                         \
        ck_assert_uint_eq(count_, words_);                                                         \
    } while (0)

/* Two sessions of six events each, the second half a second later. */
static void two_sessions(void)
{
    fixture_append_many(&f, "x", 6, START);
    fixture_append_many(&f, "y", 6, START + SECOND / 2);
}

START_TEST(events_of_a_single_session_are_ordered_by_seq)
{
    const annal_slice x = ANNAL_SLICE("x");
    two_sessions();
    fixture_append_at(&f, "x", "a.one", "{}", START); /* an import may go back in time */
    ck_answer(&f, "x:1 x:2 x:3 x:4 x:5 x:6 x:7 ", .sessions = &x, .session_count = 1);
    ck_answer(&f, "x:7 x:6 ", .sessions = &x, .session_count = 1, .descending = true, .limit = 2);
    ck_answer(&f, "x:2 x:3 ", .sessions = &x, .session_count = 1, .from_seq = 2, .to_seq = 3);
    ck_answer(&f, "", .sessions = &x, .session_count = 1, .from_seq = (1ull << 63) + 2);
}
END_TEST

START_TEST(events_of_several_sessions_are_ordered_by_time)
{
    const annal_slice both[] = {ANNAL_SLICE("y"), ANNAL_SLICE("x")};
    two_sessions();
    fixture_append_many(&f, "z", 2, START);
    ck_answer(&f, "x:1 y:1 x:2 y:2 ", .sessions = both, .session_count = 2, .limit = 4);
    ck_answer(&f, "x:1 z:1 y:1 x:2 z:2 ", .limit = 5);
    ck_answer(&f, "y:6 x:6 y:5 ", .descending = true, .limit = 3);
}
END_TEST

START_TEST(a_filter_of_types_accepts_names_and_patterns)
{
    const annal_slice x = ANNAL_SLICE("x");
    const annal_slice one[] = {ANNAL_SLICE("a.two")};
    const annal_slice pattern[] = {ANNAL_SLICE("a.*")};
    const annal_slice several[] = {ANNAL_SLICE("b.*"), ANNAL_SLICE("a.two")};
    two_sessions();
    ck_answer(&f, "x:2 x:5 ", .sessions = &x, .session_count = 1, .types = one, .type_count = 1);
    ck_answer(&f, "x:1 x:2 x:4 x:5 ", .sessions = &x, .session_count = 1, .types = pattern,
              .type_count = 1);
    ck_answer(&f, "x:2 x:3 x:5 x:6 ", .sessions = &x, .session_count = 1, .types = several,
              .type_count = 2);
    ck_answer(&f, "x:2 y:2 x:5 y:5 ", .types = one, .type_count = 1);
}
END_TEST

START_TEST(since_is_included_and_until_is_not)
{
    two_sessions();
    ck_answer(&f, "x:2 y:2 ", .since_us = START + SECOND, .until_us = START + 2 * SECOND);
    ck_answer(&f, "y:6 ", .since_us = START + 5 * SECOND + 1);
}
END_TEST

START_TEST(an_answer_contains_every_event_appended_before_the_query)
{
    const annal_slice s = ANNAL_SLICE("s");
    for (int i = 1; i <= 20; i++) {
        uint64_t count = 0;
        const annal_filter filter = {.sessions = &s, .session_count = 1};
        fixture_append(&f, "s", "x", "{}");
        ck_ok(annal_query_count(f.index, &filter, &count, NULL, err));
        ck_assert_int_eq((int)count, i);
    }
}
END_TEST

START_TEST(events_that_cannot_be_indexed_now_are_read_from_the_journals)
{
    const annal_slice x = ANNAL_SLICE("x");
    const annal_slice two[] = {ANNAL_SLICE("a.two")};
    sqlite3 *stranger = NULL;
    annal_lag lag;
    uint64_t count = 0;
    two_sessions();
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_assert_int_eq(sqlite3_open(tmpdir_path(&f.dir, "store/sessions.db"), &stranger), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(stranger, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    fixture_append_many(&f, "x", 3, START + 10 * SECOND);
    fixture_append_many(&f, "z", 2, START);
    ck_answer(&f, "x:5 x:6 x:7 x:8 x:9 ", .sessions = &x, .session_count = 1, .from_seq = 5,
              .timeout_ms = 10);
    ck_answer(&f, "x:1 z:1 y:1 x:2 z:2 y:2 ", .limit = 6, .timeout_ms = 10);
    ck_answer(&f, "x:8 x:5 ", .sessions = &x, .session_count = 1, .types = two, .type_count = 1,
              .descending = true, .limit = 2, .timeout_ms = 10);
    const annal_filter all = {.timeout_ms = 10};
    ck_ok(annal_query_count(f.index, &all, &count, &lag, err));
    ck_assert_uint_eq(count, 17);
    ck_assert_uint_eq(lag.bytes, 0);
    sqlite3_close(stranger);
}
END_TEST

START_TEST(a_query_returns_events_byte_for_byte)
{
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    static const char data[] = "{ \"a\" : 1.50, \"a\":2, \"b\":\"\\ud800\" }";
    fixture_append_at(&f, "s", "x.y", data, START);
    ck_ok(annal_query_open(f.index, NULL, &query, err));
    ck_ok(annal_query_next(query, &session, &event, err));
    ck_assert_uint_eq(event.data.len, strlen(data));
    ck_assert_mem_eq(event.data.ptr, data, event.data.len);
    ck_assert_int_eq(event.ts_us, START);
    ck_assert_mem_eq(event.type.ptr, "x.y", 3);
    ck_assert_int_eq(annal_query_next(query, &session, &event, NULL), ANNAL_END);
    ck_assert_int_eq(annal_query_next(query, &session, &event, NULL), ANNAL_END);
    annal_query_close(query);
}
END_TEST

START_TEST(a_query_reports_a_line_damaged_after_indexing_and_returns_the_next_line)
{
    const annal_slice x = ANNAL_SLICE("x");
    fixture_append_many(&f, "x", 3, START);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    size_t length = 0;
    const char *path = tmpdir_path(&f.dir, "store/events/x.jsonl");
    char *journal = file_read(path, &length);
    char *at = strstr(strstr(journal, "\"seq\":2"), "something");
    *at = 'S';
    file_write(path, journal, length);
    free(journal);
    ck_answer(&f, "x:1 x:2! x:3 ", .sessions = &x, .session_count = 1);
    ck_sql(&f, "SELECT seq, data IS NULL FROM events", "1|0\n2|1\n3|0\n");
}
END_TEST

START_TEST(damage_older_than_the_index_is_reported_as_damage_newer_than_it)
{
    const annal_slice x = ANNAL_SLICE("x");
    fixture_append_many(&f, "x", 6, START);
    fixture_append_many(&f, "y", 1, START);
    size_t length = 0;
    const char *path = tmpdir_path(&f.dir, "store/events/x.jsonl");
    char *journal = file_read(path, &length);
    *strstr(strstr(journal, "\"seq\":2"), "something") = 'S';
    *strstr(strstr(journal, "\"seq\":3"), "something") = 'S';
    file_write(path, journal, length);
    free(journal);
    ck_told(&f, "x:1 x:4 x:5 x:6 x:2! x:3! ", .sessions = &x, .session_count = 1);
    ck_told(&f, "x:4 x:5 x:6 x:3! ", .sessions = &x, .session_count = 1, .from_seq = 3);
    ck_told(&f, "x:4 x:5 ", .sessions = &x, .session_count = 1, .from_seq = 4, .to_seq = 5);
    ck_told(&f, "x:1 ", .sessions = &x, .session_count = 1, .limit = 1);
    ck_told(&f, "x:6 x:5 ", .sessions = &x, .session_count = 1, .limit = 2, .descending = true);
    const annal_slice y = ANNAL_SLICE("y");
    ck_told(&f, "y:1 ", .sessions = &y, .session_count = 1);
}
END_TEST

/* Change event `seq`, whose text is "something". */
static void damage(const char *session, int seq)
{
    char place[40];
    size_t length = 0;
    snprintf(place, sizeof place, "store/events/%s.jsonl", session);
    const char *path = tmpdir_path(&f.dir, place);
    char *journal = file_read(path, &length);
    snprintf(place, sizeof place, "\"seq\":%d,", seq);
    *strstr(strstr(journal, place), "something") = 'S';
    file_write(path, journal, length);
    free(journal);
}

/* A query reads a range from the journal and, with as_indexed, by a SELECT. */
START_TEST(a_range_read_from_the_journal_equals_the_same_range_of_a_select)
{
    static const char *const names[] = {"x", "y", "z", "nobody"};
    fixture_append_many(&f, "x", 8, START);
    fixture_append_many(&f, "y", 8, START);
    damage("y", 3);
    damage("y", 4);
    ck_ok(annal_session_fork(f.store, ANNAL_SLICE("x"), 5, ANNAL_SLICE("z"), NULL, NULL, err));
    fixture_append_many(&f, "z", 2, START + 60 * SECOND);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    damage("x", 2);
    damage("x", 8);
    for (unsigned i = 0; i < 4 * 10 * 10 * 3; i++) {
        const annal_slice name = annal_slice_of(names[i % 4]);
        annal_filter filter = {.sessions = &name,
                               .session_count = 1,
                               .from_seq = i / 4 % 10,
                               .to_seq = i / 40 % 10 + 1,
                               .limit = i / 400};
        char *got = answer(&filter);
        filter.as_indexed = true;
        char *expected = answer(&filter);
        ck_assert_msg(strcmp(got, expected) == 0, "%s, %d to %d, limit %d: '%s', not '%s'",
                      names[i % 4], (int)filter.from_seq, (int)filter.to_seq, (int)filter.limit,
                      got, expected);
        free(got);
        free(expected);
    }
}
END_TEST

START_TEST(a_wrong_filter_is_refused)
{
    annal_query *query = NULL;
    const annal_slice bad = ANNAL_SLICE("../x"), nothing = {0};
    const annal_filter session = {.sessions = &bad, .session_count = 1};
    ck_assert_int_eq(annal_query_open(f.index, &session, &query, NULL), ANNAL_ERR_INVALID);
    const annal_filter type = {.types = &nothing, .type_count = 1};
    ck_assert_int_eq(annal_query_open(f.index, &type, &query, NULL), ANNAL_ERR_INVALID);
    const annal_slice zero = {"a.one\0*", 7};
    const annal_filter cut = {.types = &zero, .type_count = 1};
    ck_assert_int_eq(annal_query_open(f.index, &cut, &query, NULL), ANNAL_ERR_INVALID);
}
END_TEST

/* The plan of SQLite for a SELECT. */
static char *plan(const char *select)
{
    char sql[500];
    snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s", select);
    return fixture_sql(&f, sql);
}

/* The expression sees the event itself; limits count the events that it keeps. */
START_TEST(an_expression_filters_each_event)
{
    const annal_slice t = ANNAL_SLICE("t");
    fixture_append_at(&f, "t", "tool.called", "{\"tool\":\"bash\",\"n\":1}", START);
    fixture_append_at(&f, "t", "tool.called", "{\"tool\":\"read\",\"n\":2}", START + 1);
    fixture_append_at(&f, "u", "tool.called", "{\"tool\":\"bash\",\"n\":3}", START + 2);
    fixture_append_at(&f, "u", "tool.failed", "\"text\"", START + 3);
    ck_answer(&f, "t:1 u:1 ", .where = ANNAL_SLICE("data->>'$.tool' = 'bash'"));
    ck_answer(&f, "u:1 ", .where = ANNAL_SLICE("data->>'$.tool' = 'bash'"), .limit = 1,
              .descending = true);
    ck_answer(&f, "t:1 ", .where = ANNAL_SLICE("data->>'$.n' < 3"), .limit = 1);
    ck_answer(&f, "t:2 ", .where = ANNAL_SLICE("seq = 2 -- with a remark"), .sessions = &t,
              .session_count = 1);
    ck_answer(&f, "u:2 ",
              .where = ANNAL_SLICE("type GLOB '*.failed' AND session_id = 'u' AND "
                                   "data = '\"text\"' AND timestamp > '2026'"));
    ck_answer(&f, "t:1 t:2 u:1 u:2 ",
              .where = ANNAL_SLICE("session_id IN (SELECT id FROM sessions WHERE events = 2)"));
    ck_answer(&f, "", .where = ANNAL_SLICE("cause"));
    ck_answer(&f, "t:1 t:2 u:1 u:2 ", .where = ANNAL_SLICE("id IS NULL AND cause IS NULL"));
}
END_TEST

/* With as many types as a query merges, and with more. */
START_TEST(events_of_all_types_are_merged_by_time_without_a_sort)
{
    fixture_append_at(&f, "s", "b.two", "{}", START + 2);
    fixture_append_at(&f, "t", "a.one", "{}", START + 1);
    fixture_append_at(&f, "u", "c.three", "{}", START + 3);
    for (int many = 0; many < 2; many++) {
        ck_answer(&f, "t:1 s:1 u:1 ", .until_us = START + 10);
        ck_answer(&f, "u:1 s:1 t:1 ", .until_us = START + 10, .descending = true);
        ck_answer(&f, "s:1 u:1 ", .since_us = START + 2, .until_us = START + 10);
        ck_answer(&f, "t:1 ", .limit = 1);
        for (int i = 0; i < 40; i++) {
            char type[16];
            snprintf(type, sizeof type, "many.%d", i);
            fixture_append_at(&f, "v", type, "{}", START + 100 + i);
        }
    }
}
END_TEST

START_TEST(a_wrong_expression_is_refused)
{
    static const char *const wrong[] = {
        "nonsense = 1", "seq =",       "1) ; DELETE FROM sessions; --",
        "1; SELECT 1",  "(seq = 1",    "randomblob(1",
        "0) OR (1",     "seq LIMIT 1", "1 UNION SELECT 1"};
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_error why = {0};
    fixture_append_at(&f, "t", "a.one", "{}", START);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const annal_filter filter = {.where = annal_slice_of(wrong[i])};
        ck_assert_int_eq(annal_query_open(f.index, &filter, &query, &why), ANNAL_ERR_SQL);
        ck_assert_ptr_nonnull(strstr(why.message, "invalid expression in the filter: "));
    }
    const annal_filter fails = {.where = ANNAL_SLICE("json_extract(data, 'x')")};
    ck_ok(annal_query_open(f.index, &fails, &query, err));
    ck_assert_int_eq(annal_query_next(query, &session, &event, &why), ANNAL_ERR_SQL);
    ck_assert_ptr_nonnull(strstr(why.message, "event 1 of session 't'"));
    ck_assert_int_eq(annal_query_next(query, &session, &event, &why), ANNAL_END);
    annal_query_close(query);
}
END_TEST

START_TEST(the_order_of_commits_keeps_the_order_of_a_session_if_its_clock_goes_back)
{
    const annal_slice both[] = {ANNAL_SLICE("s"), ANNAL_SLICE("t")};
    fixture_append_at(&f, "s", "a.one", "{}", START + 5);
    fixture_append_at(&f, "s", "a.two", "{}", START + 1); /* the clock was set back */
    fixture_append_at(&f, "s", "a.one", "{}", START + 7);
    fixture_append_at(&f, "t", "a.one", "{}", START + 3);
    fixture_append_at(&f, "t", "a.one", "{}", START + 6);
    ck_answer(&f, "s:2 t:1 s:1 t:2 s:3 ", .limit = 0);
    ck_answer(&f, "t:1 s:1 s:2 t:2 s:3 ", .order = ANNAL_ORDER_COMMIT);
    ck_answer(&f, "s:3 t:2 s:2 s:1 t:1 ", .order = ANNAL_ORDER_COMMIT, .descending = true);
    ck_answer(&f, "t:1 s:1 ", .order = ANNAL_ORDER_COMMIT, .limit = 2, .sessions = both,
              .session_count = 2);
}
END_TEST

static int put_group(void *arg, annal_slice key, uint64_t events)
{
    char one[300];
    snprintf(one, sizeof one, "%.*s=%llu ", ANNAL_FMT(key), (unsigned long long)events);
    text_add(arg, one, strlen(one));
    return 0;
}

#define ck_groups(f, expected, by, ...)                                                            \
    do {                                                                                           \
        const annal_filter filter_ = {__VA_ARGS__};                                                \
        struct text text_ = {0};                                                                   \
        text_add(&text_, "", 0);                                                                   \
        ck_ok(annal_query_group_each((f)->index, &filter_, by, put_group, &text_, NULL, err));     \
        ck_assert_str_eq(text_.ptr, expected);                                                     \
        free(text_.ptr);                                                                           \
    } while (0)

/* From the counters, from the rows, and from the events themselves. */
START_TEST(counters_rows_and_events_give_the_same_counts_of_groups)
{
    const annal_slice one = ANNAL_SLICE("*.one"), all = ANNAL_SLICE("1"), s = ANNAL_SLICE("s");
    for (int i = 0; i < 5; i++)
        fixture_append_at(&f, "s", i % 2 == 0 ? "a.one" : "a.two", "{\"n\":1}",
                          START + i * 86400 * SECOND);
    fixture_append_at(&f, "t", "b.one", "{\"n\":2}", START);
    for (int from = 0; from < 3; from++) {
        const uint64_t rows = from == 1 ? 1 : 0; /* a filter that counters do not support */
        const annal_slice where = from == 2 ? all : (annal_slice){0};
        ck_groups(&f, "a.one=3 a.two=2 b.one=1 ", ANNAL_GROUP_TYPE, .from_seq = rows,
                  .where = where);
        ck_groups(&f, "s=3 t=1 ", ANNAL_GROUP_SESSION, .from_seq = rows, .where = where,
                  .types = &one, .type_count = 1);
        ck_groups(&f, "a.one=3 ", ANNAL_GROUP_TYPE, .from_seq = rows, .where = where,
                  .sessions = &s, .session_count = 1, .limit = 1);
        ck_groups(&f, "2026-01-06=2 2026-01-07=1 ", ANNAL_GROUP_DAY, .from_seq = rows,
                  .where = where, .limit = 2);
        ck_groups(&f, "2026-01-10=1 2026-01-09=1 ", ANNAL_GROUP_DAY, .from_seq = rows,
                  .where = where, .limit = 2, .descending = true);
    }
    ck_groups(&f, "t=1 ", ANNAL_GROUP_SESSION, .where = ANNAL_SLICE("data->>'$.n' = 2"));
}
END_TEST

START_TEST(no_query_needs_a_full_scan)
{
    static const char *const selects[] = {
        "SELECT seq FROM event_index WHERE session_id = 's' ORDER BY seq",
        "SELECT seq, type, timestamp FROM event_index WHERE session_id = 's' AND seq BETWEEN 5 "
        "AND 9 ORDER BY seq",
        "SELECT seq, timestamp FROM event_index WHERE session_id = 's' AND type = 'x' ORDER BY seq",
        "SELECT session_id, seq, type FROM event_index WHERE timestamp >= '2026' AND timestamp < "
        "'2027' ORDER BY timestamp",
        "SELECT session_id, seq, offset, length FROM event_index WHERE type = 'x'",
        "SELECT session_id, seq FROM event_index WHERE type = 'x' AND timestamp >= '2026'",
        "SELECT session_id, seq FROM event_index WHERE type GLOB 'x.*' AND timestamp >= '2026'",
        "SELECT seq, state FROM snapshots WHERE session_id = 's' AND seq <= 9 ORDER BY seq DESC "
        "LIMIT 1",
        "SELECT * FROM sessions WHERE status = 'idle' ORDER BY last_activity_at DESC LIMIT 9",
        "SELECT * FROM sessions WHERE flow_id = 'f'",
        "SELECT * FROM sessions ORDER BY last_activity_at DESC LIMIT 9",
        "SELECT * FROM turns WHERE session_id = 's' ORDER BY sequence",
    };
    fixture_append_many(&f, "s", 50, START);
    for (size_t i = 0; i < sizeof selects / sizeof *selects; i++) {
        char *got = plan(selects[i]);
        ck_assert_msg(strstr(got, "SEARCH") != NULL || strstr(got, "USING INDEX") != NULL, "%s: %s",
                      selects[i], got);
        free(got);
    }
    char *got = plan(selects[3]);
    ck_assert_ptr_nonnull(strstr(got, "COVERING INDEX"));
    ck_assert_ptr_nonnull(strstr(got, "ANY(type)"));
    free(got);
}
END_TEST

Suite *suite_query(void)
{
    Suite *suite = suite_create("query");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, events_of_a_single_session_are_ordered_by_seq);
    tcase_add_test(all, events_of_several_sessions_are_ordered_by_time);
    tcase_add_test(all, a_filter_of_types_accepts_names_and_patterns);
    tcase_add_test(all, since_is_included_and_until_is_not);
    tcase_add_test(all, an_answer_contains_every_event_appended_before_the_query);
    tcase_add_test(all, events_that_cannot_be_indexed_now_are_read_from_the_journals);
    tcase_add_test(all, a_query_returns_events_byte_for_byte);
    tcase_add_test(all, a_query_reports_a_line_damaged_after_indexing_and_returns_the_next_line);
    tcase_add_test(all, damage_older_than_the_index_is_reported_as_damage_newer_than_it);
    tcase_add_test(all, a_range_read_from_the_journal_equals_the_same_range_of_a_select);
    tcase_add_test(all, a_wrong_filter_is_refused);
    tcase_add_test(all, an_expression_filters_each_event);
    tcase_add_test(all, events_of_all_types_are_merged_by_time_without_a_sort);
    tcase_add_test(all, a_wrong_expression_is_refused);
    tcase_add_test(all, the_order_of_commits_keeps_the_order_of_a_session_if_its_clock_goes_back);
    tcase_add_test(all, counters_rows_and_events_give_the_same_counts_of_groups);
    tcase_add_test(all, no_query_needs_a_full_scan);
    return suite;
}
