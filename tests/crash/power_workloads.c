/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/power_workloads.h"

#include "journal/store.h"
#include "journal/sys/adopt.h"
#include "journal/sys/delete.h"
#include "tests/support/journals.h"

#include <annal/annal.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION_BYTES (1 << 20)

/* One process and its store. */
struct program {
    struct power_run *run;
    annal_store *store;
    annal_index *index;
    unsigned appended; /* numbers the events */
};

/* ---- Steps ---- */

static void begin(struct program *program, struct power_run *run, bool with_index)
{
    const annal_store_options options = {
        .create = true, .no_keeper = true, .wait_ms = 1, .region_bytes = REGION_BYTES};
    /* without a limit: states are explored while the index works */
    const annal_index_options index_options = {.follow = true, .wait_ms = INT32_MAX};
    *program = (struct program){.run = run, .appended = program->appended};
    ck_ok(power_open(sim_process_new(run->disk), &options, &program->store, err));
    if (with_index)
        ck_ok(annal_index_open(program->store, &index_options, &program->index, err));
}

static void end(struct program *program)
{
    annal_index_close(program->index);
    ck_ok(annal_store_close(program->store, err));
    model_sync(&program->run->model);
    program->store = NULL;
    program->index = NULL;
}

/* Append count events together, each with pad bytes of text. Sessions m… are stored as msgpack. */
static annal_status try_append(struct program *program, const char *session, size_t count,
                               size_t pad, annal_level level, annal_error *err)
{
    struct model *model = &program->run->model;
    annal_draft drafts[4] = {0};
    char *data[4] = {NULL}, ids[4][32];
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    const annal_append_options options = {.level = level};
    const annal_writer_options writer_options = {
        .format = session[0] == 'm' ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_DEFAULT};
    ck_assert_uint_le(count, 4);
    for (size_t i = 0; i < count; i++) {
        unsigned number = ++program->appended;
        data[i] = malloc(pad + 80);
        ck_assert_ptr_nonnull(data[i]);
        int length = snprintf(data[i], pad + 80, "{\"n\":%u,\"text\":\"", number);
        for (size_t j = 0; j < pad; j++)
            data[i][(size_t)length + j] = (char)('a' + (j * 7 + number) % 26);
        snprintf(data[i] + (size_t)length + pad, 3, "\"}");
        snprintf(ids[i], sizeof ids[i], "id-%u", number);
        drafts[i] = (annal_draft){
            .type = annal_slice_of(number % 5 == 0 ? "turn.completed" : "tool.called"),
            .data = annal_slice_of(data[i]),
            .id = annal_slice_of(number % 3 == 0 ? ids[i] : "")};
    }
    model_append(model, session, drafts, count, level);
    annal_status status =
        annal_writer_open(program->store, annal_slice_of(session), &writer_options, &writer, err);
    if (status == ANNAL_OK)
        status = annal_writer_append(writer, drafts, count, &options, &seq, err);
    annal_writer_close(writer);
    for (size_t i = 0; i < count; i++)
        free(data[i]);
    if (status == ANNAL_OK) {
        model_acknowledge(model, session, level);
        ck_assert_uint_eq(seq + count - 1, model_session(model, session)->count);
    } else if (status != ANNAL_ERR_UNKNOWN) {
        model_refuse(model, session, count);
    }
    return status;
}

static void append(struct program *program, const char *session, size_t count, size_t pad,
                   annal_level level)
{
    ck_ok(try_append(program, session, count, pad, level, err));
}

/* Ask another process to release the session that it owns. */
static void ask(struct program *program, const char *session)
{
    struct sim_disk *disk = program->run->disk;
    int64_t tick_us = disk->tick_us;
    disk->tick_us = 1000;
    ck_status(ANNAL_ERR_BUSY, try_append(program, session, 1, 50, ANNAL_LEVEL_SYNC, err));
    disk->tick_us = tick_us;
}

/* Another process may have to overwrite its log on request, and does not answer. */
static annal_status try_delete(struct program *program, const char *session, annal_error *err)
{
    struct sim_disk *disk = program->run->disk;
    int64_t tick_us = disk->tick_us;
    model_delete(&program->run->model, session);
    disk->tick_us = 1000;
    annal_status status = delete_wiped(program->store, annal_slice_of(session), NULL, err);
    disk->tick_us = tick_us;
    model_deleted(&program->run->model, session, status == ANNAL_OK);
    return status;
}

