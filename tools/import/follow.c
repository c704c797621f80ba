/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/follow.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/hash.h"
#include "journal/base/slice.h"
#include "tools/cli/command.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/places.h"
#include "tools/import/changes.h"
#include "tools/import/deleted.h"
#include "tools/import/detect.h"
#include "tools/import/find.h"
#include "tools/import/runs.h"
#include "tools/import/unchanged.h"
#include "tools/import/watch.h"
#include "tools/source/copies.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIVE_MAX 32
/* Maximum memory of the importers of open logs, in bytes. LOG_BYTES for each followed log are
 * subtracted from it, but LIVE_BYTES_LEAST always remain. */
#define LIVE_BYTES       ((size_t)20 << 20)
#define LIVE_BYTES_LEAST ((size_t)4 << 20)
#define LOG_BYTES        ((size_t)800)
#define POLL_US          ((int64_t)2000000)
#define QUIET_US         ((int64_t)5000000)
#define RETRY_US         ((int64_t)1000000)
#define GAP_US           ((int64_t)10000) /* minimum time in us between two reads of a log */
/* how long a moved file is read after its last new line, in us */
#define LINGER_US ((int64_t)10000000)
/* interval in us of the checks of a moved file, for which inotify may report nothing */
#define MOVED_US ((int64_t)250000)
#define DEEP_MAX 4 /* maximum depth of directories in a log that is a directory */
/* Pause after a check of all logs, as a multiple of the check's duration: HEARING_PAUSE if inotify
 * reports every change, else DEAF_PAUSE. */
#define HEARING_PAUSE 1000
#define DEAF_PAUSE    20
/* pause in us between the last write to a log and its copy */
#define COPY_US       ((int64_t)25000)
#define COPY_PAUSE_US ((int64_t)100000)
#define COPY_RETRY_US ((int64_t)10000000) /* pause in us after a copy that failed */
#define SETTLE_US     ((int64_t)2000000)  /* pause in us before a change is noted as an event */
#define SETTLE_PAUSE  20 /* pause after these notes, as a multiple of their duration */
/*
 * maximum number of new paths that are searched one by one; if more appear, all places are searched
 */
#define APPEARED_MAX 64
#define PATH_SIZE    4608

/* an open log and its counts */
struct reading {
    struct import_job *job; /* import of the open log, or NULL if the log is not open */
    struct follow_totals totals;
};

struct followed {
    char *path;
    /* importer of the log; its kind is NULL until the kind of the log is detected */
    struct importer importer;
    /* whether the place of the log, not its content, determines its kind */
    bool is_chosen;
    bool named; /* whether the user named the log */
    struct reading now;
    struct reading moved; /* the file that was at path before it was replaced */
    /* time in us at which the last new line of the moved file was read */
    int64_t moved_us;
    int64_t moved_due_us; /* time of the next check of the moved file, in us */
    /* counts of the older files that were at path before the file in `moved` */
    struct follow_totals before;
    /* result of stamp_of() when the log was last read; 0: the log did not exist */
    uint64_t stamp;
    int64_t changed_us;         /* time in us at which a change was noticed */
    int64_t due_us;             /* earliest time of the next read, in us */
    struct import_report *read; /* sessions of the log, if it must be copied; else NULL */
    int64_t copy_due_us;        /* time in us at which the log is copied, if `read` is not NULL */
    /* end of the pause after the last copy, in us; the next copy is not made before */
    int64_t copied_us;
    bool is_changed;
    /* whether the log is incomplete, and waits until it changes or was not written for QUIET_US */
    bool is_half;
    bool was_read;
    bool was_refused;
    bool was_uncopied;   /* whether sessions were not copied, which was reported */
    bool was_not_copied; /* whether the last copy failed, which was reported */
    /* whether the log was replaced, so that it is copied before it is imported */
    bool copies_first;
    bool was_unknown; /* whether the log has an unknown layout, which was reported */
    /* whether the log has an unknown layout and no content that its importer knows */
    bool is_empty;
    /* whether the content shows that the file is not a log of the kind that its name suggests */
    bool is_other;
    /* whether the log was closed before its first complete line, and must be opened again */
    bool waits;
    /* whether events that only the end of the log shows must be added when it had no writes for
     * QUIET_US (follow.h, rule 7) */
    bool rests;
};

struct follow {
    const struct follow_options *options;
    struct import_options import;
    annal_import *detector;
    struct watch watch;
    struct unchanged *unchanged;
    struct deleted *deleted; /* sessions to leave out because they were deleted */
    uint64_t deleted_stamp;
    struct import_spares spares; /* prepared importers, used for one log after another */
    struct followed *logs;
    size_t count;
    struct places places; /* index of logs by path */
    size_t live_max;      /* maximum number of open logs */
    size_t left;          /* number of logs that were not read for the first time yet */
    bool has_passed;      /* whether the first pass, which reads each log once, has ended */
    int64_t due_us;       /* time in us before which no log must be read; 0: unknown */
    bool search;          /* whether to search all places for new logs */
    int64_t search_us;    /* time in us before which `search` has no effect */
    char **appeared;      /* paths that may be new logs, or directories with new logs */
    size_t appeared_count;
    int64_t found_us;   /* time of the next search for places of agents, in us */
    int64_t check_us;   /* time of the next check of all logs, in us */
    int64_t settled_us; /* time at which changes are noted, in us; INT64_MAX: nothing changed */
    int64_t rested_us;  /* time before which changes are not noted, in us */
    int64_t copies_ns;  /* mtime of the directory of the copies, which new generations change */
    bool ended;         /* whether a signal was received */
    bool has_copied;    /* whether copies were written that are not synced yet */
    /* whether the message was printed that inotify is not available, so that changes are found by
     * polling only */
    bool said_no_watch;
    int exit_status;
};

