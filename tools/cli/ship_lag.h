/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of the shippers of a store, for monitoring. Each target has a file locks/ship.<16
 * hex>, which its shipper keeps locked with flock(2), and writes once a second and before a batch.
 * An unlocked file belongs to a killed shipper and is ignored. If a file cannot be written, that is
 * ignored.
 */
#pragma once

#include <annal/store.h>

enum { SHIP_LAG_NAME_BYTES = 200 };

struct ship_lag {
    char target[SHIP_LAG_NAME_BYTES]; /* address of the target, without a user or password */
    uint64_t events;                  /* number of events shipped since the shipper began */
    /* number of events not shipped yet, as far as the shipper knows */
    uint64_t events_behind;
    double seconds_behind; /* age of the oldest event not shipped yet */
    /* lag of the rows of sessions and turns (annal.rows_behind()); 0 if the target has no rows */
    double rows_seconds_behind;
    uint64_t stopped; /* number of sessions that are not shipped, for a reason that was printed */
    bool away;        /* whether the target is unreachable */
    double silent_seconds; /* time since the file was written */
};

/* Create and lock the file for a target; name is the name of the store there. Returns its
 * descriptor; -1 if another shipper of this store ships to this target, or if the file cannot be
 * created. */
int ship_lag_open(const annal_store *store, const char *url, const char *name,
                  struct ship_lag *out);
void ship_lag_write(int fd, const struct ship_lag *lag);
void ship_lag_close(const annal_store *store, const char *url, const char *name, int fd);

/* Call fn with the progress of each running shipper, until fn fails; return its last status. */
annal_status ship_lag_each(const annal_store *store,
                           annal_status (*fn)(void *arg, const struct ship_lag *lag), void *arg);
