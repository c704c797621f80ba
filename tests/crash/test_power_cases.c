/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known ways in which a write path can lose events, each on the simulated disk: processes that
 * die while their locks are released one by one, power cuts at the worst moment.
 */
#include "index/backup/backup.h"
#include "journal/base/alloc.h"
#include "journal/log.h"
#include "journal/sys/delete.h"
#include "tests/crash/power_check.h"
#include "tests/support/journals.h"
#include "tests/support/runner.h"

#include <annal/annal.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define OUTCOMES 60 /* most outcomes of one power cut */

/* A process and its store. */
struct side {
    struct sim_process *process;
    annal_store *store;
};

static struct sim_disk *disk;
static struct model model;
static unsigned appended;

/* What the disk does to an operation: fail it, or let the process die before it. */
static struct {
    enum sim_op_kind kind;
    const char *name;
    int fail;                 /* an errno, once */
    struct sim_process *kill; /* dies instead */
    bool stuck;               /* the disk has no room for another log */
    bool check;               /* cut the power here, whatever the operation is */
    bool check_log;           /* here, if a group was just written and is not synced */
} trap;

static void set_up(void)
{
    disk = sim_disk_new();
    model = (struct model){0};
    memset(&trap, 0, sizeof trap);
}

static void tear_down(void)
{
    sim_disk_free(disk);
    model_done(&model);
}

/* ---- Steps ---- */

static struct side open_side(void)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = 1, .region_bytes = 1 << 20};
    struct side side = {.process = sim_process_new(disk)};
    ck_ok(power_open(side.process, &options, &side.store, err));
    return side;
}

static void close_side(struct side *side)
{
    ck_ok(annal_store_close(side->store, err));
    model_sync(&model);
    side->store = NULL;
}

/* Its memory; the process itself is dead, so nothing of it reaches the disk. */
static void kill_side(struct side *side)
{
    sim_process_kill(side->process);
    (void)annal_store_close(side->store, NULL);
    sim_process_close_all(side->process);
    side->store = NULL;
}

static annal_status try_add(struct side *side, const char *session, size_t pad, annal_level level,
                            annal_error *err)
{
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    char *data = malloc(pad + 64);
    ck_assert_ptr_nonnull(data);
    int length = snprintf(data, pad + 64, "{\"n\":%u,\"text\":\"", ++appended);
    memset(data + length, 'x', pad);
    snprintf(data + (size_t)length + pad, 3, "\"}");
    const annal_draft draft = {.type = ANNAL_SLICE("step"), .data = annal_slice_of(data)};
    const annal_append_options options = {.level = level};
    const annal_writer_options writer_options = {
        .format = session[0] == 'm' ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_DEFAULT};
    model_append(&model, session, &draft, 1, level);
    annal_status status =
        annal_writer_open(side->store, annal_slice_of(session), &writer_options, &writer, err);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, &draft, 1, &options, &seq, err);
    annal_writer_close(writer);
    free(data);
    if (status == ANNAL_OK) {
        model_acknowledge(&model, session, level);
        ck_assert_uint_eq(seq, model_session(&model, session)->count);
    } else if (status != ANNAL_ERR_UNKNOWN) {
        model_refuse(&model, session, 1);
    }
    return status;
}

static void add(struct side *side, const char *session, annal_level level)
{
    ck_ok(try_add(side, session, 300, level, err));
}

/* Ask another process to release the session that it owns. */
static void ask(struct side *side, const char *session)
{
    int64_t tick_us = disk->tick_us;
    disk->tick_us = 1000;
    ck_status(ANNAL_ERR_BUSY, try_add(side, session, 10, ANNAL_LEVEL_SYNC, err));
    disk->tick_us = tick_us;
}

static void delete_session(struct side *side, const char *session)
{
    model_delete(&model, session);
    ck_ok(delete_wiped(side->store, annal_slice_of(session), NULL, err));
    model_deleted(&model, session, true);
}

/* No process owns the session, and it has no tombstone. */
static void remove_by_hand(const char *session)
{
    struct sim_process *hand = sim_process_new(disk);
    char path[80];
    snprintf(path, sizeof path, "%s/store/events/%s.jsonl", hand->root, session);
    ck_assert_int_eq(hand->io.unlink(hand, path), 0);
    *strrchr(path, '/') = '\0';
    ck_ok(annal__io_sync_dir(&hand->io, path, err));
    model_deleted(&model, session, true);
}

