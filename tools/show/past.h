/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of sessions at moments of their past, kept for the next request: a slider requests one
 * moment after the other.
 *
 * A position in the past costs the folding of all events since the snapshot before it, and a long
 * session has few snapshots. So the last PAST_MAX requested positions are kept (annal_travel). The
 * nearest position answers the next request: it moves there, forward or back. If it is far away, a
 * new position is created.
 */
#ifndef TOOLS_SHOW_PAST_H
#define TOOLS_SHOW_PAST_H

#include <annal/replay.h>

#define PAST_MAX 6u
#define PAST_FAR 4000u /* events */

struct past;

struct past *past_new(annal_store *store, annal_index *index); /* NULL: no memory */
void past_free(struct past *past);                             /* accepts NULL */

/* Take the session at a moment; give it back after the query, and before the next request. */
annal_status past_take(struct past *past, annal_slice session, annal_moment at,
                       annal_travel **out_travel, annal_error *err);
void past_give(struct past *past, annal_slice session, annal_travel *travel);

#endif
