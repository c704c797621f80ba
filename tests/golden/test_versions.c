/* SPDX-License-Identifier: Apache-2.0 */
/* What this library does with files that a newer one wrote. docs/format.md, "Versions". */
#include "journal/base/hash.h"
#include "journal/log.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <annal/index.h>
#include <annal/query.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAILER 25

static const char *path;
static char said[2048];

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    said[0] = '\0';
}

static void keep(void *arg, annal_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    size_t len = strlen(said);
    snprintf(said + len, sizeof said - len, "%s\n", message);
}

static annal_status open_as(bool read_only, annal_store **out_store, annal_error *err)
{
    const annal_store_options options = {
        .read_only = read_only, .no_keeper = true, .wait_ms = 2000, .log = keep};
    return annal_store_open(path, &options, out_store, err);
}

static void fill(uint64_t events)
{
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, events, ANNAL_LEVEL_SYNC);
    append_numbers(store, "b", 1, events, ANNAL_LEVEL_SYNC);
    store_close(store);
}

/* Write a journal again, line by line, with the hashes that its lines have now. */
static void write_chained(const char *journal, const char *text)
{
    struct buf out = {0};
    uint64_t h = 0;
    for (const char *line = text; *line != '\0';) {
        const char *newline = strchr(line, '\n');
        size_t len = (size_t)(newline - line) + 1 - TRAILER;
        h = annal__hash(line, len, h);
        ck_assert_int_eq(annal__buf_append(&out, line, len), ANNAL_OK);
        ck_assert_int_eq(annal__buf_printf(&out, ",\"h\":\"%016llx\"}\n", (unsigned long long)h),
                         ANNAL_OK);
        line = newline + 1;
    }
    file_write(journal, out.ptr, out.len);
    annal__buf_done(&out);
}

/* The journal of session a, with one text in it replaced. */
static void rewrite(const char *from, const char *to)
{
    size_t len;
    const char *journal = tmpdir_path(&dir, "store/events/a.jsonl");
    char *text = file_read(journal, &len);
    char *at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    char *changed = malloc(len + strlen(to) + 1);
    ck_assert_ptr_nonnull(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_chained(journal, changed);
    free(changed);
    free(text);
}

START_TEST(a_newer_store_is_read_with_one_warning_and_not_written)
{
    annal_store *store = NULL;
    annal_error reason = {0};
    fill(3);
    file_write(tmpdir_path(&dir, "store/locks/version"), "2\n", 2);
    ck_assert_int_eq(open_as(false, &store, &reason), ANNAL_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(reason.message, "for reading only") != NULL, "%s", reason.message);
    ck_assert_str_eq(said, "");
    ck_assert_int_eq(open_as(true, &store, NULL), ANNAL_OK);
    ck_assert_msg(strstr(said, "format version 2") != NULL, "%s", said);
    ck_assert_ptr_eq(strchr(said, '\n') + 1, strchr(said, '\0'));
    ck_numbers(store, "a", 3);
    store_close(store);
    size_t len;
    char *version = file_read(tmpdir_path(&dir, "store/locks/version"), &len);
    ck_assert_str_eq(version, "2\n");
    free(version);
}
END_TEST

START_TEST(a_newer_journal_is_read_and_verified_and_takes_no_events)
{
    annal_store *store = NULL;
    annal_verify_result result;
    annal_session_info info;
    size_t before_len, after_len;
    uint64_t seq;
    fill(3);
    rewrite("{\"annal\":1,", "{\"annal\":2,");
    char *before = file_read(tmpdir_path(&dir, "store/events/a.jsonl"), &before_len);
    ck_assert_int_eq(open_as(false, &store, NULL), ANNAL_OK);
    ck_numbers(store, "a", 3);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("a"), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 0);
    ck_assert_uint_eq(result.events, 3);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("a"), &info, err));
    ck_assert_uint_eq(info.last_seq, 3);
    ck_assert_uint_eq(info.end_offset, info.bytes);
    ck_status(ANNAL_ERR_UNSUPPORTED, append_number(store, "a", 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "b", 4, 4, ANNAL_LEVEL_SYNC);
    store_close(store);
    char *after = file_read(tmpdir_path(&dir, "store/events/a.jsonl"), &after_len);
    ck_assert_uint_eq(before_len, after_len);
    ck_assert_mem_eq(before, after, after_len);
    free(before);
    free(after);
}
END_TEST

