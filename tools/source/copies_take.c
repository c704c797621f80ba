/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/must.h"
#include "tools/source/copies.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/base/json.h"
#include "journal/base/slice.h"
#include "journal/sys/seam.h"
#include "tools/source/copies_file.h"
#include "tools/source/copies_match.h"
#include "tools/source/copies_read.h"
#include "tools/source/copies_zstd.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIES 20
/* journal id of a session that does not exist any more; no real id is equal */
#define GONE     "-"
#define NEW_NAME "new" /* name of the file of a generation while it is written */

struct taking {
    annal_store *store;
    const struct copies_log *log;
    int directory, fd; /* descriptors of STORE/sources, and of the log or its text */
    struct stat st;    /* status of the log before it was read; st_size: of fd */
    char name[SOURCES_NAME_BYTES];
    struct buf block, frame, info;
    struct copies_zstd *zstd;
    bool quiet; /* whether the log did not change while it was read */
};

static void name_of(const char *path, const char *session, char out[SOURCES_NAME_BYTES])
{
    snprintf(out, SOURCES_NAME_BYTES, "%s.%016" PRIx64, session,
             annal__hash(path, strlen(path), 0));
}

/* ---- The log ---- */

static bool is_unchanged(const struct taking *taking)
{
    struct stat st;
    if (taking->log->text != NULL)
        return true;
    return fstat(taking->fd, &st) == 0 && st.st_size == taking->st.st_size &&
           copies_file_ns(st.st_mtim) == copies_file_ns(taking->st.st_mtim) &&
           copies_file_ns(st.st_ctim) == copies_file_ns(taking->st.st_ctim);
}

/* ---- Records ---- */

static annal_status append_bytes(struct taking *taking, int fd, struct copies_file *to,
                                 uint64_t until, annal_error *err)
{
    annal_status status = ANNAL_OK;
    while (status >= 0 && to->bytes < until) {
        size_t now = until - to->bytes < COPIES_PIECE ? (size_t)(until - to->bytes) : COPIES_PIECE;
        size_t before = to->bytes < COPIES_WINDOW ? (size_t)to->bytes : COPIES_WINDOW;
        annal__buf_clear(&taking->block);
        must_reserve(&taking->block, before + now);
        const annal_slice window = {taking->block.ptr, before};
        const annal_slice piece = {taking->block.ptr + before, now};
        status =
            copies_file_get(taking->fd, taking->block.ptr, before + now, to->bytes - before, err);
        if (status >= 0)
            status = copies_zstd_pack(taking->zstd, window, piece, &taking->frame, err);
        if (status >= 0)
            status = copies_file_append(fd, to, COPIES_BYTES, taking->frame.ptr, taking->frame.len,
                                        now, annal__hash(piece.ptr, now, to->chain), err);
    }
    return status;
}

static void write_info(struct taking *taking, uint64_t generation, uint64_t depth)
{
    const struct copies_log *log = taking->log;
    struct buf *info = &taking->info;
    annal__buf_clear(info);
    must_json(info, "{\"path\":?,\"kind\":\"#\",\"generation\":#,\"depth\":#,\"sessions\":[",
              annal_slice_of(log->path), annal_slice_of(log->kind), JSON_U64(generation),
              JSON_U64(depth));
    for (size_t i = 0;
         i < log->session_count && info->len < COPIES_INFO_MAX - ANNAL_SESSION_ID_BYTES_MAX - 8;
         i++)
        must_printf(info, "%s\"%s\"", i > 0 ? "," : "", log->sessions[i].id);
    if (log->text != NULL)
        must_printf(info, "],\"form\":\"%s\",\"pieces\":\"%016" PRIx64 "\"}", log->text->form,
                    log->text->hash);
    else
        must_append_text(info, "]}");
}

static annal_status append_info(struct taking *taking, int fd, struct copies_file *to,
                                annal_error *err)
{
    return copies_file_append(fd, to, COPIES_INFO, taking->info.ptr, taking->info.len, 0,
                              annal__hash(taking->info.ptr, taking->info.len, to->chain), err);
}

/* Give the copy the modification time of the log. This is only a hint for copies_are_current(): if
 * it fails, the log is read again. */
