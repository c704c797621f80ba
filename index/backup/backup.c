/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backup: everything in a store that cannot be rebuilt.
 *
 * (1) A backup contains events/ (the journals), artifacts/, cursors/ (copied before the sessions
 *     are listed, so that every event before a cursor is in the backup), sources/ (rule 9), and
 *     from packs/ the list of enabled packs and the user's packs. It does not contain the index,
 *     the snapshots and the tables of packs, which are built from these files; the commit logs,
 *     whose events are all in the journals before the backup continues (rule 4); and locks/.
 * (2) `manifest` is JSON lines: {"annal_backup":1,"created":T}, one {"path","bytes","h"} for each
 *     file, where h is the XXH3-64 of its bytes, and {"files","bytes","h"}, where h is the hash of
 *     the manifest before this line. It is written when all files and directories are synced. No
 *     file of a backup is written twice.
 * (3) A journal only grows, so a prefix of it that ends with a complete event is a valid journal.
 *     Bytes after the last valid event belong to an append that is being written, and are skipped;
 *     damage is copied. The journal may be replaced (deleted, converted) while it is copied: if it
 *     is not the same file afterwards, it is copied again.
 * (4) An acknowledged event is in its journal as soon as its bytes could be written there. If a
 *     process could not write them yet, because the disk is full, the event is only in the commit
 *     log of the process; the backup then waits, and fails after a time limit.
 * (5) Rows that the sqlite3 shell wrote into tables of packs become events before the journals are
 *     copied: the packs are caught up first. A pack that cannot be caught up is skipped, because a
 *     backup is needed most when something is broken.
 * (6) Artifacts are copied after the journals, while a hold prevents that they are swept, so that
 *     every artifact of a copied event is in the backup.
 * (7) A fork is copied before its parent, whose journal only grows, so that its copy contains the
 *     event at the fork point: the fork with the largest fork point is first, because fork points
 *     get smaller from a fork to its parent. A session that became a fork after the list was read
 *     is skipped: the session that had this name when the backup began was deleted. While a fork
 *     exists its parent is not replaced; if both are deleted during a backup, it may contain the
 *     fork without its parent, which is checked after all journals were copied.
 * (8) A store is restored beside its final path, and renamed when it is complete.
 * (9) The newest generation of a log in sources/ is copied before the older generations that it
 *     needs. Only the newest changes; when it is rotated during the backup, it becomes the next
 *     older generation, and is copied under that name, too. Each record contains its hash, so that
 *     a record that was being written is recognized.
 */
#include "index/backup/backup.h"

#include "index/index.h"
#include "index/pack/packs.h"
#include "index/sys/open.h"
#include "journal/base/alloc.h"
#include "journal/sys/artifact.h"

#include "journal/base/error.h"
#include "journal/sys/seam.h"
#include "journal/sys/sources.h"

#include <annal/artifact.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* time in ms to wait until rows that users wrote into tables of packs are in the journals */
#define DRAIN_MS 600000
#define TRIES    10 /* maximum number of attempts to copy a journal that is replaced repeatedly */

struct entry {
    char *session;
    uint64_t fork_seq;
    char file[33]; /* file id of the journal that was copied; "": none was copied */
    /* parent of the session, if it is a fork whose parent existed when it was copied; else NULL */
    char *parent;
    char parent_file[33]; /* file id of the parent when the fork was copied */
};

struct backup {
    annal_index *index;
    annal_store *store;
    const char *directory;
    struct copying copying;
    struct buf manifest, from, to;
    struct entry *sessions; /* in the order in which they are copied, rule (7) */
    size_t session_count;
    annal_backup_result result;
    /* status with which the last callback of io->list stopped the listing */
    annal_status failed;
    annal_error *err;
};

static annal_status out_of_memory(const struct backup *backup)
{
    return annal__fail(backup->err, ANNAL_ERR_NOMEM, "list the sessions to copy: out of memory");
}

/* ---- Files ---- */

