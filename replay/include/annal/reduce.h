/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reducers: fold the events of a session into a state of your program, in C, with saved copies.
 *
 * A reducer is a name and a set of functions. annal_replay_reduce() folds a session's events up to
 * a moment with these functions and returns the resulting state. It begins with the newest saved
 * copy, and saves further copies on the way, so that the next call folds only few events.
 * docs/reducers.md has a complete program.
 */
#ifndef ANNAL_REDUCE_H
#define ANNAL_REDUCE_H

#include <annal/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNAL_REDUCER_NAME_MAX 64

/*
 * The functions of a reducer. Their results must depend only on the events: not on the clock, on
 * random numbers or on other data; then a state is the same with and without saved copies. A
 * function that fails returns a status below 0, and may write a message to err;
 * annal_replay_reduce() returns that failure. annal_replay_reduce() calls the functions one at a
 * time, in the thread of its caller.
 */
typedef struct annal_reducer {
    const char *name; /* name under which copies are saved: 1 to 64 bytes of [A-Za-z0-9._-] */
    /* Raise the version whenever apply, save or load change: copies of other versions are not used,
     * and are deleted. */
    uint32_t version;

    /* Create the state before the first event. session is the session at the root of the lineage:
     * for a fork, up to its fork point, the state is that of its parent. */
    annal_status (*init)(void *arg, annal_slice session, void **out_state, annal_error *err);

    /* Apply the next event, in order of seq. The slices of the event are valid until this function
     * returns. */
    annal_status (*apply)(void *arg, void *state, const annal_event *event, annal_error *err);

    /* Pass the complete state, as bytes, to write(write_arg, …), in one or more pieces. NULL: no
     * copies are saved. */
    annal_status (*save)(void *arg, const void *state, annal_write_fn write, void *write_arg,
                         annal_error *err);

    /* Restore a state from bytes that save wrote; the bytes are complete. If this fails, the next
     * older copy is tried, and without another copy init is called. NULL: no copies are saved. */
    annal_status (*load)(void *arg, annal_slice session, annal_slice bytes, void **out_state,
                         annal_error *err);

    void (*free)(void *arg, void *state); /* Free a state. NULL: a state needs no freeing. */
    void *arg;
} annal_reducer;

typedef struct annal_reduce_options {
    bool no_snapshots; /* whether to fold from event 1 and save no copies */
    /* When to save a copy, and how many bytes copies may take; every_ms is not used. 0 means the
     * default. */
    annal_snapshot_policy policy;
} annal_reduce_options;

/*
 * Fold the events of a session up to a moment and return the state in *out_state, to be freed with
 * reducer->free(). Damaged events are skipped, and counted in *out_info (may be NULL), whose
 * snapshot_seq is the seq of the copy with which the folding began. options may be NULL. A copy is
 * saved every 1,000 events or 8 MiB of journal by default, unless the store is open for reading
 * only or another process is writing the index. Saved copies are in sessions.db, and are computed
 * again if it is deleted. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event at.seq yet
 * ANNAL_ERR_INVALID   the name of the reducer is invalid, or init or apply is missing
 * another status      the status of a function of the reducer that failed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status
annal_replay_reduce(annal_index *index, annal_slice session, const annal_reducer *reducer,
                    annal_moment at, const annal_reduce_options *options, void **out_state,
                    annal_replay_info *out_info, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
