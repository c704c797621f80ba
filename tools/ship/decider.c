/* SPDX-License-Identifier: Apache-2.0 */
/* Decides appends to shared sessions (shared.h) in the database of the cluster. */
#include "tools/cli/decider.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"
#include "tools/ship/home.h"
#include "tools/ship/pull.h"
#include "tools/ship/references.h"
#include "tools/ship/shared.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { AGAIN_US = 100000, LOCK_US = 500 };

struct decider {
    annal_decider ops;
    annal_store *store;
    pthread_mutex_t lock; /* guards the members below */
    char url[SHARED_URL_BYTES];
    struct ship_where where;
    const struct ship_kind *kind; /* NULL until the address of the database was read */
    struct ship_target *target;   /* NULL while disconnected */
};

/* ---- The connection ---- */

static void disconnect(struct decider *decider)
{
    if (decider->kind != NULL)
        decider->kind->close(decider->target);
    decider->target = NULL;
}

static annal_status connect(struct decider *decider, annal_error *err)
{
    if (decider->target != NULL)
        return ANNAL_OK;
    annal_status status = shared_url(decider->store, decider->url, err);
    if (status < 0)
        return status;
    decider->kind = ship_kind_of(decider->url);
    if (decider->kind == NULL || decider->kind->homes == NULL)
        return annal__fail(
            err, ANNAL_ERR_UNSUPPORTED,
            "the file %s/cluster does not contain an address that begins with postgresql://: "
            "run 'annal home leave' and 'annal home join' to write it again",
            annal_store_path(decider->store));
    decider->where = (struct ship_where){.url = decider->url,
                                         .store = SHARED_STORE,
                                         .quiet_ms = annal__store_wait_ms(decider->store)};
    return decider->kind->open(&decider->where, true, &decider->target, err);
}

/*
 * Close the connection and fail: with ANNAL_ERR_IO if the target is unreachable, as in annal home.
 */
static annal_status fail_unreachable(struct decider *decider, annal_slice session,
                                     annal_status status, const annal_error *why, annal_error *err)
{
    disconnect(decider);
    if (status != ANNAL_ERR_BUSY) {
        if (err != NULL)
            *err = *why;
        return status;
    }
    return annal__fail(
        err, ANNAL_ERR_IO,
        "append to session '%.*s': cannot reach the cluster database, nothing was written: %.350s",
        ANNAL_FMT(session), why->message);
}

/* ---- Sharing ---- */

/* Fail because the session has events that the target lacks: it cannot be shared before they are
 * shipped, and no store ships a shared session. */
static annal_status fail_ahead(const struct decider *decider, const annal_session_info *here,
                               const struct place *head, annal_error *err)
{
    struct home home;
    annal_status status =
        home_find(decider->kind->homes, decider->target, here->session, &home, err);
    if (status < 0)
        return status;
    return annal__fail(
        err, ANNAL_ERR_REFUSED, "session '%s' has %" PRIu64 " event%s that the target lacks: %s",
        here->session, here->last_seq - head->seq, here->last_seq - head->seq == 1 ? "" : "s",
        home.is_ours ? "run 'annal home release', 'annal home take' and 'annal ship', then release "
                       "the session again"
                     : "run 'annal ship', then share the session");
}

/* Check that the local events are the first events of the target's history. A fork without own
 * events need not exist at the target. */
