#include "snapshot/take.h"

#include "journal/base/error.h"
#include "journal/base/seam.h"

#include <string.h>

#define STEP_EVENTS 256

/* ---- Beginning ---- */

static annal_status begin_fold(struct taker *taker, annal_error *err)
{
    struct loaded loaded = {0};
    struct shelf *shelf = &taker->shelf;
    annal_status status =
        annal__snapshot_load(shelf, UINT64_MAX, true, taker->wait_ms, &loaded, err);
    if (status == ANNAL_OK) {
        const struct snapshot_header *header = &loaded.header;
        taker->state = loaded.state;
        taker->newest = *header;
        taker->last = taker->due = taker->here =
            (struct snapshot_mark){header->seq, header->offset};
        return annal_cursor_open_at(shelf->store, shelf->session, header->seq + 1, header->offset,
                                    header->h, &taker->cursor, err);
    }
    if (status != ANNAL_ERR_NOTFOUND)
        return status;
    status = annal_state_new(shelf->session, shelf->packs, shelf->pack_count, &taker->state, err);
    if (status >= 0)
        status = annal_cursor_open(shelf->store, shelf->session, 1, &taker->cursor, err);
    return status;
}

annal_status annal__taker_init(struct taker *taker, annal_index *index, annal_slice session,
                               const annal_snapshot_policy *policy, bool at_end, uint32_t wait_ms,
                               annal_error *err)
{
    *taker = (struct taker){
        .policy = annal__snapshot_policy(policy), .at_end = at_end, .wait_ms = wait_ms};
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    memcpy(taker->id, session.ptr, session.len);
    status = annal__shelf_init(&taker->shelf, index, annal_slice_of(taker->id), NULL, 0, err);
    if (status < 0)
        return status;
    taker->end = (struct snapshot_mark){taker->shelf.info.last_seq, taker->shelf.info.end_offset};
    return begin_fold(taker, err);
}

void annal__taker_done(struct taker *taker)
{
    annal_cursor_close(taker->cursor);
    annal_state_free(taker->state);
    *taker = (struct taker){0};
}

/* ---- Taking one ---- */

/*
 * Unpack what the snapshot with this header is stored against, and say so in the header. Numbers of
 * bases are found by going down from the newest snapshot: each on the way is the base of the one
 * before. Where that chain is broken, the new one is stored whole.
 */
static annal_status find_base(const struct taker *taker, struct snapshot_header *header,
                              struct buf *out, annal_error *err)
{
    uint64_t number = annal__snapshot_base_number(header->number);
    uint64_t seq = taker->newest.seq;
    annal_status status = ANNAL_OK;
    while (number > 0 && seq > 0) {
        struct shelf_row row = {0};
        status = annal__shelf_row(&taker->shelf, seq, &row, err);
        bool sound = status >= 0 && row.seq == seq && row.problem == NULL;
        bool found = sound && row.header.number == number;
        if (found)
            status = annal__shelf_image(&taker->shelf, &row, out, err);
        if (found && status >= 0) {
            header->base_seq = row.header.seq;
            header->base_hash = row.header.raw_hash;
        }
        seq = sound && !found && row.header.base_seq < seq ? row.header.base_seq : 0;
        annal__shelf_row_done(&row);
    }
    return status == ANNAL_ERR_NOTFOUND || status == ANNAL_ERR_CORRUPT ? ANNAL_OK : status;
}

/*
 * Another process may have taken one at this very place meanwhile. Then it stays: its state is the
 * same, but later ones may be stored against its bytes, which need not be ours.
 */
