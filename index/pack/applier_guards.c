/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards: whether the packs allow an event, checked before it is appended, or later for an event in
 * a journal. The sections for the event run as they run at replay, and their changes are rolled
 * back. Only for an event in a journal they stay if no section refused or failed, because running
 * the sections a second time would change the same rows. A guarded section refuses if its first
 * statement changes no row or a constraint fails. A section without a guard that fails does not
 * refuse the event; its failure becomes a finding when the event is applied.
 */
#include "index/pack/applier_parts.h"

#include "index/db/db.h"
#include "index/pack/outbox.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

/*
 * Compose the sentence of a guard that refused, followed by the reason if a row could not be
 * written.
 */
static const char *refusal(struct applier *applier, const struct pack_section *section, bool holds)
{
    char why[sizeof applier->refused];
    memcpy(why, applier->refused, sizeof why);
    snprintf(applier->refused, sizeof applier->refused, "%.300s%s%.200s", section->guard,
             holds ? ": " : "", holds ? why : "");
    return applier->refused;
}

static annal_status try_all(struct applier *applier, annal_slice session, const annal_event *event,
                            bool own_only, const char **out_refused, bool *out_whole,
                            annal_error *err)
{
    const struct route *route = annal__applier_route(applier, event->type);
    annal_status status =
        route != NULL ? ANNAL_OK
                      : annal__fail(err, ANNAL_ERR_NOMEM, "try an event '%.*s': out of memory",
                                    ANNAL_FMT(event->type));
    *out_refused = NULL;
    annal__pack_members_read(&applier->members, event->data);
    if (applier->outbox != NULL && annal__outbox_takes(event->type))
        *out_whole = false;
    if (status >= 0 && applier->has_core)
        status = annal__applier_begin(applier, session, event->ts_us, err);
    for (size_t i = 0; status >= 0 && *out_refused == NULL && i < route->count; i++) {
        const struct handler *handler = route->handlers[i];
        const struct pack_section *section = handler->section;
        bool holds = true;
        int rc = SQLITE_OK;
        bool asked = section->guard != NULL && !(own_only && section->reads != NULL);
        status =
            annal__applier_run(applier, handler, session, event, asked ? &holds : NULL, &rc, err);
        /* a section without a guard refuses nothing: its failure is recorded as a finding later */
        if (status >= 0 && rc != SQLITE_OK && asked)
            *out_refused = refusal(applier, section, holds);
        if (rc != SQLITE_OK)
            *out_whole = false;
    }
    return status;
}

annal_status annal__applier_try(struct applier *applier, annal_slice session,
                                const annal_event *event, const char **out_refused, bool *out_whole,
                                annal_error *err)
{
    return try_all(applier, session, event, false, out_refused, out_whole, err);
}

annal_status annal__applier_check(struct applier *applier, annal_slice session,
                                  const annal_event *event, const char **out_refused,
                                  bool *out_applied, annal_error *err)
{
    const struct route *route = annal__applier_route(applier, event->type);
    *out_refused = NULL;
    *out_applied = false;
    bool held = applier->outbox != NULL && annal__outbox_takes(event->type) &&
                annal__outbox_holds(applier->outbox, event);
    if (route != NULL && (!route->guarded || held))
        return ANNAL_OK;
    annal_status status = annal__db_run(applier->savepoint, err);
    if (status < 0)
        return status;
    bool whole = true;
    status = try_all(applier, session, event, true, out_refused, &whole, err);
    *out_applied = status >= 0 && whole && *out_refused == NULL;
    annal_status ended =
        *out_applied ? ANNAL_OK : annal__db_run(applier->undo, status >= 0 ? err : NULL);
    if (ended >= 0)
        ended = annal__db_run(applier->release, status >= 0 ? err : NULL);
    if (ended >= 0 && *out_applied)
        annal__applier_keep(applier, event);
    return status < 0 ? status : ended;
}
