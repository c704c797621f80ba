/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/child.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/overdue.h"
#include "tools/cli/progress.h"
#include "tools/cli/search_fill.h"
#include "tools/cli/store_open.h"
#include "tools/cli/turns.h"
#include "tools/cli/whole_file.h"
#include "tools/cmd/import_found.h"
#include "tools/export/bundle.h"
#include "tools/import/changes.h"
#include "tools/import/deleted.h"
#include "tools/import/detect.h"
#include "tools/import/find.h"
#include "tools/import/follow.h"
#include "tools/import/import.h"
#include "tools/import/log_places.h"
#include "tools/import/map.h"
#include "tools/import/unchanged.h"
#include "tools/import/watcher.h"
#include "tools/source/copies.h"

#include <annal/index.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* maximum size of an importer's file */
#define SQL_BYTES_MAX ((size_t)16 << 20)

/*
 * Logs that are imported before their events are synced together: up to GROUP_LOGS, or GROUP_BYTES.
 * Only then a log is copied, noted as unchanged, and reported.
 */
#define GROUP_LOGS  64
#define GROUP_BYTES ((uint64_t)4 << 20)

struct imported {
    const struct log *log;
    struct importer importer;
    struct import_report report;
    struct log_mark mark; /* the state of the log before it was read */
    annal_status status;
    annal_error err; /* why the import failed, if status < 0 */
};

struct work {
    const struct args *args;
    annal_store *store;
    struct log_places places;
    bool copies; /* whether to copy each log into the store as well */
    /* whether to search the places of agents, and to continue searching with --follow */
    bool finds;
    bool watches;                 /* whether this process is the watcher of the store */
    bool follows;                 /* whether to continue importing new lines until Ctrl-C */
    const char *kind_asked;       /* kind that the user gave, or NULL to detect the kinds */
    annal_import_option *options; /* the options NAME=VALUE of --map */
    annal_limits limits;
    size_t option_count;
    struct deleted *deleted;
    struct import_spares spares;
    struct owners *owners;
    struct logs *logs;
    struct turns turns;
    pthread_mutex_t lock; /* guards `unchanged`; all else here is used in the turn of a log */
    struct unchanged *unchanged;
    bool ended;                 /* whether the store failed, so that no other log is imported */
    int exit_status;            /* of the logs that were finished */
    struct search_fill *search; /* NULL with --follow */
    struct imported group[GROUP_LOGS];
    size_t group_count;
    uint64_t group_bytes;
    struct import_group unsynced; /* the sessions of the logs in `group` */
    struct table *table;
    struct progress progress;
    const char *path; /* path of the current log */
    const char *kind; /* and its kind */
    uint64_t bytes;   /* size of the logs that were finished, in bytes */
    uint64_t files, same, uncopied, lines, skipped, unfinished, unreadable, events, unknown,
        left_out;
    /* text about the logs with unreadable lines, which is printed after the table for people */
    struct buf damaged;
};

/* A thread that imports one log after the other. */
struct worker {
    struct work *work;
    size_t at;     /* number of its log */
    bool has_turn; /* whether the turn of the log has come */
    annal_limits limits;
    struct import_spares spares;
    annal_import *detector;
};

/* ---- Which importer ---- */

static int read_importer(const char *path, struct buf *sql, struct importer *out_importer)
{
    if (!whole_file_read(path, SQL_BYTES_MAX, sql))
        return errno == EFBIG
                   ? fail_refused("importer '%s' is larger than %zu bytes", path, SQL_BYTES_MAX)
                   : fail_refused("read the importer '%s': %s", path, strerror(errno));
    out_importer->sql = annal__buf_slice(sql);
    return EXIT_DONE;
}

static int fail_kind(const char *kind)
{
    SCOPED_BUF kinds = {0};
    for (size_t i = 0; importer_texts[i].kind != NULL; i++)
        must_printf(&kinds, "%s, ", importer_texts[i].kind);
    return fail_usage("importer '%s' does not exist: use %.*sauto, or a file NAME.sql", kind,
                      (int)kinds.len, kinds.ptr);
}

/*
 * Find the importer KIND: a built-in importer, auto (the kind of each log is detected), or the path
 * of a SQL file. "mine.sql" has the kind "mine". Return the exit status.
 */
static int choose_importer(const char *kind, struct buf *sql, struct buf *name,
                           struct importer *out_importer)
{
    size_t len = strlen(kind);
    if (strcmp(kind, "auto") == 0)
        return EXIT_DONE;
    if (len <= 4 || strcmp(kind + len - 4, ".sql") != 0)
        return importer_find(kind, out_importer) ? EXIT_DONE : fail_kind(kind);
    const char *slash = strrchr(kind, '/');
    const char *base = slash != NULL ? slash + 1 : kind;
    must_append(name, base, strlen(base) - 4);
    out_importer->kind = must_cstr(name);
    return read_importer(kind, sql, out_importer);
}

