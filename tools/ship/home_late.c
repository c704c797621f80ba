/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves events that were appended here after the home of their session was lost.
 *
 * (1) Late events are those after the last event that both sides have, if the target has other
 *     events after it. As long as the target has no such events, they are not late: if this store
 *     becomes the home again first, they are shipped.
 * (2) Late events are copied, not forked: a fork needs the journal of its parent, and that journal
 *     is about to be replaced by the target's history.
 * (3) The copy is named SESSION.late-EPOCH, with the epoch of the lost lease. It begins with an
 *     event annal.late that names the event before the late ones. An interrupted copy is continued.
 *     If a session of this name has other events, it is left unchanged, and the name of the copy
 *     gets a number.
 */
#include "tools/ship/home.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/export/extend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ASKED_AT_ONCE = 1000, NAMES_MAX = 100 };

static const char late_type[] = "annal.late";

struct late {
    annal_store *store;
    annal_slice session;
    annal_session_info info;
    struct place after; /* last event that the target also has */
    char first[500];    /* data of the first event of the copy, annal.late */
};

/* Read the seq, hash and offset of each event from from_seq to to_seq; all of them exist. */
static annal_status read_places(const struct late *late, uint64_t from_seq, uint64_t to_seq,
                                struct place *out, annal_error *err)
{
    annal_event event;
    annal_cursor *cursor = NULL;
    annal_status status = annal_cursor_open(late->store, late->session, from_seq, &cursor, err);
    for (uint64_t seq = from_seq; status == ANNAL_OK && seq <= to_seq; seq++) {
        status = annal_cursor_next(cursor, &event, err);
        if (status > 0 || (status == ANNAL_OK && event.seq != seq))
            status =
                annal__fail(err, ANNAL_ERR_CORRUPT, "session '%.*s': event %" PRIu64 " is damaged",
                            ANNAL_FMT(late->session), seq);
        if (status == ANNAL_OK)
            out[seq - from_seq] = (struct place){.seq = seq, .h = event.h};
    }
    annal_cursor_close(cursor);
    return status;
}

/* Find the last event that the journal and the target have in common (rule 1). Search from the end,
 * because few events were appended after the lease expired. */
static annal_status find_after(struct late *late, const struct home_kind *kind,
                               struct ship_target *target, annal_error *err)
{
    uint64_t to_seq = late->info.last_seq, shared = 0;
    annal_status status = ANNAL_OK;
    struct place *places = annal__zalloc(ASKED_AT_ONCE * sizeof *places);
    if (places == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "find the events appended after a lease expired: out of memory");
    late->after = (struct place){.seq = late->info.first_seq - 1, .h = late->info.fork_h};
    while (status == ANNAL_OK && shared == 0 && to_seq >= late->info.first_seq) {
        uint64_t most = to_seq + 1 - late->info.first_seq;
        uint64_t count = most < ASKED_AT_ONCE ? most : ASKED_AT_ONCE;
        uint64_t from_seq = to_seq + 1 - count;
        status = read_places(late, from_seq, to_seq, places, err);
        if (status == ANNAL_OK)
            status = kind->shared(target, late->info.session, places, count, &shared, err);
        if (status == ANNAL_OK && shared != 0)
            late->after = places[shared - from_seq];
        to_seq = from_seq - 1;
    }
    annal__free(places);
    return status;
}

static annal_status is_diverged(const struct late *late, const struct home_kind *kind,
                                struct ship_target *target, bool *out, annal_error *err)
{
    struct place head = {0};
    annal_cursor *cursor = NULL;
    annal_status status = kind->head(target, late->info.session, &head, err);
    *out = false;
    if (status < 0 || head.at == 0)
        return status;
    status = annal_cursor_open_at(late->store, late->session, head.seq + 1, head.at, head.h,
                                  &cursor, err);
    annal_cursor_close(cursor);
    *out = status == ANNAL_ERR_CONFLICT;
    return *out ? ANNAL_OK : status;
}

/* ---- The copy ---- */

static bool is_first(const struct late *late, const annal_event *event)
{
    return annal__slice_same(event->type, annal_slice_of(late_type)) &&
           annal__slice_same(event->data, annal_slice_of(late->first));
}

static bool is_same(const annal_event *one, const annal_event *other)
{
    return annal__slice_same(one->type, other->type) && annal__slice_same(one->id, other->id) &&
           annal__slice_same(one->data, other->data) && one->ts_us == other->ts_us;
}

/* Find out whether a session of this name is the copy that rule 3 describes, and the seq of its
 * last event. */
