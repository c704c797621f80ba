/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remove artifacts that no event names.
 *
 * (1) An event names an artifact if its hash, exactly 64 lower-case hex digits, is anywhere in the
 *     event's data: a sweep keeps too much rather than too little. A damaged journal may have named
 *     any artifact, so if a journal is damaged, no artifact is removed.
 * (2) A sweep reads every journal without a lock, then takes locks/artifacts exclusively and reads
 *     what was appended since. So a process that holds the lock shared from storing to appending
 *     loses nothing: if it appended before the sweep took the lock, the second reading finds its
 *     event; if it stores later, rule 3 of artifact.c writes the artifact again. A process that
 *     stores without a hold has `older_than_us` to append.
 * (3) A file is removed only if it is still older than the requested age when looked at under the
 *     lock.
 * (4) A file in events/ that is not a session's journal (copied, renamed, or the second of two) may
 *     be all that is left of a journal. Artifacts whose hashes it contains are kept.
 */
#include "journal/artifact/artifact_names.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/sys/artifact.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define DAY_US        ((int64_t)86400 * 1000000)
#define UNFINISHED_US ((int64_t)3600 * 1000000)
#define HEX           ((size_t)2 * SHA256_BYTES)
#define STRAY_BYTES   (1 << 20)

/* An artifact that exists. */
struct item {
    uint8_t sha256[SHA256_BYTES];
    char *session;
    uint64_t stored_bytes;
    int64_t stored_us;
    bool named;
};

/* A journal, and the position up to which this sweep has read it. */
struct seen {
    char *session;
    annal_position next;
};

struct walk {
    annal_store *store;
    struct item *items; /* artifacts, sorted by hash, then by session */
    size_t count;
    struct seen *seen;
    size_t seen_count;
    /* number of entries of `seen` that were found in the first reading of the journals; these are
     * sorted */
    size_t sorted;
    annal_error *err;
};

/* ---- The artifacts that exist ---- */

static int compare_items(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    int order = memcmp(a->sha256, b->sha256, SHA256_BYTES);
    return order != 0 ? order : strcmp(a->session, b->session);
}

static int add_item(void *arg, const annal_artifact_info *info)
{
    struct walk *walk = arg;
    struct item *item = annal__array_add(&walk->items, &walk->count, sizeof *item);
    if (item == NULL)
        return annal__fail(walk->err, ANNAL_ERR_NOMEM, "list artifacts: out of memory");
    *item = (struct item){.session = annal__strndup(info->session, strlen(info->session)),
                          .stored_bytes = info->stored_bytes,
                          .stored_us = info->stored_us};
    if (item->session == NULL)
        return annal__fail(walk->err, ANNAL_ERR_NOMEM, "list artifacts: out of memory");
    (void)annal__artifact_read_sha256(info->sha256, HEX, item->sha256);
    return 0;
}

static annal_status list_items(struct walk *walk)
{
    annal_status status =
        annal_artifact_each(walk->store, (annal_slice){NULL, 0}, add_item, walk, walk->err);
    if (status == ANNAL_OK && walk->count > 0)
        qsort(walk->items, walk->count, sizeof *walk->items, compare_items);
    return status;
}

/* Return the first artifact with this hash, or NULL. */
static struct item *find_hash(const struct walk *walk, const uint8_t sha256[SHA256_BYTES])
{
    size_t low = 0, high = walk->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(walk->items[middle].sha256, sha256, SHA256_BYTES) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < walk->count && memcmp(walk->items[low].sha256, sha256, SHA256_BYTES) == 0;
    return found ? &walk->items[low] : NULL;
}

static void walk_done(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        annal__free(walk->items[i].session);
    for (size_t i = 0; i < walk->seen_count; i++)
        annal__free(walk->seen[i].session);
    annal__free(walk->items);
    annal__free(walk->seen);
}

/* ---- What events name ---- */

static void mark(struct walk *walk, const char *hex)
{
    uint8_t sha256[SHA256_BYTES];
    if (!annal__artifact_read_sha256(hex, HEX, sha256))
        return;
    const struct item *end = walk->items + walk->count;
    for (struct item *item = find_hash(walk, sha256);
         item != NULL && item < end && memcmp(item->sha256, sha256, SHA256_BYTES) == 0; item++) {
        item->named = true;
    }
}

