/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/load.h"

#include "index/sys/open.h"
#include "index/sys/snapshot_rows.h"
#include "index/sys/state.h"
#include "journal/base/error.h"
#include "journal/sys/say.h"
#include "snapshot/sys/snapshot.h"

#include <stdio.h>
#include <string.h>

static const char DAMAGED[] =
    "its content is damaged, or the content of a snapshot that it is stored against";
static const char NO_STATE[] =
    "its pages are not a state of this session with the tables that annal creates";
static const char GONE[] = "the snapshot was deleted in the meantime";

/* ---- Loading ---- */

annal_status annal__load_state(const struct storage *shelf, const annal__state_source *source,
                               annal_state **out_state, annal_error *err)
{
    annal_slice root = annal_slice_of(shelf->root);
    annal_state *spare = shelf->spare == NULL ? NULL : *shelf->spare;
    if (spare != NULL) {
        *shelf->spare = NULL;
        if (annal__state_reopen(spare, root, source, NULL) >= 0) {
            *out_state = spare;
            return ANNAL_OK;
        }
        annal_state_free(spare);
    }
    return source == NULL ? annal__state_new(root, shelf->packs, shelf->pack_count, out_state, err)
                          : annal__state_open_over(root, shelf->packs, shelf->pack_count, source,
                                                   out_state, err);
}

static annal_status open_state(const struct storage *shelf, struct chain *chain,
                               annal_state **out_state, annal_error *err)
{
    annal_state *state = NULL;
    annal__state_source source = annal__chain_source(annal__chain_ref(chain));
    annal_status status = annal__load_state(shelf, &source, &state, err);
    if (status < 0) {
        annal__chain_unref(chain);
        return status;
    }
    uint64_t seq = annal__chain_header(chain, 0)->seq;
    if (annal_state_seq(state) != seq) {
        annal_state_free(state);
        return annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "the snapshot of session '%.*s' at event %llu contains the state at a different event",
            ANNAL_FMT(shelf->session), (unsigned long long)seq);
    }
    *out_state = state;
    return ANNAL_OK;
}

/* Open the state of a row, or set *out_problem to the reason why the row contains no valid state.
 * The row is freed in any case. */
static annal_status open_row(const struct storage *shelf, struct shelf_row *row,
                             struct loaded *out_loaded, const char **out_problem, annal_error *err)
{
    struct loaded loaded = {0};
    annal_status status = annal__chain_open(shelf, row, &loaded.chain, err);
    *out_problem = status == ANNAL_ERR_CORRUPT ? DAMAGED : NULL;
    if (status >= 0) {
        status = open_state(shelf, loaded.chain, &loaded.state, err);
        *out_problem = status == ANNAL_ERR_CORRUPT ? NO_STATE : NULL;
    }
    if (status >= 0) {
        *out_loaded = loaded;
        return ANNAL_OK;
    }
    annal__chain_unref(loaded.chain);
    return *out_problem == NULL ? status : ANNAL_OK;
}

/* Load a state from a row, or set *out_problem to the reason why it cannot be loaded. A failure is
 * not caused by the row. The row is freed in any case. */
static annal_status try_row(const struct storage *shelf, struct shelf_row *row,
                            struct loaded *out_loaded, const char **out_problem, annal_error *err)
{
    struct loaded loaded = {0};
    annal_status status = ANNAL_OK;
    *out_problem = row->problem;
    if (row->problem == NULL)
        status = annal__storage_stale(shelf, &row->header, out_problem, err);
    if (status < 0 || *out_problem != NULL) {
        annal__storage_row_done(row);
        return status;
    }
    status = open_row(shelf, row, &loaded, out_problem, err);
    if (status >= 0 && *out_problem == NULL)
        *out_loaded = loaded;
    return status;
}

static void warn_skipped(const struct storage *shelf, uint64_t seq, const char *problem)
{
    char message[ANNAL_SESSION_ID_BYTES_MAX + 200];
    snprintf(message, sizeof message, "the snapshot of session '%.*s' at event %llu is skipped: %s",
             ANNAL_FMT(shelf->session), (unsigned long long)seq, problem);
    annal__say(shelf->store, ANNAL_LOG_WARNING, "%s", message);
}

static annal_status load_own(const struct storage *shelf, uint64_t at_most, bool discard,
                             uint32_t wait_ms, struct loaded *out_loaded, annal_error *err)
{
    for (bool is_reported = false;; is_reported = true) {
        struct shelf_row row = {0};
        const char *problem = NULL;
        annal_status status = annal__storage_row(shelf, at_most, &row, err);
        if (status < 0)
            return status;
        uint64_t seq = row.seq;
        status = try_row(shelf, &row, out_loaded, &problem, err);
        if (status >= 0 && problem == NULL)
            return ANNAL_OK;
        if (status >= 0 && !is_reported)
            warn_skipped(shelf, seq, problem);
        if (status >= 0 && discard)
            status =
                annal__snapshot_rows_delete(shelf->index, shelf->session, &seq, 1, wait_ms, err);
        if (status < 0)
            return status;
        if (seq == 0)
            return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no snapshot",
                               ANNAL_FMT(shelf->session));
        at_most = seq - 1;
    }
}

