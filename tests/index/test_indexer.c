/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/databases.h"
#include "index/sys/snapshot_rows.h"
#include "index/sys/state.h"
#include "journal/sys/delete.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"

#include "tests/support/journals.h"
#include "tests/support/random.h"

#include "index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND 1000000LL
#define START  (1767684240 * SECOND)

static void catch_up(const char *session)
{
    ck_ok(annal_index_catch_up(f.index, annal_slice_of(session), NULL, err));
}

static const char *journal_path(const char *session)
{
    char name[300];
    snprintf(name, sizeof name, "store/events/%s.jsonl", session);
    return tmpdir_path(&f.dir, name);
}

/* Assert that the index equals a rebuild. */
static void check_equals_rebuild(void)
{
    char *before = fixture_dump(&f);
    ck_ok(annal_index_rebuild(f.index, NULL, err));
    char *after = fixture_dump(&f);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}

START_TEST(every_event_has_a_row_with_its_offset_and_length)
{
    fixture_append_session(&f, "s1");
    ck_sql(&f, "SELECT seq, type FROM event_index WHERE session_id = 's1' ORDER BY seq",
           "1|session.created\n2|turn.started\n3|agent.turn.usage\n4|turn.completed\n"
           "5|turn.started\n6|tool.called\n7|turn.completed\n8|session.ended\n");
    size_t length = 0;
    char *journal = file_read(journal_path("s1"), &length);
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT SUM(length) + MIN(offset) = %zu AND MAX(offset + length) = %zu "
             "FROM event_index",
             length, length);
    ck_sql(&f, sql, "1\n");
    free(journal);
}
END_TEST

START_TEST(sessions_and_turns_follow_the_events)
{
    fixture_append_session(&f, "s1");
    ck_sql(&f,
           "SELECT id, agent_id, model, status, created_at, last_activity_at, total_turns, "
           "total_tokens, input_tokens, cached_input_tokens, total_cost_usd, events FROM sessions",
           "s1|coder|m-1|ended|2026-01-06T07:24:00.000000Z|2026-01-06T07:24:07.000000Z|2|122|110|"
           "60|0.25|8\n");
    ck_sql(&f, "SELECT id, sequence, status, input_tokens FROM turns ORDER BY sequence",
           "s1:t1|1|completed|100\ns1:t2|2|completed|10\n");
}
END_TEST

START_TEST(the_same_turn_id_in_two_sessions_is_two_turns)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    ck_sql(&f, "SELECT COUNT(*), COUNT(DISTINCT turn_id) FROM turns", "4|2\n");
}
END_TEST

START_TEST(catching_up_on_one_session_leaves_the_others)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    catch_up("s2");
    struct text text = {0};
    const annal_sql_options options = {.as_indexed = true};
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT DISTINCT session_id FROM event_index"),
                          &options, text_row, &text, err));
    ck_assert_str_eq(text.ptr, "s2\n");
    free(text.ptr);
}
END_TEST

START_TEST(an_index_grown_step_by_step_equals_a_rebuild)
{
    struct random random = random_init(20261120);
    for (int step = 0; step < 60; step++) {
        char session[20], turn[80];
        snprintf(session, sizeof session, "s%d", (int)random_below(&random, 5));
        snprintf(turn, sizeof turn, "{\"turn_id\":\"t%d\",\"input_tokens\":%d,\"cost_usd\":0.3}",
                 (int)random_below(&random, 4), (int)random_below(&random, 1000));
        static const char *const types[] = {"turn.started",     "turn.completed",
                                            "agent.turn.usage", "session.updated",
                                            "session.created",  "other.type"};
        for (uint64_t i = random_below(&random, 8); i > 0; i--)
            fixture_append_at(&f, session, types[random_below(&random, 6)], turn,
                              START + (int64_t)random_below(&random, 1000) * SECOND);
        if (random_below(&random, 3) == 0)
            catch_up(random_below(&random, 2) == 0 ? "" : session);
        if (random_below(&random, 15) == 0) {
            unlink(tmpdir_path(&f.dir, "store/sessions.db"));
            if (random_below(&random, 2) == 0) {
                unlink(tmpdir_path(&f.dir, "store/sessions.db-wal"));
                unlink(tmpdir_path(&f.dir, "store/sessions.db-shm"));
            }
        }
    }
    check_equals_rebuild();
}
END_TEST