/* Mark the artifacts whose hashes are in the data (rule 1). If one of the next 64 characters is not
 * a hex digit, no hash begins before it, so the search continues after it. */
static void mark_hashes(struct walk *walk, annal_slice data)
{
    for (size_t at = 0; at + HEX <= data.len;) {
        size_t begin = at + HEX;
        while (begin > at && annal__is_hex(data.ptr[begin - 1]))
            begin--;
        /* no hash begins before `begin`: the character before it is not a hex digit */
        if (begin > at) {
            at = begin;
            continue;
        }
        size_t end = at + HEX;
        while (end < data.len && annal__is_hex(data.ptr[end]))
            end++;
        if (end == at + HEX)
            mark(walk, data.ptr + at);
        at = end;
    }
}

/* ---- Reading the journals ---- */

/* Mark the artifacts whose hashes are in a file that is not a session's journal (rule 4). Pieces
 * overlap, so that a hash across the end of one piece is complete in the next. */
static annal_status read_stray(void *arg, const char *path)
{
    struct walk *walk = arg;
    const struct io *io = annal__store_io(walk->store);
    annal_status status = ANNAL_OK;
    ssize_t got = STRAY_BYTES;
    char *piece = annal__zalloc(STRAY_BYTES);
    if (piece == NULL)
        return annal__fail(walk->err, ANNAL_ERR_NOMEM, "read %s: out of memory", path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0 && errno != ENOENT)
        status = annal__fail_errno(walk->err,
                                   "no artifact was removed, because the file %s may name "
                                   "artifacts: move this file out of the store",
                                   path);
    for (uint64_t offset = 0; fd >= 0 && got == STRAY_BYTES; offset += STRAY_BYTES - HEX) {
        got = annal__io_read_full(io, fd, piece, STRAY_BYTES, offset);
        if (got >= 0)
            mark_hashes(walk, (annal_slice){piece, (size_t)got});
        else if (errno != EISDIR) /* a directory names nothing */
            status = annal__fail_errno(walk->err, "cannot read %s", path);
    }
    if (fd >= 0)
        io->close(io->arg, fd);
    annal__free(piece);
    return status;
}

/* Read the events of a session's own journal that were not read yet, and mark the artifacts that
 * they name. Events of an ancestor are read with the ancestor. */