/* ---- Signals ---- */

int follow_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction how;
    sigset_t set;
    sigemptyset(&set);
    /* leave signals out that are ignored, as SIGHUP is under nohup */
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &how) == 0 && how.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    int fd = sigprocmask(SIG_BLOCK, &set, NULL) == 0
                 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)
                 : -1;
    if (fd < 0)
        (void)fail_storage("import --follow: cannot receive signals: %s", strerror(errno));
    return fd;
}

static bool signal_came(const struct follow *follow)
{
    struct signalfd_siginfo info;
    return read(follow->options->signals, &info, sizeof info) == (ssize_t)sizeof info;
}

/* Return whether to stop because of a signal. import.c calls it between two chunks of a log.
 * take_last() resets `ended`, so that only another signal stops it. */
static bool wants_to_stop(void *arg)
{
    struct follow *follow = arg;
    if (signal_came(follow))
        follow->ended = true;
    return follow->ended;
}

/* ---- Changes ---- */

static void add_stat(uint64_t *stamp, const char *name, const struct stat *st)
{
    const int64_t facts[] = {(int64_t)st->st_ino, (int64_t)st->st_dev, (int64_t)st->st_size,
                             (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec};
    *stamp = annal__hash(name, strlen(name), *stamp);
    *stamp = annal__hash(facts, sizeof facts, *stamp);
}

/* Return a number that changes when a file below a log that is a directory changes: the sum of the
 * files' stamps, which does not depend on the order of their names. */
static uint64_t stamp_of_directory(const char *path, int depth)
{
    uint64_t sum = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
        char below[PATH_SIZE];
        struct stat st;
        uint64_t stamp = 0;
        if (entry->d_name[0] == '.' ||
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= (int)sizeof below)
            continue;
        if (lstat(below, &st) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            add_stat(&stamp, entry->d_name, &st);
        else if (S_ISDIR(st.st_mode) && depth < DEEP_MAX)
            stamp = annal__hash(entry->d_name, strlen(entry->d_name),
                                stamp_of_directory(below, depth + 1));
        sum += stamp;
    }
    if (directory != NULL)
        closedir(directory);
    return sum;
}

/* Return a number that changes when a log changes, or 0 if it does not exist. The number includes
 * the -wal and -journal of a SQLite database, which are written before the database. */
static uint64_t stamp_of(const char *path)
{
    static const char *const beside[] = {"-wal", "-journal"};
    char name[PATH_SIZE];
    struct stat st;
    uint64_t stamp = 1;
    if (stat(path, &st) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return stamp_of_directory(path, 0) | 1;
    add_stat(&stamp, "", &st);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (snprintf(name, sizeof name, "%s%s", path, beside[i]) < (int)sizeof name &&
            stat(name, &st) == 0)
            add_stat(&stamp, beside[i], &st);
    return stamp | 1;
}

/* Note later what happened to the logs, SETTLE_US after the last of them was gone: rule 11. */
static void settle(struct follow *follow, bool is_gone)
{
    int64_t due_us = annal__clock_monotonic_us() + SETTLE_US;
    if (is_gone || follow->settled_us == INT64_MAX)
        follow->settled_us = due_us > follow->rested_us ? due_us : follow->rested_us;
}

/* Note what happened to the logs. */
static void note_settled(struct follow *follow, bool always)
{
    annal_error err = {0};
    int64_t begun_us = annal__clock_monotonic_us();
    if (!always && follow->settled_us > begun_us)
        return;
    if (changes_note(follow->options->store, follow->options->index, &err) < 0)
        follow->exit_status = fail_error(&err);
    int64_t done_us = annal__clock_monotonic_us();
    follow->rested_us = done_us + SETTLE_PAUSE * (done_us - begun_us);
    follow->settled_us = INT64_MAX;
}

static void note_change(struct follow *follow, struct followed *log)
{
    log->is_changed = true;
    log->changed_us = annal__clock_monotonic_us();
    follow->due_us = 0;
}

/* ---- The logs ---- */

/* Return the path without "./" at the beginning, because inotify reports files in the working
 * directory as "./x", and without slashes at the end. */
static annal_slice plain(const char *path)
{
    annal_slice name = annal_slice_of(strncmp(path, "./", 2) == 0 ? path + 2 : path);
    while (name.len > 1 && name.ptr[name.len - 1] == '/')
        name.len--;
    return name;
}

static struct followed *find_followed(const struct follow *follow, annal_slice name)
{
    uint64_t hash = annal__hash(name.ptr, name.len, 0);
    size_t at = 0, index;
    while ((index = places_next(&follow->places, hash, &at)) != SIZE_MAX)
        if (annal__slice_same(plain(follow->logs[index].path), name))
            return &follow->logs[index];
    return NULL;
}

static void add_followed(struct follow *follow, const struct log *found)
{
    const char *path = found->path;
    annal_slice name = plain(path);
    if (find_followed(follow, name) != NULL)
        return;
    struct followed *log = must_array_add(&follow->logs, &follow->count, sizeof *log);
    must_true(places_add(&follow->places, annal__hash(name.ptr, name.len, 0), follow->count - 1));
    *log = (struct followed){.path = must_strndup(path, strlen(path)),
                             .importer = found->importer,
                             .is_chosen = found->importer.kind != NULL,
                             .named = found->named};
    note_change(follow, log);
}

static void watch_directory(void *arg, const char *path)
{
    struct follow *follow = arg;
    watch_add(&follow->watch, path);
}

/* Watch a log that is a directory, and the directories in it. */
static void watch_below(struct follow *follow, const char *path, int depth)
{
    DIR *directory = opendir(path);
    if (directory == NULL)
        return;
    watch_add(&follow->watch, path);
    for (struct dirent *entry; depth < DEEP_MAX && (entry = readdir(directory)) != NULL;) {
        char below[PATH_SIZE];
        struct stat st;
        if (entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below &&
            lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
            watch_below(follow, below, depth + 1);
    }
    closedir(directory);
}

/* Watch a file (path may be a link to it), and the directory of path, in which the file may be
 * replaced. */
static void watch_file(struct follow *follow, const char *path)
{
    char directory[PATH_SIZE];
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    if (slash != NULL)
        slash[slash == directory ? 1 : 0] = '\0';
    watch_add(&follow->watch, slash != NULL ? directory : ".");
    watch_add(&follow->watch, path);
}

static void watch_operand(struct follow *follow, const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        /* DEEP_MAX: watch only this directory, because find_logs() reads the directories below
         * it */
        watch_below(follow, path, DEEP_MAX);
    else
        watch_file(follow, path);
}

static void follow_found(struct follow *follow, const struct logs *found)
{
    for (size_t i = 0; i < found->count; i++) {
        struct stat st;
        add_followed(follow, &found->all[i]);
        if (stat(found->all[i].path, &st) == 0 && S_ISDIR(st.st_mode))
            watch_below(follow, found->all[i].path, 0);
    }
}

/* Search all places for new logs. */
static void search(struct follow *follow)
{
    const struct follow_options *options = follow->options;
    struct logs found = {
        .store = options->store_path, .quiet = true, .looked = watch_directory, .arg = follow};
    int64_t begun_us = annal__clock_monotonic_us();
    follow->search = false;
    if (options->finds)
        log_places_find(options->places, options->all_users);
    for (size_t i = 0; i < options->places->count; i++) {
        const struct log_place *place = &options->places->all[i];
        struct stat st;
        if (place->is_found && stat(place->path, &st) < 0)
            continue;
        watch_operand(follow, place->path);
        found.importer = &place->importer;
        (void)find_logs(&found, place->path);
    }
    follow_found(follow, &found);
    find_logs_done(&found);
    if (follow->watch.refused != 0 && !follow->said_no_watch) {
        follow->said_no_watch = true;
        say("import --follow: inotify cannot report changes of logs: %s; annal checks the logs "
            "every %d seconds",
            strerror(follow->watch.refused), (int)(POLL_US / 1000000));
    }
    int64_t done_us = annal__clock_monotonic_us();
    follow->search_us = done_us + 4 * (done_us - begun_us);
}

/* Return whether a new file may make its directory a log of this kind. */
static bool has_directories(const struct importer *importer)
{
    size_t at = 0;
    return importer->kind == NULL || runs_is_importer(importer) ||
           importer_word(importer, "directory", &at).len > 0;
}

static bool is_below(const char *path, annal_slice directory)
{
    annal_slice name = plain(path);
    return name.len > directory.len && name.ptr[directory.len] == '/' &&
           memcmp(name.ptr, directory.ptr, directory.len) == 0;
}

/* Search the paths that appeared, which is faster than a search of all places. */
static void search_appeared(struct follow *follow)
{
    const struct follow_options *options = follow->options;
    struct stat st;
    for (size_t i = 0; i < follow->appeared_count; i++) {
        struct logs found = {
            .store = options->store_path, .quiet = true, .looked = watch_directory, .arg = follow};
        const char *path = follow->appeared[i];
        bool inside = options->finds;
        for (size_t j = 0; j < options->places->count && lstat(path, &st) == 0; j++) {
            const struct log_place *place = &options->places->all[j];
            if (!is_below(path, plain(place->path)))
                continue;
            inside = true;
            found.importer = &place->importer;
            follow->search =
                follow->search || has_directories(&place->importer) || S_ISLNK(st.st_mode);
            (void)find_logs_below(&found, path);
        }
        follow->search = follow->search || !inside;
        follow_found(follow, &found);
        find_logs_done(&found);
        annal__free(follow->appeared[i]);
    }
    annal__free(follow->appeared);
    follow->appeared = NULL;
    follow->appeared_count = 0;
}

/* ---- Notifications ---- */

/* Record a change of the log with this path. Return false if no followed log has this path. */
static bool hear_of(struct follow *follow, annal_slice name)
{
    struct followed *log = find_followed(follow, name);
    if (log != NULL)
        note_change(follow, log);
    return log != NULL;
}

/*
 * Record a change of each log that a change of this path concerns: the log at the path, the
 * database to which the -wal or -journal at the path belongs, and logs that are directories above
 * it. Return whether such a log is followed.
 */
static bool hear_path(struct follow *follow, const char *path)
{
    static const char *const beside[] = {"-wal", "-journal"};
    annal_slice name = plain(path);
    bool known = hear_of(follow, name);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        size_t len = strlen(beside[i]);
        if (name.len > len && memcmp(name.ptr + name.len - len, beside[i], len) == 0)
            known = hear_of(follow, (annal_slice){name.ptr, name.len - len}) || known;
    }
    for (size_t len = name.len; len-- > 1;)
        if (name.ptr[len] == '/')
            known = hear_of(follow, (annal_slice){name.ptr, len}) || known;
    return known;
}

static void note_appeared(struct follow *follow, const char *path)
{
    if (path == NULL || follow->appeared_count >= APPEARED_MAX) {
        follow->search = true;
        return;
    }
    char **appeared = must_array_add(&follow->appeared, &follow->appeared_count, sizeof *appeared);
    *appeared = must_strndup(path, strlen(path));
}

static void hear(void *arg, const char *path, bool appeared)
{
    struct follow *follow = arg;
    bool known = path != NULL && hear_path(follow, path);
    for (size_t i = 0; path == NULL && i < follow->count; i++)
        note_change(follow, &follow->logs[i]);
    if (appeared && !known)
        note_appeared(follow, path);
    struct stat st;
    if (appeared && known && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        follow->search = true; /* search again, so that a new directory in a log is watched */
}

/* Check the stamps of all logs, and search for new logs. */
static void check_all(struct follow *follow)
{
    int64_t begun_us = annal__clock_monotonic_us();
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *log = &follow->logs[i];
        if (!log->is_changed && stamp_of(log->path) != log->stamp)
            note_change(follow, log);
    }
    search(follow);
    unchanged_write(follow->unchanged);
    (void)malloc_trim(0); /* return the memory of the list of all files to the system */
    int64_t done_us = annal__clock_monotonic_us();
    int64_t pause_us =
        (done_us - begun_us) * (watch_is_sure(&follow->watch) ? HEARING_PAUSE : DEAF_PAUSE);
    follow->check_us = done_us + (pause_us > POLL_US ? pause_us : POLL_US);
}

/* Search for new logs, if a search was requested and its time has come, or if a path appeared. */
static void search_due(struct follow *follow)
{
    const struct follow_options *options = follow->options;
    search_appeared(follow);
    int64_t now_us = annal__clock_monotonic_us();
    if (follow->check_us <= now_us) {
        check_all(follow);
        return;
    }
    if (options->finds && follow->found_us <= now_us) {
        size_t before = options->places->count;
        log_places_find(options->places, options->all_users);
        follow->search = follow->search || options->places->count > before;
        follow->found_us = now_us + POLL_US;
    }
    if (follow->search && follow->search_us <= now_us)
        search(follow);
}

/* ---- Reading ---- */

static struct follow_totals totals_of(const struct import_report *report)
{
    return (struct follow_totals){.files = 1,
                                  .lines = report->lines,
                                  .skipped = report->blank + report->duplicate + report->unfinished,
                                  .unfinished = report->unfinished,
                                  .unreadable = report->unreadable};
}

static void add_totals(struct follow_totals *sum, const struct follow_totals *more)
{
    sum->lines += more->lines;
    sum->skipped += more->skipped;
    sum->unfinished += more->unfinished;
    sum->unreadable += more->unreadable;
    sum->events += more->events;
    sum->same += more->same;
}

/* Print unreadable lines at once; an import without --follow lists them at its end. */
static void tell_unreadable(const struct followed *log, const struct import_report *report,
                            uint64_t lines)
{
    if (lines == 1)
        say("import '%s': line %" PRIu64 " could not be read, and is kept as import.unreadable",
            log->path, report->last_unreadable);
    else if (lines > 1)
        say("import '%s': %" PRIu64 " lines could not be read, and are kept as import.unreadable; "
            "the last is line %" PRIu64,
            log->path, lines, report->last_unreadable);
}

/* Report the events that were imported since the last report. The job counts all events since it
 * was opened; events_before of them were reported already. */
static void tell(struct follow *follow, struct followed *log, struct reading *reading,
                 uint64_t events_before)
{
    const struct follow_options *options = follow->options;
    struct import_report report = *import_report(reading->job);
    uint64_t events = reading->totals.events, unreadable = reading->totals.unreadable;
    report.events -= events_before;
    reading->totals = totals_of(&report);
    reading->totals.events = events + report.events;
    if (report.events > 0 || !log->was_read)
        options->took(options->arg, log->path, log->importer.kind, &report);
    if (report.unreadable > unreadable)
        tell_unreadable(log, &report, report.unreadable - unreadable);
    if (report.damaged && !log->was_refused)
        say("import '%s': %s; the lines before the damage were imported", log->path,
            report.damage.message);
    log->was_refused = report.damaged;
    if (!log->was_unknown)
        (void)import_say_unknown(&report, log->path, log->importer.kind);
    log->was_unknown = import_is_unknown(&report);
    log->is_empty = log->was_unknown && report.own == 0;
    if (report.damaged)
        follow->exit_status = EXIT_REFUSED;
    log->was_read = true;
}

/* Handle a failure to import a log. A failure of the store ends the command. A locked log is read
 * again after RETRY_US. Any other failure is printed once, until the log can be read again. */
static annal_status refuse(struct follow *follow, struct followed *log, bool of_store,
                           annal_status status, const annal_error *err)
{
    if (of_store || status == ANNAL_ERR_NOMEM) {
        follow->exit_status = fail_error(err);
        return status;
    }
    if (status == ANNAL_ERR_BUSY) {
        note_change(follow, log);
        log->due_us = annal__clock_monotonic_us() + RETRY_US;
        return ANNAL_OK;
    }
    if (!log->was_refused)
        follow->exit_status = fail_error(err);
    log->was_refused = true;
    return ANNAL_OK;
}

static void close_reading(struct reading *reading)
{
    import_close(reading->job);
    reading->job = NULL;
}

/* ---- Copies of logs (rule 9 of follow.h) ---- */

static void copy_done(struct followed *log)
{
    if (log->read != NULL)
        import_report_done(log->read);
    annal__free(log->read);
    log->read = NULL;
}

/* After a copy, store the ids of the journals for which it was made in the report of the job, so
 * that a later copy notices a deleted session. */
static void keep_journals(struct followed *log)
{
    struct import_report *report = log->now.job != NULL ? import_report(log->now.job) : NULL;
    for (size_t i = 0; report != NULL && i < log->read->session_count && i < report->session_count;
         i++)
        memcpy(report->sessions[i].journal, log->read->sessions[i].journal,
               sizeof report->sessions[i].journal);
}

/* Find whether a generation began, which may be the end of another. */
static void look_at_generations(struct follow *follow)
{
    char path[PATH_SIZE];
    struct stat st;
    snprintf(path, sizeof path, "%s/sources", annal_store_path(follow->options->store));
    if (stat(path, &st) < 0)
        return;
    int64_t copies_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    if (copies_ns != follow->copies_ns)
        settle(follow, false);
    follow->copies_ns = copies_ns;
}

/* Copy a log. A failure is printed once, until a copy succeeds. */
static void copy_now(struct follow *follow, struct followed *log, unsigned flags)
{
    annal_error err = {0};
    bool settled = true;
    int64_t begun_us = annal__clock_monotonic_us();
    const struct import_copy copy = {.store = follow->options->store,
                                     .importer = &log->importer,
                                     .path = log->path,
                                     .report = log->read,
                                     .spares = &follow->spares,
                                     .limits = follow->options->limits,
                                     .flags = flags};
    annal_status status = import_copy(&copy, &settled, &err);
    int64_t now_us = annal__clock_monotonic_us(), took_us = now_us - begun_us;
    int64_t least_us = 3 * took_us > COPY_PAUSE_US ? 3 * took_us : COPY_PAUSE_US;
    bool failed = status < 0 && status != ANNAL_ERR_BUSY && err.os_errno != ENOENT;
    if (failed && !log->was_not_copied)
        follow->exit_status = fail_error(&err);
    log->was_not_copied = failed;
    if (log->read->uncopied > 0 && !log->was_uncopied)
        say("'%s': %" PRIu64 " of its sessions are not copied for 'annal source': which rows or "
            "files belong to them is not known",
            log->path, log->read->uncopied);
    log->was_uncopied = log->read->uncopied > 0;
    keep_journals(log);
    follow->has_copied = follow->has_copied || (flags & IMPORT_COPY_SYNC) == 0;
    log->copied_us = now_us + (10 * took_us < least_us ? 10 * took_us : least_us);
    if (failed)
        log->copied_us = now_us + COPY_RETRY_US;
    log->copy_due_us = log->copied_us > now_us + COPY_US ? log->copied_us : now_us + COPY_US;
    if (settled && !failed && status != ANNAL_ERR_BUSY)
        copy_done(log);
    look_at_generations(follow);
}

/* Record that a log must be copied after COPY_US; during the first pass, copy it now. */
static void copy_later(struct follow *follow, struct followed *log,
                       const struct import_report *report, unsigned flags)
{
    int64_t due_us = annal__clock_monotonic_us() + COPY_US;
    size_t bytes = report->session_count * sizeof *report->sessions;
    if (!follow->options->copies || bytes == 0)
        return;
    copy_done(log);
    log->read = must_zalloc(sizeof *log->read);
    log->read->sessions = must_zalloc(bytes);
    memcpy(log->read->sessions, report->sessions, bytes);
    log->read->session_count = report->session_count;
    log->read->container = report->container;
    log->copy_due_us = due_us > log->copied_us ? due_us : log->copied_us;
    if (!follow->has_passed)
        copy_now(follow, log, flags);
}

/* Before a replaced log is imported from its beginning, let it be copied. Return whether the import
 * must wait for the copy. */
static bool copy_first(struct follow *follow, struct followed *log)
{
    const struct import_report *report = import_report(log->now.job);
    bool waits = !log->copies_first && log->stamp != 0 && follow->options->copies &&
                 report->session_count > 0;
    log->copies_first = waits;
    if (waits) {
        copy_later(follow, log, report, 0);
        log->is_changed = true;
        log->due_us = annal__clock_monotonic_us() + COPY_US;
    }
    return waits;
}

/* Sync the copies that were written during the first pass. */
static void copy_sync(struct follow *follow)
{
    annal_error err = {0};
    if (follow->has_copied && copies_sync(follow->options->store, &err) < 0)
        follow->exit_status = fail_error(&err);
    follow->has_copied = false;
}

/* Import new lines of an open log. If that fails, close it. */
static annal_status take(struct follow *follow, struct followed *log, struct reading *reading,
                         enum import_until until)
{
    annal_error err = {0};
    uint64_t before = import_report(reading->job)->events;
    annal_status status = import_take(reading->job, until, &err);
    tell(follow, log, reading, before);
    if (status >= 0) {
        if (reading == &log->now)
            copy_later(follow, log, import_report(reading->job), 0);
        return ANNAL_OK;
    }
    bool of_store = import_report(reading->job)->store_failed;
    close_reading(reading);
    return refuse(follow, log, of_store, status, &err);
}

static annal_status take_and_close(struct follow *follow, struct followed *log,
                                   struct reading *reading, enum import_until until)
{
    annal_status status = take(follow, log, reading, until);
    close_reading(reading);
    return status;
}

/* Import a log to its end and close it. If it was read completely, note that it is unchanged
 * (unchanged.h). */
static annal_status finish(struct follow *follow, struct followed *log, const struct log_mark *mark)
{
    annal_status status = take(follow, log, &log->now, IMPORT_LAST);
    /* not after a signal: then take() may have stopped before the end of the log */
    if (status >= 0 && log->now.job != NULL && !follow->ended)
        unchanged_note(follow->unchanged, mark, &follow->import, &log->importer,
                       import_report(log->now.job));
    close_reading(&log->now);
    return status;
}

static annal_status finish_live(struct follow *follow, struct followed *log)
{
    struct log_mark mark;
    unchanged_mark_take(log->path, &mark);
    annal_status status = finish(follow, log, &mark);
    unchanged_mark_done(&mark);
    return status;
}

/* If no other log may be opened, because of the number of open logs or their memory, return the
 * open log that has not changed for the longest time; else NULL. */
static struct followed *find_oldest(const struct follow *follow)
{
    struct followed *oldest = NULL;
    size_t live = 0, bytes = 0, room = LIVE_BYTES_LEAST;
    if (follow->count * LOG_BYTES < LIVE_BYTES - LIVE_BYTES_LEAST)
        room = LIVE_BYTES - follow->count * LOG_BYTES;
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *log = &follow->logs[i];
        if (log->now.job == NULL)
            continue;
        live++;
        bytes += import_memory(log->now.job);
        if (oldest == NULL || log->changed_us < oldest->changed_us)
            oldest = log;
    }
    return live >= follow->live_max || bytes >= room ? oldest : NULL;
}

/* Import and close the logs that changed least recently until another log may be opened. */
static annal_status make_room(struct follow *follow)
{
    annal_status status = ANNAL_OK;
    for (struct followed *log; status >= 0 && (log = find_oldest(follow)) != NULL;)
        status = finish_live(follow, log);
    return status;
}

/* Return the maximum number of open logs: an eighth of the descriptors that the process may have,
 * because an importer needs descriptors, too. */
static size_t find_live_max(void)
{
    struct rlimit limit;
    size_t most = LIVE_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 8 < most)
        most = (size_t)limit.rlim_cur / 8;
    return most > 0 ? most : 1;
}

