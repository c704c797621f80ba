/* SPDX-License-Identifier: Apache-2.0 */
/* What a note is about: a session, or one of its events (pack annotations). */
#pragma once

#include "journal/base/buf.h"

#include <annal/index.h>

#define SUBJECT_PREFIX "notes_"

struct subject {
    char notes[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* id of the session with the notes */
    uint64_t seq;                               /* seq of the event; 0: the session as a whole */
    char hash[17];                              /* hash of the event's line, 16 hex digits */
    struct buf id;                              /* id of the event, or empty */
};

/*
 * Find the session and the event (seq 0: none); the caller calls subject_done(). A session that was
 * deleted is found as long as there are notes on it.
 *
 * ANNAL_ERR_NOTFOUND  the session or the event does not exist
 * ANNAL_ERR_INVALID   the id of the session is too long for a session of notes
 */
annal_status subject_find(annal_store *store, annal_slice session, uint64_t seq,
                          struct subject *out, annal_error *err);
void subject_done(struct subject *subject);

/* Enable the pack annotations, unless it is enabled. */
annal_status subject_enable(annal_store *store, annal_index *index, annal_error *err);
