/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of logs in bundles. */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "tests/support/runner.h"
#include "tests/tools/cli.h"
#include "tools/cli/command.h"
#include "tools/export/staging_sources.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *in_dir(const char *name, int slot)
{
    static char paths[4][600];
    snprintf(paths[slot], sizeof paths[slot], "%s/%s", cli.dir.path, name);
    return paths[slot];
}

static void add_lines(struct buf *log, const char *session, int from, int until)
{
    for (int i = from; i < until; i++)
        ck_assert_int_ge(
            annal__buf_printf(
                log,
                "{\"type\":\"user\",\"uuid\":\"u%d\",\"sessionId\":\"%s\",\"timestamp\":"
                "\"2026-03-01T10:00:%02d.000Z\",\"message\":{\"role\":\"user\",\"content\":"
                "\"number %016" PRIx64 "\"}}\n",
                i, session, i % 60, annal__hash(&i, sizeof i, 7)),
            0);
}

static void import(const struct buf *log)
{
    const char *path = in_dir("log.jsonl", 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    ck_assert_int_eq(write(fd, log->ptr, log->len), (ssize_t)log->len);
    close(fd);
    DONE(&cli, "import", "claude-code", path);
}

static void assert_file_is(const char *path, const struct buf *log)
{
    size_t len;
    char *bytes = file_read(path, &len);
    ck_assert_uint_eq(len, log->len);
    ck_assert_int_eq(memcmp(bytes, log->ptr, len), 0);
    free(bytes);
}

START_TEST(a_bundle_has_the_copies_of_logs_with_all_generations)
{
    struct buf first = {0}, second = {0};
    const char *bundle = in_dir("b.annal", 1), *other = in_dir("other", 2), *to = in_dir("to", 3);
    add_lines(&first, "s-1", 0, 200);
    add_lines(&second, "s-1", 0, 120);
    add_lines(&second, "s-2", 200, 210);
    import(&first);
    import(&second);
    DONE(&cli, "export", "--format", "bundle", "--to", bundle);
    DONE(&cli, "import", "bundle", bundle, "--store", other);
    ck_assert_msg(strstr(cli.out, "; 2 files of copies of logs\n") != NULL, "%s", cli.out);
    DONE(&cli, "verify", "--store", other);
    ck_assert_ptr_nonnull(strstr(cli.out, "copies of logs: 2, checked"));
    DONE(&cli, "source", "ls", "--store", other, "--json");
    ck_assert_ptr_nonnull(strstr(cli.out, "\"state\":\"elsewhere\""));
    ck_assert_int_eq(unlink(in_dir("log.jsonl", 0)), 0);
    CLI(&cli, NULL, "source", "restore", "s-1", "--store", other);
    cli_assert_refused(&cli, EXIT_REFUSED, "came with a bundle, from another host; --to FILE");
    ck_assert_int_ne(access(in_dir("log.jsonl", 0), F_OK), 0);
    DONE(&cli, "source", "restore", "s-2", "--to", to, "--store", other);
    assert_file_is(to, &second);
    DONE(&cli, "source", "restore", "s-1", "--generation", "1", "--to", to, "--force", "--store",
         other);
    assert_file_is(to, &first);
    /* what the store has stays */
    DONE(&cli, "import", "bundle", bundle, "--store", other);
    ck_assert_msg(strstr(cli.out, "2 of which are left out") != NULL, "%s", cli.out);
    /* and a bundle of that store has them, too */
    ck_assert_int_eq(unlink(bundle), 0);
    DONE(&cli, "export", "--format", "bundle", "--to", bundle, "--store", other);
    DONE(&cli, "delete", "s-2", "--store", other);
    CLI(&cli, NULL, "source", "ls", "s-1", "--store", other);
    cli_assert_refused(&cli, EXIT_REFUSED, "no copy");
    DONE(&cli, "delete", "s-1", "--store", other);
    DONE(&cli, "import", "bundle", bundle, "--store", other);
    DONE(&cli, "source", "restore", "s-1", "--to", to, "--force", "--store", other);
    assert_file_is(to, &second);
    /* a log of this host at that path is the user's own again */
    import(&second);
    DONE(&cli, "source", "ls", "--json");
    ck_assert_ptr_null(strstr(cli.out, "elsewhere"));
    annal__buf_done(&first);
    annal__buf_done(&second);
}
END_TEST

START_TEST(a_bundle_leaves_out_a_log_with_other_sessions)
{
    struct buf log = {0};
    const char *bundle = in_dir("b.annal", 1), *other = in_dir("other", 2);
    add_lines(&log, "s-1", 0, 5);
    add_lines(&log, "s-2", 5, 9);
    import(&log);
    CLI(&cli, NULL, "export", "s-1", "--format", "bundle", "--to", bundle);
    ck_assert_int_eq(cli.exit_status, EXIT_DONE);
    ck_assert_msg(strstr(cli.err, "1 file of copies of logs is left out") != NULL, "%s", cli.err);
    DONE(&cli, "import", "bundle", bundle, "--store", other);
    DONE(&cli, "source", "ls", "--store", other, "--json");
    ck_assert_str_eq(cli.out, "");
    annal__buf_done(&log);
}
END_TEST

/* ---- Copies from outside ---- */

/* Stage the copies of this test's store as a bundle would, and prove them. */
static annal_status prove(const char *session, const char *rename_to, int flip, uint64_t most,
                          annal_error *err)
{
    char command[1500];
    struct staging staging = {.from = "the bundle", .err = err, .sources_max = most};
    struct bundle_session *added = bundle_add_session(&staging.bundle);
    snprintf(added->session, sizeof added->session, "%s", session);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s' && cp -r '%s/sources' '%s/'",
             in_dir("stage", 0), in_dir("stage", 1), cli.store, in_dir("stage", 2));
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "cd '%s/sources' && ls | sort", in_dir("stage", 0));
    FILE *list = popen(command, "r");
    for (char line[SOURCES_NAME_BYTES]; fgets(line, sizeof line, list) != NULL;) {
        struct bundle_source *source = bundle_add_source(&staging.bundle);
        line[strcspn(line, "\n")] = '\0';
        snprintf(source->name, sizeof source->name, "%s", line);
    }
    pclose(list);
    ck_assert_uint_eq(staging.bundle.source_count, 2);
    struct bundle_source *newest = &staging.bundle.sources[0];
    char path[900], to[900];
    snprintf(path, sizeof path, "%s/sources/%s", in_dir("stage", 0), newest->name);
    if (rename_to != NULL) {
        snprintf(to, sizeof to, "%s/sources/%s", in_dir("stage", 0), rename_to);
        ck_assert_int_eq(rename(path, to), 0);
        snprintf(newest->name, sizeof newest->name, "%s", rename_to);
    } else if (flip >= 0) {
        size_t len;
        char *bytes = file_read(path, &len);
        bytes[(size_t)flip % len] ^= 1;
        int fd = open(path, O_WRONLY | O_TRUNC);
        ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
        close(fd);
        free(bytes);
    }
    staging.stage_lock = open(in_dir("stage", 0), O_RDONLY | O_DIRECTORY);
    annal_status status = staging_sources_prove(&staging);
    close(staging.stage_lock);
    bundle_done(&staging.bundle);
    return status;
}