/* ---- Logs that were replaced (rule 3 of follow.h) ---- */

static annal_status leave_moved(struct follow *follow, struct followed *log)
{
    annal_status status = ANNAL_OK;
    if (log->moved.job != NULL)
        status = take_and_close(follow, log, &log->moved, IMPORT_LAST);
    add_totals(&log->before, &log->moved.totals);
    log->moved.totals = (struct follow_totals){0};
    return status;
}

static annal_status leave_replaced(struct follow *follow, struct followed *log,
                                   enum import_change change)
{
    annal_status status = leave_moved(follow, log);
    log->moved = log->now;
    log->now = (struct reading){0};
    log->moved_us = annal__clock_monotonic_us();
    log->moved_due_us = 0;
    if (status >= 0 && change == IMPORT_REWRITTEN)
        status = take_and_close(follow, log, &log->moved, IMPORT_REST);
    if (log->stamp == 0)
        say("the log '%s' was removed; the new log of this name is read from the beginning",
            log->path);
    else
        say("the log '%s' was %s; the log is read again from the beginning", log->path,
            change == IMPORT_REWRITTEN ? "cut short or written over" : "replaced");
    return status;
}

static annal_status read_moved(struct follow *follow, struct followed *log)
{
    uint64_t lines = log->moved.totals.lines;
    annal_status status = take(follow, log, &log->moved, IMPORT_WHOLE);
    if (log->moved.totals.lines != lines)
        log->moved_us = annal__clock_monotonic_us();
    log->moved_due_us = annal__clock_monotonic_us() + MOVED_US;
    if (status >= 0 && annal__clock_monotonic_us() - log->moved_us >= LINGER_US)
        status = leave_moved(follow, log);
    return status;
}

