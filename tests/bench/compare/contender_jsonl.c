/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agents do today: a file of JSON lines for each session, to which one write() appends. With
 * and without fdatasync(), which is one for each session that a call appends to.
 */
#include "tests/bench/compare/contender.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

struct jsonl {
    const struct place *place;
    bool sync;
    int *fds; /* by session; each is used by one thread alone; -1: not open */
};

struct lines {
    struct jsonl *jsonl;
    char *bytes;
    size_t len, room;
    int *dirty;
    size_t dirty_count, dirty_room;
};

static void *open_jsonl(const struct place *place, bool sync)
{
    struct jsonl *jsonl = bench_alloc(sizeof *jsonl);
    *jsonl = (struct jsonl){place, sync, bench_alloc(place->sessions * sizeof(int))};
    for (unsigned i = 0; i < place->sessions; i++)
        jsonl->fds[i] = -1;
    return jsonl;
}

static void *synced_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_jsonl(place, true);
}

static void *unsynced_open(const struct place *place, unsigned process)
{
    (void)process;
    return open_jsonl(place, false);
}

static void jsonl_close(void *handle)
{
    struct jsonl *jsonl = handle;
    for (unsigned i = 0; i < jsonl->place->sessions; i++)
        if (jsonl->fds[i] >= 0)
            close(jsonl->fds[i]);
    free(jsonl->fds);
    free(jsonl);
}

static void path_of(const struct jsonl *jsonl, unsigned session, char out[4096])
{
    snprintf(out, 4096, "%s/%.*s.jsonl", jsonl->place->dir,
             ANNAL_FMT(payloads_name(jsonl->place->payloads, session)));
}

