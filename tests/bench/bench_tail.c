/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time from an append until another process has the event, compared with the least possible.
 *
 *     bench_tail [--compare] [DIR [SECONDS]]
 *
 * DIR is on the disk to measure; default: the current directory. One process appends events that
 * carry the time; another process follows the session: it waits for news, reads the journal with a
 * cursor, and subtracts. Cases take turns in rounds, so that other programs on a shared machine
 * disturb all of them equally:
 *
 *   bare   pwrite and fdatasync of 4096 bytes over a zero-filled file
 *   sync   append at level sync; once one after the other, once with pauses of 1 ms
 *   os     the same at level os
 *
 * --compare adds the same with inotify on the journal instead of the wakeup page, and the cost of
 * an append while 0, 1, 100 and 1,000 processes wait. Prints one JSON object of microseconds.
 */
#include "journal/sys/news.h"

#include <annal/journal.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      5
#define SAMPLES_MAX 200000
#define BARE_BYTES  (4096 * 2048)
#define DATA_BYTES  1000 /* the median of real events */
#define PAUSE_NS    1000000

enum { BELL, INOTIFY, MEANS };

static const char *const means_names[] = {"wakeup page", "inotify"};

struct samples {
    double us[SAMPLES_MAX];
    size_t count;
};

/* What the two processes share. */
struct shared {
    _Atomic uint64_t seen; /* seq of the last event that the follower has */
    _Atomic bool ready;
    double us; /* latency of event seen */
};

static const char *directory = ".";
static struct samples samples;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void die(const char *what, const annal_error *err)
{
    fprintf(stderr, "bench_tail: %s: %s\n", what, err == NULL ? "failed" : err->message);
    exit(3);
}

