/*
 * annal import bundle FILE, by rule (5) of bundle.h.
 *
 * What is read is written as a store of its own, STORE/.importing-<random>, where the library
 * proves it as it proves any store; then its files are moved. A directory of that name whose lock
 * nobody has was left by an interrupted import: the next import removes it.
 */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/sha256.h"
#include "journal/sys/adopt.h"
#include "journal/sys/artifact.h"
#include "journal/sys/seam.h"
#include "journal/sys/verify.h"
#include "tools/cli/open.h"
#include "tools/cli/progress.h"
#include "tools/export/bundle.h"
#include "tools/export/extend.h"

#include <annal/journal.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define STAGE ".importing-"

enum { PIECE_BYTES = 128 << 10, SYNC_SINGLY_MAX = 16 };

/* What the store has of a session. */
enum standing { STANDS_NOT, STANDS_SAME, STANDS_SHORTER };

struct taking {
    const struct args *args;
    const char *file;
    annal_store *store;
    annal_store *staged; /* as a store */
    struct tar_reader *tar;
    struct bundle bundle;
    enum standing *standings;
    struct buf stage; /* its path */
    int stage_lock;   /* -1: it does not exist */
    struct buf path;
    struct progress progress;
    uint64_t bytes_done;
    uint64_t missing; /* artifacts that events name and the bundle does not have */
    uint64_t added, extended, events;
    annal_error *err;
};

static annal_status refuse(struct taking *taking, const char *what)
{
    return annal__fail(taking->err, ANNAL_ERR_CORRUPT, "bundle '%s': %s", taking->file, what);
}

/* root/within; NULL: no memory, which is reported. */
static const char *join(struct taking *taking, const char *root, const char *within)
{
    const char *path = NULL;
    annal__buf_clear(&taking->path);
    if (annal__buf_printf(&taking->path, "%s/%s", root, within) == ANNAL_OK)
        path = annal__buf_cstr(&taking->path);
    if (path == NULL)
        annal__fail(taking->err, ANNAL_ERR_NOMEM, "import a bundle: no memory");
    return path;
}

/* ---- The place where it is written ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int lock_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void bundle_remove_stale(const annal_store *store)
{
    const char *root = annal_store_path(store);
    DIR *directory = opendir(root);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct buf path = {0};
        if (strncmp(entry->d_name, STAGE, strlen(STAGE)) != 0)
            continue;
        if (annal__buf_printf(&path, "%s/%s", root, entry->d_name) == ANNAL_OK &&
            annal__buf_cstr(&path) != NULL) {
            int fd = lock_directory(path.ptr);
            if (fd >= 0) {
                remove_tree(path.ptr);
                close(fd);
            }
        }
        annal__buf_done(&path);
    }
    if (directory != NULL)
        closedir(directory);
}

static annal_status make_directory(struct taking *taking, const char *root, const char *within)
{
    const char *path = join(taking, root, within);
    if (path == NULL)
        return ANNAL_ERR_NOMEM;
    return mkdir(path, 0700) == 0 || errno == EEXIST
               ? ANNAL_OK
               : annal__fail_errno(taking->err, "make %s", path);
}

static annal_status make_stage(struct taking *taking)
{
    uint64_t random = 0;
    bundle_remove_stale(taking->store);
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(taking->err, "import a bundle: no random name");
    if (annal__buf_printf(&taking->stage, "%s/" STAGE "%016" PRIx64,
                          annal_store_path(taking->store), random) < 0 ||
        annal__buf_cstr(&taking->stage) == NULL)
        return annal__fail(taking->err, ANNAL_ERR_NOMEM, "import a bundle: no memory");
    if (mkdir(taking->stage.ptr, 0700) < 0)
        return annal__fail_errno(taking->err, "make %s", taking->stage.ptr);
    taking->stage_lock = lock_directory(taking->stage.ptr);
    if (taking->stage_lock < 0)
        return annal__fail_errno(taking->err, "lock %s", taking->stage.ptr);
    annal_status status = make_directory(taking, taking->stage.ptr, "events");
    if (status == ANNAL_OK)
        status = make_directory(taking, taking->stage.ptr, "artifacts");
    return status;
}

static void remove_stage(struct taking *taking)
{
    if (taking->stage_lock < 0)
        return;
    remove_tree(taking->stage.ptr);
    close(taking->stage_lock);
}

/* ---- Reading it ---- */

