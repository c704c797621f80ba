/*
 * Ending sessions whose process died without saying so: annal doctor --transition-stale.
 *
 * (1) A session is ended only when it runs, nothing came from it for longer than its kind allows
 *     (views of the pack teams) and than --stale-hours, and its process is proven dead
 *     (annal/process.h). What recorded no process is never ended: nobody can prove anything. Nor is
 *     what another process holds now, which took it up without saying so.
 * (2) What was seen is said in the event, and asked again by the guards of the pack lionagi when it
 *     is appended: the session still runs, and nothing came from it since (quiet_since). A session
 *     that ended or woke up meanwhile is passed over.
 * (3) Each transition is an event in the session, and one of what the operator did in _state. They
 *     are two sessions, so there is no transaction over both: the second names the first as its
 *     cause, and its id keeps it from being said twice.
 */
#include "tools/stale.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/open.h"
#include "tools/verbs.h"

#include <annal/process.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOURS_MAX 1e6

/* A session that nothing came from. */
struct quiet {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    char kind[40];
    double last_activity; /* seconds since 1970; 0: never */
    double allowed;       /* seconds */
    struct annal_process process;
};

struct stale {
    const struct args *args;
    struct verb_call call; /* its store and index; for appending */
    double hours;
    double now;
    bool dry_run;
    struct quiet *found;
    size_t count;
    uint64_t ended;
};

/* ---- Looking ---- */

static const char quiet_rows[] =
    "SELECT a.session_id, COALESCE(a.invocation_kind, ''), a.last_activity,"
    " max(a.stale_at - a.last_activity, ?2) AS allowed,"
    " s.process ->> '$.pid', s.process ->> '$.start', s.process ->> '$.pid_ns',"
    " s.process ->> '$.boot_id' "
    "FROM session_activity a JOIN state.sessions s ON s.id = a.session_id "
    "WHERE a.status = 'running' AND ?1 > a.last_activity + max(a.stale_at - a.last_activity, ?2) "
    "ORDER BY a.last_activity, a.session_id";

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
    struct quiet *grown =
        annal__realloc_array(stale->found, stale->count + 1, sizeof *stale->found);
    if (grown == NULL)
        return ANNAL_ERR_NOMEM;
    stale->found = grown;
    struct quiet *quiet = &grown[stale->count++];
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

static int add_rows(void *arg, const annal_row *row)
{
    *(int64_t *)arg += row->values[0].integer;
    return 0;
}

/* ANNAL_ERR_NOTFOUND: the tables are not there. */
static annal_status check_packs(annal_index *index, annal_error *err)
{
    static const char sql[] = "SELECT count(*) FROM pragma_table_list WHERE schema = 'state' AND "
                              "name IN ('sessions', 'session_activity')";
    int64_t tables = 0;
    annal_status status = annal_sql(index, annal_slice_of(sql), NULL, add_rows, &tables, err);
    if (status == ANNAL_OK && tables < 2)
        return annal__fail(err, ANNAL_ERR_NOTFOUND,
                           "the packs lionagi and teams say which sessions run, and are not both "
                           "on in this store: annal pack enable lionagi, annal pack enable teams");
    return status;
}

static int look(struct stale *stale)
{
    annal_error err = {0};
    const annal_value params[] = {{.kind = ANNAL_VALUE_REAL, .real = stale->now},
                                  {.kind = ANNAL_VALUE_REAL, .real = stale->hours * 3600}};
    annal_status status = check_packs(stale->call.index, &err);
    if (status == ANNAL_OK)
        status = annal_sql(stale->call.index, annal_slice_of(quiet_rows),
                           &(annal_sql_options){.params = params, .param_count = 2}, keep_quiet,
                           stale, &err);
    if (status == ANNAL_ERR_NOTFOUND)
        return fail_storage("%s", err.message);
    return status < 0 ? fail_error(&err) : 0;
}

