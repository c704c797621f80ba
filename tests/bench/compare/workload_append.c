/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads that append, each to sessions of its own. */
#include "tests/bench/compare/run_shared.h"

#include <pthread.h>
#include <stdlib.h>

struct appender {
    struct job *job;
    void *handle;
    unsigned number; /* among all of all processes; owns each sessions/writers-th session */
    uint64_t deadline_ns;
    struct batch batch;
    struct batch_key *keys;
    unsigned session;  /* whose turn it is */
    size_t of_stretch; /* that were taken of it */
};

static unsigned writers_of(const struct workload *workload)
{
    return workload->processes * workload->threads;
}

static void take_keys(struct appender *appender, size_t count)
{
    const struct workload *workload = appender->job->workload;
    uint64_t *counts = appender->job->shared->counts;
    for (size_t i = 0; i < count; i++) {
        if (appender->of_stretch == workload->stretch) {
            appender->of_stretch = 0;
            appender->session += writers_of(workload);
            if (appender->session >= workload->sessions)
                appender->session = appender->number;
        }
        appender->keys[i] = (struct batch_key){appender->session, ++counts[appender->session]};
        appender->of_stretch++;
    }
}

/* False: this writer has appended all that it was to. */
static bool append_once(struct appender *appender, void *writer, uint64_t events_left)
{
    const struct workload *workload = appender->job->workload;
    struct run_writer *own = &appender->job->shared->writers[appender->number];
    size_t count = workload->batch;
    if (workload->events != 0 && events_left < count)
        count = (size_t)events_left;
    if (count == 0)
        return false;
    take_keys(appender, count);
    uint64_t bytes =
        batch_make(&appender->batch, appender->job->place.payloads, appender->keys, count);
    if (bytes == 0)
        bench_fail("no memory for events");
    uint64_t before = now_ns();
    appender->job->contender->append(writer, appender->batch.events, count);
    uint64_t after = now_ns();
    times_add(&own->times, after - before);
    own->events += count;
    own->bytes += bytes;
    return workload->events != 0 || after < appender->deadline_ns;
}

/* Append one event to each session before the clock runs, so that one-time work is done. */
static void warm_up(struct appender *appender, void *writer)
{
    const struct workload *workload = appender->job->workload;
    unsigned session = appender->number;
    while (session < workload->sessions) {
        size_t count = 0;
        for (; count < workload->batch && session < workload->sessions;
             session += writers_of(workload))
            appender->keys[count++] =
                (struct batch_key){session, ++appender->job->shared->counts[session]};
        if (batch_make(&appender->batch, appender->job->place.payloads, appender->keys, count) == 0)
            bench_fail("no memory for events");
        appender->job->contender->append(writer, appender->batch.events, count);
    }
}

#define PRELOAD_BATCH 1000

static void preload(struct appender *appender, void *writer)
{
    uint64_t *count = &appender->job->shared->counts[0];
    struct batch_key keys[PRELOAD_BATCH];
    while (appender->number == 0 && *count < appender->job->workload->preload) {
        for (size_t i = 0; i < PRELOAD_BATCH; i++)
            keys[i] = (struct batch_key){0, ++*count};
        if (batch_make(&appender->batch, appender->job->place.payloads, keys, PRELOAD_BATCH) == 0)
            bench_fail("no memory for events");
        appender->job->contender->append(writer, appender->batch.events, PRELOAD_BATCH);
    }
}

static void *append(void *arg)
{
    struct appender *appender = arg;
    const struct workload *workload = appender->job->workload;
    struct run_writer *own = &appender->job->shared->writers[appender->number];
    uint64_t events = workload->events / writers_of(workload);
    appender->keys = bench_alloc(workload->batch * sizeof *appender->keys);
    appender->session = appender->number;
    void *writer = appender->job->contender->writer_open(appender->handle);
    warm_up(appender, writer);
    preload(appender, writer);
    job_wait(appender->job);
    own->begin_ns = now_ns();
    appender->deadline_ns = own->begin_ns + (uint64_t)(workload->seconds * 1e9);
    while (append_once(appender, writer, events - own->events))
        ;
    own->end_ns = now_ns();
    appender->job->contender->writer_close(writer);
    batch_done(&appender->batch);
    free(appender->keys);
    return NULL;
}

void job_append(struct job *job, unsigned process)
{
    const struct workload *workload = job->workload;
    struct run_process *own = &job->shared->processes[process];
    struct appender *appenders = bench_alloc(workload->threads * sizeof *appenders);
    pthread_t *threads = bench_alloc(workload->threads * sizeof *threads);
    void *handle = job->contender->open(&job->place, process);
    for (unsigned i = 0; i < workload->threads; i++) {
        appenders[i] = (struct appender){
            .job = job, .handle = handle, .number = process * workload->threads + i};
        if (pthread_create(&threads[i], NULL, append, &appenders[i]) != 0)
            bench_fail("no thread");
    }
    while (job->shared->go == 0)
        job_wait(NULL);
    uint64_t begin = cpu_self_us();
    for (unsigned i = 0; i < workload->threads; i++)
        pthread_join(threads[i], NULL);
    own->cpu_us = cpu_self_us() - begin;
    if (job->contender->settle != NULL && workload->settled)
        job->contender->settle(handle);
    own->settled_ns = now_ns();
    own->cpu_settled_us = cpu_self_us() - begin;
    job->contender->close(handle);
    free(threads);
    free(appenders);
}
