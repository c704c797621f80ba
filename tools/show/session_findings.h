/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with a store, counted by session: ls, show, report, doctor and the page have these
 * numbers. docs/limits.md says what a finding is.
 */
#ifndef TOOLS_SHOW_SESSION_FINDINGS_H
#define TOOLS_SHOW_SESSION_FINDINGS_H

#include <annal/index.h>

struct session_health {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    bool shown;
    uint64_t findings;
    uint64_t seq, offset; /* of the first, */
    char what[200];       /* and a sentence about it */
};

/* {0} to begin with. */
struct session_findings {
    struct session_health *healths; /* by session id */
    size_t count;
    uint64_t total;  /* of sessions and others */
    uint64_t others; /* without a session: packs that are not run, tables that cannot be read */
    char other[200]; /* the first of these */
};

/* As the tables stand. */
annal_status session_findings_read(annal_index *index, struct session_findings *findings,
                                   annal_error *err);

/* After the packs were caught up, for a second; every: all that time allows, also the databases of
 * single sessions. session (may be empty): only its findings. */
annal_status session_findings_ask(annal_index *index, annal_slice session, bool every,
                                  struct session_findings *findings, annal_error *err);

/* How many a session has; it is shown. */
uint64_t session_findings_of(const struct session_findings *findings, annal_slice session);

/* Name the sessions that were shown, or all, on stderr. Return the exit status: EXIT_REFUSED if
 * there are any. */
int session_findings_say(const struct session_findings *findings, bool all);

void session_findings_done(struct session_findings *findings);

#endif
