/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the pack agentweaver: resetting runs that a crash left in a transient status. */
#ifndef ANNAL_PACKS_RUN_H
#define ANNAL_PACKS_RUN_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result for one run. It is valid until the callback returns. */
typedef struct annal_run_recovered {
    annal_slice run;
    annal_slice session; /* session of the run: "run_" and the run's id */
    annal_slice status;  /* status of the run when it was read: "committing" or "merging" */
    /* NULL: the run now awaits review; otherwise the guard's sentence: another process changed the
     * run in the meantime, which is not a failure */
    const char *refusal;
    uint64_t seq;     /* seq of the event run.transition, if it was not refused */
    annal_slice data; /* data of this event */
} annal_run_recovered;

/* A function that is called for each run. It returns 0 to continue; any other value ends the calls,
 * and is returned to the caller. */
typedef int (*annal_run_recovered_fn)(void *arg, const annal_run_recovered *recovered);

typedef struct annal_run_recover_options {
    annal_slice project; /* only runs of this project; default: all projects */
    /* id of the events (each is in another session), so that a repeated call appends none twice;
     * may be empty */
    annal_slice id;
    annal_slice cause; /* cause of the events; may be empty */
    /* time in ms to wait for another process that writes a session, as in annal_writer_options */
    uint32_t wait_ms;
} annal_run_recover_options;

/*
 * Set the runs with the status committing or merging to awaiting_review, after the program that
 * works on them crashed. An event run.transition is appended for each run, in the order of their
 * ids; its guard refuses it if the status of the run has changed. Call this when no such program
 * runs, because the status of a run would change while the program merges it. fn is called for each
 * run; fn and options may be NULL. After a failure the events that were appended stay, and the next
 * call continues. Any thread; no lock is held while fn runs.
 *
 * ANNAL_ERR_NOTFOUND  pack agentweaver is not enabled in this store
 * and the statuses of annal_sql() and annal_pack_append(), except ANNAL_ERR_REFUSED.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_run_recover(annal_index *index,
                                                          const annal_run_recover_options *options,
                                                          annal_run_recovered_fn fn, void *arg,
                                                          annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