static int keep_counts(void *arg, const annal_row *row)
{
    uint64_t *counts = arg;
    counts[0] = (uint64_t)row->values[0].integer;
    counts[1] = (uint64_t)row->values[1].integer;
    return 0;
}

annal_status stale_count(annal_index *index, uint64_t *out_running, uint64_t *out_stale,
                         annal_error *err)
{
    uint64_t counts[2] = {0};
    annal_status status = check_packs(index, err);
    if (status == ANNAL_OK)
        status = annal_sql(index, ANNAL_SLICE("SELECT running, stale FROM dashboard"), NULL,
                           keep_counts, counts, err);
    *out_running = counts[0];
    *out_stale = counts[1];
    return status;
}

/* ---- Ending ---- */

static annal_status write_transition(const struct stale *stale, const struct quiet *quiet,
                                     const char *why, struct buf *out)
{
    char process[ANNAL_PROCESS_JSON_BYTES];
    return annal__buf_printf(
        out,
        "{\"expected\":[\"running\"],\"to\":\"failed\","
        "\"reason_code\":\"session.stale.no_heartbeat\","
        "\"reason_summary\":\"nothing came from it for %.1f h, and %s\","
        "\"quiet_since\":%.17g,\"source\":\"admin\",\"actor\":\"annal doctor\",\"evidence_refs\":["
        "{\"kind\":\"session_health\",\"health\":\"stale\",\"last_activity\":%.17g,"
        "\"threshold_seconds\":%.17g,\"process_dead\":true,\"why\":\"%s\",\"process\":%s}]}",
        (stale->now - quiet->last_activity) / 3600, why, quiet->last_activity, quiet->last_activity,
        quiet->allowed, why, annal_process_json(&quiet->process, process));
}

static annal_status record(struct stale *stale, const struct quiet *quiet, uint64_t seq,
                           const char *why, annal_error *err)
{
    char data[800], id[ANNAL_ID_BYTES_MAX], cause[ANNAL_SESSION_ID_BYTES_MAX + 30];
    snprintf(data, sizeof data,
             "{\"action\":\"transition\",\"target_id\":\"%s\",\"actor\":\"annal doctor\","
             "\"details\":{\"to\":\"failed\",\"seq\":%" PRIu64 ",\"why\":\"%s\"}}",
             quiet->session, seq, why);
    snprintf(cause, sizeof cause, "%s:%" PRIu64, quiet->session, seq);
    /* Cut, it might be another transition's. */
    if ((size_t)snprintf(id, sizeof id, "t:%s", cause) >= sizeof id)
        id[0] = '\0';
    const annal_draft draft = {.type = ANNAL_SLICE("admin.recorded"),
                               .data = annal_slice_of(data),
                               .id = annal_slice_of(id),
                               .cause = annal_slice_of(cause)};
    snprintf(stale->call.session, sizeof stale->call.session, "_state");
    return verb_try_all(&stale->call, &draft, 1, err);
}

/* ANNAL_ERR_REFUSED, with the sentence: it ended or woke up meanwhile. */
static annal_status end_session(struct stale *stale, const struct quiet *quiet, const char *why,
                                annal_error *err)
{
    struct buf data = {0};
    annal_status status = write_transition(stale, quiet, why, &data);
    if (status == ANNAL_OK) {
        const annal_draft draft = {.type = ANNAL_SLICE("session.transition"),
                                   .data = annal__buf_slice(&data)};
        snprintf(stale->call.session, sizeof stale->call.session, "%s", quiet->session);
        status = verb_try_all(&stale->call, &draft, 1, err);
    }
    annal__buf_done(&data);
    return status;
}

