/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in both formats, from the append to the reader: what writer, cursor, catalogue and
 * recovery make of it. */
#include "journal/json_msgpack.h"
#include "journal/sys/event_at.h"

#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static annal_store *store;

static void set_up(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
}

static void tear_down(void)
{
    store_close(store);
    tmpdir_teardown();
}

/* Given in one format, to a journal of another. */
static annal_status append_as(const char *session, annal_format journal, annal_format data_format,
                              annal_slice data, const char *id, uint64_t *out_seq, annal_error *err)
{
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("t"),
                               .data = data,
                               .id = annal_slice_of(id),
                               .data_format = data_format};
    const annal_writer_options options = {.format = journal};
    annal_status status = annal_writer_open(store, annal_slice_of(session), &options, &writer, err);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, &draft, 1, NULL, out_seq, err);
    annal_writer_close(writer);
    return status;
}

static void ck_first(const char *session, annal_slice json, annal_slice msgpack)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    ck_ok(annal_cursor_open(store, annal_slice_of(session), 1, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.data.len, json.len);
    ck_assert_mem_eq(event.data.ptr, json.ptr, json.len);
    ck_assert_uint_eq(event.msgpack.len, msgpack.len);
    if (msgpack.len > 0)
        ck_assert_mem_eq(event.msgpack.ptr, msgpack.ptr, msgpack.len);
    ck_assert_int_eq(event.format, msgpack.len > 0 ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON);
    annal_cursor_close(cursor);
}

#define JSON    ANNAL_FORMAT_JSON
#define MSGPACK ANNAL_FORMAT_MSGPACK

static const annal_slice json = {"{ \"a\": [1, 2.50] }", 18};
static const annal_slice compact = {"{\"a\":[1,2.5]}", 13};
/* {"a":[1,2.5]}, and the 1 as a uint 16: not how we would write it. */
static const annal_slice wide = {"\x81\xa1\x61\x92\xcd\x00\x01\xcb\x40\x04\x00\x00\x00\x00\x00\x00",
                                 16};
static const annal_slice packed = {"\x81\xa1\x61\x92\x01\xcb\x40\x04\x00\x00\x00\x00\x00\x00", 14};

START_TEST(data_is_kept_byte_for_byte_in_its_own_format_and_as_a_value_in_the_other)
{
    uint64_t seq;
    ck_ok(append_as("jj", JSON, JSON, json, NULL, &seq, err));
    ck_first("jj", json, (annal_slice){NULL, 0});
    ck_ok(append_as("jm", JSON, MSGPACK, wide, NULL, &seq, err));
    ck_first("jm", compact, (annal_slice){NULL, 0});
    ck_ok(append_as("mj", MSGPACK, JSON, json, NULL, &seq, err));
    ck_first("mj", compact, packed);
    ck_ok(append_as("mm", MSGPACK, MSGPACK, wide, NULL, &seq, err));
    ck_first("mm", compact, wide);
    free(file_read(tmpdir_path(&dir, "store/events/jj.jsonl"), NULL));
    free(file_read(tmpdir_path(&dir, "store/events/mm.mpk"), NULL));
}
END_TEST

START_TEST(a_session_keeps_its_format_and_another_one_is_refused)
{
    uint64_t seq = 0;
    ck_ok(append_as("s", MSGPACK, JSON, json, NULL, &seq, err));
    ck_status(ANNAL_ERR_INVALID, append_as("s", JSON, JSON, json, NULL, &seq, err));
    ck_ok(append_as("s", ANNAL_FORMAT_DEFAULT, JSON, json, NULL, &seq, err));
    ck_ok(append_as("s", MSGPACK, MSGPACK, wide, NULL, &seq, err));
    ck_assert_uint_eq(seq, 3);
    store_close(store);
    store = store_open(tmpdir_path(&dir, "store"));
    ck_status(ANNAL_ERR_INVALID, append_as("s", JSON, JSON, json, NULL, &seq, err));
    ck_ok(append_as("s", ANNAL_FORMAT_DEFAULT, JSON, json, NULL, &seq, err));
    ck_assert_uint_eq(seq, 4);
    annal_session_info info;
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    ck_assert_int_eq(info.format, ANNAL_FORMAT_MSGPACK);
    ck_assert_uint_eq(info.last_seq, 4);
}
END_TEST

