/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/otlp/gzip.h"

#include "journal/base/error.h"

#include <loaded/zlib.h>

#define PIECE_BYTES ((size_t)64 << 10)
/* level of compression: higher ones save little of JSON, and take several times as long */
#define LEVEL       1
#define GZIP_WINDOW (15 + 16) /* 15 is zlib's largest window; adding 16 means a gzip header */

static annal_status inflate_all(z_stream *stream, struct buf *out)
{
    int rc = Z_OK;
    while (rc == Z_OK) {
        annal_status status = annal__buf_reserve(out, PIECE_BYTES);
        if (status < 0)
            return status;
        stream->next_out = (Bytef *)out->ptr + out->len;
        stream->avail_out = (uInt)PIECE_BYTES;
        rc = inflate(stream, Z_NO_FLUSH);
        out->len += PIECE_BYTES - stream->avail_out;
    }
    return rc == Z_STREAM_END ? ANNAL_OK : ANNAL_ERR_INVALID;
}

annal_status gzip_inflate(annal_slice in, struct buf *out, annal_error *err)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in.ptr, .avail_in = (uInt)in.len};
    annal_status status = library_load(&library_zlib, err);
    if (status < 0)
        return status;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read a gzip body: out of memory");
    status = inflate_all(&stream, out);
    (void)inflateEnd(&stream);
    if (status == ANNAL_ERR_INVALID)
        return annal__fail(err, status, "the body is not valid gzip");
    return status < 0 ? annal__fail(err, status, "the body is longer than %zu bytes after gunzip",
                                    out->limit)
                      : ANNAL_OK;
}

annal_status gzip_deflate(annal_slice in, struct buf *out, annal_error *err)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)in.ptr, .avail_in = (uInt)in.len};
    annal_status status = in.len > UINT32_MAX ? annal__fail(err, ANNAL_ERR_LIMIT, "compress a text")
                                              : library_load(&library_zlib, err);
    if (status < 0)
        return status;
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compress a text: out of memory");
    uLong most = deflateBound(&stream, (uLong)in.len);
    status = most > UINT32_MAX ? ANNAL_ERR_LIMIT : annal__buf_reserve(out, most);
    if (status >= 0) {
        stream.next_out = (Bytef *)out->ptr + out->len;
        stream.avail_out = (uInt)most;
        ANNAL_ASSERT(deflate(&stream, Z_FINISH) == Z_STREAM_END);
        out->len += most - stream.avail_out;
    }
    (void)deflateEnd(&stream);
    return status < 0 ? annal__fail(err, status, "compress a text: out of memory") : ANNAL_OK;
}
