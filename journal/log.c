/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/log.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#define LOG_VERSION        1u
#define LOG_HASHED_BYTES   80u
#define GROUP_HEADER_BYTES 64u
#define GROUP_HASH_AT      56u
#define RECORD_FIXED_BYTES 72u
#define READ_BYTES         ((size_t)256 << 10) /* size in bytes of one read of the log */
/* size of one write of zeros in bytes: a larger write would delay syncs of the log in use */
#define ZERO_FILL_BYTES ((size_t)256 << 10)
/*
 * Regions of up to ZEROED_MOST bytes are filled with zeros. For larger regions, which would keep
 * the disk busy for long, space is reserved. In reserved space, a group of at most SMALL_BYTES that
 * reaches blocks which were never written is written together with zeros after it, AHEAD_BYTES in
 * all.
 */
#define ZEROED_MOST         ((uint64_t)4 << 20)
#define SMALL_BYTES         ((uint64_t)16 << 10)
#define AHEAD_BYTES         ((uint64_t)32 << 10)
#define LOG_BLOCK_BYTES_MAX 65536
/* size in bytes from which a group's payload is written by a second call, directly from its buffer,
 * instead of being copied */
#define LARGE_BYTES         ((size_t)128 << 10)
#define PAYLOAD_BYTES_FIRST ((size_t)16 << 10)
/* maximum of an epoch or group number; no store reaches it, so a larger number is damage */
#define NUMBER_MAX ((uint64_t)1 << 62)

static const char log_magic[8] = {'A', 'N', 'N', 'A', 'L', 'L', 'O', 'G'};
static const char group_magic[8] = {'A', 'N', 'N', 'A', 'L', 'G', 'R', 'P'};

/* ---- Numbers, little-endian ---- */

void annal__log_put(char *at, uint64_t value, int bytes)
{
    value = htole64(value);
    memcpy(at, &value, (size_t)bytes);
}

