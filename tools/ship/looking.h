/* SPDX-License-Identifier: Apache-2.0 */
/* What annal ship status and check find out about a target. */
#ifndef TOOLS_SHIP_LOOKING_H
#define TOOLS_SHIP_LOOKING_H

#include "tools/ship/home.h"
#include "tools/ship/references.h"
#include "tools/ship/shipping.h"

struct looking {
    struct shipping *shipping;
    struct lanes lanes;
    struct ship_target *target;
    struct ship_target *shared; /* the same, as SHARED_STORE: opened when it is needed */
    struct table *table;
    annal_error err;
    bool bad;         /* a session is not as it is here */
    uint64_t events;  /* proved */
    uint64_t shipped; /* as the heads say */
    uint64_t behind;
    bool want_artifacts;
    struct references references; /* of the events that were proved */
    uint64_t artifacts;           /* proved */
    uint64_t absent;              /* neither there nor here, or too large to be shipped */
};

/* ---- cmd_ship.c ---- */

/* So many events of the session are here and not there, as far as its head says. */
uint64_t looking_behind(const struct lane *lane);

/* Whether the journal goes on from the head; err says why not. */
void looking_try_lane(struct looking *looking, struct lane *lane, annal_error *err);

/* Call fn for each session with a home, if the target knows homes. */
annal_status looking_ask_homes(struct looking *looking, home_fn fn);

/* A home_fn: a session that stores share has its head under another name. */
annal_status looking_note_shared(void *arg, annal_slice session, const struct home *home,
                                 annal_error *err);

/* Say how far rows of sessions and turns are behind the events. */
annal_status looking_say_rows(struct looking *looking);

/* ---- check.c ---- */

/* Compare what is there with the journals; an exit status. */
int looking_check(struct looking *looking);

#endif
