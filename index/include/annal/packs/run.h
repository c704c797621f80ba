/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of pack agentweaver: what must be corrected after a restart. */
#ifndef ANNAL_PACKS_RUN_H
#define ANNAL_PACKS_RUN_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result for a run. It is valid until the callback returns. */
typedef struct annal_run_recovered {
    annal_slice run;
    annal_slice session; /* "run_" and the run */
    annal_slice status;  /* "committing" or "merging", when it was read */
    /* NULL: it awaits review again; else the guard's sentence: another process changed the run in
     * the meantime, which is fine */
    const char *refusal;
    uint64_t seq;     /* seq of the event run.transition, if it was not refused, */
    annal_slice data; /* data of this event */
} annal_run_recovered;

/* Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_run_recovered_fn)(void *arg, const annal_run_recovered *recovered);

typedef struct annal_run_recover_options {
    annal_slice project; /* only its runs; default: all projects */
    annal_slice id;      /* id of the events, one in each session, for retries; may be empty */
    annal_slice cause;   /* cause of the events; may be empty */
    uint32_t wait_ms;    /* for a session that another process writes; as annal_writer_options */
} annal_run_recover_options;

/*
 * Runs that were committing or merging when the program that works on them crashed await review
 * again: by one event run.transition each, guarded by the status that was seen, in the order of
 * their ids. Call it when no such program runs: one that is still merging would find that its run
 * has moved. fn is called for each; it and options may be NULL. If it fails, what was done before
 * stays, and the next call does the rest. Any thread; no lock is held while fn runs.
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
