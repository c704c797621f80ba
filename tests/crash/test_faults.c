/* SPDX-License-Identifier: Apache-2.0 */
/* Every call fails: the scenes of the journal. See faults.h. */
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/context.h"
#include "journal/sys/event_at.h"
#include "journal/sys/inspect.h"
#include "tests/crash/faults.h"
#include "tests/support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OF_THE_JOURNAL (1u << FROM_DISK | 1u << FROM_HEAP | 1u << FROM_SYSTEM)

static void sync_all(struct life *life)
{
    annal_error err = {0};
    if (life->store != NULL)
        record_answer(life, annal_store_sync(life->store, err_for(life, &err)), true);
}

static void checkpoint(struct life *life)
{
    annal_error err = {0};
    if (life->store != NULL)
        record_answer(life, annal_store_checkpoint(life->store, err_for(life, &err)), true);
}

static void keep(struct life *life)
{
    annal_error err = {0};
    if (life->store != NULL)
        record_answer(life, annal_store_keep(life->store, err_for(life, &err)), false);
}

/* The next group does not fit into the region of the log any more. */
static void fill_region(struct life *life)
{
    if (life->store == NULL || !life->store->slot.claimed)
        return;
    struct log *log = &life->store->own_log.log;
    log->end = log->regions[log->current].bytes - log->block;
}

/* ---- Writing, from an empty place on ---- */

static void live_write(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    attempt(life, "a", 3, ANNAL_LEVEL_SYNC, false);
    attempt(life, "b", 1, ANNAL_LEVEL_BATCH, false);
    attempt(life, "b", 2, ANNAL_LEVEL_BATCH, true);
    sync_all(life);
    attempt(life, "c", 1, ANNAL_LEVEL_OS, false);
    attempt(life, "c", 2, ANNAL_LEVEL_OS, false);
    attempt(life, "c", 1, ANNAL_LEVEL_SYNC, false);
    size_t named = attempt(life, "d", 1, ANNAL_LEVEL_SYNC, true);
    attempt_again(life, named, ANNAL_LEVEL_SYNC);
    attempt(life, "a", 1, ANNAL_LEVEL_BATCH, false);
    attempt(life, "c", 1, ANNAL_LEVEL_OS, true);
    close_store(life);
}

START_TEST(any_call_of_a_writer_may_fail)
{
    static const struct scene scene = {
        .name = "write", .sources = OF_THE_JOURNAL, .live = live_write};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Regions of the log that fill, checkpoints, a log that grows ---- */

static void open_and_begin(struct life *life, uint64_t region_bytes)
{
    const annal_store_options options = {.create = true, .region_bytes = region_bytes};
    ck_fault(open_store(life, &options), "the store does not open");
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    attempt(life, "b", 1, ANNAL_LEVEL_OS, false);
}

static void prepare_rotate(struct life *life)
{
    open_and_begin(life, LOG_REGION_FIRST);
}

static void live_rotate(struct life *life)
{
    life->now_us += 1000000; /* the region was not full so soon that the log would grow */
    fill_region(life);
    attempt(life, "a", 2, ANNAL_LEVEL_SYNC, false);
    keep(life);
    life->now_us += 1000000;
    fill_region(life);
    attempt(life, "c", 1, ANNAL_LEVEL_SYNC, false);
    life->now_us += 1000000;
    fill_region(life);
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false); /* the other region has no checkpoint yet */
    attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
    checkpoint(life);
    attempt(life, "c", 1, ANNAL_LEVEL_BATCH, false);
    life->now_us += 40000000;
    keep(life);
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    close_store(life);
}

static void prepare_grow(struct life *life)
{
    open_and_begin(life, 2 * LOG_REGION_FIRST);
}

static void live_grow(struct life *life)
{
    fill_region(life);
    attempt(life, "a", 2, ANNAL_LEVEL_SYNC, false);
    keep(life);
    fill_region(life);
    attempt(life, "c", 1, ANNAL_LEVEL_SYNC, false);
    keep(life);
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    close_store(life);
}

START_TEST(any_call_of_a_checkpoint_may_fail)
{
    static const struct scene scene = {.name = "rotate",
                                       .sources = OF_THE_JOURNAL,
                                       .prepare = prepare_rotate,
                                       .live = live_rotate};
    fail_everywhere(&scene);
}
END_TEST

