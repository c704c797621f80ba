/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a run share, in memory. */
#pragma once

#include "tests/bench/compare/run.h"

#include <stdatomic.h>

#define RUN_PROCESSES_MAX 64
#define RUN_WRITERS_MAX   256
#define FOLLOW_EVENTS_MAX 65536
#define RANGE_EVENTS      50

enum run_phase { RUN_SETTING_UP, RUN_MEASURING, RUN_CHECKING };

struct run_writer {
    struct times times;
    uint64_t begin_ns, end_ns, events, bytes;
};

struct run_process {
    uint64_t cpu_us, cpu_settled_us, settled_ns;
};

struct shared {
    struct run_result result;
    _Atomic int telling; /* a process failed and writes the reason; only the first failure does */
    _Atomic int failed;  /* what it says stands in result.error */
    _Atomic enum run_phase phase;
    _Atomic unsigned ready, go;
    struct run_writer writers[RUN_WRITERS_MAX];
    struct run_process processes[RUN_PROCESSES_MAX];
    _Atomic uint64_t sent_ns[FOLLOW_EVENTS_MAX + 1]; /* by seq */
    _Atomic uint64_t sent;
    uint64_t counts[]; /* events of each session */
};

struct job {
    const struct contender *contender;
    const struct workload *workload;
    struct place place;
    struct shared *shared;
};

/* Say that this process is ready, and wait until all are. */
void job_wait(struct job *job);

/* The parts of a run; each is the main function of a process. */
void job_append(struct job *job, unsigned process);
void job_read(struct job *job);
void job_follow(struct job *job);
void job_lead(struct job *job); /* whom job_follow() follows */
void job_check(struct job *job);
