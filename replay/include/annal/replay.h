/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: compute the state of a session at any moment of its past. */
#ifndef ANNAL_REPLAY_H
#define ANNAL_REPLAY_H

#include <annal/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The state at a moment ---- */

typedef enum annal_moment_kind {
    ANNAL_AT_END = 0, /* after the last event that is durable now */
    ANNAL_AT_SEQ = 1, /* after event seq; with seq 0, before the first event */
    /* after the event with the largest seq whose ts is at most time_us, or before the first event
     * if all are later. ts need not be in order: events before that seq may have a later ts */
    ANNAL_AT_TIME = 2
} annal_moment_kind;

typedef struct annal_moment {
    annal_moment_kind kind;
    uint64_t seq;
    int64_t time_us;
} annal_moment;

typedef struct annal_replay_options {
    const annal_pack *const *packs; /* default: the core pack; the packs must outlive the state */
    size_t pack_count;
    bool no_snapshots; /* whether to ignore snapshots, and fold from event 1 */
} annal_replay_options;

/* How a state was computed. */
typedef struct annal_replay_info {
    uint64_t seq;          /* seq of the last event that the state contains; 0: no event */
    uint64_t snapshot_seq; /* seq of the snapshot with which the folding began; 0: no snapshot */
    uint64_t folded;       /* number of events applied after the snapshot */
    uint64_t damaged;      /* number of damaged parts skipped after the snapshot */
} annal_replay_info;

/*
 * Compute the state of a session at a moment, as a database in memory: query it with
 * annal_state_sql(), print it with annal_state_json(), continue it with annal_state_apply(). The
 * function begins with the newest valid snapshot, and folds the events after it; with any snapshots
 * or none the result is the same, byte for byte. An event that is damaged, or that a pack cannot
 * accept, changes nothing; later events are still applied. Free *out_state with annal_state_free()
 * before the index is closed. out_info may be NULL. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event at.seq yet
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_replay_open(
    annal_index *index, annal_slice session, annal_moment at, const annal_replay_options *options,
    annal_state **out_state, annal_replay_info *out_info, annal_error *err);

/*
 * Return in *out_seq the seq of the last event at or before a moment; 0 without such an event. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event at.seq yet
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_replay_seq(annal_index *index, annal_slice session,
                                                         annal_moment at, uint64_t *out_seq,
                                                         annal_error *err);

/* ---- Stepping through the past ---- */

/*
 * A state that moves from moment to moment, by single events or far, forward and back. A step back
 * costs as much as folding a few dozen events, at any position.
 *
 *     annal_travel_open(index, session, (annal_moment){0}, NULL, &travel, &err);
 *     while ((status = annal_travel_step(travel, -1, &err)) == ANNAL_OK)
 *         annal_state_sql(annal_travel_state(travel, NULL), …);
 *
 * One thread at a time. Close the travel before the index; the packs of its options must outlive
 * it.
 */
typedef struct annal_travel annal_travel;

/* Open a travel at a moment. Parameters and failures are those of annal_replay_open(). */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_travel_open(annal_index *index, annal_slice session,
                                                          annal_moment at,
                                                          const annal_replay_options *options,
                                                          annal_travel **out_travel,
                                                          annal_error *err);

/*
 * Move the state to a moment. If the moment does not exist, nothing changes. After another failure
 * the state is undefined until the next call of this function succeeds.
 *
 * ANNAL_ERR_NOTFOUND  the session has no event to.seq yet
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_travel_seek(annal_travel *travel, annal_moment to,
                                                          annal_error *err);

/*
 * Move the state by this many events, forward, or back if events is below 0.
 *
 * ANNAL_END  too few events in that direction; nothing changed
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_travel_step(annal_travel *travel, int64_t events,
                                                          annal_error *err);

/*
 * Return the current state: query it and print it, but apply nothing to it. It is valid until the
 * next call that moves the state. *out_seq (may be NULL) is the seq of the last event in the state;
 * 0: before the first event.
 */
ANNAL_API annal_state *annal_travel_state(annal_travel *travel, uint64_t *out_seq);

/* End the travel and free it. NULL is accepted. */
ANNAL_API void annal_travel_close(annal_travel *travel);

/* ---- Folding into a state of your own ---- */

/* Receive an event, which is valid until this function returns. Return ANNAL_OK to continue; any
 * other value stops, and is returned. */
typedef annal_status (*annal_fold_fn)(void *arg, const annal_event *event, annal_error *err);

/*
 * Call fn for each event from from_seq to to_seq (0: to the last event that exists), in order.
 * Damaged parts are skipped; *out_damaged (may be NULL) is their number. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_replay_fold(annal_store *store, annal_slice session,
                                                          uint64_t from_seq, uint64_t to_seq,
                                                          annal_fold_fn fn, void *arg,
                                                          uint64_t *out_damaged, annal_error *err);

/* ---- Verifying snapshots ---- */

typedef struct annal_replay_finding {
    annal_slice session;
    uint64_t seq;     /* seq of the snapshot */
    const char *what; /* phrase that says what is wrong; valid until the callback returns */
} annal_replay_finding;

typedef void (*annal_replay_finding_fn)(void *arg, const annal_replay_finding *finding);

/* Called after each 10,000 folded events. Return 0 to continue; any other value stops, and is
 * returned. */
typedef int (*annal_replay_progress_fn)(void *arg, uint64_t seq, uint64_t last_seq);

typedef struct annal_replay_verify_options {
    annal_moment at;                   /* moment up to which to verify; default: the end */
    annal_replay_finding_fn finding;   /* called for each finding; may be NULL */
    annal_replay_progress_fn progress; /* may be NULL */
    void *arg;                         /* argument of both functions */
} annal_replay_verify_options;

typedef struct annal_replay_verify_result {
    uint64_t seq;       /* seq up to which the session was verified */
    uint64_t events;    /* number of events folded */
    uint64_t damaged;   /* number of damaged parts skipped */
    uint64_t snapshots; /* number of snapshots compared */
    /* number of snapshots of another journal or other packs, which were skipped and are never
     * used */
    uint64_t stale;
    uint64_t findings;
    uint8_t hash[ANNAL_STATE_HASH_BYTES]; /* hash of the folded state */
} annal_replay_verify_result;

/*
 * Fold a session once from its first event. Compare the state on the way with each snapshot of the
 * session, and at the end with the answer of annal_replay_open(), row by row (of the tables of the
 * core pack). A damaged snapshot, or a state that differs, is a finding; findings are not a failure
 * of this function. Memory does not grow with the session. options may be NULL. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_replay_verify(
    annal_index *index, annal_slice session, const annal_replay_verify_options *options,
    annal_replay_verify_result *out_result, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
