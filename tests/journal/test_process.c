/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/process.h"
#include "tests/support/runner.h"

#include <annal/process.h>

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static annal_process self(void)
{
    annal_process process = {0};
    annal_error err = {0};
    ck_assert_msg(annal_process_self(&process, &err) == ANNAL_OK, "%s", err.message);
    return process;
}

/* A child that waits to be killed, and its facts. */
static pid_t start_child(annal_process *out_process)
{
    annal_error err = {0};
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    ck_assert_msg(annal_process_get((uint32_t)child, out_process, &err) == ANNAL_OK, "%s",
                  err.message);
    return child;
}

START_TEST(a_running_process_is_not_dead)
{
    annal_process process = self();
    const char *why = NULL;
    ck_assert_uint_eq(process.pid, (uint32_t)getpid());
    ck_assert_uint_gt(process.start, 0);
    ck_assert_uint_eq(strlen(process.boot_id), 36);
    ck_assert(!annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "its process is alive");
    ck_assert(!annal_process_is_dead(&process, NULL));
    ck_assert_int_eq(annal__process_look(&process), ANNAL_PROCESS_ALIVE);
}
END_TEST

START_TEST(a_killed_process_is_dead_before_and_after_its_parent_waits_for_it)
{
    annal_process process;
    const char *why = NULL;
    siginfo_t info;
    pid_t child = start_child(&process);
    ck_assert(!annal_process_is_dead(&process, &why));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    ck_assert(annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "its process has ended and waits for its parent");
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "no process has its id now");
    ck_assert_int_eq(annal_process_get((uint32_t)child, &process, NULL), ANNAL_ERR_NOTFOUND);
}
END_TEST

START_TEST(a_reused_process_id_proves_the_death_of_the_first_process)
{
    annal_process process = self();
    const char *why = NULL;
    process.start--;
    ck_assert(annal_process_is_dead(&process, &why));
    ck_assert_int_eq(annal__process_look(&process), ANNAL_PROCESS_DEAD);
    ck_assert_str_eq(why, "another process has its id now");
}
END_TEST

START_TEST(no_process_outlives_its_boot)
{
    annal_process process = self();
    const char *why = NULL;
    process.boot_id[0] = process.boot_id[0] == '0' ? '1' : '0';
    ck_assert(annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "the system was restarted since");
}
END_TEST

START_TEST(missing_facts_prove_nothing)
{
    const annal_process whole = self();
    const char *why = NULL;
    annal_process process = {0};
    ck_assert(!annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "nothing is known of its process");
    process = whole;
    process.boot_id[5] = '\0';
    ck_assert(!annal_process_is_dead(&process, &why));
    ck_assert_int_eq(annal__process_look(&process), ANNAL_PROCESS_UNKNOWN);
    process = whole;
    process.start = 0;
    ck_assert(!annal_process_is_dead(&process, &why));
    process = whole;
    process.pid = 0;
    ck_assert(!annal_process_is_dead(&process, &why));
    process.pid = UINT32_MAX;
    ck_assert(!annal_process_is_dead(&process, &why));
}
END_TEST

START_TEST(a_process_of_another_container_is_not_reported_as_dead)
{
    annal_process process = self();
    const char *why = NULL;
    process.pid_ns++;
    process.start--;
    ck_assert(!annal_process_is_dead(&process, &why));
    ck_assert_str_eq(why, "it ran in another namespace of process ids");
}
END_TEST

START_TEST(a_process_name_may_have_brackets_and_spaces)
{
    char name[16] = "";
    const annal_process before = self();
    ck_assert_int_eq(prctl(PR_GET_NAME, name), 0);
    ck_assert_int_eq(prctl(PR_SET_NAME, "a) R 1 (2 3"), 0);
    const annal_process after = self();
    ck_assert_int_eq(prctl(PR_SET_NAME, name), 0);
    ck_assert_uint_eq(after.start, before.start);
    ck_assert(!annal_process_is_dead(&before, NULL));
}
END_TEST

START_TEST(the_json_lists_every_fact)
{
    char text[ANNAL_PROCESS_JSON_BYTES];
    const annal_process process = {.pid = 4294967295U,
                                   .start = UINT64_MAX,
                                   .pid_ns = UINT64_MAX,
                                   .boot_id = "00000000-1111-2222-3333-444444444444"};
    ck_assert_str_eq(annal_process_json(&process, text),
                     "{\"pid\":4294967295,\"start\":18446744073709551615,"
                     "\"pid_ns\":18446744073709551615,"
                     "\"boot_id\":\"00000000-1111-2222-3333-444444444444\"}");
}
END_TEST

Suite *suite_process(void)
{
    Suite *suite = suite_create("process");
    TCase *tests = suite_case(suite, "process", NULL, NULL);
    tcase_add_test(tests, a_running_process_is_not_dead);
    tcase_add_test(tests, a_killed_process_is_dead_before_and_after_its_parent_waits_for_it);
    tcase_add_test(tests, a_reused_process_id_proves_the_death_of_the_first_process);
    tcase_add_test(tests, no_process_outlives_its_boot);
    tcase_add_test(tests, missing_facts_prove_nothing);
    tcase_add_test(tests, a_process_of_another_container_is_not_reported_as_dead);
    tcase_add_test(tests, a_process_name_may_have_brackets_and_spaces);
    tcase_add_test(tests, the_json_lists_every_fact);
    return suite;
}
