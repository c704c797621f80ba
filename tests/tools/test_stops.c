/* The command beside a process that is stopped with every lock of the store. */
#include "tests/tools/cli.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPARE_MS 4000 /* a busy machine, and sanitizers; the usual limit is 10 s */

static struct cli cli;
static pid_t stopped;
static char who[64];

static void set_up(void)
{
    CLI_INIT(&cli);
    CLI(&cli, "{\"type\":\"a\",\"data\":1}\n", "append", "s1");
    cli_assert_done(&cli);
    CLI(&cli, NULL, "ls");
    cli_assert_done(&cli);
    alarm(60);
}

static void tear_down(void)
{
    kill(stopped, SIGKILL);
    ck_assert_int_eq(waitpid(stopped, NULL, 0), stopped);
    alarm(0);
    cli_done(&cli);
}

static void stop_with_all_locks(void)
{
    static const char *const locks[] = {"claim", "recovery", "structure", "index", "search"};
    int how = 0;
    stopped = fork();
    ck_assert_int_ge(stopped, 0);
    if (stopped == 0) {
        for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
            char path[512];
            snprintf(path, sizeof path, "%s/locks/%s", cli.store, locks[i]);
            int fd = open(path, O_RDWR | O_CREAT, 0600);
            if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
                _exit(1);
        }
        raise(SIGSTOP);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(stopped, &how, WUNTRACED), stopped);
    ck_assert(WIFSTOPPED(how));
    snprintf(who, sizeof who, "process %ld (stopped)", (long)stopped);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

START_TEST(readers_need_no_lock_to_answer_from_what_is_there)
{
    stop_with_all_locks();
    int64_t begun_ms = now_ms();
    CLI(&cli, NULL, "cat", "s1");
    cli_assert_done(&cli);
    ck_assert_ptr_nonnull(strstr(cli.out, "\"data\":1"));
    CLI(&cli, NULL, "ls", "--json", "--wait", "0");
    ck_assert_int_eq(cli.exit_status, 0);
    CLI(&cli, NULL, "doctor", "--wait", "0");
    ck_assert_ptr_nonnull(strstr(cli.out, "journals"));
    ck_assert_int_lt(now_ms() - begun_ms, SPARE_MS);
}
END_TEST

START_TEST(an_append_that_cannot_be_is_refused_in_time_and_names_the_process)
{
    stop_with_all_locks();
    int64_t begun_ms = now_ms();
    CLI(&cli, "{\"type\":\"a\",\"data\":2}\n", "append", "s1", "--wait", "1");
    int64_t took_ms = now_ms() - begun_ms;
    cli_assert_refused(&cli, 1, who);
    ck_assert_ptr_nonnull(strstr(cli.out, "{\"refused\":"));
    ck_assert_int_ge(took_ms, 1000);
    ck_assert_int_lt(took_ms, 1000 + SPARE_MS);
}
END_TEST

Suite *suite_stops(void)
{
    Suite *suite = suite_create("stops");
    TCase *cases = tcase_create("stops");
    suite_add_tcase(suite, cases);
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, readers_need_no_lock_to_answer_from_what_is_there);
    tcase_add_test(cases, an_append_that_cannot_be_is_refused_in_time_and_names_the_process);
    return suite;
}
