/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal export --format bundle. */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json_walk.h"
#include "journal/base/sha256.h"
#include "journal/base/slice.h"
#include "journal/sys/artifact.h"
#include "journal/sys/seam.h"
#include "journal/sys/verify.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/progress.h"
#include "tools/export/bundle.h"
#include "tools/source/copies.h"

#include <annal/journal.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 128 << 10 };

struct bundling {
    annal_store *store;
    annal__proved *proved;
    void *names; /* ids of the sessions in the bundle; root of tsearch(3) */
    struct bundle bundle;
    struct tar_writer *tar;
    struct progress progress;
    uint64_t bytes_done;
    const char *session; /* whose copies of logs are added */
    uint64_t left_out;   /* number of files of copies of logs that the bundle does not contain */
    char excluded[SOURCES_NAME_BYTES]; /* name of the newest file of such a copy */
    struct below below;                /* directory of the store, open */
    annal_error *err;
};

/* ---- Its content ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Add a session to the bundle. Return whether the bundle did not contain it before. */
static bool add_name(struct bundling *bundling, const char *name)
{
    char *kept = must_strndup(name, strlen(name));
    char **found = tsearch(kept, &bundling->names, compare_names);
    must_true(found != NULL);
    if (*found != kept) {
        annal__free(kept);
        return false;
    }
    struct bundle_session *session = bundle_add_session(&bundling->bundle);
    must_true(session != NULL);
    snprintf(session->session, sizeof session->session, "%s", name);
    return true;
}

/* Add a session and its ancestors, up to the first ancestor that the bundle already contains
 * (bundle.h, rule 2). */
static annal_status add_lineage(struct bundling *bundling, const char *name)
{
    annal_session_info info;
    annal_status status = ANNAL_OK;
    bool is_new = add_name(bundling, name);
    while (status >= 0 && is_new) {
        status =
            annal_session_info_get(bundling->store, annal_slice_of(name), &info, bundling->err);
        is_new = false;
        name = info.fork_session;
        if (status >= 0 && name[0] != '\0')
            is_new = add_name(bundling, name);
    }
    return status;
}

/* Refuse a session whose journal is damaged (bundle.h, rule 4). */
static annal_status refuse_damage(struct bundling *bundling, const struct bundle_session *session)
{
    annal_verify_result result;
    annal_status status =
        annal__verify_events(bundling->store, annal_slice_of(session->session), bundling->proved,
                             NULL, NULL, NULL, &result, bundling->err);
    if (status >= 0 && result.findings > 0)
        status = annal__fail(bundling->err, ANNAL_ERR_CORRUPT,
                             "session '%s' is damaged, so a bundle cannot contain the session: "
                             "'annal repair %s --to NEW' copies the undamaged events",
                             session->session, session->session);
    return status;
}

static annal_status describe(struct bundling *bundling, struct bundle_session *session)
{
    annal_session_info info;
    char within[BUNDLE_PATH_BYTES];
    annal_status status = annal_session_info_get(bundling->store, annal_slice_of(session->session),
                                                 &info, bundling->err);
    if (status >= 0)
        status = refuse_damage(bundling, session);
    if (status < 0)
        return status;
    session->format = info.format;
    session->bytes = info.end_offset;
    session->fork_seq = info.fork_seq;
    session->last_seq = info.last_seq;
    session->h = info.last_h;
    memcpy(session->file, info.file, sizeof session->file);
    memcpy(session->fork, info.fork_session, sizeof session->fork);
    bundle_session_path(session, within);
    return bundle_hash_below(&bundling->below, within, session->bytes, session->sha256,
                             bundling->err);
}

/* Add an artifact to the bundle; an annal_artifact_fn. */
static int add_artifact(void *arg, const annal_artifact_info *info)
{
    struct bundling *bundling = arg;
    char within[BUNDLE_PATH_BYTES];
    struct bundle_artifact *artifact = bundle_add_artifact(&bundling->bundle);
    must_true(artifact != NULL);
    memcpy(artifact->session, info->session, sizeof artifact->session);
    memcpy(artifact->name, info->sha256, sizeof artifact->name);
    artifact->bytes = info->stored_bytes;
    bundle_artifact_path(artifact, within);
    return bundle_hash_below(&bundling->below, within, artifact->bytes, artifact->sha256,
                             bundling->err);
}

