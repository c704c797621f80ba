/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/bundle.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/json.h"
#include "journal/base/json_walk.h"
#include "journal/base/number.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 128 << 10, MANIFEST_DEPTH = 8 };

/* ---- Lists ---- */

struct bundle_session *bundle_add_session(struct bundle *bundle)
{
    return annal__array_add(&bundle->sessions, &bundle->session_count, sizeof *bundle->sessions);
}

struct bundle_artifact *bundle_add_artifact(struct bundle *bundle)
{
    return annal__array_add(&bundle->artifacts, &bundle->artifact_count, sizeof *bundle->artifacts);
}

struct bundle_source *bundle_add_source(struct bundle *bundle)
{
    return annal__array_add(&bundle->sources, &bundle->source_count, sizeof *bundle->sources);
}

/* Compare sessions so that ancestors precede their forks: the fork_seq of a fork is higher than
 * those of its ancestors. */
static int compare_sessions(const void *a, const void *b)
{
    const struct bundle_session *one = a, *other = b;
    if (one->fork_seq != other->fork_seq)
        return one->fork_seq < other->fork_seq ? -1 : 1;
    return strcmp(one->session, other->session);
}

static int compare_artifacts(const void *a, const void *b)
{
    const struct bundle_artifact *one = a, *other = b;
    int sessions = strcmp(one->session, other->session);
    return sessions != 0 ? sessions : strcmp(one->name, other->name);
}

static int compare_sources(const void *a, const void *b)
{
    const struct bundle_source *one = a, *other = b;
    return strcmp(one->name, other->name);
}

void bundle_sort(struct bundle *bundle)
{
    if (bundle->source_count > 0)
        qsort(bundle->sources, bundle->source_count, sizeof *bundle->sources, compare_sources);
    if (bundle->session_count > 0)
        qsort(bundle->sessions, bundle->session_count, sizeof *bundle->sessions, compare_sessions);
    if (bundle->artifact_count > 0)
        qsort(bundle->artifacts, bundle->artifact_count, sizeof *bundle->artifacts,
              compare_artifacts);
}

static int compare_ids(const void *a, const void *b)
{
    const struct bundle_session *const *one = a, *const *other = b;
    return strcmp((*one)->session, (*other)->session);
}

annal_status bundle_sort_ids(struct bundle *bundle, annal_error *err)
{
    if (bundle->by_id != NULL)
        return ANNAL_OK;
    bundle->by_id = annal__zalloc((bundle->session_count + 1) * sizeof *bundle->by_id);
    if (bundle->by_id == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a bundle: out of memory");
    for (size_t i = 0; i < bundle->session_count; i++)
        bundle->by_id[i] = &bundle->sessions[i];
    qsort(bundle->by_id, bundle->session_count, sizeof *bundle->by_id, compare_ids);
    return ANNAL_OK;
}

const struct bundle_session *bundle_find(const struct bundle *bundle, const char *id)
{
    struct bundle_session wanted = {0};
    const struct bundle_session *key = &wanted;
    snprintf(wanted.session, sizeof wanted.session, "%s", id);
    const struct bundle_session **found =
        bsearch(&key, bundle->by_id, bundle->session_count, sizeof *bundle->by_id, compare_ids);
    return found == NULL ? NULL : *found;
}

void bundle_done(struct bundle *bundle)
{
    annal__free(bundle->by_id);
    annal__free(bundle->sessions);
    annal__free(bundle->artifacts);
    annal__free(bundle->sources);
    *bundle = (struct bundle){0};
}

uint64_t bundle_bytes(const struct bundle *bundle)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < bundle->session_count; i++)
        bytes += bundle->sessions[i].bytes;
    for (size_t i = 0; i < bundle->artifact_count; i++)
        bytes += bundle->artifacts[i].bytes;
    for (size_t i = 0; i < bundle->source_count; i++)
        bytes += bundle->sources[i].bytes;
    return bytes;
}

void bundle_session_path(const struct bundle_session *session, char path[BUNDLE_PATH_BYTES])
{
    snprintf(path, BUNDLE_PATH_BYTES, "events/%s.%s", session->session,
             session->format == ANNAL_FORMAT_MSGPACK ? "mpk" : "jsonl");
}

void bundle_artifact_path(const struct bundle_artifact *artifact, char path[BUNDLE_PATH_BYTES])
{
    snprintf(path, BUNDLE_PATH_BYTES, "artifacts/%s/%s.zst", artifact->session, artifact->name);
}

