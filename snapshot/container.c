/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot: an image at one seq of one session, divided into pages, compressed, and bound to the
 * journal from which it was computed. The image is a state (a SQLite database with pages of 4,096
 * bytes), or the data that a C reducer saved. A snapshot is the blob in snapshots.state: a header
 * of 144 bytes, and a body.
 *
 *      0   8  magic "ANNALSN\n"
 *      8   4  version of this layout: 3
 *     12   4  flags; 1: the body is in STORE/snapshots/<session>/<seq>.zst, nothing follows here
 *     16   8  seq: the state after this event
 *     24   8  offset in the journal at which event seq + 1 begins
 *     32   8  h of event seq
 *     40  16  file id of the journal, as bytes
 *     56   8  pack version: hash over names, versions and texts of the packs
 *     64   8  bytes of the image
 *     72   8  bytes of the body
 *     80   8  bytes of the directory, which ends the body
 *     88   8  number
 *     96   8  stride: difference to the number of the previous snapshot
 *    104   8  seq of the base; 0: none
 *    112   8  the base's header hash; 0: none
 *    120   8  XXH3-64 of the body, seed 0
 *    128   8  created, microseconds since 1970
 *    136   8  header hash: XXH3-64 of bytes 0 to 135, seed 0
 *    144      the body: zstd frames with checksum, one after the other, and the directory
 *
 * All numbers are little-endian. The directory describes the frames in their order, with numbers in
 * LEB128. For each frame: its bytes; one number that is the count of its pages plus eight times the
 * count of its bases; if it has bases, its cost; then the number of each page and each base, as the
 * difference (zigzag) from the number before it in the directory, which is 0 at first.
 *
 * (1) A snapshot is valid if and only if its session's journal has this file id, the line that ends
 *     at offset ends with h, and the packs have the same texts. As every h depends on all bytes
 *     before it, the journal up to there is then the journal from which the state was folded.
 *     The pages must also have the tables that the packs create: see index/state/state.c.
 * (2) A body contains the pages that differ from the base's. A page is stored whole, in a frame of
 *     up to 4; or as a delta, in a frame that was compressed with some pages of the base as zstd
 *     prefix: the same page, and pages whose rows were moved into it when pages of a B-tree were
 *     split and balanced. To read a delta, its bases are read first; its cost is the number of
 *     frames that are unpacked in all, 16 at most. If a delta would cost more than 8, or would save
 *     little, we write the page whole, in a frame of its own: then reading this one page unpacks
 *     one frame.
 * (3) Snapshots of a session are numbered. The base of a number is the same number with its last
 *     non-zero digit, in base 4, lowered by one (in base 4, 132 is stored against 131, 130 against
 *     120, 100 whole). So opening number n needs at most 3 log4(n) bodies, and the changes between
 *     two neighbours are stored at most once for each digit. The multiples of a power of 4 depend
 *     only on each other: all others may be deleted, which leaves a fourth of the snapshots. See
 *     policy.h.
 * (4) base_hash covers the base's header, and therefore its body and its own base: a snapshot is
 *     bound to every byte that it needs. All of them are checked when it is opened; later each
 *     frame is checked by its checksum. If a base is damaged or missing, the snapshots stored
 *     against it are invalid, too. Then an older snapshot is used, or in the end none; numbering
 *     continues after the newest valid snapshot.
 */
#include "snapshot/container.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MAGIC        "ANNALSN\n"
#define VERSION      3u
#define FLAG_IN_FILE 1u
/* compression level of whole pages, which contain mostly ids and hashes: higher levels take longer
 * and save only one percent */
#define LEVEL_WHOLE   1
#define LEVEL_DELTA   3
#define HEADER_HASHED (SNAPSHOT_HEADER_BYTES - 8)
#define PAGE          ((size_t)SNAPSHOT_PAGE_BYTES)

uint64_t annal__container_base_number(uint64_t number)
{
    uint64_t digit = 1;
    while (number != 0 && number / digit % SNAPSHOT_RADIX == 0)
        digit *= SNAPSHOT_RADIX;
    return number == 0 ? 0 : number - digit;
}

