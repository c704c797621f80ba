/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"
#include "replay/sys/tail.h"
#include "tests/index/fixture.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"

#include <annal/tail.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S   ANNAL_SLICE("s")
#define NEW UINT64_MAX /* only what is appended from now on */

static annal_tail *tail;

static void setup(void)
{
    tail = NULL;
    fixture_setup();
}

static void teardown(void)
{
    annal_tail_close(tail);
    fixture_teardown();
}

static annal_status open_at(annal_store *store, annal_slice session, uint64_t from_seq,
                            annal_error *err)
{
    const annal_tail_options options = {.sessions = &session,
                                        .session_count = 1,
                                        .from_seq = from_seq == NEW ? 0 : from_seq,
                                        .from_now = from_seq == NEW};
    return annal_tail_open(store, &options, &tail, err);
}

static void open_tail(uint64_t from_seq)
{
    ck_ok(open_at(f.store, S, from_seq, err));
}

static bool is_readable(int timeout_ms)
{
    int fd = -1;
    ck_ok(annal_tail_fd(tail, &fd, err));
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    return poll(&ready, 1, timeout_ms) == 1;
}

static void append(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        fixture_append(&f, "s", "a.one", "{}");
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Check that the next event is seq and arrives in time. */
static void ck_next(uint64_t seq, uint32_t timeout_ms)
{
    annal_event event = {0};
    ck_ok(annal_tail_next(tail, timeout_ms, &event, err));
    ck_assert_uint_eq(event.seq, seq);
    ck_assert_int_eq(strncmp(annal_tail_session(tail).ptr, "s", 2), 0);
}

static void ck_none(uint32_t timeout_ms)
{
    annal_event event;
    ck_assert_int_eq(annal_tail_next(tail, timeout_ms, &event, NULL), ANNAL_END);
}

START_TEST(a_tail_gives_the_history_first_and_then_new_events)
{
    append(3);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    append(1);
    ck_next(3, 0);
    ck_next(4, 0);
    ck_none(0);
    append(1);
    ck_next(5, 0);
    ck_none(0);
}
END_TEST

START_TEST(a_rested_tail_continues_after_its_last_event)
{
    append(3);
    open_tail(0);
    annal__tail_rest(tail);
    ck_next(1, 0);
    annal__tail_rest(tail);
    annal__tail_rest(tail);
    ck_next(2, 0);
    ck_next(3, 0);
    ck_none(0);
    annal__tail_rest(tail);
    append(1);
    ck_next(4, 0);
}
END_TEST

START_TEST(a_tail_begins_at_any_seq)
{
    append(5);
    open_tail(4);
    ck_next(4, 0);
    ck_next(5, 0);
    ck_none(0);
    annal_tail_close(tail);
    open_tail(NEW);
    ck_none(0);
    append(1);
    ck_next(6, 0);
    annal_tail_close(tail);
    open_tail(8); /* not there yet */
    append(1);
    ck_none(0);
    append(1);
    ck_next(8, 0);
}
END_TEST

START_TEST(a_tail_waits_for_a_session_that_does_not_exist_yet)
{
    open_tail(_i == 0 ? 0 : NEW);
    ck_none(0);
    fixture_append(&f, "other", "a.one", "{}");
    ck_none(20);
    append(2);
    ck_next(1, 0);
    ck_next(2, 0);
    ck_none(0);
}
END_TEST

START_TEST(a_wait_ends_after_its_time)
{
    append(1);
    open_tail(NEW);
    int64_t begun = now_ms();
    ck_none(120);
    ck_assert_int_ge(now_ms() - begun, 119);
    ck_assert_int_lt(now_ms() - begun, scaled_us(1000));
}
END_TEST

START_TEST(an_invalid_session_name_is_refused)
{
    ck_assert_int_eq(open_at(f.store, ANNAL_SLICE("../x"), 0, NULL), ANNAL_ERR_INVALID);
    ck_assert_ptr_null(tail);
}
END_TEST

START_TEST(the_descriptor_is_readable_only_after_an_append)
{
    append(1);
    open_tail(0);
    ck_next(1, 0);
    ck_none(0);
    ck_assert(!is_readable(0));
    append(1);
    ck_assert(is_readable(1000));
    ck_next(2, 0);
    ck_none(0);
    ck_assert(!is_readable(0));
}
END_TEST

START_TEST(the_descriptor_is_readable_after_a_session_was_created)
{
    open_tail(0);
    ck_none(0);
    ck_assert(!is_readable(0));
    append(1);
    ck_assert(is_readable(1000));
    ck_next(1, 0);
    ck_none(0);
    append(1);
    ck_assert(is_readable(1000));
}
END_TEST

START_TEST(a_session_of_msgpack_is_followed_like_any_other)
{
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("a.one"), .data = ANNAL_SLICE("{}")};
    uint64_t seq;
    open_tail(0);
    ck_none(0);
    ck_ok(annal_writer_open(f.store, S, &(annal_writer_options){.format = ANNAL_FORMAT_MSGPACK},
                            &writer, err));
    for (uint64_t i = 1; i <= 3; i++) {
        ck_assert(!is_readable(0));
        ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
        ck_assert(is_readable(1000));
        ck_next(i, 0);
        ck_none(0);
    }
    annal_writer_close(writer);
}
END_TEST