static annal_status compare_beginning(struct decider *decider, const char *session,
                                      annal_error *err)
{
    struct place head = {0};
    annal_session_info info = {0};
    annal_error why = {0};
    uint64_t same_seq = 0;
    const struct home_kind *homes = decider->kind->homes;
    annal_status status =
        annal_session_info_get(decider->store, annal_slice_of(session), &info, &why);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status < 0) {
        *err = why;
        return status;
    }
    status = homes->head(decider->target, session, &head, err);
    if (status < 0)
        return status;
    if (head.at == 0 && info.last_seq < info.first_seq)
        return ANNAL_OK;
    if (info.last_seq > head.seq)
        return fail_ahead(decider, &info, &head, err);
    const struct place last = {.seq = info.last_seq, .h = info.last_h};
    status = homes->shared(decider->target, session, &last, 1, &same_seq, err);
    if (status >= 0 && same_seq != info.last_seq)
        status = annal__fail(err, ANNAL_ERR_REFUSED,
                             "session '%s' differs from the target's copy: run 'annal delete %s'; "
                             "the next append downloads the target's copy",
                             session, session);
    return status;
}

/* Share a session with the other stores of the cluster (shared.h, rules 1 and 2). */
static annal_status share_session(struct decider *decider, const char *session, annal_error *err)
{
    struct home home, ignored;
    annal_lease lease = {0};
    const struct home_kind *homes = decider->kind->homes;
    annal_status status = annal_lease_get(decider->store, annal_slice_of(session), &lease, err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    /* compare before the session is taken: if they differ, nothing was changed */
    status = compare_beginning(decider, session, err);
    if (status >= 0)
        status = homes->take(decider->target, session, lease.epoch, INT32_MAX, &home, err);
    if (status < 0)
        return status;
    if (!home.granted && strcmp(home.store, SHARED_STORE) != 0)
        return annal__fail(err, ANNAL_ERR_REFUSED,
                           "session '%s' is at home in store '%s' (epoch %" PRIu64
                           "): release the session in that store first",
                           session, home.store, home.epoch);
    status = compare_beginning(decider, session, err);
    if (status < 0) {
        if (home.granted && !lease.shared)
            (void)homes->release(decider->target, session, home.epoch, &ignored, NULL);
        return status;
    }
    lease = (annal_lease){.epoch = home.epoch, .shared = true};
    snprintf(lease.giver, sizeof lease.giver, "%s", homes->name(decider->target));
    return annal_lease_set(decider->store, annal_slice_of(session), &lease, err);
}

/* Mark the session as not shared in this store, because the target names another home or epoch of
 * the session. The next append may share it again. */
static annal_status end_sharing(struct decider *decider, const char *name, uint64_t epoch,
                                annal_error *err)
{
    annal_lease lease = {0};
    annal_slice session = annal_slice_of(name);
    disconnect(decider);
    annal_status status = annal_lease_get(decider->store, session, &lease, err);
    if (status >= 0 && lease.shared && lease.epoch == epoch) {
        lease.shared = false;
        status = annal_lease_set(decider->store, session, &lease, err);
    }
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    return annal__fail(
        err, ANNAL_ERR_CONFLICT,
        "append to session '%s': the session was released, so the session is no longer shared",
        name);
}

/* ---- Downloading ---- */

/* Download the journal of a session that does not exist locally. Waits while another process of
 * this store pulls the session. */
static annal_status fetch_journal(struct decider *decider, const char *session, annal_error *err)
{
    const struct pull_options options = {
        .from = decider->where, .kind = decider->kind, .session = session};
    annal_session_info info;
    int64_t until_us =
        annal__clock_monotonic_us() + (int64_t)annal__store_wait_ms(decider->store) * 1000;
    annal_status status;
    while ((status = pull_silently(decider->store, &options, err)) == ANNAL_ERR_BUSY &&
           annal_session_info_get(decider->store, annal_slice_of(session), &info, NULL) < 0 &&
           annal__clock_monotonic_us() < until_us)
        annal__store_wait(decider->store, AGAIN_US);
    bool is_here = status == ANNAL_ERR_BUSY || status == ANNAL_ERR_CONFLICT;
    return is_here && annal_session_info_get(decider->store, annal_slice_of(session), &info,
                                             NULL) == ANNAL_OK
               ? ANNAL_OK
               : status;
}

struct download {
    struct decider *decider;
    annal_session_info here;
    annal_writer *writer;
    uint64_t seq; /* seq of the last downloaded event */
    struct references references;
};

/* Append one downloaded event; a row_fn. Succeeds if another process of this store has just
 * appended the same event. */
static annal_status add_row(void *arg, const annal_event *event, annal_error *err)
{
    struct download *download = arg;
    const annal_draft draft = {.type = event->type,
                               .data = event->data,
                               .id = event->id,
                               .cause = event->cause,
                               .ts_us = ANNAL_TS(event->ts_us)};
    const annal_append_options options = {.level = ANNAL_LEVEL_BATCH,
                                          .expect = ANNAL_EXPECT_SEQ,
                                          .expected_seq = event->seq - 1,
                                          .h = event->h};
    uint64_t seq;
    annal_status status = annal_writer_append(download->writer, &draft, 1, &options, &seq, err);
    download->seq = event->seq;
    if (status == ANNAL_ERR_CONFLICT &&
        annal_session_info_get(download->decider->store, annal_slice_of(download->here.session),
                               &download->here, NULL) == ANNAL_OK &&
        download->here.last_seq >= event->seq)
        return ANNAL_OK;
    return status < 0 ? status
                      : annal__artifact_references(event->data, references_note,
                                                   &download->references, err);
}

/* Download the artifacts of the downloaded events. An artifact that the target lacks, or has with
 * other content, is skipped;
 * annal pull may find it later. */
static annal_status fetch_artifacts(const struct download *download, annal_error *err)
{
    struct decider *decider = download->decider;
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < download->references.count && status >= 0; i++) {
        const struct reference *reference = &download->references.all[i];
        status = references_fetch(annal_slice_of(reference->session), reference->sha256,
                                  decider->store, decider->kind, decider->target, err);
        if (status == ANNAL_ERR_NOTFOUND || status == ANNAL_ERR_CORRUPT)
            status = ANNAL_OK;
    }
    return status;
}

