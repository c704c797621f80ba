/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health of a run, in six levels: healthy, idle, unresponsive, stale, orphaned, zombie (table
 * health_levels of the pack teams).
 *
 * (1) The view run_list of the pack shows the health according to the tables: a run that is silent
 *     for more than an hour is idle, and stale after the time that its kind allows. The plain
 *     sqlite3 shell reads this view, and cannot examine processes. Our connections have a temporary
 *     view with the same name and columns that can.
 * (2) A run whose process is alive is never stale: after the threshold it is unresponsive. A run
 *     whose process is proven dead (annal/process.h) is stale however short its silence, and
 *     orphaned if it has neither messages nor artifacts.
 * (3) A run that recorded no process, or whose process cannot be examined, is shown as in the
 *     tables. So is a run whose process is dead while another process writes its session: that
 *     process took it over without recording it.
 * (4) The artifacts of a run are at its artifacts_path, if that exists, and in the store's
 *     artifacts/. A relative artifacts_path is ignored, because it would be relative to the
 *     directory of the caller.
 * (5) A run that has ended is healthy, or a zombie if it left locks: files *.lock below
 *     artifacts_path, except lock files of package managers (with more than one line, or longer
 *     than LOCK_BYTES_MAX). A search ends after 1,000 names and 4 levels, and all searches of a
 *     connection after 100,000; a run whose locks were not found by then counts as without locks.
 * (6) A session without a status counts as completed, unless it is known to continue: its process
 *     is alive, or the table sessions of the core pack says paused or running.
 */
#include "index/query/run_health.h"

#include "index/db/db.h"
#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/inspect.h"
#include "journal/sys/process.h"

#include <annal/process.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 1000, ALL_NAMES_MAX = 100000, LEVELS_MAX = 4, LOCK_BYTES_MAX = 256 };

/* Data of annal_health() on one connection. */
struct looks {
    annal_store *store;
    unsigned names_left; /* number of names that may still be read, of ALL_NAMES_MAX */
};

extern const char annal__sql_run_list[];

enum { LEVEL, STATUS, SESSION, ARTIFACTS, MESSAGES, PID, START, PID_NS, BOOT_ID };

/* ---- Locks, rule (5) ---- */

/* Return whether the file is empty, or has one line that names its owner. */
static bool is_short(int folder, const char *name)
{
    char text[LOCK_BYTES_MAX + 1];
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t len = file < 0 ? 0 : read(file, text, sizeof text);
    if (file >= 0)
        close(file);
    if (len > LOCK_BYTES_MAX)
        return false;
    const char *newline = len > 0 ? memchr(text, '\n', (size_t)len) : NULL;
    return newline == NULL || newline == text + len - 1;
}

