/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/rebuild.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/io.h"
#include "journal/json_msgpack.h"
#include "journal/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WRITE_BYTES ((size_t)1 << 20)

struct annal__rebuild {
    const struct below *root;
    annal_session_info info;
    struct frame_header header;
    /* format of the journal; NULL until the hash of the first event shows it */
    const struct codec *codec;
    int fd;       /* descriptor of the journal; -1: the file does not exist yet */
    uint64_t seq; /* seq of the last event, whose hash is h */
    uint64_t h;
    uint64_t written;
    struct buf out; /* frames that are not written to the file of the journal yet */
    struct buf data;
    /* path of the journal below root */
    char name[sizeof "events/" + ANNAL_SESSION_ID_BYTES_MAX + 8];
};

static annal_status no_memory(const annal_session_info *info, annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_NOMEM, "write session '%s': out of memory", info->session);
}

static bool read_file_id(const char *text, uint8_t out[FRAME_FILE_ID_BYTES])
{
    return strlen(text) == (size_t)2 * FRAME_FILE_ID_BYTES &&
           annal__hex_read(text, FRAME_FILE_ID_BYTES, out);
}

static annal_status make_header(annal__rebuild *rebuild, annal_error *err)
{
    const annal_session_info *info = &rebuild->info;
    struct frame_header *header = &rebuild->header;
    *header = (struct frame_header){.version = FRAME_VERSION,
                                    .session = annal_slice_of(info->session),
                                    .created_us = info->created_us,
                                    .fork = annal_slice_of(info->fork_session),
                                    .fork_seq = info->fork_seq,
                                    .fork_h = info->fork_h,
                                    .is_replacement = info->replaces[0] != '\0'};
    if (annal_session_id_check(header->session, NULL) < 0 ||
        (header->fork.len > 0 && annal_session_id_check(header->fork, NULL) < 0) ||
        !read_file_id(info->file, header->file) ||
        (header->is_replacement && !read_file_id(info->replaces, header->replaces)))
        return annal__fail(err, ANNAL_ERR_CORRUPT, "the header of session '%s' is damaged",
                           info->session);
    return ANNAL_OK;
}

static annal_status open_file(annal__rebuild *rebuild, const struct codec *codec, int flags,
                              annal_error *err)
{
    static const struct below_mode own = {.file = 0600};
    snprintf(rebuild->name, sizeof rebuild->name, "events/%s%s", rebuild->info.session,
             codec->suffix);
    annal_status status = annal__below_open_file(rebuild->root, rebuild->name, O_RDWR | flags, &own,
                                                 &rebuild->fd, err);
    return status == ANNAL_ERR_NOTFOUND && flags == 0 ? ANNAL_OK : status;
}

/* Continue a journal after its last event with a right hash. If it has no such event, remove the
 * file. */
static annal_status go_on(annal__rebuild *rebuild, const struct codec *codec, annal_error *err)
{
    struct journal_tail tail;
    bool ignored;
    const struct io *io = &annal__system_io;
    annal_status status = annal__scan_tail(io, rebuild->fd, codec, &tail, err);
    if (status < 0)
        return status;
    bool has_event = tail.has_header && tail.seq > rebuild->info.fork_seq;
    if (has_event && memcmp(tail.header.file, rebuild->header.file, FRAME_FILE_ID_BYTES) != 0)
        return annal__fail(err, ANNAL_ERR_CONFLICT,
                           "rebuild session '%s': the unfinished copy of its journal is a copy of "
                           "a different journal",
                           rebuild->info.session);
    if (io->ftruncate(io->arg, rebuild->fd, has_event ? tail.end : 0) < 0)
        return annal__fail_errno(err, "cannot shorten %s", rebuild->name);
    if (has_event) {
        rebuild->codec = codec;
        rebuild->seq = tail.seq;
        rebuild->h = tail.h;
        rebuild->written = tail.end;
        return ANNAL_OK;
    }
    close(rebuild->fd);
    rebuild->fd = -1;
    return annal__below_delete(rebuild->root, rebuild->name, &ignored, err);
}

annal_status annal__rebuild_open(const struct below *root, const annal_session_info *info,
                                 annal__rebuild **out_rebuild, uint64_t *out_seq, annal_error *err)
{
    annal__rebuild *rebuild = annal__zalloc(sizeof *rebuild);
    if (rebuild == NULL)
        return no_memory(info, err);
    *rebuild = (annal__rebuild){.root = root, .info = *info, .fd = -1, .seq = info->fork_seq};
    annal_status status = make_header(rebuild, err);
    for (int i = 0; i < CODEC_COUNT && status >= 0 && rebuild->codec == NULL; i++) {
        status = open_file(rebuild, annal__codecs[i], 0, err);
        if (status >= 0 && rebuild->fd >= 0)
            status = go_on(rebuild, annal__codecs[i], err);
    }
    if (status < 0) {
        annal__rebuild_close(rebuild);
        return status;
    }
    *out_seq = rebuild->seq;
    *out_rebuild = rebuild;
    return ANNAL_OK;
}