/* Download the events after the last local one. */
static annal_status fetch_events(struct download *download, annal_error *err)
{
    struct decider *decider = download->decider;
    annal_slice session = annal_slice_of(download->here.session);
    annal_error why = {0};
    annal_status status = annal_writer_open(decider->store, session, NULL, &download->writer, err);
    if (status >= 0)
        status = decider->kind->source->rows(decider->target, session, download->here.last_seq,
                                             add_row, download, err);
    if (status >= 0)
        status = annal_writer_sync(download->writer, NULL, err);
    annal_writer_close(download->writer);
    if (status >= 0)
        status = fetch_artifacts(download, err);
    references_clear(&download->references);
    if (status == ANNAL_ERR_REFUSED &&
        compare_beginning(decider, download->here.session, &why) == ANNAL_ERR_REFUSED)
        *err = why;
    return status;
}

/* Download the missing events of a session, because guards must see all events that the target has.
 * If events are still missing afterwards, the session is no longer shared. */
static annal_status fetch_session(struct decider *decider, const char *name, annal_error *err)
{
    struct download download = {.decider = decider};
    struct place head = {0};
    annal_lease lease = {0};
    annal_error why = {0};
    annal_slice session = annal_slice_of(name);
    annal_status status = annal_session_info_get(decider->store, session, &download.here, &why);
    bool is_here = status >= 0 && download.here.bytes > 0;
    if (status < 0 && status != ANNAL_ERR_NOTFOUND) {
        *err = why;
        return status;
    }
    download.seq = download.here.last_seq;
    status = decider->kind->homes->head(decider->target, name, &head, err);
    if (status < 0 ||
        (head.at == 0 && (!is_here || download.here.last_seq < download.here.first_seq)))
        return status;
    if (is_here && head.seq < download.here.last_seq)
        return fail_ahead(decider, &download.here, &head, err);
    if (is_here && head.seq == download.here.last_seq)
        return head.h == download.here.last_h ? ANNAL_OK : compare_beginning(decider, name, err);
    status = is_here ? fetch_events(&download, err) : fetch_journal(decider, name, err);
    if (is_here ? status < 0 || download.seq >= head.seq : status != ANNAL_ERR_NOTFOUND)
        return status;
    status = annal_lease_get(decider->store, session, &lease, err);
    return status < 0 ? status : end_sharing(decider, name, lease.epoch, err);
}