static bool is_lock(int folder, const char *name)
{
    struct stat found;
    size_t len = strlen(name);
    if (len < 5 || strcmp(name + len - 5, ".lock") != 0 ||
        fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    return S_ISREG(found.st_mode) ? is_short(folder, name)
                                  : S_ISDIR(found.st_mode) || S_ISLNK(found.st_mode);
}

/* Return whether the folder contains a lock, down to LEVELS_MAX. Closes the descriptor. *left:
 * number of names that may still be read. */
static bool has_lock(int folder, unsigned level, unsigned *left)
{
    bool found = false;
    DIR *stream = folder < 0 ? NULL : fdopendir(folder);
    if (stream == NULL && folder >= 0)
        close(folder);
    for (const struct dirent *entry;
         stream != NULL && !found && *left > 0 && (entry = readdir(stream)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        --*left;
        found = is_lock(folder, name);
        /* only directories are searched further, and links are not followed, because examining all
         * runs must be quick */
        if (!found && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
            level < LEVELS_MAX)
            found = has_lock(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                             level + 1, left);
    }
    if (stream != NULL)
        closedir(stream);
    return found;
}

static bool has_locks(struct looks *looks, const char *artifacts)
{
    unsigned names = looks->names_left < NAMES_MAX ? looks->names_left : NAMES_MAX, left = names;
    if (artifacts[0] != '/' || names == 0)
        return false;
    bool found = has_lock(open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 1, &left);
    /* count a folder in which no name was read as one name, because opening it takes time, too */
    looks->names_left -= names - left + (names == left);
    return found;
}

/* ---- Artifacts and processes ---- */

/* Return whether a run has artifacts, at an absolute artifacts_path or in the store (rule 4). */
static bool has_artifacts(annal_store *store, const char *session, const char *artifacts)
{
    SCOPED_BUF path = {0};
    struct stat info;
    if (artifacts[0] == '/' && stat(artifacts, &info) == 0)
        return true;
    return annal__buf_printf(&path, "%s/artifacts/%s", annal_store_path(store), session) >= 0 &&
           annal__buf_cstr(&path) != NULL && stat(path.ptr, &info) == 0;
}

static uint64_t whole(sqlite3_value *value)
{
    sqlite3_int64 number =
        sqlite3_value_type(value) == SQLITE_INTEGER ? sqlite3_value_int64(value) : 0;
    return number > 0 ? (uint64_t)number : 0;
}

static const char *text_of(sqlite3_value *value)
{
    return sqlite3_value_type(value) == SQLITE_TEXT ? (const char *)sqlite3_value_text(value) : "";
}

/* Find out whether the process that a run recorded is alive; unknown if it is dead but another
 * process may write the session (rules 2 and 3). */
static annal__process_life life_of(annal_store *store, const char *session, sqlite3_value **values)
{
    annal_process process = {.start = whole(values[START]), .pid_ns = whole(values[PID_NS])};
    uint64_t pid = whole(values[PID]);
    uint32_t owner = 0;
    process.pid = pid > INT32_MAX ? 0 : (uint32_t)pid;
    snprintf(process.boot_id, sizeof process.boot_id, "%s", text_of(values[BOOT_ID]));
    annal__process_life life = annal__process_look(&process);
    if (life == ANNAL_PROCESS_DEAD &&
        (annal__log_session_owner(store, annal_slice_of(session), &owner, NULL) < 0 ||
         (owner != 0 && owner != (uint32_t)getpid())))
        life = ANNAL_PROCESS_UNKNOWN;
    return life;
}

/* ---- The function ---- */

/*
 * Return whether a session that does not run is a zombie: it left locks, is not paused, and, if it
 * has no status, its process is not alive (rules 5 and 6). status is empty if the session has none.
 */
static bool is_zombie(struct looks *looks, const char *status, const char *session,
                      sqlite3_value **values)
{
    return strcmp(status, "paused") != 0 && has_locks(looks, text_of(values[ARTIFACTS])) &&
           (status[0] != '\0' || life_of(looks->store, session, values) != ANNAL_PROCESS_ALIVE);
}

static const char *health_of(struct looks *looks, sqlite3_value **values)
{
    const char *level = text_of(values[LEVEL]), *session = text_of(values[SESSION]);
    const char *status = text_of(values[STATUS]);
    if (strcmp(status, "running") != 0)
        return is_zombie(looks, status, session, values) ? "zombie" : "healthy";
    switch (life_of(looks->store, session, values)) {
    case ANNAL_PROCESS_ALIVE:
        return strcmp(level, "stale") == 0 ? "unresponsive" : level;
    case ANNAL_PROCESS_DEAD:
        return sqlite3_value_int(values[MESSAGES]) != 0 ||
                       has_artifacts(looks->store, session, text_of(values[ARTIFACTS]))
                   ? "stale"
                   : "orphaned";
    case ANNAL_PROCESS_UNKNOWN:
        break;
    }
    return level;
}

static void sql_health(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_text(context, health_of(sqlite3_user_data(context), values), -1,
                        SQLITE_TRANSIENT);
}

annal_status annal__run_health_add(sqlite3 *db, annal_store *store, annal_error *err)
{
    if (sqlite3_table_column_metadata(db, "state", "sessions", "artifacts_path", NULL, NULL, NULL,
                                      NULL, NULL) != SQLITE_OK ||
        sqlite3_table_column_metadata(db, "state", "stale_thresholds", NULL, NULL, NULL, NULL, NULL,
                                      NULL) != SQLITE_OK)
        return ANNAL_OK;
    struct looks *looks = annal__zalloc(sizeof *looks);
    if (looks == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "add the function annal_health: out of memory");
    *looks = (struct looks){.store = store, .names_left = ALL_NAMES_MAX};
    int rc = sqlite3_create_function_v2(db, "annal_health", BOOT_ID + 1, SQLITE_UTF8, looks,
                                        sql_health, NULL, NULL, annal__free);
    if (rc != SQLITE_OK)
        return annal__db_fail(err, db, rc, "cannot add the function annal_health");
    return annal__db_exec(db, annal__sql_run_list, err);
}
