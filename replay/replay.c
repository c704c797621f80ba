/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/open.h"
#include "replay/fold.h"

#include "journal/base/error.h"

/* ---- The seq at a given time ---- */

/* Find the seq at a time by reading the journal, because the index cannot show it. */
static annal_status walk_to_time(annal_store *store, annal_slice session, int64_t time_us,
                                 uint64_t *out_seq, annal_error *err)
{
    annal_cursor *cursor = NULL;
    uint64_t seq = 0;
    annal_status status = annal_cursor_open(store, session, 1, &cursor, err);
    while (status == ANNAL_OK || status == ANNAL_DAMAGE) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_OK && event.ts_us <= time_us)
            seq = event.seq;
    }
    annal_cursor_close(cursor);
    if (status == ANNAL_END)
        *out_seq = seq;
    return status == ANNAL_END ? ANNAL_OK : status;
}

static int take_integer(void *arg, const annal_row *row)
{
    *(uint64_t *)arg = (uint64_t)row->values[0].integer;
    return 0;
}

struct asking {
    annal_index *index;
    annal_slice time;
    uint64_t seq;
    /* whether the last query succeeded on an index that contains the whole journal */
    bool answered;
};

/* Query one part of a history. The parts are visited from the last to the first: the first part
 * with an event at or before the time decides. */
static int ask_part(void *arg, const annal_lineage_part *part)
{
    struct asking *asking = arg;
    int64_t to_seq = part->to_seq > INT64_MAX ? INT64_MAX : (int64_t)part->to_seq;
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = part->session},
                                  {.kind = ANNAL_VALUE_TEXT, .bytes = asking->time},
                                  {.kind = ANNAL_VALUE_INTEGER, .integer = to_seq}};
    const annal_sql_options options = {.params = params, .param_count = 3, .as_indexed = true};
    annal_status status = annal_index_catch_up(asking->index, part->session, NULL, NULL);
    if (status == ANNAL_OK)
        status = annal_index_sql(asking->index,
                                 ANNAL_SLICE("SELECT seq FROM event_index WHERE session_id = ?1"
                                             " AND timestamp <= ?2 AND seq <= ?3"
                                             " ORDER BY seq DESC LIMIT 1"),
                                 &options, take_integer, &asking->seq, NULL);
    asking->answered = status == ANNAL_OK;
    return asking->answered && asking->seq == 0 ? ANNAL_OK : ANNAL_END;
}

/* Find the seq at a time. The history of a fork begins in journals of other sessions, so each part
 * of it is queried. */
static annal_status seq_at_time(annal_index *index, annal_slice session, int64_t time_us,
                                uint64_t *out_seq, annal_error *err)
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(time_us, time);
    struct asking asking = {.index = index, .time = annal_slice_of(time)};
    annal_status status =
        annal_lineage_each(annal__index_store(index), session, ask_part, &asking, NULL);
    if (status < 0 || !asking.answered)
        /* the index cannot be used: read the journal instead */
        return walk_to_time(annal__index_store(index), session, time_us, out_seq, err);
    *out_seq = asking.seq;
    return ANNAL_OK;
}

annal_status annal_replay_seq(annal_index *index, annal_slice session, annal_moment at,
                              uint64_t *out_seq, annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(annal__index_store(index), session, &info, err);
    if (status < 0)
        return status;
    if (at.kind == ANNAL_AT_TIME)
        return seq_at_time(index, session, at.time_us, out_seq, err);
    if (at.kind == ANNAL_AT_SEQ && at.seq > info.last_seq)
        return annal__fail(
            err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no event %llu: its last event is %llu",
            ANNAL_FMT(session), (unsigned long long)at.seq, (unsigned long long)info.last_seq);
    *out_seq = at.kind == ANNAL_AT_SEQ ? at.seq : info.last_seq;
    return ANNAL_OK;
}

/* ---- Folding ---- */

annal_status annal_replay_fold(annal_store *store, annal_slice session, uint64_t from_seq,
                               uint64_t to_seq, annal_fold_fn fn, void *arg, uint64_t *out_damaged,
                               annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_session_info info;
    uint64_t damaged = 0;
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status >= 0)
        status = annal_cursor_open(store, session, from_seq, &cursor, err);
    if (status >= 0)
        status = annal__fold(cursor, to_seq == 0 ? info.last_seq : to_seq, fn, arg, &damaged, err);
    annal_cursor_close(cursor);
    if (status == ANNAL_OK && out_damaged != NULL)
        *out_damaged = damaged;
    return status;
}

annal_status annal_replay_open(annal_index *index, annal_slice session, annal_moment at,
                               const annal_replay_options *options, annal_state **out_state,
                               annal_replay_info *out_info, annal_error *err)
{
    struct folding folding = {0};
    uint64_t seq = 0;
    annal_status status = annal_replay_seq(index, session, at, &seq, err);
    if (status >= 0)
        status = annal__fold_begin(&folding, index, session, options, seq, err);
    if (status >= 0)
        status = annal__fold_to(&folding, seq, err);
    if (status >= 0) {
        if (out_info != NULL)
            *out_info = (annal_replay_info){.seq = seq,
                                            .snapshot_seq = folding.from_seq,
                                            .folded = folding.folded,
                                            .damaged = folding.damaged};
        *out_state = annal__fold_take(&folding);
    }
    annal__fold_done(&folding);
    return status;
}
