/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/power_check.h"

#include "journal/store.h"
#include "tests/support/sim_vfs.h"

#include <annal/annal.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Saying what is wrong ---- */

static bool wrong(struct power_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool wrong(struct power_check *check, const char *format, ...)
{
    va_list args;
    if (check->why[0] != '\0')
        return false; /* what was wrong first counts */
    va_start(args, format);
    int length = vsnprintf(check->why, sizeof check->why, format, args);
    va_end(args);
    if (length > 0 && (size_t)length < sizeof check->why && check->log[0] != '\0')
        snprintf(check->why + length, sizeof check->why - (size_t)length, "\n  the store said: %s",
                 check->log);
    return false;
}

static void note_log(void *arg, annal_log_level level, const char *message)
{
    struct power_check *check = arg;
    (void)level;
    snprintf(check->log, sizeof check->log, "%s", message);
}

/* ---- Opening ---- */

annal_status power_open(struct sim_process *process, const annal_store_options *options,
                        annal_store **out_store, annal_error *err)
{
    char path[64];
    const struct seams seams = {
        .io = &process->io, .clock = &process->disk->clock, .boot = process->disk->boot};
    snprintf(path, sizeof path, "%s/" POWER_STORE, process->root);
    sim_vfs_register();
    return annal__store_open(path, options, &seams, out_store, err);
}

static bool open_store(struct power_check *check, struct sim_disk *disk, annal_store **out_store)
{
    annal_error err = {0};
    const annal_store_options options = {.create = true,
                                         .no_keeper = true,
                                         .wait_ms = 1,
                                         .region_bytes = 1 << 20,
                                         .log = note_log,
                                         .log_arg = check};
    check->recoveries++;
    annal_status status = power_open(sim_process_new(disk), &options, out_store, &err);
    return status == ANNAL_OK || wrong(check, "the store does not open: %s", err.message);
}

static bool close_store(struct power_check *check, annal_store *store)
{
    annal_error err = {0};
    annal_status status = annal_store_close(store, &err);
    return status == ANNAL_OK || wrong(check, "the store does not close: %s", err.message);
}

/* ---- Events ---- */

static bool same(annal_slice slice, const char *text)
{
    return slice.len == strlen(text) && (slice.len == 0 || memcmp(slice.ptr, text, slice.len) == 0);
}

static bool check_event(struct power_check *check, const struct model_session *session,
                        const annal_event *event, uint64_t seq)
{
    if (event->seq != seq)
        return wrong(check, "session %s: event %" PRIu64 " stands where %" PRIu64 " should",
                     session->name, event->seq, seq);
    if (seq > session->count)
        return wrong(check, "session %s: event %" PRIu64 " was never appended", session->name, seq);
    const struct model_event *expected = &session->events[seq - 1];
    if (!same(event->type, expected->type) || !same(event->id, expected->id) ||
        !same(event->data, expected->data))
        return wrong(check, "session %s: event %" PRIu64 " is not the one that was appended",
                     session->name, seq);
    return true;
}

/* Read the events of a session; *out_count is their number. */
static bool read_events(struct power_check *check, annal_store *store,
                        const struct model_session *session, size_t *out_count)
{
    annal_error err = {0};
    annal_cursor *cursor = NULL;
    annal_event event;
    bool good = true;
    *out_count = 0;
    annal_status status = annal_cursor_open(store, annal_slice_of(session->name), 1, &cursor, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return true;
    while (status == ANNAL_OK && good) {
        status = annal_cursor_next(cursor, &event, &err);
        if (status == ANNAL_OK)
            good = check_event(check, session, &event, ++*out_count);
    }
    if (good && status == ANNAL_DAMAGE)
        good = wrong(check, "session %s is damaged behind event %zu: %s", session->name, *out_count,
                     annal_cursor_damage(cursor).what);
    else if (good && status < 0)
        good = wrong(check, "session %s cannot be read: %s", session->name, err.message);
    annal_cursor_close(cursor);
    return good;
}

static void note_finding(void *arg, const annal_finding *finding)
{
    struct power_check *check = arg;
    snprintf(check->log, sizeof check->log, "at seq %" PRIu64 ": %s", finding->seq, finding->what);
}

static bool check_session(struct power_check *check, annal_store *store,
                          const struct model_session *session, size_t *out_count)
{
    annal_error err = {0};
    annal_verify_result result = {0};
    size_t promised = check->killed ? session->kept : session->durable;
    if (check->killed && session->durable > promised)
        promised = session->durable;
    if (!read_events(check, store, session, out_count))
        return false;
    if (session->deleting && *out_count == 0)
        return true;
    if (*out_count < promised)
        return wrong(check, "session %s: %zu events are left, %zu were acknowledged", session->name,
                     *out_count, promised);
    if (*out_count < session->count && session->events[*out_count].joined)
        return wrong(check, "session %s: event %zu is left and %zu, appended with it, is not",
                     session->name, *out_count, *out_count + 1);
    annal_status status = annal_session_verify(store, annal_slice_of(session->name), note_finding,
                                               check, &result, &err);
    if (status == ANNAL_ERR_NOTFOUND && *out_count == 0)
        return true;
    if (status != ANNAL_OK)
        return wrong(check, "session %s cannot be verified: %s", session->name, err.message);
    if (result.findings > 0 || result.last_seq != *out_count)
        return wrong(check, "session %s: %" PRIu64 " findings, last seq %" PRIu64 " of %zu",
                     session->name, result.findings, result.last_seq, *out_count);
    return true;
}

struct strangers {
    struct power_check *check;
    bool good;
};

static int is_expected(void *arg, annal_slice session, uint64_t bytes)
{
    struct strangers *strangers = arg;
    (void)bytes;
    const struct model_session *known = model_find(strangers->check->model, session);
    if (known == NULL)
        strangers->good =
            wrong(strangers->check, "session %.*s was never begun", ANNAL_FMT(session));
    else if (known->copy && !known->deleting)
        strangers->good =
            wrong(strangers->check, "the copy %.*s was deleted and is there", ANNAL_FMT(session));
    return strangers->good ? 0 : 1;
}

static bool check_sessions(struct power_check *check, annal_store *store,
                           size_t counts[MODEL_SESSIONS])
{
    struct strangers strangers = {check, true};
    annal_error err = {0};
    for (size_t i = 0; i < check->model->count; i++) {
        if (!check->model->sessions[i].copy &&
            !check_session(check, store, &check->model->sessions[i], &counts[i]))
            return false;
    }
    if (annal_session_each(store, is_expected, &strangers, &err) < 0)
        return wrong(check, "the sessions cannot be listed: %s", err.message);
    return strangers.good;
}

/* ---- Going on ---- */

static bool append_more(struct power_check *check, annal_store *store,
                        const size_t counts[MODEL_SESSIONS])
{
    for (size_t i = 0; i < check->model->count; i++) {
        const struct model_session *session = &check->model->sessions[i];
        annal_error err = {0};
        annal_writer *writer = NULL;
        const annal_draft draft = {.type = ANNAL_SLICE("after.crash"), .data = ANNAL_SLICE("{}")};
        const annal_append_options options = {
            .level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ, .expected_seq = counts[i]};
        uint64_t seq = 0;
        if (session->copy)
            continue;
        annal_status status =
            annal_writer_open(store, annal_slice_of(session->name), NULL, &writer, &err);
        if (status == ANNAL_OK)
            status = annal_writer_append(writer, &draft, 1, &options, &seq, &err);
        annal_writer_close(writer);
        if (status != ANNAL_OK || seq != counts[i] + 1)
            return wrong(check, "session %s takes no event after %zu: %s", session->name, counts[i],
                         err.message);
    }
    return true;
}

/* ---- The index ---- */

/* A hash of rows, FNV-1a. */
static void dump_bytes(uint64_t *dump, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++)
        *dump = (*dump ^ at[i]) * UINT64_C(0x100000001b3);
}

static int dump_row(void *arg, const annal_row *row)
{
    uint64_t *dump = arg;
    for (size_t i = 0; i < row->count; i++) {
        const annal_value *value = &row->values[i];
        dump_bytes(dump, &value->kind, sizeof value->kind);
        dump_bytes(dump, &value->integer, sizeof value->integer);
        dump_bytes(dump, &value->real, sizeof value->real);
        dump_bytes(dump, value->bytes.ptr, value->bytes.len);
        dump_bytes(dump, "|", 1);
    }
    return 0;
}

static bool dump_index(struct power_check *check, annal_index *index, uint64_t *out_hash)
{
    static const char *const selects[] = {
        "SELECT * FROM event_index ORDER BY session_id, seq",
        "SELECT * FROM sessions ORDER BY 1",
        "SELECT * FROM turns ORDER BY 1, 2, 3",
        "SELECT * FROM tool_calls ORDER BY 1, 2, 3",
        "SELECT * FROM forks ORDER BY 1",
        "SELECT * FROM _counts ORDER BY 1, 2",
        "SELECT * FROM _cursor ORDER BY 1",
        "SELECT * FROM _findings ORDER BY 1, 2, 3",
    };
    uint64_t dump = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof selects / sizeof *selects; i++) {
        annal_error err = {0};
        annal_status status =
            annal_index_sql(index, annal_slice_of(selects[i]), NULL, dump_row, &dump, &err);
        if (status < 0)
            return wrong(check, "%s: %s", selects[i], err.message);
        dump_bytes(&dump, "#", 1);
    }
    *out_hash = dump;
    return true;
}

