/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"
#include "journal/sys/cursor.h"
#include "journal/sys/delete.h"
#include "journal/sys/lineage.h"
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static annal_store *store;

static void fork_at(const char *parent, uint64_t at_seq, const char *child)
{
    ck_ok(annal_session_fork(store, annal_slice_of(parent), at_seq, annal_slice_of(child), NULL,
                             NULL, err));
}

/* The numbers of a session's history, each followed by a space. */
static const char *history(const char *session, uint64_t from_seq)
{
    static char text[4096];
    size_t at = 0;
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = ANNAL_OK;
    text[0] = '\0';
    ck_ok(annal_cursor_open(store, annal_slice_of(session), from_seq, &cursor, err));
    uint64_t seq = from_seq > 0 ? from_seq : 1;
    for (;;) {
        annal_error why = {0};
        status = annal_cursor_next(cursor, &event, &why);
        ck_assert_msg(status >= 0, "%s", why.message);
        if (status == ANNAL_END)
            break;
        ck_assert_int_eq(status, ANNAL_OK);
        ck_assert_uint_eq(event.seq, seq++);
        at += (size_t)snprintf(text + at, sizeof text - at, "%" PRIu64 " ", event_number(&event));
    }
    annal_cursor_close(cursor);
    return text;
}

static void ck_sound(const char *session)
{
    annal_verify_result result;
    ck_ok(annal_session_verify(store, annal_slice_of(session), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 0);
}

/* What the next call says, as one text. */
static const char *refusal(annal_status status, const annal_error *err)
{
    static char text[700];
    snprintf(text, sizeof text, "%s: %s", annal_status_name(status), err->message);
    return text;
}

static void setup(void)
{
    tmpdir_setup();
    store = store_open(tmpdir_path(&dir, "store"));
}

static void teardown(void)
{
    store_close(store);
    tmpdir_teardown();
}

START_TEST(a_fork_has_the_events_of_its_parent_and_continues_alone)
{
    annal_session_info info;
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_fork(store, ANNAL_SLICE("p"), 3, ANNAL_SLICE("f"), NULL, &info, err));
    ck_assert_str_eq(info.fork_session, "p");
    ck_assert_uint_eq(info.fork_seq, 3);
    ck_assert_uint_eq(info.first_seq, 4);
    ck_assert_uint_eq(info.last_seq, 3);
    ck_assert_str_eq(history("f", 0), "1 2 3 ");
    append_numbers(store, "p", 6, 6, ANNAL_LEVEL_SYNC);
    append_numbers(store, "f", 70, 72, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(history("f", 0), "1 2 3 70 71 72 ");
    ck_assert_str_eq(history("f", 3), "3 70 71 72 ");
    ck_assert_str_eq(history("f", 4), "70 71 72 ");
    ck_assert_str_eq(history("f", 6), "72 ");
    ck_assert_str_eq(history("f", 9), "");
    ck_assert_str_eq(history("p", 0), "1 2 3 4 5 6 ");
    ck_sound("f");
    ck_sound("p");
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("f"), &info, err));
    ck_assert_uint_eq(info.last_seq, 6);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("p"), &info, err));
    ck_assert_str_eq(info.fork_session, "");
    ck_assert_uint_eq(info.first_seq, 1);
}
END_TEST

START_TEST(a_fork_of_a_fork_points_to_the_session_that_holds_the_event)
{
    annal_session_info info;
    append_numbers(store, "a", 1, 6, ANNAL_LEVEL_SYNC);
    fork_at("a", 4, "b");
    append_numbers(store, "b", 20, 22, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_fork(store, ANNAL_SLICE("b"), 4, ANNAL_SLICE("c"), NULL, &info, err));
    ck_assert_str_eq(info.fork_session, "a");
    ck_ok(annal_session_fork(store, ANNAL_SLICE("b"), 6, ANNAL_SLICE("d"), NULL, &info, err));
    ck_assert_str_eq(info.fork_session, "b");
    append_numbers(store, "d", 40, 41, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_fork(store, ANNAL_SLICE("d"), ANNAL_FORK_LAST, ANNAL_SLICE("e"), NULL,
                             &info, err));
    ck_assert_str_eq(info.fork_session, "d");
    ck_assert_uint_eq(info.fork_seq, 8);
    ck_assert_str_eq(history("c", 0), "1 2 3 4 ");
    ck_assert_str_eq(history("e", 0), "1 2 3 4 20 21 40 41 ");
    ck_assert_str_eq(history("e", 2), "2 3 4 20 21 40 41 ");
    ck_assert_str_eq(history("e", 6), "21 40 41 ");
    for (const char *session = "abcde"; *session != '\0'; session++)
        ck_sound((char[]){*session, '\0'});
}
END_TEST