/* ---- Results ---- */

static void print_json(const struct work *work, const struct import_report *report)
{
    const struct {
        const char *reason;
        uint64_t lines;
    } skips[] = {{"blank", report->blank},
                 {"duplicate", report->duplicate},
                 {"unfinished", report->unfinished}};
    out_json("{\"file\":?,\"kind\":?,\"container\":\"#\",\"sessions\":[",
             annal_slice_of(work->path), annal_slice_of(work->kind),
             annal_slice_of(report->container));
    for (size_t i = 0; i < report->session_count; i++)
        out_json("#?", annal_slice_of(i > 0 ? "," : ""), annal_slice_of(report->sessions[i].id));
    printf("],\"lines\":%" PRIu64 ",\"imported\":%" PRIu64 ",\"skipped\":%" PRIu64
           ",\"events\":%" PRIu64,
           report->lines, report->imported, report->blank + report->duplicate + report->unfinished,
           report->events);
    if (report->unreadable > 0)
        printf(",\"unreadable\":{\"lines\":%" PRIu64 ",\"first\":%" PRIu64 "}", report->unreadable,
               report->first_unreadable);
    fputs(",\"skips\":[", stdout);
    const char *comma = "";
    for (size_t i = 0; i < sizeof skips / sizeof skips[0]; i++) {
        if (skips[i].lines == 0)
            continue;
        printf("%s{\"reason\":\"%s\",\"lines\":%" PRIu64 "}", comma, skips[i].reason,
               skips[i].lines);
        comma = ",";
    }
    fputs("]", stdout);
    if (report->uncopied > 0)
        printf(",\"uncopied\":%" PRIu64, report->uncopied);
    if (report->unchanged)
        fputs(",\"unchanged\":true", stdout);
    if (report->damaged)
        out_json(",\"damage\":?", annal_slice_of(report->damage.message));
    fputs("}\n", stdout);
}

static void print_row(const struct work *work, const struct import_report *report)
{
    char sessions[HUMAN_BYTES];
    table_text(work->table, annal_slice_of(work->path));
    table_text(work->table, annal_slice_of(work->kind));
    table_count(work->table, report->lines);
    table_count(work->table, report->imported);
    table_count(work->table, report->blank + report->duplicate + report->unfinished);
    table_count(work->table, report->events);
    if (report->session_count == 1) {
        table_text(work->table, annal_slice_of(report->sessions[0].id));
    } else {
        table_number(work->table, report->session_count);
        table_shown(work->table, "%s sessions", human_count(sessions, report->session_count));
    }
    table_row(work->table);
}

static void count(struct work *work, const struct import_report *report)
{
    work->files++;
    work->same += report->unchanged ? 1 : 0;
    work->uncopied += report->uncopied;
    work->lines += report->lines;
    work->skipped += report->blank + report->duplicate + report->unfinished;
    work->unfinished += report->unfinished;
    work->events += report->events;
    search_fill_note(work->search, work->events);
}

static void print_totals(const struct work *work)
{
    char files[HUMAN_BYTES], lines[HUMAN_BYTES], skipped[HUMAN_BYTES], events[HUMAN_BYTES];
    if (work->same > 0)
        printf("%s file%s did not change since the last import (--recheck reads them)\n",
               human_count(files, work->same), work->same == 1 ? "" : "s");
    printf("%s file%s, %s line%s, %s of them skipped: %s event%s added\n",
           human_count(files, work->files), work->files == 1 ? "" : "s",
           human_count(lines, work->lines), work->lines == 1 ? "" : "s",
           human_count(skipped, work->skipped), human_count(events, work->events),
           work->events == 1 ? "" : "s");
    if (work->uncopied > 0)
        printf(
            "%s session%s not copied for 'annal source': which rows or files belong to %s is not "
            "known\n",
            human_count(files, work->uncopied), work->uncopied == 1 ? " is" : "s are",
            work->uncopied == 1 ? "it" : "them");
    if (work->left_out > 0)
        printf("%s file%s or director%s could not be read, and %s left out\n",
               human_count(files, work->left_out), work->left_out == 1 ? "" : "s",
               work->left_out == 1 ? "y" : "ies", work->left_out == 1 ? "is" : "are");
    if (work->unknown > 0)
        printf("%s file%s contain%s no log of %s, and %s left out\n",
               human_count(files, work->unknown), work->unknown == 1 ? "" : "s",
               work->unknown == 1 ? "s" : "",
               work->kind_asked != NULL ? work->kind_asked : "a known kind",
               work->unknown == 1 ? "is" : "are");
    if (work->unreadable > 0) {
        printf("%s line%s could not be read, and %s kept as import.unreadable%s\n",
               human_count(lines, work->unreadable), work->unreadable == 1 ? "" : "s",
               work->unreadable == 1 ? "is" : "are", work->damaged.len > 0 ? ":" : "");
        out_slice(annal__buf_slice(&work->damaged));
    }
    if (work->unfinished > 0)
        printf("%s unfinished last line%s: imported once whole\n",
               human_count(lines, work->unfinished), work->unfinished == 1 ? "" : "s");
}