START_TEST(the_state_of_a_session_equals_its_rows)
{
    static const char *const selects[] = {"SELECT * FROM sessions WHERE id = 's1'",
                                          "SELECT * FROM turns WHERE session_id = 's1'"};
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    fixture_append_session(&f, "s1");
    catch_up("");
    fixture_append_session(&f, "s1");
    ck_ok(annal__state_new(ANNAL_SLICE("s1"), NULL, 0, &state, err));
    ck_ok(annal_cursor_open(f.store, ANNAL_SLICE("s1"), 1, &cursor, err));
    while (annal_cursor_next(cursor, &event, NULL) == ANNAL_OK)
        ck_ok(annal_state_apply(state, &event, err));
    for (int i = 0; i < 2; i++) {
        struct text text = {0};
        ck_ok(annal_state_sql(state, annal_slice_of(selects[i]), NULL, text_row, &text, err));
        ck_sql(&f, selects[i], text.ptr);
        free(text.ptr);
    }
    annal_cursor_close(cursor);
    annal_state_free(state);
}
END_TEST

START_TEST(a_full_disk_costs_no_answer)
{
    annal_lag lag = {0};
    uint64_t count = 0;
    fixture_append_session(&f, "s1");
    catch_up("");
    ck_ok(annal__derived_begin(&f.index->derived, 0, err));
    ck_assert_int_eq(
        sqlite3_exec(f.index->derived.db, "PRAGMA max_page_count = 1", NULL, NULL, NULL),
        SQLITE_OK); /* no further page */
    ck_ok(annal__derived_end(&f.index->derived, true, err));
    fixture_append_many(&f, "s2", 3000, START);
    struct text text = {0};
    const annal_sql_options options = {.out_lag = &lag};
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT COUNT(*) FROM event_index"), &options,
                          text_row, &text, err));
    ck_assert_str_eq(text.ptr, "3008\n");
    free(text.ptr);
    ck_assert_uint_eq(lag.bytes, 0);
    fixture_reopen(&f, NULL); /* a new connection has no limit */
    ck_ok(annal_query_count(f.index, NULL, &count, &lag, err));
    ck_assert_uint_eq(count, 3008);
    check_equals_rebuild();
}
END_TEST

START_TEST(a_full_transaction_continues_in_the_next)
{
    fixture_append_many(&f, "s", 60000, START); /* more than a transaction holds */
    fixture_append_session(&f, "t");
    ck_sql(&f, "SELECT id, events FROM sessions ORDER BY id", "s|60000\nt|8\n");
    ck_sql(&f, "SELECT COUNT(*), MAX(seq) FROM event_index WHERE session_id = 's'",
           "60000|60000\n");
}
END_TEST

START_TEST(long_sessions_take_turns)
{
    fixture_append_many(&f, "s", 1500, START);
    fixture_append_many(&f, "t", 1700, START);
    ck_sql(&f, "SELECT session_id, COUNT(*), MIN(seq), MAX(seq) FROM event_index GROUP BY 1",
           "s|1500|1|1500\nt|1700|1|1700\n");
    ck_sql(&f, "SELECT id, events FROM sessions ORDER BY id", "s|1500\nt|1700\n");
    ck_sql(&f,
           "SELECT (SELECT MIN(rowid) FROM event_index WHERE session_id = 't') < "
           "(SELECT MAX(rowid) FROM event_index WHERE session_id = 's')",
           "1\n");
}
END_TEST

static int stop_at_once(void *arg, const annal_index_progress *progress)
{
    ck_assert_uint_le(progress->bytes_done, progress->bytes_total);
    *(uint64_t *)arg = progress->events;
    return 1;
}

START_TEST(a_progress_callback_can_stop_indexing_and_indexed_rows_stay)
{
    uint64_t done = 0;
    fixture_append_many(&f, "s", 60000, START);
    const annal_catch_up_options options = {.progress = stop_at_once, .arg = &done};
    ck_assert_int_eq(annal_index_catch_up(f.index, (annal_slice){0}, &options, NULL), ANNAL_END);
    ck_assert_uint_gt(done, 0);
    uint64_t count = 0;
    const annal_filter as_indexed = {.as_indexed = true};
    ck_ok(annal_query_count(f.index, &as_indexed, &count, NULL, err));
    ck_assert_uint_eq(count, done);
}
END_TEST

