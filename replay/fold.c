#include "replay/fold.h"

#include "replay/spill.h"

enum { SPILL_EVENTS = 4096 }; /* between two times that pages are put away */

annal_status annal__fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err)
{
    while (annal_cursor_position(cursor).seq <= to_seq) {
        annal_event event;
        annal_status status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_DAMAGE)
            ++*damaged;
        if (status == ANNAL_OK && event.seq <= to_seq)
            status = fn(arg, &event, err);
        if (status == ANNAL_END)
            return ANNAL_OK;
        if (status != ANNAL_OK && status != ANNAL_DAMAGE)
            return status;
    }
    return ANNAL_OK;
}

/* ---- A state ---- */

annal_status annal__folding_begin(struct folding *folding, annal_index *index, annal_slice session,
                                  const annal_replay_options *options, uint64_t seq,
                                  annal_error *err)
{
    static const annal_replay_options defaults = {0};
    options = options == NULL ? &defaults : options;
    folding->store = annal_index_store(index);
    annal_status status =
        annal_snapshot_begin(index, session, options->no_snapshots ? 0 : seq, options->packs,
                             options->pack_count, &folding->state, &folding->cursor, err);
    if (status >= 0)
        folding->from_seq = annal_state_seq(folding->state);
    return status;
}

static annal_status apply(void *arg, const annal_event *event, annal_error *err)
{
    struct folding *folding = arg;
    annal_status status = annal_state_apply(folding->state, event, err);
    if (status < 0)
        return status;
    folding->folded++;
    if (++folding->unspilled < SPILL_EVENTS)
        return ANNAL_OK;
    folding->unspilled = 0;
    return annal__spill(&folding->spill, folding->store, folding->state, err);
}

annal_status annal__folding_to(struct folding *folding, uint64_t seq, annal_error *err)
{
    return annal__fold(folding->cursor, seq, apply, folding, &folding->damaged, err);
}

annal_state *annal__folding_take(struct folding *folding)
{
    annal_state *state = folding->state;
    folding->state = NULL;
    return state;
}

void annal__folding_done(struct folding *folding)
{
    annal_cursor_close(folding->cursor);
    annal_state_free(folding->state);
    annal__spill_unref(folding->spill);
    *folding = (struct folding){0};
}
