/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that stores share, decided by a PostgreSQL that the suite starts: stores h1 and h2. */
#include "tests/ship/fixture.h"
#include "tests/ship/proxy.h"
#include "tests/support/runner.h"

#include "tools/cli/decider.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define H1(...) DONE(&cli, __VA_ARGS__)
#define H2(...) DONE(&cli, __VA_ARGS__, "--store", second)

/* The backlog of the project shop has the ready tasks t1 and t2, and both stores share it. */
static void set_up(void)
{
    fleet_setup();
    if (url == NULL)
        return;
    H1("pack", "enable", "agentweaver");
    DONE_WITH(&cli,
              "{\"type\":\"project.created\",\"data\":{}}\n"
              "{\"type\":\"backlog.captured\",\"data\":{\"title\":\"mend the pump\"}}\n"
              "{\"type\":\"backlog.captured\",\"data\":{\"title\":\"mend the roof\"}}\n"
              "{\"type\":\"backlog.bulk_committed\",\"data\":{\"task_ids\":[\"t1\",\"t2\"]}}\n",
              "append", "proj_shop");
    H1("ship", url, "--as", "h1");
    H1("home", "share", "proj_shop", url);
    H2("pack", "enable", "agentweaver");
    H2("pull", "proj_shop", "--from", url);
    H2("home", "share", "proj_shop", url);
}

/* Through the packs of store h1. */
static annal_status append_here(const char *session, const annal_draft *drafts, size_t count)
{
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    const annal_decider *decider = decider_new(store);
    ck_assert_int_eq(
        annal_index_open(store, &(annal_index_options){.decider = decider}, &index, &err), 0);
    ck_assert_int_eq(annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err), 0);
    annal_status status = annal_pack_append(index, writer, drafts, count, NULL, NULL, &err);
    annal_writer_close(writer);
    annal_index_close(index);
    decider_free(decider);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
    return status;
}

#define CLAIMS                                                                                     \
    "SELECT string_agg(data ->> 'task_id' || ' ' || (data -> 'run' ->> 'submitting_user'), ', '"   \
    " ORDER BY seq) FROM annal.events WHERE type = 'backlog.claimed'"

START_TEST(one_of_two_stores_gets_a_task)
{
    NEEDS_SERVER();
    H1("backlog", "claim", "shop", "t1", "--user", "h1");
    CLI(&cli, NULL, "backlog", "claim", "shop", "t1", "--user", "h2", "--store", second);
    cli_assert_refused(&cli, 1, "a run with this name exists already");
    H2("backlog", "claim", "shop", "--user", "h2"); /* the next that nobody has */
    CLI(&cli, NULL, "backlog", "claim", "shop", "--user", "h1");
    cli_assert_refused(&cli, 1, "the task is not ready");
    ASK(CLAIMS, "t1 h1, t2 h2");
    ASK("SELECT count(*) || ' ' || max(seq) FROM annal._events", "6 6");
    ASK("SELECT store || ' ' || seq FROM annal._heads", "* 6");
    fleet_same_journals("proj_shop"); /* the refused claim downloaded the other claim */
    H1("ship", url, "--as", "h1");
    H1("ship", "status", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.out, "shared"));
    H1("home", "status", url, "--as", "h1");
    ck_assert_ptr_nonnull(strstr(cli.out, "shared"));
    H1("verify");
    H2("verify");
}
END_TEST

/* Also events that no pack guards; and a program without a decider is refused. */
START_TEST(no_undecided_event_is_appended)
{
    NEEDS_SERVER();
    annal_error err = {0};
    annal_store *store = NULL;
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("note"), .data = ANNAL_SLICE("2")};
    uint64_t seq;
    DONE_WITH(&cli, "{\"type\":\"note\",\"data\":1}\n", "append", "proj_shop");
    ASK("SELECT seq || ' ' || data FROM annal._events WHERE type = 'note'", "5 1");
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    ck_assert_int_eq(annal_writer_open(store, annal_slice_of("proj_shop"), NULL, &writer, &err), 0);
    ck_assert_int_eq(annal_writer_append(writer, &draft, 1, NULL, &seq, &err), ANNAL_ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(err.message, "because the session is shared: its events are"));
    annal_writer_close(writer);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}
END_TEST

START_TEST(an_event_that_is_sent_again_is_decided_once)
{
    NEEDS_SERVER();
    static const char note[] = "{\"type\":\"note\",\"id\":\"n1\",\"data\":1}\n";
    DONE_WITH(&cli, note, "append", "proj_shop");
    DONE_WITH(&cli, note, "append", "proj_shop");
    DONE_WITH(&cli, note, "append", "proj_shop", "--store", second);
    ASK("SELECT count(*) FROM annal._events WHERE type = 'note'", "1");
    CLI(&cli, "{\"type\":\"note\",\"id\":\"n1\",\"data\":2}\n", "append", "proj_shop");
    ck_assert_int_ne(cli.exit_status, 0);
    ASK("SELECT count(*) FROM annal._events WHERE type = 'note'", "1");
    fleet_same_journals("proj_shop");
}
END_TEST

