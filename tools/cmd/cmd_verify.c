/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal verify: threads read the journals, one session each at a time, and the results are printed
 * in the order of the sessions.
 *
 * (1) A journal is read once, and its events are compared with the index in the same pass. With
 *     --replay its states are computed once more from its events. If the index changed during the
 *     pass, the session is compared again.
 * (2) The findings of a session are kept as text until all sessions before it are printed, up to
 *     TEXT_BYTES_MAX; a session with more text waits for its turn and then prints directly. At most
 *     WINDOW sessions are read before their turn. So the memory is limited however many findings
 *     are printed.
 * (3) stdout and the progress bar are used only under `lock`.
 * (4) At the same time, if there is more than one job, one more thread examines search.db, one
 *     fills the tables of packs again, and one reads the copies of logs. Their findings are kept in
 *     the same way, and are printed after those of the sessions.
 */
#include "index/sys/databases.h"
#include "index/sys/findings.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "journal/sys/artifact.h"
#include "journal/sys/inspect.h"
#include "journal/sys/seam.h"
#include "journal/sys/verify.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/cli/sessions.h"
#include "tools/cli/store_open.h"
#include "tools/cli/turns.h"
#include "tools/cmd/verify_index.h"
#include "tools/source/copies.h"

#include <annal/artifact.h>
#include <annal/journal.h>
#include <annal/pack.h>
#include <annal/replay.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 1024, TEXT_BYTES_MAX = 16 << 10, DRAW_MS = 100 };

struct outcome {
    bool done;
    struct buf text;
    annal_error failure; /* status 0: no failure */
};

struct verify {
    const struct args *args;
    annal_store *store;
    annal_index *index; /* NULL if sessions.db does not exist */
    annal_index *packs; /* always open, because packs work without sessions.db */
    annal__proved *proved;
    struct session_list list;
    unsigned jobs;
    _Atomic uint64_t bytes_done;

    pthread_mutex_t lock;
    pthread_cond_t moved; /* signalled when turn or running changes */
    /* guarded by lock */
    struct progress progress;
    size_t next; /* number of the next session to read */
    size_t turn; /* number of the session whose result is printed next */
    unsigned running;
    struct outcome outcomes[WINDOW];
    uint64_t sessions, events, bytes, findings, lagging;
    uint64_t artifacts;
    /* number of commit logs, of the groups of events in them, and of the groups, and their bytes,
     * that no checkpoint covers yet */
    uint64_t logs, groups, unreleased, unreleased_bytes;
    int exit_status;
};

/* a thread of rule 4 */
struct aside {
    struct verify *verify;
    annal_status (*run)(struct aside *aside);
    pthread_t thread;
    bool is_started;
    bool is_last;    /* whether all that is printed before its findings is printed; under lock */
    struct buf text; /* findings that are not printed yet */
    uint64_t count;  /* copies of logs that were read */
    uint64_t findings;
    annal_status status;
    annal_error failure; /* set if status is below 0 */
};

/* a thread and its current session */
struct worker {
    struct verify *verify;
    pthread_t thread;
    size_t at;
    struct outcome *outcome;
    struct index_check check;
    uint64_t findings;
    /* whether to report only differences from the index: the journal's findings are reported
     * already */
    bool compare_only;
    bool damaged;        /* whether the journal is damaged */
    bool damage_pending; /* whether damage was found since the last event that was read */
    annal_finding event; /* position of the event whose artifacts are checked */
    annal_error unseen;  /* why part of the session could not be examined; status 0: no failure */
};

/* ---- Printing ---- */

/* Print the findings of the session whose turn it is. The caller holds lock. */
static void print_text(struct verify *verify, struct outcome *outcome)
{
    if (outcome->text.len == 0)
        return;
    progress_hide(&verify->progress);
    out_slice(annal__buf_slice(&outcome->text));
    annal__buf_clear(&outcome->text);
}

/* Wait until all sessions before this one are printed, then print its text. So the memory is
 * limited (rule 2 above). */
static void wait_for_turn(struct worker *worker)
{
    struct verify *verify = worker->verify;
    pthread_mutex_lock(&verify->lock);
    while (verify->turn != worker->at)
        pthread_cond_wait(&verify->moved, &verify->lock);
    print_text(verify, worker->outcome);
    pthread_mutex_unlock(&verify->lock);
}