static void set_time(const struct taking *taking, int fd)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, taking->st.st_mtim};
    (void)futimens(fd, times);
}

/* Append a mark, and sync if asked: rule (4) of copies.h. ANNAL_END: the log was written in the
 * meantime, and the mark is left out. */
static annal_status append_mark(struct taking *taking, int fd, struct copies_file *to,
                                annal_error *err)
{
    const struct clock *clock = annal__store_clock(taking->store);
    struct copies_mark mark = {.mtime_ns = copies_file_ns(taking->st.st_mtim),
                               .ctime_ns = copies_file_ns(taking->st.st_ctim),
                               .inode = taking->st.st_ino,
                               .copied_us = clock->wall_us(clock->arg),
                               .mode = (uint32_t)taking->st.st_mode & 07777};
    memcpy(mark.boot, annal__store_boot(taking->store), sizeof mark.boot);
    taking->quiet = is_unchanged(taking);
    if (!taking->quiet)
        return ANNAL_END;
    annal_status status = copies_file_append_mark(fd, to, &mark, err);
    if (status >= 0)
        set_time(taking, fd);
    if (status >= 0 && taking->log->sync && fdatasync(fd) < 0)
        status = annal__fail_errno(err, "sync the copy sources/%s of the log", taking->name);
    return status;
}

/* Fail if `more` bytes would take space of the disk that appends keep free. */
static annal_status check_space(const struct taking *taking, uint64_t more, annal_error *err)
{
    const struct io *io = annal__store_io(taking->store);
    struct io_space space;
    if (io->space(io->arg, taking->directory, &space) < 0)
        return annal__fail_errno(err, "query the free space of the disk of the store");
    errno = ENOSPC;
    return space.free_bytes >= annal__store_keep_free(taking->store) + more
               ? ANNAL_OK
               : annal__fail_errno(
                     err, "the store keeps %" PRIu64 " bytes of the disk free (--keep-free)",
                     annal__store_keep_free(taking->store));
}

/* ---- Extending the newest generation ---- */

static bool is_marked(const struct taking *taking, const struct copies_file *file)
{
    bool same = annal__slice_same(annal__buf_slice(&file->info), annal__buf_slice(&taking->info));
    if (!same || taking->log->text != NULL)
        return same;
    return file->marked_bytes == (uint64_t)taking->st.st_size &&
           file->mark.mtime_ns == copies_file_ns(taking->st.st_mtim) &&
           file->mark.ctime_ns == copies_file_ns(taking->st.st_ctim) &&
           file->mark.inode == taking->st.st_ino &&
           file->mark.mode == ((uint32_t)taking->st.st_mode & 07777);
}

/* Continue the hash *inout_chain with len bytes of the log at offset at. */
static annal_status hash_log(struct taking *taking, uint64_t at, uint64_t len,
                             uint64_t *inout_chain, annal_error *err)
{
    struct hash_stream *hash = annal__hash_begin(*inout_chain);
    annal__buf_clear(&taking->block);
    annal_status status = ANNAL_OK;
    must_true(hash != NULL);
    must_reserve(&taking->block, COPIES_PIECE);
    while (status >= 0 && len > 0) {
        size_t now = len < COPIES_PIECE ? (size_t)len : COPIES_PIECE;
        status = copies_file_get(taking->fd, taking->block.ptr, now, at, err);
        if (status >= 0)
            annal__hash_add(hash, taking->block.ptr, now);
        at += now;
        len -= now;
    }
    *inout_chain = annal__hash_end(hash);
    return status;
}

/* Find whether the log begins with the bytes that its copy contains up to the last mark. */
static annal_status begins_alike(struct taking *taking, const struct copies_file *file,
                                 bool *out_alike, annal_error *err)
{
    uint64_t at = 0, chain = 0;
    annal_status status = ANNAL_OK;
    bool alike = (uint64_t)taking->st.st_size >= file->marked_bytes;
    for (size_t i = 0; i < file->marked_count && alike && status >= 0; i++) {
        const struct copies_record *record = &file->records[i];
        if (record->bytes > 0) {
            status = hash_log(taking, at, record->bytes, &chain, err);
            alike = chain == record->chain;
        }
        at += record->bytes;
        chain = record->chain;
    }
    *out_alike = alike;
    return status;
}

