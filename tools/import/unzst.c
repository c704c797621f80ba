/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/import/unzst.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "tools/cli/must.h"

#include <unistd.h>
#include <zstd.h>

#define ALWAYS_BYTES ((uint64_t)64 << 20)

bool unzst_is_bomb(uint64_t packed, uint64_t unpacked)
{
    return unpacked > ALWAYS_BYTES && unpacked - ALWAYS_BYTES > UNZST_RATIO_MAX * packed;
}

static annal_status undo(ZSTD_DStream *stream, int fd, ZSTD_inBuffer *in, ZSTD_outBuffer *out,
                         FILE *file, annal_error *err)
{
    size_t in_bytes = ZSTD_DStreamInSize();
    off_t at = 0;
    size_t left = 0;
    uint64_t written = 0;
    for (;;) {
        ssize_t got = pread(fd, (void *)in->src, in_bytes, at);
        if (got < 0)
            return annal__fail_errno(err, "cannot read the log");
        if (got == 0)
            return left == 0 ? ANNAL_OK
                             : annal__fail(err, ANNAL_ERR_CORRUPT,
                                           "the zstd stream of the log ends early");
        at += got;
        in->size = (size_t)got;
        in->pos = 0;
        while (in->pos < in->size) {
            out->pos = 0;
            left = ZSTD_decompressStream(stream, out, in);
            if (ZSTD_isError(left))
                return annal__fail(err, ANNAL_ERR_CORRUPT,
                                   "the zstd stream of the log is damaged: %s",
                                   ZSTD_getErrorName(left));
            written += out->pos;
            if (unzst_is_bomb((uint64_t)at, written))
                return annal__fail(err, ANNAL_ERR_CORRUPT,
                                   "the zstd stream of the log decompresses to more than %d times "
                                   "the size of the file",
                                   UNZST_RATIO_MAX);
            if (fwrite(out->dst, 1, out->pos, file) != out->pos)
                return annal__fail_errno(err, "write the decompressed log to a temporary file");
        }
    }
}

annal_status unzst(int fd, FILE *file, annal_error *err)
{
    ZSTD_DStream *stream = ZSTD_createDStream();
    char *in_bytes = must_realloc_array(NULL, ZSTD_DStreamInSize(), 1);
    char *out_bytes = must_realloc_array(NULL, ZSTD_DStreamOutSize(), 1);
    ZSTD_inBuffer in = {.src = in_bytes};
    ZSTD_outBuffer out = {.dst = out_bytes, .size = ZSTD_DStreamOutSize()};
    must_true(stream != NULL);
    annal_status status = undo(stream, fd, &in, &out, file, err);
    ZSTD_freeDStream(stream);
    annal__free(in_bytes);
    annal__free(out_bytes);
    return status;
}
