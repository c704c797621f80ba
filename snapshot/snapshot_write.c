/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot_write.h"

#include "index/sys/state.h"
#include "journal/sys/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/sys/snapshot.h"

#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <string.h>

#define STEP_EVENTS  256
#define STEP_BYTES   ((uint64_t)1 << 18) /* maximum of journal bytes in one step */
#define PATIENCE_MAX ((uint64_t)1 << 20)
/*
 * size of the changed pages in memory, in bytes, from which a step moves them to a temporary file
 */
#define SPILL_BYTES ((size_t)16 << 20)

/* ---- Beginning ---- */

/* Return the header of the newest snapshot of the session, or NULL. */
static const struct snapshot_header *newest(const struct snapshot_writer *writer)
{
    return writer->chain == NULL || annal__chain_layers(writer->chain) == 0
               ? NULL
               : annal__chain_header(writer->chain, 0);
}

/*
 * Begin to fold the session (apply its events one by one). Snapshots of a fork are all after its
 * fork point: so positions for snapshots are counted from the fork point, and earlier events are
 * only applied, starting at a snapshot of an ancestor if possible.
 */
static annal_status begin_fold(struct snapshot_writer *writer, annal_error *err)
{
    struct loaded loaded = {0};
    struct storage *shelf = &writer->shelf;
    annal_status status =
        annal__load_newest(shelf, UINT64_MAX, true, writer->wait_ms, &loaded, err);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    bool found = status >= 0;
    writer->listed = writer->leftovers = false;
    writer->stride = 1;
    writer->last = writer->due = writer->here = (struct snapshot_mark){shelf->info.fork_seq, 0};
    if (found && !loaded.inherited) {
        const struct snapshot_header *header = annal__chain_header(loaded.chain, 0);
        writer->stride = header->stride == 0 ? 1 : header->stride;
        writer->last = writer->due = writer->here =
            (struct snapshot_mark){header->seq, header->offset};
    }
    if (found) {
        writer->state = loaded.state;
        status = annal__load_cursor(shelf, &loaded, &writer->cursor, err);
    } else {
        status = annal__load_state(shelf, NULL, &writer->state, err);
        if (status >= 0)
            status = annal_cursor_open(shelf->store, shelf->session, 1, &writer->cursor, err);
    }
    if (found && !loaded.inherited)
        writer->chain = loaded.chain;
    else
        annal__chain_unref(loaded.chain);
    if (status >= 0 && writer->chain == NULL)
        status = annal__chain_new(shelf, &writer->chain, err);
    return status;
}

static void end_fold(struct snapshot_writer *writer)
{
    annal_state **spare = writer->shelf.spare;
    annal_cursor_close(writer->cursor);
    if (spare != NULL && *spare == NULL && annal__state_rest(writer->state))
        *spare = writer->state;
    else
        annal_state_free(writer->state);
    annal__chain_unref(writer->chain);
    writer->cursor = NULL;
    writer->state = NULL;
    writer->chain = NULL;
}

annal_status annal__snapshot_write_init(struct snapshot_writer *writer, annal_index *index,
                                        annal_slice session, const annal_snapshot_policy *policy,
                                        bool at_end, uint32_t wait_ms, annal_state **spare,
                                        annal_error *err)
{
    *writer = (struct snapshot_writer){
        .policy = annal__policy_fill(policy), .at_end = at_end, .wait_ms = wait_ms, .patience = 1};
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    memcpy(writer->id, session.ptr, session.len);
    status = annal__storage_init(&writer->shelf, index, annal_slice_of(writer->id), NULL, 0, err);
    if (status < 0)
        return status;
    writer->shelf.spare = spare;
    writer->end =
        (struct snapshot_mark){writer->shelf.info.last_seq, writer->shelf.info.end_offset};
    return begin_fold(writer, err);
}

void annal__snapshot_write_done(struct snapshot_writer *writer)
{
    end_fold(writer);
    *writer = (struct snapshot_writer){0};
}

/* ---- Packing a snapshot ---- */

/* Return the layer on which a snapshot with this number is based, or the number of layers if no
 * layer has that number. */
static size_t find_base(const struct snapshot_writer *writer, uint64_t number)
{
    size_t count = annal__chain_layers(writer->chain);
    uint64_t base = annal__container_base_number(number);
    size_t at = 0;
    while (at < count && annal__chain_header(writer->chain, at)->number != base)
        at++;
    return at;
}

