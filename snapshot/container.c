/*
 * A snapshot: the state of one session at one seq, compressed, and bound to the journal that it was
 * made from. It is the blob in snapshots.state: a header of 128 bytes, and a zstd frame.
 *
 *      0   8  magic "ANNALSN\n"
 *      8   4  version of this layout: 1
 *     12   4  flags; 1: the frame is in STORE/snapshots/<session>/<seq>.zst, nothing follows here
 *     16   8  seq: the state after this event
 *     24   8  offset in the journal at which event seq + 1 begins
 *     32   8  h of event seq
 *     40  16  file id of the journal, as bytes
 *     56   8  pack version: hash over names, versions and texts of the packs
 *     64   8  bytes of the state
 *     72   8  bytes of the frame
 *     80   8  number
 *     88   8  seq of the base; 0: none
 *     96   8  XXH3-64 of the state, seed 0
 *    104   8  XXH3-64 of the base's state; 0: none
 *    112   8  created, microseconds since 1970
 *    120   8  XXH3-64 of bytes 0 to 119, seed 0
 *    128      the frame, with content size and checksum
 *
 * All numbers are little-endian. The state is a SQLite database image, which any sqlite3 opens.
 *
 * (1) A snapshot counts while its session's journal has this file id, and the line that ends at
 *     offset ends with h. As every h depends on all bytes before it, the journal up to there is
 *     then the one that the state was folded from. The packs must have the same texts, too.
 * (2) The frame is compressed with the state of another snapshot, its base, as zstd prefix. A
 *     SQLite image changes by pages, so this costs about what has changed since the base; all of it
 *     stored whole would cost the square of the session's length.
 * (3) Snapshots of a session are numbered 1, 2, 3, …; the base of a number is the number with its
 *     lowest one bit cleared (12 = 1100b is stored against 8 = 1000b), and a power of two has none.
 *     So loading number n unpacks at most log2(n) frames, and what changed between two neighbours
 *     is stored at most once per bit: n snapshots cost at most (1 + log2(n) / 2) times what a chain
 *     would. All are kept, so that any past seq is near one.
 * (4) A base that is damaged or gone takes those stored against it with it: they do not count. Then
 *     an older one serves, in the end none; numbering goes on behind the newest that counts.
 */
#include "snapshot/container.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <string.h>
#include <zstd.h>

#define MAGIC         "ANNALSN\n"
#define VERSION       1u
#define FLAG_IN_FILE  1u
#define LEVEL         3
#define WINDOW_LOG    30 /* what a decoder must allow: state and base together are below 2 GiB */
#define HEADER_HASHED (SNAPSHOT_HEADER_BYTES - 8)

uint64_t annal__snapshot_base_number(uint64_t number)
{
    return number & (number - 1);
}

/* ---- The header ---- */

static void put(char *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(unsigned char)(value >> (8 * i));
}

static uint64_t get(const char *in, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)in[i] << (8 * i);
    return value;
}

static unsigned hex_value(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10) & 15;
}

static void put_file_id(char *out, const char *hex)
{
    for (size_t i = 0; i < SNAPSHOT_FILE_ID_BYTES / 2; i++)
        out[i] = (char)(unsigned char)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
}

static void get_file_id(const char *in, char *out)
{
    for (size_t i = 0; i < SNAPSHOT_FILE_ID_BYTES; i++)
        out[i] = "0123456789abcdef"[((unsigned char)in[i / 2] >> (i % 2 == 0 ? 4 : 0)) & 15];
    out[SNAPSHOT_FILE_ID_BYTES] = '\0';
}

void annal__snapshot_header_write(const struct snapshot_header *header,
                                  char out[SNAPSHOT_HEADER_BYTES])
{
    memcpy(out, MAGIC, 8);
    put(out + 8, VERSION, 4);
    put(out + 12, header->in_file ? FLAG_IN_FILE : 0, 4);
    put(out + 16, header->seq, 8);
    put(out + 24, header->offset, 8);
    put(out + 32, header->h, 8);
    put_file_id(out + 40, header->file);
    put(out + 56, header->pack_version, 8);
    put(out + 64, header->raw_bytes, 8);
    put(out + 72, header->frame_bytes, 8);
    put(out + 80, header->number, 8);
    put(out + 88, header->base_seq, 8);
    put(out + 96, header->raw_hash, 8);
    put(out + 104, header->base_hash, 8);
    put(out + 112, (uint64_t)header->created_us, 8);
    put(out + HEADER_HASHED, annal__hash(out, HEADER_HASHED, 0), 8);
}

