/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Level os and the marks in the log. To simulate a power cut, a test abandons the store, changes
 * the bytes of the journal after the last synced byte, and opens the store in another boot.
 */
#include "journal/session_own.h"
#include "tests/support/failing_io.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"
#include "tests/support/tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture {
    struct tmpdir dir;
    const char *path;
    const char *journal; /* of session "s" */
    annal_store *store;
} f;

/* Its journals are of this format. */
static void setup_format(annal_format format)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = 2000, .format = format};
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    f.journal = tmpdir_path(&f.dir, format == ANNAL_FORMAT_MSGPACK ? "store/events/s.mpk"
                                                                   : "store/events/s.jsonl");
    ck_ok(annal_store_open(f.path, &options, &f.store, err));
}

static void setup(void)
{
    setup_format(ANNAL_FORMAT_JSON);
}

static void teardown(void)
{
    store_close(f.store);
    tmpdir_done(&f.dir);
}

static void renew(void)
{
    teardown();
    setup();
}

static annal_store *open_in_another_boot(const char *path, const struct io *io)
{
    static const uint8_t boot[16] = "another boot";
    const struct seams seams = {io, &annal__system_clock, boot};
    return store_open_seams(path, &seams);
}

static void reopen_after_power_cut(void)
{
    f.store = open_in_another_boot(f.path, &annal__system_io);
}

static size_t size_of(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return (size_t)info.st_size;
}

static void flip(const char *path, size_t at)
{
    size_t len;
    char *bytes = file_read(path, &len);
    ck_assert_uint_lt(at, len);
    bytes[at] = (char)(bytes[at] ^ 4);
    file_write(path, bytes, len);
    free(bytes);
}

static uint64_t stats_syncs(annal_store *store)
{
    annal_metrics stats;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
    return stats.syncs;
}

static uint64_t stats_torn(annal_store *store)
{
    annal_metrics stats;
    annal_store_metrics_get(store, ANNAL_METRICS_OF_OBJECT, &stats);
    return stats.torn_bytes;
}

static size_t findings(annal_store *store)
{
    annal_verify_result result;
    annal_error err = {0};
    annal_status status =
        annal_session_verify(store, annal_slice_of("s"), NULL, NULL, &result, &err);
    ck_assert_msg(status >= 0, "%s", err.message);
    return (size_t)result.findings;
}

/* ---- Bytes after the durable end that a power cut may leave ---- */

enum harm { HARM_NONE, HARM_CUT, HARM_ZEROS, HARM_HOLE, HARM_PIECE, HARM_BIT, HARM_COUNT };

/* Do it to bytes [from, end), part of parts of the way in. */
static void harm(const char *path, size_t from, enum harm what, int part, int parts)
{
    size_t len;
    char *bytes = file_read(path, &len);
    size_t at = from + (len - from) * (size_t)part / (size_t)parts;
    size_t width = (len - from) / 4 + 1;
    size_t to = at + width < len ? at + width : len;
    switch (what) {
    case HARM_CUT: /* the file did not become longer */
        len = at;
        break;
    case HARM_ZEROS: /* it did, and nothing from here on was written */
        memset(bytes + at, 0, len - at);
        break;
    case HARM_HOLE: /* later bytes were written */
        memset(bytes + at, 0, to - at);
        break;
    case HARM_PIECE: /* something else */
        memset(bytes + at, '\n', to - at);
        break;
    case HARM_BIT:
        if (at < len)
            bytes[at] = (char)(bytes[at] ^ 1);
        break;
    case HARM_NONE:
    case HARM_COUNT:
        break;
    }
    file_write(path, bytes, len);
    free(bytes);
}

/* The session has a prefix of numbers 1 to last, at least to durable; and takes events. Returns its
 * end. */