/* ---- The places of the agents ---- */

/* Print a row for each place with logs. counts has the number of logs of each place, in the order
 * of work->places. */
static int print_places(struct work *work, const struct logs *logs, const size_t *counts, int found)
{
    static const struct column columns[] = {
        {.name = "agent", .title = "AGENT"},
        {.name = "place", .title = "PLACE", .flexible = true, .cut_left = true},
        {.name = "logs", .title = "LOGS", .right = true},
        {.name = "bytes", .title = "BYTES", .right = true},
        {.name = "newest_at", .title = "NEWEST"},
    };
    size_t log = 0;
    struct table *table = table_new(work->args->json ? OUT_JSONL : OUT_TABLE, columns, 5);
    for (size_t i = 0; i < work->places.count; i++) {
        char shown[HUMAN_BYTES];
        struct stat st;
        time_t newest = 0;
        uint64_t bytes = 0;
        for (size_t end = log + counts[i]; log < end; log++) {
            bytes += logs->all[log].bytes;
            if (stat(logs->all[log].path, &st) == 0 && st.st_mtime > newest)
                newest = st.st_mtime;
        }
        if (counts[i] == 0)
            continue;
        table_text(table, annal_slice_of(work->places.all[i].importer.kind != NULL
                                             ? work->places.all[i].importer.kind
                                             : "auto"));
        table_text(table, annal_slice_of(work->places.all[i].path));
        table_count(table, counts[i]);
        table_number(table, bytes);
        table_shown(table, "%s", human_bytes(shown, bytes));
        table_time(table, (int64_t)newest * 1000000);
        table_row(table);
    }
    table_free(table);
    if (work->finds && logs->count == 0 && !work->follows)
        return fail_refused("import: no agent has logs in its usual place in this home directory; "
                            "'annal import auto PATH' reads logs elsewhere");
    return found;
}

static void print_next(void)
{
    puts("\n"
         "annal ls              lists the sessions\n"
         "annal search WORDS    finds what was said and done\n"
         "annal serve --open    shows them in a browser\n"
         "annal watch           keeps importing while the agents write");
}

/* ---- The work ---- */

static void show_progress(void *arg, uint64_t bytes_done)
{
    struct work *work = arg;
    const char *slash = strrchr(work->path, '/');
    progress_set(&work->progress, work->bytes + bytes_done, slash != NULL ? slash + 1 : work->path);
}

/* Wait for the turn of the log, or look whether it has come (import_turn_fn). */
static bool take_turn(void *arg, bool waits)
{
    struct worker *worker = arg;
    struct work *work = worker->work;
    if (!worker->has_turn && !waits && !turns_has(&work->turns, worker->at))
        return false;
    if (!worker->has_turn) {
        turns_wait(&work->turns, worker->at);
        worker->has_turn = true;
        work->path = work->logs->all[worker->at].path;
        if (worker->at > 0)
            store_wait_anew(work->args, work->store);
    }
    return !waits || !work->ended;
}

/* Leave out a file whose name fits a log of this kind, but whose content does not: then out->kind
 * is NULL. */
static annal_status leave_other(struct worker *worker, const struct log *log, struct importer *out,
                                annal_error *err)
{
    bool other = false;
    annal_status status =
        log->named ? ANNAL_OK
                   : detect_is_other(&worker->detector, &log->importer, log->path, &other, err);
    if (status < 0 || !other)
        return status;
    *out = (struct importer){0};
    if (!take_turn(worker, true))
        return status;
    worker->work->unknown++;
    progress_hide(&worker->work->progress);
    detect_say_other(log->path, log->importer.kind);
    return status;
}

/* Find the importer for a log. For a log of unknown kind, print a message and set out->kind to
 * NULL. */
static annal_status importer_of(struct worker *worker, const struct log *log, struct importer *out,
                                annal_error *err)
{
    const char *path = log->path;
    struct detected detected;
    *out = log->importer;
    if (out->kind != NULL)
        return leave_other(worker, log, out, err);
    annal_status status = detect_log(&worker->detector, path, &detected, err);
    *out = detected.importer;
    if (status >= 0 && out->kind == NULL && take_turn(worker, true)) {
        worker->work->unknown++;
        progress_hide(&worker->work->progress);
        detect_say_left_out(path, detected.plain);
    }
    return status;
}