/* Copy STORE/file->path to the same path in the backup, and add it to the manifest. */
static annal_status copy_listed(struct backup *backup, struct backup_file *file, uint64_t bytes)
{
    const struct io *io = backup->copying.io;
    annal_status status =
        annal__backup_join(&backup->from, annal_store_path(backup->store), file->path, backup->err);
    if (status >= 0)
        status = annal__backup_join(&backup->to, backup->directory, file->path, backup->err);
    if (status >= 0)
        status = annal__backup_make_parents(io, backup->directory, file->path, backup->err);
    if (status == ANNAL_OK)
        status = annal__backup_copy_file(&backup->copying, backup->from.ptr, backup->to.ptr, bytes,
                                         file, backup->err);
    return status;
}

static annal_status write_down(struct backup *backup, const struct backup_file *file)
{
    backup->result.files++;
    backup->result.bytes += file->bytes;
    annal_status status = annal__backup_manifest_add(&backup->manifest, file);
    return status < 0 ? annal__fail(backup->err, status, "cannot write the manifest of the backup")
                      : ANNAL_OK;
}

/* Copy a file, and add it to the manifest. It may have been removed after it was listed. */
static annal_status copy_path(struct backup *backup, struct backup_file *file)
{
    annal_status status = copy_listed(backup, file, UINT64_MAX);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    return status == ANNAL_OK ? write_down(backup, file) : status;
}

/* ---- Journals, rule (3) ---- */

/* Return whether the session's journal is still the file that was copied, and has not become
 * shorter. */
static bool is_same(annal_store *store, annal_slice session, const annal_session_info *before)
{
    annal_session_info now;
    return annal_session_info_get(store, session, &now, NULL) == ANNAL_OK &&
           now.format == before->format && strcmp(now.file, before->file) == 0 &&
           now.bytes >= before->bytes;
}

/* Record the parent of a fork and its file id, before the journal of the fork is copied. */
static annal_status note_parent(struct backup *backup, const annal_session_info *fork,
                                struct entry *entry)
{
    annal_session_info parent;
    annal__free(entry->parent);
    entry->parent = NULL;
    if (fork->fork_session[0] == '\0' ||
        annal_session_info_get(backup->store, annal_slice_of(fork->fork_session), &parent, NULL) <
            0)
        return ANNAL_OK; /* not a fork, or its parent cannot be read */
    memcpy(entry->parent_file, parent.file, sizeof entry->parent_file);
    entry->parent = annal__strndup(fork->fork_session, strlen(fork->fork_session));
    return entry->parent == NULL ? out_of_memory(backup) : ANNAL_OK;
}

static annal_status copy_journal(struct backup *backup, struct entry *entry, bool *out_again)
{
    const struct io *io = backup->copying.io;
    annal_slice session = annal_slice_of(entry->session);
    annal_session_info info;
    struct backup_file file = {0};
    *out_again = false;
    annal_status status = annal_session_info_get(backup->store, session, &info, backup->err);
    if (status == ANNAL_ERR_NOTFOUND || (status >= 0 && info.fork_seq > entry->fork_seq))
        /* the session was deleted or replaced after the list of sessions was read */
        return ANNAL_OK;
    if (status >= 0)
        status = note_parent(backup, &info, entry);
    if (status < 0)
        return status;
    snprintf(file.path, sizeof file.path, "events/%.*s.%s", ANNAL_FMT(session),
             info.format == ANNAL_FORMAT_MSGPACK ? "mpk" : "jsonl");
    uint64_t bytes = info.torn ? info.end_offset : info.bytes;
    status = copy_listed(backup, &file, bytes);
    if (status != ANNAL_OK && status != ANNAL_ERR_NOTFOUND)
        return status;
    *out_again = status == ANNAL_ERR_NOTFOUND || file.bytes != bytes ||
                 !is_same(backup->store, session, &info);
    if (*out_again) {
        if (status == ANNAL_OK && io->unlink(io->arg, backup->to.ptr) < 0)
            return annal__fail_errno(backup->err, "cannot remove %s", backup->to.ptr);
        return ANNAL_OK;
    }
    backup->result.sessions++;
    memcpy(entry->file, info.file, sizeof entry->file);
    return write_down(backup, &file);
}

