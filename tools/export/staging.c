/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/staging.h"

#include "journal/base/alloc.h"
#include "journal/base/below.h"
#include "journal/base/error.h"
#include "journal/sys/adopt.h"
#include "journal/sys/artifact.h"
#include "journal/sys/cursor.h"
#include "journal/sys/seam.h"
#include "journal/sys/verify.h"
#include "tools/cli/store_open.h"
#include "tools/export/extend.h"
#include "tools/export/staging_sources.h"

#include <annal/journal.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAGE ".importing-"

/* ---- The directory ---- */

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

void staging_remove_stale(const annal_store *store)
{
    const char *root = annal_store_path(store);
    DIR *directory = opendir(root);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        SCOPED_BUF path = {0};
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
    }
    if (directory != NULL)
        closedir(directory);
}

static const struct below_mode OWN = {.file = 0600, .folder = 0700};

struct below staging_below(const struct staging *staging)
{
    return (struct below){.root = staging->stage.ptr, .fd = staging->stage_lock};
}

annal_status staging_open_file(struct staging *staging, const char *within, int flags, int *out_fd)
{
    struct below below = staging_below(staging);
    return annal__below_open_file(&below, within, flags, (flags & O_CREAT) != 0 ? &OWN : NULL,
                                  out_fd, staging->err);
}

static annal_status make_directory(struct staging *staging, const char *within)
{
    int fd = -1;
    struct below below = staging_below(staging);
    annal_status status = annal__below_folder(&below, within, &OWN, &fd, staging->err);
    if (status == ANNAL_OK)
        close(fd);
    return status;
}

annal_status staging_begin(struct staging *staging, uint64_t key)
{
    uint64_t name = key;
    staging->stage_lock = -1;
    if (key == 0 && getrandom(&name, sizeof name, 0) != (ssize_t)sizeof name)
        return annal__fail_errno(staging->err,
                                 "import: cannot choose a random name for a temporary directory");
    if (annal__buf_printf(&staging->stage, "%s/" STAGE "%016" PRIx64,
                          annal_store_path(staging->store), name) < 0 ||
        annal__buf_cstr(&staging->stage) == NULL)
        return annal__fail(staging->err, ANNAL_ERR_NOMEM, "import a bundle: out of memory");
    if (mkdir(staging->stage.ptr, 0700) < 0 && (key == 0 || errno != EEXIST))
        return annal__fail_errno(staging->err, "cannot create the directory %s",
                                 staging->stage.ptr);
    staging->stage_lock = lock_directory(staging->stage.ptr);
    if (staging->stage_lock < 0 && errno == EWOULDBLOCK)
        return annal__fail(staging->err, ANNAL_ERR_BUSY,
                           "the directory %s is in use: a process is already pulling this session; "
                           "wait until that process has ended",
                           staging->stage.ptr);
    if (staging->stage_lock < 0)
        return annal__fail_errno(staging->err, "cannot lock the directory %s", staging->stage.ptr);
    staging_remove_stale(staging->store);
    annal_status status = make_directory(staging, "events");
    return status != ANNAL_OK ? status : make_directory(staging, "artifacts");
}

annal_status staging_check_space(struct staging *staging, uint64_t bytes)
{
    if (bytes <= store_free_bytes(staging->store))
        return ANNAL_OK;
    errno = ENOSPC;
    return annal__fail_errno(staging->err, "cannot write %" PRIu64 " bytes to %s", bytes,
                             annal_store_path(staging->store));
}

/* ---- Proving the files ---- */

static int count_missing(void *arg, annal_slice path)
{
    struct staging *staging = arg;
    (void)path;
    staging->missing++;
    return 0;
}

/* Count the artifacts that an event refers to and that the bundle lacks; an annal__verified_fn. */
static void look_for_artifacts(void *arg, const annal_event *event, bool after_damage)
{
    struct staging *staging = arg;
    (void)after_damage;
    if (annal__artifact_check_data(staging->staged, event->data, count_missing, staging, NULL) < 0)
        staging->missing++;
}

