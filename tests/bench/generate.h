/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated sessions, like those that agents write: the input of benchmarks, the same on every
 * machine.
 *
 * A session begins with session.created and continues in turns of about 20 events: turn.started,
 * what the user said, a few answers and thoughts, calls of tools and their results, the tokens that
 * were used, turn.completed. 35 of 100 events are calls and results. Their sizes follow those of
 * real logs, scaled to a mean of about 1,670 bytes a line: most lines are about 500 bytes, and a
 * few results of up to 100 KB hold most of the bytes. Ids of calls and messages are random, which
 * is the worst case for an index. Times have the gaps of people and of programs.
 *
 * The same seed and session give the same events.
 */
#pragma once

#include <annal/journal.h>

struct generator;

/* NULL: no memory. */
struct generator *generator_new(uint64_t seed, unsigned session);
void generator_free(struct generator *generator);

/*
 * The events of the next turn, the first one with session.created before it. They live until the
 * next call. 0: no memory.
 */
size_t generator_turn(struct generator *generator, const annal_draft **out_drafts);

#define GENERATE_NAME_BYTES 32

/* "sess_000", "sess_001", … Returns out. */
const char *generate_name(unsigned session, char out[GENERATE_NAME_BYTES]);

struct generate_options {
    unsigned sessions; /* default: 100 */
    uint64_t events;   /* of all sessions; default: 1,000,000 */
    uint64_t largest;  /* of sess_000; default: a fifth of all */
    uint64_t seed;
    uint64_t longest; /* bytes of a text, at most 10,000; default: as in real logs */
};

/* Append events to one session, at level os and with one sync at the end. */
annal_status generate_session(annal_store *store, unsigned session, uint64_t events, uint64_t seed,
                              annal_error *err);

/* All sessions of a store; the sizes of all but the largest differ by up to a factor of 30. */
annal_status generate_store(annal_store *store, const struct generate_options *options,
                            annal_error *err);
