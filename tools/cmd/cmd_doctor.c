/* SPDX-License-Identifier: Apache-2.0 */
#include "index/sys/databases.h"
#include "index/sys/type_fields.h"
#include "journal/base/lock_holder.h"
#include "journal/sys/inspect.h"
#include "journal/sys/lineage.h"
#include "journal/sys/seam.h"
#include "snapshot/sys/snapshot.h"
#include "tools/cli/fields.h"
#include "tools/cli/help_texts.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/store_open.h"
#include "tools/cmd/disk_probe.h"
#include "tools/cmd/stale.h"
#include "tools/import/changes.h"
#include "tools/import/watcher.h"
#include "tools/show/session_findings.h"

#include <annal/index.h>
#include <annal/metrics.h>
#include <annal/pack.h>
#include <annal/snapshot.h>
#include <annal/tail.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

enum { LITTLE_INODES = 64, LEFTOVER_SECONDS = 3600, NAMED_SESSIONS = 5, PROBE_SECONDS = 2 };

static const uint64_t little_bytes = 512 << 20;

struct doctor {
    const struct args *args;
    annal_store *store;
    uint64_t warnings;
    bool living; /* whether a process is writing the store */
    uint64_t sessions, bytes, damaged, torn, cursors;
    /* ids of the first damaged sessions */
    char named[NAMED_SESSIONS * (ANNAL_SESSION_ID_BYTES_MAX + 2)];
};

/* Print one line: the result ("ok", "note" or "warning"), the check, what was found, and advice or
 * NULL. */
static void print_line(const struct doctor *doctor, const char *result, const char *check,
                       const char *advice, const char *found)
{
    if (doctor->args->json) {
        out_json("{\"check\":\"#\",\"result\":\"#\",\"found\":?,\"advice\":!}\n",
                 annal_slice_of(check), annal_slice_of(result), annal_slice_of(found),
                 annal_slice_of(advice));
        return;
    }
    out_style(result[0] == 'w' ? "33" : "32");
    printf("%-8s", result);
    out_style("0");
    printf(" %-12s ", check);
    out_plain(annal_slice_of(found));
    fputc('\n', stdout);
    if (advice != NULL) {
        printf("%-22s", "");
        out_plain(annal_slice_of(advice));
        fputc('\n', stdout);
    }
}

/* Print one line: the check and its result. With advice the line is a warning; NULL: no advice. */
static void tell(struct doctor *doctor, const char *check, const char *advice, const char *format,
                 ...) ANNAL_PRINTF(4, 5);

static void tell(struct doctor *doctor, const char *check, const char *advice, const char *format,
                 ...)
{
    char found[1200];
    va_list list;
    va_start(list, format);
    vsnprintf(found, sizeof found, format, list);
    va_end(list);
    doctor->warnings += advice != NULL;
    print_line(doctor, advice == NULL ? "ok" : "warning", check, advice, found);
}

/* ---- The directory ---- */

/* Return the version in locks/version. A store without this file has version 1. */
static int store_version(const char *store)
{
    SCOPED_BUF path = {0};
    int version = 1;
    must_printf(&path, "%s/locks/version", store);
    FILE *file = fopen(path.ptr, "re");
    if (file != NULL && fscanf(file, "%d", &version) != 1)
        version = 1;
    if (file != NULL)
        fclose(file);
    return version;
}

