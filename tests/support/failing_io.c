/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/failing_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Ways to fail other than an errno. */
enum { SHORT = -1, TORN = -2, BROKEN_OFF = -3, NO_SPACE = -4 };

#define WAYS_MOST 7

enum call {
    OPEN,
    CLOSE,
    PREAD,
    PWRITE,
    WRITE_BACK,
    FDATASYNC,
    FSYNC,
    FTRUNCATE,
    RESERVE,
    FSTAT,
    FUTIMENS,
    STAT,
    IDENTIFY,
    RENAME,
    UNLINK,
    MKDIR,
    LIST,
    FLOCK,
    SPACE,
    DROP_CACHE,
    MAP,
    UNMAP
};

/*
 * The failures that fit each call. EINTR is listed where the kernel may return it for a file and
 * the seam does not hide it. A permanent EINTR would never end a loop, so it becomes EIO.
 */
static const struct {
    const char *name;
    bool counted; /* also without by_table */
    int ways[WAYS_MOST];
} table[] = {
    [OPEN] = {"open", true, {EIO, EACCES, EMFILE, ENFILE, EROFS, ENOSPC, EDQUOT}},
    [CLOSE] = {"close", false, {EIO, EINTR}},
    [PREAD] = {"pread", true, {EIO, SHORT, EINTR}},
    [PWRITE] = {"pwrite", true, {EIO, ENOSPC, TORN, EDQUOT, SHORT, EINTR}},
    [WRITE_BACK] = {"write_back", true, {EIO, ENOSPC, EDQUOT, EINTR}},
    [FDATASYNC] = {"fdatasync", true, {EIO, ENOSPC, EDQUOT, EINTR}},
    [FSYNC] = {"fsync", true, {EIO, ENOSPC, EDQUOT, EINTR}},
    [FTRUNCATE] = {"ftruncate", true, {EIO, ENOSPC, EDQUOT, EINTR}},
    [RESERVE] = {"reserve", true, {EIO, ENOSPC, EDQUOT, EOPNOTSUPP}},
    [FSTAT] = {"fstat", false, {EIO, ENOMEM}},
    [FUTIMENS] = {"futimens", false, {EIO, EACCES, EROFS}},
    [STAT] = {"stat", false, {EIO, EACCES, ENOMEM}},
    [IDENTIFY] = {"identify", false, {EIO, EACCES, ENOMEM}},
    [RENAME] = {"rename", true, {EIO, ENOSPC, EDQUOT, EACCES, EROFS}},
    [UNLINK] = {"unlink", false, {EIO, EACCES, EROFS}},
    [MKDIR] = {"mkdir", true, {EIO, ENOSPC, EDQUOT, EACCES, EROFS}},
    [LIST] = {"list", false, {EIO, EACCES, EMFILE, ENOMEM, BROKEN_OFF}},
    [FLOCK] = {"flock", true, {EIO, ENOLCK}},
    [SPACE] = {"space", false, {EIO, NO_SPACE}},
    [DROP_CACHE] = {"drop_cache", false, {EIO}},
    [MAP] = {"map_shared", false, {ENOMEM, EACCES, EMFILE}},
    [UNMAP] = {"unmap", false, {ENOMEM}},
};

static const char *way_name(int way)
{
    switch (way) {
    case SHORT:
        return "short";
    case TORN:
        return "torn";
    case BROKEN_OFF:
        return "broken off";
    case NO_SPACE:
        return "no space";
    default:
        return strerrorname_np(way);
    }
}

static int choose_way(struct failing_io *disk, enum call call, bool first)
{
    unsigned ways = 0;
    while (ways < WAYS_MOST && table[call].ways[ways] != 0)
        ways++;
    unsigned chosen = disk->way % ways;
    int way = table[call].ways[chosen];
    if (way == EINTR && disk->for_good)
        way = EIO;
    if (first) {
        disk->ways = ways;
        snprintf(disk->failed, sizeof disk->failed, "%s %s", table[call].name, way_name(way));
    }
    return way;
}

/* Count a call. Returns 0 if it does not fail, else an errno, which is set, or another way to
 * fail. */
static int fails(struct failing_io *disk, enum call call)
{
    bool counted = disk->by_table || table[call].counted;
    if (disk->only != NULL)
        counted = strcmp(disk->only, table[call].name) == 0;
    if (!counted)
        return 0;
    unsigned count = atomic_fetch_add(&disk->calls, 1) + 1;
    if (disk->full && (call == PWRITE || call == RESERVE)) {
        disk->full = disk->for_good;
        return errno = ENOSPC;
    }
    if (count != disk->fail_at && !(disk->for_good && disk->fail_at != 0 && count > disk->fail_at))
        return 0;
    int way = disk->with_errno;
    if (disk->by_table)
        way = choose_way(disk, call, count == disk->fail_at);
    if (way == TORN)
        disk->full = true;
    if (way > 0)
        errno = way;
    return way;
}

static size_t shorter(const struct failing_io *disk, int way, size_t len)
{
    if (way == SHORT || way == TORN)
        return len > 1 ? len / 2 : len;
    return disk->short_len != 0 && len > disk->short_len ? disk->short_len : len;
}

static int f_open(void *arg, const char *path, int flags, mode_t mode)
{
    const struct failing_io *disk = arg;
    if (fails(arg, OPEN))
        return -1;
    return annal__system_io.open(NULL, path, disk->lazy ? flags & ~O_DIRECT : flags, mode);
}

/* Even when close() fails, the kernel closes the descriptor. */
static int f_close(void *arg, int fd)
{
    int way = fails(arg, CLOSE);
    int result = annal__system_io.close(NULL, fd);
    if (way != 0)
        errno = way;
    return way != 0 ? -1 : result;
}

