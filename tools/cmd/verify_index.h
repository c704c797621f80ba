/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the index agrees with a journal, while the journal is read for verify: compares the
 * rows of event_index with the events one by one, and the rows of sessions and turns with a second
 * fold of the events.
 *
 *     verify_index_begin(&check, session);
 *     … verify_index_event(&check, &event, after_damage), for every event …
 *     status = verify_index_end(&check, last_seq, at_damage, fn, arg, &err);
 *
 * If a journal was replaced or begun again after it was indexed, this is not a finding: the index
 * lags, and the next catch-up finds that its position does not exist and starts from the beginning.
 *
 * ANNAL_END means that the index was rebuilt or changed during the comparison, so that the result
 * is void: verify the session again.
 */
#pragma once

#include "index/sys/view.h"

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/pack.h>

struct index_row;
struct index_found;

/* State for comparing journals with the index. It is expensive to create, so a thread uses it for
 * all its sessions. Initialize with {.store, .index}. */
struct index_check {
    annal_store *store;
    annal_index *index; /* NULL: no index exists, and nothing is compared */
    /* read transaction of the index, opened again after VIEW_US */
    annal__view *view;
    annal_state *state; /* state of the current session, computed from its events */
    int64_t viewed_us;  /* time in us at which view was opened */
    uint64_t lagging;   /* number of sessions whose last events are not indexed yet */

    /* members from here on: the session that is being compared */
    annal_slice session;
    annal_status status; /* below 0: the comparison failed, see error */
    annal_error error;
    /* last indexed event; later events are not compared */
    uint64_t indexed_seq;
    bool known; /* whether the session is indexed */
    /* parent, from the header of the journal; "": not a fork */
    char fork_session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t fork_seq;
    bool fork_told;    /* whether the index has the same parent and fork_seq */
    bool stale;        /* whether the indexed position does not exist in the journal */
    bool contradicted; /* whether an event has no row in event_index, or one that differs */
    struct index_row *rows;
    size_t row_count;
    size_t row_next;
    bool rows_end;
    /* whether the journal is damaged, so that its rows cannot be computed again for comparison */
    bool damaged;
    unsigned tries;
    /* findings, reported only if the index did not change in the meantime */
    struct index_found *found;
    size_t found_count;
};

void verify_index_begin(struct index_check *check, annal_slice session);
void verify_index_event(struct index_check *check, const annal_event *event, bool after_damage);

/* Compare the tables and report the findings to fn. last_seq is the last event of the journal;
 * at_damage says whether the journal ends with damage. */
annal_status verify_index_end(struct index_check *check, uint64_t last_seq, bool at_damage,
                              annal_finding_fn fn, void *arg, annal_error *err);

/* Find whether the session that was compared last has snapshots. */
annal_status verify_index_has_snapshots(struct index_check *check, bool *out_has, annal_error *err);

void verify_index_done(struct index_check *check);
