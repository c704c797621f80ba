/* SPDX-License-Identifier: Apache-2.0 */
/* Forks in the index: rows hold a session's own events, queries cover its whole history. */
#include "index/sys/snapshot_rows.h"
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "index/index.h"
#include "journal/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000LL
#define START  (1767684240 * SECOND)

static void fork_at(const char *parent, uint64_t at_seq, const char *child)
{
    ck_ok(annal_session_fork(f.store, annal_slice_of(parent), at_seq, annal_slice_of(child), NULL,
                             NULL, err));
}

/* a has 6 events; b is a fork of a at 4 with two events; c is a fork of b at 5 without events. */
static void three_sessions(void)
{
    fixture_append_many(&f, "a", 6, START);
    fork_at("a", 4, "b");
    fixture_append_many(&f, "b", 2, START + 60 * SECOND);
    fork_at("b", 5, "c");
}

/* "session:seq " of every event of a filter. */
static void ck_answer(const char *expected, annal_filter filter)
{
    struct text text = {0};
    annal_query *query = NULL;
    annal_slice session;
    annal_event event;
    annal_status status;
    uint64_t count = 0, rows = 0;
    text_add(&text, "", 0);
    ck_ok(annal_query_open(f.index, &filter, &query, err));
    while ((status = annal_query_next(query, &session, &event, NULL)) != ANNAL_END) {
        char one[300];
        ck_assert_int_ge(status, 0);
        snprintf(one, sizeof one, "%.*s:%llu%s ", ANNAL_FMT(session), (unsigned long long)event.seq,
                 status == ANNAL_DAMAGE ? "!" : "");
        text_add(&text, one, strlen(one));
        rows += status == ANNAL_OK;
    }
    annal_query_close(query);
    ck_assert_str_eq(text.ptr, expected);
    free(text.ptr);
    ck_ok(annal_query_count(f.index, &filter, &count, NULL, err));
    ck_assert_uint_eq(count, rows);
}

START_TEST(a_query_of_a_fork_covers_its_whole_history)
{
    const annal_slice b = ANNAL_SLICE("b"), c = ANNAL_SLICE("c");
    const annal_slice both[] = {ANNAL_SLICE("a"), ANNAL_SLICE("c")};
    const annal_slice one[] = {ANNAL_SLICE("a.one")};
    three_sessions();
    for (int indexed = 0; indexed < 2; indexed++) { /* before and after it is indexed */
        ck_answer("b:1 b:2 b:3 b:4 b:5 b:6 ", (annal_filter){.sessions = &b, .session_count = 1});
        ck_answer(
            "c:5 c:4 ",
            (annal_filter){.sessions = &c, .session_count = 1, .descending = true, .limit = 2});
        ck_answer("c:3 c:4 c:5 ",
                  (annal_filter){.sessions = &c, .session_count = 1, .from_seq = 3});
        ck_answer(
            "c:1 c:4 c:5 ",
            (annal_filter){.sessions = &c, .session_count = 1, .types = one, .type_count = 1});
        ck_answer("a:1 c:1 a:2 c:2 a:3 c:3 a:4 c:4 a:5 a:6 c:5 ",
                  (annal_filter){.sessions = both, .session_count = 2});
        ck_answer("a:1 a:2 a:3 a:4 a:5 a:6 b:5 b:6 ", (annal_filter){.limit = 20});
        ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    }
}
END_TEST

START_TEST(each_event_of_a_fork_has_a_single_row)
{
    fixture_append_session(&f, "a");
    fork_at("a", 5, "b");
    fixture_append(&f, "b", "agent.turn.usage", "{\"input_tokens\":7}");
    ck_sql(&f, "SELECT session_id, min(seq), max(seq), count(*) FROM event_index GROUP BY 1",
           "a|1|8|8\nb|6|6|1\n");
    ck_sql(&f, "SELECT id, events, input_tokens FROM sessions WHERE id = 'b'", "b|1|7\n");
    ck_sql(&f, "SELECT session_id, count(*) FROM events GROUP BY 1", "a|8\nb|1\n");
    ck_sql(&f, "SELECT session_id, origin, count(*) FROM history GROUP BY 1, 2 ORDER BY 1, 2",
           "a|a|8\nb|a|5\nb|b|1\n");
    ck_sql(&f,
           "SELECT seq, type, journal FROM event_history WHERE session_id = 'b' AND seq > 4 "
           "ORDER BY seq",
           "5|turn.started|a\n6|agent.turn.usage|b\n");
}
END_TEST

