/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/open.h"
#include "journal/sys/seam.h"
#include "replay/fold.h"
#include "snapshot/sys/reduction.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <annal/reduce.h>

#include <stdio.h>
#include <string.h>

enum { EVERY_EVENTS = 1000 };

#define EVERY_BYTES (UINT64_C(8) << 20)

struct reduction {
    annal_index *index;
    const annal_reducer *reducer;
    const annal_reduce_options *options;
    annal_cursor *cursor;
    void *state;
    uint64_t every;       /* maximum number of events between two saved copies of the state */
    uint64_t every_bytes; /* maximum of journal bytes between two saved copies */
    /* seq of the newest saved copy of the state, or of the last attempt to save one */
    uint64_t saved_seq;
    uint64_t bytes; /* journal bytes of the events after saved_seq */
    bool is_saved;
    annal_replay_info info;
};

static annal_slice name_of(const annal_reducer *reducer)
{
    return annal_slice_of(reducer->name);
}

/* Return the failure of a function of the reducer, with a message if the function wrote none. */
static annal_status its_failure(const annal_reducer *reducer, const char *function,
                                annal_status status, annal_error *err)
{
    if (status >= 0)
        return ANNAL_OK;
    if (err != NULL && err->message[0] != '\0') {
        err->status = status;
        return status;
    }
    return annal__fail(err, status, "%s of reducer '%s' failed", function, reducer->name);
}

static annal_status check(const annal_reducer *reducer, annal_error *err)
{
    annal_slice name = reducer->name == NULL ? (annal_slice){0} : name_of(reducer);
    if (name.len > ANNAL_REDUCER_NAME_MAX || annal_session_id_check(name, NULL) < 0)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the name of a reducer must have 1 to 64 characters: letters, digits, "
                           "'.', '_' and '-'");
    if (reducer->init == NULL || reducer->apply == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID, "reducer '%s' has no init or no apply",
                           reducer->name);
    return ANNAL_OK;
}

/* ---- Beginning ---- */