START_TEST(a_replaced_journal_is_indexed_again_automatically)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    catch_up("");
    ck_ok(annal__snapshot_rows_put(f.index, ANNAL_SLICE("s1"), 3, ANNAL_SLICE("x"), 0, 0,
                                   (annal_slice){0}, 0, err));
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    unlink(journal_path("s1"));
    ck_ok(annal_store_open(f.path, &(annal_store_options){.create = true, .no_keeper = true},
                           &f.store, err));
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    for (int i = 0; i < 30; i++)
        fixture_append(&f, "s1", "new.one", "{}");
    ck_sql(&f, "SELECT DISTINCT type FROM event_index WHERE session_id = 's1'", "new.one\n");
    ck_sql(&f, "SELECT id, events, total_turns FROM sessions ORDER BY id", "s1|30|0\ns2|8|2\n");
    ck_sql(&f, "SELECT COUNT(*) FROM snapshots", "0\n");
    check_equals_rebuild();
}
END_TEST

/* The journal of another process does not distinguish cached from durable events, so the index has
 * both. */
START_TEST(an_index_ahead_of_its_journal_after_a_power_cut_is_repaired)
{
    static const uint8_t boot[16] = "another boot";
    const struct seams seams = {&annal__system_io, &annal__system_clock, boot};
    fixture_append_session(&f, "s2");
    append_numbers(f.store, "s1", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(f.store, "s1", 4, 9, ANNAL_LEVEL_OS);
    catch_up("");
    ck_ok(annal__snapshot_rows_put(f.index, ANNAL_SLICE("s1"), 8, ANNAL_SLICE("x"), 0, 0,
                                   (annal_slice){0}, 0, err));
    ck_sql(&f, "SELECT COUNT(*) FROM event_index WHERE session_id = 's1'", "9\n");
    annal_index_close(f.index);
    store_abandon(f.store);
    size_t length;
    char *bytes = file_read(journal_path("s1"), &length);
    memset(bytes + length - 300, 0, 150); /* of the last three events */
    file_write(journal_path("s1"), bytes, length);
    free(bytes);

    f.store = store_open_seams(f.path, &seams);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    catch_up("");
    char *left = fixture_sql(&f, "SELECT COUNT(*) FROM event_index WHERE session_id = 's1'");
    uint64_t last = strtoull(left, NULL, 10);
    free(left);
    ck_assert(last >= 3 && last < 9);
    ck_sql(&f, "SELECT COUNT(*) FROM snapshots", "0\n");
    append_numbers(f.store, "s1", last + 1, 12, ANNAL_LEVEL_OS);
    ck_numbers(f.store, "s1", 12);
    ck_sql(&f, "SELECT COUNT(*), MAX(seq) FROM event_index WHERE session_id = 's1'", "12|12\n");
    ck_sql(&f, "SELECT id, events FROM sessions WHERE id = 's2'", "s2|8\n");
    check_equals_rebuild();
}
END_TEST

START_TEST(a_deleted_session_leaves_the_tables_and_a_new_one_is_indexed_afresh)
{
    fixture_append_many(&f, "s", 5, 1000000);
    fixture_append_many(&f, "t", 2, 1000000);
    ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
    ck_ok(annal__replace_delete(f.store, ANNAL_SLICE("s"), NULL, err));
    /* In the other round, the next catch-up finds a journal with other first events. */
    if (_i == 0) {
        ck_ok(annal_index_catch_up(f.index, (annal_slice){0}, NULL, err));
        ck_sql(&f, "SELECT session_id, count(*) FROM event_index GROUP BY 1", "t|2\n");
    }
    fixture_append_many(&f, "s", 5, 9000000);
    ck_ok(annal_index_catch_up(f.index, ANNAL_SLICE("s"), NULL, err));
    ck_sql(&f, "SELECT count(*), min(timestamp) FROM event_index WHERE session_id = 's'",
           "5|1970-01-01T00:00:09.000000Z\n");
}
END_TEST

START_TEST(a_session_without_its_journal_leaves_the_tables)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    fixture_append_session(&f, "s3");
    catch_up("");
    unlink(journal_path("s2"));
    unlink(journal_path("s3"));
    catch_up("s3");
    struct text text = {0};
    const annal_sql_options options = {.as_indexed = true};
    ck_ok(annal_index_sql(f.index, ANNAL_SLICE("SELECT id FROM sessions"), &options, text_row,
                          &text, err));
    ck_assert_str_eq(text.ptr, "s1\ns2\n");
    free(text.ptr);
    ck_sql(&f, "SELECT id FROM sessions", "s1\n");
    ck_sql(&f, "SELECT COUNT(*) FROM turns", "2\n");
    check_equals_rebuild();
}
END_TEST

