/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/error.h"

#include "tests/support/runner.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(failing_fills_the_error_and_returns_the_status)
{
    annal_error err = {.os_errno = 7};
    ck_assert_int_eq(annal__fail(&err, ANNAL_ERR_LIMIT, "event of %d bytes", 9), ANNAL_ERR_LIMIT);
    ck_assert_int_eq(err.status, ANNAL_ERR_LIMIT);
    ck_assert_int_eq(err.os_errno, 0);
    ck_assert_str_eq(err.message, "event of 9 bytes");
}
END_TEST

START_TEST(failing_with_errno_says_why_and_keeps_errno)
{
    annal_error err = {0};
    errno = ENOSPC;
    ck_assert_int_eq(annal__fail_errno(&err, "append to session '%s'", "a1"), ANNAL_ERR_FULL);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_int_eq(err.os_errno, ENOSPC);
    ck_assert_str_eq(err.message, "append to session 'a1': No space left on device");
}
END_TEST

START_TEST(the_status_of_an_errno_says_what_a_program_can_do)
{
    ck_assert_int_eq(annal__error_of_errno(EDQUOT), ANNAL_ERR_FULL);
    ck_assert_int_eq(annal__error_of_errno(EROFS), ANNAL_ERR_READONLY);
    ck_assert_int_eq(annal__error_of_errno(EIO), ANNAL_ERR_DISK);
    ck_assert_int_eq(annal__error_of_errno(ENODEV), ANNAL_ERR_DISK);
    ck_assert_int_eq(annal__error_of_errno(EMFILE), ANNAL_ERR_IO);
    ck_assert(annal__error_is_io(ANNAL_ERR_DISK));
}
END_TEST

START_TEST(a_message_that_names_only_an_object_says_that_memory_is_lacking)
{
    annal_error err = {0};
    annal__fail(&err, ANNAL_ERR_NOMEM, "pack '%s'", "a: memory");
    ck_assert_str_eq(err.message, "pack 'a: memory': out of memory");
    annal__fail(&err, ANNAL_ERR_NOMEM, "tail: out of memory");
    ck_assert_str_eq(err.message, "tail: out of memory");
    annal__fail(&err, ANNAL_ERR_LIMIT, "pack '%s'", "a");
    ck_assert_str_eq(err.message, "pack 'a'");
}
END_TEST

START_TEST(a_caller_may_pass_null_for_the_error)
{
    errno = EIO;
    ck_assert_int_eq(annal__fail(NULL, ANNAL_ERR_BUSY, "x"), ANNAL_ERR_BUSY);
    ck_assert_int_eq(annal__fail_errno(NULL, "x"), ANNAL_ERR_DISK);
    ck_assert_int_eq(errno, EIO);
    annal__error_context(NULL, "x");
}
END_TEST

START_TEST(context_is_prepended_to_the_message_and_keeps_the_rest)
{
    annal_error err = {0};
    errno = EACCES;
    annal__fail_errno(&err, "open %s", "f");
    annal__error_context(&err, "import of '%s'", "log");
    ck_assert_str_eq(err.message, "import of 'log': open f: Permission denied");
    ck_assert_int_eq(err.status, ANNAL_ERR_IO);
    ck_assert_int_eq(err.os_errno, EACCES);
}
END_TEST

START_TEST(a_too_long_message_is_truncated)
{
    annal_error err = {0};
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    errno = EIO;
    annal__fail_errno(&err, "open %s", name);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
    annal__error_context(&err, "%s", name);
    ck_assert_uint_eq(strlen(err.message), sizeof err.message - 1);
}
END_TEST

START_TEST(every_status_has_a_name)
{
    static const annal_status all[] = {
        ANNAL_OK,           ANNAL_END,
        ANNAL_DAMAGE,       ANNAL_ERR_NOMEM,
        ANNAL_ERR_IO,       ANNAL_ERR_CORRUPT,
        ANNAL_ERR_NOTFOUND, ANNAL_ERR_INVALID,
        ANNAL_ERR_BUSY,     ANNAL_ERR_LIMIT,
        ANNAL_ERR_CLOSED,   ANNAL_ERR_CONFLICT,
        ANNAL_ERR_UNKNOWN,  ANNAL_ERR_UNSUPPORTED,
        ANNAL_ERR_SQL,      ANNAL_ERR_REFUSED,
        ANNAL_ERR_FULL,     ANNAL_ERR_READONLY,
        ANNAL_ERR_DISK,
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        ck_assert_str_ne(annal_status_name(all[i]), "no such status");
    ck_assert_str_eq(annal_status_name((annal_status)-99), "no such status");
}
END_TEST

START_TEST(a_slice_of_a_string_leaves_out_the_nul)
{
    ck_assert_uint_eq(annal_slice_of("abc").len, 3);
    ck_assert_uint_eq(annal_slice_of("").len, 0);
    ck_assert_ptr_null(annal_slice_of(NULL).ptr);
    ck_assert_uint_eq(annal_slice_of(NULL).len, 0);
}
END_TEST

START_TEST(the_version_is_that_of_the_header)
{
    ck_assert_str_eq(annal_version(), ANNAL_VERSION);
}
END_TEST

START_TEST(a_failed_assertion_ends_the_process_and_prints_its_place)
{
    char said[256] = {0};
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        ANNAL_ASSERT(1 + 1 == 2);
        ANNAL_ASSERT(1 + 1 == 3);
        _exit(0);
    }
    int how = 0;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    ck_assert_int_gt(read(ends[0], said, sizeof said - 1), 0);
    ck_assert_ptr_nonnull(strstr(said, "test_error.c"));
    ck_assert_ptr_nonnull(strstr(said, "1 + 1 == 3"));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

Suite *suite_error(void)
{
    Suite *suite = suite_create("error");
    TCase *tests = suite_case(suite, "error", NULL, NULL);
    tcase_add_test(tests, failing_fills_the_error_and_returns_the_status);
    tcase_add_test(tests, failing_with_errno_says_why_and_keeps_errno);
    tcase_add_test(tests, the_status_of_an_errno_says_what_a_program_can_do);
    tcase_add_test(tests, a_message_that_names_only_an_object_says_that_memory_is_lacking);
    tcase_add_test(tests, a_caller_may_pass_null_for_the_error);
    tcase_add_test(tests, context_is_prepended_to_the_message_and_keeps_the_rest);
    tcase_add_test(tests, a_too_long_message_is_truncated);
    tcase_add_test(tests, every_status_has_a_name);
    tcase_add_test(tests, a_slice_of_a_string_leaves_out_the_nul);
    tcase_add_test(tests, the_version_is_that_of_the_header);
    tcase_add_test(tests, a_failed_assertion_ends_the_process_and_prints_its_place);
    return suite;
}
