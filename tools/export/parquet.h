/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes rows of SQL to a Parquet file, with DuckDB's library.
 *
 * (1) The file is renamed to its name when it is complete (target.h).
 * (2) Memory does not grow with the number of rows. DuckDB requests rows in chunks; a row group is
 *     written when it has ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes.
 * (3) No byte changes. Text that is not UTF-8 becomes a BLOB, because text in Parquet must be
 *     UTF-8.
 */
#pragma once

#include "tools/cli/fields.h"

#include <annal/query.h>

/* Read --format, which may also be parquet, and --to, its file. *out_path is NULL if the rows are
 * to be printed. Returns 0 or an exit status. */
#define PARQUET_FORMATS OUT_FORMATS "|parquet"
int parquet_args(const struct args *args, enum out_format *out_format, const char **out_path);

enum parquet_type {
    PARQUET_TEXT,
    PARQUET_INTEGER,
    PARQUET_REAL,
    PARQUET_BYTES,
    PARQUET_TIME /* an integer: us since 1970 */
};

struct parquet_column {
    const char *name; /* must be unique, even if upper and lower case are not distinguished */
    enum parquet_type type;
};

/* Set *out_values to the next row, with a value for each column, valid until the next call; leave
 * it NULL after the last row. Return 0, or an exit status after one line on stderr: then no file is
 * created. A value of another kind than its column is converted. */
typedef int (*parquet_next_fn)(void *arg, const annal_value **out_values);

struct parquet;

/* Load DuckDB, and create the partial file. Returns 0 or an exit status. */
int parquet_open(const char *path, struct parquet **out);

/* Write all rows, and rename the file. Call it once. Returns 0 or an exit status. */
int parquet_write(struct parquet *parquet, const struct parquet_column *columns, size_t count,
                  parquet_next_fn next, void *arg);

/* In place of parquet_write(): write the rows of other Parquet files with the same columns, in the
 * order of the files. The file is renamed only if it proves to have the same rows. */
int parquet_merge(struct parquet *parquet, const char *const *paths, size_t count);

/* In place of parquet_write(): run an SQL statement "SELECT … FROM f …" on the rows of Parquet
 * files, and write its rows as lines of text with | between the values, which must not contain | or
 * a line break. The files must say that they have at most rows_max rows. proof (may be NULL) is a
 * SELECT that runs first, and calls error() if nothing may be written. */
int parquet_lines(struct parquet *parquet, const char *const *paths, size_t count,
                  uint64_t rows_max, const char *proof, const char *sql);

/* Return whether writing failed because the disk is full. */
bool parquet_is_full(const struct parquet *parquet);

/* Return the directory of the file; valid until parquet_close(). */
const char *parquet_directory(const struct parquet *parquet);

/* Accepts NULL. */
void parquet_close(struct parquet *parquet);

/* ---- Rows whose types are not known before the last ---- */

/*
 * Rows wait in an unnamed file, in the directory of the Parquet file, until the types of their
 * columns are known. A column of integers is BIGINT. Integers and reals are DOUBLE, unless that
 * would change an integer. Blobs, or text that is not UTF-8, are BLOB. Everything else, and a
 * column of NULL only, is VARCHAR, with blobs as hexadecimal digits, as in CSV.
 */
struct parquet_rows;

int parquet_rows_new(const struct parquet *parquet, struct parquet_rows **out);
void parquet_rows_free(struct parquet_rows *rows);

/* Callbacks for annal_index_sql(): parquet_rows_columns() for options.columns, parquet_rows_row()
 * for fn. arg is a struct parquet_rows. */
int parquet_rows_columns(void *arg, const annal_row *row);
int parquet_rows_row(void *arg, const annal_row *row);

/* Call parquet_write() with the collected rows. Returns its exit status. */
int parquet_rows_write(struct parquet_rows *rows, struct parquet *parquet);