static void check_place(struct doctor *doctor)
{
    const char *path = annal_store_path(doctor->store);
    struct stat info;
    struct statfs fs;
    char free_text[HUMAN_BYTES], kept_text[HUMAN_BYTES];
    if (stat(path, &info) != 0 || statfs(path, &fs) != 0) {
        tell(doctor, "store", "run the command as the user who owns it", "%s cannot be read", path);
        return;
    }
    /* whether the group may write: a user gave it this permission on purpose */
    bool shared = (info.st_mode & S_IWGRP) != 0;
    tell(doctor, "store",
         !shared && (info.st_mode & 077) != 0 ? "chmod 700 keeps other users out"
         : shared && (info.st_mode & 07) != 0 ? "chmod o-rwx keeps users outside its group out"
                                              : NULL,
         "%s, version %d, mode %04o%s", path, store_version(path), (unsigned)info.st_mode & 07777,
         annal__session_list_is_read_only(doctor->store) ? ", cannot be written from here" : "");

    uint64_t type = (uint64_t)(uint32_t)fs.f_type;
    const char *name = disk_probe_filesystem(type);
    const char *advice = NULL;
    if (name != NULL && (strcmp(name, "tmpfs") == 0 || strcmp(name, "ramfs") == 0))
        advice = "it is in memory: nothing in this store survives a restart; move it to a disk";
    else if (name != NULL && (strcmp(name, "Btrfs") == 0 || strcmp(name, "ZFS") == 0 ||
                              strcmp(name, "bcachefs") == 0))
        advice = "it copies on write, which makes syncs slower; ext4 or XFS is faster";
    if (name != NULL)
        tell(doctor, "filesystem", advice, "%s", name);
    else
        tell(doctor, "filesystem", advice, "0x%" PRIx64, type);

    uint64_t free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    uint64_t kept = annal__store_keep_free(doctor->store);
    advice = free_bytes < 2 * kept ? "appends that would leave less free are refused; --keep-free "
                                     "sets another limit"
             : free_bytes < little_bytes ? "make room before appends are refused"
                                         : NULL;
    tell(doctor, "space", advice, "%s free, of which %s are kept free",
         human_bytes(free_text, free_bytes), human_bytes(kept_text, kept));
    if (fs.f_files > 0 && fs.f_ffree < LITTLE_INODES)
        tell(doctor, "inodes",
             "remove files: without a free inode no journal and no commit log can be created, "
             "however much space is free",
             "%" PRIu64 " of %" PRIu64 " free", (uint64_t)fs.f_ffree, (uint64_t)fs.f_files);
}

/* ---- Commit logs ---- */

static int check_log(void *arg, const annal__log_info *log)
{
    struct doctor *doctor = arg;
    char bytes[HUMAN_BYTES], held[HUMAN_BYTES], owner[60] = "no process owns it";
    const char *advice = NULL;
    if (log->living)
        snprintf(owner, sizeof owner, "process %" PRIu32 " owns it, and %" PRIu32 " session%s",
                 log->pid, log->sessions, log->sessions == 1 ? "" : "s");
    doctor->living = doctor->living || log->living;
    if (log->what != NULL)
        advice = "copy the log and move it to another directory: events found only in it are lost, "
                 "and all other sessions work again";
    else if (!log->living && log->unreleased > 0 &&
             !annal__session_list_is_read_only(doctor->store))
        advice = "it could not be redone: 'annal verify' shows which session is damaged; its "
                 "sessions accept no more events until the log is moved to another directory";
    tell(doctor, "commit log", advice,
         "%02" PRIu32 ": %s, %s; %" PRIu64 " groups not checkpointed (%s)%s%s", log->number,
         human_bytes(bytes, log->bytes), owner, log->unreleased,
         human_bytes(held, log->unreleased_bytes), log->what == NULL ? "" : "; ",
         log->what == NULL ? "" : log->what);
    return 0;
}

/* ---- Journals ---- */

/* Check whether the ancestors of a fork still contain the history that it shares. */
static void check_lineage(struct doctor *doctor, const annal_session_info *info)
{
    annal_error why = {0};
    if (info->fork_session[0] != '\0' &&
        annal__lineage_check(doctor->store, annal_slice_of(info->session), NULL, &why) ==
            ANNAL_ERR_CORRUPT)
        tell(doctor, "fork", "the fork's own events are readable, the events before them are not",
             "%s", why.message);
}

static int check_session(void *arg, annal_slice session, uint64_t journal_bytes)
{
    struct doctor *doctor = arg;
    annal_session_info info;
    size_t len = strlen(doctor->named);
    annal_status status = annal_session_info_get(doctor->store, session, &info, NULL);
    bool corrupt = status == ANNAL_ERR_CORRUPT;
    if (annal__may_be_stray(status) &&
        annal__stray_is(doctor->store, session)) /* check_stray() reports this file */
        return 0;
    doctor->sessions++;
    doctor->bytes += journal_bytes;
    if (status < 0 && !corrupt)
        return 0;
    if (!corrupt)
        check_lineage(doctor, &info);
    if (!corrupt && info.end_offset == info.bytes && info.file[0] != '\0')
        return 0;
    if (!corrupt && info.torn) {
        doctor->torn++;
        return 0;
    }
    if (doctor->damaged++ < NAMED_SESSIONS)
        snprintf(doctor->named + len, sizeof doctor->named - len, "%s%.*s", len > 0 ? " " : "",
                 ANNAL_FMT(session));
    return 0;
}

