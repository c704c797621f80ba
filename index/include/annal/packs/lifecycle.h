/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the packs lionagi and teams: ending those whose process died without saying so. */
#ifndef ANNAL_PACKS_LIFECYCLE_H
#define ANNAL_PACKS_LIFECYCLE_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_stale_result {
    ANNAL_STALE_ENDED = 1, /* its status is "failed" now; with dry_run: would be */
    /* not changed: the process may still run, or the session became active in the meantime */
    ANNAL_STALE_LEFT = 2,
    ANNAL_STALE_ERROR = 3 /* something failed; the others are still tried */
} annal_stale_result;

/* A session that runs and has been silent. It is valid until the callback returns. */
typedef struct annal_stale {
    annal_slice session;
    annal_slice kind;     /* invocation_kind of the session; may be empty */
    double last_activity; /* seconds since 1970 */
    double threshold;     /* seconds it may be silent */
    annal_stale_result result;
    annal_status status; /* the failure, for ANNAL_STALE_ERROR; else ANNAL_OK */
    /* one sentence: what proves that the process ended, why nothing was changed, or what failed */
    const char *reason;
} annal_stale;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_stale_fn)(void *arg, const annal_stale *stale);

typedef struct annal_stale_options {
    /* Silent for at least this long, whatever its kind allows; default: what its kind allows. */
    double silence_s;
    bool dry_run;      /* look and report; append nothing */
    annal_slice actor; /* actor in the events; default "annal" */
    uint32_t wait_ms;  /* for a session that another process writes; as annal_writer_options */
} annal_stale_options;

/*
 * End the sessions that run, were silent for longer than their kind allows, and whose process is
 * proven dead (annal_process_is_dead()), in the order in which they fell silent. A session that
 * recorded no process, or that a living one has now (the caller too, while its store holds it), is
 * left alone. Each end is one event session.transition, guarded by what was seen, and one event
 * admin.recorded in session _state, caused by it. fn is called for each silent session, and once
 * more with ANNAL_STALE_ERROR when it was ended and the second event failed. One that fails does
 * not stop the others: the first such failure is the answer, after all were tried. fn and options
 * may be NULL. Any thread; no lock is held over fn.
 *
 * ANNAL_ERR_NOTFOUND  packs lionagi and teams are not both on in this store
 * and the statuses of annal_sql() and annal_pack_append(), but for ANNAL_ERR_REFUSED.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_transition_stale(annal_index *index,
                                                               const annal_stale_options *options,
                                                               annal_stale_fn fn, void *arg,
                                                               annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
