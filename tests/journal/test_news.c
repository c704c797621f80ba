/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"
#include "journal/sys/news.h"
#include "tests/support/journals.h"
#include "tests/support/picky_io.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Announcements as text, in their order: "a:3 b:1 missed look". */
struct trace {
    char text[400];
    size_t len;
};

static void note(struct trace *trace, const annal__news_item *item)
{
    char *at = trace->text + trace->len;
    size_t room = sizeof trace->text - trace->len;
    const char *space = trace->len > 0 ? " " : "";
    int length = 0;
    if (item->kind == ANNAL_NEWS_SESSION)
        length =
            snprintf(at, room, "%s%.*s:%" PRIu64, space, ANNAL_FMT(item->session), item->end_seq);
    else
        length =
            snprintf(at, room, "%s%s", space, item->kind == ANNAL_NEWS_MISSED ? "missed" : "look");
    ck_assert(length > 0 && (size_t)length < room);
    trace->len += (size_t)length;
}

/* Read all announcements so far. */
static const char *read_news(annal__news *news, struct trace *trace)
{
    annal__news_item item;
    annal_status status;
    *trace = (struct trace){.len = 0};
    while ((status = annal__news_next(news, &item, NULL)) == ANNAL_OK)
        note(trace, &item);
    ck_assert_int_eq(status, ANNAL_END);
    return trace->text;
}

/* To a wakeup page that was used before, so that it is not new to any process. */
static annal__news *listen_to(annal_store *store)
{
    annal__news *news = NULL;
    ck_ok(annal__news_open(store, NULL, &news, err));
    annal__wakeup_announce_all(&store->wakeup);
    annal__news_close(news);
    ck_ok(annal__news_open(store, &(annal__news_options){.look_ms = 60000}, &news, err));
    return news;
}

