/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes: a session that moves between stores is written by one of them at a time.
 *
 * (1) The target decides who has a session: a lease with an epoch, which rises with each holder.
 *     The store keeps what it was given as the lease of the session (annal/lease.h), counted from
 *     before it asked, so that here it ends first. Without it, appends are refused.
 * (2) A batch is shipped only while the target says that this store has the session with this
 *     epoch. So whatever a store does that was stopped for longer than its lease, the target does
 *     not get it.
 * (3) What it appended too late is kept: once the target has other events in their place, they are
 *     copied into a session of their own (home_late.c), and that is said. Nothing is too late of a
 *     session that never had a home here and has no event in common with that one.
 */
#ifndef TOOLS_SHIP_HOME_H
#define TOOLS_SHIP_HOME_H

#include "tools/ship/ship.h"

#include <annal/lease.h>

struct home {
    bool granted;                     /* take() or release() did it */
    bool is_ours;                     /* each(): the store that asks has the session */
    char store[SHIP_STORE_BYTES_MAX]; /* who has the session; "": nobody */
    uint64_t epoch;
    double seconds_left; /* below 0: its lease has ended */
};

/* A lease that is here. */
struct home_lease {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_lease lease;
    bool kept; /* after renew(): the target agrees */
};

typedef annal_status (*home_fn)(void *arg, annal_slice session, const struct home *home,
                                annal_error *err);

struct home_kind {
    annal_status (*take)(struct ship_target *target, const char *session, uint64_t epoch,
                         uint32_t seconds, struct home *out_home, annal_error *err);
    /* Make all of them longer that the target still has. */
    annal_status (*renew)(struct ship_target *target, struct home_lease *leases, size_t count,
                          annal_error *err);
    annal_status (*release)(struct ship_target *target, const char *session, uint64_t epoch,
                            struct home *out_home, annal_error *err);
    /* Only those of these sessions; NULL: all that the target knows. */
    annal_status (*each)(struct ship_target *target, struct lanes *only, home_fn fn, void *arg,
                         annal_error *err);
    /* Its head, of whatever store; at 0: it has none. */
    annal_status (*head)(struct ship_target *target, const char *session, struct place *out_head,
                         annal_error *err);
    /* *out_seq: the last of these events, by seq and h, that is in its history; 0: none is. */
    annal_status (*shared)(struct ship_target *target, const char *session,
                           const struct place *events, size_t count, uint64_t *out_seq,
                           annal_error *err);
    const char *(*name)(const struct ship_target *target); /* the giver of leases */
};

/* Who has a session, in out->store and is_ours. */
annal_status home_find(const struct home_kind *kind, struct ship_target *target,
                       const char *session, struct home *out, annal_error *err);

/* Renew all leases of the store at this target; prints those that are lost. *out_third_us: a
 * third of the shortest of them, also after a failure; INT64_MAX if there are none. */
annal_status home_renew(annal_store *store, const struct home_kind *kind,
                        struct ship_target *target, int64_t *out_third_us, annal_error *err);

/* After how long to renew them again. */
int64_t home_pace(int64_t third_us);

struct home_late {
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t after_seq;
    uint64_t events; /* that are late; 0: there is no copy */
    uint64_t copied; /* by this call, annal.late included */
    bool is_other;   /* another session of that name is at the target; there is no copy */
};

/* Rule 3, of a lease with this epoch; 0: this store never had one. */
annal_status home_keep_late(annal_store *store, const struct home_kind *kind,
                            struct ship_target *target, const char *session, uint64_t epoch,
                            struct home_late *out, annal_error *err);

/* The target says that the home is not here with this epoch (0: there is no lease): end the lease,
 * and keep what is late. */
annal_status home_lost(annal_store *store, const struct home_kind *kind, struct ship_target *target,
                       const char *session, uint64_t epoch, annal_error *err);

#endif