uint64_t annal__log_take(const char *at, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return le64toh(value);
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* ---- The file ---- */

static annal_status reserve_scratch(struct log *log, size_t bytes, annal_error *err)
{
    if (bytes <= log->scratch_bytes)
        return ANNAL_OK;
    char *scratch = annal__alloc_aligned(LOG_BLOCK_BYTES, bytes);
    if (scratch == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a commit log of %zu bytes: out of memory",
                           bytes);
    annal__free(log->scratch);
    log->scratch = scratch;
    log->scratch_bytes = bytes;
    return ANNAL_OK;
}

/* Open a log's file, with O_DIRECT if the filesystem supports it: a large group reaches the disk
 * without a copy, and a read returns what is on the disk instead of what is in the cache. */
static int open_log(const struct io *io, const char *path, int flags)
{
    int fd = io->open(io->arg, path, flags | O_DIRECT, 0660);
    if (fd < 0 && errno == EINVAL)
        fd = io->open(io->arg, path, flags, 0660);
    return fd;
}

static uint32_t block_bytes(const struct stat *file)
{
    if (file->st_blksize <= (blksize_t)LOG_BLOCK_BYTES || file->st_blksize > LOG_BLOCK_BYTES_MAX)
        return LOG_BLOCK_BYTES;
    return (uint32_t)file->st_blksize;
}

/* Return the offset of the copy of block 0. */
static uint64_t copy_offset(const struct log *log)
{
    const struct region *last = &log->regions[LOG_REGIONS - 1];
    return last->offset + last->bytes + log->block - LOG_BLOCK_BYTES;
}

/* Write zeros from one offset to another. The scratch memory is filled with zeros. `verb` says in a
 * message what failed. */
static annal_status write_zeros(struct log *log, uint64_t from, uint64_t to, const char *verb,
                                annal_error *err)
{
    for (uint64_t at = from; at < to; at += ZERO_FILL_BYTES) {
        size_t piece = to - at < ZERO_FILL_BYTES ? (size_t)(to - at) : ZERO_FILL_BYTES;
        if (annal__io_write_all(log->io, log->fd, log->scratch, piece, at) < 0)
            return annal__fail_errno(err, "cannot %s commit log %s", verb, log->path);
    }
    return ANNAL_OK;
}

static annal_status fill_with_zeros(struct log *log, uint64_t bytes, annal_error *err)
{
    annal_status status = reserve_scratch(log, ZERO_FILL_BYTES, err);
    if (status < 0)
        return status;
    memset(log->scratch, 0, ZERO_FILL_BYTES);
    for (unsigned i = 0; i < LOG_REGIONS; i++)
        log->regions[i].written = log->regions[i].bytes;
    return write_zeros(log, 0, bytes, "fill", err);
}

/* Give the log's file its size, and reserve its space on the disk or, for small regions, fill it
 * with zeros. */
static annal_status allocate(struct log *log, annal_error *err)
{
    uint64_t bytes = copy_offset(log) + LOG_BLOCK_BYTES;
    if (log->regions[0].bytes <= ZEROED_MOST)
        return fill_with_zeros(log, bytes, err);
    if (log->io->reserve(log->io->arg, log->fd, bytes) == 0)
        return reserve_scratch(log, LOG_BLOCK_BYTES, err);
    /* the filesystem cannot reserve space: fill the file with zeros instead */
    if (errno != ENOSPC && errno != EDQUOT)
        return fill_with_zeros(log, bytes, err);
    return annal__fail_errno(err, "cannot reserve %" PRIu64 " bytes for commit log %s", bytes,
                             log->path);
}

/* Write block 0 and its copy, and sync the file. */
static annal_status write_first_blocks(struct log *log, int64_t now_us, annal_error *err)
{
    char *block = log->scratch;
    memset(block, 0, LOG_BLOCK_BYTES);
    memcpy(block, log_magic, 8);
    annal__log_put(block + 8, LOG_VERSION, 4);
    annal__log_put(block + 12, log->block, 4);
    memcpy(block + 16, log->slot_id, LOG_SLOT_ID_BYTES);
    for (unsigned i = 0; i < LOG_REGIONS; i++) {
        annal__log_put(block + 32 + 16 * i, log->regions[i].offset, 8);
        annal__log_put(block + 40 + 16 * i, log->regions[i].bytes, 8);
    }
    annal__log_put(block + 64, (uint64_t)getpid(), 4);
    annal__log_put(block + 72, (uint64_t)now_us, 8);
    annal__log_put(block + LOG_HASHED_BYTES, annal__hash(block, LOG_HASHED_BYTES, 0), 8);
    if (annal__io_write_all(log->io, log->fd, block, LOG_BLOCK_BYTES, 0) < 0 ||
        annal__io_write_all(log->io, log->fd, block, LOG_BLOCK_BYTES, copy_offset(log)) < 0 ||
        log->io->fsync(log->io->arg, log->fd) < 0)
        return annal__fail_errno(err, "cannot write commit log %s", log->path);
    return ANNAL_OK;
}

annal_status annal__log_create(const struct io *io, const char *path, uint64_t region_bytes,
                               int64_t now_us, struct log *out_log, annal_error *err)
{
    struct log log = {.io = io};
    annal_status status = ANNAL_OK;
    snprintf(log.path, sizeof log.path, "%s", path);
    struct stat file;
    log.fd = open_log(io, path, O_RDWR | O_CREAT | O_EXCL);
    if (log.fd < 0)
        return annal__fail_errno(err, "cannot create commit log %s", path);
    if (io->fstat(io->arg, log.fd, &file) < 0 ||
        io->flock(io->arg, log.fd, LOCK_EX | LOCK_NB) < 0 ||
        getrandom(log.slot_id, sizeof log.slot_id, 0) != (ssize_t)sizeof log.slot_id) {
        status = annal__fail_errno(err, "cannot prepare commit log %s", path);
        goto done;
    }
    log.device = file.st_dev;
    log.inode = file.st_ino;
    log.block = block_bytes(&file);
    region_bytes = round_up(region_bytes, log.block);
    for (unsigned i = 0; i < LOG_REGIONS; i++)
        log.regions[i] =
            (struct region){.offset = log.block + i * region_bytes, .bytes = region_bytes};
    log.seed = annal__log_take((const char *)log.slot_id + 8, 8);
    status = allocate(&log, err);
    if (status == ANNAL_OK)
        status = write_first_blocks(&log, now_us, err);
    if (status < 0)
        goto done;
    *out_log = log;
    log = (struct log){.fd = -1}; /* the log belongs to the caller now */

done:
    if (status < 0)
        io->unlink(io->arg, path);
    annal__log_close(&log);
    return status;
}

/* Check the sizes in block 0: even a block with the right hash is refused if this program would
 * never write its sizes. */
static bool is_sane(const struct log *log, uint64_t file_bytes)
{
    bool sane = log->block >= LOG_BLOCK_BYTES && log->block <= LOG_BLOCK_BYTES_MAX;
    for (unsigned i = 0; i < LOG_REGIONS && sane; i++)
        sane = log->regions[i].bytes >= 2 * log->block && log->regions[i].bytes <= file_bytes &&
               log->regions[i].offset <= file_bytes - log->regions[i].bytes;
    return sane;
}

/* Read block 0, or its copy, from this offset into scratch, and check it. */
static annal_status read_block(struct log *log, uint64_t offset, annal_error *err)
{
    const char *block = log->scratch;
    ssize_t got = annal__io_read_full(log->io, log->fd, log->scratch, LOG_BLOCK_BYTES, offset);
    if (got < 0)
        return annal__fail_errno(err, "cannot read commit log %s", log->path);
    if (got < (ssize_t)LOG_BLOCK_BYTES || memcmp(block, log_magic, 8) != 0 ||
        annal__log_take(block + LOG_HASHED_BYTES, 8) != annal__hash(block, LOG_HASHED_BYTES, 0))
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the first block of commit log %s is damaged",
                           log->path);
    return ANNAL_OK;
}

