/* SPDX-License-Identifier: Apache-2.0 */
#include "index/backup/backup.h"

#include "journal/base/error.h"
#include "journal/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES    ((size_t)256 << 10)
#define PATH_LIMIT     8192
#define MANIFEST_BYTES ((size_t)1 << 30)
#define LAST           "{\"files\":"
/* size of a buffer for a line of the manifest: a path and two numbers */
#define LINE_BYTES (BACKUP_PATH_MAX + 100)

/* ---- The manifest ---- */

annal_status annal__backup_manifest_begin(struct buf *out, const char *created)
{
    out->limit = MANIFEST_BYTES;
    return annal__buf_printf(out, "{\"annal_backup\":1,\"created\":\"%s\"}\n", created);
}

annal_status annal__backup_manifest_add(struct buf *out, const struct backup_file *file)
{
    return annal__buf_printf(out,
                             "{\"path\":\"%s\",\"bytes\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\"}\n",
                             file->path, file->bytes, file->h);
}

annal_status annal__backup_manifest_end(struct buf *out, uint64_t files, uint64_t bytes)
{
    uint64_t h = annal__hash(out->ptr, out->len, 0);
    return annal__buf_printf(
        out, LAST "%" PRIu64 ",\"bytes\":%" PRIu64 ",\"h\":\"%016" PRIx64 "\"}\n", files, bytes, h);
}

static annal_status read_manifest(struct manifest *manifest, const struct io *io, const char *path,
                                  annal_error *err)
{
    struct stat file;
    annal_status status = ANNAL_OK;
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return annal__fail(
            err, ANNAL_ERR_NOTFOUND,
            "the manifest %s is missing: the directory does not contain a complete backup", path);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open %s", path);
    if (io->fstat(io->arg, fd, &file) < 0) {
        status = annal__fail_errno(err, "cannot examine %s", path);
        goto done;
    }
    manifest->text.limit = MANIFEST_BYTES;
    status = annal__buf_reserve(&manifest->text, (size_t)file.st_size + 1);
    if (status < 0) {
        status = annal__fail(err, status, "cannot read %s", path);
        goto done;
    }
    ssize_t got = annal__io_read_full(io, fd, manifest->text.ptr, (size_t)file.st_size, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    else
        manifest->text.len = (size_t)got;

done:
    io->close(io->arg, fd);
    return status;
}

annal_status annal__backup_manifest_open(struct manifest *manifest, const struct io *io,
                                         const char *directory, annal_error *err)
{
    SCOPED_BUF path = {0};
    *manifest = (struct manifest){0};
    annal_status status = annal__backup_join(&path, directory, BACKUP_MANIFEST, err);
    if (status >= 0)
        status = read_manifest(manifest, io, path.ptr, err);
    if (status < 0)
        return status;
    uint64_t h = 0;
    int length = 0;
    const char *text = annal__buf_cstr(&manifest->text), *last = NULL;
    for (const char *at = text; at != NULL && (at = strstr(at, "\n" LAST)) != NULL; at++)
        last = at + 1;
    if (last == NULL || strncmp(text, "{\"annal_backup\":1,", 18) != 0 ||
        sscanf(last, LAST "%" SCNu64 ",\"bytes\":%" SCNu64 ",\"h\":\"%16" SCNx64 "\"}%n",
               &manifest->files, &manifest->bytes, &h, &length) != 3 ||
        length == 0 || strcmp(last + length, "\n") != 0 ||
        h != annal__hash(text, (size_t)(last - text), 0)) {
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "the content of the manifest %s has changed since the backup", path.ptr);
    }
    manifest->at = strchr(text, '\n') + 1;
    return status;
}

/* Return whether a path in the manifest is below events/, artifacts/, packs/, cursors/ or sources/,
 * and has no hidden parts or "..". */
static bool is_path(const char *path)
{
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return false;
    return (strncmp(path, "events/", 7) == 0 || strncmp(path, "artifacts/", 10) == 0 ||
            strncmp(path, "packs/", 6) == 0 || strncmp(path, "cursors/", 8) == 0 ||
            strncmp(path, "sources/", 8) == 0) &&
           strstr(path, "/.") == NULL && strstr(path, "//") == NULL &&
           path[strlen(path) - 1] != '/';
}

annal_status annal__backup_manifest_next(struct manifest *manifest, struct backup_file *out,
                                         annal_error *err)
{
    int length = 0;
    /* copy of one line of the manifest: sscanf() on the complete text would measure the whole text
     * each time */
    char line[LINE_BYTES] = "";
    if (strncmp(manifest->at, LAST, strlen(LAST)) == 0)
        return ANNAL_END;
    size_t bytes = strcspn(manifest->at, "\n");
    if (bytes < sizeof line)
        memcpy(line, manifest->at, bytes);
    if (sscanf(line, "{\"path\":\"%511[^\"]\",\"bytes\":%" SCNu64 ",\"h\":\"%16" SCNx64 "\"}%n",
               out->path, &out->bytes, &out->h, &length) != 3 ||
        length == 0 || (size_t)length != bytes || manifest->at[length] != '\n' ||
        !is_path(out->path))
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "the manifest of the backup has an invalid line: %.100s", manifest->at);
    manifest->at += length + 1;
    return ANNAL_OK;
}

void annal__backup_manifest_done(struct manifest *manifest)
{
    annal__buf_done(&manifest->text);
}

/* ---- Directories ---- */

annal_status annal__backup_join(struct buf *out, const char *root, const char *path,
                                annal_error *err)
{
    annal__buf_clear(out);
    out->limit = PATH_LIMIT;
    annal_status status = annal__buf_printf(out, "%s%s%s", root, path[0] == '\0' ? "" : "/", path);
    return status < 0 ? annal__fail(err, status, "a path in %.200s is too long", root) : ANNAL_OK;
}

