/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/log_session.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/slice.h"
#include "tools/import/import_job.h"
#include "tools/import/owners.h"
#include "tools/import/source_container.h"

#include <annal/journal.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)64 << 10)
#define HEADS_MAX   ((size_t)1 << 20)
#define KEY_BYTES   sizeof "content.0123456789abcdef"

/* ---- Content ---- */

struct lines_hash {
    uint64_t hash; /* of all lines before, and of the blocks of this line */
    uint64_t before;
    bool around; /* whether the line is the value around the arrays of a document */
    size_t blocks;
    char block[BLOCK_BYTES];
    size_t len;
};

static void end_block(struct lines_hash *lines)
{
    static const char around[] = "{\"at\":\"$\",\"value\":";
    if (lines->blocks++ == 0)
        lines->around =
            lines->len >= sizeof around - 1 && memcmp(lines->block, around, sizeof around - 1) == 0;
    lines->hash = annal__hash(lines->block, lines->len, lines->hash);
    lines->len = 0;
}

static void end_line(struct lines_hash *lines, uint64_t **heads, size_t *count)
{
    uint64_t *head = NULL;
    if (lines->len > 0 || lines->blocks == 0)
        end_block(lines);
    if (lines->around)
        lines->hash = lines->before;
    else if (*count < HEADS_MAX && (head = annal__array_add(heads, count, sizeof *head)) != NULL)
        *head = lines->hash;
    lines->before = lines->hash;
    lines->blocks = 0;
}

/* Hash the lines of a file; incomplete ones do not count. */
static void hash_lines(int fd, uint64_t **heads, size_t *count)
{
    struct lines_hash *lines = annal__zalloc(sizeof *lines);
    char *read = annal__zalloc(BLOCK_BYTES);
    off_t at = 0;
    ssize_t got = 0;
    while (lines != NULL && read != NULL && *count < HEADS_MAX &&
           (got = pread(fd, read, BLOCK_BYTES, at)) > 0) {
        at += got;
        for (const char *from = read, *end = read + got; from < end;) {
            const char *newline = memchr(from, '\n', (size_t)(end - from));
            size_t len = (size_t)((newline != NULL ? newline : end) - from);
            if (len > BLOCK_BYTES - lines->len)
                len = BLOCK_BYTES - lines->len;
            memcpy(lines->block + lines->len, from, len);
            lines->len += len;
            from += len;
            if (from == newline)
                end_line(lines, heads, count);
            else if (lines->len == BLOCK_BYTES)
                end_block(lines);
            from += from == newline;
        }
    }
    annal__free(lines);
    annal__free(read);
}

/* Return whether this log begins with the lines of the log at another path, or that log with the
 * lines of this one. */
static bool is_equal_to(struct import_job *job, const char *path)
{
    const struct importer importer = {.kind = job->kind, .sql = job->text};
    struct log_sessions *own = &job->log_sessions;
    struct lines lines;
    uint64_t *heads = NULL;
    size_t count = 0;
    if (source_container_open(&importer, path, NULL, &lines, NULL) != ANNAL_OK)
        return false;
    hash_lines(lines.fd, &heads, &count);
    close(lines.fd);
    size_t least = count < own->head_count ? count : own->head_count;
    bool equal = least > 0 && heads[least - 1] == own->heads[least - 1];
    annal__free(heads);
    return equal;
}

/* ---- Sessions ---- */

static uint64_t hash_text(annal_slice text, uint64_t seed)
{
    return annal__hash(text.ptr, text.len, annal__hash(&text.len, sizeof text.len, seed));
}

static uint64_t content_key(const struct import_job *job, annal_slice name, const void *content,
                            size_t len)
{
    return annal__hash(content, len, hash_text(name, hash_text(annal_slice_of(job->kind), 0)));
}

static annal_slice find_owner(struct import_job *job, const char *of, uint64_t key,
                              annal_slice session)
{
    char text[KEY_BYTES];
    snprintf(text, sizeof text, "%s.%016" PRIx64, of, key);
    return owners_find(job->options->owners, annal_slice_of(text), session);
}

/* The log's host and path, and the keys of the session named `name`. */
struct log_place {
    char host[HOST_NAME_MAX + 1];
    char *path;
    uint64_t key;
};

struct log_sources {
    struct buf path; /* the last path on this host */
    bool any, ours, keyed, here;
};

static void read_source(struct log_sources *sources, annal_slice data,
                        const struct log_place *place)
{
    SCOPED_BUF scratch = {0};
    annal_slice raw = annal__json_member(data, "source_path"), text = {0};
    sources->keyed |= annal__json_member(data, "source_keys").len > 0;
    if (raw.len > 2 && raw.ptr[0] == '"' && annal__json_text(raw, &scratch, &text) >= 0) {
        sources->any = true;
        sources->here = annal__slice_is(annal__json_inside(annal__json_member(data, "source_host")),
                                        place->host);
        sources->ours |= sources->here && place->path != NULL && annal__slice_is(text, place->path);
        annal__buf_clear(&sources->path);
        (void)!annal__buf_append_slice(&sources->path, text);
    }
}

static struct log_session *find(const struct log_sessions *sessions, annal_slice id)
{
    size_t at = 0, index;
    while ((index = places_next(&sessions->by_id, hash_text(id, 0), &at)) != SIZE_MAX)
        if (annal__slice_is(id, sessions->all[index].id))
            return &sessions->all[index];
    return NULL;
}

/* Before the journal of a session of another log is read, sync what that log appended. A failure is
 * reported by the append that follows. */
static void settle(struct import_job *job, annal_slice session)
{
    if (find(&job->log_sessions, session) == NULL)
        (void)import_settle(job, session, NULL);
}

