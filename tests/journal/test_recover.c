/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/log.h"
#include "journal/scan.h"
#include "journal/sys/inspect.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SESSIONS 4

static const uint8_t another_boot[16] = "another boot";

static void session_name(char out[16], int i)
{
    snprintf(out, 16, "s%d", i);
}

/* A store whose process died with everything in its log and its journals cut back to nothing. */
static void leave_behind(const char *path, uint64_t events)
{
    annal_store *store = store_open(path);
    char name[16];
    for (int i = 0; i < SESSIONS; i++) {
        session_name(name, i);
        append_numbers(store, name, 1, events, ANNAL_LEVEL_SYNC);
    }
    store_abandon(store);
    for (int i = 0; i < SESSIONS; i++) {
        char journal[512];
        session_name(name, i);
        snprintf(journal, sizeof journal, "%s/events/%s.jsonl", path, name);
        ck_assert_int_eq(i % 2 == 0 ? unlink(journal) : truncate(journal, 0), 0);
    }
}

static void check_all(annal_store *store, uint64_t events)
{
    char name[16];
    for (int i = 0; i < SESSIONS; i++) {
        session_name(name, i);
        ck_numbers(store, name, events);
    }
}

START_TEST(the_events_of_the_log_are_redone_in_this_boot_and_in_another)
{
    for (int other = 0; other < 2; other++) {
        const char *path = tmpdir_path(&dir, "store");
        leave_behind(path, 5);
        const struct seams seams = {.io = &annal__system_io,
                                    .clock = &annal__system_clock,
                                    .boot = other ? another_boot : NULL};
        annal_store *store = store_open_seams(path, &seams);
        check_all(store, 5);
        append_numbers(store, "s1", 6, 7, ANNAL_LEVEL_SYNC);
        ck_numbers(store, "s1", 7);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* Recovery in another boot writes the held list again; a part of the list must never look like all
 * of it. */
START_TEST(a_recovery_that_fails_at_any_call_is_repeated_in_full)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        const char *path = tmpdir_path(&dir, "store");
        leave_behind(path, 3);
        failing_io_init(&disk);
        disk.fail_at = at;
        disk.for_good = true;
        disk.with_errno = EIO;
        const struct seams broken = {
            .io = &disk.io, .clock = &annal__system_clock, .boot = another_boot};
        const annal_store_options options = {.no_keeper = true};
        annal_store *store = NULL;
        annal_status status = annal__store_open(path, &options, &broken, &store, NULL);
        failed = disk.calls >= at;
        if (status == ANNAL_OK)
            (void)annal_store_close(store, NULL);

        const struct seams sound = {
            .io = &annal__system_io, .clock = &annal__system_clock, .boot = another_boot};
        store = store_open_seams(path, &sound);
        check_all(store, 3);
        append_numbers(store, "s2", 4, 4, ANNAL_LEVEL_SYNC);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(one_unopenable_journal_blocks_no_other_session)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s1.jsonl");
    uint64_t seq;
    leave_behind(path, 3);
    ck_assert_int_eq(unlink(journal), 0);
    ck_assert_int_eq(mkdir(journal, 0700), 0);
    annal_store *store = store_open(path);
    for (int i = 0; i < SESSIONS; i++) {
        char name[16];
        session_name(name, i);
        if (i == 1) {
            ck_status(ANNAL_ERR_CORRUPT,
                      append_number(store, name, 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
            continue;
        }
        append_numbers(store, name, 4, 4, ANNAL_LEVEL_SYNC);
        ck_numbers(store, name, 4);
    }
    ck_assert_int_eq(rmdir(journal), 0);
    append_numbers(store, "s1", 4, 4, ANNAL_LEVEL_SYNC);
    check_all(store, 4);
    store_close(store);
}
END_TEST

#define MANY 60

START_TEST(recovery_redoes_more_sessions_than_may_be_open_at_a_time)
{
    struct rlimit limit, low;
    char name[16];
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    for (uint64_t number = 1; number <= 3; number++) {
        for (int i = 0; i < MANY; i++) {
            session_name(name, i);
            append_numbers(store, name, number, number, ANNAL_LEVEL_BATCH);
        }
        ck_ok(annal_store_sync(store, err));
    }
    store_abandon(store);
    for (int i = 0; i < MANY; i++) {
        char journal[512];
        session_name(name, i);
        snprintf(journal, sizeof journal, "%s/events/%s.jsonl", path, name);
        ck_assert_int_eq(truncate(journal, 0), 0);
    }
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = 40;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    annal_status status = annal_store_open(path, NULL, &store, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(status, ANNAL_OK);
    for (int i = 0; i < MANY; i++) {
        session_name(name, i);
        ck_numbers(store, name, 3);
    }
    store_close(store);
}
END_TEST

/* ---- Journals that are not what the log knew ---- */

static void note_last(void *arg, annal_log_level level, const char *message)
{
    if (level == ANNAL_LOG_WARNING)
        snprintf(arg, 600, "%s", message);
}

/* Open the store in another boot, as after a power cut, or in this boot. */
static annal_store *open_after(const char *path, bool rebooted, char said[600])
{
    const struct seams seams = {.io = &annal__system_io,
                                .clock = &annal__system_clock,
                                .boot = rebooted ? another_boot : NULL};
    const annal_store_options options = {.no_keeper = true, .log = note_last, .log_arg = said};
    annal_store *store = NULL;
    said[0] = '\0';
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    return store;
}

enum change {
    NO_CHANGE,
    GONE,
    HEADER_DAMAGED,
    CUT,
    ANOTHER_HASH_BEFORE,
    ANOTHER_EVENT,
    ANOTHER_JOURNAL
};

/* Change a journal that had three events when the log began. */
static void change_journal(const char *journal, enum change change, size_t third)
{
    size_t len;
    char *bytes = file_read(journal, &len);
    struct journal_tail tail;
    struct buf out = {0};
    switch (change) {
    case NO_CHANGE:
        break;
    case GONE:
        ck_assert_int_eq(unlink(journal), 0);
        break;
    case HEADER_DAMAGED:
        bytes[20] ^= 1;
        file_write(journal, bytes, len);
        break;
    case CUT:
        file_write(journal, bytes, third - 1);
        break;
    case ANOTHER_HASH_BEFORE: /* as in a different history */
        bytes[third - 4] = bytes[third - 4] == '0' ? '1' : '0';
        file_write(journal, bytes, len);
        break;
    case ANOTHER_EVENT: {
        const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("\"another\"")};
        uint64_t h;
        file_write(journal, bytes, third);
        int fd = open(journal, O_RDONLY);
        ck_ok(annal__scan_tail(&annal__system_io, fd, &annal__codec_json, &tail, err));
        close(fd);
        const struct frame_place place = {4, tail.ts_us, third, tail.h};
        ck_assert_int_eq(annal__buf_append(&out, bytes, third), ANNAL_OK);
        ck_assert_int_eq(annal__codec_json.encode_event(&out, &draft, &place, &h), ANNAL_OK);
        file_write(journal, out.ptr, out.len);
        break;
    }
    case ANOTHER_JOURNAL: {
        const struct frame_header header = {.session = ANNAL_SLICE("s"), .created_us = 1};
        uint64_t h;
        ck_assert_int_eq(annal__codec_json.encode_header(&out, &header, &h), ANNAL_OK);
        file_write(journal, out.ptr, out.len);
        break;
    }
    }
    annal__buf_done(&out);
    free(bytes);
}

START_TEST(a_journal_that_differs_from_the_log_is_not_written_and_the_reason_is_reported)
{
    static const struct {
        enum change change;
        const char *reason; /* NULL: all is redone; empty: nothing of it is needed */
    } cases[] = {
        {NO_CHANGE, NULL},
        {GONE, "its journal is missing"},
        {HEADER_DAMAGED, "its header is damaged"},
        {CUT, "the line before has changed"},
        {ANOTHER_HASH_BEFORE, "the line before has changed"},
        {ANOTHER_EVENT, "another event is in its place"},
        {ANOTHER_JOURNAL, ""},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *reason = cases[i / 2].reason;
        char said[600];
        annal_session_info info;
        uint64_t seq;
        const char *path = tmpdir_path(&dir, "store");
        const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
        annal_store *store = store_open(path);
        append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
        ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
        ck_ok(annal_store_checkpoint(store, err));
        append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
        store_abandon(store);
        change_journal(journal, cases[i / 2].change, (size_t)info.end_offset);

        store = open_after(path, i % 2 == 1, said);
        if (reason == NULL) {
            ck_numbers(store, "s", 5);
            append_numbers(store, "s", 6, 6, ANNAL_LEVEL_SYNC);
        } else if (reason[0] == '\0') {
            ck_assert_msg(said[0] == '\0', "%s", said);
            append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
            ck_numbers(store, "s", 2);
        } else {
            ck_status(ANNAL_ERR_CORRUPT,
                      append_number(store, "s", 6, 40, ANNAL_LEVEL_SYNC, &seq, err));
            ck_assert_msg(strstr(said, reason) != NULL, "%s: %s", reason, said);
        }
        append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* ---- A damaged group in front of sound ones: rule (6) ---- */

/* Flip a byte in the group that wrote event 2 of t, of s 1, s 2, t 1, t 2, u 1, s 3. */
static void damage_group(const char *path)
{
    struct log log;
    struct log_group *groups = NULL;
    size_t count = 0;
    char byte;
    ck_ok(annal__log_open(&annal__system_io, path, false, &log, err));
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    annal__log_close(&log);
    ck_assert_uint_eq(count, 6);
    off_t at = (off_t)groups[3].offset + 80;
    annal__free(groups);
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static int note_what(void *arg, const annal__log_info *info)
{
    snprintf(arg, 600, "%s", info->what == NULL ? "" : info->what);
    return ANNAL_OK;
}

START_TEST(after_a_damaged_group_only_proven_sessions_accept_appends)
{
    for (int rebooted = 0; rebooted < 2; rebooted++) {
        char said[600];
        uint64_t seq;
        const char *path = tmpdir_path(&dir, "store");
        annal_store *store = store_open(path);
        append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
        append_numbers(store, "t", 1, 2, ANNAL_LEVEL_SYNC);
        append_numbers(store, "u", 1, 1, ANNAL_LEVEL_SYNC);
        append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
        store_abandon(store);
        damage_group(tmpdir_path(&dir, "store/commit/00.log"));

        ck_ok(annal_store_open(path, &(annal_store_options){.read_only = true}, &store, err));
        said[0] = '\0';
        ck_ok(annal__log_each(store, note_what, said, err));
        ck_assert_msg(strstr(said, "a group is missing before another") != NULL, "%s", said);
        store_close(store);

        store = open_after(path, rebooted, said);
        ck_assert_msg(strstr(said, "may have contained the next events") != NULL, "%s", said);
        append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
        append_numbers(store, "u", 2, 2, ANNAL_LEVEL_SYNC);
        ck_numbers(store, "s", 4);
        ck_status(ANNAL_ERR_CORRUPT, append_number(store, "t", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

/* A user copied a journal of JSON lines to the name of a session whose journal is msgpack. */
START_TEST(a_copy_in_the_other_format_does_not_prevent_redo)
{
    struct stat file;
    size_t len;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    ck_ok(annal_store_open(
        path, &(annal_store_options){.no_keeper = true, .format = ANNAL_FORMAT_MSGPACK}, &store,
        err));
    append_numbers(store, "b", 1, 5, ANNAL_LEVEL_SYNC);
    store_abandon(store);
    const char *journal = tmpdir_path(&dir, "store/events/b.mpk");
    ck_assert_int_eq(stat(journal, &file), 0);
    ck_assert_int_eq(truncate(journal, file.st_size / 2), 0);
    char *bytes = file_read(tmpdir_path(&dir, "store/events/a.jsonl"), &len);
    file_write(tmpdir_path(&dir, "store/events/b.jsonl"), bytes, len);
    free(bytes);
    const struct seams rebooted = {
        .io = &annal__system_io, .clock = &annal__system_clock, .boot = another_boot};
    store = store_open_seams(path, &rebooted);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/b.jsonl")), 0);
    ck_numbers(store, "b", 5);
    ck_numbers(store, "a", 2);
    store_close(store);
}
END_TEST

Suite *suite_recover(void)
{
    Suite *suite = suite_create("recover");
    TCase *redo = suite_case(suite, "redo", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(redo, the_events_of_the_log_are_redone_in_this_boot_and_in_another);
    tcase_add_test(redo, one_unopenable_journal_blocks_no_other_session);
    tcase_add_test(redo, a_copy_in_the_other_format_does_not_prevent_redo);
    tcase_add_test(redo, recovery_redoes_more_sessions_than_may_be_open_at_a_time);
    tcase_add_test(redo, a_recovery_that_fails_at_any_call_is_repeated_in_full);
    tcase_add_test(redo,
                   a_journal_that_differs_from_the_log_is_not_written_and_the_reason_is_reported);
    tcase_add_test(redo, after_a_damaged_group_only_proven_sessions_accept_appends);
    return suite;
}