static annal_status read_manifest(struct taking *taking)
{
    struct buf text = {.limit = BUNDLE_MANIFEST_BYTES};
    const char *name = NULL;
    uint64_t bytes = 0;
    size_t got = 1;
    annal_status status = tar_next(taking->tar, &name, &bytes, taking->err);
    if (status == ANNAL_END || (status == ANNAL_OK && strcmp(name, BUNDLE_MANIFEST) != 0))
        return refuse(taking, "its first file is not manifest.json");
    if (status == ANNAL_OK && bytes > BUNDLE_MANIFEST_BYTES)
        return refuse(taking, "its manifest is too large");
    if (status == ANNAL_OK && annal__buf_reserve(&text, (size_t)bytes + 1) < 0)
        status = annal__fail(taking->err, ANNAL_ERR_NOMEM, "import a bundle: no memory");
    while (status == ANNAL_OK && got > 0 && text.len < bytes) {
        status =
            tar_read(taking->tar, text.ptr + text.len, (size_t)bytes - text.len, &got, taking->err);
        text.len += status == ANNAL_OK ? got : 0;
    }
    if (status == ANNAL_OK && (text.len != bytes || bytes == 0))
        status = refuse(taking, "its manifest was cut");
    if (status == ANNAL_OK)
        status = bundle_manifest_read(annal__buf_slice(&text), &taking->bundle, taking->err);
    annal__buf_done(&text);
    return status;
}

static annal_status check_space(struct taking *taking)
{
    struct statvfs space;
    uint64_t need = bundle_bytes(&taking->bundle) + annal__store_keep_free(taking->store);
    if (statvfs(annal_store_path(taking->store), &space) < 0)
        return annal__fail_errno(taking->err, "look at the free space of %s",
                                 annal_store_path(taking->store));
    if (space.f_bavail >= need / (space.f_frsize > 0 ? space.f_frsize : 1) + 1)
        return ANNAL_OK;
    errno = ENOSPC;
    return annal__fail_errno(taking->err, "import '%s': %" PRIu64 " bytes", taking->file,
                             bundle_bytes(&taking->bundle));
}

static annal_status write_all(struct taking *taking, int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, bytes, len);
        if (written <= 0)
            return annal__fail_errno(taking->err, "write %s", taking->path.ptr);
        bytes += written;
        len -= (size_t)written;
    }
    return ANNAL_OK;
}

static annal_status copy_file(struct taking *taking, int fd, uint64_t bytes, struct sha256 *sha256)
{
    char piece[PIECE_BYTES];
    size_t got = 1;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && got > 0) {
        status = tar_read(taking->tar, piece, sizeof piece, &got, taking->err);
        if (status == ANNAL_OK && got > bytes)
            status = refuse(taking, "a file is longer than its manifest says");
        if (status < 0)
            break;
        bytes -= got;
        annal__sha256_add(sha256, piece, got);
        status = write_all(taking, fd, piece, got);
        taking->bytes_done += got;
        progress_set(&taking->progress, taking->bytes_done, NULL);
    }
    return status == ANNAL_OK && bytes > 0 ? refuse(taking, "a file was cut") : status;
}

