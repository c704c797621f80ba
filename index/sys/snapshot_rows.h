/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the table snapshots. Rebuilding the index deletes them. */
#pragma once

#include <annal/index.h>

/*
 * Write a row, replacing the row at this seq. base_seq: 0, or the row on which it builds, whose
 * state begins with base_begins. Waits up to wait_ms milliseconds for other writers of the index; a
 * task, which must not wait, passes 0. Any thread.
 *
 * ANNAL_ERR_BUSY      another process writes the index
 * ANNAL_ERR_CONFLICT  the row at base_seq is missing or was replaced: the index was rebuilt, or
 *                     another process deleted the row
 */
ANNAL_MUST_CHECK annal_status annal__snapshot_rows_put(annal_index *index, annal_slice session,
                                                       uint64_t seq, annal_slice state,
                                                       int64_t created_us, uint64_t base_seq,
                                                       annal_slice base_begins, uint32_t wait_ms,
                                                       annal_error *err);

/*
 * Delete the existing rows at these seqs, all or none. Waits as annal__snapshot_rows_put() does.
 */
ANNAL_MUST_CHECK annal_status annal__snapshot_rows_delete(annal_index *index, annal_slice session,
                                                          const uint64_t *seqs, size_t count,
                                                          uint32_t wait_ms, annal_error *err);

/*
 * Find the row with the largest seq that is at most at_most. Free *out_state with annal_free().
 * ANNAL_ERR_NOTFOUND if no row exists. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__snapshot_rows_newest(annal_index *index, annal_slice session,
                                                          uint64_t at_most, uint64_t *out_seq,
                                                          annal_slice *out_state, annal_error *err);

typedef struct annal__snapshot_row {
    annal_slice session;
    uint64_t seq;
    uint64_t bytes;   /* length of the state */
    annal_slice head; /* first bytes of the state, at most 256; valid until the callback returns */
    int64_t created_us;
} annal__snapshot_row;

/* A function that is called for each row. It returns 0 to continue; any other value ends the calls,
 * and is returned to the caller. */
typedef int (*annal__snapshot_row_fn)(void *arg, const annal__snapshot_row *row);

/*
 * Call fn with the row of this session that has the largest seq, if the session has rows. Does not
 * wait for other programs, as a task must not. Any thread.
 *
 * ANNAL_ERR_BUSY  another program keeps the database locked
 */
ANNAL_MUST_CHECK annal_status annal__reader_snapshot_last(annal_index *index, annal_slice session,
                                                          annal__snapshot_row_fn fn, void *arg,
                                                          annal_error *err);

/*
 * Call fn for the rows of one session, or of all if session is empty, by session and seq. Reads
 * only the first bytes of each state.
 */
ANNAL_MUST_CHECK annal_status annal__reader_snapshot_each(annal_index *index, annal_slice session,
                                                          annal__snapshot_row_fn fn, void *arg,
                                                          annal_error *err);
