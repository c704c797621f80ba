#include "snapshot/left.h"

#include "snapshot/due.h"

#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_LIMIT  8192
#define SHARE       100        /* of the time may be spent on looking: one in so many parts */
#define PAUSE_US    1000000    /* between two looks at least */
#define LOOKING_US  60000000   /* until others look, if this one dies */
#define MISTAKEN_US 3600000000 /* later than this the time comes from a clock that was wrong */

struct look {
    annal_index *index;
    const annal_snapshot_policy *policy;
    annal_session_fn fn;
    void *arg;
    int64_t stop_us;
    char from[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* the first to look at */
    char next[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* where time was up; "": it was not */
};

static int64_t monotonic_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

static void set_time(int fd, int64_t us)
{
    const struct timespec at = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)!futimens(fd, (const struct timespec[2]){at, at});
}

/* The file when it is time, with the time moved on; else -1. */
static int take_turn(const annal_store *store, int64_t now_us)
{
    struct buf path = {.limit = PATH_LIMIT};
    struct stat info;
    int fd = -1;
    if (annal__buf_printf(&path, "%s/locks/snapshots", annal_store_path(store)) >= 0 &&
        annal__buf_cstr(&path) != NULL)
        fd = open(path.ptr, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    annal__buf_done(&path);
    if (fd < 0 || fstat(fd, &info) != 0)
        return fd;
    int64_t due_us = (int64_t)info.st_mtim.tv_sec * 1000000 + info.st_mtim.tv_nsec / 1000;
    /* One that was made just now has the time of its making. */
    if (due_us > now_us + PAUSE_US / 100 && due_us < now_us + MISTAKEN_US) {
        close(fd);
        return -1;
    }
    set_time(fd, now_us + LOOKING_US);
    return fd;
}

/* An annal_session_fn. */
static int look_at(void *arg, annal_slice session, uint64_t bytes)
{
    struct look *look = arg;
    struct due due;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    memcpy(id, session.ptr, session.len);
    if (strcmp(id, look->from) < 0)
        return 0;
    if (monotonic_us() >= look->stop_us) {
        memcpy(look->next, id, sizeof id);
        return ANNAL_END;
    }
    if (annal__due_look(look->index, session, look->policy, NULL, &due, NULL) < 0 || !due.now)
        return 0;
    return look->fn(look->arg, session, bytes);
}

void annal__left_look(annal_index *index, const annal_snapshot_policy *policy, int64_t us,
                      annal_session_fn fn, void *arg)
{
    annal_store *store = annal_index_store(index);
    int64_t now_us = annal__system_clock.wall_us(annal__system_clock.arg);
    int64_t begun_us = monotonic_us();
    struct look look = {
        .index = index, .policy = policy, .fn = fn, .arg = arg, .stop_us = begun_us + us};
    int fd = take_turn(store, now_us);
    if (fd < 0)
        return;
    ssize_t bytes = pread(fd, look.from, sizeof look.from - 1, 0);
    look.from[bytes < 0 ? 0 : bytes] = '\0';
    (void)!annal_store_sessions(store, look_at, &look, NULL);
    size_t len = strlen(look.next);
    if (strcmp(look.from, look.next) != 0 &&
        (ftruncate(fd, (off_t)len) != 0 || pwrite(fd, look.next, len, 0) != (ssize_t)len))
        (void)!ftruncate(fd, 0);
    int64_t pause_us = (monotonic_us() - begun_us) * SHARE;
    set_time(fd, now_us + (pause_us < PAUSE_US ? PAUSE_US : pause_us));
    close(fd);
}
