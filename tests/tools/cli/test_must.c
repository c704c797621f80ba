/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the command needs: without it the command ends. */
#include "tests/support/runner.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Call fn in a process of its own. Return its exit status, and set text to what it printed. */
static int run_alone(void (*fn)(void), char *text, size_t size)
{
    int ends[2], status = 0;
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t len = 0;
    for (ssize_t got; (got = read(ends[0], text + len, size - 1 - len)) > 0;)
        len += (size_t)got;
    text[len] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void take_too_much(void)
{
    (void)must_realloc_array(NULL, SIZE_MAX / 2, 4);
}

static void overfill(void)
{
    struct buf buf = {.limit = 4};
    must_append_text(&buf, "more than four");
}

static void fail_otherwise(void)
{
    must_true(false);
}

START_TEST(memory_that_cannot_be_had_ends_the_command_with_one_sentence)
{
    void (*const fns[])(void) = {take_too_much, overfill, fail_otherwise};
    char text[200];
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++) {
        ck_assert_int_eq(run_alone(fns[i], text, sizeof text), EXIT_STORAGE);
        ck_assert_str_eq(text, "annal: out of memory\n");
    }
}
END_TEST

START_TEST(texts_of_any_length_end_with_a_nul_after_printf)
{
    struct buf buf = {0};
    for (size_t i = 0; i < 1000; i++) {
        must_printf(&buf, "%c", 'a');
        ck_assert_uint_eq(strlen(buf.ptr), i + 1);
    }
    annal__buf_clear(&buf);
    must_append_text(&buf, "x");
    must_quote(&buf, ANNAL_SLICE("a\"b"));
    ck_assert_str_eq(must_cstr(&buf), "x\"a\\\"b\"");
    annal__buf_done(&buf);
}
END_TEST

Suite *suite_must(void)
{
    Suite *suite = suite_create("must");
    TCase *memory = suite_case(suite, "memory", NULL, NULL);
    tcase_add_test(memory, memory_that_cannot_be_had_ends_the_command_with_one_sentence);
    tcase_add_test(memory, texts_of_any_length_end_with_a_nul_after_printf);
    return suite;
}
