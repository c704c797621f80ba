/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/source/copies_zstd.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <zstd.h>

#define LEVEL 3

struct copies_zstd {
    ZSTD_CCtx *in;
    ZSTD_DCtx *out;
};

struct copies_zstd *copies_zstd_new(void)
{
    return annal__zalloc(sizeof(struct copies_zstd));
}

void copies_zstd_free(struct copies_zstd *zstd)
{
    if (zstd == NULL)
        return;
    ZSTD_freeCCtx(zstd->in);
    ZSTD_freeDCtx(zstd->out);
    annal__free(zstd);
}

annal_status copies_zstd_pack(struct copies_zstd *zstd, annal_slice window, annal_slice piece,
                              struct buf *out, annal_error *err)
{
    size_t bound = ZSTD_compressBound(piece.len);
    annal__buf_clear(out);
    if (zstd->in == NULL)
        zstd->in = ZSTD_createCCtx();
    if (zstd->in == NULL || annal__buf_reserve(out, bound) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "compress the copy of the log: out of memory");
    (void)ZSTD_CCtx_setParameter(zstd->in, ZSTD_c_compressionLevel, LEVEL);
    if (window.len > 0)
        (void)ZSTD_CCtx_refPrefix(zstd->in, window.ptr, window.len);
    size_t len = ZSTD_compress2(zstd->in, out->ptr, bound, piece.ptr, piece.len);
    if (ZSTD_isError(len))
        return annal__fail(err, ANNAL_ERR_NOMEM, "compress the copy of the log: %s",
                           ZSTD_getErrorName(len));
    out->len = len;
    return ANNAL_OK;
}

annal_status copies_zstd_unpack(struct copies_zstd *zstd, annal_slice window, annal_slice frame,
                                size_t bytes, struct buf *out, annal_error *err)
{
    annal__buf_clear(out);
    if (zstd->out == NULL)
        zstd->out = ZSTD_createDCtx();
    if (zstd->out == NULL || annal__buf_reserve(out, bytes + 1) < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "decompress the copy of the log: out of memory");
    if (window.len > 0)
        (void)ZSTD_DCtx_refPrefix(zstd->out, window.ptr, window.len);
    size_t len = ZSTD_decompressDCtx(zstd->out, out->ptr, bytes, frame.ptr, frame.len);
    if (ZSTD_isError(len) || len != bytes)
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the copy of the log is damaged");
    out->len = len;
    return ANNAL_OK;
}
