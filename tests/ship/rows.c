/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of sessions and turns, which are built some time after the batch with their events. */
#include "tests/ship/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tools/ship/row_maker.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char events[] =
    "{\"type\":\"session.created\",\"data\":{\"title\":\"one\",\"model\":\"m1\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"}}\n"
    "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t1\",\"input_tokens\":3}}\n";

static const char ask_rows[] =
    "SELECT string_agg(concat_ws(' ', id, title, total_turns, total_tokens, (SELECT count(*)"
    " FROM annal.turns WHERE session_id = s.id)), '; ' ORDER BY id) FROM annal.sessions s";

/* As another process that makes rows does, until what it did is committed. */
static PGconn *make_rows_and_hold(void)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *result =
        PQexec(conn, "BEGIN; SELECT annal._lock_rows(); SELECT annal._fold_queued(1000)");
    ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK, "%s", PQresultErrorMessage(result));
    PQclear(result);
    return conn;
}

static void commit(PGconn *conn)
{
    PQclear(PQexec(conn, "COMMIT"));
    PQfinish(conn);
}

static pid_t start_shipper(const char *follow)
{
    int in, out;
    const char *const words[] = {"ship", url, "--as", "h1", "--json", follow, NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    close(in);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Session s1 has a row, and then events without rows: their shipper was killed. */
static void leave_unmade(void)
{
    DONE_WITH(&cli, events, "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    DONE_WITH(&cli,
              "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\"}}\n"
              "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t2\",\"input_tokens\":4}}\n",
              "append", "s1");
    DONE_WITH(&cli, events, "append", "s2");
    PGconn *other = make_rows_and_hold();
    pid_t pid = start_shipper(NULL);
    fleet_wait_for("SELECT sum(seq) FROM annal._heads", "8");
    end(pid);
    fleet_wait_for("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'annal ship'",
                   "0");
    commit(other);
    ASK(ask_rows, "s1 one 1 3 1");
    ASK("SELECT batches || ' ' || (seconds > 0) FROM annal.rows_behind()", "1 true");
}

START_TEST(a_crash_between_a_batch_and_its_rows_loses_nothing)
{
    NEEDS_SERVER();
    leave_unmade();
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.err, "rows of sessions and turns lag 1 batch and "));
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.err, "rows of sessions and turns lag 1 batch and "));
    DONE(&cli, "ship", url, "--as", "h1");
    ASK(ask_rows, "s1 one 2 7 2; s2 one 1 3 1");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1");
    ck_assert_str_eq(cli.err, "");
}
END_TEST

START_TEST(rows_are_built_from_events_before_these_are_dropped)
{
    NEEDS_SERVER();
    leave_unmade();
    fleet_do("SELECT annal.drop_before('2999-01-01')");
    ASK(ask_rows, "s1 one 2 7 2; s2 one 1 3 1");
    ASK("SELECT count(*) FROM annal._events", "0");
}
END_TEST

/* Retention works while batches arrive. */
START_TEST(a_drop_does_not_build_rows_of_other_events)
{
    NEEDS_SERVER();
    leave_unmade();
    fleet_do("CREATE TABLE annal.events_20000101 PARTITION OF annal._events FOR VALUES FROM"
             " ('2000-01-01') TO ('2000-01-02')");
    ASK("SELECT annal.drop_before('2000-01-02')", "events_20000101");
    ASK("SELECT batches FROM annal.rows_behind()", "1");
}
END_TEST

/* Wait until another connection waits for a lock, if this connection has locked a table of
 * events. */
static const char wait_with_lock[] =
    "CREATE OR REPLACE FUNCTION annal._fold_before(day date) RETURNS void LANGUAGE plpgsql AS $$ "
    "BEGIN"
    " WHILE EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND mode ="
    " 'AccessExclusiveLock' AND relation::regclass::text LIKE 'annal.%events%') AND NOT EXISTS"
    " (SELECT FROM pg_locks WHERE NOT granted) LOOP PERFORM pg_sleep(0.001); END LOOP; END $$";

