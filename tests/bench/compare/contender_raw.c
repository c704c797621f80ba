/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: a file that was filled with zeros before the clock runs, one pwrite() and one
 * fdatasync() a group. Threads that wait while a group is synced are the next group. "raw" writes
 * with O_DIRECT, each group on a new page; "raw-cached" through the page cache, without gaps.
 */
#include "tests/bench/compare/contender.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE       ((size_t)4096)
#define MORE_BYTES ((uint64_t)16 << 20)

struct record {
    uint32_t bytes; /* of type and data; 0: the rest of the page is empty */
    uint32_t session;
    uint64_t seq;
    int64_t ts_us;
    uint32_t type_bytes;
    uint32_t reserved;
};

struct group {
    char *bytes;
    size_t len, room;
};

struct raw {
    int fd;
    bool direct;
    uint64_t end, filled;
    pthread_mutex_t mutex;
    pthread_cond_t done[2]; /* of even and of odd groups */
    struct group groups[2];
    uint64_t filling, durable; /* numbers of groups */
    bool leading;
    const struct payloads *payloads;
    char path[4096];
    struct found *found; /* by session and seq, filled by the first read */
    size_t found_count, found_room;
    char *bytes; /* what was read last */
    size_t room;
};

static void reserve(struct group *group, size_t more)
{
    if (group->len + more <= group->room)
        return;
    size_t room = (group->len + more) * 2 + (1u << 20);
    void *bytes;
    if (posix_memalign(&bytes, PAGE, room / PAGE * PAGE) != 0)
        bench_fail("raw: no memory");
    if (group->len > 0)
        memcpy(bytes, group->bytes, group->len);
    free(group->bytes);
    group->bytes = bytes;
    group->room = room / PAGE * PAGE;
}

static void fill_to(struct raw *raw, uint64_t bytes)
{
    size_t step = 1u << 20;
    void *zeros;
    if (posix_memalign(&zeros, PAGE, step) != 0)
        bench_fail("raw: no memory");
    memset(zeros, 0, step);
    while (raw->filled < bytes) {
        if (pwrite(raw->fd, zeros, step, (off_t)raw->filled) != (ssize_t)step)
            bench_fail("raw: fill %s: %m", raw->path);
        raw->filled += step;
    }
    free(zeros);
    if (fdatasync(raw->fd) < 0)
        bench_fail("raw: sync %s: %m", raw->path);
}