static void keep(struct program *program)
{
    ck_ok(annal_store_keep(program->store, err));
}

static void sync_store(struct program *program)
{
    ck_ok(annal_store_sync(program->store, err));
    model_sync(&program->run->model);
}

static void checkpoint(struct program *program)
{
    ck_ok(annal_store_checkpoint(program->store, err));
    model_sync(&program->run->model);
}

static void wait_seconds(struct program *program, int seconds)
{
    program->run->disk->now_us += (int64_t)seconds * 1000000;
}

static void snapshot(struct program *program, const char *session)
{
    annal_snapshot_info info;
    ck_ok(annal_snapshot_take(program->index, annal_slice_of(session), NULL, &info, err));
}

/* ---- Workloads ---- */

/* Sync and batch, several sessions, some events as one; a checkpoint, a quiet time, a second
 * life. */
static void run_levels(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, false);
    append(&program, "a", 1, 40, ANNAL_LEVEL_SYNC);
    append(&program, "b", 2, 700, ANNAL_LEVEL_BATCH);
    append(&program, "m", 3, 300, ANNAL_LEVEL_BATCH);
    sync_store(&program);
    append(&program, "c", 1, 5000, ANNAL_LEVEL_SYNC);
    append(&program, "b", 1, 10, ANNAL_LEVEL_BATCH);
    append(&program, "b", 1, 10, ANNAL_LEVEL_SYNC);
    checkpoint(&program);
    append(&program, "a", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "c", 4, 900, ANNAL_LEVEL_SYNC);
    append(&program, "m", 2, 600, ANNAL_LEVEL_SYNC);
    wait_seconds(&program, 6);
    keep(&program); /* empties the log */
    append(&program, "d", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "a", 1, 100, ANNAL_LEVEL_BATCH);
    wait_seconds(&program, 31);
    keep(&program);
    append(&program, "d", 2, 600, ANNAL_LEVEL_SYNC);
    end(&program);
    begin(&program, run, false);
    append(&program, "a", 1, 2000, ANNAL_LEVEL_SYNC);
    append(&program, "d", 1, 10, ANNAL_LEVEL_SYNC);
    end(&program);
}

/* Index, tables and snapshots, across a close and a deleted index. */
static void run_index(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, true);
    append(&program, "a", 3, 200, ANNAL_LEVEL_SYNC);
    append(&program, "b", 1, 200, ANNAL_LEVEL_SYNC);
    wait_seconds(&program, 1);
    keep(&program); /* indexes */
    append(&program, "a", 2, 800, ANNAL_LEVEL_SYNC);
    append(&program, "m", 3, 100, ANNAL_LEVEL_SYNC);
    snapshot(&program, "a");
    append(&program, "b", 2, 100, ANNAL_LEVEL_BATCH);
    sync_store(&program);
    wait_seconds(&program, 1);
    keep(&program);
    snapshot(&program, "m");
    end(&program);
    begin(&program, run, true);
    append(&program, "a", 1, 10, ANNAL_LEVEL_SYNC);
    ck_ok(annal_index_rebuild(program.index, NULL, err));
    append(&program, "c", 2, 10, ANNAL_LEVEL_SYNC);
    snapshot(&program, "c");
    end(&program);
}

/* Enough bytes to fill the regions of the log, one after the other. */
static void run_regions(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, false);
    append(&program, "small", 1, 100, ANNAL_LEVEL_SYNC);
    for (int i = 0; i < 9; i++) {
        append(&program, "large", 1, 300000, ANNAL_LEVEL_SYNC);
        append(&program, "small", 1, 100, ANNAL_LEVEL_SYNC);
        wait_seconds(&program, 1);
        keep(&program);
    }
    end(&program);
}

