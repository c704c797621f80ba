/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS 9

struct journal {
    struct tmpdir dir;
    annal_store *store;
    const char *file;
    char *bytes;
    size_t len;
    size_t starts[EVENTS + 2]; /* of the lines; the header is line 0 */
};

/* Times and ids differ, so that a copy that mixes them up shows. */
static void fill(annal_store *store)
{
    annal_writer *writer = NULL;
    ck_ok(annal_writer_open(store, ANNAL_SLICE("old"), NULL, &writer, err));
    for (uint64_t number = 1; number <= EVENTS; number++) {
        char data[200], id[16];
        uint64_t seq;
        snprintf(id, sizeof id, "id%" PRIu64, number);
        const annal_draft draft = {.type = ANNAL_SLICE("test.event"),
                                   .data = event_data(data, sizeof data, number, number * 3),
                                   .id = annal_slice_of(number % 2 == 0 ? id : NULL),
                                   .cause = annal_slice_of(number % 3 == 0 ? "old:1" : NULL),
                                   .ts_us = (int64_t)(1700000000000000 - number * 1000)};
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
        ck_assert_uint_eq(seq, number);
    }
    annal_writer_close(writer);
}

static void journal_init(struct journal *journal)
{
    tmpdir_init(&journal->dir);
    const char *path = tmpdir_path(&journal->dir, "store");
    journal->store = store_open(path);
    fill(journal->store);
    store_close(journal->store);
    journal->file = tmpdir_path(&journal->dir, "store/events/old.jsonl");
    journal->bytes = file_read(journal->file, &journal->len);
    size_t found = 0;
    for (size_t i = 0; i < journal->len; i++)
        if (i == 0 || journal->bytes[i - 1] == '\n')
            journal->starts[found++] = i;
    ck_assert_uint_eq(found, EVENTS + 1);
    journal->starts[found] = journal->len;
    journal->store = store_open(path);
}

static void journal_done(struct journal *journal)
{
    free(journal->bytes);
    store_close(journal->store);
    tmpdir_done(&journal->dir);
}

/* Write the bytes in memory to the journal. */
static void journal_write(struct journal *journal, const void *bytes, size_t len)
{
    file_write(journal->file, bytes, len);
}

struct gaps {
    annal_gap list[20];
    size_t count;
};

static void note_gap(void *arg, const annal_gap *gap)
{
    struct gaps *gaps = arg;
    ck_assert_uint_lt(gaps->count, 20);
    gaps->list[gaps->count++] = *gap;
}

