/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/past.h"

#include "journal/base/alloc.h"
#include "journal/base/slice.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct place {
    annal_travel *travel; /* kept state; NULL if the place is free, or a request uses the state */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char file[33]; /* id of the journal, because a new journal has a different past */
    uint64_t seq;
    uint64_t used; /* value of past.uses when the state was last given back */
};

struct past {
    annal_store *store;
    annal_index *index;
    pthread_mutex_t lock;
    struct place places[PAST_MAX];
    uint64_t uses;
};

struct past *past_new(annal_store *store, annal_index *index)
{
    struct past *past = annal__zalloc(sizeof *past);
    if (past == NULL)
        return NULL;
    past->store = store;
    past->index = index;
    pthread_mutex_init(&past->lock, NULL);
    return past;
}

void past_free(struct past *past)
{
    if (past == NULL)
        return;
    for (size_t i = 0; i < PAST_MAX; i++)
        annal_travel_close(past->places[i].travel);
    pthread_mutex_destroy(&past->lock);
    annal__free(past);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

/* Remove the state of the session that is nearest to event seq, within PAST_FAR events, from the
 * kept states, and return it; the caller owns it. NULL if no kept state is so near. */
static annal_travel *take_near(struct past *past, annal_slice session, const char *file,
                               uint64_t seq)
{
    struct place *best = NULL;
    annal_travel *travel = NULL;
    pthread_mutex_lock(&past->lock);
    for (size_t i = 0; i < PAST_MAX; i++) {
        struct place *place = &past->places[i];
        if (place->travel != NULL && annal__slice_is(session, place->session) &&
            strcmp(place->file, file) == 0 && distance(place->seq, seq) <= PAST_FAR &&
            (best == NULL || distance(place->seq, seq) < distance(best->seq, seq)))
            best = place;
    }
    if (best != NULL) {
        travel = best->travel;
        best->travel = NULL;
    }
    pthread_mutex_unlock(&past->lock);
    return travel;
}

annal_status past_take(struct past *past, annal_slice session, annal_moment at,
                       annal_travel **out_travel, annal_error *err)
{
    annal_session_info info;
    annal_moment exact = {.kind = ANNAL_AT_SEQ};
    annal_status status = annal_session_info_get(past->store, session, &info, err);
    if (status >= 0)
        status = annal_replay_seq(past->index, session, at, &exact.seq, err);
    if (status < 0)
        return status;
    annal_travel *travel = take_near(past, session, info.file, exact.seq);
    if (travel == NULL)
        return annal_travel_open(past->index, session, exact, NULL, out_travel, err);
    status = annal_travel_seek(travel, exact, err);
    if (status >= 0)
        *out_travel = travel;
    else
        annal_travel_close(travel);
    return status;
}

/* Keep the state in a free place, else in the place that was used least recently. */
void past_give(struct past *past, annal_slice session, annal_travel *travel)
{
    annal_session_info info;
    uint64_t seq = 0;
    annal_travel *old = travel;
    (void)annal_travel_state(travel, &seq);
    if (annal_session_info_get(past->store, session, &info, NULL) >= 0) {
        pthread_mutex_lock(&past->lock);
        struct place *place = &past->places[0];
        for (size_t i = 1; i < PAST_MAX && place->travel != NULL; i++) {
            if (past->places[i].travel == NULL || past->places[i].used < place->used)
                place = &past->places[i];
        }
        old = place->travel;
        *place = (struct place){.travel = travel, .seq = seq, .used = ++past->uses};
        memcpy(place->session, info.session, sizeof place->session);
        memcpy(place->file, info.file, sizeof place->file);
        pthread_mutex_unlock(&past->lock);
    }
    annal_travel_close(old);
}
