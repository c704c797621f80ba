/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"
#include "journal/sys/seam.h"

#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/random.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct seams system_seams = {.io = &annal__system_io, .clock = &annal__system_clock};

/* ---- Many threads, few descriptors, two stores that want the same sessions ---- */

#define THREADS   6
#define SESSIONS  40
#define APPENDS   120
#define LOW_LIMIT 200 /* of descriptors: leaves 16 for journals */

struct crowd {
    annal_store *stores[2];
    _Atomic uint64_t next[SESSIONS]; /* numbers given out */
    _Atomic bool stop;
    const char *wrong;
};

struct member {
    pthread_t thread;
    struct crowd *crowd;
    struct random random;
    unsigned number;
};

static void complain(struct crowd *crowd, const char *wrong, const annal_error *err)
{
    fprintf(stderr, "%s: %s\n", wrong, err->message);
    crowd->wrong = wrong;
}

static void *append_here_and_there(void *arg)
{
    static const annal_level levels[] = {ANNAL_LEVEL_SYNC, ANNAL_LEVEL_BATCH, ANNAL_LEVEL_OS};
    struct member *self = arg;
    struct crowd *crowd = self->crowd;
    for (int i = 0; i < APPENDS; i++) {
        char name[16], data[100], id[32];
        uint64_t seq;
        annal_error err = {0};
        unsigned session = (unsigned)random_below(&self->random, SESSIONS);
        uint64_t number = atomic_fetch_add(&crowd->next[session], 1) + 1;
        snprintf(name, sizeof name, "s%u", session);
        snprintf(id, sizeof id, "id%d", (int)number);
        /* Mostly the same store; changing each time would only wait for handovers. */
        annal_store *store = crowd->stores[(self->number + (i % 16 == 0)) % 2];
        annal_level level = levels[random_below(&self->random, 3)];
        if (append_slice(store, name, event_data(data, sizeof data, number, 20),
                         number % 4 == 0 ? id : NULL, level, &seq, &err) < 0)
            complain(crowd, "append", &err);
        if (i % 20 == 0 && annal_store_sync(store, &err) < 0)
            complain(crowd, "sync", &err);
    }
    return NULL;
}

static int ignore_session(void *arg, annal_slice session, uint64_t bytes)
{
    (void)arg;
    (void)session;
    (void)bytes;
    return 0;
}

static void *look_and_checkpoint(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t since = 0;
    while (!atomic_load(&crowd->stop)) {
        annal_error err = {0};
        annal_cursor *cursor = NULL;
        annal_event event;
        since = annal__session_list_changed(crowd->stores[0], since, ignore_session, NULL);
        if (annal_store_checkpoint(crowd->stores[0], &err) < 0)
            complain(crowd, "checkpoint", &err);
        if (annal_cursor_open(crowd->stores[1], ANNAL_SLICE("s1"), 1, &cursor, &err) == ANNAL_OK) {
            annal_status status;
            do {
                status = annal_cursor_next(cursor, &event, &err);
            } while (status == ANNAL_OK);
            if (status != ANNAL_END)
                complain(crowd, "a reader saw damage", &err);
            annal_cursor_close(cursor);
        }
    }
    return NULL;
}

struct seen {
    bool numbers[THREADS * APPENDS + 1];
    uint64_t count;
};

static void see(void *arg, const annal_event *event)
{
    struct seen *seen = arg;
    uint64_t number = event_number(event);
    ck_assert_uint_le(number, THREADS * APPENDS);
    ck_assert(!seen->numbers[number]);
    seen->numbers[number] = true;
    seen->count++;
}

