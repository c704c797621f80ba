/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool whole_file_read_fd(int fd, size_t limit, struct buf *out)
{
    char bytes[65536];
    ssize_t len;
    out->limit = limit;
    while ((len = read(fd, bytes, sizeof bytes)) > 0 || (len < 0 && errno == EINTR)) {
        if (len > 0 && annal__buf_append(out, bytes, (size_t)len) < 0) {
            errno = EFBIG;
            return false;
        }
    }
    return len == 0;
}

bool whole_file_read(const char *path, size_t limit, struct buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool whole = fd >= 0 && whole_file_read_fd(fd, limit, out);
    int failed = errno;
    if (fd >= 0)
        close(fd);
    errno = failed;
    return whole;
}
