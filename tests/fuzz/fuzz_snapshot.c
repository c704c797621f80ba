/*
 * Arbitrary bytes as a snapshot.
 *
 * The first byte says whether header and state hash are made right, and whether the frame is stored
 * against a base: mutations hardly ever hit a hash.
 *
 * (1) A header that is taken is written again as it was.
 * (2) What unpacks has the length and the hash that the header gives; what does not leaves nothing.
 * (3) A large state is not made room for before the frame says that there is one.
 */
#include "journal/base/hash.h"
#include "snapshot/container.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const char base_text[] = "CREATE TABLE turns (session_id TEXT, seq INTEGER, text TEXT);";

static void unpack(const struct snapshot_header *header, annal_slice frame, annal_slice base)
{
    struct buf out = {.limit = SNAPSHOT_RAW_BYTES_MAX};
    annal_status status = annal__snapshot_unpack(header, frame, base, &out, NULL);
    if (status == ANNAL_OK) {
        MUST(out.len == header->raw_bytes);
        MUST(annal__hash(out.ptr, out.len, 0) == header->raw_hash);
    } else {
        MUST(status == ANNAL_ERR_CORRUPT);
        MUST(out.len == 0);
    }
    MUST(out.cap <= header->raw_bytes * 2 + 64);
    annal__buf_done(&out);
}

/* Any bytes, packed, unpack to themselves. */
static void round_trip(annal_slice raw, annal_slice base)
{
    struct snapshot_header header = {.seq = 1}, again;
    char row[SNAPSHOT_HEADER_BYTES];
    struct buf frame = {0};
    memset(header.file, 'a', SNAPSHOT_FILE_ID_BYTES);
    MUST(annal__snapshot_pack(&header, raw, base, &frame, NULL) == ANNAL_OK);
    annal__snapshot_header_write(&header, row);
    struct buf whole = {0};
    MUST(annal__buf_append(&whole, row, sizeof row) == ANNAL_OK);
    MUST(annal__buf_append_slice(&whole, annal__buf_slice(&frame)) == ANNAL_OK);
    MUST(annal__snapshot_header_read(annal__buf_slice(&whole), &again) == NULL);
    struct buf out = {0};
    MUST(annal__snapshot_unpack(&again, annal__buf_slice(&frame), base, &out, NULL) == ANNAL_OK);
    MUST(out.len == raw.len && (raw.len == 0 || memcmp(out.ptr, raw.ptr, raw.len) == 0));
    annal__buf_done(&out);
    annal__buf_done(&whole);
    annal__buf_done(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    uint8_t how = take_byte(&input);
    annal_slice base = {base_text, how & 2 ? sizeof base_text : 0};
    struct snapshot_header header;
    char *row = malloc(input.len + 1);
    MUST(row != NULL);
    memcpy(row, input.ptr, input.len);
    if ((how & 1) != 0 && input.len >= SNAPSHOT_HEADER_BYTES) {
        uint64_t hash;
        uint64_t frame_bytes = input.len - SNAPSHOT_HEADER_BYTES;
        memcpy(row, "ANNALSN\n\1\0\0\0", 12);
        for (int i = 0; i < 8; i++)
            row[72 + i] = (char)(frame_bytes >> 8 * i);
        hash = annal__hash(row, SNAPSHOT_HEADER_BYTES - 8, 0);
        for (int i = 0; i < 8; i++)
            row[SNAPSHOT_HEADER_BYTES - 8 + i] = (char)(hash >> 8 * i);
    }
    annal_slice whole = {row, input.len};
    if (annal__snapshot_header_read(whole, &header) == NULL) {
        char again[SNAPSHOT_HEADER_BYTES];
        annal__snapshot_header_write(&header, again);
        MUST((row[12] & ~1) != 0 || row[13] != 0 || row[14] != 0 || row[15] != 0 ||
             memcmp(row, again, sizeof again) == 0);
        annal_slice frame = {row + SNAPSHOT_HEADER_BYTES, whole.len - SNAPSHOT_HEADER_BYTES};
        unpack(&header, frame, base);
    }
    round_trip(input, base);
    free(row);
    return 0;
}