static void *open_raw(const struct place *place, unsigned process, bool direct)
{
    struct raw *raw = bench_alloc(sizeof *raw);
    *raw = (struct raw){.direct = direct, .payloads = place->payloads, .filling = 1};
    pthread_mutex_init(&raw->mutex, NULL);
    for (int i = 0; i < 2; i++)
        pthread_cond_init(&raw->done[i], NULL);
    snprintf(raw->path, sizeof raw->path, "%s/raw.%u", place->dir, process);
    bool made = access(raw->path, F_OK) == 0;
    raw->fd = open(raw->path, O_RDWR | O_CREAT | O_CLOEXEC | (direct ? O_DIRECT : 0), 0600);
    if (raw->fd < 0 && direct && errno == EINVAL) /* a filesystem that has no such thing */
        raw->fd = open(raw->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (raw->fd < 0)
        bench_fail("raw: open %s: %m", raw->path);
    if (!made)
        fill_to(raw, place->bytes_expected + MORE_BYTES);
    return raw;
}

static void *direct_open(const struct place *place, unsigned process)
{
    return open_raw(place, process, true);
}

static void *cached_open(const struct place *place, unsigned process)
{
    return open_raw(place, process, false);
}

static void raw_close(void *handle)
{
    struct raw *raw = handle;
    close(raw->fd);
    for (int i = 0; i < 2; i++) {
        free(raw->groups[i].bytes);
        pthread_cond_destroy(&raw->done[i]);
    }
    pthread_mutex_destroy(&raw->mutex);
    free(raw->found);
    free(raw->bytes);
    free(raw);
}

static void *raw_writer_open(void *handle)
{
    return handle;
}

static void raw_writer_close(void *writer)
{
    (void)writer;
}

static void put(struct group *group, const struct bench_event *event)
{
    struct record record = {.bytes = (uint32_t)(event->type.len + event->data.len),
                            .session = event->session,
                            .seq = event->seq,
                            .ts_us = event->ts_us,
                            .type_bytes = (uint32_t)event->type.len};
    size_t total = (sizeof record + record.bytes + 7) / 8 * 8;
    reserve(group, total + PAGE);
    char *to = group->bytes + group->len;
    memcpy(to, &record, sizeof record);
    memcpy(to + sizeof record, event->type.ptr, event->type.len);
    memcpy(to + sizeof record + event->type.len, event->data.ptr, event->data.len);
    memset(to + sizeof record + record.bytes, 0, total - sizeof record - record.bytes);
    group->len += total;
}

static void write_group(struct raw *raw, struct group *group)
{
    if (raw->direct) {
        size_t padded = (group->len + PAGE - 1) / PAGE * PAGE;
        memset(group->bytes + group->len, 0, padded - group->len);
        group->len = padded;
    }
    if (raw->end + group->len > raw->filled)
        fill_to(raw, raw->end + group->len + MORE_BYTES);
    if (pwrite(raw->fd, group->bytes, group->len, (off_t)raw->end) != (ssize_t)group->len ||
        fdatasync(raw->fd) < 0)
        bench_fail("raw: write %s: %m", raw->path);
    raw->end += group->len;
    group->len = 0;
}

static void lead(struct raw *raw)
{
    uint64_t number = raw->filling++;
    raw->leading = true;
    pthread_mutex_unlock(&raw->mutex);
    write_group(raw, &raw->groups[number % 2]);
    pthread_mutex_lock(&raw->mutex);
    raw->leading = false;
    raw->durable = number;
    pthread_cond_broadcast(&raw->done[number % 2]);
    pthread_cond_signal(&raw->done[(number + 1) % 2]); /* the next leader */
}

static void raw_append(void *writer, const struct bench_event *events, size_t count)
{
    struct raw *raw = writer;
    pthread_mutex_lock(&raw->mutex);
    uint64_t number = raw->filling;
    for (size_t i = 0; i < count; i++)
        put(&raw->groups[number % 2], &events[i]);
    while (raw->durable < number) {
        if (!raw->leading)
            lead(raw);
        else
            pthread_cond_wait(&raw->done[number % 2], &raw->mutex);
    }
    pthread_mutex_unlock(&raw->mutex);
}

/* ---- Reading: where each event stands is found once, then it is one pread() ---- */

struct found {
    struct record record;
    int fd;
    uint64_t at;
};

static bool next_record(int fd, uint64_t *at, struct record *out)
{
    while (pread(fd, out, sizeof *out, (off_t)*at) == (ssize_t)sizeof *out) {
        if (out->bytes != 0)
            return true;
        if (*at % PAGE == 0)
            return false; /* a page that was never written */
        *at = (*at / PAGE + 1) * PAGE;
    }
    return false;
}

static void find_in(struct raw *raw, int fd)
{
    struct record record;
    uint64_t at = 0;
    for (; next_record(fd, &at, &record); at += (sizeof record + record.bytes + 7) / 8 * 8) {
        if (raw->found_count == raw->found_room) {
            raw->found_room = raw->found_room * 2 + 4096;
            raw->found = realloc(raw->found, raw->found_room * sizeof *raw->found);
            if (raw->found == NULL)
                bench_fail("raw: no memory");
        }
        raw->found[raw->found_count++] = (struct found){record, fd, at + sizeof record};
    }
}

static int by_session(const void *left, const void *right)
{
    const struct record *a = &((const struct found *)left)->record;
    const struct record *b = &((const struct found *)right)->record;
    if (a->session != b->session)
        return a->session < b->session ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static void find_all(struct raw *raw)
{
    size_t base = strlen(raw->path);
    while (raw->path[base - 1] != '.')
        base--;
    for (unsigned process = 0;; process++) {
        snprintf(raw->path + base, sizeof raw->path - base, "%u", process);
        int fd = open(raw->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            break;
        find_in(raw, fd); /* stays open */
    }
    qsort(raw->found, raw->found_count, sizeof *raw->found, by_session);
}

static size_t search(const struct raw *raw, unsigned session, uint64_t seq)
{
    struct found wanted = {.record = {.session = session, .seq = seq}};
    size_t from = 0, to = raw->found_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (by_session(&raw->found[middle], &wanted) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void hand_on(struct raw *raw, const struct found *found, bench_event_fn fn, void *arg)
{
    const struct record *record = &found->record;
    if (record->bytes > raw->room) {
        free(raw->bytes);
        raw->bytes = bench_alloc(raw->room = (size_t)record->bytes * 2);
    }
    if (pread(found->fd, raw->bytes, record->bytes, (off_t)found->at) != (ssize_t)record->bytes)
        bench_fail("raw: read: %m");
    fn(arg, &(struct bench_event){
                .session = record->session,
                .seq = record->seq,
                .ts_us = record->ts_us,
                .name = payloads_name(raw->payloads, record->session),
                .type = {raw->bytes, record->type_bytes},
                .data = {raw->bytes + record->type_bytes, record->bytes - record->type_bytes}});
}

static void raw_read(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                     bench_event_fn fn, void *arg)
{
    struct raw *raw = handle;
    if (raw->found == NULL)
        find_all(raw);
    for (size_t i = search(raw, session, from_seq);
         count > 0 && i < raw->found_count && raw->found[i].record.session == session; i++, count--)
        hand_on(raw, &raw->found[i], fn, arg);
}

#define RAW                                                                                        \
    .durable = true, .limit = true, .promise = "fdatasync has returned", .close = raw_close,       \
    .writer_open = raw_writer_open, .writer_close = raw_writer_close, .append = raw_append,        \
    .read = raw_read

const struct contender contender_raw = {.name = "raw", .open = direct_open, RAW};
const struct contender contender_raw_cached = {.name = "raw-cached", .open = cached_open, RAW};