/* Further members in the header, and in its events. */
START_TEST(unknown_parts_of_a_newer_journal_are_unsupported_and_not_damage)
{
    annal_store *store = NULL;
    annal_cursor *cursor = NULL;
    annal_verify_result result;
    annal_error reason = {0};
    annal_event event;
    uint64_t seq;
    fill(3);
    rewrite("{\"annal\":1,", "{\"annal\":3,\"key\":\"abc\",");
    rewrite("{\"seq\":2,", "{\"actor\":7,\"seq\":2,");
    ck_assert_int_eq(open_as(false, &store, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_cursor_open(store, ANNAL_SLICE("a"), 1, &cursor, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_OK);
    ck_assert_uint_eq(event_number(&event), 1);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(annal_cursor_next(cursor, &event, &reason), ANNAL_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(reason.message, "version 3") != NULL, "%s", reason.message);
    }
    annal_cursor_close(cursor);
    ck_assert_int_eq(annal_session_verify(store, ANNAL_SLICE("a"), NULL, NULL, &result, &reason),
                     ANNAL_ERR_UNSUPPORTED);
    ck_assert_int_eq(append_number(store, "a", 4, 40, ANNAL_LEVEL_SYNC, &seq, &reason),
                     ANNAL_ERR_UNSUPPORTED);
    /* Nor does it keep other sessions from being indexed. */
    annal_index *index = NULL;
    ck_assert_int_eq(annal_index_open(store, NULL, &index, NULL), ANNAL_OK);
    ck_assert_int_eq(annal_index_catch_up(index, (annal_slice){0}, NULL, &reason),
                     ANNAL_ERR_UNSUPPORTED);
    const annal_slice b = ANNAL_SLICE("b");
    const annal_filter of_b = {.sessions = &b, .session_count = 1};
    uint64_t count = 0;
    ck_assert_int_eq(annal_query_count(index, &of_b, &count, NULL, NULL), ANNAL_OK);
    ck_assert_uint_eq(count, 3);
    annal_index_close(index);
    store_close(store);
}
END_TEST

/* Change the version at an offset of a log, and the hash that covers it. */
static void write_log_version(char *log, size_t at, size_t hash_at, size_t len, uint64_t seed)
{
    log[at + 8] = 2;
    memset(log + at + hash_at, 0, 8);
    uint64_t hash = annal__hash(log + at, len, seed);
    for (int i = 0; i < 8; i++)
        log[at + hash_at + (size_t)i] = (char)(hash >> 8 * i);
}

static uint64_t number_at(const char *bytes)
{
    uint64_t number = 0;
    for (int i = 8; i-- > 0;)
        number = number << 8 | (uint8_t)bytes[i];
    return number;
}

/* _i 0: the log as a whole, 1: a group in it. */
START_TEST(a_newer_commit_log_is_not_changed_and_its_sessions_stay_owned)
{
    annal_store *store = store_open(path);
    const char *name = tmpdir_path(&dir, "store/commit/00.log");
    size_t before_len, after_len;
    uint64_t seq;
    append_numbers(store, "a", 1, 2, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    char *log = file_read(name, &before_len);
    size_t group = (size_t)number_at(log + 32);
    if (_i == 0) {
        write_log_version(log, 0, 80, 80, 0);
        write_log_version(log, before_len - LOG_BLOCK_BYTES, 80, 80, 0);
    } else {
        write_log_version(log, group, 56,
                          (size_t)(64 + number_at(log + group + 40) + number_at(log + group + 48)),
                          number_at(log + 24));
    }
    file_write(name, log, before_len);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/a.jsonl")), 0);
    ck_assert_int_eq(open_as(false, &store, NULL), ANNAL_OK);
    ck_assert_msg(strstr(said, "version 2") != NULL, "%s", said);
    ck_assert_int_lt(append_number(store, "a", 3, 40, ANNAL_LEVEL_SYNC, &seq, NULL), 0);
    store_close(store);
    char *after = file_read(name, &after_len);
    ck_assert_uint_eq(before_len, after_len);
    ck_assert_mem_eq(log, after, after_len);
    free(log);
    free(after);
}
END_TEST

/* This program must not replace the index of a newer store: another index, in memory, answers. */
START_TEST(the_index_of_a_newer_store_is_not_changed)
{
    const char *name = tmpdir_path(&dir, "store/sessions.db");
    annal_store *store = store_open(path);
    annal_index *index = NULL;
    size_t before_len, after_len;
    uint64_t count = 0;
    append_numbers(store, "a", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_index_open(store, NULL, &index, err));
    ck_ok(annal_index_catch_up(index, (annal_slice){0}, NULL, err));
    annal_index_close(index);
    store_close(store);
    file_write(tmpdir_path(&dir, "store/locks/version"), "2\n", 2);
    char *before = file_read(name, &before_len);
    before[63] ^= 1; /* user_version */
    file_write(name, before, before_len);

    ck_assert_int_eq(open_as(true, &store, NULL), ANNAL_OK);
    ck_ok(annal_index_open(store, NULL, &index, err));
    const annal_filter filter = {0};
    ck_ok(annal_query_count(index, &filter, &count, NULL, err));
    ck_assert_uint_eq(count, 3);
    annal_index_close(index);
    store_close(store);
    char *after = file_read(name, &after_len);
    ck_assert_uint_eq(before_len, after_len);
    ck_assert_mem_eq(before, after, after_len);
    free(before);
    free(after);
}
END_TEST

Suite *suite_versions(void)
{
    Suite *suite = suite_create("versions");
    TCase *newer = suite_case(suite, "newer", set_up, tmpdir_teardown);
    tcase_add_test(newer, a_newer_store_is_read_with_one_warning_and_not_written);
    tcase_add_test(newer, a_newer_journal_is_read_and_verified_and_takes_no_events);
    tcase_add_test(newer, unknown_parts_of_a_newer_journal_are_unsupported_and_not_damage);
    tcase_add_loop_test(newer, a_newer_commit_log_is_not_changed_and_its_sessions_stay_owned, 0, 2);
    tcase_add_test(newer, the_index_of_a_newer_store_is_not_changed);
    return suite;
}