static uint64_t check_prefix(uint64_t durable, uint64_t last)
{
    uint64_t end = read_session(f.store, "s", NULL, NULL);
    ck_assert_uint_ge(end, durable);
    ck_assert_uint_le(end, last);
    ck_numbers(f.store, "s", end);
    append_numbers(f.store, "s", end + 1, end + 1, ANNAL_LEVEL_OS);
    append_numbers(f.store, "s", end + 2, end + 3, ANNAL_LEVEL_SYNC);
    ck_numbers(f.store, "s", end + 3);
    ck_assert_uint_eq(findings(f.store), 0);
    return end;
}

#define PARTS 4

START_TEST(a_session_frees_the_memory_of_synced_events)
{
    struct tmpdir own;
    uint64_t seq = 0;
    tmpdir_init(&own);
    annal_store *big = store_open(tmpdir_path(&own, "big"));
    ck_ok(append_number(big, "s", 1, 500000, ANNAL_LEVEL_OS, &seq, err));
    const struct session *session = annal__session_get(&big->sessions, ANNAL_SLICE("s"), NULL);
    ck_assert_uint_ge(session->loose.len, 500000);
    ck_ok(annal_store_sync(big, err));
    ck_assert_uint_le(session->loose.cap, 4096);
    store_close(big);
    tmpdir_done(&own);
}
END_TEST

START_TEST(a_power_cut_leaves_a_prefix_of_the_events_of_level_os)
{
    for (int what = 0; what < HARM_COUNT; what++) {
        for (int part = 0; part < PARTS; part++) {
            teardown();
            setup_format(_i == 0 ? ANNAL_FORMAT_JSON : ANNAL_FORMAT_MSGPACK);
            append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_SYNC);
            size_t durable = size_of(f.journal);
            append_numbers(f.store, "s", 4, 9, ANNAL_LEVEL_OS);
            store_abandon(f.store);
            harm(f.journal, durable, (enum harm)what, part, PARTS);
            reopen_after_power_cut();
            uint64_t end = check_prefix(3, 9);
            ck_assert(what != HARM_NONE || end == 9);
            ck_assert(what != HARM_ZEROS || part != 0 || end == 3);
            ck_assert(stats_torn(f.store) > 0 || what == HARM_NONE || what == HARM_CUT);
        }
    }
}
END_TEST

START_TEST(a_power_cut_leaves_a_prefix_of_a_session_that_began_at_level_os)
{
    for (int what = 0; what < HARM_COUNT; what++) {
        for (int part = 0; part < PARTS; part++) {
            append_numbers(f.store, "s", 1, 6, ANNAL_LEVEL_OS);
            store_abandon(f.store);
            harm(f.journal, 0, (enum harm)what, part, PARTS);
            reopen_after_power_cut();
            check_prefix(0, 6);
            renew();
        }
    }
}
END_TEST

START_TEST(a_journal_whose_name_was_lost_starts_empty)
{
    append_numbers(f.store, "s", 1, 6, ANNAL_LEVEL_OS);
    store_abandon(f.store);
    ck_assert_int_eq(unlink(f.journal), 0);
    reopen_after_power_cut();
    ck_assert_uint_eq(check_prefix(0, 6), 0);
}
END_TEST

START_TEST(recovery_keeps_the_cut_bytes_in_a_file)
{
    append_numbers(f.store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    size_t durable = size_of(f.journal);
    append_numbers(f.store, "s", 3, 8, ANNAL_LEVEL_OS);
    store_abandon(f.store);
    harm(f.journal, durable, HARM_HOLE, 0, PARTS);
    size_t len, kept_len = 0;
    char *bytes = file_read(f.journal, &len), *kept = NULL;
    reopen_after_power_cut();
    DIR *entries = opendir(tmpdir_path(&f.dir, "store/events/.torn"));
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[600];
        if (entry->d_name[0] == '.')
            continue;
        ck_assert_ptr_null(kept);
        snprintf(path, sizeof path, "%s/events/.torn/%s", f.path, entry->d_name);
        kept = file_read(path, &kept_len);
    }
    closedir(entries);
    ck_assert_uint_eq(kept_len, len - durable);
    ck_assert_int_eq(memcmp(kept, bytes + durable, kept_len), 0);
    ck_assert_uint_eq(size_of(f.journal), durable);
    ck_assert_uint_eq(stats_torn(f.store), kept_len);
    free(bytes);
    free(kept);
}
END_TEST

