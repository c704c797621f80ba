/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/session_findings.h"

#include "index/sys/findings.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED = 5, ASK_MS = 1000 };

/* Record one finding; a callback. Each database reports its findings sorted by session. */
static int add_finding(void *arg, const annal_index_finding *finding)
{
    struct session_findings *all = arg;
    struct session_health *last = all->count > 0 ? &all->healths[all->count - 1] : NULL;
    if (finding->session.len > ANNAL_SESSION_ID_BYTES_MAX)
        return 0;
    all->total++;
    if (finding->session.len == 0) {
        if (all->others++ == 0)
            snprintf(all->other, sizeof all->other, "%.*s", ANNAL_FMT(finding->what));
        return 0;
    }
    if (last != NULL && annal__slice_is(finding->session, last->session)) {
        last->findings++;
        return 0;
    }
    last = annal__array_add(&all->healths, &all->count, sizeof *last);
    if (last == NULL)
        return ANNAL_ERR_NOMEM;
    last->findings = 1;
    last->seq = finding->seq;
    last->offset = finding->offset;
    memcpy(last->session, finding->session.ptr, finding->session.len);
    snprintf(last->what, sizeof last->what, "%.*s", ANNAL_FMT(finding->what));
    return 0;
}

static int by_session(const void *a, const void *b)
{
    const struct session_health *left = a, *right = b;
    int order = strcmp(left->session, right->session);
    return order != 0 ? order : (left->offset > right->offset) - (left->offset < right->offset);
}

/* Sort the sessions, and merge the entries of a session about which several databases report
 * findings. */
static annal_status merge(struct session_findings *findings, annal_status status, annal_error *err)
{
    size_t count = 0;
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "count the findings: out of memory");
    if (findings->count > 1)
        qsort(findings->healths, findings->count, sizeof *findings->healths, by_session);
    for (size_t i = 0; i < findings->count; i++)
        if (count > 0 &&
            strcmp(findings->healths[count - 1].session, findings->healths[i].session) == 0)
            findings->healths[count - 1].findings += findings->healths[i].findings;
        else
            findings->healths[count++] = findings->healths[i];
    findings->count = count;
    return status;
}

annal_status session_findings_read(annal_index *index, struct session_findings *findings,
                                   annal_error *err)
{
    return merge(findings,
                 annal_index_finding_each(index, (annal_slice){0}, add_finding, findings, err),
                 err);
}

annal_status session_findings_ask(annal_index *index, annal_slice session, bool every,
                                  struct session_findings *findings, annal_error *err)
{
    const annal_catch_up_options options = {.timeout_ms = every ? 0 : ASK_MS,
                                            .every_database = every};
    return merge(findings,
                 annal__reader_health(index, session, &options, add_finding, findings, err), err);
}

static int compare_session(const void *session, const void *health)
{
    return strcmp(session, ((const struct session_health *)health)->session);
}

uint64_t session_findings_of(const struct session_findings *findings, annal_slice session)
{
    char key[ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    if (session.len > ANNAL_SESSION_ID_BYTES_MAX || findings->count == 0)
        return 0;
    memcpy(key, session.ptr, session.len);
    struct session_health *health =
        bsearch(key, findings->healths, findings->count, sizeof *health, compare_session);
    if (health == NULL)
        return 0;
    health->shown = true;
    return health->findings;
}

static void say_session(const struct session_health *health)
{
    char more[100] = "";
    if (health->findings > 1)
        snprintf(more, sizeof more, " (the first of %" PRIu64 " findings)", health->findings);
    say("session '%s', event %" PRIu64 " at byte %" PRIu64 ": %s%s; 'annal show %s' lists it",
        health->session, health->seq, health->offset, health->what, more, health->session);
}

int session_findings_say(const struct session_findings *findings, bool all)
{
    uint64_t sessions = 0;
    for (size_t i = 0; i < findings->count; i++)
        if ((all || findings->healths[i].shown) && sessions++ < NAMED)
            say_session(&findings->healths[i]);
    if (sessions > NAMED)
        say("%" PRIu64 " further sessions have findings: 'annal doctor' counts them",
            sessions - NAMED);
    if (all && findings->others > 0)
        say("%" PRIu64 " finding%s of packs: %s; 'annal doctor' says what to do", findings->others,
            findings->others == 1 ? "" : "s", findings->other);
    return sessions > 0 || (all && findings->others > 0) ? EXIT_REFUSED : EXIT_DONE;
}

void session_findings_done(struct session_findings *findings)
{
    annal__free(findings->healths);
    *findings = (struct session_findings){0};
}
