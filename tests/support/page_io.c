/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/page_io.h"

#include <fcntl.h>

static int p_open(void *arg, const char *path, int flags, mode_t mode)
{
    (void)arg;
    return annal__system_io.open(NULL, path, flags & ~O_DIRECT, mode);
}

static int p_sync(void *arg, int fd)
{
    (void)arg;
    (void)fd;
    return 0;
}

struct io page_io(void)
{
    struct io io = annal__system_io;
    io.open = p_open;
    io.fdatasync = io.fsync = io.drop_cache = p_sync;
    return io;
}

struct seams page_seams(const struct io *io, const uint8_t *boot)
{
    return (struct seams){.io = io, .clock = &annal__system_clock, .boot = boot};
}