static int note_part(void *arg, const annal_lineage_part *part)
{
    char *text = arg;
    snprintf(text + strlen(text), 200, "%.*s:%" PRIu64 "-", ANNAL_FMT(part->session),
             part->from_seq);
    if (part->to_seq == UINT64_MAX)
        strcat(text, "* ");
    else
        sprintf(text + strlen(text), "%" PRIu64 " ", part->to_seq);
    return 0;
}

START_TEST(a_lineage_names_each_part_of_the_history)
{
    char text[1000] = "";
    append_numbers(store, "a", 1, 6, ANNAL_LEVEL_SYNC);
    fork_at("a", 4, "b");
    append_numbers(store, "b", 20, 22, ANNAL_LEVEL_SYNC);
    fork_at("b", 6, "c");
    ck_ok(annal_lineage_each(store, ANNAL_SLICE("c"), note_part, text, err));
    ck_assert_str_eq(text, "c:7-* b:5-6 a:1-4 ");
    text[0] = '\0';
    ck_ok(annal_lineage_each(store, ANNAL_SLICE("a"), note_part, text, err));
    ck_assert_str_eq(text, "a:1-* ");
}
END_TEST

START_TEST(a_fork_may_have_another_format_than_its_parent)
{
    annal_session_info info;
    const annal_fork_options msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_fork(store, ANNAL_SLICE("p"), 3, ANNAL_SLICE("f"), &msgpack, &info, err));
    ck_assert_int_eq(info.format, ANNAL_FORMAT_MSGPACK);
    append_numbers(store, "f", 70, 71, ANNAL_LEVEL_SYNC);
    fork_at("f", 4, "g"); /* in the format of its parent */
    append_numbers(store, "g", 80, 80, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(history("f", 0), "1 2 3 70 71 ");
    ck_assert_str_eq(history("g", 0), "1 2 3 70 80 ");
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("g"), &info, err));
    ck_assert_int_eq(info.format, ANNAL_FORMAT_MSGPACK);
    ck_sound("f");
    ck_sound("g");
}
END_TEST

START_TEST(a_refused_fork_leaves_nothing)
{
    annal_error why = {0};
    annal_slice p = ANNAL_SLICE("p"), f = ANNAL_SLICE("f");
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "q", 1, 1, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_NOTFOUND, annal_session_fork(store, p, 6, f, NULL, NULL, err));
    ck_status(ANNAL_ERR_NOTFOUND,
              annal_session_fork(store, ANNAL_SLICE("none"), 1, f, NULL, NULL, err));
    ck_status(ANNAL_ERR_INVALID,
              annal_session_fork(store, p, 1, ANNAL_SLICE(".f"), NULL, NULL, err));
    ck_status(ANNAL_ERR_CONFLICT, annal_session_fork(store, p, 2, p, NULL, NULL, err));
    annal_status status = annal_session_fork(store, p, 2, ANNAL_SLICE("q"), NULL, NULL, &why);
    ck_assert_str_eq(refusal(status, &why), "conflict: session 'q' already exists");
    ck_assert_int_ne(access(tmpdir_path(&dir, "store/events/f.jsonl"), F_OK), 0);
    ck_assert_str_eq(history("p", 0), "1 2 3 4 5 ");
    append_numbers(store, "f", 1, 1, ANNAL_LEVEL_SYNC);
}
END_TEST