annal_status annal__backup_make_parents(const struct io *io, const char *root, const char *path,
                                        annal_error *err)
{
    SCOPED_BUF full = {0};
    annal_status status = annal__backup_join(&full, root, path, err);
    for (char *slash = status < 0 ? NULL : strchr(full.ptr + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = annal__io_make_dir(io, full.ptr, err);
        *slash = '/';
        if (status < 0)
            break;
    }
    return status;
}

annal_status annal__backup_sync_tree(const struct io *io, const char *target,
                                     struct manifest *manifest, annal_error *err)
{
    SCOPED_BUF path = {0};
    struct backup_file file;
    char last[BACKUP_PATH_MAX] = "";
    annal_status status = ANNAL_OK;
    manifest->at = strchr(manifest->text.ptr, '\n') + 1;
    while (status == ANNAL_OK) {
        status = annal__backup_manifest_next(manifest, &file, err);
        if (status != ANNAL_OK)
            break;
        *strrchr(file.path, '/') = '\0';
        if (strcmp(file.path, last) == 0)
            /* the files of a directory are adjacent in the manifest, so this syncs each directory
             * once */
            continue;
        memcpy(last, file.path, sizeof last);
        status = annal__backup_join(&path, target, file.path, err);
        if (status >= 0)
            status = annal__io_sync_dir(io, path.ptr, err);
    }
    return status < 0 ? status : annal__io_sync_dir(io, target, err);
}

static int count_name(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = true;
    return 1;
}

annal_status annal__backup_must_be_empty(const struct io *io, const char *path, bool *out_there,
                                         annal_error *err)
{
    bool some = false;
    struct stat file;
    *out_there = io->stat(io->arg, path, &file) == 0;
    if (!*out_there)
        return errno == ENOENT ? ANNAL_OK : annal__fail_errno(err, "cannot examine %s", path);
    if (!S_ISDIR(file.st_mode))
        return annal__fail(err, ANNAL_ERR_CONFLICT, "the target %s is not a directory", path);
    if (io->list(io->arg, path, count_name, &some) < 0)
        return annal__fail_errno(err, "cannot list %s", path);
    return some
               ? annal__fail(
                     err, ANNAL_ERR_CONFLICT,
                     "the target directory %s is not empty; name a new or an empty directory", path)
               : ANNAL_OK;
}

/* ---- Copying ---- */

annal_status annal__backup_copying_init(struct copying *copying, const struct io *io,
                                        const annal_backup_options *options, annal_error *err)
{
    static const annal_backup_options defaults = {0};
    *copying = (struct copying){.io = io, .options = options == NULL ? &defaults : options};
    annal_status status = annal__buf_reserve(&copying->piece, PIECE_BYTES);
    return status < 0 ? annal__fail(err, status, "copy a store: out of memory") : ANNAL_OK;
}

void annal__backup_copying_done(struct copying *copying)
{
    annal__buf_done(&copying->piece);
}

static annal_status copy_pieces(struct copying *copying, int in, int out, const char *from,
                                const char *to, uint64_t bytes, struct hash_stream *hash,
                                uint64_t *done, annal_error *err)
{
    const struct io *io = copying->io;
    const annal_backup_options *options = copying->options;
    while (*done < bytes) {
        size_t want = bytes - *done < PIECE_BYTES ? (size_t)(bytes - *done) : PIECE_BYTES;
        ssize_t got = annal__io_read_full(io, in, copying->piece.ptr, want, *done);
        if (got < 0)
            return annal__fail_errno(err, "cannot read %s", from);
        if (got == 0)
            break;
        annal__hash_add(hash, copying->piece.ptr, (size_t)got);
        if (to != NULL && annal__io_write_all(io, out, copying->piece.ptr, (size_t)got, *done) < 0)
            return annal__fail_errno(err, "cannot write %s", to);
        *done += (uint64_t)got;
        copying->bytes_done += (uint64_t)got;
        if (options->progress != NULL &&
            options->progress(options->arg, copying->bytes_done, copying->bytes_total) != 0)
            return ANNAL_END;
    }
    if (to != NULL && io->fsync(io->arg, out) < 0)
        return annal__fail_errno(err, "cannot sync %s", to);
    return ANNAL_OK;
}

annal_status annal__backup_copy_file(struct copying *copying, const char *from, const char *to,
                                     uint64_t bytes, struct backup_file *out, annal_error *err)
{
    const struct io *io = copying->io;
    struct hash_stream *hash = NULL;
    uint64_t done = 0;
    int target = -1;
    annal_status status = ANNAL_OK;
    int source = io->open(io->arg, from, O_RDONLY, 0);
    if (source < 0 && (errno == ENOENT || errno == ENOTDIR))
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "file %s does not exist", from);
    if (source < 0)
        return annal__fail_errno(err, "cannot open %s", from);
    if (to != NULL)
        target = io->open(io->arg, to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to != NULL && target < 0) {
        status = annal__fail_errno(err, "cannot create %s", to);
        goto done;
    }
    hash = annal__hash_begin(0);
    if (hash == NULL) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "copy %s: out of memory", from);
        goto done;
    }
    status = copy_pieces(copying, source, target, from, to, bytes, hash, &done, err);
    uint64_t h = annal__hash_end(hash);
    if (status == ANNAL_OK) {
        out->bytes = done;
        out->h = h;
    }

done:
    if (target >= 0)
        io->close(io->arg, target);
    io->close(io->arg, source);
    return status;
}