const char *annal__snapshot_header_read(annal_slice row, struct snapshot_header *out_header)
{
    const char *in = row.ptr;
    if (row.len < SNAPSHOT_HEADER_BYTES || memcmp(in, MAGIC, 8) != 0)
        return "it does not begin as a snapshot does";
    if (get(in + HEADER_HASHED, 8) != annal__hash(in, HEADER_HASHED, 0))
        return "its header is damaged";
    if (get(in + 8, 4) != VERSION)
        return "it is of another version";
    struct snapshot_header header = {.in_file = (get(in + 12, 4) & FLAG_IN_FILE) != 0,
                                     .seq = get(in + 16, 8),
                                     .offset = get(in + 24, 8),
                                     .h = get(in + 32, 8),
                                     .pack_version = get(in + 56, 8),
                                     .raw_bytes = get(in + 64, 8),
                                     .frame_bytes = get(in + 72, 8),
                                     .number = get(in + 80, 8),
                                     .base_seq = get(in + 88, 8),
                                     .raw_hash = get(in + 96, 8),
                                     .base_hash = get(in + 104, 8),
                                     .created_us = (int64_t)get(in + 112, 8)};
    get_file_id(in + 40, header.file);
    if (header.raw_bytes > SNAPSHOT_RAW_BYTES_MAX ||
        row.len != SNAPSHOT_HEADER_BYTES + (header.in_file ? 0 : header.frame_bytes))
        return "it has another length than it says";
    *out_header = header;
    return NULL;
}

/* ---- The frame ---- */

/* The window that holds state and base, so that a match is found wherever it stands. */
static int window_log(size_t bytes)
{
    int log = 17;
    while (log < WINDOW_LOG && ((size_t)1 << log) < bytes)
        log++;
    return log;
}

static size_t set_up(ZSTD_CCtx *zstd, annal_slice raw, annal_slice base)
{
    size_t code = ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, window_log(raw.len + base.len));
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(zstd, ZSTD_c_enableLongDistanceMatching, 1);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_refPrefix(zstd, base.ptr, base.len);
    return code;
}

annal_status annal__snapshot_pack(struct snapshot_header *header, annal_slice raw, annal_slice base,
                                  struct buf *out, annal_error *err)
{
    if (raw.len > SNAPSHOT_RAW_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT, "snapshot at %llu: a state of %zu bytes",
                           (unsigned long long)header->seq, raw.len);
    size_t bound = ZSTD_compressBound(raw.len);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    annal_status status = annal__buf_reserve(out, bound);
    if (zstd == NULL || status < 0) {
        status =
            annal__fail(err, ANNAL_ERR_NOMEM, "snapshot at %llu", (unsigned long long)header->seq);
        goto done;
    }
    size_t code = set_up(zstd, raw, base);
    if (!ZSTD_isError(code))
        code = ZSTD_compress2(zstd, out->ptr + out->len, bound, raw.ptr, raw.len);
    if (ZSTD_isError(code)) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "compress the snapshot at %llu: %s",
                             (unsigned long long)header->seq, ZSTD_getErrorName(code));
        goto done;
    }
    out->len += code;
    header->raw_bytes = raw.len;
    header->raw_hash = annal__hash(raw.ptr, raw.len, 0);
    header->frame_bytes = code;
    header->in_file = code > SNAPSHOT_ROW_BYTES_MAX;

done:
    ZSTD_freeCCtx(zstd);
    return status;
}

annal_status annal__snapshot_unpack(const struct snapshot_header *header, annal_slice frame,
                                    annal_slice base, struct buf *out, annal_error *err)
{
    size_t raw_bytes = (size_t)header->raw_bytes, code = 0;
    /* Both say how large the state is; room is made when they agree. */
    if (ZSTD_getFrameContentSize(frame.ptr, frame.len) != raw_bytes)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "the snapshot at %llu does not unpack: its frame is of another length",
                           (unsigned long long)header->seq);
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    annal_status status = annal__buf_reserve(out, raw_bytes > 0 ? raw_bytes : 1);
    if (zstd == NULL || status < 0) {
        status =
            annal__fail(err, ANNAL_ERR_NOMEM, "snapshot at %llu", (unsigned long long)header->seq);
        goto done;
    }
    char *raw = out->ptr + out->len;
    code = ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG + 1);
    if (!ZSTD_isError(code))
        code = ZSTD_DCtx_refPrefix(zstd, base.ptr, base.len);
    if (!ZSTD_isError(code))
        code = ZSTD_decompressDCtx(zstd, raw, raw_bytes, frame.ptr, frame.len);
    if (ZSTD_isError(code) || code != raw_bytes ||
        annal__hash(raw, raw_bytes, 0) != header->raw_hash) {
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "the snapshot at %llu does not unpack: %s",
                             (unsigned long long)header->seq,
                             ZSTD_isError(code) ? ZSTD_getErrorName(code) : "another state");
        goto done;
    }
    out->len += raw_bytes;

done:
    ZSTD_freeDCtx(zstd);
    return status;
}