/* Keep a line about a log with unreadable lines, to print it after the table of all files. */
static void note_unreadable(struct work *work, const struct import_report *report)
{
    char lines[HUMAN_BYTES], first[HUMAN_BYTES];
    work->unreadable += report->unreadable;
    if (report->unreadable > 0)
        must_printf(&work->damaged, "  %s in '%s', the first is line %s\n",
                    human_count(lines, report->unreadable), work->path,
                    human_count(first, report->first_unreadable));
}

static void print_report(struct work *work, const struct import_report *report)
{
    progress_hide(&work->progress);
    note_unreadable(work, report);
    if (work->args->json)
        print_json(work, report);
    else if (work->table != NULL)
        print_row(work, report);
    count(work, report);
}

static annal_status copy(struct work *work, const struct log *log, const struct importer *importer,
                         struct import_report *report, annal_error *err)
{
    bool settled = true;
    const struct import_copy copy = {.store = work->store,
                                     .importer = importer,
                                     .path = log->path,
                                     .report = report,
                                     .spares = &work->spares,
                                     .limits = &work->limits,
                                     .flags = IMPORT_COPY_WAIT |
                                              (report->unchanged ? IMPORT_COPY_IF_OLD : 0)};
    annal_status status = import_copy(&copy, &settled, err);
    if (!settled)
        say("import '%s': the log is being written, so the store did not copy the log; 'annal "
            "watch' copies the log when no process writes to it",
            log->path);
    return status;
}

static struct import_options options_of(struct worker *worker)
{
    struct work *work = worker->work;
    return (struct import_options){.spares = &worker->spares,
                                   .owners = work->owners,
                                   .progress = show_progress,
                                   .arg = work,
                                   .options = work->options,
                                   .option_count = work->option_count,
                                   .limits = &worker->limits,
                                   .deleted = work->deleted,
                                   .group = &work->unsynced,
                                   .turn = take_turn,
                                   .turn_arg = worker};
}

static bool is_unchanged(struct work *work, struct imported *log,
                         const struct import_options *options)
{
    if (args_has(work->args, "recheck"))
        return false;
    pthread_mutex_lock(&work->lock);
    bool is = unchanged_find(work->unchanged, &log->mark, options, &log->importer, &log->report);
    pthread_mutex_unlock(&work->lock);
    return is;
}

/* Import one log, and return with its turn. */
static void import_log(struct worker *worker, struct imported *log)
{
    const struct import_options options = options_of(worker);
    const char *path = log->log->path;
    unchanged_mark_take(path, &log->mark);
    if (!is_unchanged(worker->work, log, &options)) {
        log->status = importer_of(worker, log->log, &log->importer, &log->err);
        if (log->status >= 0 && log->importer.kind != NULL)
            log->status = import_file(worker->work->store, &log->importer, path, &options,
                                      &log->report, &log->err);
    }
    (void)take_turn(worker, true);
}

/* Copy one log, note it, and print its report. */
static int finish_log(struct worker *worker, struct imported *log)
{
    struct work *work = worker->work;
    const char *path = log->log->path;
    const struct import_options options = options_of(worker);
    struct import_report *report = &log->report;
    int exit_status = EXIT_DONE;
    bool known = log->importer.kind != NULL;
    work->path = path;
    work->kind = log->importer.kind;
    if (log->status >= 0 && known && work->copies)
        log->status = copy(work, log->log, &log->importer, report, &log->err);
    if (log->status >= 0 && known && !report->unchanged) {
        pthread_mutex_lock(&work->lock);
        unchanged_note(work->unchanged, &log->mark, &options, &log->importer, report);
        pthread_mutex_unlock(&work->lock);
    }
    if (report->container != NULL)
        print_report(work, report);
    unchanged_mark_done(&log->mark);
    if (report->damaged) {
        say("import '%s': %s; the lines before the damage were imported", path,
            report->damage.message);
        exit_status = EXIT_REFUSED;
    }
    progress_hide(&work->progress);
    int unknown = import_say_unknown(report, path, log->importer.kind);
    exit_status = unknown > exit_status ? unknown : exit_status;
    if (log->status < 0)
        exit_status = fail_error(&log->err);
    import_report_done(report);
    return exit_status;
}

