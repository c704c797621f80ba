/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tail_file.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define PATH_LIMIT       8192
#define CURSOR_BYTES_MAX ((size_t)1 << 28)
#define FOLDER           "cursors"
#define SUFFIX           ".json"
#define BEGIN            "{\"annal_cursor\":1,\"name\":\""
#define END              "\n},\"h\":\""

static annal_status path_of(annal_store *store, annal_slice name, struct buf *out, annal_error *err)
{
    out->limit = PATH_LIMIT;
    annal__buf_clear(out);
    annal_status status = annal__buf_printf(out, "%s/" FOLDER "/%.*s" SUFFIX,
                                            annal_store_path(store), ANNAL_FMT(name));
    return status < 0 ? annal__fail(err, status, "cannot compose the path of cursor '%.*s'",
                                    ANNAL_FMT(name))
                      : ANNAL_OK;
}

static annal_status check_name(annal_slice name, annal_error *err)
{
    annal_status status = annal_session_id_check(name, err);
    if (status < 0)
        annal__error_context(err, "check the name of a cursor");
    return status;
}

/* ---- The lock, rule (4) ---- */

annal_status annal__tail_file_lock(annal_store *store, annal_slice name, int *out_fd,
                                   annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    annal_status status = check_name(name, err);
    int fd = -1;
    if (status < 0)
        return status;
    if (annal__session_list_is_read_only(store)) {
        *out_fd = -1;
        return ANNAL_OK;
    }
    status =
        annal__buf_printf(&path, "%s/locks/cursor.%.*s", annal_store_path(store), ANNAL_FMT(name));
    if (status < 0) {
        status = annal__fail(err, status, "cannot lock cursor '%.*s'", ANNAL_FMT(name));
        goto done;
    }
    fd = io->open(io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
    if (fd < 0)
        status = annal__fail_errno(err, "cannot open %s", path.ptr);
    else if (io->flock(io->arg, fd, LOCK_EX | LOCK_NB) < 0)
        status = errno != EWOULDBLOCK
                     ? annal__fail_errno(err, "cannot lock %s", path.ptr)
                     : annal__fail(err, ANNAL_ERR_BUSY,
                                   "cursor '%.*s' is in use by another tail: close that tail first",
                                   ANNAL_FMT(name));

done:
    if (status < 0 && fd >= 0)
        io->close(io->arg, fd);
    if (status == ANNAL_OK)
        *out_fd = fd;
    return status;
}

/* ---- Reading ---- */

static annal_status read_whole(annal_store *store, annal_slice name, struct buf *out,
                               annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    struct stat file;
    annal_status status = path_of(store, name, &path, err);
    int fd = status < 0 ? -1 : io->open(io->arg, path.ptr, O_RDONLY, 0);
    if (status < 0)
        goto done;
    if (fd < 0) {
        status =
            errno == ENOENT || errno == ENOTDIR
                ? annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no cursor '%.*s'", ANNAL_FMT(name))
                : annal__fail_errno(err, "cannot open %s", path.ptr);
        goto done;
    }
    out->limit = CURSOR_BYTES_MAX;
    if (io->fstat(io->arg, fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot examine %s", path.ptr);
        goto done;
    }
    status = annal__buf_reserve(out, (size_t)file.st_size + 1);
    if (status < 0) {
        status = annal__fail(err, status, "cannot read %s", path.ptr);
        goto done;
    }
    ssize_t got = annal__io_read_full(io, fd, out->ptr, (size_t)file.st_size, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path.ptr);
    else
        out->len = (size_t)got;

done:
    if (fd >= 0)
        io->close(io->arg, fd);
    return status;
}

static annal_status fail_corrupt(annal_slice name, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "read cursor '%.*s': the file of the cursor is damaged; delete this file, "
                       "and the reader starts from the beginning",
                       ANNAL_FMT(name));
}

/* Read a line "ID":{"seq":N,"h":"…","file":"…"}, with or without a comma at its end; h may be
 * null. */
static bool read_entry(const char *line, char session[ANNAL_SESSION_ID_BYTES_MAX + 1],
                       struct cursor_entry *out)
{
    int at = 0, end = 0;
    *out = (struct cursor_entry){0};
    if (sscanf(line, "\"%200[^\"]\":{\"seq\":%" SCNu64 ",\"h\":%n", session, &out->seq, &at) != 2 ||
        at == 0)
        return false;
    line += at;
    out->has_h = line[0] == '"';
    if (out->has_h ? sscanf(line, "\"%16" SCNx64 "\",\"file\":\"%n", &out->h, &end) != 1
                   : strncmp(line, "null,\"file\":\"", 13) != 0)
        return false;
    line += out->has_h ? end : 13;
    if ((out->has_h && end == 0) || strspn(line, "0123456789abcdef") != 32 ||
        (strcmp(line + 32, "\"}") != 0 && strcmp(line + 32, "\"},") != 0))
        return false;
    memcpy(out->file, line, 32);
    out->session = annal_slice_of(session);
    return annal_session_id_check(out->session, NULL) == ANNAL_OK;
}

/* Read the first line, which ends with "committed":"T","sessions":{ */
static bool read_begin(const char *line, annal_slice name, int64_t *out_committed_us)
{
    char committed[ANNAL_TIME_BYTES] = "";
    if (strncmp(line, BEGIN, strlen(BEGIN)) != 0)
        return false;
    line += strlen(BEGIN);
    if (strncmp(line, name.ptr, name.len) != 0)
        return false;
    int end = 0;
    if (sscanf(line + name.len, "\",\"committed\":\"%27[^\"]\",\"sessions\":{%n", committed,
               &end) != 1 ||
        end == 0 || line[name.len + (size_t)end] != '\0')
        return false;
    return annal_time_parse(annal_slice_of(committed), out_committed_us, NULL) == ANNAL_OK;
}

static annal_status read_lines(char *text, annal_slice name, cursor_entry_fn fn, void *arg,
                               int64_t *out_committed_us, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct cursor_entry entry;
    int64_t committed_us = 0;
    annal_status status = ANNAL_OK;
    bool sound = true;
    for (char *line = text, *next; line != NULL && status == ANNAL_OK && sound; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (line == text)
            sound = read_begin(line, name, &committed_us);
        else if (read_entry(line, session, &entry))
            status = fn == NULL ? ANNAL_OK : fn(arg, &entry, committed_us, err);
        else
            sound = false;
    }
    if (!sound)
        return fail_corrupt(name, err);
    if (status == ANNAL_OK && out_committed_us != NULL)
        *out_committed_us = committed_us;
    return status;
}

/*
 * Check the last line, which contains the hash of the lines before it, and remove it from the text.
 */
static bool take_end(struct buf *text)
{
    char end[sizeof END + 24];
    size_t len = strlen(END) + 16 + 3;
    if (text->len <= len)
        return false;
    size_t rest = text->len - len;
    snprintf(end, sizeof end, END "%016" PRIx64 "\"}\n", annal__hash(text->ptr, rest, 0));
    if (memcmp(text->ptr + rest, end, len) != 0)
        return false;
    text->len = rest;
    return true;
}

annal_status annal__tail_file_read(annal_store *store, annal_slice name, cursor_entry_fn fn,
                                   void *arg, int64_t *out_committed_us, annal_error *err)
{
    SCOPED_BUF text = {0};
    annal_status status = check_name(name, err);
    if (status == ANNAL_OK)
        status = read_whole(store, name, &text, err);
    if (status == ANNAL_OK && !take_end(&text))
        status = fail_corrupt(name, err);
    if (status == ANNAL_OK && annal__buf_cstr(&text) == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read the cursor '%.*s': out of memory",
                             ANNAL_FMT(name));
    return status != ANNAL_OK ? status : read_lines(text.ptr, name, fn, arg, out_committed_us, err);
}

/* ---- Writing, rule (2) ---- */

annal_status annal__tail_file_begin(struct buf *out, annal_slice name, int64_t now_us)
{
    char now[ANNAL_TIME_BYTES];
    annal_time_format(now_us, now);
    out->limit = CURSOR_BYTES_MAX;
    return annal__buf_printf(out, BEGIN "%.*s\",\"committed\":\"%s\",\"sessions\":{",
                             ANNAL_FMT(name), now);
}

annal_status annal__tail_file_add(struct buf *out, const struct cursor_entry *entry)
{
    char h[24] = "null";
    if (entry->has_h)
        snprintf(h, sizeof h, "\"%016" PRIx64 "\"", entry->h);
    return annal__buf_printf(out, "%s\n\"%.*s\":{\"seq\":%" PRIu64 ",\"h\":%s,\"file\":\"%s\"}",
                             out->ptr[out->len - 1] == '{' ? "" : ",", ANNAL_FMT(entry->session),
                             entry->seq, h, entry->file);
}

annal_status annal__tail_file_publish(annal_store *store, annal_slice name, struct buf *text,
                                      annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    annal_status status =
        annal__buf_printf(text, END "%016" PRIx64 "\"}\n", annal__hash(text->ptr, text->len, 0));
    if (status == ANNAL_OK)
        status = annal__buf_printf(&path, "%s/" FOLDER, annal_store_path(store));
    if (status < 0)
        return annal__fail(err, status, "cannot write cursor '%.*s'", ANNAL_FMT(name));
    status = annal__io_make_dir(io, path.ptr, err);
    if (status == ANNAL_OK)
        status = path_of(store, name, &path, err);
    return status != ANNAL_OK ? status
                              : annal__io_publish_file(io, path.ptr, text->ptr, text->len, err);
}

/* ---- All cursors ---- */

struct listing {
    char (*names)[ANNAL_SESSION_ID_BYTES_MAX + 1];
    size_t count;
    bool no_memory;
};

static int list_name(void *arg, const char *name)
{
    struct listing *listing = arg;
    size_t len = strlen(name), suffix = strlen(SUFFIX);
    if (len <= suffix || strcmp(name + len - suffix, SUFFIX) != 0 ||
        annal_session_id_check((annal_slice){name, len - suffix}, NULL) != ANNAL_OK)
        return 0;
    char *copy = annal__array_add(&listing->names, &listing->count, sizeof *listing->names);
    listing->no_memory = copy == NULL;
    if (copy == NULL)
        return 1;
    memcpy(copy, name, len - suffix);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static annal_status count_entry(void *arg, const struct cursor_entry *entry, int64_t committed_us,
                                annal_error *err)
{
    annal_tail_cursor *cursor = arg;
    (void)entry;
    (void)committed_us;
    (void)err;
    cursor->sessions++;
    return ANNAL_OK;
}

static annal_status visit(annal_store *store, const char *name, annal_tail_cursor_fn fn, void *arg,
                          annal_error *err)
{
    annal_tail_cursor cursor = {.name = annal_slice_of(name)};
    const struct io *io = annal__store_io(store);
    int fd = -1;
    annal_status status =
        annal__tail_file_read(store, cursor.name, count_entry, &cursor, &cursor.committed_us, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK; /* another process deleted the cursor after its name was listed */
    if (status == ANNAL_ERR_CORRUPT)
        cursor = (annal_tail_cursor){.name = cursor.name, .damaged = true};
    else if (status < 0)
        return status;
    cursor.taken = annal__tail_file_lock(store, cursor.name, &fd, NULL) == ANNAL_ERR_BUSY;
    if (fd >= 0)
        io->close(io->arg, fd);
    return fn(arg, &cursor);
}

annal_status annal_tail_cursor_each(annal_store *store, annal_tail_cursor_fn fn, void *arg,
                                    annal_error *err)
{
    const struct io *io = annal__store_io(store);
    struct listing listing = {0};
    SCOPED_BUF path = {.limit = PATH_LIMIT};
    annal_status status = annal__buf_printf(&path, "%s/" FOLDER, annal_store_path(store));
    if (status < 0) {
        status = annal__fail(err, status, "cannot list the cursors of store %s",
                             annal_store_path(store));
        goto done;
    }
    if (io->list(io->arg, path.ptr, list_name, &listing) < 0 && errno != ENOENT &&
        !listing.no_memory)
        status = annal__fail_errno(err, "cannot list %s", path.ptr);
    if (listing.no_memory)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "list %s: out of memory", path.ptr);
    if (listing.count > 0)
        qsort(listing.names, listing.count, sizeof *listing.names, by_name);
    for (size_t i = 0; i < listing.count && status == ANNAL_OK; i++)
        status = visit(store, listing.names[i], fn, arg, err);

done:
    annal__free(listing.names);
    return status;
}

struct shown {
    annal_slice name;
    annal_tail_position_fn fn;
    void *arg;
};

static annal_status show_entry(void *arg, const struct cursor_entry *entry, int64_t committed_us,
                               annal_error *err)
{
    const struct shown *shown = arg;
    const annal_tail_position position = {.cursor = shown->name,
                                          .committed_us = committed_us,
                                          .session = entry->session,
                                          .seq = entry->seq,
                                          .h = entry->h};
    (void)err;
    return shown->fn(shown->arg, &position);
}

annal_status annal_tail_position_each(annal_store *store, annal_slice name,
                                      annal_tail_position_fn fn, void *arg, annal_error *err)
{
    struct shown shown = {name, fn, arg};
    return annal__tail_file_read(store, name, show_entry, &shown, NULL, err);
}

annal_status annal_tail_cursor_drop(annal_store *store, annal_slice name, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    int fd = -1;
    annal_status status =
        annal__session_list_is_read_only(store)
            ? annal__fail(err, ANNAL_ERR_IO,
                          "remove cursor '%.*s': store %s is open for reading only",
                          ANNAL_FMT(name), annal_store_path(store))
            : annal__tail_file_lock(store, name, &fd, err);
    if (status == ANNAL_OK)
        status = path_of(store, name, &path, err);
    if (status == ANNAL_OK && io->unlink(io->arg, path.ptr) < 0)
        status =
            errno == ENOENT || errno == ENOTDIR
                ? annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no cursor '%.*s'", ANNAL_FMT(name))
                : annal__fail_errno(err, "cannot remove %s", path.ptr);
    if (status == ANNAL_OK) {
        path.ptr[path.len - name.len - strlen(SUFFIX) - 1] = '\0';
        status = annal__io_sync_dir(io, path.ptr, err);
    }
    if (fd >= 0)
        io->close(io->arg, fd);
    return status;
}
