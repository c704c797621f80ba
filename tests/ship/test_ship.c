/* SPDX-License-Identifier: Apache-2.0 */
/* annal ship against a PostgreSQL that the suite starts. */
#include "tests/ship/fixture.h"
#include "tests/support/runner.h"
#include "tools/cli/ship_lag.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHIP(...) CLI(&cli, NULL, "ship", url, "--as", "h1", __VA_ARGS__)

/* The target has all that the store has, event by event, and nothing else. */
static void assert_same(const char *events)
{
    char want[200];
    DONE(&cli, "ship", "check", url, "--as", "h1", "--json");
    snprintf(want, sizeof want, "{\"events\":%s,\"behind\":0,\"dropped\":0,\"sound\":true}\n",
             events);
    ck_assert_str_eq(cli.out, want);
    ASK("SELECT count(*) FROM annal._events", events);
}

/* ---- Shipping ---- */

START_TEST(events_arrive_once_and_byte_for_byte)
{
    NEEDS_SERVER();
    DONE_WITH(&cli,
              "{\"type\":\"a.b\",\"id\":\"i\u00e91\",\"cause\":\"other:7\",\"ts\":"
              "\"2026-01-06T07:00:00.123456Z\",\"data\":{\"t\":\"a\\u0000b\\ud800 \U0001F600\","
              "\"n\":123456789012345678901234567890, \"x\":1.50}}\n"
              "{\"type\":\"c\",\"ts\":\"1969-12-31T23:59:59.999999Z\",\"data\":null}\n",
              "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":[1, 2]}\n", "append", "s2", "--format", "msgpack");
    SHIP("--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":3,"));
    assert_same("3");
    ASK("SELECT data::text FROM annal._events WHERE type = 'a.b'",
        "{\"t\":\"a\\u0000b\\ud800 \U0001F600\",\"n\":123456789012345678901234567890, "
        "\"x\":1.50}");
    SHIP("--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":0,"));
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s2");
    SHIP("--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"events\":1,"));
    assert_same("4");
}
END_TEST

START_TEST(batches_of_one_event_and_sessions_of_many_arrive_in_order)
{
    NEEDS_SERVER();
    char input[8000] = "";
    for (int i = 0; i < 100; i++)
        sprintf(input + strlen(input), "{\"type\":\"t\",\"data\":%d}\n", i);
    DONE_WITH(&cli, input, "append", "s1");
    DONE_WITH(&cli, input, "append", "s2");
    SHIP("--batch", "7");
    cli_assert_done(&cli);
    assert_same("200");
    ASK("SELECT count(*) FROM (SELECT seq, data::text::int AS n FROM annal._events) AS e"
        " WHERE n = seq - 1",
        "200");
}
END_TEST

START_TEST(a_long_session_does_not_delay_a_short_session)
{
    NEEDS_SERVER();
    char input[8000] = "";
    for (int i = 0; i < 100; i++)
        sprintf(input + strlen(input), "{\"type\":\"t\",\"data\":%d}\n", i);
    DONE_WITH(&cli, input, "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"t\",\"data\":0}\n", "append", "s2");
    SHIP("--batch", "10");
    cli_assert_done(&cli);
    assert_same("101");
    ASK("SELECT string_agg(session, ' ' ORDER BY shipped_at) FROM annal._heads", "s2 s1");
}
END_TEST

START_TEST(a_fork_is_shipped_as_its_own_events)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    DONE(&cli, "fork", "s1", "--at", "1", "s1b");
    SHIP("--json");
    cli_assert_done(&cli);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":\"b\"}\n", "append", "s1b");
    SHIP("--json");
    cli_assert_done(&cli);
    assert_same("3");
    ASK("SELECT parent || ' ' || forked_at || ' ' || seq FROM annal._heads WHERE session = 's1b'",
        "s1 1 2");
}
END_TEST

START_TEST(only_the_requested_sessions_are_shipped)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "run-1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "other");
    SHIP("--session", "run-*");
    cli_assert_done(&cli);
    ASK("SELECT string_agg(session_id, ',') FROM annal.heads", "run-1");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--json");
    ck_assert_int_eq(cli.exit_status, 0);
    ck_assert_str_eq(
        cli.out,
        "{\"session_id\":\"other\",\"seq\":1,\"target_seq\":0,\"behind\":1,\"state\":\"new\"}\n"
        "{\"session_id\":\"run-1\",\"seq\":1,\"target_seq\":1,\"behind\":0,\"state\":\"equal\"}\n");
}
END_TEST

START_TEST(stores_are_separate_at_the_target)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    DONE(&cli, "ship", url, "--as", "h2");
    DONE(&cli, "ship", url);
    ASK("SELECT count(*) FROM annal._events", "3");
    ASK("SELECT count(*) FROM annal.heads WHERE store LIKE '%:/%/store'", "1");
}
END_TEST

