/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace.h"
#include "journal/sys/adopt.h"
#include "journal/sys/delete.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t another_boot[16] = "another boot";

static const struct seams after_a_power_cut = {
    .io = &annal__system_io, .clock = &annal__system_clock, .boot = another_boot};

static bool is_there(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0;
}

/* With a keeper, so that it gives its sessions to who wants them. */
static annal_store *open_generous(const char *path)
{
    annal_store *store = NULL;
    ck_ok(annal_store_open(path, &(annal_store_options){.create = true}, &store, err));
    return store;
}

/* It does not wait for others. */
static annal_store *open_hasty(const char *path)
{
    annal_store *store = NULL;
    const annal_store_options options = {.create = true, .no_keeper = true, .wait_ms = 20};
    ck_ok(annal_store_open(path, &options, &store, err));
    return store;
}

/* The session goes from one to the other, and its redo stays in the log of the first. */
static void hand_over(annal_store *from, annal_store *to, const char *session, uint64_t seq)
{
    uint64_t got = 0;
    ck_status(ANNAL_ERR_BUSY, append_number(to, session, seq, 40, ANNAL_LEVEL_SYNC, &got, err));
    ck_ok(annal_store_keep(from, err));
    append_numbers(to, session, seq, seq, ANNAL_LEVEL_SYNC);
}

/* Ignore the request to overwrite the log. */
static void ignore_wipe(annal_store *store)
{
    uint32_t wanted;
    ck_assert(annal__held_is_to_wipe(&store->own_log.held, &wanted));
    annal__held_wiped(&store->own_log.held, wanted);
}

static void ck_no_session(annal_store *store, const char *session)
{
    annal_session_info info;
    ck_status(ANNAL_ERR_NOTFOUND,
              annal_session_info_get(store, annal_slice_of(session), &info, err));
}

/* ---- Deleting ---- */

START_TEST(a_deleted_session_is_gone_and_an_append_starts_a_new_session)
{
    annal_session_info info, anew;
    uint64_t seq = 0;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 5, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 2, ANNAL_LEVEL_OS);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), &info, err));
    ck_assert_uint_eq(info.last_seq, 5);
    ck_assert_str_eq(info.session, "s");
    ck_no_session(store, "s");
    ck_status(ANNAL_ERR_NOTFOUND, delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("t"), NULL, err));
    ck_no_session(store, "t");

    ck_ok(append_number(store, "s", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_uint_eq(seq, 1);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &anew, err));
    ck_assert_str_ne(anew.file, info.file);
    store_close(store);
    ck_assert_uint_eq(count_names(tmpdir_path(&dir, "store/events/.gone"), ""), 0);
    store = store_open(path);
    ck_numbers(store, "s", 1);
    ck_no_session(store, "t");
    store_close(store);
}
END_TEST

/*
 * One process wrote a session, and its log has the events. Another process deletes the session and
 * gets no answer to its request to overwrite that log. Then the power fails.
 */
