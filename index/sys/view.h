/* SPDX-License-Identifier: Apache-2.0 */
/* A view: several SELECTs that see the same state of the index. */
#pragma once

#include <annal/query.h>

/*
 * A fixed view of the index, for several SELECTs that must see the same state, or for many SELECTs.
 * It does not contain what is indexed after it was opened. While it is open, the write-ahead log of
 * sessions.db only grows, so close it soon. Opening it does not catch up. One thread at a time;
 * close it before the index.
 */
typedef struct annal__view annal__view;

/* Open a view of the index.
 * ANNAL_ERR_BUSY  another program keeps sessions.db locked */
ANNAL_MUST_CHECK annal_status annal__view_open(annal_index *index, annal__view **out_view,
                                               annal_error *err);

/*
 * Run a SELECT as annal_index_sql() does, without the table events; of the options only params,
 * columns and limits are used. If the result is ANNAL_ERR_CORRUPT, sessions.db was deleted if
 * possible: close the view and open another.
 */
ANNAL_MUST_CHECK annal_status annal__view_sql(annal__view *view, annal_slice sql,
                                              const annal_sql_options *options, annal_row_fn fn,
                                              void *arg, annal_error *err);

/* Run a SELECT of this program, which is compiled once for the view. */
ANNAL_MUST_CHECK annal_status annal__view_ask(annal__view *view, const char *sql,
                                              const annal_value *params, size_t count,
                                              annal_row_fn fn, void *arg, annal_error *err);

/*
 * Find the end of the indexed part of a session's journal in this view: the seq of the first event
 * that is not indexed, the offset at which it begins, and the hash of the event before it. Seq 1 at
 * offset 0 if the view does not contain the session.
 */
ANNAL_MUST_CHECK annal_status annal__view_position(annal__view *view, annal_slice session,
                                                   annal_position *out_position, annal_error *err);

/* Close a view. NULL is accepted. */
void annal__view_close(annal__view *view);
