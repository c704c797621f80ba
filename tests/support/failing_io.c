#include "tests/support/failing_io.h"

#include <errno.h>

/* Count a call; true when it is one that fails. */
static bool fails(struct failing_io *disk)
{
    unsigned call = atomic_fetch_add(&disk->calls, 1) + 1;
    if (call != disk->fail_at && !(disk->for_good && disk->fail_at != 0 && call > disk->fail_at))
        return false;
    errno = disk->with_errno;
    return true;
}

static size_t shorter(const struct failing_io *disk, size_t len)
{
    return disk->short_len != 0 && len > disk->short_len ? disk->short_len : len;
}

static int f_open(void *arg, const char *path, int flags, mode_t mode)
{
    return fails(arg) ? -1 : annal__system_io.open(NULL, path, flags, mode);
}

static ssize_t f_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    return fails(arg) ? -1 : annal__system_io.pread(NULL, fd, bytes, shorter(arg, len), offset);
}

static ssize_t f_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    return fails(arg) ? -1 : annal__system_io.pwrite(NULL, fd, bytes, shorter(arg, len), offset);
}

static int f_fdatasync(void *arg, int fd)
{
    return fails(arg) ? -1 : annal__system_io.fdatasync(NULL, fd);
}

static int f_fsync(void *arg, int fd)
{
    return fails(arg) ? -1 : annal__system_io.fsync(NULL, fd);
}

static int f_ftruncate(void *arg, int fd, uint64_t len)
{
    return fails(arg) ? -1 : annal__system_io.ftruncate(NULL, fd, len);
}

static int f_rename(void *arg, const char *from, const char *to)
{
    return fails(arg) ? -1 : annal__system_io.rename(NULL, from, to);
}

static int f_mkdir(void *arg, const char *path, mode_t mode)
{
    return fails(arg) ? -1 : annal__system_io.mkdir(NULL, path, mode);
}

static int f_flock(void *arg, int fd, int operation)
{
    return fails(arg) ? -1 : annal__system_io.flock(NULL, fd, operation);
}

void failing_io_init(struct failing_io *disk)
{
    *disk = (struct failing_io){.io = annal__system_io, .with_errno = ENOSPC};
    disk->io.arg = disk;
    disk->io.open = f_open;
    disk->io.pread = f_pread;
    disk->io.pwrite = f_pwrite;
    disk->io.fdatasync = f_fdatasync;
    disk->io.fsync = f_fsync;
    disk->io.ftruncate = f_ftruncate;
    disk->io.rename = f_rename;
    disk->io.mkdir = f_mkdir;
    disk->io.flock = f_flock;
}
