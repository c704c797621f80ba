/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace.h"
#include "journal/store_journal.h"
#include "journal/sys/delete.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t another_boot[16] = "another boot";

static const struct seams after_a_power_cut = {
    .io = &annal__system_io, .clock = &annal__system_clock, .boot = another_boot};

static annal_status convert_to(annal_store *store, const char *session, annal_format format,
                               annal_convert_result *out_result, annal_error *err)
{
    return annal_session_convert(store, annal_slice_of(session),
                                 &(annal_convert_options){.format = format}, out_result, err);
}

static annal_format format_of(annal_store *store, const char *session)
{
    annal_session_info info;
    ck_ok(annal_session_info_get(store, annal_slice_of(session), &info, err));
    return info.format;
}

static bool is_there(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

/* What a cursor says of every event but its place and its hash. free() it. */
static char *dump(annal_store *store, const char *session)
{
    struct buf text = {0};
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_error error = {0};
    ck_ok(annal_cursor_open(store, annal_slice_of(session), 1, &cursor, err));
    annal_status status;
    while ((status = annal_cursor_next(cursor, &event, &error)) == ANNAL_OK)
        ck_assert_int_eq(annal__buf_printf(&text, "%llu %lld %.*s %.*s %.*s %.*s\n",
                                           (unsigned long long)event.seq, (long long)event.ts_us,
                                           ANNAL_FMT(event.type), ANNAL_FMT(event.id),
                                           ANNAL_FMT(event.cause), ANNAL_FMT(event.data)),
                         ANNAL_OK);
    ck_assert_int_eq(status, ANNAL_END);
    annal_cursor_close(cursor);
    char *copy = strdup(text.ptr == NULL ? "" : text.ptr);
    annal__buf_done(&text);
    return copy;
}

/* Events with everything that an event may have; data as the other format writes it. */
static void append_all_kinds(annal_store *store, const char *session)
{
    static const char *const data[] = {
        "{\"n\":1,\"text\":\"caf\xc3\xa9\",\"list\":[true,false,null,-3,1.5]}",
        "\"\\u0000 and \\n\"",
        "18446744073709551615",
        "-9223372036854775808",
        "[[[[]]],{}]",
        "123456789012345678901234567890",
        "{\"double\":1,\"double\":2}",
        "\"\\ud800\"",
    };
    annal_writer *writer = NULL;
    uint64_t seq;
    ck_ok(annal_writer_open(store, annal_slice_of(session), NULL, &writer, err));
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        char id[20];
        snprintf(id, sizeof id, "id-%zu", i);
        const annal_draft draft = {.type = ANNAL_SLICE("test.event"),
                                   .data = annal_slice_of(data[i]),
                                   .id = annal_slice_of(i % 2 == 0 ? id : ""),
                                   .cause = annal_slice_of(i % 3 == 0 ? "other:7" : ""),
                                   .ts_us = 1767684240500000 - (int64_t)i};
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    }
    annal_writer_close(writer);
}

START_TEST(a_converted_session_has_every_event_and_accepts_appends)
{
    annal_convert_result result;
    annal_session_info before, after;
    const char *json = tmpdir_path(&dir, "store/events/s.jsonl");
    const char *msgpack = tmpdir_path(&dir, "store/events/s.mpk");
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_all_kinds(store, "s");
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &before, err));
    char *first = dump(store, "s");
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    ck_assert_uint_eq(result.events, 8);
    ck_assert_uint_eq(result.bytes_before, before.bytes);
    ck_assert(!is_there(json) && is_there(msgpack));
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &after, err));
    ck_assert_uint_eq(result.bytes_after, after.bytes);
    ck_assert_int_eq(after.format, ANNAL_FORMAT_MSGPACK);
    ck_assert_int_eq(after.created_us, before.created_us);
    ck_assert_str_ne(after.file, before.file);
    char *second = dump(store, "s");
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    ck_assert_uint_eq(result.events, 0); /* it is that already */
    append_all_kinds(store, "t");
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_JSON, &result, err));
    ck_assert_uint_eq(result.events, 8);
    ck_assert(is_there(json) && !is_there(msgpack));
    char *third = dump(store, "s");
    ck_assert_str_eq(second, third);
    /* The first event is written in the same way in both. */
    ck_assert_int_eq(strncmp(first, third, strcspn(first, "\n") + 1), 0);
    free(first);
    free(second);
    free(third);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &after, err));
    ck_assert_uint_eq(after.last_seq, 9);
    store_close(store);
    ck_assert_uint_eq(is_there(tmpdir_path(&dir, "store/events/.gone")), 1);
    ck_assert_int_eq(rmdir(tmpdir_path(&dir, "store/events/.gone")), 0); /* empty */
}
END_TEST

