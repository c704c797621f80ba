/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/delete.h"
#include "journal/sys/news.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/picky_io.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/stopped.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *path;
static annal_store *store;

static void setup(void)
{
    tmpdir_setup();
    path = tmpdir_path(&dir, "store");
    store = store_open(path);
}

static void teardown(void)
{
    store_close(store);
    tmpdir_teardown();
}

static struct wakeup_page *page_of(annal_store *of)
{
    struct wakeup_page *page =
        annal__wakeup_page(&of->wakeup, annal__context_now_us(&of->context), true);
    ck_assert_ptr_nonnull(page);
    return page;
}

static annal__news *listen_to(void)
{
    annal__news *news = NULL;
    annal__wakeup_announce(page_of(store), ANNAL_SLICE("before"), 1); /* it exists already */
    ck_ok(annal__news_open(store, &(annal__news_options){.look_ms = 60000}, &news, err));
    return news;
}

START_TEST(an_entry_with_an_id_of_any_length_is_read_unchanged)
{
    struct wakeup_page *page = page_of(store);
    char id[ANNAL_SESSION_ID_BYTES_MAX];
    struct wakeup_entry entry;
    memset(id, 'x', sizeof id);
    for (size_t length = 0; length <= sizeof id; length++)
        annal__wakeup_announce(page, (annal_slice){id, length}, length * 3);
    for (size_t length = 0; length <= sizeof id; length++) {
        ck_assert_int_eq(annal__wakeup_read(page, length, &entry), WAKEUP_ENTRY);
        ck_assert_uint_eq(entry.session.len, length);
        ck_assert_int_eq(memcmp(entry.session.ptr, id, length), 0);
        ck_assert_uint_eq(entry.end_seq, length * 3);
    }
    ck_assert_int_eq(annal__wakeup_read(page, sizeof id + 1, &entry), WAKEUP_NOTHING);
}
END_TEST

START_TEST(an_overwritten_or_damaged_entry_is_lost_and_never_read_as_another)
{
    struct wakeup_page *page = page_of(store);
    struct wakeup_entry entry;
    for (unsigned i = 0; i < WAKEUP_SLOTS; i++)
        annal__wakeup_announce(page, ANNAL_SLICE("session"), i);
    ck_assert_int_eq(annal__wakeup_read(page, 0, &entry), WAKEUP_ENTRY);
    annal__wakeup_announce(page, ANNAL_SLICE("other"), 7);
    ck_assert_int_eq(annal__wakeup_read(page, 0, &entry), WAKEUP_LOST);
    /* Flip every bit of a slot: a reader gets the announced entry or none. */
    unsigned char *bytes = (unsigned char *)&page->slots[5];
    for (size_t bit = 0; bit < sizeof page->slots[5] * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (annal__wakeup_read(page, 5, &entry) == WAKEUP_ENTRY) {
            ck_assert_uint_eq(entry.end_seq, 5);
            ck_assert_uint_eq(entry.session.len, 7);
            ck_assert_int_eq(memcmp(entry.session.ptr, "session", 7), 0);
        }
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    ck_assert_int_eq(annal__wakeup_read(page, 5, &entry), WAKEUP_ENTRY);
}
END_TEST

START_TEST(a_process_killed_while_it_holds_a_ticket_delays_others_only_briefly)
{
    annal__news *news = listen_to();
    struct wakeup_page *page = page_of(store);
    annal__news_item item;
    atomic_fetch_add(&page->tickets, 1); /* and no more */
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(annal__news_next(news, &item, NULL), ANNAL_END);
    int64_t begun_us = annal__context_now_us(&store->context);
    ck_assert_int_eq(annal__news_wait(news, 30000, NULL), ANNAL_OK);
    ck_assert_int_lt(annal__context_now_us(&store->context) - begun_us, scaled_us(5000000));
    ck_ok(annal__news_next(news, &item, err));
    ck_assert_int_eq(item.kind, ANNAL_NEWS_MISSED);
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal__news_next(news, &item, err));
    ck_assert_int_eq(item.kind, ANNAL_NEWS_SESSION);
    ck_assert_uint_eq(item.end_seq, 2);
    annal__news_close(news);
}
END_TEST

