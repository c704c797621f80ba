/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contender: a program or library that stores events, with the smallest interface that all of
 * them have.
 *
 * A run has one supervisor, which starts the server, if any, and one or more processes, which open
 * the store and write it from one or more threads, each with sessions of its own. A failure ends
 * the process through bench_fail(); the run is then reported as failed.
 */
#pragma once

#include "tests/bench/compare/payloads.h"

#include <sys/types.h>

#define BENCH_WHY_BYTES     200
#define BENCH_VERSION_BYTES 32

struct place {
    const char *dir; /* empty at first; on the disk that is measured */
    const struct payloads *payloads;
    unsigned sessions, processes, threads;
    uint64_t bytes_expected; /* payload in each process, about; for allocated files */
    bool asked;              /* by type and time; an index for that is part of the store */
    bool followed;           /* a process follows; writers notify it, if that is necessary */
    pid_t server;            /* set by start() */
};

/* Slices live until it returns. */
typedef void (*bench_event_fn)(void *arg, const struct bench_event *event);

struct contender {
    const char *name;
    const char *promise; /* what holds when append() has returned */
    bool durable;        /* that is: it survives a power cut */
    bool limit;          /* no store, but what a store could reach at best */
    bool ours;
    const char *no_processes; /* why only one process may write; NULL: several may */

    /* NULL: always. False, with the reason: it cannot run here. */
    bool (*find)(char why[BENCH_WHY_BYTES]);

    /* The version of its library or server. NULL: it has none. */
    void (*version)(char out[BENCH_VERSION_BYTES]);

    /* In the supervisor; either may be NULL. */
    void (*start)(struct place *place);
    void (*stop)(struct place *place);

    /* In each process. */
    void *(*open)(const struct place *place, unsigned process);
    void (*close)(void *handle);

    /* In each thread. All count events hold as promised when append() returns. */
    void *(*writer_open)(void *handle);
    void (*writer_close)(void *writer);
    void (*append)(void *writer, const struct bench_event *events, size_t count);

    /* Wait for everything that is built from the events in the background; may be NULL. */
    void (*settle)(void *handle);

    /* Up to count events of a session from from_seq on, in order. NULL: only from the first on. */
    void (*read)(void *handle, unsigned session, uint64_t from_seq, uint64_t count,
                 bench_event_fn fn, void *arg);
    const char *no_range; /* why ranges are not measured; NULL: they are */

    /* All events of a type with from_us <= ts < to_us, of all sessions; and how many of a type
     * there are. Both NULL: it has no index for that. */
    void (*find_type)(void *handle, annal_slice type, int64_t from_us, int64_t to_us,
                      bench_event_fn fn, void *arg);
    uint64_t (*count_type)(void *handle, annal_slice type);

    /* Follow one session from now on. NULL: not supported. False: no event arrived in time. */
    void *(*tail_open)(void *handle, unsigned session);
    bool (*tail_next)(void *tail, unsigned timeout_ms, bench_event_fn fn, void *arg);
    void (*tail_close)(void *tail);
};

/* All that this program was built with, and after them those that it was not, with find() saying
 * so. Ends with NULL. */
extern const struct contender *const contenders[];

_Noreturn void bench_fail(const char *format, ...) ANNAL_PRINTF(1, 2);

/* Allocate memory, or bench_fail(). */
void *bench_alloc(size_t bytes);
