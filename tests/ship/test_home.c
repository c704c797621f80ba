/* SPDX-License-Identifier: Apache-2.0 */
/* annal home against a PostgreSQL that the suite starts: two stores, h1 and h2. */
#include "tests/ship/fixture.h"
#include "tests/ship/proxy.h"
#include "tests/support/runner.h"
#include "tools/ship/home.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define H1(...) CLI(&cli, NULL, __VA_ARGS__, url, "--as", "h1")
#define H2(...) CLI(&cli, NULL, __VA_ARGS__, url, "--as", "h2", "--store", second)

static void append(const char *number, int exit_status)
{
    char input[60];
    snprintf(input, sizeof input, "{\"type\":\"a\",\"data\":%s}\n", number);
    CLI(&cli, input, "append", "s1");
    ck_assert_msg(cli.exit_status == exit_status, "%d: %s", cli.exit_status, cli.err);
}

/* As if the lease were over there, without waiting for it. */
static void end_lease(void)
{
    fleet_do("UPDATE annal._homes SET until = now() - interval '1 second'");
}

/* The session s1 goes to h2 as a bundle. */
static void move(void)
{
    const char *bundle = tmpdir_path(&cli.dir, "bundle");
    DONE(&cli, "export", "s1", "--format", "bundle", "--to", bundle);
    CLI(&cli, NULL, "import", "bundle", bundle, "--store", second);
    ck_assert_msg(cli.exit_status == 0, "%s", cli.err);
    unlink(bundle);
}

START_TEST(a_session_has_one_home_at_a_time)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    cli_assert_done(&cli);
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 1)\n");
    append("2", 0);
    H1("ship");
    cli_assert_done(&cli);
    move();
    H2("home", "take", "s1");
    cli_assert_refused(&cli, 1, "session 's1' is at home in store 'h1' (epoch 1)");
    H1("home", "take", "s1"); /* extends its own lease */
    cli_assert_done(&cli);
    H1("home", "release", "s1");
    ck_assert_str_eq(cli.out, "session 's1' has no home now: any store may take it\n");
    append("3", 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "this store is not the session's home now"));
    H2("home", "take", "s1");
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 3)\n");
    CLI(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1", "--store", second);
    H2("ship");
    cli_assert_done(&cli);
    /* One history, whose head went with the home. */
    ASK("SELECT store || ' ' || seq FROM annal._heads", "h2 3");
    ASK("SELECT count(*) || ' ' || count(DISTINCT seq) FROM annal._events", "3 3");
    H1("home", "status", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"home\":\"h2\",\"epoch\":3,"));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"here\":\"lost\""));
    H1("ship", "status", "--json"); /* what the target has of it, whosever it is */
    ck_assert_ptr_nonnull(
        strstr(cli.out, "\"seq\":2,\"target_seq\":3,\"behind\":0,\"state\":\"not at home\""));
}
END_TEST

/* Although its lease here is over: pulling needs none. */
START_TEST(a_pulled_session_continues_at_its_first_home)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("ship");
    H1("home", "release", "s1");
    CLI(&cli, NULL, "pull", "s1", "--from", url, "--store", second);
    cli_assert_done(&cli);
    H2("home", "take", "s1");
    CLI(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1", "--store", second);
    H2("ship");
    H2("home", "release", "s1");
    cli_assert_done(&cli);
    H1("home", "take", "s1");
    cli_assert_refused(&cli, 1, "download the session first, with 'annal pull'");
    DONE(&cli, "pull", "s1", "--from", url);
    append("3", 1);
    H1("home", "take", "s1");
    cli_assert_done(&cli);
    append("3", 0);
    H1("ship");
    ASK("SELECT string_agg(data::text, ',' ORDER BY seq) FROM annal._events", "1,2,3");
}
END_TEST