/* Return whether each session of a copy is in the bundle. */
static bool has_sessions(const struct bundling *bundling, const struct copy *copy)
{
    char id[ANNAL_SESSION_ID_BYTES_MAX + 1];
    struct json_walk walk;
    annal_slice raw;
    bool all = annal__json_walk_array(&walk, annal__json_member(copy->info, "sessions"));
    while (all && annal__json_walk_item(&walk, &raw)) {
        snprintf(id, sizeof id, "%.*s", ANNAL_FMT(annal__json_inside(raw)));
        all = tfind(id, &bundling->names, compare_names) != NULL;
    }
    return all;
}

/* Leave out a copy of a log with all its generations, of which those before this file were
 * added. */
static void exclude(struct bundling *bundling, const char *newest)
{
    struct bundle *bundle = &bundling->bundle;
    size_t len = strlen(newest);
    while (bundle->source_count > 0 &&
           strncmp(bundle->sources[bundle->source_count - 1].name, newest, len) == 0) {
        bundle->source_count--;
        bundling->left_out++;
    }
    bundling->left_out++;
    snprintf(bundling->excluded, sizeof bundling->excluded, "%s", newest);
}

/* Add a file of a copy of a log; a copies_fn. The generations of a log come one after the other. */
static int add_source(void *arg, const struct copy *copy)
{
    struct bundling *bundling = arg;
    char within[BUNDLE_PATH_BYTES], newest[SOURCES_NAME_BYTES];
    annal_error why = {0};
    snprintf(newest, sizeof newest, "%.*s.%.*s", ANNAL_FMT(copy->session), ANNAL_FMT(copy->log));
    if (!annal__slice_is(copy->session, bundling->session))
        return 0; /* its first session adds it */
    if (strcmp(newest, bundling->excluded) == 0) {
        bundling->left_out++;
        return 0;
    }
    annal_status proved =
        copies_read(bundling->store, copy->name, copy->generation, NULL, NULL, &why);
    if (proved != ANNAL_OK)
        say("export: sources/%s is damaged, and the copy of this log is left out", copy->name);
    if (proved != ANNAL_OK || !has_sessions(bundling, copy)) {
        exclude(bundling, newest);
        return 0;
    }
    struct bundle_source *source = bundle_add_source(&bundling->bundle);
    must_true(source != NULL);
    snprintf(source->name, sizeof source->name, "%s", copy->name);
    source->bytes = copy->stored - copy->torn;
    bundle_source_path(source, within);
    return bundle_hash_below(&bundling->below, within, source->bytes, source->sha256,
                             bundling->err);
}

static void say_fault(void *arg, const char *name, const annal_error *err)
{
    (void)arg;
    (void)err;
    say("export: sources/%s is damaged, and the copy of this log is left out", name);
}

static annal_status collect(struct bundling *bundling, const struct session_list *list)
{
    struct bundle *bundle = &bundling->bundle;
    annal_status status = annal__unapplied_settle(bundling->store, bundling->err);
    for (size_t i = 0; i < list->count && status == ANNAL_OK; i++)
        status = add_lineage(bundling, list->names[i].id);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        status = describe(bundling, &bundle->sessions[i]);
        if (status == ANNAL_OK)
            status =
                annal_artifact_each(bundling->store, annal_slice_of(bundle->sessions[i].session),
                                    add_artifact, bundling, bundling->err);
        bundling->session = bundle->sessions[i].session;
        if (status == ANNAL_OK)
            status = copies_each(bundling->store, annal_slice_of(bundling->session), true,
                                 add_source, say_fault, bundling, bundling->err);
    }
    bundle_sort(bundle);
    return status;
}

/* ---- Writing the bundle ---- */

static annal_status put_bytes(struct bundling *bundling, int fd, const char *path, uint64_t bytes,
                              struct sha256 *sha256)
{
    char piece[PIECE_BYTES];
    annal_status status = ANNAL_OK;
    while (bytes > 0 && status == ANNAL_OK) {
        ssize_t got = read(fd, piece, bytes < sizeof piece ? (size_t)bytes : sizeof piece);
        if (got < 0)
            return annal__fail_errno(bundling->err, "cannot read the file %s of the store", path);
        if (got == 0)
            return annal__fail(
                bundling->err, ANNAL_ERR_BUSY,
                "the file %s of the store became shorter during the export: export again", path);
        annal__sha256_add(sha256, piece, (size_t)got);
        status = tar_write(bundling->tar, (annal_slice){piece, (size_t)got}, bundling->err);
        bytes -= (uint64_t)got;
        bundling->bytes_done += (uint64_t)got;
        progress_set(&bundling->progress, bundling->bytes_done, NULL);
    }
    return status;
}

