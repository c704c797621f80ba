/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing an index: sessions.db, the packs, search.db, and the background task that
 * follows the journals.
 */
#include "index/db/db.h"
#include "index/index.h"
#include "index/pack/pack.h"
#include "index/sys/open.h"
#include "index/sys/pack.h"
#include "index/sys/type_fields.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/sys/keeper_task.h"
#include "journal/sys/seam.h"

#include <string.h>

/* time in ms without an append after which the background task runs: agents append in bursts, and
 * indexing should not run during a burst */
#define FOLLOW_QUIET_MS 20
/* time in ms after the first append of a burst at which the task runs even if appends continue */
#define FOLLOW_LATEST_MS 1000
#define FOLLOW_PERIOD_MS 200 /* maximum time in ms of one round of the task */

static annal_status follow(annal_index *index, annal_error *err)
{
    const annal__keeper_task task = {.name = "index",
                                     .period_ms = FOLLOW_PERIOD_MS,
                                     .quiet_ms = FOLLOW_QUIET_MS,
                                     .latest_ms = FOLLOW_LATEST_MS,
                                     .run = annal__index_follow,
                                     .arg = index};
    annal_status status = annal__keeper_task_add(index->store, &task, err);
    index->follows = status >= 0;
    return status;
}

/*
 * Compute a hash, of 31 bits, of everything on which the content of the tables depends: the
 * user_version of sessions.db, which need not be raised by hand.
 */
static int64_t layout_of(const annal_pack *core)
{
    return (int64_t)(annal__hash(annal__sql_schema, strlen(annal__sql_schema),
                                 core->hash + INDEX_CODE_VERSION) &
                     INT32_MAX);
}

/* Initialize an index without opening a database. */
static annal_status index_init(annal_index *index, uint32_t wait_ms, annal_error *err)
{
    SCOPED_BUF path = {0};
    index->derived.wait_ms = wait_ms;
    index->derived.application_id = INDEX_APPLICATION_ID;
    index->derived.ops = &annal__core_ops;
    index->derived.arg = index;
    annal_status status =
        annal__buf_printf(&path, "%s/sessions.db", annal_store_path(index->store));
    if (status < 0 || annal__buf_cstr(&path) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open the index: out of memory");
    status = annal__derived_init(&index->derived, index->store, path.ptr, "index", err);
    if (status >= 0)
        status = annal__pack_core(&index->core, err);
    if (status >= 0)
        index->derived.user_version = layout_of(index->core);
    if (status >= 0)
        status = annal__shape_of_text(&index->shape, annal__sql_schema, err);
    return status < 0 ? status : annal__search_init(&index->search, index->store, wait_ms, err);
}

static annal_status index_new(annal_store *store, uint32_t wait_ms, annal_index **out_index,
                              annal_error *err)
{
    annal_index *index = annal__zalloc(sizeof *index);
    if (index == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open the index of '%s': out of memory",
                           annal_store_path(store));
    index->store = store;
    index->follower =
        (struct follower){.derived = &index->derived, .ops = &annal__core_follower, .own = index};
    annal_status status = ANNAL_OK;
    if (pthread_mutex_init(&index->fallback.mutex, NULL) != 0)
        status = ANNAL_ERR_NOMEM;
    if (status >= 0 && pthread_mutex_init(&index->packs.mutex, NULL) != 0) {
        pthread_mutex_destroy(&index->fallback.mutex);
        status = ANNAL_ERR_NOMEM;
    }
    if (status < 0) {
        annal__free(index);
        return annal__fail(err, status, "cannot open the index of '%s'", annal_store_path(store));
    }
    status = index_init(index, wait_ms, err);
    if (status < 0)
        annal_index_close(index);
    else
        *out_index = index;
    return status;
}

annal_status annal__index_open_plain(annal_store *store, const annal_index_options *options,
                                     annal_index **out_index, annal_error *err)
{
    static const annal_index_options defaults;
    annal_index *index = NULL;
    if (options == NULL)
        options = &defaults;
    annal_status status = index_new(store, options->wait_ms, &index, err);
    if (status >= 0)
        index->decider = options->decider;
    if (status >= 0 && annal__session_list_is_read_only(store)) {
        status = annal__derived_open_read_only(&index->derived, err);
        if (status >= 0)
            status = annal__derived_open_read_only(&index->search.derived, err);
    } else if (status >= 0 && options->follow)
        status = follow(index, err);
    if (status >= 0 && index->follows)
        annal__packs_drain_all(index);
    if (status < 0)
        annal_index_close(index);
    else
        *out_index = index;
    return status;
}

annal_status annal__index_open_private(annal_store *store, uint32_t wait_ms,
                                       annal_index **out_index, annal_error *err)
{
    annal_index *index = NULL;
    annal_status status = index_new(store, wait_ms, &index, err);
    if (status >= 0)
        status = annal__derived_make_private(&index->derived, err);
    if (status >= 0)
        status = annal__derived_make_private(&index->search.derived, err);
    if (status < 0)
        annal_index_close(index);
    else
        *out_index = index;
    return status;
}

void *annal__index_on_close(annal_index *index, void (*end)(void *arg), void *arg)
{
    if (end != NULL)
        atomic_store(&index->on_close, end);
    return atomic_exchange(&index->on_close_arg, arg);
}

annal_store *annal__index_store(const annal_index *index)
{
    return index->store;
}

const annal_pack *annal__index_core(const annal_index *index)
{
    return index->core;
}

void annal_index_close(annal_index *index)
{
    if (index == NULL ||
        (index->derived.path != NULL && !annal__index_lock_is_ours(&index->derived.lock)))
        /* in a child of fork(): closing the parent's connections would change memory that both
         * share */
        return;
    void *arg = atomic_exchange(&index->on_close_arg, NULL);
    void (*end)(void *arg) = atomic_load(&index->on_close);
    if (arg != NULL)
        end(arg);
    if (index->follows) {
        annal__packs_drain_all(index);
        annal__keeper_task_remove(index->store, index);
    }
    annal__type_fields_done(index);
    annal__packs_done(index);
    annal__search_done(&index->search);
    annal__derived_done(&index->derived);
    annal_index_close(index->fallback.index);
    pthread_mutex_destroy(&index->fallback.mutex);
    pthread_mutex_destroy(&index->packs.mutex);
    annal_pack_free(index->core);
    annal__shape_done(&index->shape);
    annal__free(index);
}
