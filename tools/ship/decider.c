/* The target as the decider of appends to sessions that are shared: shared.h. */
#include "tools/cli/decider.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"
#include "tools/ship/home.h"
#include "tools/ship/shared.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { AGAIN_US = 100000 };

struct decider {
    annal_decider ops;
    annal_store *store;
    pthread_mutex_t lock; /* guards what follows */
    char url[SHARED_URL_BYTES];
    struct ship_where where;
    const struct ship_kind *kind; /* NULL: the address was not read yet */
    struct ship_target *target;   /* NULL: there is no connection */
};

/* ---- The address ---- */

static annal_status cluster_path(annal_store *store, struct buf *out, annal_error *err)
{
    if (annal__buf_printf(out, "%s/cluster", annal_store_path(store)) < 0 ||
        annal__buf_cstr(out) == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "no memory for a path");
    return ANNAL_OK;
}

annal_status shared_url(annal_store *store, char out[SHARED_URL_BYTES], annal_error *err)
{
    struct buf path = {0};
    annal_status status = cluster_path(store, &path, err);
    FILE *file = status >= 0 ? fopen(path.ptr, "re") : NULL;
    out[0] = '\0';
    if (file != NULL && fgets(out, SHARED_URL_BYTES, file) != NULL)
        out[strcspn(out, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
    if (status >= 0 && out[0] == '\0')
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "%s has no address of a database", path.ptr);
    annal__buf_done(&path);
    return status;
}

static bool has_password(const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *at = memchr(host, '@', strcspn(host, "/?"));
    return strstr(url, "password=") != NULL ||
           (at != NULL && memchr(host, ':', (size_t)(at - host)) != NULL);
}

annal_status shared_set_url(annal_store *store, const char *url, annal_error *err)
{
    char there[SHARED_URL_BYTES], line[SHARED_URL_BYTES + 1];
    struct buf path = {0};
    if (strlen(url) >= SHARED_URL_BYTES || strchr(url, '\n') != NULL)
        return annal__fail(err, ANNAL_ERR_INVALID, "the address is too long, or not one line");
    if (has_password(url))
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "the address has a password, which %s/cluster would keep: put it into "
                           "~/.pgpass instead",
                           annal_store_path(store));
    if (shared_url(store, there, NULL) == ANNAL_OK && strcmp(there, url) == 0)
        return ANNAL_OK;
    if (there[0] != '\0')
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "this store shares its sessions at %s: %s/cluster says so", there,
                           annal_store_path(store));
    annal_status status = cluster_path(store, &path, err);
    int len = snprintf(line, sizeof line, "%s\n", url);
    if (status >= 0)
        status = annal__publish_file(annal__store_io(store), path.ptr, line, (size_t)len, err);
    annal__buf_done(&path);
    return status;
}

/* ---- The connection ---- */

static void hang_up(struct decider *decider)
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
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "'%s' decides about no sessions: that needs postgresql://",
                           decider->url);
    decider->where = (struct ship_where){.url = decider->url,
                                         .store = SHARED_STORE,
                                         .quiet_ms = annal__store_wait_ms(decider->store)};
    return decider->kind->open(&decider->where, true, &decider->target, err);
}

/* Away: ANNAL_ERR_IO, as for annal home; after that the connection is of no use. */
static annal_status fail_away(struct decider *decider, annal_slice session, annal_status status,
                              const annal_error *why, annal_error *err)
{
    hang_up(decider);
    if (status != ANNAL_ERR_BUSY) {
        if (err != NULL)
            *err = *why;
        return status;
    }
    return annal__fail(err, ANNAL_ERR_IO,
                       "append to session '%.*s': refused, nothing was written: it is shared, and "
                       "who decides about it is away: %.350s",
                       ANNAL_FMT(session), why->message);
}

/* ---- Bringing ---- */

struct bringing {
    struct decider *decider;
    annal_session_info here;
    annal_writer *writer;
};

/* A row_fn. Another process of this store may have brought it a moment ago. */
static annal_status add_row(void *arg, const annal_event *event, annal_error *err)
{
    struct bringing *bringing = arg;
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
    annal_status status = annal_writer_append(bringing->writer, &draft, 1, &options, &seq, err);
    if (status == ANNAL_ERR_CONFLICT &&
        annal_session_info_get(bringing->decider->store, annal_slice_of(bringing->here.session),
                               &bringing->here, NULL) == ANNAL_OK &&
        bringing->here.last_seq >= event->seq)
        return ANNAL_OK;
    return status;
}

static annal_status bring_rows(struct decider *decider, annal_slice session, annal_error *err)
{
    struct bringing bringing = {.decider = decider};
    annal_status status = annal_session_info_get(decider->store, session, &bringing.here, err);
    if (status >= 0)
        status = annal_writer_open(decider->store, session, NULL, &bringing.writer, err);
    if (status >= 0)
        status = decider->kind->rows(decider->target, session, bringing.here.last_seq, add_row,
                                     &bringing, err);
    if (status >= 0)
        status = annal_writer_sync(bringing.writer, NULL, err);
    annal_writer_close(bringing.writer);
    return status;
}