static void note_replay(void *arg, const annal_replay_finding *finding)
{
    struct power_check *check = arg;
    snprintf(check->log, sizeof check->log, "snapshot at %" PRIu64 ": %s", finding->seq,
             finding->what);
}

/* An annal_snapshot_fn. */
static int count_snapshot(void *arg, annal_slice session, const annal_snapshot_info *info,
                          const char *problem)
{
    (void)session, (void)info, (void)problem;
    (*(unsigned *)arg)++;
    return 0;
}

static bool check_snapshots(struct power_check *check, annal_index *index,
                            const size_t counts[MODEL_SESSIONS])
{
    for (size_t i = 0; i < check->model->count; i++) {
        const struct model_session *session = &check->model->sessions[i];
        annal_replay_verify_result result = {0};
        const annal_replay_verify_options options = {.finding = note_replay, .arg = check};
        annal_error err = {0};
        unsigned some = 0;
        if (counts[i] == 0)
            continue;
        annal_status status =
            annal_snapshot_each(index, annal_slice_of(session->name), count_snapshot, &some, &err);
        if (status >= 0 && some == 0) /* folding twice, which is most of what a check costs */
            continue;
        if (status >= 0)
            status =
                annal_replay_verify(index, annal_slice_of(session->name), &options, &result, &err);
        if (status < 0 || result.findings > 0)
            return wrong(check, "session %s: %" PRIu64 " snapshots give another state: %s",
                         session->name, result.findings, err.message);
    }
    return true;
}

