/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/changes.h"

#include "journal/base/alloc.h"
#include "journal/base/clock.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/cli/places.h"
#include "tools/import/importers.h"
#include "tools/show/values.h"
#include "tools/source/copies.h"
#include "tools/source/copies_file.h"

#include <annal/journal.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_US INT64_C(20000) /* times of files are not more exact */
#define TRIES   3

/* What a copy says of a log. */
struct facts {
    char name[SOURCES_NAME_BYTES]; /* "": the store has no copy */
    uint64_t generation, bytes, began;
    int64_t copied_us;
    char kind[64];
    bool has_form; /* whether the log is not a file: each session has a copy of its part */
    struct buf info;
};

struct changes {
    annal_store *store;
    annal_index *index;
    annal_error *err;
    char host[HOST_NAME_MAX + 1], now[ANNAL_TIME_BYTES];
    char **names; /* files of the copies; the files of one log are sorted from the oldest on */
    size_t name_count;
    struct places by_log;       /* newest generations */
    struct buf sources, judged; /* ?2 and ?4 of the SQL below */
    bool is_busy; /* a session belongs to another process, so its event is written later */
};

/* ---- SQL ---- */

/* The statements in tools/import/changes/. */
extern const char annal__sql_changes_paths[], annal__sql_changes_presence[],
    annal__sql_changes_generation[], annal__sql_changes_look[];

/* count: the number of parameters of the statement. */
static annal_status ask(struct changes *changes, const char *sql, size_t count, annal_row_fn fn,
                        void *arg)
{
    const annal_value params[] = {
        text_value(annal_slice_of(changes->host)), text_value(annal__buf_slice(&changes->sources)),
        text_value(annal_slice_of(changes->now)), text_value(annal__buf_slice(&changes->judged))};
    return annal_index_sql(changes->index, annal_slice_of(sql),
                           &(annal_sql_options){.params = params, .param_count = count}, fn, arg,
                           changes->err);
}

/* ---- Copies ---- */

static uint64_t log_of(const char *path)
{
    return annal__hash(path, strlen(path), 0);
}

static int add_name(void *arg, const char *text, const annal__source_name *name)
{
    struct changes *changes = arg;
    char **copy = annal__array_add(&changes->names, &changes->name_count, sizeof *copy);
    if (copy == NULL || (*copy = annal__strndup(text, strlen(text))) == NULL)
        return annal__fail(changes->err, ANNAL_ERR_NOMEM, "list the copies of logs: out of memory");
    if (name->generation == 0)
        (void)!places_add(&changes->by_log, strtoull(name->log.ptr, NULL, 16),
                          changes->name_count - 1);
    return 0;
}

static int take_facts(void *arg, const struct copy *copy)
{
    struct facts *facts = arg;
    SCOPED_BUF text = {0};
    annal_slice kind = {0};
    if (annal__json_check(copy->info, ANNAL_DATA_DEPTH_MAX, NULL) != JSON_VALID)
        return 0;
    (void)annal__json_text(annal__json_member(copy->info, "kind"), &text, &kind);
    snprintf(facts->kind, sizeof facts->kind, "%.*s", ANNAL_FMT(kind));
    snprintf(facts->name, sizeof facts->name, "%s", copy->name);
    facts->has_form = annal__json_member(copy->info, "form").len > 0;
    facts->generation = copy->generation;
    facts->bytes = copy->bytes;
    facts->began = copy->began;
    facts->copied_us = copy->copied_us;
    annal__buf_clear(&facts->info);
    return annal__buf_append_slice(&facts->info, copy->info);
}

/* Read the newest copy of a log. A log of many sessions has as many files, of which one is it. */
static void find_copy(const struct changes *changes, const char *path, struct facts *copy)
{
    size_t at = 0, index;
    while (copy->name[0] == '\0' &&
           (index = places_next(&changes->by_log, log_of(path), &at)) != SIZE_MAX)
        copies_one(changes->store, changes->names[index], take_facts, copy);
}

/* Return whether the newest copy is equal to the log, by their times: rule (4) of copies.h. */
static bool is_copied(const struct changes *changes, const char *path)
{
    size_t at = 0, index;
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    while ((index = places_next(&changes->by_log, log_of(path), &at)) != SIZE_MAX) {
        annal__source_name name = {0};
        char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
        (void)annal__sources_read_name(changes->names[index], &name);
        snprintf(session, sizeof session, "%.*s", ANNAL_FMT(name.session));
        if (copies_are_current(changes->store, path, session, copies_file_ns(st.st_mtim)))
            return true;
    }
    return false;
}

