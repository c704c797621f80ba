/* SPDX-License-Identifier: Apache-2.0 */
#include "index/db/bound.h"

#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSTRUCTIONS 1000 /* number of instructions of SQLite between checks of time and memory */
/* time in us between two checks of the size of temporary files, which look at all descriptors of
 * this process */
#define LOOK_US 100000
/* one value in SQL may take a quarter of the memory limit: SQL functions hold several at once */
#define VALUE_SHARE 4

/*
 * Return the total bytes of SQLite's temporary files. They are unlinked, but the link of their
 * descriptor in /proc still shows their former name.
 */
static uint64_t temporary_bytes(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t bytes = 0;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char target[512];
        struct stat info;
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        if (strstr(target, "/etilqs_") != NULL && fstatat(dirfd(dir), entry->d_name, &info, 0) == 0)
            bytes += (uint64_t)info.st_size;
    }
    if (dir != NULL)
        closedir(dir);
    return bytes;
}

/* Check the limits: a progress handler, whose result other than 0 stops the statement. */
static int look(void *arg)
{
    struct bound *bound = arg;
    const annal_limits *limits = &bound->limits;
    int64_t now = annal__clock_monotonic_us();
    if (limits->run_ms != 0 && now - bound->begun_us >= bound->left_us)
        bound->what = "time";
    else if (limits->memory_bytes != 0 &&
             sqlite3_memory_used() - bound->memory > (sqlite3_int64)limits->memory_bytes)
        bound->what = "memory";
    else if (limits->temp_bytes != 0 && now - bound->looked_us >= LOOK_US) {
        bound->looked_us = now;
        if (temporary_bytes() > limits->temp_bytes)
            bound->what = "temp";
    }
    return bound->what != NULL;
}

void annal__bound_begin(struct bound *bound, sqlite3 *db, const annal_limits *limits)
{
    int64_t now = annal__clock_monotonic_us();
    *bound = (struct bound){.db = db,
                            .limits = *limits,
                            .left_us = (int64_t)limits->run_ms * 1000,
                            .begun_us = now,
                            .looked_us = now,
                            .memory = sqlite3_memory_used()};
    uint64_t value = limits->memory_bytes / VALUE_SHARE;
    bound->length = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
    if (limits->memory_bytes != 0 && value < (uint64_t)bound->length)
        sqlite3_limit(db, SQLITE_LIMIT_LENGTH, (int)value);
    if (limits->run_ms != 0 || limits->memory_bytes != 0 || limits->temp_bytes != 0)
        sqlite3_progress_handler(db, INSTRUCTIONS, look, bound);
}

void annal__bound_end(struct bound *bound)
{
    if (bound->db == NULL)
        return;
    sqlite3_progress_handler(bound->db, 0, NULL, NULL);
    sqlite3_limit(bound->db, SQLITE_LIMIT_LENGTH, bound->length);
    bound->db = NULL;
}

static void set_due(const struct bound *bound, int64_t due_us)
{
    if (bound->limits.due_us != NULL)
        __atomic_store_n(bound->limits.due_us, due_us, __ATOMIC_RELEASE);
}

int annal__bound_step(struct bound *bound, sqlite3_stmt *stmt)
{
    if (bound->limits.run_ms == 0)
        return sqlite3_step(stmt);
    bound->begun_us = annal__clock_monotonic_us();
    set_due(bound, bound->begun_us + bound->left_us);
    int rc = sqlite3_step(stmt);
    set_due(bound, 0);
    if (!bound->each_row)
        bound->left_us -= annal__clock_monotonic_us() - bound->begun_us;
    return rc;
}

annal_status annal__bound_fail(const struct bound *bound, int rc, const char *what,
                               annal_error *err)
{
    const annal_limits *limits = &bound->limits;
    bool too_big = (rc & 0xff) == SQLITE_TOOBIG;
    if (!too_big && ((rc & 0xff) != SQLITE_INTERRUPT || bound->what == NULL))
        return ANNAL_OK;
    if (too_big)
        return annal__fail(err, ANNAL_ERR_LIMIT, "%s: a value is larger than %llu MB", what,
                           (unsigned long long)sqlite3_limit(bound->db, SQLITE_LIMIT_LENGTH, -1) >>
                               20);
    if (strcmp(bound->what, "time") == 0)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "%s: the statement was stopped after %.10g seconds%s", what,
                           (double)limits->run_ms / 1000, bound->each_row ? " for one row" : "");
    bool memory = strcmp(bound->what, "memory") == 0;
    return annal__fail(
        err, ANNAL_ERR_LIMIT,
        "%s: the statement was stopped because it used more than %llu MB of %s", what,
        (unsigned long long)(memory ? limits->memory_bytes : limits->temp_bytes) >> 20,
        memory ? "memory" : "temporary files");
}