void bundle_source_path(const struct bundle_source *source, char path[BUNDLE_PATH_BYTES])
{
    snprintf(path, BUNDLE_PATH_BYTES, "sources/%s", source->name);
}

annal_status bundle_hash_file(int fd, const char *name, uint64_t bytes,
                              char text[SHA256_TEXT_BYTES], annal_error *err)
{
    char piece[PIECE_BYTES];
    uint8_t hash[SHA256_BYTES];
    annal_status status = ANNAL_OK;
    struct sha256 *sha256 = annal__sha256_begin();
    if (sha256 == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read the file %s: out of memory", name);
    for (uint64_t at = 0; status == ANNAL_OK && at < bytes;) {
        uint64_t left = bytes - at;
        ssize_t got =
            pread(fd, piece, left < sizeof piece ? (size_t)left : sizeof piece, (off_t)at);
        if (got < 0)
            status = annal__fail_errno(err, "cannot read the file %s", name);
        else if (got == 0)
            status = annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "the file %s became shorter while annal read the file", name);
        else
            annal__sha256_add(sha256, piece, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    annal__sha256_end(sha256, hash);
    if (status == ANNAL_OK)
        annal__sha256_text(hash, text);
    return status;
}

annal_status bundle_hash_below(const struct below *below, const char *path, uint64_t bytes,
                               char text[SHA256_TEXT_BYTES], annal_error *err)
{
    int fd = -1;
    annal_status status = annal__below_open_file(below, path, O_RDONLY, NULL, &fd, err);
    if (status < 0)
        return status;
    status = bundle_hash_file(fd, path, bytes, text, err);
    close(fd);
    return status;
}

/* ---- Writing the manifest ---- */

static annal_status put_session(const struct bundle_session *session, struct buf *out)
{
    char path[BUNDLE_PATH_BYTES];
    bundle_session_path(session, path);
    annal__buf_printf(out,
                      "{\"session\":\"%s\",\"path\":\"%s\",\"bytes\":%" PRIu64
                      ",\"sha256\":\"%s\",\"file\":\"%s\",\"fork\":",
                      session->session, path, session->bytes, session->sha256, session->file);
    if (session->fork[0] != '\0')
        annal__buf_printf(out, "{\"session\":\"%s\",\"seq\":%" PRIu64 "}", session->fork,
                          session->fork_seq);
    else
        annal__buf_printf(out, "null");
    return annal__buf_printf(out, ",\"last_seq\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\"}",
                             session->last_seq, session->h);
}

static annal_status put_artifact(const struct bundle_artifact *artifact, struct buf *out)
{
    char path[BUNDLE_PATH_BYTES];
    bundle_artifact_path(artifact, path);
    return annal__buf_printf(
        out,
        "{\"session\":\"%s\",\"name\":\"%s\",\"path\":\"%s\",\"bytes\":%" PRIu64
        ",\"sha256\":\"%s\"}",
        artifact->session, artifact->name, path, artifact->bytes, artifact->sha256);
}

annal_status bundle_manifest_write(const struct bundle *bundle, struct buf *out, annal_error *err)
{
    out->limit = BUNDLE_MANIFEST_BYTES;
    annal_status status = annal__buf_printf(out, "{\"annal_bundle\":%d,\n\"sessions\":[",
                                            bundle->source_count > 0 ? 2 : 1);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        status = annal__buf_printf(out, i > 0 ? ",\n" : "\n");
        if (status == ANNAL_OK)
            status = put_session(&bundle->sessions[i], out);
    }
    if (status == ANNAL_OK)
        status = annal__buf_printf(out, "],\n\"artifacts\":[");
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++) {
        status = annal__buf_printf(out, i > 0 ? ",\n" : "\n");
        if (status == ANNAL_OK)
            status = put_artifact(&bundle->artifacts[i], out);
    }
    for (size_t i = 0; i < bundle->source_count && status == ANNAL_OK; i++)
        status =
            annal__buf_printf(out, "%s\n{\"name\":\"%s\",\"bytes\":%" PRIu64 ",\"sha256\":\"%s\"}",
                              i > 0 ? "," : "],\n\"sources\":[", bundle->sources[i].name,
                              bundle->sources[i].bytes, bundle->sources[i].sha256);
    if (status == ANNAL_OK)
        status = annal__buf_printf(out, "]}\n");
    return status < 0 ? annal__fail(err, status, "the manifest of the bundle is too large")
                      : ANNAL_OK;
}

/* ---- Reading the manifest ---- */

static annal_status refuse(const char *what, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "read a bundle: the manifest of the bundle is invalid: %s", what);
}