START_TEST(the_tables_contain_a_fork_before_its_first_event)
{
    annal_session_info info;
    char expected[200], created[ANNAL_TIME_BYTES];
    three_sessions();
    ck_ok(annal_session_info_get(f.store, ANNAL_SLICE("c"), &info, err));
    annal_time_format(info.created_us, created);
    snprintf(expected, sizeof expected, "b|a|4\nc|b|5\n");
    ck_sql(&f, "SELECT session_id, parent_session_id, forked_at_seq FROM forks", expected);
    snprintf(expected, sizeof expected, "c|0|%s|%s\n", created, created);
    ck_sql(&f, "SELECT id, events, created_at, last_activity_at FROM sessions WHERE id = 'c'",
           expected);
    ck_sql(&f, "SELECT * FROM lineage WHERE session_id = 'c' ORDER BY depth",
           "c|c|6|9223372036854775807|0\nc|b|5|5|1\nc|a|1|4|2\n");
    ck_sql(&f, "SELECT * FROM lineage WHERE session_id = 'a'", "a|a|1|9223372036854775807|0\n");
}
END_TEST

START_TEST(the_tables_of_forks_equal_a_rebuild)
{
    three_sessions();
    fixture_append_many(&f, "c", 1, START + 99 * SECOND);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    char *before = fixture_dump(&f);
    ck_ok(annal_index_rebuild(f.index, NULL, err));
    char *after = fixture_dump(&f);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("c"), NULL, err));
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_sql(&f, "SELECT session_id FROM forks", "b\n");
    ck_sql(&f, "SELECT id FROM sessions ORDER BY 1", "a\nb\n");
}
END_TEST

START_TEST(a_query_of_a_fork_reports_a_missing_parent)
{
    annal_error why = {0};
    annal_query *query = NULL;
    const annal_slice b = ANNAL_SLICE("b");
    three_sessions();
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/events/a.jsonl")), 0);
    ck_assert_int_eq(annal_query_open(f.index, &(annal_filter){.sessions = &b, .session_count = 1},
                                      &query, &why),
                     ANNAL_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why.message, "'b' is a fork of session 'a'"));
    ck_answer("b:5 b:6 ", (annal_filter){.limit = 9});
}
END_TEST

/*
 * Write a journal without syncs, as successive writers would: events from first_seq on, after
 * event first_seq - 1 of parent, whose h is fork_h. Returns the last h.
 */
static uint64_t make_journal(const char *id, const char *parent, uint64_t fork_h,
                             uint64_t first_seq, unsigned count, int64_t ts_us)
{
    char path[64];
    struct buf out = {0};
    uint64_t h = 0;
    snprintf(path, sizeof path, "store/events/%s.jsonl", id);
    const struct frame_header header = {.session = annal_slice_of(id),
                                        .file = {(uint8_t)first_seq, 1},
                                        .created_us = START,
                                        .fork = annal_slice_of(parent),
                                        .fork_seq = first_seq - 1,
                                        .fork_h = fork_h};
    const annal_draft draft = {.type = ANNAL_SLICE("a.one"), .data = ANNAL_SLICE("1")};
    ck_assert_int_eq(annal__codec_json.encode_header(&out, &header, &h), ANNAL_OK);
    for (unsigned i = 0; i < count; i++) {
        const struct frame_place place = {
            .seq = first_seq + i, .ts_us = ts_us + i, .offset = out.len, .h_before = h};
        ck_assert_int_eq(annal__codec_json.encode_event(&out, &draft, &place, &h), ANNAL_OK);
    }
    file_write(tmpdir_path(&f.dir, path), out.ptr, out.len);
    annal__buf_done(&out);
    return h;
}

/* "s300:1 s300:2 " to the last event, or backwards. */
static char *numbered(const char *session, int last, bool down)
{
    struct text text = {0};
    for (int i = 1; i <= last; i++) {
        char one[40];
        snprintf(one, sizeof one, "%s:%d ", session, down ? last + 1 - i : i);
        text_add(&text, one, strlen(one));
    }
    return text.ptr;
}

