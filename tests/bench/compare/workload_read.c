/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what was appended: to check it, to replay it, and at random places. */
#include "tests/bench/compare/run_shared.h"

#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "tests/support/random.h"

struct reading {
    const struct payloads *payloads;
    bool compare; /* with what was written */
    uint64_t seq; /* of the event before */
    uint64_t events, bytes, hash;
};

/* Every byte is looked at, also of those that only hand out a place in a map of the file. */
static void take_any(void *arg, const struct bench_event *event)
{
    struct reading *reading = arg;
    if (reading->compare && !payloads_same(reading->payloads, event))
        bench_fail("%.*s: event %llu is not what was written", ANNAL_FMT(event->name),
                   (unsigned long long)event->seq);
    reading->events++;
    reading->bytes += event->data.len;
    reading->hash = annal__hash(event->data.ptr, event->data.len, reading->hash);
}

static void take(void *arg, const struct bench_event *event)
{
    struct reading *reading = arg;
    if (event->seq != ++reading->seq)
        bench_fail("%.*s: event %llu comes where %llu belongs", ANNAL_FMT(event->name),
                   (unsigned long long)event->seq, (unsigned long long)reading->seq);
    take_any(reading, event);
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

/* ---- By type and time ---- */

#define WINDOWS 100 /* number of windows in the time that all events span */

static struct batch_key any_event(const struct job *job, struct random *random)
{
    unsigned session = (unsigned)random_below(random, job->workload->sessions);
    return (struct batch_key){session, 1 + random_below(random, job->shared->counts[session])};
}

/* A type, and a window in which one of its events lies. */
static struct bench_event choose_window(const struct job *job, struct random *random,
                                        int64_t *out_until_us)
{
    struct bench_event event, first, last;
    struct batch_key key = any_event(job, random);
    const struct payloads *payloads = job->place.payloads;
    payloads_envelope(payloads, &key, &event);
    payloads_envelope(payloads, &(struct batch_key){0, 1}, &first);
    payloads_envelope(payloads, &(struct batch_key){0, job->shared->counts[0]}, &last);
    *out_until_us = event.ts_us + (last.ts_us - first.ts_us) / WINDOWS;
    return event;
}

/* How many there are; until_us INT64_MAX: of all the time. */
static uint64_t expect(const struct job *job, const struct bench_event *from, int64_t until_us)
{
    uint64_t found = 0;
    for (unsigned session = 0; session < job->workload->sessions; session++) {
        for (uint64_t seq = 1; seq <= job->shared->counts[session]; seq++) {
            struct bench_event event;
            payloads_envelope(job->place.payloads, &(struct batch_key){session, seq}, &event);
            bool inside =
                until_us == INT64_MAX || (event.ts_us >= from->ts_us && event.ts_us < until_us);
            found += inside && annal__slice_same(event.type, from->type);
        }
    }
    return found;
}

/* That the first answers are right, before the clock runs. */
static void check_answers(struct job *job, void *handle)
{
    struct random random = {7};
    for (int i = 0; i < 3; i++) {
        int64_t until_us;
        struct bench_event from = choose_window(job, &random, &until_us);
        struct reading reading = {.payloads = job->place.payloads, .compare = true};
        job->contender->find_type(handle, from.type, from.ts_us, until_us, take_any, &reading);
        uint64_t count = job->contender->count_type(handle, from.type);
        uint64_t expected = expect(job, &from, until_us), all = expect(job, &from, INT64_MAX);
        if (reading.events != expected || count != all)
            bench_fail("%llu events in a window of %llu, %llu of a type of %llu",
                       (unsigned long long)reading.events, (unsigned long long)expected,
                       (unsigned long long)count, (unsigned long long)all);
    }
}

static void ask_by_type(struct job *job, void *handle, uint64_t deadline_ns)
{
    struct random random = {42};
    struct run_writer *own = &job->shared->writers[0];
    bool counts = job->workload->kind == WORKLOAD_COUNT;
    for (uint64_t now = 0; now < deadline_ns;) {
        int64_t until_us;
        struct bench_event from = choose_window(job, &random, &until_us);
        struct reading reading = {.events = 0};
        uint64_t before = now_ns();
        if (counts)
            reading.events = job->contender->count_type(handle, from.type) > 0;
        else
            job->contender->find_type(handle, from.type, from.ts_us, until_us, take_any, &reading);
        now = now_ns();
        times_add(&own->times, now - before);
        own->events += reading.events;
        own->bytes += reading.bytes;
        if (reading.events == 0)
            bench_fail("no event came");
    }
}

void job_read(struct job *job)
{
    struct run_writer *own = &job->shared->writers[0];
    void *handle = job->contender->open(&job->place, 0);
    bool by_type = job->place.asked;
    /* What is opened and found out once, before the clock runs. */
    job->contender->read(handle, 0, 1, UINT64_MAX, take, &(struct reading){0});
    if (by_type)
        check_answers(job, handle);
    job_wait(job);
    uint64_t begin_cpu = cpu_self_us();
    own->begin_ns = now_ns();
    uint64_t deadline_ns = own->begin_ns + (uint64_t)(job->workload->seconds * 1e9);
    if (job->workload->kind == WORKLOAD_RANGE)
        read_at_random(job, handle, deadline_ns);
    else if (by_type)
        ask_by_type(job, handle, deadline_ns);
    else
        for (unsigned i = 0; i < job->workload->sessions; i++)
            read_once(job, handle, i, 1, job->shared->counts[i]);
    own->end_ns = now_ns();
    job->shared->processes[0].cpu_us = cpu_self_us() - begin_cpu;
    job->contender->close(handle);
}
