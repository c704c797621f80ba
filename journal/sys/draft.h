/* SPDX-License-Identifier: Apache-2.0 */
/* A draft, as those who append it for others look at it. */
#ifndef JOURNAL_SYS_DRAFT_H
#define JOURNAL_SYS_DRAFT_H

#include "journal/base/buf.h"

#include <annal/journal.h>

/*
 * The data of a draft as JSON, whatever its format; free it with annal_free(). Fails as
 * annal_draft_check() does. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__draft_json(const annal_draft *draft, annal_slice *out_json,
                                                annal_error *err);

/* ANNAL_ERR_INVALID: it has an expected_seq that its expect leaves out. Any thread. */
ANNAL_MUST_CHECK annal_status annal__draft_check_expect(annal_slice session,
                                                        const annal_append_options *options,
                                                        annal_error *err);

/* The time of a draft, limited to the range of events; now_us if the draft has no time. Any
 * thread. */
int64_t annal__draft_time(const annal_draft *draft, int64_t now_us);

/*
 * Of a session without a journal: check the drafts as an append does, and set *out to the end of a
 * journal that the writer could create, with a file id of its own; bytes is 0. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__writer_begin(annal_writer *writer, const annal_draft *drafts,
                                                  size_t count, annal_session_info *out,
                                                  annal_error *err);

/*
 * The event that a draft with a time becomes after the end of a journal, as a cursor would return
 * it; data, which holds the data of the event, is cleared first. *end, of which last_seq,
 * last_ts_us, last_h, end_offset and format are used, moves to the event. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__draft_event(const annal_draft *draft, annal_session_info *end,
                                                 struct buf *data, annal_event *out,
                                                 annal_error *err);

#endif