/* Append the event as the next frame to `out`; *out_h is the frame's hash. */
static annal_status encode(annal__rebuild *rebuild, const struct codec *codec,
                           const annal_event *event, uint64_t h_before, uint64_t *out_h,
                           annal_error *err)
{
    annal_draft draft = {.type = event->type,
                         .data = event->data,
                         .id = event->id,
                         .cause = event->cause,
                         .ts_us = ANNAL_TS(event->ts_us)};
    const struct frame_place place = {.seq = event->seq,
                                      .ts_us = event->ts_us,
                                      .offset = rebuild->written + rebuild->out.len,
                                      .h_before = h_before};
    annal_status status = annal_draft_check(&draft, err);
    if (status >= 0 && codec->format == ANNAL_FORMAT_MSGPACK) {
        annal__buf_clear(&rebuild->data);
        status = annal__json_msgpack_from_json(event->data, &rebuild->data, err);
        draft.data = annal__buf_slice(&rebuild->data);
        draft.data_format = ANNAL_FORMAT_MSGPACK;
    }
    if (status < 0)
        return status;
    status = codec->encode_event(&rebuild->out, &draft, &place, out_h);
    return status < 0 ? no_memory(&rebuild->info, err) : ANNAL_OK;
}

static annal_status refuse(const annal__rebuild *rebuild, const annal_event *event,
                           annal_error *err)
{
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "rebuild session '%s': the hash of event %" PRIu64
                       " differs from %016" PRIx64 ", the hash of the original event",
                       rebuild->info.session, event->seq, event->h);
}

/* Write the header and the first event, in the format in which the encoded event has the hash that
 * it had in the original journal. */
static annal_status begin(annal__rebuild *rebuild, const annal_event *event, annal_error *err)
{
    for (int i = 0; i < CODEC_COUNT; i++) {
        const struct codec *codec = annal__codecs[i];
        uint64_t h = 0;
        annal_status status = codec->encode_header(&rebuild->out, &rebuild->header, &h);
        if (status < 0)
            return no_memory(&rebuild->info, err);
        status = encode(rebuild, codec, event, h, &h, err);
        if (status < 0)
            return status;
        if (h == event->h) {
            rebuild->codec = codec;
            rebuild->h = h;
            return open_file(rebuild, codec, O_CREAT | O_EXCL, err);
        }
        annal__buf_clear(&rebuild->out);
    }
    return refuse(rebuild, event, err);
}

annal_status annal__rebuild_add(annal__rebuild *rebuild, const annal_event *event, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (event->seq != rebuild->seq + 1)
        return annal__fail(err, ANNAL_ERR_CORRUPT,
                           "rebuild session '%s': event %" PRIu64
                           " is missing among the copied events",
                           rebuild->info.session, rebuild->seq + 1);
    if (rebuild->codec == NULL) {
        status = begin(rebuild, event, err);
    } else {
        uint64_t h = 0;
        size_t len = rebuild->out.len;
        status = encode(rebuild, rebuild->codec, event, rebuild->h, &h, err);
        if (status >= 0 && h != event->h) {
            rebuild->out.len = len;
            status = refuse(rebuild, event, err);
        }
        rebuild->h = h;
    }
    if (status < 0)
        return status;
    rebuild->seq = event->seq;
    return rebuild->out.len >= WRITE_BYTES ? annal__rebuild_end(rebuild, err) : ANNAL_OK;
}

annal_status annal__rebuild_end(annal__rebuild *rebuild, annal_error *err)
{
    struct buf *out = &rebuild->out;
    if (out->len > 0 && annal__io_write_all(&annal__system_io, rebuild->fd, out->ptr, out->len,
                                            rebuild->written) < 0)
        return annal__fail_errno(err, "cannot write %s", rebuild->name);
    rebuild->written += out->len;
    annal__buf_clear(out);
    return ANNAL_OK;
}

void annal__rebuild_close(annal__rebuild *rebuild)
{
    if (rebuild == NULL)
        return;
    if (rebuild->fd >= 0)
        close(rebuild->fd);
    annal__buf_done(&rebuild->out);
    annal__buf_done(&rebuild->data);
    annal__free(rebuild);
}
