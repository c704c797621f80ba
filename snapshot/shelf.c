#include "snapshot/shelf.h"

#include "journal/base/error.h"
#include "journal/base/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT 8192
#define SUFFIX     ".zst"

annal_status annal__shelf_init(struct shelf *shelf, annal_index *index, annal_slice session,
                               const annal_pack *const *packs, size_t pack_count, annal_error *err)
{
    *shelf = (struct shelf){.index = index,
                            .store = annal_index_store(index),
                            .session = session,
                            .core = annal_index_core(index),
                            .packs = packs,
                            .pack_count = pack_count};
    if (packs == NULL) {
        shelf->packs = &shelf->core;
        shelf->pack_count = 1;
    }
    shelf->pack_version = annal_packs_version(shelf->packs, shelf->pack_count);
    return annal_session_info_get(shelf->store, session, &shelf->info, err);
}

/* ---- Files ---- */

/* STORE/snapshots/<session>, or STORE/snapshots/<session>/<seq>.zst when seq is not 0. */
static annal_status path_of(const struct shelf *shelf, uint64_t seq, struct buf *out,
                            annal_error *err)
{
    *out = (struct buf){.limit = PATH_LIMIT};
    annal_status status = annal__buf_printf(
        out, "%s/snapshots/%.*s", annal_store_path(shelf->store), ANNAL_FMT(shelf->session));
    if (status >= 0 && seq > 0)
        status = annal__buf_printf(out, "/%llu" SUFFIX, (unsigned long long)seq);
    if (status < 0)
        return annal__fail(err, status, "the path of the snapshots of session '%.*s'",
                           ANNAL_FMT(shelf->session));
    return ANNAL_OK;
}

static annal_status read_file(const struct shelf *shelf, const struct snapshot_header *header,
                              struct buf *out, annal_error *err)
{
    const struct io *io = annal__store_io(shelf->store);
    struct buf path = {0};
    int fd = -1;
    annal_status status = path_of(shelf, header->seq, &path, err);
    if (status >= 0)
        status = annal__buf_reserve(out, (size_t)header->frame_bytes);
    if (status < 0)
        goto done;
    fd = io->open(io->arg, path.ptr, O_RDONLY, 0);
    ssize_t got = fd < 0 ? -1 : annal__read_full(io, fd, out->ptr, (size_t)header->frame_bytes, 0);
    /* A file that is gone or lies on bad sectors is damage; one that just now cannot be had is
     * none. */
    if (got < 0 && errno != ENOENT && errno != EIO) {
        status = annal__fail_errno(err, "read %s", path.ptr);
        goto done;
    }
    if (got != (ssize_t)header->frame_bytes) {
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "read %s: %s", path.ptr,
                             got < 0 ? strerror(errno) : "it is cut short");
        goto done;
    }
    out->len = (size_t)got;

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    annal__buf_done(&path);
    return status;
}

static annal_status write_file(const struct shelf *shelf, uint64_t seq, annal_slice frame,
                               annal_error *err)
{
    const struct io *io = annal__store_io(shelf->store);
    struct buf path = {.limit = PATH_LIMIT};
    annal_status status = annal__buf_printf(&path, "%s/snapshots", annal_store_path(shelf->store));
    if (status >= 0)
        status = annal__make_dir(io, path.ptr, err);
    annal__buf_done(&path);
    if (status >= 0)
        status = path_of(shelf, 0, &path, err);
    if (status >= 0)
        status = annal__make_dir(io, path.ptr, err);
    annal__buf_done(&path);
    if (status >= 0)
        status = path_of(shelf, seq, &path, err);
    if (status >= 0)
        status = annal__publish_file(io, path.ptr, frame.ptr, frame.len, err);
    annal__buf_done(&path);
    return status;
}

struct sweep {
    const struct shelf *shelf;
    bool gone; /* the session was deleted */
};

static int sweep_one(void *arg, const char *name)
{
    const struct sweep *sweep = arg;
    const struct shelf *shelf = sweep->shelf;
    const struct io *io = annal__store_io(shelf->store);
    char *end = NULL;
    struct buf path = {0};
    struct shelf_row row = {0};
    uint64_t seq = strtoull(name, &end, 10);
    if (end == name || strncmp(end, SUFFIX, strlen(SUFFIX)) != 0)
        return 0; /* not ours */
    annal_status status = annal__shelf_row(shelf, seq, &row, NULL);
    bool known = status >= 0 || status == ANNAL_ERR_NOTFOUND;
    bool named = status >= 0 && row.seq == seq && row.problem == NULL && row.header.in_file;
    annal__shelf_row_done(&row);
    if ((sweep->gone || (known && !named)) && path_of(shelf, 0, &path, NULL) >= 0 &&
        annal__buf_printf(&path, "/%s", name) >= 0)
        (void)io->unlink(io->arg, path.ptr);
    annal__buf_done(&path);
    return 0;
}

