/* annal ship against a PostgreSQL that the suite starts. */
#include "tests/ship/pg.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct pg pg; /* of the suite; its directory is "" where there is no PostgreSQL */

static void start_server(void)
{
    (void)pg_start(&pg);
}

static void stop_server(void)
{
    pg_stop(&pg);
}

/* A database and a store for each test. */
static char database[40];
static const char *url;

static void set_up(void)
{
    char sql[100];
    cli_setup();
    if (pg.dir[0] == '\0')
        return;
    snprintf(database, sizeof database, "test_%d", (int)getpid());
    snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s", database);
    pg_do(&pg, "postgres", sql);
    snprintf(sql, sizeof sql, "CREATE DATABASE %s", database);
    pg_do(&pg, "postgres", sql);
    url = strdup(pg_url(&pg, database, NULL));
}

static void tear_down(void)
{
    free((void *)(uintptr_t)url);
    url = NULL;
    cli_teardown();
}

#define NEEDS_SERVER()                                                                             \
    do {                                                                                           \
        if (pg.dir[0] == '\0')                                                                     \
            return;                                                                                \
    } while (0)

#define SHIP(...)     CLI(&cli, NULL, "ship", url, "--as", "h1", __VA_ARGS__)
#define ASK(sql, ...) ck_text(pg_ask(&pg, database, sql), __VA_ARGS__)

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

START_TEST(only_the_sessions_that_were_asked_for_are_shipped)
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

START_TEST(stores_do_not_meet_at_the_target)
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
    cli_assert_refused(&cli, 1, "ends with event 1 here, and with event 2 at the target");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    SHIP(NULL);
    cli_assert_refused(&cli, 1, "'s1' has another history at the target, which ends with event 2");
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

START_TEST(what_follows_damage_is_not_shipped_and_the_other_sessions_are)
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
}
END_TEST

START_TEST(check_notices_what_is_not_the_journal_s)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    SHIP(NULL);
    pg_do(&pg, database, "UPDATE annal._events SET data = '7' WHERE seq = 2");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 2 at the target is not the event of the journal");
    pg_do(&pg, database, "DELETE FROM annal._events WHERE seq = 2");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 2 at the target is missing");
    pg_do(&pg, database, "SELECT annal.drop_before('2100-01-01')");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    ck_assert_str_eq(cli.out, "proved: 0 events are those of the journals; 0 not shipped yet, "
                              "2 dropped\n");
}
END_TEST

/* ---- The schema ---- */

START_TEST(a_role_that_may_not_make_the_schema_is_told_who_may)
{
    NEEDS_SERVER();
    char sql[300];
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    pg_do(&pg, database, "DROP ROLE IF EXISTS agent; CREATE ROLE agent LOGIN");
    const char *as_agent = strdup(pg_url(&pg, database, "agent"));
    CLI(&cli, NULL, "ship", as_agent, "--as", "h1");
    cli_assert_refused(&cli, 1, "permission denied");
    ck_assert_ptr_nonnull(strstr(cli.err, "(role agent): 'annal ship schema' prints"));
    DONE(&cli, "ship", "schema");
    pg_do(&pg, database, cli.out);
    snprintf(sql, sizeof sql,
             "GRANT USAGE ON SCHEMA annal TO agent; GRANT SELECT ON annal._schema TO agent;"
             "GRANT SELECT, INSERT, UPDATE ON annal._heads TO agent;"
             "GRANT SELECT, INSERT ON annal._events TO agent");
    pg_do(&pg, database, sql);
    DONE(&cli, "ship", as_agent, "--as", "h1");
    assert_same("1");
    pg_do(&pg, database, "DROP OWNED BY agent; DROP ROLE agent");
    free((void *)(uintptr_t)as_agent);
}
END_TEST

START_TEST(an_older_schema_is_upgraded_and_a_newer_one_refused)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    SHIP(NULL);
    pg_do(&pg, database, "DROP VIEW annal.heads; UPDATE annal._schema SET version = -1");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "is older: ship to it first");
    SHIP(NULL);
    cli_assert_done(&cli);
    ASK("SELECT seq FROM annal.heads", "1");
    assert_same("1");
    pg_do(&pg, database, "UPDATE annal._schema SET version = 1000");
    SHIP(NULL);
    cli_assert_refused(&cli, 3, "its schema has version 1000, made by a newer annal");
}
END_TEST

/* ---- Following ---- */

static void wait_for(const char *sql, const char *want)
{
    for (int i = 0; i < 1000; i++) {
        char *got = pg_ask(&pg, database, sql);
        bool same = strcmp(got, want) == 0;
        free(got);
        if (same)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("%s never became %s", sql, want);
}

START_TEST(what_is_appended_is_followed)
{
    NEEDS_SERVER();
    int in, out;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    DONE(&cli, "ship", url, "--as", "h1");
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1");
    wait_for("SELECT coalesce(sum(seq), 0) FROM annal.heads", "2");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n{\"type\":\"a\",\"data\":2}\n", "append", "s2");
    wait_for("SELECT coalesce(sum(seq), 0) FROM annal.heads", "4");
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
    assert_same("4");
}
END_TEST

START_TEST(a_target_that_is_not_there_is_an_answer_in_time)
{
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    CLI(&cli, NULL, "ship", "postgresql:///none?host=/nowhere", "--wait", "0");
    cli_assert_refused(&cli, 3, "ship to /nowhere/none: ");
    CLI(&cli, NULL, "ship", "postgresql:///none?nothing=1");
    cli_assert_refused(&cli, 1, "not a PostgreSQL URL");
    CLI(&cli, NULL, "ship", "mysql://x/y");
    cli_assert_refused(&cli, 2, "'mysql://x/y' is no target");
}
END_TEST

Suite *suite_ship(void)
{
    Suite *suite = suite_create("ship");
    TCase *cases = suite_case(suite, "ship", set_up, tear_down);
    tcase_add_unchecked_fixture(cases, start_server, stop_server);
    tcase_add_test(cases, events_arrive_once_and_byte_for_byte);
    tcase_add_test(cases, batches_of_one_event_and_sessions_of_many_arrive_in_order);
    tcase_add_test(cases, a_fork_is_shipped_as_its_own_events);
    tcase_add_test(cases, only_the_sessions_that_were_asked_for_are_shipped);
    tcase_add_test(cases, stores_do_not_meet_at_the_target);
    tcase_add_test(cases, another_history_is_reported_and_never_mixed_in);
    tcase_add_test(cases, what_follows_damage_is_not_shipped_and_the_other_sessions_are);
    tcase_add_test(cases, check_notices_what_is_not_the_journal_s);
    tcase_add_test(cases, a_role_that_may_not_make_the_schema_is_told_who_may);
    tcase_add_test(cases, an_older_schema_is_upgraded_and_a_newer_one_refused);
    tcase_add_test(cases, what_is_appended_is_followed);
    tcase_add_test(cases, a_target_that_is_not_there_is_an_answer_in_time);
    return suite;
}
