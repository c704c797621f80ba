/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/container.h"
#include "tests/snapshot/pages.h"
#include "tests/support/damage.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)SNAPSHOT_PAGE_BYTES)

static struct snapshot_header example(void)
{
    struct snapshot_header header = {.seq = 1000,
                                     .offset = 0x123456789a,
                                     .h = 0xfedcba9876543210,
                                     .pack_version = 42,
                                     .number = 12,
                                     .stride = 4,
                                     .created_us = -5};
    memcpy(header.file, "00112233445566778899aabbccddeeff", sizeof header.file);
    return header;
}

/* Pages of a state; free() it. */
static annal_slice image_of(size_t pages, uint64_t seed)
{
    char *bytes = malloc(pages * PAGE + 1);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < pages; i++)
        fill_page(bytes + i * PAGE, seed + i);
    return (annal_slice){bytes, pages * PAGE};
}

static void free_slice(annal_slice slice)
{
    free((void *)(uintptr_t)slice.ptr);
}

static void ck_image(annal_slice row, annal_slice base, annal_slice image)
{
    struct buf out = {0};
    ck_assert(unpack_image(row, base, &out));
    ck_assert_uint_eq(out.len, image.len);
    if (image.len > 0)
        ck_assert_mem_eq(out.ptr, image.ptr, image.len);
    annal__buf_done(&out);
}

START_TEST(a_header_reads_back_as_it_was_written)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES + 10] = "";
    header.raw_bytes = 5000;
    header.body_bytes = 10;
    header.directory_bytes = 4;
    header.body_hash = 99;
    header.base_seq = 900;
    header.base_hash = 77;
    annal__container_header_write(&header, row);
    ck_assert_ptr_null(annal__container_header_read((annal_slice){row, sizeof row}, &read));
    char again[SNAPSHOT_HEADER_BYTES];
    annal__container_header_write(&read, again);
    ck_assert_mem_eq(row, again, sizeof again);
    ck_assert_str_eq(read.file, header.file);
    ck_assert_int_eq(read.created_us, -5);
    ck_assert_uint_eq(read.h, header.h);
    ck_assert_uint_eq(read.header_hash, header.header_hash);
    ck_assert_uint_eq(annal__container_pages(&read), 2);
}
END_TEST

START_TEST(a_header_with_a_flipped_bit_is_refused)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES];
    annal__container_header_write(&header, row);
    ck_assert_ptr_null(annal__container_header_read((annal_slice){row, sizeof row}, &read));
    for (size_t bit = 0; bit < 8 * sizeof row; bit++) {
        row[bit / 8] ^= (char)(1 << bit % 8);
        ck_assert_ptr_nonnull(annal__container_header_read((annal_slice){row, sizeof row}, &read));
        row[bit / 8] ^= (char)(1 << bit % 8);
    }
}
END_TEST

START_TEST(a_row_of_another_length_is_refused)
{
    struct snapshot_header header = example(), read;
    char row[SNAPSHOT_HEADER_BYTES + 2] = "";
    header.body_bytes = 1;
    annal__container_header_write(&header, row);
    for (size_t len = 0; len <= sizeof row; len++)
        ck_assert_int_eq(annal__container_header_read((annal_slice){row, len}, &read) == NULL,
                         len == SNAPSHOT_HEADER_BYTES + 1);
}
END_TEST

START_TEST(an_image_unpacks_to_the_same_bytes)
{
    static const size_t pages[] = {0, 1, 2, 3, 4, 5, 100};
    struct snapshot_header header = example();
    annal_slice image = image_of(pages[_i], 1);
    annal_slice row = pack_image(&header, image, (annal_slice){0});
    ck_image(row, (annal_slice){0}, image);
    ck_assert_uint_lt(row.len, SNAPSHOT_HEADER_BYTES + 100 + image.len / 2);
    free_slice(row);
    free_slice(image);
}
END_TEST

/* Bytes that do not compress; the body is large. */
START_TEST(a_large_body_needs_a_file)
{
    struct snapshot_header header = example();
    struct random random = random_init(1);
    annal_slice image = image_of(257, 1);
    char *bytes = (char *)(uintptr_t)image.ptr;
    for (size_t i = 0; i < image.len; i++)
        bytes[i] = (char)random_next(&random);
    annal_slice row = pack_image(&header, image, (annal_slice){0});
    ck_assert(header.in_file);
    ck_assert_uint_lt(row.len, image.len + image.len / 100);
    free_slice(row);
    free_slice(image);
}
END_TEST