/* ---- Reading a log ---- */

/* Find out whether the content of the file is not that of a log of its kind. Such a file is ignored
 * until it changes. */
static annal_status leave_other(struct follow *follow, struct followed *log)
{
    annal_error err = {0};
    annal_status status = ANNAL_OK;
    log->is_other = false;
    if (!log->named && log->is_chosen && !log->was_read)
        status =
            detect_is_other(&follow->detector, &log->importer, log->path, &log->is_other, &err);
    return status < 0 ? refuse(follow, log, false, status, &err) : status;
}

static annal_status find_kind(struct follow *follow, struct followed *log)
{
    struct detected detected;
    annal_error err = {0};
    if (log->importer.kind != NULL)
        return leave_other(follow, log);
    annal_status status = detect_log(&follow->detector, log->path, &detected, &err);
    if (status < 0)
        return refuse(follow, log, false, status, &err);
    log->importer = detected.importer;
    return ANNAL_OK;
}

/* If the log has not changed since an earlier import, use the result of that import instead of
 * reading the log. Return false if no such result exists. */
static bool take_over(struct follow *follow, struct followed *log, const struct log_mark *mark)
{
    struct import_report report = {0};
    if (log->was_read || follow->has_passed ||
        !unchanged_find(follow->unchanged, mark, &follow->import, &log->importer, &report))
        return false;
    log->now.totals = totals_of(&report);
    log->now.totals.same = 1;
    log->was_read = true;
    copy_later(follow, log, &report, IMPORT_COPY_IF_OLD);
    follow->options->took(follow->options->arg, log->path, log->importer.kind, &report);
    import_report_done(&report);
    return true;
}