START_TEST(the_default_format_applies_to_new_sessions)
{
    uint64_t seq;
    ck_ok(append_as("old", ANNAL_FORMAT_DEFAULT, JSON, json, NULL, &seq, err));
    store_close(store);
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"),
                           &(annal_store_options){.no_keeper = true, .format = MSGPACK}, &store,
                           err));
    ck_ok(append_as("old", ANNAL_FORMAT_DEFAULT, JSON, json, NULL, &seq, err));
    ck_ok(append_as("new", ANNAL_FORMAT_DEFAULT, JSON, json, NULL, &seq, err));
    ck_ok(append_as("other", JSON, JSON, json, NULL, &seq, err));
    ck_first("old", json, (annal_slice){NULL, 0});
    ck_first("new", compact, packed);
    ck_first("other", json, (annal_slice){NULL, 0});
}
END_TEST

START_TEST(a_repeated_id_compares_data_in_the_format_of_the_journal)
{
    uint64_t seq = 0;
    ck_ok(append_as("s", MSGPACK, JSON, json, "i", &seq, err));
    ck_ok(append_as("s", MSGPACK, JSON, json, NULL, &seq, err));
    ck_ok(append_as("s", MSGPACK, JSON, compact, "i", &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_ok(append_as("s", MSGPACK, MSGPACK, packed, "i", &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_status(ANNAL_ERR_CONFLICT, append_as("s", MSGPACK, MSGPACK, wide, "i", &seq, err));
    ck_status(ANNAL_ERR_CONFLICT, append_as("s", MSGPACK, JSON, ANNAL_SLICE("1"), "i", &seq, err));
    /* Ids are read backwards from the journal after it changed hands. */
    store_close(store);
    store = store_open(tmpdir_path(&dir, "store"));
    ck_ok(append_as("s", MSGPACK, JSON, json, "i", &seq, err));
    ck_assert_uint_eq(seq, 1);
}
END_TEST

START_TEST(many_drafts_of_both_formats_are_appended_as_one)
{
    enum { DRAFTS = 300 };
    annal_draft drafts[DRAFTS];
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    for (int i = 0; i < DRAFTS; i++)
        drafts[i] = (annal_draft){.type = ANNAL_SLICE("t"),
                                  .data = i % 2 == 0 ? json : wide,
                                  .data_format = i % 2 == 0 ? JSON : MSGPACK};
    for (int format = JSON; format <= MSGPACK; format++) {
        annal_writer_options options = {.format = (annal_format)format};
        const char *session = format == JSON ? "j" : "m";
        ck_ok(annal_writer_open(store, annal_slice_of(session), &options, &writer, err));
        ck_ok(annal_writer_append(writer, drafts, DRAFTS, NULL, &seq, err));
        ck_assert_uint_eq(read_session(store, session, NULL, NULL), DRAFTS);
        drafts[7].data = ANNAL_SLICE("\xc1");
        ck_status(ANNAL_ERR_INVALID, annal_writer_append(writer, drafts, DRAFTS, NULL, &seq, err));
        drafts[7].data = wide;
        annal_writer_close(writer);
    }
}
END_TEST

START_TEST(a_time_beyond_the_range_of_text_is_the_same_in_both_formats)
{
    static const int64_t times[] = {INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 2; i++) {
        int64_t said[3];
        for (int format = JSON; format <= MSGPACK; format++) {
            annal_writer *writer = NULL;
            annal_cursor *cursor = NULL;
            annal_event event;
            uint64_t seq;
            const char *session = format == JSON ? "j" : "m";
            const annal_draft draft = {
                .type = ANNAL_SLICE("t"), .data = compact, .ts_us = times[i]};
            ck_ok(annal_writer_open(store, annal_slice_of(session),
                                    &(annal_writer_options){.format = (annal_format)format},
                                    &writer, err));
            ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
            ck_ok(annal_cursor_open(store, annal_slice_of(session), seq, &cursor, err));
            ck_ok(annal_cursor_next(cursor, &event, err));
            said[format] = event.ts_us;
            annal_cursor_close(cursor);
            annal_writer_close(writer);
        }
        ck_assert_int_eq(said[JSON], said[MSGPACK]);
    }
}
END_TEST

/* ---- Crashes ---- */

static void append_mpk(uint64_t first, uint64_t last, annal_level level)
{
    annal_writer *writer = NULL;
    char text[200];
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"),
                            &(annal_writer_options){.format = MSGPACK, .level = level}, &writer,
                            err));
    for (uint64_t i = first; i <= last; i++) {
        uint64_t seq;
        annal_draft draft = {.type = ANNAL_SLICE("number"),
                             .data = event_data(text, sizeof text, i, 40)};
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
        ck_assert_uint_eq(seq, i);
    }
    annal_writer_close(writer);
}

START_TEST(a_msgpack_journal_missing_on_the_disk_is_restored_from_the_log)
{
    static const uint8_t next_boot[16] = {1};
    static const struct seams rebooted = {&annal__system_io, &annal__system_clock, next_boot};
    /* Gone, of 0 bytes, and cut at some places. */
    static const off_t cuts[] = {-1, 0, 1, 30, 100, 1000, 2500};
    const char *path = tmpdir_path(&dir, "store");
    const char *copy = tmpdir_path(&dir, "copy");
    const char *journal = tmpdir_path(&dir, "copy/events/s.mpk");
    append_mpk(1, 30, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        copy_store(path, copy);
        ck_assert_int_eq(cuts[i] < 0 ? unlink(journal) : truncate(journal, cuts[i]), 0);
        store = store_open_seams(copy, &rebooted);
        ck_numbers(store, "s", 30);
        append_mpk(31, 31, ANNAL_LEVEL_SYNC);
        store_close(store);
        char command[600];
        snprintf(command, sizeof command, "rm -r '%s'", copy);
        ck_assert_int_eq(system(command), 0);
    }
    store = store_open(path);
    ck_numbers(store, "s", 30);
}
END_TEST

START_TEST(a_torn_tail_of_msgpack_is_cut_and_a_damaged_tail_refuses_appends)
{
    size_t len;
    append_mpk(1, 5, ANNAL_LEVEL_OS);
    store_close(store);
    const char *journal = tmpdir_path(&dir, "store/events/s.mpk");
    char *bytes = file_read(journal, &len);
    for (size_t cut = 1; cut < 60; cut += 7) {
        file_write(journal, bytes, len - cut);
        store = store_open(tmpdir_path(&dir, "store"));
        append_mpk(5, 6, ANNAL_LEVEL_OS);
        ck_numbers(store, "s", 6);
        store_close(store);
    }
    for (size_t at = 1; at < 60; at += 7) {
        uint64_t seq;
        bytes[len - at] ^= 4;
        file_write(journal, bytes, len);
        bytes[len - at] ^= 4;
        store = store_open(tmpdir_path(&dir, "store"));
        ck_status(ANNAL_ERR_CORRUPT, append_as("s", MSGPACK, JSON, json, NULL, &seq, err));
        store_close(store);
    }
    file_write(journal, bytes, len);
    free(bytes);
    store = store_open(tmpdir_path(&dir, "store"));
}
END_TEST

/* ---- Two journals of a session; msgpack from other programs ---- */

static void note(void *arg, const annal_finding *finding)
{
    char *out = arg;
    snprintf(out, 200, "%s", finding->what);
}

static int count_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)session;
    (void)bytes;
    ++*(int *)arg;
    return 0;
}