static annal_status extend(struct taking *taking, int fd, struct copies_file *file,
                           annal_error *err)
{
    annal_status status = ANNAL_OK;
    copies_file_cut(file);
    if (file->size > file->end && ftruncate(fd, (off_t)file->end) < 0)
        return annal__fail_errno(err, "truncate the copy sources/%s of the log", taking->name);
    status = check_space(taking, (uint64_t)taking->st.st_size - file->bytes, err);
    if (status >= 0 &&
        !annal__slice_same(annal__buf_slice(&file->info), annal__buf_slice(&taking->info)))
        status = append_info(taking, fd, file, err);
    if (status >= 0)
        status = append_bytes(taking, fd, file, (uint64_t)taking->st.st_size, err);
    return status < 0 ? status : append_mark(taking, fd, file, err);
}

/* ---- Another generation ---- */

struct before {
    struct copies_file file; /* generation is 0 if no previous generation exists */
    /* content of the previous generation; empty if the new one must not refer to it */
    annal_slice bytes;
};

/* Map the content of the previous generation, unless a generation that refers to it would need too
 * many generations, or too many bytes, to be read: rule (6) of copies.h. */
static void map_before(struct taking *taking, struct before *before)
{
    const struct copies_file *file = &before->file;
    annal_error ignored = {0};
    if (file->marked_bytes == 0 || file->depth + 1 > COPIES_DEEP ||
        file->marked_bytes > COPIES_DEEP_BYTES / (file->depth + 2))
        return;
    int fd = copies_read_unpack(taking->directory, taking->name, COPIES_DEEP, &ignored);
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)file->marked_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED)
        before->bytes = (annal_slice){map, (size_t)file->marked_bytes};
    if (fd >= 0)
        close(fd);
}

static void before_done(struct before *before)
{
    if (before->bytes.len > 0)
        munmap((void *)(uintptr_t)before->bytes.ptr, before->bytes.len);
    copies_file_done(&before->file);
}

static annal_status append_pieces(struct taking *taking, int fd, struct copies_file *to,
                                  annal_slice before, const struct copies_pieces *pieces,
                                  annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < pieces->count && status >= 0; i++) {
        const struct copies_piece *piece = &pieces->all[i];
        uint64_t from = htole64(piece->from);
        if (piece->is_same)
            status = copies_file_append(
                fd, to, COPIES_SAME, &from, sizeof from, piece->bytes,
                annal__hash(before.ptr + piece->from, (size_t)piece->bytes, to->chain), err);
        else
            status = append_bytes(taking, fd, to, to->bytes + piece->bytes, err);
    }
    return status;
}

static annal_status write_generation(struct taking *taking, int fd, uint64_t generation,
                                     const struct before *before, annal_error *err)
{
    struct copies_file to = {0};
    struct copies_pieces pieces = {0};
    bool shares = false;
    annal_status status = check_space(taking, (uint64_t)taking->st.st_size, err);
    if (status >= 0 && before->bytes.len > 0)
        status =
            copies_match(before->bytes, taking->fd, (uint64_t)taking->st.st_size, &pieces, err);
    for (size_t i = 0; i < pieces.count; i++)
        shares = shares || pieces.all[i].is_same;
    write_info(taking, generation, shares ? before->file.depth + 1 : 0);
    if (status >= 0)
        status = append_info(taking, fd, &to, err);
    if (status >= 0)
        status = append_pieces(taking, fd, &to, before->bytes, &pieces, err);
    if (status >= 0)
        status = append_bytes(taking, fd, &to, (uint64_t)taking->st.st_size, err);
    if (status >= 0)
        status = append_mark(taking, fd, &to, err);
    copies_match_done(&pieces);
    return status;
}

/* Give the newest generation its numbered name, too, before the new file takes the name without a
 * number: rule (2) of copies.h. A process that is killed in between leaves both names. */
static annal_status keep_old(struct taking *taking, uint64_t old, annal_error *err)
{
    char former[SOURCES_NAME_BYTES];
    struct stat ours, theirs;
    copies_read_name(taking->name, old, former);
    if (linkat(taking->directory, taking->name, taking->directory, former, 0) == 0 ||
        (errno == EEXIST && fstatat(taking->directory, taking->name, &ours, 0) == 0 &&
         fstatat(taking->directory, former, &theirs, 0) == 0 && ours.st_ino == theirs.st_ino))
        return ANNAL_OK;
    return annal__fail_errno(err, "rename the copy sources/%s of the log to %s", taking->name,
                             former);
}