uint64_t annal__container_pages(const struct snapshot_header *header)
{
    return header->raw_bytes / SNAPSHOT_PAGE_BYTES + (header->raw_bytes % SNAPSHOT_PAGE_BYTES != 0);
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

void annal__container_header_write(struct snapshot_header *header, char out[SNAPSHOT_HEADER_BYTES])
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
    put(out + 72, header->body_bytes, 8);
    put(out + 80, header->directory_bytes, 8);
    put(out + 88, header->number, 8);
    put(out + 96, header->stride, 8);
    put(out + 104, header->base_seq, 8);
    put(out + 112, header->base_hash, 8);
    put(out + 120, header->body_hash, 8);
    put(out + 128, (uint64_t)header->created_us, 8);
    header->header_hash = annal__hash(out, HEADER_HASHED, 0);
    put(out + HEADER_HASHED, header->header_hash, 8);
}

const char *annal__container_header_read(annal_slice row, struct snapshot_header *out_header)
{
    const char *in = row.ptr;
    if (row.len < 12 || memcmp(in, MAGIC, 8) != 0)
        return "the file does not begin as a snapshot";
    if (get(in + 8, 4) != VERSION)
        return "the snapshot has an unknown format version";
    if (row.len < SNAPSHOT_HEADER_BYTES ||
        get(in + HEADER_HASHED, 8) != annal__hash(in, HEADER_HASHED, 0))
        return "its header is damaged";
    struct snapshot_header header = {.in_file = (get(in + 12, 4) & FLAG_IN_FILE) != 0,
                                     .seq = get(in + 16, 8),
                                     .offset = get(in + 24, 8),
                                     .h = get(in + 32, 8),
                                     .pack_version = get(in + 56, 8),
                                     .raw_bytes = get(in + 64, 8),
                                     .body_bytes = get(in + 72, 8),
                                     .directory_bytes = get(in + 80, 8),
                                     .number = get(in + 88, 8),
                                     .stride = get(in + 96, 8),
                                     .base_seq = get(in + 104, 8),
                                     .base_hash = get(in + 112, 8),
                                     .body_hash = get(in + 120, 8),
                                     .created_us = (int64_t)get(in + 128, 8),
                                     .header_hash = get(in + HEADER_HASHED, 8)};
    get_file_id(in + 40, header.file);
    if (annal__container_pages(&header) > SNAPSHOT_PAGES_MAX ||
        header.body_bytes > SNAPSHOT_BODY_BYTES_MAX || header.directory_bytes > header.body_bytes ||
        row.len != SNAPSHOT_HEADER_BYTES + (header.in_file ? 0 : header.body_bytes))
        return "its length differs from the length in its header";
    *out_header = header;
    return NULL;
}

/* ---- Writing a body ---- */

struct body_writer {
    ZSTD_CCtx *zstd;
    struct buf frames;
    struct buf directory;
    uint32_t last; /* page number that was written to the directory last */
    char prefix[SNAPSHOT_BASES_MAX * SNAPSHOT_PAGE_BYTES];
    char frame[ZSTD_COMPRESSBOUND(SNAPSHOT_PAGE_BYTES)];
};

annal_status annal__container_body_writer_new(struct body_writer **out_packer, annal_error *err)
{
    struct body_writer *packer = annal__zalloc(sizeof *packer);
    ZSTD_CCtx *zstd = packer == NULL ? NULL : ZSTD_createCCtx();
    if (zstd == NULL || ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1))) {
        ZSTD_freeCCtx(zstd);
        annal__free(packer);
        return annal__fail(err, ANNAL_ERR_NOMEM, "write a snapshot: out of memory");
    }
    packer->zstd = zstd;
    packer->frames.limit = SNAPSHOT_BODY_BYTES_MAX;
    *out_packer = packer;
    return ANNAL_OK;
}

void annal__container_body_writer_free(struct body_writer *packer)
{
    if (packer == NULL)
        return;
    ZSTD_freeCCtx(packer->zstd);
    annal__buf_done(&packer->frames);
    annal__buf_done(&packer->directory);
    annal__free(packer);
}

