#include "index/database.h"
#include "index/index.h"
#include "journal/base/error.h"

/*
 * Whether anything was handed out (then an answer cannot begin again), and whether a callback
 * stopped.
 */
struct call {
    const annal_sql_options *options;
    annal_row_fn fn;
    void *arg;
    bool begun;
    bool stopped;
};

static int hand_on_columns(void *arg, const annal_row *row)
{
    struct call *call = arg;
    call->begun = true;
    int verdict = call->options->columns(call->arg, row);
    call->stopped = verdict != 0;
    return verdict;
}

static int hand_on_row(void *arg, const annal_row *row)
{
    struct call *call = arg;
    call->begun = true;
    int verdict = call->fn(call->arg, row);
    call->stopped = verdict != 0;
    return verdict;
}

static annal_status run(annal_index *index, annal_slice sql, struct call *call, annal_error *err)
{
    sqlite3 *db = NULL;
    annal_sql_options options = *call->options;
    options.columns = options.columns == NULL ? NULL : hand_on_columns;
    annal_status status = annal__index_read(index, NULL, 0, options.as_indexed, options.timeout_ms,
                                            &db, options.out_lag, err);
    if (status >= 0)
        status = annal__db_add_events(db, index->store, err);
    if (status >= 0)
        status = annal__db_select(db, sql, &options, hand_on_row, call, err);
    annal__db_close(db);
    return status;
}

annal_status annal_sql(annal_index *index, annal_slice sql, const annal_sql_options *options,
                       annal_row_fn fn, void *arg, annal_error *err)
{
    static const annal_sql_options defaults;
    struct call call = {.options = options == NULL ? &defaults : options, .fn = fn, .arg = arg};
    annal_status status = run(index, sql, &call, err);
    if (status == ANNAL_ERR_CORRUPT && !call.stopped && annal__index_heal(index) && !call.begun)
        status = run(index, sql, &call, err);
    return status;
}