/* A stranger writes anything, all the time. */
START_TEST(random_bytes_in_the_page_lose_no_event_and_add_none)
{
    struct random random = random_init(31);
    annal__news *news = listen_to();
    struct wakeup_page *page = page_of(store);
    uint64_t known = 0, reported = 0;
    for (uint64_t seq = 1; seq <= 300; seq++) {
        annal__news_item item;
        unsigned char *bytes = (unsigned char *)page;
        size_t from = random_below(&random, sizeof *page - 64);
        if (seq % 3 == 0) /* where it hurts */
            from = offsetof(struct wakeup_page, tickets) + random_below(&random, 200);
        for (size_t i = 0; i < 64; i++)
            bytes[from + i] = (unsigned char)random_below(&random, 256);
        append_numbers(store, "s", seq, seq, ANNAL_LEVEL_OS);
        while (annal__news_wait(news, 0, NULL) == ANNAL_OK) {
            ck_ok(annal__news_next(news, &item, err));
            if (item.kind == ANNAL_NEWS_SESSION) {
                ck_assert_int_eq(memcmp(item.session.ptr, "s", item.session.len), 0);
                ck_assert_uint_le(item.end_seq, seq);
                reported++;
            }
            known = item.kind == ANNAL_NEWS_MISSED ? seq : item.end_seq;
        }
    }
    for (int i = 0; i < 50 && known < 300; i++) { /* what hangs on a ticket takes its time */
        annal__news_item item;
        ck_assert_int_eq(annal__news_wait(news, 2000, NULL), ANNAL_OK);
        while (annal__news_next(news, &item, NULL) == ANNAL_OK)
            known = item.kind == ANNAL_NEWS_SESSION ? item.end_seq : 300;
    }
    ck_assert_uint_eq(known, 300);
    ck_assert_uint_gt(reported, 0);
    annal__news_close(news);
}
END_TEST

START_TEST(a_page_of_random_bytes_is_reused)
{
    struct random random = random_init(31);
    static char bytes[sizeof(struct wakeup_page)];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)random_below(&random, 256);
    file_write(tmpdir_path(&dir, "store/locks/bell"), bytes, sizeof bytes);
    annal__news *news = listen_to();
    annal__news_item item;
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal__news_next(news, &item, err));
    ck_assert_int_eq(item.kind, ANNAL_NEWS_SESSION);
    ck_assert_int_eq(annal__news_next(news, &item, NULL), ANNAL_END);
    annal__news_close(news);
}
END_TEST

