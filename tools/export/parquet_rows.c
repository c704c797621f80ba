/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/json_halves.h"
#include "tools/cli/must.h"
#include "tools/cli/temporary.h"
#include "tools/export/parquet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The kinds of values that occur in a column. */
struct seen {
    bool integer, real, text, blob;
    bool wide; /* whether there is an integer that a real cannot represent */
    bool raw;  /* whether there is text that is not UTF-8 */
};

/*
 * Rows in a file. A value is written as its kind, then 8 bytes: the number, or the length of the
 * bytes that follow.
 */
struct parquet_rows {
    FILE *file;
    size_t count;
    struct parquet_column *columns;
    char **names;
    struct seen *seen;
    uint64_t rows;

    /* State while the rows are passed to the Parquet writer; given is the number of rows already
     * passed. */
    uint64_t given;
    annal_value *values;
    struct buf *bytes; /* bytes of the current row, for each column */
};

static int fail_io(const char *what)
{
    return fail_storage(
        "write a Parquet file: cannot %s the temporary file that holds the rows: %s", what,
        strerror(errno));
}

/* ---- The file ---- */

int parquet_rows_new(const struct parquet *parquet, struct parquet_rows **out)
{
    struct parquet_rows *rows = must_zalloc(sizeof *rows);
    rows->file = temporary_stream(parquet_directory(parquet));
    if (rows->file == NULL) {
        int exit_status = fail_io("create");
        annal__free(rows);
        return exit_status;
    }
    *out = rows;
    return 0;
}

void parquet_rows_free(struct parquet_rows *rows)
{
    if (rows == NULL)
        return;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->names != NULL)
            free(rows->names[i]);
        if (rows->bytes != NULL)
            annal__buf_done(&rows->bytes[i]);
    }
    fclose(rows->file);
    annal__free(rows->columns);
    annal__free(rows->names);
    annal__free(rows->seen);
    annal__free(rows->values);
    annal__free(rows->bytes);
    annal__free(rows);
}

/* ---- Names: DuckDB does not distinguish case, and refuses a name twice ---- */

static bool is_taken(const struct parquet_rows *rows, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(rows->names[i], name) == 0)
            return true;
    return false;
}

/* Return the name of column i: "x", or "x_1" if an earlier column is named "x". */
static char *name_column(const struct parquet_rows *rows, size_t i, const char *given)
{
    char *name = NULL;
    bool good = given[0] != '\0' && annal__json_is_utf8(annal_slice_of(given));
    must_true(good ? (name = strdup(given)) != NULL : asprintf(&name, "column_%zu", i + 1) >= 0);
    char *base = name;
    for (unsigned n = 1; is_taken(rows, i, name); n++) {
        if (name != base)
            free(name);
        must_true(asprintf(&name, "%s_%u", base, n) >= 0);
    }
    if (name != base)
        free(base);
    return name;
}

int parquet_rows_columns(void *arg, const annal_row *row)
{
    struct parquet_rows *rows = arg;
    rows->columns = must_zalloc(row->count * sizeof *rows->columns);
    rows->names = must_zalloc(row->count * sizeof *rows->names);
    rows->seen = must_zalloc(row->count * sizeof *rows->seen);
    rows->values = must_zalloc(row->count * sizeof *rows->values);
    rows->bytes = must_zalloc(row->count * sizeof *rows->bytes);
    rows->count = row->count;
    for (size_t i = 0; i < row->count; i++) {
        rows->names[i] = name_column(rows, i, row->names[i]);
        rows->columns[i].name = rows->names[i];
    }
    return 0;
}

/* ---- Types ---- */

/* Return whether a real represents the integer exactly. */
static bool fits_real(int64_t integer)
{
    return integer > INT64_MIN && integer < INT64_MAX - 1024 && (int64_t)(double)integer == integer;
}

/* Return whether a text is UTF-8 after half surrogate pairs in it are replaced. */
static bool is_readable(annal_slice text)
{
    SCOPED_BUF copy = {0};
    if (annal__json_is_utf8(text))
        return true;
    must_append_slice(&copy, text);
    annal__json_text_mend_halves(copy.ptr, copy.len);
    return annal__json_is_utf8(annal__buf_slice(&copy));
}

static void look(struct seen *seen, const annal_value *value)
{
    switch (value->kind) {
    case ANNAL_VALUE_INTEGER:
        seen->integer = true;
        seen->wide = seen->wide || !fits_real(value->integer);
        break;
    case ANNAL_VALUE_REAL:
        seen->real = true;
        break;
    case ANNAL_VALUE_TEXT:
        seen->text = true;
        seen->raw = seen->raw || !is_readable(value->bytes);
        break;
    case ANNAL_VALUE_BLOB:
        seen->blob = true;
        break;
    case ANNAL_VALUE_NULL:
        break;
    }
}

static enum parquet_type type_of(const struct seen *seen)
{
    bool number = seen->integer || seen->real;
    if (seen->raw || (seen->blob && !number && !seen->text))
        return PARQUET_BYTES;
    if (!number || seen->text || seen->blob || (seen->real && seen->wide))
        return PARQUET_TEXT;
    return seen->real ? PARQUET_REAL : PARQUET_INTEGER;
}

/* ---- Rows ---- */

static bool is_bytes(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_TEXT || value->kind == ANNAL_VALUE_BLOB;
}

static bool write_value(FILE *file, const annal_value *value)
{
    uint64_t len = value->bytes.len;
    const void *word = is_bytes(value)                   ? (const void *)&len
                       : value->kind == ANNAL_VALUE_REAL ? (const void *)&value->real
                                                         : (const void *)&value->integer;
    return putc((int)value->kind, file) != EOF && fwrite(word, sizeof len, 1, file) == 1 &&
           (!is_bytes(value) || len == 0 || fwrite(value->bytes.ptr, len, 1, file) == 1);
}

int parquet_rows_row(void *arg, const annal_row *row)
{
    struct parquet_rows *rows = arg;
    for (size_t i = 0; i < row->count; i++) {
        look(&rows->seen[i], &row->values[i]);
        if (!write_value(rows->file, &row->values[i]))
            return fail_io("write to");
    }
    rows->rows++;
    return 0;
}

static bool read_value(FILE *file, annal_value *value, struct buf *bytes)
{
    uint64_t len;
    int kind = getc(file);
    *value = (annal_value){.kind = (annal_value_kind)kind};
    if (kind == EOF || fread(&len, sizeof len, 1, file) != 1)
        return false;
    memcpy(&value->integer, &len, sizeof len);
    memcpy(&value->real, &len, sizeof len);
    if (!is_bytes(value))
        return true;
    annal__buf_clear(bytes);
    must_reserve(bytes, len);
    bytes->len = len;
    value->bytes = annal__buf_slice(bytes);
    return len == 0 || fread(bytes->ptr, len, 1, file) == 1;
}

static int next_row(void *arg, const annal_value **out_values)
{
    struct parquet_rows *rows = arg;
    if (rows->given == rows->rows)
        return 0;
    rows->given++;
    for (size_t i = 0; i < rows->count; i++)
        if (!read_value(rows->file, &rows->values[i], &rows->bytes[i]))
            return fail_io("read");
    *out_values = rows->values;
    return 0;
}

int parquet_rows_write(struct parquet_rows *rows, struct parquet *parquet)
{
    if (fflush(rows->file) != 0 || fseeko(rows->file, 0, SEEK_SET) != 0)
        return fail_io("write to");
    for (size_t i = 0; i < rows->count; i++)
        rows->columns[i].type = type_of(&rows->seen[i]);
    return parquet_write(parquet, rows->columns, rows->count, next_row, rows);
}
