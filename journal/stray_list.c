/* SPDX-License-Identifier: Apache-2.0 */
/* List the strays of a store (stray.h), and their files. */
#include "journal/base/error.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/stray.h"
#include "journal/sys/inspect.h"

#include <string.h>

/* ---- Sessions ---- */

struct stray_walk {
    annal_store *store;
    annal__stray_fn fn;
    void *arg;
    int stopped;
};

static int visit_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    struct stray_walk *walk = arg;
    annal_error why;
    return annal__stray_look(&walk->store->context, session, &why) == NO_STRAY
               ? 0
               : walk->fn(walk->arg, session, why.message);
}

static int visit_name(void *arg, const char *name)
{
    struct stray_walk *walk = arg;
    annal_error why;
    if (annal__stray_is_strange(&walk->store->context, name, &why))
        walk->stopped = walk->fn(walk->arg, annal_slice_of(name), why.message);
    return walk->stopped != 0;
}

annal_status annal__stray_list(annal_store *store, annal__stray_fn fn, void *arg, annal_error *err)
{
    struct stray_walk walk = {.store = store, .fn = fn, .arg = arg};
    SCOPED_BUF path = {0};
    annal_status status = annal__session_list_read(store, visit_session, &walk, err);
    if (status == ANNAL_OK)
        status = annal__context_path(&store->context, &path, "events", "", err);
    if (status == ANNAL_OK &&
        store->context.io->list(store->context.io->arg, path.ptr, visit_name, &walk) < 0)
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
    return status == ANNAL_OK ? (annal_status)walk.stopped : status;
}

/* ---- Files ---- */

struct file_walk {
    const annal_store *store;
    annal__stray_file_fn fn;
    void *arg;
    annal_error *err;
    annal_status status;
};

/* Return whether a file has the name of a journal, and is not the journal that is read for its
 * session. */
static bool is_unread(const struct file_walk *walk, const char *name)
{
    SCOPED_BUF path = {0};
    annal_error why;
    bool unread = annal__stray_is_strange(&walk->store->context, name, &why);
    size_t length = strlen(name);
    for (size_t i = 0; i < CODEC_COUNT && !unread; i++) {
        const struct codec *read = NULL;
        size_t suffix = strlen(annal__codecs[i]->suffix);
        annal_slice session = {name, length > suffix ? length - suffix : 0};
        if (session.len == 0 || strcmp(name + session.len, annal__codecs[i]->suffix) != 0 ||
            annal_session_id_check(session, NULL) < 0)
            continue;
        unread =
            annal__store_journal_find(&walk->store->context, session, &path, &read, NULL) < 0 ||
            read != annal__codecs[i] ||
            annal__stray_is_anothers(&walk->store->context, session, annal__codecs[i]);
    }
    return unread;
}

static int visit_file(void *arg, const char *name)
{
    struct file_walk *walk = arg;
    SCOPED_BUF path = {0};
    if (!is_unread(walk, name))
        return 0;
    walk->status = annal__context_path(&walk->store->context, &path, "events", name, walk->err);
    if (walk->status == ANNAL_OK)
        walk->status = walk->fn(walk->arg, path.ptr);
    return walk->status != ANNAL_OK;
}

annal_status annal__stray_files(const annal_store *store, annal__stray_file_fn fn, void *arg,
                                annal_error *err)
{
    struct file_walk walk = {.store = store, .fn = fn, .arg = arg, .err = err};
    SCOPED_BUF path = {0};
    annal_status status = annal__context_path(&store->context, &path, "events", "", err);
    if (status == ANNAL_OK &&
        store->context.io->list(store->context.io->arg, path.ptr, visit_file, &walk) < 0)
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
    return status == ANNAL_OK ? walk.status : status;
}