static annal_status copy_session(struct backup *backup, struct entry *entry)
{
    bool again = true;
    annal_status status = ANNAL_OK;
    for (int i = 0; i < TRIES && again && status == ANNAL_OK; i++)
        status = copy_journal(backup, entry, &again);
    if (status == ANNAL_OK && again)
        status = annal__fail(backup->err, ANNAL_ERR_BUSY,
                             "cannot copy session '%s', because other processes keep replacing the "
                             "session; try again",
                             entry->session);
    return status;
}

static int add_session(void *arg, annal_slice session, uint64_t bytes)
{
    struct backup *backup = arg;
    annal_session_info info = {.fork_seq = 0};
    (void)bytes;
    if (annal_session_info_get(backup->store, session, &info, NULL) < 0) {
        if (annal__stray_is(backup->store, session))
            return 0;
        /* the journal cannot be read: list it nevertheless, and let copying it report the reason */
        info.fork_seq = 0;
    }
    struct entry *last = annal__array_add(&backup->sessions, &backup->session_count, sizeof *last);
    if (last == NULL)
        return out_of_memory(backup);
    *last = (struct entry){.session = annal__strndup(session.ptr, session.len),
                           .fork_seq = info.fork_seq};
    return last->session == NULL ? out_of_memory(backup) : 0;
}

static int compare_names(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    return strcmp(a->session, b->session);
}

/* Compare two sessions: the larger fork point is first. */
static int compare_places(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->fork_seq != b->fork_seq)
        return a->fork_seq > b->fork_seq ? -1 : 1;
    return compare_names(left, right);
}

/* Check that the journal of each copied fork's parent was copied, too. */
static annal_status check_parents(struct backup *backup)
{
    struct entry *list = backup->sessions;
    qsort(list, backup->session_count, sizeof *list, compare_names);
    for (size_t i = 0; i < backup->session_count; i++) {
        const struct entry key = {.session = list[i].parent};
        if (list[i].file[0] == '\0' || list[i].parent == NULL)
            continue;
        const struct entry *parent =
            bsearch(&key, list, backup->session_count, sizeof *list, compare_names);
        if (parent == NULL || strcmp(parent->file, list[i].parent_file) != 0)
            return annal__fail(backup->err, ANNAL_ERR_BUSY,
                               "session '%s' was deleted or replaced after its fork '%s' was "
                               "copied: start the backup again",
                               list[i].parent, list[i].session);
    }
    return ANNAL_OK;
}

static annal_status copy_sessions(struct backup *backup)
{
    annal_status status = annal_session_each(backup->store, add_session, backup, backup->err);
    if (status < 0 || backup->session_count == 0)
        return status;
    qsort(backup->sessions, backup->session_count, sizeof *backup->sessions, compare_places);
    for (size_t i = 0; status == ANNAL_OK && i < backup->session_count; i++)
        status = copy_session(backup, &backup->sessions[i]);
    return status == ANNAL_OK ? check_parents(backup) : status;
}

/* ---- Artifacts and packs ---- */

/* Copy an artifact: an annal_artifact_fn. In a read-only store, which has no hold on artifacts, it
 * may have been swept. */
static int copy_artifact(void *arg, const annal_artifact_info *info)
{
    struct backup *backup = arg;
    struct backup_file file = {0};
    uint64_t files = backup->result.files;
    snprintf(file.path, sizeof file.path, "artifacts/%s/%s.zst", info->session, info->sha256);
    annal_status status = copy_path(backup, &file);
    backup->result.artifacts += backup->result.files - files;
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && name[0] != '.' && strcmp(name + len - end_len, end) == 0;
}

static int copy_named(struct backup *backup, const char *folder, const char *name)
{
    struct backup_file file = {0};
    if (strpbrk(name, "\"\\\n") != NULL || strlen(name) > 300)
        return 0;
    snprintf(file.path, sizeof file.path, "%s/%s", folder, name);
    backup->failed = copy_path(backup, &file);
    return backup->failed != ANNAL_OK;
}