static bool check_index(struct power_check *check, annal_store *store,
                        const size_t counts[MODEL_SESSIONS])
{
    annal_index *index = NULL;
    annal_error err = {0};
    uint64_t caught_up = 0, fresh = 0;
    const annal_index_options options = {.wait_ms = 120000}; /* a busy machine */
    const annal_catch_up_options patient = {.timeout_ms = ANNAL_NO_TIMEOUT};
    check->index_checks++;
    if (annal_index_open(store, &options, &index, &err) < 0)
        return wrong(check, "the index does not open: %s", err.message);
    bool good = true;
    if (annal_index_catch_up(index, (annal_slice){NULL, 0}, &patient, &err) < 0)
        good = wrong(check, "the index does not catch up: %s", err.message);
    good = good && dump_index(check, index, &caught_up) && check_snapshots(check, index, counts);
    if (good && annal_index_rebuild(index, NULL, &err) < 0)
        good = wrong(check, "the index is not rebuilt: %s", err.message);
    good = good && dump_index(check, index, &fresh);
    if (good && caught_up != fresh)
        good = wrong(check, "the index is not what a fresh rebuild gives");
    annal_index_close(index);
    return good;
}

/* ---- All of it ---- */

bool power_check_disk(struct power_check *check, struct sim_disk *disk)
{
    size_t counts[MODEL_SESSIONS] = {0}, again[MODEL_SESSIONS] = {0};
    annal_store *store = NULL;
    check->why[0] = check->log[0] = '\0';
    bool good = open_store(check, disk, &store);
    good = good && check_sessions(check, store, counts);
    good = close_store(check, store) && good;
    if (!good)
        return false;

    uint64_t once = sim_disk_hash(disk, POWER_STORE "/events");
    store = NULL;
    good = open_store(check, disk, &store);
    if (good && sim_disk_hash(disk, POWER_STORE "/events") != once)
        good = wrong(check, "opening the store once more changes its journals");
    good = good && (!check->with_index || check_index(check, store, counts));
    good = good && append_more(check, store, counts);
    for (size_t i = 0; good && i < check->model->count; i++) {
        annal_verify_result result = {0};
        annal_error err = {0};
        if (check->model->sessions[i].copy)
            continue;
        annal_status status = annal_session_verify(
            store, annal_slice_of(check->model->sessions[i].name), NULL, NULL, &result, &err);
        again[i] = (size_t)result.last_seq;
        if (status != ANNAL_OK || result.findings > 0 || again[i] != counts[i] + 1)
            good = wrong(check, "session %s is damaged after another append: %s",
                         check->model->sessions[i].name, err.message);
    }
    return close_store(check, store) && good;
}