static annal_status put_in_place(struct taking *taking, uint64_t old, annal_error *err)
{
    annal_status status = old > 0 ? keep_old(taking, old, err) : ANNAL_OK;
    if (status < 0)
        return status;
    if (renameat(taking->directory, NEW_NAME, taking->directory, taking->name) < 0)
        return annal__fail_errno(err, "rename sources/" NEW_NAME " to %s", taking->name);
    if (taking->log->sync && fsync(taking->directory) < 0)
        return annal__fail_errno(err, "sync the directory sources/ of the store");
    return ANNAL_OK;
}

/* Write a new generation, and give it the name of the newest. old: the number under which the file
 * that has this name now is kept; 0: it is not kept. */
static annal_status begin(struct taking *taking, uint64_t old, uint64_t generation,
                          const struct before *before, annal_error *err)
{
    const struct io *io = annal__store_io(taking->store);
    SCOPED_BUF path = {0};
    annal_status status = ANNAL_OK;
    must_printf(&path, "%s/sources/" NEW_NAME, annal_store_path(taking->store));
    int fd = io->open(io->arg, path.ptr, O_RDWR | O_CREAT, 0660);
    if (fd < 0 || ftruncate(fd, 0) < 0)
        status = annal__fail_errno(err, "create the file %s", path.ptr);
    else if ((status = write_generation(taking, fd, generation, before, err)) == ANNAL_OK)
        status = put_in_place(taking, old, err);
    if (fd >= 0)
        close(fd);
    if (status != ANNAL_OK)
        (void)unlinkat(taking->directory, NEW_NAME, 0);
    return status;
}

/* ---- Names ---- */