static annal_status put_number(struct buf *out, uint64_t value)
{
    char bytes[10];
    size_t count = 0;
    for (; value > 127; value >>= 7)
        bytes[count++] = (char)(unsigned char)(value | 128);
    bytes[count++] = (char)(unsigned char)value;
    return annal__buf_append(out, bytes, count);
}

/* Append a page number to the directory, as the difference from the previous page number. */
static annal_status put_page(struct body_writer *packer, uint32_t page)
{
    int64_t difference = (int64_t)page - (int64_t)packer->last;
    uint64_t coded = difference < 0 ? ~((uint64_t)difference << 1) : (uint64_t)difference << 1;
    packer->last = page;
    return put_number(&packer->directory, coded);
}

/* Compress len bytes into packer->frame, with the first `prefix` bytes of packer->prefix as zstd
 * prefix. Return the number of bytes, or 0 if memory is exhausted. */
static size_t compress(struct body_writer *packer, const char *raw, size_t len, size_t prefix)
{
    size_t code = ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel,
                                         prefix > 0 ? LEVEL_DELTA : LEVEL_WHOLE);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_refPrefix(packer->zstd, packer->prefix, prefix);
    if (!ZSTD_isError(code))
        code = ZSTD_compress2(packer->zstd, packer->frame, sizeof packer->frame, raw, len);
    return ZSTD_isError(code) ? 0 : code;
}

annal_status annal__container_body_writer_delta(struct body_writer *packer, uint32_t page,
                                                const char *bytes, const struct packer_base *bases,
                                                size_t count, size_t most, bool *out_added,
                                                annal_error *err)
{
    uint64_t cost = 1;
    for (size_t i = 0; i < count; i++) {
        memcpy(packer->prefix + i * PAGE, bases[i].bytes, PAGE);
        cost += bases[i].cost;
    }
    *out_added = false;
    if (count == 0 || cost > SNAPSHOT_PACK_COST)
        return ANNAL_OK;
    size_t len = compress(packer, bytes, PAGE, count * PAGE);
    if (len > most)
        return ANNAL_OK;
    annal_status status = len == 0 ? ANNAL_ERR_NOMEM : ANNAL_OK;
    if (status >= 0)
        status = annal__buf_append(&packer->frames, packer->frame, len);
    if (status >= 0)
        status = put_number(&packer->directory, len);
    if (status >= 0)
        status = put_number(&packer->directory, 1 | count << 3);
    if (status >= 0)
        status = put_number(&packer->directory, cost);
    if (status >= 0)
        status = put_page(packer, page);
    for (size_t i = 0; status >= 0 && i < count; i++)
        status = put_page(packer, bases[i].page);
    *out_added = true;
    return status < 0 ? annal__fail(err, status, "cannot write a snapshot") : ANNAL_OK;
}

annal_status annal__container_body_writer_whole(struct body_writer *packer, uint32_t page,
                                                const char *bytes, annal_error *err)
{
    size_t len = compress(packer, bytes, PAGE, 0);
    annal_status status = len == 0 ? ANNAL_ERR_NOMEM : ANNAL_OK;
    if (status >= 0)
        status = annal__buf_append(&packer->frames, packer->frame, len);
    if (status >= 0)
        status = put_number(&packer->directory, len);
    if (status >= 0)
        status = put_number(&packer->directory, 1);
    if (status >= 0)
        status = put_page(packer, page);
    return status < 0 ? annal__fail(err, status, "cannot write a snapshot") : ANNAL_OK;
}

annal_status annal__container_body_writer_end(struct body_writer *packer,
                                              struct snapshot_header *header, struct buf *out,
                                              annal_error *err)
{
    size_t start = out->len;
    annal__buf_append_slice(out, annal__buf_slice(&packer->frames));
    annal_status status = annal__buf_append_slice(out, annal__buf_slice(&packer->directory));
    if (status < 0)
        return annal__fail(err, status, "cannot write a snapshot");
    header->directory_bytes = packer->directory.len;
    header->body_bytes = out->len - start;
    header->body_hash = annal__hash(out->len == start ? "" : out->ptr + start, out->len - start, 0);
    header->in_file = header->body_bytes > SNAPSHOT_ROW_BYTES_MAX;
    return ANNAL_OK;
}

