/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/run_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_SECONDS_MOST  3600
#define SAMPLE_NS         20000000
#define DIRECT_PAGE       4096
#define LIMIT_BYTES_PER_S 4e8 /* more than that is filled on the way, if the disk is that fast */

volatile sig_atomic_t run_interrupted;

static struct shared *failing; /* whose run this process belongs to */

/* The reason is written first: a process that sees `failed` may end the others at once. */
ANNAL_PRINTF(2, 0)
static void tell_why(struct shared *shared, const char *format, va_list arguments)
{
    int nobody = 0;
    if (!atomic_compare_exchange_strong(&shared->telling, &nobody, 1))
        return;
    vsnprintf(shared->result.error, sizeof shared->result.error, format, arguments);
    shared->failed = 1;
}

_Noreturn void bench_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (failing != NULL) {
        tell_why(failing, format, arguments);
    } else {
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    va_end(arguments);
    _exit(3);
}

static void fail_run(struct shared *shared, const char *format, ...) ANNAL_PRINTF(2, 3);

static void fail_run(struct shared *shared, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_why(shared, format, arguments);
    va_end(arguments);
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

void job_wait(struct job *job)
{
    if (job == NULL) {
        pause_ns(100000);
        return;
    }
    job->shared->ready++;
    while (job->shared->go == 0)
        pause_ns(100000);
}

/* ---- The supervisor ---- */

typedef void (*part_fn)(struct job *job, unsigned number);

static void part_append(struct job *job, unsigned number)
{
    job_append(job, number);
}

static void part_read(struct job *job, unsigned number)
{
    (void)number;
    job_read(job);
}

static void part_follow(struct job *job, unsigned number)
{
    if (number == 0)
        job_lead(job);
    else
        job_follow(job);
}

static void part_check(struct job *job, unsigned number)
{
    (void)number;
    job_check(job);
}

static void fork_parts(struct job *job, part_fn part, unsigned count, pid_t pids[])
{
    job->shared->ready = 0;
    job->shared->go = 0;
    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            bench_fail("fork: %m");
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            part(job, i);
            _exit(0);
        }
    }
}

/* False: a part failed. Those that still run have nothing to wait for then. */
static bool wait_one(struct job *job, pid_t pids[], unsigned count, bool block)
{
    for (unsigned i = 0; i < count; i++) {
        int status;
        if (pids[i] == 0 || waitpid(pids[i], &status, block ? 0 : WNOHANG) <= 0)
            continue;
        pids[i] = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        fail_run(job->shared, "a process ended with status %d", status);
    }
    return job->shared->failed == 0;
}

static void wait_parts(struct job *job, pid_t pids[], unsigned count)
{
    bool left = true;
    while (left) {
        if (!wait_one(job, pids, count, false)) {
            for (unsigned i = 0; i < count; i++)
                if (pids[i] != 0)
                    kill(pids[i], SIGKILL);
            wait_one(job, pids, count, true);
            return;
        }
        left = false;
        for (unsigned i = 0; i < count; i++)
            left |= pids[i] != 0;
        if (left)
            pause_ns(500000);
    }
}

static void sync_disk(const struct job *job)
{
    int fd = open(job->place.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        syncfs(fd);
        close(fd);
    }
}

/* Fork the parts, let them go at once when all are ready, and wait for their end. */
static bool run_parts(struct job *job, part_fn part, unsigned count, unsigned waiters, bool measure)
{
    pid_t pids[RUN_PROCESSES_MAX];
    struct run_result *result = &job->shared->result;
    uint64_t device = 0, server = 0;
    fork_parts(job, part, count, pids);
    while (job->shared->ready < waiters && wait_one(job, pids, count, false))
        pause_ns(500000);
    if (measure) {
        sync_disk(job);
        result->device_known = device_written_bytes(job->place.dir, &device);
        server = cpu_tree_us(job->place.server);
        job->shared->phase = RUN_MEASURING;
    }
    job->shared->go = 1;
    wait_parts(job, pids, count);
    if (!measure)
        return job->shared->failed == 0;
    job->shared->phase = RUN_CHECKING;
    result->server_cpu_us = cpu_tree_us(job->place.server) - server;
    sync_disk(job);
    uint64_t after;
    if (device_written_bytes(job->place.dir, &after))
        result->device_bytes = after - device;
    result->disk_bytes = disk_bytes(job->place.dir);
    return job->shared->failed == 0;
}

static void collect(struct job *job, unsigned processes, unsigned writers)
{
    struct run_result *result = &job->shared->result;
    uint64_t begin = UINT64_MAX, end = 0, settled = 0;
    for (unsigned i = 0; i < writers; i++) {
        const struct run_writer *writer = &job->shared->writers[i];
        result->events += writer->events;
        result->bytes += writer->bytes;
        times_merge(&result->times, &writer->times);
        begin = writer->begin_ns < begin ? writer->begin_ns : begin;
        end = writer->end_ns > end ? writer->end_ns : end;
    }
    for (unsigned i = 0; i < processes; i++) {
        const struct run_process *process = &job->shared->processes[i];
        result->cpu_us += process->cpu_us;
        result->cpu_settled_us += process->cpu_settled_us;
        settled = process->settled_ns > settled ? process->settled_ns : settled;
    }
    result->seconds = (double)(end - begin) / 1e9;
    if (job->workload->settled)
        result->settled_seconds = (double)(settled - begin) / 1e9;
}

