/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States of sessions that somebody looks at, kept for the next look: a slider asks for one moment
 * after the other.
 *
 * A place of the past costs the folding of all events since the snapshot before it, and a long
 * session has few snapshots. So the last PAST_MAX places that were asked for stay as they are
 * (annal_travel). The next question is answered from the nearest one, which moves there, forward or
 * back; if that is far, a new one is made.
 */
#ifndef TOOLS_SHOW_PAST_H
#define TOOLS_SHOW_PAST_H

#include <annal/replay.h>

#define PAST_MAX 6u
#define PAST_FAR 4000u /* events */

struct past;

struct past *past_new(annal_store *store, annal_index *index); /* NULL: no memory */
void past_free(struct past *past);                             /* NULL is accepted */

/* The session at a moment; give it back after it was asked, and before the next. */
annal_status past_take(struct past *past, annal_slice session, annal_moment at,
                       annal_travel **out_travel, annal_error *err);
void past_give(struct past *past, annal_slice session, annal_travel *travel);

#endif
