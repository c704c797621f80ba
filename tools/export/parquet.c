/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/parquet.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "journal/base/json_halves.h"
#include "tools/cli/must.h"
#include "tools/cli/target.h"
#include "tools/export/duckdb.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* DuckDB requests a chunk at a time: 2,048 rows, or fewer if they have CHUNK_BYTES. */
enum { CHUNK_BYTES = 4 << 20, ROW_GROUP_ROWS = 122880 };
#define ROW_GROUP_BYTES "32MB"
/* DuckDB's memory; a row with several values of 64 MiB may need more, and is refused */
#define MEMORY_LIMIT "2GB"

struct parquet {
    duckdb_database database;
    duckdb_connection connection;
    struct aside aside;

    /* State while rows are written. */
    const struct parquet_column *columns;
    size_t count;
    parquet_next_fn next;
    void *arg;
    struct buf text; /* a value that is not text, converted to text */
    size_t chunk_bytes;
    int exit_status;
    bool is_full;
    bool is_read; /* whether rows are read from Parquet files */
};

/* ---- The command line ---- */

enum { PARQUET_CHOICE = 3 }; /* index of "parquet" in PARQUET_FORMATS */

int parquet_args(const struct args *args, enum out_format *out_format, const char **out_path)
{
    const char *path = args_get(args, "to");
    bool parquet = fields_choice(args, "format") == PARQUET_CHOICE;
    *out_path = parquet ? path : NULL;
    if (!parquet && path != NULL)
        return fail_usage("--to needs --format parquet; other formats are printed");
    if (!parquet)
        return fields_format(args, out_format);
    if (args->json)
        return fail_usage("--json and --format parquet cannot be used together");
    return path != NULL ? 0 : fail_usage("--format parquet needs --to FILE: it cannot be printed");
}

/* ---- DuckDB ---- */

static int open_database(struct parquet *parquet)
{
    /* DuckDB must download nothing, and write only this file. With one thread rows keep their
     * order. */
    static const char *const settings[][2] = {{"threads", "1"},
                                              {"memory_limit", MEMORY_LIMIT},
                                              {"preserve_insertion_order", "false"},
                                              {"temp_directory", ""},
                                              {"autoinstall_known_extensions", "false"},
                                              {"autoload_known_extensions", "false"}};
    duckdb_config config = NULL;
    char *error = NULL;
    bool good = duckdb.create_config(&config) == 0;
    for (size_t i = 0; good && i < sizeof settings / sizeof settings[0]; i++)
        good = duckdb.set_config(config, settings[i][0], settings[i][1]) == 0;
    good = good && duckdb.open_ext(NULL, &parquet->database, config, &error) == 0 &&
           duckdb.connect(parquet->database, &parquet->connection) == 0;
    int exit_status = good ? 0
                           : fail_storage("DuckDB %s does not start: %s", duckdb.library_version(),
                                          error != NULL ? error : "it refuses the settings");
    if (error != NULL)
        duckdb.free(error);
    duckdb.destroy_config(&config);
    return exit_status;
}

int parquet_open(const char *path, struct parquet **out)
{
    /* descriptor of the new file; only closed here, because DuckDB opens the file by its name */
    int fd = -1;
    struct parquet *parquet = must_zalloc(sizeof *parquet);
    int exit_status = duckdb_load();
    if (exit_status != 0)
        goto done;
    exit_status = target_aside_begin(&parquet->aside, path, &fd);
    if (exit_status == 0)
        exit_status = open_database(parquet);
    if (exit_status != 0)
        goto done;
    *out = parquet;
    parquet = NULL; /* the caller owns it now: the code below must not free it */

done:
    if (fd >= 0)
        close(fd);
    parquet_close(parquet);
    return exit_status;
}

void parquet_close(struct parquet *parquet)
{
    if (parquet == NULL)
        return;
    if (parquet->connection != NULL)
        duckdb.disconnect(&parquet->connection);
    if (parquet->database != NULL)
        duckdb.close(&parquet->database);
    target_aside_done(&parquet->aside);
    annal__buf_done(&parquet->text);
    annal__free(parquet);
}

static int type_of(enum parquet_type type)
{
    static const int types[] = {[PARQUET_TEXT] = DUCKDB_VARCHAR,
                                [PARQUET_INTEGER] = DUCKDB_BIGINT,
                                [PARQUET_REAL] = DUCKDB_DOUBLE,
                                [PARQUET_BYTES] = DUCKDB_BLOB,
                                [PARQUET_TIME] = DUCKDB_TIMESTAMP_TZ};
    return types[type];
}

static void bind_columns(duckdb_bind_info info)
{
    const struct parquet *parquet = duckdb.bind_get_extra_info(info);
    for (size_t i = 0; i < parquet->count; i++) {
        duckdb_logical_type type = duckdb.create_logical_type(type_of(parquet->columns[i].type));
        duckdb.bind_add_result_column(info, parquet->columns[i].name, type);
        duckdb.destroy_logical_type(&type);
    }
}

static void one_thread(duckdb_init_info info)
{
    duckdb.init_set_max_threads(info, 1);
}

