/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/unchanged.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/target.h"
#include "tools/import/source_container.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* number of bytes that are hashed at the beginning and at the end of a log */
#define HASHED_BYTES ((size_t)64 << 10)
#define SESSIONS_MAX 64 /* a log with more sessions is always read again */
/* a log that was changed less than this time (us) ago is not recorded: the clock of a file system
 * is coarse, and a later change could have the same time */
#define RECENT_US      100000
#define FILE_BYTES_MAX ((size_t)1 << 30)
/* number of bytes of new lines that are collected before they are written to the file */
#define FRESH_BYTES ((size_t)1 << 20)

struct noted {
    uint64_t key; /* hash of the path */
    /* position of the line in the file; of several lines for a log, the last one counts */
    size_t order;
    annal_slice line;
};

struct unchanged {
    annal_store *store;
    struct buf path, read, fresh;
    struct noted *noted; /* valid lines of the file, one for each imported log, sorted by key */
    size_t count;
    bool is_read; /* whether the file was read */
};

/* ---- The current state of a log ---- */

static bool hash_part(int fd, off_t at, struct hash_stream *hash)
{
    char bytes[HASHED_BYTES];
    ssize_t got = pread(fd, bytes, sizeof bytes, at);
    if (got > 0)
        annal__hash_add(hash, bytes, (size_t)got);
    return got >= 0;
}

static bool hash_ends(int fd, off_t size, uint64_t *out_hash)
{
    struct hash_stream *hash = annal__hash_begin(0);
    if (hash == NULL)
        return false;
    bool read = hash_part(fd, 0, hash) &&
                hash_part(fd, size > (off_t)HASHED_BYTES ? size - (off_t)HASHED_BYTES : 0, hash);
    *out_hash = annal__hash_end(hash);
    return read;
}

/* Return whether a database has a WAL: it can change without a change of its file, so its import is
 * not recorded as unchanged. */
static bool has_wal(const char *path)
{
    struct stat file;
    SCOPED_BUF wal = {0};
    return annal__buf_printf(&wal, "%s-wal", path) < 0 ||
           (stat(wal.ptr, &file) == 0 && file.st_size > 0);
}

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void unchanged_mark_take(const char *path, struct log_mark *out_mark)
{
    struct stat file;
    *out_mark = (struct log_mark){0};
    char *absolute = realpath(path, NULL);
    int fd = absolute == NULL ? -1 : open(absolute, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && !has_wal(absolute) &&
        hash_ends(fd, file.st_size, &out_mark->hash)) {
        out_mark->path = absolute;
        absolute = NULL;
        out_mark->size = (uint64_t)file.st_size;
        out_mark->inode = (uint64_t)file.st_ino;
        out_mark->mtime_ns = nanoseconds(file.st_mtim);
        out_mark->ctime_ns = nanoseconds(file.st_ctim);
    }
    if (fd >= 0)
        close(fd);
    free(absolute);
}

void unchanged_mark_done(struct log_mark *mark)
{
    free(mark->path);
    mark->path = NULL;
}

