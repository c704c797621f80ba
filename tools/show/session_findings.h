/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the findings of a store by session. The verbs ls, show, report and doctor and the web page
 * show these numbers. docs/limits.md defines a finding.
 */
#pragma once

#include <annal/index.h>

struct session_health {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    bool shown;
    uint64_t findings;
    uint64_t seq, offset; /* position of the first finding */
    char what[200];       /* sentence about the first finding */
};

/* The findings of a store; begin with {0}. */
struct session_findings {
    struct session_health *healths; /* sessions with findings, sorted by session id */
    size_t count;
    uint64_t total; /* number of all findings */
    /* number of findings without a session: packs that are not run, unreadable tables */
    uint64_t others;
    char other[200]; /* sentence about the first of these findings without a session */
};

/* Read the findings from the tables as they are now, without a catch-up. */
annal_status session_findings_read(annal_index *index, struct session_findings *findings,
                                   annal_error *err);

/* Read the findings after a catch-up of packs for at most a second; every: without a time limit,
 * and including the databases of single sessions. If session is not empty, read only its
 * findings. */
annal_status session_findings_ask(annal_index *index, annal_slice session, bool every,
                                  struct session_findings *findings, annal_error *err);

/* Return the number of findings of a session, and mark the session as shown. */
uint64_t session_findings_of(const struct session_findings *findings, annal_slice session);

/* Report the sessions with findings on stderr: those that were shown, or all. Returns EXIT_REFUSED
 * if there are any, else EXIT_DONE. */
int session_findings_say(const struct session_findings *findings, bool all);

void session_findings_done(struct session_findings *findings);