/* Make the events of the group durable, and finish its logs. */
static void finish_group(struct worker *worker)
{
    struct work *work = worker->work;
    annal_error err = {0};
    annal_status synced = import_group_sync(&work->unsynced, work->store, &err);
    for (size_t i = 0; i < work->group_count; i++) {
        struct imported *log = &work->group[i];
        log->report.store_failed |= synced < 0;
        work->ended |= log->report.store_failed;
        if (synced < 0 && log->status >= 0) {
            log->status = synced;
            log->err = err;
            annal__error_context(&log->err, "import '%s'", log->log->path);
        }
        int of_log = finish_log(worker, log);
        work->exit_status = of_log > work->exit_status ? of_log : work->exit_status;
    }
    work->group_count = 0;
    work->group_bytes = 0;
    if (work->ended)
        turns_end(&work->turns);
}

/* In its turn: add a log to the group, and finish the group if it is full. */
static void add_to_group(struct worker *worker, const struct imported *log)
{
    struct work *work = worker->work;
    work->group[work->group_count++] = *log;
    work->bytes += log->log->bytes;
    work->group_bytes += log->report.unchanged ? 0 : log->log->bytes;
    if (work->group_count == GROUP_LOGS || work->group_bytes >= GROUP_BYTES ||
        log->report.store_failed || worker->at + 1 == work->logs->count)
        finish_group(worker);
}

static void *import_some(void *arg)
{
    struct worker *worker = arg;
    struct work *work = worker->work;
    while ((worker->at = turns_take(&work->turns)) != SIZE_MAX) {
        const struct log *log = &work->logs->all[worker->at];
        struct imported imported = {.log = log, .importer = log->importer};
        worker->has_turn = false;
        import_log(worker, &imported);
        if (!work->ended) {
            add_to_group(worker, &imported);
        } else {
            unchanged_mark_done(&imported.mark);
            import_report_done(&imported.report);
        }
        turns_pass(&work->turns, worker->at);
    }
    import_spares_done(&worker->spares);
    annal_import_close(worker->detector);
    return NULL;
}

static void begin_table(struct work *work)
{
    static const struct column columns[] = {
        {.name = "file", .title = "FILE", .flexible = true, .cut_left = true},
        {.name = "kind", .title = "KIND"},
        {.name = "lines", .title = "LINES", .right = true},
        {.name = "imported", .title = "IMPORTED", .right = true},
        {.name = "skipped", .title = "SKIPPED", .right = true},
        {.name = "events", .title = "EVENTS", .right = true},
        {.name = "sessions", .title = "SESSION", .flexible = true},
    };
    /* no table of the imported logs: if the places of agents were searched, people have already
     * seen a table of the logs found there */
    if (!work->args->json && !work->finds)
        work->table = table_new(OUT_TABLE, columns, sizeof columns / sizeof columns[0]);
}

static void end_table(struct work *work)
{
    if (work->table != NULL)
        table_free(work->table);
    work->table = NULL;
}

static unsigned depth_of(const char *path)
{
    unsigned depth = 0;
    for (; *path != '\0'; path++)
        depth += *path == '/';
    return depth;
}

static bool is_of_agent(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash != NULL ? slash + 1 : path, "agent-", 6) == 0;
}

/*
 * Order the logs for the import: the first imported log of a record gets the record, so a
 * conversation precedes its copies. A sub-agent, whose path or name shows its parent, follows the
 * parent. A larger log that continues a conversation follows the smaller log.
 */
static int compare_logs(const void *left, const void *right)
{
    const struct log *a = left, *b = right;
    unsigned a_depth = depth_of(a->path), b_depth = depth_of(b->path);
    bool a_agent = is_of_agent(a->path), b_agent = is_of_agent(b->path);
    if (a_depth != b_depth)
        return a_depth < b_depth ? -1 : 1;
    if (a_agent != b_agent)
        return a_agent ? 1 : -1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->path, b->path);
}

/* Import the logs in the order of the list; several threads read them (tools/import/ahead.h). */
static void import_at_once(struct work *work)
{
    struct worker workers[TURNS_JOBS_MAX] = {0};
    void *all[TURNS_JOBS_MAX];
    unsigned jobs = turns_jobs(work->args);
    jobs = jobs > work->logs->count ? (unsigned)work->logs->count : jobs;
    for (unsigned i = 0; i < jobs; i++) {
        workers[i] = (struct worker){.work = work, .limits = work->limits};
        all[i] = &workers[i];
        if (i > 0)
            overdue_watch(&workers[i].limits);
    }
    pthread_mutex_init(&work->lock, NULL);
    if (jobs > 0)
        turns_run(&work->turns, work->logs->count, import_some, all, jobs);
    pthread_mutex_destroy(&work->lock);
}

