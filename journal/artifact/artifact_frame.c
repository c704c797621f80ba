/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/artifact/artifact_frame.h"

#include "journal/base/buf.h"
#include "journal/base/error.h"

#include <errno.h>
#include <string.h>

#include <zstd.h>

#define LEVEL       3
#define PIECE_BYTES ((size_t)128 << 10)

struct stream {
    const struct io *io;
    int fd;
    const char *path;
    struct buf in, out;
    uint64_t offset; /* offset in the file of the next read or write */
    struct sha256 *sha256;
    uint64_t bytes;
};

static annal_status stream_init(struct stream *stream, const struct io *io, int fd,
                                const char *path, annal_error *err)
{
    *stream = (struct stream){.io = io, .fd = fd, .path = path};
    stream->sha256 = annal__sha256_begin();
    if (stream->sha256 == NULL || annal__buf_reserve(&stream->in, PIECE_BYTES) < 0 ||
        annal__buf_reserve(&stream->out, PIECE_BYTES) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compress or decompress %s: out of memory", path);
    return ANNAL_OK;
}

static void stream_done(struct stream *stream, struct frame_result *out)
{
    if (stream->sha256 != NULL)
        annal__sha256_end(stream->sha256, out == NULL ? NULL : out->sha256);
    if (out != NULL) {
        out->bytes = stream->bytes;
        out->stored_bytes = stream->offset;
    }
    annal__buf_done(&stream->in);
    annal__buf_done(&stream->out);
}

/* ---- Writing ---- */

/* Compress the bytes in stream->in, and write the result to the file. With `end`, also end the zstd
 * frame. */
static annal_status compress_piece(struct stream *stream, ZSTD_CCtx *zstd, bool end,
                                   annal_error *err)
{
    ZSTD_inBuffer in = {stream->in.ptr, stream->in.len, 0};
    size_t left = 0;
    do {
        ZSTD_outBuffer out = {stream->out.ptr, PIECE_BYTES, 0};
        left = ZSTD_compressStream2(zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return annal__fail(err, ANNAL_ERR_NOMEM, "compress %s: %s", stream->path,
                               ZSTD_getErrorName(left));
        if (annal__io_write_all(stream->io, stream->fd, out.dst, out.pos, stream->offset) < 0)
            return annal__fail_errno(err, "cannot write %s", stream->path);
        stream->offset += out.pos;
    } while (in.pos < in.size || (end && left > 0));
    return ANNAL_OK;
}

static annal_status compress_all(struct stream *stream, ZSTD_CCtx *zstd,
                                 annal_artifact_source source, void *arg, annal_error *err)
{
    for (;;) {
        int64_t got = source(arg, stream->in.ptr, PIECE_BYTES, err);
        if (got < 0)
            return (annal_status)got;
        ANNAL_ASSERT((uint64_t)got <= PIECE_BYTES);
        stream->in.len = (size_t)got;
        stream->bytes += (uint64_t)got;
        annal__sha256_add(stream->sha256, stream->in.ptr, stream->in.len);
        annal_status status = compress_piece(stream, zstd, got == 0, err);
        if (status < 0 || got == 0)
            return status;
    }
}

annal_status annal__artifact_write(const struct io *io, int fd, const char *path,
                                   annal_artifact_source source, void *arg,
                                   struct frame_result *out, annal_error *err)
{
    struct stream stream;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    annal_status status = stream_init(&stream, io, fd, path, err);
    if (status >= 0 &&
        (zstd == NULL ||
         ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, LEVEL)) ||
         ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1))))
        status = annal__fail(err, ANNAL_ERR_NOMEM, "compress %s: out of memory", path);
    if (status >= 0)
        status = compress_all(&stream, zstd, source, arg, err);
    if (status >= 0 && io->fsync(io->arg, fd) < 0)
        status = annal__fail_errno(err, "cannot sync %s", path);
    ZSTD_freeCCtx(zstd);
    stream_done(&stream, status >= 0 ? out : NULL);
    return status;
}

/* ---- Reading ---- */

/* Decompress the bytes in stream->in, and pass the content to fn. *ended is set when the zstd frame
 * is complete; then no bytes may follow in the file. */
static annal_status unpack_piece(struct stream *stream, ZSTD_DCtx *zstd, annal_artifact_sink fn,
                                 void *arg, bool *ended, annal_error *err)
{
    ZSTD_inBuffer in = {stream->in.ptr, stream->in.len, 0};
    size_t filled = PIECE_BYTES;
    while (in.pos < in.size || filled == PIECE_BYTES) {
        ZSTD_outBuffer out = {stream->out.ptr, PIECE_BYTES, 0};
        if (*ended && in.pos < in.size)
            return annal__fail(err, ANNAL_ERR_CORRUPT,
                               "read artifact %s: bytes follow the end of the content",
                               stream->path);
        if (*ended)
            return ANNAL_OK;
        size_t left = ZSTD_decompressStream(zstd, &out, &in);
        if (ZSTD_isError(left))
            return annal__fail(err, ANNAL_ERR_CORRUPT, "decompress artifact %s: %s", stream->path,
                               ZSTD_getErrorName(left));
        *ended = left == 0;
        filled = out.pos;
        stream->bytes += filled;
        annal__sha256_add(stream->sha256, out.dst, filled);
        int stop = fn == NULL || filled == 0 ? 0 : fn(arg, (annal_slice){out.dst, filled});
        if (stop != 0)
            return (annal_status)stop;
    }
    return ANNAL_OK;
}

annal_status annal__artifact_unpack(const struct io *io, int fd, const char *path,
                                    annal_artifact_sink fn, void *arg, struct frame_result *out,
                                    annal_error *err)
{
    struct stream stream;
    bool ended = false;
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    annal_status status = stream_init(&stream, io, fd, path, err);
    if (status >= 0 && zstd == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "decompress %s: out of memory", path);
    while (status == ANNAL_OK) {
        ssize_t got = annal__io_read_full(io, fd, stream.in.ptr, PIECE_BYTES, stream.offset);
        if (got < 0) /* a bad sector counts as damage of the artifact */
            status = annal__fail(err, errno == EIO ? ANNAL_ERR_CORRUPT : ANNAL_ERR_IO,
                                 "read %s: %s", path, strerror(errno));
        if (got <= 0)
            break;
        stream.in.len = (size_t)got;
        stream.offset += (uint64_t)got;
        status = unpack_piece(&stream, zstd, fn, arg, &ended, err);
    }
    if (status == ANNAL_OK && !ended)
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT, "read artifact %s: the file is cut short", path);
    ZSTD_freeDCtx(zstd);
    stream_done(&stream, status == ANNAL_OK ? out : NULL);
    return status;
}
