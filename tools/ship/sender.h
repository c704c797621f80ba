/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sends lanes, batch by batch, to one target. Where many wait, a second one sends half of them
 * meanwhile, in a thread and with a connection of its own: the server works on two batches at a
 * time, and one is read from the journals while the other is committed.
 */
#ifndef TOOLS_SHIP_SENDER_H
#define TOOLS_SHIP_SENDER_H

#include "tools/ship/references.h"
#include "tools/ship/rows.h"

#include <stdatomic.h>

enum { BATCH_LANES = 512, BATCH_BYTES = 32 << 20, SECOND_LANES = 2 * BATCH_LANES };

struct sender {
    const struct ship_options *options;
    struct lanes lanes;
    struct ship_target *target; /* NULL: it is away */
    struct row_maker *maker;    /* with follow */
    struct progress *progress;  /* hidden before something is said; NULL: for the second one, which
                                 * says nothing, and leaves such lanes to the first: */
    struct lanes left;

    struct lane *batch[BATCH_LANES];
    annal_session_info infos[BATCH_LANES];
    size_t count;
    uint64_t batch_events;
    uint64_t batch_bytes;
    struct references references;

    _Atomic uint64_t events, bytes, batches; /* shipped */
    _Atomic uint64_t behind;                 /* the lag of the second one's lanes */
    _Atomic int64_t since_us;
};

/* Those that have waited longest. ANNAL_ERR_BUSY: the target is away; all of them wait again. */
annal_status sender_batch(struct sender *sender, annal_error *err);
void sender_done(struct sender *sender);

/* Until it is joined, the tree of lanes and those that it took are not touched. NULL: not enough
 * lanes wait, or this kind of target has no use for it. */
struct second;
struct second *second_start(struct sender *sender);
const struct sender *second_sender(const struct second *second); /* its counters */
bool second_is_done(const struct second *second);                /* all are sent, or it failed */
void second_stop(struct second *second);                         /* after its next batch */

/* Waits until it is done. What it left waits in the queue of the first. */
void second_join(struct second *second, struct sender *sender);

#endif