/* status and release, with another name than the session was taken with. */
START_TEST(a_home_is_identified_by_its_epoch_and_released_by_its_store)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("ship");
    H1("home", "take", "s1");
    CLI(&cli, NULL, "home", "status", url, "--json");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"here\":\"at home\""));
    CLI(&cli, NULL, "home", "release", "s1", url, "--as", "h7");
    cli_assert_refused(&cli, 1, "is at home in store 'h1' (epoch 1), not in 'h7'");
    ASK("SELECT store FROM annal._homes", "h1");
    H1("home", "release", "s1");
    cli_assert_done(&cli);
    H1("home", "status", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"home\":\"\""));
    ck_assert_ptr_nonnull(strstr(cli.out, "\"here\":\"\""));
    H1("home", "release", "s2");
    cli_assert_refused(&cli, 1, "was neither taken nor shared in this store");
}
END_TEST

/* It only looks. */
START_TEST(home_status_creates_no_schema)
{
    NEEDS_SERVER();
    append("1", 0);
    fleet_do("DROP SCHEMA IF EXISTS annal CASCADE");
    H1("home", "status");
    cli_assert_refused(&cli, 1, "nothing was shipped to");
    ASK("SELECT coalesce(to_regnamespace('annal')::text, 'none')", "none");
}
END_TEST

START_TEST(unshipped_events_prevent_a_release)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("home", "release", "s1");
    cli_assert_refused(&cli, 1, "has 1 event that the target lacks");
    append("2", 1);
    H1("ship");
    cli_assert_done(&cli);
    H1("home", "release", "s1");
    cli_assert_done(&cli);
}
END_TEST

START_TEST(a_store_that_lost_its_lease_ships_nothing_and_keeps_its_events)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("ship");
    cli_assert_done(&cli);
    move();
    append("\"late\"", 0);
    end_lease();
    H2("home", "take", "s1");
    cli_assert_done(&cli);
    H1("ship");
    cli_assert_refused(&cli, 1,
                       "session 's1' is not shipped: the home of the session is not this store");
    append("\"later\"", 1); /* the lease ended with that */
    H1("ship", "status", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"not at home\""));
    CLI(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1", "--store", second);
    H2("ship");
    cli_assert_done(&cli);
    ASK("SELECT string_agg(data::text, ',' ORDER BY seq) FROM annal._events", "1,2");
    H1("ship");
    ck_assert_ptr_nonnull(
        strstr(cli.err, "session 's1': 1 event after event 1, appended after the lease expired, "
                        "saved as session 's1.late-1'"));
    end_lease();
    H1("home", "take", "s1");
    cli_assert_refused(&cli, 1, "saved as session 's1.late-1'");
    H1("ship");
    cli_assert_refused(&cli, 1,
                       "session 's1' is not shipped: the home of the session is not this store");
    ASK("SELECT string_agg(coalesce(data ->> 'after_seq', data::text), ',' ORDER BY seq)"
        " FROM annal.events WHERE session_id = 's1.late-1'",
        "1,\"late\"");
    H2("home", "take", "s1"); /* it was given back */
    cli_assert_done(&cli);
    DONE(&cli, "delete", "s1", "--yes");
    DONE(&cli, "pull", "s1", "--from", url);
}
END_TEST

/* An event that is not late yet, because no other store has appended at its seq, is not copied. */
START_TEST(events_that_the_home_can_still_ship_are_not_late)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("ship");
    move();
    append("2", 0);
    end_lease();
    H2("home", "take", "s1");
    H1("ship");
    cli_assert_refused(&cli, 1,
                       "session 's1' is not shipped: the home of the session is not this store");
    H2("home", "release", "s1");
    H1("home", "take", "s1");
    cli_assert_done(&cli);
    H1("ship");
    ASK("SELECT string_agg(session_id || data::text, ',' ORDER BY seq) FROM annal.events",
        "s11,s12");
}
END_TEST