/* ---- While others append ---- */

#define EVENTS 10000

static void *append_all(void *arg)
{
    annal_writer *writer = NULL;
    annal_draft drafts[7];
    uint64_t seq;
    (void)arg;
    for (size_t i = 0; i < 7; i++)
        drafts[i] =
            (annal_draft){.type = ANNAL_SLICE("a.one"), .data = ANNAL_SLICE("{\"n\":12345}")};
    ck_ok(annal_writer_open(f.store, S, &(annal_writer_options){.level = ANNAL_LEVEL_BATCH},
                            &writer, err));
    for (unsigned done = 0; done < EVENTS;) {
        unsigned n = 1 + done % 7;
        if (n > EVENTS - done)
            n = EVENTS - done;
        ck_ok(annal_writer_append(writer, drafts, n, NULL, &seq, err));
        done += n;
        if (done % 50 == 0)
            ck_ok(annal_store_sync(f.store, err));
    }
    ck_ok(annal_store_sync(f.store, err));
    annal_writer_close(writer);
    return NULL;
}

START_TEST(while_a_thread_appends_no_event_is_missing_or_doubled)
{
    pthread_t thread;
    open_tail(0);
    ck_assert_int_eq(pthread_create(&thread, NULL, append_all, NULL), 0);
    for (uint64_t seq = 1; seq <= EVENTS; seq++)
        ck_next(seq, 300000);
    ck_none(0);
    pthread_join(thread, NULL);
}
END_TEST

/* Append 100 events to the session, one by one. */
static bool append_slowly(annal_store *store)
{
    annal_writer *writer = NULL;
    const annal_draft draft = {.type = ANNAL_SLICE("a.two"), .data = ANNAL_SLICE("{}")};
    uint64_t seq;
    bool fine = annal_writer_open(store, S, NULL, &writer, NULL) == 0;
    for (int i = 0; fine && i < 100; i++) {
        fine = annal_writer_append(writer, &draft, 1, NULL, &seq, NULL) == 0;
        usleep(500);
    }
    annal_writer_close(writer);
    return fine;
}

/* The exit status of a process. */
static int append_from_outside(void)
{
    annal_store *store = NULL;
    bool fine = annal_store_open(f.path, NULL, &store, NULL) == 0 && append_slowly(store);
    return annal_store_close(store, NULL) == ANNAL_OK && fine ? 0 : 1;
}

START_TEST(an_append_of_another_process_wakes_a_tail)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(append_from_outside());
    open_tail(0);
    for (uint64_t seq = 1; seq <= 100; seq++)
        ck_next(seq, 300000);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* A directory stands where the shared memory should be. */
START_TEST(a_tail_without_a_wakeup_page_polls)
{
    append(1);
    annal_index_close(f.index);
    f.index = NULL;
    ck_ok(annal_store_close(f.store, err));
    (void)unlink(tmpdir_path(&f.dir, "store/locks/bell"));
    ck_assert_int_eq(mkdir(tmpdir_path(&f.dir, "store/locks/bell"), 0700), 0);
    ck_ok(annal_store_open(f.path, NULL, &f.store, err));
    open_tail(0);
    ck_next(1, 0);
    ck_none(0);
    ck_assert(!is_readable(0));
    ck_assert(append_slowly(f.store));
    ck_assert(is_readable(2000));
    for (uint64_t seq = 2; seq <= 101; seq++)
        ck_next(seq, 300000);
    ck_none(0);
}
END_TEST

/* ---- A journal that was changed ---- */

static const char *journal(void)
{
    return tmpdir_path(&f.dir, "store/events/s.jsonl");
}

/* A piece of a line stands at the end, is cut, and another line is written there. */
START_TEST(a_torn_tail_that_is_cut_and_written_again_is_given_once)
{
    append(3);
    ck_ok(annal_store_checkpoint(f.store, err));
    size_t whole, shorter;
    char *bytes = file_read(journal(), &whole);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    annal_tail_close(tail);
    tail = NULL;

    for (shorter = whole - 1; bytes[shorter - 1] != '\n'; shorter--)
        ;
    ck_assert_int_eq(truncate(journal(), (off_t)(shorter + 20)), 0);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    ck_none(0);
    ck_assert_int_eq(truncate(journal(), (off_t)shorter), 0);
    ck_none(0);
    FILE *file = fopen(journal(), "r+");
    ck_assert_ptr_nonnull(file);
    fseek(file, (long)shorter, SEEK_SET);
    fwrite(bytes + shorter, 1, 40, file);
    fflush(file);
    ck_none(0);
    fwrite(bytes + shorter + 40, 1, whole - shorter - 40, file);
    fclose(file);
    ck_next(3, 0);
    ck_none(0);
    free(bytes);
}
END_TEST