/* Copy a file in packs/: the list of enabled packs, or a user's pack. An io_list_fn. */
static int copy_pack(void *arg, const char *name)
{
    return strcmp(name, "enabled") == 0 || ends_with(name, ".sql") ? copy_named(arg, "packs", name)
                                                                   : 0;
}

/* Copy a named cursor in cursors/. An io_list_fn. */
static int copy_cursor(void *arg, const char *name)
{
    return ends_with(name, ".json") ? copy_named(arg, "cursors", name) : 0;
}

/* Copy all generations of a log in sources/, the newest first (rule 9). */
static int copy_source(void *arg, const char *text, const annal__source_name *name)
{
    struct backup *backup = arg;
    char older[SOURCES_NAME_BYTES];
    uint64_t files = 0;
    if (name->generation > 0)
        return 0;
    int failed = copy_named(backup, "sources", text);
    for (uint32_t generation = 1; !failed && files < backup->result.files; generation++) {
        files = backup->result.files;
        snprintf(older, sizeof older, "%s.%" PRIu32, text, generation);
        failed = copy_named(backup, "sources", older);
    }
    return failed ? backup->failed : 0;
}

static annal_status copy_folder(struct backup *backup, const char *folder, io_list_fn copy)
{
    const struct io *io = backup->copying.io;
    SCOPED_BUF path = {0};
    annal_status status =
        annal__backup_join(&path, annal_store_path(backup->store), folder, backup->err);
    if (status >= 0) {
        bool listed = io->list(io->arg, path.ptr, copy, backup) >= 0;
        if (!listed && errno != ENOENT)
            status = annal__fail_errno(backup->err, "cannot list %s", path.ptr);
        else if (listed)
            status = backup->failed;
    }
    return status;
}

/* ---- All steps ---- */

static int add_bytes(void *arg, annal_slice session, uint64_t bytes)
{
    (void)session;
    *(uint64_t *)arg += bytes;
    return 0;
}

static annal_status prepare(struct backup *backup)
{
    const annal_catch_up_options patient = {.timeout_ms = DRAIN_MS};
    annal_status status = ANNAL_OK;
    if (!annal__session_list_is_read_only(backup->store)) {
        status = annal_store_sync(backup->store, backup->err);
        if (status >= 0)
            status =
                annal__packs_catch_up(backup->index, PACK_EVERYONE, NULL, 0, &patient, backup->err);
    }
    if (status >= 0)
        status = annal__unapplied_settle(backup->store, backup->err);
    if (status >= 0)
        status =
            annal_session_each(backup->store, add_bytes, &backup->copying.bytes_total, backup->err);
    return status;
}

static annal_status finish(struct backup *backup)
{
    const struct io *io = backup->copying.io;
    struct manifest written = {0};
    annal_status status =
        annal__backup_manifest_end(&backup->manifest, backup->result.files, backup->result.bytes);
    if (status >= 0 && annal__buf_cstr(&backup->manifest) == NULL)
        status = out_of_memory(backup);
    written.text = backup->manifest;
    if (status >= 0)
        status = annal__backup_sync_tree(io, backup->directory, &written, backup->err);
    if (status >= 0)
        status = annal__backup_join(&backup->to, backup->directory, BACKUP_MANIFEST, backup->err);
    if (status >= 0)
        status = annal__io_publish_file(io, backup->to.ptr, backup->manifest.ptr,
                                        backup->manifest.len, backup->err);
    return status;
}

static annal_status copy_all(struct backup *backup)
{
    const struct io *io = backup->copying.io;
    char created[ANNAL_TIME_BYTES];
    bool there = false;
    const struct clock *clock = annal__store_clock(backup->store);
    annal_time_format(clock->wall_us(clock->arg), created);
    annal_status status = annal__backup_must_be_empty(io, backup->directory, &there, backup->err);
    if (status >= 0 && !there)
        status = annal__io_make_private_dir(io, backup->directory, backup->err);
    if (status >= 0)
        status = annal__backup_manifest_begin(&backup->manifest, created);
    if (status >= 0)
        status = prepare(backup);
    if (status == ANNAL_OK)
        status = copy_folder(backup, "cursors", copy_cursor);
    if (status == ANNAL_OK)
        status = copy_sessions(backup);
    if (status == ANNAL_OK)
        status = annal_artifact_each(backup->store, (annal_slice){NULL, 0}, copy_artifact, backup,
                                     backup->err);
    if (status == ANNAL_OK)
        status = copy_folder(backup, "packs", copy_pack);
    if (status == ANNAL_OK)
        status = annal__sources_each(backup->store, (annal_slice){NULL, 0}, copy_source, backup,
                                     backup->err);
    return status == ANNAL_OK ? finish(backup) : status;
}

