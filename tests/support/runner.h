/* SPDX-License-Identifier: Apache-2.0 */
/* The main() of a folder's tests: run the suites and answer with the exit status. */
#pragma once

#include <check.h>

/*
 * Each test_<file>.c gives one suite; the list ends with NULL. With an argument only the suite of
 * that name runs. CK_RUN_CASE and the other CK_ variables of Check work as its manual says. A test
 * that takes more than two minutes has hung, unless its case says otherwise.
 */
int run_suites(int argc, char **argv, Suite *(*const suites[])(void));

/* A new case of a suite, with what runs before and after each of its tests; NULL: nothing. */
TCase *suite_case(Suite *suite, const char *name, SFun setup, SFun teardown);

/* Assert that these bytes, which are freed, equal a text. */
#define ck_text(bytes, expected)                                                                   \
    do {                                                                                           \
        char *text_ = (bytes);                                                                     \
        ck_assert_str_eq(text_, expected);                                                         \
        free(text_);                                                                               \
    } while (0)

/* How much of an exhaustive test to do: many, or few where ANNAL_TEST_QUICK is set (under
 * Valgrind). */
unsigned many_or(unsigned many, unsigned few);

/* All of it where ANNAL_TEST_FULL is set (make check-long), else as much as fits into a run of all
 * tests. */
unsigned full_or(unsigned full, unsigned usual);

/* Add a test only where ANNAL_TEST_FULL is set. */
#define tcase_add_long_test(tcase, test)                                                           \
    do {                                                                                           \
        if (full_or(1, 0))                                                                         \
            tcase_add_test(tcase, test);                                                           \
    } while (0)
