/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/sources.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define GENERATION_DIGITS 9
#define LOCK_AGAIN_US     INT64_C(2000)

/* ---- Names ---- */

static size_t count_digits(const char *text, size_t len)
{
    size_t digits = 0;
    while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
        digits++;
    return digits;
}

static bool is_log(const char *text)
{
    return strspn(text, "0123456789abcdef") >= SOURCES_LOG_DIGITS;
}

bool annal__sources_read_name(const char *text, annal__source_name *out)
{
    size_t len = strlen(text), digits = count_digits(text, len);
    uint32_t generation = 0;
    if (digits > 0 && digits <= GENERATION_DIGITS && len > digits &&
        text[len - digits - 1] == '.') {
        generation = (uint32_t)strtoul(text + len - digits, NULL, 10);
        if (generation == 0 || text[len - digits] == '0')
            return false;
        len -= digits + 1;
    }
    if (len <= SOURCES_LOG_DIGITS + 1 || strlen(text) >= SOURCES_NAME_BYTES ||
        text[len - SOURCES_LOG_DIGITS - 1] != '.' || !is_log(text + len - SOURCES_LOG_DIGITS))
        return false;
    *out = (annal__source_name){{text, len - SOURCES_LOG_DIGITS - 1},
                                {text + len - SOURCES_LOG_DIGITS, SOURCES_LOG_DIGITS},
                                generation};
    return annal_session_id_check(out->session, NULL) == ANNAL_OK;
}

/* ---- The directory ---- */

static annal_status path_of(const annal_store *store, const char *name, struct buf *out,
                            annal_error *err)
{
    annal__buf_clear(out);
    annal_status status = annal__buf_printf(out, "%s/sources%s%s", annal_store_path(store),
                                            name[0] != '\0' ? "/" : "", name);
    return status < 0 || annal__buf_cstr(out) == NULL
               ? annal__fail(err, ANNAL_ERR_NOMEM, "open the copies of logs: out of memory")
               : ANNAL_OK;
}

static annal_status take_lock(annal_store *store, int fd, int operation, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    for (int64_t left_us = annal__store_wait_ms(store) * INT64_C(1000);
         io->flock(io->arg, fd, operation | LOCK_NB) < 0; left_us -= LOCK_AGAIN_US) {
        if (errno != EWOULDBLOCK)
            return annal__fail_errno(err, "cannot lock sources/, the copies of logs in store %s",
                                     annal_store_path(store));
        if (annal__store_may_wait(store, left_us) <= 0)
            return annal__fail(err, ANNAL_ERR_BUSY,
                               "another process is using the copies of logs, sources/ of store %s",
                               annal_store_path(store));
        annal__store_wait(store, LOCK_AGAIN_US);
    }
    return ANNAL_OK;
}

annal_status annal__sources_open(annal_store *store, int operation, int *out_fd, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    annal_status status = path_of(store, "", &path, err);
    if (status < 0)
        return status;
    int fd = io->open(io->arg, path.ptr, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 && errno == ENOENT && operation == LOCK_EX) {
        status = annal__io_make_dir(io, path.ptr, err);
        fd = status < 0 ? -1 : io->open(io->arg, path.ptr, O_RDONLY | O_DIRECTORY, 0);
    }
    if (status == ANNAL_OK && fd < 0)
        status = errno == ENOENT
                     ? annal__fail(err, ANNAL_ERR_NOTFOUND,
                                   "store %s has no copies of logs (directory sources/)",
                                   annal_store_path(store))
                     : annal__fail_errno(err, "cannot open the copies of logs in %s", path.ptr);
    if (status == ANNAL_OK)
        status = take_lock(store, fd, operation, err);
    if (status == ANNAL_OK)
        *out_fd = fd;
    else if (fd >= 0)
        io->close(io->arg, fd);
    return status;
}

/* ---- Listing ---- */

struct names {
    annal_slice session; /* session whose copies are listed; empty: all sessions */
    char **all;
    size_t count;
    bool no_memory;
};

static int collect(void *arg, const char *text)
{
    struct names *names = arg;
    annal__source_name name;
    if (!annal__sources_read_name(text, &name) ||
        (names->session.len > 0 && !annal__slice_same(name.session, names->session)))
        return 0;
    char **copy = annal__array_add(&names->all, &names->count, sizeof *copy);
    if (copy != NULL)
        *copy = annal__strndup(text, strlen(text));
    names->no_memory = copy == NULL || *copy == NULL;
    names->count -= copy != NULL && *copy == NULL;
    return names->no_memory;
}

