/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal import bundle FILE (bundle.h, rule 5). */
#include "journal/base/error.h"
#include "journal/base/io.h"
#include "journal/base/sha256.h"
#include "tools/cli/must.h"
#include "tools/cli/progress.h"
#include "tools/cli/store_open.h"
#include "tools/export/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 128 << 10, SYNC_SINGLY_MAX = 16 };

struct taking {
    const struct args *args;
    const char *file, *name, *only; /* the parameters of bundle_import() */
    struct staging staging;
    struct tar_reader *tar;
    struct progress progress;
    uint64_t bytes_done;
    annal_error *err;
};

static annal_status refuse(struct taking *taking, const char *what)
{
    return annal__fail(taking->err, ANNAL_ERR_CORRUPT, "bundle '%s': %s", taking->name, what);
}

/* ---- Reading the bundle ---- */

static annal_status read_manifest(struct taking *taking)
{
    SCOPED_BUF text = {0};
    const char *name = NULL;
    uint64_t bytes = 0;
    size_t got = 1;
    annal_status status = tar_next(taking->tar, &name, &bytes, taking->err);
    if (status == ANNAL_END || (status == ANNAL_OK && strcmp(name, BUNDLE_MANIFEST) != 0))
        return refuse(taking, "the first file in the bundle is not manifest.json");
    if (status == ANNAL_OK && bytes > BUNDLE_MANIFEST_BYTES)
        return refuse(taking, "the manifest of the bundle is too large");
    if (status == ANNAL_OK)
        must_reserve(&text, (size_t)bytes + 1);
    while (status == ANNAL_OK && got > 0 && text.len < bytes) {
        status =
            tar_read(taking->tar, text.ptr + text.len, (size_t)bytes - text.len, &got, taking->err);
        text.len += status == ANNAL_OK ? got : 0;
    }
    if (status == ANNAL_OK && (text.len != bytes || bytes == 0))
        status = refuse(taking, "the manifest of the bundle is incomplete");
    return status != ANNAL_OK ? status
                              : bundle_manifest_read(annal__buf_slice(&text),
                                                     &taking->staging.bundle, taking->err);
}

/* Check that the bundle contains only the requested session and its ancestors. Parents precede
 * their forks, so the last session must be the requested one, and each session before it the parent
 * of the next one. */
static annal_status check_only(struct taking *taking)
{
    const struct bundle *bundle = &taking->staging.bundle;
    const char *wanted = taking->only;
    for (size_t i = bundle->session_count; wanted != NULL && i > 0; i--) {
        const struct bundle_session *session = &bundle->sessions[i - 1];
        if (strcmp(session->session, wanted) != 0)
            return annal__fail(taking->err, ANNAL_ERR_CORRUPT,
                               "the server sent session '%s', which is neither session '%s' nor an "
                               "ancestor of that session: nothing was pulled",
                               session->session, taking->only);
        wanted = session->fork;
    }
    return wanted == NULL || wanted[0] == '\0'
               ? ANNAL_OK
               : refuse(taking, "the bundle does not contain the requested session, or lacks an "
                                "ancestor of the session");
}

/* Refuse a bundle whose files are much larger than the bundle itself: it was built to fill a disk.
 * Hashes of journals do not compress, and artifacts are compressed already. */
static annal_status check_ratio(struct taking *taking)
{
    static const uint64_t always = (uint64_t)64 << 20;
    enum { RATIO_MAX = 1000 };
    struct stat file;
    if (stat(taking->file, &file) < 0)
        return annal__fail_errno(taking->err, "cannot examine the bundle '%s'", taking->name);
    taking->staging.sources_max =
        ((uint64_t)UNPACK_GIB << 30) + UNPACK_SOURCES_RATIO * (uint64_t)file.st_size;
    taking->staging.unpack_max =
        ((uint64_t)UNPACK_GIB << 30) + UNPACK_RATIO * (uint64_t)file.st_size;
    return bundle_bytes(&taking->staging.bundle) <= always + RATIO_MAX * (uint64_t)file.st_size
               ? ANNAL_OK
               : refuse(taking, "the files in the bundle unpack to more than 1000 times the size "
                                "of the bundle");
}