static annal_status adopt_here(struct taker *taker, bool *out_adopted, annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal__shelf_row(&taker->shelf, taker->here.seq, &row, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = ANNAL_OK;
    bool sound =
        status >= 0 && row.bytes.ptr != NULL && row.seq == taker->here.seq && row.problem == NULL;
    const char *why = NULL;
    if (sound)
        status = annal__shelf_stale(&taker->shelf, &row.header, &why, err);
    *out_adopted = sound && status >= 0 && why == NULL;
    if (*out_adopted)
        taker->newest = row.header;
    annal__shelf_row_done(&row);
    return status;
}

static annal_status take_here(struct taker *taker, annal_error *err)
{
    bool adopted = false;
    annal_slice raw = {0};
    struct buf base = {.limit = SNAPSHOT_RAW_BYTES_MAX}, frame = {0};
    const struct clock *clock = annal__store_clock(taker->shelf.store);
    struct snapshot_header header = {.seq = taker->here.seq,
                                     .offset = taker->here.offset,
                                     .h = taker->here_h,
                                     .pack_version = taker->shelf.pack_version,
                                     .number = taker->newest.number + 1,
                                     .created_us = clock->wall_us(clock->arg)};
    memcpy(header.file, taker->shelf.info.file, sizeof header.file);
    annal_status status = find_base(taker, &header, &base, err);
    if (status >= 0)
        status = annal_state_serialize(taker->state, &raw, err);
    if (status >= 0)
        status = annal__snapshot_pack(&header, raw, annal__buf_slice(&base), &frame, err);
    if (status >= 0)
        status = adopt_here(taker, &adopted, err);
    if (status >= 0 && !adopted)
        status =
            annal__shelf_put(&taker->shelf, &header, annal__buf_slice(&frame), taker->wait_ms, err);
    if (status >= 0 && !adopted) {
        taker->newest = header;
        taker->taken++;
    }
    if (status >= 0)
        taker->last = taker->here;
    annal_index_free(raw.ptr);
    annal__buf_done(&base);
    annal__buf_done(&frame);
    return status;
}

/* ---- Folding ---- */

/* Take one here if it is due. When that fails, the next step comes here again. */
static annal_status take_if_due(struct taker *taker, annal_error *err)
{
    annal_status status = ANNAL_OK;
    bool due = annal__snapshot_due(&taker->policy, taker->due, taker->here);
    bool last_of_all = taker->at_end && taker->here.seq >= taker->end.seq;
    if (taker->here.seq > taker->last.seq &&
        (last_of_all || (due && annal__snapshot_take_here(&taker->policy, taker->last, taker->here,
                                                          taker->end, taker->newest.raw_bytes))))
        status = take_here(taker, err);
    if (status >= 0 && due)
        taker->due = taker->here;
    return status;
}

annal_status annal__taker_step(struct taker *taker, annal_error *err)
{
    for (int i = 0; i < STEP_EVENTS; i++) {
        annal_event event;
        annal_status status = take_if_due(taker, err);
        if (status < 0)
            return status;
        if (taker->here.seq >= taker->end.seq)
            return ANNAL_END;
        status = annal_cursor_next(taker->cursor, &event, err);
        if (status == ANNAL_DAMAGE)
            continue;
        if (status == ANNAL_OK)
            status = annal_state_apply(taker->state, &event, err);
        if (status != ANNAL_OK)
            return status;
        taker->here = (struct snapshot_mark){event.seq, event.offset + event.length};
        taker->here_h = event.h;
    }
    return ANNAL_OK;
}

/* ---- By hand ---- */

static annal_status run(annal_index *index, annal_slice session,
                        const annal_snapshot_policy *policy, bool at_end, struct taker *taker,
                        annal_error *err)
{
    annal_status status =
        annal__taker_init(taker, index, session, policy, at_end, SNAPSHOT_WAIT_MS, err);
    while (status == ANNAL_OK)
        status = annal__taker_step(taker, err);
    return status < 0 ? status : ANNAL_OK;
}

annal_status annal_snapshot_take(annal_index *index, annal_slice session,
                                 const annal_snapshot_policy *policy, annal_snapshot_info *out_info,
                                 annal_error *err)
{
    struct taker taker;
    annal_status status = run(index, session, policy, true, &taker, err);
    if (status >= 0 && taker.newest.seq == 0)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no events",
                             ANNAL_FMT(session));
    if (status >= 0)
        *out_info = (annal_snapshot_info){
            .seq = taker.newest.seq,
            .bytes = SNAPSHOT_HEADER_BYTES + taker.newest.frame_bytes,
            .raw_bytes = taker.newest.raw_bytes,
            .base_seq = taker.newest.base_seq,
            .created_us = taker.newest.created_us,
            .in_file = taker.newest.in_file,
        };
    annal__taker_done(&taker);
    return status;
}

annal_status annal_snapshot_catch_up(annal_index *index, annal_slice session,
                                     const annal_snapshot_policy *policy, uint64_t *out_count,
                                     annal_error *err)
{
    struct taker taker;
    annal_status status = run(index, session, policy, false, &taker, err);
    if (status >= 0 && out_count != NULL)
        *out_count = taker.taken;
    annal__taker_done(&taker);
    return status;
}
