/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps states of sessions at moments of their past for the next request, because a slider requests
 * one moment after the other.
 *
 * To compute a state, all events since the snapshot before it are applied one by one, and a long
 * session has few snapshots. So the last PAST_MAX requested states are kept (annal_travel). The
 * nearest of them answers the next request: it moves forward or back to the requested moment. If it
 * is more than PAST_FAR events distant, a new state is created.
 */
#pragma once

#include <annal/replay.h>

#define PAST_MAX 6u
#define PAST_FAR 4000u /* maximum distance in events */

struct past;

struct past *past_new(annal_store *store, annal_index *index); /* returns NULL if memory ran out */
void past_free(struct past *past);                             /* accepts NULL */

/* past_take() returns the state of a session at a moment; past_give() returns it after the query,
 * and before the next request of the caller. */
annal_status past_take(struct past *past, annal_slice session, annal_moment at,
                       annal_travel **out_travel, annal_error *err);
void past_give(struct past *past, annal_slice session, annal_travel *travel);
