/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending sessions whose process died without recording it.
 *
 * (1) A session is ended only if it runs, has been silent for longer than its kind allows (views of
 *     the pack teams) and than the caller requires, and its process is proven dead
 *     (annal/process.h). A session that recorded no process is never ended, because nothing can be
 *     proven about its process. A session that another process has taken over without recording it
 *     is not ended either.
 * (2) The event contains the time of the last activity that was found (quiet_since). When the event
 *     is appended, the guards of the pack lionagi check again that the session still runs and has
 *     been silent since this time. A session that ended or became active in the meantime is
 *     skipped.
 * (3) Each transition is an event in the session, followed by an event in the session _state, which
 *     records the operator's action. No transaction contains events of two sessions, so the second
 *     event names the first as its cause, and has an id, so that it is not appended twice. This id
 *     contains a hash of the session's id, because the session's id may be as long as an event's id
 *     can be.
 */
#include "index/sys/open.h"
#include "index/sys/pack.h"
#include "journal/sys/inspect.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"

#include <annal/pack.h>
#include <annal/packs/lifecycle.h>
#include <annal/process.h>
#include <annal/query.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A running session that has been silent for longer than is allowed. */
struct quiet {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char kind[40];
    double last_activity; /* time of the last activity, in seconds since 1970; 0: none */
    double allowed;       /* how long a session of this kind may be silent, in seconds */
    annal_process process;
};

struct stale {
    annal_index *index;
    const annal_stale_options *how;
    annal_slice actor;
    annal_stale_fn fn;
    void *arg;
    double now;
    struct quiet *found;
    size_t count;
    annal_error first; /* first failure to end a session; status 0: none */
};

/* ---- Looking ---- */

/* Check that a pack is enabled and can be run. ANNAL_ERR_NOTFOUND: it is not enabled. */
static annal_status need_pack(annal_index *index, const char *pack, annal_error *err)
{
    annal_status status = annal__packs_have(index, pack, err);
    if (status == ANNAL_ERR_NOTFOUND)
        annal__fail(err, status, "pack %s is not enabled in this store", pack);
    return status;
}

extern const char annal__sql_quiet[];

static double real_of(const annal_value *value)
{
    return value->kind == ANNAL_VALUE_INTEGER ? (double)value->integer : value->real;
}

static uint64_t whole_of(const annal_value *value, int64_t most)
{
    bool good = value->kind == ANNAL_VALUE_INTEGER && value->integer > 0 && value->integer <= most;
    return good ? (uint64_t)value->integer : 0;
}

static int keep_quiet(void *arg, const annal_row *row)
{
    struct stale *stale = arg;
    const annal_value *values = row->values;
    struct quiet *quiet = annal__array_add(&stale->found, &stale->count, sizeof *quiet);
    if (quiet == NULL)
        return ANNAL_ERR_NOMEM;
    *quiet = (struct quiet){.last_activity = real_of(&values[2]), .allowed = real_of(&values[3])};
    snprintf(quiet->session, sizeof quiet->session, "%.*s", ANNAL_FMT(values[0].bytes));
    snprintf(quiet->kind, sizeof quiet->kind, "%.*s", ANNAL_FMT(values[1].bytes));
    quiet->process.pid = (uint32_t)whole_of(&values[4], INT32_MAX);
    quiet->process.start = whole_of(&values[5], INT64_MAX);
    quiet->process.pid_ns = whole_of(&values[6], INT64_MAX);
    if (values[7].kind == ANNAL_VALUE_TEXT)
        snprintf(quiet->process.boot_id, sizeof quiet->process.boot_id, "%.*s",
                 ANNAL_FMT(values[7].bytes));
    return 0;
}

static annal_status look(struct stale *stale, annal_error *err)
{
    const annal_value params[] = {{.kind = ANNAL_VALUE_REAL, .real = stale->now},
                                  {.kind = ANNAL_VALUE_REAL, .real = stale->how->silence_s}};
    const annal_sql_options options = {.params = params, .param_count = 2};
    annal_status status = need_pack(stale->index, "lionagi", err);
    if (status == ANNAL_OK)
        status = need_pack(stale->index, "teams", err);
    if (status == ANNAL_OK)
        status = annal_index_sql(stale->index, annal_slice_of(annal__sql_quiet), &options,
                                 keep_quiet, stale, err);
    if (status == ANNAL_ERR_NOMEM)
        annal__fail(err, status, "list stale sessions: out of memory");
    return status;
}