/* ---- Another history ---- */

START_TEST(another_history_is_reported_and_never_mixed_in)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    SHIP(NULL);
    DONE(&cli, "delete", "--yes", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":\"new\"}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    SHIP(NULL);
    cli_assert_refused(&cli, 1, "ends with event 1 in this store, but with event 2 at the target");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    SHIP(NULL);
    cli_assert_refused(&cli, 1,
                       "'s1' has a different history at the target, which ends with event 2");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    SHIP(NULL);
    cli_assert_refused(&cli, 1,
                       "'s1' has a different history at the target, which ends with event 2");
    ASK("SELECT string_agg(data::text, ',' ORDER BY key, seq) FROM annal._events", "1,2,1");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "conflict"));
    /* The way out that the page names. */
    ASK("SELECT annal.forget('h1', 's1')", "2");
    SHIP(NULL);
    cli_assert_done(&cli);
    assert_same("4");
}
END_TEST

START_TEST(events_after_damage_are_not_shipped_and_other_sessions_are)
{
    NEEDS_SERVER();
    size_t len;
    DONE_WITH(&cli,
              "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":\"hurt\"}\n"
              "{\"type\":\"a\",\"data\":3}\n",
              "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    char *bytes = cli_journal(&cli, "s1", &len);
    *strstr(bytes, "hurt") = 'H';
    cli_journal_write(&cli, "s1", bytes, len);
    free(bytes);
    SHIP(NULL);
    cli_assert_refused(&cli, 1, "session 's1' is damaged after event 1");
    ASK("SELECT string_agg(session_id || seq, ',' ORDER BY session_id) FROM annal.heads",
        "s11,s21");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s3");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--json");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_str_eq(
        cli.out,
        "{\"session_id\":\"s1\",\"seq\":3,\"target_seq\":1,\"behind\":2,\"state\":\"damaged\"}\n"
        "{\"session_id\":\"s2\",\"seq\":1,\"target_seq\":1,\"behind\":0,\"state\":\"equal\"}\n"
        "{\"session_id\":\"s3\",\"seq\":1,\"target_seq\":0,\"behind\":1,\"state\":\"new\"}\n");
}
END_TEST

START_TEST(check_notices_events_that_differ_from_the_journal)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    SHIP(NULL);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s0");
    SHIP(NULL);
    fleet_do("UPDATE annal._events SET data = '7' WHERE seq = 1");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_str_eq(cli.err,
                     "annal: session 's0': event 1 at the target differs from the journal\n"
                     "annal: session 's1': event 1 at the target differs from the journal\n");
    fleet_do("UPDATE annal._events SET data = '1' WHERE seq = 1; SELECT annal.forget('h1', 's0')");
    DONE(&cli, "delete", "--yes", "s0");
    fleet_do("UPDATE annal._events SET data = '7' WHERE seq = 2");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 2 at the target differs from the journal");
    fleet_do("DELETE FROM annal._events WHERE seq = 2");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 2 at the target is missing");
    fleet_do("DELETE FROM annal._events");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1,
                       "event 1 at the target is missing, although its day of arrival "
                       "was not dropped");
    fleet_do("SELECT annal.drop_before('2100-01-01')");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_str_eq(cli.out, "proved: 0 events equal those in the journals; 0 not shipped yet, "
                              "2 dropped\n");
}
END_TEST

START_TEST(check_accepts_missing_events_only_on_dropped_days)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    /* As if it had arrived on a day that was dropped. */
    fleet_do("UPDATE annal._heads SET first_day = '2020-01-01'; DELETE FROM annal._events");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    SHIP(NULL);
    DONE(&cli, "ship", "check", url, "--as", "h1");
    ck_assert_str_eq(cli.out, "proved: 2 events equal those in the journals; 0 not shipped yet, "
                              "1 dropped\n");
    fleet_do("DELETE FROM annal._events"); /* the last one arrived today */
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 1 at the target is missing");
    fleet_do("UPDATE annal._heads SET shipped_at = '2020-01-01'");
    DONE(&cli, "ship", "check", url, "--as", "h1");
}
END_TEST

/* Its first event. */
static void damage(const char *session)
{
    size_t len;
    char *bytes = cli_journal(&cli, session, &len);
    *strstr(bytes, "unhurt") = 'U';
    cli_journal_write(&cli, session, bytes, len);
    free(bytes);
}

static annal_status note_lag(void *arg, const struct ship_lag *lag)
{
    *(struct ship_lag *)arg = *lag;
    return ANNAL_OK;
}