static annal_status compare(const struct late *late, annal_slice name, annal_cursor *events,
                            bool *out_same, uint64_t *out_last, annal_error *err)
{
    annal_event copied, event;
    annal_cursor *cursor = NULL;
    *out_same = true;
    *out_last = 0;
    annal_status status = annal_cursor_open(late->store, name, 1, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    while (status == ANNAL_OK && *out_same) {
        status = annal_cursor_next(cursor, &copied, err);
        if (status == ANNAL_OK && copied.seq == 1)
            *out_same = is_first(late, &copied);
        else if (status == ANNAL_OK)
            *out_same =
                annal_cursor_next(events, &event, err) == ANNAL_OK && is_same(&copied, &event);
        *out_last = status == ANNAL_OK ? copied.seq : *out_last;
    }
    annal_cursor_close(cursor);
    *out_same = *out_same && status != ANNAL_DAMAGE;
    return status < 0 ? status : ANNAL_OK;
}

static annal_status append_rest(const struct late *late, annal_slice name, annal_cursor *events,
                                uint64_t last_seq, annal_error *err)
{
    annal_writer *writer = NULL;
    annal_format format = late->info.format;
    const annal_draft first = {.type = annal_slice_of(late_type),
                               .data = annal_slice_of(late->first)};
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ};
    uint64_t seq = last_seq;
    annal_status status = annal_writer_open(
        late->store, name, &(annal_writer_options){.format = format}, &writer, err);
    if (status == ANNAL_OK && last_seq == 0)
        status = annal_writer_append(writer, &first, 1, &options, &seq, err);
    if (status == ANNAL_OK)
        status = extend_append(events, writer, seq, err);
    annal_writer_close(writer);
    return status;
}

/* Copy the events that were appended after the lease expired to the session out->name, if it does
 * not exist or is an unfinished copy of them. */
static annal_status copy_to(const struct late *late, struct home_late *out, bool *out_same,
                            annal_error *err)
{
    annal_cursor *events = NULL;
    uint64_t last_seq = 0;
    annal_slice name = annal_slice_of(out->name);
    annal_status status =
        annal_cursor_open(late->store, late->session, late->after.seq + 1, &events, err);
    if (status == ANNAL_OK)
        status = compare(late, name, events, out_same, &last_seq, err);
    if (status == ANNAL_OK && *out_same)
        status = append_rest(late, name, events, last_seq, err);
    annal_cursor_close(events);
    out->copied = out->events + 1 - last_seq;
    return status < 0 ? status : ANNAL_OK;
}

static annal_status copy(const struct late *late, uint64_t epoch, struct home_late *out,
                         annal_error *err)
{
    bool same = false;
    annal_status status = ANNAL_OK;
    for (int n = 1; status == ANNAL_OK && !same && n <= NAMES_MAX; n++) {
        int len = snprintf(out->name, sizeof out->name, "%.170s.late-%" PRIu64, late->info.session,
                           epoch);
        if (n > 1)
            snprintf(out->name + len, sizeof out->name - (size_t)len, "-%d", n);
        status = copy_to(late, out, &same, err);
    }
    if (status == ANNAL_OK && !same)
        status = annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "save the late events of session '%s': there is already a different session '%s'",
            late->info.session, out->name);
    return status;
}

annal_status home_late_keep(annal_store *store, const struct home_kind *kind,
                            struct ship_target *target, const char *session, uint64_t epoch,
                            struct home_late *out, annal_error *err)
{
    bool diverged = false;
    struct late late = {.store = store, .session = annal_slice_of(session)};
    *out = (struct home_late){0};
    annal_status status = annal_session_info_get(store, late.session, &late.info, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status == ANNAL_OK)
        status = is_diverged(&late, kind, target, &diverged, err);
    if (status == ANNAL_OK && diverged)
        status = find_after(&late, kind, target, err);
    if (status < 0 || !diverged || late.after.seq == late.info.last_seq)
        return status;
    out->is_other = epoch == 0 && late.after.seq < late.info.first_seq;
    if (out->is_other)
        return ANNAL_OK;
    out->after_seq = late.after.seq;
    out->events = late.info.last_seq - late.after.seq;
    snprintf(late.first, sizeof late.first,
             "{\"session\":\"%s\",\"after_seq\":%" PRIu64 ",\"h\":\"%016" PRIx64
             "\",\"epoch\":%" PRIu64 "}",
             session, late.after.seq, late.after.h, epoch);
    return copy(&late, epoch, out, err);
}
