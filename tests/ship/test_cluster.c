/* SPDX-License-Identifier: Apache-2.0 */
/* The stores h1 and h2 belong to a cluster: what the pack says is shared, and the claims, states,
 * leases and inbox of Agentweaver are decided for both. */
#include "tests/ship/fixture.h"
#include "tests/support/runner.h"

#include <annal/index.h>
#include <annal/pack.h>

#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define H1(...) DONE(&cli, __VA_ARGS__)
#define H2(...) DONE(&cli, __VA_ARGS__, "--store", second)

/* It is refused, and says so. */
#define NOT_H1(why, ...)                                                                           \
    do {                                                                                           \
        CLI(&cli, NULL, __VA_ARGS__);                                                              \
        cli_assert_refused(&cli, 1, why);                                                          \
    } while (0)
#define NOT_H2(why, ...) NOT_H1(why, __VA_ARGS__, "--store", second)

#define H1_SAYS(out_text, ...)                                                                     \
    do {                                                                                           \
        H1(__VA_ARGS__);                                                                           \
        ck_assert_str_eq(cli.out, out_text);                                                       \
    } while (0)
#define H2_SAYS(out_text, ...) H1_SAYS(out_text, __VA_ARGS__, "--store", second)

static void set_up(void)
{
    fleet_setup();
    if (url == NULL)
        return;
    H1("home", "join", url);
    H2("home", "join", url);
    H1("pack", "enable", "agentweaver");
    H2("pack", "enable", "agentweaver");
    H1("project", "create", "shop");
}

static void ck_same_journals(const char *session)
{
    H1("home", "share", session, url);
    H2("home", "share", session, url);
    fleet_same_journals(session);
}

/* ---- What is shared ---- */

/* Neither store ships or pulls anything, and no user shares the session. */
START_TEST(a_pack_shares_a_session_from_its_first_event_on)
{
    NEEDS_SERVER();
    ASK("SELECT store || ' ' || session || ' ' || seq FROM annal._heads", "* proj_shop 1");
    H2("backlog", "add", "shop", "mend the pump");
    H1("backlog", "add", "shop", "mend the roof");
    ASK("SELECT string_agg(data ->> 'task_id', ' ' ORDER BY seq) FROM annal.events WHERE type ="
        " 'backlog.captured'",
        "t1 t2");
    H2("backlog", "edit", "shop", "t2", "--title", "the roof");
    H1("backlog", "edit", "shop", "t1", "--title", "the pump");
    ASK("SELECT count(DISTINCT file) || ' ' || max(seq) FROM annal._heads", "1 5");
    ck_same_journals("proj_shop");
    H1("verify");
    H2("verify");
}
END_TEST

/* What no pack names stays on its host, also when it is guarded; so does all in other stores. */
START_TEST(sessions_that_no_pack_shares_wait_for_no_store)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"note\",\"data\":1}\n", "append", "s1");
    ASK("SELECT count(*) FROM annal._heads WHERE session = 's1'", "0");
    const char *third = tmpdir_path(&cli.dir, "third");
    DONE(&cli, "pack", "enable", "agentweaver", "--store", third);
    DONE(&cli, "project", "create", "barn", "--store", third);
    ASK("SELECT count(*) FROM annal._heads WHERE session = 'proj_barn'", "0");
}
END_TEST

/* A store that has taken the session decides about it alone, until it releases it. */
START_TEST(the_home_of_a_session_decides_alone)
{
    NEEDS_SERVER();
    H1("run", "create", "r1");
    H1("home", "release", "run_r1", url);
    H1("home", "take", "run_r1", url, "--as", "h1");
    H1("run", "start", "r1", "--path", "/tmp/r1", "--branch", "r1");
    ASK("SELECT store || ' ' || seq FROM annal._heads WHERE session = 'run_r1'", "h1 1");
    NOT_H2("is at home in store 'h1'", "run", "transition", "r1", "failed");
    H1("ship", url, "--as", "h1");
    H1("home", "release", "run_r1", url, "--as", "h1");
    H2("run", "transition", "r1", "failed");
    ASK("SELECT store || ' ' || seq FROM annal._heads WHERE session = 'run_r1'", "* 3");
    ck_same_journals("run_r1");
}
END_TEST

