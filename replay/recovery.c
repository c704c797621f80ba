/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/open.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"

#include <annal/recovery.h>

enum { BLOCK_EVENTS = 512 };

extern const char annal__sql_recovery[];

/* The memory of a recovery; the public struct is its first member. */
struct owned {
    annal_recovery recovery;
    annal_open_call *calls;
    annal_open_turn *turns;
};

/* Copy bytes, with a NUL after them. Returns false if memory is exhausted. */
static bool keep(annal_slice *out, annal_slice bytes)
{
    out->ptr = annal__strndup(bytes.ptr == NULL ? "" : bytes.ptr, bytes.len);
    out->len = out->ptr == NULL ? 0 : bytes.len;
    return out->ptr != NULL;
}

static bool keep_value(annal_slice *out, const annal_value *value)
{
    return value->kind == ANNAL_VALUE_NULL || keep(out, value->bytes);
}

static bool take_call(struct owned *owned, const annal_value *values)
{
    annal_open_call *call =
        annal__array_add(&owned->calls, &owned->recovery.call_count, sizeof *call);
    if (call == NULL)
        return false;
    call->seq = (uint64_t)values[1].integer;
    return keep_value(&call->call_id, &values[2]) && keep_value(&call->tool, &values[3]) &&
           keep_value(&call->called_at, &values[4]) && keep_value(&call->turn_id, &values[5]);
}

static bool take_turn(struct owned *owned, const annal_value *values)
{
    annal_open_turn *turn =
        annal__array_add(&owned->turns, &owned->recovery.turn_count, sizeof *turn);
    if (turn == NULL)
        return false;
    turn->seq = (uint64_t)values[1].integer;
    turn->sequence = values[6].integer;
    return keep_value(&turn->turn_id, &values[2]) && keep_value(&turn->status, &values[3]) &&
           keep_value(&turn->created_at, &values[4]);
}

/* An annal_row_fn for the rows of recovery.sql. */
static int take(void *arg, const annal_row *row)
{
    struct owned *owned = arg;
    const annal_value *values = row->values;
    bool kept = values[0].bytes.ptr[0] == 'c'   ? take_call(owned, values)
                : values[0].bytes.ptr[0] == 't' ? take_turn(owned, values)
                                                : keep_value(&owned->recovery.status, &values[2]);
    return kept ? 0 : ANNAL_ERR_NOMEM;
}

/* Read event seq. ANNAL_END if it is damaged. */
static annal_status read_event(annal_cursor *cursor, uint64_t seq, annal_event *out,
                               annal_error *err)
{
    annal_status status = annal_cursor_seek(cursor, seq, err);
    if (status >= 0)
        status = annal_cursor_next(cursor, out, err);
    return status < 0 || (status == ANNAL_OK && out->seq == seq) ? status : ANNAL_END;
}

static annal_status read_inputs(struct owned *owned, annal_cursor *cursor, annal_error *err)
{
    size_t count = owned->recovery.call_count, bytes = 0;
    size_t first = count > ANNAL_RECOVERY_INPUTS ? count - ANNAL_RECOVERY_INPUTS : 0;
    for (size_t i = count; i-- > first;) {
        annal_event event;
        annal_open_call *call = &owned->calls[i];
        annal_status status = read_event(cursor, call->seq, &event, err);
        if (status < 0)
            return status;
        if (status == ANNAL_END)
            continue;
        annal_slice input = annal__json_member(event.data, "input");
        if (input.len == 0)
            input = annal__json_member(event.data, "arguments");
        if (input.len == 0 || input.len > ANNAL_RECOVERY_BYTES - bytes)
            continue;
        if (!keep(&call->input, input))
            return ANNAL_ERR_NOMEM;
        bytes += input.len;
    }
    return ANNAL_OK;
}

/* Note the last messages of a block; what a newer block has stays. */
static annal_status read_block(struct owned *owned, annal_cursor *cursor, uint64_t from,
                               uint64_t to, annal_error *err)
{
    annal_last_message *user = &owned->recovery.user, *assistant = &owned->recovery.assistant;
    uint64_t user_seq = user->seq, assistant_seq = assistant->seq;
    annal_status status = annal_cursor_seek(cursor, from, err);
    while (status >= 0 && status != ANNAL_END && annal_cursor_position(cursor).seq < to) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        if (status != ANNAL_OK || event.seq >= to || !annal__slice_is(event.type, "message.added"))
            continue;
        annal_slice role = annal__json_member(event.data, "role");
        if (user_seq == 0 && annal__slice_is(role, "\"user\""))
            user->seq = event.seq;
        if (assistant_seq == 0 && annal__slice_is(role, "\"assistant\""))
            assistant->seq = event.seq;
    }
    return status < 0 ? status : ANNAL_OK;
}