/* Return the parent session of a fork if the bundle contains it, else NULL. The parent's own fork
 * point must be earlier, so that there are no cycles. */
static const struct bundle_session *parent_of(const struct staging *staging,
                                              const struct bundle_session *fork)
{
    const struct bundle_session *found = bundle_find(&staging->bundle, fork->fork);
    return found != NULL && found->fork_seq < fork->fork_seq ? found : NULL;
}

/* Check that the store has the fork point of a fork whose parent is not in the bundle. */
static annal_status prove_fork_point(struct staging *staging, const annal_session_info *fork)
{
    annal_cursor *cursor = NULL;
    annal_event event = {0};
    annal_error ignored;
    annal_status status =
        annal__cursor_open_event(staging->store, annal_slice_of(fork->fork_session), fork->fork_seq,
                                 &cursor, &event, &ignored);
    bool is_here = status == ANNAL_OK && event.h == fork->fork_h;
    annal_cursor_close(cursor);
    return is_here ? ANNAL_OK
                   : annal__fail(staging->err, ANNAL_ERR_CORRUPT,
                                 "%s: session '%s' is a fork of session '%s', which is neither in "
                                 "the bundle nor in the store",
                                 staging->from, fork->session, fork->fork_session);
}

/* Count an ancestor; an annal_lineage_fn. */
static int count_part(void *arg, const annal_lineage_part *part)
{
    (void)part;
    ++*(size_t *)arg;
    return 0;
}

/* Refuse a session with more ancestors than annal_session_fork() allows. */
static annal_status check_depth(struct staging *staging, struct bundle_session *session,
                                const struct bundle_session *parent)
{
    annal_error ignored;
    if (parent != NULL)
        session->ancestors = parent->ancestors + 1;
    else if (session->fork[0] != '\0' &&
             annal_lineage_each(staging->store, annal_slice_of(session->fork), count_part,
                                &session->ancestors, &ignored) < 0)
        session->ancestors = 0; /* prove_fork_point() reports the error */
    return session->ancestors <= ANNAL_ANCESTORS_MAX
               ? ANNAL_OK
               : annal__fail(staging->err, ANNAL_ERR_LIMIT,
                             "%s: session '%s' has more than %d ancestors", staging->from,
                             session->session, ANNAL_ANCESTORS_MAX);
}

/* Prove the journal of a session. If it is a fork whose ancestors are not in the bundle, the
 * finding about that is ignored. */
static annal_status prove_session(struct staging *staging, struct bundle_session *session,
                                  annal__proved *proved)
{
    annal_slice id = annal_slice_of(session->session);
    annal_verify_result result;
    annal_session_info info;
    const struct bundle_session *parent = parent_of(staging, session);
    session->is_whole = session->fork[0] == '\0' || (parent != NULL && parent->is_whole);
    annal_status status = check_depth(staging, session, parent);
    if (status >= 0)
        status = annal__verify_events(staging->staged, id, proved, NULL, look_for_artifacts,
                                      staging, &result, staging->err);
    if (status >= 0)
        status = annal_session_info_get(staging->staged, id, &info, staging->err);
    if (status < 0)
        return status;
    if (result.findings != (session->is_whole ? 0 : 1) || info.end_offset != session->bytes ||
        info.last_seq != session->last_seq || info.last_h != session->h ||
        info.fork_seq != session->fork_seq || strcmp(info.fork_session, session->fork) != 0 ||
        strcmp(info.file, session->file) != 0)
        return annal__fail(staging->err, ANNAL_ERR_CORRUPT,
                           "%s: the journal of session '%s' is damaged", staging->from,
                           session->session);
    return session->is_whole || parent != NULL ? ANNAL_OK : prove_fork_point(staging, &info);
}

/* Count unpacked bytes, and fail if they are too many, because a few bytes may unpack to terabytes;
 * an annal_artifact_sink. */