/* Two sessions whose names begin in the same way, and a session that has the name by chance. */
START_TEST(a_session_with_the_name_of_a_late_copy_keeps_its_name)
{
    NEEDS_SERVER();
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1", "--format", "msgpack");
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":0}\n", "append", "s1.late-1");
    H1("home", "take", "s1");
    H1("ship");
    move();
    append("2", 0);
    end_lease();
    H2("home", "take", "s1");
    CLI(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1", "--store", second);
    H2("ship");
    H1("ship");
    ck_assert_ptr_nonnull(strstr(cli.err, "saved as session 's1.late-1-2'"));
    H1("ship");
    H1("ship");
    ASK("SELECT string_agg(session_id, ',' ORDER BY session_id, seq) FROM annal.events"
        " WHERE session_id LIKE 's1.%'",
        "s1.late-1,s1.late-1-2,s1.late-1-2");
}
END_TEST

START_TEST(a_store_with_an_incomplete_session_cannot_be_its_home)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("ship");
    move();
    append("2", 0);
    H1("ship");
    H2("home", "take", "s1");
    cli_assert_refused(&cli, 1, "ends with event 1 in this store, but with event 2 at the target");
    H1("home", "take", "s1");
    cli_assert_done(&cli);
    ASK("SELECT store FROM annal._heads", "h1");
}
END_TEST

START_TEST(a_copy_of_a_store_with_an_older_epoch_is_fenced)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("ship");
    cli_assert_done(&cli);
    fleet_do("UPDATE annal._homes SET epoch = 7");
    append("2", 0);
    H1("ship");
    cli_assert_refused(&cli, 1, "session 's1' is not shipped: the home of the session");
    ASK("SELECT count(*) FROM annal._events", "1");
}
END_TEST

/* h2 shipped a copy of the session before any store was its home. */
START_TEST(a_store_with_its_own_head_must_have_the_longest_history)
{
    NEEDS_SERVER();
    const char *heads = "SELECT string_agg(store || ' ' || seq, ', ' ORDER BY store)"
                        " FROM annal._heads";
    append("1", 0);
    H1("ship");
    move();
    H2("ship");
    append("2", 0);
    H1("ship");
    ASK(heads, "h1 2, h2 1");
    H2("home", "take", "s1");
    cli_assert_refused(&cli, 1, "ends with event 1 in this store, but with event 2 at the target");
    append("3", 0);
    H1("ship"); /* no store is its home */
    cli_assert_done(&cli);
    H1("home", "take", "s1");
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 1)\n");
    ASK(heads, "h1 3, h2 1");
    /* The target is restored from a backup of a moment when another store was the home. */
    fleet_do("UPDATE annal._homes SET epoch = 1, store = 'h2', until = '-infinity',"
             " was = 'h1'");
    H1("home", "take", "s1");
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 2)\n");
}
END_TEST

/* Two stores have sessions of their own that are called s1. */
START_TEST(events_of_another_session_with_the_same_name_are_not_late)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("ship");
    CLI(&cli, "{\"type\":\"b\",\"data\":1}\n", "append", "s1", "--store", second);
    H2("ship");
    cli_assert_refused(&cli, 1, "session 's1' is not shipped: the home of the session");
    ck_assert_ptr_null(strstr(cli.err, "too late"));
    H1("home", "release", "s1");
    H2("home", "take", "s1");
    cli_assert_refused(&cli, 1, "the target already has a different session named 's1'");
    H2("ship");
    ASK("SELECT string_agg(store, ',') FROM annal._heads", "h1");
}
END_TEST

/* ---- Several at once ---- */

static void start_proxy(struct proxy *proxy, char through[80])
{
    char socket[100];
    snprintf(socket, sizeof socket, "%s/.s.PGSQL.5432", pg.dir);
    proxy_start(proxy, socket);
    snprintf(through, 80, "postgresql://boss@127.0.0.1:%d/fleet", proxy->port);
}

