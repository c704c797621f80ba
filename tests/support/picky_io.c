/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/picky_io.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fails(struct picky_io *disk, enum picky_call call, const char *path)
{
    for (size_t i = 0; i < PICKY_RULES; i++) {
        struct picky_rule *rule = &disk->rules[i];
        if (rule->word == NULL || rule->call != call || rule->times == 0 ||
            strstr(path, rule->word) == NULL)
            continue;
        if (rule->after > 0) {
            rule->after--;
            continue;
        }
        rule->times -= rule->times > 0;
        disk->failed++;
        errno = rule->with_errno;
        return true;
    }
    return false;
}

static struct picky_file *file_of(struct picky_io *disk, int fd)
{
    ck_assert_int_lt(fd, PICKY_FILES);
    return &disk->files[fd];
}

static int p_open(void *arg, const char *path, int flags, mode_t mode)
{
    struct picky_io *disk = arg;
    if (fails(disk, PICKY_OPEN, path))
        return -1;
    int fd = annal__system_io.open(NULL, path, flags, mode);
    if (fd >= 0) {
        struct picky_file *file = file_of(disk, fd);
        *file = (struct picky_file){.unsynced_from = UINT64_MAX};
        snprintf(file->path, sizeof file->path, "%s", path);
    }
    return fd;
}

static ssize_t p_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    struct picky_io *disk = arg;
    struct picky_file *file = file_of(disk, fd);
    if (fails(disk, PICKY_WRITE, file->path))
        return -1;
    ssize_t wrote = annal__system_io.pwrite(NULL, fd, bytes, len, offset);
    if (wrote > 0 && offset < file->unsynced_from)
        file->unsynced_from = offset;
    if (wrote > 0 && offset + (uint64_t)wrote > file->unsynced_to)
        file->unsynced_to = offset + (uint64_t)wrote;
    return wrote;
}

static void lose(struct picky_file *file, int fd)
{
    if (file->unsynced_from >= file->unsynced_to)
        return;
    size_t len = (size_t)(file->unsynced_to - file->unsynced_from);
    void *zeros = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
    memset(zeros, 0, len);
    ck_assert_int_eq(annal__system_io.pwrite(NULL, fd, zeros, len, file->unsynced_from),
                     (ssize_t)len);
    free(zeros);
}

/* The error is reported once: a later sync succeeds, without the lost bytes. */
static int p_write_back(void *arg, int fd, uint64_t offset, size_t len)
{
    struct picky_file *file = file_of(arg, fd);
    if (!fails(arg, PICKY_WRITE_BACK, file->path))
        return annal__system_io.write_back(NULL, fd, offset, len);
    int why = errno;
    lose(file, fd);
    errno = why;
    return -1;
}

static int sync_file(struct picky_io *disk, int fd, int (*sync)(void *arg, int fd))
{
    struct picky_file *file = file_of(disk, fd);
    bool failed = fails(disk, PICKY_SYNC, file->path);
    int why = errno;
    if (failed)
        lose(file, fd);
    file->unsynced_from = UINT64_MAX;
    file->unsynced_to = 0;
    errno = why;
    return failed ? -1 : sync(NULL, fd);
}

static int p_fdatasync(void *arg, int fd)
{
    return sync_file(arg, fd, annal__system_io.fdatasync);
}

static int p_fsync(void *arg, int fd)
{
    return sync_file(arg, fd, annal__system_io.fsync);
}

static int p_rename(void *arg, const char *from, const char *to)
{
    struct picky_io *disk = arg;
    if (fails(disk, PICKY_RENAME, to) || annal__system_io.rename(NULL, from, to) < 0)
        return -1;
    for (size_t i = 0; i < PICKY_FILES; i++) {
        if (strcmp(disk->files[i].path, from) == 0)
            snprintf(disk->files[i].path, sizeof disk->files[i].path, "%s", to);
    }
    return 0;
}

static int p_unlink(void *arg, const char *path)
{
    return fails(arg, PICKY_UNLINK, path) ? -1 : annal__system_io.unlink(NULL, path);
}

void picky_io_init(struct picky_io *disk)
{
    memset(disk, 0, sizeof *disk);
    disk->io = annal__system_io;
    disk->io.arg = disk;
    disk->io.open = p_open;
    disk->io.pwrite = p_pwrite;
    disk->io.write_back = p_write_back;
    disk->io.fdatasync = p_fdatasync;
    disk->io.fsync = p_fsync;
    disk->io.rename = p_rename;
    disk->io.unlink = p_unlink;
}

struct picky_rule *picky_io_fail(struct picky_io *disk, enum picky_call call, const char *word,
                                 int with_errno, int times)
{
    size_t i = 0;
    while (i < PICKY_RULES && disk->rules[i].word != NULL && disk->rules[i].times != 0)
        i++;
    ck_assert_uint_lt(i, PICKY_RULES);
    disk->rules[i] =
        (struct picky_rule){.call = call, .word = word, .with_errno = with_errno, .times = times};
    return &disk->rules[i];
}

void picky_io_heal(struct picky_io *disk)
{
    memset(disk->rules, 0, sizeof disk->rules);
}