/* Return whether the last write to a file was more than QUIET_US ago, so that the file is probably
 * complete. */
static bool has_rested(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    int64_t written_us = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    return annal__system_clock.wall_us(annal__system_clock.arg) - written_us > QUIET_US;
}

static annal_status open_log(struct follow *follow, struct followed *log, bool last)
{
    annal_error err = {0};
    bool only_whole = !last && annal__clock_monotonic_us() - log->changed_us < QUIET_US;
    annal_status status = make_room(follow);
    if (status < 0)
        return status;
    status = import_open(follow->options->store, &log->importer, log->path, &follow->import,
                         only_whole, &log->now.job, &err);
    if (status < 0)
        return refuse(follow, log, false, status, &err);
    log->is_half = status == ANNAL_END;
    return ANNAL_OK;
}

static annal_status read_marked(struct follow *follow, struct followed *log, bool last,
                                const struct log_mark *mark)
{
    if (take_over(follow, log, mark))
        return ANNAL_OK;
    annal_status status = find_kind(follow, log);
    if (status >= 0 && log->importer.kind != NULL && !log->is_other)
        status = open_log(follow, log, last);
    if (status < 0 || log->now.job == NULL)
        return status;
    bool is_log = import_is_log(log->now.job);
    if (last || !is_log || has_rested(log->path) || follow->left > follow->live_max)
        return finish(follow, log, mark);
    status = take(follow, log, &log->now, IMPORT_WHOLE);
    log->waits = log->now.job != NULL && !import_can_go_on(log->now.job);
    if (log->waits)
        close_reading(&log->now);
    return status;
}