static int fd_of(struct jsonl *jsonl, unsigned session)
{
    char path[4096];
    if (jsonl->fds[session] < 0) {
        path_of(jsonl, session, path);
        jsonl->fds[session] = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    if (jsonl->fds[session] < 0)
        bench_fail("jsonl: open session %u: %m", session);
    return jsonl->fds[session];
}

static void *jsonl_writer_open(void *handle)
{
    struct lines *lines = bench_alloc(sizeof *lines);
    *lines = (struct lines){.jsonl = handle};
    return lines;
}

static void jsonl_writer_close(void *writer)
{
    struct lines *lines = writer;
    free(lines->bytes);
    free(lines->dirty);
    free(lines);
}

static void put_line(struct lines *lines, const struct bench_event *event)
{
    size_t most = event->data.len + event->type.len + 128;
    if (lines->len + most > lines->room) {
        lines->room = (lines->len + most) * 2;
        lines->bytes = realloc(lines->bytes, lines->room);
        if (lines->bytes == NULL)
            bench_fail("jsonl: no memory");
    }
    char *to = lines->bytes + lines->len;
    int head =
        snprintf(to, most, "{\"seq\":%llu,\"ts\":%lld,\"type\":\"%.*s\",\"data\":",
                 (unsigned long long)event->seq, (long long)event->ts_us, ANNAL_FMT(event->type));
    memcpy(to + head, event->data.ptr, event->data.len);
    memcpy(to + (size_t)head + event->data.len, "}\n", 2);
    lines->len += (size_t)head + event->data.len + 2;
}

static void mark(struct lines *lines, int fd)
{
    for (size_t i = lines->dirty_count; i-- > 0;)
        if (lines->dirty[i] == fd)
            return;
    if (lines->dirty_count == lines->dirty_room) {
        lines->dirty_room = lines->dirty_room * 2 + 16;
        lines->dirty = realloc(lines->dirty, lines->dirty_room * sizeof *lines->dirty);
        if (lines->dirty == NULL)
            bench_fail("jsonl: no memory");
    }
    lines->dirty[lines->dirty_count++] = fd;
}

static void jsonl_append(void *writer, const struct bench_event *events, size_t count)
{
    struct lines *lines = writer;
    for (size_t i = 0; i < count;) {
        unsigned session = events[i].session;
        int fd = fd_of(lines->jsonl, session);
        for (lines->len = 0; i < count && events[i].session == session; i++)
            put_line(lines, &events[i]);
        if (write(fd, lines->bytes, lines->len) != (ssize_t)lines->len)
            bench_fail("jsonl: write session %u: %m", session);
        if (lines->jsonl->sync)
            mark(lines, fd);
    }
    for (size_t i = 0; i < lines->dirty_count; i++)
        if (fdatasync(lines->dirty[i]) < 0)
            bench_fail("jsonl: sync: %m");
    lines->dirty_count = 0;
}

/* ---- Reading ---- */

/* The parts of a line of our own making. */
static bool parse(const char *line, size_t len, struct bench_event *out)
{
    unsigned long long seq;
    long long ts_us;
    int type = 0;
    if (sscanf(line, "{\"seq\":%llu,\"ts\":%lld,\"type\":\"%n", &seq, &ts_us, &type) != 2 ||
        type == 0)
        return false;
    const char *quote = strchr(line + type, '"');
    static const char between[] = "\",\"data\":";
    if (quote == NULL || strncmp(quote, between, sizeof between - 1) != 0)
        return false;
    const char *data = quote + sizeof between - 1;
    out->seq = seq;
    out->ts_us = ts_us;
    out->type = (annal_slice){line + type, (size_t)(quote - line) - (size_t)type};
    out->data = (annal_slice){data, len - (size_t)(data - line) - 2};
    return true;
}

static void jsonl_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                       bench_event_fn fn, void *arg)
{
    struct jsonl *jsonl = handle;
    char path[4096], *line = NULL;
    size_t room = 0;
    ssize_t len;
    path_of(jsonl, session, path);
    FILE *file = fopen(path, "re");
    while (file != NULL && count > 0 && (len = getline(&line, &room, file)) > 0) {
        struct bench_event event = {.session = session,
                                    .name = payloads_name(jsonl->place->payloads, session)};
        if (!parse(line, (size_t)len, &event))
            bench_fail("jsonl: %s has a line that is none of ours", path);
        if (event.seq >= from_seq) {
            fn(arg, &event);
            count--;
        }
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

/* ---- Following: as tail -f does ---- */

struct jsonl_tail {
    struct jsonl *jsonl;
    unsigned session;
    FILE *file;
    int notify;
    char *line;
    size_t room;
};

static void *jsonl_tail_open(void *handle, unsigned session)
{
    char path[4096];
    struct jsonl_tail *tail = bench_alloc(sizeof *tail);
    *tail = (struct jsonl_tail){.jsonl = handle, .session = session};
    path_of(handle, session, path);
    tail->file = fopen(path, "a+e"); /* create it if it is missing */
    tail->notify = inotify_init1(IN_CLOEXEC);
    if (tail->file == NULL || inotify_add_watch(tail->notify, path, IN_MODIFY) < 0)
        bench_fail("jsonl: follow %s: %m", path);
    fseeko(tail->file, 0, SEEK_END);
    return tail;
}

static bool jsonl_tail_next(void *arg_tail, unsigned timeout_ms, bench_event_fn fn, void *arg)
{
    struct jsonl_tail *tail = arg_tail;
    for (;;) {
        clearerr(tail->file);
        off_t at = ftello(tail->file);
        ssize_t len = getline(&tail->line, &tail->room, tail->file);
        struct bench_event event = {.session = tail->session};
        if (len > 0 && tail->line[len - 1] == '\n' && parse(tail->line, (size_t)len, &event)) {
            fn(arg, &event);
            return true;
        }
        if (len > 0)
            fseeko(tail->file, at, SEEK_SET); /* half a line */
        char events[4096];
        if (poll(&(struct pollfd){tail->notify, POLLIN, 0}, 1, (int)timeout_ms) <= 0 ||
            read(tail->notify, events, sizeof events) < 0)
            return false;
    }
}

static void jsonl_tail_close(void *arg_tail)
{
    struct jsonl_tail *tail = arg_tail;
    fclose(tail->file);
    close(tail->notify);
    free(tail->line);
    free(tail);
}

#define JSONL                                                                                      \
    .close = jsonl_close, .writer_open = jsonl_writer_open, .writer_close = jsonl_writer_close,    \
    .append = jsonl_append, .read = jsonl_read, .no_range = "it has no index",                     \
    .tail_open = jsonl_tail_open, .tail_next = jsonl_tail_next, .tail_close = jsonl_tail_close

const struct contender contender_jsonl = {.name = "jsonl",
                                          .promise = "in the page cache: a power cut takes it",
                                          .open = unsynced_open,
                                          JSONL};
const struct contender contender_jsonl_sync = {.name = "jsonl-sync",
                                               .promise = "on the disk, each file by itself",
                                               .durable = true,
                                               .open = synced_open,
                                               JSONL};