/* Read a member that is a string without escapes. Returns false if it is not such a string, or if
 * it is too long for out. */
static bool text_of(annal_slice object, const char *name, char *out, size_t room)
{
    annal_slice raw = annal__json_member(object, name);
    if (raw.len < 2 || raw.ptr[0] != '"' || raw.len - 2 >= room ||
        memchr(raw.ptr, '\\', raw.len) != NULL)
        return false;
    memcpy(out, raw.ptr + 1, raw.len - 2);
    out[raw.len - 2] = '\0';
    return true;
}

static bool number_of(annal_slice object, const char *name, uint64_t *out)
{
    annal_slice raw = annal__json_member(object, name);
    struct number number =
        raw.len > 0 ? annal__number_read(raw) : (struct number){.kind = NUMBER_OTHER};
    *out = number.uint;
    return number.kind == NUMBER_UINT;
}

static bool is_session(const char *id)
{
    return annal_session_id_check(annal_slice_of(id), NULL) == ANNAL_OK;
}

static bool read_fork(annal_slice object, struct bundle_session *session)
{
    annal_slice fork = annal__json_member(object, "fork");
    if (fork.len == 0 || fork.ptr[0] != '{')
        return fork.len == 4;
    return text_of(fork, "session", session->fork, sizeof session->fork) &&
           is_session(session->fork) && number_of(fork, "seq", &session->fork_seq) &&
           session->fork_seq > 0;
}

static bool read_session(annal_slice object, struct bundle_session *session)
{
    char path[BUNDLE_PATH_BYTES], h[17];
    if (!text_of(object, "session", session->session, sizeof session->session) ||
        !is_session(session->session) || !text_of(object, "path", path, sizeof path) ||
        !number_of(object, "bytes", &session->bytes) ||
        !text_of(object, "sha256", session->sha256, sizeof session->sha256) ||
        !annal__hex_fits(session->sha256, 64) || !text_of(object, "file", session->file, 33) ||
        !annal__hex_fits(session->file, 32) || !number_of(object, "last_seq", &session->last_seq) ||
        !text_of(object, "h", h, sizeof h) || !annal__hex_fits(h, 16) ||
        !read_fork(object, session))
        return false;
    size_t len = strlen(path);
    session->h = strtoull(h, NULL, 16);
    session->format =
        len > 4 && strcmp(path + len - 4, ".mpk") == 0 ? ANNAL_FORMAT_MSGPACK : ANNAL_FORMAT_JSON;
    return true;
}

static bool read_artifact(annal_slice object, struct bundle_artifact *artifact)
{
    return text_of(object, "session", artifact->session, sizeof artifact->session) &&
           is_session(artifact->session) &&
           text_of(object, "name", artifact->name, sizeof artifact->name) &&
           annal__hex_fits(artifact->name, 64) && number_of(object, "bytes", &artifact->bytes) &&
           text_of(object, "sha256", artifact->sha256, sizeof artifact->sha256) &&
           annal__hex_fits(artifact->sha256, 64);
}

static bool read_source(annal_slice object, struct bundle_source *source)
{
    annal__source_name name;
    return text_of(object, "name", source->name, sizeof source->name) &&
           annal__sources_read_name(source->name, &name) &&
           number_of(object, "bytes", &source->bytes) &&
           text_of(object, "sha256", source->sha256, sizeof source->sha256) &&
           annal__hex_fits(source->sha256, 64);
}

