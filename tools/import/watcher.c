/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/watcher.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/lock_holder.h"

#include <annal/base.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_lock(const char *store, int flags)
{
    SCOPED_BUF path = {0};
    int fd = -1;
    if (annal__buf_printf(&path, "%s/locks/watch", store) >= 0 && annal__buf_cstr(&path) != NULL)
        fd = open(path.ptr, flags | O_CLOEXEC | O_NOFOLLOW, 0660);
    return fd;
}

static annal_status refuse(const char *store, annal_error *err)
{
    struct watcher watcher = {0};
    char name[HOLDER_BYTES], since[ANNAL_TIME_BYTES] = "";
    (void)watcher_find(store, &watcher);
    annal_time_format(watcher.since_us, since);
    return annal__fail(
        err, ANNAL_ERR_BUSY,
        "watch: %s watches the logs of agents for the store '%s' since %s; a store has one watch",
        annal__lock_holder_name(watcher.pid, name), store, since);
}

annal_status watcher_begin(const char *store, int *out_fd, annal_error *err)
{
    int fd = open_lock(store, O_RDWR | O_CREAT);
    if (fd < 0)
        return annal__fail_errno(err, "watch: cannot open the file %s/locks/watch", store);
    bool busy = flock(fd, LOCK_EX | LOCK_NB) < 0;
    if (!busy && futimens(fd, NULL) == 0) {
        *out_fd = fd;
        return ANNAL_OK;
    }
    annal_status status =
        busy && errno == EWOULDBLOCK
            ? refuse(store, err)
            : annal__fail_errno(err, "watch: cannot lock the file %s/locks/watch", store);
    close(fd);
    return status;
}

bool watcher_find(const char *store, struct watcher *out)
{
    struct stat st;
    int fd = open_lock(store, O_RDONLY);
    if (fd < 0)
        return false;
    bool there = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK && fstat(fd, &st) == 0;
    if (there)
        *out = (struct watcher){annal__lock_holder_of(&st, false),
                                st.st_mtim.tv_sec * INT64_C(1000000) + st.st_mtim.tv_nsec / 1000};
    close(fd);
    return there;
}
