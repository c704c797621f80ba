/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/fold.h"

#include "index/sys/open.h"
#include "index/sys/state.h"
#include "journal/sys/cursor.h"
#include "snapshot/sys/snapshot.h"

/* number of events after which the changed pages of the state are moved to a file, if they take
 * more than PUT_AWAY_BYTES of memory */
enum { PUT_AWAY_EVENTS = 4096 };
#define PUT_AWAY_BYTES ((size_t)16 << 20)

annal_status annal__fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err)
{
    while (annal_cursor_position(cursor).seq <= to_seq) {
        annal_event event;
        annal_status status = annal__cursor_next_json(cursor, &event, err);
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

annal_status annal__fold_begin(struct folding *folding, annal_index *index, annal_slice session,
                               const annal_replay_options *options, uint64_t seq, annal_error *err)
{
    static const annal_replay_options defaults = {0};
    options = options == NULL ? &defaults : options;
    folding->store = annal__index_store(index);
    annal_status status =
        annal__load_begin(index, session, options->no_snapshots ? 0 : seq, options->packs,
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
    if (++folding->folded % PUT_AWAY_EVENTS != 0)
        return ANNAL_OK;
    return annal__state_spill(folding->state, annal_store_path(folding->store), PUT_AWAY_BYTES,
                              err);
}

annal_status annal__fold_to(struct folding *folding, uint64_t seq, annal_error *err)
{
    return annal__fold(folding->cursor, seq, apply, folding, &folding->damaged, err);
}

annal_state *annal__fold_take(struct folding *folding)
{
    annal_state *state = folding->state;
    folding->state = NULL;
    return state;
}

void annal__fold_done(struct folding *folding)
{
    annal_cursor_close(folding->cursor);
    annal_state_free(folding->state);
    *folding = (struct folding){0};
}
