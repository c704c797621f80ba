/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/subject.h"

#include "index/sys/pack.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"

#include <annal/journal.h>
#include <annal/pack.h>

#include <inttypes.h>
#include <stdio.h>

/* Read the id and the hash of the event subject->seq; of a fork, also of an ancestor's event. */
static annal_status read_event(annal_store *store, annal_slice session, struct subject *subject,
                               annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    annal_status status =
        annal__cursor_open_event(store, session, subject->seq, &cursor, &event, err);
    if (status == ANNAL_DAMAGE)
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT, "event %" PRIu64 " of session '%.*s' is damaged",
                        subject->seq, ANNAL_FMT(session));
    else if (status == ANNAL_END)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no event %" PRIu64,
                             ANNAL_FMT(session), subject->seq);
    if (status >= 0)
        snprintf(subject->hash, sizeof subject->hash, "%016" PRIx64, event.h);
    if (status >= 0 && annal__buf_append_slice(&subject->id, event.id) < 0)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read an event of session '%.*s': out of memory",
                             ANNAL_FMT(session));
    annal_cursor_close(cursor);
    return status;
}

annal_status subject_find(annal_store *store, annal_slice session, uint64_t seq,
                          struct subject *out, annal_error *err)
{
    annal_session_info info;
    *out = (struct subject){.seq = seq};
    if (session.len + sizeof SUBJECT_PREFIX > sizeof out->notes)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "session '%.*s' can have no notes: its id is longer than %zu bytes",
                           ANNAL_FMT(session), sizeof out->notes - sizeof SUBJECT_PREFIX);
    snprintf(out->notes, sizeof out->notes, SUBJECT_PREFIX "%.*s", ANNAL_FMT(session));
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND && seq == 0 &&
        annal_session_info_get(store, annal_slice_of(out->notes), &info, NULL) >= 0)
        status = ANNAL_OK;
    return status < 0 || seq == 0 ? status : read_event(store, session, out, err);
}

void subject_done(struct subject *subject)
{
    annal__buf_done(&subject->id);
}

annal_status subject_enable(annal_store *store, annal_index *index, annal_error *err)
{
    annal_status status = annal__packs_have(index, "annotations", err);
    return status == ANNAL_ERR_NOTFOUND ? annal_pack_enable(store, "annotations", NULL, err)
                                        : status;
}