/* Take decider->lock, or fail after the store's waiting time: another thread may hold the lock
 * while it waits for a silent target. */
static annal_status lock(struct decider *decider, annal_slice session, annal_error *err)
{
    int64_t until_us =
        annal__clock_monotonic_us() + (int64_t)annal__store_wait_ms(decider->store) * 1000;
    while (pthread_mutex_trylock(&decider->lock) != 0) {
        if (annal__clock_monotonic_us() >= until_us)
            return annal__fail(err, ANNAL_ERR_IO,
                               "append to session '%.*s': timed out behind another append to a "
                               "shared session, nothing was written; try again",
                               ANNAL_FMT(session));
        annal__store_wait(decider->store, LOCK_US);
    }
    return ANNAL_OK;
}

/* Call fn with a connection. An idle connection may be broken: after a failure on such a
 * connection, fn is called once more with a new one. */
static annal_status with_session(struct decider *decider, annal_slice session,
                                 annal_status (*fn)(struct decider *, const char *, annal_error *),
                                 annal_error *err)
{
    char name[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_error why = {0};
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    annal_status status = lock(decider, session, err);
    if (status < 0)
        return status;
    bool was_idle = decider->target != NULL;
    status = connect(decider, &why);
    if (status >= 0)
        status = fn(decider, name, &why);
    if (status == ANNAL_ERR_BUSY && was_idle) {
        disconnect(decider);
        status = connect(decider, &why);
        if (status >= 0)
            status = fn(decider, name, &why);
    }
    if (status < 0)
        status = fail_unreachable(decider, session, status, &why, err);
    pthread_mutex_unlock(&decider->lock);
    return status;
}

static annal_status share(void *arg, annal_slice session, annal_error *err)
{
    return with_session(arg, session, share_session, err);
}

static annal_status fetch(void *arg, annal_slice session, annal_error *err)
{
    return with_session(arg, session, fetch_session, err);
}

/* ---- Deciding ---- */

struct deciding {
    const annal_decision *decision;
    /* shipment of the session that receives the events; after it, one for each session that its
     * guards read */
    struct shipment *shipments;
    struct shipment **all; /* pointers to the entries of `shipments` */
    size_t count;
    bool was_sent; /* whether a COMMIT was sent whose outcome is unknown (shared.h, rule 4) */
};

/* Check whether the target has the last of the events to append: then an earlier COMMIT succeeded
 * (shared.h, rule 4). */
static annal_status look_for(struct decider *decider, const struct deciding *deciding,
                             annal_error *err)
{
    const annal_decision *decision = deciding->decision;
    const annal_event *last = &decision->events[decision->count - 1];
    const struct place place = {.seq = last->seq, .h = last->h};
    uint64_t found = 0;
    annal_status status = decider->kind->homes->shared(decider->target, decision->end->session,
                                                       &place, 1, &found, err);
    if (status < 0)
        return status;
    return found == last->seq ? ANNAL_OK
                              : annal__fail(err, ANNAL_ERR_CONFLICT,
                                            "append to session '%s': events from other stores were "
                                            "committed first, nothing was written",
                                            decision->end->session);
}

static annal_status put_all(struct decider *decider, const struct deciding *deciding,
                            annal_error *err)
{
    const annal_decision *decision = deciding->decision;
    struct shipment *shipment = &deciding->shipments[0];
    struct references references = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < decision->count; i++) {
        const annal_event *event = &decision->events[i];
        status = decider->kind->put(decider->target, shipment, event, err);
        if (status >= 0)
            status = annal__artifact_references(event->data, references_note, &references, err);
        shipment->next = (struct place){event->seq, event->h, event->offset + event->length};
    }
    if (status >= 0)
        status = references_send(&references, decider->store, decider->kind, decider->target, err);
    references_clear(&references);
    return status;
}

