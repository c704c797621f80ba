#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <annal/replay.h>

#include <string.h>

/* ---- Which seq a moment means ---- */

/* A journal that is not indexed whole: walk through it. */
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

static annal_status seq_at_time(annal_index *index, annal_slice session, int64_t time_us,
                                uint64_t *out_seq, annal_error *err)
{
    char time[ANNAL_TIME_BYTES];
    annal_time_format(time_us, time);
    const annal_value params[] = {{.kind = ANNAL_VALUE_TEXT, .bytes = session},
                                  {.kind = ANNAL_VALUE_TEXT, .bytes = annal_slice_of(time)}};
    const annal_sql_options options = {.params = params, .param_count = 2, .as_indexed = true};
    uint64_t seq = 0;
    annal_status status = annal_index_catch_up(index, session, NULL, NULL);
    if (status == ANNAL_OK)
        status = annal_sql(index,
                           ANNAL_SLICE("SELECT seq FROM event_index WHERE session_id = ?1"
                                       " AND timestamp <= ?2 ORDER BY seq DESC LIMIT 1"),
                           &options, take_integer, &seq, NULL);
    if (status != ANNAL_OK) /* the index is in the way or out of order: the journal knows as well */
        return walk_to_time(annal_index_store(index), session, time_us, out_seq, err);
    *out_seq = seq;
    return ANNAL_OK;
}

annal_status annal_replay_seq(annal_index *index, annal_slice session, annal_moment at,
                              uint64_t *out_seq, annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(annal_index_store(index), session, &info, err);
    if (status < 0)
        return status;
    if (at.kind == ANNAL_AT_TIME)
        return seq_at_time(index, session, at.time_us, out_seq, err);
    if (at.kind == ANNAL_AT_SEQ && at.seq > info.last_seq)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "session '%.*s' has no event %llu: its last is %llu", ANNAL_FMT(session),
                           (unsigned long long)at.seq, (unsigned long long)info.last_seq);
    *out_seq = at.kind == ANNAL_AT_SEQ ? at.seq : info.last_seq;
    return ANNAL_OK;
}

/* ---- Folding ---- */

/* The events up to to_seq, from where the cursor stands. */
static annal_status fold(annal_cursor *cursor, uint64_t to_seq, annal_fold_fn fn, void *arg,
                         uint64_t *damaged, annal_error *err)
{
    while (annal_cursor_position(cursor).seq <= to_seq) {
        annal_event event;
        annal_status status = annal_cursor_next(cursor, &event, err);
        if (status == ANNAL_DAMAGE)
            ++*damaged;
        if (status == ANNAL_OK && event.seq <= to_seq)
            status = fn(arg, &event, err);
        if (status == ANNAL_END)
            return ANNAL_OK;
        if (status != ANNAL_OK && status != ANNAL_DAMAGE)
            return status;
    }
    return ANNAL_OK;
}

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
        status = fold(cursor, to_seq == 0 ? info.last_seq : to_seq, fn, arg, &damaged, err);
    annal_cursor_close(cursor);
    if (status == ANNAL_OK && out_damaged != NULL)
        *out_damaged = damaged;
    return status;
}

/* ---- The state ---- */

struct reduction {
    annal_state *state;
    uint64_t folded;
};

static annal_status apply(void *arg, const annal_event *event, annal_error *err)
{
    struct reduction *reduction = arg;
    reduction->folded++;
    return annal_state_apply(reduction->state, event, err);
}

/* A state to begin with, and the cursor behind it: from a snapshot, else from nothing. */
static annal_status begin(annal_index *index, annal_slice session,
                          const annal_replay_options *options, uint64_t seq,
                          annal_state **out_state, annal_cursor **out_cursor, annal_error *err)
{
    annal_store *store = annal_index_store(index);
    const annal_pack *core = annal_index_core(index);
    const annal_pack *const *packs = options->packs == NULL ? &core : options->packs;
    size_t pack_count = options->packs == NULL ? 1 : options->pack_count;
    annal_state *state = NULL;
    annal_position next = {0};
    annal_status status = ANNAL_ERR_NOTFOUND;
    if (!options->no_snapshots && seq > 0)
        status = annal_snapshot_load(index, session, seq, packs, pack_count, &state, &next, NULL);
    if (status == ANNAL_OK)
        status = annal_cursor_open_at(store, session, next.seq, next.offset, next.h_before,
                                      out_cursor, NULL);
    if (status < 0) { /* whatever was wrong with a snapshot, the journal has it all */
        annal_state_free(state);
        state = NULL;
        status = annal_state_new(session, packs, pack_count, &state, err);
        if (status >= 0)
            status = annal_cursor_open(store, session, 1, out_cursor, err);
    }
    if (status < 0)
        annal_state_free(state);
    else
        *out_state = state;
    return status;
}