void annal__shelf_sweep(const struct shelf *shelf)
{
    const struct io *io = annal__store_io(shelf->store);
    struct buf path = {0};
    annal_session_info info;
    struct sweep sweep = {.shelf = shelf};
    sweep.gone =
        annal_session_info_get(shelf->store, shelf->session, &info, NULL) == ANNAL_ERR_NOTFOUND;
    if (path_of(shelf, 0, &path, NULL) >= 0)
        (void)io->list(io->arg, path.ptr, sweep_one, &sweep);
    annal__buf_done(&path);
}

/* ---- Rows ---- */

annal_status annal__shelf_row(const struct shelf *shelf, uint64_t at_most,
                              struct shelf_row *out_row, annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal_index_snapshot_newest(shelf->index, shelf->session, at_most,
                                                      &row.seq, &row.bytes, err);
    if (status < 0)
        return status;
    row.problem = annal__snapshot_header_read(row.bytes, &row.header);
    if (row.problem == NULL && row.header.seq != row.seq)
        row.problem = "it is of another seq than its row";
    *out_row = row;
    return ANNAL_OK;
}

void annal__shelf_row_done(struct shelf_row *row)
{
    annal_index_free(row->bytes.ptr);
    *row = (struct shelf_row){0};
}

annal_status annal__shelf_stale(const struct shelf *shelf, const struct snapshot_header *header,
                                const char **out_why, annal_error *err)
{
    annal_cursor *cursor = NULL;
    *out_why = NULL;
    if (strcmp(header->file, shelf->info.file) != 0)
        *out_why = "it is of another journal";
    else if (header->pack_version != shelf->pack_version)
        *out_why = "it was made with other packs";
    if (*out_why != NULL)
        return ANNAL_OK;
    annal_status status = annal_cursor_open_at(shelf->store, shelf->session, header->seq + 1,
                                               header->offset, header->h, &cursor, err);
    annal_cursor_close(cursor);
    if (status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_CORRUPT ||
        status == ANNAL_ERR_NOTFOUND) {
        *out_why = "the journal is not what it was made from";
        return ANNAL_OK;
    }
    return status;
}

/* The row that header is stored against. */
static annal_status base_row(const struct shelf *shelf, const struct snapshot_header *header,
                             struct shelf_row *out_row, annal_error *err)
{
    struct shelf_row row = {0};
    annal_status status = annal__shelf_row(shelf, header->base_seq, &row, err);
    bool is_it = status >= 0 && row.problem == NULL && row.seq == header->base_seq &&
                 row.seq < header->seq && row.header.raw_hash == header->base_hash;
    if (is_it) {
        *out_row = row;
        return ANNAL_OK;
    }
    annal__shelf_row_done(&row);
    if (status < 0 && status != ANNAL_ERR_NOTFOUND)
        return status;
    return annal__fail(err, ANNAL_ERR_CORRUPT, "the snapshot at %llu lacks its base at %llu",
                       (unsigned long long)header->seq, (unsigned long long)header->base_seq);
}

annal_status annal__shelf_image(const struct shelf *shelf, const struct shelf_row *row,
                                struct buf *out, annal_error *err)
{
    const struct snapshot_header *header = &row->header;
    struct buf base = {.limit = SNAPSHOT_RAW_BYTES_MAX}, file = {0};
    annal_slice frame = {row->bytes.ptr + SNAPSHOT_HEADER_BYTES,
                         row->bytes.len - SNAPSHOT_HEADER_BYTES};
    annal_status status = ANNAL_OK;
    if (header->base_seq != 0) {
        struct shelf_row below = {0};
        status = base_row(shelf, header, &below, err);
        if (status >= 0)
            status = annal__shelf_image(shelf, &below, &base, err);
        annal__shelf_row_done(&below);
    }
    if (status >= 0 && header->in_file) {
        status = read_file(shelf, header, &file, err);
        frame = annal__buf_slice(&file);
    }
    if (status >= 0)
        status = annal__snapshot_unpack(header, frame, annal__buf_slice(&base), out, err);
    annal__buf_done(&file);
    annal__buf_done(&base);
    return status;
}

annal_status annal__shelf_put(const struct shelf *shelf, const struct snapshot_header *header,
                              annal_slice frame, uint32_t wait_ms, annal_error *err)
{
    struct buf row = {0};
    char bytes[SNAPSHOT_HEADER_BYTES];
    annal__snapshot_header_write(header, bytes);
    annal_status status = annal__buf_append(&row, bytes, sizeof bytes);
    if (status >= 0 && !header->in_file)
        status = annal__buf_append_slice(&row, frame);
    if (status < 0)
        status = annal__fail(err, status, "snapshot of session '%.*s' at %llu",
                             ANNAL_FMT(shelf->session), (unsigned long long)header->seq);
    else if (header->in_file)
        status = write_file(shelf, header->seq, frame, err);
    if (status >= 0)
        status = annal_index_snapshot_put(shelf->index, shelf->session, header->seq,
                                          annal__buf_slice(&row), header->created_us, wait_ms, err);
    annal__buf_done(&row);
    if (status >= 0 && header->in_file)
        annal__shelf_sweep(shelf);
    return status;
}
