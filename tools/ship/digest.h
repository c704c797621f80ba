/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the input of annal._queue() (tables.sql) while the events of a batch are sent: arrays in
 * PostgreSQL's syntax, which limit later reads to the events that change a row. */
#ifndef TOOLS_SHIP_DIGEST_H
#define TOOLS_SHIP_DIGEST_H

#include "journal/base/buf.h"

#include <annal/event.h>

enum { DIGEST_ARRAYS = 8 };

struct digest {
    /* For each session: key, seq of the last event, ts of the first, latest ts, latest ts of events
     * other than session.updated. For each run of events to read: key, first seq, last seq. */
    struct buf arrays[DIGEST_ARRAYS];
    int64_t key; /* key of the current session, or 0 */
    uint64_t last_seq;
    uint64_t run_first, run_last; /* current run, not in the arrays yet, or 0 */
    int64_t first_us, updated_us, active_us;
    bool is_active;
};

void digest_add(struct digest *digest, int64_t key, const annal_event *event);

/* Complete the arrays. Returns false without memory. */
bool digest_end(struct digest *digest);

void digest_clear(struct digest *digest);
void digest_done(struct digest *digest);

#endif