/* Make *shelf refer to the session from which its session was forked. shelf is the copy in
 * annal__load_newest(); name is the buffer for the ancestor's id. */
static annal_status go_above(struct storage *shelf, char name[ANNAL_SESSION_ID_BYTES_MAX + 1],
                             annal_error *err)
{
    uint64_t fork_seq = shelf->info.fork_seq;
    memcpy(name, shelf->info.fork_session, sizeof shelf->info.fork_session);
    shelf->session = annal_slice_of(name);
    annal_status status = annal_session_info_get(shelf->store, shelf->session, &shelf->info, err);
    return status < 0 || shelf->info.fork_seq < fork_seq
               ? status
               : annal__fail(err, ANNAL_ERR_CORRUPT,
                             "load a snapshot: session '%s' begins after the event at which a fork "
                             "of it begins",
                             name);
}

/* Look at the snapshots of the session, then of one ancestor after the other, each up to the fork
 * point. Fork points get smaller from ancestor to ancestor, so the loop ends. */
annal_status annal__load_newest(const struct storage *shelf, uint64_t at_most, bool discard,
                                uint32_t wait_ms, struct loaded *out_loaded, annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct storage at = *shelf;
    /* the session that was examined before; its fork_session is "" if no session was */
    annal_session_info fork = {0};
    struct loaded loaded = {0};
    annal_status status = ANNAL_ERR_NOTFOUND;
    for (;;) {
        bool is_own = fork.fork_session[0] == '\0', is_fork = at.info.fork_session[0] != '\0';
        status = ANNAL_ERR_NOTFOUND;
        if (!is_fork || at_most > at.info.fork_seq)
            status = load_own(&at, at_most, discard && is_own, is_own ? wait_ms : 0, &loaded, err);
        if (!is_fork || status != ANNAL_ERR_NOTFOUND)
            break;
        fork = at.info;
        at_most = at_most < fork.fork_seq ? at_most : fork.fork_seq;
        status = go_above(&at, name, err);
        if (status < 0)
            break;
    }
    loaded.inherited = fork.fork_session[0] != '\0';
    if (status < 0)
        return status;
    const struct snapshot_header *header = annal__chain_header(loaded.chain, 0);
    if (loaded.inherited && header->seq == fork.fork_seq && header->h != fork.fork_h) {
        annal_state_free(loaded.state);
        annal__chain_unref(loaded.chain);
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "session '%s' was forked from a journal that has been replaced since",
                           fork.session);
    }
    *out_loaded = loaded;
    return ANNAL_OK;
}

annal_status annal__load_cursor(const struct storage *shelf, const struct loaded *loaded,
                                annal_cursor **out_cursor, annal_error *err)
{
    const struct snapshot_header *header = annal__chain_header(loaded->chain, 0);
    /* The snapshot is at the fork point, so the next event is in the session's own journal, and no
     * journal of an ancestor is needed. */
    if (loaded->inherited && header->seq == shelf->info.fork_seq)
        return annal_cursor_open_at(shelf->store, shelf->session, header->seq + 1, 0, header->h,
                                    out_cursor, err);
    if (loaded->inherited)
        return annal_cursor_open(shelf->store, shelf->session, header->seq + 1, out_cursor, err);
    return annal_cursor_open_at(shelf->store, shelf->session, header->seq + 1, header->offset,
                                header->h, out_cursor, err);
}

annal_status annal__load_begin(annal_index *index, annal_slice session, uint64_t at_most,
                               const annal_pack *const *packs, size_t pack_count,
                               annal_state **out_state, annal_cursor **out_cursor, annal_error *err)
{
    struct storage shelf;
    struct loaded loaded = {0};
    annal_cursor *cursor = NULL;
    annal_status status = annal__storage_init(&shelf, index, session, packs, pack_count, err);
    if (status < 0)
        return status;
    annal_status found = ANNAL_ERR_NOTFOUND;
    /* whether the packs are the core pack, as for all snapshots */
    bool of_core = shelf.pack_version == annal__state_packs_version(&shelf.core, 1);
    if (at_most > 0 && of_core)
        found = annal__load_newest(&shelf, at_most, false, 0, &loaded, NULL);
    if (found >= 0)
        found = annal__load_cursor(&shelf, &loaded, &cursor, NULL);
    if (found < 0) { /* without a usable snapshot, the state is computed from the journal */
        annal_state_free(loaded.state);
        loaded.state = NULL;
        status = annal__load_state(&shelf, NULL, &loaded.state, err);
        if (status >= 0)
            status = annal_cursor_open(shelf.store, session, 1, &cursor, err);
    }
    annal__chain_unref(loaded.chain);
    if (status < 0) {
        annal_state_free(loaded.state);
        return status;
    }
    *out_state = loaded.state;
    *out_cursor = cursor;
    return ANNAL_OK;
}

/* ---- Listing and deleting ---- */