/* Ship as h1, and stop the network in the middle of the batch. */
static pid_t start_batch_that_stalls(struct proxy *proxy)
{
    char through[80];
    char *big = calloc(1, 500000);
    ck_assert_ptr_nonnull(big);
    memset(big, 'x', 499999);
    memcpy(big, "{\"type\":\"a\",\"data\":\"", 20);
    memcpy(big + 499990, "\"}\n", 4);
    DONE_WITH(&cli, big, "append", "s1");
    free(big);
    start_proxy(proxy, through);
    proxy_set(proxy, PROXY_SLOW);
    pid_t pid = fleet_spawn((const char *const[]){"ship", through, "--as", "h1", NULL});
    fleet_wait_for("SELECT count(*) FROM pg_locks WHERE relation = to_regclass('annal._homes')"
                   " AND mode = 'RowShareLock'",
                   "1");
    proxy_set(proxy, PROXY_STALL);
    return pid;
}

/* The first batch, so that no head makes another store wait. */
START_TEST(a_batch_blocks_taking_a_home_but_not_renewing_a_lease)
{
    NEEDS_SERVER();
    struct proxy proxy;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "begun", "--store", second);
    append("1", 0);
    H1("home", "take", "s1", "--for", "2");
    cli_assert_done(&cli);
    pid_t shipper = start_batch_that_stalls(&proxy);
    fleet_do("CREATE TABLE begun AS SELECT until FROM annal._homes");
    pid_t keeper = fleet_spawn((const char *const[]){"home", "keep", url, "--as", "h1", NULL});
    fleet_wait_for("SELECT count(*) FROM annal._homes AS h, begun AS b WHERE h.until > b.until",
                   "1");
    kill(keeper, SIGTERM);
    (void)fleet_join(keeper);
    fleet_do("DROP TABLE begun");
    end_lease();
    pid_t other = fleet_spawn(
        (const char *const[]){"home", "take", "s1", url, "--as", "h2", "--store", second, NULL});
    fleet_wait_for("SELECT count(*) FROM pg_locks WHERE NOT granted", "1");
    proxy_set(&proxy, PROXY_PASS);
    ck_assert_int_eq(fleet_join(shipper), 0);
    ck_assert_int_eq(fleet_join(other), 1); /* it lacks what was shipped */
    ASK("SELECT store || ' ' || seq FROM annal._heads", "h2 2");
    proxy_stop(&proxy);
}
END_TEST

START_TEST(the_first_take_of_a_session_waits_for_its_first_batch)
{
    NEEDS_SERVER();
    struct proxy proxy;
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "begun", "--store", second);
    pid_t shipper = start_batch_that_stalls(&proxy);
    pid_t other = fleet_spawn(
        (const char *const[]){"home", "take", "s1", url, "--as", "h2", "--store", second, NULL});
    fleet_wait_for("SELECT count(*) FROM annal._homes", "1");
    proxy_set(&proxy, PROXY_PASS);
    ck_assert_int_eq(fleet_join(shipper), 0);
    ck_assert_int_eq(fleet_join(other), 1);
    proxy_stop(&proxy);
}
END_TEST

/* While another connection has the row of a session, a renewal has those before it. */
static void assert_locked_before(const char *session, const char *others)
{
    char sql[100];
    PGconn *conn = PQconnectdb(url);
    snprintf(sql, sizeof sql, "BEGIN; SELECT FROM annal._homes WHERE session = '%s' FOR UPDATE",
             session);
    PQclear(PQexec(conn, sql));
    fleet_wait_for("SELECT count(*) FROM pg_locks WHERE NOT granted", "1");
    ASK("SELECT count(*) FROM (SELECT FROM annal._homes FOR UPDATE SKIP LOCKED) AS free", others);
    PQfinish(conn);
}

START_TEST(leases_are_renewed_in_the_order_of_their_names)
{
    NEEDS_SERVER();
    static const char *const sessions[] = {"d", "a", "c", "b"};
    append("1", 0);
    for (int i = 0; i < 4; i++)
        H1("home", "take", sessions[i], "--for", "1");
    fleet_do("ALTER ROLE boss SET enable_mergejoin = off"); /* it sorts, too */
    pid_t keeper = fleet_spawn((const char *const[]){"home", "keep", url, "--as", "h1", NULL});
    assert_locked_before("a", "3");
    assert_locked_before("d", "0");
    fleet_do("ALTER ROLE boss RESET enable_mergejoin");
    kill(keeper, SIGTERM);
    (void)fleet_join(keeper);
}
END_TEST