static int spend(void *arg, annal_slice piece)
{
    struct staging *staging = arg;
    if (piece.len > staging->unpack_max)
        return ANNAL_ERR_LIMIT;
    staging->unpack_max -= piece.len;
    return 0;
}

static annal_status prove_artifact(struct staging *staging, const struct bundle_artifact *artifact)
{
    annal_artifact_info info;
    annal_status status =
        annal_artifact_read(staging->staged, annal_slice_of(artifact->session),
                            annal_slice_of(artifact->name), spend, staging, &info, staging->err);
    return status != ANNAL_ERR_LIMIT ? status
                                     : annal__fail(staging->err, status,
                                                   "%s: the artifacts unpack to more than %d GiB "
                                                   "and %d times the size of the bundle",
                                                   staging->from, UNPACK_GIB, UNPACK_RATIO);
}

static annal_status prove_all(struct staging *staging)
{
    const struct bundle *bundle = &staging->bundle;
    const annal_store_options options = {.read_only = true, .no_keeper = true};
    annal__proved *proved = annal__lineage_proved_new();
    annal_status status =
        annal_store_open(staging->stage.ptr, &options, &staging->staged, staging->err);
    if (status >= 0)
        status = bundle_sort_ids(&staging->bundle, staging->err);
    for (size_t i = 0; i < bundle->session_count && status >= 0; i++)
        /* parents are proved before their forks */
        status = prove_session(staging, &bundle->sessions[i], proved);
    annal__lineage_proved_free(proved);
    for (size_t i = 0; i < bundle->artifact_count && status >= 0; i++)
        status = prove_artifact(staging, &bundle->artifacts[i]);
    if (status >= 0 && bundle->source_count > 0)
        status = staging_sources_prove(staging);
    return status < 0 ? status : ANNAL_OK;
}

/* ---- The sessions of the store ---- */

/* Find out whether the journal in the store begins with the same `bytes` bytes as the journal in
 * the bundle. */
static annal_status is_same(struct staging *staging, const struct bundle_session *session,
                            uint64_t bytes, bool *out_same)
{
    char within[BUNDLE_PATH_BYTES], here[SHA256_TEXT_BYTES], there[SHA256_TEXT_BYTES];
    struct below store = {0}, stage = staging_below(staging);
    bundle_session_path(session, within);
    annal_status status = annal__below_open(annal_store_path(staging->store), &store, staging->err);
    if (status == ANNAL_OK)
        status = bundle_hash_below(&store, within, bytes, here, staging->err);
    annal__below_close(&store);
    if (status == ANNAL_OK && bytes == session->bytes)
        memcpy(there, session->sha256, sizeof there);
    else if (status == ANNAL_OK)
        status = bundle_hash_below(&stage, within, bytes, there, staging->err);
    *out_same = status == ANNAL_OK && strcmp(here, there) == 0;
    return status;
}

static annal_status compare_session(struct staging *staging, const struct bundle_session *session,
                                    enum standing *out)
{
    annal_session_info info;
    annal_error err = {0};
    bool same = false;
    annal_status status =
        annal_session_info_get(staging->store, annal_slice_of(session->session), &info, &err);
    *out = STANDS_NOT;
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && info.bytes == 0))
        return ANNAL_OK;
    if (status < 0) {
        *staging->err = err;
        return status;
    }
    *out = info.end_offset < session->bytes ? STANDS_SHORTER : STANDS_SAME;
    uint64_t bytes = info.end_offset < session->bytes ? info.end_offset : session->bytes;
    if (info.format == session->format)
        status = is_same(staging, session, bytes, &same);
    if (status >= 0 && !same)
        status = annal__fail(staging->err, ANNAL_ERR_CONFLICT,
                             "session '%s' already exists with other content; nothing was imported",
                             session->session);
    return status < 0 ? status : ANNAL_OK;
}

