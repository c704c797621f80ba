/* Reading what was appended: to check it, to replay it, and at random places. */
#include "tests/bench/compare/run_shared.h"

#include "journal/base/hash.h"
#include "tests/support/random.h"

struct reading {
    const struct payloads *payloads;
    bool compare; /* with what was written */
    uint64_t seq; /* of the event before */
    uint64_t events, bytes, hash;
};

/* Every byte is looked at, also of those that only hand out a place in a map of the file. */
static void take(void *arg, const struct bench_event *event)
{
    struct reading *reading = arg;
    if (event->seq != ++reading->seq)
        bench_fail("%.*s: event %llu comes where %llu belongs", ANNAL_FMT(event->name),
                   (unsigned long long)event->seq, (unsigned long long)reading->seq);
    if (reading->compare && !payloads_same(reading->payloads, event))
        bench_fail("%.*s: event %llu is not what was written", ANNAL_FMT(event->name),
                   (unsigned long long)event->seq);
    reading->events++;
    reading->bytes += event->data.len;
    reading->hash = annal__hash(event->data.ptr, event->data.len, reading->hash);
}

void job_check(struct job *job)
{
    void *handle = job->contender->open(&job->place, 0);
    for (unsigned session = 0; session < job->workload->sessions; session++) {
        struct reading reading = {.payloads = job->place.payloads, .compare = true};
        job->contender->read(handle, session, 1, UINT64_MAX, take, &reading);
        if (reading.events != job->shared->counts[session])
            bench_fail("%.*s: %llu events are there, %llu were appended",
                       ANNAL_FMT(payloads_name(job->place.payloads, session)),
                       (unsigned long long)reading.events,
                       (unsigned long long)job->shared->counts[session]);
        job->shared->result.content ^= reading.hash * (2 * (uint64_t)session + 1);
    }
    job->contender->close(handle);
}

/* Returns the time of the call. */
static uint64_t read_once(struct job *job, void *handle, unsigned session, uint64_t from_seq,
                          uint64_t count)
{
    struct run_writer *own = &job->shared->writers[0];
    struct reading reading = {.seq = from_seq - 1};
    uint64_t before = now_ns();
    job->contender->read(handle, session, from_seq, count, take, &reading);
    uint64_t after = now_ns();
    times_add(&own->times, after - before);
    own->events += reading.events;
    own->bytes += reading.bytes;
    if (reading.events != count)
        bench_fail("%llu events came, not %llu", (unsigned long long)reading.events,
                   (unsigned long long)count);
    return after;
}

static void read_at_random(struct job *job, void *handle, uint64_t deadline_ns)
{
    struct random random = {42};
    uint64_t now = 0;
    while (now < deadline_ns) {
        unsigned session = (unsigned)random_below(&random, job->workload->sessions);
        uint64_t last = job->shared->counts[session];
        if (last < RANGE_EVENTS)
            bench_fail("too few events for ranges of %d", RANGE_EVENTS);
        uint64_t from = 1 + random_below(&random, last - RANGE_EVENTS + 1);
        now = read_once(job, handle, session, from, RANGE_EVENTS);
    }
}

void job_read(struct job *job)
{
    struct run_writer *own = &job->shared->writers[0];
    void *handle = job->contender->open(&job->place, 0);
    /* What is opened and found out once, before the clock runs. */
    job->contender->read(handle, 0, 1, UINT64_MAX, take, &(struct reading){0});
    job_wait(job);
    uint64_t begin_cpu = cpu_self_us();
    own->begin_ns = now_ns();
    uint64_t deadline_ns = own->begin_ns + (uint64_t)(job->workload->seconds * 1e9);
    if (job->workload->kind == WORKLOAD_RANGE)
        read_at_random(job, handle, deadline_ns);
    else
        for (unsigned i = 0; i < job->workload->sessions; i++)
            read_once(job, handle, i, 1, job->shared->counts[i]);
    own->end_ns = now_ns();
    job->shared->processes[0].cpu_us = cpu_self_us() - begin_cpu;
    job->contender->close(handle);
}