static bool same_mark(const struct log_mark *a, const struct log_mark *b)
{
    return a->size == b->size && a->inode == b->inode && a->hash == b->hash &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Hash the importer's text and options, because another importer may yield other events. */
static uint64_t hash_importer(const struct importer *importer, const struct import_options *options)
{
    uint64_t hash = annal__hash(importer->sql.ptr, importer->sql.len, 0);
    for (size_t i = 0; options != NULL && i < options->option_count; i++) {
        const annal_import_option *option = &options->options[i];
        hash = annal__hash(option->name.ptr, option->name.len, hash);
        hash = annal__hash(option->value.ptr, option->value.len, hash);
    }
    return hash;
}

/* ---- Lines ---- */

static uint64_t number_of(annal_slice line, const char *name)
{
    annal_slice raw = annal__json_member(line, name);
    return raw.len == 0 ? 0 : strtoull(raw.ptr, NULL, 10);
}

static bool text_is(annal_slice raw, const char *text, struct buf *scratch)
{
    annal_slice is;
    annal__buf_clear(scratch);
    return raw.len >= 2 && raw.ptr[0] == '"' && annal__json_text(raw, scratch, &is) >= 0 &&
           annal__slice_is(is, text);
}

/* Return whether the line begins with {"h":"0123456789abcdef", where h is the hash of the rest, and
 * is JSON. */
static bool proves_itself(annal_slice line)
{
    static const size_t head = sizeof "{\"h\":\"0123456789abcdef\"," - 1;
    char h[17];
    if (line.len <= head)
        return false;
    snprintf(h, sizeof h, "%016" PRIx64, annal__hash(line.ptr + head, line.len - head, 0));
    return memcmp(line.ptr, "{\"h\":\"", 6) == 0 && memcmp(line.ptr + 6, h, 16) == 0 &&
           annal__json_check(line, ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID;
}

static int by_key(const void *a, const void *b)
{
    const struct noted *one = a, *other = b;
    return one->key < other->key ? -1 : one->key > other->key;
}

static int by_key_and_order(const void *a, const void *b)
{
    const struct noted *one = a, *other = b;
    int order = one->order < other->order ? -1 : one->order > other->order;
    int key = by_key(a, b);
    return key != 0 ? key : order;
}

/* Collect the valid lines of the file. The logs of invalid lines are read again. */
static void take_lines(struct unchanged *unchanged)
{
    annal_slice rest = annal__buf_slice(&unchanged->read);
    for (const char *end; rest.len > 0 && (end = memchr(rest.ptr, '\n', rest.len)) != NULL;) {
        annal_slice line = {rest.ptr, (size_t)(end - rest.ptr)};
        rest = (annal_slice){end + 1, rest.len - line.len - 1};
        if (!proves_itself(line))
            continue;
        struct noted *noted = annal__array_add(&unchanged->noted, &unchanged->count, sizeof *noted);
        if (noted == NULL)
            break;
        *noted = (struct noted){number_of(line, "key"), unchanged->count, line};
    }
    if (unchanged->count > 0)
        qsort(unchanged->noted, unchanged->count, sizeof *unchanged->noted, by_key_and_order);
}

/* Rewrite the file with the last line of each log only. */
static void rewrite(struct unchanged *unchanged)
{
    struct aside aside = {0};
    FILE *file = NULL;
    int fd = -1;
    bool written = target_aside_begin(&aside, unchanged->path.ptr, &fd) == 0;
    written = written && (file = fdopen(fd, "w")) != NULL;
    if (fd >= 0 && file == NULL)
        close(fd);
    for (size_t i = 0; written && i < unchanged->count; i++) {
        annal_slice line = unchanged->noted[i].line;
        written = fwrite(line.ptr, line.len, 1, file) == 1 && fputc('\n', file) != EOF;
    }
    if (file != NULL)
        written = fclose(file) == 0 && written;
    if (written && target_aside_finish(&aside) == 0)
        (void)chmod(unchanged->path.ptr, 0600);
    target_aside_done(&aside);
}

/* If several lines are about the same log, keep only the last of them. Return how many lines are
 * left. */
static size_t drop_replaced(struct noted *noted, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || noted[i + 1].key != noted[i].key)
            noted[kept++] = noted[i];
    return kept;
}

static void read_file(struct unchanged *unchanged)
{
    struct stat file;
    int fd = open(unchanged->path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t chunk = fd >= 0 && fstat(fd, &file) == 0 ? (size_t)file.st_size + 1 : 0;
    unchanged->is_read = true;
    while (chunk > 0 && annal__buf_reserve(&unchanged->read, chunk) >= 0) {
        ssize_t got = read(fd, unchanged->read.ptr + unchanged->read.len, chunk);
        unchanged->read.len += got > 0 ? (size_t)got : 0;
        chunk = got > 0 ? 1 << 16 : 0;
    }
    if (fd >= 0)
        close(fd);
    take_lines(unchanged);
    size_t lines = unchanged->count;
    unchanged->count = drop_replaced(unchanged->noted, lines);
    if (unchanged->count < lines / 2)
        rewrite(unchanged);
}

struct unchanged *unchanged_open(annal_store *store)
{
    struct unchanged *unchanged = annal__zalloc(sizeof *unchanged);
    if (unchanged == NULL)
        return NULL;
    unchanged->store = store;
    unchanged->read.limit = unchanged->fresh.limit = FILE_BYTES_MAX;
    if (annal__buf_printf(&unchanged->path, "%s/imports.jsonl", annal_store_path(store)) < 0 ||
        annal__buf_cstr(&unchanged->path) == NULL) {
        annal__buf_done(&unchanged->path);
        annal__free(unchanged);
        return NULL;
    }
    return unchanged;
}

static struct noted *find_line(struct unchanged *unchanged, const struct log_mark *mark)
{
    SCOPED_BUF scratch = {0};
    if (unchanged == NULL || mark->path == NULL)
        return NULL;
    if (!unchanged->is_read)
        read_file(unchanged);
    if (unchanged->count == 0)
        return NULL;
    const struct noted wanted = {.key = annal__hash(mark->path, strlen(mark->path), 0)};
    struct noted *found =
        bsearch(&wanted, unchanged->noted, unchanged->count, sizeof *found, by_key);
    if (found != NULL && !text_is(annal__json_member(found->line, "path"), mark->path, &scratch))
        found = NULL;
    return found;
}

/* ---- Lookup ---- */

/* Read ["id","file id",seq] into out. Return whether the session still has the journal with this
 * file id, and at least seq events. */
static bool has_session(annal_store *store, annal_slice raw, struct import_session *out)
{
    struct json_walk walk;
    annal_slice id, file, seq, text;
    annal_session_info info;
    SCOPED_BUF scratch = {0};
    bool has = annal__json_walk_array(&walk, raw) && annal__json_walk_item(&walk, &id) &&
               annal__json_walk_item(&walk, &file) && annal__json_walk_item(&walk, &seq) &&
               annal__json_text(id, &scratch, &text) >= 0 && text.len < sizeof out->id &&
               annal_session_info_get(store, text, &info, NULL) == ANNAL_OK &&
               info.last_seq >= strtoull(seq.ptr, NULL, 10);
    if (has) {
        snprintf(out->id, sizeof out->id, "%.*s", ANNAL_FMT(text));
        has = text_is(file, info.file, &scratch);
    }
    return has;
}

static bool read_sessions(annal_store *store, annal_slice line, struct import_report *out)
{
    struct json_walk walk;
    annal_slice raw;
    if (!annal__json_walk_array(&walk, annal__json_member(line, "sessions")))
        return false;
    while (annal__json_walk_item(&walk, &raw)) {
        struct import_session *session =
            annal__array_add(&out->sessions, &out->session_count, sizeof *session);
        if (session == NULL || !has_session(store, raw, session))
            return false;
    }
    return true;
}

static bool read_importer(annal_slice line, struct importer *out)
{
    SCOPED_BUF scratch = {0};
    annal_slice kind;
    char name[64];
    bool found = annal__json_text(annal__json_member(line, "kind"), &scratch, &kind) >= 0 &&
                 kind.len < sizeof name;
    if (found) {
        snprintf(name, sizeof name, "%.*s", ANNAL_FMT(kind));
        found = importer_find(name, out);
    }
    return found;
}

bool unchanged_find(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, struct importer *inout_importer,
                    struct import_report *out_report)
{
    const struct noted *noted = find_line(unchanged, mark);
    struct importer importer = *inout_importer;
    struct import_report report = {0};
    if (noted == NULL)
        return false;
    const struct log_mark then = {.size = number_of(noted->line, "size"),
                                  .inode = number_of(noted->line, "inode"),
                                  .hash = number_of(noted->line, "hash"),
                                  .mtime_ns = (int64_t)number_of(noted->line, "mtime_ns"),
                                  .ctime_ns = (int64_t)number_of(noted->line, "ctime_ns")};
    uint64_t container = number_of(noted->line, "container");
    if (!same_mark(mark, &then) || container > CONTAINER_LAST ||
        (importer.kind == NULL && !read_importer(noted->line, &importer)) ||
        hash_importer(&importer, options) != number_of(noted->line, "importer") ||
        !read_sessions(unchanged->store, noted->line, &report)) {
        import_report_done(&report);
        return false;
    }
    report.lines = number_of(noted->line, "lines");
    report.imported = number_of(noted->line, "imported");
    report.blank = number_of(noted->line, "blank");
    report.duplicate = number_of(noted->line, "duplicate");
    report.container = source_container_name((enum container)container);
    report.unchanged = true;
    *inout_importer = importer;
    *out_report = report;
    return true;
}

/* ---- Notes ---- */

static int container_number(const char *name)
{
    int number = CONTAINER_LINES;
    while (number <= CONTAINER_LAST &&
           strcmp(source_container_name((enum container)number), name) != 0)
        number++;
    return number;
}

static annal_status put_sessions(struct buf *out, annal_store *store,
                                 const struct import_report *report)
{
    annal_status status = annal__buf_printf(out, ",\"sessions\":[");
    for (size_t i = 0; status >= 0 && i < report->session_count; i++) {
        annal_session_info info;
        annal_slice id = annal_slice_of(report->sessions[i].id);
        status = annal_session_info_get(store, id, &info, NULL);
        if (status >= 0)
            status = annal__buf_printf(out, "%s[\"%s\",\"%s\",%" PRIu64 "]", i > 0 ? "," : "",
                                       info.session, info.file, info.last_seq);
    }
    return status < 0 ? status : annal__buf_printf(out, "]}");
}

/* Write the line of a log without its hash. */
static annal_status put_line(struct buf *out, const struct unchanged *unchanged,
                             const struct log_mark *mark, const struct import_options *options,
                             const struct importer *importer, const struct import_report *report)
{
    annal_status status = annal__json_put(
        out,
        "\"key\":#,\"size\":#,\"inode\":#,\"hash\":#,\"mtime_ns\":#,\"ctime_ns\":#,\"importer\":#,"
        "\"container\":#,\"lines\":#,\"imported\":#,\"blank\":#,\"duplicate\":#,\"kind\":?,"
        "\"path\":?",
        JSON_U64(annal__hash(mark->path, strlen(mark->path), 0)), JSON_U64(mark->size),
        JSON_U64(mark->inode), JSON_U64(mark->hash), JSON_I64(mark->mtime_ns),
        JSON_I64(mark->ctime_ns), JSON_U64(hash_importer(importer, options)),
        JSON_I64(container_number(report->container)), JSON_U64(report->lines),
        JSON_U64(report->imported), JSON_U64(report->blank), JSON_U64(report->duplicate),
        annal_slice_of(importer->kind), annal_slice_of(mark->path));
    return status < 0 ? status : put_sessions(out, unchanged->store, report);
}

void unchanged_note(struct unchanged *unchanged, const struct log_mark *mark,
                    const struct import_options *options, const struct importer *importer,
                    const struct import_report *report)
{
    struct log_mark now = {0};
    SCOPED_BUF line = {0};
    if (unchanged == NULL || mark->path == NULL || report->damaged || report->unfinished > 0 ||
        import_is_unknown(report) || report->session_count > SESSIONS_MAX ||
        container_number(report->container) > CONTAINER_LAST)
        return;
    int64_t wall_us = annal__system_clock.wall_us(annal__system_clock.arg);
    unchanged_mark_take(mark->path, &now);
    if (now.path != NULL && same_mark(mark, &now) && wall_us - now.ctime_ns / 1000 > RECENT_US &&
        put_line(&line, unchanged, mark, options, importer, report) >= 0) {
        size_t before = unchanged->fresh.len;
        if (annal__buf_printf(&unchanged->fresh, "{\"h\":\"%016" PRIx64 "\",%.*s\n",
                              annal__hash(line.ptr, line.len, 0), (int)line.len, line.ptr) < 0)
            annal__buf_cut(&unchanged->fresh, before);
        if (unchanged->fresh.len >= FRESH_BYTES)
            unchanged_write(unchanged);
    }
    unchanged_mark_done(&now);
}

void unchanged_forget(struct unchanged *unchanged)
{
    if (unchanged == NULL)
        return;
    annal__buf_done(&unchanged->read);
    annal__free(unchanged->noted);
    unchanged->noted = NULL;
    unchanged->count = 0;
    unchanged->is_read = false;
}

void unchanged_write(struct unchanged *unchanged)
{
    if (unchanged == NULL)
        return;
    int fd = unchanged->fresh.len == 0
                 ? -1
                 : open(unchanged->path.ptr, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                        0600);
    /* if writing the notes fails, ignore that: the next import then reads the logs again */
    if (fd >= 0 && write(fd, unchanged->fresh.ptr, unchanged->fresh.len) >= 0)
        (void)fchmod(fd, 0600);
    if (fd >= 0)
        close(fd);
    annal__buf_clear(&unchanged->fresh);
}

void unchanged_close(struct unchanged *unchanged)
{
    if (unchanged == NULL)
        return;
    unchanged_write(unchanged);
    unchanged_forget(unchanged);
    annal__buf_done(&unchanged->path);
    annal__buf_done(&unchanged->fresh);
    annal__free(unchanged);
}