static int check_stray(void *arg, annal_slice name, const char *what)
{
    (void)name;
    tell(arg, "journal",
         "every command ignores this file; move it out of the store, or back to its old name", "%s",
         what);
    return 0;
}

static annal_status check_journals(struct doctor *doctor, annal_error *err)
{
    char sessions[HUMAN_BYTES], bytes[HUMAN_BYTES];
    annal_status status = annal_session_each(doctor->store, check_session, doctor, err);
    if (status < 0)
        return status;
    tell(doctor, "journals", NULL, "%s session%s, %s", human_count(sessions, doctor->sessions),
         doctor->sessions == 1 ? "" : "s", human_bytes(bytes, doctor->bytes));
    if (doctor->torn > 0)
        tell(doctor, "journal ends", NULL, "%s end%s with a piece of an event: %s",
             human_count(sessions, doctor->torn), doctor->torn == 1 ? "s" : "",
             doctor->living ? "being written" : "left by a crash; the next append removes it");
    if (doctor->damaged > 0)
        tell(doctor, "journal ends",
             "appends to them are refused: 'annal repair SESSION --to NEW' copies the sound events",
             "%s damaged: %s%s", human_count(sessions, doctor->damaged), doctor->named,
             doctor->damaged > NAMED_SESSIONS ? " …" : "");
    return annal__stray_list(doctor->store, check_stray, doctor, err);
}

static int check_cursor(void *arg, const annal_tail_cursor *cursor)
{
    struct doctor *doctor = arg;
    doctor->cursors++;
    if (cursor->damaged)
        tell(doctor, "cursor",
             "'annal cursor drop' deletes it; its reader then starts from the beginning",
             "'%.*s' is damaged", ANNAL_FMT(cursor->name));
    return 0;
}

static annal_status check_cursors(struct doctor *doctor, annal_error *err)
{
    annal_status status = annal_tail_cursor_each(doctor->store, check_cursor, doctor, err);
    if (status == ANNAL_OK && doctor->cursors > 0)
        tell(doctor, "cursors", NULL, "%" PRIu64 " for readers of tails", doctor->cursors);
    return status;
}

/* ---- The index ---- */

struct lag {
    uint64_t sessions;
    uint64_t bytes;
};

static int add_lag(void *arg, const annal_index_lag *lag)
{
    struct lag *sum = arg;
    if (lag->indexed_bytes < lag->journal_bytes) {
        sum->sessions++;
        sum->bytes += lag->journal_bytes - lag->indexed_bytes;
    }
    return 0;
}

/* Report the running sessions, if the packs that record processes are enabled. */
static annal_status check_runs(struct doctor *doctor, annal_index *index, annal_error *err)
{
    struct run_counts counts;
    annal_status status = stale_count(index, &counts, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status < 0)
        return status;
    bool dead = counts.stale > 0 || counts.orphaned > 0;
    tell(doctor, "runs",
         dead ? "'annal doctor --transition-stale --dry-run' lists the dead ones"
         : counts.unresponsive > 0 ? "'annal team runs --health unresponsive' lists them"
                                   : NULL,
         "%" PRIu64 " sessions run, %" PRIu64 " of them stale, %" PRIu64 " orphaned, %" PRIu64
         " unresponsive",
         counts.running, counts.stale, counts.orphaned, counts.unresponsive);
    return ANNAL_OK;
}