START_TEST(a_copy_from_outside_is_refused_unless_it_fits_the_bundle)
{
    struct buf log = {0};
    annal_error err = {0};
    const uint64_t enough = 1 << 20;
    int refused = 0;
    add_lines(&log, "s-1", 0, 60);
    import(&log);
    log.len = log.len / 2;
    import(&log);
    ck_assert_msg(prove("s-1", NULL, -1, enough, &err) == ANNAL_OK, "%s", err.message);
    ck_assert_int_eq(prove("s-2", NULL, -1, enough, &err), ANNAL_ERR_CORRUPT);
    ck_assert_int_eq(prove("s-1", NULL, -1, log.len, &err), ANNAL_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(err.message, "unpack to more than"));
    ck_assert_int_eq(prove("s-1", "s-1.0000000000000000", -1, enough, &err), ANNAL_ERR_CORRUPT);
    for (int at = 0; at < 400; at += 7)
        refused += prove("s-1", NULL, at, enough, &err) != ANNAL_OK;
    ck_assert_int_ge(refused, 56); /* a bit of a zstd frame may change nothing */
    annal__buf_done(&log);
}
END_TEST

static const char *const manifests[] = {
    "../s-1.0123456789abcdef", "s-1", "s-1.0123456789abcde",  "s-1.0123456789ABCDEF",
    "s-1.0123456789abcdef.0",  "",    "s-2.0123456789abcdef", "s-1.0123456789abcdef.01"};
enum { MANIFESTS = sizeof manifests / sizeof *manifests };

START_TEST(a_manifest_with_another_name_of_a_copy_is_refused)
{
    struct bundle bundle = {0}, again = {0};
    struct buf text = {0};
    annal_error err = {0};
    struct bundle_session *session = bundle_add_session(&bundle);
    struct bundle_source *source = bundle_add_source(&bundle);
    snprintf(session->session, sizeof session->session, "s-1");
    memset(session->sha256, '0', 64);
    memset(session->file, '0', 32);
    session->last_seq = 1;
    memset(source->sha256, '0', 64);
    snprintf(source->name, sizeof source->name, "s-1.0123456789abcdef");
    ck_assert_int_eq(bundle_manifest_write(&bundle, &text, &err), ANNAL_OK);
    ck_assert_msg(bundle_manifest_read(annal__buf_slice(&text), &again, &err) == ANNAL_OK, "%s",
                  err.message);
    ck_assert_uint_eq(again.source_count, 1);
    bundle_done(&again);
    annal__buf_clear(&text);
    snprintf(source->name, sizeof source->name, "%s", manifests[_i]);
    ck_assert_int_eq(bundle_manifest_write(&bundle, &text, &err), ANNAL_OK);
    ck_assert_int_eq(bundle_manifest_read(annal__buf_slice(&text), &again, &err),
                     ANNAL_ERR_CORRUPT);
    bundle_done(&again);
    bundle_done(&bundle);
    annal__buf_done(&text);
}
END_TEST

Suite *suite_source_bundle(void)
{
    Suite *suite = suite_create("source_bundle");
    TCase *tc = suite_case(suite, "source_bundle", cli_setup, cli_teardown);
    tcase_add_test(tc, a_bundle_has_the_copies_of_logs_with_all_generations);
    tcase_add_test(tc, a_bundle_leaves_out_a_log_with_other_sessions);
    tcase_add_test(tc, a_copy_from_outside_is_refused_unless_it_fits_the_bundle);
    tcase_add_loop_test(tc, a_manifest_with_another_name_of_a_copy_is_refused, 0, MANIFESTS);
    return suite;
}