/* Flip one byte inside the payload of event seq. */
static void damage(const char *session, const char *at_text)
{
    size_t length = 0;
    const char *path = journal_path(session);
    char *journal = file_read(path, &length);
    char *at = strstr(journal, at_text);
    ck_assert_ptr_nonnull(at);
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    fseek(file, at - journal, SEEK_SET);
    fputc(*at ^ 1, file);
    fclose(file);
    free(journal);
}

struct findings {
    unsigned count;
    uint64_t seq;
    char kind[20];
    char what[200];
};

static int note_finding(void *arg, const annal_index_finding *finding)
{
    struct findings *findings = arg;
    findings->count++;
    findings->seq = finding->seq;
    snprintf(findings->kind, sizeof findings->kind, "%.*s", ANNAL_FMT(finding->kind));
    snprintf(findings->what, sizeof findings->what, "%.*s", ANNAL_FMT(finding->what));
    return 0;
}

START_TEST(damage_costs_its_line_and_is_kept_as_a_finding)
{
    struct findings findings = {0};
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    damage("s1", "shell");
    ck_sql(&f, "SELECT COUNT(*), COUNT(DISTINCT session_id) FROM event_index", "15|2\n");
    ck_sql(&f, "SELECT seq FROM event_index WHERE type = 'tool.called' AND session_id = 's1'", "");
    ck_ok(annal_index_finding_each(f.index, (annal_slice){0}, note_finding, &findings, err));
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_uint_eq(findings.seq, 6);
    ck_assert_str_eq(findings.kind, "damage");
    check_equals_rebuild();
}
END_TEST

START_TEST(events_are_indexed_even_if_a_handler_fails_on_their_payload)
{
    struct findings findings = {0};
    fixture_append(&f, "s", "x.before", "{}");
    catch_up("");
    /* A trigger fails the handler; no payload can. */
    ck_ok(annal__derived_begin(&f.index->derived, 0, err));
    ck_assert_int_eq(sqlite3_exec(f.index->derived.db,
                                  "CREATE TEMP TRIGGER no AFTER INSERT ON main.turns BEGIN "
                                  "SELECT RAISE(ABORT, 'no turns today'); END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    ck_ok(annal__derived_end(&f.index->derived, true, err));
    fixture_append(&f, "s", "turn.started", "{\"turn_id\":\"t\"}");
    fixture_append(&f, "s", "x.after", "{}");
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "3\n");
    ck_sql(&f, "SELECT events, total_turns FROM sessions", "3|0\n");
    ck_ok(annal_index_finding_each(f.index, ANNAL_SLICE("s"), note_finding, &findings, err));
    ck_assert_uint_eq(findings.count, 1);
    ck_assert_uint_eq(findings.seq, 2);
    ck_assert_str_eq(findings.kind, "pack");
    ck_assert_str_eq(findings.what, "turn.started: no turns today");
}
END_TEST

static int refuse_commit(void *count)
{
    ++*(unsigned *)count;
    return 1;
}

START_TEST(rows_whose_commit_failed_are_indexed_again)
{
    unsigned refused = 0;
    fixture_append(&f, "s", "x.before", "{}");
    catch_up("");
    fixture_append(&f, "s", "x.after", "{}");
    sqlite3_commit_hook(f.index->derived.db, refuse_commit, &refused);
    ck_assert_int_lt(annal_index_catch_up(f.index, ANNAL_SLICE("s"), NULL, NULL), 0);
    ck_assert_uint_gt(refused, 0);
    sqlite3_commit_hook(f.index->derived.db, NULL, NULL);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "2\n");
}
END_TEST