/* Choose the number of the new snapshot, and compress its pages. *out_base is the layer on which
 * the snapshot is based. */
static annal_status pack(const struct snapshot_writer *writer, struct snapshot_header *header,
                         struct buf *body, size_t *out_base, annal_error *err)
{
    uint64_t last = newest(writer) == NULL ? 0 : newest(writer)->number;
    header->stride = writer->stride;
    header->number = (last / writer->stride + 1) * writer->stride;
    size_t base = find_base(writer, header->number);
    header->base_seq = header->base_hash = 0;
    if (base < annal__chain_layers(writer->chain)) {
        header->base_seq = annal__chain_header(writer->chain, base)->seq;
        header->base_hash = annal__chain_header(writer->chain, base)->header_hash;
    }
    *out_base = base;
    return annal__delta_write(writer->state, writer->chain, base, header, body, err);
}

/* ---- Staying within the limit of bytes ---- */

/* Return the total bytes of the valid snapshots whose number is a multiple of stride. */
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

/* Raise the stride until the remaining snapshots leave room for a snapshot of this many bytes, or
 * until no snapshot remains. *out_fits says whether room was found. */
static annal_status make_room(struct snapshot_writer *writer, uint64_t bytes, bool *out_fits,
                              annal_error *err)
{
    struct shelf_list list = {0};
    uint64_t most = annal__policy_bytes_max(&writer->policy, writer->here.offset);
    if (writer->listed && writer->total_bytes + bytes <= most) {
        *out_fits = true;
        return ANNAL_OK;
    }
    annal_status status =
        annal__storage_list(writer->shelf.index, writer->shelf.session, &list, err);
    if (status >= 0) {
        uint64_t total = total_of(&list, writer->stride);
        while (total > 0 && total + bytes > most) {
            writer->stride *= SNAPSHOT_RADIX;
            total = total_of(&list, writer->stride);
        }
        *out_fits = total + bytes <= most;
        writer->total_bytes = total;
        writer->leftovers = has_leftovers(&list, writer->stride);
        writer->listed = true;
    }
    annal__storage_list_done(&list);
    return status;
}

/*
 * Pack a snapshot and make room for it. With a larger stride the snapshot is based on an older
 * snapshot, takes more bytes, and needs room again. If the snapshot does not fit even alone, the
 * existing snapshots stay.
 */
static annal_status pack_to_fit(struct snapshot_writer *writer, struct snapshot_header *header,
                                struct buf *body, size_t *out_base, bool *out_fits,
                                annal_error *err)
{
    uint64_t first = writer->stride, packed = 0;
    annal_status status = ANNAL_OK;
    *out_fits = true;
    while (status >= 0 && *out_fits && packed != writer->stride) {
        packed = writer->stride;
        status = pack(writer, header, body, out_base, err);
        if (status >= 0)
            status = make_room(writer, SNAPSHOT_HEADER_BYTES + header->body_bytes, out_fits, err);
    }
    if (status >= 0 && *out_fits)
        return status;
    writer->stride = first;
    writer->listed = writer->leftovers = false;
    bool room = false; /* not used; the call is needed because the limit may have been lowered */
    return status < 0 ? status : make_room(writer, 0, &room, err);
}

static bool is_leftover(void *arg, const struct shelf_item *item)
{
    const struct snapshot_writer *writer = arg;
    return item->problem != NULL || item->header.number % writer->stride != 0;
}

/* Remove snapshots that no other snapshot needs any more. If another process writes the index, the
 * next step tries again. */
static annal_status remove_leftovers(struct snapshot_writer *writer, annal_error *err)
{
    struct shelf_list list = {0};
    if (!writer->leftovers)
        return ANNAL_OK;
    annal_status status =
        annal__storage_list(writer->shelf.index, writer->shelf.session, &list, err);
    if (status >= 0)
        status =
            annal__storage_delete(&writer->shelf, &list, is_leftover, writer, writer->wait_ms, err);
    if (status >= 0)
        writer->leftovers = false;
    annal__storage_list_done(&list);
    return status;
}

/* ---- Taking a snapshot ---- */

/*
 * Find out whether another process has taken a snapshot at this position in the meantime. If so,
 * that snapshot stays: its state is the same, but later snapshots may be based on its bytes, which
 * may differ from the bytes that this process would write.
 */