annal_status annal_replay_open(annal_index *index, annal_slice session, annal_moment at,
                               const annal_replay_options *options, annal_state **out_state,
                               annal_replay_info *out_info, annal_error *err)
{
    static const annal_replay_options defaults = {0};
    annal_replay_info info = {0};
    struct reduction reduction = {0};
    annal_cursor *cursor = NULL;
    annal_status status = annal_replay_seq(index, session, at, &info.seq, err);
    if (status >= 0)
        status = begin(index, session, options == NULL ? &defaults : options, info.seq,
                       &reduction.state, &cursor, err);
    if (status < 0)
        return status;
    info.snapshot_seq = annal_state_seq(reduction.state);
    status = fold(cursor, info.seq, apply, &reduction, &info.damaged, err);
    annal_cursor_close(cursor);
    if (status < 0) {
        annal_state_free(reduction.state);
        return status;
    }
    info.folded = reduction.folded;
    *out_state = reduction.state;
    if (out_info != NULL)
        *out_info = info;
    return ANNAL_OK;
}

/* ---- Proving ---- */

struct proof {
    annal_index *index;
    annal_slice session;
    annal_replay_finding_fn fn;
    void *arg;
    annal_replay_verify_result result;
    annal_state *folded;
    annal_cursor *cursor;
    annal_error *err;
};

static void find(struct proof *proof, uint64_t seq, const char *what)
{
    const annal_replay_finding finding = {proof->session, seq, what};
    proof->result.findings++;
    if (proof->fn != NULL)
        proof->fn(proof->arg, &finding);
}

static int add_to_hash(void *arg, const char *bytes, size_t len)
{
    annal__hash_add(arg, bytes, len);
    return 0;
}

static annal_status hash_state(annal_state *state, uint64_t *out_hash, annal_error *err)
{
    struct hash_stream *stream = annal__hash_begin(0);
    if (stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compare two states");
    annal_status status = annal_state_json(state, add_to_hash, stream, err);
    *out_hash = annal__hash_end(stream);
    return status;
}

static annal_status fold_to(struct proof *proof, uint64_t seq)
{
    struct reduction reduction = {.state = proof->folded};
    uint64_t damaged = 0;
    annal_status status = fold(proof->cursor, seq, apply, &reduction, &damaged, proof->err);
    proof->result.events += reduction.folded;
    return status;
}

/* Compare the snapshot at seq with what folding gives. */
static annal_status compare(struct proof *proof, uint64_t seq)
{
    annal_state *loaded = NULL;
    annal_position next;
    uint64_t hash_folded = 0, hash_loaded = 0;
    annal_status status =
        annal_snapshot_load(proof->index, proof->session, seq, NULL, 0, &loaded, &next, proof->err);
    if (status == ANNAL_ERR_NOTFOUND || (status == ANNAL_OK && annal_state_seq(loaded) != seq)) {
        annal_state_free(loaded);
        return ANNAL_OK; /* deleted just now */
    }
    if (status == ANNAL_OK)
        status = fold_to(proof, seq);
    if (status == ANNAL_OK)
        status = hash_state(proof->folded, &hash_folded, proof->err);
    if (status == ANNAL_OK)
        status = hash_state(loaded, &hash_loaded, proof->err);
    if (status == ANNAL_OK) {
        proof->result.snapshots++;
        if (hash_folded != hash_loaded)
            find(proof, seq, "it gives another state than folding the events does");
    }
    annal_state_free(loaded);
    return status;
}

/* An annal_snapshot_fn. */
static int prove_one(void *arg, annal_slice session, const annal_snapshot_info *info,
                     const char *problem)
{
    (void)session;
    struct proof *proof = arg;
    if (problem == NULL)
        return compare(proof, info->seq);
    if (info->stale)
        proof->result.stale++;
    else
        find(proof, info->seq, problem);
    return 0;
}

annal_status annal_replay_verify(annal_index *index, annal_slice session,
                                 annal_replay_finding_fn fn, void *arg,
                                 annal_replay_verify_result *out_result, annal_error *err)
{
    struct proof proof = {.index = index, .session = session, .fn = fn, .arg = arg, .err = err};
    annal_status status =
        annal_cursor_open(annal_index_store(index), session, 1, &proof.cursor, err);
    if (status >= 0)
        status = annal_state_new(session, NULL, 0, &proof.folded, err);
    if (status >= 0)
        status = annal_snapshot_each(index, session, prove_one, &proof, err);
    if (status >= 0)
        status = fold_to(&proof, UINT64_MAX - 1);
    annal_cursor_close(proof.cursor);
    annal_state_free(proof.folded);
    if (status == ANNAL_OK)
        *out_result = proof.result;
    return status;
}
