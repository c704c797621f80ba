/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot_write.h"

#include "index/sys/state.h"
#include "journal/sys/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/sys/snapshot.h"

#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <string.h>

#define STEP_EVENTS    256
#define STEP_BYTES     ((uint64_t)1 << 18) /* of journal */
#define PATIENCE_MAX   ((uint64_t)1 << 20)
#define PUT_AWAY_BYTES ((size_t)16 << 20) /* of pages that changed since the last snapshot */

/* ---- Beginning ---- */

/* The newest snapshot, or NULL. */
static const struct snapshot_header *newest(const struct taker *taker)
{
    return taker->chain == NULL || annal__chain_layers(taker->chain) == 0
               ? NULL
               : annal__chain_header(taker->chain, 0);
}

/*
 * A fork's own snapshots come after its fork point. So marks begin there, and what comes before is
 * only folded, from a snapshot of an ancestor if there is one.
 */
static annal_status begin_fold(struct taker *taker, annal_error *err)
{
    struct loaded loaded = {0};
    struct storage *shelf = &taker->shelf;
    annal_status status =
        annal__snapshot_load(shelf, UINT64_MAX, true, taker->wait_ms, &loaded, err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    bool found = status >= 0;
    taker->listed = taker->leftovers = false;
    taker->stride = 1;
    taker->last = taker->due = taker->here = (struct snapshot_mark){shelf->info.fork_seq, 0};
    if (found && !loaded.inherited) {
        const struct snapshot_header *header = annal__chain_header(loaded.chain, 0);
        taker->stride = header->stride == 0 ? 1 : header->stride;
        taker->last = taker->due = taker->here =
            (struct snapshot_mark){header->seq, header->offset};
    }
    if (found) {
        taker->state = loaded.state;
        status = annal__snapshot_cursor(shelf, &loaded, &taker->cursor, err);
    } else {
        status = annal__snapshot_state(shelf, NULL, &taker->state, err);
        if (status >= 0)
            status = annal_cursor_open(shelf->store, shelf->session, 1, &taker->cursor, err);
    }
    if (found && !loaded.inherited)
        taker->chain = loaded.chain;
    else
        annal__chain_unref(loaded.chain);
    if (status >= 0 && taker->chain == NULL)
        status = annal__chain_new(shelf, &taker->chain, err);
    return status;
}

static void end_fold(struct taker *taker)
{
    annal_state **spare = taker->shelf.spare;
    annal_cursor_close(taker->cursor);
    if (spare != NULL && *spare == NULL && annal__state_rest(taker->state))
        *spare = taker->state;
    else
        annal_state_free(taker->state);
    annal__chain_unref(taker->chain);
    taker->cursor = NULL;
    taker->state = NULL;
    taker->chain = NULL;
}

annal_status annal__taker_init(struct taker *taker, annal_index *index, annal_slice session,
                               const annal_snapshot_policy *policy, bool at_end, uint32_t wait_ms,
                               annal_state **spare, annal_error *err)
{
    *taker = (struct taker){.policy = annal__snapshot_policy(policy),
                            .at_end = at_end,
                            .wait_ms = wait_ms,
                            .patience = 1};
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    memcpy(taker->id, session.ptr, session.len);
    status = annal__storage_init(&taker->shelf, index, annal_slice_of(taker->id), NULL, 0, err);
    if (status < 0)
        return status;
    taker->shelf.spare = spare;
    taker->end = (struct snapshot_mark){taker->shelf.info.last_seq, taker->shelf.info.end_offset};
    return begin_fold(taker, err);
}

void annal__taker_done(struct taker *taker)
{
    end_fold(taker);
    *taker = (struct taker){0};
}

/* ---- Packing one ---- */

/* The layer that a snapshot with this number is stored against, or the number of layers: none. */
static size_t find_base(const struct taker *taker, uint64_t number)
{
    size_t count = annal__chain_layers(taker->chain);
    uint64_t base = annal__snapshot_base_number(number);
    size_t at = 0;
    while (at < count && annal__chain_header(taker->chain, at)->number != base)
        at++;
    return at;
}

/* Number the snapshot, and pack its body. *out_base is the layer that it is stored against. */
static annal_status pack(const struct taker *taker, struct snapshot_header *header,
                         struct buf *body, size_t *out_base, annal_error *err)
{
    uint64_t last = newest(taker) == NULL ? 0 : newest(taker)->number;
    header->stride = taker->stride;
    header->number = (last / taker->stride + 1) * taker->stride;
    size_t base = find_base(taker, header->number);
    header->base_seq = header->base_hash = 0;
    if (base < annal__chain_layers(taker->chain)) {
        header->base_seq = annal__chain_header(taker->chain, base)->seq;
        header->base_hash = annal__chain_header(taker->chain, base)->header_hash;
    }
    *out_base = base;
    return annal__delta_write(taker->state, taker->chain, base, header, body, err);
}

/* ---- Staying within the limit of bytes ---- */

/* Without those whose number is not a multiple of stride. */
static uint64_t total_of(const struct shelf_list *list, uint64_t stride)
{
    uint64_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].problem == NULL && list->items[i].header.number % stride == 0)
            total += list->items[i].bytes;
    }
    return total;
}