/* Read block 0, or its copy if block 0 is damaged or cannot be read. */
static annal_status read_first_block(struct log *log, uint64_t file_bytes, annal_error *err)
{
    annal_status status = reserve_scratch(log, LOG_BLOCK_BYTES, err);
    if (status < 0)
        return status;
    const char *block = log->scratch;
    status = read_block(log, 0, err);
    log->first_damaged = status < 0;
    if (status < 0 && file_bytes % LOG_BLOCK_BYTES == 0 && file_bytes > LOG_BLOCK_BYTES &&
        read_block(log, file_bytes - LOG_BLOCK_BYTES, NULL) == ANNAL_OK)
        status = ANNAL_OK;
    if (status < 0)
        return status;
    if (annal__log_take(block + 8, 4) != LOG_VERSION)
        return annal__fail(
            err, ANNAL_ERR_UNSUPPORTED,
            "commit log %s has format version %u, but this library supports version %u", log->path,
            (unsigned)annal__log_take(block + 8, 4), LOG_VERSION);
    log->block = (uint32_t)annal__log_take(block + 12, 4);
    memcpy(log->slot_id, block + 16, LOG_SLOT_ID_BYTES);
    log->seed = annal__log_take(block + 24, 8);
    for (unsigned i = 0; i < LOG_REGIONS; i++) {
        uint64_t bytes = annal__log_take(block + 40 + 16 * i, 8);
        log->regions[i] = (struct region){
            .offset = annal__log_take(block + 32 + 16 * i, 8), .bytes = bytes, .written = bytes};
    }
    if (!is_sane(log, file_bytes))
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "commit log %s is cut short, or lists impossible regions", log->path);
    return ANNAL_OK;
}

annal_status annal__log_mend(struct log *log, annal_error *err)
{
    if (!log->first_damaged)
        return ANNAL_OK;
    annal_status status = read_block(log, copy_offset(log), err);
    if (status < 0)
        return status;
    if (annal__io_write_all(log->io, log->fd, log->scratch, LOG_BLOCK_BYTES, 0) < 0 ||
        log->io->fsync(log->io->arg, log->fd) < 0)
        return annal__fail_errno(err, "cannot write commit log %s", log->path);
    log->first_damaged = false;
    return ANNAL_OK;
}