START_TEST(many_threads_of_two_stores_share_sessions_with_few_descriptors)
{
    const char *path = tmpdir_path(&dir, "store");
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit low = {LOW_LIMIT, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct crowd crowd = {0};
    const annal_store_options options = {.create = true};
    for (int i = 0; i < 2; i++)
        ck_ok(annal__store_open(path, &options, &system_seams, &crowd.stores[i], err));
    struct random random = random_init(41);
    struct member members[THREADS];
    pthread_t looker;
    for (unsigned i = 0; i < THREADS; i++) {
        members[i] =
            (struct member){.crowd = &crowd, .random = {random_next(&random)}, .number = i};
        ck_assert_int_eq(
            pthread_create(&members[i].thread, NULL, append_here_and_there, &members[i]), 0);
    }
    ck_assert_int_eq(pthread_create(&looker, NULL, look_and_checkpoint, &crowd), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(members[i].thread, NULL);
    atomic_store(&crowd.stop, true);
    pthread_join(looker, NULL);
    ck_assert_ptr_null(crowd.wrong);
    for (int i = 0; i < 2; i++)
        store_close(crowd.stores[i]);

    annal_store *store = store_open(path);
    for (unsigned i = 0; i < SESSIONS; i++) {
        struct seen seen = {0};
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        read_session(store, name, see, &seen);
        ck_assert_uint_eq(seen.count, atomic_load(&crowd.next[i]));
    }
    store_close(store);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
END_TEST

START_TEST(a_process_may_write_more_sessions_than_it_can_own_at_a_time)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    append_numbers(store, "first", 1, 1, ANNAL_LEVEL_SYNC);
    /* Fill the held list as if the process owned that many sessions. */
    char name[16];
    uint32_t index;
    for (int i = 1; i < HELD_ENTRIES_MAX; i++) {
        snprintf(name, sizeof name, "x%d", i);
        ck_ok(annal__held_add(&store->own_log.held, annal_slice_of(name), &index, err));
    }
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "s%d", i % 5);
        append_numbers(store, name, (uint64_t)i / 5 + 1, (uint64_t)i / 5 + 1, ANNAL_LEVEL_SYNC);
    }
    append_numbers(store, "first", 2, 2, ANNAL_LEVEL_OS);
    append_numbers(store, "s0", 3, 3, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "first", 2);
    ck_numbers(store, "s0", 3);
    store_close(store);
}
END_TEST

/* ---- After a failed sync ---- */

