/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/lineage.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/store.h"
#include "journal/store_journal.h"
#include "journal/sys/lineage.h"

#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <string.h>

static annal_status read_origin(const struct scan *scan, annal_slice session,
                                struct origin *out_origin, annal_error *err)
{
    char bytes[FRAME_ENVELOPE_BYTES];
    struct frame_header header;
    uint64_t h;
    *out_origin = (struct origin){0};
    ssize_t got = annal__io_read_full(scan->io, scan->fd, bytes, sizeof bytes, 0);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the journal of session '%.*s'",
                                 ANNAL_FMT(session));
    if (!annal__codec_first(scan->codec, (annal_slice){bytes, (size_t)got}, &header, &h))
        return ANNAL_OK;
    /* A journal that was moved, restored or copied to this name has valid events, but of another
     * session. */
    annal_status status = annal__codec_check_owner(&header, session, err);
    if (status < 0)
        return status;
    annal__codec_file_id_text(header.file, out_origin->file);
    out_origin->created_us = header.created_us;
    if (header.is_replacement)
        annal__codec_file_id_text(header.replaces, out_origin->replaces);
    if (header.fork.len == 0)
        return ANNAL_OK;
    status = annal_session_id_check(header.fork, err);
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "the header of session '%.*s' names an invalid parent session",
                           ANNAL_FMT(session));
    memcpy(out_origin->session, header.fork.ptr, header.fork.len);
    out_origin->seq = header.fork_seq;
    out_origin->h = header.fork_h;
    return ANNAL_OK;
}

annal_status annal__lineage_open_journal(annal_store *store, annal_slice session,
                                         struct scan *out_scan, struct origin *out_origin,
                                         annal_error *err)
{
    const struct codec *codec = NULL;
    struct scan scan;
    int fd = -1;
    annal_status status = annal__context_check(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__store_journal_open(&store->context, session, &fd, &codec, err);
    if (status < 0)
        return status;
    annal__scan_init(&scan, store->context.io, fd, codec);
    scan.tables = &store->seek_tables;
    status = read_origin(&scan, session, out_origin, err);
    if (status < 0) {
        annal__scan_done(&scan);
        return status;
    }
    scan.next_seq = scan.first_seq = out_origin->seq + 1;
    *out_scan = scan;
    return ANNAL_OK;
}

static annal_status refuse_depth(const char *session, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_LIMIT,
                       "session '%s' is part of a chain of more than %d forks of forks", session,
                       ANNAL_ANCESTORS_MAX);
}

/* Append to the lineage the parent session that `origin` names, with its own origin. */
static annal_status climb(annal_store *store, struct lineage *lineage, const char *session,
                          const struct origin *origin, annal_error *err)
{
    struct scan scan;
    annal_error why = {0};
    if (lineage->count >= ANNAL_ANCESTORS_MAX)
        return refuse_depth(session, err);
    struct part part = {.to_seq = origin->seq, .to_h = origin->h};
    memcpy(part.session, origin->session, sizeof part.session);
    annal_status status =
        annal__lineage_open_journal(store, annal_slice_of(part.session), &scan, &part.origin, &why);
    if (status == ANNAL_ERR_NOTFOUND || status == ANNAL_ERR_CORRUPT)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "session '%s' is a fork of session '%s', which cannot be read: %.300s",
                           session, part.session, why.message);
    if (status < 0)
        return annal__error_pass(err, status, &why);
    annal__scan_done(&scan);
    if (part.origin.seq >= part.to_seq) /* a part of a history must not be empty (rule 2) */
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "session '%s' is a fork of session '%s' at event %" PRIu64
                           ", but the parent's journal starts after this event",
                           session, part.session, part.to_seq);
    struct part *last = annal__array_add(&lineage->parts, &lineage->count, sizeof *last);
    if (last == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read session '%s': out of memory", session);
    *last = part;
    return ANNAL_OK;
}

annal_status annal__lineage_find(annal_store *store, struct lineage *lineage, const char *session,
                                 const struct origin *origin, uint64_t seq, size_t *out_part,
                                 annal_error *err)
{
    size_t part = 0;
    while (seq <= origin->seq) {
        annal_status status = ANNAL_OK;
        if (part == lineage->count)
            status = climb(store, lineage, session, origin, err);
        if (status < 0)
            return status;
        session = lineage->parts[part].session;
        origin = &lineage->parts[part].origin;
        part++;
    }
    *out_part = part;
    return ANNAL_OK;
}

annal_status annal__lineage_refuse(const char *fork, const struct part *part, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "session '%s' is a fork of session '%s' at event %" PRIu64
                       ", but the parent's events up to there were replaced after the fork",
                       fork, part->session, part->to_seq);
}

bool annal__lineage_differs(const struct scan *scan, annal_status status, const annal_event *event,
                            const struct part *part)
{
    uint64_t h = 0;
    if (status == ANNAL_OK && event->seq == part->to_seq)
        return event->h != part->to_h;
    /* If event to_seq is lost, the trailer before the next event still contains its hash. */
    if (status == ANNAL_OK)
        return event->seq == part->to_seq + 1 &&
               annal__scan_h_before(scan, event->offset, &h, NULL) == ANNAL_OK && h != part->to_h;
    return status == ANNAL_DAMAGE && scan->damage.seq == part->to_seq && scan->damage.event_lost &&
           scan->resume == 0 && scan->h != part->to_h;
}

/* Check that the journal of an ancestor contains the history of the fork (rule 4). Damage before or
 * at the fork point is not reported. */
