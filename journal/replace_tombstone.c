/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/replace_tombstone.h"

#include "journal/base/error.h"
#include "journal/base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

annal_status annal__replace_tombstone_path(const struct context *context, const char *file,
                                           struct buf *out, annal_error *err)
{
    char name[100];
    snprintf(name, sizeof name, TOMBSTONES "/%s", file);
    return annal__context_path(context, out, "events", name, err);
}

/* Read the header in a tombstone; *out_found is false if the tombstone does not exist. */
static annal_status read_tombstone(const struct context *context, const char *path, struct buf *out,
                                   bool *out_found, annal_error *err)
{
    const struct io *io = context->io;
    annal_status status = annal__buf_reserve(out, FRAME_ENVELOPE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "read %s: out of memory", path);
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    *out_found = fd >= 0;
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? ANNAL_OK
                                                   : annal__fail_errno(err, "cannot open %s", path);
    ssize_t got = annal__io_read_full(io, fd, out->ptr, FRAME_ENVELOPE_BYTES, 0);
    if (got < 0)
        status = annal__fail_errno(err, "cannot read %s", path);
    else
        out->len = (size_t)got;
    io->close(io->arg, fd);
    return status;
}

/* Find out whether a tombstone is for this journal (rule 2). */
static annal_status match_tombstone(annal_slice tombstone, const char *path, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_same,
                                    annal_error *err)
{
    struct frame_header header;
    uint64_t h;
    /* an older version wrote empty tombstones, which are for any journal with this file id */
    *out_same = tombstone.len == 0;
    if (tombstone.len == 0)
        return ANNAL_OK;
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        if (!annal__codec_first(annal__codecs[i], tombstone, &header, &h))
            continue;
        *out_same = annal__codecs[i] == codec && annal__slice_same(header.session, session) &&
                    memcmp(header.file, file, sizeof header.file) == 0;
        return ANNAL_OK;
    }
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the tombstone %s is damaged, so it is unknown which journal was deleted: "
                       "to restore the events of session '%.*s', remove this tombstone",
                       path, ANNAL_FMT(session));
}

annal_status annal__replace_is_gone(const struct context *context, annal_slice session,
                                    const struct codec *codec,
                                    const uint8_t file[FRAME_FILE_ID_BYTES], bool *out_gone,
                                    annal_error *err)
{
    SCOPED_BUF path = {0}, tombstone = {.limit = FRAME_ENVELOPE_BYTES};
    char text[FILE_ID_TEXT + 1];
    bool found = false;
    annal__codec_file_id_text(file, text);
    annal_status status = annal__replace_tombstone_path(context, text, &path, err);
    if (status == ANNAL_OK)
        status = read_tombstone(context, path.ptr, &tombstone, &found, err);
    if (status == ANNAL_OK && !found)
        *out_gone = false;
    else if (status == ANNAL_OK)
        status = match_tombstone(annal__buf_slice(&tombstone), path.ptr, session, codec, file,
                                 out_gone, err);
    return status;
}