/* The process was killed inside pwrite(2): the kernel lost nothing. */
START_TEST(recovery_cuts_the_unfinished_line_of_a_killed_process_in_the_same_boot)
{
    append_numbers(f.store, "s", 1, 2, ANNAL_LEVEL_SYNC);
    append_numbers(f.store, "s", 3, 8, ANNAL_LEVEL_OS);
    store_abandon(f.store);
    ck_assert_int_eq(truncate(f.journal, (off_t)size_of(f.journal) - 30), 0);
    f.store = store_open(f.path);
    ck_numbers(f.store, "s", 7);
    ck_assert_uint_eq(check_prefix(7, 7), 7);
    ck_assert_uint_gt(stats_torn(f.store), 0);
}
END_TEST

START_TEST(an_interrupted_recovery_of_a_loose_tail_is_repeated)
{
    bool failed = true;
    for (unsigned at = 1; failed; at++) {
        struct failing_io disk;
        append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_SYNC);
        size_t durable = size_of(f.journal);
        append_numbers(f.store, "s", 4, 9, ANNAL_LEVEL_OS);
        store_abandon(f.store);
        harm(f.journal, durable, HARM_HOLE, 2, PARTS);
        failing_io_init(&disk);
        disk.fail_at = at;
        disk.for_good = true;
        disk.with_errno = EIO;
        static const uint8_t boot[16] = "another boot";
        const struct seams broken = {&disk.io, &annal__system_clock, boot};
        const annal_store_options options = {.no_keeper = true};
        annal_status status = annal__store_open(f.path, &options, &broken, &f.store, NULL);
        failed = disk.calls >= at;
        if (status == ANNAL_OK)
            (void)annal_store_close(f.store, NULL);
        reopen_after_power_cut();
        uint64_t end = check_prefix(3, 9);
        ck_assert_uint_lt(end, 9);
        renew();
    }
}
END_TEST

/* ---- Damage, and what was acknowledged ---- */

START_TEST(damage_before_the_mark_is_not_cut)
{
    append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(f.store, err)); /* the log cannot mend it */
    size_t durable = size_of(f.journal);
    append_numbers(f.store, "s", 4, 9, ANNAL_LEVEL_OS);
    store_abandon(f.store);
    flip(f.journal, durable - 100); /* event 3 */
    size_t whole = size_of(f.journal);
    reopen_after_power_cut();
    ck_assert_uint_eq(size_of(f.journal), whole);
    ck_assert_uint_eq(findings(f.store), 1);
}
END_TEST

/* 300 KB are synced in the journal, 3 KB go through the log, which mends what rots. */
START_TEST(events_acknowledged_by_annal_sync_are_never_cut_as_a_loose_tail)
{
    for (int large = 0; large < 2; large++) {
        uint64_t seq;
        for (uint64_t number = 1; number <= 6; number++)
            ck_ok(append_number(f.store, "s", number, large ? 60000 : 600, ANNAL_LEVEL_OS, &seq,
                                err));
        ck_ok(annal_store_sync(f.store, err));
        size_t acknowledged = size_of(f.journal);
        append_numbers(f.store, "s", 7, 9, ANNAL_LEVEL_OS);
        store_abandon(f.store);
        flip(f.journal, acknowledged - 400); /* event 6 */
        harm(f.journal, acknowledged, HARM_HOLE, 1, PARTS);
        reopen_after_power_cut();
        ck_assert_uint_ge(size_of(f.journal), acknowledged);
        if (large)
            ck_assert_uint_eq(findings(f.store), 1);
        else
            check_prefix(6, 9);
        renew();
    }
}
END_TEST

