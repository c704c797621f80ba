/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a journal again from what another place knows of it: its header and its events.
 *
 * The bytes must be the same as before, because every h is a hash of them. So each event is
 * encoded, and refused unless its h is unchanged.
 */
#ifndef JOURNAL_SYS_REBUILD_H
#define JOURNAL_SYS_REBUILD_H

#include "journal/base/below.h"

#include <annal/journal.h>

typedef struct annal__rebuild annal__rebuild;

/*
 * In the directory `events` of root, which no other process uses. info has session, file, replaces,
 * created_us and fork_session, fork_seq, fork_h; its format is not needed: the first event shows
 * which it is. If the directory has the beginning of this journal, the journal continues there, and
 * a last event that is not whole is cut off. *out_seq: the last event that it has. One thread at a
 * time.
 *
 * ANNAL_ERR_CONFLICT  the directory has a journal of this session with another header
 */
ANNAL_MUST_CHECK annal_status annal__rebuild_open(const struct below *root,
                                                  const annal_session_info *info,
                                                  annal__rebuild **out_rebuild, uint64_t *out_seq,
                                                  annal_error *err);

/*
 * Add the next event, of which seq, ts_us, type, id, cause, data (JSON) and h are used.
 *
 * ANNAL_ERR_CORRUPT  its seq is not the next one, or it has another h
 */
ANNAL_MUST_CHECK annal_status annal__rebuild_add(annal__rebuild *rebuild, const annal_event *event,
                                                 annal_error *err);

/* Write what is not written yet. */
ANNAL_MUST_CHECK annal_status annal__rebuild_end(annal__rebuild *rebuild, annal_error *err);

void annal__rebuild_close(annal__rebuild *rebuild); /* NULL is accepted */

#endif