/* In a draft, 0 means the present time, unless the draft says that it has a time. */
START_TEST(the_first_moment_of_1970_is_a_time_and_copies_keep_it)
{
    annal_convert_result converted;
    annal_repair_result repaired;
    uint64_t seq;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(store, ANNAL_SLICE("s"), NULL, &writer, err));
    const annal_draft draft = {
        .type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("null"), .ts_us = ANNAL_TS_ZERO};
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    char *first = dump(store, "s");
    ck_assert_str_eq(first, "1 0 t   null\n");
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &converted, err));
    char *second = dump(store, "s");
    ck_assert_str_eq(first, second);
    ck_ok(annal_session_repair(store, ANNAL_SLICE("s"), ANNAL_SLICE("copy"), NULL, NULL, NULL,
                               &repaired, err));
    char *third = dump(store, "copy");
    ck_assert_str_eq(first, third);
    free(first);
    free(second);
    free(third);
    store_close(store);
}
END_TEST

START_TEST(ids_are_known_in_a_converted_session)
{
    annal_convert_result result;
    uint64_t seq = 0;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    ck_ok(append_slice(store, "s", ANNAL_SLICE("{\"a\":1}"), "one", ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    ck_ok(append_slice(store, "s", ANNAL_SLICE("{\"a\":1}"), "one", ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_status(ANNAL_ERR_CONFLICT, append_slice(store, "s", ANNAL_SLICE("{\"a\":2}"), "one",
                                               ANNAL_LEVEL_SYNC, &seq, err));
    store_close(store);
}
END_TEST

START_TEST(the_conversion_of_a_damaged_session_fails_and_says_what_to_do)
{
    annal_convert_result result;
    annal_error why = {0};
    annal_session_info info;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    int fd = open(tmpdir_path(&dir, "store/events/s.jsonl"), O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "#", 1, (off_t)info.bytes / 2), 1);
    close(fd);
    ck_assert_int_eq(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, &why),
                     ANNAL_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(why.message, "annal repair s --to NEW"));
    ck_assert_int_eq(format_of(store, "s"), ANNAL_FORMAT_JSON);
    ck_status(ANNAL_ERR_NOTFOUND, convert_to(store, "none", ANNAL_FORMAT_MSGPACK, &result, err));
    ck_status(ANNAL_ERR_INVALID, convert_to(store, "s", ANNAL_FORMAT_DEFAULT, &result, err));
    append_numbers(store, "s", 6, 6, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_assert(!is_there(tmpdir_path(&dir, "store/events/s.mpk")));
}
END_TEST

/* Each line proves itself, and one was left out before they were written: the one before the last,
 * which the next owner notices, or an earlier one. */
START_TEST(a_journal_that_lacks_an_event_is_not_converted)
{
    annal_convert_result result;
    const struct codec *codec = &annal__codec_json;
    const struct frame_header header = {.session = ANNAL_SLICE("s"), .created_us = 1};
    const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("1")};
    struct buf bytes = {0};
    uint64_t h = 0;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    ck_assert_int_eq(codec->encode_header(&bytes, &header, &h), ANNAL_OK);
    for (uint64_t seq = 1; seq <= 4; seq++) {
        const struct frame_place place = {seq, 1, bytes.len, h};
        if (seq != (uint64_t)_i)
            ck_assert_int_eq(codec->encode_event(&bytes, &draft, &place, &h), ANNAL_OK);
    }
    file_write(tmpdir_path(&dir, "store/events/s.jsonl"), bytes.ptr, bytes.len);
    annal__buf_done(&bytes);
    ck_status(ANNAL_ERR_CORRUPT, convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    ck_assert_int_eq(format_of(store, "s"), ANNAL_FORMAT_JSON);
    store_close(store);
}
END_TEST

static int stop_soon(void *arg, uint64_t done, uint64_t total)
{
    unsigned *calls = arg;
    ck_assert_uint_le(done, total);
    return ++*calls == 7;
}

START_TEST(a_stopped_conversion_changes_nothing)
{
    annal_convert_result result = {0};
    unsigned calls = 0;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 5, ANNAL_LEVEL_SYNC);
    const annal_convert_options options = {
        .format = ANNAL_FORMAT_MSGPACK, .progress = stop_soon, .arg = &calls};
    ck_status(ANNAL_END, annal_session_convert(store, ANNAL_SLICE("s"), &options, &result, err));
    ck_assert_uint_eq(calls, 7);
    ck_numbers(store, "s", 5);
    ck_assert_int_eq(format_of(store, "s"), ANNAL_FORMAT_JSON);
    store_close(store);
}
END_TEST

/* Fail each call from the at-th on. False if the conversion makes fewer calls. */
static bool convert_with_failure(annal_format to, unsigned at)
{
    struct failing_io disk;
    annal_convert_result result;
    const char *path = tmpdir_path(&dir, "store");
    annal_format from = to == ANNAL_FORMAT_JSON ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON;
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(convert_to(store, "s", from, &result, err));
    store_close(store);

    failing_io_init(&disk);
    disk.for_good = true;
    disk.with_errno = EIO;
    const struct seams broken = {.io = &disk.io, .clock = &annal__system_clock};
    store = store_open_seams(path, &broken);
    append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
    disk.fail_at = disk.calls + at;
    annal_status status = convert_to(store, "s", to, &result, NULL);
    bool failed = disk.calls >= disk.fail_at;
    ck_assert(failed || status == ANNAL_OK);
    store_abandon(store);

    store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "s", 5);
    ck_assert(status != ANNAL_OK || format_of(store, "s") == to);
    ck_assert(!annal__store_journal_is_double(&store->context, ANNAL_SLICE("s"),
                                              annal__codec_of(format_of(store, "s"))));
    append_numbers(store, "s", 6, 6, ANNAL_LEVEL_SYNC);
    store_close(store);
    store_close(store_open_seams(path, &after_a_power_cut));
    const char *gone = tmpdir_path(&dir, "store/events/.gone");
    ck_assert(!is_there(gone) || rmdir(gone) == 0); /* empty */
    return failed;
}

START_TEST(a_conversion_that_fails_at_any_call_loses_nothing)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        failed = convert_with_failure(_i == 0 ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON, at);
        ck_assert(!failed || at < 300);
        tmpdir_renew();
    }
}
END_TEST