/* More than 1 MiB was synced in the meantime, without an acknowledgement. */
START_TEST(synced_events_without_an_acknowledgement_survive_as_a_prefix)
{
    uint64_t seq;
    for (uint64_t number = 1; number <= 40; number++)
        ck_ok(append_number(f.store, "s", number, 60000, ANNAL_LEVEL_OS, &seq, err));
    store_abandon(f.store);
    harm(f.journal, 1200000, HARM_HOLE, 2, PARTS);
    reopen_after_power_cut();
    check_prefix(18, 39);
}
END_TEST

/* Another process continued the session; the log of the first process still has its mark. */
START_TEST(a_released_session_is_not_cut_by_an_old_mark)
{
    append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_OS);
    append_numbers(f.store, "other", 1, 3, ANNAL_LEVEL_SYNC);
    struct session *session = annal__session_get(&f.store->sessions, annal_slice_of("s"), NULL);
    pthread_mutex_lock(&session->lock);
    ck_ok(annal__session_release(f.store, session, err));
    pthread_mutex_unlock(&session->lock);
    annal_store *second = store_open(f.path);
    append_numbers(second, "s", 4, 6, ANNAL_LEVEL_SYNC);
    store_close(second);
    size_t acknowledged = size_of(f.journal);
    store_abandon(f.store);
    flip(f.journal, acknowledged - 100); /* event 6 */
    reopen_after_power_cut();
    ck_assert_uint_eq(size_of(f.journal), acknowledged);
    ck_assert_uint_eq(findings(f.store), 1);
}
END_TEST

/* ---- Where marks begin and end ---- */

START_TEST(a_mark_costs_one_sync_and_a_checkpoint_removes_it)
{
    teardown();
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    f.journal = tmpdir_path(&f.dir, "store/events/s.jsonl");
    const annal_store_options small_log = {
        .create = true, .no_keeper = true, .region_bytes = LOG_REGION_FIRST}; /* does not grow */
    ck_ok(annal_store_open(f.path, &small_log, &f.store, err));
    append_numbers(f.store, "s", 1, 1, ANNAL_LEVEL_SYNC);
    for (int round = 0; round < 2; round++) {
        uint64_t number = 2 + 10 * (uint64_t)round;
        uint64_t before = stats_syncs(f.store);
        append_numbers(f.store, "s", number, number + 9, ANNAL_LEVEL_OS);
        ck_assert_uint_eq(stats_syncs(f.store), before + 1);
        ck_ok(annal_store_checkpoint(f.store, err));
    }
    /* Events of level sync between them carry the mark on. */
    append_numbers(f.store, "s", 22, 22, ANNAL_LEVEL_OS);
    uint64_t before = stats_syncs(f.store);
    append_numbers(f.store, "s", 23, 23, ANNAL_LEVEL_SYNC);
    size_t durable = size_of(f.journal);
    append_numbers(f.store, "s", 24, 29, ANNAL_LEVEL_OS);
    ck_assert_uint_eq(stats_syncs(f.store), before + 1);
    store_abandon(f.store);
    harm(f.journal, durable, HARM_ZEROS, 2, PARTS);
    reopen_after_power_cut();
    check_prefix(23, 28);
}
END_TEST

/* A checkpoint of the keeper releases the region that it emptied; later events have a later
 * mark. */
START_TEST(events_after_a_checkpoint_have_an_unreleased_mark)
{
    uint64_t seq;
    append_numbers(f.store, "s", 1, 2, ANNAL_LEVEL_OS);
    ck_ok(annal_store_checkpoint(f.store, err));
    size_t durable = size_of(f.journal);
    append_numbers(f.store, "s", 3, 8, ANNAL_LEVEL_OS);
    /* These fill regions, whose checkpoints remove the mark and sync the marked bytes. */
    for (uint64_t number = 1; number <= 60; number++) {
        ck_ok(append_number(f.store, "other", number, 100000, ANNAL_LEVEL_SYNC, &seq, err));
        if (number % 10 == 0) {
            durable = size_of(f.journal);
            uint64_t last = 8 + number / 10;
            append_numbers(f.store, "s", last, last, ANNAL_LEVEL_OS);
        }
    }
    uint64_t last = read_session(f.store, "s", NULL, NULL);
    store_abandon(f.store);
    harm(f.journal, durable, HARM_ZEROS, 1, 2);
    reopen_after_power_cut();
    check_prefix(last - 1, last - 1);
}
END_TEST