static annal_status read_anew(struct follow *follow, struct followed *log, bool last)
{
    struct log_mark mark;
    unchanged_mark_take(log->path, &mark);
    log->waits = false;
    annal_status status = read_marked(follow, log, last, &mark);
    unchanged_mark_done(&mark);
    return status;
}

/* Read the list of deleted sessions again if a session was deleted since it was read. */
static void leave_deleted(struct follow *follow)
{
    const struct follow_options *options = follow->options;
    uint64_t stamp = options->again ? 0 : deleted_stamp(options->store);
    if (stamp == follow->deleted_stamp)
        return;
    follow->deleted_stamp = stamp;
    deleted_close(follow->deleted);
    follow->deleted = deleted_open(options->store);
    follow->import.deleted = follow->deleted;
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *log = &follow->logs[i];
        struct import_report *report = log->now.job != NULL ? import_report(log->now.job) : NULL;
        for (size_t j = 0; report != NULL && j < report->session_count; j++)
            if (deleted_has(follow->deleted, annal_slice_of(report->sessions[j].id))) {
                close_reading(&log->now);
                break;
            }
    }
}

static bool is_emptied(const struct followed *log)
{
    struct stat st;
    return log->was_read && stat(log->path, &st) == 0 && st.st_size == 0;
}

/* Import the new part of a changed log. With last, import it to its end and close it. */
static annal_status read_log(struct follow *follow, struct followed *log, bool last)
{
    annal_status status = ANNAL_OK;
    enum import_change change = IMPORT_SAME;
    int64_t begun_us = annal__clock_monotonic_us();
    leave_deleted(follow);
    log->is_changed = false;
    log->is_half = false;
    log->due_us = 0;
    bool was_there = log->stamp != 0;
    log->stamp = stamp_of(log->path);
    if ((log->stamp != 0) != was_there || is_emptied(log))
        settle(follow, was_there);
    if (log->now.job != NULL) {
        change = import_change_of(log->now.job, log->path);
        if (change != IMPORT_SAME && !last && copy_first(follow, log))
            return status;
        status = change != IMPORT_SAME ? leave_replaced(follow, log, change)
                 : last                ? finish_live(follow, log)
                                       : take(follow, log, &log->now, IMPORT_WHOLE);
    } else {
        change = IMPORT_OTHER;
    }
    if (status >= 0 && change != IMPORT_SAME && log->stamp != 0)
        status = read_anew(follow, log, last);
    int64_t now = annal__clock_monotonic_us(), took_us = now - begun_us;
    log->rests = log->now.job != NULL;
    if (log->due_us == 0)
        log->due_us = now + (change == IMPORT_SAME || took_us < GAP_US ? GAP_US : took_us);
    return status;
}

