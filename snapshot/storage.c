/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/storage.h"

#include "index/sys/open.h"
#include "index/sys/pack.h"
#include "index/sys/snapshot_rows.h"
#include "index/sys/state.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT 8192
#define SUFFIX     ".zst"
#define OTHER_SEQ  "its seq differs from the seq of its row"

/* Remember the first ancestor of the session: an annal_lineage_fn. The parts are visited from the
 * session itself to the first ancestor, so the last call decides. */
static int note_root(void *arg, const annal_lineage_part *part)
{
    struct storage *shelf = arg;
    memset(shelf->root, 0, sizeof shelf->root);
    memcpy(shelf->root, part->session.ptr, part->session.len);
    return 0;
}

annal_status annal__storage_init(struct storage *shelf, annal_index *index, annal_slice session,
                                 const annal_pack *const *packs, size_t pack_count,
                                 annal_error *err)
{
    *shelf = (struct storage){.index = index,
                              .store = annal__index_store(index),
                              .session = session,
                              .core = annal__index_core(index),
                              .packs = packs,
                              .pack_count = pack_count};
    if (packs == NULL) {
        shelf->packs = &shelf->core;
        shelf->pack_count = 1;
    }
    shelf->pack_version = annal__state_packs_version(shelf->packs, shelf->pack_count);
    annal_status status = annal_session_info_get(shelf->store, session, &shelf->info, err);
    if (status < 0)
        return status;
    if (shelf->info.fork_session[0] != '\0')
        return annal_lineage_each(shelf->store, session, note_root, shelf, err);
    memcpy(shelf->root, session.ptr, session.len);
    return ANNAL_OK;
}

/* ---- Files ---- */

/* Compose the path of a session's directory, STORE/snapshots/<session>, or, if seq is not 0, of the
 * file of its snapshot at seq, STORE/snapshots/<session>/<seq>.zst. */
static annal_status path_of(const struct storage *shelf, uint64_t seq, struct buf *out,
                            annal_error *err)
{
    *out = (struct buf){.limit = PATH_LIMIT};
    annal_status status = annal__buf_printf(
        out, "%s/snapshots/%.*s", annal_store_path(shelf->store), ANNAL_FMT(shelf->session));
    if (status >= 0 && seq > 0)
        status = annal__buf_printf(out, "/%llu" SUFFIX, (unsigned long long)seq);
    if (status < 0)
        return annal__fail(err, status,
                           "cannot compose the path of the snapshots of session '%.*s'",
                           ANNAL_FMT(shelf->session));
    return ANNAL_OK;
}

annal_status annal__storage_open_file(const struct storage *shelf,
                                      const struct snapshot_header *header, int *out_fd,
                                      annal_error *err)
{
    const struct io *io = annal__store_io(shelf->store);
    SCOPED_BUF path = {0};
    annal_status status = path_of(shelf, header->seq, &path, err);
    int fd = status < 0 ? -1 : io->open(io->arg, path.ptr, O_RDONLY, 0);
    /* a missing file is damage of the snapshot; a file that cannot be opened now is not */
    if (status >= 0 && fd < 0)
        status = errno == ENOENT
                     ? annal__fail(err, ANNAL_ERR_CORRUPT,
                                   "read the snapshot file %s: the file does not exist", path.ptr)
                     : annal__fail_errno(err, "cannot read %s", path.ptr);
    if (status >= 0)
        *out_fd = fd;
    return status;
}

static annal_status write_file(const struct storage *shelf, uint64_t seq, annal_slice body,
                               annal_error *err)
{
    const struct io *io = annal__store_io(shelf->store);
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    annal_status status = annal__buf_printf(&path, "%s/snapshots", annal_store_path(shelf->store));
    if (status >= 0)
        status = annal__io_make_dir(io, path.ptr, err);
    annal__buf_done(&path);
    if (status >= 0)
        status = path_of(shelf, 0, &path, err);
    if (status >= 0)
        status = annal__io_make_dir(io, path.ptr, err);
    annal__buf_done(&path);
    if (status >= 0)
        status = path_of(shelf, seq, &path, err);
    if (status >= 0)
        status = annal__io_publish_file(io, path.ptr, body.ptr, body.len, err);
    return status;
}

