/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/ship_lag.h"

#include "journal/base/hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "ship."
enum { LINE_BYTES = 512, PATH_BYTES = 4096 };

static bool path_of(const annal_store *store, const char *url, const char *name,
                    char out[PATH_BYTES])
{
    uint64_t h = annal__hash(name, strlen(name), annal__hash(url, strlen(url), 0));
    int len =
        snprintf(out, PATH_BYTES, "%s/locks/" PREFIX "%016" PRIx64, annal_store_path(store), h);
    return len > 0 && len < PATH_BYTES;
}

static const char *after_last_at(const char *text, size_t len)
{
    const char *at = memrchr(text, '@', len);
    return at != NULL ? at + 1 : text;
}

/* Append the parameters of a libpq URL that identify the database to out. */
static void name_parameters(const char *text, char out[SHIP_LAG_NAME_BYTES])
{
    static const char *const named[] = {"host=", "hostaddr=", "port=", "dbname=", "service="};
    char before = '?';
    while (*text != '\0') {
        size_t len = strcspn(++text, "&"), used = strlen(out);
        for (size_t i = 0; i < sizeof named / sizeof *named; i++)
            if (strncmp(text, named[i], strlen(named[i])) == 0) {
                snprintf(out + used, SHIP_LAG_NAME_BYTES - used, "%c%.*s", before, (int)len, text);
                before = '&';
            }
        text += len;
    }
}

/* Print the URL without user:password@, which in libpq's syntax may contain a '?'. */
static void name_target(const char *url, char out[SHIP_LAG_NAME_BYTES])
{
    const char *rest = strstr(url, "://");
    const char *host = rest != NULL ? rest + 3 : url;
    int scheme = (int)(host - url);
    host = after_last_at(host, strcspn(host, "/"));
    host = after_last_at(host, strcspn(host, "?"));
    size_t len = strcspn(host, "?");
    snprintf(out, SHIP_LAG_NAME_BYTES, "%.*s%.*s", scheme, url, (int)len, host);
    name_parameters(host + len, out);
    for (char *c = out; *c != '\0'; c++)
        if (*c == '"' || *c == '\\' || *c == '\n')
            *c = '_';
}

int ship_lag_open(const annal_store *store, const char *url, const char *name, struct ship_lag *out)
{
    char path[PATH_BYTES];
    *out = (struct ship_lag){0};
    name_target(url, out->target);
    if (!path_of(store, url, name, path))
        return -1;
    /* Try twice: a shipper that ended in the meantime may have removed the file. */
    for (int tries = 0; tries < 2; tries++) {
        struct stat file;
        int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &file) == 0 && file.st_nlink > 0)
            return fd;
        close(fd);
    }
    return -1;
}

/* Write the whole file with one call, so that a reader sees a consistent state. */
void ship_lag_write(int fd, const struct ship_lag *lag)
{
    char line[LINE_BYTES];
    if (fd < 0)
        return;
    int len = snprintf(line, sizeof line, "%s\n%" PRIu64 " %" PRIu64 " %.3f %.3f %" PRIu64 " %d\n",
                       lag->target, lag->events, lag->events_behind, lag->seconds_behind,
                       lag->rows_seconds_behind, lag->stopped, lag->away);
    memset(line + len, ' ', sizeof line - (size_t)len);
    (void)!pwrite(fd, line, sizeof line, 0);
}

void ship_lag_close(const annal_store *store, const char *url, const char *name, int fd)
{
    char path[PATH_BYTES];
    if (fd < 0)
        return;
    if (path_of(store, url, name, path))
        (void)unlink(path);
    close(fd);
}

static double seconds_since(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double seconds =
        (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) / 1e9;
    return seconds > 0 ? seconds : 0;
}

static bool read_lag(const char *path, struct ship_lag *out)
{
    char line[LINE_BYTES + 1] = "";
    int away = 0;
    struct stat file = {0};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool is_kept = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
    ssize_t got = is_kept && fstat(fd, &file) == 0 ? pread(fd, line, LINE_BYTES, 0) : -1;
    if (fd >= 0)
        close(fd);
    const char *numbers = got == LINE_BYTES ? strchr(line, '\n') : NULL;
    if (numbers == NULL || numbers - line >= SHIP_LAG_NAME_BYTES)
        return false;
    *out = (struct ship_lag){0};
    memcpy(out->target, line, (size_t)(numbers - line));
    bool whole = sscanf(numbers, " %" SCNu64 " %" SCNu64 " %lf %lf %" SCNu64 " %d", &out->events,
                        &out->events_behind, &out->seconds_behind, &out->rows_seconds_behind,
                        &out->stopped, &away) == 6;
    out->away = away != 0;
    out->silent_seconds = seconds_since(&file.st_mtim);
    if (out->events_behind > 0)
        out->seconds_behind += out->silent_seconds;
    return whole;
}

annal_status ship_lag_each(const annal_store *store,
                           annal_status (*fn)(void *arg, const struct ship_lag *lag), void *arg)
{
    char path[PATH_BYTES];
    struct dirent *entry;
    annal_status status = ANNAL_OK;
    snprintf(path, sizeof path, "%s/locks", annal_store_path(store));
    DIR *directory = opendir(path);
    while (status >= 0 && directory != NULL && (entry = readdir(directory)) != NULL) {
        struct ship_lag lag;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            snprintf(path, sizeof path, "%s/locks/%s", annal_store_path(store), entry->d_name) >=
                (int)sizeof path)
            continue;
        if (read_lag(path, &lag))
            status = fn(arg, &lag);
    }
    if (directory != NULL)
        closedir(directory);
    return status;
}