START_TEST(a_fork_makes_the_events_of_its_parent_durable)
{
    static const annal_level levels[] = {ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS};
    for (size_t i = 0; i < 2; i++) {
        annal_store *other = store_open(tmpdir_path(&dir, "store"));
        append_numbers(store, "p", 1, 5, levels[i]);
        fork_at("p", 5, "f");
        ck_assert_str_eq(history("f", 0), "1 2 3 4 5 ");
        append_numbers(store, "p", 6, 7, ANNAL_LEVEL_OS);
        ck_ok(annal_session_fork(other, ANNAL_SLICE("p"), 7, ANNAL_SLICE("g"), NULL, NULL,
                                 err)); /* the other one has the session */
        ck_assert_str_eq(history("g", 0), "1 2 3 4 5 6 7 ");
        store_close(other);
        teardown();
        setup();
    }
}
END_TEST

START_TEST(an_append_to_a_fork_compares_the_expected_seq_with_the_whole_history)
{
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    append_slice(store, "p", ANNAL_SLICE("1"), "one", ANNAL_LEVEL_SYNC, &seq, NULL);
    append_slice(store, "p", ANNAL_SLICE("2"), "two", ANNAL_LEVEL_SYNC, &seq, NULL);
    fork_at("p", 2, "f");
    ck_ok(annal_writer_open(store, ANNAL_SLICE("f"), NULL, &writer, err));
    const annal_draft draft = {.type = ANNAL_SLICE("test.event"), .data = ANNAL_SLICE("3")};
    annal_append_options options = {.expect = ANNAL_EXPECT_NONE};
    ck_status(ANNAL_ERR_CONFLICT, annal_writer_append(writer, &draft, 1, &options, &seq, err));
    options = (annal_append_options){.expect = ANNAL_EXPECT_SEQ, .expected_seq = 1};
    ck_status(ANNAL_ERR_CONFLICT, annal_writer_append(writer, &draft, 1, &options, &seq, err));
    options.expected_seq = 2;
    ck_ok(annal_writer_append(writer, &draft, 1, &options, &seq, err));
    ck_assert_uint_eq(seq, 3);
    /* The ids of its ancestors are free in it; its own are not. */
    const annal_draft named = {
        .type = ANNAL_SLICE("test.event"), .data = ANNAL_SLICE("9"), .id = ANNAL_SLICE("two")};
    ck_ok(annal_writer_append(writer, &named, 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 4);
    ck_ok(annal_writer_append(writer, &named, 1, NULL, &seq, err));
    ck_assert_uint_eq(seq, 4);
    annal_writer_close(writer);
}
END_TEST

START_TEST(time_does_not_go_back_after_a_fork_point)
{
    annal_writer *writer = NULL;
    annal_cursor *cursor = NULL;
    annal_event event;
    uint64_t seq;
    int64_t now_us = annal__system_clock.wall_us(annal__system_clock.arg);
    ck_ok(annal_writer_open(store, ANNAL_SLICE("p"), NULL, &writer, err));
    const annal_draft soon = {
        .type = ANNAL_SLICE("test.event"), .data = ANNAL_SLICE("1"), .ts_us = now_us + 20000000};
    ck_ok(annal_writer_append(writer, &soon, 1, NULL, &seq, err));
    annal_writer_close(writer);
    fork_at("p", 1, "f");
    append_numbers(store, "f", 2, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("f"), 2, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_int_eq(event.ts_us, now_us + 20000000);
    annal_cursor_close(cursor);
}
END_TEST

START_TEST(the_parent_of_a_fork_cannot_be_deleted_or_converted_but_the_fork_can)
{
    annal_convert_result converted;
    const annal_convert_options msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    fork_at("p", 3, "f");
    append_numbers(store, "f", 70, 71, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_CONFLICT, delete_wiped(store, ANNAL_SLICE("p"), NULL, err));
    ck_status(ANNAL_ERR_CONFLICT,
              annal_session_convert(store, ANNAL_SLICE("p"), &msgpack, &converted, err));
    ck_ok(annal_session_convert(store, ANNAL_SLICE("f"), &msgpack, &converted, err));
    ck_assert_uint_eq(converted.events, 2);
    ck_assert_str_eq(history("f", 0), "1 2 3 70 71 ");
    ck_sound("f");
    append_numbers(store, "f", 72, 72, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(history("f", 0), "1 2 3 70 71 72 ");
    fork_at("f", 4, "g"); /* one without events of its own */
    const annal_convert_options json = {.format = ANNAL_FORMAT_JSON};
    ck_ok(annal_session_convert(store, ANNAL_SLICE("g"), &json, &converted, err));
    ck_assert_str_eq(history("g", 0), "1 2 3 70 ");
    ck_sound("g");
    ck_ok(delete_wiped(store, ANNAL_SLICE("g"), NULL, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("f"), NULL, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("p"), NULL, err));
}
END_TEST

/* Every event of the history, until the failure that is expected. */
static annal_status read_all(const char *session, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status = annal_cursor_open(store, annal_slice_of(session), 0, &cursor, err);
    while (status >= 0 && status != ANNAL_END)
        status = annal_cursor_next(cursor, &event, err);
    annal_cursor_close(cursor);
    return status;
}

START_TEST(a_parent_with_another_history_is_detected_and_named)
{
    annal_verify_result result;
    annal_repair_result repaired;
    annal_error why = {0};
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "q", 1, 5, ANNAL_LEVEL_SYNC);
    fork_at("p", 3, "f");
    append_numbers(store, "f", 70, 71, ANNAL_LEVEL_SYNC);
    store_close(store);
    /* A user moves the journal to another name and begins a new journal of the same name. */
    ck_assert_int_eq(
        rename(tmpdir_path(&dir, "store/events/p.jsonl"), tmpdir_path(&dir, "store/events/old")),
        0);
    store = store_open(tmpdir_path(&dir, "store"));
    annal_status status = read_all("f", &why);
    ck_assert_str_eq(refusal(status, &why),
                     "corrupt: session 'f': session 'f' is a fork of session 'p', which "
                     "cannot be read: there is no session 'p'");
    ck_assert_str_eq(history("f", 4), "70 71 "); /* its own events can still be read */
    append_numbers(store, "p", 1, 2, ANNAL_LEVEL_SYNC);
    status = read_all("f", &why);
    ck_assert_str_eq(refusal(status, &why),
                     "corrupt: session 'f': session 'f' is a fork of session 'p' at event "
                     "3, but the parent's events up to there were replaced after the fork");
    append_numbers(store, "p", 3, 4, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(read_all("f", NULL), ANNAL_ERR_CORRUPT);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("f"), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 1);
    ck_assert_uint_eq(result.events, 2);
    /* What was appended to it is not lost, and what is not known to be its history is not taken. */
    ck_ok(annal_session_repair(store, ANNAL_SLICE("f"), ANNAL_SLICE("g"), NULL, NULL, NULL,
                               &repaired, err));
    ck_assert_uint_eq(repaired.events, 2);
    ck_assert_uint_eq(repaired.gap_events, 3);
    ck_assert_uint_eq(repaired.last_seq, 5);
}
END_TEST

START_TEST(a_repair_turns_a_fork_into_a_plain_session)
{
    annal_session_info info;
    annal_repair_result repaired;
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    fork_at("p", 3, "f");
    append_numbers(store, "f", 70, 71, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_repair(store, ANNAL_SLICE("f"), ANNAL_SLICE("g"), NULL, NULL, NULL,
                               &repaired, err));
    ck_assert_uint_eq(repaired.gaps, 0);
    ck_assert_str_eq(history("g", 0), "1 2 3 70 71 ");
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("g"), &info, err));
    ck_assert_str_eq(info.fork_session, "");
}
END_TEST

