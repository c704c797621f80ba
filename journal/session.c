/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/session.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/thread.h"

#include <string.h>

annal_slice annal__session_id(const struct session *session)
{
    return (annal_slice){session->id, session->id_bytes};
}

/* ---- The table ---- */

static const annal_error no_refusal;
static const annal_error unknown_refusal = {
    .status = ANNAL_ERR_IO, .message = "no memory for the reason; open the store again"};

static void drop_refusal(struct session *session)
{
    if (session->refusal != &no_refusal && session->refusal != &unknown_refusal)
        annal__free((void *)(uintptr_t)session->refusal);
    session->refusal = &no_refusal;
}

void annal__session_set_refusal(struct session *session, const annal_error *why)
{
    annal_error *own = annal__zalloc(sizeof *own);
    if (own != NULL)
        *own = *why;
    drop_refusal(session);
    session->refusal = own != NULL ? own : &unknown_refusal;
}

void annal__session_lose(struct session *session, uint64_t seq)
{
    for (struct session_loss *loss = session->lossy; loss != NULL; loss = loss->next) {
        if (loss->batched_seq >= seq && loss->lost_seq == 0)
            loss->lost_seq = seq;
    }
}

void annal__session_doubt(struct session *session)
{
    for (struct session_loss *loss = session->lossy; loss != NULL; loss = loss->next)
        loss->doubt_seq = 1;
}

static struct session *session_new(const struct context *context, annal_slice id)
{
    SCOPED_BUF path = {0};
    struct session *session = annal__zalloc(sizeof *session);
    if (session == NULL)
        return NULL;
    /* The path is allocated with the suffix of the first codec, which is the longest. */
    if (annal__context_journal_path(context, id, annal__codecs[0], &path, NULL) == ANNAL_OK)
        session->path = annal__strndup(path.ptr, path.len);
    memcpy(session->id, id.ptr, id.len);
    session->id_bytes = id.len;
    session->fd = -1;
    session->codec = annal__codecs[0];
    session->refusal = &no_refusal;
    session->header.limit = FRAME_ENVELOPE_BYTES;
    session->loose.limit = 2 * (ANNAL_APPEND_BYTES_MAX + SESSION_LOOSE_BYTES_MAX);
    if (session->path == NULL || pthread_mutex_init(&session->lock, NULL) != 0 ||
        annal__thread_cond_init(&session->moved) != 0) {
        annal__free(session->path);
        annal__free(session);
        return NULL;
    }
    return session;
}

static size_t bucket_of(annal_slice id)
{
    return annal__hash(id.ptr, id.len, 0) % SESSION_BUCKETS;
}

/* Return the struct of a session, or NULL if no caller used it yet. The lock is held. */
static struct session *find_in_bucket(const struct session_table *sessions, size_t bucket,
                                      annal_slice id)
{
    struct session *session = sessions->buckets[bucket];
    while (session != NULL &&
           (session->id_bytes != id.len || memcmp(session->id, id.ptr, id.len) != 0))
        session = session->next;
    return session;
}

struct session *annal__session_find(struct session_table *sessions, annal_slice id)
{
    pthread_mutex_lock(&sessions->lock);
    struct session *session = find_in_bucket(sessions, bucket_of(id), id);
    pthread_mutex_unlock(&sessions->lock);
    return session;
}

struct session *annal__session_get(struct session_table *sessions, annal_slice id, annal_error *err)
{
    size_t bucket = bucket_of(id);
    pthread_mutex_lock(&sessions->lock);
    struct session *session = find_in_bucket(sessions, bucket, id);
    if (session == NULL) {
        session = session_new(sessions->context, id);
        if (session != NULL) {
            session->next = sessions->buckets[bucket];
            sessions->buckets[bucket] = session;
            session->older = sessions->newest;
            sessions->newest = session;
        } else {
            annal__fail(err, ANNAL_ERR_NOMEM, "open session '%.*s': out of memory", ANNAL_FMT(id));
        }
    }
    pthread_mutex_unlock(&sessions->lock);
    return session;
}

/* Structs are never removed, and new structs become the head of the list, so a walk needs the lock
 * only to read the head. */
annal_status annal__session_each(struct session_table *sessions, session_fn fn, void *arg,
                                 annal_error *err)
{
    pthread_mutex_lock(&sessions->lock);
    struct session *session = sessions->newest;
    pthread_mutex_unlock(&sessions->lock);
    annal_status status = ANNAL_OK;
    for (; session != NULL && status >= 0; session = session->older)
        status = fn(arg, session, err);
    return status < 0 ? status : ANNAL_OK;
}

void annal__sessions_done(struct session_table *sessions)
{
    for (struct session *session; (session = sessions->newest) != NULL;) {
        sessions->newest = session->older;
        if (session->fd >= 0)
            sessions->context->io->close(sessions->context->io->arg, session->fd);
        annal__buf_done(&session->header);
        annal__buf_done(&session->loose);
        annal__ids_done(&session->ids);
        drop_refusal(session);
        pthread_mutex_destroy(&session->lock);
        pthread_cond_destroy(&session->moved);
        annal__free(session->path);
        annal__free(session);
    }
}