/* What readers read: as quickly as it can be appended, and all that follows from it. */
static bool load(struct job *job)
{
    const struct workload *asked = job->workload;
    struct workload loading = *asked;
    loading.kind = WORKLOAD_APPEND;
    loading.processes = loading.threads = 1;
    loading.settled = true;
    job->workload = &loading;
    bool loaded = run_parts(job, part_append, 1, 1, false);
    memset(job->shared->writers, 0, sizeof job->shared->writers);
    memset(job->shared->processes, 0, sizeof job->shared->processes);
    job->workload = asked;
    return loaded;
}

static bool measure(struct job *job)
{
    const struct workload *workload = job->workload;
    unsigned writers = workload->processes * workload->threads;
    bool good;
    switch (workload->kind) {
    case WORKLOAD_APPEND:
        good = run_parts(job, part_append, workload->processes, writers, true);
        break;
    case WORKLOAD_FOLLOW:
        good = run_parts(job, part_follow, 2, 2, true);
        break;
    default:
        good = load(job) && run_parts(job, part_read, 1, 1, true);
        break;
    }
    if (good)
        collect(job, workload->kind == WORKLOAD_APPEND ? workload->processes : 1,
                workload->kind == WORKLOAD_APPEND ? writers : 1);
    job->shared->result.checked = good && run_parts(job, part_check, 1, 0, false);
    return job->shared->result.checked;
}

static void supervise(struct job *job)
{
    if (job->contender->start != NULL)
        job->contender->start(&job->place);
    bool good = measure(job);
    if (job->contender->stop != NULL)
        job->contender->stop(&job->place);
    _exit(good ? 0 : 3);
}

/* ---- The parent of all runs ---- */

static struct shared *share(unsigned sessions)
{
    size_t bytes = sizeof(struct shared) + sessions * sizeof(uint64_t);
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

static uint64_t expected_bytes(const struct workload *workload, const struct payloads *payloads)
{
    double one = payloads_mean_bytes(payloads) + 80;
    if (workload->batch == 1)
        one += DIRECT_PAGE; /* half a page of each write is lost, and then some */
    double events = workload->events != 0 ? (double)workload->events
                                          : workload->seconds * 10000 * (double)workload->batch;
    if (workload->events == 0 && workload->batch == 1 && workload->threads > 1)
        events *= 5;
    double bytes = one * events, most = workload->seconds * LIMIT_BYTES_PER_S;
    if (workload->events == 0 && bytes > most)
        bytes = most;
    bytes += (double)workload->preload * (payloads_mean_bytes(payloads) + 80);
    return (uint64_t)bytes / workload->processes;
}

static void watch(pid_t supervisor, struct shared *shared)
{
    uint64_t until = now_ns() + RUN_SECONDS_MOST * 1000000000ull;
    while (waitpid(supervisor, NULL, WNOHANG) == 0) {
        if (shared->phase == RUN_MEASURING) {
            uint64_t bytes = memory_tree_bytes(supervisor);
            if (bytes > shared->result.memory_bytes)
                shared->result.memory_bytes = bytes;
        }
        if (run_interrupted || now_ns() > until) {
            if (run_interrupted)
                snprintf(shared->result.error, sizeof shared->result.error, "interrupted");
            else
                snprintf(shared->result.error, sizeof shared->result.error, "took over %d s",
                         RUN_SECONDS_MOST);
            kill(supervisor, SIGKILL); /* its children end with it */
        }
        pause_ns(SAMPLE_NS);
    }
}

static bool asks_by_type(const struct workload *workload)
{
    return workload->kind == WORKLOAD_WINDOW || workload->kind == WORKLOAD_COUNT;
}

const char *run_not(const struct contender *contender, const struct workload *workload)
{
    if ((workload->processes > 1 || workload->kind == WORKLOAD_FOLLOW) &&
        contender->no_processes != NULL)
        return contender->no_processes;
    if (workload->kind == WORKLOAD_RANGE && contender->no_range != NULL)
        return contender->no_range;
    if (asks_by_type(workload) && contender->find_type == NULL)
        return "it has no index by type and time";
    if (workload->kind == WORKLOAD_FOLLOW && contender->tail_open == NULL)
        return "it does not wake another process";
    return NULL;
}

void run(const struct contender *contender, const struct workload *workload,
         const struct payloads *payloads, const char *dir, struct run_result *out)
{
    struct shared *shared = share(workload->sessions);
    *out = (struct run_result){0};
    if (shared == NULL || mkdir(dir, 0755) < 0) {
        snprintf(out->error, sizeof out->error, "%s: %s", dir, strerror(errno));
        return;
    }
    struct job job = {.contender = contender,
                      .workload = workload,
                      .shared = shared,
                      .place = {.dir = dir,
                                .payloads = payloads,
                                .sessions = workload->sessions,
                                .processes = workload->processes,
                                .threads = workload->threads,
                                .asked = asks_by_type(workload),
                                .followed = workload->kind == WORKLOAD_FOLLOW,
                                .bytes_expected = expected_bytes(workload, payloads)}};
    fflush(NULL);
    pid_t supervisor = fork();
    if (supervisor == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        failing = shared;
        supervise(&job);
    }
    if (supervisor > 0)
        watch(supervisor, shared);
    else
        snprintf(shared->result.error, sizeof shared->result.error, "fork: %s", strerror(errno));
    *out = shared->result;
    if (!out->checked && out->error[0] == '\0')
        snprintf(out->error, sizeof out->error, "its supervisor died");
    munmap(shared, sizeof *shared + workload->sessions * sizeof(uint64_t));
    remove_tree(dir);
}