START_TEST(a_cursor_of_a_fork_skips_damage_before_the_fork_point)
{
    size_t len = 0;
    annal_cursor *cursor = NULL;
    annal_event event;
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    fork_at("p", 4, "f");
    append_numbers(store, "f", 70, 70, ANNAL_LEVEL_SYNC);
    store_close(store);
    char *bytes = file_read(tmpdir_path(&dir, "store/events/p.jsonl"), &len);
    char *place = strstr(bytes, "{\"seq\":2");
    ck_assert_ptr_nonnull(place);
    place[20] ^= 1;
    file_write(tmpdir_path(&dir, "store/events/p.jsonl"), bytes, len);
    free(bytes);
    store = store_open(tmpdir_path(&dir, "store"));
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("f"), 0, &cursor, err));
    static const uint64_t seqs[] = {1, 0, 3, 4, 5};
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++) {
        annal_status status = annal_cursor_next(cursor, &event, NULL);
        ck_assert_int_eq(status, seqs[i] == 0 ? ANNAL_DAMAGE : ANNAL_OK);
        if (seqs[i] == 0)
            ck_assert_uint_eq(annal_cursor_damage(cursor).seq, 2);
        else
            ck_assert_uint_eq(event.seq, seqs[i]);
        annal_slice journal = annal__cursor_journal(cursor);
        ck_assert_int_eq(journal.ptr[0], i < 4 ? 'p' : 'f');
    }
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    annal_cursor_close(cursor);
}
END_TEST