/* Events that exist when a store was opened stay; others never appear. */
static void settle(struct side *side, const char *session)
{
    annal_session_info info = {0};
    struct model_session *expected = model_session(&model, session);
    annal_error err = {0};
    annal_status status = annal_session_info_get(side->store, annal_slice_of(session), &info, &err);
    ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND, "%s", err.message);
    ck_assert_uint_le(info.last_seq, expected->count);
    model_refuse(&model, session, expected->count - (size_t)info.last_seq);
    model_sync(&model);
}

/* Takes the disk. */
static void check_left(struct sim_disk *left, bool killed, uint64_t number)
{
    struct power_check check = {.model = &model, .killed = killed};
    bool good = power_check_disk(&check, left);
    ck_assert_msg(good, "outcome %u: %s", (unsigned)number, check.why);
    sim_disk_free(left);
}

/* Cut the power now, with every outcome or with at most `most`. */
static void cut_power_in(unsigned most)
{
    struct sim_choices choices;
    sim_choices_init(&choices, disk, 1, most);
    while (sim_choices_next(&choices))
        check_left(sim_disk_crash(disk, &choices), false, choices.number);
}

static void cut_power(void)
{
    cut_power_in(OUTCOMES);
}

static int spring(void *arg, struct sim_disk *of, const struct sim_op *op)
{
    (void)arg;
    (void)of;
    if (trap.check)
        cut_power();
    if (trap.check_log && op->kind == SIM_SYNC && strcmp(op->name, "00.log") == 0)
        cut_power_in(OUTCOMES / 4); /* regions are large */
    if (trap.stuck && op->kind == SIM_CREATE && strncmp(op->name, ".new-", 5) == 0)
        return ENOSPC;
    if (trap.name == NULL || op->kind != trap.kind || strcmp(op->name, trap.name) != 0)
        return 0;
    trap.name = NULL;
    if (trap.kill != NULL)
        sim_process_kill(trap.kill);
    return trap.fail;
}

static void set_trap(enum sim_op_kind kind, const char *name, int fail, struct sim_process *kill)
{
    trap.kind = kind;
    trap.name = name;
    trap.fail = fail;
    trap.kill = kill;
    disk->hook = spring;
}

/* ---- The cases ---- */

START_TEST(events_of_level_os_become_durable_with_the_next_sync)
{
    struct side one = open_side();
    for (int i = 0; i < 5; i++)
        add(&one, "s", ANNAL_LEVEL_OS);
    add(&one, "s", ANNAL_LEVEL_SYNC);
    ck_assert_uint_eq(model_session(&model, "s")->durable, 6);
    cut_power();
    for (int i = 0; i < 3; i++) /* more than goes through the log */
        ck_ok(try_add(&one, "s", 600000, ANNAL_LEVEL_OS, err));
    add(&one, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&one);
}
END_TEST

/* The group is synced in the log of one process, which dies before its journal has it, and whose
 * locks are released step by step. */
START_TEST(the_session_of_a_dead_process_is_acquired_only_after_redo)
{
    bool last_first = _i == 1;
    struct side one = open_side(), two = open_side();
    add(&two, "other", ANNAL_LEVEL_SYNC);
    add(&one, "s", ANNAL_LEVEL_SYNC);
    set_trap(SIM_WRITE, "s.jsonl", 0, one.process);
    /* Whatever it could still answer, the log has the event. */
    (void)try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, NULL);
    ck_assert(one.process->dead);
    annal_status status = ANNAL_ERR_BUSY;
    int waited = 0;
    disk->tick_us = 1000;
    while (status == ANNAL_ERR_BUSY) {
        status = try_add(&two, "s", 200, ANNAL_LEVEL_SYNC, NULL);
        if (status == ANNAL_ERR_BUSY) {
            waited++;
            ck_assert_uint_gt(sim_process_open_files(one.process), 0);
            if (last_first)
                sim_process_close_last(one.process);
            else
                sim_process_close_first(one.process);
        }
    }
    ck_assert_int_eq(status, ANNAL_OK); /* as the third: try_add() looks at its seq */
    ck_assert_int_gt(waited, 0);
    kill_side(&one);
    cut_power();
    close_side(&two);
}
END_TEST

