/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the index while the server runs, so that lists become whole without a reader.
 *
 * (1) filler_new() indexes for a moment. If the index is then not whole, a thread continues, and
 *     filler_left() says how many sessions are not indexed yet.
 * (2) Until the index is whole, requests read what it has (filler_index()): otherwise each
 *     would wait for a part of the work. Sessions that are written in the meantime are indexed
 *     before the others.
 * (3) When the index is whole, the thread sleeps: readers catch up by themselves. A reader that
 *     finds more than it can index in time wakes the thread (filler_wake()).
 */
#pragma once

#include "journal/base/buf.h"

#include <annal/annal.h>

struct filler;

/* The sessions of the store whose events are not all in the index. */
struct filler_left {
    uint64_t sessions; /* 0: the index is whole */
    uint64_t of;       /* number of sessions of the store */
    uint64_t bytes;    /* bytes of their journals that are not in the index */
};

annal_status filler_new(annal_store *store, annal_index *index, struct filler **out,
                        annal_error *err);

/* End the thread. NULL is accepted. */
void filler_free(struct filler *filler);

/* Return the index to read from: one that does not wait while the index is filled. `session` is the
 * session that the request names, or empty; it is indexed first. */
annal_index *filler_index(struct filler *filler, annal_slice session);

struct filler_left filler_left(struct filler *filler);

/* Append what is left, as {"sessions":…,"of":…,"bytes":…}; null if the index is whole. */
annal_status filler_json(struct filler *filler, struct buf *out);

/* Tell the thread what a reader could not index in time. */
void filler_wake(struct filler *filler, const struct filler_left *left);
