#include "tools/catch_up.h"

#include "tools/out.h"
#include "tools/progress.h"

static int show(void *arg, const annal_index_progress *progress)
{
    struct progress *line = arg;
    line->total = progress->bytes_total;
    progress_set(line, progress->bytes_done, NULL);
    return 0;
}

static int add_lag(void *arg, const annal_index_lag *lag)
{
    uint64_t *bytes = arg;
    *bytes += lag->journal_bytes > lag->indexed_bytes ? lag->journal_bytes - lag->indexed_bytes : 0;
    return 0;
}

/* On read-only media an index that is there cannot follow. */
static annal_status read_as_it_stands(annal_index *index, annal_error *err)
{
    char text[HUMAN_BYTES];
    uint64_t bytes = 0;
    annal_status status = annal_index_lag_each(index, (annal_slice){0}, add_lag, &bytes, err);
    if (status == ANNAL_OK && bytes > 0)
        say("the answer may be incomplete: the store cannot be written, and its index lags %s "
            "behind the journals",
            human_bytes(text, bytes));
    return status;
}

int index_open_caught_up(annal_store *store, const struct session_list *sessions,
                         annal_index **out_index)
{
    annal_error err = {0};
    annal_index *index = NULL;
    struct progress line;
    annal_catch_up_options options = {.progress = show, .arg = &line};
    size_t count = sessions != NULL && sessions->count > 0 ? sessions->count : 1;
    annal_status status = annal_index_open(store, NULL, &index, &err);
    progress_begin(&line, "index", 0);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        annal_slice session = {0};
        if (sessions != NULL && sessions->count > 0)
            session = annal_slice_of(sessions->names[i].id);
        status = annal_index_catch_up(index, session, &options, &err);
    }
    progress_hide(&line);
    if (status == ANNAL_ERR_BUSY) {
        say("the answer may be incomplete: %s", err.message);
        status = ANNAL_OK;
    } else if (status == ANNAL_ERR_IO && annal_store_is_read_only(store)) {
        status = read_as_it_stands(index, &err);
    }
    if (status < 0) {
        annal_index_close(index);
        return fail_error(&err);
    }
    *out_index = index;
    return 0;
}