/* The lag includes it, too, when the first half is sent and the second half waits for a lock. */
static void look_at_second_half(void)
{
    annal_error err = {0};
    annal_store *store = NULL;
    struct ship_lag lag = {0};
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('h2 s0550', 0))"));
    pid_t pid = fleet_spawn((const char *const[]){"ship", url, "--as", "h2", "--follow", NULL});
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    for (int i = 0; i < 1000 && lag.events < 548; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        ck_assert_int_eq(ship_lag_each(store, note_lag, &lag), ANNAL_OK);
    }
    ck_assert_uint_eq(lag.events, 548);
    ck_assert(lag.events_behind > 0 && lag.seconds_behind > 0);
    kill(pid, SIGKILL);
    (void)fleet_join(pid);
    PQfinish(other);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}

START_TEST(many_sessions_are_sent_in_halves_and_all_are_counted)
{
    NEEDS_SERVER();
    const char *path = tmpdir_path(&cli.dir, "many.jsonl");
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 1102; i++)
        fprintf(file, "{\"s\":\"s%04d\",\"d\":\"unhurt %d\"}\n", i < 1100 ? i : i - 600, i);
    ck_assert_int_eq(fclose(file), 0);
    DONE(&cli, "import", "jsonl", path, "--map", "session=$.s", "--map", "data=$.d");
    damage("s0500");
    damage("s0501");
    look_at_second_half();
    SHIP(NULL);
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "session 's0500' is damaged after event 0"));
    ck_assert_ptr_nonnull(strstr(cli.err, "session 's0501' is damaged after event 0"));
    ck_assert_ptr_nonnull(strstr(cli.out, "shipped 1,098 events"));
    ck_assert_ptr_nonnull(strstr(cli.out, "2 of 1,100 sessions stopped"));
    ASK("SELECT count(DISTINCT (session_id, seq)) || ' ' || count(*) FROM annal.events"
        " WHERE store = 'h1'",
        "1098 1098");
    ASK("SELECT count(*) FROM annal.sessions WHERE store = 'h1'", "1098");
}
END_TEST

/* ---- The schema ---- */

START_TEST(a_role_without_rights_to_the_schema_gets_a_message_that_names_the_owner)
{
    NEEDS_SERVER();
    char sql[300];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    fleet_do("DROP ROLE IF EXISTS agent; CREATE ROLE agent LOGIN");
    const char *as_agent = strdup(pg_url(&pg, "fleet", "agent"));
    CLI(&cli, NULL, "ship", as_agent, "--as", "h1");
    cli_assert_refused(&cli, 1, "permission denied");
    ck_assert_ptr_nonnull(strstr(cli.err, "(role agent): the owner must run the SQL"));
    DONE(&cli, "ship", "schema");
    fleet_do(cli.out);
    snprintf(sql, sizeof sql,
             "GRANT USAGE ON SCHEMA annal TO agent; GRANT SELECT ON annal._schema TO agent;"
             "GRANT SELECT, INSERT, UPDATE ON annal._heads, annal._homes TO agent;"
             "GRANT SELECT, INSERT ON annal._events, annal.artifacts TO agent");
    fleet_do(sql);
    DONE(&cli, "ship", as_agent, "--as", "h1");
    assert_same("1");
    fleet_do("DROP OWNED BY agent; DROP ROLE agent");
    free((void *)(uintptr_t)as_agent);
}
END_TEST

START_TEST(an_older_schema_is_upgraded_and_a_newer_schema_is_refused)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    fleet_do("DROP VIEW annal.heads; UPDATE annal._schema SET version = -1");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "is older than this annal: run 'annal ship' to this target first");
    SHIP(NULL);
    cli_assert_done(&cli);
    ASK("SELECT seq FROM annal.heads", "1");
    assert_same("1");
    fleet_do("UPDATE annal._schema SET version = 1000");
    SHIP(NULL);
    cli_assert_refused(&cli, 3, "a newer annal created the schema there (version 1000)");
}
END_TEST

/* A shipper that gave up would try again, with a connection more. */
START_TEST(an_upgrade_may_take_longer_than_an_answer)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    fleet_do("UPDATE annal._schema SET version = 0");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK annal.forks"));
    ck_assert_int_eq(PQsendQuery(other,
                                 "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE NOT"
                                 " granted) LOOP PERFORM pg_sleep(0.01); END LOOP;"
                                 " PERFORM pg_sleep(1.6); END $$; SELECT count(*) FROM"
                                 " pg_stat_activity WHERE application_name = 'annal ship'; COMMIT"),
                     1);
    SHIP("--timeout", "1");
    cli_assert_done(&cli);
    PQclear(PQgetResult(other));
    PGresult *result = PQgetResult(other);
    ck_assert_str_eq(PQgetvalue(result, 0, 0), "1");
    PQclear(result);
    PQfinish(other);
}
END_TEST