static annal_status check_part(annal_store *store, const char *fork, const struct part *part,
                               annal_error *err)
{
    struct scan scan;
    struct origin origin;
    annal_event event = {0};
    annal_slice session = annal_slice_of(part->session);
    annal_status status = annal__lineage_open_journal(store, session, &scan, &origin, err);
    if (status < 0)
        return status;
    status = annal__seek(&scan, part->to_seq, err);
    bool differs = false, passed = false;
    while (status >= 0 && !differs && !passed) {
        status = annal__scan_next_head(&scan, &event, err);
        differs = status == ANNAL_END || annal__lineage_differs(&scan, status, &event, part);
        passed = status == ANNAL_OK && event.seq >= part->to_seq;
        passed = passed || (status == ANNAL_DAMAGE && scan.next_seq > part->to_seq);
    }
    annal__scan_done(&scan);
    if (status < 0)
        return status;
    return differs ? annal__lineage_refuse(fork, part, err) : ANNAL_OK;
}

annal_status annal__lineage_of(annal_store *store, annal_slice session, struct lineage *lineage,
                               char *id, struct origin *out_origin, size_t *out_parts,
                               annal_error *err)
{
    struct scan scan;
    annal_status status = annal__lineage_open_journal(store, session, &scan, out_origin, err);
    if (status < 0)
        return status;
    annal__scan_done(&scan);
    memcpy(id, session.ptr, session.len);
    id[session.len] = '\0';
    return annal__lineage_find(store, lineage, id, out_origin, 1, out_parts, err);
}

/* ---- Lineages that were checked before ---- */

struct annal__proved {
    pthread_mutex_t lock;
    void *tree; /* struct proved_one, in a tree of tsearch(3); guarded by lock */
};

/* A session with this file id, whose lineage was checked. */
struct proved_one {
    size_t ancestors;
    char file[33];
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

static int compare_proved(const void *a, const void *b)
{
    const struct proved_one *one = a, *other = b;
    int order = strcmp(one->session, other->session);
    return order != 0 ? order : strcmp(one->file, other->file);
}

annal__proved *annal__lineage_proved_new(void)
{
    annal__proved *proved = annal__zalloc(sizeof *proved);
    if (proved != NULL && pthread_mutex_init(&proved->lock, NULL) != 0) {
        annal__free(proved);
        return NULL;
    }
    return proved;
}

void annal__lineage_proved_free(annal__proved *proved)
{
    if (proved == NULL)
        return;
    tdestroy(proved->tree, annal__free);
    pthread_mutex_destroy(&proved->lock);
    annal__free(proved);
}

static struct proved_one one_of(const char *session, const struct origin *origin)
{
    struct proved_one one = {0};
    strcpy(one.session, session);
    strcpy(one.file, origin->file);
    return one;
}

static bool is_proved(annal__proved *proved, const char *session, const struct origin *origin,
                      size_t *out_ancestors)
{
    const struct proved_one wanted = one_of(session, origin);
    if (proved == NULL)
        return false;
    pthread_mutex_lock(&proved->lock);
    struct proved_one **found = tfind(&wanted, &proved->tree, compare_proved);
    *out_ancestors = found != NULL ? (*found)->ancestors : 0;
    pthread_mutex_unlock(&proved->lock);
    return found != NULL;
}

/* Remember that the lineage of a session was checked. If memory runs out, it is checked again the
 * next time. */
static void note_proved(annal__proved *proved, const char *session, const struct origin *origin,
                        size_t ancestors)
{
    struct proved_one *one = proved != NULL ? annal__zalloc(sizeof *one) : NULL;
    if (one == NULL)
        return;
    *one = one_of(session, origin);
    one->ancestors = ancestors;
    pthread_mutex_lock(&proved->lock);
    struct proved_one **found = tsearch(one, &proved->tree, compare_proved);
    bool is_known = found == NULL || *found != one;
    pthread_mutex_unlock(&proved->lock);
    if (is_known)
        annal__free(one);
}

annal_status annal__lineage_check(annal_store *store, annal_slice session, annal__proved *proved,
                                  annal_error *err)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    struct scan scan;
    struct lineage lineage = {0};
    struct origin origin = {0};
    annal_status status = annal__lineage_open_journal(store, session, &scan, &origin, err);
    if (status < 0)
        return status;
    annal__scan_done(&scan);
    memcpy(id, session.ptr, session.len);
    const char *name = id;
    const struct origin *at = &origin;
    size_t more = 0; /* number of ancestors whose lineage was checked before */
    while (status == ANNAL_OK && at->seq > 0 && !is_proved(proved, name, at, &more)) {
        status = climb(store, &lineage, name, at, err);
        if (status == ANNAL_OK)
            status = check_part(store, name, &lineage.parts[lineage.count - 1], err);
        if (status == ANNAL_OK) {
            name = lineage.parts[lineage.count - 1].session;
            at = &lineage.parts[lineage.count - 1].origin;
        }
    }
    if (status == ANNAL_OK && lineage.count + more > ANNAL_ANCESTORS_MAX)
        status = refuse_depth(id, err);
    for (size_t i = 0; status == ANNAL_OK && i <= lineage.count; i++)
        note_proved(proved, i == 0 ? id : lineage.parts[i - 1].session,
                    i == 0 ? &origin : &lineage.parts[i - 1].origin, lineage.count + more - i);
    annal__lineage_done(&lineage);
    return status;
}

void annal__lineage_done(struct lineage *lineage)
{
    annal__free(lineage->parts);
    *lineage = (struct lineage){0};
}
