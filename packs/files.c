#include "packs/files.h"

#include "journal/base/error.h"
#include "journal/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

annal_status annal__fail_read(annal_error *err, const char *path)
{
    annal__fail_errno(err, "read '%s'", path);
    if (err != NULL)
        err->status = ANNAL_ERR_INVALID;
    return ANNAL_ERR_INVALID;
}

annal_status annal__read_file(const char *path, struct buf *out, annal_error *err)
{
    annal_status status = ANNAL_OK;
    ssize_t count = 1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return annal__fail_read(err, path);
    while (status == ANNAL_OK && count != 0) {
        status = annal__buf_reserve(out, 1);
        if (status < 0) {
            annal__fail(err, status, "read '%s': it is longer than %zu bytes", path, out->limit);
            break;
        }
        count = read(file, out->ptr + out->len, out->cap - out->len);
        if (count > 0)
            out->len += (size_t)count;
        else if (count < 0 && errno != EINTR)
            status = annal__fail_read(err, path);
    }
    close(file);
    return status;
}

annal_status annal__replace_file(const char *path, annal_slice content, annal_error *err)
{
    struct buf name = {.limit = 1 << 14};
    annal_status status = annal__buf_printf(&name, "%s.new", path);
    const char *next = status < 0 ? NULL : annal__buf_cstr(&name);
    if (next == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "write '%s': out of memory", path);
        goto done;
    }
    unlink(next);
    int file = open(next, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool good =
        file >= 0 && annal__write_all(&annal__system_io, file, content.ptr, content.len, 0) == 0;
    if (file >= 0 && close(file) < 0)
        good = false;
    if (!good || rename(next, path) < 0) {
        status = annal__fail_errno(err, "write '%s'", path);
        unlink(next);
    }

done:
    annal__buf_done(&name);
    return status;
}
