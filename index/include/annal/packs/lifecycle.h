/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the packs lionagi and teams: ending sessions whose process died without recording
 * it. */
#ifndef ANNAL_PACKS_LIFECYCLE_H
#define ANNAL_PACKS_LIFECYCLE_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_stale_result {
    /* the session's status is now "failed"; with dry_run: would be "failed" */
    ANNAL_STALE_ENDED = 1,
    /* the session was not changed: its process may still run, or it became active since it was
     * found */
    ANNAL_STALE_LEFT = 2,
    ANNAL_STALE_ERROR = 3 /* the session could not be ended; all other sessions are still tried */
} annal_stale_result;

/* A running session that was silent for too long. It is valid until the callback returns. */
typedef struct annal_stale {
    annal_slice session;
    annal_slice kind;     /* invocation_kind of the session; may be empty */
    double last_activity; /* time of the last activity, in seconds since 1970 */
    double threshold;     /* seconds for which the session may be silent */
    annal_stale_result result;
    annal_status status; /* the failure, for ANNAL_STALE_ERROR; else ANNAL_OK */
    /* one sentence: what proves that the process ended, why nothing was changed, or what failed */
    const char *reason;
} annal_stale;

/* A function that is called for each silent session. It returns 0 to continue; any other value ends
 * the calls, and is returned to the caller. */
typedef int (*annal_stale_fn)(void *arg, const annal_stale *stale);

typedef struct annal_stale_options {
    /* minimum silence of a session in seconds, even if its kind allows less; default: what its kind
     * allows */
    double silence_s;
    bool dry_run;      /* whether sessions are only reported, and no event is appended */
    annal_slice actor; /* actor in the events; default "annal" */
    /* time in ms to wait for another process that writes a session, as in annal_writer_options */
    uint32_t wait_ms;
} annal_stale_options;

/*
 * End the sessions that run, were silent for longer than their kind allows, and whose process is
 * proven dead (annal_process_is_dead()), in the order of their last activity. A session that
 * recorded no process, or that a living process has taken over (also the caller, while its store
 * holds the session), is not ended. For each ended session two events are appended:
 * session.transition, whose guard checks again that the session is silent, and admin.recorded in
 * the session _state, with the first event as its cause. fn is called for each silent session, and
 * once more with ANNAL_STALE_ERROR if the session was ended and the second event could not be
 * appended. After a failure all other sessions are still tried; then the first failure is returned.
 * fn and options may be NULL. Any thread; no lock is held while fn runs.
 *
 * ANNAL_ERR_NOTFOUND  packs lionagi and teams are not both enabled in this store
 * and the statuses of annal_index_sql() and annal_pack_append(), except ANNAL_ERR_REFUSED.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_transition_stale(annal_index *index,
                                                               const annal_stale_options *options,
                                                               annal_stale_fn fn, void *arg,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
