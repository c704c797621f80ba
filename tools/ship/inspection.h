/* SPDX-License-Identifier: Apache-2.0 */
/* The results of annal ship status and annal ship check about a target. */
#ifndef TOOLS_SHIP_INSPECTION_H
#define TOOLS_SHIP_INSPECTION_H

#include "tools/ship/home.h"
#include "tools/ship/references.h"
#include "tools/ship/shipping.h"

struct inspection {
    struct shipping *shipping;
    struct shipments shipments;
    struct ship_target *target;
    struct ship_target *shared; /* the same target opened as SHARED_STORE, when first needed */
    struct table *table;
    annal_error err;
    bool bad;         /* a session differs from the local journal */
    uint64_t events;  /* number of proven events */
    uint64_t shipped; /* number of events according to the heads */
    uint64_t behind;
    bool want_artifacts;
    struct references references; /* artifacts that the proven events refer to */
    uint64_t artifacts;           /* number of proven artifacts */
    uint64_t absent;              /* artifacts missing on both sides, or too large to be shipped */
};

/* ---- cmd_ship.c ---- */

/* Return how many events of the session are missing at the target, according to its head. */
uint64_t ship_inspection_behind(const struct shipment *shipment);

/* Check that the journal contains the head and can continue after it; on failure err has the
 * reason. */
void ship_inspection_try(struct inspection *inspection, struct shipment *shipment,
                         annal_error *err);

/* Call fn for each session with a home, if the target supports homes. */
annal_status ship_inspection_ask_homes(struct inspection *inspection, home_fn fn);

/* A home_fn: mark a shared session, whose head has another store name. */
annal_status ship_inspection_note_shared(void *arg, annal_slice session, const struct home *home,
                                         annal_error *err);

/* Print how far the rows of sessions and turns lag behind the events. */
annal_status ship_inspection_say_rows(struct inspection *inspection);

/* ---- check.c ---- */

/* Compare the target with the journals. Returns an exit status. */
int check_target(struct inspection *inspection);

#endif