struct root {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/* Record the root of the lineage: an annal_lineage_fn. The last part is the root. */
static int note_root(void *arg, const annal_lineage_part *part)
{
    struct root *root = arg;
    snprintf(root->session, sizeof root->session, "%.*s", ANNAL_FMT(part->session));
    return 0;
}

/* Load the newest valid copy that the reducer accepts. Without such a copy reduction->state stays
 * NULL. */
static void load(struct reduction *reduction, annal_slice session, annal_slice root, uint64_t seq)
{
    const annal_reducer *reducer = reduction->reducer;
    uint64_t at_most = seq;
    annal__reduction copy = {0};
    while (at_most > 0 && annal__reduction_load(reduction->index, session, name_of(reducer),
                                                reducer->version, at_most, &copy, NULL) >= 0) {
        annal_error ignored = {0};
        void *state = NULL;
        annal_status status = reducer->load(reducer->arg, root, copy.data, &state, &ignored);
        uint64_t found = copy.seq;
        if (status >= 0) {
            reduction->state = state;
            reduction->every = copy.every;
            reduction->info.snapshot_seq = reduction->saved_seq = found;
        }
        annal_free(copy.data.ptr);
        if (status >= 0)
            return;
        at_most = found - 1;
    }
}

static annal_status begin(struct reduction *reduction, annal_slice session, annal_error *err)
{
    const annal_reducer *reducer = reduction->reducer;
    annal_store *store = annal__index_store(reduction->index);
    struct root root = {{0}};
    annal_status status = annal_lineage_each(store, session, note_root, &root, err);
    if (status < 0)
        return status;
    if (reducer->load != NULL && !reduction->options->no_snapshots)
        load(reduction, session, annal_slice_of(root.session), reduction->info.seq);
    if (reduction->info.snapshot_seq == 0)
        status = its_failure(
            reducer, "init",
            reducer->init(reducer->arg, annal_slice_of(root.session), &reduction->state, err), err);
    if (status >= 0)
        status = annal_cursor_open(store, session, reduction->info.snapshot_seq + 1,
                                   &reduction->cursor, err);
    return status;
}

/* ---- Folding ---- */

static int add_bytes(void *arg, const char *bytes, size_t len)
{
    return annal__buf_append(arg, bytes, len);
}

static uint64_t twice(uint64_t value)
{
    return value > UINT64_MAX / 2 ? UINT64_MAX : 2 * value;
}

/* Save a copy. A failure is not returned: the next attempt follows after reduction->every more
 * events, or after twice as many if the copy was too large. */
static void save(struct reduction *reduction, uint64_t seq)
{
    const annal_reducer *reducer = reduction->reducer;
    SCOPED_BUF data = {.limit = ANNAL_REDUCTION_BYTES_MAX};
    annal_error ignored = {0};
    uint64_t every = 0;
    annal_status status = reducer->save(reducer->arg, reduction->state, add_bytes, &data, &ignored);
    if (status >= 0)
        status = annal__reduction_save(reduction->index, reduction->cursor, name_of(reducer),
                                       reducer->version, annal__buf_slice(&data),
                                       &reduction->options->policy, &every, &ignored);
    if (status >= 0)
        reduction->every = every;
    if (status == ANNAL_ERR_LIMIT) {
        reduction->every = twice(reduction->every);
        reduction->every_bytes = twice(reduction->every_bytes);
    }
    reduction->saved_seq = seq;
    reduction->bytes = 0;
}

/* Apply an event: an annal_fold_fn. */
static annal_status apply(void *arg, const annal_event *event, annal_error *err)
{
    struct reduction *reduction = arg;
    const annal_reducer *reducer = reduction->reducer;
    annal_status status = its_failure(
        reducer, "apply", reducer->apply(reducer->arg, reduction->state, event, err), err);
    if (status < 0)
        return status;
    reduction->info.folded++;
    reduction->bytes += event->length;
    if (reduction->is_saved && (event->seq - reduction->saved_seq >= reduction->every ||
                                reduction->bytes >= reduction->every_bytes))
        save(reduction, event->seq);
    return ANNAL_OK;
}

annal_status annal_replay_reduce(annal_index *index, annal_slice session,
                                 const annal_reducer *reducer, annal_moment at,
                                 const annal_reduce_options *options, void **out_state,
                                 annal_replay_info *out_info, annal_error *err)
{
    static const annal_reduce_options defaults = {0};
    struct reduction reduction = {.index = index, .reducer = reducer};
    options = options == NULL ? &defaults : options;
    reduction.options = options;
    const annal_snapshot_policy *policy = &options->policy;
    reduction.every = policy->every_events > 0 ? policy->every_events : EVERY_EVENTS;
    reduction.every_bytes = policy->every_bytes > 0 ? policy->every_bytes : EVERY_BYTES;
    reduction.is_saved = reducer->save != NULL && reducer->load != NULL && !options->no_snapshots &&
                         !annal__session_list_is_read_only(annal__index_store(index));
    if (err != NULL)
        /* from here on, err contains a message only if the reducer wrote one */
        *err = (annal_error){0};
    annal_status status = check(reducer, err);
    if (status >= 0)
        status = annal_replay_seq(index, session, at, &reduction.info.seq, err);
    if (status >= 0)
        status = begin(&reduction, session, err);
    if (status >= 0)
        status = annal__fold(reduction.cursor, reduction.info.seq, apply, &reduction,
                             &reduction.info.damaged, err);
    annal_cursor_close(reduction.cursor);
    if (status < 0) {
        if (reduction.state != NULL && reducer->free != NULL)
            reducer->free(reducer->arg, reduction.state);
        return status;
    }
    *out_state = reduction.state;
    if (out_info != NULL)
        *out_info = reduction.info;
    return ANNAL_OK;
}
