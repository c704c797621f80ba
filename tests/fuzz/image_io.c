/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/image_io.h"

#include <errno.h>
#include <string.h>

static int i_open(void *arg, const char *path, int flags, mode_t mode)
{
    (void)arg;
    (void)path;
    (void)flags;
    (void)mode;
    return 3;
}

static int i_close(void *arg, int fd)
{
    (void)arg;
    (void)fd;
    return 0;
}

static ssize_t i_pread(void *arg, int fd, void *bytes, size_t len, uint64_t offset)
{
    const struct image_io *image = arg;
    (void)fd;
    if (offset >= image->bytes.len)
        return 0;
    size_t rest = image->bytes.len - (size_t)offset;
    if (len > rest)
        len = rest;
    memcpy(bytes, image->bytes.ptr + offset, len);
    return (ssize_t)len;
}

static ssize_t i_pwrite(void *arg, int fd, const void *bytes, size_t len, uint64_t offset)
{
    (void)arg;
    (void)fd;
    (void)bytes;
    (void)len;
    (void)offset;
    errno = EROFS;
    return -1;
}

static int i_fstat(void *arg, int fd, struct stat *out)
{
    const struct image_io *image = arg;
    (void)fd;
    *out = (struct stat){.st_mode = S_IFREG | 0600,
                         .st_size = (off_t)image->bytes.len,
                         .st_ino = 1,
                         .st_blksize = 4096};
    return 0;
}

void image_io_init(struct image_io *image, annal_slice bytes)
{
    *image = (struct image_io){.io = annal__system_io, .bytes = bytes};
    image->io.arg = image;
    image->io.open = i_open;
    image->io.close = i_close;
    image->io.pread = image->io.pread_now = i_pread;
    image->io.pwrite = i_pwrite;
    image->io.fstat = i_fstat;
}