/* What status and check say of a session that the other store added an event to. */
START_TEST(a_shared_session_does_not_lag_and_passes_the_check)
{
    NEEDS_SERVER();
    H2("backlog", "claim", "shop", "t1");
    H1("ship", url, "--as", "h1"); /* makes rows */
    H1("ship", "status", url, "--as", "h1", "--json");
    ck_assert_ptr_nonnull(
        strstr(cli.out, "\"seq\":4,\"target_seq\":5,\"behind\":0,\"state\":\"shared\""));
    H1("ship", "check", url, "--as", "h1");
    ck_assert_str_eq(cli.out, "proved: 4 events equal those in the journals; 0 not shipped yet, 0 "
                              "dropped\n");
    H1("home", "status", url, "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"seconds_left\":null,\"here\":\"shared\""));
    fleet_do("UPDATE annal._events SET type = 'x', h = 1 WHERE seq = 4");
    CLI(&cli, NULL, "ship", "check", url, "--as", "h1");
    cli_assert_refused(&cli, 1, "event 4 at the target differs from the journal");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--json");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"conflict\""));
}
END_TEST

/* In every query about the session: silence is not an answer, and so not a conflict. */
START_TEST(a_silent_target_counts_as_unreachable)
{
    NEEDS_SERVER();
    H2("backlog", "claim", "shop", "--user", "h2");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK TABLE annal._events"));
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--timeout", "1");
    cli_assert_refused(&cli, 3, "no answer for 1 s");
    PQclear(PQexec(other, "COMMIT; BEGIN; LOCK TABLE annal._homes"));
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--timeout", "1");
    cli_assert_refused(&cli, 3, "no answer for 1 s");
    PQfinish(other);
}
END_TEST

/* The grants in docs/ship.md. */
START_TEST(a_role_that_owns_nothing_may_join_share_take_and_release)
{
    NEEDS_SERVER();
    const char *third = strdup(tmpdir_path(&cli.dir, "third"));
    fleet_do("DROP ROLE IF EXISTS agent; CREATE ROLE agent LOGIN;"
             "GRANT USAGE ON SCHEMA annal TO agent; GRANT SELECT ON annal._schema TO agent;"
             "GRANT SELECT, INSERT, UPDATE ON annal._heads, annal._homes TO agent;"
             "GRANT SELECT, INSERT ON annal._events, annal.artifacts TO agent");
    const char *as_agent = strdup(pg_url(&pg, "fleet", "agent"));
#define H3(...) DONE(&cli, __VA_ARGS__, "--store", third)
    H3("pack", "enable", "agentweaver");
    H3("home", "join", as_agent);
    H3("backlog", "claim", "shop", "t1");
    H3("project", "create", "mill"); /* the session was not shared before */
    DONE_WITH(&cli, "{\"type\":\"note\",\"data\":1}\n", "append", "s1", "--store", third);
    H3("ship", as_agent, "--as", "h3");
    H3("home", "share", "s1", as_agent);
    H3("home", "release", "s1", as_agent, "--as", "h3");
    H3("home", "take", "s1", as_agent, "--as", "h3");
    H3("home", "status", as_agent, "--as", "h3");
    H3("ship", "status", as_agent, "--as", "h3");
    H3("ship", "check", as_agent, "--as", "h3", "--artifacts");
    H3("home", "leave");
    ASK("SELECT string_agg(session || ' ' || store || ' ' || seq, ', ' ORDER BY session)"
        " FROM annal._heads",
        "proj_mill * 1, proj_shop * 5, s1 h3 1");
    fleet_do("DROP OWNED BY agent; DROP ROLE agent");
    free((void *)(uintptr_t)as_agent);
    free((void *)(uintptr_t)third);
}
END_TEST