/* Two processes that take a session from each other. */
static void run_share(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    begin(&two, run, false);
    append(&one, "shared", 1, 100, ANNAL_LEVEL_SYNC);
    append(&two, "other", 1, 100, ANNAL_LEVEL_SYNC);
    for (int i = 0; i < 2; i++) {
        ask(&two, "shared");
        keep(&one); /* gives it back */
        append(&two, "shared", 2, 300, ANNAL_LEVEL_SYNC);
        append(&two, "other", 1, 100, ANNAL_LEVEL_BATCH);
        ask(&one, "shared");
        keep(&two);
        append(&one, "shared", 1, 100, ANNAL_LEVEL_SYNC);
    }
    annal_error none = {0};
    ck_assert_int_eq(annal_store_close(two.store, &none), ANNAL_OK);
    append(&one, "other", 1, 20, ANNAL_LEVEL_SYNC);
    end(&one);
}

/* Level os: kept when a process dies, and a prefix of it, or nothing, when the power goes. */
static void run_cached(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, false);
    append(&program, "a", 1, 700, ANNAL_LEVEL_OS);
    append(&program, "a", 1, 300, ANNAL_LEVEL_OS);
    append(&program, "a", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "b", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "b", 2, 900, ANNAL_LEVEL_OS);
    append(&program, "m", 1, 700, ANNAL_LEVEL_OS);
    append(&program, "m", 2, 200, ANNAL_LEVEL_OS);
    append(&program, "a", 1, 1200, ANNAL_LEVEL_OS);
    append(&program, "a", 1, 10, ANNAL_LEVEL_BATCH);
    sync_store(&program);
    append(&program, "b", 1, 10, ANNAL_LEVEL_OS);
    append(&program, "m", 1, 1100, ANNAL_LEVEL_OS);
    wait_seconds(&program, 31);
    keep(&program);
    append(&program, "b", 1, 600, ANNAL_LEVEL_OS);
    end(&program);
}

/* Level os in bulk: synced in the journal, across a checkpoint, and released. */
static void run_bulk(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 1, 300000, ANNAL_LEVEL_OS);
    append(&one, "b", 2, 700, ANNAL_LEVEL_OS);
    sync_store(&one);
    append(&one, "a", 1, 900, ANNAL_LEVEL_OS);
    append(&one, "b", 1, 900, ANNAL_LEVEL_OS);
    checkpoint(&one);
    append(&one, "a", 1, 700, ANNAL_LEVEL_OS);
    append(&one, "b", 1, 30, ANNAL_LEVEL_SYNC);
    append(&one, "b", 1, 700, ANNAL_LEVEL_OS);
    begin(&two, run, false);
    ck_status(ANNAL_ERR_BUSY, try_append(&two, "a", 1, 50, ANNAL_LEVEL_OS, err));
    keep(&one); /* gives it back, with what is loose in it */
    append(&two, "a", 2, 300, ANNAL_LEVEL_OS);
    append(&two, "a", 1, 300, ANNAL_LEVEL_SYNC);
    append(&two, "a", 1, 600, ANNAL_LEVEL_OS);
    ck_status(ANNAL_ERR_BUSY, try_append(&one, "a", 1, 50, ANNAL_LEVEL_OS, err));
    keep(&two);
    append(&one, "a", 1, 1100, ANNAL_LEVEL_OS);
    append(&one, "b", 1, 600, ANNAL_LEVEL_OS);
    annal_error none = {0};
    ck_assert_int_eq(annal_store_close(two.store, &none), ANNAL_OK);
    append(&one, "c", 1, 600, ANNAL_LEVEL_OS);
    end(&one);
    begin(&one, run, false);
    append(&one, "a", 1, 600, ANNAL_LEVEL_OS);
    end(&one);
}

/* Sessions are deleted and started again, also a session that has redo in the log of another
 * process. */
static void run_delete(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 2, 100, ANNAL_LEVEL_SYNC);
    append(&one, "b", 1, 600, ANNAL_LEVEL_BATCH);
    ck_ok(try_delete(&one, "a", err));
    append(&one, "a", 1, 50, ANNAL_LEVEL_SYNC);
    append(&one, "shared", 3, 200, ANNAL_LEVEL_SYNC);
    begin(&two, run, false);
    append(&two, "c", 1, 20, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_BUSY, try_delete(&two, "shared", err));
    keep(&one); /* gives it back, and keeps its redo */
    ck_ok(try_delete(&two, "shared", err));
    append(&one, "shared", 1, 700, ANNAL_LEVEL_SYNC);
    append(&two, "c", 1, 20, ANNAL_LEVEL_SYNC);
    end(&two);
    append(&one, "shared", 1, 10, ANNAL_LEVEL_SYNC);
    ck_ok(try_delete(&one, "b", err));
    end(&one);
}