/* ---- Looking: rule (2) ---- */

static int64_t us_of(struct timespec time)
{
    return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

/* Return when the log was last seen, at the earliest. */
static int64_t seen_us(const struct changes *changes, annal_slice session, const struct facts *copy)
{
    annal_session_info info;
    if (copy->name[0] != '\0')
        return copy->copied_us;
    return annal_session_info_get(changes->store, session, &info, NULL) == ANNAL_OK
               ? info.last_ts_us
               : INT64_MAX;
}

/* Return whether a path that does not exist was removed after seen_us. */
static bool was_removed(const char *path, int64_t seen_us)
{
    char above[PATH_MAX];
    struct stat st;
    char *slash = above;
    snprintf(above, sizeof above, "%s", path);
    while ((errno == ENOENT || errno == ENOTDIR) && (slash = strrchr(above, '/')) != NULL) {
        slash[slash == above] = '\0';
        if (stat(above, &st) == 0)
            return us_of(st.st_mtim) + TICK_US >= seen_us;
    }
    return false;
}

static annal_status put_source(struct changes *changes, const char *path, const char *is,
                               const struct stat *st, const struct facts *copy)
{
    struct buf *out = &changes->sources;
    char since[ANNAL_TIME_BYTES];
    uint64_t size = (uint64_t)st->st_size, unread = 0;
    if (copy->name[0] != '\0' && S_ISREG(st->st_mode) && !copy->has_form)
        unread = size > copy->bytes ? size - copy->bytes : size < copy->bytes ? size : 0;
    annal_time_format(us_of(st->st_mtim), since);
    annal__json_put(out, out->len > 1 ? ",[?" : "[?", annal_slice_of(path));
    annal_status status = annal__buf_printf(out, ",\"%s\",%" PRIu64 ",\"%s\",\"%016" PRIx64 "\",",
                                            is, size, since, log_of(path));
    if (status < 0)
        return status;
    if (copy->name[0] == '\0')
        return annal__buf_printf(out, "null,null,null,0]");
    return copy->has_form ? annal__buf_printf(out, "\"%s\",null,null,0]", copy->kind)
                          : annal__buf_printf(out, "\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                                              copy->kind, copy->generation, copy->bytes, unread);
}

static int look(void *arg, const annal_row *row)
{
    struct changes *changes = arg;
    struct facts copy = {0};
    struct stat st = {0};
    char path[PATH_MAX];
    annal_slice given = row->values[0].bytes;
    annal_status status = ANNAL_OK;
    /* a path that is not UTF-8 is not known exactly */
    if (given.len >= sizeof path || memmem(given.ptr, given.len, "\xEF\xBF\xBD", 3) != NULL)
        return 0;
    snprintf(path, sizeof path, "%.*s", ANNAL_FMT(given));
    bool is_there = stat(path, &st) == 0;
    int failure = errno;
    if (is_there && row->values[2].integer == 0 && is_copied(changes, path))
        return 0;
    find_copy(changes, path, &copy);
    int64_t seen = is_there ? 0 : seen_us(changes, row->values[1].bytes, &copy);
    errno = failure;
    status = put_source(changes, path,
                        is_there                  ? "there"
                        : was_removed(path, seen) ? "gone"
                                                  : "unreachable",
                        &st, &copy);
    annal__buf_done(&copy.info);
    return status;
}

static annal_status look_at_all(struct changes *changes)
{
    (void)gethostname(changes->host, sizeof changes->host - 1);
    annal_time_format(annal__system_clock.wall_us(annal__system_clock.arg), changes->now);
    annal_status status =
        annal__sources_each(changes->store, (annal_slice){0}, add_name, changes, changes->err);
    if (status == ANNAL_OK)
        status = annal__buf_append(&changes->sources, "[", 1);
    if (status == ANNAL_OK)
        status = ask(changes, annal__sql_changes_paths, 1, look, changes);
    return status < 0 ? status : annal__buf_append(&changes->sources, "]", 1);
}

static annal_status changes_end(struct changes *changes, annal_status status)
{
    for (size_t i = 0; i < changes->name_count; i++)
        annal__free(changes->names[i]);
    annal__free(changes->names);
    places_done(&changes->by_log);
    annal__buf_done(&changes->sources);
    annal__buf_done(&changes->judged);
    return status == ANNAL_ERR_NOMEM
               ? annal__fail(changes->err, status, "look at the logs of sessions: out of memory")
               : status;
}

/* ---- Writing ---- */

/* Append an event at the end of its session. ANNAL_ERR_CONFLICT: the session has an event with this
 * id, or gets others all the time. ANNAL_ERR_NOTFOUND: it was deleted. */
static annal_status append(const struct changes *changes, annal_slice session, annal_draft *draft)
{
    annal_status status = ANNAL_ERR_CONFLICT;
    for (int i = 0; i < TRIES && status == ANNAL_ERR_CONFLICT; i++) {
        annal_session_info info;
        annal_writer *writer = NULL;
        uint64_t seq;
        status = annal_session_info_get(changes->store, session, &info, changes->err);
        draft->ts_us = info.last_ts_us;
        if (status >= 0)
            status = annal_writer_open(changes->store, session, NULL, &writer, changes->err);
        if (status >= 0)
            status = annal_writer_append(
                writer, draft, 1,
                &(annal_append_options){.expect = ANNAL_EXPECT_SEQ, .expected_seq = info.last_seq},
                &seq, changes->err);
        annal_writer_close(writer);
    }
    return status;
}

static int write_row(void *arg, const annal_row *row)
{
    struct changes *changes = arg;
    const annal_value *values = row->values;
    annal_draft draft = {.type = values[1].bytes, .id = values[2].bytes, .data = values[3].bytes};
    annal_status status = append(changes, values[0].bytes, &draft);
    bool is_busy = status == ANNAL_ERR_BUSY || status == ANNAL_ERR_REFUSED;
    changes->is_busy = changes->is_busy || is_busy;
    return is_busy || status == ANNAL_ERR_CONFLICT || status == ANNAL_ERR_NOTFOUND ? ANNAL_OK
                                                                                   : status;
}

/* ---- Rule (3) ---- */

struct head {
    struct hash_stream *hash;
    uint64_t left; /* bytes to hash */
    const char *kind;
    bool begun, has_lines;
};

/* Return whether a log has lines, and is not a document or another file that is rewritten. */
static bool has_lines(const char *kind, annal_slice bytes)
{
    struct importer importer;
    const char *end = memchr(bytes.ptr, '\n', bytes.len);
    bool has_documents =
        importer_find(kind, &importer) && importer_word(&importer, "split", &(size_t){0}).len > 0;
    if (memchr(bytes.ptr, '\0', bytes.len < 64 ? bytes.len : 64) != NULL)
        return false;
    return !has_documents || (end != NULL && end + 1 < bytes.ptr + bytes.len &&
                              annal__json_check((annal_slice){bytes.ptr, (size_t)(end - bytes.ptr)},
                                                ANNAL_DATA_DEPTH_MAX, NULL) == JSON_VALID);
}

static int take_head(void *arg, annal_slice bytes)
{
    struct head *head = arg;
    size_t len = bytes.len < head->left ? bytes.len : (size_t)head->left;
    if (!head->begun)
        head->has_lines = has_lines(head->kind, bytes);
    head->begun = true;
    annal__hash_add(head->hash, bytes.ptr, len);
    head->left -= len;
    return 0;
}

/* Hash the first bytes of a generation. ANNAL_END: its copy is damaged. */
static annal_status hash_head(const struct changes *changes, const struct facts *copy,
                              uint64_t bytes, uint64_t *out_hash, bool *out_has_lines)
{
    struct head head = {.hash = annal__hash_begin(0), .left = bytes, .kind = copy->kind};
    if (head.hash == NULL)
        return ANNAL_ERR_NOMEM;
    annal_status status =
        copies_read(changes->store, copy->name, copy->generation, take_head, &head, changes->err);
    *out_hash = annal__hash_end(head.hash);
    *out_has_lines = head.has_lines;
    return status == ANNAL_ERR_CORRUPT ? ANNAL_END : status;
}

/* Find the type of the event about the end of a generation; NULL: nothing happened. */
static annal_status compare(const struct changes *changes, const struct facts *before,
                            const struct facts *after, const char **out_type)
{
    uint64_t bytes = before->bytes < after->began ? before->bytes : after->began;
    uint64_t old, new;
    bool lines, ignored;
    annal_status status = hash_head(changes, before, bytes, &old, &lines);
    if (status == ANNAL_OK)
        status = hash_head(changes, after, bytes, &new, &ignored);
    if (status == ANNAL_OK && lines && old != new)
        *out_type = "source.replaced";
    else if (status == ANNAL_OK && after->began < (lines ? before->bytes : before->bytes / 10 * 9))
        *out_type = "source.shrank";
    return status < 0 ? status : ANNAL_OK;
}

/* Write what ended a generation, once: rule (7) of copies.h. */
static annal_status judge(struct changes *changes, const char *name, const char *next)
{
    static const struct timespec judged[2] = {{.tv_nsec = UTIME_OMIT}, {0}};
    struct facts before = {0}, after = {0};
    const char *type = NULL;
    SCOPED_BUF path = {0};
    struct stat st;
    annal_status status =
        annal__buf_printf(&path, "%s/sources/%s", annal_store_path(changes->store), name);
    if (status >= 0 && annal__buf_cstr(&path) != NULL && stat(path.ptr, &st) == 0 &&
        us_of(st.st_mtim) != 0) {
        copies_one(changes->store, name, take_facts, &before);
        copies_one(changes->store, next, take_facts, &after);
    }
    bool is_new = before.name[0] != '\0' && after.name[0] != '\0';
    if (is_new)
        status = compare(changes, &before, &after, &type);
    annal__buf_clear(&changes->judged);
    if (status >= 0 && type != NULL)
        status = annal__buf_printf(
            &changes->judged, "[\"%.16s\",\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.*s]",
            strrchr(name, '.') - SOURCES_LOG_DIGITS, type, before.generation, before.bytes,
            after.began, ANNAL_FMT(annal__buf_slice(&before.info)));
    if (status >= 0 && type != NULL)
        status = ask(changes, annal__sql_changes_generation, 4, write_row, changes);
    if (status >= 0 && is_new && !changes->is_busy)
        (void)utimensat(AT_FDCWD, path.ptr, judged, AT_SYMLINK_NOFOLLOW);
    annal__buf_done(&before.info);
    annal__buf_done(&after.info);
    return status;
}

static annal_status judge_all(struct changes *changes)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i + 1 < changes->name_count && status == ANNAL_OK; i++) {
        annal__source_name name = {0}, next = {0};
        (void)annal__sources_read_name(changes->names[i], &name);
        (void)annal__sources_read_name(changes->names[i + 1], &next);
        if (name.generation > 0 && annal__slice_same(name.session, next.session) &&
            annal__slice_same(name.log, next.log))
            status = judge(changes, changes->names[i], changes->names[i + 1]);
    }
    return status;
}