static ssize_t f_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    int way = fails(arg, PREAD);
    return way > 0 ? -1 : annal__system_io.pread(NULL, fd, bytes, shorter(arg, way, len), offset);
}

static void f_will_need(void *arg, int fd, uint64_t offset, size_t len)
{
    (void)arg;
    annal__system_io.will_need(NULL, fd, offset, len);
}

static ssize_t f_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    int way = fails(arg, PWRITE);
    return way > 0 ? -1 : annal__system_io.pwrite(NULL, fd, bytes, shorter(arg, way, len), offset);
}

static int f_write_back(void *arg, int fd, uint64_t offset, size_t len)
{
    return fails(arg, WRITE_BACK) ? -1 : annal__system_io.write_back(NULL, fd, offset, len);
}

static int f_fdatasync(void *arg, int fd)
{
    const struct failing_io *disk = arg;
    if (fails(arg, FDATASYNC))
        return -1;
    return disk->lazy ? 0 : annal__system_io.fdatasync(NULL, fd);
}

static int f_fsync(void *arg, int fd)
{
    const struct failing_io *disk = arg;
    if (fails(arg, FSYNC))
        return -1;
    return disk->lazy ? 0 : annal__system_io.fsync(NULL, fd);
}

static int f_ftruncate(void *arg, int fd, uint64_t len)
{
    return fails(arg, FTRUNCATE) ? -1 : annal__system_io.ftruncate(NULL, fd, len);
}

static int f_reserve(void *arg, int fd, uint64_t len)
{
    return fails(arg, RESERVE) ? -1 : annal__system_io.reserve(NULL, fd, len);
}

static int f_fstat(void *arg, int fd, struct stat *out)
{
    return fails(arg, FSTAT) ? -1 : annal__system_io.fstat(NULL, fd, out);
}

static int f_stat(void *arg, const char *path, struct stat *out)
{
    return fails(arg, STAT) ? -1 : annal__system_io.stat(NULL, path, out);
}

static int f_identify(void *arg, const char *path, dev_t *out_device, ino_t *out_inode)
{
    return fails(arg, IDENTIFY) ? -1 : annal__system_io.identify(NULL, path, out_device, out_inode);
}

static int f_measure(void *arg, const char *path, uid_t user, bool *out_regular,
                     uint64_t *out_bytes)
{
    return fails(arg, STAT) ? -1
                            : annal__system_io.measure(NULL, path, user, out_regular, out_bytes);
}

static int f_rename(void *arg, const char *from, const char *to)
{
    return fails(arg, RENAME) ? -1 : annal__system_io.rename(NULL, from, to);
}

static int f_unlink(void *arg, const char *path)
{
    return fails(arg, UNLINK) ? -1 : annal__system_io.unlink(NULL, path);
}

static int f_mkdir(void *arg, const char *path, mode_t mode)
{
    return fails(arg, MKDIR) ? -1 : annal__system_io.mkdir(NULL, path, mode);
}

struct half_list {
    io_list_fn fn;
    void *arg;
    unsigned names;
};

static int list_one(void *arg, const char *name)
{
    struct half_list *half = arg;
    return half->names++ == 0 ? half->fn(half->arg, name) : 0;
}

static int f_list(void *arg, const char *path, io_list_fn fn, void *fn_arg)
{
    int way = fails(arg, LIST);
    if (way > 0)
        return -1;
    if (way == 0)
        return annal__system_io.list(NULL, path, fn, fn_arg);
    struct half_list half = {fn, fn_arg, 0};
    (void)annal__system_io.list(NULL, path, list_one, &half);
    errno = EIO;
    return -1;
}

static int f_futimens(void *arg, int fd, const struct timespec times[2])
{
    return fails(arg, FUTIMENS) ? -1 : annal__system_io.futimens(NULL, fd, times);
}

static int f_flock(void *arg, int fd, int operation)
{
    return fails(arg, FLOCK) ? -1 : annal__system_io.flock(NULL, fd, operation);
}

static int f_space(void *arg, int fd, struct io_space *out)
{
    int way = fails(arg, SPACE);
    int result = way > 0 ? -1 : annal__system_io.space(NULL, fd, out);
    if (way < 0 && result == 0)
        out->free_bytes = 0;
    return result;
}

static int f_drop_cache(void *arg, int fd)
{
    return fails(arg, DROP_CACHE) ? -1 : annal__system_io.drop_cache(NULL, fd);
}

static void *f_map_shared(void *arg, int fd, size_t len)
{
    return fails(arg, MAP) ? MAP_FAILED : annal__system_io.map_shared(NULL, fd, len);
}

static int f_unmap(void *arg, void *map, size_t len)
{
    int way = fails(arg, UNMAP);
    int result = annal__system_io.unmap(NULL, map, len);
    return way != 0 ? -1 : result;
}

void failing_io_init(struct failing_io *disk)
{
    *disk = (struct failing_io){
        .with_errno = ENOSPC,
        .io = {.arg = disk,
               .open = f_open,
               .close = f_close,
               .pread = f_pread,
               .pread_now = f_pread,
               .will_need = f_will_need,
               .pwrite = f_pwrite,
               .write_back = f_write_back,
               .fdatasync = f_fdatasync,
               .fsync = f_fsync,
               .ftruncate = f_ftruncate,
               .reserve = f_reserve,
               .fstat = f_fstat,
               .futimens = f_futimens,
               .stat = f_stat,
               .identify = f_identify,
               .measure = f_measure,
               .rename = f_rename,
               .unlink = f_unlink,
               .mkdir = f_mkdir,
               .list = f_list,
               .flock = f_flock,
               .space = f_space,
               .drop_cache = f_drop_cache,
               .map_shared = f_map_shared,
               .unmap = f_unmap},
    };
}