static int compare(const void *left, const void *right)
{
    annal__source_name a = {0}, b = {0};
    (void)annal__sources_read_name(*(char *const *)left, &a);
    (void)annal__sources_read_name(*(char *const *)right, &b);
    size_t same = (size_t)(b.log.ptr + b.log.len - *(char *const *)right);
    int order = strncmp(*(char *const *)left, *(char *const *)right, same);
    /* generation 0 is the newest, and becomes the largest number */
    return order != 0 ? order : (a.generation - 1 < b.generation - 1 ? -1 : 1);
}

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        annal__free(names->all[i]);
    annal__free(names->all);
}

static annal_status read_names(annal_store *store, struct names *names, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    annal_status status = path_of(store, "", &path, err);
    if (status == ANNAL_OK && io->list(io->arg, path.ptr, collect, names) < 0 && errno != ENOENT)
        status = annal__fail_errno(err, "cannot list the copies of logs in %s", path.ptr);
    if (status == ANNAL_OK && names->no_memory)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list the copies of logs: out of memory");
    if (names->count > 1)
        qsort(names->all, names->count, sizeof *names->all, compare);
    return status;
}

annal_status annal__sources_each(annal_store *store, annal_slice session, annal__sources_fn fn,
                                 void *arg, annal_error *err)
{
    struct names names = {.session = session};
    annal_status status = read_names(store, &names, err);
    int stop = 0;
    for (size_t i = 0; i < names.count && status == ANNAL_OK && stop == 0; i++) {
        annal__source_name name;
        if (annal__sources_read_name(names.all[i], &name))
            stop = fn(arg, names.all[i], &name);
    }
    names_done(&names);
    return status < 0 ? status : stop;
}

/* ---- Deleting ---- */

struct drop {
    annal_store *store;
    /* number of the log, in digits, whose copies are removed; NULL: all logs of the session */
    const char *log;
    annal_error *err;
};

/* Read which session is the first of a log with several sessions, if the file of this session names
 * it (sources.h, rule 2). */
static bool read_first(const annal_store *store, const char *path, char *first)
{
    static const size_t mark = sizeof SOURCES_OTHER - 1;
    const struct io *io = annal__store_io(store);
    char line[sizeof SOURCES_OTHER + ANNAL_SESSION_ID_BYTES_MAX + 1] = "";
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t got = annal__io_read_full(io, fd, line, sizeof line - 1, 0);
    io->close(io->arg, fd);
    if (got <= 0 || strncmp(line, SOURCES_OTHER, mark) != 0)
        return false;
    line[mark + strcspn(line + mark, "\n")] = '\0';
    memcpy(first, line + mark, strlen(line + mark) + 1);
    return annal_session_id_check(annal_slice_of(first), NULL) == ANNAL_OK;
}

static int drop_one(void *arg, const char *text, const annal__source_name *name)
{
    const struct drop *drop = arg;
    const struct io *io = annal__store_io(drop->store);
    char first[ANNAL_SESSION_ID_BYTES_MAX + sizeof SOURCES_OTHER];
    SCOPED_BUF path = {0};
    if (drop->log != NULL && memcmp(drop->log, name->log.ptr, name->log.len) != 0)
        return 0;
    annal_status status = path_of(drop->store, text, &path, drop->err);
    if (status == ANNAL_OK && drop->log == NULL && read_first(drop->store, path.ptr, first)) {
        struct drop others = {drop->store, name->log.ptr, drop->err};
        status =
            annal__sources_each(drop->store, annal_slice_of(first), drop_one, &others, drop->err);
    }
    if (status == ANNAL_OK && io->unlink(io->arg, path.ptr) < 0 && errno != ENOENT)
        status = annal__fail_errno(drop->err, "cannot remove %s, a copy of a log", path.ptr);
    return status;
}

annal_status annal__sources_drop(annal_store *store, annal_slice session, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    struct drop drop = {store, NULL, err};
    SCOPED_BUF path = {0};
    struct stat there;
    int lock = -1;
    annal_status status = path_of(store, "", &path, err);
    if (status < 0 || (io->stat(io->arg, path.ptr, &there) < 0 && errno == ENOENT))
        return status;
    status = annal__sources_open(store, LOCK_EX, &lock, err);
    if (status == ANNAL_OK)
        status = annal__sources_each(store, session, drop_one, &drop, err);
    if (status == ANNAL_OK)
        status = annal__io_sync_dir(io, path.ptr, err);
    if (lock >= 0)
        io->close(io->arg, lock);
    return status;
}
