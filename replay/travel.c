/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Move one state forward and back through the events of a session.
 *
 * (1) Events cannot be undone. So while it folds to an event, travel keeps keyframes: states that
 *     do not change any more, one every KEYFRAME_EVENTS events over the last WINDOW_EVENTS events,
 *     and, if many events are folded, up to FAR_KEYFRAMES spread over the events before those. A
 *     keyframe is a database over the pages of the previous keyframe, and contains only the pages
 *     that were written since; the shown state is over the newest keyframe.
 * (2) To move to an event, travel folds from the nearest of three states before it: the shown
 *     state, the newest keyframe, a snapshot. If the shown state or the keyframe is within
 *     WINDOW_EVENTS, no snapshot is looked for.
 * (3) Keyframes after the event are dropped, so that keyframes stay in order. A step back by one
 *     event folds at most KEYFRAME_EVENTS events, and more only once in WINDOW_EVENTS steps. A far
 *     move back folds about 1/FAR_KEYFRAMES of the events that were folded before.
 */
#include "index/sys/open.h"
#include "index/sys/pack.h"
#include "index/sys/state.h"
#include "replay/fold.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <string.h>

enum {
    KEYFRAME_EVENTS = 64,
    WINDOW_EVENTS = 512,
    NEAR_KEYFRAMES = WINDOW_EVENTS / KEYFRAME_EVENTS,
    FAR_EVENTS = 2048, /* minimum of events between two of the FAR_KEYFRAMES */
    FAR_KEYFRAMES = 8,
    KEYFRAMES_MAX = 2 * (NEAR_KEYFRAMES + FAR_KEYFRAMES)
};

struct keyframe {
    annal_state *state;
    uint64_t seq;
};

struct annal_travel {
    annal_index *index;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_replay_options options;
    const annal_pack *core;
    /* the state at the present moment, and the cursor that reads its next event; here.state is NULL
     * after a failure */
    struct folding here;
    uint64_t seq;
    struct keyframe keyframes[KEYFRAMES_MAX];
    size_t keyframe_count;
};

static annal_slice session_of(const annal_travel *travel)
{
    return annal_slice_of(travel->session);
}

/* ---- Keyframes ---- */

static const struct keyframe *newest_keyframe(const annal_travel *travel)
{
    return travel->keyframe_count == 0 ? NULL : &travel->keyframes[travel->keyframe_count - 1];
}

static annal_status read_page(void *arg, uint64_t page, void *out, annal_error *err)
{
    return annal__state_page(arg, page, out, err);
}

/* Show a new state over the newest keyframe. */
static annal_status show_keyframe(annal_travel *travel, annal_error *err)
{
    const struct keyframe *keyframe = newest_keyframe(travel);
    annal__state_source source = {.read = read_page, .arg = keyframe->state};
    annal_status status = annal__state_page_count(keyframe->state, &source.page_count, err);
    if (status >= 0)
        status =
            annal__state_open_over(annal__state_session(keyframe->state), travel->options.packs,
                                   travel->options.pack_count, &source, &travel->here.state, err);
    return status;
}

/* Keep the present state as a keyframe, to which a later step back can return, and continue with a
 * new state over it. If all keyframes are in use, do nothing. */
static annal_status set_keyframe(annal_travel *travel, annal_error *err)
{
    if (travel->keyframe_count == KEYFRAMES_MAX)
        return ANNAL_OK;
    travel->keyframes[travel->keyframe_count++] =
        (struct keyframe){annal__fold_take(&travel->here), travel->seq};
    annal_status status = show_keyframe(travel, err);
    annal__state_shrink(newest_keyframe(travel)->state);
    return status;
}

/* Drop the shown state, the keyframes after seq, and all keyframes except the first `keep`. */
static void drop(annal_travel *travel, uint64_t seq, size_t keep)
{
    annal__fold_done(&travel->here);
    while (travel->keyframe_count > keep ||
           (travel->keyframe_count > 0 && newest_keyframe(travel)->seq > seq))
        annal_state_free(travel->keyframes[--travel->keyframe_count].state);
}

/* ---- Moving ---- */

static annal_status fold_to(annal_travel *travel, uint64_t seq, annal_error *err)
{
    annal_status status = annal__fold_to(&travel->here, seq, err);
    if (status >= 0)
        travel->seq = seq;
    return status;
}

static annal_status set_far_keyframes(annal_travel *travel, uint64_t seq, annal_error *err)
{
    uint64_t step = (seq - travel->seq) / (FAR_KEYFRAMES + 1);
    annal_status status = ANNAL_OK;
    if (step < FAR_EVENTS)
        step = FAR_EVENTS;
    while (status >= 0 && seq - travel->seq > step) {
        status = fold_to(travel, travel->seq + step, err);
        if (status >= 0)
            status = set_keyframe(travel, err);
    }
    return status;
}