START_TEST(a_session_that_changed_owners_is_complete_in_either_order_of_redo)
{
    struct side one = open_side(), two = open_side();
    for (int i = 0; i < 2; i++) {
        add(&one, "s", ANNAL_LEVEL_SYNC);
        if (_i == 1)
            add(&one, "s", ANNAL_LEVEL_OS);
        ask(&two, "s");
        ck_ok(annal_store_keep(one.store, err));
        add(&two, "s", ANNAL_LEVEL_SYNC);
        cut_power();
        ask(&one, "s");
        ck_ok(annal_store_keep(two.store, err));
    }
    close_side(&two);
    close_side(&one);
}
END_TEST

/* The process that got the answers is dead, and the disk lacks events that the cache of the journal
 * shows. */
START_TEST(recovery_rewrites_bytes_that_only_the_cache_has)
{
    struct side one = open_side();
    char path[80];
    add(&one, "s", ANNAL_LEVEL_SYNC);
    add(&one, "s", ANNAL_LEVEL_SYNC);
    snprintf(path, sizeof path, "%s/store/events/s.jsonl", one.process->root);
    sim_disk_lose_writes(one.process, path);
    kill_side(&one);
    struct side two = open_side();
    ck_ok(annal_store_close(two.store, err));
    cut_power();
}
END_TEST

START_TEST(a_journal_with_a_failed_sync_never_counts_as_synced)
{
    struct side one = open_side();
    annal_error err = {0};
    add(&one, "s", ANNAL_LEVEL_SYNC);
    set_trap(SIM_SYNC, "s.jsonl", EIO, NULL);
    annal_status status = annal_store_checkpoint(one.store, &err);
    ck_assert_ptr_null(trap.name);
    cut_power();
    if (status == ANNAL_OK)
        status = try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, &err);
    ck_assert(status == ANNAL_OK || err.message[0] != '\0');
    cut_power();
    (void)annal_store_close(one.store, NULL);
    cut_power();
    struct side two = open_side();
    ck_assert_int_eq(annal_store_close(two.store, &err), ANNAL_OK);
    cut_power();
}
END_TEST

/* The process that redoes the log of a dead process cannot sync its journal: the log keeps its
 * groups. */
START_TEST(the_log_keeps_a_journal_that_recovery_cannot_sync)
{
    struct side one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    add(&one, "s", ANNAL_LEVEL_SYNC);
    kill_side(&one);
    set_trap(SIM_SYNC, "s.jsonl", EIO, NULL);
    struct side two = open_side();
    ck_assert_ptr_null(trap.name);
    cut_power();
    (void)annal_store_close(two.store, NULL);
    cut_power();
    two = open_side(); /* now it can be synced */
    add(&two, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&two);
}
END_TEST

START_TEST(a_journal_created_by_another_process_keeps_its_name)
{
    struct side one = open_side(), two = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    ask(&two, "s");
    ck_ok(annal_store_keep(one.store, err));
    add(&two, "s", ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(two.store, err));
    cut_power();
    ck_ok(annal_store_close(two.store, err));
    cut_power();
    close_side(&one);
}
END_TEST

/* The next process finds all that was acknowledged, appends, and loses power. */
static void append_after_the_dead(void)
{
    struct side side = open_side();
    settle(&side, "s");
    add(&side, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&side);
}

/* Refused or unknown: a refused event never reappears, not even when the cache reaches the disk. */
START_TEST(a_refused_group_with_a_failed_sync_never_reappears)
{
    struct side one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    set_trap(SIM_SYNC, "00.log", EIO, NULL);
    annal_error err = {0};
    annal_status status = try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, &err);
    ck_assert_int_ne(status, ANNAL_OK);
    ck_assert_ptr_null(trap.name);
    cut_power();
    if (status != ANNAL_ERR_UNKNOWN) { /* then it continues in another log */
        trap.check = true;
        add(&one, "s", ANNAL_LEVEL_SYNC);
        add(&one, "t", ANNAL_LEVEL_SYNC);
        trap.check = false;
    }
    kill_side(&one);
    append_after_the_dead();
}
END_TEST

/* The process that published the log, or replaced a failed log by it, died before it synced
 * commit/. */
