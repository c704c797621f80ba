/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a session, kept for comparison with a later read. */
#pragma once

#include <annal/journal.h>

struct known {
    annal_event *events; /* event n is events[n - 1]; its slices are ours */
    char **bytes;
    size_t count;
};

/* Read all of a session, which must be whole; a failure fails the test. */
void known_read(struct known *known, annal_store *store, const char *session);
void known_done(struct known *known);

/* Whether the event equals the known event of its seq: times, names, data. The offset is not
 * compared. */
bool known_same(const struct known *known, const annal_event *event);

/*
 * Read a session that may be damaged. A wrong event fails the test, and so does an event out of
 * order; what names the case. came[n] tells whether event n + 1 was read; the return value is the
 * number of events read.
 */
struct known_walk {
    bool *came;
    size_t count;
    uint64_t last;     /* seq of the last one */
    size_t damages;    /* how often ANNAL_DAMAGE */
    uint64_t stood_at; /* where the cursor stood at the end */
};
void known_walk(const struct known *known, annal_store *store, const char *session,
                uint64_t from_seq, const char *what, struct known_walk *walk);