START_TEST(any_call_may_fail_while_the_log_grows)
{
    static const struct scene scene = {
        .name = "grow", .sources = OF_THE_JOURNAL, .prepare = prepare_grow, .live = live_grow};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Taking over what a dead process left ---- */

static void path_in(const struct life *life, char out[512], const char *name)
{
    snprintf(out, 512, "%s/%s", life->path, name);
}

/* What the page cache had and the disk has not. */
static void cut_journal(const struct life *life, const char *name, off_t bytes)
{
    char path[512];
    struct stat file;
    path_in(life, path, name);
    ck_fault(stat(path, &file) == 0 && truncate(path, file.st_size - bytes) == 0, "cut %s", path);
}

static void tear(const struct life *life, const char *name)
{
    static const char piece[] = "{\"seq\":3,\"ts\":\"2026-01-01T00:";
    char path[512];
    path_in(life, path, name);
    FILE *file = fopen(path, "ab");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(piece, 1, sizeof piece - 1, file), sizeof piece - 1);
    ck_assert_int_eq(fclose(file), 0);
}

/* Simulate the death of the process: its locks are free, its list and its log are unchanged. */
static void die(struct life *life)
{
    annal_error died = {.status = ANNAL_ERR_IO, .message = "this process is dead"};
    annal__commit_fail(&life->store->commit, &died);
    (void)annal_store_close(life->store, NULL);
    life->store = NULL;
    life->stopped = false;
}

static void build_dead(struct life *life)
{
    const annal_store_options options = {.create = true};
    char path[512];
    ck_fault(open_store(life, &options), "the store does not open");
    attempt(life, "whole", 2, ANNAL_LEVEL_SYNC, false);
    attempt(life, "torn", 2, ANNAL_LEVEL_SYNC, false);
    attempt(life, "redo", 2, ANNAL_LEVEL_SYNC, true);
    close_store(life);
    tear(life, "events/torn.jsonl");
    ck_fault(open_store(life, &options), "the store does not open");
    attempt(life, "redo", 1, ANNAL_LEVEL_SYNC, true);
    attempt(life, "redo", 3, ANNAL_LEVEL_SYNC, true);
    attempt(life, "new", 2, ANNAL_LEVEL_SYNC, false);
    attempt(life, "loose", 2, ANNAL_LEVEL_OS, false);
    die(life);
    cut_journal(life, "events/redo.jsonl", 400);
    path_in(life, path, "events/new.jsonl");
    ck_fault(unlink(path) == 0, "unlink");
}

/* The copy has another inode: without this it looks as after a restore. */
static void bind_again(struct life *life)
{
    char path[512];
    struct stat log;
    struct held held = {.fd = -1};
    path_in(life, path, "commit/00.log");
    ck_fault(lstat(path, &log) == 0, "no log");
    path_in(life, path, "locks/00.held");
    ck_fault(annal__held_open(&annal__system_io, path, false, &held, NULL) == ANNAL_OK,
             "no held list");
    annal__held_bind(&held, life->seams.boot, &log);
    annal__held_close(&held);
}

static void live_take_over(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    attempt(life, "whole", 1, ANNAL_LEVEL_SYNC, false);
    attempt(life, "redo", 1, ANNAL_LEVEL_SYNC, true);
    attempt(life, "torn", 2, ANNAL_LEVEL_SYNC, false);
    attempt(life, "loose", 1, ANNAL_LEVEL_OS, false);
    attempt(life, "new", 1, ANNAL_LEVEL_BATCH, false);
    attempt_again(life, 2, ANNAL_LEVEL_SYNC); /* ids that are read from the journal */
    close_store(life);
}

START_TEST(any_call_of_a_recovery_may_fail)
{
    static const struct scene scene = {.name = "take-over",
                                       .sources = OF_THE_JOURNAL,
                                       .build = build_dead,
                                       .prepare = bind_again,
                                       .live = live_take_over};
    fail_everywhere(&scene);
}
END_TEST

START_TEST(any_call_of_a_recovery_after_a_boot_may_fail)
{
    static const struct scene scene = {
        .name = "boot", .sources = OF_THE_JOURNAL, .build = build_dead, .live = live_take_over};
    fail_everywhere(&scene);
}
END_TEST

/* The process dies while this process has the store open: the session is acquired when it is
 * needed. */
static void prepare_widow(struct life *life)
{
    const annal_store_options options = {.create = true};
    bind_again(life);
    char log[512], aside[512];
    path_in(life, log, "commit/00.log");
    path_in(life, aside, "commit/aside");
    ck_fault(rename(log, aside) == 0, "rename");
    ck_fault(open_store(life, &options), "the store does not open");
    ck_fault(rename(aside, log) == 0, "rename");
}

