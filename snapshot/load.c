#include "snapshot/load.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <stdio.h>
#include <string.h>

/* ---- Load ---- */

/* Why a row gives no state: *out_problem; or a state. A failure is one of ours, not of the row. */
static annal_status try_row(const struct shelf *shelf, const struct shelf_row *row,
                            annal_state **out_state, const char **out_problem, annal_error *err)
{
    struct buf image = {.limit = SNAPSHOT_RAW_BYTES_MAX};
    annal_state *state = NULL;
    annal_status status = ANNAL_OK;
    *out_problem = row->problem;
    if (row->problem == NULL)
        status = annal__shelf_stale(shelf, &row->header, out_problem, err);
    if (status < 0 || *out_problem != NULL)
        return status;
    status = annal__shelf_image(shelf, row, &image, err);
    if (status >= 0)
        status = annal_state_deserialize(shelf->session, shelf->packs, shelf->pack_count,
                                         annal__buf_slice(&image), &state, err);
    annal__buf_done(&image);
    if (status == ANNAL_ERR_CORRUPT || (status >= 0 && annal_state_seq(state) != row->header.seq)) {
        annal_state_free(state);
        *out_problem = "its contents are damaged, or those of a snapshot that it is stored against";
        return ANNAL_OK;
    }
    if (status >= 0)
        *out_state = state;
    return status;
}

static void tell_passed_over(const struct shelf *shelf, uint64_t seq, const char *problem)
{
    char message[ANNAL_SESSION_ID_BYTES_MAX + 200];
    snprintf(message, sizeof message, "the snapshot of session '%.*s' at %llu is passed over: %s",
             ANNAL_FMT(shelf->session), (unsigned long long)seq, problem);
    annal_store_log(shelf->store, ANNAL_LOG_WARNING, message);
}

annal_status annal__snapshot_load(const struct shelf *shelf, uint64_t at_most, bool discard,
                                  uint32_t wait_ms, struct loaded *out_loaded, annal_error *err)
{
    for (bool told = false;; told = true) {
        struct shelf_row row = {0};
        const char *problem = NULL;
        struct loaded loaded = {0};
        annal_status status = annal__shelf_row(shelf, at_most, &row, err);
        if (status < 0)
            return status;
        uint64_t seq = row.seq;
        status = try_row(shelf, &row, &loaded.state, &problem, err);
        loaded.header = row.header;
        annal__shelf_row_done(&row);
        if (status >= 0 && problem == NULL) {
            *out_loaded = loaded;
            return ANNAL_OK;
        }
        if (status >= 0 && !told)
            tell_passed_over(shelf, seq, problem);
        if (status >= 0 && discard)
            status = annal_index_snapshot_delete(shelf->index, shelf->session, seq, wait_ms, err);
        if (status < 0)
            return status;
        if (seq == 0)
            return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no snapshot",
                               ANNAL_FMT(shelf->session));
        at_most = seq - 1;
    }
}

annal_status annal_snapshot_load(annal_index *index, annal_slice session, uint64_t at_most,
                                 const annal_pack *const *packs, size_t pack_count,
                                 annal_state **out_state, annal_position *out_next,
                                 annal_error *err)
{
    struct shelf shelf;
    struct loaded loaded = {0};
    annal_status status = annal__shelf_init(&shelf, index, session, packs, pack_count, err);
    if (status >= 0)
        status = annal__snapshot_load(&shelf, at_most, false, 0, &loaded, err);
    if (status < 0)
        return status;
    *out_state = loaded.state;
    *out_next = (annal_position){
        .seq = loaded.header.seq + 1, .offset = loaded.header.offset, .h_before = loaded.header.h};
    return ANNAL_OK;
}

/* ---- List and drop ---- */

struct listed {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t seq;
    uint64_t bytes;
    int64_t created_us;
};

struct list {
    struct listed *rows;
    size_t count;
    size_t cap;
};

