/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/tar.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/sha256.h"
#include "tools/cli/must.h"
#include "tools/cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <loaded/archive.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "ANNALBND"

/* A frame that decompressors skip begins with this magic number and the length of its content, both
 * little-endian. */
#define SEAL_HEAD  "\x5e\x2a\x4d\x18\x28\x00\x00\x00"
#define SEAL_BYTES ((uint64_t)48)

enum { PIECE_BYTES = 128 << 10 };

/* ---- Writing ---- */

struct tar_writer {
    struct archive *archive;
    struct sha256 *sha256; /* hash of all bytes written so far */
    int write_errno;       /* errno of the write that failed; 0 before a failure */
};

/* Fail because an archive could not be written. Such a failure is always one of storage, because
 * the input is correct. */
static annal_status fail_write(const struct tar_writer *writer, annal_error *err)
{
    int why = archive_errno(writer->archive);
    errno = writer->write_errno != 0 ? writer->write_errno : why > 0 ? why : EIO;
    return annal__fail_errno(err, "cannot write a bundle");
}

/*
 * Write bytes to stdout; an archive_write_callback. A failure is noted in the writer, not reported
 * to libarchive, which would then leak memory.
 */
static la_ssize_t put(struct archive *archive, void *arg, const void *bytes, size_t len)
{
    struct tar_writer *writer = arg;
    (void)archive;
    if (writer->write_errno != 0)
        return (la_ssize_t)len;
    annal__sha256_add(writer->sha256, bytes, len);
    errno = 0;
    if (fwrite(bytes, 1, len, stdout) != len)
        writer->write_errno = errno != 0 ? errno : EIO;
    return (la_ssize_t)len;
}

annal_status tar_writer_new(struct tar_writer **out_writer, annal_error *err)
{
    struct archive *archive = NULL;
    annal_status status = library_load(&library_archive, err);
    if (status < 0)
        return status;
    struct tar_writer *writer = must_zalloc(sizeof *writer);
    writer->sha256 = annal__sha256_begin();
    writer->archive = archive = archive_write_new();
    must_true(writer->sha256 != NULL && archive != NULL);
    if (archive_write_add_filter_zstd(archive) != ARCHIVE_OK ||
        archive_write_set_format_pax_restricted(archive) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
        archive_write_open(archive, writer, NULL, put, NULL) != ARCHIVE_OK) {
        status = fail_write(writer, err);
        tar_writer_free(writer);
        return status;
    }
    *out_writer = writer;
    return ANNAL_OK;
}

annal_status tar_write_file(struct tar_writer *writer, const char *name, uint64_t bytes,
                            annal_error *err)
{
    struct archive_entry *entry = archive_entry_new();
    must_true(entry != NULL);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0600);
    archive_entry_set_size(entry, (la_int64_t)bytes);
    archive_entry_set_mtime(entry, 0, 0);
    int result = archive_write_header(writer->archive, entry);
    archive_entry_free(entry);
    return result == ARCHIVE_OK && writer->write_errno == 0 ? ANNAL_OK : fail_write(writer, err);
}

annal_status tar_write(struct tar_writer *writer, annal_slice piece, annal_error *err)
{
    la_ssize_t written = archive_write_data(writer->archive, piece.ptr, piece.len);
    if (written >= 0 && (size_t)written == piece.len && writer->write_errno == 0)
        return ANNAL_OK;
    return fail_write(writer, err);
}

annal_status tar_write_end(struct tar_writer *writer, annal_error *err)
{
    uint8_t hash[SHA256_BYTES];
    if (archive_write_close(writer->archive) != ARCHIVE_OK || writer->write_errno != 0)
        return fail_write(writer, err);
    annal__sha256_end(writer->sha256, hash);
    writer->sha256 = NULL;
    fwrite(SEAL_HEAD, 1, 8, stdout);
    fwrite(MAGIC, 1, 8, stdout);
    fwrite(hash, 1, sizeof hash, stdout);
    return out_flush() ? ANNAL_OK : annal__fail_errno(err, "cannot write a bundle");
}

void tar_writer_free(struct tar_writer *writer)
{
    uint8_t hash[SHA256_BYTES];
    if (writer == NULL)
        return;
    if (writer->write_errno == 0)
        /* make further writes fail: otherwise archive_write_free() would complete the archive */
        writer->write_errno = ECANCELED;
    if (writer->archive != NULL)
        archive_write_free(writer->archive);
    if (writer->sha256 != NULL)
        annal__sha256_end(writer->sha256, hash);
    annal__free(writer);
}

/* ---- Reading ---- */

struct tar_reader {
    struct archive *archive;
    const char *name;
    int fd;
    uint64_t left;  /* number of bytes before the seal that are not read yet */
    int read_errno; /* errno of a failed read(2), or 0 */
    char piece[PIECE_BYTES];
};

/* Read the next bytes of the file, up to the seal; an archive_read_callback. */
static la_ssize_t get(struct archive *archive, void *arg, const void **out_bytes)
{
    struct tar_reader *reader = arg;
    size_t most = reader->left < PIECE_BYTES ? (size_t)reader->left : PIECE_BYTES;
    ssize_t got = most == 0 ? 0 : read(reader->fd, reader->piece, most);
    if (got < 0) {
        reader->read_errno = errno;
        archive_set_error(archive, errno, "%s", strerror(errno));
        return -1;
    }
    reader->left -= (uint64_t)got;
    *out_bytes = reader->piece;
    return got;
}

