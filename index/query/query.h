/* SPDX-License-Identifier: Apache-2.0 */
/* How a filter becomes SQL over event_index; for query.c and query_groups.c. */
#ifndef INDEX_QUERY_QUERY_H
#define INDEX_QUERY_QUERY_H

#include "index/follow/history.h"
#include "index/index.h"
#include "journal/base/buf.h"

annal_status annal__query_check(const annal_filter *filter, annal_error *err);

/* Open a connection for this filter; what is not in the index yet is in temp.rest. */
annal_status annal__query_connect(annal_index *index, const annal_filter *filter,
                                  struct history *out_history, sqlite3 **out_db,
                                  bool *out_with_rest, annal_lag *out_lag, annal_error *err);

/*
 * Append " FROM … WHERE …" of a SELECT over columns of event_index; its parameters are the
 * filter's.
 */
annal_status annal__query_put_from(struct buf *sql, const annal_filter *filter,
                                   const struct history *history, bool with_rest);
/*
 * Append only the conditions for sessions and types: " AND …", also for other tables with those two
 * columns.
 */
annal_status annal__query_put_names(struct buf *sql, const annal_filter *filter,
                                    const struct history *history);

/* Append only the conditions for types, for this column: " AND (…)" with ?7, ?8, … for them. */
annal_status annal__query_put_types(struct buf *sql, const char *column, const annal_slice *types,
                                    size_t count);

annal_status annal__query_bind(sqlite3_stmt *stmt, const annal_filter *filter, annal_error *err);

/*
 * After ANNAL_ERR_CORRUPT: return whether to try again, because the index was corrupt and not a
 * journal.
 */
bool annal__query_heal(annal_index *index, const annal_filter *filter);

#endif