static annal_status read_rest(struct walk *walk, size_t which)
{
    struct seen *seen = &walk->seen[which];
    annal_slice session = annal_slice_of(seen->session);
    annal_cursor *cursor = NULL;
    annal_status status = ANNAL_ERR_CONFLICT;
    if (seen->next.seq > 1)
        status = annal_cursor_open_at(walk->store, session, seen->next.seq, seen->next.offset,
                                      seen->next.h_before, &cursor, walk->err);
    /* another file has replaced the session's journal: read the new journal from its first event */
    if (status == ANNAL_ERR_CONFLICT)
        status = annal_cursor_open_at(walk->store, session, 1, 0, 0, &cursor, walk->err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK; /* the session was deleted in the meantime */
    if (status == ANNAL_ERR_CORRUPT && annal__stray_is(walk->store, session))
        return ANNAL_OK;
    while (status == ANNAL_OK) {
        annal_event event;
        status = annal_cursor_next(cursor, &event, walk->err);
        if (status == ANNAL_OK)
            mark_hashes(walk, event.data);
    }
    if (status == ANNAL_DAMAGE)
        status = annal__fail(walk->err, ANNAL_ERR_CORRUPT,
                             "no artifact was removed, because session '%s' is damaged, and its "
                             "lost events may name artifacts; 'annal verify' shows the damage",
                             seen->session);
    if (status == ANNAL_END) {
        seen->next = annal_cursor_position(cursor);
        status = ANNAL_OK;
    }
    annal_cursor_close(cursor);
    return status;
}

static int compare_seen(const void *left, const void *right)
{
    return strcmp(((const struct seen *)left)->session, ((const struct seen *)right)->session);
}

/* Read a journal from the position that the last visit reached, as an annal_session_fn. */
static int visit(void *arg, annal_slice session, uint64_t bytes)
{
    (void)bytes;
    struct walk *walk = arg;
    struct seen key = {.session = annal__strndup(session.ptr, session.len)};
    if (key.session == NULL)
        return annal__fail(walk->err, ANNAL_ERR_NOMEM, "read journals: out of memory");
    struct seen *known = walk->sorted == 0
                             ? NULL
                             : bsearch(&key, walk->seen, walk->sorted, sizeof key, compare_seen);
    if (known != NULL) {
        annal__free(key.session);
        return read_rest(walk, (size_t)(known - walk->seen));
    }
    struct seen *seen = annal__array_add(&walk->seen, &walk->seen_count, sizeof *seen);
    if (seen == NULL) {
        annal__free(key.session);
        return annal__fail(walk->err, ANNAL_ERR_NOMEM, "read journals: out of memory");
    }
    *seen = key;
    return read_rest(walk, walk->seen_count - 1);
}

/* ---- Sweeping ---- */

struct sweep {
    struct walk walk;
    const annal_artifact_sweep_options *options;
    int64_t before_us; /* artifacts that were stored after this time are kept */
    int64_t now_us;
    annal_artifact_sweep_result result;
};

static annal_status remove_item(struct sweep *sweep, const struct item *item)
{
    annal_store *store = sweep->walk.store;
    const struct io *io = annal__store_io(store);
    annal_slice session = annal_slice_of(item->session);
    SCOPED_BUF path = {0};
    annal_artifact_info info;
    char name[ANNAL_SHA256_TEXT_BYTES + sizeof ARTIFACT_SUFFIX];
    annal__sha256_text(item->sha256, name);
    annal_status status = annal__artifact_look(store, session, name, &info, sweep->walk.err);
    if (status < 0 || info.stored_us > sweep->before_us)
        /* the artifact was stored again, so it is kept (rule 3) */
        return status == ANNAL_ERR_NOTFOUND ? ANNAL_OK : status;
    memcpy(name + HEX, ARTIFACT_SUFFIX, sizeof ARTIFACT_SUFFIX);
    status = annal__artifact_path(store, session, name, &path, sweep->walk.err);
    if (status >= 0 && !sweep->options->dry_run && io->unlink(io->arg, path.ptr) < 0)
        status = annal__fail_errno(sweep->walk.err, "cannot remove %s", path.ptr);
    if (status < 0)
        return status;
    sweep->result.removed++;
    sweep->result.removed_bytes += info.stored_bytes;
    if (sweep->options->fn != NULL)
        (void)sweep->options->fn(sweep->options->arg, &info);
    return ANNAL_OK;
}

/* Remove the unfinished files of a session that interrupted stores have left. */
static annal_status remove_unfinished(struct sweep *sweep, annal_slice session)
{
    annal_store *store = sweep->walk.store;
    const struct io *io = annal__store_io(store);
    SCOPED_BUF path = {0};
    struct artifact_names names = {0};
    annal_status status = annal__artifact_path(store, session, "", &path, sweep->walk.err);
    if (status >= 0)
        status = annal__artifact_names(store, path.ptr, &names, sweep->walk.err);
    for (size_t i = 0; i < names.count && status >= 0; i++) {
        struct stat file;
        if (names.list[i][0] != '.')
            continue;
        status = annal__artifact_path(store, session, names.list[i], &path, sweep->walk.err);
        if (status >= 0 && io->stat(io->arg, path.ptr, &file) == 0 &&
            (int64_t)file.st_mtim.tv_sec * 1000000 < sweep->now_us - UNFINISHED_US)
            /* ignore a failure: another process has removed the file */
            (void)io->unlink(io->arg, path.ptr);
    }
    annal__artifact_names_done(&names);
    return status;
}

static annal_status remove_all_unfinished(struct sweep *sweep)
{
    SCOPED_BUF path = {0};
    struct artifact_names sessions = {0};
    annal_status status =
        annal__artifact_path(sweep->walk.store, (annal_slice){NULL, 0}, "", &path, sweep->walk.err);
    if (status >= 0)
        status = annal__artifact_names(sweep->walk.store, path.ptr, &sessions, sweep->walk.err);
    for (size_t i = 0; i < sessions.count && status >= 0; i++)
        if (annal_session_id_check(annal_slice_of(sessions.list[i]), NULL) == ANNAL_OK)
            status = remove_unfinished(sweep, annal_slice_of(sessions.list[i]));
    annal__artifact_names_done(&sessions);
    return status;
}

/* Read all journals twice, the second time under the lock, and then remove artifacts (rule 2). */
static annal_status sweep_all(struct sweep *sweep)
{
    struct walk *walk = &sweep->walk;
    const struct io *io = annal__store_io(walk->store);
    int lock = -1;
    annal_status status = list_items(walk);
    if (status >= 0 && walk->count > 0)
        status = annal_session_each(walk->store, visit, walk, walk->err);
    /* these entries of `seen` are sorted: annal_session_each() visits the sessions in order */
    walk->sorted = walk->seen_count;
    if (status >= 0 && !sweep->options->dry_run)
        status = annal__artifact_lock(walk->store, LOCK_EX, &lock, walk->err);
    if (status >= 0 && walk->count > 0)
        status = annal_session_each(walk->store, visit, walk, walk->err);
    if (status >= 0 && walk->count > 0)
        status = annal__stray_files(walk->store, read_stray, walk, walk->err);
    for (size_t i = 0; i < walk->count && status >= 0; i++) {
        sweep->result.artifacts++;
        if (!walk->items[i].named && walk->items[i].stored_us <= sweep->before_us)
            status = remove_item(sweep, &walk->items[i]);
    }
    if (status >= 0 && !sweep->options->dry_run)
        status = remove_all_unfinished(sweep);
    if (lock >= 0)
        io->close(io->arg, lock);
    return status;
}

annal_status annal_artifact_sweep(annal_store *store, const annal_artifact_sweep_options *options,
                                  annal_artifact_sweep_result *out_result, annal_error *err)
{
    static const annal_artifact_sweep_options defaults = {0};
    const struct clock *clock = annal__store_clock(store);
    struct sweep sweep = {.walk = {.store = store, .err = err},
                          .options = options == NULL ? &defaults : options,
                          .now_us = clock->wall_us(clock->arg)};
    int64_t age_us = sweep.options->older_than_us;
    if (age_us == 0)
        age_us = DAY_US;
    else if (age_us < 0)
        age_us = 0;
    sweep.before_us = sweep.now_us - age_us;
    annal_status status = sweep_all(&sweep);
    walk_done(&sweep.walk);
    if (status >= 0)
        *out_result = sweep.result;
    return status;
}

/* ---- Artifacts of a deleted session ---- */

struct drop {
    annal_store *store;
    annal_error *err;
};

static int drop_one(void *arg, const annal_artifact_info *info)
{
    const struct drop *drop = arg;
    const struct io *io = annal__store_io(drop->store);
    SCOPED_BUF path = {0};
    char name[ANNAL_SHA256_TEXT_BYTES + sizeof ARTIFACT_SUFFIX];
    memcpy(name, info->sha256, HEX);
    memcpy(name + HEX, ARTIFACT_SUFFIX, sizeof ARTIFACT_SUFFIX);
    annal_status status =
        annal__artifact_path(drop->store, annal_slice_of(info->session), name, &path, drop->err);
    if (status >= 0 && io->unlink(io->arg, path.ptr) < 0)
        status = annal__fail_errno(drop->err, "cannot remove %s", path.ptr);
    return status;
}

/* Remove the artifacts of a session, unless the session exists. Under the lock, no process has
 * stored an artifact for this session without having appended its event. */
annal_status annal__artifact_drop(annal_store *store, annal_slice session, annal_error *err)
{
    const struct io *io = annal__store_io(store);
    struct drop drop = {store, err};
    annal_session_info info;
    int lock = -1;
    annal_status status = annal_session_id_check(session, err);
    if (status >= 0)
        status = annal__artifact_lock(store, LOCK_EX, &lock, err);
    if (status < 0)
        return status;
    status = annal_session_info_get(store, session, &info, err);
    if (status == ANNAL_ERR_NOTFOUND)
        status = annal_artifact_each(store, session, drop_one, &drop, err);
    io->close(io->arg, lock);
    return status;
}