static int import_logs(struct work *work, struct logs *logs)
{
    annal_error err = {0};
    work->logs = logs;
    begin_table(work);
    progress_begin(&work->progress, "import", logs->bytes);
    work->unchanged = unchanged_open(work->store);
    if (logs->count > 0)
        qsort(logs->all, logs->count, sizeof *logs->all, compare_logs);
    import_at_once(work);
    progress_hide(&work->progress);
    if (work->copies && copies_sync(work->store, &err) < 0)
        work->exit_status = fail_error(&err);
    unchanged_close(work->unchanged);
    import_spares_done(&work->spares);
    end_table(work);
    if (!work->args->json && work->files > 0)
        print_totals(work);
    return work->exit_status;
}

/* ---- Following ---- */

/* Print the report of an imported log. For people, the first pass is a table, and later events are
 * only counted. */
static void print_taken(void *arg, const char *path, const char *kind,
                        const struct import_report *report)
{
    struct work *work = arg;
    work->path = path;
    work->kind = kind;
    if (work->args->json) {
        print_json(work, report);
        (void)out_flush();
    } else if (work->table != NULL) {
        print_row(work, report);
    }
}

static void print_first_pass(void *arg, size_t logs)
{
    struct work *work = arg;
    char count[HUMAN_BYTES];
    end_table(work);
    (void)out_flush();
    say("following %s log%s; Ctrl-C ends it", human_count(count, logs), logs == 1 ? "" : "s");
}

static int follow(struct work *work, annal_index *index, int signals)
{
    char *store = store_path(work->args);
    struct follow_totals totals = {0};
    const struct follow_options options = {
        .store = work->store,
        .index = index,
        .store_path = store,
        .places = &work->places,
        .finds = work->finds,
        .all_users = args_has(work->args, "all-users"),
        .map = work->options,
        .map_count = work->option_count,
        .limits = &work->limits,
        .owners = work->owners,
        .recheck = args_has(work->args, "recheck"),
        .copies = work->copies,
        .again = args_has(work->args, "again"),
        .signals = signals,
        .took = print_taken,
        .all_read = print_first_pass,
        .arg = work,
    };
    begin_table(work);
    store_wait_each(work->store);
    int exit_status = follow_logs(&options, &totals);
    end_table(work);
    work->files = totals.files;
    work->lines = totals.lines;
    work->skipped = totals.skipped;
    work->unfinished = totals.unfinished;
    work->unreadable = totals.unreadable;
    work->events = totals.events;
    work->unknown = totals.unknown;
    work->same = totals.same;
    if (!work->args->json)
        print_totals(work);
    annal__free(store);
    return exit_status;
}

/* ---- The command line ---- */

/* Turn the values NAME=VALUE of --map into options of the importer. Return the exit status. */
static int read_map(struct work *work)
{
    int at = 0;
    for (const char *text; (text = args_next(work->args, "map", &at)) != NULL;) {
        const char *equal = strchr(text, '=');
        if (equal == NULL || equal == text)
            return fail_usage("--map needs NAME=VALUE, such as session=$.sid, not '%s'", text);
        annal_import_option *option =
            must_array_add(&work->options, &work->option_count, sizeof *option);
        *option = (annal_import_option){{text, (size_t)(equal - text)}, annal_slice_of(equal + 1)};
    }
    return EXIT_DONE;
}

/* Find the logs at all places, in the order of the places. If counts is not NULL, it gets the
 * number of logs of each place. */
static int find_all(const struct work *work, struct logs *logs, size_t *counts)
{
    char *store = store_path(work->args);
    int exit_status = EXIT_DONE;
    logs->store = store;
    for (size_t i = 0; i < work->places.count && exit_status <= EXIT_REFUSED; i++) {
        size_t before = logs->count;
        logs->importer = &work->places.all[i].importer;
        int found = find_logs(logs, work->places.all[i].path);
        exit_status = found > exit_status ? found : exit_status;
        if (counts != NULL)
            counts[i] = logs->count - before;
    }
    if (exit_status == EXIT_DONE && logs->count == 0 && !work->finds && !work->follows)
        exit_status = fail_refused("import '%s': the path contains no log of kind %s",
                                   work->places.all[0].path, work->args->operands[0]);
    logs->store = NULL;
    find_logs_all(logs);
    annal__free(store);
    return exit_status;
}

/*
 * Import into the store, with the index open: it takes snapshots of the imported sessions. Without
 * --follow the import ends when the index is up to date, so that no query has to wait; it does not
 * index earlier, because it would index few events at a time, at twice the cost. With --follow the
 * next query indexes them.
 */