static annal_status is_taken(const struct snapshot_writer *writer, bool *out_taken,
                             annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal__storage_row(&writer->shelf, writer->here.seq, &row, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = ANNAL_OK;
    bool sound =
        status >= 0 && row.bytes.ptr != NULL && row.seq == writer->here.seq && row.problem == NULL;
    const char *why = NULL;
    if (sound)
        status = annal__storage_stale(&writer->shelf, &row.header, &why, err);
    *out_taken = sound && status >= 0 && why == NULL;
    annal__storage_row_done(&row);
    return status;
}

/* Rebase the state on the snapshot that was just stored. */
static annal_status continue_over(struct snapshot_writer *writer,
                                  const struct snapshot_header *header, struct buf *body,
                                  size_t base, annal_error *err)
{
    annal_status status = annal__chain_push(writer->chain, &writer->shelf, header, body, base, err);
    if (status < 0)
        return status;
    annal__state_source source = annal__chain_source(annal__chain_ref(writer->chain));
    status = annal__state_rebase(writer->state, &source, err);
    if (status < 0)
        annal__chain_unref(writer->chain);
    return status;
}

/* Record that the snapshot was stored. */
static void note_taken(struct snapshot_writer *writer, const struct snapshot_header *header)
{
    writer->last = writer->due = writer->here;
    writer->taken++;
    writer->patience = 1;
    writer->total_bytes += SNAPSHOT_HEADER_BYTES + header->body_bytes;
}

/*
 * Record that the snapshot is larger than all snapshots of the session may be together. The next
 * attempt follows after four times the distance: by then the limit may have grown, or the state may
 * be smaller.
 */
static void note_refused(struct snapshot_writer *writer, const struct snapshot_header *header)
{
    writer->due = writer->here;
    writer->refused_seq = writer->here.seq;
    writer->refused_bytes = SNAPSHOT_HEADER_BYTES + header->body_bytes;
    if (writer->patience < PATIENCE_MAX)
        writer->patience *= SNAPSHOT_RADIX;
}

static const struct snapshot_header *base_of(const struct snapshot_writer *writer, size_t layer)
{
    return layer < annal__chain_layers(writer->chain) ? annal__chain_header(writer->chain, layer)
                                                      : NULL;
}

static annal_status take_here(struct snapshot_writer *writer, annal_error *err)
{
    bool taken = false, fits = false;
    size_t base = 0;
    SCOPED_BUF body = {.limit = SNAPSHOT_BODY_BYTES_MAX};
    const struct clock *clock = annal__store_clock(writer->shelf.store);
    struct snapshot_header header = {.seq = writer->here.seq,
                                     .offset = writer->here.offset,
                                     .h = writer->here_h,
                                     .pack_version = writer->shelf.pack_version,
                                     .created_us = clock->wall_us(clock->arg)};
    memcpy(header.file, writer->shelf.info.file, sizeof header.file);
    annal_status status = is_taken(writer, &taken, err);
    if (status >= 0 && taken) {
        end_fold(writer);
        return begin_fold(writer, err);
    }
    if (status >= 0)
        status = pack_to_fit(writer, &header, &body, &base, &fits, err);
    if (status >= 0 && !fits)
        note_refused(writer, &header);
    if (status >= 0 && fits)
        status = annal__storage_put(&writer->shelf, &header, base_of(writer, base),
                                    annal__buf_slice(&body), writer->wait_ms, err);
    /* the index was rebuilt: begin again with its current rows */
    if (status == ANNAL_ERR_CONFLICT) {
        end_fold(writer);
        return begin_fold(writer, err);
    }
    if (status >= 0 && fits) {
        note_taken(writer, &header);
        status = continue_over(writer, &header, &body, base, err);
    }
    return status;
}

/* ---- Folding ---- */

static int count_changed(void *arg, uint64_t page)
{
    (void)page;
    ++*(uint64_t *)arg;
    return 0;
}

/* Decide whether to take a snapshot at a position where one is due. */
static annal_status is_worth_it(struct snapshot_writer *writer, const annal_snapshot_policy *policy,
                                bool *out_take, annal_error *err)
{
    const struct snapshot_mark far = {UINT64_MAX, UINT64_MAX};
    /* whether this is the first snapshot of a fork: it has no base, and so packs every page. It is
     * not taken early, because snapshots of the ancestors are near. */
    bool whole = writer->shelf.info.fork_seq > 0 && newest(writer) == NULL;
    uint64_t changed = 0;
    *out_take = false;
    if (writer->is_hurried &&
        annal__policy_skips_in_hurry(policy, writer->last, writer->here, writer->end))
        return ANNAL_OK;
    annal_status status = annal__state_changed(writer->state, count_changed, &changed, err);
    *out_take = annal__policy_take_here(policy, writer->last, writer->here,
                                        whole ? far : writer->end, changed * SNAPSHOT_PAGE_BYTES);
    return status;
}

/* Take a snapshot at this position if one is due. If that fails, the next step tries again at the
 * same position. */
static annal_status take_if_due(struct snapshot_writer *writer, annal_error *err)
{
    annal_status status = remove_leftovers(writer, err);
    const annal_snapshot_policy policy =
        annal__policy_stretch(&writer->policy, writer->stride * writer->patience);
    bool due = annal__policy_is_due(&policy, writer->due, writer->here);
    bool has_new = writer->here.seq > writer->last.seq;
    bool take = writer->at_end && writer->here.seq >= writer->end.seq;
    if (status >= 0 && has_new && due && !take)
        status = is_worth_it(writer, &policy, &take, err);
    if (status >= 0 && take && has_new)
        status = take_here(writer, err);
    if (status >= 0)
        status = remove_leftovers(writer, err);
    if (status >= 0 && due)
        writer->due = writer->here;
    return status;
}

annal_status annal__snapshot_write_step(struct snapshot_writer *writer, annal_error *err)
{
    uint64_t bytes = 0;
    for (int i = 0; i < STEP_EVENTS && bytes < STEP_BYTES; i++) {
        annal_event event;
        annal_status status = take_if_due(writer, err);
        if (status < 0)
            return status;
        if (writer->here.seq >= writer->end.seq)
            return ANNAL_END;
        status = annal__cursor_next_json(writer->cursor, &event, err);
        if (status == ANNAL_DAMAGE)
            continue;
        if (status == ANNAL_OK)
            status = annal_state_apply(writer->state, &event, err);
        if (status != ANNAL_OK)
            return status;
        bytes += event.length;
        if (event.seq <= writer->shelf.info.fork_seq)
            continue;
        writer->here = (struct snapshot_mark){event.seq, event.offset + event.length};
        writer->here_h = event.h;
    }
    return annal__state_spill(writer->state, annal_store_path(writer->shelf.store), SPILL_BYTES,
                              err);
}

/* ---- Snapshots on request ---- */

static annal_status run(annal_index *index, annal_slice session,
                        const annal_snapshot_policy *policy, bool at_end,
                        struct snapshot_writer *writer, annal_error *err)
{
    annal_status status = annal__snapshot_write_init(writer, index, session, policy, at_end,
                                                     SNAPSHOT_WAIT_MS, NULL, err);
    while (status == ANNAL_OK)
        status = annal__snapshot_write_step(writer, err);
    return status < 0 ? status : ANNAL_OK;
}

annal_status annal_snapshot_take(annal_index *index, annal_slice session,
                                 const annal_snapshot_policy *policy, annal_snapshot_info *out_info,
                                 annal_error *err)
{
    struct snapshot_writer writer;
    annal_status status = run(index, session, policy, true, &writer, err);
    if (status >= 0 && writer.refused_seq != 0 && writer.refused_seq == writer.end.seq)
        status = annal__fail(
            err, ANNAL_ERR_LIMIT,
            "take a snapshot of session '%.*s': the snapshot takes %llu bytes, but all snapshots "
            "together may take %llu",
            ANNAL_FMT(session), (unsigned long long)writer.refused_bytes,
            (unsigned long long)annal__policy_bytes_max(&writer.policy, writer.end.offset));
    if (status >= 0 && newest(&writer) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no events of its own",
                             ANNAL_FMT(session));
    if (status >= 0) {
        const struct snapshot_header *header = newest(&writer);
        *out_info = (annal_snapshot_info){
            .seq = header->seq,
            .bytes = SNAPSHOT_HEADER_BYTES + header->body_bytes,
            .raw_bytes = header->raw_bytes,
            .base_seq = header->base_seq,
            .created_us = header->created_us,
            .in_file = header->in_file,
        };
    }
    annal__snapshot_write_done(&writer);
    return status;
}

annal_status annal__snapshot_catch_up(annal_index *index, annal_slice session,
                                      const annal_snapshot_policy *policy, uint64_t *out_count,
                                      annal_error *err)
{
    struct snapshot_writer writer;
    annal_status status = run(index, session, policy, false, &writer, err);
    if (status >= 0 && out_count != NULL)
        *out_count = writer.taken;
    annal__snapshot_write_done(&writer);
    return status;
}
