/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delete a session, in the only order that works:
 *
 * (1) Its words are removed from search.db first: only the journal shows which words these are.
 * (2) Then the journal is deleted, durably. From here on the session is deleted, whatever fails.
 * (3) Its snapshots and artifacts are deleted next. If that fails, they are deleted automatically
 *     later. So are the copies of its logs, of which a failure is reported.
 * (4) Databases and commit logs are overwritten once, after the last session. The commit logs are
 *     last, because overwriting them may have to wait for a stopped process.
 */
#include "snapshot/sys/delete.h"

#include "index/sys/open.h"
#include "index/sys/wipe.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/artifact.h"
#include "journal/sys/delete.h"
#include "journal/sys/say.h"
#include "journal/sys/sources.h"

#include <annal/snapshot.h>

static void tell(annal_delete_part part, annal_slice session, const annal_error *why,
                 annal_delete_fn fn, void *arg)
{
    const annal_delete_note note = {.part = part, .session = session, .error = why};
    fn(arg, &note);
}

annal_status annal__delete_session(annal_index *index, annal_slice session, annal_delete_fn fn,
                                   void *arg, annal_error *err)
{
    annal_store *store = annal__index_store(index);
    annal_session_info info;
    annal_error why = {0};
    if (annal__search_forget(index, session, &why) < 0)
        tell(ANNAL_DELETE_WORDS, session, &why, fn, arg);
    annal_status status = annal__replace_delete(store, session, &info, &why);
    const annal_delete_note note = {.part = ANNAL_DELETE_SESSION,
                                    .session = session,
                                    .info = status < 0 ? NULL : &info,
                                    .error = status < 0 ? &why : NULL};
    fn(arg, &note);
    if (status < 0)
        return annal__error_pass(err, status, &why);
    if (annal_snapshot_drop(index, session, &why) < 0)
        tell(ANNAL_DELETE_SNAPSHOTS, session, &why, fn, arg);
    if (annal__artifact_drop(store, session, &why) < 0)
        tell(ANNAL_DELETE_ARTIFACTS, session, &why, fn, arg);
    if (annal__sources_drop(store, session, &why) < 0)
        tell(ANNAL_DELETE_SOURCES, session, &why, fn, arg);
    return ANNAL_OK;
}

void annal__delete_wipe(annal_index *index, const annal_slice *sessions, size_t count,
                        annal_delete_fn fn, void *arg)
{
    const annal_slice all = {NULL, 0};
    annal_error why = {0};
    if (annal__maintain_wipe(index, sessions, count, &why) < 0)
        tell(ANNAL_DELETE_DATABASES, all, &why, fn, arg);
    if (annal__replace_wipe_logs(annal__index_store(index), &why) < 0)
        tell(ANNAL_DELETE_LOGS, all, &why, fn, arg);
}

/* Pass a failure to the log callback of the store, as an annal_delete_fn for callers without their
 * own. */
static void log_note(void *arg, const annal_delete_note *note)
{
    annal_store *store = arg;
    if (note->part == ANNAL_DELETE_SESSION)
        return;
    if (note->session.len > 0)
        annal__say(store, ANNAL_LOG_WARNING, "delete session '%.*s': %s", ANNAL_FMT(note->session),
                   note->error->message);
    else
        annal__say(store, ANNAL_LOG_WARNING, "content of deleted sessions may remain: %s",
                   note->error->message);
}

annal_status annal_session_delete(annal_index *index, const annal_slice *sessions, size_t count,
                                  annal_delete_fn fn, void *arg, annal_error *err)
{
    annal_status result = ANNAL_OK;
    annal_slice *deleted = annal__zalloc(count * sizeof *deleted);
    size_t deleted_count = 0;
    if (deleted == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "delete sessions: out of memory");
    if (fn == NULL) {
        fn = log_note;
        arg = annal__index_store(index);
    }
    for (size_t i = 0; i < count; i++) {
        annal_status status =
            annal__delete_session(index, sessions[i], fn, arg, result == ANNAL_OK ? err : NULL);
        if (status >= 0)
            deleted[deleted_count++] = sessions[i];
        else if (result == ANNAL_OK)
            result = status;
    }
    if (deleted_count > 0)
        annal__delete_wipe(index, deleted, deleted_count, fn, arg);
    annal__free(deleted);
    return result;
}
