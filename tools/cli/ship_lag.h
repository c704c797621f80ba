/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of the shippers of a store, for monitoring: a file locks/ship.<16 hex> for each
 * target, which its shipper keeps locked with flock(2) and writes once a second and before a batch.
 * An unlocked file belongs to a killed shipper and is ignored. Errors are ignored.
 */
#ifndef TOOLS_CLI_SHIP_LAG_H
#define TOOLS_CLI_SHIP_LAG_H

#include <annal/store.h>

enum { SHIP_LAG_NAME_BYTES = 200 };

struct ship_lag {
    char target[SHIP_LAG_NAME_BYTES]; /* address, without a user or password */
    uint64_t events;                  /* shipped since the shipper began */
    uint64_t events_behind;           /* events not shipped yet, as far as the shipper knows */
    double seconds_behind;            /* age of the first of them */
    double rows_seconds_behind;       /* as annal.rows_behind(); 0: the target has no rows */
    uint64_t stopped;                 /* sessions that are not shipped */
    bool away;                        /* the target is unreachable */
    double silent_seconds;            /* time since the file was written */
};

/* Lock the file. -1: another shipper of this store uses this target, or the store cannot be
 * written. */
int ship_lag_open(const annal_store *store, const char *url, const char *name,
                  struct ship_lag *out);
void ship_lag_write(int fd, const struct ship_lag *lag);
void ship_lag_close(const annal_store *store, const char *url, const char *name, int fd);

/* Call fn with the progress of each running shipper, until it fails. */
annal_status ship_lag_each(const annal_store *store,
                           annal_status (*fn)(void *arg, const struct ship_lag *lag), void *arg);

#endif