static annal_store *renewed;

/* Meanwhile another process takes s1 again and gives s2 back. */
static annal_status renew_slowly(struct ship_target *target, struct home_lease *leases,
                                 size_t count, annal_error *err)
{
    annal_lease lease = {.epoch = 2, .until_us = INT64_MAX, .seconds = 30, .giver = "db"};
    (void)target;
    for (size_t i = 0; i < count; i++)
        leases[i].kept = true;
    annal_status status = annal_lease_set(renewed, ANNAL_SLICE("s1"), &lease, err);
    lease = (annal_lease){.epoch = 1, .giver = "db"};
    return status < 0 ? status : annal_lease_set(renewed, ANNAL_SLICE("s2"), &lease, err);
}

static const char *name_of_db(const struct ship_target *target)
{
    (void)target;
    return "db";
}

START_TEST(a_lease_that_changed_in_the_meantime_does_not_stop_other_renewals)
{
    static const char *const sessions[] = {"s1", "s2", "s0", "s3"};
    const struct home_kind kind = {.renew = renew_slowly, .name = name_of_db};
    annal_lease lease = {.epoch = 1, .seconds = 60, .giver = "db"};
    annal_error err = {0};
    int64_t third_us = 0;
    append("1", 0);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&cli.dir, "store"), NULL, &renewed, &err), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(annal_lease_set(renewed, annal_slice_of(sessions[i]), &lease, &err), 0);
    ck_assert_int_eq(home_renew(renewed, &kind, NULL, &third_us, &err), 0);
    ck_assert_int_eq(third_us, 20000000);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(annal_lease_get(renewed, annal_slice_of(sessions[i]), &lease, &err), 0);
        ck_assert_uint_eq(lease.epoch, i == 0 ? 2 : 1);
        ck_assert_int_eq(lease.until_us > 0, i != 1);
    }
    ck_assert_int_eq(annal_store_close(renewed, &err), 0);
}
END_TEST

/* Its statement was waiting for the row, and would have gone on. */
START_TEST(a_take_that_timed_out_does_not_succeed_later)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    fleet_do("UPDATE annal._homes SET store = NULL");
    PGconn *other = PQconnectdb(url);
    PQclear(PQexec(other, "BEGIN; SELECT FROM annal._homes FOR UPDATE"));
    H2("home", "take", "s1", "--timeout", "1");
    cli_assert_refused(&cli, 3, "ship to");
    PQfinish(other);
    fleet_do("UPDATE annal._homes SET until = until"); /* after all waiting transactions */
    ASK("SELECT count(store) FROM annal._homes", "0");
}
END_TEST

/* Which waits longer and longer, but not longer than a third of the lease. */
START_TEST(a_shipper_renews_soon_after_its_target_is_reachable_again)
{
    NEEDS_SERVER();
    struct proxy proxy;
    char through[80];
    append("1", 0);
    start_proxy(&proxy, through);
    CLI(&cli, NULL, "home", "take", "s1", through, "--as", "h1", "--for", "3");
    cli_assert_done(&cli);
    pid_t shipper =
        fleet_spawn((const char *const[]){"ship", through, "--as", "h1", "--follow", NULL});
    fleet_wait_for("SELECT coalesce(sum(seq), 0) FROM annal._heads", "1");
    proxy_set(&proxy, PROXY_CUT);
    nanosleep(&(struct timespec){.tv_sec = 20}, NULL);
    fleet_do("CREATE TABLE begun AS SELECT until FROM annal._homes");
    proxy_set(&proxy, PROXY_PASS);
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    ASK("SELECT h.until > b.until FROM annal._homes AS h, begun AS b", "t");
    fleet_do("DROP TABLE begun");
    kill(shipper, SIGTERM);
    (void)fleet_join(shipper);
    proxy_stop(&proxy);
}
END_TEST