static void print(const struct stale *stale, const struct quiet *quiet, const char *result,
                  const char *reason)
{
    if (!stale->args->json) {
        printf("%-14s %s: ", result, quiet->session);
        out_plain(annal_slice_of(reason));
        printf("\n");
        return;
    }
    printf("{\"session_id\":\"%s\",\"result\":\"%s\",\"reason\":", quiet->session, result);
    out_json_string(annal_slice_of(reason));
    printf(",\"invocation_kind\":");
    if (quiet->kind[0] == '\0')
        printf("null");
    else
        out_json_string(annal_slice_of(quiet->kind));
    printf(",\"last_activity\":%.17g,\"threshold_seconds\":%.17g}\n", quiet->last_activity,
           quiet->allowed);
}

/* Whether another process has taken the session up without saying so; why not to end it, then. */
static bool is_taken(struct stale *stale, const struct quiet *quiet, char *why, size_t size)
{
    annal_error err = {0};
    uint32_t pid = 0;
    annal_status status =
        annal_session_owner(stale->call.store, annal_slice_of(quiet->session), &pid, &err);
    if (status < 0)
        snprintf(why, size, "%s", err.message);
    else if (pid != 0)
        snprintf(why, size, "its process is dead, and process %" PRIu32 " has it now", pid);
    return status < 0 || pid != 0;
}

static int judge(struct stale *stale, const struct quiet *quiet)
{
    char reason[700];
    const char *why = NULL;
    annal_error err = {0};
    bool dead = annal_process_is_dead(&quiet->process, &why);
    if (!dead || is_taken(stale, quiet, reason, sizeof reason)) {
        print(stale, quiet, "left alone", dead ? reason : why);
        return 0;
    }
    snprintf(reason, sizeof reason, "stale for %.1f h, and %s",
             (stale->now - quiet->last_activity - quiet->allowed) / 3600, why);
    annal_status status = stale->dry_run ? ANNAL_OK : end_session(stale, quiet, why, &err);
    if (status == ANNAL_ERR_REFUSED) {
        print(stale, quiet, "left alone", err.message);
        return 0;
    }
    if (status < 0)
        return fail_error(&err);
    stale->ended++;
    print(stale, quiet, stale->dry_run ? "would be failed" : "failed", reason);
    if (!stale->dry_run && record(stale, quiet, stale->call.seq, why, &err) < 0)
        return fail_error(&err);
    return 0;
}

/* ---- The whole ---- */

static int read_hours(const struct args *args, double *out)
{
    const char *text = args_get(args, "stale-hours");
    char *end = NULL;
    if (text == NULL)
        return 0;
    double hours = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(hours) || hours < 0 || hours > HOURS_MAX)
        return fail_usage("--stale-hours needs a number of hours such as 6.0, and was given '%s'",
                          text);
    *out = hours;
    return 0;
}

int stale_transition(const struct args *args)
{
    struct stale stale = {.args = args, .hours = 6.0, .dry_run = args_has(args, "dry-run")};
    annal_error err = {0};
    stale.call.args = args;
    stale.call.wait_ms = 1000; /* for a session that somebody writes: it is not dead, then */
    stale.now = (double)annal__system_clock.wall_us(annal__system_clock.arg) / 1e6;
    int exit_status = read_hours(args, &stale.hours);
    if (exit_status == 0)
        exit_status =
            store_open(args, stale.dry_run ? OPEN_READ : OPEN_WRITE, 0, &stale.call.store);
    if (exit_status == 0 && annal_index_open(stale.call.store, NULL, &stale.call.index, &err) < 0)
        exit_status = fail_error(&err);
    if (exit_status == 0)
        exit_status = look(&stale);
    for (size_t i = 0; exit_status == 0 && i < stale.count; i++)
        exit_status = judge(&stale, &stale.found[i]);
    if (exit_status == 0 && !args->json && stale.ended == 0)
        printf("no session is stale with its process proven dead\n");
    annal__free(stale.found);
    if (exit_status == 0 && stale.ended == 0)
        exit_status = EXIT_REFUSED;
    return verb_close(&stale.call, exit_status);
}
