/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What annal._queue() (tables.sql) gets of the events of a batch, so that only those are read that
 * change a row: as arrays in PostgreSQL's syntax, which are collected while the events are sent.
 */
#ifndef TOOLS_SHIP_DIGEST_H
#define TOOLS_SHIP_DIGEST_H

#include "journal/base/buf.h"

#include <annal/event.h>

enum { DIGEST_ARRAYS = 8 };

struct digest {
    /* Of each session: key, seq of the last event, ts of the first one, the latest ts, the latest
     * but for session.updated. Of each run of events to be read: key, first seq, last seq. */
    struct buf arrays[DIGEST_ARRAYS];
    int64_t key; /* of the session whose events come now; 0: of none */
    uint64_t last_seq;
    uint64_t run_first, run_last; /* of the run that is not in the arrays yet; 0: there is none */
    int64_t first_us, updated_us, active_us;
    bool is_active;
};

void digest_add(struct digest *digest, int64_t key, const annal_event *event);

/* The arrays are complete. False: there was no memory. */
bool digest_end(struct digest *digest);

void digest_clear(struct digest *digest);
void digest_done(struct digest *digest);

#endif
