/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/artifact.h"
#include "tests/artifact/fixture.h"
#include "tests/support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[1000];

static void setup(void)
{
    said[0] = '\0';
    fixture_setup();
}

static void note_damage(void *arg, const annal_artifact_info *info, const char *what)
{
    (void)arg;
    size_t len = strlen(said);
    snprintf(said + len, sizeof said - len, "%s/%.8s: %s\n", info->session, info->sha256, what);
}

START_TEST(verification_reports_damaged_artifacts_and_counts_the_others)
{
    annal_artifact_verify_result result;
    fixture_put(&f, "s", "good");
    annal_artifact_info damaged = *fixture_put(&f, "s", "damaged");
    fixture_put(&f, "t", "also good");
    char *path = fixture_file(&f, &damaged);
    ck_assert_int_eq(truncate(path, 5), 0);
    free(path);
    ck_ok(annal_artifact_verify(f.store, note_damage, NULL, &result, err));
    ck_assert_uint_eq(result.artifacts, 3);
    ck_assert_uint_eq(result.damaged, 1);
    ck_assert_uint_eq(result.bytes, strlen("good") + strlen("also good"));
    ck_assert_ptr_nonnull(strstr(said, "the file is cut short"));
    ck_assert_uint_eq(strlen(strchr(said, '\n')), 1);
}
END_TEST

static int note_missing(void *arg, annal_slice path)
{
    (void)arg;
    size_t len = strlen(said);
    snprintf(said + len, sizeof said - len, "%.*s\n", ANNAL_FMT(path));
    return 0;
}

static const char *missing_of(const char *data)
{
    said[0] = '\0';
    ck_ok(annal__artifact_check_data(f.store, annal_slice_of(data), note_missing, NULL, err));
    return said;
}

#define NONE "artifacts/s/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.zst"

START_TEST(only_a_reference_to_an_absent_artifact_is_reported_as_missing)
{
    char data[300];
    annal_artifact_info info = *fixture_put(&f, "s", "there");
    snprintf(data, sizeof data, "{\"path\":\"artifacts/s/%s.zst\"}", info.sha256);
    ck_assert_str_eq(missing_of(data), "");
    ck_assert_str_eq(missing_of("{\"a\":[{\"path\":\"" NONE "\"},{\"path\":\"" NONE "\"}]}"),
                     NONE "\n" NONE "\n");
    ck_assert_str_eq(missing_of("{\"text\":\"{\\\"path\\\":\\\"" NONE "\\\"}\"}"), "");
    ck_assert_str_eq(missing_of("{\"path\":\"" NONE ".bak\"}"), "");
    ck_assert_str_eq(missing_of("{\"path\":\"artifacts/s/ba78.zst\"}"), "");
    ck_assert_str_eq(missing_of("{\"path\":\"artifacts/"), "");
    ck_assert_str_eq(missing_of("{\"path\":\""), "");
    ck_assert_str_eq(missing_of("{\"other\":\"" NONE "\"}"), "");
    ck_assert_str_eq(missing_of(""), "");
}
END_TEST

Suite *suite_verify(void)
{
    Suite *suite = suite_create("verify");
    TCase *tcase = suite_case(suite, "verify", setup, fixture_teardown);
    tcase_add_test(tcase, verification_reports_damaged_artifacts_and_counts_the_others);
    tcase_add_test(tcase, only_a_reference_to_an_absent_artifact_is_reported_as_missing);
    return suite;
}