START_TEST(appends_of_one_object_are_announced_to_another_in_order_at_every_level)
{
    struct trace trace;
    annal_store *writer = store_open(tmpdir_path(&dir, "store"));
    annal_store *reader = store_open(tmpdir_path(&dir, "store"));
    annal__news *news = listen_to(reader);
    ck_assert_str_eq(read_news(news, &trace), "");
    append_numbers(writer, "b", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(writer, "a", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(writer, "b", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(read_news(news, &trace), "b:1 a:1 a:2 b:2");
    append_numbers(writer, "a", 3, 4, ANNAL_LEVEL_OS);
    ck_assert_str_eq(read_news(news, &trace), "a:3 a:4");
    append_numbers(writer, "a", 5, 6, ANNAL_LEVEL_BATCH);
    append_numbers(writer, "b", 3, 3, ANNAL_LEVEL_BATCH);
    ck_ok(annal_store_sync(writer, err));
    ck_assert_str_eq(read_news(news, &trace), "a:6 b:3");
    append_numbers(reader, "c", 1, 1, ANNAL_LEVEL_SYNC); /* it reads its own events, too */
    ck_assert_str_eq(read_news(news, &trace), "c:1");
    annal__news_close(news);
    store_close(reader);
    store_close(writer);
}
END_TEST

START_TEST(an_announced_event_is_in_the_journal)
{
    annal__news_item item;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal__news *news = listen_to(store);
    for (uint64_t seq = 1; seq <= 20; seq++) {
        annal_session_info info;
        append_numbers(store, "s", seq, seq, seq % 3 == 0 ? ANNAL_LEVEL_OS : ANNAL_LEVEL_SYNC);
        ck_ok(annal__news_next(news, &item, err));
        ck_assert_int_eq(item.kind, ANNAL_NEWS_SESSION);
        ck_ok(annal_session_info_get(store, item.session, &info, err));
        ck_assert_uint_eq(item.end_seq, seq);
        ck_assert_uint_eq(info.last_seq, seq);
    }
    annal__news_close(news);
    store_close(store);
}
END_TEST

START_TEST(an_event_is_announced_when_its_journal_has_it)
{
    struct trace trace;
    struct picky_io disk;
    picky_io_init(&disk);
    annal_store *store = store_open_seams(
        tmpdir_path(&dir, "store"), &(struct seams){.io = &disk.io, .clock = &annal__system_clock});
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    annal__news *news = listen_to(store);
    picky_io_fail(&disk, PICKY_WRITE, "events/s", EIO, -1);
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC); /* durable in the log */
    ck_assert_ptr_null(strstr(read_news(news, &trace), "s:2"));
    append_numbers(store, "t", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(read_news(news, &trace), "t:2");
    picky_io_heal(&disk);
    ck_ok(annal_store_keep(store, err));
    ck_assert_str_eq(read_news(news, &trace), "missed");
    ck_numbers(store, "s", 2);
    annal__news_close(news);
    store_close(store);
}
END_TEST

START_TEST(a_process_that_sleeps_is_woken_by_an_append_of_another_process)
{
    struct trace trace;
    int ready[2];
    char byte;
    int exit_status = -1;
    const char *path = tmpdir_path(&dir, "store");
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        annal_store *store = store_open(path);
        annal__news *news = listen_to(store);
        ck_assert_int_eq(write(ready[1], "r", 1), 1);
        /* Without a word it would sleep for a second at a time, and tell of nothing for 60. */
        annal_status status = annal__news_wait(news, 30000, NULL);
        _exit(status == ANNAL_OK && strcmp(read_news(news, &trace), "s:1") == 0 ? 0 : 1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    usleep(20000);
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(waitpid(pid, &exit_status, 0), pid);
    ck_assert_int_eq(exit_status, 0);
    store_close(store);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

START_TEST(a_listener_that_missed_entries_checks_everything_and_then_continues)
{
    struct trace trace;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal__news *news = listen_to(store);
    append_numbers(store, "s", 1, WAKEUP_SLOTS + 1, ANNAL_LEVEL_OS);
    ck_assert_str_eq(read_news(news, &trace), "missed");
    append_numbers(store, "s", WAKEUP_SLOTS + 2, WAKEUP_SLOTS + 3, ANNAL_LEVEL_OS);
    ck_assert_str_eq(read_news(news, &trace), "s:1026 s:1027");
    annal__news_item item;
    append_numbers(store, "s", WAKEUP_SLOTS + 4, 2 * WAKEUP_SLOTS + 3, ANNAL_LEVEL_OS);
    for (uint64_t seq = WAKEUP_SLOTS + 4; seq <= 2 * WAKEUP_SLOTS + 3;
         seq++) { /* all that it keeps */
        ck_ok(annal__news_next(news, &item, err));
        ck_assert_uint_eq(item.end_seq, seq);
    }
    ck_assert_int_eq(annal__news_next(news, &item, NULL), ANNAL_END);
    annal__news_close(news);
    store_close(store);
}
END_TEST

START_TEST(a_deletion_a_conversion_and_a_recovery_are_announced_to_all)
{
    struct trace trace;
    annal_convert_result result;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "a", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(store, "b", 1, 2, ANNAL_LEVEL_SYNC);
    annal__news *news = listen_to(store);
    ck_ok(delete_wiped(store, ANNAL_SLICE("a"), NULL, err));
    ck_assert_str_eq(read_news(news, &trace), "missed");
    ck_ok(annal_session_convert(store, ANNAL_SLICE("b"),
                                &(annal_convert_options){.format = ANNAL_FORMAT_MSGPACK}, &result,
                                err));
    ck_assert_str_eq(read_news(news, &trace), "missed");
    annal_store *other = store_open(path);
    append_numbers(other, "c", 1, 2, ANNAL_LEVEL_SYNC);
    store_abandon(other);
    (void)read_news(news, &trace);
    store_close(store_open(path));
    ck_assert_str_eq(read_news(news, &trace), "missed");
    annal__news_close(news);
    store_close(store);
}
END_TEST

START_TEST(a_wait_ends_after_its_time_with_a_check_or_an_interruption)
{
    struct trace trace;
    annal__news *news = NULL;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal__news_close(listen_to(store));
    ck_ok(annal__news_open(store, &(annal__news_options){.look_ms = 50}, &news, err));
    ck_assert_int_eq(annal__news_wait(news, 0, NULL), ANNAL_END);
    ck_assert_int_eq(annal__news_wait(news, 5, NULL), ANNAL_END);
    ck_assert_int_eq(annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL), ANNAL_OK);
    ck_assert_str_eq(read_news(news, &trace), "look");
    annal__news_interrupt(news);
    ck_assert_int_eq(annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL), ANNAL_END);
    ck_assert_int_eq(annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL), ANNAL_OK);
    annal__news_close(news);
    annal__news_close(NULL);
    store_close(store);
}
END_TEST

static void *interrupt_soon(void *news)
{
    usleep(20000);
    annal__news_interrupt(news);
    return NULL;
}

START_TEST(a_wait_that_sleeps_is_interrupted_by_another_thread)
{
    pthread_t thread;
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    annal__news *news = listen_to(store);
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_soon, news), 0);
    ck_assert_int_eq(annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL), ANNAL_END);
    pthread_join(thread, NULL);
    annal__news_close(news);
    store_close(store);
}
END_TEST

/* As on read-only media. */
START_TEST(a_listener_without_shared_memory_checks_everything_four_times_a_second)
{
    struct trace trace;
    annal_store *store = NULL;
    store_close(store_open(tmpdir_path(&dir, "store")));
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &(annal_store_options){.read_only = true},
                           &store, err));
    annal__news *news = listen_to(store);
    ck_assert_int_ne(access(tmpdir_path(&dir, "store/locks/bell"), F_OK), 0);
    int64_t begun_us = annal__context_now_us(&store->context);
    ck_assert_int_eq(annal__news_wait(news, 100, NULL), ANNAL_END);
    ck_assert_int_eq(annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL), ANNAL_OK);
    ck_assert_int_ge(annal__context_now_us(&store->context) - begun_us, 250000);
    ck_assert_str_eq(read_news(news, &trace), "missed");
    annal__news_close(news);
    store_close(store);
}
END_TEST