/* Logs are overwritten: our own, the log of another process on request, and idle logs. */
static void run_wipe(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 2, 700, ANNAL_LEVEL_SYNC);
    append(&one, "b", 1, 40, ANNAL_LEVEL_BATCH);
    append(&one, "c", 1, 40, ANNAL_LEVEL_OS);
    ck_ok(try_delete(&one, "a", err));
    append(&one, "b", 1, 700, ANNAL_LEVEL_SYNC);
    append(&one, "large", 2, 3000, ANNAL_LEVEL_SYNC);
    append(&one, "b", 1, 20, ANNAL_LEVEL_SYNC);
    begin(&two, run, false);
    append(&two, "d", 2, 600, ANNAL_LEVEL_SYNC);
    ask(&two, "large");
    keep(&one); /* gives it back */
    ck_ok(try_delete(&two, "large", err));
    append(&two, "d", 1, 20, ANNAL_LEVEL_SYNC);
    append(&one, "b", 1, 20, ANNAL_LEVEL_SYNC); /* answers in passing */
    keep(&one);
    end(&one);
    append(&two, "d", 1, 20, ANNAL_LEVEL_BATCH);
    ck_ok(try_delete(&two, "c", err));
    append(&two, "d", 1, 20, ANNAL_LEVEL_SYNC);
    end(&two);
}

/* A deleted session also leaves the index, and its snapshots count for no other of its name. */
static void run_forget(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, true);
    append(&program, "a", 3, 200, ANNAL_LEVEL_SYNC);
    append(&program, "b", 1, 100, ANNAL_LEVEL_SYNC);
    snapshot(&program, "a");
    ck_ok(try_delete(&program, "a", err));
    append(&program, "a", 1, 50, ANNAL_LEVEL_SYNC);
    append(&program, "c", 1, 600, ANNAL_LEVEL_OS);
    ck_ok(try_delete(&program, "c", err));
    append(&program, "a", 2, 10, ANNAL_LEVEL_BATCH);
    sync_store(&program);
    wait_seconds(&program, 1);
    keep(&program);
    checkpoint(&program);
    ck_ok(try_delete(&program, "b", err));
    end(&program);
}

static void fork_session(struct program *program, const char *parent, size_t at_seq,
                         const char *child)
{
    struct model *model = &program->run->model;
    model_fork(model, parent, at_seq, child);
    ck_ok(annal_session_fork(program->store, annal_slice_of(parent), at_seq, annal_slice_of(child),
                             NULL, NULL, err));
    model_forked(model, parent, child);
}

/* Sessions are forked at any level of their events, also sessions of another process, and forks of
 * forks; some are deleted again. */
static void run_fork(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 2, 100, ANNAL_LEVEL_SYNC);
    append(&one, "a", 1, 600, ANNAL_LEVEL_BATCH);
    fork_session(&one, "a", 3, "f");
    append(&one, "f", 2, 50, ANNAL_LEVEL_SYNC);
    append(&one, "a", 1, 30, ANNAL_LEVEL_SYNC);
    append(&one, "m", 2, 700, ANNAL_LEVEL_OS);
    begin(&two, run, false);
    fork_session(&two, "m", 1, "mf"); /* the other process owns it */
    append(&two, "mf", 1, 20, ANNAL_LEVEL_OS);
    fork_session(&one, "f", 4, "g");
    fork_session(&one, "f", 2, "h");
    append(&one, "g", 1, 600, ANNAL_LEVEL_BATCH);
    ck_ok(try_delete(&one, "h", err));
    fork_session(&two, "m", 2, "h"); /* another session of this name */
    end(&two);
    end(&one);
}

static void convert(struct program *program, const char *session, annal_format format)
{
    annal_convert_result result;
    ck_ok(annal_session_convert(program->store, annal_slice_of(session),
                                &(annal_convert_options){.format = format}, &result, err));
}

/* Sessions change their format and continue, also a session that has redo in the log of another
 * process. */
