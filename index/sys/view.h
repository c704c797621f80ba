/* SPDX-License-Identifier: Apache-2.0 */
/* Several SELECTs over the same view of the index. */
#ifndef INDEX_SYS_VIEW_H
#define INDEX_SYS_VIEW_H

#include <annal/query.h>

/*
 * A fixed view of the index, for several SELECTs that must see the same state, or for many SELECTs.
 * It does not contain what is indexed after it was opened. While it is open, the write-ahead log of
 * sessions.db only grows, so close it soon. It does not catch up. One thread at a time; close it
 * before the index.
 */
typedef struct annal__view annal__view;

/* ANNAL_ERR_BUSY  another program keeps sessions.db locked */
ANNAL_MUST_CHECK annal_status annal__view_open(annal_index *index, annal__view **out_view,
                                               annal_error *err);

/*
 * As annal_sql(), without events; of the options only params, columns and limits are used. After
 * ANNAL_ERR_CORRUPT sessions.db was deleted, if possible: close the view and open another.
 */
ANNAL_MUST_CHECK annal_status annal__view_sql(annal__view *view, annal_slice sql,
                                              const annal_sql_options *options, annal_row_fn fn,
                                              void *arg, annal_error *err);

/*
 * Find how far a session's journal is indexed in this view: the first event that is not indexed
 * yet, the offset where it begins, and the hash before it. Seq 1 at offset 0: the session is
 * unknown.
 */
ANNAL_MUST_CHECK annal_status annal__view_position(annal__view *view, annal_slice session,
                                                   annal_position *out_position, annal_error *err);

/* NULL is accepted. */
void annal__view_close(annal__view *view);

#endif