/* Return the time in us at which the log must be read again; INT64_MAX: not before it changes. */
static int64_t read_us(const struct followed *log)
{
    int64_t rested_us = log->changed_us + QUIET_US;
    if (log->is_changed)
        return log->due_us;
    if (log->is_half)
        return rested_us > log->due_us ? rested_us : log->due_us;
    return log->rests ? rested_us : INT64_MAX;
}

static annal_status tell_rest(struct follow *follow, struct followed *log)
{
    log->rests = false;
    return log->now.job != NULL ? take(follow, log, &log->now, IMPORT_PAUSE) : ANNAL_OK;
}

/* Read or copy a log if it is time. If it must be read or copied before *out_due_us, set
 * *out_due_us to that time. */
static annal_status read_if_due(struct follow *follow, struct followed *log, int64_t *out_due_us)
{
    annal_status status = ANNAL_OK;
    int64_t now_us = annal__clock_monotonic_us();
    bool moved = log->moved.job != NULL && log->moved_due_us <= now_us;
    if ((moved || read_us(log) <= now_us) && wants_to_stop(follow))
        return ANNAL_OK;
    if (moved)
        status = read_moved(follow, log);
    if (log->read != NULL && log->copy_due_us <= now_us)
        copy_now(follow, log, follow->has_passed ? IMPORT_COPY_SYNC : 0);
    if (status >= 0 && read_us(log) <= now_us)
        status =
            log->is_changed || log->is_half ? read_log(follow, log, false) : tell_rest(follow, log);
    if (log->read != NULL && log->copy_due_us < *out_due_us)
        *out_due_us = log->copy_due_us;
    if (log->moved.job != NULL && log->moved_due_us < *out_due_us)
        *out_due_us = log->moved_due_us;
    if (read_us(log) < *out_due_us)
        *out_due_us = read_us(log);
    return status;
}

