/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Freed memory is not reused until 8 MB more have been freed. The sanitizer's own 256 MB make each
 * of some thousand children touch new memory, which is half of what the tests cost.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8";
}

int run_suites(int argc, char **argv, Suite *(*const suites[])(void))
{
    setenv("CK_DEFAULT_TIMEOUT", "120", 0);
    if (argc > 1)
        setenv("CK_RUN_SUITE", argv[1], 1);
    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; suites[i] != NULL; i++)
        srunner_add_suite(runner, suites[i]());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int ran = srunner_ntests_run(runner);
    srunner_free(runner);
    if (failed > 0) { /* without a search for what the failed test did not free */
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
    return ran > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

TCase *suite_case(Suite *suite, const char *name, SFun setup, SFun teardown)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

unsigned many_or(unsigned many, unsigned few)
{
    return getenv("ANNAL_TEST_QUICK") == NULL ? many : few;
}

unsigned full_or(unsigned full, unsigned usual)
{
    return getenv("ANNAL_TEST_FULL") != NULL ? full : usual;
}