#define MANY 100

START_TEST(annal_sync_of_many_sessions_shares_one_sync)
{
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "s%d", i);
        append_numbers(f.store, name, 1, 10, ANNAL_LEVEL_OS);
    }
    uint64_t before = stats_syncs(f.store);
    ck_ok(annal_store_sync(f.store, err));
    ck_assert_uint_eq(stats_syncs(f.store), before + 1);
    ck_ok(annal_store_sync(f.store, err)); /* there is nothing left to say */
    ck_assert_uint_eq(stats_syncs(f.store), before + 1);
    store_abandon(f.store);
    for (int i = 0; i < MANY; i++) {
        char journal[512];
        snprintf(journal, sizeof journal, "%s/events/s%d.jsonl", f.path, i);
        ck_assert_int_eq(i % 2 == 0 ? unlink(journal) : truncate(journal, 300), 0);
    }
    reopen_after_power_cut();
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "s%d", i);
        ck_numbers(f.store, name, 10);
    }
}
END_TEST

START_TEST(many_bytes_of_level_os_are_written_once)
{
    uint64_t seq;
    annal_metrics before, after;
    append_numbers(f.store, "s", 1, 1, ANNAL_LEVEL_OS);
    annal_store_metrics_get(f.store, ANNAL_METRICS_OF_OBJECT, &before);
    for (uint64_t number = 2; number <= 60; number++)
        ck_ok(append_number(f.store, "s", number, 60000, ANNAL_LEVEL_OS, &seq, err));
    ck_ok(annal_store_sync(f.store, err));
    annal_store_metrics_get(f.store, ANNAL_METRICS_OF_OBJECT, &after);
    uint64_t payload = after.payload_bytes - before.payload_bytes;
    uint64_t written =
        after.journal_bytes + after.log_bytes - before.journal_bytes - before.log_bytes;
    ck_assert_uint_lt(written, payload + payload / 100 + 2 * 4096);
    ck_numbers(f.store, "s", 60);
}
END_TEST

START_TEST(no_event_of_level_os_is_written_before_its_mark)
{
    struct failing_io disk;
    uint64_t seq;
    teardown();
    tmpdir_init(&f.dir);
    f.path = tmpdir_path(&f.dir, "store");
    f.journal = tmpdir_path(&f.dir, "store/events/s.jsonl");
    failing_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    f.store = store_open_seams(f.path, &seams);
    append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_SYNC);
    size_t size = size_of(f.journal);
    disk.fail_at = disk.calls + 1;
    disk.for_good = true;
    annal_status status = append_number(f.store, "s", 4, 40, ANNAL_LEVEL_OS, &seq, NULL);
    ck_assert_int_lt(status, 0);
    ck_assert_int_ne(status, ANNAL_ERR_UNKNOWN);
    ck_assert_uint_eq(size_of(f.journal), size);
    disk.fail_at = 0;
    store_abandon(f.store);
    f.store = store_open(f.path);
    ck_numbers(f.store, "s", 3);
}
END_TEST

/* The log would carry the bytes of a refused append to the journal, or write the next at a wrong
 * offset. */