START_TEST(earlier_events_are_shipped_first)
{
    NEEDS_SERVER();
    H1("home", "leave");
    H1("project", "create", "barn");
    H1("home", "join", url);
    NOT_H1("run 'annal ship'", "backlog", "add", "barn", "sweep");
    ASK("SELECT count(*) FROM annal._homes WHERE session = 'proj_barn' AND store IS NOT NULL", "0");
    H1("ship", url, "--as", "h1", "--session", "proj_barn");
    H1("backlog", "add", "barn", "sweep");
    H2("backlog", "add", "barn", "mow");
    ASK("SELECT store || ' ' || seq FROM annal._heads WHERE session = 'proj_barn'", "* 3");
}
END_TEST

START_TEST(a_store_that_left_refuses_events)
{
    NEEDS_SERVER();
    H1("home", "leave");
    NOT_H1("this store is not the session's home now", "backlog", "add", "shop", "mend the pump");
    NOT_H1("this store does not belong to a cluster", "home", "leave");
    H2("backlog", "add", "shop", "mend the pump");
    H1("home", "join", url);
    H1("backlog", "add", "shop", "mend the roof");
    ck_same_journals("proj_shop");
}
END_TEST

START_TEST(a_program_without_a_decider_is_refused)
{
    NEEDS_SERVER();
    annal_error err = {0};
    annal_store *store = NULL;
    annal_index *index = NULL;
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("run.created"), .data = ANNAL_SLICE("{}")};
    ck_assert_int_eq(annal_store_open(cli.store, NULL, &store, &err), ANNAL_OK);
    ck_assert_int_eq(annal_index_open(store, NULL, &index, &err), ANNAL_OK);
    ck_assert_int_eq(annal_writer_open(store, annal_slice_of("run_r1"), NULL, &writer, &err), 0);
    ck_assert_int_eq(annal_pack_append(index, writer, &draft, 1, NULL, NULL, &err),
                     ANNAL_ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(err.message, "because a cluster shares the session"));
    annal_writer_close(writer);
    annal_index_close(index);
    ck_assert_int_eq(annal_store_close(store, &err), ANNAL_OK);
}
END_TEST

/* It is not taken for a store that belongs to no cluster, and may join no other one. */
START_TEST(a_store_whose_cluster_cannot_be_read_is_refused)
{
    NEEDS_SERVER();
    char path[300], aside[300];
    snprintf(path, sizeof path, "%s/cluster", cli.store);
    snprintf(aside, sizeof aside, "%s/aside", cli.store);
    ck_assert_int_eq(rename(path, aside), 0);
    ck_assert_int_eq(symlink("aside", path), 0);
    CLI(&cli, NULL, "run", "create", "r1", "--user", "h1");
    cli_assert_refused(&cli, 3, "cluster");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("cluster", path), 0);
    CLI(&cli, NULL, "home", "join", pg_url(&pg, "postgres", NULL));
    cli_assert_refused(&cli, 3, "cluster");
    CLI(&cli, NULL, "home", "leave");
    cli_assert_refused(&cli, 3, "cluster");
    ck_assert_int_eq(unlink(path), 0);
    file_write(path, "\x01\x02", 2);
    CLI(&cli, NULL, "run", "create", "r1", "--user", "h1");
    cli_assert_refused(&cli, 3,
                       "cluster does not contain an address that begins with postgresql://");
    ck_assert_int_eq(rename(aside, path), 0);
    H1("run", "create", "r1", "--user", "h1");
}
END_TEST