/* Return whether the session has this log (rules 3 and 5); by_content: the log begins with the
 * content that the session's log had; lines: the log has many sessions. */
static bool has_log(struct import_job *job, annal_slice session, const struct log_place *place,
                    bool by_content, bool lines)
{
    struct log_sources sources = {0};
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    settle(job, session);
    annal_status status = annal_cursor_open(job->store, session, 1, &cursor, NULL);
    while (status >= 0 && status != ANNAL_END) {
        status = annal_cursor_next(cursor, &event, NULL);
        if (status == ANNAL_OK && annal__slice_begins(event.type, "session."))
            read_source(&sources, event.data, place);
    }
    annal_cursor_close(cursor);
    bool has = sources.ours || !sources.any;
    const char *last = annal__buf_cstr(&sources.path);
    if (!has && (!sources.here || last == NULL || access(last, F_OK) < 0))
        has = by_content || !sources.keyed;
    else if (!has)
        has = !lines && is_equal_to(job, last);
    annal__buf_done(&sources.path);
    return has;
}

/* Return the session that has the log elsewhere (rules 3 and 4), or an empty slice. `name` exists
 * in the store if `exists`. */
static annal_slice find_elsewhere(struct import_job *job, annal_slice name, annal_slice content,
                                  const struct log_place *place, bool exists)
{
    const struct log_sessions *own = &job->log_sessions;
    annal_slice found = {0};
    if (content.len > 0)
        found = find_owner(job, "content", content_key(job, name, content.ptr, content.len), found);
    for (size_t i = content.len > 0 ? 0 : own->head_count; i > 0 && found.len == 0; i--) {
        found = find_owner(job, "content",
                           content_key(job, name, &own->heads[i - 1], sizeof own->heads[i - 1]),
                           (annal_slice){0});
        if (found.len > 0 && !has_log(job, found, place, true, false))
            found.len = 0;
        if (!exists)
            break;
    }
    if (found.len == 0 && exists && has_log(job, name, place, false, content.len > 0))
        found = name;
    return found;
}

static struct log_session *add(struct log_sessions *sessions, annal_slice id)
{
    struct log_session *session =
        (struct log_session *)annal__array_add(&sessions->all, &sessions->count, sizeof *session);
    if (session == NULL || id.len >= sizeof session->id ||
        !places_add(&sessions->by_id, hash_text(id, 0), sessions->count - 1))
        return NULL;
    memcpy(session->id, id.ptr, id.len);
    return session;
}

static struct log_place find_place(struct import_job *job, annal_slice name, annal_slice content)
{
    struct log_sessions *own = &job->log_sessions;
    struct log_place place = {.path = realpath(job->path, NULL)};
    (void)gethostname(place.host, sizeof place.host - 1);
    place.key = hash_text(annal_slice_of(place.path != NULL ? place.path : job->path),
                          hash_text(annal_slice_of(place.host), 0));
    if (content.len > 0)
        place.key = hash_text(name, place.key);
    else if (!own->has_heads)
        hash_lines(job->fd, &own->heads, &own->head_count);
    own->has_heads |= content.len == 0;
    return place;
}

/* Keep the keys of a session; return its id. */
static annal_slice note(struct import_job *job, annal_slice id, const struct log_place *place,
                        annal_slice name, annal_slice content)
{
    struct log_sessions *own = &job->log_sessions;
    struct log_session *session = find(own, id);
    if (session == NULL)
        session = add(own, id);
    if (session == NULL)
        return name;
    if (content.len == 0 && own->head_count > 0)
        content = (annal_slice){(const char *)&own->heads[own->head_count - 1], sizeof *own->heads};
    session->path = place->key;
    session->content = content.len > 0 ? content_key(job, name, content.ptr, content.len) : 0;
    return annal_slice_of(session->id);
}

annal_slice log_session_find(void *arg, annal_slice name, annal_slice content)
{
    struct import_job *job = arg;
    char other[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal_session_info info;
    if (job->options == NULL || job->options->owners == NULL || job->is_text)
        return name;
    struct log_place place = find_place(job, name, content);
    annal_slice found = find_owner(job, "path", place.key, (annal_slice){0});
    settle(job, name);
    bool exists = annal_session_info_get(job->store, name, &info, NULL) >= 0;
    if (found.len == 0)
        found = find_elsewhere(job, name, content, &place, exists);
    if (found.len == 0 && exists) {
        const int most = ANNAL_SESSION_ID_BYTES_MAX - (int)sizeof "-01234567" + 1;
        snprintf(other, sizeof other, "%.*s-%08" PRIx32,
                 (int)name.len < most ? (int)name.len : most, name.ptr, (uint32_t)place.key);
        found = annal_slice_of(other);
    }
    found = note(job, found.len > 0 ? found : name, &place, name, content);
    free(place.path);
    return found;
}

const struct log_session *log_session_of(const struct import_job *job, annal_slice session)
{
    return find(&job->log_sessions, session);
}

annal_status log_session_say(struct import_job *job, const struct log_session *session,
                             struct buf *bytes)
{
    annal_slice id = annal_slice_of(session->id);
    (void)find_owner(job, "path", session->path, id);
    if (session->content == 0)
        return annal__buf_printf(bytes, ",\"source_keys\":[\"path.%016" PRIx64 "\"]",
                                 session->path);
    (void)find_owner(job, "content", session->content, id);
    return annal__buf_printf(
        bytes, ",\"source_keys\":[\"path.%016" PRIx64 "\",\"content.%016" PRIx64 "\"]",
        session->path, session->content);
}

void log_sessions_done(struct log_sessions *sessions)
{
    annal__free(sessions->all);
    annal__free(sessions->heads);
    places_done(&sessions->by_id);
}
