/* SPDX-License-Identifier: Apache-2.0 */
/* annal schema: the tables that SQL can query. */
#include "tools/cli/args.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/rows.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/schema.h"
#include "tools/show/schema_list.h"

#include <annal/query.h>

#include <string.h>

struct schema {
    const struct args *args;
    annal_index *index;
    struct table *table;
};

static int print_table(void *arg, const struct schema_table *table)
{
    struct schema *schema = arg;
    SCOPED_BUF columns = {0};
    table_text(schema->table, table->name);
    table_text(schema->table, table->kind);
    must_printf(&columns, "[%.*s]", ANNAL_FMT(table->columns_json));
    if (schema->args->json)
        table_json(schema->table, annal__buf_slice(&columns));
    else
        table_text(schema->table, table->columns);
    table_row(schema->table);
    return !out_wanted();
}

static int list_tables(struct schema *schema)
{
    static const struct column columns[] = {
        {.name = "table", .title = "TABLE"},
        {.name = "kind", .title = "KIND"},
        {.name = "columns", .title = "COLUMNS", .flexible = true},
    };
    annal_error err = {0};
    schema->table = table_new(schema->args->json ? OUT_JSONL : OUT_TABLE, columns, 3);
    annal_status status = schema_list(schema->index, print_table, schema, &err);
    table_free(schema->table);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

/* Print the columns of the table NAME or DATABASE.NAME. Return the exit status. */
static int list_columns(struct schema *schema, const char *name)
{
    const char *point = strchr(name, '.');
    const annal_value params[] = {
        {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(point == NULL ? name : point + 1)},
        {.kind = point == NULL ? ANNAL_VALUE_NULL : ANNAL_VALUE_TEXT,
         .bytes = {name, point == NULL ? 0 : (size_t)(point - name)}}};
    struct rows rows = {.format = schema->args->json ? OUT_JSONL : OUT_TABLE};
    const annal_sql_options options = {.params = params, .param_count = 2, .columns = rows_columns};
    annal_error err = {0};
    annal_status status = annal_index_sql(
        schema->index,
        ANNAL_SLICE("SELECT name AS column, type, NULLIF(pk, 0) AS key "
                    "FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid"),
        &options, rows_row, &rows, &err);
    bool found = rows.begun;
    rows_done(&rows);
    if (status < 0)
        return fail_error(&err);
    return found ? EXIT_DONE
                 : fail_refused("table '%s' does not exist: 'annal schema' lists the tables", name);
}

int schema_print(const struct args *args, const char *table)
{
    struct schema schema = {.args = args};
    annal_store *store = NULL;
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == EXIT_DONE)
        exit_status = catch_up_open_with_packs(store, &schema.index);
    if (exit_status == EXIT_DONE && table != NULL)
        exit_status = list_columns(&schema, table);
    else if (exit_status == EXIT_DONE)
        exit_status = list_tables(&schema);
    annal_index_close(schema.index);
    return store_close(store, out_finish(exit_status));
}

static int run(const struct args *args)
{
    return schema_print(args, args->operand_count > 0 ? args->operands[0] : NULL);
}

static const struct field fields[] = {
    OPERAND_MAYBE("TABLE", FIELD_TEXT, NULL, "table whose columns are listed (all tables)"),
    FIELDS_END};

const struct command cmd_schema = {
    COMMAND("schema", "list the tables that SQL can query, or the columns of a table", schema,
            fields, run)};