static bool same(annal_slice a, annal_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* That session new is old with gap events in the place of first to last; both are read side by
 * side. */
static void ck_copy(struct journal *journal, const char *name, uint64_t first, uint64_t last,
                    uint64_t end)
{
    annal_cursor *new = NULL;
    annal_event copy;
    char data[200], id[16];
    ck_ok(annal_cursor_open(journal->store, annal_slice_of(name), 0, &new, err));
    for (uint64_t number = 1; number <= end; number++) {
        ck_ok(annal_cursor_next(new, &copy, err));
        ck_assert_uint_eq(copy.seq, number);
        if (number >= first && number <= last) {
            ck_assert(same(copy.type, ANNAL_SLICE("annal.gap")));
            continue;
        }
        snprintf(id, sizeof id, "id%" PRIu64, number);
        ck_assert(same(copy.type, ANNAL_SLICE("test.event")));
        ck_assert(same(copy.data, event_data(data, sizeof data, number, number * 3)));
        ck_assert(same(copy.id, annal_slice_of(number % 2 == 0 ? id : NULL)));
        ck_assert(same(copy.cause, annal_slice_of(number % 3 == 0 ? "old:1" : NULL)));
        ck_assert_int_eq(copy.ts_us, (int64_t)(1700000000000000 - number * 1000));
    }
    ck_assert_int_eq(annal_cursor_next(new, &copy, NULL), ANNAL_END);
    annal_cursor_close(new);
}

static annal_repair_result repair(struct journal *journal, const char *to, struct gaps *gaps)
{
    annal_repair_result result;
    struct gaps ignored = {.count = 0};
    size_t len;
    char *before = file_read(journal->file, &len), *after;
    ck_ok(annal_session_repair(journal->store, ANNAL_SLICE("old"), annal_slice_of(to), NULL,
                               note_gap, gaps != NULL ? gaps : &ignored, &result, err));
    after = file_read(journal->file, NULL);
    ck_assert_mem_eq(before, after, len);
    free(before);
    free(after);
    return result;
}

START_TEST(a_sound_session_is_copied_completely)
{
    struct journal journal;
    journal_init(&journal);
    annal_repair_result result = repair(&journal, "new", NULL);
    ck_assert_uint_eq(result.events, EVENTS);
    ck_assert_uint_eq(result.gaps + result.lost_bytes + result.mended + result.torn_bytes, 0);
    ck_copy(&journal, "new", 1, 0, EVENTS);
    journal_done(&journal);
}
END_TEST

START_TEST(each_missing_event_leaves_a_gap_event_so_that_every_other_keeps_its_seq)
{
    struct journal journal;
    struct gaps gaps = {.count = 0};
    journal_init(&journal);
    for (size_t line = 4; line <= 6; line++)
        journal.bytes[journal.starts[line] + 90] ^= 1;
    journal_write(&journal, journal.bytes, journal.len);
    annal_repair_result result = repair(&journal, "new", &gaps);
    ck_assert_uint_eq(result.events, EVENTS - 3);
    ck_assert_uint_eq(result.gaps, 1);
    ck_assert_uint_eq(result.gap_events, 3);
    ck_assert_uint_eq(result.last_seq, EVENTS);
    ck_assert_uint_eq(gaps.count, 1);
    ck_assert_uint_eq(gaps.list[0].first_seq, 4);
    ck_assert_uint_eq(gaps.list[0].last_seq, 6);
    ck_assert_uint_eq(gaps.list[0].offset, journal.starts[4]);
    ck_assert_uint_eq(gaps.list[0].bytes, journal.starts[7] - journal.starts[4]);
    ck_copy(&journal, "new", 4, 6, EVENTS);

    annal_cursor *cursor = NULL;
    annal_event event;
    char data[200];
    snprintf(data, sizeof data,
             "{\"session\":\"old\",\"first_seq\":4,\"last_seq\":6,\"offset\":%zu,\"bytes\":%zu,"
             "\"why\":\"",
             journal.starts[4], journal.starts[7] - journal.starts[4]);
    ck_ok(annal_cursor_open(journal.store, ANNAL_SLICE("new"), 5, &cursor, err));
    ck_ok(annal_cursor_next(cursor, &event, err));
    ck_assert_msg(strncmp(event.data.ptr, data, strlen(data)) == 0, "%.*s", ANNAL_FMT(event.data));
    annal_cursor_close(cursor);
    journal_done(&journal);
}
END_TEST

START_TEST(one_gap_event_of_unknown_length_follows_the_last_proven_event)
{
    struct journal journal;
    struct gaps gaps = {.count = 0};
    journal_init(&journal);
    for (size_t line = 8; line <= 9; line++)
        journal.bytes[journal.starts[line] + 90] ^= 1;
    journal_write(&journal, journal.bytes, journal.len);
    annal_repair_result result = repair(&journal, "new", &gaps);
    ck_assert_uint_eq(result.gap_events, 1);
    ck_assert_uint_eq(gaps.list[0].first_seq, 8);
    ck_assert_uint_eq(gaps.list[0].last_seq, 0);
    ck_assert_uint_eq(gaps.list[0].bytes, journal.len - journal.starts[8]);
    ck_copy(&journal, "new", 8, 8, 8);
    journal_done(&journal);
}
END_TEST

START_TEST(a_torn_tail_was_never_acknowledged_and_leaves_no_gap)
{
    struct journal journal;
    journal_init(&journal);
    journal_write(&journal, journal.bytes, journal.starts[9] + 40);
    annal_repair_result result = repair(&journal, "new", NULL);
    ck_assert_uint_eq(result.gaps, 0);
    ck_assert_uint_eq(result.torn_bytes, 40);
    ck_copy(&journal, "new", 1, 0, 8);
    journal_done(&journal);
}
END_TEST

START_TEST(doubled_lines_are_skipped)
{
    struct journal journal;
    journal_init(&journal);
    size_t block = journal.starts[7] - journal.starts[3], behind = journal.len - journal.starts[7];
    char *bytes = malloc(journal.len + block);
    memcpy(bytes, journal.bytes, journal.starts[7]);
    memcpy(bytes + journal.starts[7], journal.bytes + journal.starts[3], block);
    memcpy(bytes + journal.starts[7] + block, journal.bytes + journal.starts[7], behind);
    journal_write(&journal, bytes, journal.len + block);
    annal_repair_result result = repair(&journal, "new", NULL);
    ck_assert_uint_gt(result.doubled, 0);
    ck_assert_uint_eq(result.events, EVENTS);
    ck_copy(&journal, "new", 1, 0, EVENTS);
    free(bytes);
    journal_done(&journal);
}
END_TEST

START_TEST(lines_that_were_cut_out_leave_gap_events)
{
    struct journal journal;
    journal_init(&journal);
    size_t behind = journal.len - journal.starts[5];
    memmove(journal.bytes + journal.starts[3], journal.bytes + journal.starts[5], behind);
    journal_write(&journal, journal.bytes, journal.starts[3] + behind);
    /* Event 5 proves itself no more, since what stood before it is gone. */
    annal_repair_result result = repair(&journal, "new", NULL);
    ck_assert_uint_eq(result.gap_events, 3);
    ck_copy(&journal, "new", 3, 5, EVENTS);
    journal_done(&journal);
}
END_TEST

/* The data has the same value in both formats, and so has the copy. */
START_TEST(a_repair_may_change_the_format)
{
    static const annal_format formats[] = {ANNAL_FORMAT_MSGPACK, ANNAL_FORMAT_JSON};
    struct journal journal;
    annal_repair_result result;
    annal_session_info info;
    char name[8] = "old", next[8];
    journal_init(&journal);
    journal.bytes[journal.starts[4] + 90] ^= 1;
    journal_write(&journal, journal.bytes, journal.len);
    for (size_t i = 0; i < 2; i++) {
        const annal_repair_options options = {.format = formats[i]};
        snprintf(next, sizeof next, "new%zu", i);
        ck_ok(annal_session_repair(journal.store, annal_slice_of(name), annal_slice_of(next),
                                   &options, NULL, NULL, &result, err));
        ck_ok(annal_session_info_get(journal.store, annal_slice_of(next), &info, err));
        ck_assert_int_eq(info.format, formats[i]);
        ck_copy(&journal, next, 4, 4, EVENTS);
        snprintf(name, sizeof name, "%s", next);
    }
    ck_ok(annal_session_repair(journal.store, ANNAL_SLICE("new0"), ANNAL_SLICE("new2"), NULL, NULL,
                               NULL, &result, err));
    ck_ok(annal_session_info_get(journal.store, ANNAL_SLICE("new2"), &info, err));
    ck_assert_int_eq(info.format, ANNAL_FORMAT_MSGPACK);
    journal_done(&journal);
}
END_TEST

START_TEST(a_dry_run_reports_the_same_and_writes_nothing)
{
    struct journal journal;
    journal_init(&journal);
    journal.bytes[journal.starts[2] + 90] ^= 1;
    journal_write(&journal, journal.bytes, journal.len);
    annal_repair_result dry = repair(&journal, "", NULL);
    annal_session_info info;
    ck_assert_int_eq(annal_session_info_get(journal.store, ANNAL_SLICE("new"), &info, NULL),
                     ANNAL_ERR_NOTFOUND);
    annal_repair_result wet = repair(&journal, "new", NULL);
    ck_assert_mem_eq(&dry, &wet, sizeof dry);
    journal_done(&journal);
}
END_TEST

START_TEST(a_repair_never_writes_into_an_existing_session)
{
    struct journal journal;
    annal_repair_result result;
    journal_init(&journal);
    append_numbers(journal.store, "new", 1, 2, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_CONFLICT,
              annal_session_repair(journal.store, ANNAL_SLICE("old"), ANNAL_SLICE("new"), NULL,
                                   NULL, NULL, &result, err));
    ck_status(ANNAL_ERR_CONFLICT,
              annal_session_repair(journal.store, ANNAL_SLICE("old"), ANNAL_SLICE("old"), NULL,
                                   NULL, NULL, &result, err));
    ck_status(ANNAL_ERR_NOTFOUND,
              annal_session_repair(journal.store, ANNAL_SLICE("none"), ANNAL_SLICE("x"), NULL, NULL,
                                   NULL, &result, err));
    ck_numbers(journal.store, "new", 2);
    journal_done(&journal);
}
END_TEST

START_TEST(a_damaged_end_refuses_appends_and_explains_what_to_do)
{
    struct journal journal;
    annal_error err = {0};
    uint64_t seq;
    journal_init(&journal);
    journal.bytes[journal.starts[9] + 90] ^= 1;
    journal_write(&journal, journal.bytes, journal.len);
    ck_assert_int_eq(
        append_slice(journal.store, "old", ANNAL_SLICE("1"), NULL, ANNAL_LEVEL_SYNC, &seq, &err),
        ANNAL_ERR_CORRUPT);
    ck_assert_ptr_nonnull(strstr(err.message, "annal repair old --to NEW"));
    journal_done(&journal);
}
END_TEST

/* Whichever byte is wrong, each copied event is the original event, under its own seq. */
START_TEST(a_flipped_byte_costs_its_event_and_never_gives_a_wrong_event)
{
    struct journal journal;
    journal_init(&journal);
    unsigned step = many_or(17, 100);
    for (size_t at = 0; at < journal.len; at += step) {
        char name[40];
        size_t line = 0;
        while (journal.starts[line + 1] <= at)
            line++;
        snprintf(name, sizeof name, "new%zu", at);
        journal.bytes[at] ^= 0x15;
        journal_write(&journal, journal.bytes, journal.len);
        annal_repair_result result = repair(&journal, name, NULL);
        ck_assert_uint_ge(result.events, EVENTS - 2);
        if (result.gaps == 0)
            ck_copy(&journal, name, 1, 0, EVENTS);
        else if (result.last_seq == EVENTS && result.gap_events == 1)
            ck_copy(&journal, name, line, line, EVENTS);
        else
            ck_assert_uint_ge(line, EVENTS - 1);
        journal.bytes[at] ^= 0x15;
    }
    journal_done(&journal);
}
END_TEST

/* ---- Journals whose hashes are right, and which we would never have written ---- */

struct forgery {
    struct buf bytes;
    uint64_t h;
};

static void forge_header(struct forgery *forgery)
{
    const struct frame_header header = {.session = ANNAL_SLICE("forged"), .created_us = 1};
    ck_assert_int_eq(annal__codec_json.encode_header(&forgery->bytes, &header, &forgery->h), 0);
}

static void forge_event(struct forgery *forgery, uint64_t seq, const char *id, const char *data)
{
    const annal_draft draft = {
        .type = ANNAL_SLICE("t"), .id = annal_slice_of(id), .data = annal_slice_of(data)};
    const struct frame_place place = {
        .seq = seq, .ts_us = 1, .offset = forgery->bytes.len, .h_before = forgery->h};
    ck_assert_int_eq(annal__codec_json.encode_event(&forgery->bytes, &draft, &place, &forgery->h),
                     0);
}

static annal_store *store_with(struct forgery *forgery)
{
    const char *path = tmpdir_path(&dir, "store");
    store_close(store_open(path));
    file_write(tmpdir_path(&dir, "store/events/forged.jsonl"), forgery->bytes.ptr,
               forgery->bytes.len);
    annal__buf_done(&forgery->bytes);
    return store_open(path);
}

static annal_status repair_forged(annal_store *store, const char *to,
                                  annal_repair_result *out_result, annal_error *err)
{
    return annal_session_repair(store, ANNAL_SLICE("forged"), annal_slice_of(to), NULL, NULL, NULL,
                                out_result, err);
}

START_TEST(invalid_json_is_a_finding_and_a_gap_even_with_a_correct_hash)
{
    struct forgery forgery = {.h = 0};
    annal_verify_result proof;
    annal_repair_result result;
    forge_header(&forgery);
    forge_event(&forgery, 1, NULL, "1");
    forge_event(&forgery, 2, NULL, "{\"a\":}");
    forge_event(&forgery, 3, NULL, "3");
    forge_event(&forgery, 5, NULL, "5");
    annal_store *store = store_with(&forgery);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("forged"), NULL, NULL, &proof, err));
    ck_assert_uint_eq(proof.findings, 2);
    ck_assert_uint_eq(proof.last_seq, 5);
    ck_ok(repair_forged(store, "new", &result, err));
    ck_assert_uint_eq(result.events, 3);
    ck_assert_uint_eq(result.gaps, 2);
    ck_assert_uint_eq(result.gap_events, 2);
    ck_assert_uint_eq(result.last_seq, 5);
    ck_ok(annal_session_verify(store, ANNAL_SLICE("new"), NULL, NULL, &proof, err));
    ck_assert_uint_eq(proof.findings, 0);
    store_close(store);
}
END_TEST