START_TEST(a_reader_waits_while_events_are_dropped)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, events, "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do(wait_with_lock);
    PGconn *dropping = PQconnectdb(url), *reading = PQconnectdb(url);
    ck_assert_int_eq(PQsendQuery(dropping, "SELECT annal.drop_before('2999-01-01')"), 1);
    fleet_wait_for("SELECT count(*) > 0 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND"
                   " relation::regclass::text LIKE 'annal.%events%'",
                   "t");
    PGresult *result = PQexec(reading, "SELECT count(*) FROM annal.events");
    ck_assert_str_eq(PQresultErrorMessage(result), "");
    ck_assert_str_eq(PQgetvalue(result, 0, 0), "0");
    PQclear(result);
    result = PQgetResult(dropping);
    ck_assert_str_eq(PQresultErrorMessage(result), "");
    PQclear(result);
    PQfinish(dropping);
    PQfinish(reading);
}
END_TEST

/* As pg_dump does. */
START_TEST(a_long_read_delays_retention_and_no_shipper)
{
    NEEDS_SERVER();
    static const char waiting[] = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    DONE_WITH(&cli, events, "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    PGconn *dropping = PQconnectdb(url), *reading = PQconnectdb(url);
    PQclear(PQexec(reading, "BEGIN; SELECT count(*) FROM annal.events"));
    ck_assert_int_eq(PQsendQuery(dropping, "SELECT annal.drop_before('2999-01-01')"), 1);
    fleet_wait_for(waiting, "1");
    fleet_wait_for(waiting, "0");
    DONE_WITH(&cli, "{\"type\":\"turn.started\",\"data\":{}}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    ASK(ask_rows, "s1 one 2 3 2");
    PQfinish(reading);
    PQfinish(dropping);
}
END_TEST

START_TEST(two_simultaneous_drops_remove_events_once)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, events, "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    PGconn *other = make_rows_and_hold(), *dropping[2];
    for (int i = 0; i < 2; i++) {
        dropping[i] = PQconnectdb(url);
        ck_assert_int_eq(PQsendQuery(dropping[i], "SELECT annal.drop_before('2999-01-01')"), 1);
    }
    fleet_wait_for("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
                   "2");
    commit(other);
    for (int i = 0; i < 2; i++) {
        PGresult *result = PQgetResult(dropping[i]);
        ck_assert_str_eq(PQresultErrorMessage(result), "");
        PQclear(result);
        PQfinish(dropping[i]);
    }
    ASK("SELECT count(*) FROM annal._events", "0");
}
END_TEST

/* Batches of the same sessions arrive while another process builds rows. */
START_TEST(batches_do_not_wait_for_the_process_that_builds_rows)
{
    NEEDS_SERVER();
    leave_unmade();
    PGconn *other = make_rows_and_hold();
    DONE_WITH(&cli, "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t3\"}}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    pid_t pid = start_shipper(NULL);
    fleet_wait_for("SELECT sum(seq) FROM annal._heads", "10");
    ASK(ask_rows, "s1 one 1 3 1");
    commit(other);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ASK(ask_rows, "s1 one 3 7 3; s2 one 1 3 1");
    ASK("SELECT count(*) FROM annal._heads h JOIN annal._session_rows r USING (key, seq)", "2");
}
END_TEST

/* A transaction was left open. */
START_TEST(a_stuck_builder_of_rows_blocks_others_for_a_limited_time)
{
    NEEDS_SERVER();
    leave_unmade();
    PGconn *other = make_rows_and_hold();
    pid_t pid = fleet_spawn((const char *const[]){"pull", "s1", "--tree", "--from", url,
                                                  "--timeout", "1", "--store", second, NULL});
    DONE(&cli, "ship", url, "--as", "h1", "--timeout", "1");
    ck_assert_ptr_nonnull(strstr(cli.out, "another process has not built the rows"));
    ck_assert_int_eq(fleet_join(pid), 3);
    commit(other);
}
END_TEST

START_TEST(a_following_shipper_builds_the_rows_that_another_shipper_left)
{
    NEEDS_SERVER();
    leave_unmade();
    ASK("SELECT annal.forget('h1', 's1')", "5");
    pid_t pid = start_shipper("--follow");
    fleet_wait_for(ask_rows, "s1 one 2 7 2; s2 one 1 3 1");
    ASK("SELECT count(*) FROM annal._session_rows", "2");
    end(pid);
}
END_TEST

static annal_status open_endless(const struct ship_where *where, bool to_write,
                                 struct ship_target **out_target, annal_error *err)
{
    (void)where, (void)to_write, (void)err;
    *out_target = NULL;
    return ANNAL_OK;
}

static void close_endless(struct ship_target *target)
{
    (void)target;
}

static annal_status make_endless(struct ship_target *target, uint32_t min_age_ms,
                                 struct ship_rows *out, annal_error *err)
{
    static uint64_t made;
    (void)target, (void)min_age_ms, (void)err;
    *out = (struct ship_rows){.batches = 1, .first = ++made, .last = UINT64_MAX};
    return ANNAL_OK;
}

START_TEST(a_shipper_ends_before_the_rows_of_all_batches_are_built)
{
    const struct ship_database database = {.make_rows = make_endless};
    const struct ship_kind endless = {
        .open = open_endless, .close = close_endless, .database = &database};
    const struct ship_options options = {.kind = &endless};
    struct row_maker *maker = NULL;
    ck_assert_int_eq(row_maker_start(&options, &maker, NULL), ANNAL_OK);
    row_maker_wake(maker);
    while (row_maker_look(maker).first < 10)
        usleep(1000);
    row_maker_stop(maker);
}
END_TEST

START_TEST(an_event_that_breaks_its_rows_blocks_no_other_session)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, events, "append", "s1");
    DONE_WITH(&cli, events, "append", "s2");
    DONE_WITH(
        &cli,
        "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t2\",\"input_tokens\":1e200000}}\n"
        "{\"type\":\"agent.turn.usage\",\"data\":{\"cost_usd\":1e30}}\n",
        "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    ASK(ask_rows, "s1 0 0; s2 one 1 3 1");
    DONE_WITH(&cli, "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t3\"}}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    ASK(ask_rows, "s1 1 1; s2 one 1 3 1");
}
END_TEST

/* For the index of turns. */
START_TEST(a_too_long_turn_id_blocks_no_other_session)
{
    NEEDS_SERVER();
    enum { ID_BYTES = 6000 };
    struct random random = random_init(1);
    char *input = malloc(ID_BYTES + 100), *at = input;
    ck_assert_ptr_nonnull(input);
    at += sprintf(at, "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"");
    for (int i = 0; i < ID_BYTES; i++)
        *at++ = (char)('a' + random_below(&random, 26));
    sprintf(at, "\"}}\n");
    DONE_WITH(&cli, input, "append", "s1");
    free(input);
    DONE_WITH(&cli, events, "append", "s2");
    DONE(&cli, "ship", url, "--as", "h1");
    ASK(ask_rows, "s1 0 0; s2 one 1 3 1");
}
END_TEST

/* PostgreSQL calls it 1 BC. */
START_TEST(an_event_of_the_year_0_is_shipped)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"ts\":\"0000-03-04T05:06:07Z\",\"data\":1}\n", "append",
              "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    ASK("SELECT first_at = ts AND ts < '0001-01-01' FROM annal._session_rows JOIN annal._events"
        " USING (key)",
        "t");
}
END_TEST

/* Titles that are cut between words, and elsewhere. */
#define TEN(text) text text text text text text text text text text
#define WORDS     TEN("a word and ") TEN("b")
#define NO_WORDS  TEN("twelve-bytes") TEN("c")

static const char seldom[] =
    "{\"type\":\"session.created\",\"data\":{\"title\":\" two\\nlines\",\"time\":\"of the "
    "file\"}}\n"
    "{\"type\":\"session.updated\",\"data\":{\"set\":{\"title\":\" \\t\"}}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\",\"status\":\"pending\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\",\"sequence\":9,"
    "\"created_at\":\"2026-01-02T03:04:05Z\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\",\"status\":\"pending\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t3\",\"sequence\":\"x\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t4\",\"sequence\":7.5}}\n"
    "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t4\",\"timing\":\"quick\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t5\",\"sequence\":-7}}\n"
    "{\"type\":\"agent.turn.usage\",\"data\":{\"turn_id\":\"t1\",\"cost_microusd\":500}}\n"
    "{\"type\":\"agent.turn.usage\",\"data\":{\"turn_id\":\"t1\",\"cost_microusd\":-100}}\n";

static void ship_what_is_seldom(void)
{
    DONE_WITH(&cli, seldom, "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"session.created\",\"data\":{\"title\":\"" WORDS "\"}}\n", "append",
              "s2");
    DONE_WITH(&cli, "{\"type\":\"session.created\",\"data\":{\"title\":\"" NO_WORDS "\"}}\n",
              "append", "s3");
    DONE_WITH(&cli,
              "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"" WORDS
              "\"}}\n",
              "append", "s4");
    DONE(&cli, "ship", url, "--as", "h1", "--batch", "1");
    fleet_do("ALTER DATABASE fleet SET search_path = annal");
}

static void check_what_is_seldom(void)
{
    fleet_same("SELECT session_id, turn_id, sequence, status, created_at, completed_at,"
               " cost_microusd FROM turns ORDER BY session_id, seq");
    fleet_same("SELECT id, title, title_from, time_from, cost_microusd FROM sessions"
               " ORDER BY id");
}

START_TEST(rows_at_the_target_equal_the_local_tables)
{
    NEEDS_SERVER();
    ship_what_is_seldom();
    check_what_is_seldom();
    fleet_same("SELECT timing FROM turns ORDER BY seq");
    ASK("SELECT string_agg(status, ' ' ORDER BY seq) FROM turns",
        "started pending started completed started");
}
END_TEST

/* Type and data of events that change rows, also odd ones. */
static const char *const odd[][2] = {
    {"session.created", "{\"title\":\"a\",\"model\":\"m1\",\"created_at\":\"nonsense\"}"},
    {"session_start", "{\"agent_id\":5,\"status\":\"idle\",\"time\":\"of the file\"}"},
    {"session.updated",
     "{\"set\":{\"model\":\"m2\",\"title\":null,\"status\":\"s\"},\"title\":\"b\"}"},
    {"session.updated", "{\"set\":[1],\"git_branch\":\"x\\u0000y\"}"},
    {"session.status_changed", "{\"to\":\"running\"}"},
    {"session.paused", "{}"},
    {"session_resume", "{\"status\":{\"a\":[1]}}"},
    {"session.ended", "1"},
    {"session_end", "{\"status\":\"done\"}"},
    {"session.transition", "{\"to\":\"x\",\"ended_at\":\"2026-01-02T03:04:05Z\"}"},
    {"session.transition", "{\"to\":null,\"ended_at\":\"never\"}"},
    {"turn.started", "{\"turn_id\":\"t1\",\"sequence\":7,\"status\":\"new\"}"},
    {"turn.started", "{\"turn_id\":\"t1\",\"sequence\":\"x\",\"status\":\"pending\"}"},
    {"turn.started", "{\"turn_id\":\"t2\",\"created_at\":\"2026-01-02T03:04:05Z\"}"},
    {"turn_start", "{}"},
    {"turn.streaming", "{\"turn_id\":\"t1\"}"},
    {"turn.streaming", "null"},
    {"turn.completed",
     "{\"turn_id\":\"t1\",\"input_tokens\":3,\"output_tokens\":-1,\"cost_usd\":0.5}"},
    {"turn.completed", "{\"inputTokens\":4,\"outputTokens\":\"5\",\"cost_usd\":\"x\"}"},
    {"turn_complete", "{\"turn_id\":\"t2\",\"cached_input_tokens\":1.9,\"cost_usd\":1e40}"},
    {"turn.failed",
     "{\"turn_id\":\"t1\",\"error\":\"e1\",\"cost_microusd\":-7,\"timing\":{\"a\":1}}"},
    {"turn_error", "{\"error\":{\"code\":2},\"input_tokens\":1e17}"},
    {"turn.cancelled", "{\"turn_id\":\"t3\"}"},
    {"agent.turn.usage", "{\"turn_id\":\"t1\",\"input_tokens\":-9,\"model\":\"u1\"}"},
    {"agent.turn.usage", "{\"turn_id\":\"t4\",\"cache_write_tokens\":2,\"modelId\":\"u2\"}"},
    {"agent.turn.usage", "{\"output_tokens\":11}"},
    {"message.added", "{\"role\":\"user\",\"content\":\"<env>\"}"},
    {"message.added",
     "{\"role\":\"user\",\"content\":[{\"text\":\" <a\"},{\"text\":\" go  on \"}]}"},
    {"message.added", "{\"role\":\"\\u0075ser\",\"content\":{\"text\":\"q\"}}"},
    {"message.added", "{\"role\":\"assistant\",\"content\":\"user\"}"},
    {"a.b", "{\"turn_id\":\"t1\"}"}};

/* A digest of all rows of a store. */
static char *rows_of(const char *store)
{
    char sql[500];
    snprintf(sql, sizeof sql,
             "SELECT md5(string_agg(session || (to_jsonb(s) - 'key')::text || (SELECT"
             " coalesce(string_agg((to_jsonb(t) - 'key')::text, ' ' ORDER BY turn), '')"
             " FROM annal._turn_rows t WHERE t.key = h.key), ' ' ORDER BY session))"
             " FROM annal._heads h JOIN annal._session_rows s USING (key) WHERE store = '%s'",
             store);
    return fleet_ask(sql);
}

START_TEST(rows_of_random_sessions_do_not_depend_on_the_batches)
{
    NEEDS_SERVER();
    static const char *const batches[][2] = {{"b1", "1"}, {"b7", "7"}, {"b10000", "10000"}};
    char *input = malloc(200 * 300), session[8];
    struct random random = random_init(1);
    ck_assert_ptr_nonnull(input);
    for (int i = 0; i < 20; i++) {
        char *at = input;
        for (int event = 0; event < 100; event++) {
            const char *const *kind = odd[random_below(&random, sizeof odd / sizeof *odd)];
            at += sprintf(at, "{\"type\":\"%s\",\"data\":%s}\n", kind[0], kind[1]);
        }
        snprintf(session, sizeof session, "s%02d", i);
        DONE_WITH(&cli, input, "append", session, "--level", "os");
    }
    free(input);
    for (int i = 0; i < 3; i++)
        DONE(&cli, "ship", url, "--as", batches[i][0], "--batch", batches[i][1]);
    char *want = rows_of("b1");
    ck_assert_uint_eq(strlen(want), 32);
    ck_text(rows_of("b7"), want);
    ck_text(rows_of("b10000"), want);
    fleet_do("DELETE FROM annal._session_rows; DELETE FROM annal._turn_rows;"
             "SELECT annal._fold_again(array_agg(key)) FROM annal._heads");
    ck_text(rows_of("b1"), want);
    free(want);
}
END_TEST

void ship_add_row_tests(TCase *cases)
{
    tcase_add_long_test(cases, rows_of_random_sessions_do_not_depend_on_the_batches);
    tcase_add_test(cases, a_shipper_ends_before_the_rows_of_all_batches_are_built);
    tcase_add_test(cases, an_event_that_breaks_its_rows_blocks_no_other_session);
    tcase_add_test(cases, a_too_long_turn_id_blocks_no_other_session);
    tcase_add_test(cases, an_event_of_the_year_0_is_shipped);
    tcase_add_test(cases, rows_at_the_target_equal_the_local_tables);
    tcase_add_test(cases, a_crash_between_a_batch_and_its_rows_loses_nothing);
    tcase_add_test(cases, rows_are_built_from_events_before_these_are_dropped);
    tcase_add_test(cases, a_drop_does_not_build_rows_of_other_events);
    tcase_add_test(cases, a_reader_waits_while_events_are_dropped);
    tcase_add_long_test(cases, a_long_read_delays_retention_and_no_shipper);
    tcase_add_test(cases, two_simultaneous_drops_remove_events_once);
    tcase_add_test(cases, batches_do_not_wait_for_the_process_that_builds_rows);
    tcase_add_test(cases, a_stuck_builder_of_rows_blocks_others_for_a_limited_time);
    tcase_add_test(cases, a_following_shipper_builds_the_rows_that_another_shipper_left);
}
