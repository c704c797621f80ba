/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convert a journal: a copy of the journal in another format replaces it, as replace.h describes.
 *
 * (1) Every event keeps its seq, ts, type, id and cause, and its data as the same value. The file
 *     id and every h are new, because an h is a hash of bytes.
 * (2) The copy is synced, read back, checked, and compared with the original event by event, before
 *     it is renamed to the journal.
 * (3) Only an undamaged journal is converted: damage would be lost silently.
 * (4) Memory is limited to a few times the largest event, whatever the size of the journal.
 */
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/checkpoint.h"
#include "journal/json_msgpack.h"
#include "journal/replace.h"
#include "journal/scan.h"
#include "journal/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define WRITE_BYTES ((size_t)1 << 20)

struct conversion {
    struct change change;
    const annal_convert_options *options;
    const struct codec *from;
    const struct codec *to;
    struct buf path;   /* path of the copy: events/.new-<file id> */
    struct buf target; /* path of the journal in the new format */
    int fd;            /* descriptor of the copy; -1 before the copy is created */
    uint64_t written;
    uint64_t h;     /* hash of the last frame of the copy */
    struct buf out; /* frames of the copy that are not written yet */
    struct buf data;
    annal_convert_result result;
};

/* Report progress: `done` bytes of two passes over the journal. Return ANNAL_END if the caller's
 * callback wants to stop. */
static annal_status tell(const struct conversion *conversion, uint64_t done)
{
    const annal_convert_options *options = conversion->options;
    if (options->progress != NULL &&
        options->progress(options->arg, done, 2 * conversion->result.bytes_before) != 0)
        return ANNAL_END;
    return ANNAL_OK;
}

static annal_status open_scan(const struct conversion *conversion, const char *path,
                              const struct codec *codec, struct scan *out_scan, annal_error *err)
{
    const struct io *io = conversion->change.store->context.io;
    int fd = io->open(io->arg, path, O_RDONLY, 0);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open %s", path);
    annal__scan_init(out_scan, io, fd, codec);
    return ANNAL_OK;
}

/* ---- Writing the copy ---- */

static annal_status write_out(struct conversion *conversion, annal_error *err)
{
    const struct io *io = conversion->change.store->context.io;
    struct buf *out = &conversion->out;
    if (annal__io_write_all(io, conversion->fd, out->ptr, out->len, conversion->written) < 0)
        return annal__fail_errno(err, "cannot write %s", conversion->path.ptr);
    conversion->written += out->len;
    annal__buf_clear(out);
    return ANNAL_OK;
}

/* Convert the data of an event to the format of the copy. */
static annal_status translate(struct conversion *conversion, const annal_event *event,
                              annal_draft *draft, annal_error *err)
{
    struct buf *data = &conversion->data;
    annal__buf_clear(data);
    annal_status status = conversion->to->format == ANNAL_FORMAT_MSGPACK
                              ? annal__json_msgpack_from_json(event->data, data, err)
                              : annal__json_msgpack_to_json(event->data, data, err);
    draft->data = annal__buf_slice(data);
    if (status == ANNAL_OK)
        status = annal_draft_check(draft, err);
    if (status < 0)
        annal__error_context(err, "convert session '%s': event %" PRIu64,
                             conversion->change.session->id, event->seq);
    return status;
}

static annal_status copy_event(struct conversion *conversion, const annal_event *event,
                               annal_error *err)
{
    annal_draft draft = {.type = event->type,
                         .id = event->id,
                         .cause = event->cause,
                         .ts_us = event->ts_us,
                         .data_format = conversion->to->format};
    annal_status status = translate(conversion, event, &draft, err);
    if (status < 0)
        return status;
    const struct frame_place place = {.seq = event->seq,
                                      .ts_us = event->ts_us,
                                      .offset = conversion->written + conversion->out.len,
                                      .h_before = conversion->h};
    status = conversion->to->encode_event(&conversion->out, &draft, &place, &conversion->h);
    if (status < 0)
        return annal__fail(err, status, "convert session '%s': out of memory",
                           conversion->change.session->id);
    return conversion->out.len >= WRITE_BYTES ? write_out(conversion, err) : ANNAL_OK;
}

/* Fail with the place of the damage: only an undamaged journal is converted (rule 3). */
static annal_status refuse_damage(const struct conversion *conversion, uint64_t offset,
                                  annal_error *err)
{
    const char *id = conversion->change.session->id;
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "session '%s' is damaged at byte %" PRIu64
                       " of its journal and is not converted; 'annal repair %s --to NEW' copies "
                       "its undamaged events",
                       id, offset, id);
}

