/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: whether this store may append to a session.
 *
 * Where a session moves between hosts, one of them is its home at a time. Which one is decided
 * outside of Annal, for instance by `annal home` in PostgreSQL. The new home sets its lease here,
 * and from then on every append to the session, by any process of this store, is refused once the
 * lease has ended. Sessions without a lease are not affected.
 *
 * Or no store has a session alone: it is shared. Then every event is decided outside, one after the
 * other, and only what was decided is appended here: an append must name the hash that its last
 * event has there (h of annal_append_options), and every other append is refused.
 *
 * A lease ends at a time of CLOCK_BOOTTIME, which no clock setting changes and which advances while
 * the machine sleeps; and with a restart of the machine. It is checked before each append. A
 * process that is stopped between that check and its write may still write these events after the
 * end: the service that grants leases must refuse the events of an earlier epoch.
 */
#ifndef ANNAL_LEASE_H
#define ANNAL_LEASE_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNAL_LEASE_GIVER_BYTES_MAX 255

typedef struct annal_lease {
    uint64_t epoch;   /* rises with each holder; at least 1 */
    int64_t until_us; /* CLOCK_BOOTTIME in microseconds; once it is past, appends are refused */
    uint32_t seconds; /* for how long it is given at a time; 0: it was given back, or lost */
    bool shared;      /* the session is shared: until_us and seconds are not used */
    /* who decides, one line of text for messages; may be "" */
    char giver[ANNAL_LEASE_GIVER_BYTES_MAX + 1];
} annal_lease;

/* CLOCK_BOOTTIME, in microseconds. Any thread. */
ANNAL_API int64_t annal_lease_now(void);

/*
 * Set the lease of a session, which need not exist. It is durable when this returns, and holds for
 * appends of all processes: a process that has the session releases it first, unless the lease is
 * only made longer. Any thread.
 *
 * ANNAL_ERR_INVALID   session is not a session id, the epoch is 0, or giver has several lines
 * ANNAL_ERR_CONFLICT  the session has a lease of a later epoch
 * ANNAL_ERR_BUSY      another process has the session and did not release it in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_set(annal_store *store, annal_slice session,
                                                        const annal_lease *lease, annal_error *err);

/*
 * Extend the lease of this epoch, if it is still held: no process has to release the session. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  the session has no lease
 * ANNAL_ERR_CONFLICT  its lease is of another epoch, or was given back
 * ANNAL_ERR_BUSY      another process is changing a session and did not finish in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_renew(annal_store *store, annal_slice session,
                                                          uint64_t epoch, int64_t until_us,
                                                          annal_error *err);

/*
 * The lease of a session; until_us is 0 if the machine was restarted since. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  the session has no lease
 * ANNAL_ERR_CORRUPT   its file is damaged; appends are refused
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_get(annal_store *store, annal_slice session,
                                                        annal_lease *out_lease, annal_error *err);

/* Call fn for each session with a lease, in no order. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_sessions(annal_store *store,
                                                             annal_session_fn fn, void *arg,
                                                             annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