START_TEST(a_history_of_three_hundred_forks_is_read_whole_and_in_order)
{
    char id[16], parent[16];
    uint64_t h = make_journal("s0", "", 0, 1, 1, START);
    for (int i = 1; i <= 300; i++) { /* by seq, with any time */
        snprintf(parent, sizeof parent, "s%d", i - 1);
        snprintf(id, sizeof id, "s%d", i);
        h = make_journal(id, parent, h, (uint64_t)i + 1, 1, START - i * SECOND);
    }
    const annal_slice last = ANNAL_SLICE("s300");
    char *up = numbered("s300", 301, false), *down = numbered("s300", 301, true);
    for (int indexed = 0; indexed < 2; indexed++) {
        ck_answer(up, (annal_filter){.sessions = &last, .session_count = 1});
        ck_answer(down, (annal_filter){.sessions = &last, .session_count = 1, .descending = true});
        ck_answer(
            "s300:151 s300:152 ",
            (annal_filter){.sessions = &last, .session_count = 1, .from_seq = 151, .limit = 2});
        ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    }
    free(up);
    free(down);
}
END_TEST

START_TEST(a_query_may_cover_150_forks_of_a_session)
{
    struct text text = {0};
    char ids[150][16];
    annal_slice sessions[150];
    uint64_t h = make_journal("p", "", 0, 1, 2, START);
    for (int i = 0; i < 150; i++) {
        snprintf(ids[i], sizeof ids[i], "f%03d", i);
        sessions[i] = annal_slice_of(ids[i]);
        make_journal(ids[i], "p", h, 3, 1, START + 60 * SECOND);
    }
    for (int seq = 1; seq <= 3; seq++) { /* by time, with equal times by session */
        for (int i = 0; i < 150; i++) {
            char one[40];
            snprintf(one, sizeof one, "%.15s:%d ", ids[i], seq);
            text_add(&text, one, strlen(one));
        }
    }
    for (int indexed = 0; indexed < 2; indexed++) {
        ck_answer(text.ptr, (annal_filter){.sessions = sessions, .session_count = 150});
        ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    }
    free(text.ptr);
}
END_TEST

static int ignore_row(void *arg, const annal_row *row)
{
    (void)arg;
    (void)row;
    return 0;
}

START_TEST(a_query_of_a_fork_reports_a_parent_with_another_history)
{
    annal_error why = {0};
    annal_query *query = NULL;
    uint64_t count = 0;
    const annal_slice b = ANNAL_SLICE("b");
    const annal_filter filter = {.sessions = &b, .session_count = 1};
    three_sessions();
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    const annal_slice snapshot = ANNAL_SLICE("what no journal gives back as it was");
    ck_ok(annal__snapshot_rows_put(f.index, ANNAL_SLICE("b"), 6, snapshot, START, 0,
                                   (annal_slice){0}, 1000, err));
    make_journal("a", "", 0, 1, 6, START);
    ck_assert_int_eq(annal_query_open(f.index, &filter, &query, &why), ANNAL_ERR_CORRUPT);
    ck_assert_str_eq(why.message, "session 'b' is a fork of session 'a' at event 4, but the "
                                  "parent's events up to there were replaced after the fork");
    ck_assert_int_eq(annal_query_count(f.index, &filter, &count, NULL, NULL), ANNAL_ERR_CORRUPT);
    ck_sql(&f, "SELECT count(*) FROM snapshots", "1\n"); /* the fault is not in the index */
    ck_answer("a:1 a:2 a:3 a:4 a:5 a:6 b:5 b:6 ", (annal_filter){.limit = 9});
    static const annal_slice history = ANNAL_SLICE("SELECT * FROM history WHERE session_id = 'b'");
    static const annal_slice row = ANNAL_SLICE("SELECT data FROM history");
    ck_assert_int_lt(annal_index_sql(f.index, history, NULL, ignore_row, NULL, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.message,
                                 "'b' is a fork of session 'a' at event 4, but the parent's "
                                 "events up to there were replaced after the fork"));
    ck_assert_int_lt(annal_index_sql(f.index, row, NULL, ignore_row, NULL, NULL), 0);
    ck_sql(&f, "SELECT count(*) FROM history WHERE session_id = 'a'", "6\n");
}
END_TEST

Suite *suite_history(void)
{
    Suite *suite = suite_create("history");
    TCase *tcase = suite_case(suite, "history", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_query_of_a_fork_covers_its_whole_history);
    tcase_add_test(tcase, each_event_of_a_fork_has_a_single_row);
    tcase_add_test(tcase, the_tables_contain_a_fork_before_its_first_event);
    tcase_add_test(tcase, the_tables_of_forks_equal_a_rebuild);
    tcase_add_test(tcase, a_query_of_a_fork_reports_a_missing_parent);
    tcase_add_test(tcase, a_query_of_a_fork_reports_a_parent_with_another_history);
    tcase_add_test(tcase, a_history_of_three_hundred_forks_is_read_whole_and_in_order);
    tcase_add_test(tcase, a_query_may_cover_150_forks_of_a_session);
    return suite;
}