annal_status annal_backup_create(annal_index *index, const char *directory,
                                 const annal_backup_options *options,
                                 annal_backup_result *out_result, annal_error *err)
{
    annal_error own = {0};
    struct backup backup = {.index = index,
                            .store = annal__index_store(index),
                            .directory = directory,
                            .err = err == NULL ? &own : err};
    annal__artifact_hold *hold = NULL;
    backup.err->status = ANNAL_OK;
    annal_status status = annal__backup_copying_init(&backup.copying, annal__store_io(backup.store),
                                                     options, backup.err);
    if (status >= 0 && !annal__session_list_is_read_only(backup.store))
        status = annal__artifact_hold_new(backup.store, &hold, backup.err);
    if (status >= 0)
        status = copy_all(&backup);
    annal__artifact_hold_free(hold);
    annal__backup_copying_done(&backup.copying);
    annal__buf_done(&backup.manifest);
    annal__buf_done(&backup.from);
    annal__buf_done(&backup.to);
    for (size_t i = 0; i < backup.session_count; i++) {
        annal__free(backup.sessions[i].session);
        annal__free(backup.sessions[i].parent);
    }
    annal__free(backup.sessions);
    if (status == ANNAL_OK)
        *out_result = backup.result;
    return status;
}

/* ---- Restoring and checking ---- */

/*
 * Check that no directory between the backup's and a file of it is a symbolic link, which could
 * lead to any file. path is the path of the file; its first root_bytes bytes are the path of the
 * backup.
 */
static annal_status refuse_links(const struct io *io, struct buf *path, size_t root_bytes,
                                 annal_error *err)
{
    annal_status status = ANNAL_OK;
    char *slash = strchr(path->ptr + root_bytes + 1, '/');
    for (; slash != NULL && status >= 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int fd = io->open(io->arg, path->ptr, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
        if (fd >= 0)
            io->close(io->arg, fd);
        else if (errno == ENOENT)
            status = ANNAL_ERR_NOTFOUND;
        else if (errno == ENOTDIR)
            status = annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "restore a backup: path %s is a symbolic link or a file, not a directory",
                path->ptr);
        else
            status = annal__fail_errno(err, "cannot open directory %s", path->ptr);
        *slash = '/';
    }
    return status;
}

/* Copy a file of the backup, or only read it if target is NULL. A link in its path is refused. */
static annal_status restore_file(struct copying *copying, const char *directory, const char *target,
                                 struct backup_file *file, annal_backup_result *result,
                                 annal_error *err)
{
    SCOPED_BUF from = {0}, to = {0};
    struct backup_file copied = {0};
    annal_status status = annal__backup_join(&from, directory, file->path, err);
    if (status >= 0 && target != NULL)
        status = annal__backup_join(&to, target, file->path, err);
    if (status >= 0 && target != NULL)
        status = annal__backup_make_parents(copying->io, target, file->path, err);
    if (status >= 0)
        status = refuse_links(copying->io, &from, strlen(directory), err);
    if (status >= 0) /* read one more byte, to check that the file ends where the manifest says */
        status = annal__backup_copy_file(copying, from.ptr, to.ptr, file->bytes + 1, &copied, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = annal__fail(err, ANNAL_ERR_CORRUPT, "backup %s: file %s is missing", directory,
                             file->path);
    else if (status == ANNAL_OK && (copied.bytes != file->bytes || copied.h != file->h))
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "backup %s: the content of file %s has changed since the backup",
                             directory, file->path);
    result->files++;
    result->bytes += file->bytes;
    result->sessions += strncmp(file->path, "events/", 7) == 0;
    result->artifacts += strncmp(file->path, "artifacts/", 10) == 0;
    return status;
}

