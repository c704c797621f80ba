/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the files of packs. */
#include "index/pack/packs.h"

#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>

#define PACK_FILE_BYTES_MAX (4u << 20)

annal_status annal__packs_read_text(const struct io *io, const char *path, struct buf *out,
                                    annal_error *err)
{
    struct stat file;
    annal_status status = ANNAL_OK;
    annal__buf_clear(out);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0 && errno == ENOENT)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "file '%s' does not exist", path);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open '%s'", path);
    if (io->fstat(io->arg, fd, &file) < 0)
        status = annal__fail_errno(err, "cannot read '%s'", path);
    else if (!S_ISREG(file.st_mode) || file.st_size > (off_t)PACK_FILE_BYTES_MAX)
        status = annal__fail(err, ANNAL_ERR_INVALID,
                             "file '%s' is not a text file of at most 4 MiB", path);
    if (status >= 0 && annal__buf_reserve(out, (size_t)file.st_size + 1) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read '%s': out of memory", path);
    if (status >= 0) {
        ssize_t got = annal__io_read_full(io, fd, out->ptr, (size_t)file.st_size, 0);
        if (got < 0)
            status = annal__fail_errno(err, "cannot read '%s'", path);
        else
            out->len = (size_t)got;
    }
    io->close(io->arg, fd);
    return status;
}
