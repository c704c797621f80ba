/* annal schema: what SQL can ask for. */
#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "tools/cli/args.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/open.h"
#include "tools/cli/rows.h"
#include "tools/cmd/schema.h"

#include <annal/query.h>

struct schema {
    const struct args *args;
    annal_index *index;
    struct table *table;
    struct buf columns; /* of one table: names, or JSON objects */
    uint64_t found;
};

static int add_column(void *arg, const annal_row *row)
{
    struct schema *schema = arg;
    struct buf *out = &schema->columns;
    const char *comma = out->len == 0 ? "" : schema->args->json ? "," : ", ";
    annal_status status = annal__buf_printf(out, "%s", comma);
    if (!schema->args->json)
        return status < 0 ? status : annal__buf_append_slice(out, row->values[0].bytes);
    if (status >= 0)
        status = annal__buf_printf(out, "{\"name\":");
    if (status >= 0)
        status = annal__json_quote(out, row->values[0].bytes);
    if (status >= 0)
        status = annal__buf_printf(out, ",\"type\":");
    if (status >= 0)
        status = annal__json_quote(out, row->values[1].bytes);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}

/* Database, name, kind. A view over tables that are not there has no columns. */
static int print_table(void *arg, const annal_row *row)
{
    struct schema *schema = arg;
    struct buf name = {0}, columns = {0};
    const annal_value params[] = {row->values[1], row->values[0]};
    const annal_sql_options options = {.params = params, .param_count = 2};
    annal_slice database = row->values[0].bytes;
    bool plain = annal__slice_is(database, "main") || annal__slice_is(database, "temp");
    annal__buf_clear(&schema->columns);
    annal_status status = annal_sql(
        schema->index,
        ANNAL_SLICE("SELECT name, type FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1"),
        &options, add_column, schema, NULL);
    if (status == ANNAL_ERR_SQL)
        annal__buf_clear(&schema->columns);
    status = annal__buf_printf(&name, "%.*s%s%.*s", plain ? 0 : (int)database.len, database.ptr,
                               plain ? "" : ".", ANNAL_FMT(row->values[1].bytes));
    if (status >= 0 && schema->args->json)
        status = annal__buf_printf(&columns, "[%.*s]", (int)schema->columns.len,
                                   schema->columns.len == 0 ? "" : schema->columns.ptr);
    if (status >= 0) {
        schema->found++;
        table_text(schema->table, annal__buf_slice(&name));
        table_text(schema->table, row->values[2].bytes);
        if (schema->args->json)
            table_json(schema->table, annal__buf_slice(&columns));
        else
            table_text(schema->table, annal__buf_slice(&schema->columns));
        table_row(schema->table);
    }
    annal__buf_done(&name);
    annal__buf_done(&columns);
    return status < 0 ? status : !out_wanted();
}

/* The table events is made when a statement names it, so no list has it before. */
static int list_tables(struct schema *schema)
{
    static const struct column columns[] = {
        {.name = "table", .title = "TABLE"},
        {.name = "kind", .title = "KIND"},
        {.name = "columns", .title = "COLUMNS", .flexible = true},
    };
    annal_error err = {0};
    schema->table = table_new(schema->args->json ? OUT_JSONL : OUT_TABLE, columns, 3);
    if (schema->table == NULL)
        return fail_storage("out of memory");
    annal_status status = annal_sql(
        schema->index,
        ANNAL_SLICE("SELECT 'main', 'events', 'virtual', 0 AS place UNION ALL "
                    "SELECT schema, name, type, 1 + (schema NOT IN ('main', 'temp')) "
                    "FROM pragma_table_list WHERE type IN ('table', 'view', 'virtual')"
                    " AND name NOT GLOB '_*' AND name NOT GLOB 'sqlite_*' AND name <> 'events' "
                    "ORDER BY 4, 1, 2"),
        NULL, print_table, schema, &err);
    table_free(schema->table);
    annal__buf_done(&schema->columns);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

/* NAME, or DATABASE.NAME. */
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
    annal_status status =
        annal_sql(schema->index,
                  ANNAL_SLICE("SELECT name AS column, type, NULLIF(pk, 0) AS key "
                              "FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid"),
                  &options, rows_row, &rows, &err);
    bool found = rows.begun;
    rows_done(&rows);
    if (status < 0)
        return fail_error(&err);
    return found ? EXIT_DONE
                 : fail_refused("there is no table '%s': 'annal schema' lists them", name);
}

int schema_print(const struct args *args, const char *table)
{
    struct schema schema = {.args = args};
    annal_store *store = NULL;
    int exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == EXIT_DONE)
        exit_status = index_open_with_packs(store, &schema.index);
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

static const struct field fields[] = {OPERAND_MAYBE("TABLE", FIELD_TEXT, NULL, "whose columns"),
                                      FIELDS_END};

const struct command cmd_schema = {
    .name = "schema",
    .summary = "list the tables that SQL can ask, or the columns of one",
    .about = "Tables and views of the index, then those of the store's packs, with their\n"
             "columns. 'annal sql' and 'annal query --where' ask them.",
    .examples = "  annal schema\n"
                "  annal schema tool_calls\n"
                "  annal schema state.teams --json\n",
    .fields = fields,
    .run = run};
