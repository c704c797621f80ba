/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a state in a file. Applying a million events changes more pages than should be kept in
 * memory, so the changed pages are moved to an unnamed file in the store's directory. The file is
 * deleted when the state is freed, and when the process dies. If no such file can be created (a
 * store on read-only media), or once the disk is full, the pages stay in memory.
 */
#include "index/state/spill.h"

#include "index/sys/state.h"
#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void annal__spill_open(struct spill *spill, const char *directory)
{
    if (spill->open)
        return;
    *spill = (struct spill){.open = true};
    spill->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    spill->full = spill->fd < 0;
}

void annal__spill_close(struct spill *spill)
{
    if (spill->open && spill->fd >= 0)
        close(spill->fd);
    *spill = (struct spill){0};
}

bool annal__spill_put(struct spill *spill, uint64_t page, const char *bytes)
{
    off_t offset = (off_t)(page - 1) * ANNAL_STATE_PAGE_BYTES;
    for (size_t done = 0; !spill->full && done < ANNAL_STATE_PAGE_BYTES;) {
        ssize_t n =
            pwrite(spill->fd, bytes + done, ANNAL_STATE_PAGE_BYTES - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        spill->full = n <= 0;
        done += n > 0 ? (size_t)n : 0;
    }
    return !spill->full;
}

annal_status annal__spill_get(const struct spill *spill, uint64_t page, char *out, annal_error *err)
{
    off_t offset = (off_t)(page - 1) * ANNAL_STATE_PAGE_BYTES;
    for (size_t done = 0; done < ANNAL_STATE_PAGE_BYTES;) {
        ssize_t n =
            pread(spill->fd, out + done, ANNAL_STATE_PAGE_BYTES - done, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return annal__fail_errno(err,
                                     "cannot read the state of a session from a temporary file");
        }
        done += (size_t)n;
    }
    return ANNAL_OK;
}