/* The next file, which must be this one. */
static annal_status lay_down(struct taking *taking, const char *within, uint64_t bytes,
                             const char *expected)
{
    const char *name = NULL;
    uint64_t said = 0;
    uint8_t hash[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    annal_status status = tar_next(taking->tar, &name, &said, taking->err);
    if (status == ANNAL_END || (status == ANNAL_OK && (strcmp(name, within) != 0 || said != bytes)))
        return refuse(taking, "its files are not those of its manifest");
    const char *path = status == ANNAL_OK ? join(taking, taking->stage.ptr, within) : NULL;
    if (path == NULL)
        return taking->err->status;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return annal__fail_errno(taking->err, "create %s", path);
    struct sha256 *sha256 = annal__sha256_begin();
    status = sha256 == NULL
                 ? annal__fail(taking->err, ANNAL_ERR_NOMEM, "import a bundle: no memory")
                 : copy_file(taking, fd, bytes, sha256);
    close(fd);
    if (sha256 == NULL)
        return status;
    annal__sha256_end(sha256, hash);
    annal__sha256_text(hash, text);
    if (status == ANNAL_OK && strcmp(text, expected) != 0)
        status = annal__fail(taking->err, ANNAL_ERR_CORRUPT,
                             "bundle '%s': the hash of %s is not that of its manifest",
                             taking->file, within);
    return status;
}

static annal_status lay_all_down(struct taking *taking)
{
    const struct bundle *bundle = &taking->bundle;
    char within[BUNDLE_PATH_BYTES];
    const char *name;
    uint64_t bytes;
    taking->progress.total = bundle_bytes(bundle);
    annal_status status = make_stage(taking);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        const struct bundle_session *session = &bundle->sessions[i];
        bundle_session_path(session, within);
        status = lay_down(taking, within, session->bytes, session->sha256);
    }
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++) {
        const struct bundle_artifact *artifact = &bundle->artifacts[i];
        snprintf(within, sizeof within, "artifacts/%s", artifact->session);
        status = make_directory(taking, taking->stage.ptr, within);
        bundle_artifact_path(artifact, within);
        if (status == ANNAL_OK)
            status = lay_down(taking, within, artifact->bytes, artifact->sha256);
    }
    if (status == ANNAL_OK && tar_next(taking->tar, &name, &bytes, taking->err) != ANNAL_END)
        status = refuse(taking, "it has more files than its manifest");
    /* Each file is synced before it is moved: the disk writes many faster all at once. */
    if (status == ANNAL_OK && bundle->session_count + bundle->artifact_count > SYNC_SINGLY_MAX &&
        syncfs(taking->stage_lock) < 0)
        status = annal__fail_errno(taking->err, "sync %s", taking->stage.ptr);
    return status;
}

/* ---- Proving it ---- */

static int count_missing(void *arg, annal_slice path)
{
    struct taking *taking = arg;
    (void)path;
    taking->missing++;
    return 0;
}

/* An annal__verified_fn. */
static void look_for_artifacts(void *arg, const annal_event *event, bool after_damage)
{
    struct taking *taking = arg;
    (void)after_damage;
    if (annal__artifact_check_data(taking->staged, event->data, count_missing, taking, NULL) < 0)
        taking->missing++;
}

static annal_status prove_session(struct taking *taking, const struct bundle_session *session)
{
    annal_slice id = annal_slice_of(session->session);
    annal_verify_result result;
    annal_session_info info;
    annal_status status = annal__verify_events(taking->staged, id, NULL, look_for_artifacts, taking,
                                               &result, taking->err);
    if (status >= 0)
        status = annal_session_info_get(taking->staged, id, &info, taking->err);
    if (status < 0)
        return status;
    if (result.findings > 0 || info.end_offset != session->bytes ||
        info.last_seq != session->last_seq || info.last_h != session->h ||
        info.fork_seq != session->fork_seq || strcmp(info.fork_session, session->fork) != 0 ||
        strcmp(info.file, session->file) != 0)
        return annal__fail(taking->err, ANNAL_ERR_CORRUPT,
                           "bundle '%s': the journal of session '%s' does not prove itself",
                           taking->file, session->session);
    return ANNAL_OK;
}

static annal_status prove_all(struct taking *taking)
{
    const struct bundle *bundle = &taking->bundle;
    const annal_store_options options = {.read_only = true, .no_keeper = true};
    annal_artifact_info info;
    annal_status status =
        annal_store_open(taking->stage.ptr, &options, &taking->staged, taking->err);
    for (size_t i = 0; i < bundle->session_count && status >= 0; i++)
        status = prove_session(taking, &bundle->sessions[i]);
    for (size_t i = 0; i < bundle->artifact_count && status >= 0; i++)
        status = annal_artifact_read(taking->staged, annal_slice_of(bundle->artifacts[i].session),
                                     annal_slice_of(bundle->artifacts[i].name), NULL, NULL, &info,
                                     taking->err);
    return status < 0 ? status : ANNAL_OK;
}