/* The kernel tells of a failed writeback once; bytes that it lost are only in the log then. */
START_TEST(a_store_with_a_failed_directory_sync_releases_nothing_before_redo)
{
    for (unsigned which = 2; which <= 2; which++) { /* events/; of a journal see test_failure.c */
        struct failing_io disk;
        const char *path = tmpdir_path(&dir, "store");
        failing_io_init(&disk);
        disk.with_errno = EIO;
        const struct seams seams = {.io = &disk.io, .clock = &annal__system_clock};
        annal_store *failing = store_open_seams(path, &seams);
        append_numbers(failing, "s", 1, 3, ANNAL_LEVEL_SYNC);
        disk.fail_at = disk.calls + which;
        ck_status(ANNAL_ERR_DISK, annal_store_checkpoint(failing, err));

        annal_store *other = NULL;
        uint64_t seq;
        const annal_store_options options = {.no_keeper = true, .wait_ms = 60};
        ck_ok(annal__store_open(path, &options, &system_seams, &other, err));
        for (int tries = 0; tries < 3; tries++) {
            ck_status(ANNAL_ERR_BUSY,
                      append_number(other, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
            ck_ok(annal_store_keep(failing, err));
            ck_status(ANNAL_ERR_CLOSED,
                      append_number(failing, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
        }
        ck_assert_int_eq(annal_store_close(failing, NULL), ANNAL_ERR_CLOSED);
        append_numbers(other, "s", 4, 4, ANNAL_LEVEL_SYNC);
        annal_metrics stats;
        annal_store_metrics_get(other, ANNAL_METRICS_OF_OBJECT, &stats);
        ck_assert_uint_ge(stats.recovered_groups, 3);
        ck_numbers(other, "s", 4);
        store_close(other);
        tmpdir_renew();
    }
}
END_TEST

/* ---- Tails ---- */

START_TEST(the_next_owner_cuts_a_torn_tail_and_keeps_its_bytes)
{
    static const char *const torn[] = {"{\"seq\":4", "{", "\n", "garbage\nmore", "\0\0\0"};
    for (size_t i = 0; i < sizeof torn / sizeof *torn; i++) {
        const char *path = tmpdir_path(&dir, "store");
        const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
        annal_store *store = store_open(path);
        append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
        store_close(store);
        size_t extra = i == 4 ? 3 : strlen(torn[i]);
        FILE *file = fopen(journal, "ab");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(torn[i], 1, extra, file), extra);
        fclose(file);
        store = store_open(path);
        ck_numbers(store, "s", 3); /* who only reads leaves it alone */
        struct stat info;
        ck_assert_int_eq(stat(tmpdir_path(&dir, "store/events/.torn"), &info), -1);
        append_numbers(store, "s", 4, 5, ANNAL_LEVEL_SYNC);
        ck_numbers(store, "s", 5);
        annal_metrics stats;
        annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
        ck_assert_uint_eq(stats.torn_bytes, extra);
        ck_assert_int_eq(stat(tmpdir_path(&dir, "store/events/.torn"), &info), 0);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(a_damaged_end_can_be_read_and_refuses_appends)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    store_close(store);
    size_t len;
    char *bytes = file_read(journal, &len);
    bytes[len - 40] ^= 1;
    file_write(journal, bytes, len);
    store = store_open(path);
    uint64_t seq;
    for (int tries = 0; tries < 2; tries++)
        ck_status(ANNAL_ERR_CORRUPT, append_number(store, "s", 4, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_numbers(store, "s", 2);
    append_numbers(store, "t", 2, 2, ANNAL_LEVEL_SYNC);
    /* After a repair by hand the session continues at once. */
    bytes[len - 40] ^= 1;
    file_write(journal, bytes, len);
    free(bytes);
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

/* Whichever byte of the last line is damaged: the line was acknowledged, so no owner may cut it and
 * reuse its seq. */
START_TEST(a_damaged_last_event_is_never_replaced_by_another)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    store_close(store);
    size_t len;
    char *bytes = file_read(journal, &len);
    size_t last = len - 1;
    while (bytes[last - 1] != '\n')
        last--;
    for (size_t i = last; i < len; i++) {
        const char flips[] = {1, 0x20, (char)(bytes[i] ^ '\n')};
        for (size_t j = 0; j < sizeof flips && flips[j] != 0; j++) {
            uint64_t seq;
            bytes[i] = (char)(bytes[i] ^ flips[j]);
            file_write(journal, bytes, len);
            store = store_open(path);
            ck_status(ANNAL_ERR_CORRUPT,
                      append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
            store_close(store);
            size_t after;
            char *kept = file_read(journal, &after);
            ck_assert(after == len && memcmp(kept, bytes, len) == 0);
            free(kept);
            bytes[i] = (char)(bytes[i] ^ flips[j]);
        }
    }
    free(bytes);
}
END_TEST

/* H23: an editor puts a new file in the place of the journal. */
START_TEST(a_journal_that_was_replaced_is_not_written)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    uint64_t seq;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(store, err));
    size_t len;
    char *bytes = file_read(journal, &len);
    ck_assert_int_eq(rename(journal, tmpdir_path(&dir, "aside")), 0);
    file_write(journal, bytes, len);
    free(bytes);
    ck_status(ANNAL_ERR_UNKNOWN, append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC); /* other sessions are not affected */
    /* The file id is the same: it was a copy, and the log completes it. */
    append_numbers(store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(store, "s", 4);
    store_close(store);
}
END_TEST

START_TEST(a_journal_that_vanished_or_appeared_is_not_written)
{
    const char *path = tmpdir_path(&dir, "store");
    const char *journal = tmpdir_path(&dir, "store/events/s.jsonl");
    annal_store *store = store_open(path);
    uint64_t seq;
    append_numbers(store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    store->sessions.descriptors_max = 1; /* the journal of s is closed to make room */
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC);
    ck_assert_int_eq(rename(journal, tmpdir_path(&dir, "aside")), 0);
    ck_status(ANNAL_ERR_UNKNOWN, append_number(store, "s", 3, 40, ANNAL_LEVEL_SYNC, &seq, err));
    ck_assert_int_eq(rename(tmpdir_path(&dir, "aside"), journal), 0);
    (void)annal_store_close(store, NULL);
    store = store_open(path);
    ck_numbers(store, "s", 3);
    /* A user puts another file where a journal is about to be created. */
    ck_ok(append_number(store, "u", 1, 40, ANNAL_LEVEL_BATCH, &seq, err));
    file_write(tmpdir_path(&dir, "store/events/u.jsonl"), "something else\n", 15);
    ck_assert_int_lt(annal_store_sync(store, NULL), 0);
    (void)annal_store_close(store, NULL);
    size_t len;
    ck_text(file_read(tmpdir_path(&dir, "store/events/u.jsonl"), &len), "something else\n");
}
END_TEST

/* A name that cannot be checked does not count as replaced: the answer is certain, and the store
 * continues. */
START_TEST(a_failed_look_at_a_name_leaves_no_answer_unknown)
{
    bool failed = true;
    unsigned looked = 0;
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        uint64_t seq = 0;
        failing_io_init(&disk);
        const struct seams seams = {&disk.io, &annal__system_clock, NULL};
        annal_store *store = store_open_seams(tmpdir_path(&dir, "store"), &seams);
        append_numbers(store, "s", 1, 1, ANNAL_LEVEL_SYNC);
        disk.by_table = true;
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status = append_number(store, "s", 2, 40, ANNAL_LEVEL_SYNC, &seq, NULL);
        failed = disk.calls >= at;
        if (strncmp(disk.failed, "identify", 8) == 0) {
            looked++;
            ck_assert_int_ne(status, ANNAL_ERR_UNKNOWN);
            uint64_t last = status == ANNAL_OK ? 3 : 2;
            ck_ok(append_number(store, "s", last, 40, ANNAL_LEVEL_SYNC, &seq, err));
            ck_numbers(store, "s", last);
        }
        (void)annal_store_close(store, NULL);
        tmpdir_renew();
    }
    ck_assert_uint_eq(looked, 2); /* the log's, the journal's */
}
END_TEST

START_TEST(a_failed_look_at_an_empty_journal_is_not_taken_for_another_file)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        uint64_t seq = 0;
        failing_io_init(&disk);
        const struct seams seams = {&disk.io, &annal__system_clock, NULL};
        annal_store *store = store_open_seams(tmpdir_path(&dir, "store"), &seams);
        ck_ok(append_number(store, "u", 1, 40, ANNAL_LEVEL_BATCH, &seq, err));
        file_write(tmpdir_path(&dir, "store/events/u.jsonl"), "", 0);
        disk.only = "fstat";
        disk.with_errno = EIO;
        disk.calls = 0;
        disk.fail_at = at;
        annal_status status = annal_store_sync(store, NULL);
        failed = disk.calls >= at;
        disk.fail_at = 0;
        ck_assert_int_ne(status, ANNAL_ERR_UNKNOWN);
        ck_ok(annal_store_checkpoint(store, err)); /* what did not reach the journal does so now */
        ck_ok(append_number(store, "u", 2, 40, ANNAL_LEVEL_SYNC, &seq, err));
        ck_numbers(store, "u", 2);
        store_close(store);
        tmpdir_renew();
    }
}
END_TEST

START_TEST(a_fifo_in_the_place_of_a_journal_is_refused_without_waiting)
{
    annal_store *store = store_open(tmpdir_path(&dir, "store"));
    uint64_t seq;
    ck_assert_int_eq(mkfifo(tmpdir_path(&dir, "store/events/s.jsonl"), 0600), 0);
    ck_status(ANNAL_ERR_INVALID, append_number(store, "s", 1, 40, ANNAL_LEVEL_SYNC, &seq, err));
    store_close(store);
}
END_TEST

/* ---- Files that stand where a journal would ---- */

static void ck_append(const char *path, const char *session, annal_status expected,
                      const char *reason)
{
    annal_store *store = store_open(path);
    annal_error err = {0};
    uint64_t seq;
    annal_status status = append_number(store, session, 9, 40, ANNAL_LEVEL_SYNC, &seq, &err);
    ck_assert_msg(status == expected, "%s: %s", annal_status_name(status), err.message);
    ck_assert_msg(strstr(err.message, reason) != NULL, "%s", err.message);
    store_close(store);
}

START_TEST(a_file_that_is_not_the_journal_of_the_session_refuses_events_and_says_why)
{
    size_t len;
    struct frame_header header = {.session = ANNAL_SLICE("n"), .created_us = 1};
    struct buf newer = {0};
    uint64_t h;
    const char *path = tmpdir_path(&dir, "store");
    annal_store *store = store_open(path);
    append_numbers(store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    store_close(store);
    char *bytes = file_read(tmpdir_path(&dir, "store/events/s.jsonl"), &len);
    /* Copied to another name. */
    file_write(tmpdir_path(&dir, "store/events/copy.jsonl"), bytes, len);
    ck_append(path, "copy", ANNAL_ERR_CORRUPT, "copy");
    /* Its header damaged, its events sound. */
    bytes[20] ^= 1;
    file_write(tmpdir_path(&dir, "store/events/s.jsonl"), bytes, len);
    ck_append(path, "s", ANNAL_ERR_CORRUPT, "damaged at byte 0");
    bytes[20] ^= 1;
    /* Less than a header: nothing was acknowledged, it is kept aside and the session begins. */
    file_write(tmpdir_path(&dir, "store/events/torn.jsonl"), bytes, 30);
    ck_append(path, "torn", ANNAL_OK, "");
    ck_assert_int_eq(access(tmpdir_path(&dir, "store/events/.torn"), F_OK), 0);
    /* Of a newer version, which may mean other things by it. */
    const struct codec *codec = &annal__codec_msgpack;
    ck_assert_int_eq(codec->encode_header(&newer, &header, &h), ANNAL_OK);
    newer.ptr[12] = 2;
    h = codec->hash(annal__buf_slice(&newer), 0, 0);
    for (size_t i = 1; i <= 8; i++, h >>= 8)
        newer.ptr[newer.len - i] = (char)h;
    file_write(tmpdir_path(&dir, "store/events/n.mpk"), newer.ptr, newer.len);
    ck_append(path, "n", ANNAL_ERR_UNSUPPORTED, "has format version 2");
    annal__buf_done(&newer);
    free(bytes);
}
END_TEST

static annal_store *open_in_boot(const uint8_t boot[16])
{
    const struct seams seams = {&annal__system_io, &annal__system_clock, boot};
    return store_open_seams(tmpdir_path(&dir, "store"), &seams);
}

/* The number of syncs of one append to session s, without those for opening and closing. */
static uint64_t append_and_close(annal_store *store, uint64_t number)
{
    uint64_t before = atomic_load(&store->metrics.own.counters[METRIC_SYNCS]);
    append_numbers(store, "s", number, number, ANNAL_LEVEL_SYNC);
    uint64_t after = atomic_load(&store->metrics.own.counters[METRIC_SYNCS]);
    store_close(store);
    return after - before;
}

static uint64_t append_and_count_syncs(const uint8_t boot[16], uint64_t number)
{
    return append_and_close(open_in_boot(boot), number);
}

/* held_list.h, rule (8). */
START_TEST(a_journal_unchanged_since_its_release_is_not_synced_when_it_is_acquired)
{
    static const uint8_t boot[16] = "a boot", next_boot[16] = "the next boot";
    size_t len;
    const char *path = tmpdir_path(&dir, "store/events/s.jsonl");
    append_and_count_syncs(boot, 1);
    ck_assert_uint_eq(append_and_count_syncs(boot, 2), 1); /* the log's */
    ck_assert_uint_eq(append_and_count_syncs(next_boot, 3), 2);
    ck_assert_uint_eq(append_and_count_syncs(next_boot, 4), 1);
    /* The same bytes, written again into the same file: they may be lost. */
    char *bytes = file_read(path, &len);
    file_write(path, bytes, len);
    ck_assert_uint_eq(append_and_count_syncs(next_boot, 5), 2);
    ck_assert_uint_eq(append_and_count_syncs(next_boot, 6), 1);
    /* Another file that was moved into its place. */
    free(bytes);
    bytes = file_read(path, &len);
    file_write(tmpdir_path(&dir, "copy"), bytes, len);
    ck_assert_int_eq(rename(tmpdir_path(&dir, "copy"), path), 0);
    ck_assert_uint_eq(append_and_count_syncs(next_boot, 7), 2);
    free(bytes);
}
END_TEST

/* The first process of a boot removes the held list with its notes, unless locks/claim is taken. */
START_TEST(a_note_of_an_earlier_boot_does_not_replace_a_sync)
{
    static const uint8_t boot[16] = "a boot", next_boot[16] = "the next boot";
    append_and_count_syncs(boot, 1);
    int claim = open(tmpdir_path(&dir, "store/locks/claim"), O_RDWR);
    ck_assert_int_eq(flock(claim, LOCK_EX), 0);
    struct stat list, later;
    ck_assert_int_eq(stat(tmpdir_path(&dir, "store/locks/00.held"), &list), 0);
    annal_store *store = open_in_boot(next_boot);
    close(claim);
    append_numbers(store, "t", 1, 1, ANNAL_LEVEL_SYNC); /* it also overwrites the log, as asked */
    ck_assert_uint_eq(append_and_close(store, 2), 2);
    ck_assert_int_eq(stat(tmpdir_path(&dir, "store/locks/00.held"), &later), 0);
    ck_assert_uint_eq(later.st_ino, list.st_ino);
}
END_TEST

Suite *suite_session(void)
{
    Suite *suite = suite_create("session");
    TCase *tails = suite_case(suite, "tails", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(tails, the_next_owner_cuts_a_torn_tail_and_keeps_its_bytes);
    tcase_add_test(tails, a_damaged_end_can_be_read_and_refuses_appends);
    tcase_add_test(tails, a_damaged_last_event_is_never_replaced_by_another);
    tcase_add_test(tails, a_journal_that_was_replaced_is_not_written);
    tcase_add_test(tails, a_journal_that_vanished_or_appeared_is_not_written);
    tcase_add_test(tails, a_failed_look_at_a_name_leaves_no_answer_unknown);
    tcase_add_test(tails, a_failed_look_at_an_empty_journal_is_not_taken_for_another_file);
    tcase_add_test(tails, a_fifo_in_the_place_of_a_journal_is_refused_without_waiting);
    tcase_add_test(tails,
                   a_file_that_is_not_the_journal_of_the_session_refuses_events_and_says_why);
    tcase_add_test(tails, a_journal_unchanged_since_its_release_is_not_synced_when_it_is_acquired);
    tcase_add_test(tails, a_note_of_an_earlier_boot_does_not_replace_a_sync);
    TCase *sharing = suite_case(suite, "sharing", tmpdir_setup, tmpdir_teardown);
    tcase_add_test(sharing, many_threads_of_two_stores_share_sessions_with_few_descriptors);
    tcase_add_test(sharing, a_store_with_a_failed_directory_sync_releases_nothing_before_redo);
    tcase_add_test(sharing, a_process_may_write_more_sessions_than_it_can_own_at_a_time);
    return suite;
}
