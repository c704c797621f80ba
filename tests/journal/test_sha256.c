/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/sha256.h"

#include "tests/support/runner.h"

#include <string.h>

static const char *hash_of(const char *text, size_t repeat)
{
    static char hex[SHA256_TEXT_BYTES];
    uint8_t out[SHA256_BYTES];
    struct sha256 *sha256 = annal__sha256_begin();
    ck_assert_ptr_nonnull(sha256);
    for (size_t i = 0; i < repeat; i++)
        annal__sha256_add(sha256, text, strlen(text));
    annal__sha256_end(sha256, out);
    annal__sha256_text(out, hex);
    return hex;
}

/* The examples of FIPS 180-2, appendix B. */
START_TEST(the_hash_matches_the_examples_of_the_standard)
{
    ck_assert_str_eq(hash_of("abc", 1),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_str_eq(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1),
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    ck_assert_str_eq(hash_of("a", 1000000),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    ck_assert_str_eq(hash_of("", 0),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

Suite *suite_sha256(void)
{
    Suite *suite = suite_create("sha256");
    TCase *tcase = suite_case(suite, "sha256", NULL, NULL);
    tcase_add_test(tcase, the_hash_matches_the_examples_of_the_standard);
    return suite;
}