/* Change a byte in the middle of an event of p. */
static void damage_event(const char *name, uint64_t seq)
{
    char path[64];
    size_t len = 0;
    annal_cursor *cursor = NULL;
    annal_event event;
    snprintf(path, sizeof path, "store/events/%s", name);
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("p"), seq, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.seq, seq);
    char *bytes = file_read(tmpdir_path(&dir, path), &len);
    bytes[event.offset + event.length / 2] ^= 1;
    file_write(tmpdir_path(&dir, path), bytes, len);
    annal_cursor_close(cursor);
    free(bytes);
}

/* p has 9 events and a fork at 6; one of them is damaged. */
static void ck_damage_is_no_other_history(annal_format format, uint64_t damaged)
{
    annal_verify_result result;
    annal_repair_result repaired;
    annal_convert_result converted;
    annal_error why = {0};
    const annal_convert_options to = {.format = format};
    append_numbers(store, "p", 1, 9, ANNAL_LEVEL_OS);
    if (format == ANNAL_FORMAT_MSGPACK)
        ck_ok(annal_session_convert(store, ANNAL_SLICE("p"), &to, &converted, err));
    fork_at("p", 6, "k");
    append_numbers(store, "k", 70, 70, ANNAL_LEVEL_OS);
    damage_event(format == ANNAL_FORMAT_MSGPACK ? "p.mpk" : "p.jsonl", damaged);
    ck_ok(annal__lineage_check(store, ANNAL_SLICE("k"), NULL, err));
    ck_ok(annal_session_verify(store, ANNAL_SLICE("k"), NULL, NULL, &result, err));
    ck_assert_uint_eq(result.findings, 0);
    ck_ok(annal_session_repair(store, ANNAL_SLICE("k"), ANNAL_SLICE("kr"), NULL, NULL, NULL,
                               &repaired, err));
    ck_assert_uint_eq(repaired.events, damaged > 6 ? 7 : 6);
    ck_assert_uint_eq(repaired.gap_events, damaged > 6 ? 0 : 1);
    annal_status status =
        annal_session_fork(store, ANNAL_SLICE("p"), 6, ANNAL_SLICE("z"), NULL, NULL, &why);
    if (damaged == 6)
        ck_assert_str_eq(
            refusal(status, &why),
            "corrupt: session 'p' is damaged at event 6: fork the session at an earlier event");
    else
        ck_assert_int_eq(status, ANNAL_OK);
    fork_at("k", 7, "y");
    teardown();
    setup();
}

START_TEST(damage_around_the_fork_point_is_not_another_history)
{
    for (uint64_t damaged = 1; damaged <= 8; damaged++) {
        ck_damage_is_no_other_history(ANNAL_FORMAT_JSON, damaged);
        ck_damage_is_no_other_history(ANNAL_FORMAT_MSGPACK, damaged);
    }
}
END_TEST

START_TEST(another_history_of_the_parent_is_detected_even_if_damaged)
{
    for (uint64_t damaged = 4; damaged <= 8; damaged++) {
        annal_session_info info;
        append_numbers(store, "p", 1, 9, ANNAL_LEVEL_OS);
        fork_at("p", 6, "k");
        append_numbers(store, "k", 70, 70, ANNAL_LEVEL_OS);
        store_close(store);
        ck_assert_int_eq(
            rename(tmpdir_path(&dir, "store/events/p.jsonl"), tmpdir_path(&dir, "store/old")), 0);
        store = store_open(tmpdir_path(&dir, "store"));
        append_numbers(store, "p", 31, 39, ANNAL_LEVEL_OS);
        damage_event("p.jsonl", damaged);
        ck_status(ANNAL_ERR_CORRUPT, annal__lineage_check(store, ANNAL_SLICE("k"), NULL, err));
        ck_status(ANNAL_ERR_CORRUPT, read_all("k", err));
        ck_status(ANNAL_ERR_CORRUPT, annal_session_fork(store, ANNAL_SLICE("k"), 3,
                                                        ANNAL_SLICE("stray"), NULL, NULL, err));
        ck_status(ANNAL_ERR_NOTFOUND,
                  annal_session_info_get(store, ANNAL_SLICE("stray"), &info, err));
        teardown();
        setup();
    }
}
END_TEST