static annal_status restore_files(struct copying *copying, struct manifest *manifest,
                                  const char *directory, const char *target,
                                  annal_backup_result *result, annal_error *err)
{
    struct backup_file file;
    bool is_stopped = false;
    annal_status status = ANNAL_OK;
    copying->bytes_total = manifest->bytes;
    while (status == ANNAL_OK) {
        status = annal__backup_manifest_next(manifest, &file, err);
        if (status != ANNAL_OK)
            break;
        status = restore_file(copying, directory, target, &file, result, err);
        is_stopped = status == ANNAL_END;
    }
    if (status < 0 || is_stopped)
        return status;
    if (result->files != manifest->files || result->bytes != manifest->bytes)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "backup %s: the checksums in the manifest are wrong", directory);
    return ANNAL_OK;
}

/* Restore to a new directory beside path, and rename it to path when it is complete and durable
 * (rule 8). */
static annal_status restore_beside(struct copying *copying, struct manifest *manifest,
                                   const char *directory, const char *path,
                                   annal_backup_result *result, annal_error *err)
{
    const struct io *io = copying->io;
    SCOPED_BUF target = {.limit = 8192}, parent = {.limit = 8192};
    uint64_t random = 0;
    bool there = false;
    annal_status status = annal__backup_must_be_empty(io, path, &there, err);
    if (status < 0)
        return status;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return annal__fail_errno(err, "restore into store %s: cannot choose a random name", path);
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    status = annal__buf_printf(&target, "%.*s.restoring-%016" PRIx64, (int)len, path, random);
    if (status < 0)
        return annal__fail(err, status, "restore into store %s: the path of the store is too long",
                           path);
    status = annal__io_make_private_dir(io, target.ptr, err);
    /* create events/ even if the backup has no journal: only a directory with events/ is a store */
    if (status >= 0)
        status = annal__backup_make_parents(io, target.ptr, "events/", err);
    if (status >= 0)
        status = restore_files(copying, manifest, directory, target.ptr, result, err);
    if (status == ANNAL_OK)
        status = annal__backup_sync_tree(io, target.ptr, manifest, err);
    if (status == ANNAL_OK && io->rename(io->arg, target.ptr, path) < 0)
        status = annal__fail_errno(err, "cannot rename %s to %s", target.ptr, path);
    if (status == ANNAL_OK)
        status = annal__backup_join(&parent, path, "..", err);
    return status != ANNAL_OK ? status : annal__io_sync_dir(io, parent.ptr, err);
}

annal_status annal__backup_restore(const struct io *io, const char *directory, const char *path,
                                   const annal_backup_options *options,
                                   annal_backup_result *out_result, annal_error *err)
{
    struct copying copying = {0};
    struct manifest manifest = {0};
    annal_backup_result result = {0};
    annal_status status = annal__backup_copying_init(&copying, io, options, err);
    if (status >= 0)
        status = annal__backup_manifest_open(&manifest, io, directory, err);
    if (status >= 0 && path == NULL)
        status = restore_files(&copying, &manifest, directory, NULL, &result, err);
    else if (status >= 0)
        status = restore_beside(&copying, &manifest, directory, path, &result, err);
    annal__backup_manifest_done(&manifest);
    annal__backup_copying_done(&copying);
    if (status == ANNAL_OK)
        *out_result = result;
    return status;
}

annal_status annal_backup_restore(const char *directory, const char *path,
                                  const annal_backup_options *options,
                                  annal_backup_result *out_result, annal_error *err)
{
    return annal__backup_restore(&annal__system_io, directory, path, options, out_result, err);
}

annal_status annal_backup_check(const char *directory, const annal_backup_options *options,
                                annal_backup_result *out_result, annal_error *err)
{
    return annal__backup_restore(&annal__system_io, directory, NULL, options, out_result, err);
}