/* Or else there would be one more in the server with each try of each host. */
START_TEST(a_shipper_that_timed_out_does_not_wait_for_an_upgrade)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    fleet_do("UPDATE annal._schema SET version = 0");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('annal'))"));
    SHIP("--timeout", "1", "--wait", "0");
    ck_assert_int_eq(cli.exit_status, 3);
    fleet_wait_for("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'annal ship'",
                   "0");
    PQfinish(other);
}
END_TEST

/* ---- Days ---- */

/* The first event of s1 arrived long ago. */
static void ship_on_two_days(void)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    SHIP(NULL);
    cli_assert_done(&cli);
    fleet_do("CREATE TABLE annal.events_20200101 PARTITION OF annal._events"
             " FOR VALUES FROM ('2020-01-01') TO ('2020-01-02');"
             "UPDATE annal._heads SET first_day = '2020-01-01' WHERE session = 's1';"
             "UPDATE annal._events SET day = '2020-01-01' WHERE seq = 1 AND key ="
             " (SELECT key FROM annal._heads WHERE session = 's1')");
}

/* The clock of the server. */
START_TEST(a_clock_that_was_set_back_hides_no_events)
{
    NEEDS_SERVER();
    ship_on_two_days();
    fleet_do("UPDATE annal._heads SET first_day = '2998-01-01', last_day = '2999-01-01'"
             " WHERE session = 's2'");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s2");
    SHIP(NULL);
    ASK("SELECT first_arrived <= (now() AT TIME ZONE 'UTC')::date AND last_arrived = '2999-01-01'"
        " FROM annal.heads WHERE session_id = 's2'",
        "t");
    assert_same("4");
}
END_TEST

/* Who does not plan for the partition of another day does not wait for its lock. */
START_TEST(a_session_is_read_without_the_partitions_of_other_days)
{
    NEEDS_SERVER();
    ship_on_two_days();
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK annal.events_20200101"));
    DONE_WITH(&cli, "{\"type\":\"turn.started\",\"data\":{}}\n", "append", "s2");
    SHIP("--timeout", "5");
    cli_assert_done(&cli);
    ASK("SELECT count(*) FROM annal.turns", "1");
    DONE(&cli, "pull", "s2", "--from", url, "--timeout", "5", "--store", second);
    DONE(&cli, "home", "share", "s2", url, "--timeout", "5");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":4}\n", "append", "s2");
    DONE(&cli, "home", "share", "s2", url, "--timeout", "5", "--store", second);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":5}\n", "append", "s2", "--store", second);
    ASK("SET lock_timeout = '5s'; SELECT count(*) FROM annal.session_events('s2')", "4");
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    ASK("SELECT string_agg(data::text, ' ' ORDER BY seq) FROM annal.session_events('s1', 'h1')",
        "1 2");
}
END_TEST

START_TEST(the_tool_calls_of_a_session_are_computed_from_its_events_only)
{
    NEEDS_SERVER();
    ship_on_two_days();
    char *plan = fleet_ask("SET enable_seqscan = off; EXPLAIN (FORMAT json) SELECT * FROM"
                           " annal.tool_calls WHERE session_id = 's1' AND store = 'h1'");
    ck_assert_msg(strstr(plan, "\"Index Cond\": \"((key = h.key)") != NULL, "%s", plan);
    ck_assert_ptr_null(strstr(plan, "\"Hash Join\""));
    free(plan);
}
END_TEST

START_TEST(a_reader_of_the_views_can_read_the_events_of_a_session)
{
    NEEDS_SERVER();
    ship_on_two_days();
    fleet_do(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader; GRANT USAGE ON SCHEMA annal TO reader;"
        "GRANT SELECT ON annal.heads, annal.events TO reader");
    ASK("SET ROLE reader; SELECT count(*) FROM annal.session_events('s1')", "2");
    fleet_do("DROP OWNED BY reader; DROP ROLE reader");
}
END_TEST

/* The first batches of a day arrive at the same moment, from all hosts. */
START_TEST(the_partition_of_a_day_is_created_once_for_all_waiting_batches)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    PGconn *first = PQconnectdb(url), *next = PQconnectdb(url);
    PQclear(PQexec(next, "SELECT to_regclass('annal._schema')")); /* as a shipper does */
    fleet_do("SELECT annal.drop_before('2999-01-01')");
    PQclear(PQexec(first, "BEGIN; SELECT annal._today()"));
    ck_assert_int_eq(PQsendQuery(next, "BEGIN; SELECT annal._today()"), 1);
    fleet_do("DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype ="
             " 'advisory' AND NOT granted) LOOP"
             " PERFORM pg_sleep(0.001); END LOOP; END $$");
    PQclear(PQexec(first, "COMMIT"));
    PQclear(PQgetResult(next));
    PGresult *result = PQgetResult(next);
    ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK, "%s", PQresultErrorMessage(result));
    PQclear(result);
    PQfinish(first);
    PQfinish(next);
}
END_TEST

