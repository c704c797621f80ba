/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of events into a session, with an answer for each: what `annal append` and the server do.
 *
 * Lines are appended at level batch, then synced once, then acknowledged in their order.
 *
 * (1) Every line that was read gets one answer, in the order of the lines: {"seq":N},
 *     {"refused":"…"} (nothing of it is there, and nothing will be) or {"unknown":"…"} (storage
 *     failed under it, and nobody can say: append it again with the same id, and see).
 * (2) The first answer that is no seq is the last: what follows may mean nothing without it.
 * (3) When a sync fails, the lines that waited for it are told apart: some may be durable. A line
 *     that was refused behind them still has its answer.
 * (4) Packs that the store has switched on are asked about events that they guard or fill. Such an
 *     event is durable by itself; what was read before it is durable with it.
 */
#ifndef TOOLS_APPEND_APPENDER_H
#define TOOLS_APPEND_APPENDER_H

#include "journal/base/buf.h"

#include <annal/index.h>
#include <annal/journal.h>

struct appender {
    annal_slice type; /* of every line, which is data then; empty: the lines say it */
    annal_level level;
    bool expects; /* for the first line */
    uint64_t expected_seq;

    /* Set before the first appender_put(). */
    annal_slice session;
    annal_store *store;
    annal_index *index;
    annal_writer *writer;

    uint64_t line; /* number of the line at hand */
    struct buf scratch;
    struct buf seqs; /* uint64_t: of events that are appended but not acknowledged */
    size_t pending_bytes;
    struct buf last_answer; /* of the line that is the last, until those before it have theirs */
};

/* Read the next line. Its slices are valid until the next call. */
annal_status appender_read(struct appender *appender, annal_slice line, annal_draft *out_draft,
                           annal_error *err);

/* Append it. If that, or reading it, failed: appender_fail(), which says the line in err. */
annal_status appender_put(struct appender *appender, const annal_draft *draft, size_t line_bytes,
                          annal_error *err);
void appender_fail(struct appender *appender, annal_error *err);

/* So much was appended that it is to be acknowledged now. */
bool appender_is_full(const struct appender *appender);

/*
 * Make durable what was appended, then append to answers what became of each line. A failure is
 * that of the sync, and the answers are there all the same.
 */
annal_status appender_acknowledge(struct appender *appender, struct buf *answers, annal_error *err);

void appender_add_answer(struct buf *answers, const char *kind, const char *sentence);

void appender_done(struct appender *appender); /* closes neither writer nor index */

#endif
