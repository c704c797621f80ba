/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/catch_up.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/overdue.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/schema.h"
#include "tools/export/parquet.h"

#include <string.h>

static annal_status ask(const struct args *args, const annal_limits *limits, annal_index *index,
                        annal_row_fn columns, annal_row_fn row, void *arg, annal_error *err)
{
    const annal_sql_options options = {.columns = columns,
                                       .session = fields_text(args, "session"),
                                       .limits = *limits,
                                       .extension = args_get(args, "extension"),
                                       .damages = true};
    return annal_index_sql(index, annal_slice_of(args->operands[0]), &options, row, arg, err);
}

static int print_answer(const struct args *args, const annal_limits *limits, enum out_format format,
                        annal_index *index)
{
    annal_error err = {0};
    struct rows rows = {.format = format, .unfold = !args_has(args, "format")};
    annal_status status = ask(args, limits, index, rows_columns, rows_row, &rows, &err);
    rows_done(&rows);
    if (status < 0)
        return fields_fail_limited(&err);
    return status == ANNAL_END ? EXIT_DONE : (int)status;
}

static int write_answer(const struct args *args, const annal_limits *limits,
                        struct parquet *parquet, annal_index *index)
{
    annal_error err = {0};
    struct parquet_rows *rows = NULL;
    int exit_status = parquet_rows_new(parquet, &rows);
    if (exit_status == 0) {
        annal_status status =
            ask(args, limits, index, parquet_rows_columns, parquet_rows_row, rows, &err);
        exit_status = status < 0 ? fields_fail_limited(&err) : (int)status;
    }
    if (exit_status == 0)
        exit_status = parquet_rows_write(rows, parquet);
    parquet_rows_free(rows);
    return exit_status;
}

/* Run the commands of SQLite's shell that users may try: .tables, .schema, .schema TABLE. Return
 * the exit status. */
static int run_dot(const struct args *args)
{
    static const char schema[] = ".schema ";
    const char *word = args->operands[0];
    if (strcmp(word, ".tables") == 0 || strcmp(word, ".schema") == 0)
        return schema_print(args, NULL);
    if (strncmp(word, schema, strlen(schema)) == 0)
        return schema_print(args, word + strlen(schema));
    return fail_usage("'%s' is not SQL: of the commands of SQLite's shell, only .tables and "
                      ".schema TABLE work here",
                      word);
}

static int run(const struct args *args)
{
    enum out_format format = OUT_TABLE;
    const char *path = NULL;
    annal_store *store = NULL;
    annal_index *index = NULL;
    struct parquet *parquet = NULL;
    annal_limits limits = fields_limits(args);
    if (args->operands[0][0] == '.')
        return run_dot(args);
    int exit_status = parquet_args(args, &format, &path);
    if (exit_status == 0)
        overdue_watch(&limits);
    if (exit_status == 0 && path != NULL)
        exit_status = parquet_open(path, &parquet);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = catch_up_open(store, NULL, &index);
    if (exit_status == 0)
        exit_status = parquet != NULL ? write_answer(args, &limits, parquet, index)
                                      : print_answer(args, &limits, format, index);
    parquet_close(parquet);
    annal_index_close(index);
    return store_close(store, exit_status);
}

static const struct field fields[] = {
    OPERAND("\"SELECT ...\"", FIELD_TEXT, NULL, "one statement that only reads"),
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "output format (table)",
                .choices = PARQUET_FORMATS),
    OPTION("to", "FILE", FIELD_TEXT, NULL, "output file of --format parquet"),
    OPTION("session", "SESSION", FIELD_SESSION, NULL, "session whose pack databases are included"),
    OPTION("extension", "FILE", FIELD_TEXT, NULL,
           "loadable extension of SQLite, such as sqlite-vec"),
    LIMIT_OPTIONS,
    FIELDS_END};

const struct command cmd_sql = {.name = "sql",
                                .takes_sql = true,
                                .summary = "query the tables and the events in SQL",
                                HELP(sql),
                                .fields = fields,
                                .run = run};
