/*
 * Is the index what the journals say? Proved by walking both side by side, and by folding the session
 * anew: the rows of event_index against the events, the rows of sessions and turns against the state.
 */
#ifndef TOOLS_VERIFY_INDEX_H
#define TOOLS_VERIFY_INDEX_H

#include <annal/index.h>
#include <annal/journal.h>
#include <annal/pack.h>

/* What the sessions of one run share, since each is made at a price. Begins as {.store, .index}. */
struct index_check {
    annal_store *store;
    annal_index *index;
    annal_view *view;   /* renewed now and then */
    annal_state *state; /* what the session at hand is folded in */
    unsigned viewed;    /* sessions looked at in view */
    uint64_t lagging;   /* sessions of which the index does not know the last events */
};

/*
 * Compare one session as far as it is indexed now; what the index does not know yet is lag and no
 * finding. Does not catch up. fn is called with each finding. last_seq is the journal's.
 */
annal_status verify_index_session(struct index_check *check, annal_slice session, uint64_t last_seq,
                                  annal_finding_fn fn, void *arg, annal_error *err);

/* Whether the session, which was compared just now, has snapshots. */
annal_status verify_index_has_snapshots(struct index_check *check, annal_slice session,
                                        bool *out_has, annal_error *err);

void verify_index_done(struct index_check *check);

#endif