/* ---- Values ---- */

/* Convert a value that is not text to text, for a column of text or of bytes. */
static void write_text(struct buf *text, const annal_value *value)
{
    char number[REAL_BYTES];
    annal__buf_clear(text);
    if (value->kind == ANNAL_VALUE_BLOB)
        must_status(annal__hex_append(text, value->bytes));
    else if (value->kind == ANNAL_VALUE_INTEGER)
        must_printf(text, "%" PRId64, value->integer);
    else
        must_append_text(text, isfinite(value->real) ? table_real_text(number, value->real)
                               : value->real > 0     ? "Infinity"
                                                     : "-Infinity");
}

static int put_bytes(struct parquet *parquet, size_t column, idx_t row, duckdb_vector vector,
                     const annal_value *value)
{
    annal_slice bytes = value->bytes;
    bool is_text = parquet->columns[column].type == PARQUET_TEXT;
    if (value->kind != ANNAL_VALUE_TEXT && (value->kind != ANNAL_VALUE_BLOB || is_text)) {
        write_text(&parquet->text, value);
        bytes = annal__buf_slice(&parquet->text);
    }
    if (is_text && !annal__json_is_utf8(bytes)) {
        annal__buf_clear(&parquet->text);
        must_append_slice(&parquet->text, bytes);
        annal__json_text_mend_halves(parquet->text.ptr, parquet->text.len);
        bytes = annal__buf_slice(&parquet->text);
    }
    /* Refuse text that is not UTF-8, because DuckDB would write NULL. */
    if (is_text && !annal__json_is_utf8(bytes))
        return fail_refused("write the Parquet file '%s': a value of the column '%s' is not UTF-8",
                            parquet->aside.path, parquet->columns[column].name);
    duckdb.vector_assign_string_element_len(vector, row, bytes.len > 0 ? bytes.ptr : "", bytes.len);
    parquet->chunk_bytes += bytes.len;
    return 0;
}

static int put_value(struct parquet *parquet, size_t column, idx_t row, duckdb_vector vector,
                     const annal_value *value)
{
    if (value->kind == ANNAL_VALUE_NULL) {
        duckdb.vector_ensure_validity_writable(vector);
        duckdb.validity_set_row_invalid(duckdb.vector_get_validity(vector), row);
        return 0;
    }
    switch (parquet->columns[column].type) {
    case PARQUET_INTEGER:
    case PARQUET_TIME:
        ((int64_t *)duckdb.vector_get_data(vector))[row] = value->integer;
        return 0;
    case PARQUET_REAL:
        ((double *)duckdb.vector_get_data(vector))[row] =
            value->kind == ANNAL_VALUE_INTEGER ? (double)value->integer : value->real;
        return 0;
    case PARQUET_TEXT:
    case PARQUET_BYTES:
        break;
    }
    return put_bytes(parquet, column, row, vector, value);
}

/* Give DuckDB the next rows; a chunk without rows means the end. */
static void give_rows(duckdb_function_info info, duckdb_data_chunk output)
{
    struct parquet *parquet = duckdb.function_get_extra_info(info);
    idx_t rows = 0;
    int exit_status = 0;
    parquet->chunk_bytes = 0;
    while (exit_status == 0 && rows < duckdb.vector_size() && parquet->chunk_bytes < CHUNK_BYTES) {
        const annal_value *values = NULL;
        exit_status = parquet->next(parquet->arg, &values);
        if (exit_status != 0 || values == NULL)
            break;
        for (size_t i = 0; exit_status == 0 && i < parquet->count; i++)
            exit_status =
                put_value(parquet, i, rows, duckdb.data_chunk_get_vector(output, i), &values[i]);
        rows++;
    }
    parquet->exit_status = exit_status;
    if (exit_status != 0)
        duckdb.function_set_error(info, "the rows end early");
    duckdb.data_chunk_set_size(output, rows);
}

/* ---- Writing ---- */

static int register_rows(struct parquet *parquet)
{
    duckdb_table_function function = duckdb.create_table_function();
    duckdb.table_function_set_name(function, "annal_rows");
    duckdb.table_function_set_extra_info(function, parquet, NULL);
    duckdb.table_function_set_bind(function, bind_columns);
    duckdb.table_function_set_init(function, one_thread);
    duckdb.table_function_set_function(function, give_rows);
    bool good = duckdb.register_table_function(parquet->connection, function) == 0;
    duckdb.destroy_table_function(&function);
    return good ? 0
                : fail_storage("DuckDB %s refuses to register a table function",
                               duckdb.library_version());
}

static void add_quoted(struct buf *sql, const char *path)
{
    must_append(sql, "'", 1);
    for (const char *c = path; *c != '\0'; c++)
        must_append(sql, *c == '\'' ? "\'\'" : c, *c == '\'' ? 2 : 1);
    must_append(sql, "'", 1);
}