/* ---- The directory ---- */

struct numbers {
    const char *at, *end;
    bool bad;
};

static uint64_t next_number(struct numbers *numbers)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63 && numbers->at < numbers->end; shift += 7) {
        unsigned char byte = (unsigned char)*numbers->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    numbers->bad = true;
    return 0;
}

/* Read the number of a page, which is stored as the difference from *last, and set *last to it. */
static uint32_t next_page(struct numbers *numbers, uint32_t *last)
{
    uint64_t coded = next_number(numbers);
    int64_t page = (int64_t)*last + ((int64_t)(coded >> 1) ^ -(int64_t)(coded & 1));
    if (coded >> 1 > SNAPSHOT_PAGES_MAX || page < 0 || page >= (int64_t)SNAPSHOT_PAGES_MAX) {
        numbers->bad = true;
        return 0;
    }
    *last = (uint32_t)page;
    return *last;
}

static bool is_good_frame(const struct snapshot_header *header, const struct snapshot_frame *frame,
                          uint64_t end)
{
    bool shape = frame->bases == 0 ? frame->pages <= SNAPSHOT_BLOCK_PAGES && frame->cost == 1
                                   : frame->pages == 1 && frame->bases <= SNAPSHOT_BASES_MAX &&
                                         frame->cost > frame->bases &&
                                         frame->cost <= SNAPSHOT_COST_MAX && header->base_seq != 0;
    return shape && frame->pages > 0 && frame->bytes > 0 &&
           frame->bytes <= SNAPSHOT_FRAME_BYTES_MAX && frame->bytes <= end - frame->offset;
}

/* Read one frame, its pages and its bases. The arrays of the directory have room for them, because
 * each takes at least one byte. */
static void read_frame(struct numbers *numbers, const struct snapshot_header *header,
                       struct snapshot_directory *directory, uint64_t *offset, uint32_t *last)
{
    uint64_t end = header->body_bytes - header->directory_bytes;
    uint64_t bytes = next_number(numbers), shape = next_number(numbers);
    uint64_t cost = shape >> 3 == 0 ? 1 : next_number(numbers);
    if (bytes > UINT32_MAX || shape > UINT8_MAX || cost > UINT8_MAX)
        numbers->bad = true;
    struct snapshot_frame frame = {.offset = *offset,
                                   .bytes = (uint32_t)bytes,
                                   .first_base = (uint32_t)directory->base_count,
                                   .pages = (uint8_t)(shape & 7),
                                   .bases = (uint8_t)(shape >> 3),
                                   .cost = (uint8_t)cost};
    if (numbers->bad || !is_good_frame(header, &frame, end)) {
        numbers->bad = true;
        return;
    }
    for (uint32_t i = 0; !numbers->bad && i < frame.pages; i++) {
        uint32_t page = next_page(numbers, last);
        numbers->bad = numbers->bad || page >= annal__container_pages(header);
        directory->entries[directory->entry_count++] = (struct snapshot_entry){
            .page = page, .frame = (uint32_t)directory->frame_count, .at = i};
    }
    for (uint32_t i = 0; !numbers->bad && i < frame.bases; i++)
        directory->bases[directory->base_count++] = next_page(numbers, last);
    directory->frames[directory->frame_count++] = frame;
    *offset += bytes;
}

static bool read_frames(struct numbers *numbers, const struct snapshot_header *header,
                        struct snapshot_directory *directory)
{
    uint64_t offset = 0;
    uint32_t last = 0;
    while (!numbers->bad && numbers->at < numbers->end)
        read_frame(numbers, header, directory, &offset, &last);
    return !numbers->bad && offset == header->body_bytes - header->directory_bytes;
}

static int compare_entries(const void *left, const void *right)
{
    const struct snapshot_entry *a = left, *b = right;
    return (a->page > b->page) - (a->page < b->page);
}

