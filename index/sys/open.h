/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an index for the layers above, closing their objects with it, and the lag of a following
 * index. */
#pragma once

#include <annal/index.h>

/* Open an index with options.no_snapshots, for layers that do not use snapshots. */
ANNAL_MUST_CHECK annal_status annal__index_open_plain(annal_store *store,
                                                      const annal_index_options *options,
                                                      annal_index **out_index, annal_error *err);

/*
 * Call end(arg) when the index is closed, while it still works, so that a layer above can close its
 * own objects that use the index. An index has only one such function; arg NULL removes it. Returns
 * the previous arg. Any thread.
 */
void *annal__index_on_close(annal_index *index, void (*end)(void *arg), void *arg);

/*
 * Return whether the last round of the background task of an index that follows did not index
 * everything, so that the next round continues. Call it only in a task of the same store object.
 */
bool annal__index_lags(const annal_index *index);

/* Return the store on which the index was opened. Any thread. */
annal_store *annal__index_store(const annal_index *index);
