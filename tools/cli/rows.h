/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a SQL answer, printed. */
#ifndef TOOLS_CLI_ROWS_H
#define TOOLS_CLI_ROWS_H

#include "tools/cli/out.h"

#include <annal/query.h>

/* Prints an answer of any shape as a table; begin with {.format = …}. */
struct rows {
    enum out_format format;
    bool unfold; /* see table_unfold() */
    struct table *table;
    struct column *columns;
    char **names;
    int count;
    bool begun;  /* there was a row */
    bool *typed; /* of each column: there was a value that is not NULL */
};

/* For annal_sql(): options.columns, and fn. arg is a struct rows. */
int rows_columns(void *arg, const annal_row *row);
int rows_row(void *arg, const annal_row *row);

/* The row for people, one column a line, empty ones left out; arg is not used. */
int rows_print_lines(void *arg, const annal_row *row);

/* Print what is left, and free. */
void rows_done(struct rows *rows);

/* One value as a cell of a table; as a count, people see "3,456". */
void rows_cell(struct table *table, const annal_value *value);
void rows_count_cell(struct table *table, const annal_value *value);

/* One value, or all members of a row without the braces, as JSON on stdout. */
void rows_print_value(const annal_value *value);
void rows_print_members(const annal_row *row);

/* The same, appended to a text. */
annal_status rows_value_json(struct buf *out, const annal_value *value);
annal_status rows_members_json(struct buf *out, const annal_row *row);

#endif
