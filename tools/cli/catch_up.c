/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/catch_up.h"

#include "journal/base/error.h"
#include "journal/sys/seam.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"

#include <limits.h>

/* A query of events tries for ROUND_MS to add new events to the index. As long as each round adds
 * some, it tries again, for at most ROUNDS rounds. */
#define ROUND_MS 1000
#define ROUNDS   10

struct work {
    struct progress line;
    uint64_t bytes_done; /* number of bytes that this call has indexed */
};

static int show(void *arg, const annal_index_progress *progress)
{
    struct work *work = arg;
    work->line.total = progress->bytes_total;
    work->bytes_done = progress->bytes_done;
    progress_set(&work->line, progress->bytes_done, NULL);
    return 0;
}

/*
 * Add the new events of these sessions, or of all, to the index. If a call runs out of time but has
 * made progress, it is repeated, up to `rounds` times.
 */
static annal_status catch_up(annal_index *index, const struct session_list *sessions, bool packs,
                             uint32_t timeout_ms, unsigned rounds, annal_error *err)
{
    struct work work;
    const annal_catch_up_options options = {
        .timeout_ms = timeout_ms, .progress = show, .arg = &work, .packs = packs};
    size_t count = sessions != NULL && sessions->count > 0 ? sessions->count : 1;
    annal_status status = ANNAL_OK;
    progress_begin(&work.line, "index", 0);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        annal_slice session = {0};
        if (sessions != NULL && sessions->count > 0)
            session = annal_slice_of(sessions->names[i].id);
        for (unsigned round = 0; round < rounds; round++) {
            work.bytes_done = 0;
            status = annal_index_catch_up(index, session, &options, err);
            if (status != ANNAL_ERR_BUSY || work.bytes_done == 0)
                break;
        }
    }
    progress_hide(&work.line);
    return status;
}

static int add_lag(void *arg, const annal_index_lag *lag)
{
    uint64_t *bytes = arg;
    *bytes += lag->journal_bytes > lag->indexed_bytes ? lag->journal_bytes - lag->indexed_bytes : 0;
    return 0;
}

/* Print how much of the journals is missing in the index, which cannot be updated because the store
 * is read-only. */
static annal_status read_as_it_stands(annal_index *index, annal_error *err)
{
    char text[HUMAN_BYTES];
    uint64_t bytes = 0;
    annal_status status = annal_index_lag_each(index, (annal_slice){0}, add_lag, &bytes, err);
    if (status == ANNAL_OK && bytes > 0)
        say("the answer may be incomplete: the store cannot be written, and its index lags by %s",
            human_bytes(text, bytes));
    return status;
}

static int hand_out(annal_index *index, annal_status status, const annal_error *err,
                    annal_index **out_index)
{
    if (status < 0) {
        annal_index_close(index);
        return fail_error(err);
    }
    *out_index = index;
    return 0;
}

static int open_caught_up(annal_store *store, const struct session_list *sessions, bool packs,
                          annal_index **out_index)
{
    annal_error err = {0};
    annal_index *index = NULL;
    annal_status status = annal_index_open(store, NULL, &index, &err);
    if (status >= 0)
        status = catch_up(index, sessions, packs, 0, 1, &err);
    if (status == ANNAL_ERR_BUSY) {
        say("the answer may be incomplete: %s", err.message);
        status = ANNAL_OK;
    } else if (annal__error_is_io(status) && annal__session_list_is_read_only(store)) {
        status = read_as_it_stands(index, &err);
    }
    return hand_out(index, status, &err, out_index);
}

int catch_up_open(annal_store *store, const struct session_list *sessions, annal_index **out_index)
{
    return open_caught_up(store, sessions, false, out_index);
}

int catch_up_open_with_packs(annal_store *store, annal_index **out_index)
{
    return open_caught_up(store, NULL, true, out_index);
}

int catch_up_open_for_events(annal_store *store, const struct session_list *sessions,
                             annal_index **out_index)
{
    annal_error err = {0};
    annal_index *index = NULL;
    annal_status status = annal_index_open(store, NULL, &index, &err);
    if (status >= 0)
        status = catch_up(index, sessions, false, ROUND_MS, ROUNDS, &err);
    if (status == ANNAL_ERR_BUSY ||
        (annal__error_is_io(status) && annal__session_list_is_read_only(store)))
        status = ANNAL_OK;
    return hand_out(index, status, &err, out_index);
}

void catch_up_wholly(annal_index *index)
{
    annal_error ignored;
    /* a round of the wait of the index: on a busy machine nothing may be added within a second */
    (void)catch_up(index, NULL, true, 0, UINT_MAX, &ignored);
}

void catch_up_say_lag(const annal_lag *lag)
{
    char text[HUMAN_BYTES];
    if (lag->bytes > 0)
        say("the answer is incomplete, %s of journal are missing: %s",
            human_bytes(text, lag->bytes), lag->message);
}