static bool has_leftovers(const struct shelf_list *list, uint64_t stride)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].problem != NULL || list->items[i].header.number % stride != 0)
            return true;
    }
    return false;
}

/*
 * Raise the stride until the snapshots that stay leave room for one of this size, or until none
 * stays. *out_fits: there is room.
 */
static annal_status make_room(struct taker *taker, uint64_t bytes, bool *out_fits, annal_error *err)
{
    struct shelf_list list = {0};
    uint64_t most = annal__snapshot_bytes_max(&taker->policy, taker->here.offset);
    if (taker->listed && taker->total_bytes + bytes <= most) {
        *out_fits = true;
        return ANNAL_OK;
    }
    annal_status status = annal__storage_list(taker->shelf.index, taker->shelf.session, &list, err);
    if (status >= 0) {
        uint64_t total = total_of(&list, taker->stride);
        while (total > 0 && total + bytes > most) {
            taker->stride *= SNAPSHOT_RADIX;
            total = total_of(&list, taker->stride);
        }
        *out_fits = total + bytes <= most;
        taker->total_bytes = total;
        taker->leftovers = has_leftovers(&list, taker->stride);
        taker->listed = true;
    }
    annal__storage_list_done(&list);
    return status;
}

/*
 * Pack, and make room. With a larger stride it is stored against an older snapshot, takes more
 * bytes, and needs room again. If it does not even fit alone, the existing ones stay.
 */
static annal_status pack_to_fit(struct taker *taker, struct snapshot_header *header,
                                struct buf *body, size_t *out_base, bool *out_fits,
                                annal_error *err)
{
    uint64_t first = taker->stride, packed = 0;
    annal_status status = ANNAL_OK;
    *out_fits = true;
    while (status >= 0 && *out_fits && packed != taker->stride) {
        packed = taker->stride;
        status = pack(taker, header, body, out_base, err);
        if (status >= 0)
            status = make_room(taker, SNAPSHOT_HEADER_BYTES + header->body_bytes, out_fits, err);
    }
    if (status >= 0 && *out_fits)
        return status;
    taker->stride = first;
    taker->listed = taker->leftovers = false;
    bool room = false; /* the limit may have been lowered */
    return status < 0 ? status : make_room(taker, 0, &room, err);
}

static bool is_leftover(void *arg, const struct shelf_item *item)
{
    const struct taker *taker = arg;
    return item->problem != NULL || item->header.number % taker->stride != 0;
}

/* Nothing needs them any more. If another process writes the index, the next step tries again. */
static annal_status remove_leftovers(struct taker *taker, annal_error *err)
{
    struct shelf_list list = {0};
    if (!taker->leftovers)
        return ANNAL_OK;
    annal_status status = annal__storage_list(taker->shelf.index, taker->shelf.session, &list, err);
    if (status >= 0)
        status =
            annal__storage_delete(&taker->shelf, &list, is_leftover, taker, taker->wait_ms, err);
    if (status >= 0)
        taker->leftovers = false;
    annal__storage_list_done(&list);
    return status;
}

