/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends lines of events to a session, with an answer for each; `annal append` and the server use
 * it.
 *
 * Lines are appended at level batch, then synced once, then acknowledged in their order.
 *
 * (1) Every line that was read gets one answer, in the order of the lines: {"seq":N},
 *     {"refused":"…"} (nothing of the line was written, and nothing will be) or {"unknown":"…"}
 *     (storage failed during the append, and the result is unknown: append the event again with the
 *     same id to learn its seq).
 * (2) The first answer without a seq is the last one, because later lines may make no sense without
 *     that line.
 * (3) If a sync fails, each line that waited for it is checked, because some may be durable. A line
 *     after them that was refused still gets its answer.
 * (4) The enabled packs check the events that they guard or fill. Such an event is durable by
 *     itself; the lines before it become durable with it.
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/index.h>
#include <annal/journal.h>

struct appender {
    /* type of all events, whose lines are then their data; empty if each line has a type */
    annal_slice type;
    annal_level level;
    /* whether the session must end at event expected_seq before the first line is appended */
    bool expects;
    uint64_t expected_seq;
    bool strict; /* whether events of known types must have the fields of their type */

    /* The caller sets session, store, index and writer before the first appender_put(). */
    annal_slice session;
    annal_store *store;
    annal_index *index;
    annal_writer *writer;

    uint64_t line; /* number of the current line, from 1 */
    struct buf scratch;
    struct buf seqs; /* seqs (uint64_t) of the events that were appended but not acknowledged yet */
    size_t pending_bytes;
    /* answer of the line that failed, which is printed after those of the lines before it */
    struct buf last_answer;
};

/* Read the next line into a draft, whose slices are valid until the next call. */
annal_status appender_read(struct appender *appender, annal_slice line, annal_draft *out_draft,
                           annal_error *err);

/* Append the event of a line. If this function or appender_read() fails, call appender_fail(): it
 * adds the answer for the line, and the number of the line to err. */
annal_status appender_put(struct appender *appender, const annal_draft *draft, size_t line_bytes,
                          annal_error *err);
void appender_fail(struct appender *appender, annal_error *err);

/* Return whether the appended events should be acknowledged now, because they are many or large. */
bool appender_is_full(const struct appender *appender);

/*
 * Sync all appended events, then append an answer for each line to `answers`. If the sync fails,
 * the answers are complete as well.
 */
annal_status appender_acknowledge(struct appender *appender, struct buf *answers, annal_error *err);

void appender_add_answer(struct buf *answers, const char *kind, const char *sentence);

/* free the buffers, but do not close the writer and the index */
void appender_done(struct appender *appender);