/* ---- Ending ---- */

/* An event to append. */
struct post {
    annal_slice session;
    annal_slice type;
    annal_slice id;    /* id of the event, or empty */
    annal_slice cause; /* cause of the event, or empty */
    uint32_t wait_ms;  /* time in ms to wait for another process that writes the session */
};

/* Append the event through the packs, at level sync. The caller frees out->data.ptr with
 * annal_free(). */
static annal_status append(annal_index *index, const struct post *post, annal_slice data,
                           annal_appended *out, annal_error *err)
{
    annal_writer *writer = NULL;
    const annal_append_options options = {.level = ANNAL_LEVEL_SYNC};
    const annal_draft draft = {
        .type = post->type, .data = data, .id = post->id, .cause = post->cause};
    annal_status status =
        annal_writer_open(annal__index_store(index), post->session,
                          &(annal_writer_options){.wait_ms = post->wait_ms}, &writer, err);
    if (status == ANNAL_OK)
        status = annal_pack_append(index, writer, &draft, 1, &options, out, err);
    annal_writer_close(writer);
    return status;
}

static annal_status write_transition(const struct stale *stale, const struct quiet *quiet,
                                     const char *why, struct buf *out)
{
    char process[ANNAL_PROCESS_JSON_BYTES];
    annal__buf_printf(out,
                      "{\"expected\":[\"running\"],\"to\":\"failed\",\"reason_code\":\"session."
                      "stale.no_heartbeat\",\"reason_summary\":\"silent for %.1f h, and "
                      "%s\",\"quiet_since\":%.17g,\"source\":\"admin\",\"actor\":",
                      (stale->now - quiet->last_activity) / 3600, why, quiet->last_activity);
    annal__json_quote(out, stale->actor);
    annal_status status = annal__buf_printf(
        out,
        ",\"evidence_refs\":[{\"kind\":\"session_health\",\"health\":\"stale\","
        "\"last_activity\":%.17g,\"threshold_seconds\":%.17g,\"process_dead\":true,"
        "\"why\":\"%s\",\"process\":%s}]}",
        quiet->last_activity, quiet->allowed, why, annal_process_json(&quiet->process, process));
    return status;
}

static annal_status write_record(const struct stale *stale, const struct quiet *quiet, uint64_t seq,
                                 const char *why, struct buf *out)
{
    annal__json_put(out, "{\"action\":\"transition\",\"target_id\":\"#\",\"actor\":?",
                    annal_slice_of(quiet->session), stale->actor);
    return annal__buf_printf(
        out, ",\"details\":{\"to\":\"failed\",\"seq\":%" PRIu64 ",\"why\":\"%s\"}}", seq, why);
}

static annal_status record(const struct stale *stale, const struct quiet *quiet, uint64_t seq,
                           const char *why, annal_error *err)
{
    char id[60], cause[ANNAL_CAUSE_BYTES_MAX + 1];
    SCOPED_BUF data = {0};
    annal_appended appended = {0};
    snprintf(cause, sizeof cause, "%s:%" PRIu64, quiet->session, seq);
    snprintf(id, sizeof id, "t:%016" PRIx64 ":%" PRIu64,
             annal__hash(quiet->session, strlen(quiet->session), 0), seq);
    const struct post post = {.session = ANNAL_SLICE("_state"),
                              .type = ANNAL_SLICE("admin.recorded"),
                              .id = annal_slice_of(id),
                              .cause = annal_slice_of(cause),
                              .wait_ms = stale->how->wait_ms};
    annal_status status = write_record(stale, quiet, seq, why, &data);
    if (status < 0)
        annal__fail(err, status, "session '%s': out of memory", quiet->session);
    else
        status = append(stale->index, &post, annal__buf_slice(&data), &appended, err);
    annal_free(appended.data.ptr);
    return status;
}

/* Append the event that ends a session. ANNAL_ERR_REFUSED: the session ended or became active in
 * the meantime; err->message is the guard's sentence. */