/* Report the findings that annal ls shows as HEALTH. */
static annal_status check_findings(struct doctor *doctor, annal_index *index, annal_error *err)
{
    char total[HUMAN_BYTES], sessions[HUMAN_BYTES], others[HUMAN_BYTES + 20] = "";
    char named[NAMED_SESSIONS * (ANNAL_SESSION_ID_BYTES_MAX + 2)] = "";
    struct session_findings findings = {0};
    annal_status status = annal_index_catch_up(index, (annal_slice){0}, NULL, NULL);
    if (status < 0) /* if the catch-up failed, still count the findings that are indexed already */
        status = ANNAL_OK;
    status = session_findings_ask(index, (annal_slice){0}, true, &findings, err);
    for (size_t i = 0; i < findings.count && i < NAMED_SESSIONS; i++)
        snprintf(named + strlen(named), sizeof named - strlen(named), "%s%s", i > 0 ? " " : "",
                 findings.healths[i].session);
    if (findings.others > 0)
        snprintf(others, sizeof others, ", %s by packs", human_count(total, findings.others));
    if (status == ANNAL_OK && findings.total > 0)
        tell(doctor, "findings",
             "'annal show SESSION' lists them, 'annal verify' checks everything again",
             "%s in %s session%s%s%s%s%s", human_count(total, findings.total),
             human_count(sessions, findings.count), findings.count == 1 ? "" : "s", others,
             findings.count > 0 ? ": " : "", named, findings.count > NAMED_SESSIONS ? " …" : "");
    session_findings_done(&findings);
    return status;
}

/* faults of the fields of known types */
struct faults {
    uint64_t total;
    unsigned named;
    char text[3 * 200];
};

static int add_fault(void *arg, const annal_row *row)
{
    struct faults *faults = arg;
    size_t used = strlen(faults->text), len = row->values[1].bytes.len;
    faults->total += (uint64_t)row->values[2].integer;
    if (faults->named++ < 3)
        snprintf(faults->text + used, sizeof faults->text - used,
                 "%s%.*s: %.*s (%" PRId64 ", such as %.*s)", used > 0 ? "; " : "",
                 ANNAL_FMT(row->values[0].bytes), len < 100 ? (int)len : 100,
                 row->values[1].bytes.ptr, row->values[2].integer, ANNAL_FMT(row->values[3].bytes));
    return 0;
}

/* Count the fields of the newest events that do not fit the type of their event. They are a note
 * and no warning: a program may add fields of its own. */
static annal_status check_fields(struct doctor *doctor, annal_index *index, annal_error *err)
{
    struct faults faults = {0};
    char total[HUMAN_BYTES], found[1200];
    annal_status status = annal__type_fields_each(index, add_fault, &faults, err);
    if (status == ANNAL_OK && faults.total > 0) {
        snprintf(found, sizeof found, "%s in the newest %d events do not fit their types: %s%s",
                 human_count(total, faults.total), TYPE_FIELDS_EVENTS_MAX, faults.text,
                 faults.named > 3 ? "; …" : "");
        print_line(doctor, "note", "fields",
                   "docs/events.md lists the fields; 'annal append --strict' refuses others",
                   found);
    }
    return status;
}

static int tell_failed(void *arg, const annal_pack_info *pack)
{
    if (pack->state == ANNAL_PACK_FAILED)
        tell(arg, "pack", "'annal help pack check' says how to check it; its tables stay unchanged",
             "%s is not run: %s", pack->name, pack->error == NULL ? "?" : pack->error);
    return 0;
}

struct overdue {
    uint64_t sessions;
    uint64_t events;
    char named[NAMED_SESSIONS * (ANNAL_SESSION_ID_BYTES_MAX + 2)];
};

static int add_overdue(void *arg, const annal__snapshot_overdue *one)
{
    struct overdue *sum = arg;
    size_t len = strlen(sum->named);
    sum->events += one->events;
    if (sum->sessions++ < NAMED_SESSIONS)
        snprintf(sum->named + len, sizeof sum->named - len, "%s%.*s", len > 0 ? " " : "",
                 ANNAL_FMT(one->session));
    return 0;
}

static int tell_snapshot(void *arg, annal_slice session, const annal_snapshot_info *info,
                         const char *problem)
{
    if (problem != NULL && !info->stale && !info->cut)
        tell(arg, "snapshots", "it is not used; 'annal snapshot drop SESSION' deletes it",
             "the snapshot of session '%.*s' at %" PRIu64 ": %s", ANNAL_FMT(session), info->seq,
             problem);
    return 0;
}

/* An overdue snapshot is not a warning: answers are the same without it, and the next process that
 * appends takes it. */