START_TEST(an_image_against_a_base_costs_about_its_changed_bytes)
{
    struct snapshot_header header = example();
    enum { PAGES = 700 };
    annal_slice base = image_of(PAGES, 1), image = image_of(PAGES, 1);
    char *bytes = (char *)(uintptr_t)image.ptr;
    for (size_t page = 0; page < PAGES; page += 70) /* ten pages, a hundred bytes each */
        memcpy(bytes + page * PAGE + 1000, bytes + page * PAGE + 3000, 100);
    header.base_seq = 900;
    annal_slice row = pack_image(&header, image, base);
    ck_assert_uint_lt(row.len, SNAPSHOT_HEADER_BYTES + 10 * 200);
    ck_image(row, base, image);

    struct buf out = {0}; /* with a base that differs in one byte, or none, there is no image */
    ((char *)(uintptr_t)base.ptr)[70 * PAGE + 4000] ^= 1;
    ck_assert(!unpack_image(row, base, &out));
    ck_assert(!unpack_image(row, (annal_slice){0}, &out));
    annal__buf_done(&out);
    free_slice(row);
    free_slice(image);
    free_slice(base);
}
END_TEST

START_TEST(an_image_may_be_shorter_or_longer_than_its_base)
{
    struct snapshot_header header = example();
    header.base_seq = 900;
    annal_slice base = image_of(20, 1), image = image_of(_i == 0 ? 3 : 40, 1);
    annal_slice row = pack_image(&header, image, base);
    ck_image(row, base, image);
    free_slice(row);
    free_slice(image);
    free_slice(base);
}
END_TEST

/* What a C reducer saves may begin with any bytes. */
START_TEST(a_base_that_resembles_a_zstd_dictionary_is_not_used_as_one)
{
    struct snapshot_header header = example();
    header.base_seq = 900;
    annal_slice base = image_of(2, 1), image = image_of(2, 1);
    memcpy((char *)(uintptr_t)base.ptr, "\x37\xa4\x30\xec", 4);
    annal_slice row = pack_image(&header, image, base);
    ck_image(row, base, image);
    free_slice(row);
    free_slice(image);
    free_slice(base);
}
END_TEST

static bool is_same_header(struct snapshot_header *a, struct snapshot_header *b)
{
    char left[SNAPSHOT_HEADER_BYTES], right[SNAPSHOT_HEADER_BYTES];
    annal__container_header_write(a, left);
    annal__container_header_write(b, right);
    return memcmp(left, right, sizeof left) == 0;
}

/*
 * _i 0: stored whole, 1: against a base. The body alone is what the file of a large one holds. All
 * is found when it is opened: header and body are hashed.
 */
START_TEST(a_row_with_any_damage_is_refused)
{
    struct snapshot_header header = example(), found;
    struct buf out = {0};
    struct damage damage;
    annal_slice base = _i == 0 ? (annal_slice){0} : image_of(2, 1), image = image_of(3, 1);
    ((char *)(uintptr_t)image.ptr)[5000] ^= 1;
    header.base_seq = _i == 0 ? 0 : 900;
    annal_slice row = pack_image(&header, image, base);
    damage_init(&damage, row.ptr, row.len);
    while (damage_next(&damage)) {
        annal_slice damaged = {damage.bytes, damage.len};
        annal__buf_clear(&out);
        ck_assert_msg(annal__container_header_read(damaged, &found) != NULL ||
                          is_same_header(&header, &found),
                      "%s: another header", damage.what);
        ck_assert_msg(!unpack_image(damaged, base, &out), "%s: taken", damage.what);
    }
    damage_done(&damage, _i == 0 ? "snapshot" : "snapshot against a base");
    annal__buf_done(&out);
    free_slice(row);
    free_slice(image);
    free_slice(base);
}
END_TEST

/* Behind the hash, too: every flipped bit of a frame or directory gives the page, or none. */
START_TEST(a_frame_damaged_after_opening_gives_its_pages_or_nothing)
{
    struct snapshot_header header = example();
    struct snapshot_directory directory = {0};
    struct body_reader *unpacker = NULL;
    struct damage damage;
    annal_slice base = image_of(1, 1), image = image_of(1, 1);
    ((char *)(uintptr_t)image.ptr)[2000] ^= 1;
    header.base_seq = _i == 0 ? 0 : 900;
    annal_slice row = pack_image(&header, image, _i == 0 ? (annal_slice){0} : base);
    const char *body = row.ptr + SNAPSHOT_HEADER_BYTES;
    const size_t frames = (size_t)(header.body_bytes - header.directory_bytes);
    annal_slice list = {body + frames, (size_t)header.directory_bytes};
    ck_assert_int_eq(annal__container_directory_read(&header, list, &directory, NULL), 0);
    ck_assert_uint_eq(directory.frame_count, 1);
    ck_assert_int_eq(directory.frames[0].bases, _i);
    ck_assert_int_eq(annal__container_body_reader_new(&unpacker, NULL), 0);
    damage_init(&damage, body, frames);
    while (damage_next(&damage)) {
        char page[PAGE];
        if (damage.len < frames)
            continue; /* a file that is cut short is found when it is read */
        annal_status status = annal__container_body_read_frame(
            unpacker, directory.frames, damage.bytes, _i == 0 ? NULL : base.ptr, page, NULL);
        ck_assert_msg(status == ANNAL_ERR_CORRUPT ||
                          (status == 0 && memcmp(page, image.ptr, PAGE) == 0),
                      "%s: another page", damage.what);
    }
    damage_done(&damage, "frame");
    annal__container_body_reader_free(unpacker);
    annal__container_directory_done(&directory);
    free_slice(row);
    free_slice(image);
    free_slice(base);
}
END_TEST