static void add_sample(double us)
{
    if (samples.count < SAMPLES_MAX)
        samples.us[samples.count++] = us;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Of what was sampled since the last time. */
static void print_samples(const char *name)
{
    qsort(samples.us, samples.count, sizeof *samples.us, compare);
    printf("\"%s\":{\"p50\":%.1f,\"p99\":%.1f,\"samples\":%zu}", name,
           samples.us[samples.count / 2], samples.us[samples.count * 99 / 100], samples.count);
    samples.count = 0;
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/bench_tail.%s", directory, name);
    return path;
}

static annal_store *open_store(bool create)
{
    annal_store *store = NULL;
    annal_error err;
    const annal_store_options options = {.create = create, .no_keeper = !create};
    if (annal_store_open(path_of("store"), &options, &store, &err) < 0)
        die("open", &err);
    return store;
}

/* ---- The least ---- */

static void bare(bool pauses, double seconds)
{
    static char block[4096];
    int fd = open(path_of("bare"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die("bare file", NULL);
    for (off_t at = 0; at < BARE_BYTES; at += (off_t)sizeof block) {
        if (pwrite(fd, block, sizeof block, at) != (ssize_t)sizeof block)
            die("fill", NULL);
    }
    fsync(fd);
    memset(block, 'x', DATA_BYTES);
    double until = now_us() + seconds * 1e6;
    for (long count = 0; now_us() < until; count++) {
        off_t at = count % (BARE_BYTES / (off_t)sizeof block) * (off_t)sizeof block;
        double begun = now_us();
        if (pwrite(fd, block, sizeof block, at) != (ssize_t)sizeof block || fdatasync(fd) < 0)
            die("write", NULL);
        add_sample(now_us() - begun);
        if (pauses)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    close(fd);
    unlink(path_of("bare"));
}

/* ---- Following ---- */

static double sent_at(const annal_event *event)
{
    return strtod(event->data.ptr + strlen("{\"at\":"), NULL);
}

/* Read all new events, and report the last. */
static void read_on(annal_cursor *cursor, struct shared *shared)
{
    annal_event event;
    annal_error err;
    annal_status status;
    while ((status = annal_cursor_next(cursor, &event, &err)) == ANNAL_OK) {
        shared->us = now_us() - sent_at(&event);
        atomic_store(&shared->seen, event.seq);
    }
    if (status < 0)
        die("read", &err);
}

static void follow_wakeup_page(annal_store *store, annal_cursor *cursor, struct shared *shared)
{
    annal__news *news = NULL;
    annal__news_item item;
    annal_error err;
    if (annal__news_open(store, NULL, &news, &err) < 0)
        die("listen", &err);
    read_on(cursor, shared);
    atomic_store(&shared->ready, true);
    while (annal__news_wait(news, ANNAL_NO_TIMEOUT, &err) >= 0) {
        while (annal__news_next(news, &item, &err) == ANNAL_OK)
            ;
        read_on(cursor, shared);
    }
    die("wait", &err);
}

static void follow_inotify(const char *session, annal_cursor *cursor, struct shared *shared)
{
    char bytes[4096] __attribute__((aligned(8)));
    char path[4200];
    snprintf(path, sizeof path, "%s/events/%s.jsonl", path_of("store"), session);
    int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY) < 0)
        die("inotify", NULL);
    read_on(cursor, shared);
    atomic_store(&shared->ready, true);
    while (read(fd, bytes, sizeof bytes) > 0)
        read_on(cursor, shared);
    die("inotify", NULL);
}

/* A process that follows the session from its end; it ends by being killed. */
static pid_t start_follower(const char *session, int means, struct shared *shared)
{
    atomic_store(&shared->ready, false);
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        die("fork", NULL);
    if (pid == 0) {
        annal_cursor *cursor = NULL;
        annal_error err;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        annal_store *store = open_store(false);
        annal_session_info info;
        if (annal_session_info_get(store, annal_slice_of(session), &info, &err) < 0 ||
            annal_cursor_open(store, annal_slice_of(session), info.last_seq + 1, &cursor, &err) < 0)
            die("open a cursor", &err);
        if (means == BELL)
            follow_wakeup_page(store, cursor, shared);
        follow_inotify(session, cursor, shared);
    }
    while (!atomic_load(&shared->ready))
        usleep(1000);
    return pid;
}

static void stop(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- Appending ---- */

static uint64_t append(annal_writer *writer, annal_level level)
{
    char data[DATA_BYTES + 16];
    annal_error err;
    uint64_t seq;
    int length = snprintf(data, sizeof data, "{\"at\":%.3f,\"text\":\"", now_us());
    memset(data + length, 'x', DATA_BYTES - (size_t)length);
    memcpy(data + DATA_BYTES - 2, "\"}", 2);
    annal_draft draft = {.type = ANNAL_SLICE("message.added"), .data = {data, DATA_BYTES}};
    if (annal_writer_append(writer, &draft, 1, &(annal_append_options){.level = level}, &seq,
                            &err) < 0)
        die("append", &err);
    return seq;
}

static annal_writer *open_writer(annal_store *store, const char *session)
{
    annal_writer *writer = NULL;
    annal_error err;
    if (annal_writer_open(store, annal_slice_of(session), NULL, &writer, &err) < 0)
        die("open a writer", &err);
    append(writer, ANNAL_LEVEL_SYNC); /* takes the session, makes the log and the journal */
    append(writer, ANNAL_LEVEL_OS);
    return writer;
}

/* Append one event at a time, each after the previous event has arrived. */
static void measure(int means, annal_level level, bool pauses, double seconds)
{
    static int number;
    char session[32];
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap", NULL);
    snprintf(session, sizeof session, "bench_%d", number++);
    annal_store *store = open_store(true);
    annal_writer *writer = open_writer(store, session);
    pid_t pid = start_follower(session, means, shared);
    usleep(50000); /* a new wakeup page is noticed */
    append(writer, level);
    usleep(2000);
    double until = now_us() + seconds * 1e6;
    while (now_us() < until) {
        uint64_t seq = append(writer, level);
        double begun = now_us();
        while (atomic_load(&shared->seen) < seq && now_us() - begun < 3e6)
            ;
        if (atomic_load(&shared->seen) < seq)
            die("an event did not arrive", NULL);
        add_sample(shared->us);
        if (pauses)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    stop(pid);
    annal_writer_close(writer);
    if (annal_store_close(store, NULL) < 0)
        die("close", NULL);
    munmap(shared, sizeof *shared);
}

/* ---- Waiting processes ---- */

/* The cost of an append while a number of processes wait for news. */
static void measure_appends(annal_writer *writer, annal_level level, bool pauses, double seconds)
{
    double until = now_us() + seconds * 1e6;
    while (now_us() < until) {
        double begun = now_us();
        append(writer, level);
        add_sample(now_us() - begun);
        if (pauses)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

static void print_crowd(annal_writer *writer, int means, int waiters, double seconds)
{
    char name[64];
    for (int pauses = 0; pauses < 2; pauses++) {
        measure_appends(writer, ANNAL_LEVEL_SYNC, pauses != 0, seconds);
        snprintf(name, sizeof name, "append sync%s, %s, %d wait", pauses ? " with pauses" : "",
                 means_names[means], waiters);
        printf(",");
        print_samples(name);
    }
    measure_appends(writer, ANNAL_LEVEL_OS, false, seconds);
    snprintf(name, sizeof name, "append os, %s, %d wait", means_names[means], waiters);
    printf(",");
    print_samples(name);
}

/* A user may have 128 inotify instances. */
static void print_crowds(int means, double seconds)
{
    static const int crowds[] = {0, 1, 100, 1000};
    static pid_t pids[1000];
    int waiters = 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die("mmap", NULL);
    annal_store *store = open_store(true);
    annal_writer *writer = open_writer(store, "crowd");
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds - (means == INOTIFY); i++) {
        for (; waiters < crowds[i]; waiters++)
            pids[waiters] = start_follower("crowd", means, shared);
        usleep(50000);
        print_crowd(writer, means, waiters, seconds);
    }
    for (int i = 0; i < waiters; i++)
        stop(pids[i]);
    annal_writer_close(writer);
    if (annal_store_close(store, NULL) < 0)
        die("close", NULL);
    munmap(shared, sizeof *shared);
}

/* ---- All of it ---- */

static void print_arrival(int means, annal_level level, bool pauses, double seconds)
{
    char name[64];
    for (int i = 0; i < ROUNDS; i++)
        measure(means, level, pauses, seconds / ROUNDS);
    snprintf(name, sizeof name, "%s %s%s", means_names[means],
             level == ANNAL_LEVEL_SYNC ? "sync" : "os", pauses ? " with pauses" : "");
    printf(",");
    print_samples(name);
}

int main(int argc, char **argv)
{
    bool more = argc > 1 && strcmp(argv[1], "--compare") == 0;
    argc -= more;
    argv += more;
    directory = argc > 1 ? argv[1] : ".";
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    printf("{");
    bare(false, seconds);
    print_samples("bare sync");
    printf(",");
    bare(true, seconds);
    print_samples("bare sync with pauses");
    for (int means = BELL; means < (more ? MEANS : INOTIFY); means++) {
        for (int pauses = 0; pauses < 2; pauses++) {
            print_arrival(means, ANNAL_LEVEL_SYNC, pauses != 0, seconds);
            print_arrival(means, ANNAL_LEVEL_OS, pauses != 0, seconds);
        }
    }
    for (int means = BELL; more && means < MEANS; means++)
        print_crowds(means, seconds);
    printf("}\n");
    char remove[4200];
    snprintf(remove, sizeof remove, "rm -r '%s'", path_of("store"));
    return system(remove) == 0 ? 0 : 3;
}
