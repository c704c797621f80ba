/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose state grows, and states as text to compare. */
#pragma once

#include "tests/index/fixture.h"

#include <annal/snapshot.h>

#define S ANNAL_SLICE("s")

/*
 * Append count events, half of which begin a turn and half of which end one; turn ids from first
 * on.
 */
void append_turns(struct fixture *fixture, const char *session, unsigned first, unsigned count);

/* The state at seq by folding from event 1, as JSON. free() it. */
char *folded_json(struct fixture *fixture, annal_slice session, uint64_t seq);

/*
 * The state that the newest snapshot up to at_most gives, as JSON; *out_seq is its seq. NULL: none.
 * free() it.
 */
char *loaded_json(struct fixture *fixture, annal_slice session, uint64_t at_most,
                  uint64_t *out_seq);

/*
 * Check that the newest snapshot up to at_most is at seq and equals the folded state. seq 0: there
 * must be no snapshot.
 */
void ck_newest(struct fixture *fixture, annal_slice session, uint64_t at_most, uint64_t seq);

/* The seqs of the session's snapshots, "1000 2000 "; a ! follows the seq of a snapshot with a
 * problem. free() it. */
char *listed(struct fixture *fixture, annal_slice session);
#define ck_listed(f, session, text)                                                                \
    do {                                                                                           \
        char *listed_ = listed(f, session);                                                        \
        ck_assert_str_eq(listed_, text);                                                           \
        free(listed_);                                                                             \
    } while (0)

/* Get the row of a snapshot as bytes; annal_free() it. Put it back, unchanged or changed. */
annal_slice row_get(struct fixture *fixture, uint64_t seq);
void row_put(struct fixture *fixture, uint64_t seq, annal_slice row);
