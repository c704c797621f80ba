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
#pragma once

#include "tools/ship/ship.h"

#include <annal/lease.h>

struct home {
    bool granted; /* whether take() or release() succeeded */
    /* set by each() and home_find(): whether this store is the session's home */
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
    /* Extend those of the leases that are still valid at the target, and set kept of each. */
    annal_status (*renew)(struct ship_target *target, struct home_lease *leases, size_t count,
                          annal_error *err);
    annal_status (*release)(struct ship_target *target, const char *session, uint64_t epoch,
                            struct home *out_home, annal_error *err);
    /* Call fn with the home of each session in only; with only == NULL, of all sessions at the
     * target. */
    annal_status (*each)(struct ship_target *target, struct shipments *only, home_fn fn, void *arg,
                         annal_error *err);
    /* Read the position after the session's last event at the target, whichever store shipped it;
     * out_head->at is 0 if the target has no events of the session. */
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

/* Ask the target for the session's current home, and set out->store and out->is_ours. */
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
    /* number of events that were appended after the lease expired and must be copied */
    uint64_t events;
    /* number of events that this call copied, including the event annal.late, which describes the
     * copy */
    uint64_t copied;
    /* whether the target has a different session with the name `name`; nothing is copied then */
    bool is_other;
};

/* Save the events that were appended after the lease with this epoch expired (rule 3 above). epoch
 * is 0 if the store never had a lease. */
annal_status home_late_keep(annal_store *store, const struct home_kind *kind,
                            struct ship_target *target, const char *session, uint64_t epoch,
                            struct home_late *out, annal_error *err);

/*
 * End the local lease, and save the events that were appended after it expired, because the target
 * says that this store with this epoch is not the session's home (epoch 0: the store has no lease).
 */
annal_status home_lost(annal_store *store, const struct home_kind *kind, struct ship_target *target,
                       const char *session, uint64_t epoch, annal_error *err);