/* The process died between the two names, and its log still has the events. */
START_TEST(of_two_journal_names_the_name_that_readers_saw_is_kept)
{
    annal_convert_result result;
    const char *path = tmpdir_path(&dir, "store");
    const char *json = tmpdir_path(&dir, "store/events/s.jsonl");
    const char *msgpack = tmpdir_path(&dir, "store/events/s.mpk");
    bool from_json = _i % 2 == 0, reopen = _i / 2 == 1;
    const char *old = from_json ? json : msgpack;
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    if (!from_json)
        ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    size_t len;
    char *bytes = file_read(old, &len);
    ck_ok(
        convert_to(store, "s", from_json ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON, &result, err));
    file_write(old, bytes, len); /* its removal did not take place */
    free(bytes);
    ck_numbers(store, "s", 3);
    if (reopen) {
        store_abandon(store);
        store = store_open_seams(path, &after_a_power_cut);
        ck_numbers(store, "s", 3);
    }
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_assert(is_there(json) && !is_there(msgpack));
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

START_TEST(both_journals_of_a_session_are_deleted)
{
    annal_convert_result result;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    size_t len;
    char *bytes = file_read(tmpdir_path(&dir, "store/events/s.jsonl"), &len);
    ck_ok(convert_to(store, "s", ANNAL_FORMAT_MSGPACK, &result, err));
    file_write(tmpdir_path(&dir, "store/events/s.jsonl"), bytes, len);
    free(bytes);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_assert(!is_there(tmpdir_path(&dir, "store/events/s.jsonl")));
    ck_assert(!is_there(tmpdir_path(&dir, "store/events/s.mpk")));
    store_close(store);
}
END_TEST

Suite *suite_convert(void)
{
    Suite *suite = suite_create("convert");
    TCase *convert = suite_case(suite, "convert", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(convert, a_converted_session_has_every_event_and_accepts_appends);
    tcase_add_test(convert, the_first_moment_of_1970_is_a_time_and_copies_keep_it);
    tcase_add_test(convert, ids_are_known_in_a_converted_session);
    tcase_add_test(convert, the_conversion_of_a_damaged_session_fails_and_says_what_to_do);
    tcase_add_loop_test(convert, a_journal_that_lacks_an_event_is_not_converted, 2, 4);
    tcase_add_test(convert, a_stopped_conversion_changes_nothing);
    tcase_add_loop_test(convert, a_conversion_that_fails_at_any_call_loses_nothing, 0, 2);
    tcase_add_loop_test(convert, of_two_journal_names_the_name_that_readers_saw_is_kept, 0, 4);
    tcase_add_test(convert, both_journals_of_a_session_are_deleted);
    return suite;
}
