/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_read.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "tools/source/copies_zstd.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct reading {
    int directory, fd;
    int before; /* descriptor of the unpacked previous generation, or -1 before it is needed */
    const char *name;
    unsigned deep;
    struct copies_file file;
    struct copies_zstd *zstd;
    struct buf piece, frame, window;
    copies_sink sink;
    void *arg;
};

void copies_read_name(const char *name, uint64_t generation, char out[SOURCES_NAME_BYTES])
{
    annal__source_name parts;
    int len = annal__sources_read_name(name, &parts)
                  ? (int)(parts.log.ptr + parts.log.len - parts.session.ptr)
                  : 0;
    snprintf(out, SOURCES_NAME_BYTES, "%.*s.%" PRIu64, len, name, generation);
}

static int write_piece(void *arg, annal_slice bytes)
{
    int fd = *(int *)arg;
    off_t end = lseek(fd, 0, SEEK_END);
    return end < 0 ? ANNAL_ERR_IO : copies_file_put(fd, bytes.ptr, bytes.len, (uint64_t)end, NULL);
}

int copies_read_unpack(int directory, const char *name, unsigned deep, annal_error *err)
{
    int fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        annal__fail_errno(err, "create a temporary file in sources/");
        return -1;
    }
    if (copies_read_file(directory, name, deep, write_piece, &fd, err) >= 0)
        return fd;
    close(fd);
    return -1;
}

/* Append bytes to the window, and keep its last COPIES_WINDOW bytes. */
static annal_status slide(struct buf *window, const char *bytes, size_t len)
{
    size_t keep = len < COPIES_WINDOW ? COPIES_WINDOW - len : 0;
    if (window->len > keep)
        annal__buf_consume(window, window->len - keep);
    size_t most = len < COPIES_WINDOW ? len : COPIES_WINDOW;
    return annal__buf_append(window, bytes + len - most, most);
}

static annal_status pass(struct reading *reading, annal_slice bytes)
{
    annal_status status = slide(&reading->window, bytes.ptr, bytes.len);
    return status < 0 || reading->sink == NULL ? status : reading->sink(reading->arg, bytes);
}

static annal_status read_bytes(struct reading *reading, const struct copies_record *record,
                               uint64_t chain, annal_error *err)
{
    annal__buf_clear(&reading->frame);
    if (annal__buf_reserve(&reading->frame, (size_t)record->payload + 1) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "read the copy of the log in sources/: out of memory");
    annal_status status =
        copies_file_get(reading->fd, reading->frame.ptr, record->payload, record->at, err);
    reading->frame.len = record->payload;
    if (status >= 0)
        status = copies_zstd_unpack(reading->zstd, annal__buf_slice(&reading->window),
                                    annal__buf_slice(&reading->frame), (size_t)record->bytes,
                                    &reading->piece, err);
    if (status >= 0 && annal__hash(reading->piece.ptr, reading->piece.len, chain) != record->chain)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the copy of the log is damaged");
    return status < 0 ? status : pass(reading, annal__buf_slice(&reading->piece));
}

static annal_status open_before(struct reading *reading, annal_error *err)
{
    char before[SOURCES_NAME_BYTES];
    const struct copies_file *file = &reading->file;
    if (reading->before >= 0)
        return ANNAL_OK;
    if (reading->deep == 0 || file->depth == 0 || file->generation < 2)
        return annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "the copy of the log is damaged: it refers to a generation that cannot exist");
    copies_read_name(reading->name, file->generation - 1, before);
    reading->before = copies_read_unpack(reading->directory, before, reading->deep - 1, err);
    return reading->before >= 0 ? ANNAL_OK : ANNAL_ERR_CORRUPT;
}

static annal_status read_same(struct reading *reading, const struct copies_record *record,
                              uint64_t chain, annal_error *err)
{
    uint64_t from = 0, left = record->bytes;
    struct hash_stream *hash = annal__hash_begin(chain);
    annal_status status = hash != NULL ? open_before(reading, err) : ANNAL_ERR_NOMEM;
    if (status >= 0)
        status = copies_file_get(reading->fd, &from, 8, record->at, err);
    from = le64toh(from);
    if (status >= 0 && from > INT64_MAX - left)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the copy of the log is damaged");
    while (status == ANNAL_OK && left > 0) {
        size_t now = left < COPIES_PIECE ? (size_t)left : COPIES_PIECE;
        annal__buf_clear(&reading->piece);
        status = annal__buf_reserve(&reading->piece, now);
        if (status >= 0)
            status = copies_file_get(reading->before, reading->piece.ptr, now, from, err);
        if (status < 0)
            break;
        annal__hash_add(hash, reading->piece.ptr, now);
        status = pass(reading, (annal_slice){reading->piece.ptr, now});
        from += now;
        left -= now;
    }
    /* check the hash at the end: sink has the bytes already, and discards them after a failure */
    if (hash != NULL && annal__hash_end(hash) != record->chain && status == ANNAL_OK)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the copy of the log is damaged");
    return status;
}

static annal_status read_records(struct reading *reading, annal_error *err)
{
    annal_status status = copies_file_read(reading->fd, &reading->file, err);
    uint64_t chain = 0;
    if (status == ANNAL_END || (status == ANNAL_OK && reading->file.marked_count == 0))
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the file contains no complete copy of a log");
    for (size_t i = 0; i < reading->file.marked_count && status == ANNAL_OK; i++) {
        const struct copies_record *record = &reading->file.records[i];
        if (record->kind == COPIES_SAME)
            status = read_same(reading, record, chain, err);
        else if (record->kind == COPIES_BYTES)
            status = read_bytes(reading, record, chain, err);
        chain = record->chain;
    }
    return status == ANNAL_OK && copies_file_is_damaged(reading->fd, &reading->file) ? ANNAL_END
                                                                                     : status;
}

annal_status copies_read_file(int directory, const char *name, unsigned deep, copies_sink sink,
                              void *arg, annal_error *err)
{
    struct reading reading = {.directory = directory,
                              .fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
                              .before = -1,
                              .name = name,
                              .deep = deep,
                              .zstd = copies_zstd_new(),
                              .sink = sink,
                              .arg = arg};
    annal_status status = ANNAL_OK;
    if (reading.fd < 0)
        status = annal__fail_errno(err, "open the copy sources/%s of a log", name);
    else if (reading.zstd == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM,
                             "read the copy of the log in sources/: out of memory");
    else if ((status = read_records(&reading, err)) < 0)
        annal__error_context(err, "sources/%s", name);
    if (reading.fd >= 0)
        close(reading.fd);
    if (reading.before >= 0)
        close(reading.before);
    copies_zstd_free(reading.zstd);
    annal__buf_done(&reading.piece);
    annal__buf_done(&reading.frame);
    annal__buf_done(&reading.window);
    copies_file_done(&reading.file);
    return status;
}

annal_status copies_read(annal_store *store, const char *name, uint64_t generation,
                         copies_sink sink, void *arg, annal_error *err)
{
    int directory = -1;
    char older[SOURCES_NAME_BYTES];
    annal_status status = annal__sources_open(store, LOCK_SH, &directory, err);
    if (status < 0)
        return status;
    copies_read_name(name, generation, older);
    if (generation > 0 && faccessat(directory, older, F_OK, 0) == 0)
        name = older;
    status = copies_read_file(directory, name, COPIES_DEEP, sink, arg, err);
    close(directory);
    return status;
}