START_TEST(a_read_only_store_is_woken_too)
{
    struct trace trace;
    annal_store *reader = NULL;
    annal_store *writer = store_open(tmpdir_path(&dir, "store"));
    annal__news_close(listen_to(writer)); /* it creates no page, but uses an existing one */
    append_numbers(writer, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_open(tmpdir_path(&dir, "store"), &(annal_store_options){.read_only = true},
                           &reader, err));
    annal__news *news = listen_to(reader);
    append_numbers(writer, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_assert_str_eq(read_news(news, &trace), "s:2");
    annal__news_close(news);
    store_close(reader);
    store_close(writer);
}
END_TEST

START_TEST(a_deleted_wakeup_page_is_created_again_and_no_event_is_missed)
{
    struct trace trace;
    annal_store *writer = store_open(tmpdir_path(&dir, "store"));
    annal_store *reader = store_open(tmpdir_path(&dir, "store"));
    append_numbers(writer, "s", 1, 1, ANNAL_LEVEL_SYNC);
    annal__news *news = listen_to(reader);
    ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/bell")), 0);
    append_numbers(writer, "s", 2, 2, ANNAL_LEVEL_SYNC); /* announces in the deleted page */
    usleep(1050000);
    ck_assert_str_eq(read_news(news, &trace), "missed");
    append_numbers(writer, "s", 3, 3, ANNAL_LEVEL_SYNC); /* notices */
    read_news(news, &trace); /* or the poll of a listener that is still unsure was first */
    ck_assert_msg(strstr(trace.text, "s:3") != NULL || strstr(trace.text, "missed") != NULL, "'%s'",
                  trace.text);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(annal__news_wait(news, 1000, NULL), ANNAL_OK);
        ck_assert_str_eq(read_news(news, &trace), "missed");
    }
    annal__news_close(news);
    store_close(reader);
    store_close(writer);
}
END_TEST

START_TEST(the_first_listener_polls_until_the_writers_notice_it)
{
    struct trace trace;
    annal__news *news = NULL;
    annal_store *writer = store_open(tmpdir_path(&dir, "store"));
    annal_store *reader = store_open(tmpdir_path(&dir, "store"));
    append_numbers(writer, "s", 1, 1, ANNAL_LEVEL_OS);
    ck_assert_int_ne(access(tmpdir_path(&dir, "store/locks/bell"), F_OK), 0);
    ck_ok(annal__news_open(reader, NULL, &news, err));
    ck_assert_int_eq(access(tmpdir_path(&dir, "store/locks/bell"), F_OK), 0);
    append_numbers(writer, "s", 2, 2, ANNAL_LEVEL_OS); /* may not look for a page again so soon */
    ck_assert_int_eq(annal__news_wait(news, 500, NULL), ANNAL_OK);
    usleep(WAKEUP_UNSURE_US);
    append_numbers(writer, "s", 3, 3, ANNAL_LEVEL_OS);
    read_news(news, &trace);
    ck_assert_msg(strstr(trace.text, "missed") != NULL || strstr(trace.text, "s:3") != NULL, "'%s'",
                  trace.text);
    ck_assert_ptr_nonnull(atomic_load(&writer->wakeup.map));
    annal__news_close(news);
    store_close(reader);
    store_close(writer);
}
END_TEST

Suite *suite_news(void)
{
    Suite *suite = suite_create("news");
    TCase *tcase = suite_case(suite, "all", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tcase, appends_of_one_object_are_announced_to_another_in_order_at_every_level);
    tcase_add_test(tcase, an_announced_event_is_in_the_journal);
    tcase_add_test(tcase, an_event_is_announced_when_its_journal_has_it);
    tcase_add_test(tcase, a_process_that_sleeps_is_woken_by_an_append_of_another_process);
    tcase_add_test(tcase, a_listener_that_missed_entries_checks_everything_and_then_continues);
    tcase_add_test(tcase, a_deletion_a_conversion_and_a_recovery_are_announced_to_all);
    tcase_add_test(tcase, a_wait_ends_after_its_time_with_a_check_or_an_interruption);
    tcase_add_test(tcase, a_wait_that_sleeps_is_interrupted_by_another_thread);
    tcase_add_test(tcase, a_listener_without_shared_memory_checks_everything_four_times_a_second);
    tcase_add_test(tcase, a_read_only_store_is_woken_too);
    tcase_add_test(tcase, a_deleted_wakeup_page_is_created_again_and_no_event_is_missed);
    tcase_add_test(tcase, the_first_listener_polls_until_the_writers_notice_it);
    return suite;
}