/* Return the highest number of an older generation of the log; 0 if none exists. */
static uint64_t find_highest(const struct taking *taking, const char *name)
{
    char former[SOURCES_NAME_BYTES];
    struct stat st;
    for (uint64_t generation = 1;; generation++) {
        copies_read_name(name, generation, former);
        if (fstatat(taking->directory, former, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return generation - 1;
    }
}

/* Return whether a file is only a line that names the first session of its log: rule (2) of
 * sources.h. */
static bool is_other(int fd)
{
    char bytes[sizeof SOURCES_OTHER - 1];
    return fd >= 0 && copies_file_get(fd, bytes, sizeof bytes, 0, NULL) >= 0 &&
           memcmp(bytes, SOURCES_OTHER, sizeof bytes) == 0;
}

/*
 * Write the file OTHER.LOG of another session of the log: rule (2) of sources.h. If this name
 * belongs to a copy, because the session was the log's first one then, the copy is kept as an older
 * generation.
 */
static annal_status write_other(struct taking *taking, const char *session, annal_error *err)
{
    char name[SOURCES_NAME_BYTES], former[SOURCES_NAME_BYTES], line[SOURCES_NAME_BYTES];
    name_of(taking->log->path, session, name);
    int len = snprintf(line, sizeof line, SOURCES_OTHER "%s\n", taking->log->sessions[0].id);
    int fd = openat(taking->directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !is_other(fd)) {
        close(fd);
        copies_read_name(name, find_highest(taking, name) + 1, former);
        if (renameat(taking->directory, name, taking->directory, former) < 0)
            return annal__fail_errno(err, "rename the old copy sources/%s of the log", name);
        fd = -1;
    }
    if (fd < 0)
        fd = openat(taking->directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0660);
    if (fd < 0)
        return annal__fail_errno(err, "create the file sources/%s", name);
    annal_status status = copies_file_put(fd, line, (size_t)len, 0, err);
    if (status >= 0 && (ftruncate(fd, len) < 0 || (taking->log->sync && fsync(fd) < 0)))
        status = annal__fail_errno(err, "write the file sources/%s", name);
    close(fd);
    return status;
}

/* Write the files OTHER.LOG of all sessions after the first, before the copy, so that each of these
 * sessions always leads to the copy. */
static annal_status write_others(struct taking *taking, const struct copies_file *file,
                                 annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (taking->log->session_count < 2)
        return status;
    write_info(taking, file->generation, file->depth);
    if (file->generation > 0 &&
        annal__slice_same(annal__buf_slice(&file->info), annal__buf_slice(&taking->info)))
        return status;
    for (size_t i = 1; i < taking->log->session_count && status >= 0; i++)
        status = write_other(taking, taking->log->sessions[i].id, err);
    return status;
}

/* ---- All of it ---- */

/* Return whether the copy can be trusted: its mark is of this boot, or reading it proves it (rule
 * (5) of copies.h). */
static bool is_sound(const struct taking *taking, const struct copies_file *file)
{
    annal_error ignored = {0};
    return memcmp(file->mark.boot, annal__store_boot(taking->store), COPIES_BOOT_BYTES) == 0 ||
           copies_read_file(taking->directory, taking->name, COPIES_DEEP, NULL, NULL, &ignored) ==
               ANNAL_OK;
}

/* Read the text of a log that is not a file, copies_text.h (2). */
static annal_status choose_text(struct taking *taking, bool *inout_sound, annal_error *err)
{
    struct copies_text *text = taking->log->text;
    annal_error ignored = {0};
    annal_status status = ANNAL_OK;
    int before = *inout_sound
                     ? copies_read_unpack(taking->directory, taking->name, COPIES_DEEP, &ignored)
                     : -1;
    bool grown = false;
    *inout_sound = before >= 0;
    if (before >= 0) {
        status = copies_text_compare(text, before, &grown, err);
        close(before);
    }
    taking->fd = fileno(grown ? text->grown : text->lines);
    taking->st.st_size = (off_t)(grown ? text->grown_bytes : text->bytes);
    return status;
}

static annal_status begin_after(struct taking *taking, int fd, struct before *before, bool sound,
                                annal_error *err)
{
    if (sound) {
        map_before(taking, before);
        return begin(taking, before->file.generation, before->file.generation + 1, before, err);
    }
    /* the file, if it exists, is damaged: keep it as an older generation, with the next number */
    uint64_t highest = find_highest(taking, taking->name);
    uint64_t old = fd < 0 || is_other(fd) ? 0 : highest + 1;
    return begin(taking, old, highest + 1 + (old > 0), before, err);
}

static annal_status take(struct taking *taking, annal_error *err)
{
    struct before before = {0};
    struct copies_file *file = &before.file;
    bool alike = false;
    int fd = openat(taking->directory, taking->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return annal__fail_errno(err, "open the copy sources/%s of the log", taking->name);
    annal_status status = fd < 0 ? ANNAL_END : copies_file_read(fd, file, err);
    bool sound = status == ANNAL_OK && file->marked_count > 0 && is_sound(taking, file);
    if (!sound && status >= 0) {
        copies_file_done(file);
        status = ANNAL_OK;
    }
    if (status >= 0)
        status = write_others(taking, file, err);
    write_info(taking, file->generation, file->depth);
    if (status >= 0 && sound && is_marked(taking, file)) {
        set_time(taking, fd);
        status = ANNAL_END;
    } else if (status >= 0) {
        if (taking->log->text != NULL)
            status = choose_text(taking, &sound, err);
        if (status >= 0 && sound)
            status = begins_alike(taking, file, &alike, err);
        if (status >= 0)
            status = alike ? extend(taking, fd, file, err)
                           : begin_after(taking, fd, &before, sound, err);
    }
    if (fd >= 0)
        close(fd);
    before_done(&before);
    return status;
}

/* Return ANNAL_OK if the session still has the journal of which the log is a copy, ANNAL_END if it
 * was deleted. If the id of the journal is not set, set it. */
static annal_status check_session(annal_store *store, const struct copies_session *session,
                                  annal_error *err)
{
    annal_session_info info;
    annal_status status = annal_session_info_get(store, annal_slice_of(session->id), &info, err);
    if (status == ANNAL_ERR_NOTFOUND) {
        memcpy(session->journal, GONE, sizeof GONE);
        return ANNAL_END;
    }
    if (status >= 0 && session->journal[0] == '\0')
        memcpy(session->journal, info.file, sizeof info.file);
    return status < 0 || strcmp(session->journal, info.file) == 0 ||
                   strcmp(session->journal, info.replaces) == 0
               ? status
               : ANNAL_END;
}

/* Check all sessions of the log. ANNAL_END: one of them was deleted. */
static annal_status check_sessions(const struct taking *taking, annal_error *err)
{
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < taking->log->session_count && status == ANNAL_OK; i++)
        status = check_session(taking->store, &taking->log->sessions[i], err);
    return status;
}

static annal_status take_locked(struct taking *taking, annal_error *err)
{
    annal_error why = {0};
    annal_status status = annal__sources_open(taking->store, LOCK_EX, &taking->directory, err);
    if (status == ANNAL_OK)
        status = check_sessions(taking, err);
    if (status == ANNAL_OK && taking->log->text == NULL &&
        (fstat(taking->fd, &taking->st) < 0 || !copies_file_is_quiet(&taking->st))) {
        taking->quiet = false;
        status = ANNAL_END;
    } else if (status == ANNAL_OK) {
        status = take(taking, &why);
        /* the log changed while it was read: report that, not the failure */
        if (status < 0 && !is_unchanged(taking)) {
            taking->quiet = false;
            status = ANNAL_END;
        } else if (status < 0 && err != NULL) {
            *err = why;
        }
    }
    if (taking->directory >= 0)
        close(taking->directory);
    taking->directory = -1;
    return status;
}

static annal_status take_quiet(struct taking *taking, annal_error *err)
{
    const struct timespec pause = {.tv_nsec = COPIES_QUIET_NS + COPIES_QUIET_NS / 4};
    annal_status status = ANNAL_END;
    for (int i = 0; i < TRIES; i++) {
        taking->quiet = true;
        status = take_locked(taking, err);
        if (taking->quiet || !taking->log->waits)
            break;
        nanosleep(&pause, NULL);
    }
    return status;
}

annal_status copies_take(annal_store *store, const struct copies_log *log, bool *out_settled,
                         annal_error *err)
{
    struct taking taking = {.store = store,
                            .log = log,
                            .directory = -1,
                            .fd = -1,
                            .quiet = true,
                            .zstd = log->zstd != NULL ? *log->zstd : NULL};
    annal_status status = ANNAL_END;
    if (taking.zstd == NULL)
        taking.zstd = copies_zstd_new();
    must_true(taking.zstd != NULL);
    name_of(log->path, log->sessions[0].id, taking.name);
    int fd = -1;
    if (log->text == NULL) {
        fd = taking.fd = open(log->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } else {
        taking.fd = fileno(log->text->lines);
        taking.st = log->text->st;
    }
    if (taking.fd < 0 || (log->text == NULL && fstat(taking.fd, &taking.st) < 0))
        status = annal__fail_errno(err, "open the log");
    else if (log->text != NULL || S_ISREG(taking.st.st_mode))
        status = take_quiet(&taking, err);
    if (status < 0)
        annal__error_context(err, "copy '%s'", log->path);
    if (fd >= 0)
        close(fd);
    if (log->zstd != NULL)
        *log->zstd = taking.zstd;
    else
        copies_zstd_free(taking.zstd);
    annal__buf_done(&taking.block);
    annal__buf_done(&taking.frame);
    annal__buf_done(&taking.info);
    *out_settled = taking.quiet;
    return status;
}

annal_status copies_sync(annal_store *store, annal_error *err)
{
    int directory = -1;
    annal_status status = annal__sources_open(store, LOCK_SH, &directory, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status == ANNAL_OK && syncfs(directory) < 0)
        status = annal__fail_errno(err, "sync the copies of logs in sources/");
    if (directory >= 0)
        close(directory);
    return status;
}

bool copies_are_current(annal_store *store, const char *path, const char *session, int64_t mtime_ns)
{
    char name[SOURCES_NAME_BYTES];
    SCOPED_BUF place = {0};
    struct stat st;
    const struct io *io = annal__store_io(store);
    name_of(path, session, name);
    return annal__buf_printf(&place, "%s/sources/%s", annal_store_path(store), name) >= 0 &&
           annal__buf_cstr(&place) != NULL && io->stat(io->arg, place.ptr, &st) == 0 &&
           copies_file_ns(st.st_mtim) == mtime_ns;
}
