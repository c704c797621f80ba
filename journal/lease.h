/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the lease of a session allows an append; the public part is annal/lease.h. */
#ifndef JOURNAL_LEASE_H
#define JOURNAL_LEASE_H

#include "journal/session.h"

#include <annal/lease.h>

/*
 * ANNAL_ERR_REFUSED: the lease has ended; or the session is shared, and these events were not
 * decided (decided_h 0). Lock held, session owned.
 */
annal_status annal__lease_check(annal_store *store, struct session *session, uint64_t decided_h,
                                annal_error *err);

/* Remove the lease of a session that is deleted. */
annal_status annal__lease_forget(annal_store *store, annal_slice session, annal_error *err);

#endif
