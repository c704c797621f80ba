/* A draft, as those who append it for others look at it. */
#ifndef JOURNAL_SYS_DRAFT_H
#define JOURNAL_SYS_DRAFT_H

#include <annal/journal.h>

/*
 * The data of a draft as JSON, whatever its format; free it with annal_free(). Fails as
 * annal_draft_check() does. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__draft_json(const annal_draft *draft, annal_slice *out_json,
                                                annal_error *err);

/* ANNAL_ERR_INVALID: it has an expected_seq that its expect leaves out. Any thread. */
ANNAL_MUST_CHECK annal_status annal__expect_check(annal_slice session,
                                                  const annal_append_options *options,
                                                  annal_error *err);

/* The time that a draft brings, as an event can have it; now_us when it brings none. Any thread. */
int64_t annal__draft_time(const annal_draft *draft, int64_t now_us);

#endif
