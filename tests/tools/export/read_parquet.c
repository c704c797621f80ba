/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_parquet SQL FILE OUT: write DuckDB's answer to SQL as lines of OUT, with | between values.
 * FILE is the table f, and with file_row_number the table rows.
 *
 * A program of its own, so that DuckDB does not run under Valgrind, and its threads die with it.
 */
#include "tools/export/duckdb.h"

#include <stdio.h>
#include <stdlib.h>

enum { SQL_BYTES = 8192, PATH_BYTES = 4096 };

static void ask(duckdb_connection connection, const char *sql)
{
    duckdb_result result = {0};
    if (duckdb.query(connection, sql, &result) != 0) {
        fprintf(stderr, "%s: %s\n", sql, duckdb.result_error(&result));
        exit(EXIT_FAILURE);
    }
    duckdb.destroy_result(&result);
}

/* path between quotes, for SQL. */
static void quote(char out[PATH_BYTES], const char *path)
{
    char *to = out;
    *to++ = '\'';
    for (; *path != '\0' && to + 4 < out + PATH_BYTES; path++) {
        if (*path == '\'')
            *to++ = '\'';
        *to++ = *path;
    }
    *to++ = '\'';
    *to = '\0';
}

int main(int argc, char **argv)
{
    char sql[SQL_BYTES], file[PATH_BYTES], out[PATH_BYTES];
    duckdb_config config = NULL;
    duckdb_database database = NULL;
    duckdb_connection connection = NULL;
    if (argc != 4 || duckdb_load() != 0 || duckdb.create_config(&config) != 0 ||
        duckdb.set_config(config, "threads", "1") != 0 ||
        duckdb.open_ext(NULL, &database, config, NULL) != 0 ||
        duckdb.connect(database, &connection) != 0)
        return EXIT_FAILURE;
    duckdb.destroy_config(&config);
    quote(file, argv[2]);
    quote(out, argv[3]);
    snprintf(sql, sizeof sql, "CREATE VIEW f AS SELECT * FROM read_parquet(%s)", file);
    ask(connection, sql);
    snprintf(sql, sizeof sql,
             "CREATE VIEW rows AS SELECT * FROM read_parquet(%s, file_row_number = true)", file);
    ask(connection, sql);
    snprintf(sql, sizeof sql,
             "COPY (%s) TO %s (FORMAT csv, HEADER false, DELIMITER '|', QUOTE '', ESCAPE '', "
             "NULLSTR 'NULL')",
             argv[1], out);
    ask(connection, sql);
    duckdb.disconnect(&connection);
    duckdb.close(&database);
    return EXIT_SUCCESS;
}