static annal_status refuse_released(struct decider *decider, const struct deciding *deciding,
                                    const struct shipment *shipment, annal_error *err)
{
    annal_status status = ANNAL_ERR_CONFLICT;
    if (deciding->was_sent)
        status = decider->kind->commit(decider->target, deciding->all, 0, err);
    if (status >= 0)
        status = look_for(decider, deciding, err);
    return status == ANNAL_ERR_CONFLICT
               ? end_sharing(decider, shipment->session, shipment->epoch, err)
               : status;
}

static const annal_session_info *end_of(const struct deciding *deciding, size_t i)
{
    return i == 0 ? deciding->decision->end : &deciding->decision->reads[i - 1];
}

/* Check that a session ends with the same event locally and at the target. The target records no
 * last event for a new session, and for a session without events that guards read. */
static bool is_same_end(const struct deciding *deciding, size_t i)
{
    const annal_session_info *end = end_of(deciding, i);
    const struct shipment *shipment = &deciding->shipments[i];
    if (shipment->head.at == 0)
        return end->last_seq == 0 || end->last_seq < end->first_seq;
    return shipment->head.seq == end->last_seq && shipment->head.h == end->last_h;
}

static bool ends_are_same(const struct deciding *deciding)
{
    bool are_same = deciding->shipments[0].has_head;
    for (size_t i = 0; are_same && i < deciding->count; i++)
        are_same = is_same_end(deciding, i);
    return are_same;
}

/* Find out why a session ends differently at the target. Usually other stores appended first, and a
 * retry is useful. But if the local events are not the first events of the target's history, a
 * retry would fail again: ANNAL_ERR_REFUSED. */
static annal_status explain_ends(struct decider *decider, struct deciding *deciding,
                                 annal_error *err)
{
    annal_status status = look_for(decider, deciding, err);
    deciding->was_sent = deciding->was_sent && status != ANNAL_ERR_CONFLICT;
    for (size_t i = 0; status == ANNAL_ERR_CONFLICT && i < deciding->count; i++)
        if (!is_same_end(deciding, i) &&
            deciding->shipments[i].head.seq <= end_of(deciding, i)->last_seq &&
            compare_beginning(decider, deciding->shipments[i].session, err) == ANNAL_ERR_REFUSED)
            return ANNAL_ERR_REFUSED;
    return status;
}

/* Try one transaction: compare the ends of the sessions, then put the events (shared.h, rule 3). */
static annal_status try_once(struct decider *decider, struct deciding *deciding, annal_error *err)
{
    const struct ship_kind *kind = decider->kind;
    const annal_session_info *end = deciding->decision->end;
    struct shipment *shipment = &deciding->shipments[0];
    shipment->info = end->last_seq < end->first_seq ? (annal_session_info *)(uintptr_t)end : NULL;
    annal_status status = kind->begin(decider->target, deciding->all, deciding->count, err);
    if (status < 0)
        return status;
    for (size_t i = 0; i < deciding->count; i++)
        if (deciding->shipments[i].is_elsewhere)
            return refuse_released(decider, deciding, &deciding->shipments[i], err);
    shipment->next = shipment->head;
    bool is_end = ends_are_same(deciding);
    if (is_end) {
        deciding->was_sent = false; /* an earlier COMMIT did not succeed (shared.h, rule 4) */
        status = put_all(decider, deciding, err);
        deciding->was_sent = status >= 0;
    }
    if (status >= 0)
        status = kind->commit(decider->target, deciding->all, 1, err);
    if (status == ANNAL_ERR_REFUSED)
        deciding->was_sent = false;
    if (status >= 0 && !is_end)
        status = explain_ends(decider, deciding, err);
    return status;
}