static annal_status check_snapshots(struct doctor *doctor, annal_index *index, annal_error *err)
{
    char sessions[HUMAN_BYTES], events[HUMAN_BYTES];
    struct overdue sum = {0};
    annal_status status = annal__due_each(index, NULL, add_overdue, &sum, err);
    bool cut = sum.sessions > NAMED_SESSIONS; /* whether not all of them are named */
    if (status == ANNAL_OK && sum.sessions == 0)
        tell(doctor, "snapshots", NULL, "none is overdue");
    else if (status == ANNAL_OK)
        tell(doctor, "snapshots", NULL,
             "overdue for %s session%s with %s events: %s%s; the next process that appends takes "
             "them; 'annal snapshot take' takes them now",
             human_count(sessions, sum.sessions), sum.sessions == 1 ? "" : "s",
             human_count(events, sum.events), sum.named, cut ? " …" : "");
    if (status == ANNAL_OK)
        status = annal_snapshot_each(index, (annal_slice){0}, tell_snapshot, doctor, err);
    return status;
}

static int tell_damaged(void *arg, const char *name, bool users_write, const char *what)
{
    tell(arg, "database",
         users_write ? "other programs write it: 'annal pack rebuild' moves it aside"
                     : "it is rebuilt from the journals when it is next used",
         "%s is damaged: %s", name, what);
    return 0;
}

/* ---- The logs of agents ---- */

#define SOURCES_SHOWN 20

struct sources_unread {
    struct doctor *doctor;
    uint64_t count, bytes;
    char oldest[ANNAL_TIME_BYTES];
};

static int tell_source(void *arg, const annal_row *row)
{
    struct sources_unread *unread = arg;
    char bytes[HUMAN_BYTES];
    uint64_t missing = (uint64_t)row->values[1].integer;
    if (unread->count == 0)
        snprintf(unread->oldest, sizeof unread->oldest, "%.*s", ANNAL_FMT(row->values[2].bytes));
    unread->bytes += missing;
    if (unread->count++ < SOURCES_SHOWN)
        tell(unread->doctor, "source", NULL, "%s not imported, written until %.*s: %.*s",
             human_bytes(bytes, missing), ANNAL_FMT(row->values[2].bytes),
             ANNAL_FMT(row->values[0].bytes));
    return 0;
}

/* Report how far the imports of the logs are unread. */
static annal_status check_sources(struct doctor *doctor, annal_index *index, annal_error *err)
{
    struct sources_unread unread = {.doctor = doctor};
    char count[HUMAN_BYTES], bytes[HUMAN_BYTES];
    annal_status status = changes_unread(doctor->store, index, tell_source, &unread, err);
    if (status == ANNAL_OK && unread.count > 0)
        tell(doctor, "sources", NULL, "%s log%s with %s not imported yet, the oldest of %s",
             human_count(count, unread.count), unread.count == 1 ? "" : "s",
             human_bytes(bytes, unread.bytes), unread.oldest);
    return status;
}

/* Report whether a process watches the logs of agents, if logs were imported into the store. */
static void check_watch(struct doctor *doctor)
{
    struct watcher watcher;
    SCOPED_BUF imports = {0};
    char name[HOLDER_BYTES], since[ANNAL_TIME_BYTES];
    const char *store = annal_store_path(doctor->store);
    must_printf(&imports, "%s/imports.jsonl", store);
    if (watcher_find(store, &watcher)) {
        annal_time_format(watcher.since_us, since);
        tell(doctor, "watch", NULL, "%s watches the logs of agents, since %s",
             annal__lock_holder_name(watcher.pid, name), since);
    } else if (access(imports.ptr, F_OK) == 0) {
        tell(doctor, "watch", NULL, "no process watches the logs of agents: run 'annal watch'");
    }
}

