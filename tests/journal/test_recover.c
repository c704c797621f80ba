#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/tmpdir.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

START_TEST(what_the_log_has_is_redone_in_this_boot_and_in_another)
{
    for (int other = 0; other < 2; other++) {
        struct tmpdir dir;
        TMPDIR_INIT(&dir);
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
        tmpdir_done(&dir);
    }
}
END_TEST

/* The list of what is held is made anew in another boot; a part of it must never look like all of it. */
START_TEST(a_recovery_that_broke_off_anywhere_is_done_again_in_full)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct tmpdir dir;
        struct failing_io disk;
        TMPDIR_INIT(&dir);
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
        tmpdir_done(&dir);
    }
}
END_TEST

START_TEST(h34_one_journal_that_cannot_be_opened_keeps_no_other_session)
{
    struct tmpdir dir;
    TMPDIR_INIT(&dir);
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
    tmpdir_done(&dir);
}
END_TEST

#define MANY 60

START_TEST(more_sessions_are_redone_than_may_be_open_at_a_time)
{
    struct tmpdir dir;
    struct rlimit limit, low;
    char name[16];
    TMPDIR_INIT(&dir);
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    for (uint64_t number = 1; number <= 3; number++) {
        for (int i = 0; i < MANY; i++) {
            session_name(name, i);
            append_numbers(store, name, number, number, ANNAL_LEVEL_BATCH);
        }
        ck_ok(annal_sync(store, err));
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
    tmpdir_done(&dir);
}
END_TEST

Suite *suite_recover(void)
{
    Suite *suite = suite_create("recover");
    TCase *redo = tcase_create("redo");
    tcase_set_timeout(redo, 60);
    tcase_add_test(redo, what_the_log_has_is_redone_in_this_boot_and_in_another);
    tcase_add_test(redo, h34_one_journal_that_cannot_be_opened_keeps_no_other_session);
    tcase_add_test(redo, more_sessions_are_redone_than_may_be_open_at_a_time);
    tcase_add_test(redo, a_recovery_that_broke_off_anywhere_is_done_again_in_full);
    suite_add_tcase(suite, redo);
    return suite;
}