static void run_convert(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 2, 100, ANNAL_LEVEL_SYNC);
    convert(&one, "a", ANNAL_FORMAT_MSGPACK);
    append(&one, "a", 1, 300, ANNAL_LEVEL_SYNC);
    append(&one, "shared", 2, 200, ANNAL_LEVEL_SYNC);
    begin(&two, run, false);
    append(&two, "c", 1, 20, ANNAL_LEVEL_SYNC);
    ck_status(ANNAL_ERR_BUSY, try_append(&two, "shared", 1, 50, ANNAL_LEVEL_SYNC, err));
    keep(&one); /* gives it back, and keeps its redo */
    convert(&two, "shared", ANNAL_FORMAT_MSGPACK);
    append(&two, "shared", 1, 60, ANNAL_LEVEL_SYNC);
    convert(&one, "a", ANNAL_FORMAT_JSON);
    append(&one, "a", 1, 10, ANNAL_LEVEL_SYNC);
    end(&two);
    end(&one);
}

/* A user copies a journal by hand, with the bytes in the page cache. */
static void copy_by_hand(struct program *program, const char *from, const char *session,
                         const char *suffix)
{
    static char bytes[1 << 16];
    char path[100];
    struct sim_process *hand = sim_process_new(program->run->disk);
    const struct io *io = &hand->io;
    model_copy(&program->run->model, session);
    snprintf(path, sizeof path, "%s/" POWER_STORE "/events/%s%s", hand->root, from, suffix);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    ssize_t length = annal__io_read_full(io, fd, bytes, sizeof bytes, 0);
    ck_assert(length > 0 && (size_t)length < sizeof bytes);
    snprintf(path, sizeof path, "%s/" POWER_STORE "/events/%s%s", hand->root, session, suffix);
    fd = io->open(io->arg, path, O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(annal__io_write_all(io, fd, bytes, (size_t)length, 0), 0);
    sim_process_close_all(hand);
}

/* Copies of journals that another process writes, which have their file ids, are deleted. */
static void run_copies(struct power_run *run)
{
    struct program one = {0}, two = {.appended = 1000};
    begin(&one, run, false);
    begin(&two, run, false);
    append(&two, "other", 1, 20, ANNAL_LEVEL_SYNC);
    append(&one, "orig", 2, 100, ANNAL_LEVEL_SYNC);
    append(&one, "m", 1, 300, ANNAL_LEVEL_SYNC);
    copy_by_hand(&one, "orig", "origbak", ".jsonl");
    copy_by_hand(&one, "m", "mbak", ".mpk");
    ck_ok(try_delete(&two, "origbak", err));
    append(&one, "orig", 1, 700, ANNAL_LEVEL_SYNC);
    ck_ok(try_delete(&one, "mbak", err));
    append(&one, "m", 2, 40, ANNAL_LEVEL_SYNC);
    copy_by_hand(&one, "orig", "before", ".jsonl");
    convert(&one, "orig", ANNAL_FORMAT_MSGPACK);
    append(&one, "orig", 1, 10, ANNAL_LEVEL_SYNC);
    ck_ok(try_delete(&two, "before", err));
    append(&one, "orig", 1, 10, ANNAL_LEVEL_BATCH);
    ck_ok(try_delete(&one, "m", err));
    end(&two);
    end(&one);
}

/* The store that a bundle was laid down in, beside ours; this process alone uses it. */
static annal_store *open_stage(const struct program *program, bool to_read)
{
    char path[64];
    annal_store *store = NULL;
    const struct io *io = program->store->context.io;
    const struct sim_process *process = io->arg;
    const struct sim_disk *disk = process->disk;
    const struct seams seams = {.io = io, .clock = &disk->clock, .boot = disk->boot};
    const annal_store_options options = {
        .create = !to_read, .no_keeper = true, .read_only = to_read, .region_bytes = REGION_BYTES};
    snprintf(path, sizeof path, "%s/stage", process->root);
    ck_ok(annal__store_open(path, &options, &seams, &store, err));
    return store;
}

static void adopt(struct program *program, const struct program *staged, const char *session)
{
    model_adopt(&program->run->model, &staged->run->model, session);
    ck_ok(annal__journal_adopt(program->store, staged->store, annal_slice_of(session), err));
    model_adopted(&program->run->model, session);
}

/* Sessions are adopted, continued, deleted and adopted again. */
static void run_bundles(struct power_run *run)
{
    struct power_run stage = {.disk = run->disk};
    struct program one = {0}, staged = {.run = &stage, .appended = 1000};
    begin(&one, run, false);
    append(&one, "a", 2, 100, ANNAL_LEVEL_SYNC);
    staged.store = open_stage(&one, false);
    append(&staged, "b", 2, 700, ANNAL_LEVEL_SYNC);
    append(&staged, "m", 3, 100, ANNAL_LEVEL_BATCH);
    append(&staged, "c", 1, 30, ANNAL_LEVEL_SYNC);
    end(&staged);
    staged.store = open_stage(&one, true);
    adopt(&one, &staged, "b");
    append(&one, "b", 1, 600, ANNAL_LEVEL_SYNC);
    adopt(&one, &staged, "m");
    append(&one, "m", 1, 50, ANNAL_LEVEL_BATCH);
    append(&one, "a", 1, 50, ANNAL_LEVEL_SYNC);
    ck_ok(try_delete(&one, "b", err));
    adopt(&one, &staged, "c");
    append(&one, "b", 1, 20, ANNAL_LEVEL_SYNC);
    ck_ok(annal_store_close(staged.store, err));
    model_done(&stage.model);
    end(&one);
}

static void append_created(struct program *program, const char *session)
{
    annal_writer *writer = NULL;
    uint64_t seq = 0;
    const annal_draft draft = {.type = ANNAL_SLICE("session.created"), .data = ANNAL_SLICE("{}")};
    struct model *model = &program->run->model;
    model_append(model, session, &draft, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_writer_open(program->store, annal_slice_of(session), NULL, &writer, err));
    ck_ok(annal_writer_append(writer, &draft, 1, NULL, &seq, err));
    annal_writer_close(writer);
    model_acknowledge(model, session, ANNAL_LEVEL_SYNC);
}

/* An annal_prune_fn. */
static int delete_pruned(void *arg, const annal_pruned *pruned)
{
    struct program *program = arg;
    char session[40];
    snprintf(session, sizeof session, "%.*s", ANNAL_FMT(pruned->session));
    ck_assert_ptr_null(pruned->kept);
    model_acknowledge(&program->run->model, session, ANNAL_LEVEL_SYNC);
    ck_ok(try_delete(program, session, err));
    return 0;
}

/* Sessions leave the tables by an event, and then the store. */
static void run_prune(struct power_run *run)
{
    struct program program = {0};
    char cutoff[ANNAL_TIME_BYTES], data[100];
    begin(&program, run, true);
    append_created(&program, "p");
    append_created(&program, "q");
    append(&program, "a", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "q", 2, 100, ANNAL_LEVEL_SYNC);
    const annal_prune_options options = {.before_us = run->disk->now_us + INT64_C(86400000000),
                                         .delete_journals = true};
    annal_time_format(options.before_us, cutoff);
    snprintf(data, sizeof data, "{\"cutoff\":\"%s\",\"keep_n\":0,\"messages\":[]}", cutoff);
    const annal_draft draft = {.type = ANNAL_SLICE("session.pruned"), .data = annal_slice_of(data)};
    model_append(&run->model, "p", &draft, 1, ANNAL_LEVEL_SYNC);
    model_append(&run->model, "q", &draft, 1, ANNAL_LEVEL_SYNC);
    ck_ok(annal_session_prune(program.index, &options, delete_pruned, &program, err));
    append(&program, "q", 1, 20, ANNAL_LEVEL_SYNC);
    append(&program, "a", 1, 20, ANNAL_LEVEL_SYNC);
    end(&program);
}

/* The next operation of this kind on such a file fails. */
static void fail_next(struct program *program, enum sim_op_kind kind, const char *name, int with)
{
    program->run->fail_kind = kind;
    program->run->fail_errno = with;
    program->run->fail_name = name;
}

/* Events that exist after the store was opened again stay; others never appear. */
static void settle(struct program *program, const char *name)
{
    annal_session_info info = {0};
    struct model_session *session = model_session(&program->run->model, name);
    annal_error err = {0};
    annal_status status = annal_session_info_get(program->store, annal_slice_of(name), &info, &err);
    ck_assert_msg(status == ANNAL_OK || status == ANNAL_ERR_NOTFOUND, "%s", err.message);
    ck_assert_uint_le(info.last_seq, session->count);
    model_refuse(&program->run->model, name, session->count - (size_t)info.last_seq);
    model_sync(&program->run->model);
}

/* An append under which storage fails; where its outcome is unknown, the store is opened again. */
static void append_failing(struct program *program, const char *session)
{
    annal_error err = {0};
    annal_status status = try_append(program, session, 2, 700, ANNAL_LEVEL_SYNC, &err);
    ck_assert_int_ne(status, ANNAL_OK);
    ck_assert_ptr_null(program->run->fail_name);
    if (status != ANNAL_ERR_UNKNOWN)
        return;
    (void)annal_store_close(program->store, NULL);
    begin(program, program->run, false);
    settle(program, session);
}

/* The log cannot be written, or not be synced, and so on through what follows from it. */
static void run_failing_log(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, false);
    append(&program, "a", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "b", 1, 600, ANNAL_LEVEL_SYNC);
    fail_next(&program, SIM_WRITE, ".log", ENOSPC);
    append_failing(&program, "a");
    append(&program, "a", 1, 900, ANNAL_LEVEL_SYNC);
    fail_next(&program, SIM_SYNC, ".log", EIO);
    append_failing(&program, "a");
    append(&program, "a", 1, 300, ANNAL_LEVEL_SYNC);
    append(&program, "b", 2, 50, ANNAL_LEVEL_BATCH);
    sync_store(&program);
    wait_seconds(&program, 31);
    keep(&program);
    fail_next(&program, SIM_SYNC, ".log", EIO);
    append_failing(&program, "c");
    append(&program, "c", 1, 20, ANNAL_LEVEL_SYNC);
    end(&program);
}