START_TEST(an_unreadable_journal_costs_no_other_session)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s3");
    ck_assert_int_eq(symlink("s1.jsonl", journal_path("s2")), 0); /* links are not followed */
    annal_error err = {0};
    ck_assert_int_lt(annal_index_catch_up(f.index, ANNAL_SLICE("s2"), NULL, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.message, "s2"));
    ck_sql(&f, "SELECT id, events FROM sessions ORDER BY id", "s1|8\ns3|8\n");
    fixture_append_session(&f, "s3");
    ck_sql(&f, "SELECT id, events FROM sessions ORDER BY id", "s1|8\ns3|16\n");
}
END_TEST

static int note_lag(void *arg, const annal_index_lag *lag)
{
    *(annal_index_lag *)arg = *lag;
    return 0;
}

START_TEST(a_journal_without_a_valid_line_costs_no_further_transaction)
{
    fixture_append_session(&f, "s1");
    FILE *file = fopen(journal_path("junk"), "w");
    ck_assert_ptr_nonnull(file);
    fputs("no header\nno event\n", file);
    fclose(file);
    catch_up("");
    char *before = fixture_sql(&f, "SELECT commits FROM _stamp");
    catch_up("");
    ck_sql(&f, "SELECT commits FROM _stamp", before);
    ck_sql(&f, "SELECT COUNT(*) FROM event_index", "8\n");
    free(before);
}
END_TEST

START_TEST(lag_each_reports_the_lag_of_a_session)
{
    annal_index_lag lag = {0};
    fixture_append_session(&f, "s1");
    ck_ok(annal_index_lag_each(f.index, (annal_slice){0}, note_lag, &lag, err));
    ck_assert_uint_eq(lag.journal_seq, 8);
    ck_assert_uint_eq(lag.indexed_seq, 0);
    ck_assert_uint_eq(lag.indexed_bytes, 0);
    catch_up("");
    ck_ok(annal_index_lag_each(f.index, ANNAL_SLICE("s1"), note_lag, &lag, err));
    ck_assert_uint_eq(lag.indexed_seq, 8);
    ck_assert_uint_eq(lag.indexed_bytes, lag.journal_bytes);
    ck_assert_int_eq(annal_index_lag_each(f.index, ANNAL_SLICE("none"), note_lag, &lag, NULL),
                     ANNAL_ERR_NOTFOUND);
}
END_TEST

static int note_count(void *arg, annal_slice type, uint64_t n)
{
    char text[100];
    snprintf(text, sizeof text, "%.*s=%llu ", ANNAL_FMT(type), (unsigned long long)n);
    text_add(arg, text, strlen(text));
    return 0;
}

START_TEST(events_are_counted_by_type)
{
    struct text text = {0};
    fixture_append_many(&f, "s1", 10, START);
    fixture_append_many(&f, "s2", 3, START);
    catch_up("");
    ck_ok(annal__reader_counts(f.index, ANNAL_SLICE("s1"), note_count, &text, err));
    ck_ok(annal__reader_counts(f.index, (annal_slice){0}, note_count, &text, err));
    ck_assert_str_eq(text.ptr, "a.one=4 a.two=3 b.one=3 a.one=5 a.two=4 b.one=4 ");
    free(text.ptr);
}
END_TEST

static uint64_t indexed(void)
{
    uint64_t count = 0;
    const annal_filter as_indexed = {.as_indexed = true};
    ck_ok(annal_query_count(f.index, &as_indexed, &count, NULL, err));
    return count;
}

START_TEST(a_following_index_catches_up_without_a_reader)
{
    annal_index_close(f.index);
    ck_ok(annal_store_close(f.store, err));
    ck_ok(annal_store_open(f.path, NULL, &f.store, err)); /* with a keeper */
    ck_ok(annal_index_open(f.store, &(annal_index_options){.follow = true}, &f.index, err));
    fixture_append_session(&f, "s1");
    for (int i = 0; i < 500 && indexed() < 8; i++)
        usleep(10000);
    ck_assert_uint_eq(indexed(), 8);
    fixture_append_session(&f, "s2");
    fixture_reopen(&f, NULL); /* closing the index runs the task a last time */
    ck_assert_uint_eq(indexed(), 16);
}
END_TEST

