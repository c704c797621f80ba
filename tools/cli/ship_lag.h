/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the shippers of a store are, for those who watch it: a file locks/ship.<16 hex> for each
 * target, which its shipper keeps locked with flock(2) and writes once a second and before a batch.
 * One that nobody has locked was left by a shipper that was killed. Whatever fails, nothing is
 * shown.
 */
#ifndef TOOLS_CLI_SHIP_LAG_H
#define TOOLS_CLI_SHIP_LAG_H

#include <annal/store.h>

enum { SHIP_LAG_NAME_BYTES = 200 };

struct ship_lag {
    char target[SHIP_LAG_NAME_BYTES]; /* its address, without a user or password */
    uint64_t events;                  /* shipped since it began */
    uint64_t events_behind;           /* as far as it knows */
    double seconds_behind;            /* how long the first of them waits, until now */
    double rows_seconds_behind;       /* as annal.rows_behind(); 0: the target has no rows */
    uint64_t stopped;                 /* sessions of which nothing is shipped */
    bool away;                        /* the target does not answer */
    double silent_seconds;            /* since it was written, until now */
};

/* -1: another shipper of this store has this target, or the store cannot be written. */
int ship_lag_open(const annal_store *store, const char *url, const char *name,
                  struct ship_lag *out);
void ship_lag_write(int fd, const struct ship_lag *lag);
void ship_lag_close(const annal_store *store, const char *url, const char *name, int fd);

/* Call fn with that of each shipper that runs, until it fails. */
annal_status ship_lag_each(const annal_store *store,
                           annal_status (*fn)(void *arg, const struct ship_lag *lag), void *arg);

#endif
