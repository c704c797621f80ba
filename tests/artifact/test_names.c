/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/artifact/artifact_names.h"
#include "journal/sys/seam.h"
#include "tests/artifact/fixture.h"
#include "tests/support/runner.h"

#include <string.h>
#include <sys/file.h>

START_TEST(a_hash_is_64_hex_digits_of_lower_case)
{
    char text[ANNAL_SHA256_TEXT_BYTES];
    uint8_t hash[SHA256_BYTES], again[SHA256_BYTES];
    for (size_t i = 0; i < sizeof hash; i++)
        hash[i] = (uint8_t)(i * 9);
    annal__sha256_text(hash, text);
    ck_assert(annal__artifact_read_sha256(text, 64, again));
    ck_assert_mem_eq(hash, again, sizeof hash);
    ck_assert(!annal__artifact_read_sha256(text, 63, again));
    text[5] = 'A';
    ck_assert(!annal__artifact_read_sha256(text, 64, again));
    text[5] = 'g';
    ck_assert(!annal__artifact_read_sha256(text, 64, again));
}
END_TEST

START_TEST(puts_share_the_lock_and_a_removal_holds_it_alone)
{
    const struct io *io = annal__store_io(f.store);
    int one = -1, two = -1;
    ck_ok(annal__artifact_lock(f.store, LOCK_SH, &one, err));
    ck_ok(annal__artifact_lock(f.store, LOCK_SH, &two, err));
    io->close(io->arg, one);
    io->close(io->arg, two);
    ck_ok(annal__artifact_lock(f.store, LOCK_EX, &one, err));
    io->close(io->arg, one);
}
END_TEST

START_TEST(a_missing_directory_has_no_names)
{
    struct artifact_names names = {0};
    ck_ok(annal__artifact_names(f.store, tmpdir_path(&f.dir, "store/artifacts/s"), &names, err));
    ck_assert_uint_eq(names.count, 0);
}
END_TEST

Suite *suite_names(void)
{
    Suite *suite = suite_create("names");
    TCase *tcase = suite_case(suite, "names", fixture_setup, fixture_teardown);
    tcase_add_test(tcase, a_hash_is_64_hex_digits_of_lower_case);
    tcase_add_test(tcase, puts_share_the_lock_and_a_removal_holds_it_alone);
    tcase_add_test(tcase, a_missing_directory_has_no_names);
    return suite;
}
