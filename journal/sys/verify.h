/* SPDX-License-Identifier: Apache-2.0 */
/* Check a journal and the data derived from it in one reading. */
#pragma once

#include "journal/sys/lineage.h"

#include <annal/journal.h>

/*
 * Check a session as annal_session_verify() does, and pass every valid event to event_fn, so that
 * derived data is checked in the same reading. after_damage: whether damage was found since the
 * event before. The event is valid until the callback returns; arg is passed to both callbacks.
 * proved, which may be NULL, is shared between the calls of a pass over many sessions.
 */
typedef void (*annal__verified_fn)(void *arg, const annal_event *event, bool after_damage);

ANNAL_MUST_CHECK annal_status annal__verify_events(annal_store *store, annal_slice session,
                                                   annal__proved *proved, annal_finding_fn fn,
                                                   annal__verified_fn event_fn, void *arg,
                                                   annal_verify_result *out_result,
                                                   annal_error *err);
