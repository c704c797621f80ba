/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/snapshot/pages.h"

#include "journal/base/hash.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)SNAPSHOT_PAGE_BYTES)

void fill_page(char *page, uint64_t seed)
{
    uint64_t state = seed;
    for (size_t at = 0; at < PAGE;) {
        char text[80];
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        int len = snprintf(text, sizeof text, "turn %u of session s, tokens %u;",
                           (unsigned)(state >> 40) % 100000, (unsigned)(state >> 32) % 1000);
        size_t take = (size_t)len < PAGE - at ? (size_t)len : PAGE - at;
        memcpy(page + at, text, take);
        at += take;
    }
}

annal_slice pack_image(struct snapshot_header *header, annal_slice image, annal_slice base)
{
    struct body_writer *packer = NULL;
    struct buf body = {0};
    ck_assert_int_eq(annal__container_body_writer_new(&packer, NULL), 0);
    header->raw_bytes = image.len;
    for (size_t at = 0; at < image.len; at += PAGE) {
        uint32_t page = (uint32_t)(at / PAGE);
        const struct packer_base own = {base.ptr + at, page, 1};
        bool has_own = at < base.len, added = false;
        if (has_own && memcmp(image.ptr + at, own.bytes, PAGE) == 0)
            continue;
        if (has_own)
            ck_assert_int_eq(annal__container_body_writer_delta(packer, page, image.ptr + at, &own,
                                                                1, 1400, &added, NULL),
                             0);
        if (!added)
            ck_assert_int_eq(annal__container_body_writer_whole(packer, page, image.ptr + at, NULL),
                             0);
    }
    ck_assert_int_eq(annal__container_body_writer_end(packer, header, &body, NULL), 0);
    annal__container_body_writer_free(packer);
    char *row = malloc(SNAPSHOT_HEADER_BYTES + body.len);
    ck_assert_ptr_nonnull(row);
    annal__container_header_write(header, row);
    if (body.len > 0)
        memcpy(row + SNAPSHOT_HEADER_BYTES, body.ptr, body.len);
    annal_slice slice = {row, SNAPSHOT_HEADER_BYTES + body.len};
    annal__buf_done(&body);
    return slice;
}

static bool unpack_body(const struct snapshot_header *header, annal_slice body, char *image,
                        annal_slice base)
{
    struct snapshot_directory directory = {0};
    struct body_reader *unpacker = NULL;
    const size_t directory_bytes = (size_t)header->directory_bytes;
    bool good = annal__hash(body.ptr, body.len, 0) == header->body_hash &&
                annal__container_directory_read(
                    header, (annal_slice){body.ptr + (body.len - directory_bytes), directory_bytes},
                    &directory, NULL) >= 0;
    ck_assert_int_eq(annal__container_body_reader_new(&unpacker, NULL), 0);
    for (size_t i = 0; good && i < directory.entry_count; i++) {
        static char pages[SNAPSHOT_BLOCK_PAGES * PAGE];
        const struct snapshot_entry *entry = &directory.entries[i];
        const struct snapshot_frame *frame = &directory.frames[entry->frame];
        size_t at = entry->page * PAGE;
        bool over = frame->bases > 0;
        good = (!over || at < base.len) &&
               annal__container_body_read_frame(unpacker, frame, body.ptr + frame->offset,
                                                over ? base.ptr + at : NULL, pages, NULL) >= 0;
        if (good)
            memcpy(image + at, pages + entry->at * PAGE, PAGE);
    }
    annal__container_body_reader_free(unpacker);
    annal__container_directory_done(&directory);
    return good;
}

bool unpack_image(annal_slice row, annal_slice base, struct buf *out)
{
    struct snapshot_header header;
    if (annal__container_header_read(row, &header) != NULL)
        return false;
    size_t len = (size_t)annal__container_pages(&header) * PAGE;
    size_t start = out->len;
    ck_assert_int_eq(annal__buf_append_zeros(out, len), 0);
    if (base.len > 0 && len > 0)
        memcpy(out->ptr + start, base.ptr, base.len < len ? base.len : len);
    annal_slice body = {row.ptr + SNAPSHOT_HEADER_BYTES, row.len - SNAPSHOT_HEADER_BYTES};
    return unpack_body(&header, body, out->ptr + start, base);
}