START_TEST(a_tail_reports_damage_and_continues_after_it)
{
    annal_event event;
    append(5);
    ck_ok(annal_store_checkpoint(f.store, err));
    size_t len;
    char *bytes = file_read(journal(), &len);
    char *third = strstr(bytes, "{\"seq\":3");
    ck_assert_ptr_nonnull(third);
    third[20] ^= 1;
    file_write(journal(), bytes, len);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    ck_assert_int_eq(annal_tail_next(tail, 0, &event, NULL), ANNAL_DAMAGE);
    ck_assert_uint_eq(annal_tail_damage(tail).seq, 3);
    ck_next(4, 0);
    ck_next(5, 0);
    ck_none(0);
    free(bytes);
}
END_TEST

START_TEST(a_tail_of_a_deleted_session_gives_all_events_and_then_reports_the_deletion)
{
    annal_event event;
    append(3);
    open_tail(1);
    ck_next(1, 0);
    ck_ok(annal__replace_delete(f.store, S, NULL, err));
    append(1);
    ck_next(2, 0);
    ck_next(3, 0);
    annal_error error;
    ck_assert_int_eq(annal_tail_next(tail, 3000, &event, &error), ANNAL_ERR_CONFLICT);
    annal_tail_close(tail);
    open_tail(1);
    ck_next(1, 0);
}
END_TEST

START_TEST(a_missing_journal_ends_the_tail)
{
    annal_event event;
    annal_error err = {0};
    append(2);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    ck_none(0);
    ck_assert_int_eq(unlink(journal()), 0);
    ck_assert_int_eq(annal_tail_next(tail, 3000, &event, &err), ANNAL_ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err.message, "removed"));
}
END_TEST

/* As an editor saves it: the same bytes, another file. */
START_TEST(a_tail_follows_a_copy_that_replaced_its_journal)
{
    append(2);
    ck_ok(annal_store_checkpoint(f.store, err));
    size_t two, three;
    char *bytes_of_two = file_read(journal(), &two);
    append(1);
    ck_ok(annal_store_checkpoint(f.store, err));
    char *bytes_of_three = file_read(journal(), &three);
    ck_assert_int_eq(unlink(journal()), 0);
    file_write(journal(), bytes_of_two, two);
    open_tail(0);
    ck_next(1, 0);
    ck_next(2, 0);
    ck_none(0);
    ck_assert_int_eq(unlink(journal()), 0);
    file_write(journal(), bytes_of_three, three);
    ck_next(3, 300000);
    free(bytes_of_two);
    free(bytes_of_three);
}
END_TEST

Suite *suite_tail(void)
{
    Suite *suite = suite_create("tail");
    TCase *tc = suite_case(suite, "tail", setup, teardown);
    tcase_add_test(tc, a_tail_gives_the_history_first_and_then_new_events);
    tcase_add_test(tc, a_rested_tail_continues_after_its_last_event);
    tcase_add_test(tc, a_tail_begins_at_any_seq);
    tcase_add_loop_test(tc, a_tail_waits_for_a_session_that_does_not_exist_yet, 0, 2);
    tcase_add_test(tc, a_wait_ends_after_its_time);
    tcase_add_test(tc, an_invalid_session_name_is_refused);
    tcase_add_test(tc, the_descriptor_is_readable_only_after_an_append);
    tcase_add_test(tc, the_descriptor_is_readable_after_a_session_was_created);
    tcase_add_test(tc, a_session_of_msgpack_is_followed_like_any_other);
    tcase_add_test(tc, while_a_thread_appends_no_event_is_missing_or_doubled);
    tcase_add_test(tc, an_append_of_another_process_wakes_a_tail);
    tcase_add_test(tc, a_tail_without_a_wakeup_page_polls);
    tcase_add_test(tc, a_torn_tail_that_is_cut_and_written_again_is_given_once);
    tcase_add_test(tc, a_tail_reports_damage_and_continues_after_it);
    tcase_add_test(tc, a_tail_of_a_deleted_session_gives_all_events_and_then_reports_the_deletion);
    tcase_add_test(tc, a_missing_journal_ends_the_tail);
    tcase_add_test(tc, a_tail_follows_a_copy_that_replaced_its_journal);
    return suite;
}
