/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the input of annal._queue() (tables.sql) while the events of a batch are sent. The input
 * consists of arrays in PostgreSQL's syntax. It names the few events that change rows of sessions
 * and turns, so that the database need not read all events again. */
#pragma once

#include "journal/base/buf.h"

#include <annal/event.h>

enum { DIGEST_ARRAYS = 8 };

struct digest {
    /* For each session: key, seq of the last event, ts of the first, latest ts, latest ts of events
     * other than session.updated. For each run of events to read: key, first seq, last seq. */
    struct buf arrays[DIGEST_ARRAYS];
    int64_t key; /* key of the current session, or 0 */
    uint64_t last_seq;
    /* first and last seq of the current run, which is not in the arrays yet; 0 without a run */
    uint64_t run_first, run_last;
    int64_t first_us, updated_us, active_us;
    bool is_active;
};

void digest_add(struct digest *digest, int64_t key, const annal_event *event);

/* Complete the arrays. Returns false if memory ran out. */
bool digest_end(struct digest *digest);

void digest_clear(struct digest *digest);
void digest_done(struct digest *digest);