static annal_status copy_file(struct taking *taking, int fd, uint64_t bytes, struct sha256 *sha256)
{
    char piece[PIECE_BYTES];
    size_t got = 1;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && got > 0) {
        status = tar_read(taking->tar, piece, sizeof piece, &got, taking->err);
        if (status == ANNAL_OK && got > bytes)
            status = refuse(taking, "a file in the bundle is longer than the manifest says");
        if (status < 0)
            break;
        bytes -= got;
        annal__sha256_add(sha256, piece, got);
        if (!annal__io_write_fd(fd, (annal_slice){piece, got}))
            status = annal__fail_errno(taking->err, "import a bundle: cannot write a file below %s",
                                       taking->staging.stage.ptr);
        taking->bytes_done += got;
        progress_set(&taking->progress, taking->bytes_done, NULL);
    }
    return status == ANNAL_OK && bytes > 0 ? refuse(taking, "a file in the bundle is incomplete")
                                           : status;
}

/* Read the next file of the archive, which must be `within`, of this length and SHA-256, into the
 * staging directory. */
static annal_status lay_down(struct taking *taking, const char *within, uint64_t bytes,
                             const char *expected)
{
    const char *name = NULL;
    int fd = -1;
    uint64_t said = 0;
    uint8_t hash[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    annal_status status = tar_next(taking->tar, &name, &said, taking->err);
    if (status == ANNAL_END || (status == ANNAL_OK && (strcmp(name, within) != 0 || said != bytes)))
        return refuse(taking, "the files in the bundle differ from the manifest");
    if (status == ANNAL_OK)
        status = staging_open_file(&taking->staging, within, O_RDWR | O_CREAT | O_EXCL, &fd);
    if (status < 0)
        return status;
    struct sha256 *sha256 = annal__sha256_begin();
    must_true(sha256 != NULL);
    status = copy_file(taking, fd, bytes, sha256);
    close(fd);
    if (sha256 == NULL)
        return status;
    annal__sha256_end(sha256, hash);
    annal__sha256_text(hash, text);
    if (status == ANNAL_OK && strcmp(text, expected) != 0)
        status = annal__fail(taking->err, ANNAL_ERR_CORRUPT,
                             "bundle '%s': the hash of %s differs from the manifest", taking->name,
                             within);
    return status;
}

static annal_status lay_all_down(struct taking *taking)
{
    const struct bundle *bundle = &taking->staging.bundle;
    char within[BUNDLE_PATH_BYTES];
    const char *name;
    uint64_t bytes;
    taking->progress.total = bundle_bytes(bundle);
    annal_status status = staging_begin(&taking->staging, 0);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        const struct bundle_session *session = &bundle->sessions[i];
        bundle_session_path(session, within);
        status = lay_down(taking, within, session->bytes, session->sha256);
    }
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++) {
        const struct bundle_artifact *artifact = &bundle->artifacts[i];
        bundle_artifact_path(artifact, within);
        status = lay_down(taking, within, artifact->bytes, artifact->sha256);
    }
    for (size_t i = 0; i < bundle->source_count && status == ANNAL_OK; i++) {
        bundle_source_path(&bundle->sources[i], within);
        status = lay_down(taking, within, bundle->sources[i].bytes, bundle->sources[i].sha256);
    }
    if (status == ANNAL_OK && tar_next(taking->tar, &name, &bytes, taking->err) != ANNAL_END)
        status = refuse(taking, "the bundle contains more files than the manifest lists");
    /* Each file is synced before it is moved. Syncing the file system once before that is faster
     * than syncing many files one by one. */
    if (status == ANNAL_OK && bundle->session_count + bundle->artifact_count > SYNC_SINGLY_MAX &&
        syncfs(taking->staging.stage_lock) < 0)
        status = annal__fail_errno(taking->err, "import a bundle: cannot sync the directory %s",
                                   taking->staging.stage.ptr);
    return status;
}

