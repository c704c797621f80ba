/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/runner.h"
#include "tests/support/sim_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#define SECTOR 512

static struct sim_disk *disk;
static struct sim_process *process;

static void set_up(void)
{
    disk = sim_disk_new();
    process = sim_process_new(disk);
}

static void tear_down(void)
{
    sim_disk_free(disk);
}

static const char *at(const struct sim_process *of, const char *name)
{
    static char path[2][200];
    static unsigned turn;
    snprintf(path[++turn % 2], sizeof path[0], "%s%s", of->root, name);
    return path[turn % 2];
}

static int make(const char *name)
{
    int fd = process->io.open(process, at(process, name), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static void put(int fd, char letter, size_t len, uint64_t offset)
{
    char bytes[4 * SECTOR];
    memset(bytes, letter, sizeof bytes);
    ck_assert_int_eq(process->io.pwrite(process, fd, bytes, len, offset), (ssize_t)len);
}

static void sync_file(int fd)
{
    ck_assert_int_eq(process->io.fdatasync(process, fd), 0);
}

static void sync_root(void)
{
    ck_assert_int_eq(annal__io_sync_dir(&process->io, at(process, "/"), NULL), ANNAL_OK);
}

/* The file as letters, one for each sector: '.' for zeros; "-" if the file is missing. */
static const char *letters(struct sim_disk *of, const char *name)
{
    static char out[32];
    struct sim_process *reader = sim_process_new(of);
    int fd = reader->io.open(reader, at(reader, name), O_RDONLY, 0);
    struct stat file;
    char byte;
    if (fd < 0)
        return strcpy(out, "-");
    ck_assert_int_eq(reader->io.fstat(reader, fd, &file), 0);
    size_t count = 0;
    for (off_t offset = 0; offset < file.st_size; offset += SECTOR) {
        ck_assert_int_eq(reader->io.pread(reader, fd, &byte, 1, (uint64_t)offset), 1);
        out[count++] = byte == 0 ? '.' : byte;
    }
    out[count] = '\0';
    return out;
}

/* All outcomes of a power cut for one file, in order, each once, between bars. */
static const char *outcomes(const char *name)
{
    static char all[600];
    struct sim_choices choices;
    strcpy(all, "|");
    sim_choices_init(&choices, disk, 1, 1000);
    ck_assert(choices.all);
    while (sim_choices_next(&choices)) {
        char one[40];
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        snprintf(one, sizeof one, "|%s|", letters(left, name));
        if (strstr(all, one) == NULL)
            strcat(all, one + 1);
        sim_disk_free(left);
    }
    return all;
}

START_TEST(synced_writes_survive_and_any_subset_of_the_others)
{
    int fd = make("/f");
    put(fd, 'a', 2 * SECTOR, 0);
    sync_file(fd);
    sync_root();
    ck_assert_str_eq(outcomes("/f"), "|aa|");
    put(fd, 'b', 2 * SECTOR, 0);
    put(fd, 'c', SECTOR, 0);
    ck_assert_str_eq(outcomes("/f"), "|aa|ab|ba|bb|ca|cb|");
    ck_assert_str_eq(letters(disk, "/f"), "cb");
}
END_TEST

START_TEST(a_size_is_kept_without_its_bytes_and_bytes_not_without_their_size)
{
    int fd = make("/f");
    sync_file(fd);
    sync_root();
    put(fd, 'a', SECTOR, 0);
    put(fd, 'b', SECTOR, SECTOR);
    ck_assert_str_eq(outcomes("/f"), "||.|a|..|.b|a.|ab|");
}
END_TEST

START_TEST(truncated_bytes_do_not_reappear_after_a_kept_truncation)
{
    int fd = make("/f");
    put(fd, 'a', 2 * SECTOR, 0);
    sync_file(fd);
    sync_root();
    ck_assert_int_eq(process->io.ftruncate(process, fd, SECTOR), 0);
    put(fd, 'b', SECTOR, SECTOR);
    ck_assert_str_eq(outcomes("/f"), "|aa|a|a.|ab|");
}
END_TEST

START_TEST(a_name_is_durable_after_a_sync_of_its_directory)
{
    int fd = make("/f");
    put(fd, 'a', SECTOR, 0);
    sync_file(fd);
    ck_assert_str_eq(outcomes("/f"), "|-|a|");
    sync_root();
    ck_assert_str_eq(outcomes("/f"), "|a|");
    ck_assert_int_eq(process->io.unlink(process, at(process, "/f")), 0);
    ck_assert_str_eq(outcomes("/f"), "|a|-|");
}
END_TEST

START_TEST(a_rename_is_atomic)
{
    int fd = make("/f");
    put(fd, 'a', SECTOR, 0);
    sync_file(fd);
    int other = make("/g");
    put(other, 'b', SECTOR, 0);
    sync_file(other);
    sync_root();
    ck_assert_int_eq(process->io.rename(process, at(process, "/f"), at(process, "/g")), 0);
    struct sim_choices choices;
    sim_choices_init(&choices, disk, 1, 10);
    while (sim_choices_next(&choices)) {
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        bool renamed = strcmp(letters(left, "/f"), "-") == 0;
        ck_assert_str_eq(letters(left, "/g"), renamed ? "a" : "b");
        sim_disk_free(left);
    }
    ck_assert_uint_eq(choices.number, 3); /* there were two */
}
END_TEST

START_TEST(the_same_seed_gives_the_same_crash)
{
    int fd = make("/f");
    for (int i = 0; i < 40; i++)
        put(fd, (char)('a' + i % 26), SECTOR, (uint64_t)i % 16 * SECTOR);
    uint64_t hashes[2][20];
    for (int turn = 0; turn < 2; turn++) {
        struct sim_choices choices;
        sim_choices_init(&choices, disk, 7, 20);
        ck_assert(!choices.all);
        for (int i = 0; sim_choices_next(&choices); i++) {
            struct sim_disk *left = sim_disk_crash(disk, &choices);
            hashes[turn][i] = sim_disk_hash(left, "");
            sim_disk_free(left);
        }
    }
    ck_assert_mem_eq(hashes[0], hashes[1], sizeof hashes[0]);
}
END_TEST

static int fail_syncs(void *arg, struct sim_disk *of, const struct sim_op *op)
{
    (void)arg;
    (void)of;
    return op->kind == SIM_SYNC ? EIO : 0;
}

START_TEST(the_cache_hides_a_failed_sync_until_it_is_dropped)
{
    int fd = make("/f");
    put(fd, 'a', SECTOR, 0);
    sync_file(fd);
    sync_root();
    put(fd, 'b', SECTOR, 0);
    disk->hook = fail_syncs;
    ck_assert_int_eq(process->io.fdatasync(process, fd), -1);
    disk->hook = NULL;
    sync_file(fd);
    ck_assert_str_eq(letters(disk, "/f"), "b");
    ck_assert_int_eq(process->io.drop_cache(process, fd), 0);
    ck_assert_str_eq(letters(disk, "/f"), "a");
}
END_TEST

START_TEST(a_lock_is_held_until_the_descriptor_of_the_dead_process_is_closed)
{
    int fd = make("/f");
    struct sim_process *other = sim_process_new(disk);
    int theirs = other->io.open(other, at(other, "/f"), O_RDWR, 0);
    ck_assert_int_eq(process->io.flock(process, fd, LOCK_EX), 0);
    sim_process_kill(process);
    ck_assert_int_eq(process->io.fdatasync(process, fd), -1);
    ck_assert_int_eq(other->io.flock(other, theirs, LOCK_EX | LOCK_NB), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    sim_process_close_all(process);
    ck_assert_int_eq(other->io.flock(other, theirs, LOCK_EX | LOCK_NB), 0);
}
END_TEST

START_TEST(stores_of_a_dead_process_into_shared_memory_are_lost)
{
    int fd = make("/f");
    put(fd, 'a', SECTOR, 0);
    struct sim_process *other = sim_process_new(disk);
    int theirs = other->io.open(other, at(other, "/f"), O_RDWR, 0);
    char *ours = process->io.map_shared(process, fd, 4096);
    char *map = other->io.map_shared(other, theirs, 4096);
    ck_assert(ours != MAP_FAILED && map != MAP_FAILED);
    ours[0] = 'b';
    ck_assert_int_eq(map[0], 'b');
    sim_process_kill(process);
    ours[0] = 'c';
    ck_assert_int_eq(map[0], 'b');
    struct sim_disk *left = sim_disk_kill(disk, NULL, 0);
    ck_assert_str_eq(letters(left, "/f"), "b");
    sim_disk_free(left);
}
END_TEST

Suite *suite_sim_disk(void)
{
    Suite *suite = suite_create("sim_disk");
    TCase *tests = suite_case(suite, "sim_disk", set_up, tear_down);
    tcase_add_test(tests, synced_writes_survive_and_any_subset_of_the_others);
    tcase_add_test(tests, a_size_is_kept_without_its_bytes_and_bytes_not_without_their_size);
    tcase_add_test(tests, truncated_bytes_do_not_reappear_after_a_kept_truncation);
    tcase_add_test(tests, a_name_is_durable_after_a_sync_of_its_directory);
    tcase_add_test(tests, a_rename_is_atomic);
    tcase_add_test(tests, the_same_seed_gives_the_same_crash);
    tcase_add_test(tests, the_cache_hides_a_failed_sync_until_it_is_dropped);
    tcase_add_test(tests, a_lock_is_held_until_the_descriptor_of_the_dead_process_is_closed);
    tcase_add_test(tests, stores_of_a_dead_process_into_shared_memory_are_lost);
    return suite;
}
