/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/error.h"
#include "journal/base/io.h"

#include "tests/support/failing_io.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct failing_io disk;

static void set_up(void)
{
    tmpdir_setup();
    failing_io_init(&disk);
}

static void assert_file(const char *name, const char *expected)
{
    ck_text(file_read(tmpdir_path(&dir, name), NULL), expected);
}

/* Whether a temporary file was left over. */
static int is_temporary(void *arg, const char *name)
{
    (void)arg;
    return strstr(name, ".tmp-") != NULL;
}

static bool left_behind(void)
{
    return annal__system_io.list(NULL, tmpdir_path(&dir, "."), is_temporary, NULL) != 0;
}

START_TEST(a_published_file_is_complete_and_private)
{
    const char *path = tmpdir_path(&dir, "f");
    ck_assert_int_eq(annal__io_publish_file(&disk.io, path, "one", 3, NULL), ANNAL_OK);
    ck_assert_int_eq(annal__io_publish_file(&disk.io, path, "two!", 4, NULL), ANNAL_OK);
    assert_file("f", "two!");
    ck_assert(!left_behind());
    struct stat info;
    ck_assert_int_eq(disk.io.stat(disk.io.arg, path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
}
END_TEST

/* Calls: create, write, sync, rename; then open the directory and sync it. */
START_TEST(a_failed_publish_leaves_the_old_or_the_new_file_and_no_trace)
{
    const char *path = tmpdir_path(&dir, "f");
    ck_assert_int_eq(annal__io_publish_file(&disk.io, path, "old", 3, NULL), ANNAL_OK);
    unsigned calls = disk.calls;
    ck_assert_uint_eq(calls, 6);
    for (unsigned i = 1; i <= calls; i++) {
        annal_error err = {0};
        disk.calls = 0;
        disk.fail_at = i;
        ck_assert_int_eq(annal__io_publish_file(&disk.io, path, "new", 3, &err), ANNAL_ERR_FULL);
        ck_assert_int_eq(err.os_errno, ENOSPC);
        ck_assert_ptr_nonnull(strstr(err.message, "No space left on device"));
        assert_file("f", i <= 4 ? "old" : "new");
        ck_assert(!left_behind());
    }
}
END_TEST

START_TEST(short_writes_and_reads_are_carried_on)
{
    disk.short_len = 3;
    const char *path = tmpdir_path(&dir, "f");
    ck_assert_int_eq(annal__io_publish_file(&disk.io, path, "0123456789", 10, NULL), ANNAL_OK);
    assert_file("f", "0123456789");

    char bytes[16] = {0};
    int fd = disk.io.open(disk.io.arg, path, O_RDONLY, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(annal__io_read_full(&disk.io, fd, bytes, 7, 2), 7);
    ck_assert_str_eq(bytes, "2345678");
    ck_assert_int_eq(annal__io_read_full(&disk.io, fd, bytes, sizeof bytes, 8), 2);
    ck_assert_int_eq(annal__io_read_full(&disk.io, fd, bytes, sizeof bytes, 10), 0);
    disk.io.close(disk.io.arg, fd);
}
END_TEST

START_TEST(an_interrupted_write_or_read_is_resumed)
{
    char bytes[4] = {0};
    int fd = disk.io.open(disk.io.arg, tmpdir_path(&dir, "f"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    disk.with_errno = EINTR;
    disk.fail_at = disk.calls + 1;
    ck_assert_int_eq(annal__io_write_all(&disk.io, fd, "abc", 3, 0), 0);
    disk.fail_at = disk.calls + 1;
    ck_assert_int_eq(annal__io_read_full(&disk.io, fd, bytes, 3, 0), 3);
    ck_assert_str_eq(bytes, "abc");
    disk.io.close(disk.io.arg, fd);
}
END_TEST

static ssize_t write_nothing(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    (void)arg, (void)fd, (void)bytes, (void)len, (void)offset;
    return 0;
}

START_TEST(a_write_of_zero_bytes_is_an_error_and_not_an_endless_loop)
{
    disk.io.pwrite = write_nothing;
    ck_assert_int_eq(annal__io_write_all(&disk.io, 0, "abc", 3, 0), -1);
    ck_assert_int_eq(errno, EIO);
}
END_TEST

START_TEST(a_symbolic_link_is_not_followed)
{
    file_write(tmpdir_path(&dir, "target"), "x", 1);
    ck_assert_int_eq(symlink("target", tmpdir_path(&dir, "link")), 0);
    const struct io *io = &annal__system_io;
    ck_assert_int_eq(io->open(io->arg, tmpdir_path(&dir, "link"), O_RDONLY, 0), -1);
    ck_assert_int_eq(errno, ELOOP);
    struct stat info;
    ck_assert_int_eq(io->stat(io->arg, tmpdir_path(&dir, "link"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    const char *folder = tmpdir_path(&dir, "folder"), *to_folder = tmpdir_path(&dir, "to-folder");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(symlink(folder, to_folder), 0);
    ck_assert_int_eq(annal__system_io.list(NULL, folder, is_temporary, NULL), 0);
    ck_assert_int_eq(annal__system_io.list(NULL, to_folder, is_temporary, NULL), -1);
}
END_TEST

START_TEST(an_open_file_is_closed_on_exec)
{
    const struct io *io = &annal__system_io;
    int fd = io->open(io->arg, tmpdir_path(&dir, "f"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    io->close(io->arg, fd);
}
END_TEST

START_TEST(a_directory_is_created_once_and_is_private)
{
    const char *path = tmpdir_path(&dir, "d");
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, NULL), ANNAL_OK);
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, NULL), ANNAL_OK);
    struct stat info;
    ck_assert_int_eq(disk.io.stat(disk.io.arg, path, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0700);
}
END_TEST

START_TEST(a_file_in_the_place_of_a_directory_is_reported)
{
    annal_error err = {0};
    const char *path = tmpdir_path(&dir, "f");
    file_write(path, "", 0);
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, &err), ANNAL_ERR_IO);
    ck_assert_int_eq(err.os_errno, EEXIST);
}
END_TEST

static int remember(void *arg, const char *name)
{
    strcat(arg, name);
    return 0;
}

static int stop(void *arg, const char *name)
{
    (void)name;
    return ++*(int *)arg == 2 ? 42 : 0;
}

/* The kernel changes files in /proc without a report. */
START_TEST(a_directory_is_watched_only_where_every_change_is_reported)
{
    int fd = annal__system_io.watch(NULL, "/proc");
    ck_assert_int_eq(fd, -1);
}
END_TEST

START_TEST(the_list_of_a_directory_stops_when_its_callback_says_so)
{
    const struct io *io = &annal__system_io;
    char names[64] = "";
    file_write(tmpdir_path(&dir, "only"), "", 0);
    ck_assert_int_eq(io->list(io->arg, dir.path, remember, names), 0);
    ck_assert_str_eq(names, "only");

    int seen = 0;
    file_write(tmpdir_path(&dir, "second"), "", 0);
    file_write(tmpdir_path(&dir, "third"), "", 0);
    ck_assert_int_eq(io->list(io->arg, dir.path, stop, &seen), 42);
    ck_assert_int_eq(io->list(io->arg, tmpdir_path(&dir, "none"), stop, &seen), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(a_lock_held_through_one_descriptor_is_refused_through_another)
{
    const struct io *io = &annal__system_io;
    const char *path = tmpdir_path(&dir, "lock");
    int first = io->open(io->arg, path, O_RDWR | O_CREAT, 0600);
    int second = io->open(io->arg, path, O_RDWR, 0);
    ck_assert_int_eq(io->flock(io->arg, first, LOCK_EX | LOCK_NB), 0);
    ck_assert_int_eq(io->flock(io->arg, second, LOCK_EX | LOCK_NB), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    io->close(io->arg, first);
    ck_assert_int_eq(io->flock(io->arg, second, LOCK_EX | LOCK_NB), 0);
    io->close(io->arg, second);
}
END_TEST

START_TEST(two_maps_of_one_file_share_their_bytes)
{
    const struct io *io = &annal__system_io;
    int fd = io->open(io->arg, tmpdir_path(&dir, "map"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(io->ftruncate(io->arg, fd, 4096), 0);
    char *one = io->map_shared(io->arg, fd, 4096);
    const char *two = io->map_shared(io->arg, fd, 4096);
    one[17] = 'x';
    ck_assert_int_eq(two[17], 'x');
    ck_assert_int_eq(io->unmap(io->arg, one, 4096), 0);
    ck_assert_int_eq(io->unmap(io->arg, (void *)(uintptr_t)two, 4096), 0);
    io->close(io->arg, fd);
}
END_TEST

START_TEST(a_file_can_be_published_under_a_relative_name_but_not_under_an_endless_one)
{
    char before[4096];
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(dir.path), 0);
    annal_status status = annal__io_publish_file(&disk.io, "here", "x", 1, NULL);
    ck_assert_int_eq(chdir(before), 0);
    ck_assert_int_eq(status, ANNAL_OK);
    assert_file("here", "x");

    annal_error err = {0};
    char name[9000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    status = annal__io_publish_file(&disk.io, name, "x", 1, &err);
    ck_assert_int_eq(status, ANNAL_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "too long"));
}
END_TEST

START_TEST(the_cache_of_a_synced_file_can_be_dropped_and_its_bytes_stay)
{
    const struct io *io = &annal__system_io;
    char bytes[4] = {0};
    struct stat info;
    int fd = io->open(io->arg, tmpdir_path(&dir, "f"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(annal__io_write_all(io, fd, "abc", 3, 0), 0);
    ck_assert_int_eq(io->fdatasync(io->arg, fd), 0);
    ck_assert_int_eq(io->drop_cache(io->arg, fd), 0);
    ck_assert_int_eq(annal__io_read_full(io, fd, bytes, 3, 0), 3);
    ck_assert_str_eq(bytes, "abc");
    ck_assert_int_eq(io->fstat(io->arg, fd, &info), 0);
    ck_assert_int_eq(info.st_size, 3);
    io->close(io->arg, fd);
    ck_assert_int_eq(io->drop_cache(io->arg, fd), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(bytes_can_be_written_back_before_they_are_synced)
{
    const struct io *io = &annal__system_io;
    int fd = io->open(io->arg, tmpdir_path(&dir, "f"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(annal__io_write_all(io, fd, "abc", 3, 0), 0);
    ck_assert_int_eq(io->write_back(io->arg, fd, 0, 1), 0);
    ck_assert_int_eq(io->write_back(io->arg, fd, 1, 1 << 20), 0); /* beyond its end */
    ck_assert_int_eq(io->fdatasync(io->arg, fd), 0);
    io->close(io->arg, fd);
    ck_assert_int_eq(io->write_back(io->arg, fd, 0, 3), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(the_disk_reports_its_free_space_and_block_size)
{
    const struct io *io = &annal__system_io;
    int fd = io->open(io->arg, dir.path, O_RDONLY | O_DIRECTORY, 0);
    struct io_space space = {0};
    ck_assert_int_eq(io->space(io->arg, fd, &space), 0);
    ck_assert_uint_gt(space.block_bytes, 0);
    ck_assert_uint_gt(space.fs_type, 0);
    ck_assert_int_eq(io->fsync(io->arg, fd), 0);
    io->close(io->arg, fd);
    ck_assert_int_eq(io->space(io->arg, fd, &space), -1);
    ck_assert_int_eq(errno, EBADF);
}
END_TEST

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* Two signals, the second while the lock is waited for again, and then the lock. */
static void disturb(pid_t waiting, int held)
{
    for (int i = 0; i < 2; i++) {
        usleep(10000);
        kill(waiting, SIGALRM);
    }
    usleep(10000);
    flock(held, LOCK_UN);
    _exit(0);
}

/* F9 */
START_TEST(a_wait_for_a_lock_survives_signals)
{
    const struct io *io = &annal__system_io;
    const char *path = tmpdir_path(&dir, "lock");
    const struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */
    struct sigaction before;
    int held = io->open(io->arg, path, O_RDWR | O_CREAT, 0600);
    int other = io->open(io->arg, path, O_RDWR, 0);
    pid_t waiting = getpid();
    alarms = 0;
    ck_assert_int_eq(io->flock(io->arg, held, LOCK_EX), 0);
    sigaction(SIGALRM, &action, &before);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        disturb(waiting, held);
    int result = io->flock(io->arg, other, LOCK_EX);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    sigaction(SIGALRM, &before, NULL);
    ck_assert_int_eq(result, 0);
    ck_assert_int_ge(alarms, 1);
    io->close(io->arg, held);
    io->close(io->arg, other);
}
END_TEST

static int made_all_the_same(void *arg, const char *path, mode_t mode)
{
    (void)arg;
    (void)path;
    (void)mode;
    return 0;
}

START_TEST(the_parent_of_a_directory_may_be_the_root)
{
    struct io io = annal__system_io;
    io.mkdir = made_all_the_same;
    ck_assert_int_eq(annal__io_make_dir(&io, "/annal-that-is-not-made", NULL), ANNAL_OK);
}
END_TEST

START_TEST(an_existing_directory_that_cannot_be_examined_is_a_failure)
{
    const char *path = tmpdir_path(&dir, "d");
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, NULL), ANNAL_OK);
    disk.by_table = true;
    disk.fail_at = disk.calls + 2; /* mkdir says that it exists, then the look */
    disk.way = 0;
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, NULL), ANNAL_ERR_DISK);
    ck_assert_int_eq(annal__io_make_dir(&disk.io, path, NULL), ANNAL_OK);
}
END_TEST

/* Of a child process: 77 if it may not mount a filesystem. */
static int fill_inodes(const char *place)
{
    char name[400];
    annal_error err = {0};
    int fd = 0;
    if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("t", place, "tmpfs", 0, "size=8m,nr_inodes=10") != 0)
        return 77;
    for (int i = 0; fd >= 0; i++) {
        snprintf(name, sizeof name, "%s/%d", place, i);
        fd = annal__system_io.open(NULL, name, O_CREAT | O_RDWR, 0660);
    }
    (void)annal__fail_errno(&err, "create '%s'", name);
    bool said = err.os_errno == ENOSPC && strstr(err.message, "no inode is free") != NULL;
    if (annal__system_io.mkdir(NULL, name, 0700) == 0)
        return 2;
    (void)annal__fail_errno(&err, "create '%s'", name);
    said = said && strstr(err.message, "no inode is free") != NULL;
    snprintf(name, sizeof name, "%s/0", place);
    fd = annal__system_io.open(NULL, name, O_RDWR, 0);
    if (fd < 0 || annal__system_io.reserve(NULL, fd, 16 << 20) == 0)
        return 3;
    (void)annal__fail_errno(&err, "reserve");
    return said && strstr(err.message, "inode") == NULL ? 0 : 1;
}

START_TEST(the_message_of_a_full_disk_mentions_missing_inodes)
{
    int outcome;
    const char *place = tmpdir_path(&dir, "few");
    ck_assert_int_eq(mkdir(place, 0700), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(fill_inodes(place));
    ck_assert_int_eq(waitpid(child, &outcome, 0), child);
    ck_assert(WIFEXITED(outcome));
    if (WEXITSTATUS(outcome) == 77)
        fprintf(stderr, "skipped: no filesystem can be mounted here\n");
    else
        ck_assert_int_eq(WEXITSTATUS(outcome), 0);
}
END_TEST

Suite *suite_io(void)
{
    Suite *suite = suite_create("io");
    TCase *tests = suite_case(suite, "io", set_up, tmpdir_teardown);
    tcase_add_test(tests, a_published_file_is_complete_and_private);
    tcase_add_test(tests, a_failed_publish_leaves_the_old_or_the_new_file_and_no_trace);
    tcase_add_test(tests, the_message_of_a_full_disk_mentions_missing_inodes);
    tcase_add_test(tests, short_writes_and_reads_are_carried_on);
    tcase_add_test(tests, an_interrupted_write_or_read_is_resumed);
    tcase_add_test(tests, a_write_of_zero_bytes_is_an_error_and_not_an_endless_loop);
    tcase_add_test(tests, a_symbolic_link_is_not_followed);
    tcase_add_test(tests, an_open_file_is_closed_on_exec);
    tcase_add_test(tests, a_directory_is_created_once_and_is_private);
    tcase_add_test(tests, a_file_in_the_place_of_a_directory_is_reported);
    tcase_add_test(tests, a_directory_is_watched_only_where_every_change_is_reported);
    tcase_add_test(tests, the_list_of_a_directory_stops_when_its_callback_says_so);
    tcase_add_test(tests, a_lock_held_through_one_descriptor_is_refused_through_another);
    tcase_add_test(tests, two_maps_of_one_file_share_their_bytes);
    tcase_add_test(tests,
                   a_file_can_be_published_under_a_relative_name_but_not_under_an_endless_one);
    tcase_add_test(tests, the_cache_of_a_synced_file_can_be_dropped_and_its_bytes_stay);
    tcase_add_test(tests, bytes_can_be_written_back_before_they_are_synced);
    tcase_add_test(tests, the_disk_reports_its_free_space_and_block_size);
    tcase_add_test(tests, a_wait_for_a_lock_survives_signals);
    tcase_add_test(tests, the_parent_of_a_directory_may_be_the_root);
    tcase_add_test(tests, an_existing_directory_that_cannot_be_examined_is_a_failure);
    return suite;
}