static annal_status read_message(annal_last_message *message, annal_cursor *cursor,
                                 annal_error *err)
{
    annal_event event;
    if (message->seq == 0)
        return ANNAL_OK;
    annal_status status = read_event(cursor, message->seq, &event, err);
    if (status != ANNAL_OK)
        return status;
    message->ts_us = event.ts_us;
    return keep(&message->data, event.data) ? ANNAL_OK : ANNAL_ERR_NOMEM;
}

/* Find the last messages, from the end backwards in blocks. */
static annal_status read_messages(struct owned *owned, annal_cursor *cursor, annal_error *err)
{
    annal_recovery *recovery = &owned->recovery;
    uint64_t to = recovery->seq + 1, looked = 0;
    annal_status status = ANNAL_OK;
    while (status >= 0 && to > 1 && looked < ANNAL_RECOVERY_EVENTS &&
           (recovery->user.seq == 0 || recovery->assistant.seq == 0)) {
        uint64_t from = to > BLOCK_EVENTS ? to - BLOCK_EVENTS : 1;
        status = read_block(owned, cursor, from, to, err);
        looked += to - from;
        to = from;
    }
    if (status >= 0)
        status = read_message(&recovery->user, cursor, err);
    return status < 0 ? status : read_message(&recovery->assistant, cursor, err);
}

static annal_status read_all(struct owned *owned, annal_index *index, annal_slice session,
                             annal_error *err)
{
    const annal_moment end = {.kind = ANNAL_AT_END};
    annal_recovery *recovery = &owned->recovery;
    annal_state *state = NULL;
    annal_cursor *cursor = NULL;
    annal_status status =
        annal_replay_open(index, session, end, NULL, &state, &recovery->replay, err);
    if (status >= 0)
        status =
            annal_state_sql(state, annal_slice_of(annal__sql_recovery), NULL, take, owned, err);
    annal_state_free(state);
    recovery->seq = recovery->replay.seq;
    if (status >= 0 && recovery->status.ptr == NULL && !keep(&recovery->status, (annal_slice){0}))
        status = ANNAL_ERR_NOMEM;
    if (status >= 0)
        status = annal_cursor_open(annal__index_store(index), session, 1, &cursor, err);
    if (status >= 0)
        status = read_inputs(owned, cursor, err);
    if (status >= 0)
        status = read_messages(owned, cursor, err);
    annal_cursor_close(cursor);
    recovery->calls = owned->calls;
    recovery->turns = owned->turns;
    return status;
}

annal_status annal_recovery_get(annal_index *index, annal_slice session,
                                annal_recovery **out_recovery, annal_error *err)
{
    struct owned *owned = annal__zalloc(sizeof *owned);
    annal_status status = ANNAL_ERR_NOMEM;
    if (owned != NULL)
        status = read_all(owned, index, session, err);
    if (status >= 0) {
        *out_recovery = &owned->recovery;
        return ANNAL_OK;
    }
    annal_recovery_free(owned == NULL ? NULL : &owned->recovery);
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "recovery of session '%.*s'", ANNAL_FMT(session));
    return status;
}

static void drop(annal_slice slice)
{
    annal__free((void *)slice.ptr);
}

void annal_recovery_free(annal_recovery *recovery)
{
    struct owned *owned = (struct owned *)recovery;
    if (owned == NULL)
        return;
    for (size_t i = 0; i < recovery->call_count; i++) {
        const annal_open_call *call = &owned->calls[i];
        drop(call->call_id);
        drop(call->tool);
        drop(call->input);
        drop(call->called_at);
        drop(call->turn_id);
    }
    for (size_t i = 0; i < recovery->turn_count; i++) {
        drop(owned->turns[i].turn_id);
        drop(owned->turns[i].status);
        drop(owned->turns[i].created_at);
    }
    drop(recovery->status);
    drop(recovery->user.data);
    drop(recovery->assistant.data);
    annal__free(owned->calls);
    annal__free(owned->turns);
    annal__free(owned);
}