static annal_status read_due(struct follow *follow)
{
    annal_status status = ANNAL_OK;
    int64_t due_us = INT64_MAX;
    if (follow->due_us > annal__clock_monotonic_us())
        return status;
    follow->due_us = INT64_MAX;
    for (size_t i = 0; i < follow->count && status >= 0 && !follow->ended; i++) {
        follow->left -= follow->left > 0;
        status = read_if_due(follow, &follow->logs[i], &due_us);
    }
    if (due_us < follow->due_us)
        follow->due_us = due_us;
    return status;
}

/* ---- Waiting ---- */

static int64_t next_look(const struct follow *follow)
{
    int64_t next_us = follow->check_us < follow->due_us ? follow->check_us : follow->due_us;
    if (follow->search && follow->search_us < next_us)
        next_us = follow->search_us;
    if (follow->settled_us < next_us)
        next_us = follow->settled_us;
    return follow->options->finds && follow->found_us < next_us ? follow->found_us : next_us;
}

static void wait_for_word(struct follow *follow)
{
    struct pollfd fds[] = {{.fd = follow->options->signals, .events = POLLIN},
                           {.fd = follow->watch.fd, .events = POLLIN},
                           {.fd = STDOUT_FILENO}};
    int64_t wait_us = next_look(follow) - annal__clock_monotonic_us();
    int64_t wait_ms = wait_us <= 0 ? 0 : (wait_us + 999) / 1000;
    (void)poll(fds, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    watch_read(&follow->watch, hear, follow);
    if ((fds[2].revents & (POLLERR | POLLHUP)) != 0 || !out_wanted())
        follow->ended = true;
}

/* ---- The end ---- */

/* Import each log to its end, after a signal. A change that is noticed now was written before the
 * signal, so it is imported, too. */
static annal_status take_last(struct follow *follow)
{
    annal_status status = ANNAL_OK;
    follow->ended = false;
    for (size_t i = 0; i < follow->count && status >= 0 && !wants_to_stop(follow); i++) {
        struct followed *log = &follow->logs[i];
        status = leave_moved(follow, log);
        if (status >= 0 && (log->now.job != NULL || log->waits || log->is_changed || log->is_half ||
                            stamp_of(log->path) != log->stamp))
            status = read_log(follow, log, true);
        if (log->read != NULL)
            copy_now(follow, log, IMPORT_COPY_WAIT);
        /* if read_log() noticed that the log was replaced, import the old file to its end, too */
        if (status >= 0)
            status = leave_moved(follow, log);
    }
    copy_sync(follow);
    follow->ended = true;
    return status;
}

static void sum_up(struct follow *follow, struct follow_totals *out)
{
    *out = (struct follow_totals){0};
    for (size_t i = 0; i < follow->count; i++) {
        struct followed *log = &follow->logs[i];
        out->files += log->was_read;
        if (log->is_empty && follow->exit_status == EXIT_DONE)
            follow->exit_status = EXIT_REFUSED;
        if ((log->importer.kind == NULL || log->is_other) && log->stamp != 0) {
            out->unknown++;
            if (log->is_other)
                detect_say_other(log->path, log->importer.kind);
            else
                detect_say_left_out(log->path, false);
        }
        add_totals(out, &log->before);
        add_totals(out, &log->moved.totals);
        add_totals(out, &log->now.totals);
        close_reading(&log->moved);
        close_reading(&log->now);
        copy_done(log);
        annal__free(log->path);
    }
    for (size_t i = 0; i < follow->appeared_count; i++)
        annal__free(follow->appeared[i]);
    annal__free(follow->appeared);
    annal__free(follow->logs);
    places_done(&follow->places);
    unchanged_close(follow->unchanged);
    deleted_close(follow->deleted);
    import_spares_done(&follow->spares);
    annal_import_close(follow->detector);
    watch_done(&follow->watch);
}

int follow_logs(const struct follow_options *options, struct follow_totals *out_totals)
{
    struct follow follow = {.options = options, .settled_us = INT64_MAX};
    follow.live_max = find_live_max();
    follow.unchanged = options->recheck ? NULL : unchanged_open(options->store);
    follow.import = (struct import_options){
        .spares = &follow.spares,
        .stop = wants_to_stop,
        .arg = &follow,
        .owners = options->owners,
        .options = options->map,
        .option_count = options->map_count,
        .limits = options->limits,
    };
    watch_init(&follow.watch);
    check_all(&follow);
    follow.left = follow.count;
    annal_status status = read_due(&follow);
    bool all_read = status >= 0 && !follow.ended;
    follow.has_passed = true;
    if (all_read) {
        copy_sync(&follow);
        /*
         * write the results of all logs now, so that they exist even if the process is killed later
         */
        unchanged_write(follow.unchanged);
        unchanged_forget(follow.unchanged);
        note_settled(&follow, true);
        (void)malloc_trim(0);
        options->all_read(options->arg, follow.count);
    }
    while (status >= 0 && !wants_to_stop(&follow)) {
        wait_for_word(&follow);
        search_due(&follow);
        status = read_due(&follow);
        note_settled(&follow, false);
    }
    if (status >= 0 && all_read) {
        status = take_last(&follow);
        note_settled(&follow, true);
    }
    if (status < 0 && follow.exit_status == EXIT_DONE)
        follow.exit_status = fail_storage("import --follow: out of memory");
    sum_up(&follow, out_totals);
    return follow.exit_status;
}
