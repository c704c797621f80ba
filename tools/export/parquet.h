/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer as a Parquet file, which DuckDB's library writes.
 *
 * (1) The file takes its name when it is whole, as target.h says.
 * (2) Memory does not grow with the answer. Rows are handed to DuckDB as it asks for them; a group
 *     of rows is written when it has ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes.
 * (3) No byte changes. Text that is not UTF-8, which Parquet has no text for, becomes a BLOB.
 */
#ifndef TOOLS_EXPORT_PARQUET_H
#define TOOLS_EXPORT_PARQUET_H

#include "tools/cli/fields.h"

#include <annal/query.h>

/* --format, which may be parquet here, and --to, which says where that goes; *out_path is NULL when
 * the answer is printed. */
#define PARQUET_FORMATS OUT_FORMATS "|parquet"
int parquet_args(const struct args *args, enum out_format *out_format, const char **out_path);

enum parquet_type {
    PARQUET_TEXT,
    PARQUET_INTEGER,
    PARQUET_REAL,
    PARQUET_BYTES,
    PARQUET_TIME /* of an integer: microseconds since 1970 */
};

struct parquet_column {
    const char *name; /* no two are the same, in whatever case */
    enum parquet_type type;
};

/* The next row, a value for each column, which lives until the next call; NULL: there is none. 0,
 * or an exit status after one sentence: then no file is made. A value of another kind than its
 * column is converted. */
typedef int (*parquet_next_fn)(void *arg, const annal_value **out_values);

struct parquet;

/* Find DuckDB, and make the file that is written aside; 0 or an exit status. */
int parquet_open(const char *path, struct parquet **out);

/* Write all rows, and put the file in its place. Once. */
int parquet_write(struct parquet *parquet, const struct parquet_column *columns, size_t count,
                  parquet_next_fn next, void *arg);

/* Instead: write the rows of other Parquet files, in their order, all of the same columns; proven,
 * before the file is put in its place, to be the same rows. */
int parquet_merge(struct parquet *parquet, const char *const *paths, size_t count);

/* Instead: write what SQL says of the rows of Parquet files, "SELECT … FROM f …", as lines of text
 * with | between the values, none of which has a | or a line end in it. proof (may be NULL): a
 * SELECT that runs before, and fails with error() if nothing is to be written. */
int parquet_lines(struct parquet *parquet, const char *const *paths, size_t count,
                  const char *proof, const char *sql);

/* Whether writing failed because there is no space. */
bool parquet_is_full(const struct parquet *parquet);

/* Where FILE will stand; lives until parquet_close(). */
const char *parquet_directory(const struct parquet *parquet);

/* NULL is accepted. */
void parquet_close(struct parquet *parquet);

/* ---- Rows whose types are not known before the last ---- */

/*
 * They wait in a file without a name in the directory of FILE, while their types are found. All
 * integers: BIGINT. Integers and reals: DOUBLE, unless that would change an integer. All blobs, and
 * where text is not UTF-8: BLOB. Everything else, and where all is NULL: VARCHAR, with blobs as
 * hexadecimal digits, as in CSV.
 */
struct parquet_rows;

int parquet_rows_new(const struct parquet *parquet, struct parquet_rows **out);
void parquet_rows_free(struct parquet_rows *rows);

/* For annal_sql(): options.columns, and fn. arg is a struct parquet_rows. */
int parquet_rows_columns(void *arg, const annal_row *row);
int parquet_rows_row(void *arg, const annal_row *row);

/* Then: parquet_write() of what was collected. */
int parquet_rows_write(struct parquet_rows *rows, struct parquet *parquet);

#endif