/* Free a state that was opened to examine its snapshot, or keep it for the next examination. */
static void loaded_done(const struct storage *shelf, struct loaded *loaded)
{
    annal__chain_unref(loaded->chain);
    if (*shelf->spare == NULL && annal__state_rest(loaded->state))
        *shelf->spare = loaded->state;
    else
        annal_state_free(loaded->state);
}

/* Read the row of an item again, and set item->problem if the row is invalid or was deleted. */
static annal_status find_row(const struct storage *shelf, struct shelf_item *item,
                             struct shelf_row *out_row, annal_error *err)
{
    annal_status status = annal__storage_row(shelf, item->seq, out_row, err);
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && out_row->seq != item->seq)) {
        item->problem = GONE;
        return ANNAL_OK;
    }
    if (status >= 0 && out_row->problem != NULL)
        item->problem = out_row->problem;
    return status;
}

/* Find out whether a row is valid, by loading it as a reader does. */
static annal_status examine(const struct storage *shelf, struct shelf_item *item, annal_error *err)
{
    struct shelf_row row = {0};
    struct loaded loaded = {0};
    if (item->problem != NULL)
        return ANNAL_OK;
    annal_status status = find_row(shelf, item, &row, err);
    if (status >= 0 && item->problem == NULL) {
        status = open_row(shelf, &row, &loaded, &item->problem, err);
        loaded_done(shelf, &loaded);
    }
    /* the snapshot may have been deleted together with its base: look for the row again */
    if (status >= 0 && item->problem == DAMAGED)
        status = find_row(shelf, item, &row, err);
    annal__storage_row_done(&row);
    return status;
}

static annal_snapshot_info info_of(const struct shelf_item *item)
{
    return (annal_snapshot_info){.seq = item->seq,
                                 .bytes = item->bytes,
                                 .raw_bytes = item->header.raw_bytes,
                                 .base_seq = item->header.base_seq,
                                 .created_us = item->created_us,
                                 .in_file = item->header.in_file};
}

/* Call fn for each row of one session, whose storage is shelf. found is the result of looking for
 * the session. */
static annal_status report_session(const struct storage *shelf, annal_status found,
                                   struct shelf_item *items, size_t count, annal_snapshot_fn fn,
                                   void *arg, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status == ANNAL_OK && i < count; i++) {
        annal_snapshot_info info = info_of(&items[i]);
        const char *why = NULL;
        if (found < 0)
            why = "its session has no journal";
        else if (items[i].problem == NULL)
            status = annal__storage_stale(shelf, &items[i].header, &why, err);
        info.stale = why != NULL;
        info.cut = why == annal__storage_cut;
        if (status >= 0 && why == NULL)
            status = examine(shelf, &items[i], err);
        if (status >= 0 && why == NULL)
            why = items[i].problem;
        info.stale = info.stale || why == GONE;
        if (status == ANNAL_OK)
            status = (annal_status)fn(arg, annal_slice_of(items[i].session), &info, why);
    }
    return status;
}

static size_t same_session(const struct shelf_list *list, size_t from)
{
    size_t to = from;
    while (to < list->count && strcmp(list->items[to].session, list->items[from].session) == 0)
        to++;
    return to - from;
}

annal_status annal_snapshot_each(annal_index *index, annal_slice session, annal_snapshot_fn fn,
                                 void *arg, annal_error *err)
{
    struct shelf_list list = {0};
    annal_state *spare = NULL;
    annal_status status = annal__storage_list(index, session, &list, err);
    for (size_t i = 0, count; status == ANNAL_OK && i < list.count; i += count) {
        struct storage shelf;
        annal_slice name = annal_slice_of(list.items[i].session);
        count = same_session(&list, i);
        annal_status found = annal__storage_init(&shelf, index, name, NULL, 0, err);
        shelf.spare = &spare;
        status = found < 0 && found != ANNAL_ERR_NOTFOUND
                     ? found
                     : report_session(&shelf, found, list.items + i, count, fn, arg, err);
    }
    annal_state_free(spare);
    annal__storage_list_done(&list);
    return status;
}

static bool goes(void *arg, const struct shelf_item *item)
{
    return strcmp(arg, item->session) == 0;
}

annal_status annal_snapshot_drop(annal_index *index, annal_slice session, annal_error *err)
{
    struct shelf_list list = {0};
    annal_status status = annal__storage_list(index, session, &list, err);
    for (size_t i = 0; status >= 0 && i < list.count; i += same_session(&list, i)) {
        const struct storage shelf = {.index = index,
                                      .store = annal__index_store(index),
                                      .session = annal_slice_of(list.items[i].session)};
        status = annal__storage_delete(&shelf, &list, goes, list.items[i].session, SNAPSHOT_WAIT_MS,
                                       err);
        if (status >= 0)
            annal__storage_sweep(&shelf);
    }
    /* Remove leftover files even without rows, because the rows of a deleted session may have been
     * removed from the index already. */
    if (status >= 0 && session.len > 0) {
        const struct storage shelf = {
            .index = index, .store = annal__index_store(index), .session = session};
        annal__storage_sweep(&shelf);
    }
    annal__storage_list_done(&list);
    return status;
}