/* A backup from before a claim: the store that has the event sends it again (docs/cluster.md). */
START_TEST(events_lost_by_a_restored_target_are_sent_again)
{
    NEEDS_SERVER();
    fleet_do("CREATE TABLE old AS SELECT seq, h, at FROM annal._heads");
    H1("backlog", "claim", "shop", "t1", "--user", "h1");
    fleet_do("UPDATE annal._heads SET (seq, h, at) = (SELECT seq, h, at FROM old); DROP TABLE old;"
             "DELETE FROM annal._events WHERE seq = 5");
    CLI(&cli, NULL, "ship", "status", url, "--as", "h1", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"target_seq\":4,\"behind\":1,\"state\":\"shared\""));
    CLI(&cli, NULL, "ship", url, "--as", "h1");
    ck_assert_int_eq(cli.exit_status, 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "is shared, and the target has lost 1 of its events"));
    H1("home", "release", "proj_shop", url);
    H1("home", "take", "proj_shop", url, "--as", "h1");
    H1("ship", url, "--as", "h1");
    H1("home", "release", "proj_shop", url, "--as", "h1");
    H1("home", "share", "proj_shop", url);
    H2("home", "share", "proj_shop", url);
    ASK(CLAIMS, "t1 h1");
    H2("backlog", "claim", "shop", "--user", "h2");
    ASK(CLAIMS, "t1 h1, t2 h2");
    H1("home", "share", "proj_shop", url);
    fleet_same_journals("proj_shop");
}
END_TEST

START_TEST(an_address_with_a_password_is_not_saved)
{
    NEEDS_SERVER();
    static const char *const urls[] = {"postgresql://boss:secret@db.example/fleet",
                                       "postgresql://db.example/fleet?password=secret"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        CLI(&cli, NULL, "home", "share", "proj_shop", urls[i]);
        ck_assert_int_ne(cli.exit_status, 0);
        ck_assert_ptr_nonnull(strstr(cli.err, "put the password into ~/.pgpass instead"));
        ck_assert_ptr_null(strstr(cli.err, "secret"));
    }
}
END_TEST

static void set_url(const char *to)
{
    char line[300];
    int len = snprintf(line, sizeof line, "%s\n", to);
    file_write(tmpdir_path(&cli.dir, "store/cluster"), line, (size_t)len);
}

START_TEST(nothing_is_written_while_the_target_is_unreachable)
{
    NEEDS_SERVER();
    size_t len = 0, after_len = 0;
    char *before = cli_journal(&cli, "proj_shop", &len);
    set_url("postgresql:///fleet?host=/nowhere");
    CLI(&cli, NULL, "backlog", "claim", "shop");
    cli_assert_refused(&cli, 3, "cannot reach the cluster database, nothing was written");
    char *after = cli_journal(&cli, "proj_shop", &after_len);
    ck_assert_uint_eq(len, after_len);
    free(before);
    free(after);
    set_url(url);
    H1("backlog", "claim", "shop");
}
END_TEST

/* COMMIT takes a moment from now on. */
static void slow_commit(void)
{
    fleet_do("CREATE FUNCTION annal.wait() RETURNS trigger LANGUAGE plpgsql AS"
             " 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END'; CREATE CONSTRAINT TRIGGER wait"
             " AFTER UPDATE ON annal._heads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
             " EXECUTE FUNCTION annal.wait()");
}

#define COMMITTING "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"

static pid_t start_claim(int *in, int *out)
{
    const char *const words[] = {"backlog", "claim",      "shop",    "t1", "--user",
                                 "h1",      "--event-id", "claim-1", NULL};
    return cli_start(&cli, words, in, out);
}

START_TEST(a_host_killed_after_the_decision_downloads_its_event_with_the_next_append)
{
    NEEDS_SERVER();
    int in, out;
    slow_commit();
    pid_t pid = start_claim(&in, &out);
    fleet_wait_for(COMMITTING, "1");
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
    fleet_wait_for("SELECT seq FROM annal._heads", "5");
    fleet_do("DROP FUNCTION annal.wait() CASCADE");
    CLI(&cli, NULL, "backlog", "claim", "shop", "t1", "--user", "h2", "--store", second);
    cli_assert_refused(&cli, 1, "a run with this name exists already");
    /* The same claim again is answered with the event that was decided. */
    H1("backlog", "claim", "shop", "t1", "--user", "h1", "--event-id", "claim-1");
    ASK(CLAIMS, "t1 h1");
    fleet_same_journals("proj_shop");
}
END_TEST

START_TEST(a_decision_with_a_lost_answer_is_looked_up)
{
    NEEDS_SERVER();
    int in, out, status = -1;
    slow_commit();
    pid_t pid = start_claim(&in, &out);
    fleet_wait_for(COMMITTING, "1");
    fleet_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(in);
    close(out);
    ASK(CLAIMS, "t1 h1");
    H2("pull", "proj_shop", "--from", url);
    fleet_same_journals("proj_shop");
}
END_TEST