/* A connection that was idle may be dead: then another one is tried. */
static annal_status bring(void *arg, annal_slice session, annal_error *err)
{
    struct decider *decider = arg;
    annal_error why = {0};
    pthread_mutex_lock(&decider->lock);
    bool was_idle = decider->target != NULL;
    annal_status status = connect(decider, &why);
    if (status >= 0)
        status = bring_rows(decider, session, &why);
    if (status == ANNAL_ERR_BUSY && was_idle) {
        hang_up(decider);
        status = connect(decider, &why);
        if (status >= 0)
            status = bring_rows(decider, session, &why);
    }
    if (status < 0)
        status = fail_away(decider, session, status, &why, err);
    pthread_mutex_unlock(&decider->lock);
    return status;
}

/* ---- Deciding ---- */

struct deciding {
    const annal_session_info *end;
    const annal_event *events;
    size_t count;
    uint64_t epoch; /* of the lease: that of rule 1 */
    bool was_sent;  /* a COMMIT may be on its way: rule 4 */
};

/* Rule 4: whether the last of these events is in the history of the target. */
static annal_status look_for(struct decider *decider, const struct deciding *deciding,
                             annal_error *err)
{
    const annal_event *last = &deciding->events[deciding->count - 1];
    const struct place place = {.seq = last->seq, .h = last->h};
    uint64_t found = 0;
    annal_status status = decider->kind->homes->shared(decider->target, deciding->end->session,
                                                       &place, 1, &found, err);
    if (status < 0)
        return status;
    return found == last->seq ? ANNAL_OK
                              : annal__fail(err, ANNAL_ERR_CONFLICT,
                                            "append to session '%s': other stores were first",
                                            deciding->end->session);
}

static annal_status put_all(struct decider *decider, const struct deciding *deciding,
                            struct lane *lane, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; status >= 0 && i < deciding->count; i++) {
        const annal_event *event = &deciding->events[i];
        status = decider->kind->put(decider->target, lane, event, err);
        lane->next = (struct place){event->seq, event->h, event->offset + event->length};
    }
    return status;
}

/* One transaction: rule 3. */
static annal_status try_once(struct decider *decider, struct deciding *deciding, annal_error *err)
{
    const struct ship_kind *kind = decider->kind;
    const annal_session_info *end = deciding->end;
    struct lane lane = {.session = end->session, .epoch = deciding->epoch};
    struct lane *lanes = &lane;
    annal_status status = kind->begin(decider->target, &lanes, 1, err);
    if (status < 0)
        return status;
    if (lane.away || !lane.has_head)
        return annal__fail(err, ANNAL_ERR_REFUSED,
                           "append to session '%s': refused, it is not shared any more: 'annal "
                           "home status' says where it is",
                           end->session);
    lane.next = lane.there;
    bool is_end = lane.there.seq == end->last_seq && lane.there.h == end->last_h;
    if (is_end)
        status = put_all(decider, deciding, &lane, err);
    deciding->was_sent = deciding->was_sent || (is_end && status >= 0);
    if (status >= 0)
        status = kind->commit(decider->target, &lanes, 1, err);
    if (status >= 0 && !is_end)
        status = look_for(decider, deciding, err);
    return status;
}

static annal_status fail_unknown(const struct deciding *deciding, const annal_error *why,
                                 annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_UNKNOWN,
                       "append to session '%s': it is not known whether event %" PRIu64
                       " was decided; if it was, the next append brings it: %.300s",
                       deciding->end->session, deciding->events[0].seq, why->message);
}

static annal_status decide_until(struct decider *decider, struct deciding *deciding,
                                 annal_error *err)
{
    annal_slice session = annal_slice_of(deciding->end->session);
    annal_error why = {0};
    annal_status status;
    int64_t until_us = annal__monotonic_us() + (int64_t)annal__store_wait_ms(decider->store) * 1000;
    while (true) {
        status = connect(decider, &why);
        if (status >= 0)
            status = try_once(decider, deciding, &why);
        if (status != ANNAL_ERR_BUSY || !deciding->was_sent || annal__monotonic_us() >= until_us)
            break;
        hang_up(decider);
        annal__store_wait(decider->store, AGAIN_US);
    }
    if (status >= 0)
        return status;
    if (status == ANNAL_ERR_BUSY && deciding->was_sent) {
        hang_up(decider);
        return fail_unknown(deciding, &why, err);
    }
    if (status != ANNAL_ERR_CONFLICT)
        return fail_away(decider, session, status, &why, err);
    if (err != NULL)
        *err = why;
    return status;
}

static annal_status decide(void *arg, const annal_session_info *end, const annal_event *events,
                           size_t count, annal_error *err)
{
    struct decider *decider = arg;
    annal_lease lease = {0};
    struct deciding deciding = {.end = end, .events = events, .count = count};
    annal_status status =
        annal_lease_get(decider->store, annal_slice_of(end->session), &lease, err);
    if (status < 0)
        return status;
    deciding.epoch = lease.epoch;
    pthread_mutex_lock(&decider->lock);
    status = decide_until(decider, &deciding, err);
    pthread_mutex_unlock(&decider->lock);
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
    decider->ops = (annal_decider){.bring = bring, .decide = decide, .arg = decider};
    return &decider->ops;
}

void decider_free(const annal_decider *ops)
{
    struct decider *decider = ops != NULL ? ops->arg : NULL;
    if (decider == NULL)
        return;
    hang_up(decider);
    pthread_mutex_destroy(&decider->lock);
    annal__free(decider);
}
