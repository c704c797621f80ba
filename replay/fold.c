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
    const annal_pack *core = annal_index_core(index);
    options = options == NULL ? &defaults : options;
    const annal_pack *const *packs = options->packs == NULL ? &core : options->packs;
    size_t pack_count = options->packs == NULL ? 1 : options->pack_count;
    annal_position next = {0};
    annal_status status = ANNAL_ERR_NOTFOUND;
    folding->store = annal_index_store(index);
    if (!options->no_snapshots && seq > 0)
        status = annal_snapshot_load(index, session, seq, packs, pack_count, &folding->state, &next,
                                     NULL);
    if (status == ANNAL_OK)
        status = annal_cursor_open_at(folding->store, session, next.seq, next.offset, next.h_before,
                                      &folding->cursor, NULL);
    if (status < 0) { /* whatever was wrong with a snapshot, the journal has it all */
        annal_state_free(folding->state);
        folding->state = NULL;
        status = annal_state_new(session, packs, pack_count, &folding->state, err);
        if (status >= 0)
            status = annal_cursor_open(folding->store, session, 1, &folding->cursor, err);
    }
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