static void write_copy(struct buf *sql, const char *from, const char *path)
{
    must_printf(sql, "COPY (SELECT * FROM %s) TO ", from);
    add_quoted(sql, path);
    must_printf(sql,
                " (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, "
                "ROW_GROUP_SIZE %d, ROW_GROUP_SIZE_BYTES '%s')",
                ROW_GROUP_ROWS, ROW_GROUP_BYTES);
}

static int run(struct parquet *parquet, struct buf *sql)
{
    duckdb_result result = {0};
    bool good = duckdb.query(parquet->connection, must_cstr(sql), &result) == 0;
    int exit_status = parquet->exit_status;
    if (!good && exit_status == 0) {
        const char *why = duckdb.result_error(&result);
        why = why != NULL ? why : "no reason";
        /* DuckDB reports a full disk only in its message */
        parquet->is_full = strstr(why, strerror(ENOSPC)) != NULL;
        int len = (int)strcspn(why, "\n"); /* the first line; the others are advice */
        exit_status = parquet->is_read ? fail_storage("read a Parquet file: DuckDB: %.*s", len, why)
                                       : fail_storage("write the Parquet file '%s': DuckDB: %.*s",
                                                      parquet->aside.path, len, why);
    }
    duckdb.destroy_result(&result);
    return exit_status;
}

static int copy_rows(struct parquet *parquet, const char *from)
{
    SCOPED_BUF sql = {0};
    write_copy(&sql, from, parquet->aside.name);
    return run(parquet, &sql);
}

static void write_call(struct buf *out, const char *function, const char *const *paths,
                       size_t count)
{
    must_printf(out, "%s([", function);
    for (size_t i = 0; i < count; i++) {
        must_append(out, ",", i > 0);
        add_quoted(out, paths[i]);
    }
}

static void write_files(struct buf *out, const char *const *paths, size_t count)
{
    write_call(out, "read_parquet", paths, count);
    must_printf(out, "], hive_partitioning = false)");
}

/* Write a SELECT that calls error() if the files say that they have more rows: a small file may
 * claim very many, and reading them may take hours. */
static void write_row_limit(struct buf *out, const char *const *paths, size_t count,
                            uint64_t rows_max)
{
    must_printf(out,
                "SELECT CASE WHEN sum(num_rows) > %" PRIu64
                " THEN error('the files have more rows than the manifests of the lake "
                "say') END FROM ",
                rows_max);
    write_call(out, "parquet_file_metadata", paths, count);
    must_printf(out, "]); ");
}

/* Check that the merged file has the same rows as the files `from`, by their number and by the sum
 * of their hashes, which does not depend on the order. */
static int prove_merge(struct parquet *parquet, const char *from)
{
    SCOPED_BUF sql = {0}, made = {0};
    write_files(&made, (const char *const[]){parquet->aside.name}, 1);
    must_printf(&sql,
                "SELECT CASE WHEN (SELECT (count(*), sum(hash(f)::HUGEINT)) FROM %s f) = (SELECT "
                "(count(*), sum(hash(f)::HUGEINT)) FROM %s f) THEN 1 ELSE error('other rows') END",
                from, made.ptr);
    return run(parquet, &sql);
}

int parquet_merge(struct parquet *parquet, const char *const *paths, size_t count)
{
    SCOPED_BUF from = {0};
    write_files(&from, paths, count);
    int exit_status = copy_rows(parquet, from.ptr);
    if (exit_status == 0)
        exit_status = prove_merge(parquet, from.ptr);
    return exit_status == 0 ? target_aside_finish(&parquet->aside) : exit_status;
}

int parquet_lines(struct parquet *parquet, const char *const *paths, size_t count,
                  uint64_t rows_max, const char *proof, const char *sql)
{
    SCOPED_BUF from = {0}, copy = {0};
    write_files(&from, paths, count);
    parquet->is_read = true;
    write_row_limit(&copy, paths, count, rows_max);
    if (proof != NULL)
        must_printf(&copy, "WITH f AS (SELECT * FROM %s) %s; ", from.ptr, proof);
    must_printf(&copy, "COPY (WITH f AS (SELECT * FROM %s) %s) TO ", from.ptr, sql);
    add_quoted(&copy, parquet->aside.name);
    must_printf(&copy, " (FORMAT csv, HEADER false, DELIMITER '|', QUOTE '', "
                       "ESCAPE '', USE_TMP_FILE false)");
    int exit_status = run(parquet, &copy);
    return exit_status == 0 ? target_aside_finish(&parquet->aside) : exit_status;
}

int parquet_write(struct parquet *parquet, const struct parquet_column *columns, size_t count,
                  parquet_next_fn next, void *arg)
{
    parquet->columns = columns;
    parquet->count = count;
    parquet->next = next;
    parquet->arg = arg;
    int exit_status = register_rows(parquet);
    if (exit_status == 0)
        exit_status = copy_rows(parquet, "annal_rows()");
    return exit_status == 0 ? target_aside_finish(&parquet->aside) : exit_status;
}

bool parquet_is_full(const struct parquet *parquet)
{
    return parquet != NULL && parquet->is_full;
}

const char *parquet_directory(const struct parquet *parquet)
{
    return parquet->aside.directory;
}
