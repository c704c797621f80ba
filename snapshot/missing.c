/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/missing.h"

#include "index/sys/open.h"
#include "snapshot/due.h"

#include "journal/base/buf.h"
#include "journal/sys/seam.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT  8192
#define TIME_DIGITS 20
#define LINE_LIMIT  (TIME_DIGITS + 1 + ANNAL_SESSION_ID_BYTES_MAX + 1)
/* A process spends at most 1/SHARE of its time on looking for sessions that lack a snapshot. */
#define SHARE    100
#define PAUSE_US 1000000 /* minimum time in us between two looks for missing snapshots */
/* time in us after which another process looks for missing snapshots, if the process that is
 * looking for them dies */
#define LOOKING_US 60000000
/* A stored time of the next search that is further in the future than this (us) was written with a
 * wrong clock, and is ignored. */
#define MISTAKEN_US 3600000000

struct look {
    annal_index *index;
    const annal_snapshot_policy *policy;
    annal_session_fn fn;
    void *arg;
    int64_t us;
    /* time in us at which the look for missing snapshots ends (monotonic); 0: no session was
     * examined yet */
    int64_t stop_us;
    char from[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* first session to examine */
    /* session that was next when the time was over; "": all were examined */
    char next[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

static int64_t monotonic_us(const struct look *look)
{
    const struct clock *clock = annal__store_clock(annal__index_store(look->index));
    return clock->monotonic_us(clock->arg);
}

/* Read the time of the next look and its first session from the file. If the file is torn, the look
 * is due now, and begins with the first session. */
static void read_turn(const struct io *io, int fd, int64_t *out_due_us, char *out_from)
{
    char line[LINE_LIMIT + 1];
    char *end = line;
    ssize_t bytes = annal__io_read_full(io, fd, line, LINE_LIMIT, 0);
    line[bytes < 0 ? 0 : bytes] = '\0';
    *out_due_us = 0;
    out_from[0] = '\0';
    int64_t due_us = strtoll(line, &end, 10);
    size_t chars = strcspn(line, "\n");
    if (line[chars] == '\0' || end != line + TIME_DIGITS || chars <= TIME_DIGITS)
        return;
    *out_due_us = due_us;
    memcpy(out_from, end + 1, chars - TIME_DIGITS - 1);
    out_from[chars - TIME_DIGITS - 1] = '\0';
}

static bool write_turn(const struct io *io, int fd, int64_t due_us, const char *from)
{
    char line[LINE_LIMIT + 1];
    int len = snprintf(line, sizeof line, "%0*lld %s\n", TIME_DIGITS, (long long)due_us, from);
    return annal__io_write_all(io, fd, line, (size_t)len, 0) == 0 &&
           io->ftruncate(io->arg, fd, (uint64_t)len) == 0;
}

static int open_turn(const annal_store *store, const struct io *io)
{
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    int fd = -1;
    if (annal__buf_printf(&path, "%s/locks/snapshots", annal_store_path(store)) >= 0 &&
        annal__buf_cstr(&path) != NULL)
        fd = io->open(io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
    return fd;
}

/* Examine a session, as an annal_session_fn; ANNAL_END when the time is over. */
static int look_at(void *arg, annal_slice session, uint64_t bytes)
{
    struct look *look = arg;
    struct due due;
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    memcpy(id, session.ptr, session.len);
    if (strcmp(id, look->from) < 0)
        return 0;
    /* start the time limit at the first session, so that at least one session is examined even if
     * listing the sessions took long */
    if (look->stop_us == 0)
        look->stop_us = monotonic_us(look) + look->us;
    else if (monotonic_us(look) >= look->stop_us) {
        memcpy(look->next, id, sizeof id);
        return ANNAL_END;
    }
    if (annal__due_look(look->index, session, look->policy, NULL, &due, NULL) < 0 || !due.now)
        return 0;
    return look->fn(look->arg, session, bytes);
}

void annal__missing_look(annal_index *index, const annal_snapshot_policy *policy, int64_t us,
                         annal_session_fn fn, void *arg)
{
    annal_store *store = annal__index_store(index);
    const struct io *io = annal__store_io(store);
    const struct clock *clock = annal__store_clock(store);
    int64_t now_us = clock->wall_us(clock->arg);
    int64_t due_us = 0;
    struct look look = {.index = index, .policy = policy, .fn = fn, .arg = arg, .us = us};
    int64_t begun_us = monotonic_us(&look);
    int fd = open_turn(store, io);
    if (fd < 0)
        return;
    read_turn(io, fd, &due_us, look.from);
    bool is_due = due_us <= now_us || due_us >= now_us + MISTAKEN_US;
    if (is_due && write_turn(io, fd, now_us + LOOKING_US, look.from)) {
        (void)!annal__session_list_read(store, look_at, &look, NULL);
        int64_t pause_us = (monotonic_us(&look) - begun_us) * SHARE;
        (void)write_turn(io, fd, now_us + (pause_us < PAUSE_US ? PAUSE_US : pause_us), look.next);
    }
    io->close(io->arg, fd);
}