START_TEST(an_append_of_level_os_that_was_refused_leaves_no_bytes_for_the_log)
{
    static struct failing_io disk;
    uint64_t seq;
    unsigned refused = 0;
    annal_writer *writer;
    const annal_draft draft = {.type = ANNAL_SLICE("t"), .data = ANNAL_SLICE("1")};
    failing_io_init(&disk);
    const struct seams seams = {&disk.io, &annal__system_clock, NULL};
    store_close(f.store);
    f.store = store_open_seams(f.path, &seams);
    append_numbers(f.store, "s", 1, 1, ANNAL_LEVEL_OS);
    do
        disk.fail_at = disk.calls + ++refused;
    while (append_number(f.store, "s", 2, 40, ANNAL_LEVEL_OS, &seq, NULL) < 0);
    disk.fail_at = 0;
    ck_assert_uint_gt(refused, 1); /* at least the write failed once */
    ck_ok(annal_writer_open(f.store, ANNAL_SLICE("s"), NULL, &writer, err));
    ck_assert_int_eq(annal_writer_append(writer, &draft, 1,
                                         &(annal_append_options){.level = ANNAL_LEVEL_OS, .h = 1},
                                         &seq, NULL),
                     ANNAL_ERR_REFUSED);
    annal_writer_close(writer);
    append_numbers(f.store, "s", 3, 3, ANNAL_LEVEL_OS);
    append_numbers(f.store, "s", 4, 4, ANNAL_LEVEL_SYNC);
    ck_numbers(f.store, "s", 4);
    store_abandon(f.store);
    ck_assert_int_eq(truncate(f.journal, 0), 0);
    reopen_after_power_cut();
    ck_assert_uint_eq(check_prefix(4, 4), 4);
}
END_TEST

#define THREADS      4
#define THREAD_STEPS 60

struct crowd {
    annal_store *store;
    _Atomic int first; /* number of the next thread */
    _Atomic bool stop;
};

static void *append_in_a_crowd(void *arg)
{
    struct crowd *crowd = arg;
    char name[16];
    uint64_t seq;
    int number = atomic_fetch_add(&crowd->first, 1);
    for (int i = 0; i < THREAD_STEPS; i++) {
        annal_level level = i % 11 == number ? ANNAL_LEVEL_SYNC : ANNAL_LEVEL_OS;
        snprintf(name, sizeof name, "s%d", (number + i) % 3);
        ck_ok(append_number(crowd->store, name, 1, i % 7 == 0 ? 30000 : 50, level, &seq, err));
        if (i % 20 == 19)
            ck_ok(annal_store_sync(crowd->store, err));
    }
    return NULL;
}

static void *checkpoint_in_a_crowd(void *arg)
{
    struct crowd *crowd = arg;
    while (!atomic_load(&crowd->stop))
        ck_ok(annal_store_checkpoint(crowd->store, err));
    return NULL;
}

START_TEST(threads_append_sync_and_checkpoint_at_once_and_nothing_is_lost)
{
    pthread_t threads[THREADS], other;
    struct crowd crowd = {.store = f.store};
    ck_assert_int_eq(pthread_create(&other, NULL, checkpoint_in_a_crowd, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, append_in_a_crowd, &crowd), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&crowd.stop, true);
    pthread_join(other, NULL);
    append_numbers(f.store, "s0", 1, 1, ANNAL_LEVEL_OS);
    store_abandon(f.store);
    reopen_after_power_cut();
    uint64_t events = 0;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        events += read_session(f.store, name, NULL, NULL);
    }
    ck_assert_uint_eq(events, THREADS * THREAD_STEPS + 1);
}
END_TEST

/* ---- Scenarios ---- */

/* The record of 11 carries 1 to 10, however little of the journal is left. */
START_TEST(events_of_level_os_survive_a_power_cut_after_an_event_of_level_sync)
{
    for (int what = 0; what < HARM_COUNT; what++) {
        for (int part = 0; part < PARTS; part++) {
            append_numbers(f.store, "s", 1, 10, ANNAL_LEVEL_OS);
            append_numbers(f.store, "s", 11, 11, ANNAL_LEVEL_SYNC);
            store_abandon(f.store);
            harm(f.journal, 0, (enum harm)what, part, PARTS);
            reopen_after_power_cut();
            ck_assert_uint_eq(check_prefix(11, 11), 11);
            renew();
        }
    }
}
END_TEST

