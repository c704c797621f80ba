/* SPDX-License-Identifier: Apache-2.0 */
/* Several SELECTs over the same view of the index. */
#ifndef INDEX_SYS_VIEW_H
#define INDEX_SYS_VIEW_H

#include <annal/query.h>

/*
 * The index as it was when the view was opened, for several SELECTs that must see the same
 * state, or for many SELECTs.
 * What is indexed meanwhile is not in it, and the write-ahead log of sessions.db is not shortened
 * meanwhile, so close it soon. It does not catch up. One thread at a time; close it before the
 * index.
 */
typedef struct annal__view annal__view;

/* ANNAL_ERR_BUSY  another program keeps sessions.db locked */
ANNAL_MUST_CHECK annal_status annal__view_open(annal_index *index, annal__view **out_view,
                                               annal_error *err);

/*
 * As annal_sql(), without events; of the options only params, columns and limits count. After
 * ANNAL_ERR_CORRUPT sessions.db was deleted, if that is possible: close the view and open another.
 */
ANNAL_MUST_CHECK annal_status annal__view_sql(annal__view *view, annal_slice sql,
                                              const annal_sql_options *options, annal_row_fn fn,
                                              void *arg, annal_error *err);

/*
 * How far the index knows a session's journal, in this view: the first event that it does not know
 * yet, where that begins, and the hash before it. Seq 1 at offset 0: the session is not known.
 */
ANNAL_MUST_CHECK annal_status annal__view_position(annal__view *view, annal_slice session,
                                                   annal_position *out_position, annal_error *err);

/* NULL is accepted. */
void annal__view_close(annal__view *view);

#endif