/* ---- Queries ---- */

/* Those of the guide, and all columns of the tables. */
static const char *const queries[] = {
    "SELECT id, title, model, total_turns, total_tokens FROM sessions ORDER BY total_tokens DESC "
    "NULLS LAST, "
    "id",
    "SELECT id, flow_id, agent_id, provider, status, created_at, updated_at, last_activity_at, "
    "cost_microusd, working_directory, git_branch, parent_session_id, ended_at, input_tokens, "
    "output_tokens, cached_input_tokens, cache_write_tokens, events, time_from, title_from "
    "FROM sessions ORDER BY id",
    "SELECT session_id, sequence, status, input_tokens, output_tokens FROM turns "
    "ORDER BY session_id, sequence",
    "SELECT id, created_at, completed_at, turn_id, cached_input_tokens, cache_write_tokens, "
    "cost_microusd, error, timing, seq FROM turns ORDER BY id",
    "SELECT session_id, call_id, seq, tool, turn_id, status, called_at, returned_at, result_seq, "
    "duration_ms, exit_code, output_bytes, output_sha256 FROM tool_calls ORDER BY session_id, seq",
    "SELECT data->>'tool' AS tool, count(*) AS calls FROM events WHERE type = 'tool.called' "
    "GROUP BY tool ORDER BY calls DESC, tool",
    "SELECT tool, calls, returned, failed, dangling, p50_ms, p95_ms, max_ms, total_ms "
    "FROM tool_stats ORDER BY tool NULLS FIRST",
    "SELECT session_id, call_id, duration_ms FROM tool_durations ORDER BY session_id, call_id",
    "SELECT day, tool_calls, failed_tool_calls, turns, failed_turns FROM errors_by_day ORDER BY "
    "day",
    "SELECT type, count(*) AS events FROM event_index GROUP BY type ORDER BY type"};

START_TEST(the_documented_queries_give_the_same_answers_at_the_target)
{
    NEEDS_SERVER();
    static const char *const logs[][2] = {{"codex", ANNAL_SOURCE "/tests/data/codex"},
                                          {"claude-code", ANNAL_SOURCE "/tests/data/claude-code"},
                                          {"openhands", ANNAL_SOURCE "/tests/data/openhands"},
                                          {"tau-bench", ANNAL_SOURCE "/tests/data/tau-bench"}};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        CLI(&cli, NULL, "import", logs[i][0], logs[i][1]);
    DONE_WITH(
        &cli,
        "{\"type\":\"turn.started\",\"data\":{}}\n"
        "{\"type\":\"tool.called\",\"data\":{\"tool\":\"odd\",\"input\":\"a\\u0000\\ud83d\"}}\n"
        "{\"type\":\"turn.failed\",\"data\":{\"error\":\"no\",\"input_tokens\":7}}\n"
        "{\"type\":\"session.ended\",\"data\":1}\n",
        "append", "odd");
    SHIP(NULL);
    cli_assert_done(&cli);
    fleet_do("ALTER DATABASE fleet SET search_path = annal");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char out[100];
        const char *const words[] = {"--csv", "-h",       pg.dir,  "-U", "boss",
                                     "-c",    queries[i], "fleet", NULL};
        snprintf(out, sizeof out, "%s/answer", pg.dir);
        pg_program(&pg, "psql", words, out);
        CLI(&cli, NULL, "sql", "--format", "csv", queries[i]);
        char *want = strdup(cli.out), *to = want;
        for (const char *from = cli.out; *from != '\0'; from++) /* RFC 4180 ends a line with two */
            if (*from != '\r')
                *to++ = *from;
        *to = '\0';
        ck_text(file_read(out, NULL), want);
        free(want);
    }
}
END_TEST

/* What must be remembered from one batch to the next: names, ends, what counts once, the title. */
static const char in_many_batches[] =
    "{\"type\":\"session.created\",\"data\":{\"agent_id\":\"a\",\"model\":\"m1\"}}\n"
    "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"<env>\"}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t1\"}}\n"
    "{\"type\":\"message.added\",\"data\":{\"role\":\"\\u0075ser\",\"content\":\"do  it\"}}\n"
    "{\"type\":\"message.added\",\"data\":{\"role\":\"user\",\"content\":\"and that\"}}\n"
    "{\"type\":\"agent.turn.usage\",\"data\":{\"turn_id\":\"t1\",\"input_tokens\":5,\"cost_usd\":1}"
    "}\n"
    "{\"type\":\"turn.failed\",\"data\":{\"turn_id\":\"t1\",\"error\":\"e1\",\"input_tokens\":3}}\n"
    "{\"type\":\"turn.completed\",\"data\":{\"turn_id\":\"t1\",\"input_tokens\":100}}\n"
    "{\"type\":\"turn.started\",\"data\":{\"turn_id\":\"t2\"}}\n"
    "{\"type\":\"session.updated\",\"data\":{\"set\":{\"model\":\"m2\"}}}\n"
    "{\"type\":\"turn.completed\",\"data\":{\"output_tokens\":2}}\n"
    "{\"type\":\"session.ended\",\"data\":{}}\n"
    "{\"type\":\"a\",\"data\":1}\n";