static int work_in_store(struct work *work, struct logs *logs, int signals)
{
    annal_error err = {0};
    annal_index *index = NULL;
    int lock = -1;
    int exit_status =
        store_open(work->args, signals >= 0 ? OPEN_CREATE : OPEN_FILL, 0, &work->store);
    if (exit_status != EXIT_DONE)
        return exit_status;
    if (work->watches && watcher_begin(annal_store_path(work->store), &lock, &err) < 0)
        exit_status = fail_error(&err);
    else if (annal_index_open(work->store, NULL, &index, &err) < 0)
        exit_status = fail_error(&err);
    else if ((work->owners = owners_new(signals >= 0 ? NULL : work->store, index)) == NULL)
        exit_status = fail_storage("import logs: out of memory");
    else
        work->deleted =
            signals >= 0 || args_has(work->args, "again") ? NULL : deleted_open(work->store);
    if (work->owners != NULL && !work->follows)
        work->search = search_fill_new(index);
    if (work->owners != NULL)
        exit_status = signals >= 0 ? follow(work, index, signals) : import_logs(work, logs);
    search_fill_last(work->search);
    if (work->events > 0 && !work->follows)
        catch_up_wholly(index);
    search_fill_free(work->search);
    if (work->owners != NULL && !work->follows && changes_note(work->store, index, &err) < 0)
        exit_status = fail_error(&err);
    deleted_close(work->deleted);
    if (owners_failure(work->owners) != NULL)
        say("import: records that other sessions of the store already contain may have been "
            "imported again, because the index failed: %s",
            owners_failure(work->owners)->message);
    exit_status = out_finish(exit_status);
    owners_free(work->owners);
    annal_index_close(index);
    if (lock >= 0)
        close(lock);
    return store_close(work->store, exit_status);
}

static bool has_sessions(const struct args *args)
{
    SCOPED_BUF events = {0};
    char *path = store_path(args);
    must_printf(&events, "%s/events", path != NULL ? path : "");
    bool has = path != NULL && access(events.ptr, F_OK) == 0;
    annal__free(path);
    return has;
}

/* Import from work->places into the store; create the store if it is missing. Return the exit
 * status. */
static int import_places(struct work *work)
{
    struct logs logs = {.ignores_others = work->finds};
    bool lists = work->finds || args_has(work->args, "dry-run");
    size_t *counts = lists ? must_zalloc((work->places.count + 1) * sizeof *counts) : NULL;
    int signals = -1;
    work->limits = fields_limits(work->args);
    work->copies = !args_has(work->args, "no-copies");
    overdue_watch(&work->limits);
    int found = find_all(work, &logs, counts);
    work->left_out = logs.left_out;
    if (found <= EXIT_REFUSED && counts != NULL)
        found = print_places(work, &logs, counts, found);
    annal__free(counts);
    bool any = found == EXIT_DONE || (found == EXIT_REFUSED && logs.count > 0);
    int exit_status = any ? EXIT_DONE : found;
    /* without any log, what happened to the logs of a store may still be written */
    bool works = (any || (found == EXIT_REFUSED && !work->follows && has_sessions(work->args))) &&
                 !args_has(work->args, "dry-run");
    if (works && work->follows)
        exit_status = (signals = follow_signals()) >= 0 ? EXIT_DONE : EXIT_STORAGE;
    if (work->follows)
        find_logs_done(&logs); /* free the list of logs: follow_logs() finds the logs itself */
    if (works && exit_status <= EXIT_REFUSED)
        exit_status = work_in_store(work, &logs, signals);
    exit_status = found > exit_status ? found : exit_status;
    if (exit_status == EXIT_DONE && work->unknown > 0 && work->files == 0)
        exit_status = EXIT_REFUSED;
    if (works && any && work->finds && !work->follows && !work->args->json &&
        exit_status <= EXIT_REFUSED)
        print_next();
    if (signals >= 0)
        close(signals);
    find_logs_done(&logs);
    log_places_done(&work->places);
    annal__buf_done(&work->damaged);
    return exit_status;
}

/* Import the logs at the paths that the user named. */
static int import_paths(const struct args *args)
{
    struct work work = {.args = args, .follows = args_has(args, "follow")};
    struct importer importer = {0};
    SCOPED_BUF sql = {0}, name = {0};
    int exit_status = choose_importer(args->operands[0], &sql, &name, &importer);
    if (exit_status == EXIT_DONE)
        exit_status = read_map(&work);
    if (exit_status == EXIT_DONE)
        exit_status = map_check(&importer, work.options, work.option_count);
    work.kind_asked = importer.kind;
    for (int i = 1; i < args->operand_count && exit_status == EXIT_DONE; i++)
        log_places_add(&work.places, &importer, args->operands[i]);
    if (exit_status == EXIT_DONE)
        exit_status = import_places(&work);
    annal__free(work.options);
    return exit_status;
}

int import_found(const struct args *args, bool watches)
{
    bool follows = watches || args_has(args, "follow");
    struct work work = {.args = args, .finds = true, .watches = watches, .follows = follows};
    child_end_with_parent();
    log_places_find(&work.places, args_has(args, "all-users"));
    return import_places(&work);
}

/* ---- Detecting ---- */