/* A journal that holds nothing but a header. */
static void write_header(const char *path, const char *session, const char *fork, uint64_t seq)
{
    struct buf out = {0};
    uint64_t h;
    const struct frame_header header = {.session = annal_slice_of(session),
                                        .file = {(uint8_t)session[0]},
                                        .fork = annal_slice_of(fork),
                                        .fork_seq = seq};
    ck_assert_int_eq(annal__codec_json.encode_header(&out, &header, &h), ANNAL_OK);
    file_write(path, out.ptr, out.len);
    annal__buf_done(&out);
}

START_TEST(forks_in_a_circle_are_refused)
{
    annal_verify_result result;
    write_header(tmpdir_path(&dir, "store/events/a.jsonl"), "a", "b", 4);
    write_header(tmpdir_path(&dir, "store/events/b.jsonl"), "b", "a", 4);
    write_header(tmpdir_path(&dir, "store/events/c.jsonl"), "c", "c", 4);
    write_header(tmpdir_path(&dir, "store/events/d.jsonl"), "d", "../d", 4);
    for (const char *session = "abcd"; *session != '\0'; session++) {
        const char id[] = {*session, '\0'};
        /* no session has the name '../d', so that line is not a header */
        ck_assert_int_eq(read_all(id, NULL), *session == 'd' ? ANNAL_END : ANNAL_ERR_CORRUPT);
        ck_ok(annal_session_verify(store, annal_slice_of(id), NULL, NULL, &result, err));
        ck_assert_uint_eq(result.findings, 1);
    }
}
END_TEST

START_TEST(a_cursor_at_an_offset_reads_only_the_journal_of_the_fork)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    append_numbers(store, "p", 1, 5, ANNAL_LEVEL_SYNC);
    fork_at("p", 3, "f");
    append_numbers(store, "f", 70, 70, ANNAL_LEVEL_SYNC);
    ck_ok(annal_cursor_open_at(store, ANNAL_SLICE("f"), 1, 0, 0, &cursor, err));
    ck_assert_uint_eq(annal_cursor_position(cursor).seq, 4);
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event.seq, 4);
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    annal_cursor_close(cursor);
}
END_TEST