static annal_status copy_events(struct conversion *conversion, annal_error *err)
{
    struct scan scan;
    annal_status status =
        open_scan(conversion, conversion->change.path.ptr, conversion->from, &scan, err);
    if (status < 0)
        return status;
    while (status == ANNAL_OK) {
        annal_event event;
        status = annal__scan_next(&scan, &event, err);
        if (status == ANNAL_OK)
            status = copy_event(conversion, &event, err);
        if (status == ANNAL_OK) {
            conversion->result.events++;
            status = tell(conversion, scan.offset);
            if (status == ANNAL_END)
                goto done;
        }
    }
    if (status == ANNAL_DAMAGE ||
        (status == ANNAL_END && scan.offset != conversion->result.bytes_before))
        status = refuse_damage(conversion, scan.offset, err);
    else if (status == ANNAL_END)
        status = write_out(conversion, err);

done:
    annal__scan_done(&scan);
    return status;
}

/* Create the file of the copy, and encode its header, which names the file id of the journal that
 * it replaces. */
static annal_status begin_copy(struct conversion *conversion, annal_error *err)
{
    annal_store *store = conversion->change.store;
    const struct frame_header *old = &conversion->change.header;
    struct frame_header header = {.session = annal__session_id(conversion->change.session),
                                  .created_us = old->created_us,
                                  .fork = old->fork,
                                  .fork_seq = old->fork_seq,
                                  .fork_h = old->fork_h,
                                  .is_replacement = true};
    char name[64] = ".new-";
    if (getrandom(header.file, sizeof header.file, 0) != (ssize_t)sizeof header.file)
        return annal__fail_errno(err,
                                 "convert session '%s': cannot create an id for the new journal",
                                 conversion->change.session->id);
    memcpy(header.replaces, old->file, sizeof header.replaces);
    annal__codec_file_id_text(header.file, name + strlen(name));
    annal_status status =
        annal__context_path(&store->context, &conversion->path, "events", name, err);
    if (status < 0)
        return status;
    conversion->fd = store->context.io->open(store->context.io->arg, conversion->path.ptr,
                                             O_RDWR | O_CREAT | O_EXCL, 0660);
    if (conversion->fd < 0)
        return annal__fail_errno(err, "cannot create %s", conversion->path.ptr);
    status = conversion->to->encode_header(&conversion->out, &header, &conversion->h);
    return status < 0 ? annal__fail(err, status, "convert a journal: out of memory") : ANNAL_OK;
}

/* ---- Proving the copy ---- */

static annal_status compare(const struct conversion *conversion, const annal_event *old,
                            const annal_event *new, annal_error *err)
{
    bool same = annal__slice_same(old->type, new->type) && annal__slice_same(old->id, new->id) &&
                annal__slice_same(old->cause, new->cause) && old->seq == new->seq &&
                old->ts_us == new->ts_us;
    annal_status status = ANNAL_OK;
    if (same)
        status =
            annal__json_msgpack_equal(old->format, old->data, new->format, new->data, &same, err);
    if (status == ANNAL_OK && !same)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "convert session '%s': event %" PRIu64
                             " is not the same in the copy; the journal was not changed",
                             conversion->change.session->id, old->seq);
    return status;
}

/* Read the copy back and compare it with the original, event by event (rule 2). */
static annal_status prove_copy(struct conversion *conversion, annal_error *err)
{
    struct scan old = {.fd = -1}, new = {.fd = -1};
    uint64_t events = 0;
    annal_status status =
        open_scan(conversion, conversion->change.path.ptr, conversion->from, &old, err);
    if (status == ANNAL_OK)
        status = open_scan(conversion, conversion->path.ptr, conversion->to, &new, err);
    while (status == ANNAL_OK && events < conversion->result.events) {
        annal_event before, after;
        status = annal__scan_next(&old, &before, err);
        if (status == ANNAL_OK)
            status = annal__scan_next(&new, &after, err);
        if (status > 0)
            status = annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "convert session '%s': event %" PRIu64
                                 " of the copy cannot be read back; the journal was not changed",
                                 conversion->change.session->id, events + 1);
        if (status == ANNAL_OK)
            status = compare(conversion, &before, &after, err);
        events++;
        if (status == ANNAL_OK)
            status = tell(conversion, conversion->result.bytes_before + old.offset);
    }
    /* in a fork without events of its own, read the header, to check it */
    if (status == ANNAL_OK && events == 0) {
        annal_event none;
        status = annal__scan_next(&new, &none, err);
        status = status < 0 ? status : ANNAL_OK;
    }
    if (status == ANNAL_OK && new.offset != conversion->written)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "convert session '%s': the copy has %" PRIu64 " bytes and not %" PRIu64
                             "; the journal was not changed",
                             conversion->change.session->id, new.offset, conversion->written);
    annal__scan_done(&old);
    annal__scan_done(&new);
    return status;
}