/* ---- */

annal_status changes_note(annal_store *store, annal_index *index, annal_error *err)
{
    struct changes changes = {.store = store, .index = index, .err = err};
    annal_status status = look_at_all(&changes);
    if (status == ANNAL_OK)
        status = ask(&changes, annal__sql_changes_presence, 3, write_row, &changes);
    if (status == ANNAL_OK)
        status = judge_all(&changes);
    return changes_end(&changes, status);
}

static int add_text(void *arg, const annal_row *row)
{
    struct buf *out = arg;
    annal__buf_printf(out, out->ptr[out->len - 1] == '[' ? "" : ",\n");
    return annal__buf_append_slice(out, row->values[0].bytes);
}

annal_status changes_look(annal_store *store, annal_index *index, struct buf *out, annal_error *err)
{
    struct changes changes = {.store = store, .index = index, .err = err};
    annal_status status = look_at_all(&changes);
    if (status == ANNAL_OK)
        status = annal__buf_append(out, "[", 1);
    if (status == ANNAL_OK)
        status = ask(&changes, annal__sql_changes_look, 2, add_text, out);
    if (status == ANNAL_OK)
        status = annal__buf_append(out, "]", 1);
    return changes_end(&changes, status);
}

annal_status changes_unread(annal_store *store, annal_index *index, annal_row_fn fn, void *arg,
                            annal_error *err)
{
    static const char sql[] =
        "SELECT value ->> 'path', max(value ->> 'unread'), value ->> 'since' FROM json_each(?1)"
        " WHERE value ->> 'unread' > 0 GROUP BY 1 ORDER BY 3, 1";
    SCOPED_BUF looked = {0};
    annal_status status = changes_look(store, index, &looked, err);
    const annal_value param = text_value(annal__buf_slice(&looked));
    return status != ANNAL_OK
               ? status
               : annal_index_sql(
                     index, ANNAL_SLICE(sql),
                     &(annal_sql_options){.params = &param, .param_count = 1, .as_indexed = true},
                     fn, arg, err);
}
