/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guarded appends that are sent a second time.
 *
 * A repeated append (with the same id, type, cause and data, except for values of fills) returns
 * the seq of the first append. If a guard refuses, or the append is a conflict, an earlier copy is
 * searched among the session's last COPIES_MAX events. The values of fills are taken from the event
 * in the journal: the draft is filled with these values, and its data must then equal the data of
 * the event.
 */
#include "index/guard/guard.h"

#include "index/db/db.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"

#define COPIES_MAX 65536

static annal_status same_data(struct guard_call *call, annal_slice a, annal_slice b, bool *out_same,
                              annal_error *err)
{
    sqlite3_stmt *stmt = NULL;
    *out_same = annal__slice_same(a, b);
    if (*out_same)
        return ANNAL_OK;
    annal_status status =
        annal__db_prepare(call->databases[0].derived->db, "SELECT json(?1) = json(?2)", &stmt, err);
    if (status < 0)
        return status;
    annal__db_bind_text(stmt, 1, a);
    annal__db_bind_text(stmt, 2, b);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *out_same = sqlite3_column_int(stmt, 0) != 0;
    sqlite3_finalize(stmt);
    return ANNAL_OK;
}

/* Find out whether this event is an earlier append of this draft. */
static annal_status is_copy(struct guard_call *call, size_t draft, const annal_event *event,
                            bool *out, annal_error *err)
{
    const annal_draft *given = &call->given[draft];
    *out = annal__slice_same(given->id, event->id) && annal__slice_same(given->type, event->type) &&
           annal__slice_same(given->cause, event->cause);
    if (!*out)
        return ANNAL_OK;
    annal_event as = {.type = event->type};
    annal_status status = annal__guard_fill(call, draft, &as, event, err);
    if (status < 0)
        return status;
    return same_data(call, annal__buf_slice(&call->filled[draft]), event->data, out, err);
}

/* Find out whether the events from seq on are earlier appends of the drafts. */
static annal_status compare_from(struct guard_call *call, uint64_t seq, bool *out, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = annal_cursor_open(call->index->store, call->session, seq, &cursor, err);
    *out = status >= 0;
    for (size_t i = 0; status >= 0 && *out && i < call->count; i++) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        *out = status == ANNAL_OK && event.seq == seq + i;
        if (*out)
            status = is_copy(call, i, &event, out, err);
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

/* Find the seq of the newest of the last COPIES_MAX events that has this id; *out_seq is 0 if none
 * has it. */
static annal_status find_id(const struct guard_call *call, annal_slice id, uint64_t *out_seq,
                            annal_error *err)
{
    annal_cursor *cursor = NULL;
    uint64_t from = call->head > COPIES_MAX ? call->head - COPIES_MAX + 1 : 1;
    annal_session_info info;
    *out_seq = 0;
    annal_status status = annal_session_info_get(call->index->store, call->session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    /* in a fork, do not search the events of its parent: the fork may use their ids again */
    if (status >= 0 && from < info.first_seq)
        from = info.first_seq;
    if (status >= 0)
        status = annal_cursor_open(call->index->store, call->session, from, &cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    while (status >= 0) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_END)
            break;
        if (status == ANNAL_OK && annal__slice_same(event.id, id))
            *out_seq = event.seq;
    }
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}

annal_status annal__guard_find_copy(struct guard_call *call, const annal_error *why,
                                    uint64_t *out_seq, annal_error *err)
{
    size_t with_id = 0;
    uint64_t seq = 0;
    bool found = false;
    while (with_id < call->count && call->given[with_id].id.len == 0)
        with_id++;
    annal_status status = ANNAL_OK;
    if (with_id < call->count)
        status = find_id(call, call->given[with_id].id, &seq, err);
    if (status >= 0 && seq > with_id)
        status = compare_from(call, seq - with_id, &found, err);
    if (status >= 0 && seq > 0 && !found)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "append to session '%.*s': id '%.*s' is taken by another event",
                           ANNAL_FMT(call->session), ANNAL_FMT(call->given[with_id].id));
    if (status >= 0 && found)
        *out_seq = seq - with_id;
    if (status < 0 || found)
        return status;
    if (err != NULL)
        *err = *why;
    return why->status;
}
