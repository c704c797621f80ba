/* annal home against a PostgreSQL that the suite starts: two stores, h1 and h2. */
#include "tests/ship/pg.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"

#include <annal/lease.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct pg pg; /* of the suite; its directory is "" where there is no PostgreSQL */

static const char database[] = "fleet";
static const char *url, *second; /* the path of store h2 */

static void start_server(void)
{
    if (pg_start(&pg))
        pg_do(&pg, "postgres", "CREATE DATABASE fleet");
}

static void stop_server(void)
{
    pg_stop(&pg);
}

static void set_up(void)
{
    cli_setup();
    if (pg.dir[0] == '\0')
        return;
    pg_do(&pg, database, "DROP SCHEMA IF EXISTS annal CASCADE");
    url = strdup(pg_url(&pg, database, NULL));
    second = strdup(tmpdir_path(&cli.dir, "second"));
}

static void tear_down(void)
{
    free((void *)(uintptr_t)url);
    free((void *)(uintptr_t)second);
    cli_teardown();
}

#define NEEDS_SERVER()                                                                             \
    do {                                                                                           \
        if (pg.dir[0] == '\0')                                                                     \
            return;                                                                                \
    } while (0)

#define H1(...)       CLI(&cli, NULL, __VA_ARGS__, url, "--as", "h1")
#define H2(...)       CLI(&cli, NULL, __VA_ARGS__, url, "--as", "h2", "--store", second)
#define ASK(sql, ...) ck_text(pg_ask(&pg, database, sql), __VA_ARGS__)

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
    pg_do(&pg, database, "UPDATE annal._homes SET until = now() - interval '1 second'");
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
    H1("home", "take", "s1"); /* its own is made longer */
    cli_assert_done(&cli);
    H1("home", "release", "s1");
    ck_assert_str_eq(cli.out, "session 's1' has no home now: any store may take it\n");
    append("3", 1);
    ck_assert_ptr_nonnull(strstr(cli.err, "this store is not its home now"));
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
}
END_TEST

/* Although its lease here is over: pulling needs none. */
START_TEST(a_session_that_was_pulled_goes_on_where_it_was_before)
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
    cli_assert_refused(&cli, 1, "bring it here first, with 'annal pull'");
    DONE(&cli, "pull", "s1", "--from", url);
    append("3", 1);
    H1("home", "take", "s1");
    cli_assert_done(&cli);
    append("3", 0);
    H1("ship");
    ASK("SELECT string_agg(data::text, ',' ORDER BY seq) FROM annal._events", "1,2,3");
}
END_TEST

START_TEST(what_was_not_shipped_keeps_the_home)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("home", "take", "s1");
    H1("home", "release", "s1");
    cli_assert_refused(&cli, 1, "has 1 events that the target has not");
    append("2", 1);
    H1("ship");
    cli_assert_done(&cli);
    H1("home", "release", "s1");
    cli_assert_done(&cli);
}
END_TEST

START_TEST(a_store_that_lost_its_lease_ships_nothing_and_keeps_what_it_has)
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
    cli_assert_refused(&cli, 1, "session 's1' is not at home here: nothing of it is shipped");
    H1("ship", "status", "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"not at home\""));
    CLI(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1", "--store", second);
    H2("ship");
    cli_assert_done(&cli);
    ASK("SELECT string_agg(data::text, ',' ORDER BY seq) FROM annal._events", "1,2");
    end_lease();
    H1("home", "take", "s1");
    cli_assert_refused(&cli, 1, "all of them are kept in 's1.late-3'");
    CLI(&cli, NULL, "cat", "s1.late-3");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"late\""));
    H2("home", "take", "s1"); /* it was given back */
    cli_assert_done(&cli);
}
END_TEST

START_TEST(a_session_that_is_not_here_whole_is_not_at_home)
{
    NEEDS_SERVER();
    append("1", 0);
    H1("ship");
    move();
    append("2", 0);
    H1("ship");
    H2("home", "take", "s1");
    cli_assert_refused(&cli, 1, "ends with event 1 here, and with event 2 at the target");
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
    pg_do(&pg, database, "UPDATE annal._homes SET epoch = 7");
    append("2", 0);
    H1("ship");
    cli_assert_refused(&cli, 1, "session 's1' is not at home here");
    ASK("SELECT count(*) FROM annal._events", "1");
}
END_TEST

/* h2 shipped a copy of the session before anybody had it. */
START_TEST(a_store_with_a_head_of_its_own_must_go_on_from_the_longest_history)
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
    cli_assert_refused(&cli, 1, "ends with event 1 here, and with event 2 at the target");
    H1("home", "take", "s1");
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 3)\n");
    ASK(heads, "h1 2, h2 1");
    /* The target comes back from a backup, of a moment when the home was another one's. */
    pg_do(&pg, database,
          "UPDATE annal._homes SET epoch = 1, store = 'h2', until = '-infinity',"
          " was = 'h1'");
    H1("home", "take", "s1");
    ck_assert_str_eq(cli.out, "session 's1' is at home here for 30 s (epoch 4)\n");
}
END_TEST

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

START_TEST(a_shipper_that_follows_renews_the_leases)
{
    NEEDS_SERVER();
    int in, out;
    append("1", 0);
    H1("home", "take", "s1", "--for", "1");
    const char *const words[] = {"ship", url, "--as", "h1", "--follow", NULL};
    pid_t pid = cli_start(&cli, words, &in, &out);
    pg_do(&pg, database, "CREATE TABLE begun AS SELECT until FROM annal._homes");
    wait_for("SELECT count(*) FROM annal._homes AS h, begun AS b WHERE h.until > b.until", "1");
    append("2", 0);
    pg_do(&pg, database, "UPDATE annal._homes SET store = 'h2', epoch = 2; DROP TABLE begun");
    do
        CLI(&cli, "{\"type\":\"a\",\"data\":3}\n", "append", "s1");
    while (cli.exit_status == 0);
    cli_assert_refused(&cli, 1, "this store is not its home now");
    kill(pid, SIGTERM);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    close(in);
    close(out);
}
END_TEST

Suite *suite_home(void)
{
    Suite *suite = suite_create("home");
    TCase *cases = suite_case(suite, "home", set_up, tear_down);
    tcase_add_unchecked_fixture(cases, start_server, stop_server);
    tcase_add_test(cases, a_session_has_one_home_at_a_time);
    tcase_add_test(cases, a_session_that_was_pulled_goes_on_where_it_was_before);
    tcase_add_test(cases, what_was_not_shipped_keeps_the_home);
    tcase_add_test(cases, a_store_that_lost_its_lease_ships_nothing_and_keeps_what_it_has);
    tcase_add_test(cases, a_session_that_is_not_here_whole_is_not_at_home);
    tcase_add_test(cases, a_copy_of_a_store_with_an_older_epoch_is_fenced);
    tcase_add_test(cases, a_store_with_a_head_of_its_own_must_go_on_from_the_longest_history);
    tcase_add_test(cases, a_shipper_that_follows_renews_the_leases);
    return suite;
}
