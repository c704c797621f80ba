#include "snapshot/take.h"

#include "snapshot/pack.h"

#include "journal/base/error.h"
#include "journal/base/seam.h"

#include <string.h>

#define STEP_EVENTS 256

/* ---- Beginning ---- */

/* The newest snapshot, or NULL. */
static const struct snapshot_header *newest(const struct taker *taker)
{
    return taker->chain == NULL || annal__chain_layers(taker->chain) == 0
               ? NULL
               : annal__chain_header(taker->chain, 0);
}

/*
 * A fork's own snapshots stand behind its fork point. So marks begin there, and what comes before
 * is only folded, from a snapshot of an ancestor on where there is one.
 */
static annal_status begin_fold(struct taker *taker, annal_error *err)
{
    struct loaded loaded = {0};
    struct shelf *shelf = &taker->shelf;
    annal_status status =
        annal__snapshot_load(shelf, UINT64_MAX, true, taker->wait_ms, &loaded, err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    bool found = status >= 0;
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
        status = annal_state_new(annal_slice_of(shelf->root), shelf->packs, shelf->pack_count,
                                 &taker->state, err);
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
    annal_cursor_close(taker->cursor);
    annal_state_free(taker->state);
    annal__chain_unref(taker->chain);
    taker->cursor = NULL;
    taker->state = NULL;
    taker->chain = NULL;
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
    end_fold(taker);
    *taker = (struct taker){0};
}

/* ---- Packing one ---- */

/* The layer that a snapshot with this number is stored against, or the count of layers: none. */
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
    return annal__pack_state(taker->state, taker->chain, base, header, body, err);
}

/* ---- Staying within the bytes that all may take ---- */

/* Without the bytes of those whose number is no multiple of stride. */
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

/* Raise the stride until the snapshots that stay leave room for one of so many bytes. */
static annal_status make_room(struct taker *taker, uint64_t bytes, bool *out_raised,
                              annal_error *err)
{
    struct shelf_list list = {0};
    uint64_t most = annal__snapshot_bytes_max(&taker->policy, taker->here.offset);
    uint64_t last = newest(taker) == NULL ? 0 : newest(taker)->number;
    *out_raised = false;
    if (taker->listed && taker->total_bytes + bytes <= most)
        return ANNAL_OK;
    annal_status status = annal__shelf_list(taker->shelf.index, taker->shelf.session, &list, err);
    if (status >= 0) {
        while (total_of(&list, taker->stride) + bytes > most && taker->stride <= last) {
            taker->stride *= SNAPSHOT_RADIX;
            *out_raised = true;
        }
        taker->total_bytes = total_of(&list, taker->stride);
        taker->leftovers = has_leftovers(&list, taker->stride);
        taker->listed = true;
    }
    annal__shelf_list_done(&list);
    return status;
}

static bool is_leftover(void *arg, const struct shelf_item *item)
{
    const struct taker *taker = arg;
    return item->problem != NULL || item->header.number % taker->stride != 0;
}

/* Nobody needs them any more. When somebody else writes the index, they go with the next. */
static annal_status remove_leftovers(struct taker *taker, annal_error *err)
{
    struct shelf_list list = {0};
    if (!taker->leftovers)
        return ANNAL_OK;
    annal_status status = annal__shelf_list(taker->shelf.index, taker->shelf.session, &list, err);
    if (status >= 0)
        status = annal__shelf_delete(&taker->shelf, &list, is_leftover, taker, taker->wait_ms, err);
    if (status >= 0)
        taker->leftovers = false;
    annal__shelf_list_done(&list);
    return status == ANNAL_ERR_BUSY ? ANNAL_OK : status;
}

/* ---- Taking one ---- */

/*
 * Another process may have taken one at this very place meanwhile. Then it stays: its state is the
 * same, but later ones may be stored against its bytes, which need not be ours.
 */
static annal_status is_taken(const struct taker *taker, bool *out_taken, annal_error *err)
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
    *out_taken = sound && status >= 0 && why == NULL;
    annal__shelf_row_done(&row);
    return status;
}

/* The snapshot is on the shelf: the state goes on over it. */
static annal_status go_on_over(struct taker *taker, const struct snapshot_header *header,
                               struct buf *body, size_t base, annal_error *err)
{
    annal_status status = annal__chain_push(taker->chain, &taker->shelf, header, body, base, err);
    if (status < 0)
        return status;
    annal_state_source source = annal__chain_source(annal__chain_ref(taker->chain));
    status = annal_state_rebase(taker->state, &source, err);
    if (status < 0)
        annal__chain_unref(taker->chain);
    return status;
}

static annal_status take_here(struct taker *taker, annal_error *err)
{
    bool taken = false, raised = false;
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
        status = pack(taker, &header, &body, &base, err);
    if (status >= 0)
        status = make_room(taker, SNAPSHOT_HEADER_BYTES + header.body_bytes, &raised, err);
    if (status >= 0 && raised)
        status = pack(taker, &header, &body, &base, err);
    if (status >= 0)
        status =
            annal__shelf_put(&taker->shelf, &header, annal__buf_slice(&body), taker->wait_ms, err);
    if (status >= 0) {
        taker->last = taker->due = taker->here;
        taker->taken++;
        taker->total_bytes += SNAPSHOT_HEADER_BYTES + header.body_bytes;
        status = go_on_over(taker, &header, &body, base, err);
    }
    if (status >= 0)
        status = remove_leftovers(taker, err);
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

/* Take one here if it is due. When that fails, the next step comes here again. */
static annal_status take_if_due(struct taker *taker, annal_error *err)
{
    annal_status status = ANNAL_OK;
    const annal_snapshot_policy policy = annal__snapshot_stretch(&taker->policy, taker->stride);
    bool due = annal__snapshot_due(&policy, taker->due, taker->here);
    bool take = taker->at_end && taker->here.seq >= taker->end.seq;
    if (taker->here.seq > taker->last.seq && due && !take) {
        uint64_t changed = 0;
        status = annal_state_changed(taker->state, count_changed, &changed, err);
        /* The first one of a fork is whole, and those of its ancestors are near: no hurry. */
        bool no_hurry = taker->shelf.info.fork_seq > 0 && newest(taker) == NULL;
        const struct snapshot_mark far = {UINT64_MAX, UINT64_MAX};
        take =
            annal__snapshot_take_here(&policy, taker->last, taker->here,
                                      no_hurry ? far : taker->end, changed * SNAPSHOT_PAGE_BYTES);
    }
    if (status >= 0 && take && taker->here.seq > taker->last.seq)
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
        if (event.seq <= taker->shelf.info.fork_seq)
            continue;
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
