/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that rot, lose their end, are exchanged, hold bytes of an earlier use, or were written to
 * break a parser: failure modes F3 and F24 to F27.
 */
#include "journal/base/hash.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <annal/index.h>
#include <annal/query.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
}

/* ---- F3 ---- */

/* Read all of a session; damage is counted. */
static uint64_t read_around(annal_store *store, const char *session, size_t *out_damages,
                            bool came[32])
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status;
    uint64_t last = 0;
    *out_damages = 0;
    ck_ok(annal_cursor_open(store, annal_slice_of(session), 1, &cursor, err));
    while ((status = annal_cursor_next(cursor, &event, NULL)) != ANNAL_END) {
        ck_assert_int_ge(status, 0);
        *out_damages += status == ANNAL_DAMAGE;
        if (status == ANNAL_OK) {
            ck_assert_uint_eq(event_number(&event), event.seq);
            came[event.seq] = true;
            last = event.seq;
        }
    }
    annal_cursor_close(cursor);
    return last;
}

START_TEST(damage_in_the_middle_costs_its_line_and_cuts_nothing)
{
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    annal_verify_result result;
    bool came[32] = {false};
    size_t before_len, after_len, damages;
    append_numbers(store, "s", 1, 10, ANNAL_LEVEL_SYNC);
    store_close(store);
    char *before = file_read(journal, &before_len);
    char *fifth = strstr(before, "{\"seq\":5,");
    ck_assert_ptr_nonnull(fifth);
    fifth[60] ^= 4;
    file_write(journal, before, before_len);

    store = store_open(path);
    append_numbers(store, "s", 11, 11, ANNAL_LEVEL_SYNC); /* its end proves itself */
    ck_assert_uint_eq(read_around(store, "s", &damages, came), 11);
    ck_assert_uint_eq(damages, 1);
    for (unsigned seq = 1; seq <= 11; seq++)
        ck_assert_int_eq(came[seq], seq != 5);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("s"), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 1);
    ck_assert_uint_eq(result.events, 10);
    store_close(store);
    char *after = file_read(journal, &after_len);
    ck_assert_uint_gt(after_len, before_len);
    ck_assert_mem_eq(before, after, before_len);
    free(before);
    free(after);
}
END_TEST

/* ---- F24 ---- */

static size_t end_of_line(const char *journal, const char *next)
{
    size_t len;
    char *text = file_read(journal, &len);
    const char *at = strstr(text, next);
    ck_assert_ptr_nonnull(at);
    size_t end = (size_t)(at - text);
    free(text);
    return end;
}

START_TEST(missing_lines_are_restored_while_the_log_has_them)
{
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 6, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    ck_assert_int_eq(truncate(journal, (off_t)end_of_line(journal, "{\"seq\":4,")), 0);
    store = store_open(path);
    ck_numbers(store, "s", 6);
    append_numbers(store, "s", 7, 7, ANNAL_LEVEL_SYNC);
    store_close(store);
}
END_TEST

/* A journal does not record how long it was; the index does not show missing events. */
START_TEST(permanently_missing_lines_disappear_from_the_index_too)
{
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    annal_index *index = NULL;
    const annal_filter all = {0};
    uint64_t count = 0;
    append_numbers(store, "s", 1, 6, ANNAL_LEVEL_SYNC);
    ck_ok(annal_index_open(store, NULL, &index, err));
    ck_ok(annal_query_count(index, &all, &count, NULL, err));
    ck_assert_uint_eq(count, 6);
    annal_index_close(index);
    store_close(store);
    ck_assert_int_eq(truncate(journal, (off_t)end_of_line(journal, "{\"seq\":4,")), 0);
    store = store_open(path);
    ck_numbers(store, "s", 3);
    ck_ok(annal_index_open(store, NULL, &index, err));
    ck_ok(annal_query_count(index, &all, &count, NULL, err));
    ck_assert_uint_eq(count, 3);
    annal_index_close(index);
    store_close(store);
}
END_TEST

/* ---- F25 ---- */

static void count_finding(void *arg, const annal_finding *finding)
{
    size_t *count = arg;
    ck_assert_msg(strstr(finding->what, "belongs to session") != NULL, "%s", finding->what);
    ++*count;
}