/* ---- What the store has ---- */

/* Whether the first bytes of a session's journal are those of the bundle's. */
static annal_status is_same(struct taking *taking, const struct bundle_session *session,
                            uint64_t bytes, bool *out_same)
{
    char within[BUNDLE_PATH_BYTES], here[SHA256_TEXT_BYTES], there[SHA256_TEXT_BYTES];
    bundle_session_path(session, within);
    const char *path = join(taking, annal_store_path(taking->store), within);
    if (path == NULL)
        return ANNAL_ERR_NOMEM;
    annal_status status = bundle_hash_file(path, bytes, here, taking->err);
    if (status == ANNAL_OK && bytes == session->bytes)
        memcpy(there, session->sha256, sizeof there);
    else if (status == ANNAL_OK)
        status = (path = join(taking, taking->stage.ptr, within)) == NULL
                     ? ANNAL_ERR_NOMEM
                     : bundle_hash_file(path, bytes, there, taking->err);
    *out_same = status == ANNAL_OK && strcmp(here, there) == 0;
    return status;
}

static annal_status compare_session(struct taking *taking, const struct bundle_session *session,
                                    enum standing *out)
{
    annal_session_info info;
    annal_error err = {0};
    bool same = false;
    annal_status status =
        annal_session_info_get(taking->store, annal_slice_of(session->session), &info, &err);
    *out = STANDS_NOT;
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && info.bytes == 0))
        return ANNAL_OK;
    if (status < 0) {
        *taking->err = err;
        return status;
    }
    *out = info.end_offset < session->bytes ? STANDS_SHORTER : STANDS_SAME;
    uint64_t bytes = info.end_offset < session->bytes ? info.end_offset : session->bytes;
    if (info.format == session->format)
        status = is_same(taking, session, bytes, &same);
    if (status >= 0 && !same)
        status = annal__fail(taking->err, ANNAL_ERR_CONFLICT,
                             "session '%s' already exists with other content; nothing is imported",
                             session->session);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status compare_all(struct taking *taking)
{
    annal_status status = annal__store_settle(taking->store, taking->err);
    taking->standings =
        annal__zalloc((taking->bundle.session_count + 1) * sizeof *taking->standings);
    if (status == ANNAL_OK && taking->standings == NULL)
        status = annal__fail(taking->err, ANNAL_ERR_NOMEM, "import a bundle: no memory");
    for (size_t i = 0; i < taking->bundle.session_count && status == ANNAL_OK; i++)
        status = compare_session(taking, &taking->bundle.sessions[i], &taking->standings[i]);
    return status;
}

/* ---- Moving it in ---- */

/* If another process was here first, such as another import, look again at what is there. */
static annal_status move_session(struct taking *taking, const struct bundle_session *session,
                                 enum standing *standing)
{
    enum { TRIES_MAX = 3 };
    annal_slice id = annal_slice_of(session->session);
    annal_status status = ANNAL_OK;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (*standing == STANDS_SAME)
            return ANNAL_OK;
        status = *standing == STANDS_NOT
                     ? annal__session_adopt(taking->store, taking->staged, id, taking->err)
                     : session_extend(taking->store, taking->staged, id, taking->err);
        if (status != ANNAL_ERR_CONFLICT)
            return status;
        annal_status compared = annal__store_settle(taking->store, taking->err);
        if (compared == ANNAL_OK)
            compared = compare_session(taking, session, standing);
        if (compared < 0)
            return compared;
    }
    return *standing == STANDS_SAME ? ANNAL_OK : status;
}

static annal_status move_in(struct taking *taking)
{
    const struct bundle *bundle = &taking->bundle;
    annal__artifact_hold *hold = NULL;
    annal_status status = annal__artifact_hold_new(taking->store, &hold, taking->err);
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++)
        status = annal__artifact_adopt(taking->store, taking->staged,
                                       annal_slice_of(bundle->artifacts[i].session),
                                       annal_slice_of(bundle->artifacts[i].name), taking->err);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        status = move_session(taking, &bundle->sessions[i], &taking->standings[i]);
        taking->added += taking->standings[i] == STANDS_NOT ? 1 : 0;
        taking->extended += taking->standings[i] == STANDS_SHORTER ? 1 : 0;
    }
    annal__artifact_hold_free(hold);
    return status;
}

