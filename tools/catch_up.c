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
    /* On read-only media the index is read as it stands. */
    for (size_t i = 0; status >= 0 && !annal_store_is_read_only(store) && i < count; i++) {
        annal_slice session = {0};
        if (sessions != NULL && sessions->count > 0)
            session = annal_slice_of(sessions->names[i].id);
        status = annal_index_catch_up(index, session, &options, &err);
    }
    progress_hide(&line);
    if (status == ANNAL_ERR_BUSY) {
        say("the answer may be incomplete: %s", err.message);
        status = ANNAL_OK;
    }
    if (status < 0) {
        annal_index_close(index);
        return fail_error(&err);
    }
    *out_index = index;
    return 0;
}
