/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the index is what the journals say, while a journal is read for its own sake: the
 * rows of event_index against the events as they pass, the rows of sessions and turns against what
 * the events yield when they are folded again.
 *
 *     verify_index_begin(&check, session);
 *     … verify_index_event(&check, &event, after_damage), for every event …
 *     status = verify_index_end(&check, last_seq, at_damage, fn, arg, &err);
 *
 * A journal that was replaced or started over since it was indexed is not a finding: the next
 * catch-up sees that its place in the journal is gone, and begins again. Until then the index lags.
 *
 * ANNAL_END means that the index was rebuilt or changed meanwhile, so that nothing can be said:
 * verify again.
 */
#ifndef TOOLS_CMD_VERIFY_INDEX_H
#define TOOLS_CMD_VERIFY_INDEX_H

#include "index/sys/view.h"

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/pack.h>

struct index_row;
struct index_found;

/* What the sessions that one thread verifies share, because each is expensive to create. At first
 * {.store, .index}. */
struct index_check {
    annal_store *store;
    annal_index *index; /* NULL: there is none, and nothing is found */
    annal__view *view;  /* renewed now and then */
    annal_state *state; /* the current session is folded in it */
    unsigned viewed;    /* sessions looked at in view */
    uint64_t lagging;   /* sessions whose last events the index does not know yet */

    /* For the current session. */
    annal_slice session;
    annal_status status; /* below 0: the comparison failed, and error says why */
    annal_error error;
    uint64_t indexed_seq;                              /* compare up to here */
    bool known;                                        /* the index has looked at it */
    char fork_session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* of its header; "": it is not a fork */
    uint64_t fork_seq;
    bool fork_told;    /* the index says the same */
    bool stale;        /* the index is at a place that the journal does not have */
    bool contradicted; /* a row differs from the event of its seq */
    struct index_row *rows;
    size_t row_count;
    size_t row_next;
    bool rows_end;
    bool damaged; /* somewhere: the tables cannot be folded again */
    unsigned tries;
    struct index_found *found; /* reported only if the index did not change meanwhile */
    size_t found_count;
};

void verify_index_begin(struct index_check *check, annal_slice session);
void verify_index_event(struct index_check *check, const annal_event *event, bool after_damage);

/* last_seq is the journal's; at_damage: its end does not prove itself. fn is called with each
 * finding. */
annal_status verify_index_end(struct index_check *check, uint64_t last_seq, bool at_damage,
                              annal_finding_fn fn, void *arg, annal_error *err);

/* Whether the session, which was compared just now, has snapshots. */
annal_status verify_index_has_snapshots(struct index_check *check, bool *out_has, annal_error *err);

void verify_index_done(struct index_check *check);

#endif