/* ---- Rows ---- */

annal_status annal__storage_row(const struct storage *shelf, uint64_t at_most,
                                struct shelf_row *out_row, annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal__snapshot_rows_newest(shelf->index, shelf->session, at_most,
                                                      &row.seq, &row.bytes, err);
    if (status < 0)
        return status;
    row.problem = annal__container_header_read(row.bytes, &row.header);
    if (row.problem == NULL && row.header.seq != row.seq)
        row.problem = OTHER_SEQ;
    *out_row = row;
    return ANNAL_OK;
}

void annal__storage_row_done(struct shelf_row *row)
{
    annal_free(row->bytes.ptr);
    *row = (struct shelf_row){0};
}

const char annal__storage_cut[] = "the journal does not contain its last event";

annal_status annal__storage_stale(const struct storage *shelf, const struct snapshot_header *header,
                                  const char **out_why, annal_error *err)
{
    annal_cursor *cursor = NULL;
    *out_why = NULL;
    if (strcmp(header->file, shelf->info.file) != 0) {
        *out_why = "the snapshot belongs to a different journal";
        return ANNAL_OK;
    }
    annal_status status = annal_cursor_open_at(shelf->store, shelf->session, header->seq + 1,
                                               header->offset, header->h, &cursor, err);
    annal_cursor_close(cursor);
    if (status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_CORRUPT ||
        status == ANNAL_ERR_NOTFOUND) {
        *out_why = header->offset > shelf->info.bytes
                       ? annal__storage_cut
                       : "its last event is at another place of the journal";
        return ANNAL_OK;
    }
    if (status >= 0 && header->pack_version != shelf->pack_version)
        *out_why = "the snapshot was taken with different packs";
    return status;
}

annal_status annal__storage_put(const struct storage *shelf, struct snapshot_header *header,
                                const struct snapshot_header *base, annal_slice body,
                                uint32_t wait_ms, annal_error *err)
{
    SCOPED_BUF row = {0};
    char bytes[SNAPSHOT_HEADER_BYTES], base_bytes[SNAPSHOT_HEADER_BYTES];
    struct snapshot_header below = {0};
    if (base != NULL) {
        below = *base;
        annal__container_header_write(&below, base_bytes);
    }
    annal_slice base_begins = {base_bytes, base == NULL ? 0 : sizeof base_bytes};
    annal__container_header_write(header, bytes);
    annal_status status = annal__buf_append(&row, bytes, sizeof bytes);
    if (status >= 0 && !header->in_file)
        status = annal__buf_append_slice(&row, body);
    if (status < 0)
        status =
            annal__fail(err, status, "cannot read the snapshot of session '%.*s' at event %llu",
                        ANNAL_FMT(shelf->session), (unsigned long long)header->seq);
    else if (header->in_file)
        status = write_file(shelf, header->seq, body, err);
    if (status >= 0)
        status = annal__snapshot_rows_put(shelf->index, shelf->session, header->seq,
                                          annal__buf_slice(&row), header->created_us, below.seq,
                                          base_begins, wait_ms, err);
    if (status >= 0 && header->in_file)
        annal__storage_sweep(shelf);
    return status;
}

/* ---- Lists ---- */

static int list_add(void *arg, const annal__snapshot_row *row)
{
    struct shelf_list *list = arg;
    struct shelf_item *item = annal__array_add(&list->items, &list->count, sizeof *item);
    if (item == NULL)
        return ANNAL_ERR_NOMEM;
    *item =
        (struct shelf_item){.seq = row->seq, .bytes = row->bytes, .created_us = row->created_us};
    if (row->session.len < sizeof item->session)
        memcpy(item->session, row->session.ptr, row->session.len);
    /* only the header of the row is in memory, but the item states the length of the whole row */
    annal_slice whole = {row->head.ptr, (size_t)row->bytes};
    item->problem = row->head.len < SNAPSHOT_HEADER_BYTES
                        ? "the snapshot is too short"
                        : annal__container_header_read(whole, &item->header);
    if (item->problem == NULL && item->header.seq != row->seq)
        item->problem = OTHER_SEQ;
    if (item->problem == NULL)
        item->bytes = SNAPSHOT_HEADER_BYTES + item->header.body_bytes;
    return 0;
}

