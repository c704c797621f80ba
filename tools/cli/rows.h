/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the rows that a SELECT returns. */
#pragma once

#include "tools/cli/out.h"

#include <annal/query.h>

/* Rows with any columns, printed as a table; begin with {.format = …}. */
struct rows {
    enum out_format format;
    bool unfold; /* whether to call table_unfold() */
    struct table *table;
    struct column *columns;
    char **names;
    int count;
    bool begun;  /* whether a row was printed */
    bool *typed; /* for each column: whether a value that is not NULL was printed */
};

/* Callbacks for annal_index_sql(): rows_columns() for options.columns, rows_row() for fn. arg is a
 * struct rows. */
int rows_columns(void *arg, const annal_row *row);
int rows_row(void *arg, const annal_row *row);

/* Print a row for people, one column a line, without empty columns. arg is not used. */
int rows_print_lines(void *arg, const annal_row *row);

/* Print the rows that the table holds back, and free all members. */
void rows_done(struct rows *rows);

/* Add a value as a cell of a table; rows_count_cell() shows people a count as "3,456". */
void rows_cell(struct table *table, const annal_value *value);
void rows_count_cell(struct table *table, const annal_value *value);

/* Print JSON on stdout: rows_print_value() a value, rows_print_members() the members of a row as an
 * object without its braces. */
void rows_print_value(const annal_value *value);
void rows_print_members(const annal_row *row);

/* As rows_print_value() and rows_print_members(), but append the JSON to out. */
annal_status rows_value_json(struct buf *out, const annal_value *value);
annal_status rows_members_json(struct buf *out, const annal_row *row);