START_TEST(a_log_named_by_another_process_is_used_only_when_its_name_is_durable)
{
    struct side one = open_side();
    if (_i == 1) {
        add(&one, "s", ANNAL_LEVEL_SYNC);
        set_trap(SIM_SYNC, "00.log", EIO, NULL);
        trap.stuck = true;
        ck_assert_int_ne(try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, NULL), ANNAL_OK);
        trap.stuck = false;
    }
    set_trap(SIM_SYNC_DIR, "commit", 0, one.process);
    ck_assert_int_ne(try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, NULL), ANNAL_OK);
    ck_assert_ptr_null(trap.name);
    kill_side(&one);
    append_after_the_dead();
}
END_TEST

/* The log with the ghost stays, and what says that it is one is a file beside it. */
START_TEST(a_refused_event_never_reappears_while_its_log_stays)
{
    struct side one = open_side();
    annal_error err = {0};
    disk->failed_syncs_write = true;
    add(&one, "s", ANNAL_LEVEL_SYNC);
    set_trap(SIM_SYNC, "00.log", EIO, NULL);
    trap.stuck = true;
    annal_status status = try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, &err);
    ck_assert_int_ne(status, ANNAL_OK);
    ck_assert_int_ne(status, ANNAL_ERR_UNKNOWN);
    cut_power();
    ck_assert_int_ne(try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, &err), ANNAL_OK);
    cut_power();
    kill_side(&one);
    trap.stuck = false;
    struct side two = open_side();
    add(&two, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&two);
}
END_TEST

/* The process dies after a failed sync; the cache shows the group, the disk does not contain it. */
START_TEST(recovery_shows_no_event_that_a_power_cut_could_remove)
{
    struct side one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    set_trap(SIM_SYNC, "00.log", EIO, one.process);
    ck_assert_int_ne(try_add(&one, "s", 100, ANNAL_LEVEL_SYNC, NULL), ANNAL_OK);
    char path[80];
    struct sim_process *kernel = sim_process_new(disk);
    snprintf(path, sizeof path, "%s/store/commit/00.log", kernel->root);
    sim_disk_lose_writes(kernel, path);
    kill_side(&one);
    struct side two = open_side();
    settle(&two, "s");
    ck_assert_uint_eq(model_session(&model, "s")->count, 1); /* recovery read the disk */
    cut_power();
    add(&two, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&two);
}
END_TEST

/* The log still holds the groups of a region that was checkpointed, of a journal that is another
 * now. */
START_TEST(a_checkpointed_region_is_never_redone)
{
    struct side one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    add(&one, "gone", ANNAL_LEVEL_SYNC);
    close_side(&one);
    remove_by_hand("gone");
    one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_checkpoint(one.store, err));
    delete_session(&one, "s");
    for (int i = 0; i < 3; i++) {
        disk->hook = spring;
        trap.check = true;
        add(&one, "s", ANNAL_LEVEL_SYNC); /* begins a region */
        trap.check = false;
        ck_ok(annal_store_checkpoint(one.store, err));
    }
    close_side(&one);
}
END_TEST

