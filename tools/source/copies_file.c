/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_file.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json_walk.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAGIC         0x31534e41u /* "ANS1" */
#define HEADER_BYTES  40
#define CHECKED_BYTES 32
#define MARK_BYTES    56
#define PAYLOAD_MAX   (COPIES_PIECE + (COPIES_PIECE >> 7) + 512) /* ZSTD_compressBound() */

int64_t copies_file_ns(struct timespec time)
{
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

bool copies_file_is_quiet(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_ns = copies_file_ns(now) - copies_file_ns(st->st_ctim);
    return age_ns >= COPIES_QUIET_NS || age_ns <= -COPIES_QUIET_NS;
}

annal_status copies_file_get(int fd, void *bytes, size_t len, uint64_t at, annal_error *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(fd, (char *)bytes + done, len - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return annal__fail_errno(err, "read the log, or its copy in the store");
        if (got == 0)
            return annal__fail(
                err, ANNAL_ERR_IO,
                "the log, or its copy in the store, became shorter while annal read the file");
        done += (size_t)got;
    }
    return ANNAL_OK;
}

annal_status copies_file_put(int fd, const void *bytes, size_t len, uint64_t at, annal_error *err)
{
    for (size_t done = 0; done < len;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, len - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return annal__fail_errno(err, "write the copy of the log in sources/");
        done += (size_t)put;
    }
    return ANNAL_OK;
}

void copies_file_done(struct copies_file *file)
{
    annal__free(file->records);
    annal__buf_done(&file->info);
    *file = (struct copies_file){0};
}

void copies_file_cut(struct copies_file *file)
{
    file->count = file->marked_count;
    file->bytes = file->marked_bytes;
    file->chain = file->marked_chain;
    file->end = file->marked_end;
}

/* ---- Headers ---- */

static bool fits(const struct copies_record *record)
{
    switch (record->kind) {
    case COPIES_INFO:
        return record->bytes == 0 && record->payload <= COPIES_INFO_MAX;
    case COPIES_MARK:
        return record->bytes == 0 && record->payload == MARK_BYTES;
    case COPIES_BYTES:
        return record->bytes > 0 && record->bytes <= COPIES_PIECE && record->payload <= PAYLOAD_MAX;
    case COPIES_SAME:
        return record->bytes > 0 && record->bytes <= INT64_MAX && record->payload == 8;
    }
    return false;
}

static bool read_header(int fd, uint64_t at, uint64_t size, struct copies_record *out)
{
    unsigned char header[HEADER_BYTES];
    uint32_t magic, payload;
    uint64_t bytes, chain, check;
    if (size < at + HEADER_BYTES || copies_file_get(fd, header, sizeof header, at, NULL) < 0)
        return false;
    memcpy(&magic, header, 4);
    memcpy(&payload, header + 8, 4);
    memcpy(&bytes, header + 12, 8);
    memcpy(&chain, header + 20, 8);
    memcpy(&check, header + CHECKED_BYTES, 8);
    *out = (struct copies_record){header[4], le32toh(payload), le64toh(bytes), le64toh(chain),
                                  at + HEADER_BYTES};
    return le32toh(magic) == MAGIC && le64toh(check) == annal__hash(header, CHECKED_BYTES, 0) &&
           out->payload <= size - out->at && fits(out);
}

annal_status copies_file_append(int fd, struct copies_file *file, enum copies_kind kind,
                                const void *payload, size_t len, uint64_t bytes, uint64_t chain,
                                annal_error *err)
{
    unsigned char header[HEADER_BYTES] = {0};
    uint32_t magic = htole32(MAGIC), payload_len = htole32((uint32_t)len);
    uint64_t bytes_le = htole64(bytes), chain_le = htole64(chain), check;
    memcpy(header, &magic, 4);
    header[4] = (unsigned char)kind;
    memcpy(header + 8, &payload_len, 4);
    memcpy(header + 12, &bytes_le, 8);
    memcpy(header + 20, &chain_le, 8);
    check = htole64(annal__hash(header, CHECKED_BYTES, 0));
    memcpy(header + CHECKED_BYTES, &check, 8);
    annal_status status = copies_file_put(fd, payload, len, file->end + HEADER_BYTES, err);
    if (status >= 0) /* the header last: a killed process leaves no header without a payload */
        status = copies_file_put(fd, header, sizeof header, file->end, err);
    if (status < 0)
        return status;
    file->end += HEADER_BYTES + len;
    file->bytes += bytes;
    file->chain = chain;
    return ANNAL_OK;
}

/* ---- Marks ---- */

annal_status copies_file_append_mark(int fd, struct copies_file *file,
                                     const struct copies_mark *mark, annal_error *err)
{
    unsigned char payload[MARK_BYTES];
    const uint64_t numbers[4] = {htole64((uint64_t)mark->mtime_ns),
                                 htole64((uint64_t)mark->ctime_ns), htole64(mark->inode),
                                 htole64((uint64_t)mark->copied_us)};
    const uint32_t flags[2] = {htole32(mark->mode), 0};
    memcpy(payload, numbers, 32);
    memcpy(payload + 32, flags, 8);
    memcpy(payload + 40, mark->boot, COPIES_BOOT_BYTES);
    annal_status status =
        copies_file_append(fd, file, COPIES_MARK, payload, sizeof payload, 0,
                           annal__hash(payload, sizeof payload, file->chain), err);
    file->mark = *mark;
    return status;
}

static void take_mark(struct copies_file *to, const struct copies_record *record,
                      const char *payload)
{
    uint64_t numbers[4];
    uint32_t flags[2];
    memcpy(numbers, payload, 32);
    memcpy(flags, payload + 32, 8);
    to->mark = (struct copies_mark){.mtime_ns = (int64_t)le64toh(numbers[0]),
                                    .ctime_ns = (int64_t)le64toh(numbers[1]),
                                    .inode = le64toh(numbers[2]),
                                    .copied_us = (int64_t)le64toh(numbers[3]),
                                    .mode = le32toh(flags[0]) & 07777};
    memcpy(to->mark.boot, payload + 40, COPIES_BOOT_BYTES);
    to->marked_count = to->count;
    to->marked_bytes = to->bytes;
    to->marked_chain = record->chain;
    to->marked_end = record->at + record->payload;
}

/* ---- Reading ---- */

static uint64_t number_of(const struct buf *info, const char *member)
{
    annal_slice raw = annal__json_member(annal__buf_slice(info), member);
    uint64_t number = 0;
    for (size_t i = 0; i < raw.len && raw.ptr[i] >= '0' && raw.ptr[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(raw.ptr[i] - '0');
    return number;
}

/* Read the payload of a record INFO or MARK, and prove it. ANNAL_END: it is damaged. */
static annal_status read_payload(int fd, const struct copies_record *record, uint64_t chain,
                                 struct buf *out, annal_error *err)
{
    annal__buf_clear(out);
    annal_status status = annal__buf_reserve(out, (size_t)record->payload + 1);
    if (status < 0)
        return annal__fail(err, status, "read the copy of the log in sources/: out of memory");
    status = copies_file_get(fd, out->ptr, record->payload, record->at, err);
    out->len = record->payload;
    return status == ANNAL_OK && annal__hash(out->ptr, out->len, chain) != record->chain ? ANNAL_END
                                                                                         : status;
}

/* Add a record to `to`, and read its payload if its kind is INFO or MARK. ANNAL_END: the record is
 * not valid. */
static annal_status take_record(int fd, const struct copies_record *record, struct copies_file *to,
                                struct buf *payload, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (to->count == 0 && record->kind != COPIES_INFO)
        return ANNAL_END;
    if (record->kind == COPIES_INFO || record->kind == COPIES_MARK)
        status = read_payload(fd, record, to->chain, payload, err);
    if (status != ANNAL_OK)
        return status;
    struct copies_record *kept = annal__array_add(&to->records, &to->count, sizeof *kept);
    if (kept == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "read the copy of the log in sources/: out of memory");
    *kept = *record;
    to->bytes += record->bytes;
    to->chain = record->chain;
    to->end = record->at + record->payload;
    if (record->kind == COPIES_MARK)
        take_mark(to, record, payload->ptr);
    if (record->kind == COPIES_INFO) {
        struct buf before = to->info;
        to->info = *payload;
        *payload = before;
        to->generation = number_of(&to->info, "generation");
        to->depth = number_of(&to->info, "depth");
    }
    return ANNAL_OK;
}

annal_status copies_file_read(int fd, struct copies_file *out, annal_error *err)
{
    struct stat st;
    struct copies_record record;
    SCOPED_BUF payload = {0};
    annal_status status = ANNAL_OK;
    if (fstat(fd, &st) < 0)
        return annal__fail_errno(err, "query the size of the copy of the log in sources/");
    out->size = (uint64_t)st.st_size;
    while (status == ANNAL_OK && read_header(fd, out->end, out->size, &record))
        status = take_record(fd, &record, out, &payload, err);
    if (status < 0)
        return status;
    return out->count > 0 && out->generation > 0 ? ANNAL_OK : ANNAL_END;
}

static bool has_record(int fd, const struct copies_file *file)
{
    uint64_t at = file->end + 1;
    char *block = annal__zalloc(COPIES_PIECE);
    const uint32_t magic = htole32(MAGIC);
    struct copies_record record;
    bool found = false;
    while (block != NULL && !found && at + HEADER_BYTES <= file->size) {
        size_t len = file->size - at < COPIES_PIECE ? (size_t)(file->size - at) : COPIES_PIECE;
        if (copies_file_get(fd, block, len, at, NULL) < 0)
            break;
        for (size_t i = 0; i + 4 <= len && !found; i++)
            found =
                memcmp(block + i, &magic, 4) == 0 && read_header(fd, at + i, file->size, &record);
        at += len > 3 ? len - 3 : len;
        if (len < COPIES_PIECE)
            break;
    }
    annal__free(block);
    return found;
}

bool copies_file_is_damaged(int fd, const struct copies_file *file)
{
    static const char zeros[HEADER_BYTES] = {0};
    char header[HEADER_BYTES];
    size_t left =
        file->size - file->end < HEADER_BYTES ? (size_t)(file->size - file->end) : HEADER_BYTES;
    return left > 0 && (copies_file_get(fd, header, left, file->end, NULL) < 0 ||
                        memcmp(header, zeros, left) != 0 || has_record(fd, file));
}