static void live_widow(struct life *life)
{
    attempt(life, "redo", 1, ANNAL_LEVEL_SYNC, true);
    attempt(life, "new", 1, ANNAL_LEVEL_SYNC, false);
    close_store(life);
}

START_TEST(any_call_may_fail_while_the_session_of_a_dead_process_is_acquired)
{
    static const struct scene scene = {.name = "widow",
                                       .sources = OF_THE_JOURNAL,
                                       .build = build_dead,
                                       .prepare = prepare_widow,
                                       .live = live_widow};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Reading ---- */

static void build_closed(struct life *life)
{
    const annal_store_options options = {.create = true};
    ck_fault(open_store(life, &options), "the store does not open");
    attempt(life, "a", 3, ANNAL_LEVEL_SYNC, false);
    for (int i = 0; i < 5; i++)
        attempt(life, "b", 3, ANNAL_LEVEL_SYNC, true);
    close_store(life);
}

/* A failure is a valid answer; a false end or false damage is not. */
static void read_from(struct life *life, const char *session, uint64_t from)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_error err = {0};
    uint64_t next = from;
    annal_status status =
        annal_cursor_open(life->store, annal_slice_of(session), from, &cursor, &err);
    while (status == ANNAL_OK && (status = annal_cursor_next(cursor, &event, &err)) == ANNAL_OK) {
        ck_fault(event.seq == next, "session '%s': seq %" PRIu64 " instead of %" PRIu64, session,
                 event.seq, next);
        next++;
        ck_event(life, session, &event);
    }
    ck_fault(status < 0 || next == expected_events(life, session) + 1,
             "session '%s' ends at seq %" PRIu64 " (%s)", session, next - 1,
             annal_status_name(status));
    ck_fault(
        status != ANNAL_ERR_CORRUPT && status != ANNAL_ERR_NOTFOUND && status != ANNAL_ERR_CONFLICT,
        "session '%s': a fault is called %s: %s", session, annal_status_name(status), err.message);
    annal_cursor_close(cursor);
}

static void verify(struct life *life, const char *session)
{
    annal_verify_result result;
    annal_error err = {0};
    annal_status status =
        annal_session_verify(life->store, annal_slice_of(session), NULL, NULL, &result, &err);
    ck_fault(status < 0 ||
                 (result.findings == 0 && result.last_seq == expected_events(life, session)),
             "verify session '%s': %" PRIu64 " findings, last seq %" PRIu64, session,
             result.findings, result.last_seq);
    ck_fault(status == ANNAL_OK || fault_came(life), "verify fails: %s", err.message);
}

static int count_one(void *arg, annal_slice session, uint64_t journal_bytes)
{
    (void)session;
    *(unsigned *)arg += journal_bytes > 0;
    return 0;
}

static void look(struct life *life)
{
    unsigned sessions = 0;
    annal_session_info info;
    annal_error err = {0};
    annal_event event;
    annal_status status = annal_session_each(life->store, count_one, &sessions, &err);
    ck_fault(status < 0 || sessions == 2, "%u sessions are listed", sessions);
    ck_fault(status == ANNAL_OK || fault_came(life), "the list fails: %s", err.message);
    status = annal_session_info_get(life->store, ANNAL_SLICE("b"), &info, &err);
    ck_fault(status != ANNAL_ERR_NOTFOUND, "a fault is called no session");
    if (status < 0)
        return;
    ck_fault(info.last_seq == 15 && info.end_offset == info.bytes && info.file[0] != '\0',
             "the session ends at seq %" PRIu64, info.last_seq);
    annal__event_buffer *buffer = NULL;
    annal_position there = {0};
    annal_cursor *cursor = NULL;
    if (annal_cursor_open(life->store, ANNAL_SLICE("b"), 14, &cursor, &err) == ANNAL_OK) {
        there = annal_cursor_position(cursor);
        status = annal_cursor_next(cursor, &event, &err);
        if (status == ANNAL_OK)
            status = annal__event_read_at(life->store, ANNAL_SLICE("b"), 14, there.offset,
                                          event.length, &buffer, &event, &err);
        ck_fault(status == ANNAL_OK || annal__error_is_io(status) || status == ANNAL_ERR_NOMEM,
                 "read an event: %s: %s", annal_status_name(status), err.message);
        if (status == ANNAL_OK)
            ck_event(life, "b", &event);
    }
    annal__event_buffer_free(buffer);
    annal_cursor_close(cursor);
    if (there.offset == 0)
        return;
    status = annal_cursor_open_at(life->store, ANNAL_SLICE("b"), 14, there.offset, there.h_before,
                                  &cursor, &err);
    ck_fault(status == ANNAL_OK || annal__error_is_io(status) || status == ANNAL_ERR_NOMEM,
             "open a cursor at a place: %s: %s", annal_status_name(status), err.message);
    if (status == ANNAL_OK)
        annal_cursor_close(cursor);
}