/* The first event of a session, in COMMIT. */
START_TEST(a_decided_first_event_is_not_lost)
{
    NEEDS_SERVER();
    int in, out;
    const char *const words[] = {"run", "create", "r1", "--user", "h1", NULL};
    fleet_do("CREATE FUNCTION annal.wait() RETURNS trigger LANGUAGE plpgsql AS"
             " 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END'; CREATE CONSTRAINT TRIGGER wait"
             " AFTER INSERT ON annal._heads DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
             " EXECUTE FUNCTION annal.wait()");
    pid_t pid = cli_start(&cli, words, &in, &out);
    fleet_wait_for("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "1");
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
    fleet_wait_for("SELECT count(*) FROM annal._heads WHERE session = 'run_r1'", "1");
    NOT_H2("the run exists already", "run", "create", "r1", "--user", "h2");
    NOT_H1("the run exists already", "run", "create", "r1", "--user", "h1");
    ck_same_journals("run_r1");
}
END_TEST

START_TEST(artifacts_of_a_shared_session_travel)
{
    NEEDS_SERVER();
    size_t len = 200000;
    char *diff = malloc(len);
    memset(diff, 'd', len);
    H1("run", "create", "r1");
    H1("run", "start", "r1", "--path", "/tmp/r1", "--branch", "r1");
    H2("home", "share", "run_r1", url);
    cli_run_bytes(
        &cli, diff, len,
        (const char *[]){"run", "review-ready", "r1", "--tree", "4b825dc", "--diff", "-", NULL});
    cli_assert_done(&cli);
    ASK("SELECT count(*) || ' ' || sum(length(bytes)) FROM annal.artifacts", "1 200000");
    H2("run", "approve", "r1", "--tree", "4b825dc", "--reviewer", "bob");
    H2("verify");
    free(diff);
}
END_TEST

/* ---- What goes wrong ---- */

/* Also for a store whose lease is of the time before. */
START_TEST(a_released_session_is_shared_again)
{
    NEEDS_SERVER();
    H2("backlog", "add", "shop", "mend the pump");
    H1("home", "release", "proj_shop", url);
    H1("backlog", "add", "shop", "mend the roof");
    H2("backlog", "add", "shop", "mend the wall");
    H1("home", "release", "proj_shop", url);
    H2("run", "create", "r1", "--project", "shop");
    ASK("SELECT store || ' ' || seq FROM annal._heads WHERE session = 'proj_shop'", "* 4");
    ck_same_journals("proj_shop");
}
END_TEST

/* Guards do not decide by a part of the session. */
START_TEST(a_store_with_a_part_of_a_session_does_not_decide_by_it)
{
    NEEDS_SERVER();
    NOT_H2("there is no such project", "backlog", "add", "barn", "sweep");
    H1("home", "share", "proj_barn", url);
    H1("home", "release", "proj_barn", url);
    H1("home", "take", "proj_barn", url, "--as", "h1");
    H1("project", "create", "barn");
    H1("ship", url, "--as", "h1");
    NOT_H2("is at home in store 'h1'", "backlog", "add", "barn", "sweep");
    H1("home", "release", "proj_barn", url, "--as", "h1");
    H2("backlog", "add", "barn", "sweep");
    ck_same_journals("proj_barn");
}
END_TEST

START_TEST(the_events_of_an_empty_journal_are_downloaded_again)
{
    NEEDS_SERVER();
    H1("backlog", "add", "shop", "mend the pump");
    H2("backlog", "add", "shop", "mend the roof");
    file_write(tmpdir_path(&cli.dir, "second/events/proj_shop.jsonl"), "", 0);
    H2("backlog", "add", "shop", "mend the wall");
    ck_same_journals("proj_shop");
    H2("verify");
}
END_TEST

/* Another store asked for the session before its events were shipped. */
START_TEST(earlier_events_are_shipped_while_another_store_shares_the_session)
{
    NEEDS_SERVER();
    H1("home", "leave");
    H1("project", "create", "barn");
    H1("home", "join", url);
    NOT_H2("there is no such project", "backlog", "add", "barn", "sweep");
    NOT_H1(
        "'annal home release', 'annal home take' and 'annal ship', then release the session again",
        "backlog", "add", "barn", "sweep");
    H2("home", "release", "proj_barn", url);
    H1("home", "take", "proj_barn", url, "--as", "h1");
    H1("ship", url, "--as", "h1", "--session", "proj_barn");
    H1("home", "release", "proj_barn", url, "--as", "h1");
    H2("backlog", "add", "barn", "sweep");
    ck_same_journals("proj_barn");
}
END_TEST

/* Its events have other hashes. */
START_TEST(a_converted_shared_session_is_downloaded_again)
{
    NEEDS_SERVER();
    H1("convert", "proj_shop", "--format", "msgpack");
    NOT_H1("differs from the target's copy: run 'annal delete", "backlog", "add", "shop",
           "mend the pump");
    H2("backlog", "add", "shop", "mend the pump");
    NOT_H1("differs from the target's copy: run 'annal delete", "backlog", "add", "shop",
           "mend the roof");
    H1("delete", "proj_shop", "--yes");
    H1("backlog", "add", "shop", "mend the roof");
    ck_same_journals("proj_shop");
}
END_TEST

START_TEST(lost_events_of_a_target_are_shipped_again)
{
    NEEDS_SERVER();
    H1("backlog", "add", "shop", "mend the pump");
    fleet_do("SELECT annal.forget('*', 'proj_shop')");
    NOT_H1(
        "'annal home release', 'annal home take' and 'annal ship', then release the session again",
        "backlog", "add", "shop", "mend the roof");
    H1("home", "release", "proj_shop", url);
    H1("home", "take", "proj_shop", url, "--as", "h1");
    H1("ship", url, "--as", "h1");
    H1("home", "release", "proj_shop", url, "--as", "h1");
    H2("backlog", "add", "shop", "mend the roof");
    H1("backlog", "add", "shop", "mend the wall");
    ASK("SELECT store || ' ' || seq FROM annal._heads WHERE session = 'proj_shop'", "* 4");
    ck_same_journals("proj_shop");
}
END_TEST

START_TEST(a_fork_of_a_shared_session_is_shared)
{
    NEEDS_SERVER();
    static const char note[] = "{\"type\":\"note\",\"data\":1}\n";
    H1("backlog", "add", "shop", "mend the pump");
    H1("fork", "proj_shop", "proj_barn", "--at", "1");
    DONE_WITH(&cli, note, "append", "proj_barn");
    DONE_WITH(&cli, note, "append", "proj_barn", "--store", second);
    ASK("SELECT store || ' ' || seq || ' ' || parent FROM annal._heads WHERE session = 'proj_barn'",
        "* 3 proj_shop");
    ck_same_journals("proj_barn");
}
END_TEST

/* The COMMIT succeeded, its answer was lost, and then the session was released. */
START_TEST(an_event_decided_before_a_release_stays)
{
    NEEDS_SERVER();
    int in, out, status = -1;
    const char *const words[] = {"backlog", "add", "shop", "mend the pump", NULL};
    fleet_do("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    fleet_do("SELECT pg_reload_conf()");
    pid_t pid = cli_start(&cli, words, &in, &out);
    fleet_wait_for("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "1");
    fleet_do("SET synchronous_commit = local; UPDATE annal._homes SET store = NULL, was = store,"
             " epoch = epoch + 1 WHERE session = 'proj_shop'");
    fleet_do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    fleet_do("ALTER SYSTEM RESET synchronous_standby_names");
    fleet_do("SELECT pg_reload_conf()");
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    close(in);
    close(out);
    ASK("SELECT count(*) FROM annal.events WHERE type = 'backlog.captured'", "1");
}
END_TEST

/* ---- Agentweaver ---- */

enum { CONTENDERS = 8 };

/* AT-A3: of eight processes on two hosts one gets the task, and the others leave nothing. */
START_TEST(one_of_eight_claims_of_a_task_wins)
{
    NEEDS_SERVER();
    pid_t pids[CONTENDERS];
    int won = 0;
    H1("backlog", "add", "shop", "mend the pump");
    H1("backlog", "commit", "shop", "t1");
    for (int i = 0; i < CONTENDERS; i++) {
        char run[10];
        snprintf(run, sizeof run, "r%d", i);
        const char *const words[] = {"backlog", "claim", "shop",    "t1",
                                     "--run",   run,     "--store", i % 2 == 0 ? cli.store : second,
                                     NULL};
        pids[i] = fleet_spawn(words);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        int status = fleet_join(pids[i]);
        ck_assert(status == 0 || status == 1);
        won += status == 0;
    }
    ck_assert_int_eq(won, 1);
    ASK("SELECT count(*) FROM annal.events WHERE type = 'backlog.claimed'", "1");
    NOT_H2("the task is not ready", "backlog", "claim", "shop", "t1", "--run", "late");
    H1("home", "share", "proj_shop", url);
    H1_SAYS("{\"n\":1,\"same\":1}\n", "sql", "--json",
            "SELECT count(*) AS n, max(t.run_id = r.id) AS same FROM agentweaver.runs r, "
            "agentweaver.backlog_tasks t");
    ck_same_journals("proj_shop");
}
END_TEST

/* No guard refuses these events, so each is appended, also beside other processes of the same
 * store. */
START_TEST(each_of_eight_processes_appends_its_events)
{
    NEEDS_SERVER();
    static const char note[] = "{\"type\":\"note\",\"data\":1}\n";
    pid_t pids[CONTENDERS];
    int in[CONTENDERS], out[CONTENDERS];
    for (int i = 0; i < CONTENDERS; i++) {
        const char *const words[] = {"append", "proj_shop", "--store", i > 0 ? cli.store : second,
                                     NULL};
        pids[i] = cli_start(&cli, words, &in[i], &out[i]);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        for (int line = 0; line < 3; line++)
            ck_assert_int_gt(write(in[i], note, strlen(note)), 0);
        close(in[i]);
    }
    for (int i = 0; i < CONTENDERS; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
        close(out[i]);
    }
    ASK("SELECT count(*) FROM annal._events WHERE type = 'note'", "24");
    ck_same_journals("proj_shop");
}
END_TEST

/* AT-A1, A-10: each change of a run's status is a compare-and-set, on every host. */
START_TEST(the_status_of_a_run_is_one_for_all_hosts)
{
    NEEDS_SERVER();
    H1("run", "create", "r1");
    H2("run", "start", "r1", "--path", "/tmp/r1", "--branch", "r1");
    NOT_H1("the run is not pending", "run", "start", "r1", "--path", "/tmp/r1", "--branch", "r1");
    H1("run", "review-ready", "r1", "--tree", "4b825dc");
    H2("run", "approve", "r1", "--tree", "4b825dc", "--reviewer", "bob");
    H1("run", "merge", "r1");
    NOT_H2("differs from the expected status", "run", "merge", "r1");
    H2("run", "transition", "r1", "awaiting_review", "--expect", "merging");
    H2("run", "merge", "r1");
    NOT_H1("differs from the expected status", "run", "transition", "r1", "failed", "--expect",
           "awaiting_review");
    H1("run", "transition", "r1", "merged", "--expect", "merging", "--commit", "1f2e3d");
    NOT_H2("the run has ended", "run", "transition", "r1", "failed");
    H2_SAYS("{\"status\":\"merged\",\"merged_commit_hash\":\"1f2e3d\"}\n", "sql", "--json",
            "SELECT status, merged_commit_hash FROM agentweaver.runs");
    ck_same_journals("run_r1");
}
END_TEST

/* A run needs its project, which is on another host: it is downloaded. */
START_TEST(a_run_sees_its_project_from_another_host)
{
    NEEDS_SERVER();
    H2("run", "create", "r1", "--project", "shop");
    H1("project", "retire", "shop");
    NOT_H2("is being deleted", "run", "create", "r2", "--project", "shop");
    NOT_H2("the project of the run does not exist", "run", "create", "r2", "--project", "barn");
}
END_TEST

/* The host that claimed its task is lost before the run has an event. */
START_TEST(a_run_claimed_by_another_host_is_downloaded_with_its_project)
{
    NEEDS_SERVER();
    H1("backlog", "add", "shop", "mend the pump");
    H1("backlog", "add", "shop", "mend the roof");
    H1("backlog", "commit-all", "shop", "t1", "t2");
    H1("backlog", "claim", "shop", "t1", "--run", "r1");
    H1("backlog", "claim", "shop", "t2", "--run", "r2");
    NOT_H2("there is no such run", "lease", "claim", "r1", "worker-2");
    H2("lease", "claim", "r1", "worker-2", "--project", "shop");
    H2("run", "worktree", "r2", "/tmp/b", "b", "--project", "shop");
    H1("run", "review-ready", "r2", "--tree", "4b825dc");
    H1("run", "worktree", "r1", "/tmp/a", "a", "--token", "1");
}
END_TEST

#define WAITING "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

/* h2 asked its guards when the project was active, and then h1 was first. */
START_TEST(a_run_is_not_started_in_a_deleted_project)
{
    NEEDS_SERVER();
    static const char *const retire[] = {"project", "retire", "shop", NULL};
    const char *const create[] = {"run",  "create",  "r1",   "--project",
                                  "shop", "--store", second, NULL};
    H2("home", "share", "proj_shop", url);
    H2("home", "share", "run_r1", url);
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; SELECT FROM annal._heads FOR UPDATE"));
    pid_t first = fleet_spawn(retire);
    fleet_wait_for(WAITING, "1");
    pid_t next = fleet_spawn(create);
    fleet_wait_for(WAITING, "2");
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    ck_assert_int_eq(fleet_join(first), 0);
    ck_assert_int_eq(fleet_join(next), 1);
    ASK("SELECT string_agg(type, ' ' ORDER BY seq) FROM annal.events",
        "project.created project.delete_begun");
}
END_TEST

/* one host executes a run, and the token of its lease fences the host before it. */
START_TEST(the_lease_of_a_run_has_one_owner_on_all_hosts)
{
    NEEDS_SERVER();
    H1("run", "create", "r1");
    H1("lease", "claim", "r1", "worker-1");
    NOT_H2("another worker holds the lease", "lease", "claim", "r1", "worker-2");
    H1("lease", "renew", "r1", "worker-1", "1", "--for", "1");
    H2("lease", "claim", "r1", "worker-2");
    NOT_H1("this owner does not hold", "lease", "renew", "r1", "worker-1", "1");
    NOT_H1("the fencing token is out of date", "run", "worktree", "r1", "/tmp/a", "a", "--token",
           "1");
    H2("run", "worktree", "r1", "/tmp/b", "b", "--token", "2");
    H2("lease", "release", "r1", "worker-2", "2");
    H1("lease", "claim", "r1", "worker-1");
    H1_SAYS("{\"owner_id\":\"worker-1\",\"fencing_token\":3}\n", "sql", "--json",
            "SELECT owner_id, fencing_token FROM agentweaver.run_leases");
}
END_TEST

/* AT-A11, AT-A16, AT-A17: the events of both hosts have the same order in both stores, without a
 * gap. */
START_TEST(the_events_of_a_run_have_one_order)
{
    NEEDS_SERVER();
    H1("run", "create", "r1");
    for (int i = 0; i < 3; i++) {
        DONE_WITH(&cli, "{\"type\":\"agent.message\",\"data\":1}\n", "append", "run_r1");
        DONE_WITH(&cli, "{\"type\":\"agent.message\",\"data\":2}\n", "append", "run_r1", "--store",
                  second);
    }
    CLI(&cli, "{\"type\":\"agent.message\",\"data\":3}\n", "append", "run_r1", "--expect-seq", "3");
    cli_assert_refused(&cli, 1, "the session ends at seq 7");
    ASK("SELECT string_agg(data #>> '{}', '' ORDER BY seq) || ' ' || count(DISTINCT seq) FROM"
        " annal.events WHERE type = 'agent.message'",
        "121212 6");
    ck_same_journals("run_r1");
}
END_TEST

/* AT-A19: revisions are numbered for both hosts, and no host changes or removes a revision. */
START_TEST(revisions_are_numbered_and_stay)
{
    NEEDS_SERVER();
    H1("run", "create", "r1");
    H1("revision", "record", "r1", "the cart forgets");
    H2("revision", "record", "r1", "the cart is slow");
    NOT_H1("the revision needs an unused number", "revision", "record", "r1", "again", "--number",
           "2");
    H1("sql", "SELECT count(*) FROM agentweaver.run_revisions");
    static const char *const changes[] = {
        "UPDATE run_revisions SET raw_comment = 'x'", "DELETE FROM run_revisions",
        "INSERT OR REPLACE INTO run_revisions SELECT * FROM run_revisions LIMIT 1"};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sqlite3 *db = NULL;
        ck_assert_int_eq(sqlite3_open(tmpdir_path(&cli.dir, "store/agentweaver.db"), &db),
                         SQLITE_OK);
        ck_assert_int_eq(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_CONSTRAINT);
        sqlite3_close(db);
    }
    H2_SAYS("{\"numbers\":\"1,2\"}\n", "sql", "--json",
            "SELECT group_concat(revision_number) AS numbers FROM agentweaver.run_revisions");
}
END_TEST

#define PROPOSE(by, slug)                                                                          \
    "decision", "propose", "shop", "Use SQLite", "--agent", by, "--type", "architectural",         \
        "--content", "One file.", "--slug", slug

/* AT-A20, AT-A22 to AT-A24: one proposal has a slug, and becomes at most one decision. */
START_TEST(a_proposal_of_the_inbox_is_decided_once)
{
    NEEDS_SERVER();
    H1("pack", "enable", "memory");
    H2("pack", "enable", "memory");
    H1(PROPOSE("ada", "db"));
    H2(PROPOSE("bob", "db"));
    NOT_H1("slug", "decision", "propose", "shop", "Other", "--agent", "cyd", "--content", "x",
           "--only-slug", "db");
    ASK("SELECT string_agg(data ->> 'slug', ' ' ORDER BY seq) FROM annal.events WHERE type ="
        " 'decision.proposed'",
        "db db--bob");
    H1("decision", "promote", "shop", "i1", "--by", "coordinator");
    NOT_H2("merged or rejected already", "decision", "promote", "shop", "i1", "--by",
           "coordinator");
    NOT_H2("merged or rejected already", "decision", "reject", "shop", "i1");
    H2("decision", "promote-all", "shop", "--by", "coordinator");
    NOT_H1("there is no pending proposal", "decision", "promote-all", "shop", "--by",
           "coordinator");
    NOT_H2("the decision that replaces it does not exist", "decision", "supersede", "shop", "d1",
           "d9");
    H1("decision", "supersede", "shop", "d1", "d2");
    H2("home", "share", "proj_shop", url);
    H2_SAYS("{\"id\":\"d1\",\"status\":\"superseded\"}\n{\"id\":\"d2\",\"status\":\"active\"}\n",
            "sql", "--json", "SELECT id, status FROM memory.decisions ORDER BY id");
    ASK("SELECT count(*) FROM annal.events WHERE type = 'decision.batch_promoted'", "1");
    ck_same_journals("proj_shop");
}
END_TEST

/* AT-A27: a project works on one thing at a time. */
START_TEST(a_project_has_one_current_session)
{
    NEEDS_SERVER();
    H1("pack", "enable", "memory");
    H2("pack", "enable", "memory");
    H1("context", "start", "shop", "c1");
    H2("context", "start", "shop", "c2");
    NOT_H1("the project has, or had, a session with this id", "context", "start", "shop", "c1");
    H1("context", "end", "shop");
    NOT_H2("the project has no open session", "context", "update", "shop", "--summary", "x");
    H2_SAYS("{\"n\":2,\"open\":0}\n", "sql", "--json",
            "SELECT count(*) AS n, sum(ended_at IS NULL) AS open FROM memory.session_contexts");
}
END_TEST

Suite *suite_cluster(void)
{
    Suite *suite = suite_create("cluster");
    TCase *cases = suite_case(suite, "cluster", set_up, fleet_teardown);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, a_pack_shares_a_session_from_its_first_event_on);
    tcase_add_test(cases, sessions_that_no_pack_shares_wait_for_no_store);
    tcase_add_test(cases, the_home_of_a_session_decides_alone);
    tcase_add_test(cases, earlier_events_are_shipped_first);
    tcase_add_test(cases, a_store_that_left_refuses_events);
    tcase_add_test(cases, a_program_without_a_decider_is_refused);
    tcase_add_test(cases, a_store_whose_cluster_cannot_be_read_is_refused);
    tcase_add_test(cases, a_decided_first_event_is_not_lost);
    tcase_add_test(cases, artifacts_of_a_shared_session_travel);
    tcase_add_test(cases, a_released_session_is_shared_again);
    tcase_add_test(cases, a_store_with_a_part_of_a_session_does_not_decide_by_it);
    tcase_add_test(cases, the_events_of_an_empty_journal_are_downloaded_again);
    tcase_add_test(cases, earlier_events_are_shipped_while_another_store_shares_the_session);
    tcase_add_test(cases, a_converted_shared_session_is_downloaded_again);
    tcase_add_test(cases, lost_events_of_a_target_are_shipped_again);
    tcase_add_test(cases, a_fork_of_a_shared_session_is_shared);
    tcase_add_test(cases, an_event_decided_before_a_release_stays);
    tcase_add_test(cases, one_of_eight_claims_of_a_task_wins);
    tcase_add_test(cases, each_of_eight_processes_appends_its_events);
    tcase_add_test(cases, the_status_of_a_run_is_one_for_all_hosts);
    tcase_add_test(cases, a_run_sees_its_project_from_another_host);
    tcase_add_test(cases, a_run_claimed_by_another_host_is_downloaded_with_its_project);
    tcase_add_test(cases, a_run_is_not_started_in_a_deleted_project);
    tcase_add_test(cases, the_lease_of_a_run_has_one_owner_on_all_hosts);
    tcase_add_test(cases, the_events_of_a_run_have_one_order);
    tcase_add_test(cases, revisions_are_numbered_and_stay);
    tcase_add_test(cases, a_proposal_of_the_inbox_is_decided_once);
    tcase_add_test(cases, a_project_has_one_current_session);
    return suite;
}
