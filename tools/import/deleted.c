/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/deleted.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "tools/cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES     33 /* 32 hex digits and a line break */
#define FILE_BYTES_MAX ((size_t)256 << 20)

struct deleted {
    struct buf lines;
};

static int open_file(const annal_store *store, int flags)
{
    SCOPED_BUF path = {0};
    int fd = -1;
    if (annal__buf_printf(&path, "%s/deleted.txt", annal_store_path(store)) >= 0)
        fd = open(annal__buf_cstr(&path), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd;
}

static void make_line(annal_slice session, char out[LINE_BYTES + 1])
{
    snprintf(out, LINE_BYTES + 1, "%016" PRIx64 "%016" PRIx64 "\n",
             annal__hash(session.ptr, session.len, 0), annal__hash(session.ptr, session.len, 1));
}

void deleted_note(const annal_store *store, annal_slice session)
{
    char line[LINE_BYTES + 1];
    int fd = open_file(store, O_WRONLY | O_APPEND | O_CREAT);
    make_line(session, line);
    if (fd < 0 || write(fd, line, LINE_BYTES) != LINE_BYTES)
        say("cannot note that session '%.*s' was deleted (%s): a later import may restore it",
            ANNAL_FMT(session), strerror(errno));
    if (fd >= 0)
        close(fd);
}

struct deleted *deleted_open(const annal_store *store)
{
    int fd = open_file(store, O_RDONLY);
    struct deleted *deleted = fd >= 0 ? annal__zalloc(sizeof *deleted) : NULL;
    ssize_t got = deleted != NULL ? 1 : 0;
    if (deleted != NULL)
        deleted->lines.limit = FILE_BYTES_MAX;
    while (got > 0 && annal__buf_reserve(&deleted->lines, 1 << 16) >= 0) {
        got = read(fd, deleted->lines.ptr + deleted->lines.len, 1 << 16);
        deleted->lines.len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return deleted;
}

uint64_t deleted_stamp(const annal_store *store)
{
    struct stat st;
    int fd = open_file(store, O_RDONLY);
    uint64_t stamp = fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    if (fd >= 0)
        close(fd);
    return stamp;
}

bool deleted_has(const struct deleted *deleted, annal_slice session)
{
    char line[LINE_BYTES + 1];
    if (deleted == NULL || deleted->lines.len == 0)
        return false;
    make_line(session, line);
    return memmem(deleted->lines.ptr, deleted->lines.len, line, LINE_BYTES) != NULL;
}

void deleted_close(struct deleted *deleted)
{
    if (deleted != NULL)
        annal__buf_done(&deleted->lines);
    annal__free(deleted);
}
