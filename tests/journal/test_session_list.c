/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/store.h"
#include "journal/sys/inspect.h"
#include "journal/sys/seam.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path;
static annal_store *store;

static void set_up(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    store = store_open(path);
}

static void tear_down(void)
{
    store_close(store);
    tmpdir_teardown();
}

static void make_journal(const char *name)
{
    char inside[300];
    snprintf(inside, sizeof inside, "store/events/%s", name);
    file_write(tmpdir_path(&dir, inside), "x", 1);
}

static int count_session(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)session;
    *(unsigned *)arg += journal_bytes > 0;
    return 0;
}

START_TEST(a_file_that_is_not_a_journal_is_not_a_session)
{
    unsigned count = 0;
    char name[32];
    static const char *const others[] = {".jsonl", "-a.jsonl", ".b.jsonl", "c", "d.json", "jsonl"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        make_journal(others[i]);
    ck_assert_int_eq(mkdir(tmpdir_path(&dir, "store/events/directory.jsonl"), 0700), 0);
    file_write(tmpdir_path(&dir, "store/events/empty.jsonl"), "", 0);
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "s%d.jsonl", i);
        make_journal(name);
    }
    ck_ok(annal_session_each(store, count_session, &count, err));
    ck_assert_uint_eq(count, 150);
}
END_TEST

static int delete_next(void *arg, annal_slice session, uint64_t journal_bytes)
{
    *(unsigned *)arg += journal_bytes > 0;
    if (session.len == 1 && session.ptr[0] == 'a')
        ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/events/b.jsonl")), 0);
    return 0;
}

START_TEST(a_session_that_is_deleted_during_the_listing_is_omitted)
{
    unsigned count = 0;
    make_journal("a.jsonl");
    make_journal("b.jsonl");
    make_journal("c.jsonl");
    ck_ok(annal_session_each(store, delete_next, &count, err));
    ck_assert_uint_eq(count, 2);
}
END_TEST

/* A session that cannot be examined still exists. */
START_TEST(a_session_that_cannot_be_examined_is_a_failure_and_not_omitted)
{
    struct failing_io disk;
    failing_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    const annal_store_options options = {.read_only = true};
    annal_store *reader = NULL;
    make_journal("a.jsonl");
    make_journal("b.jsonl");
    ck_ok(annal__store_open(path, &options, &seams, &reader, err));
    disk.by_table = true;
    for (unsigned at = 1; at <= 3; at++) { /* the list, and a look at each */
        unsigned count = 0;
        disk.calls = 0;
        disk.fail_at = at;
        ck_status(ANNAL_ERR_DISK, annal_session_each(reader, count_session, &count, err));
    }
    disk.fail_at = 0;
    store_close(reader);
}
END_TEST

struct order {
    unsigned count;
    uint64_t bytes;
    char last[40];
};

static int check_order(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct order *order = arg;
    char name[40];
    snprintf(name, sizeof name, "%.*s", ANNAL_FMT(session));
    ck_assert_str_lt(order->last, name);
    memcpy(order->last, name, sizeof name);
    order->count++;
    order->bytes += journal_bytes;
    return 0;
}

/* Enough sessions that two threads look up their lengths. Names differ before, within and after
 * their first eight bytes, which are compared first; two of each hundred are in both formats. */
START_TEST(many_sessions_are_listed_in_order_with_their_lengths)
{
    struct order order = {0};
    char name[64];
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(name, sizeof name, i % 3 == 0 ? "p-%u.jsonl" : "p-1234567890-%06u.jsonl",
                 i * 7919 % 10007);
        make_journal(name);
        if (i % 50 == 0) {
            memcpy(strrchr(name, '.'), ".mpk", sizeof ".mpk");
            make_journal(name);
        }
    }
    ck_ok(annal_session_each(store, check_order, &order, err));
    ck_assert_uint_eq(order.count, 9000);
    ck_assert_uint_eq(order.bytes, 9000);
}
END_TEST

static int stop_at_once(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)session;
    (void)journal_bytes;
    ++*(unsigned *)arg;
    return 7;
}