START_TEST(rows_of_sessions_and_turns_do_not_depend_on_the_batches)
{
    NEEDS_SERVER();
    static const char ask[] =
        "SELECT string_agg(concat_ws(' ', store, model, status, title, total_turns, total_tokens,"
        " cost_microusd, events, (SELECT string_agg(concat_ws(' ', turn_id, sequence, t.status,"
        " t.error, t.input_tokens), '; ' ORDER BY seq) FROM annal.turns t"
        " WHERE t.store = s.store)), E'\\n' ORDER BY store) FROM annal.sessions s";
    static const char want[] =
        "h1 m2 ended do it 2 10 1000000 13 t1 1 failed e1 8; t2 2 completed\n"
        "h2 m2 ended do it 2 10 1000000 13 t1 1 failed e1 8; t2 2 completed";
    DONE_WITH(&cli, in_many_batches, "append", "s1");
    SHIP("--batch", "1");
    DONE(&cli, "ship", url, "--as", "h2");
    ASK(ask, want);
    fleet_do("SELECT annal._fold_again(array_agg(key)) FROM annal._heads");
    ASK(ask, want);
    fleet_do("DELETE FROM annal._session_rows; DELETE FROM annal._turn_rows;"
             "SELECT annal._fold_again(array_agg(key)) FROM annal._heads");
    ASK(ask, want);
}
END_TEST

/* ---- Speed ---- */

enum { SPEED_EVENTS = 300000, SPEED_ROUNDS = 3 };

static int64_t since_us(int64_t begun_us)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000 - begun_us;
}

static void append_many(void)
{
    char *input = malloc((size_t)SPEED_EVENTS * 140), *at = input;
    ck_assert_ptr_nonnull(input);
    for (int i = 0; i < SPEED_EVENTS; i++)
        at += sprintf(at,
                      "{\"type\":\"a.b\",\"id\":\"e%d\",\"data\":{\"n\":%d,\"text\":\"as long as "
                      "most events are that an agent makes\"}}\n",
                      i, i);
    CLI(&cli, input, "append", "s1", "--level", "os");
    ck_assert_int_eq(cli.exit_status, 0);
    free(input);
}

static void psql(const char *command)
{
    const char *const words[] = {"-q", "-h", pg.dir, "-U", "boss", "-c", command, "fleet", NULL};
    pg_program(&pg, "psql", words, NULL);
}

/* Both into the same empty tables, one after the other; the best of each counts. */
START_TEST(shipping_is_nearly_as_fast_as_a_bare_copy_of_the_rows)
{
    NEEDS_SERVER();
    char command[200];
    int64_t ship_us = INT64_MAX, copy_us = INT64_MAX;
    append_many();
    for (int i = 0; i < SPEED_ROUNDS; i++) {
        fleet_do("DROP SCHEMA IF EXISTS annal CASCADE");
        DONE(&cli, "ship", "schema");
        fleet_do(cli.out);
        int64_t begun_us = since_us(0);
        SHIP(NULL);
        int64_t took_us = since_us(begun_us);
        ship_us = took_us < ship_us ? took_us : ship_us;
        cli_assert_done(&cli);
        if (i == 0) {
            snprintf(command, sizeof command,
                     "\\copy (SELECT * FROM annal._events) TO '%s/rows' (FORMAT binary)", pg.dir);
            psql(command);
        }
        fleet_do("TRUNCATE annal._events");
        snprintf(command, sizeof command, "\\copy annal._events FROM '%s/rows' (FORMAT binary)",
                 pg.dir);
        begun_us = since_us(0);
        psql(command);
        took_us = since_us(begun_us);
        copy_us = took_us < copy_us ? took_us : copy_us;
    }
    fprintf(stderr, "%d events: shipped in %.2f s, copied in %.2f s, ratio %.2f\n", SPEED_EVENTS,
            (double)ship_us / 1e6, (double)copy_us / 1e6, (double)copy_us / (double)ship_us);
    ck_assert_msg((double)copy_us >= 0.8 * (double)ship_us, "%ld of %ld us", (long)copy_us,
                  (long)ship_us);
}
END_TEST

/* ---- Following ---- */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