static int list_add(void *arg, const annal_snapshot_row *row)
{
    struct list *list = arg;
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : 2 * list->cap;
        struct listed *grown = annal__realloc_array(list->rows, cap, sizeof *grown);
        if (grown == NULL)
            return ANNAL_ERR_NOMEM;
        list->rows = grown;
        list->cap = cap;
    }
    struct listed *added = &list->rows[list->count++];
    *added = (struct listed){.seq = row->seq, .bytes = row->bytes, .created_us = row->created_us};
    if (row->session.len < sizeof added->session)
        memcpy(added->session, row->session.ptr, row->session.len);
    return 0;
}

static annal_status list_read(annal_index *index, annal_slice session, struct list *list,
                              annal_error *err)
{
    annal_status status = annal_index_snapshot_each(index, session, list_add, list, err);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "the list of snapshots");
    return status;
}

/* Look at one row; shelf is NULL when its session has no journal. */
static annal_status examine(const struct shelf *shelf, const struct listed *listed,
                            annal_snapshot_info *out_info, const char **out_problem,
                            annal_error *err)
{
    struct shelf_row row = {0};
    annal_state *state = NULL;
    *out_info = (annal_snapshot_info){
        .seq = listed->seq, .bytes = listed->bytes, .created_us = listed->created_us};
    if (shelf == NULL) {
        out_info->stale = true;
        *out_problem = "its session has no journal";
        return ANNAL_OK;
    }
    annal_status status = annal__shelf_row(shelf, listed->seq, &row, err);
    if (status < 0 || row.seq != listed->seq) {
        annal__shelf_row_done(&row);
        *out_problem = "it was deleted just now";
        out_info->stale = true;
        return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
    }
    if (row.problem == NULL) {
        const struct snapshot_header *header = &row.header;
        out_info->bytes = SNAPSHOT_HEADER_BYTES + header->frame_bytes;
        out_info->raw_bytes = header->raw_bytes;
        out_info->base_seq = header->base_seq;
        out_info->in_file = header->in_file;
        const char *why = NULL;
        status = annal__shelf_stale(shelf, header, &why, err);
        out_info->stale = why != NULL;
    }
    if (status >= 0)
        status = try_row(shelf, &row, &state, out_problem, err);
    annal_state_free(state);
    annal__shelf_row_done(&row);
    return status;
}

annal_status annal_snapshot_each(annal_index *index, annal_slice session, annal_snapshot_fn fn,
                                 void *arg, annal_error *err)
{
    struct list list = {0};
    struct shelf shelf = {0};
    annal_status found = ANNAL_ERR_NOTFOUND;
    annal_status status = list_read(index, session, &list, err);
    for (size_t i = 0; status == ANNAL_OK && i < list.count; i++) {
        const struct listed *listed = &list.rows[i];
        annal_slice name = annal_slice_of(listed->session);
        if (i == 0 || strcmp(listed->session, listed[-1].session) != 0)
            found = annal__shelf_init(&shelf, index, name, NULL, 0, err);
        if (found < 0 && found != ANNAL_ERR_NOTFOUND) {
            status = found;
            break;
        }
        annal_snapshot_info info;
        const char *problem = NULL;
        status = examine(found < 0 ? NULL : &shelf, listed, &info, &problem, err);
        if (status == ANNAL_OK)
            status = (annal_status)fn(arg, name, &info, problem);
    }
    annal__free(list.rows);
    return status;
}

annal_status annal_snapshot_drop(annal_index *index, annal_slice session, annal_error *err)
{
    struct list list = {0};
    annal_status status = list_read(index, session, &list, err);
    for (size_t i = 0; status >= 0 && i < list.count; i++) {
        struct shelf shelf = {.index = index,
                              .store = annal_index_store(index),
                              .session = annal_slice_of(list.rows[i].session)};
        status = annal_index_snapshot_delete(index, shelf.session, list.rows[i].seq,
                                             SNAPSHOT_WAIT_MS, err);
        if (status >= 0 && session.len == 0 &&
            (i + 1 == list.count || strcmp(shelf.session.ptr, list.rows[i + 1].session) != 0))
            annal__shelf_sweep(&shelf);
    }
    /* Also when there are no rows: the index may have forgotten a session that was deleted. */
    if (status >= 0 && session.len > 0) {
        const struct shelf shelf = {
            .index = index, .store = annal_index_store(index), .session = session};
        annal__shelf_sweep(&shelf);
    }
    annal__free(list.rows);
    return status;
}