/* Print the results that are ready, in the order of the sessions. The caller holds lock. */
static void pass_turn(struct verify *verify)
{
    while (verify->outcomes[verify->turn % WINDOW].done) {
        struct outcome *outcome = &verify->outcomes[verify->turn % WINDOW];
        print_text(verify, outcome);
        if (outcome->failure.status < 0) {
            progress_hide(&verify->progress);
            int failed = fail_error(&outcome->failure);
            if (failed > verify->exit_status)
                verify->exit_status = failed;
        }
        annal__buf_done(&outcome->text);
        *outcome = (struct outcome){0};
        verify->turn++;
    }
    pthread_cond_broadcast(&verify->moved);
}

static void put_finding(struct worker *worker, const annal_finding *finding)
{
    struct buf *text = &worker->outcome->text;
    if (worker->verify->args->json) {
        must_json(text, "{\"session_id\":\"#\",\"seq\":#,\"offset\":#,\"length\":#,\"what\":?}\n",
                  finding->session, JSON_U64(finding->seq), JSON_U64(finding->offset),
                  JSON_U64(finding->length), annal_slice_of(finding->what));
    } else {
        must_printf(text, "%.*s: event %" PRIu64 " at byte %" PRIu64 ": %s\n",
                    ANNAL_FMT(finding->session), finding->seq, finding->offset, finding->what);
    }
    worker->findings++;
    if (text->len > TEXT_BYTES_MAX)
        wait_for_turn(worker);
}

/* ---- One session ---- */

static void found(void *arg, const annal_finding *finding)
{
    put_finding(arg, finding);
}

static void found_in_journal(void *arg, const annal_finding *finding)
{
    struct worker *worker = arg;
    worker->damaged = worker->damage_pending = true;
    if (!worker->compare_only)
        put_finding(worker, finding);
}

/* Report an artifact that an event refers to, but that is missing. */
static int found_missing(void *arg, annal_slice path)
{
    struct worker *worker = arg;
    char what[ANNAL_SESSION_ID_BYTES_MAX + 160];
    annal_finding finding = worker->event;
    snprintf(what, sizeof what, "an artifact is missing: %.*s", ANNAL_FMT(path));
    finding.what = what;
    put_finding(worker, &finding);
    return 0;
}

static void check_artifacts(struct worker *worker, const annal_event *event)
{
    annal_error err = {0};
    worker->event =
        (annal_finding){.session = annal_slice_of(worker->verify->list.names[worker->at].id),
                        .seq = event->seq,
                        .offset = event->offset,
                        .length = event->length};
    if (annal__artifact_check_data(worker->verify->store, event->data, found_missing, worker,
                                   &err) < 0)
        worker->unseen = err;
}

static void pass_event(void *arg, const annal_event *event, bool after_damage)
{
    struct worker *worker = arg;
    worker->damage_pending = false;
    verify_index_event(&worker->check, event, after_damage);
    if (worker->compare_only)
        return;
    check_artifacts(worker, event);
    atomic_fetch_add_explicit(&worker->verify->bytes_done, event->length, memory_order_relaxed);
}

/* Print a remark, not a finding: a power cut may take events of level os, which were never
 * acknowledged as durable. */
static void remark_cut(struct worker *worker, annal_slice session, uint64_t seq)
{
    struct buf *text = &worker->outcome->text;
    if (worker->verify->args->json)
        must_printf(text,
                    "{\"session_id\":\"%.*s\",\"seq\":%" PRIu64
                    ",\"remark\":true,\"what\":\"a snapshot was taken after this "
                    "event, which is missing in the journal\"}\n",
                    ANNAL_FMT(session), seq);
    else
        must_printf(text,
                    "%.*s: (no finding) a snapshot was taken after event %" PRIu64
                    ", which is missing in the journal\n",
                    ANNAL_FMT(session), seq);
}

/* Report a problem of a snapshot. A stale snapshot is not damage: it is never used, and the next
 * snapshot removes it. */
static int found_in_snapshot(void *arg, annal_slice session, const annal_snapshot_info *info,
                             const char *problem)
{
    struct worker *worker = arg;
    if (info->cut)
        remark_cut(worker, session, info->seq);
    else if (problem != NULL && !info->stale && !args_has(worker->verify->args, "replay"))
        found(arg, &(annal_finding){.session = session, .seq = info->seq, .what = problem});
    return 0;
}

