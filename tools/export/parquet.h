/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQL answer as a Parquet file, which DuckDB's library writes.
 *
 * (1) The file is renamed to its name when it is complete (target.h).
 * (2) Memory does not grow with the answer. DuckDB requests rows in chunks; a row group is written
 *     when it has ROW_GROUP_ROWS rows or ROW_GROUP_BYTES bytes.
 * (3) No byte changes. Text that is not UTF-8 becomes a BLOB, because text in Parquet is UTF-8.
 */
#ifndef TOOLS_EXPORT_PARQUET_H
#define TOOLS_EXPORT_PARQUET_H

#include "tools/cli/fields.h"

#include <annal/query.h>

/* Read --format, which may be parquet here, and --to, its file; *out_path is NULL if the answer is
 * printed. */
#define PARQUET_FORMATS OUT_FORMATS "|parquet"
int parquet_args(const struct args *args, enum out_format *out_format, const char **out_path);

enum parquet_type {
    PARQUET_TEXT,
    PARQUET_INTEGER,
    PARQUET_REAL,
    PARQUET_BYTES,
    PARQUET_TIME /* an integer: microseconds since 1970 */
};

struct parquet_column {
    const char *name; /* unique, in any case of letters */
    enum parquet_type type;
};

/* Return the next row, a value for each column, which is valid until the next call; NULL at the
 * end. 0, or an exit status after one sentence: then no file is created. A value of another kind
 * than its column is converted. */
typedef int (*parquet_next_fn)(void *arg, const annal_value **out_values);

struct parquet;

/* Load DuckDB, and create the partial file; 0 or an exit status. */
int parquet_open(const char *path, struct parquet **out);

/* Write all rows, and rename the file. Call it once. */
int parquet_write(struct parquet *parquet, const struct parquet_column *columns, size_t count,
                  parquet_next_fn next, void *arg);

/* Instead of parquet_write(): write the rows of other Parquet files, in their order, all with the
 * same columns. The rows are proved to be the same before the file is renamed. */
int parquet_merge(struct parquet *parquet, const char *const *paths, size_t count);

/* Instead of parquet_write(): write the answer of SQL over the rows of Parquet files, "SELECT …
 * FROM f …", as lines of text with | between the values, none of which contains a | or a line
 * end. proof (may be NULL): a SELECT that runs before, and fails with error() if nothing may be
 * written. */
int parquet_lines(struct parquet *parquet, const char *const *paths, size_t count,
                  const char *proof, const char *sql);

/* Return whether writing failed because the disk is full. */
bool parquet_is_full(const struct parquet *parquet);

/* Return the final path of FILE; valid until parquet_close(). */
const char *parquet_directory(const struct parquet *parquet);

/* Accepts NULL. */
void parquet_close(struct parquet *parquet);

/* ---- Rows whose types are not known before the last ---- */

/*
 * The rows wait in a file without a name in the directory of FILE until their types are known. All
 * integers: BIGINT. Integers and reals: DOUBLE, unless that would change an integer. All blobs, or
 * text that is not UTF-8: BLOB. Everything else, and a column of only NULL: VARCHAR, with blobs as
 * hexadecimal digits, as in CSV.
 */
struct parquet_rows;

int parquet_rows_new(const struct parquet *parquet, struct parquet_rows **out);
void parquet_rows_free(struct parquet_rows *rows);

/* Callbacks for annal_sql(): options.columns, and fn. arg is a struct parquet_rows. */
int parquet_rows_columns(void *arg, const annal_row *row);
int parquet_rows_row(void *arg, const annal_row *row);

/* Call parquet_write() with the collected rows. */
int parquet_rows_write(struct parquet_rows *rows, struct parquet *parquet);

#endif
