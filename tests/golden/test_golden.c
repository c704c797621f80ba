/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores that earlier libraries wrote before they were killed. The test reads each directory beside
 * this file that has a store and its expected content; README.md says how to create such a
 * directory.
 */
#include "tests/snapshot/pages.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MADE_MAX 32

/* The directories, in order of name. */
static size_t find_made(char made[MADE_MAX][256])
{
    struct dirent **names = NULL;
    size_t count = 0;
    int found = scandir(ANNAL_GOLDEN, &names, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s/expected", ANNAL_GOLDEN, names[i]->d_name);
        if (names[i]->d_name[0] == 'v' && access(path, F_OK) == 0 && count < MADE_MAX)
            snprintf(made[count++], sizeof made[0], "%s", names[i]->d_name);
        free(names[i]);
    }
    free(names);
    ck_assert_uint_gt(count, 0);
    return count;
}

/* A copy that may be written. */
static void copy_made(const char *made, const char *path)
{
    char from[1024], to[1024];
    size_t len;
    snprintf(from, sizeof from, "%s/%s/store", ANNAL_GOLDEN, made);
    copy_store(from, path);
    snprintf(to, sizeof to, "%s/locks", path);
    ck_assert_int_eq(mkdir(to, 0700), 0);
    snprintf(from, sizeof from, "%s/%s/store/locks/version", ANNAL_GOLDEN, made);
    snprintf(to, sizeof to, "%s/locks/version", path);
    char *version = file_read(from, &len);
    file_write(to, version, len);
    free(version);
}

static void print_text(struct buf *out, const char *name, annal_slice text)
{
    if (text.len > 0)
        ck_assert_int_eq(annal__buf_printf(out, ",\"%s\":\"%.*s\"", name, ANNAL_FMT(text)),
                         ANNAL_OK);
}

/* As make.c writes it. */
static void print_event(void *arg, const annal_event *event)
{
    struct buf *out = arg;
    ck_assert_int_eq(
        annal__buf_printf(out, "{\"seq\":%" PRIu64 ",\"ts_us\":%" PRId64, event->seq, event->ts_us),
        ANNAL_OK);
    print_text(out, "type", event->type);
    print_text(out, "id", event->id);
    print_text(out, "cause", event->cause);
    ck_assert_int_eq(annal__buf_printf(out, ",\"data\":%.*s}\n", ANNAL_FMT(event->data)), ANNAL_OK);
}

static uint64_t ck_session(annal_store *store, const char *made, const char *session)
{
    char path[1024];
    size_t len;
    struct buf text = {0};
    snprintf(path, sizeof path, "%s/%s/expected/%s.jsonl", ANNAL_GOLDEN, made, session);
    char *expected = file_read(path, &len);
    uint64_t last = read_session(store, session, print_event, &text);
    ck_assert_msg(text.len == len && memcmp(text.ptr, expected, len) == 0,
                  "%s, session %s:\n%.*s\nis not\n%s", made, session, (int)text.len, text.ptr,
                  expected);
    annal__buf_done(&text);
    free(expected);
    return last;
}

struct sessions {
    annal_store *store;
    const char *made;
    size_t count;
};

static int ck_one(void *arg, annal_slice id, uint64_t bytes)
{
    struct sessions *sessions = arg;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_verify_result result;
    uint64_t seq;
    (void)bytes;
    snprintf(session, sizeof session, "%.*s", ANNAL_FMT(id));
    uint64_t last = ck_session(sessions->store, sessions->made, session);
    ck_ok(append_number(sessions->store, session, 1, 10, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(seq, last + 1);
    ck_ok(annal_session_verify(sessions->store, id, NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 0);
    ck_assert_uint_eq(result.last_seq, seq);
    sessions->count++;
    return 0;
}

static unsigned count_expected(const char *made)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s/expected", ANNAL_GOLDEN, made);
    return count_names(path, "");
}

START_TEST(a_store_of_every_version_is_recovered_read_and_extended)
{
    char made[MADE_MAX][256];
    size_t count = find_made(made);
    for (size_t i = 0; i < count; i++) {
        const char *path = tmpdir_path(&dir, "store");
        copy_made(made[i], path);
        annal_store *store = store_open(path);
        struct sessions sessions = {.store = store, .made = made[i]};
        ck_ok(annal_session_each(store, ck_one, &sessions, err));
        ck_assert_uint_eq(sessions.count, count_expected(made[i]));
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* What a reader that may not write sees: what is in the journals. */
START_TEST(a_store_of_every_version_is_read_without_a_write)
{
    char made[MADE_MAX][256];
    size_t count = find_made(made);
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        const annal_store_options options = {.read_only = true};
        annal_store *store = NULL;
        snprintf(path, sizeof path, "%s/%s/store", ANNAL_GOLDEN, made[i]);
        ck_ok(annal_store_open(path, &options, &store, err));
        ck_assert_uint_eq(ck_session(store, made[i], "plain"), 8);
        ck_assert_uint_eq(read_session(store, "redo", NULL, NULL), 3);
        ck_assert_uint_eq(read_session(store, "made", NULL, NULL), 0);
        store_close(store);
    }
}
END_TEST

/* Snapshots are derived: a snapshot of an older layout does not count and is taken again. */
START_TEST(a_snapshot_unpacks_or_is_recognized_as_another_version)
{
    char made[MADE_MAX][256];
    size_t count = find_made(made), unpacked = 0;
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        size_t len;
        struct snapshot_header header;
        struct buf state = {0};
        snprintf(path, sizeof path, "%s/%s/snapshot", ANNAL_GOLDEN, made[i]);
        char *bytes = file_read(path, &len);
        annal_slice row = {bytes, len};
        const char *problem = annal__container_header_read(row, &header);
        if (problem != NULL) {
            ck_assert_str_eq(problem, "the snapshot has an unknown format version");
        } else {
            ck_assert_uint_eq(header.seq, 8);
            ck_assert(unpack_image(row, (annal_slice){0}, &state));
            ck_assert_int_eq(memcmp(state.ptr, "SQLite format 3", 16), 0);
            unpacked++;
        }
        annal__buf_done(&state);
        free(bytes);
    }
    ck_assert_uint_gt(unpacked, 0);
}
END_TEST

Suite *suite_golden(void)
{
    Suite *suite = suite_create("golden");
    TCase *tc = suite_case(suite, "golden", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tc, a_store_of_every_version_is_recovered_read_and_extended);
    tcase_add_test(tc, a_store_of_every_version_is_read_without_a_write);
    tcase_add_test(tc, a_snapshot_unpacks_or_is_recognized_as_another_version);
    return suite;
}