static void found_in_replay(void *arg, const annal_replay_finding *finding)
{
    found(arg, &(annal_finding){
                   .session = finding->session, .seq = finding->seq, .what = finding->what});
}

/* Verify the journal and compare it with the index. Compare again while the index changes in the
 * meantime. */
static annal_status verify_events(struct worker *worker, annal_slice session,
                                  annal_verify_result *out_result, annal_error *err)
{
    annal_status status;
    annal_verify_result again;
    worker->compare_only = worker->damaged = false;
    do {
        worker->damage_pending = false;
        verify_index_begin(&worker->check, session);
        status = annal__verify_events(worker->verify->store, session, worker->verify->proved,
                                      found_in_journal, pass_event, worker,
                                      worker->compare_only ? &again : out_result, err);
        if (status == ANNAL_OK)
            status = verify_index_end(&worker->check, out_result->last_seq, worker->damage_pending,
                                      found, worker, err);
        worker->compare_only = true;
    } while (status == ANNAL_END);
    return status;
}

static annal_status verify_snapshots(struct worker *worker, annal_slice session, annal_error *err)
{
    struct verify *verify = worker->verify;
    const annal_replay_verify_options options = {.finding = found_in_replay, .arg = worker};
    annal_replay_verify_result result;
    bool some = false;
    if (verify->index == NULL)
        return ANNAL_OK;
    annal_status status = verify_index_has_snapshots(&worker->check, &some, err);
    if (status == ANNAL_OK && some)
        status = annal_snapshot_each(verify->index, session, found_in_snapshot, worker, err);
    if (status == ANNAL_OK && args_has(verify->args, "replay"))
        status = annal_replay_verify(verify->index, session, &options, &result, err);
    return status;
}

static void verify_session(struct worker *worker)
{
    struct verify *verify = worker->verify;
    annal_slice session = annal_slice_of(verify->list.names[worker->at].id);
    annal_verify_result result = {0};
    annal_error err = {0};
    worker->findings = 0;
    worker->unseen = (annal_error){0};
    annal_status status = verify_events(worker, session, &result, &err);
    if (status == ANNAL_OK && worker->unseen.status < 0) {
        status = worker->unseen.status;
        err = worker->unseen;
    }
    if (status == ANNAL_OK && worker->damaged && !verify->args->json)
        must_printf(&worker->outcome->text,
                    "%.*s: 'annal repair %.*s --to NEW' copies the sound events\n",
                    ANNAL_FMT(session), ANNAL_FMT(session));
    if (status == ANNAL_OK)
        status = verify_snapshots(worker, session, &err);
    /* if all sessions are verified, ignore a session that was deleted in the meantime */
    if (status == ANNAL_ERR_NOTFOUND && verify->args->operand_count == 0)
        status = ANNAL_OK;
    pthread_mutex_lock(&verify->lock);
    if (status < 0)
        worker->outcome->failure = err;
    verify->sessions++;
    verify->events += result.events;
    verify->bytes += result.bytes;
    verify->findings += worker->findings;
    worker->outcome->done = true;
    pass_turn(verify);
    pthread_mutex_unlock(&verify->lock);
}

/* ---- All sessions ---- */

static bool take_session(struct worker *worker)
{
    struct verify *verify = worker->verify;
    bool taken = false;
    pthread_mutex_lock(&verify->lock);
    while (verify->next < verify->list.count && verify->next - verify->turn >= WINDOW)
        pthread_cond_wait(&verify->moved, &verify->lock);
    if (verify->next < verify->list.count && out_wanted()) {
        worker->at = verify->next++;
        worker->outcome = &verify->outcomes[worker->at % WINDOW];
        taken = true;
    }
    pthread_mutex_unlock(&verify->lock);
    return taken;
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct verify *verify = worker->verify;
    while (take_session(worker))
        verify_session(worker);
    pthread_mutex_lock(&verify->lock);
    verify->lagging += worker->check.lagging;
    verify->running--;
    pthread_cond_broadcast(&verify->moved);
    pthread_mutex_unlock(&verify->lock);
    verify_index_done(&worker->check);
    return NULL;
}