START_TEST(two_journals_of_one_session_are_reported_as_damage)
{
    uint64_t seq;
    char what[200] = "";
    int sessions = 0;
    annal_verify_result result;
    ck_ok(append_as("s", JSON, JSON, json, NULL, &seq, err));
    ck_ok(append_as("t", MSGPACK, JSON, json, NULL, &seq, err));
    store_close(store);
    size_t len;
    char *bytes = file_read(tmpdir_path(&dir, "store/events/t.mpk"), &len);
    file_write(tmpdir_path(&dir, "store/events/s.mpk"), bytes, len);
    free(bytes);
    store = store_open(tmpdir_path(&dir, "store"));
    ck_ok(annal_session_verify(store, ANNAL_SLICE("s"), note, what, &result, err));
    ck_assert_uint_eq(result.findings, 1);
    ck_assert_ptr_nonnull(strstr(what, "second journal"));
    ck_status(ANNAL_ERR_CORRUPT, append_as("s", JSON, JSON, json, NULL, &seq, err));
    ck_ok(annal_session_each(store, count_session, &sessions, err));
    ck_assert_int_eq(sessions, 2);
    ck_first("s", json, (annal_slice){NULL, 0});
}
END_TEST

/* Another program may write what no append of ours accepts. */
START_TEST(msgpack_without_a_json_form_is_damage_to_every_reader)
{
    const struct codec *codec = &annal__codec_msgpack;
    const struct frame_header header = {.session = ANNAL_SLICE("s")};
    const annal_draft draft = {
        .type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("\xa1\xff"), .data_format = MSGPACK};
    struct buf bytes = {0};
    uint64_t h;
    char what[200] = "";
    annal_verify_result result;
    annal__event_buffer *buffer = NULL;
    annal_event event;
    ck_assert_int_eq(codec->encode_header(&bytes, &header, &h), ANNAL_OK);
    struct frame_place place = {1, 1, bytes.len, h};
    ck_assert_int_eq(codec->encode_event(&bytes, &draft, &place, &h), ANNAL_OK);
    file_write(tmpdir_path(&dir, "store/events/s.mpk"), bytes.ptr, bytes.len);
    annal_cursor *cursor = NULL;
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("s"), 1, &cursor, err));
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_DAMAGE);
    ck_assert_uint_eq(annal_cursor_damage(cursor).seq, 1);
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    annal_cursor_close(cursor);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("s"), note, what, &result, err));
    ck_assert_ptr_nonnull(strstr(what, "not msgpack that JSON can express"));
    ck_status(ANNAL_ERR_CORRUPT,
              annal__event_read_at(store, ANNAL_SLICE("s"), 1, place.offset,
                                   bytes.len - place.offset, &buffer, &event, err));
    annal__event_buffer_free(buffer);
    annal__buf_done(&bytes);
}
END_TEST

Suite *suite_format(void)
{
    Suite *suite = suite_create("format");
    TCase *tests = suite_case(suite, "format", set_up, tear_down);
    tcase_add_test(tests, data_is_kept_byte_for_byte_in_its_own_format_and_as_a_value_in_the_other);
    tcase_add_test(tests, a_session_keeps_its_format_and_another_one_is_refused);
    tcase_add_test(tests, the_default_format_applies_to_new_sessions);
    tcase_add_test(tests, a_repeated_id_compares_data_in_the_format_of_the_journal);
    tcase_add_test(tests, a_time_beyond_the_range_of_text_is_the_same_in_both_formats);
    tcase_add_test(tests, many_drafts_of_both_formats_are_appended_as_one);
    tcase_add_test(tests, a_msgpack_journal_missing_on_the_disk_is_restored_from_the_log);
    tcase_add_test(tests, a_torn_tail_of_msgpack_is_cut_and_a_damaged_tail_refuses_appends);
    tcase_add_test(tests, two_journals_of_one_session_are_reported_as_damage);
    tcase_add_test(tests, msgpack_without_a_json_form_is_damage_to_every_reader);
    return suite;
}
