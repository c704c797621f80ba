/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reducers: fold a session into something of your own, in C, with snapshots of it.
 *
 * A reducer is a set of functions and a name. annal_reduce() returns what it makes of a session's
 * events up to a moment; it begins with the newest copy that was saved, and saves further ones on
 * the way, so that the next time only few events are folded. docs/reducers.md has a whole program.
 */
#ifndef ANNAL_REDUCE_H
#define ANNAL_REDUCE_H

#include <annal/replay.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANNAL_REDUCER_NAME_MAX 64

/*
 * The result of the functions must follow from the events alone: no clock, no chance, nothing from
 * elsewhere; then it is always the same, and snapshots never change it. Each fails with a status
 * below 0 and, if it wants, a sentence in err; the call that needed it then fails with that. They
 * are called one at a time, in the thread of the caller.
 */
typedef struct annal_reducer {
    const char *name; /* name of the saved copies: 1 to 64 bytes of [A-Za-z0-9._-] */
    /* Raise it whenever apply, save or load do something different: copies of other versions are
     * not used, and are deleted. */
    uint32_t version;

    /*
     * The state before the first event. session: for a fork, the session at the root of its
     * lineage, because up to its fork point it is its parent.
     */
    annal_status (*init)(void *arg, annal_slice session, void **out_state, annal_error *err);

    /* Apply one more event; called in order of seq. Its slices are valid until this returns. */
    annal_status (*apply)(void *arg, void *state, const annal_event *event, annal_error *err);

    /* Pass all of it, as bytes, to write(write_arg, …), in pieces. NULL: it is never saved. */
    annal_status (*save)(void *arg, const void *state, annal_write_fn write, void *write_arg,
                         annal_error *err);

    /*
     * Restore it from bytes that save wrote, and which are complete. If this fails, an older copy
     * is tried, finally none. NULL: it is never saved.
     */
    annal_status (*load)(void *arg, annal_slice session, annal_slice bytes, void **out_state,
                         annal_error *err);

    void (*free)(void *arg, void *state); /* NULL: there is nothing to free */
    void *arg;
} annal_reducer;

typedef struct annal_reduce_options {
    bool no_snapshots; /* fold from event 1, and save nothing */
    /* When to save, and how much; every_ms is not used here. Zero means default. */
    annal_snapshot_policy policy;
} annal_reduce_options;

/*
 * What the reducer makes of the events up to a moment. Free *out_state with reducer->free(). Events
 * that are damaged are skipped, and counted in out_info (may be NULL), whose snapshot_seq is the
 * seq of the copy with which it began. options may be NULL. A copy is saved each 1,000 events or 8
 * MiB of journal, unless the store is open for reading only or others are writing the index; saved
 * copies are derived, and are deleted with sessions.db. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event seq yet
 * ANNAL_ERR_INVALID   the reducer has no such name, or lacks a function
 * another status      the status of a function of the reducer that failed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_reduce(annal_index *index, annal_slice session,
                                                     const annal_reducer *reducer, annal_moment at,
                                                     const annal_reduce_options *options,
                                                     void **out_state, annal_replay_info *out_info,
                                                     annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
