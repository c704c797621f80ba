/* SPDX-License-Identifier: Apache-2.0 */
/* The results of annal ship status and annal ship check about a target. */
#pragma once

#include "tools/ship/home.h"
#include "tools/ship/references.h"
#include "tools/ship/shipping.h"

struct inspection {
    struct shipping *shipping;
    struct shipments shipments;
    struct ship_target *target;
    /* connection to the same target as the store SHARED_STORE; opened when first needed, else
     * NULL */
    struct ship_target *shared;
    struct table *table;
    annal_error err;
    bool bad;        /* whether a session at the target differs from its local journal */
    uint64_t events; /* number of events that were compared and are equal */
    /* number of events that the target should contain, according to the last seqs that it records
     * (its heads) */
    uint64_t shipped;
    uint64_t behind;
    bool want_artifacts;
    struct references references; /* artifacts that the compared events refer to */
    uint64_t artifacts;           /* number of artifacts that were compared and are equal */
    /* number of artifacts that neither side has, or that are too large to be shipped */
    uint64_t absent;
};

/* ---- cmd_ship.c ---- */

/* Return how many local events of the session follow its last event at the target. */
uint64_t ship_inspection_behind(const struct shipment *shipment);

/* Check that the journal contains the last event at the target and can continue after it; on
 * failure err has the reason. */
void ship_inspection_try(struct inspection *inspection, struct shipment *shipment,
                         annal_error *err);

/* Call fn for each session with a home: the only store that may append to it. Do nothing if the
 * target does not record homes. */
annal_status ship_inspection_ask_homes(struct inspection *inspection, home_fn fn);

/* Mark a session as shared, and read its last event at the target, which is recorded under another
 * store name; a home_fn. */
annal_status ship_inspection_note_shared(void *arg, annal_slice session, const struct home *home,
                                         annal_error *err);

/* Print how far the rows of sessions and turns lag behind the events. */
annal_status ship_inspection_say_rows(struct inspection *inspection);

/* ---- check.c ---- */

/* Compare the target with the journals. Returns an exit status. */
int check_target(struct inspection *inspection);
