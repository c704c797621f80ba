/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a journal again from a copy of its header and its events, for instance in a database.
 *
 * The bytes must be the same as before, because every h is a hash of them. So each event is
 * encoded, and refused unless its h is as in the copy.
 */
#pragma once

#include "journal/base/below.h"

#include <annal/journal.h>

typedef struct annal__rebuild annal__rebuild;

/*
 * Begin to write a journal in the directory events/ of root, which no other process uses. info has
 * session, file, replaces, created_us, fork_session, fork_seq and fork_h; its format is not used,
 * because the hash of the first event shows the format. If the directory already has the beginning
 * of this journal, it is continued, and an incomplete last event is cut off. *out_seq is the seq of
 * its last event. One thread at a time.
 *
 * ANNAL_ERR_CONFLICT  the directory has a journal of this session with another file id
 */
ANNAL_MUST_CHECK annal_status annal__rebuild_open(const struct below *root,
                                                  const annal_session_info *info,
                                                  annal__rebuild **out_rebuild, uint64_t *out_seq,
                                                  annal_error *err);

/*
 * Add the next event, of which seq, ts_us, type, id, cause, data (JSON) and h are used.
 *
 * ANNAL_ERR_CORRUPT  its seq is not the next seq, or its h is not the h of the encoded event
 */
ANNAL_MUST_CHECK annal_status annal__rebuild_add(annal__rebuild *rebuild, const annal_event *event,
                                                 annal_error *err);

/* Write all events that are not written yet. */
ANNAL_MUST_CHECK annal_status annal__rebuild_end(annal__rebuild *rebuild, annal_error *err);

void annal__rebuild_close(annal__rebuild *rebuild); /* NULL is accepted */