/* A store without --as is called HOST:PATH; a target of several servers has all their names. */
START_TEST(a_home_may_have_long_names)
{
    NEEDS_SERVER();
    char part[101] = "", store[1000], target[1000], *end = target;
    memset(part, 'p', sizeof part - 1);
    snprintf(store, sizeof store, "%s", tmpdir_path(&cli.dir, "deep"));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(mkdir(store, 0777), 0);
        strcat(strcat(store, "/"), part);
    }
    end += sprintf(target, "postgresql:///fleet?user=boss&host=%s", pg.dir);
    while (end - target < 600)
        end += sprintf(end, ",%s", pg.dir);
    DONE_WITH(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1", "--store", store);
    DONE(&cli, "home", "take", "s1", target, "--store", store);
    DONE(&cli, "ship", target, "--store", store);
    DONE(&cli, "ship", "status", target, "--store", store, "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"equal\""));
    DONE(&cli, "home", "status", target, "--store", store, "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"here\":\"at home\""));
}
END_TEST

START_TEST(a_following_shipper_renews_the_leases)
{
    NEEDS_SERVER();
    int in, out;
    append("1", 0);
    H1("home", "take", "s1", "--for", "1");
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    fleet_do("CREATE TABLE begun AS SELECT until FROM annal._homes");
    fleet_wait_for("SELECT count(*) FROM annal._homes AS h, begun AS b WHERE h.until > b.until",
                   "1");
    append("2", 0);
    fleet_do("UPDATE annal._homes SET store = 'h2', epoch = 2; DROP TABLE begun");
    do
        CLI(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    while (cli.exit_status == 0);
    cli_assert_refused(&cli, 1, "this store is not the session's home now");
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
}
END_TEST

Suite *suite_home(void)
{
    Suite *suite = suite_create("home");
    TCase *cases = suite_case(suite, "home", fleet_setup, fleet_teardown);
    tcase_add_unchecked_fixture(cases, fleet_start, fleet_stop);
    tcase_add_test(cases, a_session_has_one_home_at_a_time);
    tcase_add_test(cases, a_pulled_session_continues_at_its_first_home);
    tcase_add_test(cases, a_home_is_identified_by_its_epoch_and_released_by_its_store);
    tcase_add_test(cases, home_status_creates_no_schema);
    tcase_add_test(cases, unshipped_events_prevent_a_release);
    tcase_add_test(cases, a_store_that_lost_its_lease_ships_nothing_and_keeps_its_events);
    tcase_add_test(cases, events_that_the_home_can_still_ship_are_not_late);
    tcase_add_test(cases, a_session_with_the_name_of_a_late_copy_keeps_its_name);
    tcase_add_test(cases, a_store_with_an_incomplete_session_cannot_be_its_home);
    tcase_add_test(cases, a_copy_of_a_store_with_an_older_epoch_is_fenced);
    tcase_add_test(cases, a_store_with_its_own_head_must_have_the_longest_history);
    tcase_add_test(cases, events_of_another_session_with_the_same_name_are_not_late);
    tcase_add_test(cases, a_batch_blocks_taking_a_home_but_not_renewing_a_lease);
    tcase_add_test(cases, the_first_take_of_a_session_waits_for_its_first_batch);
    tcase_add_test(cases, leases_are_renewed_in_the_order_of_their_names);
    tcase_add_test(cases, a_lease_that_changed_in_the_meantime_does_not_stop_other_renewals);
    tcase_add_test(cases, a_take_that_timed_out_does_not_succeed_later);
    tcase_add_long_test(cases, a_shipper_renews_soon_after_its_target_is_reachable_again);
    tcase_add_test(cases, a_home_may_have_long_names);
    tcase_add_test(cases, a_following_shipper_renews_the_leases);
    return suite;
}
