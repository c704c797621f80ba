/* What a long fold has written, put away in a file; see spill.c. */
#ifndef REPLAY_SPILL_H
#define REPLAY_SPILL_H

#include <annal/pack.h>
#include <annal/store.h>

struct spill;

/* Put away what the state holds in memory. *spill is NULL at first, and is the state's, too. */
annal_status annal__spill(struct spill **spill, annal_store *store, annal_state *state,
                          annal_error *err);

/* NULL is fine. The file lives as long as a state needs it. */
void annal__spill_unref(struct spill *spill);

#endif
