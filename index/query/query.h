/* SPDX-License-Identifier: Apache-2.0 */
/* Composing SQL over event_index from a filter; for query.c and query_groups.c. */
#pragma once

#include "index/follow/history.h"
#include "index/index.h"
#include "journal/base/buf.h"

annal_status annal__query_check(const annal_filter *filter, annal_error *err);

/* Open a connection for this filter, after catching up. Events that are not indexed yet are in
 * temp.rest, if *out_with_rest is set. */
annal_status annal__query_connect(annal_index *index, const annal_filter *filter,
                                  struct history *out_history, sqlite3 **out_db,
                                  bool *out_with_rest, annal_lag *out_lag, annal_error *err);

/*
 * Append " FROM … WHERE …" of a SELECT over the columns of event_index. annal__query_bind() binds
 * its parameters.
 */
annal_status annal__query_put_from(struct buf *sql, const annal_filter *filter,
                                   const struct history *history, bool with_rest);
/*
 * Append only the conditions for sessions and types, " AND …", for any table with the columns
 * session_id and type.
 */
annal_status annal__query_put_names(struct buf *sql, const annal_filter *filter,
                                    const struct history *history);

/* Append only the conditions for types, on this column: " AND (…)", with the types as ?7, ?8, … */
annal_status annal__query_put_types(struct buf *sql, const char *column, const annal_slice *types,
                                    size_t count);

annal_status annal__query_bind(sqlite3_stmt *stmt, const annal_filter *filter, annal_error *err);

/*
 * Delete the index after ANNAL_ERR_CORRUPT, unless a journal is the cause. Returns whether it was
 * deleted, so that trying again helps.
 */
bool annal__query_heal(annal_index *index, const annal_filter *filter);