static annal_status check_index(struct doctor *doctor, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct lag lag = {0};
    char text[HUMAN_BYTES], bytes[HUMAN_BYTES];
    annal_index *index = NULL;
    annal_status status = ANNAL_OK;
    struct stat info;
    status = annal_index_open(doctor->store, NULL, &index, err);
    /* check the index before its first use, which would rebuild a damaged one */
    if (status == ANNAL_OK)
        status = annal__maintain_prove_search(index, false, tell_damaged, doctor, err);
    if (status == ANNAL_OK)
        status = annal__maintain_prove(index, NULL, 0, false, tell_damaged, doctor, err);
    must_printf(&path, "%s/sessions.db", annal_store_path(doctor->store));
    if (status == ANNAL_OK && stat(path.ptr, &info) != 0) {
        tell(doctor, "index", NULL, "it was missing, and was built from the journals");
    } else if (status == ANNAL_OK) {
        status = annal_index_lag_each(index, (annal_slice){0}, add_lag, &lag, err);
        if (status == ANNAL_OK)
            tell(doctor, "index", NULL,
                 lag.sessions == 0 ? "%s, up to date" : "%s, lags by %s, sessions: %" PRIu64,
                 human_bytes(text, (uint64_t)info.st_size), human_bytes(bytes, lag.bytes),
                 lag.sessions);
    }
    if (status == ANNAL_OK)
        status = check_findings(doctor, index, err);
    if (status == ANNAL_OK)
        status = check_fields(doctor, index, err);
    if (status == ANNAL_OK)
        status = annal_pack_each(index, tell_failed, doctor, err);
    if (status == ANNAL_OK)
        status = check_runs(doctor, index, err);
    if (status == ANNAL_OK)
        status = check_snapshots(doctor, index, err);
    if (status == ANNAL_OK)
        status = check_sources(doctor, index, err);
    annal_index_close(index);
    return status;
}

/* ---- Leftovers ---- */

struct leftovers {
    uint64_t count;
    uint64_t bytes;
};

static bool is_temporary(const char *name)
{
    return strncmp(name, ".new-", 5) == 0 || strncmp(name, ".probe-", 7) == 0 ||
           strstr(name, ".tmp-") != NULL;
}

/* Count the files of a directory: all, or only files with temporary names that are older than
 * LEFTOVER_SECONDS. */
static struct leftovers count_files(const struct doctor *doctor, const char *directory, bool all)
{
    struct leftovers found = {0};
    SCOPED_BUF path = {0};
    struct stat info;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    must_printf(&path, "%s/%s", annal_store_path(doctor->store), directory);
    DIR *dir = opendir(path.ptr);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (!all &&
            (!is_temporary(entry->d_name) || now.tv_sec - info.st_mtim.tv_sec < LEFTOVER_SECONDS))
            continue;
        found.count++;
        found.bytes += (uint64_t)info.st_size;
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

static void check_leftovers(struct doctor *doctor)
{
    static const char *const directories[] = {"", "events", "commit", "snapshots"};
    char text[HUMAN_BYTES], bytes[HUMAN_BYTES];
    struct leftovers torn = count_files(doctor, "events/.torn", true);
    struct leftovers old = {0};
    if (torn.count > 0)
        tell(doctor, "torn tails", NULL, "%s kept in events/.torn, %s",
             human_count(text, torn.count), human_bytes(bytes, torn.bytes));
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        struct leftovers here = count_files(doctor, directories[i], false);
        old.count += here.count;
        old.bytes += here.bytes;
    }
    tell(doctor, "leftovers",
         old.count > 0 ? "a process left these temporary files when it died; they may be removed"
                       : NULL,
         "%s older than an hour, %s", human_count(text, old.count), human_bytes(bytes, old.bytes));
}

/* ---- What happened ---- */

static void check_history(struct doctor *doctor)
{
    annal_metrics metrics;
    char since[ANNAL_TIME_BYTES] = "";
    annal_store_metrics_get(doctor->store, ANNAL_METRICS_OF_STORE, &metrics);
    if (metrics.since_us == 0)
        return;
    annal_time_format(metrics.since_us, since);
    const char *advice = NULL;
    if (metrics.stopped > 0 || metrics.unknown > 0)
        advice = "the disk failed during appends: look at the kernel's log (dmesg)";
    else if (metrics.slow_syncs > 0)
        advice = "syncs took longer than a second: the disk was busy or is failing";
    tell(doctor, "history", advice,
         "since %s: %" PRIu64 " appends unknown, %" PRIu64 " stores stopped, %" PRIu64
         " sessions lagging, %" PRIu64 " slow syncs, %" PRIu64 " logs recovered",
         since, metrics.unknown, metrics.stopped, metrics.behind, metrics.slow_syncs,
         metrics.recoveries);
}

/* ---- The disk ---- */

static void print_cost_json(const char *name, const struct probe_cost *cost)
{
    if (cost->rounds == 0)
        printf(",\"%s_us_p50\":null,\"%s_us_p99\":null", name, name);
    else
        printf(",\"%s_us_p50\":%.1f,\"%s_us_p99\":%.1f", name, cost->p50_us, name, cost->p99_us);
}

