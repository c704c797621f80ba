/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts: what programs need that append the drafts of others. */
#pragma once

#include "journal/base/buf.h"

#include <annal/journal.h>

/* Return the data of a draft as JSON, whatever its format; free it with annal_free(). Fails as
 * annal_draft_check() does. Any thread. */
ANNAL_MUST_CHECK annal_status annal__draft_json(const annal_draft *draft, annal_slice *out_json,
                                                annal_error *err);

/* Fail with ANNAL_ERR_INVALID if expected_seq is set without ANNAL_EXPECT_SEQ. Any thread. */
ANNAL_MUST_CHECK annal_status annal__draft_check_expect(annal_slice session,
                                                        const annal_append_options *options,
                                                        annal_error *err);

/* Return the time of a draft, limited to the range of events; now_us if the draft has no time. Any
 * thread. */
int64_t annal__draft_time(const annal_draft *draft, int64_t now_us);

/*
 * Check drafts as the first append to a session without a journal does, and set *out to the end of
 * the journal that the writer could create, with a new file id; bytes is 0. Writes nothing. Any
 * thread.
 */
ANNAL_MUST_CHECK annal_status annal__writer_begin(annal_writer *writer, const annal_draft *drafts,
                                                  size_t count, annal_session_info *out,
                                                  annal_error *err);

/*
 * Compute the event that a draft with a time becomes after the end of a journal, as a cursor would
 * return it. `data` receives the data of the event, and is cleared first. *end, of which last_seq,
 * last_ts_us, last_h, end_offset and format are used, moves after the event. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__draft_event(const annal_draft *draft, annal_session_info *end,
                                                 struct buf *data, annal_event *out,
                                                 annal_error *err);