static annal_status fail_unknown(const struct deciding *deciding, const annal_error *why,
                                 annal_error *err)
{
    return annal__fail(
        err, ANNAL_ERR_UNKNOWN,
        "append to session '%s': the outcome is unknown: event %" PRIu64
        " may have been committed in the database; if so, the next append downloads it: %.300s",
        deciding->decision->end->session, deciding->decision->events[0].seq, why->message);
}

static annal_status decide_until(struct decider *decider, struct deciding *deciding,
                                 annal_error *err)
{
    annal_slice session = annal_slice_of(deciding->decision->end->session);
    annal_error why = {0};
    annal_status status;
    int64_t until_us =
        annal__clock_monotonic_us() + (int64_t)annal__store_wait_ms(decider->store) * 1000;
    while (true) {
        status = connect(decider, &why);
        if (status >= 0)
            status = try_once(decider, deciding, &why);
        if (status != ANNAL_ERR_BUSY || !deciding->was_sent ||
            annal__clock_monotonic_us() >= until_us)
            break;
        disconnect(decider);
        annal__store_wait(decider->store, AGAIN_US);
    }
    if (status >= 0)
        return status;
    if (status != ANNAL_ERR_CONFLICT && deciding->was_sent) {
        disconnect(decider);
        return fail_unknown(deciding, &why, err);
    }
    if (status != ANNAL_ERR_CONFLICT)
        return fail_unreachable(decider, session, status, &why, err);
    return annal__error_pass(err, status, &why);
}

static annal_status set_shipment(const struct decider *decider, const char *session,
                                 struct shipment *shipment, annal_error *err)
{
    annal_lease lease = {0};
    annal_status status = annal_lease_get(decider->store, annal_slice_of(session), &lease, err);
    *shipment = (struct shipment){.session = session, .epoch = lease.epoch};
    return status;
}

static annal_status decide(void *arg, const annal_decision *decision, annal_error *err)
{
    struct decider *decider = arg;
    size_t count = 1 + decision->read_count;
    struct deciding deciding = {.decision = decision,
                                .shipments = annal__zalloc(count * sizeof *deciding.shipments),
                                .all = annal__zalloc(count * sizeof *deciding.all),
                                .count = count};
    annal_status status =
        deciding.shipments != NULL && deciding.all != NULL
            ? ANNAL_OK
            : annal__fail(err, ANNAL_ERR_NOMEM, "append to session '%s': out of memory",
                          decision->end->session);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        const annal_session_info *end = i == 0 ? decision->end : &decision->reads[i - 1];
        status = set_shipment(decider, end->session, &deciding.shipments[i], err);
        deciding.all[i] = &deciding.shipments[i];
    }
    if (status >= 0)
        status = lock(decider, annal_slice_of(decision->end->session), err);
    if (status >= 0) {
        status = decide_until(decider, &deciding, err);
        pthread_mutex_unlock(&decider->lock);
    }
    annal__free(deciding.shipments);
    annal__free(deciding.all);
    return status;
}

/* ---- The decider ---- */

const annal_decider *decider_new(annal_store *store)
{
    struct decider *decider = annal__zalloc(sizeof *decider);
    if (decider == NULL || pthread_mutex_init(&decider->lock, NULL) != 0) {
        annal__free(decider);
        return NULL;
    }
    decider->store = store;
    decider->ops =
        (annal_decider){.share = share, .bring = fetch, .decide = decide, .arg = decider};
    return &decider->ops;
}

void decider_free(const annal_decider *ops)
{
    struct decider *decider = ops != NULL ? ops->arg : NULL;
    if (decider == NULL)
        return;
    disconnect(decider);
    pthread_mutex_destroy(&decider->lock);
    annal__free(decider);
}
