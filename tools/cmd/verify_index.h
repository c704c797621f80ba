/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check that the index agrees with the journals, while a journal is read anyway: the rows of
 * event_index are compared with the events one by one, the rows of sessions and turns with
 * what the events yield when they are folded again.
 *
 *     verify_index_begin(&check, session);
 *     … verify_index_event(&check, &event, after_damage), for every event …
 *     status = verify_index_end(&check, last_seq, at_damage, fn, arg, &err);
 *
 * A journal that was replaced or started again since it was indexed is not a finding: the next
 * catch-up sees that its position is gone, and starts from the beginning. Until then the index
 * lags.
 *
 * ANNAL_END means that the index was rebuilt or changed in the meantime, so that the comparison is
 * void: verify again.
 */
#ifndef TOOLS_CMD_VERIFY_INDEX_H
#define TOOLS_CMD_VERIFY_INDEX_H

#include "index/sys/view.h"

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/pack.h>

struct index_row;
struct index_found;

/* State shared by the sessions that one thread verifies, because it is expensive to create.
 * Initially {.store, .index}. */
struct index_check {
    annal_store *store;
    annal_index *index; /* NULL: no index exists, and nothing is found */
    annal__view *view;  /* renewed from time to time */
    annal_state *state; /* the fold of the current session */
    unsigned viewed;    /* sessions compared in view */
    uint64_t lagging;   /* sessions whose last events are not indexed yet */

    /* For the current session. */
    annal_slice session;
    annal_status status; /* below 0: the comparison failed, see error */
    annal_error error;
    uint64_t indexed_seq;                              /* compare up to here */
    bool known;                                        /* the session is indexed */
    char fork_session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* from its header; "": it is not a fork */
    uint64_t fork_seq;
    bool fork_told;    /* the index has the same parent */
    bool stale;        /* the indexed position does not exist in the journal */
    bool contradicted; /* a row differs from the event of its seq */
    struct index_row *rows;
    size_t row_count;
    size_t row_next;
    bool rows_end;
    bool damaged; /* the session is damaged: its tables cannot be folded again */
    unsigned tries;
    struct index_found *found; /* reported only if the index did not change in the meantime */
    size_t found_count;
};

void verify_index_begin(struct index_check *check, annal_slice session);
void verify_index_event(struct index_check *check, const annal_event *event, bool after_damage);

/* Report the findings to fn. last_seq is the journal's; at_damage: the end of the journal is
 * damaged. */
annal_status verify_index_end(struct index_check *check, uint64_t last_seq, bool at_damage,
                              annal_finding_fn fn, void *arg, annal_error *err);

/* Return whether the session that was just compared has snapshots. */
annal_status verify_index_has_snapshots(struct index_check *check, bool *out_has, annal_error *err);

void verify_index_done(struct index_check *check);

#endif