/* What the writer would refuse is refused before it is decided. */
START_TEST(an_event_that_the_journal_would_refuse_is_not_decided)
{
    NEEDS_SERVER();
    enum { MANY = 65537 };
    annal_draft *drafts = calloc(MANY, sizeof *drafts);
    for (size_t i = 0; i < MANY; i++)
        drafts[i] = (annal_draft){.type = ANNAL_SLICE("note"), .data = ANNAL_SLICE("2")};
    ck_assert_int_eq(append_here("proj_shop", drafts, MANY), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(append_here("proj_shop", drafts, 3), ANNAL_OK);
    ASK("SELECT count(*) FROM annal._events WHERE type = 'note'", "3");
    H1("home", "join", url);
    drafts[0].id = drafts[1].id = ANNAL_SLICE("n1");
    ck_assert_int_eq(append_here("wf_new", drafts, MANY), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(append_here("wf_new", drafts, 2), ANNAL_ERR_INVALID);
    ASK("SELECT count(*) FROM annal._heads WHERE session = 'wf_new'", "0");
    ck_assert_int_eq(append_here("wf_new", drafts, 1), ANNAL_OK);
    ASK("SELECT seq FROM annal._heads WHERE session = 'wf_new'", "1");
    free(drafts);
}
END_TEST

/* 1 as a uint16: it is decided, and appended, as the shortest form. */
START_TEST(msgpack_in_a_longer_form_is_the_same_in_all_stores)
{
    NEEDS_SERVER();
    const annal_draft draft = {.type = ANNAL_SLICE("note"),
                               .data = {"\xcd\x00\x01", 3},
                               .data_format = ANNAL_FORMAT_MSGPACK};
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "m1", "--format", "msgpack");
    H1("ship", url, "--as", "h1", "--session", "m1");
    H1("home", "share", "m1", url);
    ck_assert_int_eq(append_here("m1", &draft, 1), ANNAL_OK);
    ASK("SELECT data #>> '{}' FROM annal.events WHERE type = 'note'", "1");
    H2("home", "share", "m1", url);
    H2("verify");
}
END_TEST

START_TEST(an_interrupted_release_can_be_repeated)
{
    NEEDS_SERVER();
    fleet_do("CREATE FUNCTION annal.refuse() RETURNS trigger LANGUAGE plpgsql AS"
             " 'BEGIN RAISE EXCEPTION ''not now''; END'; CREATE TRIGGER refuse BEFORE UPDATE"
             " ON annal._homes FOR EACH ROW EXECUTE FUNCTION annal.refuse()");
    CLI(&cli, NULL, "home", "release", "proj_shop", url);
    ck_assert_int_ne(cli.exit_status, 0);
    fleet_do("DROP FUNCTION annal.refuse() CASCADE");
    H1("home", "release", "proj_shop", url);
    ASK("SELECT store IS NULL FROM annal._homes", "t");
    H2("home", "take", "proj_shop", url, "--as", "h2");
}
END_TEST

/* Stopped while its event is inserted: the server gives its transaction up. */
START_TEST(a_stopped_host_blocks_others_only_briefly)
{
    NEEDS_SERVER();
    static const char *const claim[] = {"backlog", "claim", "shop", "t1", "--wait", "1", NULL};
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; LOCK annal._events IN EXCLUSIVE MODE"));
    pid_t pid = fleet_spawn(claim);
    fleet_wait_for("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", "1");
    kill(pid, SIGSTOP);
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    fleet_wait_for("SELECT count(*) FROM pg_locks WHERE relation = 'annal._heads'::regclass", "0");
    H2("backlog", "claim", "shop", "t1", "--user", "h2");
    kill(pid, SIGCONT);
    ck_assert_int_ne(fleet_join(pid), 0);
    ASK(CLAIMS, "t1 h2");
}
END_TEST

Suite *suite_shared(void)
{
    Suite *suite = suite_create("shared");
    TCase *cases = suite_case(suite, "shared", set_up, fleet_teardown);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, one_of_two_stores_gets_a_task);
    tcase_add_test(cases, no_undecided_event_is_appended);
    tcase_add_test(cases, an_event_that_is_sent_again_is_decided_once);
    tcase_add_test(cases, a_shared_session_does_not_lag_and_passes_the_check);
    tcase_add_test(cases, a_silent_target_counts_as_unreachable);
    tcase_add_test(cases, a_role_that_owns_nothing_may_join_share_take_and_release);
    tcase_add_test(cases, events_lost_by_a_restored_target_are_sent_again);
    tcase_add_test(cases, an_address_with_a_password_is_not_saved);
    tcase_add_test(cases, nothing_is_written_while_the_target_is_unreachable);
    tcase_add_test(cases,
                   a_host_killed_after_the_decision_downloads_its_event_with_the_next_append);
    tcase_add_test(cases, a_decision_with_a_lost_answer_is_looked_up);
    tcase_add_test(cases, a_stopped_host_blocks_others_only_briefly);
    tcase_add_test(cases, an_event_that_the_journal_would_refuse_is_not_decided);
    tcase_add_test(cases, msgpack_in_a_longer_form_is_the_same_in_all_stores);
    tcase_add_test(cases, an_interrupted_release_can_be_repeated);
    return suite;
}