START_TEST(the_callback_may_stop_the_listing)
{
    unsigned count = 0;
    append_numbers(store, "a", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(store, "b", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq((int)annal_session_each(store, stop_at_once, &count, NULL), 7);
    ck_assert_uint_eq(count, 1);
    /* A changed session that was not reported is reported again. */
    ck_assert_uint_eq(annal__session_list_changed(store, 0, stop_at_once, &count), 0);
    ck_assert_uint_eq(count, 2);
    uint64_t now = annal__session_list_changed(store, 0, count_session, &count);
    ck_assert_uint_gt(now, 0);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(annal__session_list_changed(store, now, stop_at_once, &count), now);
    ck_assert_uint_eq(count, 4);
}
END_TEST

/* The names of strays, one a line. */
static int note_stray(void *arg, annal_slice name, const char *what)
{
    char *names = arg;
    ck_assert_ptr_nonnull(strstr(what, " out of the store"));
    sprintf(names + strlen(names), "%.*s\n", ANNAL_FMT(name));
    return strcmp(names, "stop\n") == 0 ? 7 : 0;
}

static void count_warning(void *arg, annal_log_level level, const char *message)
{
    *(unsigned *)arg += level == ANNAL_LOG_WARNING && strstr(message, "left out") != NULL;
}

START_TEST(a_copied_or_renamed_journal_is_not_a_session_and_is_named_once)
{
    char names[300] = "";
    size_t len;
    annal_session_info info;
    unsigned said = 0;
    append_numbers(store, "a", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    char *journal = file_read(tmpdir_path(&dir, "store/events/a.jsonl"), &len);
    static const char *const copies[] = {"b.jsonl", "a copy.jsonl", "a.mpk", ".c.jsonl", "c.txt"};
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        char inside[100];
        snprintf(inside, sizeof inside, "store/events/%s", copies[i]);
        file_write(tmpdir_path(&dir, inside), journal, len);
    }
    ck_ok(annal__stray_list(store, note_stray, names, err));
    ck_assert_str_eq(names, "a\nb\na copy.jsonl\n");
    ck_assert_int_eq(remove(tmpdir_path(&dir, "store/events/a.mpk")), 0);
    ck_status(ANNAL_ERR_CORRUPT, annal_session_info_get(store, ANNAL_SLICE("b"), &info, err));

    annal_store *other = NULL;
    const annal_store_options options = {.no_keeper = true, .log = count_warning, .log_arg = &said};
    ck_ok(annal_store_open(path, &options, &other, err));
    for (int i = 0; i < 3; i++) {
        ck_assert(annal__stray_is(other, ANNAL_SLICE("b")));
        ck_assert(!annal__stray_is(other, ANNAL_SLICE("a")));
        ck_assert(!annal__stray_is(other, ANNAL_SLICE("none")));
    }
    ck_assert_uint_eq(said, 1);
    store_close(other);

    file_write(tmpdir_path(&dir, "store/events/stop.jsonl"), journal, len);
    ck_assert_int_eq(remove(tmpdir_path(&dir, "store/events/b.jsonl")), 0);
    names[0] = '\0';
    ck_assert_int_eq((int)annal__stray_list(store, note_stray, names, NULL), 7);
    ck_assert_str_eq(names, "stop\n");
    free(journal);
}
END_TEST

Suite *suite_session_list(void)
{
    Suite *suite = suite_create("session_list");
    TCase *tests = suite_case(suite, "catalogue", set_up, tear_down);
    tcase_add_test(tests, a_file_that_is_not_a_journal_is_not_a_session);
    tcase_add_test(tests, a_session_that_is_deleted_during_the_listing_is_omitted);
    tcase_add_test(tests, a_session_that_cannot_be_examined_is_a_failure_and_not_omitted);
    tcase_add_test(tests, the_callback_may_stop_the_listing);
    tcase_add_test(tests, a_copied_or_renamed_journal_is_not_a_session_and_is_named_once);
    TCase *many = suite_case(suite, "many", set_up, tear_down);
    tcase_add_test(many, many_sessions_are_listed_in_order_with_their_lengths);
    return suite;
}