/* A journal can be neither written nor synced: the log has the acknowledged events, and restores
 * them. */
static void run_failing_journals(struct power_run *run)
{
    struct program program = {0};
    begin(&program, run, false);
    append(&program, "a", 1, 100, ANNAL_LEVEL_SYNC);
    append(&program, "m", 1, 100, ANNAL_LEVEL_SYNC);
    fail_next(&program, SIM_WRITE, "a.jsonl", EIO);
    append(&program, "a", 1, 700, ANNAL_LEVEL_SYNC); /* durable is durable */
    ck_assert_ptr_null(run->fail_name);
    wait_seconds(&program, 31);
    keep(&program); /* writes it */
    append(&program, "a", 1, 200, ANNAL_LEVEL_SYNC);
    fail_next(&program, SIM_SYNC, "a.jsonl", EIO);
    checkpoint(&program); /* writes it again */
    ck_assert_ptr_null(run->fail_name);
    append(&program, "a", 1, 200, ANNAL_LEVEL_SYNC);
    append(&program, "m", 2, 600, ANNAL_LEVEL_SYNC);
    fail_next(&program, SIM_SYNC, "m.mpk", EIO);
    ck_ok(annal_store_close(program.store, err));
    ck_assert_ptr_null(run->fail_name);
    model_sync(&run->model);
    begin(&program, run, false);
    append(&program, "m", 1, 20, ANNAL_LEVEL_SYNC);
    end(&program);
}

/* As "failing"; but what the failed syncs did not vouch for is on the disk. */
static void run_ghosts(struct power_run *run)
{
    run->disk->failed_syncs_write = true;
    run_failing_log(run);
}

const struct power_workload power_workloads[] = {
    {.name = "levels", .run = run_levels},
    {.name = "cached", .run = run_cached},
    {.name = "bulk", .run = run_bulk},
    {.name = "index", .run = run_index},
    {.name = "regions", .run = run_regions},
    {.name = "share", .run = run_share},
    {.name = "delete", .run = run_delete},
    {.name = "wipe", .run = run_wipe},
    {.name = "convert", .run = run_convert},
    {.name = "copies", .run = run_copies},
    {.name = "bundles", .run = run_bundles},
    {.name = "prune", .run = run_prune},
    {.name = "fork", .run = run_fork},
    {.name = "forget", .run = run_forget},
    {.name = "failing", .run = run_failing_log},
    {.name = "ghosts", .run = run_ghosts},
    {.name = "behind", .run = run_failing_journals},
    {.name = NULL},
};