/* Write one file. Fails if its bytes are not those of which `before` is the SHA-256: the file was
 * replaced in the meantime. */
static annal_status put_file(struct bundling *bundling, const char *within, uint64_t bytes,
                             const char *before)
{
    uint8_t hash[SHA256_BYTES];
    char now[SHA256_TEXT_BYTES];
    int fd = -1;
    struct sha256 *sha256 = annal__sha256_begin();
    must_true(sha256 != NULL);
    annal_status status =
        annal__below_open_file(&bundling->below, within, O_RDONLY, NULL, &fd, bundling->err);
    if (status == ANNAL_OK)
        status = tar_write_file(bundling->tar, within, bytes, bundling->err);
    if (status == ANNAL_OK)
        status = put_bytes(bundling, fd, within, bytes, sha256);
    if (fd >= 0)
        close(fd);
    annal__sha256_end(sha256, hash);
    annal__sha256_text(hash, now);
    if (status == ANNAL_OK && strcmp(now, before) != 0)
        status = annal__fail(
            bundling->err, ANNAL_ERR_BUSY,
            "the file %s of the store was replaced during the export: export again", within);
    return status;
}

static annal_status put_manifest(struct bundling *bundling)
{
    SCOPED_BUF text = {0};
    annal_status status = bundle_manifest_write(&bundling->bundle, &text, bundling->err);
    if (status == ANNAL_OK)
        status = tar_write_file(bundling->tar, BUNDLE_MANIFEST, text.len, bundling->err);
    return status != ANNAL_OK ? status
                              : tar_write(bundling->tar, annal__buf_slice(&text), bundling->err);
}

static annal_status put_all(struct bundling *bundling)
{
    const struct bundle *bundle = &bundling->bundle;
    char within[BUNDLE_PATH_BYTES];
    bundling->progress.total = bundle_bytes(bundle);
    annal_status status = tar_writer_new(&bundling->tar, bundling->err);
    if (status == ANNAL_OK)
        status = put_manifest(bundling);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        bundle_session_path(&bundle->sessions[i], within);
        status = put_file(bundling, within, bundle->sessions[i].bytes, bundle->sessions[i].sha256);
    }
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++) {
        bundle_artifact_path(&bundle->artifacts[i], within);
        status =
            put_file(bundling, within, bundle->artifacts[i].bytes, bundle->artifacts[i].sha256);
    }
    for (size_t i = 0; i < bundle->source_count && status == ANNAL_OK; i++) {
        bundle_source_path(&bundle->sources[i], within);
        status = put_file(bundling, within, bundle->sources[i].bytes, bundle->sources[i].sha256);
    }
    return status == ANNAL_OK ? tar_write_end(bundling->tar, bundling->err) : status;
}

int bundle_export(annal_store *store, const struct session_list *list)
{
    annal_error err = {0};
    struct bundling bundling = {.store = store, .proved = annal__lineage_proved_new(), .err = &err};
    annal__artifact_hold *hold = NULL;
    annal_status status = ANNAL_OK;
    progress_begin(&bundling.progress, "export", 0);
    if (!annal__session_list_is_read_only(store))
        status = annal__artifact_hold_new(store, &hold, &err);
    if (status == ANNAL_OK)
        status = annal__below_open(annal_store_path(store), &bundling.below, &err);
    if (status == ANNAL_OK)
        status = collect(&bundling, list);
    if (status == ANNAL_OK)
        status = put_all(&bundling);
    progress_hide(&bundling.progress);
    if (bundling.left_out > 0)
        say("export: %" PRIu64 " file%s of copies of logs %s left out: their logs have other "
            "sessions, too, or they are damaged",
            bundling.left_out, bundling.left_out == 1 ? "" : "s",
            bundling.left_out == 1 ? "is" : "are");
    tar_writer_free(bundling.tar);
    annal__artifact_hold_free(hold);
    bundle_done(&bundling.bundle);
    annal__lineage_proved_free(bundling.proved);
    tdestroy(bundling.names, annal__free);
    annal__below_close(&bundling.below);
    if (!out_wanted() && err.os_errno == EPIPE)
        return 0; /* not a failure: the reader of stdout closed its end */
    return status < 0 ? fail_error(&err) : 0;
}