annal_status annal__container_directory_read(const struct snapshot_header *header,
                                             annal_slice bytes,
                                             struct snapshot_directory *out_directory,
                                             annal_error *err)
{
    struct snapshot_directory directory = {0};
    struct numbers numbers = {.at = bytes.ptr, .end = bytes.ptr + bytes.len};
    /* A frame takes at least three bytes, and each further page or base one more. */
    directory.frames = annal__zalloc((bytes.len / 3 + 1) * sizeof *directory.frames);
    directory.entries = annal__zalloc((bytes.len + 1) * sizeof *directory.entries);
    directory.bases = annal__zalloc((bytes.len + 1) * sizeof *directory.bases);
    if (directory.frames == NULL || directory.entries == NULL || directory.bases == NULL) {
        annal__container_directory_done(&directory);
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the snapshot at event %llu: out of memory",
                           (unsigned long long)header->seq);
    }
    bool good = bytes.len == header->directory_bytes && read_frames(&numbers, header, &directory);
    if (good)
        qsort(directory.entries, directory.entry_count, sizeof *directory.entries, compare_entries);
    for (size_t i = 1; good && i < directory.entry_count; i++)
        good = directory.entries[i - 1].page < directory.entries[i].page;
    if (good && header->base_seq == 0)
        good = directory.entry_count == annal__container_pages(header);
    if (!good) {
        annal__container_directory_done(&directory);
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "the snapshot at event %llu is damaged: its list of pages is wrong",
                           (unsigned long long)header->seq);
    }
    *out_directory = directory;
    return ANNAL_OK;
}

void annal__container_directory_done(struct snapshot_directory *directory)
{
    annal__free(directory->frames);
    annal__free(directory->entries);
    annal__free(directory->bases);
    *directory = (struct snapshot_directory){0};
}

const struct snapshot_entry *
annal__container_directory_find(const struct snapshot_directory *directory, uint32_t page)
{
    size_t low = 0, high = directory->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (directory->entries[middle].page < page)
            low = middle + 1;
        else
            high = middle;
    }
    return low < directory->entry_count && directory->entries[low].page == page
               ? &directory->entries[low]
               : NULL;
}

/* ---- Frames ---- */

struct body_reader {
    ZSTD_DCtx *zstd;
};

annal_status annal__container_body_reader_new(struct body_reader **out_unpacker, annal_error *err)
{
    struct body_reader *unpacker = annal__zalloc(sizeof *unpacker);
    if (unpacker != NULL)
        unpacker->zstd = ZSTD_createDCtx();
    if (unpacker == NULL || unpacker->zstd == NULL) {
        annal__free(unpacker);
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a snapshot: out of memory");
    }
    *out_unpacker = unpacker;
    return ANNAL_OK;
}

void annal__container_body_reader_free(struct body_reader *unpacker)
{
    if (unpacker == NULL)
        return;
    ZSTD_freeDCtx(unpacker->zstd);
    annal__free(unpacker);
}

/* Return whether zstd would treat the bytes as one of its own dictionaries; no page of a database
 * begins like one. */
static bool is_dictionary(const char *prefix, size_t len)
{
    return len >= 4 && get(prefix, 4) == ZSTD_MAGIC_DICTIONARY;
}

annal_status annal__container_body_read_frame(struct body_reader *unpacker,
                                              const struct snapshot_frame *frame, const char *bytes,
                                              const char *prefix, char *out, annal_error *err)
{
    size_t raw = frame->pages * PAGE, prefix_len = frame->bases * PAGE, code = 0;
    /* quicker than ZSTD_DCtx_refPrefix(), which creates a dictionary for each frame */
    if (!is_dictionary(prefix, prefix_len)) {
        code = ZSTD_decompress_usingDict(unpacker->zstd, out, raw, bytes, frame->bytes, prefix,
                                         prefix_len);
    } else {
        code = ZSTD_DCtx_refPrefix(unpacker->zstd, prefix, prefix_len);
        if (!ZSTD_isError(code))
            code = ZSTD_decompressDCtx(unpacker->zstd, out, raw, bytes, frame->bytes);
    }
    if (!ZSTD_isError(code) && code == raw)
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_CORRUPT, "cannot decompress a page of a snapshot: %s",
                       ZSTD_isError(code) ? ZSTD_getErrorName(code) : "its length is wrong");
}