annal_status annal__log_find(const struct io *io, const char *path, bool write, struct log *out_log,
                             annal_error *err)
{
    struct log log = {.io = io};
    struct stat file;
    snprintf(log.path, sizeof log.path, "%s", path);
    log.fd = open_log(io, path, write ? O_RDWR : O_RDONLY);
    if (log.fd < 0 && errno == ENOENT)
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "commit log %s does not exist", path);
    if (log.fd < 0)
        return annal__fail_errno(err, "cannot open commit log %s", path);
    if (io->fstat(io->arg, log.fd, &file) < 0) {
        annal_status status = annal__fail_errno(err, "cannot examine commit log %s", path);
        annal__log_close(&log);
        return status;
    }
    log.device = file.st_dev;
    log.inode = file.st_ino;
    *out_log = log;
    return ANNAL_OK;
}

annal_status annal__log_read_first(struct log *log, annal_error *err)
{
    struct stat file;
    if (log->io->fstat(log->io->arg, log->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine commit log %s", log->path);
    return read_first_block(log, (uint64_t)file.st_size, err);
}

annal_status annal__log_open(const struct io *io, const char *path, bool write, struct log *out_log,
                             annal_error *err)
{
    struct log log = {.fd = -1};
    annal_status status = annal__log_find(io, path, write, &log, err);
    if (status == ANNAL_OK)
        status = annal__log_read_first(&log, err);
    if (status < 0)
        annal__log_close(&log);
    else
        *out_log = log;
    return status;
}

void annal__log_close(struct log *log)
{
    if (log->io != NULL && log->fd >= 0)
        log->io->close(log->io->arg, log->fd);
    annal__free(log->scratch);
    *log = (struct log){.fd = -1};
}

annal_status annal__log_check_place(const struct log *log, annal_error *err)
{
    dev_t device;
    ino_t inode;
    bool found = log->io->identify(log->io->arg, log->path, &device, &inode) == 0;
    if (!found && errno != ENOENT && errno != ENOTDIR)
        return annal__fail_errno(err, "cannot examine commit log %s", log->path);
    if (!found || device != log->device || inode != log->inode)
        return annal__fail(err, ANNAL_ERR_CLOSED,
                           "commit log %s was removed or replaced while this process used it",
                           log->path);
    return ANNAL_OK;
}

bool annal__log_is_in_place(const struct log *log)
{
    return annal__log_check_place(log, NULL) == ANNAL_OK;
}

/* ---- Writing ---- */

uint64_t annal__log_group_bytes(const struct log *log, size_t toc_bytes, size_t payload_bytes)
{
    return round_up(GROUP_HEADER_BYTES + toc_bytes + payload_bytes, log->block);
}

bool annal__log_fits(const struct log *log, uint64_t bytes)
{
    return log->epoch > 0 && log->end + bytes + log->block <= log->regions[log->current].bytes;
}

void annal__log_switch(struct log *log)
{
    if (log->epoch > 0)
        log->current = (log->current + 1) % LOG_REGIONS;
    log->epoch++;
    log->regions[log->current].epoch = log->epoch;
    log->end = 0;
}

annal_status annal__log_put_record(struct buf *toc, const struct record *record)
{
    size_t id_bytes = round_up(record->session.len, 8);
    size_t start = toc->len;
    annal_status status = annal__buf_append_zeros(toc, RECORD_FIXED_BYTES + id_bytes);
    if (status < 0)
        return status;
    char *at = toc->ptr + start;
    annal__log_put(at, record->type, 1);
    annal__log_put(at + 1, record->format, 1);
    annal__log_put(at + 2, record->session.len, 2);
    memcpy(at + 8, record->file, FRAME_FILE_ID_BYTES);
    annal__log_put(at + 24, record->offset, 8);
    annal__log_put(at + 32, record->length, 8);
    annal__log_put(at + 40, record->first_seq, 8);
    annal__log_put(at + 48, record->last_seq, 8);
    annal__log_put(at + 56, record->h_before, 8);
    annal__log_put(at + 64, record->h_after, 8);
    memcpy(at + RECORD_FIXED_BYTES, record->session.ptr, record->session.len);
    return ANNAL_OK;
}

annal_status annal__log_reserve(struct buf *payload, size_t more)
{
    if (more > payload->limit || payload->len > payload->limit - more)
        return ANNAL_ERR_LIMIT;
    size_t need = payload->len + more + LOG_BLOCK_BYTES_MAX;
    if (need <= payload->cap)
        return ANNAL_OK;
    size_t cap = payload->cap == 0 ? PAYLOAD_BYTES_FIRST : payload->cap;
    while (cap < need)
        cap *= 2;
    char *ptr = annal__alloc_aligned(LOG_BLOCK_BYTES_MAX, cap);
    if (ptr == NULL)
        return ANNAL_ERR_NOMEM;
    if (payload->len > 0)
        memcpy(ptr, payload->ptr, payload->len);
    annal__free(payload->ptr);
    payload->ptr = ptr;
    payload->cap = cap;
    return ANNAL_OK;
}

annal_status annal__log_align_toc(const struct log *log, struct buf *toc, const struct buf *payload)
{
    if (payload->len < LARGE_BYTES)
        return ANNAL_OK;
    size_t head = GROUP_HEADER_BYTES + toc->len;
    return annal__buf_append_zeros(toc, (size_t)round_up(head, log->block) - head);
}

/* Return whether the payload can be written to the disk directly from its buffer, without a copy:
 * it is large and aligned, see annal__log_reserve(). */
static bool stands_apart(const struct log *log, const struct buf *toc, const struct buf *payload)
{
    return payload->len >= LARGE_BYTES && (uintptr_t)payload->ptr % LOG_BLOCK_BYTES_MAX == 0 &&
           payload->cap - payload->len >= LOG_BLOCK_BYTES_MAX &&
           (GROUP_HEADER_BYTES + toc->len) % log->block == 0;
}

static annal_status hash_apart(const struct log *log, annal_slice head, annal_slice payload,
                               uint64_t *out_hash, annal_error *err)
{
    struct hash_stream *stream = annal__hash_begin(log->seed);
    if (stream == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "write commit log %s: out of memory", log->path);
    annal__hash_add(stream, head.ptr, head.len);
    annal__hash_add(stream, payload.ptr, payload.len);
    *out_hash = annal__hash_end(stream);
    return ANNAL_OK;
}

static void put_header(const struct log *log, char *at, uint32_t records, const struct buf *toc,
                       const struct buf *payload, uint64_t released)
{
    memcpy(at, group_magic, 8);
    annal__log_put(at + 8, LOG_VERSION, 4);
    annal__log_put(at + 12, records, 4);
    annal__log_put(at + 16, log->epoch, 8);
    annal__log_put(at + 24, log->group + 1, 8);
    annal__log_put(at + 32, released, 8);
    annal__log_put(at + 40, toc->len, 8);
    annal__log_put(at + 48, payload->len, 8);
    annal__log_put(at + GROUP_HASH_AT, 0, 8);
    if (toc->len > 0)
        memcpy(at + GROUP_HEADER_BYTES, toc->ptr, toc->len);
}

/* Return how many bytes are written for a group of this size, with the zeros after it: see
 * AHEAD_BYTES. */
static uint64_t with_zeros_ahead(const struct log *log, uint64_t bytes)
{
    const struct region *region = &log->regions[log->current];
    uint64_t room = region->bytes - log->end;
    if (log->end + bytes <= region->written || bytes > SMALL_BYTES)
        return bytes;
    return room < AHEAD_BYTES ? room : AHEAD_BYTES;
}

annal_status annal__log_write_group(struct log *log, uint32_t records, const struct buf *toc,
                                    const struct buf *payload, uint64_t released, annal_error *err)
{
    uint64_t bytes = annal__log_group_bytes(log, toc->len, payload->len);
    struct region *region = &log->regions[log->current];
    ANNAL_ASSERT(log->epoch > 0 && log->end + bytes <= region->bytes && log->state != LOG_BROKEN);
    uint64_t whole = with_zeros_ahead(log, bytes);
    bool apart = stands_apart(log, toc, payload);
    size_t head_bytes = GROUP_HEADER_BYTES + toc->len;
    size_t first_bytes = apart ? head_bytes : (size_t)whole;
    annal_status status = reserve_scratch(log, first_bytes, err);
    if (status < 0)
        return status;

    char *at = log->scratch;
    size_t zeros = (size_t)whole - head_bytes - payload->len;
    uint64_t hash = 0;
    put_header(log, at, records, toc, payload, released);
    if (apart) {
        memset(payload->ptr + payload->len, 0, zeros);
        status =
            hash_apart(log, (annal_slice){at, head_bytes}, annal__buf_slice(payload), &hash, err);
        if (status < 0)
            return status;
    } else {
        if (payload->len > 0)
            memcpy(at + head_bytes, payload->ptr, payload->len);
        memset(at + head_bytes + payload->len, 0, zeros);
        hash = annal__hash(at, head_bytes + payload->len, log->seed);
    }
    annal__log_put(at + GROUP_HASH_AT, hash, 8);

    uint64_t offset = region->offset + log->end;
    log->state = LOG_UNWRITTEN;
    if ((apart && annal__io_write_all(log->io, log->fd, payload->ptr, payload->len + zeros,
                                      offset + head_bytes) < 0) ||
        annal__io_write_all(log->io, log->fd, at, first_bytes, offset) < 0)
        return annal__fail_errno(err, "cannot write commit log %s", log->path);
    log->state = LOG_BROKEN;
    if (log->io->fdatasync(log->io->arg, log->fd) < 0)
        return annal__fail_errno(err, "cannot sync commit log %s", log->path);
    log->state = LOG_SOUND;
    log->group++;
    if (log->end + whole > region->written)
        region->written = log->end + whole;
    log->end += bytes;
    log->durable_released = released;
    return ANNAL_OK;
}

annal_status annal__log_wipe(struct log *log, annal_error *err)
{
    ANNAL_ASSERT(log->state == LOG_SOUND && log->durable_released + 1 >= log->epoch);
    annal_status status = reserve_scratch(log, ZERO_FILL_BYTES, err);
    if (status < 0)
        return status;
    memset(log->scratch, 0, ZERO_FILL_BYTES);
    for (unsigned i = 0; i < LOG_REGIONS && status == ANNAL_OK; i++) {
        const struct region *region = &log->regions[i];
        uint64_t from = region->offset + (i == log->current ? log->end : 0);
        status = write_zeros(log, from, region->offset + region->bytes, "overwrite", err);
    }
    if (status < 0)
        return status;
    if (log->io->fdatasync(log->io->arg, log->fd) < 0) {
        log->state = LOG_BROKEN;
        return annal__fail_errno(err, "cannot sync commit log %s", log->path);
    }
    log->wiped_group = log->group;
    return ANNAL_OK;
}

/* ---- Reading ---- */

/* Parse the header of a group; false if it is not a group, or if its sizes exceed its region. */
static bool parse_group(const char *at, const struct region *region, uint64_t offset_in_region,
                        struct log_group *out_group)
{
    if (memcmp(at, group_magic, 8) != 0)
        return false;
    struct log_group group = {.offset = region->offset + offset_in_region,
                              .records = (uint32_t)annal__log_take(at + 12, 4),
                              .epoch = annal__log_take(at + 16, 8),
                              .group = annal__log_take(at + 24, 8),
                              .released = annal__log_take(at + 32, 8),
                              .toc_bytes = annal__log_take(at + 40, 8),
                              .payload_bytes = annal__log_take(at + 48, 8)};
    uint64_t room = region->bytes - offset_in_region - GROUP_HEADER_BYTES;
    if (group.toc_bytes > room || group.payload_bytes > room - group.toc_bytes)
        return false;
    if (group.epoch == 0 || group.epoch > NUMBER_MAX || group.group > NUMBER_MAX)
        return false;
    *out_group = group;
    return true;
}

static bool group_verifies(const struct log *log, char *at, const struct log_group *group)
{
    uint64_t hash = annal__log_take(at + GROUP_HASH_AT, 8);
    annal__log_put(at + GROUP_HASH_AT, 0, 8);
    return hash ==
           annal__hash(at, GROUP_HEADER_BYTES + group->toc_bytes + group->payload_bytes, log->seed);
}

struct found {
    struct log_group *groups;
    size_t count;
};

static annal_status add_found(void *arg, const struct log_group *group, annal_slice bytes,
                              annal_error *err)
{
    struct found *found = arg;
    (void)bytes;
    if (group == NULL)
        return ANNAL_OK;
    struct log_group *last = annal__array_add(&found->groups, &found->count, sizeof *last);
    if (last == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a commit log: out of memory");
    *last = *group;
    return ANNAL_OK;
}

/* A function that is called for each block of a region; group is NULL if no valid group begins in
 * the block. */
typedef annal_status (*block_fn)(void *arg, const struct log_group *group, annal_slice bytes,
                                 annal_error *err);

/* Call fn for each block of a region that is not inside a valid group, and for each valid group: a
 * damaged group does not hide the groups after it. */
static annal_status walk_region(struct log *log, unsigned index, block_fn fn, void *arg,
                                annal_error *err)
{
    const struct region *region = &log->regions[index];
    annal_status status = reserve_scratch(log, (size_t)region->bytes, err);
    if (status < 0)
        return status;
    for (uint64_t at = 0; at < region->bytes; at += READ_BYTES) {
        size_t piece = region->bytes - at < READ_BYTES ? (size_t)(region->bytes - at) : READ_BYTES;
        if (annal__io_read_full(log->io, log->fd, log->scratch + at, piece, region->offset + at) !=
            (ssize_t)piece)
            return annal__fail_errno(err, "cannot read commit log %s", log->path);
        if (log->steps != NULL)
            atomic_fetch_add(log->steps, 1);
    }
    for (uint64_t at = 0; at + log->block <= region->bytes && status == ANNAL_OK;) {
        struct log_group group;
        annal_slice bytes = {log->scratch + at, (size_t)(region->bytes - at)};
        if (!parse_group(bytes.ptr, region, at, &group) ||
            !group_verifies(log, log->scratch + at, &group)) {
            status = fn(arg, NULL, bytes, err);
            at += log->block;
            continue;
        }
        if (annal__log_take(bytes.ptr + 8, 4) != LOG_VERSION)
            return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                               "commit log %s contains a group of format version %u, but this "
                               "library supports version %u",
                               log->path, (unsigned)annal__log_take(bytes.ptr + 8, 4), LOG_VERSION);
        group.region = index;
        status = fn(arg, &group, bytes, err);
        at += annal__log_group_bytes(log, group.toc_bytes, group.payload_bytes);
    }
    return status;
}

static annal_status walk(struct log *log, block_fn fn, void *arg, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (unsigned i = 0; i < LOG_REGIONS && status == ANNAL_OK; i++)
        status = walk_region(log, i, fn, arg, err);
    return status;
}

static int compare_groups(const void *left, const void *right)
{
    const struct log_group *a = left, *b = right;
    return a->group < b->group ? -1 : a->group > b->group;
}

annal_status annal__log_find_groups(struct log *log, struct log_group **out_groups,
                                    size_t *out_count, annal_error *err)
{
    struct found found = {0};
    annal_status status = walk(log, add_found, &found, err);
    if (status < 0) {
        annal__free(found.groups);
        return status;
    }
    if (found.count > 0)
        qsort(found.groups, found.count, sizeof *found.groups, compare_groups);
    *out_groups = found.groups;
    *out_count = found.count;
    return ANNAL_OK;
}

uint64_t annal__log_released(const struct log_group *groups, size_t count)
{
    uint64_t released = 0;
    for (size_t i = 0; i < count; i++) {
        if (groups[i].released > released)
            released = groups[i].released;
    }
    return released;
}

bool annal__log_lost(const struct log *log, const struct log_group *groups, size_t count,
                     uint64_t *out_last)
{
    uint64_t released = annal__log_released(groups, count);
    bool lost = false;
    for (size_t i = 0; i < count; i++) {
        const struct log_group *group = &groups[i];
        bool follows = i > 0 && group->group - groups[i - 1].group <= 1;
        bool begins =
            group->epoch == released + 1 && group->offset == log->regions[group->region].offset;
        if (group->epoch > released && !follows && !begins) {
            *out_last = group->group - 1;
            lost = true;
        }
    }
    return lost;
}

struct names {
    annal__log_name_fn fn;
    void *arg;
};

/* Call names->fn for each session that a damaged group names: damage in one place leaves most of
 * its toc intact. */
static annal_status take_names(void *arg, const struct log_group *group, annal_slice bytes,
                               annal_error *err)
{
    const struct names *names = arg;
    annal_slice toc = {bytes.ptr + GROUP_HEADER_BYTES, bytes.len - GROUP_HEADER_BYTES};
    struct record record;
    annal_status status = ANNAL_OK;
    while (group == NULL && status == ANNAL_OK && annal__log_take_record(&toc, &record))
        status = names->fn(names->arg, record.session, err);
    return status;
}

annal_status annal__log_lost_names(struct log *log, annal__log_name_fn fn, void *arg,
                                   annal_error *err)
{
    struct names names = {fn, arg};
    return walk(log, take_names, &names, err);
}

annal_status annal__log_read_group(struct log *log, const struct log_group *group,
                                   struct buf *bytes, annal_error *err)
{
    uint64_t size = annal__log_group_bytes(log, group->toc_bytes, group->payload_bytes);
    annal_status status = reserve_scratch(log, (size_t)size, err);
    if (status < 0)
        return status;
    if (annal__io_read_full(log->io, log->fd, log->scratch, (size_t)size, group->offset) !=
        (ssize_t)size)
        return annal__fail_errno(err, "cannot read commit log %s", log->path);
    annal__buf_clear(bytes);
    /* reserve a byte, so that bytes->ptr is not NULL even if the group is empty */
    status = annal__buf_reserve(bytes, 1);
    if (status == ANNAL_OK)
        status = annal__buf_append(bytes, log->scratch + GROUP_HEADER_BYTES,
                                   (size_t)(group->toc_bytes + group->payload_bytes));
    return status < 0 ? annal__fail(err, status, "read a commit log: out of memory") : ANNAL_OK;
}

bool annal__log_take_record(annal_slice *toc, struct record *out_record)
{
    if (toc->len < RECORD_FIXED_BYTES)
        return false;
    const char *at = toc->ptr;
    struct record record = {
        .type = (enum record_type)annal__log_take(at, 1),
        .format = (annal_format)annal__log_take(at + 1, 1),
        .session = {at + RECORD_FIXED_BYTES, (size_t)annal__log_take(at + 2, 2)},
        .offset = annal__log_take(at + 24, 8),
        .length = annal__log_take(at + 32, 8),
        .first_seq = annal__log_take(at + 40, 8),
        .last_seq = annal__log_take(at + 48, 8),
        .h_before = annal__log_take(at + 56, 8),
        .h_after = annal__log_take(at + 64, 8)};
    memcpy(record.file, at + 8, FRAME_FILE_ID_BYTES);
    size_t bytes = RECORD_FIXED_BYTES + (size_t)round_up(record.session.len, 8);
    if (bytes > toc->len || record.type < RECORD_CREATE || record.type > RECORD_LOOSE ||
        (record.type == RECORD_LOOSE && record.length > 0) ||
        annal__codec_of(record.format) == NULL || annal_session_id_check(record.session, NULL) < 0)
        return false;
    toc->ptr += bytes;
    toc->len -= bytes;
    *out_record = record;
    return true;
}
