#include "tools/args.h"
#include "tools/catch_up.h"
#include "tools/open.h"
#include "tools/rows.h"

static int print_answer(const struct args *args, enum out_format format, annal_index *index)
{
    annal_error err = {0};
    struct rows rows = {.format = format};
    const char *session = args_get(args, "session");
    const annal_sql_options options = {.columns = rows_columns,
                                       .as_indexed = session == NULL,
                                       .session = annal_slice_of(session),
                                       .extension = args_get(args, "extension")};
    annal_status status =
        annal_sql(index, annal_slice_of(args->operands[0]), &options, rows_row, &rows, &err);
    rows_done(&rows);
    if (status < 0)
        return fail_error(&err);
    return status == ANNAL_END ? EXIT_DONE : (int)status;
}

static int run(const struct args *args)
{
    enum out_format format = OUT_TABLE;
    annal_store *store = NULL;
    annal_index *index = NULL;
    int exit_status = args_format(args, &format);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &store);
    if (exit_status == 0)
        exit_status = index_open_caught_up(store, NULL, &index);
    if (exit_status == 0)
        exit_status = print_answer(args, format, index);
    annal_index_close(index);
    return store_close(store, exit_status);
}

static const struct option options[] = {
    {"format", "FORMAT", "table (default), jsonl or csv", false},
    {"session", "SESSION", "ask also the databases that packs keep for this session", false},
    {"extension", "FILE", "a loadable extension of SQLite, such as sqlite-vec", false},
    {NULL, NULL, NULL, false}};

const struct command cmd_sql = {
    .name = "sql",
    .operands = "\"SELECT ...\"",
    .operands_min = 1,
    .operands_max = 1,
    .summary = "ask the tables and the events in SQL",
    .about = "Runs one SELECT and prints its answer; nothing can be changed. There are the\n"
             "tables sessions, turns, event_index and snapshots, and events(session_id, seq,\n"
             "timestamp, type, id, data), which reads data from the journals. 'annal sql\n"
             "\"SELECT sql FROM sqlite_schema\"' prints the tables' columns. Tables of packs are\n"
             "there too; --session prose_RUN adds those of one run: prose.bindings, ...",
    .examples = "  annal sql \"SELECT status, count(*) FROM sessions GROUP BY status\"\n"
                "  annal sql \"SELECT data->>'tool' AS tool, count(*) AS calls FROM events\n"
                "             WHERE type = 'tool.called' GROUP BY tool ORDER BY calls DESC\"\n"
                "  annal sql --format csv \"SELECT id, total_tokens FROM sessions\" > tokens.csv\n",
    .options = options,
    .run = run};
