/* SPDX-License-Identifier: Apache-2.0 */
/* Print the rows of an SQL answer. */
#ifndef TOOLS_CLI_ROWS_H
#define TOOLS_CLI_ROWS_H

#include "tools/cli/out.h"

#include <annal/query.h>

/* An answer of any shape, printed as a table; begin with {.format = …}. */
struct rows {
    enum out_format format;
    bool unfold; /* see table_unfold() */
    struct table *table;
    struct column *columns;
    char **names;
    int count;
    bool begun;  /* a row was printed */
    bool *typed; /* for each column: a value that is not NULL was printed */
};

/* Callbacks for annal_sql(): options.columns, and fn. arg is a struct rows. */
int rows_columns(void *arg, const annal_row *row);
int rows_row(void *arg, const annal_row *row);

/* Print the row for people, one column a line, empty columns left out; arg is not used. */
int rows_print_lines(void *arg, const annal_row *row);

/* Print the held rows, and free. */
void rows_done(struct rows *rows);

/* Add one value as a cell of a table; as a count, people see "3,456". */
void rows_cell(struct table *table, const annal_value *value);
void rows_count_cell(struct table *table, const annal_value *value);

/* Print one value, or all members of a row without the braces, as JSON on stdout. */
void rows_print_value(const annal_value *value);
void rows_print_members(const annal_row *row);

/* Append the same to a text. */
annal_status rows_value_json(struct buf *out, const annal_value *value);
annal_status rows_members_json(struct buf *out, const annal_row *row);

#endif