/* On this disk, who waits for a lock that another process has ends the test. */
START_TEST(no_append_and_no_checkpoint_waits_for_the_index)
{
    struct side one = open_side();
    annal_index *index = NULL;
    const annal_index_options options = {.follow = true};
    ck_ok(annal_index_open(one.store, &options, &index, err));
    add(&one, "s", ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_keep(one.store, err));
    struct sim_process *other = sim_process_new(disk);
    char path[80];
    snprintf(path, sizeof path, "%s/store/locks/index", other->root);
    int fd = other->io.open(other, path, O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(other->io.flock(other, fd, LOCK_EX | LOCK_NB), 0);
    annal_metrics before, after;
    annal_store_metrics_get(one.store, ANNAL_METRICS_OF_OBJECT, &before);
    for (int i = 0; i < 8; i++) {
        ck_ok(try_add(&one, "s", 300000, ANNAL_LEVEL_SYNC, err));
        disk->now_us += 1000000; /* the index is due */
        ck_ok(annal_store_keep(one.store, err));
    }
    annal_store_metrics_get(one.store, ANNAL_METRICS_OF_OBJECT, &after);
    ck_assert_uint_gt(after.checkpoints, before.checkpoints);
    cut_power();
    ck_assert_int_eq(other->io.flock(other, fd, LOCK_UN), 0);
    annal_index_close(index);
    close_side(&one);
}
END_TEST

/* A power cut leaves such a journal, whose bytes were lost, under the name of a later session. */
START_TEST(an_empty_journal_of_any_format_does_not_prevent_recovery)
{
    struct side one = open_side();
    const struct io *io = &one.process->io;
    char path[80];
    snprintf(path, sizeof path, "%s/store/events/m.%s", one.process->root,
             _i == 0 ? "jsonl" : "mpk");
    int fd = io->open(io->arg, path, O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    io->close(io->arg, fd);
    *strrchr(path, '/') = '\0';
    ck_ok(annal__io_sync_dir(io, path, err));
    disk->hook = spring;
    trap.check = true;
    add(&one, "m", ANNAL_LEVEL_SYNC); /* msgpack */
    trap.check = false;
    add(&one, "m", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&one);
}
END_TEST

/* What stands in it is half overwritten when the power is cut: then none of it may be needed. */
/* How many groups the log has after a power cut. Takes the disk. */
static size_t count_groups(struct sim_disk *left)
{
    struct sim_process *process = sim_process_new(left);
    struct log_group *groups = NULL;
    struct log log;
    size_t count = 0;
    uint64_t last = 0;
    char name[40];
    snprintf(name, sizeof name, "%s/00.log", process->root);
    ck_ok(annal__log_open(&process->io, name, false, &log, err));
    ck_ok(annal__log_find_groups(&log, &groups, &count, err));
    ck_assert(!annal__log_lost(&log, groups, count, &last));
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(groups[i].group, i + 1);
    annal__free(groups);
    annal__log_close(&log);
    sim_disk_free(left);
    return count;
}

static unsigned lost; /* groups that were being written */

static int cut_log(void *arg, struct sim_disk *of, const struct sim_op *op)
{
    const size_t *synced = arg;
    struct sim_choices choices;
    if (op->kind != SIM_SYNC || *synced % 8 > 1)
        return 0;
    sim_choices_init(&choices, of, 1, 5);
    while (sim_choices_next(&choices)) {
        size_t count = count_groups(sim_disk_crash(of, &choices));
        ck_assert(count == *synced || count == *synced + 1);
        lost += count == *synced;
    }
    return 0;
}

/* Of a large log, space is reserved, and small groups write zeros ahead. */
START_TEST(no_power_cut_loses_a_group_that_was_synced_in_reserved_space)
{
    static const struct buf nothing;
    struct sim_process *process = sim_process_new(disk);
    struct log log;
    size_t synced = 0;
    char name[40];
    snprintf(name, sizeof name, "%s/00.log", process->root);
    ck_ok(annal__log_create(&process->io, name, 5 << 20, 1, &log, err));
    ck_ok(annal__io_sync_dir(&process->io, process->root, err));
    annal__log_switch(&log);
    disk->hook_arg = &synced;
    disk->hook = cut_log;
    for (; synced < 10; synced++)
        ck_ok(annal__log_write_group(&log, 0, &nothing, &nothing, 0, err));
    ck_assert_uint_gt(log.regions[0].written, log.end);
    ck_assert_uint_ge(lost, 4);
    disk->hook = NULL;
    annal__log_close(&log);
}
END_TEST

START_TEST(a_region_is_reused_only_after_a_durable_group_released_it)
{
    struct side one = open_side();
    add(&one, "t", ANNAL_LEVEL_SYNC);
    ck_ok(try_add(&one, "s", 600000, ANNAL_LEVEL_SYNC, err));
    ck_ok(try_add(&one, "s", 600000, ANNAL_LEVEL_SYNC, err)); /* in the other region */
    disk->hook = spring;
    trap.check_log = true;
    ck_ok(try_add(&one, "s", 600000, ANNAL_LEVEL_SYNC, err));
    trap.check_log = false;
    ck_assert_uint_ge(one.store->own_log.log.epoch, 3);
    close_side(&one);
}
END_TEST

/* All bytes of a file. */
static struct buf slurp(struct sim_process *process, const char *path)
{
    struct buf bytes = {0};
    struct stat file;
    int fd = process->io.open(process, path, O_RDONLY, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(process->io.fstat(process, fd, &file), 0);
    ck_assert_int_eq(annal__buf_append_zeros(&bytes, (size_t)file.st_size), ANNAL_OK);
    ck_assert_int_eq(annal__io_read_full(&process->io, fd, bytes.ptr, bytes.len, 0), file.st_size);
    process->io.close(process, fd);
    return bytes;
}

/* As cp does. */
static void overwrite(struct sim_process *process, const char *path, annal_slice bytes)
{
    int fd = process->io.open(process, path, O_RDWR, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(process->io.ftruncate(process, fd, 0), 0);
    ck_assert_int_eq(annal__io_write_all(&process->io, fd, bytes.ptr, bytes.len, 0), 0);
    process->io.close(process, fd);
}

/* The process that copied it did not sync it, and later events are useless without it. The last
 * append, the release and the copy happen in one tick of the clock. */
START_TEST(a_journal_that_was_copied_into_place_is_durable_with_the_next_event)
{
    char path[80];
    struct side one = open_side();
    int64_t tick_us = disk->tick_us;
    add(&one, "s", ANNAL_LEVEL_SYNC);
    disk->tick_us = 0;
    add(&one, "s", ANNAL_LEVEL_SYNC);
    close_side(&one);
    struct sim_process *hand = sim_process_new(disk);
    snprintf(path, sizeof path, "%s/store/events/s.jsonl", hand->root);
    struct buf bytes = slurp(hand, path);
    overwrite(hand, path, annal__buf_slice(&bytes));
    annal__buf_done(&bytes);
    disk->tick_us = tick_us;
    one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    cut_power();
    close_side(&one);
}
END_TEST

START_TEST(a_fork_makes_its_history_durable_for_every_writer_and_level)
{
    struct side one = open_side(), two = open_side();
    for (int i = 0; i < 3; i++)
        add(&one, "s", ANNAL_LEVEL_OS);
    model_fork(&model, "s", 3, "f");
    ck_ok(annal_session_fork(two.store, ANNAL_SLICE("s"), 3, ANNAL_SLICE("f"), NULL, NULL, err));
    model_forked(&model, "s", "f");
    cut_power();
    close_side(&two);
    close_side(&one);
}
END_TEST

/* The store and the copy are on one disk here; only the copy is looked at. */
START_TEST(a_finished_backup_is_complete_after_a_power_cut)
{
    struct side one = open_side();
    annal_index *index = NULL;
    annal_artifact_info artifact;
    annal_backup_result made, found;
    char path[80], data[200];
    ck_ok(annal_index_open(one.store, NULL, &index, err));
    add(&one, "s", ANNAL_LEVEL_SYNC);
    add(&one, "m", ANNAL_LEVEL_OS);
    ck_ok(annal_artifact_put(one.store, ANNAL_SLICE("s"), ANNAL_SLICE("kept"), &artifact, err));
    snprintf(path, sizeof path, "%s/backup", one.process->root);
    ck_ok(annal_backup_create(index, path, NULL, &made, err));
    struct sim_choices choices;
    sim_choices_init(&choices, disk, 1, OUTCOMES);
    while (sim_choices_next(&choices)) {
        annal_error failure = {0};
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        struct sim_process *reader = sim_process_new(left);
        snprintf(data, sizeof data, "%s/backup", reader->root);
        annal_status status =
            annal__backup_restore(&reader->io, data, NULL, NULL, &found, &failure);
        ck_assert_msg(status == ANNAL_OK, "outcome %u: %s", (unsigned)choices.number,
                      failure.message);
        ck_assert_uint_eq(found.files, made.files);
        ck_assert_uint_eq(found.bytes, made.bytes);
        sim_disk_free(left);
    }
    annal_index_close(index);
    close_side(&one);
}
END_TEST

static const char *const torn_piece = "{\"seq\":2,\"ts\":\"2026-11-";

struct torn_search {
    struct sim_process *process;
    char directory[80];
    bool found;
};

static int look_for_piece(void *arg, const char *name)
{
    struct torn_search *search = arg;
    char path[200];
    snprintf(path, sizeof path, "%s/%s", search->directory, name);
    struct buf bytes = slurp(search->process, path);
    search->found = search->found || (bytes.len == strlen(torn_piece) &&
                                      memcmp(bytes.ptr, torn_piece, bytes.len) == 0);
    annal__buf_done(&bytes);
    return 0;
}

/* The piece stands at the end of the journal, or is kept beside it. */
static bool has_piece(struct sim_disk *left)
{
    struct torn_search search = {.process = sim_process_new(left)};
    char path[80];
    snprintf(path, sizeof path, "%s/store/events/s.jsonl", search.process->root);
    snprintf(search.directory, sizeof search.directory, "%s/store/events/.torn",
             search.process->root);
    struct buf bytes = slurp(search.process, path);
    size_t len = strlen(torn_piece);
    bool there = bytes.len > len && memcmp(bytes.ptr + bytes.len - len, torn_piece, len) == 0;
    annal__buf_done(&bytes);
    (void)search.process->io.list(search.process, search.directory, look_for_piece, &search);
    return there || search.found;
}

START_TEST(no_power_cut_loses_the_bytes_of_a_torn_tail_while_it_is_cut)
{
    char path[80];
    struct side one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    close_side(&one);
    struct sim_process *hand = sim_process_new(disk);
    snprintf(path, sizeof path, "%s/store/events/s.jsonl", hand->root);
    struct buf bytes = slurp(hand, path);
    ck_assert_int_eq(annal__buf_append_slice(&bytes, annal_slice_of(torn_piece)), ANNAL_OK);
    overwrite(hand, path, annal__buf_slice(&bytes));
    int fd = hand->io.open(hand, path, O_RDWR, 0);
    ck_assert_int_eq(hand->io.fsync(hand, fd), 0);
    hand->io.close(hand, fd);
    annal__buf_done(&bytes);
    one = open_side();
    add(&one, "s", ANNAL_LEVEL_SYNC);
    struct sim_choices choices;
    sim_choices_init(&choices, disk, 1, OUTCOMES);
    while (sim_choices_next(&choices)) {
        struct sim_disk *left = sim_disk_crash(disk, &choices);
        ck_assert_msg(has_piece(left), "outcome %u", (unsigned)choices.number);
        sim_disk_free(left);
    }
    cut_power();
    close_side(&one);
}
END_TEST

Suite *suite_power_cases(void)
{
    Suite *suite = suite_create("power_cases");
    TCase *tests = suite_case(suite, "power_cases", set_up, tear_down);
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, events_of_level_os_become_durable_with_the_next_sync);
    tcase_add_loop_test(tests, the_session_of_a_dead_process_is_acquired_only_after_redo, 0, 2);
    tcase_add_loop_test(tests, a_session_that_changed_owners_is_complete_in_either_order_of_redo, 0,
                        2);
    tcase_add_test(tests, recovery_rewrites_bytes_that_only_the_cache_has);
    tcase_add_test(tests, a_journal_with_a_failed_sync_never_counts_as_synced);
    tcase_add_test(tests, the_log_keeps_a_journal_that_recovery_cannot_sync);
    tcase_add_test(tests, a_journal_created_by_another_process_keeps_its_name);
    tcase_add_test(tests, a_refused_group_with_a_failed_sync_never_reappears);
    tcase_add_loop_test(tests, a_log_named_by_another_process_is_used_only_when_its_name_is_durable,
                        0, 2);
    tcase_add_test(tests, a_refused_event_never_reappears_while_its_log_stays);
    tcase_add_test(tests, recovery_shows_no_event_that_a_power_cut_could_remove);
    tcase_add_test(tests, a_checkpointed_region_is_never_redone);
    tcase_add_test(tests, no_append_and_no_checkpoint_waits_for_the_index);
    tcase_add_loop_test(tests, an_empty_journal_of_any_format_does_not_prevent_recovery, 0, 2);
    tcase_add_test(tests, a_journal_that_was_copied_into_place_is_durable_with_the_next_event);
    tcase_add_test(tests, no_power_cut_loses_a_group_that_was_synced_in_reserved_space);
    tcase_add_test(tests, a_region_is_reused_only_after_a_durable_group_released_it);
    tcase_add_test(tests, a_fork_makes_its_history_durable_for_every_writer_and_level);
    tcase_add_test(tests, a_finished_backup_is_complete_after_a_power_cut);
    tcase_add_test(tests, no_power_cut_loses_the_bytes_of_a_torn_tail_while_it_is_cut);
    return suite;
}