/* A page that was split off has rows that stood in two others. */
START_TEST(a_page_against_several_bases_costs_only_its_new_bytes)
{
    struct snapshot_header header = example();
    struct snapshot_directory directory = {0};
    struct body_writer *packer = NULL;
    struct body_reader *unpacker = NULL;
    struct buf body = {0};
    bool added = false;
    annal_slice base = image_of(2, 1);
    char page[PAGE], out[PAGE], prefix[2 * PAGE];
    memcpy(page, base.ptr + 1000, PAGE); /* the end of one page and the beginning of the next */
    const struct packer_base bases[] = {{base.ptr + PAGE, 8, 3}, {base.ptr, 7, 1}};
    header.base_seq = 900;
    header.raw_bytes = 10 * PAGE;
    ck_assert_int_eq(annal__container_body_writer_new(&packer, NULL), 0);
    ck_assert_int_eq(
        annal__container_body_writer_delta(packer, 9, page, bases, 2, 100, &added, NULL), 0);
    ck_assert(added);
    const struct packer_base dear[] = {{base.ptr, 7, SNAPSHOT_PACK_COST}};
    ck_assert_int_eq(
        annal__container_body_writer_delta(packer, 2, page, dear, 1, 4096, &added, NULL), 0);
    ck_assert(!added);
    ck_assert_int_eq(annal__container_body_writer_end(packer, &header, &body, NULL), 0);
    const size_t len = (size_t)header.directory_bytes;
    ck_assert_int_eq(
        annal__container_directory_read(&header, (annal_slice){body.ptr + (body.len - len), len},
                                        &directory, NULL),
        0);
    ck_assert_uint_eq(directory.entry_count, 1);
    const struct snapshot_frame *frame = &directory.frames[0];
    ck_assert_int_eq(frame->cost, 5);
    ck_assert_int_eq(frame->bases, 2);
    for (unsigned i = 0; i < 2; i++)
        memcpy(prefix + i * PAGE, base.ptr + (directory.bases[i] - 7) * PAGE, PAGE);
    ck_assert_int_eq(annal__container_body_reader_new(&unpacker, NULL), 0);
    ck_assert_int_eq(annal__container_body_read_frame(unpacker, frame, body.ptr, prefix, out, NULL),
                     0);
    ck_assert_mem_eq(out, page, PAGE);
    annal__container_body_reader_free(unpacker);
    annal__container_directory_done(&directory);
    annal__container_body_writer_free(packer);
    annal__buf_done(&body);
    free_slice(base);
}
END_TEST

/* What is 3 * 4 + 2 = 32 in base 4 is stored against 31, that against 30, that against 20, … */
START_TEST(the_base_of_a_number_has_its_last_digit_lowered)
{
    static const uint64_t bases[] = {0, 0, 1, 2, 0, 4, 5, 6, 4, 8, 9, 10, 8, 12, 13, 14, 0, 16};
    for (uint64_t number = 0; number < sizeof bases / sizeof *bases; number++)
        ck_assert_uint_eq(annal__container_base_number(number), bases[number]);
    for (uint64_t number = 1; number < 100000; number++) {
        unsigned steps = 0;
        for (uint64_t at = number; at != 0; at = annal__container_base_number(at))
            steps++;
        ck_assert_uint_le(steps, 27);
        for (uint64_t stride = 1; number % stride == 0; stride *= 4)
            ck_assert_uint_eq(annal__container_base_number(number) % stride, 0);
    }
}
END_TEST

Suite *suite_container(void)
{
    Suite *suite = suite_create("container");
    TCase *tc = suite_case(suite, "container", NULL, NULL);
    tcase_add_test(tc, a_header_reads_back_as_it_was_written);
    tcase_add_test(tc, a_header_with_a_flipped_bit_is_refused);
    tcase_add_test(tc, a_row_of_another_length_is_refused);
    tcase_add_loop_test(tc, an_image_unpacks_to_the_same_bytes, 0, 7);
    tcase_add_test(tc, a_large_body_needs_a_file);
    tcase_add_test(tc, an_image_against_a_base_costs_about_its_changed_bytes);
    tcase_add_loop_test(tc, an_image_may_be_shorter_or_longer_than_its_base, 0, 2);
    tcase_add_test(tc, a_base_that_resembles_a_zstd_dictionary_is_not_used_as_one);
    tcase_add_loop_test(tc, a_row_with_any_damage_is_refused, 0, 2);
    tcase_add_loop_test(tc, a_frame_damaged_after_opening_gives_its_pages_or_nothing, 0, 2);
    tcase_add_test(tc, a_page_against_several_bases_costs_only_its_new_bytes);
    tcase_add_test(tc, the_base_of_a_number_has_its_last_digit_lowered);
    return suite;
}