static void print_cost(const char *what, const struct probe_cost *cost)
{
    if (cost->rounds == 0)
        printf("  %-42s %s\n", what, strerror(cost->error));
    else
        printf("  %-42s %9.1f us %9.1f us\n", what, cost->p50_us, cost->p99_us);
}

static void print_probe(struct doctor *doctor, const struct disk_probe *probe)
{
    double rate = probe->overwrite.p50_us > 0 ? 1e6 / probe->overwrite.p50_us : 0;
    if (doctor->args->json) {
        out_json("{\"check\":\"disk\",\"result\":\"#\",\"found\":?,\"filesystem\":\"#\",\"device\":"
                 "\"#\",\"write_cache\":\"#\",\"rotational\":#",
                 annal_slice_of(probe->suspicious ? "warning" : "ok"),
                 annal_slice_of(probe->conclusion), annal_slice_of(probe->filesystem),
                 annal_slice_of(probe->device), annal_slice_of(probe->write_cache),
                 annal_slice_of(probe->rotational < 0 ? "null"
                                : probe->rotational   ? "true"
                                                      : "false"));
        print_cost_json("write", &probe->plain);
        print_cost_json("sync", &probe->overwrite);
        print_cost_json("growing_sync", &probe->growing);
        print_cost_json("direct_sync", &probe->direct);
        printf(",\"appends_per_second\":%.0f}\n", rate);
        doctor->warnings += probe->suspicious;
        return;
    }
    tell(doctor, "disk",
         probe->suspicious ? "see docs/limits.md: Annal trusts a sync that returned" : NULL, "%s",
         probe->conclusion);
    printf("\n  %-42s %12s %12s\n", "", "half below", "99 % below");
    print_cost("write 4 KiB into memory", &probe->plain);
    print_cost("overwrite 4 KiB and sync", &probe->overwrite);
    print_cost("write 4 KiB at the end and sync", &probe->growing);
    print_cost("write 4 KiB around the cache and sync", &probe->direct);
    printf("\n  about %.0f durable appends a second by one writer that waits for each;\n"
           "  writers that append at the same time share syncs\n",
           rate);
}

static int check_disk(struct doctor *doctor)
{
    struct disk_probe probe;
    int failed = disk_probe_run(annal_store_path(doctor->store), PROBE_SECONDS, &probe);
    if (failed != 0)
        return fail_storage("cannot measure the disk of %s: %s", annal_store_path(doctor->store),
                            strerror(failed));
    print_probe(doctor, &probe);
    return EXIT_DONE;
}

/* ---- The command ---- */

static int examine(struct doctor *doctor)
{
    annal_error err = {0};
    check_place(doctor);
    annal_status status = annal__log_each(doctor->store, check_log, doctor, &err);
    if (status == ANNAL_OK)
        status = check_journals(doctor, &err);
    if (status == ANNAL_OK)
        status = check_cursors(doctor, &err);
    if (status == ANNAL_OK)
        status = check_index(doctor, &err);
    if (status < 0)
        return fail_error(&err);
    check_leftovers(doctor);
    check_history(doctor);
    check_watch(doctor);
    return EXIT_DONE;
}

static int run(const struct args *args)
{
    struct doctor doctor = {.args = args};
    if (args_has(args, "transition-stale"))
        return stale_transition(args);
    int exit_status = store_open(args, OPEN_READ, 0, &doctor.store);
    if (exit_status == 0)
        exit_status = args_has(args, "disk") ? check_disk(&doctor) : examine(&doctor);
    if (exit_status == 0 && doctor.warnings > 0)
        exit_status = EXIT_REFUSED;
    return store_close(doctor.store, exit_status);
}

static const struct field fields[] = {
    FLAG("disk", NULL, "cost of a sync here, and whether the disk ignores it"),
    FLAG("transition-stale", NULL, "end running sessions whose process is proven dead"),
    OPTION_WITH("stale-hours", "H", FIELD_AMOUNT, NULL, "minimum hours without an event (6.0)",
                .most = 1000000, .with = "transition-stale"),
    OPTION_WITH("dry-run", NULL, FIELD_FLAG, NULL, "list the sessions, end none",
                .with = "transition-stale"),
    FIELDS_END};

const struct command cmd_doctor = {
    COMMAND("doctor", "check the health of the store, and suggest actions", doctor, fields, run)};