START_TEST(a_following_shipper_ships_new_events)
{
    NEEDS_SERVER();
    int in, out;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    fleet_wait_for("SELECT coalesce(sum(seq), 0) FROM annal.heads", "2");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s2");
    fleet_wait_for("SELECT coalesce(sum(seq), 0) FROM annal.heads", "4");
    fleet_wait_for("SELECT batches FROM annal.rows_behind()", "0");
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
    assert_same("4");
}
END_TEST

/* The first connection is closed, and the next one reaches the server. */
START_TEST(a_target_that_answers_at_the_second_attempt_receives_all_events)
{
    NEEDS_SERVER();
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    char folder[80], late[200];
    int in, out;
    snprintf(folder, sizeof folder, "%.60s/late", pg.dir);
    snprintf(late, sizeof late, "postgresql:///fleet?host=%s&user=boss", folder);
    snprintf(place.sun_path, sizeof place.sun_path, "%s/.s.PGSQL.5432", folder);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&place, sizeof place), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    const char *const words[] = {"ship", late, "--as", "h1", "--wait", "120", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    close(accept(listener, NULL, NULL));
    ck_assert_int_eq(unlink(place.sun_path), 0);
    ck_assert_int_eq(symlink("../.s.PGSQL.5432", place.sun_path), 0);
    close(listener);
    ck_assert_int_eq(fleet_join(pid), 0);
    close(in);
    close(out);
    ck_assert_int_eq(unlink(place.sun_path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    assert_same("1");
}
END_TEST

/* Another transaction has the lock with which a batch begins, and the shipper waits for it. */
START_TEST(events_sent_to_a_silent_target_count_as_lag_and_the_figures_age)
{
    NEEDS_SERVER();
    annal_error err = {0};
    annal_store *store = NULL;
    struct ship_lag lag = {0};
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    PGconn *other = PQconnectdb(url);
    pid_t pid = fleet_spawn((const char *const[]){"ship", url, "--as", "h1", "--follow", NULL});
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    for (int i = 0; i < 1000 && lag.target[0] == '\0'; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        ck_assert_int_eq(ship_lag_each(store, note_lag, &lag), ANNAL_OK);
    }
    ck_assert(lag.target[0] != '\0' && lag.events_behind == 0 && lag.seconds_behind == 0);
    PQclear(PQexec(other, "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('h1 s1', 0))"));
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    for (int i = 0; i < 1000 && lag.seconds_behind < 0.3; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        ck_assert_int_eq(ship_lag_each(store, note_lag, &lag), ANNAL_OK);
    }
    ck_assert_uint_eq(lag.events_behind, 1);
    ck_assert(lag.seconds_behind >= 0.3 && lag.silent_seconds > 0);
    PQfinish(other);
    for (int i = 0; i < 1000 && lag.events_behind > 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        ck_assert_int_eq(ship_lag_each(store, note_lag, &lag), ANNAL_OK);
    }
    ck_assert(lag.events_behind == 0 && lag.seconds_behind == 0);
    kill(pid, SIGKILL);
    (void)fleet_join(pid);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}
END_TEST

static annal_status note_stopped(void *arg, const struct ship_lag *lag)
{
    *(uint64_t *)arg = lag->stopped;
    return ANNAL_OK;
}

static void wait_for_stopped(const annal_store *store, uint64_t want)
{
    uint64_t stopped = UINT64_MAX;
    for (double begun = seconds_now(); stopped != want && seconds_now() < begun + 30;) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        ck_assert_int_eq(ship_lag_each(store, note_stopped, &stopped), ANNAL_OK);
    }
    ck_assert_uint_eq(stopped, want);
}

/* The lag does not include it, so it would not be noticed. */
START_TEST(a_stopped_session_is_counted_until_it_continues)
{
    NEEDS_SERVER();
    int in, out;
    annal_error err = {0};
    annal_store *store = NULL;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    DONE(&cli, "delete", "s1", "--yes");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    wait_for_stopped(store, 1);
    ASK("SELECT annal.forget('h1', 's1')", "1");
    ASK("SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity WHERE application_name "
        "= 'annal ship'",
        "t"); /* it looks again when it is back */
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s2");
    wait_for_stopped(store, 0);
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}
END_TEST

/* A batch takes 0.2 s here, so the next one waits for 0.6 s. */
START_TEST(a_slow_target_gets_fewer_and_larger_batches)
{
    NEEDS_SERVER();
    int in, out, lines, said;
    double begun = seconds_now();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    fleet_do("CREATE FUNCTION annal.slow() RETURNS trigger LANGUAGE plpgsql AS"
             " 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END';"
             "CREATE TRIGGER slow AFTER UPDATE ON annal._heads EXECUTE FUNCTION annal.slow()");
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    const char *const append[] = {"append", "s1", "--level", "os", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    pid_t writer = cli_start(&cli, append, &lines, &said);
    while (seconds_now() < begun + 2) {
        ck_assert_int_eq(write(lines, "{\"type\":\"a\",\"data\":2}\n", 22), 22);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(lines);
    ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
    close(said);
    close(in);
    close(out);
    char *batches = fleet_ask("SELECT count(DISTINCT xmin::text) FROM annal._events");
    ck_assert_double_le(atof(batches), 2 + (seconds_now() - begun) / 0.8);
    free(batches);
}
END_TEST

START_TEST(a_missing_target_is_reported_in_time)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    CLI(&cli, NULL, "ship", "postgresql:///none?host=/nowhere", "--wait", "0");
    cli_assert_refused(&cli, 3, "ship to /nowhere/none: ");
    CLI(&cli, NULL, "ship", "postgresql:///none?nothing=1");
    cli_assert_refused(&cli, 1, "invalid PostgreSQL URL");
    CLI(&cli, NULL, "ship", "mysql://x/y");
    cli_assert_refused(&cli, 2, "'mysql://' is not a valid target");
}
END_TEST

/* The shipper ends when its output has no reader. */
START_TEST(an_unreachable_target_is_retried_and_the_lag_is_printed)
{
    int in, out, status = -1;
    char text[8192] = "";
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    const char *const words[] = {"ship", "postgresql:///none?host=/nowhere", "--follow", "--json",
                                 NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    for (ssize_t len = 0, got; strstr(text, "\"away\":true}\n") == NULL; len += got) {
        got = read(out, text + len, sizeof text - 1 - (size_t)len);
        ck_assert_int_gt(got, 0);
        text[len + got] = '\0';
    }
    close(in);
    close(out);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d", status);
}
END_TEST

Suite *suite_ship(void)
{
    Suite *suite = suite_create("ship");
    TCase *cases = suite_case(suite, "ship", fleet_setup, fleet_teardown);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, events_arrive_once_and_byte_for_byte);
    tcase_add_test(cases, batches_of_one_event_and_sessions_of_many_arrive_in_order);
    tcase_add_test(cases, a_long_session_does_not_delay_a_short_session);
    tcase_add_test(cases, a_fork_is_shipped_as_its_own_events);
    tcase_add_test(cases, only_the_requested_sessions_are_shipped);
    tcase_add_test(cases, stores_are_separate_at_the_target);
    tcase_add_test(cases, another_history_is_reported_and_never_mixed_in);
    tcase_add_test(cases, events_after_damage_are_not_shipped_and_other_sessions_are);
    tcase_add_test(cases, check_notices_events_that_differ_from_the_journal);
    tcase_add_test(cases, check_accepts_missing_events_only_on_dropped_days);
    tcase_add_test(cases, many_sessions_are_sent_in_halves_and_all_are_counted);
    tcase_add_test(cases, a_role_without_rights_to_the_schema_gets_a_message_that_names_the_owner);
    tcase_add_test(cases, an_older_schema_is_upgraded_and_a_newer_schema_is_refused);
    tcase_add_test(cases, an_upgrade_may_take_longer_than_an_answer);
    tcase_add_test(cases, a_shipper_that_timed_out_does_not_wait_for_an_upgrade);
    tcase_add_test(cases, a_clock_that_was_set_back_hides_no_events);
    tcase_add_test(cases, a_session_is_read_without_the_partitions_of_other_days);
    tcase_add_test(cases, the_tool_calls_of_a_session_are_computed_from_its_events_only);
    tcase_add_test(cases, a_reader_of_the_views_can_read_the_events_of_a_session);
    tcase_add_test(cases, the_partition_of_a_day_is_created_once_for_all_waiting_batches);
    tcase_add_test(cases, the_documented_queries_give_the_same_answers_at_the_target);
    tcase_add_test(cases, rows_of_sessions_and_turns_do_not_depend_on_the_batches);
    ship_add_row_tests(cases);
    tcase_add_long_test(cases, shipping_is_nearly_as_fast_as_a_bare_copy_of_the_rows);
    tcase_add_test(cases, a_following_shipper_ships_new_events);
    tcase_add_test(cases, a_target_that_answers_at_the_second_attempt_receives_all_events);
    tcase_add_test(cases, events_sent_to_a_silent_target_count_as_lag_and_the_figures_age);
    tcase_add_test(cases, a_stopped_session_is_counted_until_it_continues);
    tcase_add_test(cases, a_slow_target_gets_fewer_and_larger_batches);
    tcase_add_test(cases, a_missing_target_is_reported_in_time);
    tcase_add_test(cases, an_unreachable_target_is_retried_and_the_lag_is_printed);
    return suite;
}