static void print_proof(const struct taking *taking)
{
    char sessions[HUMAN_BYTES], events[HUMAN_BYTES], artifacts[HUMAN_BYTES];
    uint64_t count = taking->staging.bundle.session_count;
    uint64_t there = count - taking->staging.added - taking->staging.extended;
    if (taking->args->json) {
        out_json("{\"file\":?,\"sessions\":#,\"events\":#,\"artifacts\":#,\"added\":#,\"extended\":"
                 "#,\"already_there\":#,\"missing_artifacts\":#",
                 annal_slice_of(taking->name), JSON_U64(count), JSON_U64(taking->staging.events),
                 JSON_U64(taking->staging.bundle.artifact_count), JSON_U64(taking->staging.added),
                 JSON_U64(taking->staging.extended), JSON_U64(there),
                 JSON_U64(taking->staging.missing));
        if (taking->staging.bundle.source_count > 0)
            printf(",\"sources\":%zu,\"sources_kept\":%" PRIu64,
                   taking->staging.bundle.source_count, taking->staging.sources_kept);
        puts(",\"hashes_equal\":true}");
        return;
    }
    printf("%s session%s, %s event%s, %s artifact%s: all hashes are equal",
           human_count(sessions, count), count == 1 ? "" : "s",
           human_count(events, taking->staging.events), taking->staging.events == 1 ? "" : "s",
           human_count(artifacts, taking->staging.bundle.artifact_count),
           taking->staging.bundle.artifact_count == 1 ? "" : "s");
    if (taking->staging.extended > 0)
        printf("; %" PRIu64 " extended", taking->staging.extended);
    if (there > 0)
        printf("; %" PRIu64 " already in the store", there);
    if (taking->staging.bundle.source_count > 0)
        printf("; %zu file%s of copies of logs", taking->staging.bundle.source_count,
               taking->staging.bundle.source_count == 1 ? "" : "s");
    if (taking->staging.sources_kept > 0)
        printf(", %" PRIu64 " of which %s left out, because the store has a copy of the same log",
               taking->staging.sources_kept, taking->staging.sources_kept == 1 ? "is" : "are");
    fputc('\n', stdout);
}

/* Import a bundle: check its seal and manifest, open or create the store, and import the files.
 * Returns an exit status. */
static int take(struct taking *taking)
{
    annal_status status = tar_reader_open(taking->file, taking->name, &taking->tar, taking->err);
    if (status == ANNAL_OK)
        status = read_manifest(taking);
    if (status == ANNAL_OK)
        status = check_only(taking);
    if (status == ANNAL_OK)
        status = check_ratio(taking);
    if (status < 0)
        return fail_error(taking->err);
    int exit_status = store_open(taking->args, OPEN_CREATE, 0, &taking->staging.store);
    if (exit_status != EXIT_DONE)
        return exit_status;
    status = staging_check_space(&taking->staging, bundle_bytes(&taking->staging.bundle));
    if (status == ANNAL_OK)
        status = lay_all_down(taking);
    if (status == ANNAL_OK)
        status = staging_finish(&taking->staging);
    progress_hide(&taking->progress);
    return status < 0 ? fail_error(taking->err) : EXIT_DONE;
}

int bundle_import(const struct args *args, const char *file, const char *name, const char *only)
{
    annal_error err = {0};
    char from[PATH_MAX + 16];
    struct taking taking = {.args = args, .file = file, .name = name, .only = only, .err = &err};
    snprintf(from, sizeof from, "bundle '%s'", name);
    taking.staging = (struct staging){.from = from, .stage_lock = -1, .err = &err};
    progress_begin(&taking.progress, "import", 0);
    int exit_status = take(&taking);
    if (exit_status == EXIT_DONE) {
        uint64_t missing = taking.staging.missing;
        print_proof(&taking);
        if (missing > 0)
            say("%" PRIu64 " reference%s to artifacts that are missing in the bundle", missing,
                missing == 1 ? "" : "s");
    }
    staging_done(&taking.staging);
    tar_reader_free(taking.tar);
    return store_close(taking.staging.store, out_finish(exit_status));
}
