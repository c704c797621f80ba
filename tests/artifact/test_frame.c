/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/artifact/artifact_frame.h"
#include "tests/artifact/fixture.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path;

static void setup(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "frame.zst");
}

struct bytes {
    char *ptr;
    size_t len, at;
    size_t step; /* most bytes of one read */
};

static int64_t give(void *arg, char *out, size_t room, annal_error *err)
{
    (void)err;
    struct bytes *bytes = arg;
    size_t len = bytes->len - bytes->at;
    if (len > room)
        len = room;
    if (bytes->step > 0 && len > bytes->step)
        len = bytes->step;
    memcpy(out, bytes->ptr + bytes->at, len);
    bytes->at += len;
    return (int64_t)len;
}

static int compare(void *arg, annal_slice piece)
{
    struct bytes *bytes = arg;
    ck_assert_uint_le(bytes->at + piece.len, bytes->len);
    ck_assert_mem_eq(bytes->ptr + bytes->at, piece.ptr, piece.len);
    bytes->at += piece.len;
    return 0;
}

static annal_status unpack(struct bytes *bytes, struct frame_result *out)
{
    int fd = open(path, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    annal_status status = annal__artifact_unpack(&annal__system_io, fd, path,
                                                 bytes == NULL ? NULL : compare, bytes, out, NULL);
    close(fd);
    return status;
}

static void check_one(struct bytes *bytes)
{
    struct frame_result written, read;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    bytes->at = 0;
    ck_ok(annal__artifact_write(&annal__system_io, fd, path, give, bytes, &written, err));
    close(fd);
    ck_assert_uint_eq(written.bytes, bytes->len);
    bytes->at = 0;
    ck_assert_int_eq(unpack(bytes, &read), ANNAL_OK);
    ck_assert_uint_eq(bytes->at, bytes->len);
    ck_assert_mem_eq(&written, &read, sizeof written);
}

/* Around the size of a piece, compressible and not, in one go and in dribs. */
START_TEST(content_of_any_size_survives_compression)
{
    static const size_t sizes[] = {0, 1, 511, 131071, 131072, 131073, 262144, 1000003};
    struct random random = {.state = 7};
    char *space = malloc(1000003);
    ck_assert_ptr_nonnull(space);
    for (int noise = 0; noise < 2; noise++) {
        for (size_t i = 0; i < 1000003; i++)
            space[i] = noise ? (char)random_next(&random) : 'a';
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            check_one(&(struct bytes){.ptr = space, .len = sizes[i]});
            check_one(&(struct bytes){.ptr = space, .len = sizes[i], .step = 100000});
        }
    }
    free(space);
}
END_TEST

START_TEST(every_cut_and_every_flipped_byte_is_found)
{
    struct frame_result result;
    char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i % 23);
    check_one(&(struct bytes){.ptr = text, .len = sizeof text});
    uint8_t was[SHA256_BYTES];
    ck_assert_int_eq(unpack(NULL, &result), ANNAL_OK);
    memcpy(was, result.sha256, sizeof was);
    size_t len;
    char *bytes = file_read(path, &len);
    for (size_t i = 0; i < len; i++) {
        file_write(path, bytes, i);
        ck_assert_int_eq(unpack(NULL, &result), ANNAL_ERR_CORRUPT);
        bytes[i] ^= 4;
        file_write(path, bytes, len);
        annal_status status = unpack(NULL, &result);
        ck_assert_msg(status == ANNAL_ERR_CORRUPT ||
                          (status == ANNAL_OK && memcmp(was, result.sha256, sizeof was) == 0),
                      "byte %zu", i); /* a flag of the frame's head may change nothing */
        bytes[i] ^= 4;
    }
    free(bytes);
}
END_TEST

START_TEST(bytes_after_the_frame_are_damage)
{
    struct frame_result result;
    char text[] = "hello";
    check_one(&(struct bytes){.ptr = text, .len = 5});
    size_t len;
    char *bytes = file_read(path, &len);
    bytes = realloc(bytes, len + 1);
    bytes[len] = 0;
    file_write(path, bytes, len + 1);
    ck_assert_int_eq(unpack(NULL, &result), ANNAL_ERR_CORRUPT);
    free(bytes);
}
END_TEST

Suite *suite_frame(void)
{
    Suite *suite = suite_create("frame");
    TCase *tcase = suite_case(suite, "frame", setup, tmpdir_teardown);
    tcase_add_test(tcase, content_of_any_size_survives_compression);
    tcase_add_test(tcase, every_cut_and_every_flipped_byte_is_found);
    tcase_add_test(tcase, bytes_after_the_frame_are_damage);
    return suite;
}