START_TEST(a_page_of_another_version_is_not_changed_and_everything_is_checked)
{
    atomic_store(&page_of(store)->magic, UINT64_C(0x394c4c45424c4e41));
    annal_store *other = store_open(path);
    annal__news *news = NULL;
    annal__news_item item;
    ck_assert_ptr_null(
        annal__wakeup_page(&other->wakeup, annal__context_now_us(&other->context), true));
    ck_ok(annal__news_open(other, NULL, &news, err));
    append_numbers(other, "s", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(annal__news_wait(news, 5000, NULL), ANNAL_OK);
    ck_ok(annal__news_next(news, &item, err));
    ck_assert_int_eq(item.kind, ANNAL_NEWS_MISSED);
    ck_assert_uint_eq(atomic_load(&page_of(store)->magic), UINT64_C(0x394c4c45424c4e41));
    annal__news_close(news);
    store_close(other);
}
END_TEST

/* Check that a listener learns of last_seq in session s, by itself if necessary. */
static void ck_learns(annal__news *news, uint64_t last_seq)
{
    annal__news_item item = {.end_seq = 0};
    while (item.end_seq < last_seq && item.kind != ANNAL_NEWS_MISSED) {
        ck_assert_int_eq(annal__news_wait(news, 5000, NULL), ANNAL_OK);
        ck_ok(annal__news_next(news, &item, err));
    }
}

START_TEST(a_listener_without_the_page_checks_everything_until_the_page_opens)
{
    static const enum picky_call calls[] = {PICKY_OPEN, PICKY_WRITE};
    static const int errnos[] = {EACCES, ENOSPC};
    for (int i = 0; i < 2; i++) {
        struct picky_io disk;
        annal__news *news = NULL;
        picky_io_init(&disk);
        picky_io_fail(&disk, calls[i], "locks/bell", errnos[i], -1);
        annal_store *own =
            store_open_seams(path, &(struct seams){.io = &disk.io, .clock = &annal__system_clock});
        ck_ok(annal__news_open(own, NULL, &news, err));
        ck_assert_ptr_null(atomic_load(&own->wakeup.map));
        append_numbers(own, "s", 1, 1, ANNAL_LEVEL_OS);
        ck_learns(news, 1);
        ck_assert_ptr_null(atomic_load(&own->wakeup.map));
        picky_io_heal(&disk);
        append_numbers(own, "s", 2, 2, ANNAL_LEVEL_OS);
        ck_learns(news, 2);
        ck_assert_ptr_nonnull(atomic_load(&own->wakeup.map));
        annal__news_close(news);
        ck_ok(delete_wiped(own, ANNAL_SLICE("s"), NULL, err));
        store_close(own);
        ck_assert_int_eq(unlink(tmpdir_path(&dir, "store/locks/bell")), 0);
    }
}
END_TEST

START_TEST(any_call_of_listening_may_fail)
{
    unsigned calls = 1;
    char session[16];
    for (unsigned at = 1; at <= calls; at++) {
        struct failing_io disk;
        annal__news *news = NULL;
        failing_io_init(&disk);
        disk.by_table = disk.lazy = true;
        snprintf(session, sizeof session, "s%u", at);
        annal_store *own =
            store_open_seams(path, &(struct seams){.io = &disk.io, .clock = &annal__system_clock});
        append_numbers(own, session, 1, 1, ANNAL_LEVEL_OS);
        usleep(WAKEUP_SEEK_US);
        disk.calls = 0;
        disk.fail_at = at;
        ck_ok(annal__news_open(own, NULL, &news, err));
        annal_status status =
            append_number(own, session, 2, 40, ANNAL_LEVEL_OS, &(uint64_t){0}, NULL);
        calls = disk.calls;
        disk.fail_at = 0;
        if (status == ANNAL_OK)
            ck_learns(news, 2);
        annal__news_close(news);
        (void)annal_store_close(own, NULL);
        (void)unlink(tmpdir_path(&dir, "store/locks/bell"));
    }
    ck_assert_uint_gt(calls, 60);
}
END_TEST

static void *append_twice(void *arg)
{
    (void)arg;
    for (uint64_t seq = 1; seq <= 2; seq++) {
        usleep(20000);
        append_numbers(store, "s", seq, seq, ANNAL_LEVEL_SYNC);
    }
    return NULL;
}

/* The listener must not count the wakeups before its first second as its own. */
START_TEST(a_new_listener_does_not_pause_for_earlier_wakeups_of_others)
{
    pthread_t thread;
    annal__news_item item;
    atomic_store(&page_of(store)->woken, 5000000);
    annal__news *news = listen_to();
    int64_t begun_us = annal__context_now_us(&store->context);
    ck_assert_int_eq(pthread_create(&thread, NULL, append_twice, NULL), 0);
    for (uint64_t seq = 1; seq <= 2; seq++) {
        ck_assert_int_eq(annal__news_wait(news, 30000, NULL), ANNAL_OK);
        ck_ok(annal__news_next(news, &item, err));
        ck_assert_uint_eq(item.end_seq, seq);
    }
    ck_assert_int_lt(annal__context_now_us(&store->context) - begun_us, scaled_us(900000));
    pthread_join(thread, NULL);
    annal__news_close(news);
}
END_TEST

/* ---- Many processes ---- */

/* Appends until it is killed. */
static void append_for_ever(void)
{
    annal_store *own = store_open(path);
    uint64_t seq = 0;
    annal_error err;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t i = 0;; i++) {
        if (append_number(own, "s", i, 40, i % 8 == 0 ? ANNAL_LEVEL_SYNC : ANNAL_LEVEL_OS, &seq,
                          &err) < 0)
            _exit(1);
    }
}

/* The last seq of s that a listener knows, from announcements and from its own checks. */
static uint64_t know(annal__news *news, uint64_t known)
{
    annal__news_item item;
    while (annal__news_next(news, &item, NULL) == ANNAL_OK) {
        annal_session_info info = {0};
        if (item.kind == ANNAL_NEWS_SESSION)
            info.last_seq = item.end_seq;
        else if (annal_session_info_get(store, ANNAL_SLICE("s"), &info, NULL) < 0)
            continue; /* not there yet */
        if (info.last_seq > known)
            known = info.last_seq;
    }
    return known;
}