static annal_status compare_all(struct staging *staging)
{
    annal_status status = annal__unapplied_settle(staging->store, staging->err);
    staging->standings =
        annal__zalloc((staging->bundle.session_count + 1) * sizeof *staging->standings);
    if (status == ANNAL_OK && staging->standings == NULL)
        status = annal__fail(staging->err, ANNAL_ERR_NOMEM, "import a bundle: out of memory");
    for (size_t i = 0; i < staging->bundle.session_count && status == ANNAL_OK; i++)
        status = compare_session(staging, &staging->bundle.sessions[i], &staging->standings[i]);
    return status;
}

/* ---- Moving the files ---- */

/* Move a session into the store, or extend the store's session. If another process, such as another
 * import, was first, compare with the store again. */
static annal_status move_session(struct staging *staging, const struct bundle_session *session,
                                 enum standing *standing)
{
    enum { TRIES_MAX = 3 };
    annal_slice id = annal_slice_of(session->session);
    annal_status status = ANNAL_OK;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (*standing == STANDS_SAME)
            return ANNAL_OK;
        status = *standing == STANDS_NOT
                     ? annal__journal_adopt(staging->store, staging->staged, id, staging->err)
                     : extend_session(staging->store, staging->staged, id, staging->err);
        if (status != ANNAL_ERR_CONFLICT)
            return status;
        annal_status compared = annal__unapplied_settle(staging->store, staging->err);
        if (compared == ANNAL_OK)
            compared = compare_session(staging, session, standing);
        if (compared < 0)
            return compared;
    }
    return *standing == STANDS_SAME ? ANNAL_OK : status;
}

static annal_status move_in(struct staging *staging)
{
    const struct bundle *bundle = &staging->bundle;
    annal__artifact_hold *hold = NULL;
    annal_status status = annal__artifact_hold_new(staging->store, &hold, staging->err);
    for (size_t i = 0; i < bundle->artifact_count && status == ANNAL_OK; i++)
        status = annal__artifact_adopt(staging->store, staging->staged,
                                       annal_slice_of(bundle->artifacts[i].session),
                                       annal_slice_of(bundle->artifacts[i].name), staging->err);
    for (size_t i = 0; i < bundle->session_count && status == ANNAL_OK; i++) {
        status = move_session(staging, &bundle->sessions[i], &staging->standings[i]);
        staging->added += staging->standings[i] == STANDS_NOT ? 1 : 0;
        staging->extended += staging->standings[i] == STANDS_SHORTER ? 1 : 0;
    }
    annal__artifact_hold_free(hold);
    if (status >= 0 && bundle->source_count > 0)
        status = staging_sources_move(staging);
    return status;
}

/* Prove that the store contains the sessions now, by reading them again. */
static annal_status prove_here(struct staging *staging)
{
    annal_status status = annal__unapplied_settle(staging->store, staging->err);
    for (size_t i = 0; i < staging->bundle.session_count && status == ANNAL_OK; i++) {
        const struct bundle_session *session = &staging->bundle.sessions[i];
        bool same = false;
        status = is_same(staging, session, session->bytes, &same);
        if (status == ANNAL_OK && !same)
            status = annal__fail(
                staging->err, ANNAL_ERR_UNKNOWN,
                "session '%s' in the store differs from %s after the import: run 'annal verify %s'",
                session->session, staging->from, session->session);
        staging->events += session->last_seq - session->fork_seq;
    }
    return status;
}

/* ---- The import ---- */

annal_status staging_finish(struct staging *staging)
{
    annal_status status = prove_all(staging);
    if (status == ANNAL_OK)
        status = compare_all(staging);
    if (status == ANNAL_OK)
        status = move_in(staging);
    return status != ANNAL_OK ? status : prove_here(staging);
}

void staging_keep(struct staging *staging)
{
    (void)!annal_store_close(staging->staged, NULL);
    if (staging->stage_lock >= 0)
        close(staging->stage_lock);
    bundle_done(&staging->bundle);
    annal__free(staging->standings);
    annal__buf_done(&staging->stage);
}

void staging_done(struct staging *staging)
{
    if (staging->stage_lock >= 0)
        remove_tree(staging->stage.ptr);
    staging_keep(staging);
}