static void live_read(struct life *life)
{
    const annal_store_options options = {.read_only = true};
    if (!open_store(life, &options))
        return;
    look(life);
    read_from(life, "a", 1);
    read_from(life, "b", 1);
    read_from(life, "b", 9);
    verify(life, "b");
    close_store(life);
}

START_TEST(any_call_of_a_reader_may_fail)
{
    static const struct scene scene = {
        .name = "read", .sources = OF_THE_JOURNAL, .build = build_closed, .live = live_read};
    fail_everywhere(&scene);
}
END_TEST

/* What a log holds of the dead, and a reader may not redo. */
static int count_log(void *arg, const annal__log_info *info)
{
    *(unsigned *)arg += 1;
    ck_fault(info->what == NULL, "the fault is called damage of the log: %s", info->what);
    return 0;
}

static void live_unseen(struct life *life)
{
    const annal_store_options options = {.read_only = true};
    annal_error err = {0};
    unsigned logs = 0;
    if (!open_store(life, &options))
        return;
    annal_status status = annal__log_each(life->store, count_log, &logs, &err);
    ck_fault(status < 0 || logs == 1, "%u logs", logs);
    ck_fault(status == ANNAL_OK || fault_came(life), "the logs fail: %s", err.message);
    close_store(life);
}

START_TEST(any_call_of_a_reader_of_unfinished_logs_may_fail)
{
    static const struct scene scene = {.name = "unseen",
                                       .sources = OF_THE_JOURNAL,
                                       .build = build_dead,
                                       .prepare = bind_again,
                                       .live = live_unseen};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Level os, many bytes ---- */

static void live_loose(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    life->long_texts = true;
    attempt(life, "many", 3, ANNAL_LEVEL_OS, false);
    life->long_texts = false;
    attempt(life, "few", 1, ANNAL_LEVEL_OS, false);
    sync_all(life);
    attempt(life, "few", 1, ANNAL_LEVEL_OS, false);
    attempt(life, "many", 1, ANNAL_LEVEL_OS, false);
    attempt(life, "many", 1, ANNAL_LEVEL_SYNC, false);
    life->long_texts = true;
    attempt(life, "many", 3, ANNAL_LEVEL_OS, false);
    attempt(life, "other", 3, ANNAL_LEVEL_OS, false);
    life->long_texts = false;
    attempt(life, "many", 1, ANNAL_LEVEL_SYNC, false);
    checkpoint(life);
    attempt(life, "few", 2, ANNAL_LEVEL_OS, false);
    attempt(life, "few", 1, ANNAL_LEVEL_BATCH, false);
    close_store(life);
}

START_TEST(any_call_may_fail_while_loose_bytes_are_synced)
{
    static const struct scene scene = {
        .name = "loose", .sources = OF_THE_JOURNAL, .live = live_loose};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Deleting ---- */

static void live_delete(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    delete_session(life, "b");
    attempt(life, "b", 2, ANNAL_LEVEL_SYNC, false);
    delete_session(life, "a");
    attempt(life, "b", 1, ANNAL_LEVEL_OS, false);
    attempt(life, "a", 1, ANNAL_LEVEL_SYNC, false);
    close_store(life);
}

START_TEST(any_call_of_a_deletion_may_fail)
{
    static const struct scene scene = {
        .name = "delete", .sources = OF_THE_JOURNAL, .build = build_closed, .live = live_delete};
    fail_everywhere(&scene);
}
END_TEST

/* ---- The other format ---- */

static void live_msgpack(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    life->format = ANNAL_FORMAT_MSGPACK;
    for (int i = 0; i < 2; i++) {
        if (!open_store(life, &options))
            break;
        attempt(life, "m", 1, ANNAL_LEVEL_SYNC, false);
        attempt(life, "m", 3, ANNAL_LEVEL_SYNC, false);
        attempt(life, "m", 1, ANNAL_LEVEL_OS, false);
        size_t named = attempt(life, "m", 2, ANNAL_LEVEL_BATCH, true);
        attempt_again(life, named, ANNAL_LEVEL_SYNC);
        close_store(life);
    }
    life->format = ANNAL_FORMAT_DEFAULT;
}

START_TEST(any_call_of_a_writer_of_msgpack_may_fail)
{
    static const struct scene scene = {
        .name = "msgpack", .sources = OF_THE_JOURNAL, .live = live_msgpack};
    fail_everywhere(&scene);
}
END_TEST

static void live_convert(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    convert_session(life, "b", ANNAL_FORMAT_MSGPACK);
    attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
    convert_session(life, "b", ANNAL_FORMAT_JSON);
    attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
    close_store(life);
}

START_TEST(any_call_of_a_conversion_may_fail)
{
    static const struct scene scene = {
        .name = "convert", .sources = OF_THE_JOURNAL, .build = build_closed, .live = live_convert};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Repairing ---- */

static void build_hurt(struct life *life)
{
    const annal_store_options options = {.create = true};
    char path[512], byte;
    ck_fault(open_store(life, &options), "the store does not open");
    for (int i = 0; i < 4; i++)
        attempt(life, "hurt", 2, ANNAL_LEVEL_SYNC, true);
    close_store(life);
    /* From now on there is no claim about it: it cannot be proved. */
    life->count = 0;
    path_in(life, path, "events/hurt.jsonl");
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    ck_assert(fseek(file, 600, SEEK_SET) == 0 && fread(&byte, 1, 1, file) == 1);
    byte ^= 1;
    ck_assert(fseek(file, 600, SEEK_SET) == 0 && fwrite(&byte, 1, 1, file) == 1);
    ck_assert_int_eq(fclose(file), 0);
}

static void repair(struct life *life, const char *to)
{
    annal_repair_result result;
    annal_verify_result proof = {0};
    annal_error err = {0};
    annal_status status = annal_session_repair(life->store, ANNAL_SLICE("hurt"), annal_slice_of(to),
                                               NULL, NULL, NULL, &result, &err);
    ck_fault(status == ANNAL_OK || fault_came(life), "repair fails: %s", err.message);
    ck_fault(status == ANNAL_OK || life->silent || err.message[0] != '\0',
             "repair does not say why it failed");
    ck_fault(status < 0 || (result.events == 7 && result.gaps == 1 && result.last_seq == 8),
             "%" PRIu64 " events are repaired, with %" PRIu64 " gaps, to seq %" PRIu64,
             result.events, result.gaps, result.last_seq);
    if (status < 0 || to[0] == '\0')
        return;
    status = annal_session_verify(life->store, annal_slice_of(to), NULL, NULL, &proof, &err);
    ck_fault(status == ANNAL_OK || fault_came(life), "verify fails: %s", err.message);
    /* After a failed write its journal may lag the log for a while: rule 6. */
    bool behind = fault_came(life) && strcmp(to, "mended") == 0;
    ck_fault(status < 0 || behind || (proof.findings == 0 && proof.last_seq == 8),
             "what was repaired ends at seq %" PRIu64, proof.last_seq);
}

static void live_repair(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    if (!open_store(life, &options))
        return;
    repair(life, "");
    repair(life, "mended");
    close_store(life);
}

static void prove_repair(struct life *life)
{
    const annal_store_options options = {.create = true};
    ck_fault(open_store(life, &options), "the store does not open");
    repair(life, "mended-again");
    close_store(life);
}

START_TEST(any_call_of_a_repair_may_fail)
{
    static const struct scene scene = {.name = "repair",
                                       .sources = OF_THE_JOURNAL,
                                       .build = build_hurt,
                                       .live = live_repair,
                                       .prove = prove_repair};
    fail_everywhere(&scene);
}
END_TEST

/* ---- Forking ---- */

static annal_status forked; /* what the fork of this run answered; ANNAL_END: it was not made */

static void live_fork(struct life *life)
{
    const annal_store_options options = {.create = true, .region_bytes = LOG_REGION_FIRST};
    annal_error err = {0};
    annal_session_info info;
    forked = ANNAL_END;
    if (!open_store(life, &options))
        return;
    attempt(life, "b", 1, ANNAL_LEVEL_SYNC, false);
    attempt(life, "b", 1, ANNAL_LEVEL_OS, false);
    annal_error *why = err_for(life, &err);
    forked =
        annal_session_fork(life->store, ANNAL_SLICE("b"), 1, ANNAL_SLICE("fork"), NULL, &info, why);
    ck_fault(forked == ANNAL_OK || fault_came(life), "a fork fails: %s", err.message);
    ck_fault(forked == ANNAL_OK || why == NULL || err.message[0] != '\0',
             "a fork does not say why it failed");
    ck_fault(forked != ANNAL_OK || (info.fork_seq == 1 && info.last_seq == 1),
             "the fork begins behind event %" PRIu64, info.fork_seq);
    close_store(life);
}

/* The fork exists if the answer said so; it is complete, and accepts an event. */
static void prove_fork(struct life *life)
{
    const annal_store_options options = {.create = true};
    annal_error err = {0};
    annal_session_info info;
    annal_verify_result proof = {0};
    ck_fault(open_store(life, &options), "the store does not open");
    annal_status status = annal_session_info_get(life->store, ANNAL_SLICE("fork"), &info, &err);
    ck_fault(forked != ANNAL_OK || status == ANNAL_OK, "the fork is gone: %s", err.message);
    ck_fault(forked == ANNAL_OK || forked == ANNAL_ERR_UNKNOWN || status == ANNAL_ERR_NOTFOUND,
             "a fork that was refused is there");
    if (status == ANNAL_ERR_NOTFOUND && expected_events(life, "b") > 0)
        status = annal_session_fork(life->store, ANNAL_SLICE("b"), 1, ANNAL_SLICE("fork"), NULL,
                                    &info, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        goto done; /* no session exists that could be forked */
    ck_fault(status == ANNAL_OK, "no fork can be made: %s", err.message);
    status = annal_session_verify(life->store, ANNAL_SLICE("fork"), NULL, NULL, &proof, &err);
    ck_fault(status == ANNAL_OK && proof.findings == 0 && proof.last_seq == 1,
             "the fork is not sound, to seq %" PRIu64 ": %s", proof.last_seq, err.message);
done:
    close_store(life);
}

START_TEST(any_call_of_a_fork_may_fail)
{
    static const struct scene scene = {.name = "fork",
                                       .sources = OF_THE_JOURNAL,
                                       .build = build_closed,
                                       .live = live_fork,
                                       .prove = prove_fork};
    fail_everywhere(&scene);
}
END_TEST

/* How often a path needs more memory depends on the length of the store's path. */
START_TEST(any_allocation_for_a_path_may_fail)
{
    char store[128] = "";
    for (size_t length = 1; length < sizeof store; length++) {
        store[length - 1] = 'x';
        for (unsigned at = 1; at <= 3; at++) {
            const struct context context = {.path = store};
            struct failing_libc heap = {.family = LIBC_HEAP, .fail_at = at};
            struct buf path = {0};
            long blocks = failing_libc_blocks();
            failing_libc_arm(&heap);
            annal_status status = annal__context_path(&context, &path, "events", ".torn", NULL);
            failing_libc_arm(NULL);
            bool owns = failing_libc_blocks() > blocks;
            annal__buf_done(&path);
            ck_assert_int_eq(status, heap.failed[0] == '\0' ? ANNAL_OK : ANNAL_ERR_NOMEM);
            ck_assert(owns == (status == ANNAL_OK));
        }
    }
}
END_TEST

Suite *suite_faults(void)
{
    Suite *suite = suite_create("faults");
    TCase *tests = suite_case(suite, "journal", NULL, NULL);
    tcase_set_timeout(tests, 1200);
    tcase_add_test(tests, any_call_of_a_writer_may_fail);
    tcase_add_test(tests, any_call_of_a_checkpoint_may_fail);
    tcase_add_test(tests, any_call_may_fail_while_the_log_grows);
    tcase_add_test(tests, any_call_of_a_recovery_may_fail);
    tcase_add_test(tests, any_call_of_a_recovery_after_a_boot_may_fail);
    tcase_add_test(tests, any_call_may_fail_while_the_session_of_a_dead_process_is_acquired);
    tcase_add_test(tests, any_call_of_a_reader_may_fail);
    tcase_add_test(tests, any_call_of_a_reader_of_unfinished_logs_may_fail);
    tcase_add_test(tests, any_call_may_fail_while_loose_bytes_are_synced);
    tcase_add_test(tests, any_call_of_a_deletion_may_fail);
    tcase_add_test(tests, any_call_of_a_writer_of_msgpack_may_fail);
    tcase_add_test(tests, any_call_of_a_conversion_may_fail);
    tcase_add_test(tests, any_call_of_a_repair_may_fail);
    tcase_add_test(tests, any_call_of_a_fork_may_fail);
    tcase_add_test(tests, any_allocation_for_a_path_may_fail);
    return suite;
}
