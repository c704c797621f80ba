/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Append lines of events to a session, with an answer for each: used by `annal append` and the
 * server.
 *
 * Lines are appended at level batch, then synced once, then acknowledged in their order.
 *
 * (1) Every line that was read gets one answer, in the order of the lines: {"seq":N},
 *     {"refused":"…"} (nothing of it was written, and nothing will be) or {"unknown":"…"} (storage
 *     failed during the append, and the result is unknown: append the event again with the same id
 *     to learn its seq).
 * (2) The first answer without a seq is the last: later lines may make no sense without that line.
 * (3) If a sync fails, each line that waited for it is checked: some may be durable. A line that
 *     was refused after them still has its answer.
 * (4) The enabled packs check the events that they guard or fill. Such an event is durable by
 *     itself; the lines before it become durable with it.
 */
#ifndef TOOLS_APPEND_APPENDER_H
#define TOOLS_APPEND_APPENDER_H

#include "journal/base/buf.h"

#include <annal/index.h>
#include <annal/journal.h>

struct appender {
    annal_slice type; /* type of every line, which is then data; empty: each line has a type */
    annal_level level;
    bool expects; /* applies to the first line */
    uint64_t expected_seq;

    /* Set these before the first appender_put(). */
    annal_slice session;
    annal_store *store;
    annal_index *index;
    annal_writer *writer;

    uint64_t line; /* number of the current line */
    struct buf scratch;
    struct buf seqs; /* uint64_t: appended events that are not acknowledged yet */
    size_t pending_bytes;
    struct buf last_answer; /* answer of the last line, until the lines before it are answered */
};

/* Read the next line. Its slices are valid until the next call. */
annal_status appender_read(struct appender *appender, annal_slice line, annal_draft *out_draft,
                           annal_error *err);

/* Append the line. If that, or reading it, failed: appender_fail(), which adds the line to err. */
annal_status appender_put(struct appender *appender, const annal_draft *draft, size_t line_bytes,
                          annal_error *err);
void appender_fail(struct appender *appender, annal_error *err);

/* Return whether the appended events should be acknowledged now, because they are many. */
bool appender_is_full(const struct appender *appender);

/*
 * Sync all appended events, then append one answer for each line to `answers`. If the sync fails,
 * the answers are still complete.
 */
annal_status appender_acknowledge(struct appender *appender, struct buf *answers, annal_error *err);

void appender_add_answer(struct buf *answers, const char *kind, const char *sentence);

void appender_done(struct appender *appender); /* closes neither writer nor index */

#endif