START_TEST(a_journal_under_the_name_of_another_session_is_refused)
{
    const char *a = tmpdir_path(&dir, "store/events/a.jsonl");
    const char *b = tmpdir_path(&dir, "store/events/b.jsonl");
    const char *kept = tmpdir_path(&dir, "kept");
    annal_store *store = store_open(path);
    annal_cursor *cursor = NULL;
    annal_verify_result result;
    struct stat before, after;
    uint64_t seq;
    append_numbers(store, "a", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "b", 1, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "c", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_assert_int_eq(rename(a, kept) + rename(b, a) + rename(kept, b), 0);
    ck_assert_int_eq(stat(a, &before), 0);

    store = store_open(path);
    for (int i = 0; i < 2; i++) {
        const annal_slice session = i == 0 ? ANNAL_SLICE("a") : ANNAL_SLICE("b");
        size_t findings = 0;
        ck_status(ANNAL_ERR_CORRUPT, annal_cursor_open(store, session, 1, &cursor, err));
        ck_status(ANNAL_ERR_CORRUPT,
                  append_number(store, i == 0 ? "a" : "b", 9, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_ok(annal_session_verify(store, session, count_finding, &findings, &result, err));
        ck_assert_uint_eq(findings, 1);
        ck_assert_uint_eq(result.events, 0);
    }
    ck_numbers(store, "c", 2);
    store_close(store);
    ck_assert_int_eq(stat(a, &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);

    /* Put right again, both are whole. */
    ck_assert_int_eq(rename(a, kept) + rename(b, a) + rename(kept, b), 0);
    store = store_open(path);
    append_numbers(store, "a", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "a", 4);
    ck_numbers(store, "b", 5);
    store_close(store);
}
END_TEST

/* ---- F26 ---- */

/* A group that makes a session and its first event. */
static void write_session(struct log *log, const char *session, uint64_t released)
{
    struct frame_header header = {.session = annal_slice_of(session), .file = {(uint8_t)*session}};
    const annal_draft draft = {.type = ANNAL_SLICE("test.event"), .data = ANNAL_SLICE("1")};
    struct record record = {.type = RECORD_CREATE,
                            .format = ANNAL_FORMAT_JSON,
                            .session = header.session,
                            .file = {(uint8_t)*session}};
    struct buf toc = {0}, payload = {0};
    uint64_t h, h_after;
    ck_assert_int_eq(annal__codec_json.encode_header(&payload, &header, &h), ANNAL_OK);
    record.length = payload.len;
    record.h_after = h;
    ck_assert_int_eq(annal__log_put_record(&toc, &record), ANNAL_OK);
    const struct frame_place place = {.seq = 1, .ts_us = 1, .offset = payload.len, .h_before = h};
    ck_assert_int_eq(annal__codec_json.encode_event(&payload, &draft, &place, &h_after), ANNAL_OK);
    record.type = RECORD_BYTES;
    record.offset = place.offset;
    record.length = payload.len - place.offset;
    record.first_seq = record.last_seq = 1;
    record.h_before = h;
    record.h_after = h_after;
    ck_assert_int_eq(annal__log_put_record(&toc, &record), ANNAL_OK);
    ck_ok(annal__log_write_group(log, 2, &toc, &payload, released, err));
    annal__buf_done(&toc);
    annal__buf_done(&payload);
}

START_TEST(groups_of_an_earlier_use_of_a_region_are_not_redone)
{
    const char *name = tmpdir_path(&dir, "store/commit/00.log");
    struct log log;
    annal_store *store = store_open(path);
    store_close(store);
    ck_ok(annal__log_create(&annal__system_io, name, 8 * LOG_BLOCK_BYTES, 1, &log, err));
    annal__log_switch(&log);
    write_session(&log, "old1", 0);
    write_session(&log, "old2", 0); /* stays after the group that overwrites old1 */
    annal__log_switch(&log);
    write_session(&log, "new1", 1);
    annal__log_switch(&log);
    write_session(&log, "new2", 1);
    annal__log_close(&log);
    store = store_open(path);
    ck_assert_uint_eq(read_session(store, "new1", NULL, NULL), 1);
    ck_assert_uint_eq(read_session(store, "new2", NULL, NULL), 1);
    ck_assert_uint_eq(read_session(store, "old1", NULL, NULL), 0);
    ck_assert_uint_eq(read_session(store, "old2", NULL, NULL), 0);
    store_close(store);
}
END_TEST

/* ---- F27 ---- */

/* A journal of these lines, each with the hash that it should have. */
static void write_lines(const char *journal, const annal_slice *lines, size_t count)
{
    struct buf out = {0};
    uint64_t h = 0;
    for (size_t i = 0; i < count; i++) {
        h = annal__hash(lines[i].ptr, lines[i].len, h);
        ck_assert_int_eq(annal__buf_append_slice(&out, lines[i]), ANNAL_OK);
        ck_assert_int_eq(annal__buf_printf(&out, ",\"h\":\"%016llx\"}\n", (unsigned long long)h),
                         ANNAL_OK);
    }
    file_write(journal, out.ptr, out.len);
    annal__buf_done(&out);
}

#define HEADER                                                                                     \
    "{\"annal\":1,\"session\":\"s\",\"file\":\"00112233445566778899aabbccddeeff\","                \
    "\"created\":\"2026-01-06T07:24:00.000000Z\",\"fork\":null"
#define EVENT(seq, rest) "{\"seq\":" seq ",\"ts\":\"2026-01-06T07:24:00.000000Z\"," rest

/* Their hashes are right, so all of it reaches the parsers that trust the hash. */
START_TEST(malicious_lines_break_no_parser_and_are_reported)
{
    static char deep[100000];
    memset(deep, '[', sizeof deep);
    static const char start[] = EVENT("2", "\"type\":\"a\",\"data\":");
    memcpy(deep, start, sizeof start - 1);
    const annal_slice lines[] = {
        ANNAL_SLICE(HEADER),
        ANNAL_SLICE(EVENT("1", "\"type\":\"a\",\"data\":{\"a\":1,\"a\":2}")),
        {deep, sizeof deep},
        ANNAL_SLICE(EVENT("3", "\"type\":\"a\",\"data\":\"\xC3\x28\"")),
        ANNAL_SLICE(EVENT("4", "\"type\":\"a\",\"data\":\"a\0b\"")),
        ANNAL_SLICE(EVENT("5", "\"type\":\"a\",\"seq\":9,\"data\":1")),
        ANNAL_SLICE(EVENT("18446744073709551616", "\"type\":\"a\",\"data\":1")),
        ANNAL_SLICE(EVENT("7", "\"type\":\"A \\\" a\",\"data\":1")),
        ANNAL_SLICE(EVENT("8", "\"type\":\"a\",\"data\":1}{\"seq\":9")),
    };
    annal_store *store = store_open(path);
    annal_verify_result result;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status;
    size_t steps = 0;
    write_lines(tmpdir_path(&dir, "store/events/s.jsonl"), lines, sizeof lines / sizeof *lines);
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, err));
    while ((status = annal_cursor_next(cursor, &event, NULL)) != ANNAL_END) {
        ck_assert_int_ge(status, 0);
        ck_assert_uint_lt(steps++, 20);
    }
    annal_cursor_close(cursor);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("s"), NULL, NULL, &result, err));
    ck_assert_uint_ge(result.findings, 7); /* all but the first event */

    /* Nor does what no hash vouches for: a line without an end, NULs. */
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    char *bytes = calloc(1, (size_t)3 << 20);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, '{', (size_t)1 << 20);
    file_write(journal, bytes, (size_t)3 << 20);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("s"), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.events, 0);
    ck_assert_uint_eq(result.findings, 1);
    free(bytes);
    store_close(store);
}
END_TEST

Suite *suite_rot(void)
{
    Suite *suite = suite_create("rot");
    TCase *tc = suite_case(suite, "rot", set_up, tmpdir_teardown);
    tcase_add_test(tc, damage_in_the_middle_costs_its_line_and_cuts_nothing);
    tcase_add_test(tc, missing_lines_are_restored_while_the_log_has_them);
    tcase_add_test(tc, permanently_missing_lines_disappear_from_the_index_too);
    tcase_add_test(tc, a_journal_under_the_name_of_another_session_is_refused);
    tcase_add_test(tc, groups_of_an_earlier_use_of_a_region_are_not_redone);
    tcase_add_test(tc, malicious_lines_break_no_parser_and_are_reported);
    return suite;
}
