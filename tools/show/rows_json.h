/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows of SQL as {"columns":[…],"rows":[[…],…]}. */
#pragma once

#include "journal/base/buf.h"

#include <annal/query.h>

#define ROWS_BYTES_MAX ((size_t)64 << 20)

/* Rows that are appended to out as JSON. Begin with {.out = …}; after the last row call
 * rows_json_end(). */
struct rows_json {
    struct buf *out;
    uint64_t limit; /* maximum number of rows; 0 for no limit */
    uint64_t count;
    bool begun;     /* whether "columns" was appended to out */
    bool truncated; /* whether rows were left out, because of limit or ROWS_BYTES_MAX */
};

/* Callbacks for annal_index_sql() and annal_state_sql(): rows_json_columns() for options.columns,
 * rows_json_row() for fn. arg is a struct rows_json. */
int rows_json_columns(void *arg, const annal_row *row);
int rows_json_row(void *arg, const annal_row *row);

/* End the JSON array of rows; if the columns were not written yet, write "columns" without entries
 * first. The caller appends the closing brace, and may add members before it. */
annal_status rows_json_end(struct rows_json *rows);

/* Run one SELECT on the index, and append {"columns":…,"rows":…} without a line break. */
annal_status rows_json_ask(annal_index *index, const char *sql, const annal_value *params,
                           size_t param_count, struct buf *out, annal_error *err);