START_TEST(a_task_that_finds_the_lock_taken_runs_again)
{
    annal_index *other = NULL;
    ck_ok(annal_index_open(f.store, NULL, &other, err));
    fixture_append_session(&f, "s1");
    ck_ok(annal__derived_begin(&f.index->derived, 0, err));
    ck_assert_int_eq(annal__index_follow(other, NULL), ANNAL_END);
    ck_ok(annal__derived_end(&f.index->derived, true, err));
    ck_assert_uint_eq(indexed(), 0);
    ck_ok(annal__index_follow(other, err));
    ck_assert_uint_eq(indexed(), 8);
    annal_index_close(other);
}
END_TEST

START_TEST(a_task_pauses_for_a_due_checkpoint_and_continues_after_it)
{
    fixture_append_session(&f, "s1");
    fixture_append_session(&f, "s2");
    f.store->commit.full = f.store->commit.released + 1;
    ck_assert_int_eq(annal__index_follow(f.index, NULL), ANNAL_END);
    ck_assert_uint_eq(indexed(), 8);
    ck_assert(f.index->lags);
    f.store->commit.full = f.store->commit.released;
    ck_ok(annal__index_follow(f.index, err));
    ck_assert_uint_eq(indexed(), 16);
    ck_assert(!f.index->lags);
}
END_TEST

/* ---- Many sessions ---- */

static unsigned measured;  /* number of journals that were examined */
static bool loses_changes; /* whether the kernel loses the next change */

static int count_measure(void *arg, const char *path, uid_t user, bool *out_regular,
                         uint64_t *out_bytes)
{
    measured++;
    return annal__system_io.measure(arg, path, user, out_regular, out_bytes);
}

static int lose_changes(void *arg, int fd, io_list_fn fn, void *fn_arg)
{
    int result = annal__system_io.changes(arg, fd, fn, fn_arg);
    return loses_changes ? -1 : result;
}

/* Assert the number of sessions, and whether all journals were examined for the answer. */
static void check_sessions(const char *count, bool examines_all)
{
    measured = 0;
    ck_sql(&f, "SELECT count(*) FROM sessions", count);
    ck_assert_uint_eq(measured > 0, examines_all);
}

START_TEST(only_changed_journals_of_many_are_examined_again)
{
    static struct io io; /* the store is closed after the test */
    io = annal__system_io;
    io.measure = count_measure;
    io.changes = lose_changes;
    const struct seams seams = {.io = &io, .clock = &annal__system_clock};
    annal_store *other = f.store;
    for (unsigned i = 0; i < WATCHED_LEAST; i++) {
        char session[20];
        snprintf(session, sizeof session, "s%u", i);
        append_numbers(other, session, 1, 1, ANNAL_LEVEL_OS);
    }
    annal_index_close(f.index);
    f.store = store_open_seams(f.path, &seams);
    ck_ok(annal_index_open(f.store, NULL, &f.index, err));
    check_sessions("256\n", true);
    check_sessions("256\n", true); /* from here on the journals are watched */
    check_sessions("256\n", false);

    append_numbers(other, "s7", 2, 3, ANNAL_LEVEL_SYNC);
    append_numbers(other, "new", 1, 1, ANNAL_LEVEL_SYNC);
    check_sessions("257\n", false);
    ck_sql(&f, "SELECT events FROM sessions WHERE id = 's7'", "3\n");
    ck_ok(annal__replace_delete(other, ANNAL_SLICE("s8"), NULL, err));
    check_sessions("256\n", false);
    ck_assert_int_eq(rename(journal_path("s9"), tmpdir_path(&f.dir, "store/gone")), 0);
    check_sessions("255\n", false);
    ck_assert_int_eq(rename(tmpdir_path(&f.dir, "store/gone"), journal_path("s9")), 0);
    check_sessions("256\n", false);

    append_numbers(other, "s10", 2, 2, ANNAL_LEVEL_SYNC);
    loses_changes = true;
    check_sessions("256\n", true);
    ck_sql(&f, "SELECT events FROM sessions WHERE id = 's10'", "2\n");
    loses_changes = false;
    check_sessions("256\n", true);
    check_sessions("256\n", false);
    ck_assert_int_eq(unlink(tmpdir_path(&f.dir, "store/sessions.db")), 0);
    check_sessions("256\n", true);
    store_close(other);
}
END_TEST