/* Fold to seq and set keyframes on the way, rule (1). */
static annal_status fold_with_keyframes(annal_travel *travel, uint64_t seq, annal_error *err)
{
    uint64_t at = seq - travel->seq > WINDOW_EVENTS ? seq - WINDOW_EVENTS : travel->seq;
    annal_status status = set_far_keyframes(travel, at, err);
    if (status >= 0)
        status = fold_to(travel, at, err);
    while (status >= 0 && at < seq) {
        if (seq - at > KEYFRAME_EVENTS)
            status = set_keyframe(travel, err);
        at = seq - at > KEYFRAME_EVENTS ? at + KEYFRAME_EVENTS : seq;
        if (status >= 0)
            status = fold_to(travel, at, err);
    }
    return status;
}

static annal_status go_from_keyframe(annal_travel *travel, uint64_t seq, annal_error *err)
{
    drop(travel, seq, KEYFRAMES_MAX - NEAR_KEYFRAMES - FAR_KEYFRAMES);
    const struct keyframe *keyframe = newest_keyframe(travel);
    annal_store *store = annal__index_store(travel->index);
    annal_status status = show_keyframe(travel, err);
    if (status >= 0)
        status = annal_cursor_open(store, session_of(travel), keyframe->seq + 1,
                                   &travel->here.cursor, err);
    travel->here.store = store;
    travel->seq = keyframe->seq;
    return status < 0 ? status : fold_with_keyframes(travel, seq, err);
}

static annal_status go_from_snapshot(annal_travel *travel, struct folding *begun, uint64_t seq,
                                     annal_error *err)
{
    drop(travel, seq, KEYFRAMES_MAX - NEAR_KEYFRAMES - FAR_KEYFRAMES);
    travel->here = *begun;
    travel->seq = begun->from_seq;
    *begun = (struct folding){0};
    return fold_with_keyframes(travel, seq, err);
}

/* Move to seq from the nearest state, rule (2). */
static annal_status go(annal_travel *travel, uint64_t seq, annal_error *err)
{
    struct folding begun = {0};
    bool shown = travel->here.state != NULL && travel->seq <= seq;
    if (!shown)
        drop(travel, seq, KEYFRAMES_MAX);
    const struct keyframe *keyframe = newest_keyframe(travel);
    uint64_t near = shown ? travel->seq : keyframe != NULL ? keyframe->seq : 0;
    annal_status status = ANNAL_OK;
    if ((!shown && keyframe == NULL) || seq - near > WINDOW_EVENTS)
        status = annal__fold_begin(&begun, travel->index, session_of(travel), &travel->options, seq,
                                   err);
    if (status >= 0)
        status = begun.state != NULL && (begun.from_seq > near || (!shown && keyframe == NULL))
                     ? go_from_snapshot(travel, &begun, seq, err)
                 : shown ? fold_to(travel, seq, err)
                         : go_from_keyframe(travel, seq, err);
    annal__fold_done(&begun);
    return status;
}

annal_status annal_travel_seek(annal_travel *travel, annal_moment to, annal_error *err)
{
    uint64_t seq = 0;
    annal_status status = annal_replay_seq(travel->index, session_of(travel), to, &seq, err);
    if (status < 0)
        return status;
    status = go(travel, seq, err);
    if (status < 0)
        drop(travel, 0, 0);
    return status;
}

annal_status annal_travel_step(annal_travel *travel, int64_t events, annal_error *err)
{
    annal_session_info info;
    annal_status status =
        annal_session_info_get(annal__index_store(travel->index), session_of(travel), &info, err);
    if (status < 0)
        return status;
    uint64_t distance = events < 0 ? 0 - (uint64_t)events : (uint64_t)events;
    uint64_t room = events < 0 ? travel->seq : info.last_seq - travel->seq;
    if (distance > room)
        return ANNAL_END;
    const annal_moment to = {.kind = ANNAL_AT_SEQ,
                             .seq = events < 0 ? travel->seq - distance : travel->seq + distance};
    return annal_travel_seek(travel, to, err);
}

/* ---- Opening ---- */

annal_status annal_travel_open(annal_index *index, annal_slice session, annal_moment at,
                               const annal_replay_options *options, annal_travel **out_travel,
                               annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal_travel *travel = annal__zalloc(sizeof *travel);
    if (travel == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "travel in session '%.*s': out of memory",
                           ANNAL_FMT(session));
    travel->index = index;
    travel->core = annal__index_core(index);
    memcpy(travel->session, session.ptr, session.len);
    travel->options = options == NULL ? (annal_replay_options){0} : *options;
    if (travel->options.packs == NULL) {
        travel->options.packs = &travel->core;
        travel->options.pack_count = 1;
    }
    status = annal_travel_seek(travel, at, err);
    if (status < 0) {
        annal_travel_close(travel);
        return status;
    }
    *out_travel = travel;
    return ANNAL_OK;
}

annal_state *annal_travel_state(annal_travel *travel, uint64_t *out_seq)
{
    if (out_seq != NULL)
        *out_seq = travel->seq;
    return travel->here.state;
}

void annal_travel_close(annal_travel *travel)
{
    if (travel == NULL)
        return;
    drop(travel, 0, 0);
    annal__free(travel);
}