START_TEST(a_writer_killed_at_any_moment_leaves_no_event_unannounced)
{
    struct random random = random_init(32);
    annal__news *news = NULL;
    uint64_t known = 0;
    annal__news_close(listen_to());
    ck_ok(annal__news_open(store, &(annal__news_options){.look_ms = 50}, &news, err));
    for (int round = 0; round < 12; round++) {
        annal_session_info info = {0};
        pid_t pid = fork();
        if (pid == 0)
            append_for_ever();
        uint64_t before = known;
        while (known == before) { /* it has begun */
            ck_assert_int_eq(annal__news_wait(news, 30000, NULL), ANNAL_OK);
            known = know(news, known);
        }
        usleep((unsigned)random_below(&random, 5000));
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_ok(annal_session_info_get(store, ANNAL_SLICE("s"), &info, err));
        for (int looks = 0; known < info.last_seq; looks++) {
            ck_assert_int_lt(looks, 1000);
            ck_assert_int_eq(annal__news_wait(news, 2000, NULL), ANNAL_OK);
            known = know(news, known);
        }
        ck_assert_uint_eq(known, info.last_seq);
    }
    annal__news_close(news);
}
END_TEST

#define CROWD 200

struct shared {
    _Atomic uint32_t ready;
    _Atomic uint32_t woken;
    _Atomic uint32_t done; /* know of seq 3 */
};

/* Listen until the announcement that s has 3 events, and report it. */
static void follow(struct shared *shared)
{
    annal_store *own = store_open(path);
    annal__news *news = NULL;
    annal__news_item item = {.end_seq = 0};
    bool first = true;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (annal__news_open(own, &(annal__news_options){.look_ms = 60000}, &news, NULL) < 0)
        _exit(1);
    atomic_fetch_add(&shared->ready, 1);
    while (item.end_seq < 3 && annal__news_wait(news, ANNAL_NO_TIMEOUT, NULL) == ANNAL_OK) {
        while (annal__news_next(news, &item, NULL) == ANNAL_OK)
            ;
        if (first)
            atomic_fetch_add(&shared->woken, 1);
        first = false;
    }
    atomic_fetch_add(&shared->done, 1);
    pause();
}

static void wait_for(_Atomic uint32_t *count, uint32_t least)
{
    int64_t begun_us = annal__context_now_us(&store->context);
    while (atomic_load(count) < least &&
           annal__context_now_us(&store->context) - begun_us < 50000000)
        usleep(500);
    ck_assert_uint_ge(atomic_load(count), least);
}

START_TEST(one_wakeup_reaches_hundreds_of_processes_while_some_are_killed)
{
    static pid_t pids[CROWD];
    annal__news_close(listen_to()); /* the page exists, and is new to no process */
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (int i = 0; i < CROWD; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            follow(shared);
    }
    wait_for(&shared->ready, CROWD);
    usleep(50000);
    int64_t begun_us = annal__context_now_us(&store->context);
    append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    wait_for(&shared->woken, CROWD);
    int64_t took_us = annal__context_now_us(&store->context) - begun_us;
    ck_assert_int_lt(took_us, scaled_us(20000000));
    append_numbers(store, "s", 2, 2, ANNAL_LEVEL_SYNC);
    for (int i = 0; i < CROWD; i += 2) /* wherever they are: about to wake others, too */
        ck_assert_int_eq(kill(pids[i], SIGKILL), 0);
    append_numbers(store, "s", 3, 3, ANNAL_LEVEL_SYNC);
    wait_for(&shared->done, CROWD / 2);
    for (int i = 0; i < CROWD; i++) {
        (void)kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    }
    munmap(shared, sizeof *shared);
}
END_TEST

Suite *suite_wakeup_page(void)
{
    Suite *suite = suite_create("wakeup_page");
    TCase *tcase = suite_case(suite, "all", setup, teardown);
    tcase_add_test(tcase, an_entry_with_an_id_of_any_length_is_read_unchanged);
    tcase_add_test(tcase, an_overwritten_or_damaged_entry_is_lost_and_never_read_as_another);
    tcase_add_test(tcase, a_process_killed_while_it_holds_a_ticket_delays_others_only_briefly);
    tcase_add_test(tcase, random_bytes_in_the_page_lose_no_event_and_add_none);
    tcase_add_test(tcase, a_page_of_random_bytes_is_reused);
    tcase_add_test(tcase, a_page_of_another_version_is_not_changed_and_everything_is_checked);
    tcase_add_test(tcase, a_listener_without_the_page_checks_everything_until_the_page_opens);
    tcase_add_test(tcase, any_call_of_listening_may_fail);
    tcase_add_test(tcase, a_new_listener_does_not_pause_for_earlier_wakeups_of_others);
    tcase_add_test(tcase, a_writer_killed_at_any_moment_leaves_no_event_unannounced);
    tcase_add_test(tcase, one_wakeup_reaches_hundreds_of_processes_while_some_are_killed);
    return suite;
}
