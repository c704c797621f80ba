/*
 * Following a session.
 *
 * (1) A tail reads the journal, where an event stands only once it is durable (level os apart), so
 *     what it gives is never taken back. A last line that does not prove itself yet is left alone
 *     until it does: also when a new owner cuts it and writes another one.
 * (2) It is woken by the write itself: inotify on the journal, or on events/ as long as there is no
 *     journal. The watch is set before the journal is read: what is written in between is either
 *     read or announced, so nothing is missed.
 * (3) ANNAL_END is answered only when the journal was read to its end after the announcements were
 *     taken away. So whoever then waits for the descriptor is woken by whatever comes.
 * (4) While it waits it looks by itself now and then: some filesystems do not announce everything.
 *     Where inotify is not to be had (a limit per user), a timer takes its place.
 * (5) It never asks for the times of a file that is written to (see identify in journal/base/io.h).
 */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/seam.h"

#include <annal/tail.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LOOK_MS       1000 /* rule (4) */
#define TIMER_LOOK_NS 250000000L
#define PATH_LIMIT    8192

#define WATCH_JOURNAL (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
#define WATCH_EVENTS  (IN_CREATE | IN_MOVED_TO | IN_ONLYDIR)

struct annal_tail {
    annal_store *store;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t from_seq;
    struct buf events_path;
    struct buf journal_paths[2]; /* one for each format; a session has one of them */
    unsigned journal;            /* the one that was there last */
    int fd;
    bool has_inotify;     /* fd is one; else a timer */
    int events_watch;     /* -1: none */
    annal_cursor *cursor; /* NULL: no journal yet */
    dev_t device;         /* of the journal that the cursor reads */
    ino_t inode;
    int64_t looked_us; /* when the name was last seen to stand for that journal */
};

static int64_t now_us(void)
{
    return annal__system_clock.monotonic_us(annal__system_clock.arg);
}

static annal_slice session_of(const annal_tail *tail)
{
    return annal_slice_of(tail->session);
}

/* ---- The descriptor ---- */

static annal_status use_timer(annal_tail *tail, annal_error *err)
{
    const struct itimerspec often = {.it_interval = {.tv_nsec = TIMER_LOOK_NS},
                                     .it_value = {.tv_nsec = TIMER_LOOK_NS}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd < 0 || timerfd_settime(fd, 0, &often, NULL) < 0) {
        annal_status status = annal__fail_errno(err, "tail of session '%s'", tail->session);
        if (fd >= 0)
            close(fd);
        return status;
    }
    tail->has_inotify = false;
    if (tail->fd < 0) {
        tail->fd = fd;
        return ANNAL_OK;
    }
    /* In the place of the inotify descriptor: the caller may have handed its number to epoll. */
    int placed = dup3(fd, tail->fd, O_CLOEXEC);
    close(fd);
    return placed < 0 ? annal__fail_errno(err, "tail of session '%s'", tail->session) : ANNAL_OK;
}

/* -1: there is no watch, which rule (4) makes good. */
static int watch(annal_tail *tail, const struct buf *path, uint32_t mask)
{
    return tail->has_inotify ? inotify_add_watch(tail->fd, path->ptr, mask) : -1;
}

/* Take away what was announced. True when there was something. */
static bool take_announcements(annal_tail *tail)
{
    char bytes[4096] __attribute__((aligned(8)));
    bool any = false;
    while (read(tail->fd, bytes, sizeof bytes) > 0)
        any = true;
    return any;
}

/* ---- The journal ---- */

static bool identify(annal_tail *tail, dev_t *device, ino_t *inode)
{
    const struct io *io = annal__store_io(tail->store);
    for (unsigned i = 0; i < 2; i++) {
        unsigned journal = tail->journal ^ i;
        if (io->identify(io->arg, tail->journal_paths[journal].ptr, device, inode) == 0) {
            tail->journal = journal;
            return true;
        }
    }
    return false;
}

/*
 * Open the journal, if it is there. ANNAL_END: it is not. Rule (2): the watch comes first, and the
 * name must stand for the same file before and after.
 */
static annal_status attach(annal_tail *tail, annal_error *err)
{
    dev_t device, device_after;
    ino_t inode, inode_after;
    if (!identify(tail, &device, &inode))
        return ANNAL_END;
    int journal_watch = watch(tail, &tail->journal_paths[tail->journal], WATCH_JOURNAL);
    if (journal_watch < 0 && tail->has_inotify && errno != ENOENT) {
        annal_status status = use_timer(tail, err);
        if (status < 0)
            return status;
    }
    annal_status status =
        annal_cursor_open(tail->store, session_of(tail), tail->from_seq, &tail->cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_END;
    if (status < 0)
        return status;
    if (!identify(tail, &device_after, &inode_after) || device != device_after ||
        inode != inode_after) {
        annal_cursor_close(tail->cursor);
        tail->cursor = NULL;
        return ANNAL_END;
    }
    if (tail->events_watch >= 0)
        (void)inotify_rm_watch(tail->fd, tail->events_watch);
    tail->events_watch = -1;
    tail->device = device;
    tail->inode = inode;
    tail->looked_us = now_us();
    return ANNAL_OK;
}

/* Whether the name still stands for the journal that the cursor reads. */
static annal_status check_journal(annal_tail *tail, annal_error *err)
{
    dev_t device;
    ino_t inode;
    tail->looked_us = now_us();
    if (!identify(tail, &device, &inode))
        return annal__fail(err, ANNAL_ERR_CONFLICT, "tail of session '%s': its journal is gone",
                           tail->session);
    if (device != tail->device || inode != tail->inode)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "tail of session '%s': its journal was replaced by another one",
                           tail->session);
    return ANNAL_OK;
}

