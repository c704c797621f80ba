/* SPDX-License-Identifier: Apache-2.0 */
/* Print SQL answers as {"columns":[…],"rows":[[…],…]}. */
#ifndef TOOLS_SHOW_ROWS_JSON_H
#define TOOLS_SHOW_ROWS_JSON_H

#include "journal/base/buf.h"

#include <annal/query.h>

#define ROWS_BYTES_MAX ((size_t)64 << 20)

/* An answer: begin with {.out = …}; columns and rows are appended to it, then call
 * rows_json_end(). */
struct rows_json {
    struct buf *out;
    uint64_t limit; /* rows; 0: no limit */
    uint64_t count;
    bool begun;     /* the columns are written */
    bool truncated; /* rows were left out: beyond the limit, or too large */
};

/* Callbacks for annal_sql() and annal_state_sql(): options.columns, and fn. */
int rows_json_columns(void *arg, const annal_row *row);
int rows_json_row(void *arg, const annal_row *row);

/* Append "]" after the rows, or a whole answer without columns; more members may follow. */
annal_status rows_json_end(struct rows_json *rows);

/* Run one SELECT over the index: {"columns":…,"rows":…} without a line break. */
annal_status rows_json_ask(annal_index *index, const char *sql, const annal_value *params,
                           size_t param_count, struct buf *out, annal_error *err);

#endif