/* A bundle of version 1 has none. */
static annal_status read_sources(annal_slice list, struct bundle *bundle, annal_error *err)
{
    struct json_walk walk;
    annal_slice object;
    if (list.len > 0 && !annal__json_walk_array(&walk, list))
        return refuse("its list of copies of logs is not valid", err);
    while (list.len > 0 && annal__json_walk_item(&walk, &object)) {
        struct bundle_source *source = bundle_add_source(bundle);
        if (source == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read a bundle: out of memory");
        if (object.ptr[0] != '{' || !read_source(object, source))
            return refuse("the description of a copy of a log is not valid", err);
    }
    return ANNAL_OK;
}

static annal_status read_lists(annal_slice text, struct bundle *bundle, annal_error *err)
{
    struct json_walk walk;
    annal_slice object;
    if (!annal__json_walk_array(&walk, annal__json_member(text, "sessions")))
        return refuse("the manifest has no list of sessions", err);
    while (annal__json_walk_item(&walk, &object)) {
        struct bundle_session *session = bundle_add_session(bundle);
        if (session == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read a bundle: out of memory");
        if (object.ptr[0] != '{' || !read_session(object, session))
            return refuse("the description of a session is not valid", err);
    }
    if (!annal__json_walk_array(&walk, annal__json_member(text, "artifacts")))
        return refuse("the manifest has no list of artifacts", err);
    while (annal__json_walk_item(&walk, &object)) {
        struct bundle_artifact *artifact = bundle_add_artifact(bundle);
        if (artifact == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read a bundle: out of memory");
        if (object.ptr[0] != '{' || !read_artifact(object, artifact))
            return refuse("the description of an artifact is not valid", err);
    }
    return read_sources(annal__json_member(text, "sources"), bundle, err);
}

/* Check that the list has each session once, that it is sorted, and that forks follow their
 * parents. */
static annal_status check_sessions(const struct bundle *bundle, uint64_t *room, annal_error *err)
{
    for (size_t i = 1; i < bundle->session_count; i++) {
        if (compare_ids(&bundle->by_id[i - 1], &bundle->by_id[i]) == 0)
            return refuse("the manifest lists a session twice", err);
    }
    for (size_t i = 0; i < bundle->session_count; i++) {
        const struct bundle_session *session = &bundle->sessions[i];
        if (i > 0 && compare_sessions(session - 1, session) >= 0)
            return refuse("the sessions are not sorted", err);
        const struct bundle_session *parent = bundle_find(bundle, session->fork);
        if (session->fork[0] != '\0' && (parent == NULL || parent >= session))
            return refuse("the manifest lists a fork without the parent session of the fork", err);
        if (session->last_seq < session->fork_seq || session->bytes > *room)
            return refuse("a number in the manifest is too large", err);
        *room -= session->bytes;
    }
    return ANNAL_OK;
}

static annal_status check_artifacts(const struct bundle *bundle, uint64_t *room, annal_error *err)
{
    for (size_t i = 0; i < bundle->artifact_count; i++) {
        const struct bundle_artifact *artifact = &bundle->artifacts[i];
        if (i > 0 && compare_artifacts(artifact - 1, artifact) >= 0)
            return refuse("the artifacts are not sorted", err);
        if (bundle_find(bundle, artifact->session) == NULL)
            return refuse("an artifact belongs to no session of the bundle", err);
        if (artifact->bytes > *room)
            return refuse("a number in the manifest is too large", err);
        *room -= artifact->bytes;
    }
    return ANNAL_OK;
}

static annal_status check_sources(const struct bundle *bundle, uint64_t *room, annal_error *err)
{
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    annal__source_name name = {0};
    for (size_t i = 0; i < bundle->source_count; i++) {
        const struct bundle_source *source = &bundle->sources[i];
        if (i > 0 && compare_sources(source - 1, source) >= 0)
            return refuse("its copies of logs are not in order", err);
        (void)annal__sources_read_name(source->name, &name);
        snprintf(session, sizeof session, "%.*s", ANNAL_FMT(name.session));
        if (bundle_find(bundle, session) == NULL)
            return refuse("a copy of a log belongs to no session of the bundle", err);
        if (source->bytes > *room)
            return refuse("a number is too large", err);
        *room -= source->bytes;
    }
    return ANNAL_OK;
}

static annal_status check_lists(struct bundle *bundle, annal_error *err)
{
    /* bytes that the files may have together, so that their sum does not overflow */
    uint64_t room = UINT64_MAX / 4;
    annal_status status = bundle_sort_ids(bundle, err);
    if (status == ANNAL_OK)
        status = check_sessions(bundle, &room, err);
    if (status == ANNAL_OK)
        status = check_artifacts(bundle, &room, err);
    return status == ANNAL_OK ? check_sources(bundle, &room, err) : status;
}

annal_status bundle_manifest_read(annal_slice text, struct bundle *out, annal_error *err)
{
    SCOPED_BUF again = {0};
    uint64_t version = 0;
    *out = (struct bundle){0};
    if (annal__json_check(text, MANIFEST_DEPTH, NULL) != JSON_VALID || text.ptr[0] != '{' ||
        !number_of(text, "annal_bundle", &version))
        return refuse("the file is not a bundle of annal", err);
    if (version != 1 && version != 2)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "the bundle has version %" PRIu64
                           ", but this annal reads only versions 1 and 2",
                           version);
    annal_status status = read_lists(text, out, err);
    if (status == ANNAL_OK)
        status = bundle_manifest_write(out, &again, err);
    if (status == ANNAL_OK && !annal__slice_same(annal__buf_slice(&again), text))
        status = refuse("the JSON is not in the form that annal writes", err);
    return status != ANNAL_OK ? status : check_lists(out, err);
}
