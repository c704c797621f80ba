/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: whether this store may append to a session.
 *
 * If a session moves between hosts, one host at a time is its home. Which host that is, is decided
 * outside of Annal, for instance by `annal home` in PostgreSQL. The new home sets its lease here,
 * and from then on every append to the session, by any process of this store, is refused once the
 * lease has ended. Sessions without a lease are not affected.
 *
 * Or a session is shared by several stores. Then a service outside of the store decides the order
 * of its events, and a store appends only events that were decided: an append must name the hash
 * that the service gave to its last event (h of annal_append_options), and every other append is
 * refused.
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
    uint64_t epoch;   /* number that rises with each holder of the lease, from 1 */
    int64_t until_us; /* CLOCK_BOOTTIME in microseconds; after this time appends are refused */
    /* length of the lease in seconds, for renewals; 0: the lease was released, or lost */
    uint32_t seconds;
    bool shared; /* whether the session is shared; then until_us and seconds are not used */
    /* who grants the lease, one line of text for messages; may be "" */
    char giver[ANNAL_LEASE_GIVER_BYTES_MAX + 1];
} annal_lease;

/* Return the time of CLOCK_BOOTTIME, in microseconds. Any thread. */
ANNAL_API int64_t annal_lease_now(void);

/*
 * Set the lease of a session, which need not exist. It is durable when this returns, and holds for
 * appends of all processes: a process that owns the session releases it first, unless the lease is
 * only extended. Any thread.
 *
 * ANNAL_ERR_INVALID   session is not a session id, the epoch is 0, or giver has several lines
 * ANNAL_ERR_CONFLICT  the session has a lease of a later epoch
 * ANNAL_ERR_BUSY      another process owns the session and did not release it in
 *                     time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_set(annal_store *store, annal_slice session,
                                                        const annal_lease *lease, annal_error *err);

/*
 * Extend the lease of this epoch, if it was not released or replaced. No process has to release the
 * session for this. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  the session has no lease
 * ANNAL_ERR_CONFLICT  its lease has another epoch, or was released
 * ANNAL_ERR_BUSY      another process is changing a session and did not finish in time
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_renew(annal_store *store, annal_slice session,
                                                          uint64_t epoch, int64_t until_us,
                                                          annal_error *err);

/*
 * Read the lease of a session; until_us is 0 if the machine was restarted since it was set. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  the session has no lease
 * ANNAL_ERR_CORRUPT   the file of the lease is damaged; appends are refused
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_get(annal_store *store, annal_slice session,
                                                        annal_lease *out_lease, annal_error *err);

/* Call fn for each session with a lease, in no order. Any thread. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lease_each(annal_store *store, annal_session_fn fn,
                                                         void *arg, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
