/* SPDX-License-Identifier: Apache-2.0 */
/* Check the lease of a session before an append; the public functions are in annal/lease.h. */
#pragma once

#include "journal/session.h"

#include <annal/lease.h>

/*
 * Fail with ANNAL_ERR_REFUSED if the session's lease has expired, or if the session is shared and
 * decided_h is 0: the service that decides the order of its events did not decide these. The
 * session is owned, and its lock is held.
 */
annal_status annal__lease_check(annal_store *store, struct session *session, uint64_t decided_h,
                                annal_error *err);

/* Remove the lease of a session that is deleted. */
annal_status annal__lease_forget(annal_store *store, annal_slice session, annal_error *err);