/* Show the progress until all threads have ended. */
static void watch(struct verify *verify)
{
    pthread_mutex_lock(&verify->lock);
    while (verify->running > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += DRAW_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        size_t at = verify->turn < verify->list.count ? verify->turn : verify->list.count - 1;
        progress_set(&verify->progress, atomic_load(&verify->bytes_done),
                     verify->list.names[at].id);
        (void)pthread_cond_timedwait(&verify->moved, &verify->lock, &until);
    }
    progress_hide(&verify->progress);
    pthread_mutex_unlock(&verify->lock);
}

static int verify_sessions(struct verify *verify)
{
    struct worker *workers = must_zalloc(TURNS_JOBS_MAX * sizeof *workers);
    unsigned started = 0;
    if (verify->jobs > verify->list.count)
        verify->jobs = (unsigned)verify->list.count;
    for (; started < verify->jobs; started++) {
        workers[started].verify = verify;
        workers[started].check.store = verify->store;
        workers[started].check.index = verify->index;
        pthread_mutex_lock(&verify->lock);
        verify->running++;
        pthread_mutex_unlock(&verify->lock);
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    /* one thread could not be started: the threads that run read all sessions */
    if (started < verify->jobs) {
        pthread_mutex_lock(&verify->lock);
        verify->running--;
        pthread_mutex_unlock(&verify->lock);
    }
    if (started == 0 && verify->jobs > 0)
        verify->exit_status = fail_storage("verify: cannot start a thread");
    if (started > 0)
        watch(verify);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    annal__free(workers);
    return verify->exit_status;
}

/* ---- Commit logs ---- */

static int found_log(void *arg, const annal__log_info *log)
{
    struct verify *verify = arg;
    char what[120];
    snprintf(what, sizeof what, "%s", log->what == NULL ? "" : log->what);
    /* Opening the store writes the events of a commit log to their journals if it can. So groups of
     * events that still remain, in a log that no process is writing, cannot be written. */
    if (log->what == NULL && !log->living && log->unreleased > 0 &&
        !annal__session_list_is_read_only(verify->store))
        snprintf(what, sizeof what, "%" PRIu64 " groups of events cannot be redone",
                 log->unreleased);
    verify->logs++;
    verify->groups += log->groups;
    verify->unreleased += log->unreleased;
    verify->unreleased_bytes += log->unreleased_bytes;
    if (what[0] == '\0')
        return 0;
    verify->findings++;
    if (verify->args->json)
        printf("{\"commit_log\":%" PRIu32 ",\"living\":%s,\"groups\":%" PRIu64
               ",\"unreleased\":%" PRIu64 ",\"what\":\"%s\"}\n",
               log->number, log->living ? "true" : "false", log->groups, log->unreleased, what);
    else
        printf("commit log %02" PRIu32 ": %s\n", log->number, what);
    return 0;
}

static int verify_logs(struct verify *verify)
{
    annal_error err = {0};
    return annal__log_each(verify->store, found_log, verify, &err) < 0 ? fail_error(&err) : 0;
}

/* ---- Threads beside the sessions, rule 4 ---- */

static void print_aside(struct aside *aside)
{
    progress_hide(&aside->verify->progress);
    out_slice(annal__buf_slice(&aside->text));
    annal__buf_clear(&aside->text);
}

/* If the text of the findings is too long to be kept, wait until everything before it is printed,
 * and print it. */
static void limit_aside(struct aside *aside)
{
    struct verify *verify = aside->verify;
    if (aside->text.len <= TEXT_BYTES_MAX)
        return;
    pthread_mutex_lock(&verify->lock);
    while (!aside->is_last)
        pthread_cond_wait(&verify->moved, &verify->lock);
    pthread_mutex_unlock(&verify->lock);
    print_aside(aside);
}

static void *run_aside(void *arg)
{
    struct aside *aside = arg;
    aside->status = aside->run(aside);
    return NULL;
}

static void begin_aside(struct aside *aside)
{
    aside->is_started =
        aside->verify->jobs > 1 && pthread_create(&aside->thread, NULL, run_aside, aside) == 0;
}

/* Wait for the end of the thread, or run its function here if it was not started, and print the
 * findings. Return the exit status. */
static int end_aside(struct aside *aside)
{
    struct verify *verify = aside->verify;
    pthread_mutex_lock(&verify->lock);
    aside->is_last = true;
    pthread_cond_broadcast(&verify->moved);
    pthread_mutex_unlock(&verify->lock);
    if (aside->is_started)
        pthread_join(aside->thread, NULL);
    else
        (void)run_aside(aside);
    print_aside(aside);
    annal__buf_done(&aside->text);
    verify->findings += aside->findings;
    return aside->status < 0 ? fail_error(&aside->failure) : EXIT_DONE;
}

/* ---- Databases ---- */

static int found_damaged(void *arg, const char *name, bool users_write, const char *what)
{
    struct aside *aside = arg;
    struct buf *text = &aside->text;
    const char *advice = users_write
                             ? "other programs write it: 'annal pack rebuild' moves it aside"
                             : "the next query rebuilds it from the journals";
    aside->findings++;
    if (aside->verify->args->json) {
        must_json(text, "{\"database\":?,\"what\":?}\n", annal_slice_of(name),
                  annal_slice_of(what));
    } else {
        (void)out_line(text, annal_slice_of(name));
        must_printf(text, ": damaged, %s: ", advice);
        (void)out_line(text, annal_slice_of(what));
        must_printf(text, "\n");
    }
    limit_aside(aside);
    return 0;
}

/* Check the databases before their first use, which would rebuild a damaged database. */
static annal_status verify_databases(struct aside *aside)
{
    struct verify *verify = aside->verify;
    SCOPED_BUF names = {0};
    size_t count = (size_t)verify->args->operand_count;
    if (verify->index == NULL)
        return ANNAL_OK;
    for (size_t i = 0; i < count; i++) {
        const annal_slice name = annal_slice_of(verify->args->operands[i]);
        must_append(&names, &name, sizeof name);
    }
    return annal__maintain_prove(verify->index, (const annal_slice *)(void *)names.ptr, count, true,
                                 found_damaged, aside, &aside->failure);
}

static annal_status verify_search(struct aside *aside)
{
    annal_index *index = aside->verify->index;
    return index == NULL
               ? ANNAL_OK
               : annal__maintain_prove_search(index, true, found_damaged, aside, &aside->failure);
}

/* ---- Packs ---- */

static int found_in_pack(void *arg, const annal_pack_finding *finding)
{
    struct aside *aside = arg;
    struct buf *text = &aside->text;
    aside->findings += finding->count;
    if (aside->verify->args->json) {
        must_json(text, "{\"pack\":\"#\",\"table\":!,\"remark\":#,\"what\":?}\n",
                  annal_slice_of(finding->pack), annal_slice_of(finding->table),
                  annal_slice_of(finding->remark ? "true" : "false"),
                  annal_slice_of(finding->what));
    } else {
        must_printf(text, "pack %s%s%s: %s%s\n", finding->pack,
                    finding->table == NULL ? "" : ", table ",
                    finding->table == NULL ? "" : finding->table,
                    finding->remark ? "(no finding) " : "", finding->what);
    }
    limit_aside(aside);
    return ANNAL_OK;
}

/* Report findings about the core pack itself; its other findings repeat the damage of the
 * journals. */
static int found_in_core(void *arg, const annal_index_finding *finding)
{
    char what[800];
    if (!annal__slice_is(finding->kind, "pack"))
        return 0;
    snprintf(what, sizeof what, "event %" PRIu64 " of session '%.*s': %.*s", finding->seq,
             ANNAL_FMT(finding->session), ANNAL_FMT(finding->what));
    return found_in_pack(arg, &(annal_pack_finding){.pack = "core", .what = what, .count = 1});
}

/* Compare the tables of the packs with tables that are filled again from the journals. */
static annal_status verify_packs(struct aside *aside)
{
    struct verify *verify = aside->verify;
    annal_error *err = &aside->failure;
    annal_status status =
        verify->index == NULL
            ? ANNAL_OK
            : annal__reader_core_findings(verify->index, found_in_core, aside, err);
    return status < 0 ? status : annal_pack_verify(verify->packs, found_in_pack, aside, err);
}

static void print_summary(const struct verify *verify, uint64_t sources)
{
    char sessions[HUMAN_BYTES], events[HUMAN_BYTES], bytes[HUMAN_BYTES], findings[HUMAN_BYTES];
    if (verify->args->json) {
        printf("{\"sessions\":%" PRIu64 ",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"lagging\":%" PRIu64 ",\"commit_logs\":%" PRIu64 ",\"groups\":%" PRIu64
               ",\"unreleased_groups\":%" PRIu64 ",\"unreleased_bytes\":%" PRIu64
               ",\"findings\":%" PRIu64 "}\n",
               verify->sessions, verify->events, verify->bytes, verify->lagging, verify->logs,
               verify->groups, verify->unreleased, verify->unreleased_bytes, verify->findings);
        return;
    }
    char lag[60] = "";
    if (verify->lagging > 0)
        snprintf(lag, sizeof lag, " (for %s of them the index lags)",
                 human_count(findings, verify->lagging));
    if (verify->unreleased > 0)
        printf("commit logs: %s groups of events (%s) that no checkpoint covers yet\n",
               human_count(events, verify->unreleased),
               human_bytes(bytes, verify->unreleased_bytes));
    if (verify->artifacts > 0)
        printf("artifacts: %s, checked against their hashes\n",
               human_count(events, verify->artifacts));
    if (sources > 0)
        printf("copies of logs: %s, checked against their hashes\n", human_count(events, sources));
    printf("verified %s session%s%s, %s event%s, %s: %s%s\n",
           human_count(sessions, verify->sessions), verify->sessions == 1 ? "" : "s", lag,
           human_count(events, verify->events), verify->events == 1 ? "" : "s",
           human_bytes(bytes, verify->bytes),
           verify->findings == 0 ? "nothing found" : human_count(findings, verify->findings),
           verify->findings == 0   ? ""
           : verify->findings == 1 ? " finding"
                                   : " findings");
}

/* ---- Artifacts ---- */

static void found_artifact(void *arg, const annal_artifact_info *info, const char *what)
{
    struct verify *verify = arg;
    verify->findings++;
    if (verify->args->json) {
        out_json("{\"session_id\":\"#\",\"sha256\":\"#\",\"what\":?}\n",
                 annal_slice_of(info->session), annal_slice_of(info->sha256), annal_slice_of(what));
    } else {
        printf("%s: artifact ", info->session);
        out_plain(annal_slice_of(what));
        printf("\n");
    }
}

/* ---- Stray files ---- */

static int found_stray(void *arg, annal_slice name, const char *what)
{
    struct verify *verify = arg;
    for (size_t i = 0; i < verify->list.count; i++)
        if (annal__slice_is(name, verify->list.names[i].id))
            return 0; /* a second journal of a session is not reported here, but with the session */
    verify->findings++;
    if (verify->args->json) {
        out_json("{\"name\":?,\"what\":?}\n", name, annal_slice_of(what));
    } else {
        out_plain(annal_slice_of(what));
        printf("\n");
    }
    return 0;
}

static int verify_strays(struct verify *verify)
{
    annal_error err = {0};
    return annal__stray_list(verify->store, found_stray, verify, &err) < 0 ? fail_error(&err)
                                                                           : EXIT_DONE;
}

static int verify_artifacts(struct verify *verify)
{
    annal_artifact_verify_result result;
    annal_error err = {0};
    if (annal_artifact_verify(verify->store, found_artifact, verify, &result, &err) < 0)
        return fail_error(&err);
    verify->artifacts = result.artifacts;
    return EXIT_DONE;
}

/* ---- Copies of logs ---- */

static void found_source(void *arg, const char *name, const annal_error *why)
{
    struct aside *aside = arg;
    struct buf *text = &aside->text;
    aside->findings++;
    if (aside->verify->args->json) {
        must_json(text, "{\"source\":\"#\",\"what\":?}\n", annal_slice_of(name),
                  annal_slice_of(why->message));
    } else {
        (void)out_line(text, annal_slice_of(why->message));
        must_printf(text, "; if the log still exists, remove this file, and 'annal import "
                          "--recheck' copies the log again\n");
    }
    limit_aside(aside);
}

static int ignore_bytes(void *arg, annal_slice bytes)
{
    (void)arg;
    (void)bytes;
    return out_wanted() ? 0 : ANNAL_ERR_CLOSED;
}

static int verify_source(void *arg, const struct copy *copy)
{
    struct aside *aside = arg;
    annal_error why = {0};
    annal_status status =
        copies_read(aside->verify->store, copy->name, copy->generation, ignore_bytes, NULL, &why);
    aside->count++;
    if (status == ANNAL_END)
        annal__fail(&why, ANNAL_ERR_CORRUPT,
                    "sources/%s: the end of this copy of a log is damaged; 'annal source restore' "
                    "restores an earlier state of the log",
                    copy->name);
    if (status != ANNAL_OK && out_wanted())
        found_source(aside, copy->name, &why);
    return out_wanted() ? 0 : ANNAL_END;
}

static annal_status verify_sources(struct aside *aside)
{
    const struct args *args = aside->verify->args;
    annal_status status = ANNAL_OK;
    for (int i = 0; i == 0 || i < args->operand_count; i++) {
        annal_slice session = annal_slice_of(args->operand_count > 0 ? args->operands[i] : NULL);
        annal_error err = {0};
        if (copies_each(aside->verify->store, session, true, verify_source, found_source, aside,
                        &err) < 0) {
            aside->failure = err;
            status = err.status;
        }
    }
    return status;
}

/* ---- The command ---- */

/* Open the index if sessions.db exists. A missing index is not a finding, and verify does not
 * create it. */
static int open_index(struct verify *verify)
{
    annal_error err = {0};
    SCOPED_BUF path = {0};
    struct stat info;
    int exit_status = EXIT_DONE;
    must_printf(&path, "%s/sessions.db", annal_store_path(verify->store));
    if (annal_index_open(verify->store, NULL, &verify->packs, &err) < 0)
        exit_status = fail_error(&err);
    else if (stat(path.ptr, &info) == 0)
        verify->index = verify->packs;
    return exit_status;
}

static int worst(int exit_status, int other)
{
    return other > exit_status ? other : exit_status;
}

static int verify_all(struct verify *verify)
{
    struct aside databases = {.verify = verify, .run = verify_databases};
    struct aside search = {.verify = verify, .run = verify_search};
    struct aside packs = {.verify = verify, .run = verify_packs};
    struct aside sources = {.verify = verify, .run = verify_sources};
    bool all = verify->args->operand_count == 0; /* whether no session is named */
    int exit_status = sessions_collect(verify->store, verify->args, &verify->list);
    progress_begin(&verify->progress, "verify", verify->list.bytes);
    if (exit_status == 0) {
        begin_aside(&sources);
        begin_aside(&search);
        int failed = end_aside(&databases);
        if (all)
            begin_aside(&packs);
        exit_status = verify_sessions(verify);
        failed = worst(failed, end_aside(&search));
        if (all) {
            failed = verify_logs(verify) == EXIT_DONE ? failed : EXIT_STORAGE;
            failed = verify_strays(verify) == EXIT_DONE ? failed : EXIT_STORAGE;
            failed = worst(failed, end_aside(&packs));
            failed = verify_artifacts(verify) == EXIT_DONE ? failed : EXIT_STORAGE;
        }
        failed = end_aside(&sources) == EXIT_DONE ? failed : EXIT_STORAGE;
        print_summary(verify, sources.count);
        if (verify->findings > 0 && exit_status == EXIT_DONE)
            exit_status = EXIT_REFUSED;
        exit_status = worst(exit_status, failed);
    }
    sessions_done(&verify->list);
    return exit_status;
}

static int run(const struct args *args)
{
    struct verify *verify = must_zalloc(sizeof *verify);
    pthread_mutex_init(&verify->lock, NULL);
    pthread_cond_init(&verify->moved, NULL);
    verify->args = args;
    verify->jobs = turns_jobs(args);
    verify->proved = annal__lineage_proved_new();
    int exit_status = store_open(args, OPEN_READ, 0, &verify->store);
    if (exit_status == 0)
        exit_status = open_index(verify);
    if (exit_status == 0)
        exit_status = verify_all(verify);
    annal_index_close(verify->packs);
    annal__lineage_proved_free(verify->proved);
    exit_status = store_close(verify->store, exit_status);
    pthread_cond_destroy(&verify->moved);
    pthread_mutex_destroy(&verify->lock);
    annal__free(verify);
    return exit_status;
}

static const struct field fields[] = {
    OPERAND_MAYBE("SESSION", FIELD_SESSIONS, NULL, "the sessions (all)"),
    FLAG("replay", NULL, "compare each snapshot with a fold of its events"),
    OPTION_WITH("jobs", "N", FIELD_COUNT, NULL, "number of sessions to read at a time (one a core)",
                .least = 1, .most = TURNS_JOBS_MAX),
    FIELDS_END};

const struct command cmd_verify = {
    COMMAND("verify", "prove that nothing is damaged", verify, fields, run)};
