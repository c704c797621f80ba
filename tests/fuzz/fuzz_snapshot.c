/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a snapshot.
 *
 * The first byte says whether the hashes of header and body are corrected, because mutations hardly
 * ever hit a hash, and whether the snapshot is stored against a base.
 *
 * (1) An accepted header is written again as the same bytes.
 * (2) An accepted directory names each page of the image at most once, frames that lie in the body,
 *     and, without a base, every page.
 * (3) A frame unpacks to its pages, or to nothing.
 * (4) Any pages, packed, unpack to themselves.
 */
#include "journal/base/hash.h"
#include "snapshot/container.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define PAGE ((size_t)SNAPSHOT_PAGE_BYTES)

static char base_pages[SNAPSHOT_BASES_MAX * SNAPSHOT_PAGE_BYTES];
static char pages[SNAPSHOT_BLOCK_PAGES * SNAPSHOT_PAGE_BYTES];

static void unpack(const struct snapshot_header *header, const char *body)
{
    struct snapshot_directory directory;
    struct body_reader *unpacker = NULL;
    size_t len = (size_t)header->directory_bytes;
    annal_slice list = {body + (header->body_bytes - len), len};
    annal_status status = annal__container_directory_read(header, list, &directory, NULL);
    MUST(status == ANNAL_OK || status == ANNAL_ERR_CORRUPT);
    if (status < 0)
        return;
    MUST(annal__container_body_reader_new(&unpacker, NULL) == ANNAL_OK);
    if (header->base_seq == 0)
        MUST(directory.entry_count == annal__container_pages(header));
    for (size_t i = 0; i < directory.entry_count; i++) {
        const struct snapshot_entry *entry = &directory.entries[i];
        MUST(entry->page < annal__container_pages(header));
        MUST(i == 0 || directory.entries[i - 1].page < entry->page);
        MUST(entry->frame < directory.frame_count);
        const struct snapshot_frame *frame = &directory.frames[entry->frame];
        MUST(entry->at < frame->pages);
        MUST(frame->offset + frame->bytes <= header->body_bytes - len);
        status = annal__container_body_read_frame(unpacker, frame, body + frame->offset, base_pages,
                                                  pages, NULL);
        MUST(frame->first_base + frame->bases <= directory.base_count);
        MUST(status == ANNAL_OK || status == ANNAL_ERR_CORRUPT);
        MUST(annal__container_directory_find(&directory, entry->page) == entry);
    }
    annal__container_body_reader_free(unpacker);
    annal__container_directory_done(&directory);
}

/* Pages made of the input, each beginning with its number. */
static void round_trip(annal_slice input, bool based)
{
    struct snapshot_header header = {.seq = 2, .base_seq = based};
    struct snapshot_directory directory;
    struct body_writer *packer = NULL;
    struct body_reader *unpacker = NULL;
    struct buf body = {0};
    uint32_t count = (uint32_t)(input.len % 20);
    size_t take = input.len < PAGE ? input.len : PAGE;
    static char image[20][SNAPSHOT_PAGE_BYTES];
    header.raw_bytes = count * PAGE;
    MUST(annal__container_body_writer_new(&packer, NULL) == ANNAL_OK);
    for (uint32_t i = 0; i < count; i++) {
        memset(image[i], (int)i, PAGE);
        memcpy(image[i], input.ptr, take);
        image[i][0] = (char)(i + 1);
        const struct packer_base base = {base_pages, i, i + 1};
        const struct packer_base bases[] = {base, base, base};
        bool added = false;
        if (based)
            MUST(annal__container_body_writer_delta(packer, i, image[i], bases,
                                                    1 + i % SNAPSHOT_BASES_MAX, 4096, &added,
                                                    NULL) == ANNAL_OK);
        if (!added)
            MUST(annal__container_body_writer_whole(packer, i, image[i], NULL) == ANNAL_OK);
    }
    MUST(annal__container_body_writer_end(packer, &header, &body, NULL) == ANNAL_OK);
    size_t len = (size_t)header.directory_bytes;
    const annal_slice tail = {body.len == 0 ? "" : body.ptr + (body.len - len), len};
    MUST(annal__container_directory_read(&header, tail, &directory, NULL) == ANNAL_OK);
    MUST(directory.entry_count == count);
    MUST(annal__container_body_reader_new(&unpacker, NULL) == ANNAL_OK);
    for (uint32_t i = 0; i < count; i++) {
        const struct snapshot_entry *entry = annal__container_directory_find(&directory, i);
        MUST(entry != NULL);
        const struct snapshot_frame *frame = &directory.frames[entry->frame];
        MUST(annal__container_body_read_frame(unpacker, frame, body.ptr + frame->offset, base_pages,
                                              pages, NULL) == ANNAL_OK);
        MUST(memcmp(pages + entry->at * PAGE, image[i], PAGE) == 0);
    }
    annal__container_directory_done(&directory);
    annal__container_body_reader_free(unpacker);
    annal__container_body_writer_free(packer);
    annal__buf_done(&body);
}

static void put(char *out, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(value >> 8 * i);
}

/* Let the lengths and hashes of a row be right. */
static void mend(char *row, size_t len)
{
    const char *body = row + SNAPSHOT_HEADER_BYTES;
    size_t body_len = len - SNAPSHOT_HEADER_BYTES;
    memcpy(row, "ANNALSN\n\3\0\0\0\0\0\0\0", 16);
    memset(row + 66, 0, 6); /* of the image: 64 KiB at most, */
    memset(row + 82, 0, 6); /* and of the directory */
    put(row + 72, body_len, 8);
    put(row + 120, annal__hash(body, body_len, 0), 8);
    put(row + SNAPSHOT_HEADER_BYTES - 8, annal__hash(row, SNAPSHOT_HEADER_BYTES - 8, 0), 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    uint8_t how = take_byte(&input);
    struct snapshot_header header;
    char *row = malloc(input.len + 1);
    MUST(row != NULL);
    memcpy(row, input.ptr, input.len);
    if ((how & 1) != 0 && input.len >= SNAPSHOT_HEADER_BYTES)
        mend(row, input.len);
    if (annal__container_header_read((annal_slice){row, input.len}, &header) == NULL) {
        char again[SNAPSHOT_HEADER_BYTES];
        annal__container_header_write(&header, again);
        MUST((row[12] & ~1) != 0 || row[13] != 0 || row[14] != 0 || row[15] != 0 ||
             memcmp(row, again, sizeof again) == 0);
        if (!header.in_file)
            unpack(&header, row + SNAPSHOT_HEADER_BYTES);
    }
    round_trip(input, (how & 2) != 0);
    free(row);
    return 0;
}
