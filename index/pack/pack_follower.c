/* SPDX-License-Identifier: Apache-2.0 */
#include "index/pack/pack_follower.h"

#include "journal/base/slice.h"

#include <stdio.h>

annal_status annal__pack_follower_open(struct follower *follower, const annal_pack *const *packs,
                                       size_t pack_count, annal_error *err)
{
    annal_status status = annal__follower_open(follower, err);
    if (status >= 0)
        status =
            annal__applier_new(follower->derived->db, packs, pack_count, &follower->applier, err);
    if (status >= 0 && follower->pack != NULL && annal__applier_settles(follower->applier))
        status = annal__follower_note_settled(follower, err);
    return status;
}

void annal__pack_follower_close(struct follower *follower)
{
    annal__applier_free(follower->applier);
    follower->applier = NULL;
    annal__follower_close(follower);
}

/* Keep the rows of the event that was tried before it was appended, if it equals this event of the
 * journal; otherwise return ANNAL_ERR_CONFLICT. */
static annal_status keep_tried(struct follower *follower, const annal_event *event)
{
    const annal_event *tried = follower->tried;
    if (event->seq != tried->seq || event->ts_us != tried->ts_us ||
        !annal__slice_same(event->type, tried->type) || !annal__slice_same(event->id, tried->id) ||
        !annal__slice_same(event->cause, tried->cause) ||
        !annal__slice_same(event->data, tried->data))
        /* the journal has another event than the one that was tried: guard.c then rolls the trial's
         * rows back */
        return ANNAL_ERR_CONFLICT;
    follower->tried = NULL;
    annal__applier_keep(follower->applier, event);
    return ANNAL_OK;
}

static annal_status note(struct follower *follower, annal_slice session, const annal_event *event,
                         annal_slice kind, const char *what, annal_error *err)
{
    const annal_index_finding finding = {.session = session,
                                         .seq = event->seq,
                                         .offset = event->offset,
                                         .length = event->length,
                                         .kind = kind,
                                         .what = annal_slice_of(what)};
    return annal__follower_finding(follower, &finding, err);
}

/*
 * Check the guards of an event in the journal, and record a finding if one refuses it. The event is
 * applied in any case: here, if *out_applied is true, or by the caller. The guards of the core pack
 * are not checked, because a plain append does not check them either (sys/pack.h), so imported
 * events may violate them.
 */
static annal_status check_guard(struct follower *follower, annal_slice session,
                                const annal_event *event, bool *out_past, bool *out_applied,
                                annal_error *err)
{
    const char *refused = NULL;
    char what[700];
    if (follower->pack == NULL)
        return ANNAL_OK;
    annal_status status =
        annal__applier_check(follower->applier, session, event, &refused, out_applied, err);
    *out_past = refused != NULL;
    if (status < 0 || refused == NULL)
        return status;
    snprintf(what, sizeof what, "%.*s was appended although its guard refuses it: %s",
             ANNAL_FMT(event->type), refused);
    return note(follower, session, event, ANNAL_SLICE("guard"), what, err);
}

annal_status annal__pack_follower_event(struct follower *follower, annal_slice session,
                                        const annal_event *event, annal_error *err)
{
    const char *refused = NULL;
    bool past = false, applied = false;
    if (follower->tried != NULL)
        return keep_tried(follower, event);
    annal_status status = check_guard(follower, session, event, &past, &applied, err);
    if (status >= 0 && !applied)
        status = annal__applier_event(follower->applier, session, event, &refused, err);
    return status < 0 || refused == NULL || past
               ? status
               : note(follower, session, event, ANNAL_SLICE("pack"), refused, err);
}

annal_status annal__pack_follower_settle(struct follower *follower, annal_slice session,
                                         uint64_t seq, annal_error *err)
{
    const char *refused = NULL;
    annal_status status = annal__applier_settle(follower->applier, session, seq, &refused, err);
    const annal_event event = {.seq = seq};
    return status < 0 || refused == NULL
               ? status
               : note(follower, session, &event, ANNAL_SLICE("pack"), refused, err);
}