/* The proof: what is in the store now is read again. */
static annal_status prove_here(struct taking *taking)
{
    annal_status status = annal__store_settle(taking->store, taking->err);
    for (size_t i = 0; i < taking->bundle.session_count && status == ANNAL_OK; i++) {
        const struct bundle_session *session = &taking->bundle.sessions[i];
        bool same = false;
        status = is_same(taking, session, session->bytes, &same);
        if (status == ANNAL_OK && !same)
            status = annal__fail(taking->err, ANNAL_ERR_UNKNOWN,
                                 "session '%s' is not what the bundle has, now that it is here: "
                                 "'annal verify %s' looks at it",
                                 session->session, session->session);
        taking->events += session->last_seq - session->fork_seq;
    }
    return status;
}

static void print_proof(const struct taking *taking)
{
    char sessions[HUMAN_BYTES], events[HUMAN_BYTES], artifacts[HUMAN_BYTES];
    uint64_t count = taking->bundle.session_count;
    uint64_t there = count - taking->added - taking->extended;
    if (taking->args->json) {
        fputs("{\"file\":", stdout);
        out_json_string(annal_slice_of(taking->file));
        printf(",\"sessions\":%" PRIu64 ",\"events\":%" PRIu64
               ",\"artifacts\":%zu,\"added\":%" PRIu64 ",\"extended\":%" PRIu64
               ",\"already_there\":%" PRIu64 ",\"missing_artifacts\":%" PRIu64
               ",\"hashes_equal\":true}\n",
               count, taking->events, taking->bundle.artifact_count, taking->added,
               taking->extended, there, taking->missing);
        return;
    }
    printf("%s session%s, %s event%s, %s artifact%s: all hashes are equal",
           human_count(sessions, count), count == 1 ? "" : "s", human_count(events, taking->events),
           taking->events == 1 ? "" : "s", human_count(artifacts, taking->bundle.artifact_count),
           taking->bundle.artifact_count == 1 ? "" : "s");
    if (taking->extended > 0)
        printf("; %" PRIu64 " went on from what was here", taking->extended);
    if (there > 0)
        printf("; %" PRIu64 " already there", there);
    fputc('\n', stdout);
}

/* The store is opened, and created, only for a bundle that is sealed and has a manifest. */
static int take(struct taking *taking)
{
    annal_status status = tar_reader_open(taking->file, &taking->tar, taking->err);
    if (status == ANNAL_OK)
        status = read_manifest(taking);
    if (status < 0)
        return fail_error(taking->err);
    int exit_status = store_open(taking->args, OPEN_CREATE, 0, &taking->store);
    if (exit_status != EXIT_DONE)
        return exit_status;
    status = check_space(taking);
    if (status == ANNAL_OK)
        status = lay_all_down(taking);
    if (status == ANNAL_OK)
        status = prove_all(taking);
    if (status == ANNAL_OK)
        status = compare_all(taking);
    if (status == ANNAL_OK)
        status = move_in(taking);
    if (status == ANNAL_OK)
        status = prove_here(taking);
    progress_hide(&taking->progress);
    return status < 0 ? fail_error(taking->err) : EXIT_DONE;
}

int bundle_import(const struct args *args)
{
    annal_error err = {0};
    struct taking taking = {.args = args, .file = args->operands[1], .stage_lock = -1, .err = &err};
    progress_begin(&taking.progress, "import", 0);
    int exit_status = take(&taking);
    if (exit_status == EXIT_DONE) {
        print_proof(&taking);
        if (taking.missing > 0)
            say("%" PRIu64 " reference%s to artifacts that the bundle does not have",
                taking.missing, taking.missing == 1 ? "" : "s");
    }
    (void)!annal_store_close(taking.staged, NULL);
    remove_stage(&taking);
    tar_reader_free(taking.tar);
    bundle_done(&taking.bundle);
    annal__free(taking.standings);
    annal__buf_done(&taking.stage);
    annal__buf_done(&taking.path);
    return store_close(taking.store, out_finish(exit_status));
}