static int watch_and_replace(void *arg, const char *path)
{
    int fd = annal__system_io.watch(arg, path);
    if (access(tmpdir_path(&f.dir, "old"), F_OK) != 0) {
        ck_assert_int_eq(rename(f.path, tmpdir_path(&f.dir, "old")), 0);
        ck_assert_int_eq(mkdir(f.path, 0700), 0);
        ck_assert_int_eq(mkdir(tmpdir_path(&f.dir, "store/events"), 0700), 0);
    }
    return fd;
}

START_TEST(a_store_that_is_replaced_while_its_watch_begins_is_watched)
{
    static struct io io; /* the store is closed after the test */
    io = annal__system_io;
    io.watch = watch_and_replace;
    annal_store *store =
        store_open_seams(f.path, &(struct seams){.io = &io, .clock = &annal__system_clock});
    struct buf names = {0};
    uint64_t now = 0;
    ck_assert(!annal__journal_watch_changed(store, 0, &names, &now));
    uint64_t before = now;
    file_write(journal_path("s1"), "x", 1);
    bool known = annal__journal_watch_changed(store, before, &names, &now);
    ck_assert(!known || names.len > 0);
    before = now;
    file_write(journal_path("s2"), "x", 1);
    ck_assert(annal__journal_watch_changed(store, before, &names, &now));
    ck_assert_str_eq(names.ptr, "s2");
    annal__buf_done(&names);
    store_close(store);
}
END_TEST

Suite *suite_indexer(void)
{
    Suite *suite = suite_create("indexer");
    TCase *all = suite_case(suite, "all", fixture_setup, fixture_teardown);
    tcase_add_test(all, every_event_has_a_row_with_its_offset_and_length);
    tcase_add_test(all, sessions_and_turns_follow_the_events);
    tcase_add_test(all, the_same_turn_id_in_two_sessions_is_two_turns);
    tcase_add_test(all, catching_up_on_one_session_leaves_the_others);
    tcase_add_test(all, an_index_grown_step_by_step_equals_a_rebuild);
    tcase_add_test(all, the_state_of_a_session_equals_its_rows);
    tcase_add_test(all, a_full_disk_costs_no_answer);
    tcase_add_test(all, a_full_transaction_continues_in_the_next);
    tcase_add_test(all, long_sessions_take_turns);
    tcase_add_test(all, a_progress_callback_can_stop_indexing_and_indexed_rows_stay);
    tcase_add_test(all, a_replaced_journal_is_indexed_again_automatically);
    tcase_add_test(all, an_index_ahead_of_its_journal_after_a_power_cut_is_repaired);
    tcase_add_test(all, a_session_without_its_journal_leaves_the_tables);
    tcase_add_loop_test(all, a_deleted_session_leaves_the_tables_and_a_new_one_is_indexed_afresh, 0,
                        2);
    tcase_add_test(all, damage_costs_its_line_and_is_kept_as_a_finding);
    tcase_add_test(all, events_are_indexed_even_if_a_handler_fails_on_their_payload);
    tcase_add_test(all, an_unreadable_journal_costs_no_other_session);
    tcase_add_test(all, rows_whose_commit_failed_are_indexed_again);
    tcase_add_test(all, a_journal_without_a_valid_line_costs_no_further_transaction);
    tcase_add_test(all, lag_each_reports_the_lag_of_a_session);
    tcase_add_test(all, events_are_counted_by_type);
    tcase_add_test(all, a_following_index_catches_up_without_a_reader);
    tcase_add_test(all, a_task_that_finds_the_lock_taken_runs_again);
    tcase_add_test(all, a_task_pauses_for_a_due_checkpoint_and_continues_after_it);
    tcase_add_test(all, only_changed_journals_of_many_are_examined_again);
    tcase_add_test(all, a_store_that_is_replaced_while_its_watch_begins_is_watched);
    return suite;
}