/* ---- Taking one ---- */

/*
 * Another process may have taken one at this place meanwhile. Then that one stays: its state is the
 * same, but later snapshots may be stored against its bytes, which may differ from ours.
 */
static annal_status is_taken(const struct taker *taker, bool *out_taken, annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal__storage_row(&taker->shelf, taker->here.seq, &row, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = ANNAL_OK;
    bool sound =
        status >= 0 && row.bytes.ptr != NULL && row.seq == taker->here.seq && row.problem == NULL;
    const char *why = NULL;
    if (sound)
        status = annal__storage_stale(&taker->shelf, &row.header, &why, err);
    *out_taken = sound && status >= 0 && why == NULL;
    annal__storage_row_done(&row);
    return status;
}

/* The snapshot is stored: the state continues over it. */
static annal_status go_on_over(struct taker *taker, const struct snapshot_header *header,
                               struct buf *body, size_t base, annal_error *err)
{
    annal_status status = annal__chain_push(taker->chain, &taker->shelf, header, body, base, err);
    if (status < 0)
        return status;
    annal__state_source source = annal__chain_source(annal__chain_ref(taker->chain));
    status = annal__state_rebase(taker->state, &source, err);
    if (status < 0)
        annal__chain_unref(taker->chain);
    return status;
}

/* It is stored. */
static void note_taken(struct taker *taker, const struct snapshot_header *header)
{
    taker->last = taker->due = taker->here;
    taker->taken++;
    taker->patience = 1;
    taker->total_bytes += SNAPSHOT_HEADER_BYTES + header->body_bytes;
}

/* It is larger than all together may be: four times as far from here one may fit, or be smaller. */
static void note_refused(struct taker *taker, const struct snapshot_header *header)
{
    taker->due = taker->here;
    taker->refused_seq = taker->here.seq;
    taker->refused_bytes = SNAPSHOT_HEADER_BYTES + header->body_bytes;
    if (taker->patience < PATIENCE_MAX)
        taker->patience *= SNAPSHOT_RADIX;
}

static const struct snapshot_header *base_of(const struct taker *taker, size_t layer)
{
    return layer < annal__chain_layers(taker->chain) ? annal__chain_header(taker->chain, layer)
                                                     : NULL;
}

static annal_status take_here(struct taker *taker, annal_error *err)
{
    bool taken = false, fits = false;
    size_t base = 0;
    struct buf body = {.limit = SNAPSHOT_BODY_BYTES_MAX};
    const struct clock *clock = annal__store_clock(taker->shelf.store);
    struct snapshot_header header = {.seq = taker->here.seq,
                                     .offset = taker->here.offset,
                                     .h = taker->here_h,
                                     .pack_version = taker->shelf.pack_version,
                                     .created_us = clock->wall_us(clock->arg)};
    memcpy(header.file, taker->shelf.info.file, sizeof header.file);
    annal_status status = is_taken(taker, &taken, err);
    if (status >= 0 && taken) {
        end_fold(taker);
        return begin_fold(taker, err);
    }
    if (status >= 0)
        status = pack_to_fit(taker, &header, &body, &base, &fits, err);
    if (status >= 0 && !fits)
        note_refused(taker, &header);
    if (status >= 0 && fits)
        status = annal__storage_put(&taker->shelf, &header, base_of(taker, base),
                                    annal__buf_slice(&body), taker->wait_ms, err);
    if (status == ANNAL_ERR_CONFLICT) { /* the index was rebuilt: use what it has */
        annal__buf_done(&body);
        end_fold(taker);
        return begin_fold(taker, err);
    }
    if (status >= 0 && fits) {
        note_taken(taker, &header);
        status = go_on_over(taker, &header, &body, base, err);
    }
    annal__buf_done(&body);
    return status;
}

/* ---- Folding ---- */

static int count_changed(void *arg, uint64_t page)
{
    (void)page;
    ++*(uint64_t *)arg;
    return 0;
}

/* At a due place: whether a snapshot is taken here. */
static annal_status is_worth_it(struct taker *taker, const annal_snapshot_policy *policy,
                                bool *out_take, annal_error *err)
{
    const struct snapshot_mark far = {UINT64_MAX, UINT64_MAX};
    /* The first snapshot of a fork is whole, and those of its ancestors are near: no hurry. */
    bool whole = taker->shelf.info.fork_seq > 0 && newest(taker) == NULL;
    uint64_t changed = 0;
    *out_take = false;
    if (taker->hurries && annal__snapshot_hurry_on(policy, taker->last, taker->here, taker->end))
        return ANNAL_OK;
    annal_status status = annal__state_changed(taker->state, count_changed, &changed, err);
    *out_take = annal__snapshot_take_here(policy, taker->last, taker->here,
                                          whole ? far : taker->end, changed * SNAPSHOT_PAGE_BYTES);
    return status;
}

/* Take one here if it is due. If that fails, the next step tries here again. */
static annal_status take_if_due(struct taker *taker, annal_error *err)
{
    annal_status status = remove_leftovers(taker, err);
    const annal_snapshot_policy policy =
        annal__snapshot_stretch(&taker->policy, taker->stride * taker->patience);
    bool due = annal__snapshot_due(&policy, taker->due, taker->here);
    bool behind = taker->here.seq > taker->last.seq;
    bool take = taker->at_end && taker->here.seq >= taker->end.seq;
    if (status >= 0 && behind && due && !take)
        status = is_worth_it(taker, &policy, &take, err);
    if (status >= 0 && take && behind)
        status = take_here(taker, err);
    if (status >= 0)
        status = remove_leftovers(taker, err);
    if (status >= 0 && due)
        taker->due = taker->here;
    return status;
}

annal_status annal__taker_step(struct taker *taker, annal_error *err)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_EVENTS && bytes < STEP_BYTES; i++) {
        annal_event event;
        annal_status status = take_if_due(taker, err);
        if (status < 0)
            return status;
        if (taker->here.seq >= taker->end.seq)
            return ANNAL_END;
        status = annal__cursor_next_json(taker->cursor, &event, err);
        if (status == ANNAL_DAMAGE)
            continue;
        if (status == ANNAL_OK)
            status = annal_state_apply(taker->state, &event, err);
        if (status != ANNAL_OK)
            return status;
        bytes += event.length;
        if (event.seq <= taker->shelf.info.fork_seq)
            continue;
        taker->here = (struct snapshot_mark){event.seq, event.offset + event.length};
        taker->here_h = event.h;
    }
    return annal__state_put_away(taker->state, annal_store_path(taker->shelf.store), PUT_AWAY_BYTES,
                                 err);
}

