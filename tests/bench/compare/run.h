/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: one contender, one workload, in processes of its own, so that nothing of the run before
 * is left in memory; and what was measured.
 */
#pragma once

#include "tests/bench/compare/contender.h"
#include "tests/bench/compare/measure.h"

#include <signal.h>

enum workload_kind {
    WORKLOAD_APPEND,
    WORKLOAD_REPLAY, /* every session from its first event */
    WORKLOAD_RANGE,  /* 50 events at a random place */
    WORKLOAD_WINDOW, /* events of one type in a hundredth of the time */
    WORKLOAD_COUNT,  /* how many of a type there are; each question counts as an event */
    WORKLOAD_FOLLOW  /* from the begin of an append to the eyes of another process */
};

struct workload {
    const char *name;
    const char *title;
    enum workload_kind kind;
    unsigned processes, threads; /* of each process */
    unsigned sessions;
    size_t batch;    /* events for each durable point */
    size_t stretch;  /* consecutive events of one session */
    uint64_t events; /* total; 0: as many as fit in `seconds`. For reads: existing events */
    double seconds;
    uint64_t preload;   /* events that the first session has before the clock runs */
    size_t fixed_bytes; /* of each payload; 0: the mix */
    bool settled;       /* also measure the end of the background work */
};

struct run_result {
    char error[300];        /* empty: it ran, and all events were read back unchanged */
    bool skipped;           /* error says why */
    bool checked;           /* to its end */
    uint64_t events, bytes; /* of payload */
    double seconds;
    double settled_seconds; /* from the same begin; 0: not asked for */
    struct times times;     /* duration of each call */
    uint64_t cpu_us;        /* of the writers, or the readers */
    uint64_t cpu_settled_us;
    uint64_t server_cpu_us;
    uint64_t device_bytes;
    bool device_known;
    uint64_t disk_bytes;
    uint64_t memory_bytes; /* at most, anonymous, of all processes together */
    uint64_t content;      /* hash of what was read back */
    uint64_t free_bytes;   /* of memory, before the run */
};

/* Run in dir, which is created and removed. */
void run(const struct contender *contender, const struct workload *workload,
         const struct payloads *payloads, const char *dir, struct run_result *out);

/* Set by a signal: the run that is under way ends, and none should follow. */
extern volatile sig_atomic_t run_interrupted;

/* Why this contender has no such workload; NULL: it has. */
const char *run_not(const struct contender *contender, const struct workload *workload);