/* Above 1 MiB the journal is synced instead, and the record begins where that ended. */
START_TEST(many_events_of_level_os_survive_a_power_cut_after_an_event_of_level_sync)
{
    uint64_t seq;
    for (uint64_t number = 1; number <= 20; number++)
        ck_ok(append_number(f.store, "s", number, 60000, ANNAL_LEVEL_OS, &seq, err));
    append_numbers(f.store, "s", 21, 21, ANNAL_LEVEL_SYNC);
    store_abandon(f.store);
    harm(f.journal, 1100000, HARM_ZEROS, 0, PARTS); /* the sync was at event 18 */
    reopen_after_power_cut();
    ck_assert_uint_eq(check_prefix(21, 21), 21);
}
END_TEST

START_TEST(events_of_level_os_after_a_pending_group_leave_no_hole)
{
    for (int cut = 0; cut < 2; cut++) {
        append_numbers(f.store, "s", 1, 3, ANNAL_LEVEL_OS);
        append_numbers(f.store, "s", 4, 5, ANNAL_LEVEL_BATCH);
        append_numbers(f.store, "s", 6, 6,
                       ANNAL_LEVEL_OS); /* after bytes that are in no journal yet */
        ck_numbers(f.store, "s", 6);
        store_abandon(f.store);
        if (cut)
            ck_assert_int_eq(truncate(f.journal, 0), 0);
        reopen_after_power_cut();
        ck_assert_uint_eq(check_prefix(6, 6), 6);
        renew();
    }
}
END_TEST

Suite *suite_level_os(void)
{
    Suite *suite = suite_create("level_os");
    TCase *power = suite_case(suite, "power", setup, teardown);
    tcase_add_loop_test(power, a_power_cut_leaves_a_prefix_of_the_events_of_level_os, 0, 2);
    tcase_add_test(power, a_session_frees_the_memory_of_synced_events);
    tcase_add_test(power, a_power_cut_leaves_a_prefix_of_a_session_that_began_at_level_os);
    tcase_add_test(power, a_journal_whose_name_was_lost_starts_empty);
    tcase_add_test(power, recovery_keeps_the_cut_bytes_in_a_file);
    tcase_add_test(power, recovery_cuts_the_unfinished_line_of_a_killed_process_in_the_same_boot);
    tcase_add_test(power, an_interrupted_recovery_of_a_loose_tail_is_repeated);
    tcase_add_test(power, damage_before_the_mark_is_not_cut);
    tcase_add_test(power, events_acknowledged_by_annal_sync_are_never_cut_as_a_loose_tail);
    tcase_add_test(power, synced_events_without_an_acknowledgement_survive_as_a_prefix);
    tcase_add_test(power, a_released_session_is_not_cut_by_an_old_mark);
    TCase *marks = suite_case(suite, "marks", setup, teardown);
    tcase_add_test(marks, a_mark_costs_one_sync_and_a_checkpoint_removes_it);
    tcase_add_test(marks, events_after_a_checkpoint_have_an_unreleased_mark);
    tcase_add_test(marks, annal_sync_of_many_sessions_shares_one_sync);
    tcase_add_test(marks, many_bytes_of_level_os_are_written_once);
    tcase_add_test(marks, threads_append_sync_and_checkpoint_at_once_and_nothing_is_lost);
    tcase_add_test(marks, no_event_of_level_os_is_written_before_its_mark);
    tcase_add_test(marks, an_append_of_level_os_that_was_refused_leaves_no_bytes_for_the_log);
    TCase *scenarios = suite_case(suite, "scenarios", setup, teardown);
    tcase_add_test(scenarios, events_of_level_os_survive_a_power_cut_after_an_event_of_level_sync);
    tcase_add_test(scenarios,
                   many_events_of_level_os_survive_a_power_cut_after_an_event_of_level_sync);
    tcase_add_test(scenarios, events_of_level_os_after_a_pending_group_leave_no_hole);
    return suite;
}
