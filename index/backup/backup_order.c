/* SPDX-License-Identifier: Apache-2.0 */
#include "index/backup/backup_order.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    annal_store *store;
    struct backup_order *order;
    annal_error *err;
};

static int add_session(void *arg, annal_slice session, uint64_t bytes)
{
    const struct listing *listing = arg;
    struct backup_order *order = listing->order;
    annal_session_info info = {.fork_seq = 0};
    (void)bytes;
    if (annal_session_info_get(listing->store, session, &info, NULL) < 0) {
        if (annal__stray_is(listing->store, session))
            return 0;
        /* the journal cannot be read: list it nevertheless, and let copying it report the reason */
        info.fork_seq = 0;
    }
    struct backup_session *last = annal__array_add(&order->list, &order->count, sizeof *last);
    if (last == NULL)
        return annal__fail(listing->err, ANNAL_ERR_NOMEM,
                           "list the sessions to copy: out of memory");
    *last = (struct backup_session){.session = annal__strndup(session.ptr, session.len),
                                    .fork_seq = info.fork_seq};
    if (last->session == NULL)
        return annal__fail(listing->err, ANNAL_ERR_NOMEM,
                           "list the sessions to copy: out of memory");
    return 0;
}

/* Compare two sessions: the larger fork point is first (rule 1). */
static int compare_places(const void *left, const void *right)
{
    const struct backup_session *a = left, *b = right;
    if (a->fork_seq != b->fork_seq)
        return a->fork_seq > b->fork_seq ? -1 : 1;
    return strcmp(a->session, b->session);
}

static int compare_names(const void *left, const void *right)
{
    const struct backup_session *a = left, *b = right;
    return strcmp(a->session, b->session);
}

annal_status annal__backup_order(annal_store *store, struct backup_order *out_order,
                                 annal_error *err)
{
    struct listing listing = {store, out_order, err};
    annal_status status = annal_store_sessions(store, add_session, &listing, err);
    if (status == ANNAL_OK && out_order->count > 0)
        qsort(out_order->list, out_order->count, sizeof *out_order->list, compare_places);
    return status;
}

annal_status annal__backup_note_parent(annal_store *store, const annal_session_info *fork,
                                       struct backup_session *entry, annal_error *err)
{
    annal_session_info parent;
    annal__free(entry->parent);
    entry->parent = NULL;
    if (fork->fork_session[0] == '\0' ||
        annal_session_info_get(store, annal_slice_of(fork->fork_session), &parent, NULL) < 0)
        return ANNAL_OK; /* not a fork, or its parent cannot be read: no parent is recorded */
    entry->parent = annal__strndup(fork->fork_session, strlen(fork->fork_session));
    if (entry->parent == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "list the sessions to copy: out of memory");
    memcpy(entry->parent_file, parent.file, sizeof entry->parent_file);
    return ANNAL_OK;
}

annal_status annal__backup_check_parents(struct backup_order *order, annal_error *err)
{
    if (order->count > 0)
        qsort(order->list, order->count, sizeof *order->list, compare_names);
    for (size_t i = 0; i < order->count; i++) {
        const struct backup_session *fork = &order->list[i];
        if (fork->file[0] == '\0' || fork->parent == NULL)
            continue;
        const struct backup_session key = {.session = fork->parent};
        const struct backup_session *parent =
            bsearch(&key, order->list, order->count, sizeof *order->list, compare_names);
        if (parent == NULL || strcmp(parent->file, fork->parent_file) != 0)
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "session '%s' was deleted or replaced after its fork '%s' was "
                               "copied: start the backup again",
                               fork->parent, fork->session);
    }
    return ANNAL_OK;
}

void annal__backup_order_done(struct backup_order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        annal__free(order->list[i].session);
        annal__free(order->list[i].parent);
    }
    annal__free(order->list);
    *order = (struct backup_order){0};
}
