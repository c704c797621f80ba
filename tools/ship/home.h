/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes: of all stores that a session moves between, only its home may append to it.
 *
 * (1) The target decides which store is the home: it grants a lease with an epoch, which increases
 *     with each new holder. The store saves the granted lease (annal/lease.h). It counts the
 *     duration from before its request, so that the lease ends locally before it ends at the
 *     target. Without the lease, appends are refused.
 * (2) A batch is shipped only while the target names this store, with this epoch, as the home. If a
 *     store was stopped for longer than its lease, the target rejects whatever it does afterwards.
 * (3) Events appended after the lease expired are kept: when the target has other events with the
 *     same seqs, they are copied to a new session (home_late.c) and reported. If a session never
 *     had a home in this store and shares no event with the target's session, none of its events is
 *     late.
 */
#ifndef TOOLS_SHIP_HOME_H
#define TOOLS_SHIP_HOME_H

#include "tools/ship/ship.h"

#include <annal/lease.h>

struct home {
    bool granted; /* whether take() or release() succeeded */
    /* set by each(): whether the session is at home in this store */
    bool is_ours;
    /* name of the store that is the home of the session, or "" if no store is */
    char store[SHIP_STORE_BYTES_MAX];
    uint64_t epoch;
    double seconds_left; /* time until the lease ends, in s; negative after its end */
};

/* A lease that this store has saved. */
struct home_lease {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_lease lease;
    bool kept; /* set by renew(): whether the target extended the lease */
};

typedef annal_status (*home_fn)(void *arg, annal_slice session, const struct home *home,
                                annal_error *err);

struct home_kind {
    annal_status (*take)(struct ship_target *target, const char *session, uint64_t epoch,
                         uint32_t seconds, struct home *out_home, annal_error *err);
    /* Extend all leases that are still valid at the target. */
    annal_status (*renew)(struct ship_target *target, struct home_lease *leases, size_t count,
                          annal_error *err);
    annal_status (*release)(struct ship_target *target, const char *session, uint64_t epoch,
                            struct home *out_home, annal_error *err);
    /* Call fn with the home of each session in only; with only == NULL, of all sessions at the
     * target. */
    annal_status (*each)(struct ship_target *target, struct shipments *only, home_fn fn, void *arg,
                         annal_error *err);
    /* Read the head of the session, regardless of which store shipped it; out_head->at is 0 if the
     * target has no events of it. */
    annal_status (*head)(struct ship_target *target, const char *session, struct place *out_head,
                         annal_error *err);
    /* Compare these events with the target's history, by seq and h. *out_seq: the seq of the last
     * one that the target has, or 0. */
    annal_status (*shared)(struct ship_target *target, const char *session,
                           const struct place *events, size_t count, uint64_t *out_seq,
                           annal_error *err);
    /* Return the name of the target; leases that it granted are saved with this name. */
    const char *(*name)(const struct ship_target *target);
};

/* Find the session's current home: set out->store and out->is_ours. */
annal_status home_find(const struct home_kind *kind, struct ship_target *target,
                       const char *session, struct home *out, annal_error *err);

/* Renew all leases that this target granted to the store, and print those that are lost.
 * *out_third_us: a third of the shortest lease in us, also after a failure; INT64_MAX without
 * leases. */
annal_status home_renew(annal_store *store, const struct home_kind *kind,
                        struct ship_target *target, int64_t *out_third_us, annal_error *err);

/* Return the time until the next renewal, in us; third_us is from home_renew(). */
int64_t home_pace(int64_t third_us);

struct home_late {
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t after_seq;
    uint64_t events; /* number of late events; 0 if none needed a copy */
    uint64_t copied; /* number of events copied by this call, including annal.late */
    bool is_other;   /* the target has a different session of that name; nothing is copied */
};

/* Save the events that were appended after the lease with this epoch expired (rule 3 above). epoch
 * is 0 if the store never had a lease. */
annal_status home_late_keep(annal_store *store, const struct home_kind *kind,
                            struct ship_target *target, const char *session, uint64_t epoch,
                            struct home_late *out, annal_error *err);

/* End the local lease and save late events, because the target says that the session is not at home
 * in this store with this epoch (0: the store has no lease). */
annal_status home_lost(annal_store *store, const struct home_kind *kind, struct ship_target *target,
                       const char *session, uint64_t epoch, annal_error *err);

#endif