static int print_detected(annal_import **detector, struct table *table, const char *path,
                          bool *out_known)
{
    struct detected detected;
    annal_error err = {0};
    if (detect_log(detector, path, &detected, &err) < 0)
        return fail_error(&err);
    *out_known = detected.importer.kind != NULL;
    table_text(table, annal_slice_of(path));
    if (*out_known) {
        table_text(table, annal_slice_of(detected.importer.kind));
        table_text(table, annal_slice_of(source_container_name(detected.container)));
        table_number(table, (uint64_t)detected.sure);
    } else {
        if (detected.plain)
            say("the file '%s' contains JSON lines of an unknown kind, which 'annal import jsonl "
                "--map ...' reads",
                path);
        table_null(table);
        table_shown(table, detected.plain ? "JSON lines" : "unknown");
        table_null(table);
        table_null(table);
    }
    table_row(table);
    return EXIT_DONE;
}

static int detect(const struct args *args)
{
    static const struct column columns[] = {
        {.name = "file", .title = "FILE", .flexible = true, .cut_left = true},
        {.name = "kind", .title = "KIND"},
        {.name = "container", .title = "CONTAINER"},
        {.name = "sure", .title = "SURE", .right = true},
    };
    const struct importer any = {0};
    struct logs logs = {.importer = &any};
    annal_import *detector = NULL;
    bool known = true, all_known = true;
    int exit_status = EXIT_DONE;
    for (int i = 0; i < args->operand_count && exit_status <= EXIT_REFUSED; i++) {
        int found = find_logs(&logs, args->operands[i]);
        exit_status = found > exit_status ? found : exit_status;
    }
    int found = exit_status == EXIT_REFUSED ? EXIT_REFUSED : EXIT_DONE;
    exit_status = exit_status == EXIT_REFUSED ? EXIT_DONE : exit_status;
    struct table *table = table_new(args->json ? OUT_JSONL : OUT_TABLE, columns, 4);
    for (size_t i = 0; i < logs.count && exit_status == EXIT_DONE; i++) {
        exit_status = print_detected(&detector, table, logs.all[i].path, &known);
        all_known = all_known && known;
    }
    annal_import_close(detector);
    table_free(table);
    if (exit_status == EXIT_DONE && (!all_known || logs.count == 0 || found != EXIT_DONE))
        exit_status = EXIT_REFUSED;
    find_logs_done(&logs);
    return out_finish(exit_status);
}

static int run(const struct args *args)
{
    if (args_has(args, "detect"))
        return detect(args);
    if (args->operand_count > 0 && args_has(args, "all-users"))
        return fail_usage("--all-users finds logs by itself: omit KIND and PATH");
    if (args->operand_count == 0)
        return import_found(args, false);
    if (strcmp(args->operands[0], "bundle") == 0 && args->operand_count == 2 &&
        args->value_count == 0)
        return bundle_import(args, args->operands[1], args->operands[1], NULL);
    if (strcmp(args->operands[0], "bundle") == 0)
        return fail_usage("import bundle needs one FILE and accepts no option");
    if (args->operand_count < 2)
        return fail_usage("import needs KIND PATH..., such as 'annal import auto %s'",
                          args->operands[0]);
    return import_paths(args);
}

static const struct field fields[] = {
    OPERAND_MAYBE("KIND", FIELD_TEXT, NULL,
                  "kind of the logs; auto: detected for each; or NAME.sql"),
    OPERAND_MAYBE("PATH", FIELD_LIST, NULL, "a log, or a directory with logs"),
    OPTION("map", "NAME=VALUE", FIELD_LIST, NULL, "option of the importer"),
    FLAG("follow", NULL, "import new lines as well, until Ctrl-C"),
    FLAG("recheck", NULL, "read unchanged logs too"),
    FLAG("again", NULL, "import deleted sessions too"),
    FLAG("no-copies", NULL, "keep no copies of the logs (see 'annal source')"),
    FLAG("detect", NULL, "print the kind of each PATH, import nothing"),
    FLAG("dry-run", NULL, "list the places of logs, import nothing"),
    FLAG("all-users", NULL, "without KIND: logs in the home directories of all users"),
    OPTION_WITH("jobs", "N", FIELD_COUNT, NULL, "number of logs to read at a time (one a core)",
                .least = 1, .most = TURNS_JOBS_MAX),
    LIMIT_OPTIONS,
    OPTION_WITH("format", "FORMAT", FIELD_CHOICE, NULL, "format of new journals (jsonl)",
                .choices = JOURNAL_FORMATS),
    CREATE_OPTION,
    FIELDS_END};

const struct command cmd_import = {
    COMMAND("import", "import agent logs; a repeated import adds only new events", import, fields,
            run),
};
