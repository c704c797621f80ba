/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of every contender: events of the sizes that real agents write.
 *
 * A deck of some ten thousand payloads is built once, from a seed, in memory that all processes of
 * a run share. Event seq of a session is a card of the deck, chosen by a hash of the two, with its
 * own serial number in it: no two events are the same, and each can be built again for comparison.
 * Sizes: median 1 KB, p90 5 KB, p99 42 KB, one in 16,384 above 1 MB; compressible like text.
 */
#pragma once

#include <annal/base.h>

struct bench_event {
    unsigned session;
    uint64_t seq; /* 1, 2, 3, … in its session */
    int64_t ts_us;
    annal_slice name; /* of the session */
    annal_slice type;
    annal_slice data; /* JSON */
};

struct payloads;

#define PAYLOADS_MIX      ((size_t)0) /* the sizes above: 3.1 KB on average */
#define PAYLOADS_HALF_MIX ((size_t)1) /* half of them */

/* bytes: one of the above, or the size that every payload has. NULL: no memory. */
struct payloads *payloads_new(uint64_t seed, size_t bytes, unsigned sessions);
void payloads_free(struct payloads *payloads);

/* "sess_00042"; lives as long as the payloads. */
annal_slice payloads_name(const struct payloads *payloads, unsigned session);

double payloads_mean_bytes(const struct payloads *payloads);

/* Events that live together, until the next batch_make(). Zero is an empty one. */
struct batch {
    struct bench_event *events;
    size_t count, room;
    char *bytes;
    size_t bytes_room;
};

struct batch_key {
    unsigned session;
    uint64_t seq;
};

/* The session of a name. */
unsigned payloads_session(annal_slice name);

/* An event without its data. */
void payloads_envelope(const struct payloads *payloads, const struct batch_key *key,
                       struct bench_event *out);

/* Returns the bytes of all payloads; 0: no memory. */
uint64_t batch_make(struct batch *batch, const struct payloads *payloads,
                    const struct batch_key *keys, size_t count);
void batch_done(struct batch *batch);

/* Whether an event that was read back equals the event that was written. */
bool payloads_same(const struct payloads *payloads, const struct bench_event *event);