/* ---- Taking the place ---- */

static annal_status check_space(const struct conversion *conversion, annal_error *err)
{
    annal_store *store = conversion->change.store;
    struct io_space space;
    if (store->context.io->space(store->context.io->arg, store->events.fd, &space) < 0)
        return annal__fail_errno(err, "cannot examine the free space of %s", store->context.path);
    if (space.free_bytes >= conversion->result.bytes_before + store->events.keep_free_bytes)
        return ANNAL_OK;
    errno = ENOSPC;
    return annal__fail_errno(err, "convert session '%s': cannot write a copy of %" PRIu64 " bytes",
                             conversion->change.session->id, conversion->result.bytes_before);
}

/* Rename the copy to its final name and remove the old journal, in this order (rule 4 of
 * replace.h). */
static annal_status take_place(struct conversion *conversion, annal_error *err)
{
    annal_store *store = conversion->change.store;
    const struct io *io = store->context.io;
    const char *old = conversion->change.path.ptr;
    if (io->rename(io->arg, conversion->path.ptr, conversion->target.ptr) < 0)
        return annal__fail_errno(err, "cannot rename %s to %s", conversion->path.ptr,
                                 conversion->target.ptr);
    io->close(io->arg, conversion->fd);
    conversion->fd = -1;
    atomic_store(&store->events.dirty, true);
    annal_status status = annal__checkpoint_events(&store->events, err);
    if (status < 0)
        return status;
    if (io->unlink(io->arg, old) < 0)
        return annal__fail_errno(err, "cannot remove %s", old);
    atomic_store(&store->events.dirty, true);
    return annal__checkpoint_events(&store->events, err);
}

static annal_status convert(struct conversion *conversion, annal_error *err)
{
    const struct io *io = conversion->change.store->context.io;
    struct change *change = &conversion->change;
    annal_status status = check_space(conversion, err);
    /* the tombstone is written first, because only a store with tombstones looks for leftover .new-
     * files */
    if (status == ANNAL_OK)
        status = annal__replace_put_tombstone(change, err);
    if (status == ANNAL_OK)
        status = begin_copy(conversion, err);
    if (status == ANNAL_OK)
        status = copy_events(conversion, err);
    if (status == ANNAL_OK && io->fsync(io->arg, conversion->fd) < 0)
        status = annal__fail_errno(err, "cannot sync %s", conversion->path.ptr);
    if (status == ANNAL_OK)
        status = prove_copy(conversion, err);
    if (status == ANNAL_OK)
        status = take_place(conversion, err);
    conversion->result.bytes_after = conversion->written;
    return status;
}

static void conversion_done(struct conversion *conversion)
{
    const struct io *io = conversion->change.store->context.io;
    if (conversion->fd >= 0) {
        io->close(io->arg, conversion->fd);
        io->unlink(io->arg, conversion->path.ptr);
    }
    annal__buf_done(&conversion->path);
    annal__buf_done(&conversion->target);
    annal__buf_done(&conversion->out);
    annal__buf_done(&conversion->data);
    annal__replace_end(&conversion->change);
}

annal_status annal_session_convert(annal_store *store, annal_slice session,
                                   const annal_convert_options *options,
                                   annal_convert_result *out_result, annal_error *err)
{
    struct conversion conversion = {.options = options,
                                    .fd = -1,
                                    .to = annal__codec_of(options->format),
                                    .out = {.limit = WRITE_BYTES + FRAME_BYTES_MAX},
                                    .data = {.limit = FRAME_BYTES_MAX}};
    if (conversion.to == NULL)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "convert session '%.*s': the options name no format",
                           ANNAL_FMT(session));
    annal_status status = annal__replace_begin(&conversion.change, store, session, true, err);
    if (status == ANNAL_OK)
        status = annal__replace_examine(&conversion.change, err);
    if (status < 0)
        goto done;
    conversion.from = conversion.change.codec;
    conversion.result.bytes_before = conversion.result.bytes_after = conversion.change.info.bytes;
    if (conversion.from == conversion.to)
        goto done; /* the journal already has the format */
    status = annal__context_journal_path(&store->context, session, conversion.to,
                                         &conversion.target, err);
    if (status == ANNAL_OK)
        status = convert(&conversion, err);

done:
    conversion_done(&conversion);
    if (status == ANNAL_OK)
        *out_result = conversion.result;
    return status;
}