annal_status annal__storage_list(annal_index *index, annal_slice session, struct shelf_list *list,
                                 annal_error *err)
{
    annal_status status = annal__reader_snapshot_each(index, session, list_add, list, err);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "cannot list the snapshots of the store");
    return status;
}

void annal__storage_list_done(struct shelf_list *list)
{
    annal__free(list->items);
    *list = (struct shelf_list){0};
}

static void remove_file(const struct storage *shelf, uint64_t seq)
{
    const struct io *io = annal__store_io(shelf->store);
    SCOPED_BUF path = {0};
    if (path_of(shelf, seq, &path, NULL) >= 0)
        (void)io->unlink(io->arg, path.ptr);
}

annal_status annal__storage_delete(const struct storage *shelf, const struct shelf_list *list,
                                   shelf_goes_fn goes, void *arg, uint32_t wait_ms,
                                   annal_error *err)
{
    uint64_t *seqs = annal__zalloc((list->count + 1) * sizeof *seqs);
    size_t count = 0;
    if (seqs == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "delete snapshots: out of memory");
    for (size_t i = 0; i < list->count; i++) {
        if (goes(arg, &list->items[i]))
            seqs[count++] = list->items[i].seq;
    }
    annal_status status = ANNAL_OK;
    if (count > 0)
        status =
            annal__snapshot_rows_delete(shelf->index, shelf->session, seqs, count, wait_ms, err);
    for (size_t i = 0; status >= 0 && i < list->count; i++) {
        const struct shelf_item *item = &list->items[i];
        if (goes(arg, item) && (item->problem != NULL || item->header.in_file))
            remove_file(shelf, item->seq);
    }
    annal__free(seqs);
    return status;
}

/* ---- Sweeping ---- */

struct sweep {
    const struct storage *shelf;
    struct shelf_list rows;
};

static int sweep_one(void *arg, const char *name)
{
    const struct sweep *sweep = arg;
    char *end = NULL;
    uint64_t seq = strtoull(name, &end, 10);
    if (end == name || strncmp(end, SUFFIX, strlen(SUFFIX)) != 0)
        return 0; /* the name is not that of a snapshot's file: leave it alone */
    for (size_t i = 0; i < sweep->rows.count; i++) {
        const struct shelf_item *item = &sweep->rows.items[i];
        if (item->seq == seq && item->problem == NULL && item->header.in_file)
            return 0;
    }
    const struct io *io = annal__store_io(sweep->shelf->store);
    SCOPED_BUF path = {0};
    if (path_of(sweep->shelf, 0, &path, NULL) >= 0 && annal__buf_printf(&path, "/%s", name) >= 0)
        (void)io->unlink(io->arg, path.ptr);
    return 0;
}

void annal__storage_sweep(const struct storage *shelf)
{
    const struct io *io = annal__store_io(shelf->store);
    SCOPED_BUF path = {0};
    annal_session_info info;
    struct sweep sweep = {.shelf = shelf};
    annal_status status = annal_session_info_get(shelf->store, shelf->session, &info, NULL);
    /* if the session does not exist, none of its snapshots is valid, and all files are removed */
    if (status != ANNAL_ERR_NOTFOUND)
        status = annal__storage_list(shelf->index, shelf->session, &sweep.rows, NULL);
    if ((status >= 0 || status == ANNAL_ERR_NOTFOUND) && path_of(shelf, 0, &path, NULL) >= 0)
        (void)io->list(io->arg, path.ptr, sweep_one, &sweep);
    annal__storage_list_done(&sweep.rows);
}
