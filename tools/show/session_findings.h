/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Count the findings of a store by session: ls, show, report, doctor and the page show these
 * numbers. docs/limits.md defines a finding.
 */
#ifndef TOOLS_SHOW_SESSION_FINDINGS_H
#define TOOLS_SHOW_SESSION_FINDINGS_H

#include <annal/index.h>

struct session_health {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    bool shown;
    uint64_t findings;
    uint64_t seq, offset; /* place of the first finding */
    char what[200];       /* a sentence about it */
};

/* Initially {0}. */
struct session_findings {
    struct session_health *healths; /* by session id */
    size_t count;
    uint64_t total;  /* number of findings of sessions and others */
    uint64_t others; /* without a session: packs that are not run, unreadable tables */
    char other[200]; /* sentence about the first of these */
};

/* Read the findings from the tables in their current state. */
annal_status session_findings_read(annal_index *index, struct session_findings *findings,
                                   annal_error *err);

/* Do the same after catching up the packs for a second; every: for as long as allowed, and with the
 * databases of single sessions. session (may be empty): only its findings. */
annal_status session_findings_ask(annal_index *index, annal_slice session, bool every,
                                  struct session_findings *findings, annal_error *err);

/* Return the number of findings of a session, and mark it as shown. */
uint64_t session_findings_of(const struct session_findings *findings, annal_slice session);

/* Report the sessions that were shown, or all, on stderr. Returns the exit status: EXIT_REFUSED if
 * there are any. */
int session_findings_say(const struct session_findings *findings, bool all);

void session_findings_done(struct session_findings *findings);

#endif
