/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/schema_list.h"

#include "journal/base/buf.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"

struct schema {
    annal_index *index;
    struct buf names, json; /* columns of the current table, for schema_table */
    schema_fn fn;
    void *arg;
};

static int add_column(void *arg, const annal_row *row)
{
    struct schema *schema = arg;
    bool first = schema->names.len == 0;
    annal_slice name = row->values[0].bytes;
    annal_status status =
        annal__buf_printf(&schema->names, "%s%.*s", first ? "" : ", ", ANNAL_FMT(name));
    return status < 0
               ? status
               : annal__json_put(&schema->json, "#{\"name\":?,\"type\":?}",
                                 annal_slice_of(first ? "" : ","), name, row->values[1].bytes);
}

/* Read the columns of one table, whose row has database, name and kind, and pass it to fn. */
static int add_table(void *arg, const annal_row *row)
{
    struct schema *schema = arg;
    SCOPED_BUF name = {0};
    const annal_value params[] = {row->values[1], row->values[0]};
    const annal_sql_options options = {.params = params, .param_count = 2};
    annal_slice database = row->values[0].bytes;
    bool plain = annal__slice_is(database, "main") || annal__slice_is(database, "temp");
    annal__buf_clear(&schema->names);
    annal__buf_clear(&schema->json);
    annal_status status = annal_index_sql(
        schema->index,
        ANNAL_SLICE("SELECT name, type FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1"),
        &options, add_column, schema, NULL);
    if (status == ANNAL_ERR_SQL) {
        annal__buf_clear(&schema->names);
        annal__buf_clear(&schema->json);
    }
    status = annal__buf_printf(&name, "%.*s%s%.*s", plain ? 0 : (int)database.len, database.ptr,
                               plain ? "" : ".", ANNAL_FMT(row->values[1].bytes));
    int verdict = status;
    if (status >= 0)
        verdict = schema->fn(
            schema->arg, &(struct schema_table){.name = annal__buf_slice(&name),
                                                .kind = row->values[2].bytes,
                                                .columns = annal__buf_slice(&schema->names),
                                                .columns_json = annal__buf_slice(&schema->json)});
    return verdict;
}

/* The table events is listed by a constant row, because SQLite creates it only when a statement
 * uses it. */
annal_status schema_list(annal_index *index, schema_fn fn, void *arg, annal_error *err)
{
    struct schema schema = {.index = index, .fn = fn, .arg = arg};
    annal_status status = annal_index_sql(
        index,
        ANNAL_SLICE("SELECT 'main', 'events', 'virtual', 0 AS place UNION ALL "
                    "SELECT schema, name, type, 1 + (schema NOT IN ('main', 'temp')) "
                    "FROM pragma_table_list WHERE type IN ('table', 'view', 'virtual')"
                    " AND name NOT GLOB '_*' AND name NOT GLOB 'sqlite_*' AND name <> 'events' "
                    "ORDER BY 4, 1, 2"),
        NULL, add_table, &schema, err);
    annal__buf_done(&schema.names);
    annal__buf_done(&schema.json);
    return status;
}
