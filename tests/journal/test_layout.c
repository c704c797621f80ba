/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/layout.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A disk whose filesystem calls itself what the test says. */
struct named_disk {
    struct io io;
    uint64_t fs_type;
};

static int named_space(void *arg, int fd, struct io_space *out)
{
    const struct named_disk *disk = arg;
    int result = annal__system_io.space(NULL, fd, out);
    out->fs_type = disk->fs_type;
    return result;
}

static void remember_message(void *arg, annal_log_level level, const char *message)
{
    (void)level;
    snprintf(arg, 512, "%s", message);
}

static annal_status open_with(uint64_t fs_type, const annal_store_options *given, char log[512],
                              annal_error *err)
{
    struct named_disk disk = {.io = annal__system_io, .fs_type = fs_type};
    disk.io.arg = &disk;
    disk.io.space = named_space;
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    annal_store_options options = given == NULL ? (annal_store_options){0} : *given;
    options.create = options.no_keeper = true;
    options.log = remember_message;
    options.log_arg = log;
    annal_store *store = NULL;
    annal_status status =
        annal__store_open(tmpdir_path(&dir, "store"), &options, &seams, &store, err);
    if (status == ANNAL_OK)
        store_close(store);
    return status;
}

START_TEST(a_filesystem_without_locks_is_written_only_on_request_and_is_read_by_all)
{
    static const struct {
        uint64_t type;
        const char *name;
    } cases[] = {{0x6969, "on NFS,"},      {0x517b, "on SMB,"},    {0xff534d42, "on CIFS,"},
                 {0xfe534d42, "on SMB2,"}, {0x01021997, "on 9P,"}, {0x65735546, "on FUSE,"},
                 {0x00c36400, "on Ceph,"}};
    static const annal_store_options reader = {.read_only = true},
                                     insists = {.unsafe_filesystem = true};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        annal_error err = {0};
        char log[512] = "";
        ck_assert_int_eq(open_with(cases[i].type, NULL, log, &err), ANNAL_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(err.message, cases[i].name) != NULL, "%s", err.message);
        ck_assert_msg(strstr(err.message, "--unsafe-filesystem") != NULL, "%s", err.message);
        ck_assert_int_eq(open_with(cases[i].type, &insists, log, &err), ANNAL_OK);
        ck_assert_int_eq(open_with(cases[i].type, &reader, log, &err), ANNAL_OK);
    }
}
END_TEST

START_TEST(a_copy_on_write_filesystem_gives_no_warning)
{
    char log[512] = "";
    ck_ok(open_with(0x9123683e, NULL, log, err)); /* Btrfs */
    ck_ok(open_with(0xef53, NULL, log, err));     /* ext4 */
    ck_assert_str_eq(log, "");
}
END_TEST

START_TEST(a_store_of_a_newer_version_is_refused_and_a_store_without_a_version_opens)
{
    static const struct {
        const char *text;
        annal_status status;
    } cases[] = {{"1\n", ANNAL_OK},
                 {"", ANNAL_OK},
                 {"2\n", ANNAL_ERR_UNSUPPORTED},
                 {"123", ANNAL_ERR_UNSUPPORTED}};
    const char *version = tmpdir_path(&dir, "store/locks/version");
    char log[512];
    ck_ok(open_with(0xef53, NULL, log, err));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_write(version, cases[i].text, strlen(cases[i].text));
        ck_status(cases[i].status, open_with(0xef53, NULL, log, err));
    }
    ck_assert_int_eq(unlink(version), 0);
    ck_ok(open_with(0xef53, NULL, log, err));
    ck_assert_int_eq(access(version, F_OK), 0);
}
END_TEST

START_TEST(the_directories_of_a_store_are_private)
{
    static const char *const names[] = {"store", "store/events", "store/commit", "store/locks"};
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat info;
        ck_assert_int_eq(stat(tmpdir_path(&dir, names[i]), &info), 0);
        ck_assert_int_eq(info.st_mode & 07777, 0700);
    }
}
END_TEST

START_TEST(a_file_in_the_place_of_a_directory_is_reported)
{
    annal_error err = {0};
    annal_store *store = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true};
    file_write(tmpdir_path(&dir, "file"), "x", 1);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&dir, "file"), &options, &store, &err),
                     ANNAL_ERR_IO);
    ck_assert_msg(strstr(err.message, "file") != NULL, "%s", err.message);
    ck_assert_int_eq(annal_store_open(tmpdir_path(&dir, "file"), NULL, &store, &err),
                     ANNAL_ERR_NOTFOUND);
}
END_TEST

Suite *suite_layout(void)
{
    Suite *suite = suite_create("layout");
    TCase *tests = suite_case(suite, "layout", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tests, a_filesystem_without_locks_is_written_only_on_request_and_is_read_by_all);
    tcase_add_test(tests, a_copy_on_write_filesystem_gives_no_warning);
    tcase_add_test(tests,
                   a_store_of_a_newer_version_is_refused_and_a_store_without_a_version_opens);
    tcase_add_test(tests, the_directories_of_a_store_are_private);
    tcase_add_test(tests, a_file_in_the_place_of_a_directory_is_reported);
    return suite;
}
