/* SPDX-License-Identifier: Apache-2.0 */
/* One process appends now and then; another follows. */
#include "tests/bench/compare/run_shared.h"

#include <time.h>

#define PAUSE_NS    1000000
#define PATIENCE_NS 10000000000u

void job_lead(struct job *job)
{
    void *handle = job->contender->open(&job->place, 0);
    void *writer = job->contender->writer_open(handle);
    struct shared *shared = job->shared;
    struct batch batch = {0};
    job_wait(job);
    uint64_t deadline_ns = now_ns() + (uint64_t)(job->workload->seconds * 1e9);
    uint64_t seq = 0;
    while (now_ns() < deadline_ns && seq < FOLLOW_EVENTS_MAX) {
        struct batch_key key = {0, ++seq};
        if (batch_make(&batch, job->place.payloads, &key, 1) == 0)
            bench_fail("no memory for events");
        shared->counts[0] = seq;
        shared->sent_ns[seq] = now_ns();
        job->contender->append(writer, batch.events, 1);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    shared->sent = seq;
    job->contender->writer_close(writer);
    job->contender->close(handle);
    batch_done(&batch);
}

static void take(void *arg, const struct bench_event *event)
{
    struct job *job = arg;
    struct run_writer *own = &job->shared->writers[0];
    uint64_t now = now_ns();
    if (event->seq != own->events + 1 || event->seq > FOLLOW_EVENTS_MAX)
        bench_fail("event %llu comes where %llu belongs", (unsigned long long)event->seq,
                   (unsigned long long)own->events + 1);
    times_add(&own->times, now - job->shared->sent_ns[event->seq]);
    own->end_ns = now;
    own->events++;
    own->bytes += event->data.len;
}

void job_follow(struct job *job)
{
    struct run_writer *own = &job->shared->writers[0];
    void *handle = job->contender->open(&job->place, 1);
    void *tail = job->contender->tail_open(handle, 0);
    job_wait(job);
    own->begin_ns = now_ns();
    uint64_t begin_cpu = cpu_self_us();
    own->end_ns = own->begin_ns;
    while (job->shared->sent == 0 || own->events < job->shared->sent) {
        if (job->contender->tail_next(tail, 200, take, job) || job->shared->sent == 0)
            continue;
        if (now_ns() - own->end_ns > PATIENCE_NS && own->events < job->shared->sent)
            bench_fail("%llu of %llu events came", (unsigned long long)own->events,
                       (unsigned long long)job->shared->sent);
    }
    job->shared->processes[0].cpu_us = cpu_self_us() - begin_cpu;
    job->contender->tail_close(tail);
    job->contender->close(handle);
}