/* Fail because the archive cannot be read. If the disk cannot be read, the message says so;
 * otherwise the bundle is damaged. */
static annal_status fail_read(const struct tar_reader *reader, annal_error *err)
{
    const char *why = archive_error_string(reader->archive);
    errno = reader->read_errno;
    if (errno != 0)
        return annal__fail_errno(err, "cannot read the bundle '%s'", reader->name);
    return annal__fail(err, ANNAL_ERR_CORRUPT, "cannot read the bundle '%s': %s", reader->name,
                       why != NULL ? why : "unknown error");
}

static annal_status refuse(const struct tar_reader *reader, const char *why, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT, "the file '%s' is not a complete bundle: %s",
                       reader->name, why);
}

static annal_status hash_file(struct tar_reader *reader, uint64_t bytes, uint8_t hash[SHA256_BYTES],
                              annal_error *err)
{
    struct sha256 *sha256 = annal__sha256_begin();
    annal_status status = ANNAL_OK;
    must_true(sha256 != NULL);
    while (bytes > 0 && status == ANNAL_OK) {
        size_t most = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        ssize_t got = read(reader->fd, reader->piece, most);
        if (got < 0)
            status = annal__fail_errno(err, "cannot read the bundle '%s'", reader->name);
        else if (got == 0)
            status = refuse(reader, "the file became shorter while annal read the file", err);
        else
            annal__sha256_add(sha256, reader->piece, (size_t)got);
        bytes -= got > 0 ? (uint64_t)got : 0;
    }
    annal__sha256_end(sha256, hash);
    return status;
}

static annal_status check_seal(struct tar_reader *reader, annal_error *err)
{
    struct stat file;
    uint8_t hash[SHA256_BYTES];
    char seal[SEAL_BYTES];
    if (fstat(reader->fd, &file) < 0)
        return annal__fail_errno(err, "cannot read the bundle '%s'", reader->name);
    if (!S_ISREG(file.st_mode))
        return annal__fail(err, ANNAL_ERR_INVALID, "bundle '%s' is not a regular file",
                           reader->name);
    uint64_t bytes = (uint64_t)file.st_size;
    if (bytes <= SEAL_BYTES)
        return refuse(reader, "the file is too short", err);
    reader->left = bytes - SEAL_BYTES;
    if (pread(reader->fd, seal, SEAL_BYTES, (off_t)reader->left) != (ssize_t)SEAL_BYTES)
        return annal__fail_errno(err, "cannot read the bundle '%s'", reader->name);
    if (memcmp(seal, SEAL_HEAD MAGIC, 16) != 0)
        return refuse(reader, "the file does not end with a seal", err);
    annal_status status = hash_file(reader, reader->left, hash, err);
    if (status == ANNAL_OK && memcmp(seal + 16, hash, sizeof hash) != 0)
        status = refuse(reader, "the bytes were changed after the bundle was sealed", err);
    if (status == ANNAL_OK && lseek(reader->fd, 0, SEEK_SET) < 0)
        status = annal__fail_errno(err, "cannot read the bundle '%s'", reader->name);
    return status;
}

annal_status tar_reader_open(const char *path, const char *name, struct tar_reader **out_reader,
                             annal_error *err)
{
    annal_status status = library_load(&library_archive, err);
    if (status < 0)
        return status;
    struct tar_reader *reader = must_zalloc(sizeof *reader);
    reader->name = name;
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0)
        status =
            annal__fail(err, ANNAL_ERR_NOTFOUND, "open the bundle '%s': %s", name, strerror(errno));
    if (status == ANNAL_OK)
        status = check_seal(reader, err);
    must_true((reader->archive = archive_read_new()) != NULL);
    if (status == ANNAL_OK &&
        (archive_read_support_filter_zstd(reader->archive) != ARCHIVE_OK ||
         archive_read_support_format_tar(reader->archive) != ARCHIVE_OK ||
         archive_read_open(reader->archive, reader, NULL, get, NULL) != ARCHIVE_OK))
        status = fail_read(reader, err);
    if (status == ANNAL_OK)
        *out_reader = reader;
    else
        tar_reader_free(reader);
    return status;
}

annal_status tar_next(struct tar_reader *reader, const char **out_name, uint64_t *out_bytes,
                      annal_error *err)
{
    struct archive_entry *entry = NULL;
    int result = archive_read_next_header(reader->archive, &entry);
    if (result == ARCHIVE_EOF)
        return ANNAL_END;
    if (result != ARCHIVE_OK)
        return fail_read(reader, err);
    const char *name = archive_entry_pathname(entry);
    if (name == NULL || archive_entry_filetype(entry) != AE_IFREG ||
        archive_entry_hardlink(entry) != NULL || archive_entry_symlink(entry) != NULL ||
        !archive_entry_size_is_set(entry) || archive_entry_size(entry) < 0)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "bundle '%s' contains an entry that is not a regular file",
                           reader->name);
    *out_name = name;
    *out_bytes = (uint64_t)archive_entry_size(entry);
    return ANNAL_OK;
}

annal_status tar_read(struct tar_reader *reader, void *bytes, size_t room, size_t *out_len,
                      annal_error *err)
{
    la_ssize_t got = archive_read_data(reader->archive, bytes, room);
    if (got < 0)
        return fail_read(reader, err);
    *out_len = (size_t)got;
    return ANNAL_OK;
}

void tar_reader_free(struct tar_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->archive != NULL)
        archive_read_free(reader->archive);
    if (reader->fd >= 0)
        close(reader->fd);
    annal__free(reader);
}
