/* SPDX-License-Identifier: Apache-2.0 */
/* Proving a journal and its derived data in one reading. */
#ifndef JOURNAL_SYS_VERIFY_H
#define JOURNAL_SYS_VERIFY_H

#include "journal/sys/lineage.h"

#include <annal/journal.h>

/*
 * As above, and every event that proves itself is passed to event_fn on the way, so that derived
 * data can be checked in the same reading. after_damage: something before it did not prove itself.
 * The event is valid until the callback returns; arg is passed to both. proved, which may be NULL,
 * is for a pass over many sessions.
 */
typedef void (*annal__verified_fn)(void *arg, const annal_event *event, bool after_damage);

ANNAL_MUST_CHECK annal_status annal__verify_events(annal_store *store, annal_slice session,
                                                   annal__proved *proved, annal_finding_fn fn,
                                                   annal__verified_fn event_fn, void *arg,
                                                   annal_verify_result *out_result,
                                                   annal_error *err);

#endif