START_TEST(a_reader_at_the_fork_point_sees_later_appends)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    append_numbers(store, "p", 1, 2, ANNAL_LEVEL_SYNC);
    fork_at("p", 2, "f");
    ck_ok(annal_cursor_open(store, ANNAL_SLICE("f"), 2, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    append_numbers(store, "p", 3, 3, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    append_numbers(store, "f", 70, 70, ANNAL_LEVEL_SYNC);
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_uint_eq(event_number(&event), 70);
    annal_cursor_close(cursor);
}
END_TEST

/* ---- Against a plain array ---- */

#define SESSIONS 8
#define LENGTH   60

struct model {
    uint64_t numbers[SESSIONS][LENGTH];
    uint64_t lengths[SESSIONS];
    size_t sessions;
    uint64_t next;
};

static const char *id_of(size_t session)
{
    static char ids[SESSIONS][24];
    snprintf(ids[session], sizeof ids[session], "s%zu", session);
    return ids[session];
}

static void model_append(struct model *model, size_t session, struct random *r)
{
    static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS,
                                         ANNAL_LEVEL_OS,   ANNAL_LEVEL_OS,    ANNAL_LEVEL_OS};
    uint64_t seq = 0;
    if (model->lengths[session] == LENGTH)
        return;
    uint64_t number = ++model->next;
    ck_ok(append_number(store, id_of(session), number, 20, levels[random_below(r, 6)], &seq, err));
    model->numbers[session][model->lengths[session]++] = number;
    ck_assert_uint_eq(seq, model->lengths[session]);
}

static void model_fork(struct model *model, size_t parent, struct random *r)
{
    const annal_fork_options options = {.format = (annal_format)random_below(r, 3)};
    if (model->sessions == SESSIONS)
        return;
    uint64_t at = 1 + random_below(r, model->lengths[parent]);
    size_t child = model->sessions++;
    ck_ok(annal_session_fork(store, annal_slice_of(id_of(parent)), at, annal_slice_of(id_of(child)),
                             &options, NULL, err));
    memcpy(model->numbers[child], model->numbers[parent], at * sizeof *model->numbers[parent]);
    model->lengths[child] = at;
}

static void model_compare(const struct model *model, size_t session, struct random *r)
{
    annal_cursor *cursor = NULL;
    uint64_t from = 1 + random_below(r, model->lengths[session] + 1);
    ck_ok(annal_cursor_open(store, annal_slice_of(id_of(session)), from, &cursor, err));
    for (uint64_t seq = from; seq <= model->lengths[session]; seq++) {
        annal_event event;
        ck_ok(annal_cursor_next(cursor, &event, err));
        ck_assert_uint_eq(event.seq, seq);
        ck_assert_uint_eq(event_number(&event), model->numbers[session][seq - 1]);
    }
    annal_event event;
    ck_assert_int_eq(annal_cursor_next(cursor, &event, NULL), ANNAL_END);
    annal_cursor_close(cursor);
}

START_TEST(random_histories_of_forks_equal_those_in_plain_arrays)
{
    struct random r = random_init(20261120);
    for (int round = 0; round < 3; round++) {
        struct model model = {.sessions = 1};
        model_append(&model, 0, &r);
        for (int step = 0; step < 80; step++) {
            size_t session = random_below(&r, model.sessions);
            uint64_t what = random_below(&r, 20);
            if (what < 12) {
                model_append(&model, session, &r);
            } else if (what < 16) {
                model_fork(&model, session, &r);
            } else if (what == 16) {
                store_close(store);
                store = store_open(tmpdir_path(&dir, "store"));
            } else {
                ck_ok(annal_store_sync(store, err)); /* batches stand in the log at first */
                model_compare(&model, session, &r);
            }
        }
        ck_ok(annal_store_sync(store, err));
        for (size_t i = 0; i < model.sessions; i++) {
            model_compare(&model, i, &r);
            ck_sound(id_of(i));
        }
        teardown();
        setup();
    }
}
END_TEST

Suite *suite_fork(void)
{
    Suite *suite = suite_create("fork");
    TCase *tests = suite_case(suite, "fork", setup, teardown);
    tcase_add_test(tests, a_fork_has_the_events_of_its_parent_and_continues_alone);
    tcase_add_test(tests, a_fork_of_a_fork_points_to_the_session_that_holds_the_event);
    tcase_add_test(tests, a_lineage_names_each_part_of_the_history);
    tcase_add_test(tests, a_fork_may_have_another_format_than_its_parent);
    tcase_add_test(tests, a_refused_fork_leaves_nothing);
    tcase_add_test(tests, a_fork_makes_the_events_of_its_parent_durable);
    tcase_add_test(tests, an_append_to_a_fork_compares_the_expected_seq_with_the_whole_history);
    tcase_add_test(tests, time_does_not_go_back_after_a_fork_point);
    tcase_add_test(tests, the_parent_of_a_fork_cannot_be_deleted_or_converted_but_the_fork_can);
    tcase_add_test(tests, a_parent_with_another_history_is_detected_and_named);
    tcase_add_test(tests, a_repair_turns_a_fork_into_a_plain_session);
    tcase_add_test(tests, a_cursor_of_a_fork_skips_damage_before_the_fork_point);
    tcase_add_test(tests, damage_around_the_fork_point_is_not_another_history);
    tcase_add_test(tests, another_history_of_the_parent_is_detected_even_if_damaged);
    tcase_add_test(tests, forks_in_a_circle_are_refused);
    tcase_add_test(tests, a_cursor_at_an_offset_reads_only_the_journal_of_the_fork);
    tcase_add_test(tests, a_reader_at_the_fork_point_sees_later_appends);
    tcase_add_test(tests, random_histories_of_forks_equal_those_in_plain_arrays);
    return suite;
}