/* ---- Opening ---- */

static annal_status find_end(annal_tail *tail, annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(tail->store, session_of(tail), &info, err);
    if (status >= 0)
        tail->from_seq = info.last_seq + 1;
    else if (status == ANNAL_ERR_NOTFOUND)
        tail->from_seq = 1;
    return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
}

static annal_status make_paths(annal_tail *tail, annal_error *err)
{
    annal_status status =
        annal__buf_printf(&tail->events_path, "%s/events", annal_store_path(tail->store));
    static const char *const suffixes[] = {".jsonl", ".mpk"};
    for (unsigned i = 0; i < 2 && status >= 0; i++)
        status = annal__buf_printf(&tail->journal_paths[i], "%s/%s%s", tail->events_path.ptr,
                                   tail->session, suffixes[i]);
    return status < 0 ? annal__fail(err, status, "tail of session '%s'", tail->session) : ANNAL_OK;
}

/* Rule (2): events/ is watched before the journal is looked for. */
static annal_status begin(annal_tail *tail, annal_error *err)
{
    annal_status status = make_paths(tail, err);
    if (status < 0)
        return status;
    tail->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    tail->has_inotify = tail->fd >= 0;
    if (tail->has_inotify)
        tail->events_watch = watch(tail, &tail->events_path, WATCH_EVENTS);
    if (tail->events_watch < 0)
        status = use_timer(tail, err);
    if (status >= 0 && tail->from_seq == ANNAL_TAIL_NEW)
        status = find_end(tail, err);
    if (status >= 0)
        status = attach(tail, err);
    return status < 0 ? status : ANNAL_OK;
}

annal_status annal_tail_open(annal_store *store, annal_slice session, uint64_t from_seq,
                             annal_tail **out_tail, annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal_tail *tail = annal__zalloc(sizeof *tail);
    if (tail == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "tail of session '%.*s'", ANNAL_FMT(session));
    *tail = (annal_tail){.store = store,
                         .from_seq = from_seq == 0 ? 1 : from_seq,
                         .events_path = {.limit = PATH_LIMIT},
                         .journal_paths = {{.limit = PATH_LIMIT}, {.limit = PATH_LIMIT}},
                         .fd = -1,
                         .events_watch = -1};
    memcpy(tail->session, session.ptr, session.len);
    status = begin(tail, err);
    if (status < 0) {
        annal_tail_close(tail);
        return status;
    }
    *out_tail = tail;
    return ANNAL_OK;
}

void annal_tail_close(annal_tail *tail)
{
    if (tail == NULL)
        return;
    annal_cursor_close(tail->cursor);
    if (tail->fd >= 0)
        close(tail->fd);
    annal__buf_done(&tail->events_path);
    annal__buf_done(&tail->journal_paths[0]);
    annal__buf_done(&tail->journal_paths[1]);
    annal__free(tail);
}

/* ---- Reading ---- */

static annal_status read_next(annal_tail *tail, annal_event *out_event, annal_error *err)
{
    annal_status status = tail->cursor == NULL ? attach(tail, err) : ANNAL_OK;
    return status == ANNAL_OK ? annal_cursor_next(tail->cursor, out_event, err) : status;
}

/* Wait for an announcement, up to deadline_us, and no longer than rule (4) says. */
static annal_status wait_a_while(annal_tail *tail, int64_t deadline_us, annal_error *err)
{
    int64_t left_us = deadline_us - now_us();
    int wait_ms = left_us / 1000 >= LOOK_MS ? LOOK_MS : (int)((left_us + 999) / 1000);
    struct pollfd ready = {.fd = tail->fd, .events = POLLIN};
    if (poll(&ready, 1, wait_ms) < 0 && errno != EINTR)
        return annal__fail_errno(err, "wait for session '%s'", tail->session);
    return ANNAL_OK;
}

annal_status annal_tail_next(annal_tail *tail, uint32_t timeout_ms, annal_event *out_event,
                             annal_error *err)
{
    int64_t deadline_us =
        timeout_ms == ANNAL_TAIL_EVER ? INT64_MAX : now_us() + (int64_t)timeout_ms * 1000;
    for (;;) {
        annal_status status = read_next(tail, out_event, err);
        if (status != ANNAL_END)
            return status;
        bool announced = take_announcements(tail);
        if (tail->cursor != NULL &&
            (announced || now_us() - tail->looked_us >= (int64_t)LOOK_MS * 1000)) {
            annal_error gone = {0};
            annal_status still = check_journal(tail, &gone);
            if (still < 0) { /* what was written before the name changed is given first */
                status = read_next(tail, out_event, err);
                if (status == ANNAL_END && err != NULL)
                    *err = gone;
                return status == ANNAL_END ? still : status;
            }
        }
        if (announced)
            continue;
        if (now_us() >= deadline_us)
            return ANNAL_END;
        status = wait_a_while(tail, deadline_us, err);
        if (status < 0)
            return status;
    }
}

annal_damage annal_tail_damage(const annal_tail *tail)
{
    return tail->cursor == NULL ? (annal_damage){0} : annal_cursor_damage(tail->cursor);
}

uint64_t annal_tail_seq(const annal_tail *tail)
{
    uint64_t seq = tail->cursor == NULL ? 1 : annal_cursor_position(tail->cursor).seq;
    return seq < tail->from_seq ? tail->from_seq : seq;
}

int annal_tail_fd(const annal_tail *tail)
{
    return tail->fd;
}