static void delete_what_another_log_has(const char *path, annal_store **out_writer,
                                        annal_store **out_deleter)
{
    annal_store *writer = open_hasty(path);
    append_numbers(writer, "s", 1, 3, ANNAL_LEVEL_SYNC);
    annal_store *deleter = open_hasty(path);
    append_numbers(deleter, "other", 1, 1, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_BUSY, delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    ck_ok(annal_store_keep(writer, err)); /* gives it back */
    ck_ok(delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    ignore_wipe(writer);
    *out_writer = writer;
    *out_deleter = deleter;
}

START_TEST(redo_does_not_restore_a_deleted_session)
{
    for (int tombstone = 0; tombstone < 2; tombstone++) {
        annal_store *writer, *deleter;
        const char *path = tmpdir_path(&dir, "store");
        delete_what_another_log_has(path, &writer, &deleter);
        ck_assert_uint_eq(count_names(tmpdir_path(&dir, "store/events/.gone"), ""), 1);
        store_abandon(deleter);
        store_abandon(writer);
        /* Without it the log says that the directory entry was lost: this test would see a
         * revival. */
        if (tombstone == 0)
            ck_assert_int_eq(
                rename(tmpdir_path(&dir, "store/events/.gone"), tmpdir_path(&dir, "gone")), 0);
        annal_store *store = store_open_seams(path, &after_a_power_cut);
        if (tombstone == 0)
            ck_numbers(store, "s", 3);
        else
            ck_no_session(store, "s");
        ck_numbers(store, "other", 1);
        append_numbers(store, "other", 2, 2, ANNAL_LEVEL_SYNC);
        store_close(store);
        /* The logs are empty, so the tombstone is not needed any more. */
        store = store_open_seams(path, &after_a_power_cut);
        store_close(store);
        ck_assert_uint_eq(count_names(tmpdir_path(&dir, "store/events/.gone"), ""), 0);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(an_unreadable_tombstone_is_not_taken_for_a_missing_tombstone)
{
    static const char *const calls[] = {"stat", "open", "pread"};
    struct failing_io disk;
    const struct seams broken = {
        .io = &disk.io, .clock = &annal__system_clock, .boot = after_a_power_cut.boot};
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        annal_store *writer, *deleter, *store = NULL;
        const char *path = tmpdir_path(&dir, "store");
        delete_what_another_log_has(path, &writer, &deleter);
        store_abandon(deleter);
        store_abandon(writer);
        failing_io_init(&disk);
        disk.only = calls[_i];
        disk.with_errno = EIO;
        disk.fail_at = at;
        const annal_store_options options = {.no_keeper = true};
        if (annal__store_open(path, &options, &broken, &store, NULL) == ANNAL_OK)
            (void)annal_store_close(store, NULL);
        failed = disk.calls >= at;
        store = store_open_seams(path, &after_a_power_cut);
        ck_no_session(store, "s");
        ck_numbers(store, "other", 1);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* Its log has both journals, and of the new one the disk has nothing or a piece yet. */
START_TEST(recovery_redoes_a_restarted_session_and_not_the_deleted_session)
{
    for (int lost = 0; lost < 2; lost++) {
        annal_store *writer, *deleter;
        const char *path = tmpdir_path(&dir, "store");
        const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
        delete_what_another_log_has(path, &writer, &deleter);
        append_numbers(writer, "s", 1, 2, ANNAL_LEVEL_SYNC);
        store_abandon(deleter);
        store_abandon(writer);
        ck_assert_int_eq(lost ? unlink(journal) : truncate(journal, 20), 0);
        annal_store *store = store_open_seams(path, &after_a_power_cut);
        ck_numbers(store, "s", 2);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(a_tombstone_stays_until_no_log_names_its_journal)
{
    annal_store *writer, *deleter;
    const char *gone = tmpdir_path(&dir, "store/events/.gone");
    delete_what_another_log_has(tmpdir_path(&dir, "store"), &writer, &deleter);
    store_close(deleter);
    ck_assert_uint_eq(count_names(gone, ""), 1);
    store_close(store_open(tmpdir_path(&dir, "store")));
    ck_assert_uint_eq(count_names(gone, ""), 1); /* the writer lives, and its log has the session */
    ck_ok(annal_store_checkpoint(writer, err));
    store_close(store_open(tmpdir_path(&dir, "store")));
    ck_assert_uint_eq(count_names(gone, ""), 0);
    store_close(writer);
}
END_TEST

START_TEST(the_keeper_removes_tombstones_after_it_emptied_the_log)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(count_names(tmpdir_path(&dir, "store/events/.gone"), ""), 1);
    store->keeper.rotated_us -= 60000000; /* a minute has passed */
    ck_ok(annal_store_keep(store, err));
    ck_assert_uint_eq(count_names(tmpdir_path(&dir, "store/events/.gone"), ""), 0);
    store_close(store);
}
END_TEST

/* Fail each call from the at-th on. False if the deletion makes fewer calls. */
static bool delete_with_failure(const char *path, const char *gone, const char *events, unsigned at)
{
    struct failing_io disk;
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);

    failing_io_init(&disk);
    disk.for_good = true;
    disk.with_errno = EIO;
    const struct seams broken = {.io = &disk.io, .clock = &annal__system_clock};
    store = store_open_seams(path, &broken);
    append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
    disk.fail_at = disk.calls + at;
    annal_status status = delete_wiped(store, ANNAL_SLICE("s"), NULL, NULL);
    bool failed = disk.calls >= disk.fail_at;
    ck_assert(failed || status == ANNAL_OK);
    store_abandon(store);

    for (int round = 0; round < 2; round++) {
        store = store_open_seams(path, round == 0 ? &after_a_power_cut : NULL);
        uint64_t last = read_session(store, "s", NULL, NULL);
        ck_assert_msg(last == 0 || (last == 5 && status != ANNAL_OK), "event %d", (int)last);
        ck_numbers(store, "t", 3);
        store_close(store);
    }
    ck_assert_uint_eq(count_names(gone, ""), 0);
    ck_assert_uint_eq(count_names(events, ".new-"), 0);
    return failed;
}

START_TEST(a_deletion_that_fails_at_any_call_is_complete_or_absent)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        failed =
            delete_with_failure(tmpdir_path(&dir, "store"), tmpdir_path(&dir, "store/events/.gone"),
                                tmpdir_path(&dir, "store/events"), at);
        ck_assert(!failed || at < 200);
        tmpdir_renew();
    }
}
END_TEST

/* Rule (5): the tombstone of a deletion that broke off before the name went. */
START_TEST(an_existing_journal_counts_even_with_a_tombstone)
{
    annal_session_info info;
    char tombstone[512];
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
    store_abandon(store);
    snprintf(tombstone, sizeof tombstone, "%s/events/.gone", path);
    ck_assert_int_eq(mkdir(tombstone, 0700), 0);
    snprintf(tombstone, sizeof tombstone, "%s/events/.gone/%s", path, info.file);
    file_write(tombstone, "", 0);
    file_write(tmpdir_path(&dir, "store/events/.new-0123"), "{", 1);
    /* The last event is only in the log. */
    ck_assert_int_eq(
        truncate(tmpdir_path(&dir, "store/events/s.jsonl"), (off_t)info.end_offset - 30), 0);
    store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "s", 3);
    ck_assert(!is_there(tombstone));
    ck_assert(!is_there(tmpdir_path(&dir, "store/events/.new-0123")));
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

START_TEST(a_session_whose_header_is_damaged_can_be_deleted_for_good)
{
    annal_session_info info;
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *writer = open_hasty(path), *deleter = open_hasty(path);
    append_numbers(writer, "s", 1, 3, ANNAL_LEVEL_SYNC);
    hand_over(writer, deleter, "s", 4);
    int fd = open(journal, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "x", 1, 3), 1);
    close(fd);
    ck_ok(delete_wiped(deleter, ANNAL_SLICE("s"), &info, err));
    ck_assert_uint_gt(info.bytes, 300);
    store_abandon(deleter);
    store_abandon(writer);
    annal_store *store = store_open_seams(path, &after_a_power_cut);
    ck_no_session(store, "s");
    store_close(store);
}
END_TEST

/* ---- Copies ---- */

static void copy_file(const char *from, const char *to)
{
    size_t len = 0;
    char *bytes = file_read(from, &len);
    file_write(to, bytes, len);
    free(bytes);
}

/* The directory entry of the original was never synced: only the log has the events. */
START_TEST(deleting_a_copy_removes_nothing_from_the_original_journal)
{
    for (int same_process = 0; same_process < 2; same_process++) {
        const char *path = tmpdir_path(&dir, "store");
        const char *journal = tmpdir_path(&dir, "store/events/orig.jsonl");
        annal_store *writer = open_hasty(path), *deleter = open_hasty(path);
        append_numbers(writer, "orig", 1, 3, ANNAL_LEVEL_SYNC);
        copy_file(journal, tmpdir_path(&dir, "store/events/origbak.jsonl"));
        ck_ok(delete_wiped(same_process ? writer : deleter, ANNAL_SLICE("origbak"), NULL, err));
        ck_no_session(deleter, "origbak");
        if (!same_process)
            ignore_wipe(writer);
        append_numbers(writer, "orig", 4, 5, ANNAL_LEVEL_SYNC);
        store_abandon(deleter);
        store_abandon(writer);
        if (!same_process) /* a process that deletes syncs its own journals */
            ck_assert_int_eq(unlink(journal), 0);
        annal_store *store = store_open_seams(path, &after_a_power_cut);
        ck_numbers(store, "orig", 5);
        ck_no_session(store, "origbak");
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* A user may name a copy like a session that has redo in a log. */
START_TEST(deleting_a_copy_deletes_the_session_of_that_name_too)
{
    const char *path = tmpdir_path(&dir, "store");
    annal_store *writer = open_hasty(path), *deleter = open_hasty(path);
    append_numbers(writer, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(writer, "t", 1, 3, ANNAL_LEVEL_SYNC);
    hand_over(writer, deleter, "t", 4);
    copy_file(tmpdir_path(&dir, "store/events/s.jsonl"), tmpdir_path(&dir, "store/events/t.jsonl"));
    ck_ok(delete_wiped(deleter, ANNAL_SLICE("t"), NULL, err));
    store_abandon(deleter);
    store_abandon(writer);
    annal_store *store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "s", 3);
    ck_no_session(store, "t");
    store_close(store);
}
END_TEST

/* Write a tombstone for the file id `file`. With codec NULL it has no content, as in older
 * versions. */
static void write_tombstone(const char *path, const char *session, const struct codec *codec,
                            const uint8_t file[FRAME_FILE_ID_BYTES])
{
    struct buf frame = {.limit = FRAME_ENVELOPE_BYTES};
    struct frame_header header = {.session = annal_slice_of(session)};
    uint64_t h;
    memcpy(header.file, file, sizeof header.file);
    if (codec != NULL)
        ck_assert_int_eq(codec->encode_header(&frame, &header, &h), ANNAL_OK);
    file_write(path, codec == NULL ? "" : frame.ptr, frame.len);
    annal__buf_done(&frame);
}

START_TEST(a_tombstone_applies_only_to_its_session_and_format)
{
    static const struct {
        const char *session;
        const struct codec *codec;
        bool gone;
    } tombstones[] = {{"s", &annal__codec_json, true},
                      {"other", &annal__codec_json, false},
                      {"s", &annal__codec_msgpack, false},
                      {"", NULL, true}};
    char tombstone[512];
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    uint8_t file[FRAME_FILE_ID_BYTES];
    char text[2 * FRAME_FILE_ID_BYTES + 1];
    memcpy(file, annal__session_get(&store->sessions, ANNAL_SLICE("s"), NULL)->file, sizeof file);
    annal__codec_file_id_text(file, text);
    store_abandon(store);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/s.jsonl")), 0);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "store/events/.gone"), 0700), 0);
    snprintf(tombstone, sizeof tombstone, "%s/events/.gone/%s", path, text);
    write_tombstone(tombstone, tombstones[_i].session, tombstones[_i].codec, file);
    store = store_open_seams(path, &after_a_power_cut);
    if (tombstones[_i].gone)
        ck_no_session(store, "s");
    else
        ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

/* Recovery guesses neither way: the log keeps its groups. */
START_TEST(a_damaged_tombstone_stops_redo_and_appends_of_its_session)
{
    annal_store *writer, *deleter;
    const struct dirent *entry;
    char tombstone[600] = "";
    uint64_t seq = 0;
    const char *path = tmpdir_path(&dir, "store");
    const char *gone = tmpdir_path(&dir, "store/events/.gone");
    delete_what_another_log_has(path, &writer, &deleter);
    store_abandon(deleter);
    store_abandon(writer);
    DIR *names = opendir(gone);
    while ((entry = readdir(names)) != NULL) {
        if (entry->d_name[0] != '.')
            snprintf(tombstone, sizeof tombstone, "%s/%s", gone, entry->d_name);
    }
    closedir(names);
    size_t len = 0;
    char *bytes = file_read(tombstone, &len);
    bytes[len / 2] ^= 1;
    file_write(tombstone, bytes, len);
    free(bytes);
    annal_store *store = store_open_seams(path, &after_a_power_cut);
    ck_no_session(store, "s");
    ck_status(ANNAL_ERR_CORRUPT, append_number(store, "s", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_numbers(store, "other", 1);
    append_numbers(store, "other", 2, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_assert_int_eq(unlink(tombstone), 0); /* as the message says */
    store = store_open_seams(path, &after_a_power_cut);
    ck_numbers(store, "s", 3);
    store_close(store);
}
END_TEST

/* The tombstone of the conversion exists as long as a log names the old journal. */
START_TEST(a_journal_copied_back_beside_its_replacement_loses_no_events)
{
    annal_convert_result result;
    uint64_t seq = 0;
    const annal_convert_options to_msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *writer = open_generous(path), *other = open_generous(path);
    append_numbers(writer, "s", 1, 3, ANNAL_LEVEL_SYNC);
    copy_file(journal, tmpdir_path(&dir, "saved"));
    ck_ok(annal_session_convert(other, ANNAL_SLICE("s"), &to_msgpack, &result, err));
    append_numbers(other, "s", 4, 6, ANNAL_LEVEL_SYNC);
    store_close(other);
    copy_file(tmpdir_path(&dir, "saved"), journal);
    other = open_generous(path); /* sweeps */
    ck_assert(is_there(tmpdir_path(&dir, "store/events/s.mpk")));
    ck_status(ANNAL_ERR_CORRUPT, append_number(other, "s", 7, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_int_eq(unlink(journal), 0); /* as the message says */
    ck_numbers(other, "s", 6);
    append_numbers(other, "s", 7, 7, ANNAL_LEVEL_SYNC);
    store_close(other);
    store_close(writer);
}
END_TEST

START_TEST(a_copy_cannot_be_converted_forked_or_adopted)
{
    annal_convert_result result;
    const annal_convert_options to_msgpack = {.format = ANNAL_FORMAT_MSGPACK};
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal_store *there = store_open(tmpdir_path(&dir, "there"));
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    copy_file(tmpdir_path(&dir, "store/events/s.jsonl"),
              tmpdir_path(&dir, "store/events/copy.jsonl"));
    ck_status(ANNAL_ERR_CORRUPT,
              annal_session_convert(store, ANNAL_SLICE("copy"), &to_msgpack, &result, err));
    ck_status(ANNAL_ERR_CORRUPT, annal_session_fork(store, ANNAL_SLICE("copy"), 2,
                                                    ANNAL_SLICE("child"), NULL, NULL, err));
    ck_status(ANNAL_ERR_CORRUPT, annal__journal_adopt(there, store, ANNAL_SLICE("copy"), err));
    ck_assert(is_there(tmpdir_path(&dir, "store/events/copy.jsonl")));
    ck_assert(!is_there(tmpdir_path(&dir, "store/events/child.jsonl")));
    ck_numbers(store, "s", 3);
    store_close(there);
    store_close(store);
}
END_TEST

/* ---- A full disk ---- */

struct full_disk {
    struct tmpdir dir;
    struct failing_io disk;
    struct seams seams;
};

/* Nothing can be written, but names can be removed. */
static void full_disk_init(struct full_disk *full)
{
    tmpdir_init(&full->dir);
    failing_io_init(&full->disk);
    full->disk.only = "pwrite";
    full->disk.with_errno = ENOSPC;
    full->disk.for_good = true;
    full->disk.fail_at = 1;
    full->seams = (struct seams){.io = &full->disk.io, .clock = &annal__system_clock};
}

static annal_store *open_on_full_disk(struct full_disk *full)
{
    annal_store *store = NULL;
    const annal_store_options options = {.no_keeper = true, .wait_ms = 20};
    ck_ok(annal__store_open(tmpdir_path(&full->dir, "store"), &options, &full->seams, &store, err));
    return store;
}

START_TEST(a_full_disk_without_a_commit_log_can_be_read_and_emptied)
{
    struct full_disk full;
    uint64_t seq = 0;
    full_disk_init(&full);
    const char *path = tmpdir_path(&full.dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_assert_int_eq(unlink(tmpdir_path(&full.dir, "store/commit/00.log")), 0);
    ck_assert_int_eq(unlink(tmpdir_path(&full.dir, "store/locks/00.held")), 0);

    store = open_on_full_disk(&full);
    ck_numbers(store, "s", 3);
    ck_status(ANNAL_ERR_FULL, append_number(store, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_no_session(store, "s");
    ck_numbers(store, "t", 2);
    ck_assert_uint_eq(count_names(tmpdir_path(&full.dir, "store/commit"), ""), 0);
    ck_assert_uint_eq(count_names(tmpdir_path(&full.dir, "store/commit"), ".new-"), 0);
    store_close(store);

    store = store_open(path);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 3, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    tmpdir_done(&full.dir);
}
END_TEST

START_TEST(a_deletion_on_a_full_disk_waits_for_the_owner_and_its_checkpoint)
{
    struct full_disk full;
    full_disk_init(&full);
    const char *path = tmpdir_path(&full.dir, "store");
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 3, ANNAL_LEVEL_SYNC);
    annal_store *store = open_on_full_disk(&full);
    ck_status(ANNAL_ERR_BUSY, delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_ok(
        annal_store_keep(owner, err)); /* gives it back; its log has the redo, and no room is for a
                                      tombstone */
    ck_status(ANNAL_ERR_FULL, delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_numbers(store, "s", 3);
    append_numbers(owner, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_BUSY, delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_ok(annal_store_keep(owner, err));
    ck_ok(annal_store_checkpoint(owner, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    ck_no_session(owner, "s");
    append_numbers(owner, "s", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);
    store_close(owner);
    tmpdir_done(&full.dir);
}
END_TEST

/* ---- Others ---- */

START_TEST(a_session_that_is_not_released_in_time_is_not_deleted)
{
    annal_store *deleter = NULL;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *owner = store_open(path);
    append_numbers(owner, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_open(path, &(annal_store_options){.no_keeper = true, .wait_ms = 20}, &deleter,
                           err));
    ck_status(ANNAL_ERR_BUSY, delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    ck_numbers(owner, "s", 2);
    ck_ok(annal_store_keep(owner, err)); /* releases the session, as requested */
    ck_ok(delete_wiped(deleter, ANNAL_SLICE("s"), NULL, err));
    append_numbers(owner, "s", 1, 1, ANNAL_LEVEL_SYNC); /* through no descriptor of before */
    ck_numbers(deleter, "s", 1);
    store_close(deleter);
    store_close(owner);
}
END_TEST

START_TEST(a_deletion_waits_while_another_process_changes_journals)
{
    annal_store *store = NULL;
    const char *path = tmpdir_path(&dir, "store");
    ck_ok(annal_store_open(path,
                           &(annal_store_options){.create = true, .no_keeper = true, .wait_ms = 20},
                           &store, err));
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    int fd = open(tmpdir_path(&dir, "store/locks/structure"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_status(ANNAL_ERR_BUSY, delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    close(fd);
    ck_ok(delete_wiped(store, ANNAL_SLICE("s"), NULL, err));
    store_close(store);
}
END_TEST

START_TEST(a_session_that_a_fork_needs_is_not_deleted)
{
    struct buf line = {0};
    annal_session_info info;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "parent", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_info_get(store, ANNAL_SLICE("parent"), &info, err));
    ck_assert_int_eq(annal__buf_printf(
                         &line,
                         "{\"annal\":1,\"session\":\"child\",\"file\":\"%032d\",\"created\":"
                         "\"2026-01-06T07:24:00.000000Z\",\"fork\":{\"session\":\"parent\",\"seq\":"
                         "2,\"h\":\"%016d\"}",
                         1, 2),
                     ANNAL_OK);
    annal_slice head = annal__buf_slice(&line);
    uint64_t h = annal__codec_json.hash(
        (annal_slice){head.ptr, head.len + annal__codec_json.trailer_bytes}, 0, 0);
    ck_assert_int_eq(annal__buf_printf(&line, ",\"h\":\"%016llx\"}\n", (unsigned long long)h),
                     ANNAL_OK);
    file_write(tmpdir_path(&dir, "store/events/child.jsonl"), line.ptr, line.len);
    ck_status(ANNAL_ERR_CONFLICT, delete_wiped(store, ANNAL_SLICE("parent"), NULL, err));
    ck_numbers(store, "parent", 3);
    append_numbers(store, "parent", 4, 4, ANNAL_LEVEL_SYNC);
    ck_ok(delete_wiped(store, ANNAL_SLICE("child"), NULL, err));
    ck_ok(delete_wiped(store, ANNAL_SLICE("parent"), NULL, err));
    annal__buf_done(&line);
    store_close(store);
}
END_TEST

struct appender {
    annal_store *store;
    _Atomic bool stop;
    uint64_t appended;
};

static void *append_on(void *arg)
{
    struct appender *appender = arg;
    uint64_t last = 1;
    while (!atomic_load(&appender->stop)) {
        uint64_t seq = 0;
        ck_ok(append_number(appender->store, "s", 1, 40, ANNAL_LEVEL_BATCH, &seq, err));
        ck_assert_msg(seq == last + 1 || seq == 1, "seq %d after %d", (int)seq, (int)last);
        last = seq;
        appender->appended++;
    }
    return NULL;
}

START_TEST(a_concurrent_append_never_writes_into_a_deleted_journal)
{
    pthread_t thread;
    struct appender appender = {.store = open_generous(tmpdir_path(&dir, "store"))};
    append_numbers(appender.store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(pthread_create(&thread, NULL, append_on, &appender), 0);
    for (unsigned deleted = 0; deleted < 20;) {
        annal_error err;
        annal_status status = delete_wiped(appender.store, ANNAL_SLICE("s"), NULL, &err);
        ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND, "%s", err.message);
        deleted += status == ANNAL_OK;
    }
    atomic_store(&appender.stop, true);
    pthread_join(thread, NULL);
    ck_ok(annal_store_sync(appender.store, err));
    ck_assert_uint_le(read_session(appender.store, "s", NULL, NULL), appender.appended);
    store_close(appender.store);
}
END_TEST

Suite *suite_replace(void)
{
    Suite *suite = suite_create("replace");
    TCase *delete = suite_case(suite, "delete", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(delete, a_deleted_session_is_gone_and_an_append_starts_a_new_session);
    tcase_add_test(delete, redo_does_not_restore_a_deleted_session);
    tcase_add_loop_test(delete, an_unreadable_tombstone_is_not_taken_for_a_missing_tombstone, 0, 3);
    tcase_add_test(delete, recovery_redoes_a_restarted_session_and_not_the_deleted_session);
    tcase_add_test(delete, a_tombstone_stays_until_no_log_names_its_journal);
    tcase_add_test(delete, the_keeper_removes_tombstones_after_it_emptied_the_log);
    tcase_add_test(delete, a_deletion_that_fails_at_any_call_is_complete_or_absent);
    tcase_add_test(delete, an_existing_journal_counts_even_with_a_tombstone);
    tcase_add_test(delete, a_session_whose_header_is_damaged_can_be_deleted_for_good);
    TCase *copies = suite_case(suite, "copies", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(copies, deleting_a_copy_removes_nothing_from_the_original_journal);
    tcase_add_test(copies, deleting_a_copy_deletes_the_session_of_that_name_too);
    tcase_add_loop_test(copies, a_tombstone_applies_only_to_its_session_and_format, 0, 4);
    tcase_add_test(copies, a_damaged_tombstone_stops_redo_and_appends_of_its_session);
    tcase_add_test(copies, a_journal_copied_back_beside_its_replacement_loses_no_events);
    tcase_add_test(copies, a_copy_cannot_be_converted_forked_or_adopted);
    TCase *full = suite_case(suite, "full disk", NULL, NULL);
    tcase_add_test(full, a_full_disk_without_a_commit_log_can_be_read_and_emptied);
    tcase_add_test(full, a_deletion_on_a_full_disk_waits_for_the_owner_and_its_checkpoint);
    TCase *others = suite_case(suite, "others", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(others, a_session_that_is_not_released_in_time_is_not_deleted);
    tcase_add_test(others, a_deletion_waits_while_another_process_changes_journals);
    tcase_add_test(others, a_session_that_a_fork_needs_is_not_deleted);
    tcase_add_test(others, a_concurrent_append_never_writes_into_a_deleted_journal);
    return suite;
}