START_TEST(an_event_after_more_than_a_million_missing_ones_has_a_wrong_seq)
{
    struct forgery forgery = {.h = 0};
    annal_repair_result result;
    forge_header(&forgery);
    forge_event(&forgery, 1, NULL, "1");
    forge_event(&forgery, 1000003, NULL, "2");
    forge_event(&forgery, 1000004, NULL, "3");
    annal_store *store = store_with(&forgery);
    ck_ok(repair_forged(store, "", &result, err));
    ck_assert_uint_eq(result.events, 1);
    ck_assert_uint_eq(result.gaps, 1);
    store_close(store);
}
END_TEST

START_TEST(two_events_with_one_id_are_not_merged)
{
    struct forgery forgery = {.h = 0};
    annal_repair_result result;
    forge_header(&forgery);
    forge_event(&forgery, 1, "same", "1");
    forge_event(&forgery, 2, "same", "1");
    annal_store *store = store_with(&forgery);
    ck_status(ANNAL_ERR_CONFLICT, repair_forged(store, "new", &result, err));
    store_close(store);
}
END_TEST

Suite *suite_repair(void)
{
    Suite *suite = suite_create("repair");
    TCase *copies = suite_case(suite, "copies", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(copies, a_sound_session_is_copied_completely);
    tcase_add_test(copies, invalid_json_is_a_finding_and_a_gap_even_with_a_correct_hash);
    tcase_add_test(copies, an_event_after_more_than_a_million_missing_ones_has_a_wrong_seq);
    tcase_add_test(copies, two_events_with_one_id_are_not_merged);
    tcase_add_test(copies, each_missing_event_leaves_a_gap_event_so_that_every_other_keeps_its_seq);
    tcase_add_test(copies, one_gap_event_of_unknown_length_follows_the_last_proven_event);
    tcase_add_test(copies, a_torn_tail_was_never_acknowledged_and_leaves_no_gap);
    tcase_add_test(copies, doubled_lines_are_skipped);
    tcase_add_test(copies, lines_that_were_cut_out_leave_gap_events);
    tcase_add_test(copies, a_repair_may_change_the_format);
    tcase_add_test(copies, a_dry_run_reports_the_same_and_writes_nothing);

    TCase *refusals = suite_case(suite, "refusals", NULL, NULL);
    tcase_add_test(refusals, a_repair_never_writes_into_an_existing_session);
    tcase_add_test(refusals, a_damaged_end_refuses_appends_and_explains_what_to_do);

    TCase *flips = suite_case(suite, "flips", NULL, NULL);
    tcase_add_test(flips, a_flipped_byte_costs_its_event_and_never_gives_a_wrong_event);
    return suite;
}
