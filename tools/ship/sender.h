/* SPDX-License-Identifier: Apache-2.0 */
/* Sends shipments to one target in batches. If many sessions are queued, a second sender ships half
 * of them in parallel, in a thread and with a connection of its own: the server works on two
 * batches at a time, and one batch is read from the journals while the other is committed. */
#pragma once

#include "tools/ship/references.h"
#include "tools/ship/row_maker.h"

#include <stdatomic.h>

enum { BATCH_SESSIONS = 512, BATCH_BYTES = 32 << 20, SECOND_SESSIONS = 2 * BATCH_SESSIONS };

struct sender {
    const struct ship_options *options;
    struct shipments shipments;
    struct ship_target *target; /* NULL while disconnected */
    struct row_maker *maker;    /* with follow: the thread that builds rows, else NULL */
    /* progress line to hide before a message is printed; NULL in the second sender, which prints
     * nothing and leaves sessions with messages to the first sender */
    struct progress *progress;
    struct shipments left;

    struct shipment *batch[BATCH_SESSIONS];
    annal_session_info infos[BATCH_SESSIONS];
    size_t count;
    uint64_t batch_events;
    uint64_t batch_bytes;
    struct references references;

    _Atomic uint64_t events, bytes, batches; /* totals of what was shipped */
    /* number of events not shipped yet; set by the second sender for the first */
    _Atomic uint64_t behind;
    _Atomic int64_t since_us;
};

/* Send one batch with events of the sessions that have been queued longest. ANNAL_ERR_BUSY: the
 * target is unreachable, and all sessions of the batch are queued again. */
annal_status sender_batch(struct sender *sender, annal_error *err);
void sender_done(struct sender *sender);

/* Start the second sender. Until sender_join_second() the caller must not touch the tree of
 * shipments or the shipments that the second sender took. Returns NULL if too few sessions are
 * queued, or if this kind of target accepts only one batch at a time. */
struct second;
struct second *sender_start_second(struct sender *sender);
/* Return the sender inside the second sender, whose counters the caller may read. */
const struct sender *sender_of_second(const struct second *second);
/* Return whether the second sender has sent everything, or failed. */
bool sender_second_is_done(const struct second *second);
/* Tell the second sender to end after its current batch. */
void sender_stop_second(struct second *second);

/* Wait for the second sender to end, and queue its unsent sessions in the first sender. */
void sender_join_second(struct second *second, struct sender *sender);