/* ---- By hand ---- */

static annal_status run(annal_index *index, annal_slice session,
                        const annal_snapshot_policy *policy, bool at_end, struct taker *taker,
                        annal_error *err)
{
    annal_status status =
        annal__taker_init(taker, index, session, policy, at_end, SNAPSHOT_WAIT_MS, NULL, err);
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
    if (status >= 0 && taker.refused_seq != 0 && taker.refused_seq == taker.end.seq)
        status = annal__fail(
            err, ANNAL_ERR_LIMIT,
            "a snapshot of session '%.*s' takes %llu bytes, and all together may"
            " take %llu",
            ANNAL_FMT(session), (unsigned long long)taker.refused_bytes,
            (unsigned long long)annal__snapshot_bytes_max(&taker.policy, taker.end.offset));
    if (status >= 0 && newest(&taker) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no events of its own",
                             ANNAL_FMT(session));
    if (status >= 0) {
        const struct snapshot_header *header = newest(&taker);
        *out_info = (annal_snapshot_info){
            .seq = header->seq,
            .bytes = SNAPSHOT_HEADER_BYTES + header->body_bytes,
            .raw_bytes = header->raw_bytes,
            .base_seq = header->base_seq,
            .created_us = header->created_us,
            .in_file = header->in_file,
        };
    }
    annal__taker_done(&taker);
    return status;
}

annal_status annal__snapshot_catch_up(annal_index *index, annal_slice session,
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