static annal_status end_session(const struct stale *stale, const struct quiet *quiet,
                                const char *why, uint64_t *out_seq, annal_error *err)
{
    SCOPED_BUF data = {0};
    annal_appended appended = {0};
    const struct post post = {.session = annal_slice_of(quiet->session),
                              .type = ANNAL_SLICE("session.transition"),
                              .wait_ms = stale->how->wait_ms};
    annal_status status = write_transition(stale, quiet, why, &data);
    if (status < 0)
        annal__fail(err, status, "session '%s': out of memory", quiet->session);
    else
        status = append(stale->index, &post, annal__buf_slice(&data), &appended, err);
    if (status == ANNAL_OK)
        *out_seq = appended.seq;
    annal_free(appended.data.ptr);
    return status;
}

static int tell(const struct stale *stale, const struct quiet *quiet, annal_stale_result result,
                const char *reason)
{
    const annal_stale report = {.session = annal_slice_of(quiet->session),
                                .kind = annal_slice_of(quiet->kind),
                                .last_activity = quiet->last_activity,
                                .threshold = quiet->allowed,
                                .result = result,
                                .reason = reason};
    return stale->fn == NULL ? 0 : stale->fn(stale->arg, &report);
}

static int report_error(struct stale *stale, const struct quiet *quiet, const annal_error *error)
{
    const annal_stale report = {.session = annal_slice_of(quiet->session),
                                .kind = annal_slice_of(quiet->kind),
                                .last_activity = quiet->last_activity,
                                .threshold = quiet->allowed,
                                .result = ANNAL_STALE_ERROR,
                                .status = error->status,
                                .reason = error->message};
    if (stale->first.status == ANNAL_OK)
        stale->first = *error;
    return stale->fn == NULL ? 0 : stale->fn(stale->arg, &report);
}

/* Return whether another process has taken the session over without recording it, or this cannot be
 * found out. If so, why is the reason for which the session is not ended. */
static bool is_taken(struct stale *stale, const struct quiet *quiet, char *why, size_t size)
{
    annal_error err = {0};
    uint32_t pid = 0;
    annal_status status = annal__log_session_owner(annal__index_store(stale->index),
                                                   annal_slice_of(quiet->session), &pid, &err);
    if (status < 0)
        snprintf(why, size, "%s", err.message);
    else if (pid != 0)
        snprintf(why, size,
                 "its process is dead, and process %" PRIu32 " has taken the session over", pid);
    return status < 0 || pid != 0;
}

static int judge(struct stale *stale, const struct quiet *quiet)
{
    char reason[700];
    const char *why = NULL;
    uint64_t seq = 0;
    annal_error err = {0};
    bool dead = annal_process_is_dead(&quiet->process, &why);
    if (!dead || is_taken(stale, quiet, reason, sizeof reason))
        return tell(stale, quiet, ANNAL_STALE_LEFT, dead ? reason : why);
    snprintf(reason, sizeof reason, "stale for %.1f h, and %s",
             (stale->now - quiet->last_activity - quiet->allowed) / 3600, why);
    if (stale->how->dry_run)
        return tell(stale, quiet, ANNAL_STALE_ENDED, reason);
    annal_status status = end_session(stale, quiet, why, &seq, &err);
    if (status == ANNAL_ERR_REFUSED)
        return tell(stale, quiet, ANNAL_STALE_LEFT, err.message);
    if (status < 0)
        return report_error(stale, quiet, &err);
    status = record(stale, quiet, seq, why, &err);
    int stop = tell(stale, quiet, ANNAL_STALE_ENDED, reason);
    return stop == 0 && status < 0 ? report_error(stale, quiet, &err) : stop;
}

annal_status annal_transition_stale(annal_index *index, const annal_stale_options *options,
                                    annal_stale_fn fn, void *arg, annal_error *err)
{
    const annal_stale_options none = {0};
    struct stale stale = {
        .index = index, .how = options != NULL ? options : &none, .fn = fn, .arg = arg};
    stale.actor = stale.how->actor.len > 0 ? stale.how->actor : ANNAL_SLICE("annal");
    stale.now = (double)annal__system_clock.wall_us(annal__system_clock.arg) / 1e6;
    annal_status status = look(&stale, err);
    for (size_t i = 0; status == ANNAL_OK && i < stale.count; i++)
        status = judge(&stale, &stale.found[i]);
    if (status == ANNAL_OK && stale.first.status < 0) {
        status = stale.first.status;
        if (err != NULL)
            *err = stale.first;
    }
    annal__free(stale.found);
    return status;
}
