/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tar archive, compressed with zstd and sealed. The seal is a last zstd frame that decompressors
 * skip; its 40 bytes are "ANNALBND" and the SHA-256 of every byte before the frame. So a file that
 * was cut, or in which a bit was flipped, is recognized before any of it is used. Only tar.c uses
 * libarchive.
 *
 * The same files give the same bytes, with one version of libzstd: no times, no owners, mode 0600.
 */
#pragma once

#include <annal/base.h>

/* ---- Writing, on stdout ---- */

struct tar_writer;
annal_status tar_writer_new(struct tar_writer **out_writer, annal_error *err);

/* Begin a file of this many bytes; write them with tar_write(), in pieces. */
annal_status tar_write_file(struct tar_writer *writer, const char *name, uint64_t bytes,
                            annal_error *err);
annal_status tar_write(struct tar_writer *writer, annal_slice piece, annal_error *err);

/* End the archive, and write the seal. */
annal_status tar_write_end(struct tar_writer *writer, annal_error *err);
void tar_writer_free(struct tar_writer *writer); /* accepts NULL */

/* ---- Reading ---- */

struct tar_reader;

/* Open an archive, and check its seal. name is the name of the file in messages; it must remain
 * valid. ANNAL_ERR_CORRUPT: it is not sealed, or it was changed after it was sealed. */
annal_status tar_reader_open(const char *path, const char *name, struct tar_reader **out_reader,
                             annal_error *err);

/*
 * Find the next file. *out_name is valid until the next call. ANNAL_END: there are no more files.
 * ANNAL_ERR_CORRUPT: the next entry is not a plain file.
 */
annal_status tar_next(struct tar_reader *reader, const char **out_name, uint64_t *out_bytes,
                      annal_error *err);

/* Read bytes of the current file; *out_len is 0 at its end. */
annal_status tar_read(struct tar_reader *reader, void *bytes, size_t room, size_t *out_len,
                      annal_error *err);
void tar_reader_free(struct tar_reader *reader); /* accepts NULL */
