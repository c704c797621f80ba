/*
 * One event at a known place, of which an index keeps offset and length.
 *
 * A query reads many, mostly of one session: the buffer keeps the journal open that it read last,
 * as long as its name stands for the same file.
 */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/data.h"
#include "journal/scan.h"
#include "journal/store.h"

#include <errno.h>
#include <string.h>

struct annal_event_buffer {
    struct buf bytes; /* the trailer of the frame before, then the frame */
    struct buf json;
    const annal_store *store; /* whose journal is open; NULL: none is */
    struct scan scan;
    struct buf path;
    dev_t device;
    ino_t inode;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/* ---- The journal ---- */

static void close_journal(annal_event_buffer *buffer)
{
    if (buffer->store != NULL)
        annal__scan_done(&buffer->scan);
    buffer->store = NULL;
}

void annal_event_buffer_free(annal_event_buffer *buffer)
{
    if (buffer == NULL)
        return;
    close_journal(buffer);
    annal__buf_done(&buffer->bytes);
    annal__buf_done(&buffer->json);
    annal__buf_done(&buffer->path);
    annal__free(buffer);
}

static bool is_open(const annal_event_buffer *buffer, const annal_store *store, annal_slice session)
{
    dev_t device;
    ino_t inode;
    return buffer->store == store && strlen(buffer->session) == session.len &&
           memcmp(buffer->session, session.ptr, session.len) == 0 &&
           store->io->identify(store->io->arg, buffer->path.ptr, &device, &inode) == 0 &&
           device == buffer->device && inode == buffer->inode;
}

static annal_status open_journal(annal_event_buffer *buffer, annal_store *store,
                                 annal_slice session, annal_error *err)
{
    const struct codec *codec = NULL;
    struct stat file;
    int fd = -1;
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status < 0 || is_open(buffer, store, session))
        return status;
    close_journal(buffer);
    status = annal__journal_open(store, session, &fd, &codec, err);
    if (status < 0)
        return status;
    status = annal__journal_path(store, session, codec, &buffer->path, err);
    if (status == ANNAL_OK && store->io->fstat(store->io->arg, fd, &file) < 0)
        status = annal__fail_errno(err, "look at %s", buffer->path.ptr);
    if (status < 0) {
        store->io->close(store->io->arg, fd);
        return status;
    }
    annal__scan_init(&buffer->scan, store->io, fd, codec);
    buffer->device = file.st_dev;
    buffer->inode = file.st_ino;
    memcpy(buffer->session, session.ptr, session.len);
    buffer->session[session.len] = '\0';
    buffer->store = store;
    return ANNAL_OK;
}

/* ---- The event ---- */

/*
 * Read the frame that stands there, and the trailer before it, into the buffer. An empty frame: the
 * journal does not have so many bytes there.
 */
static annal_status read_frame(annal_event_buffer *buffer, uint64_t offset, uint64_t length,
                               annal_slice *out_before, annal_slice *out_frame, annal_error *err)
{
    const struct scan *scan = &buffer->scan;
    size_t before = scan->codec->trailer_bytes;
    *out_before = *out_frame = (annal_slice){NULL, 0};
    annal__buf_clear(&buffer->bytes);
    if (length > FRAME_BYTES_MAX || offset < before)
        return ANNAL_OK; /* no event is that long, or stands there */
    annal_status status = annal__buf_reserve(&buffer->bytes, before + (size_t)length);
    if (status < 0)
        return annal__fail(err, status, "read an event of %llu bytes: no memory",
                           (unsigned long long)length);
    ssize_t got = annal__read_full(scan->io, scan->fd, buffer->bytes.ptr, before + (size_t)length,
                                   offset - before);
    if (got < 0 || (uint64_t)got < before + length)
        return ANNAL_OK;
    *out_before = (annal_slice){buffer->bytes.ptr, before};
    *out_frame = (annal_slice){buffer->bytes.ptr + before, (size_t)length};
    return ANNAL_OK;
}

/* A neighbour is damaged, so the event cannot prove itself alone: walk to it. */
static annal_status read_by_walking(annal_event_buffer *buffer, uint64_t seq, uint64_t offset,
                                    uint64_t length, annal_event *out_event, annal_error *err)
{
    struct scan *scan = &buffer->scan;
    annal_status status = annal__scan_seek(scan, seq, err);
    annal_event event;
    do {
        if (status >= 0)
            status = annal__scan_next(scan, &event, err);
    } while (status == ANNAL_DAMAGE);
    if (status != ANNAL_OK)
        return status;
    if (event.seq != seq || event.offset != offset || event.length != length)
        return ANNAL_END;
    annal_slice frame = {scan->window.ptr + (offset - scan->window_offset), (size_t)length};
    annal__buf_clear(&buffer->bytes);
    status = annal__buf_append_slice(&buffer->bytes, frame);
    if (status < 0)
        return annal__fail(err, status, "read an event of %llu bytes: no memory",
                           (unsigned long long)length);
    scan->codec->parse_event(annal__buf_slice(&buffer->bytes), &event);
    *out_event = event;
    out_event->h = scan->h;
    return ANNAL_OK;
}

static annal_status read_event(annal_event_buffer *buffer, uint64_t seq, uint64_t offset,
                               uint64_t length, annal_event *out_event, annal_error *err)
{
    const struct codec *codec = buffer->scan.codec;
    uint64_t h_before = 0, h = 0;
    annal_event event = {0};
    annal_slice before, frame;
    annal_status status = read_frame(buffer, offset, length, &before, &frame, err);
    if (status < 0)
        return status;
    if (frame.len > 0 && codec->ends(before) && codec->trailer(before, &h_before) &&
        annal__frame_proves(codec, frame, offset, h_before, &h) &&
        codec->parse_event(frame, &event) && event.seq == seq)
        event.h = h;
    else
        status = read_by_walking(buffer, seq, offset, length, &event, err);
    if (status != ANNAL_OK)
        return status;
    event.offset = offset;
    event.length = length;
    status = annal__data_show(&event, &buffer->json, err);
    if (status == ANNAL_OK)
        *out_event = event;
    return status;
}

annal_status annal_event_read_at(annal_store *store, annal_slice session, uint64_t seq,
                                 uint64_t offset, uint64_t length, annal_event_buffer **buffer,
                                 annal_event *out_event, annal_error *err)
{
    annal_event_buffer *made = NULL;
    if (*buffer == NULL) {
        made = annal__zalloc(sizeof *made);
        if (made == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read an event: no memory");
    }
    annal_event_buffer *used = made != NULL ? made : *buffer;
    annal_status status = open_journal(used, store, session, err);
    if (status == ANNAL_OK)
        status = read_event(used, seq, offset, length, out_event, err);
    if (status > 0)
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT,
                        "session '%.*s': byte %llu does not begin event %llu, or it is damaged",
                        ANNAL_FMT(session), (unsigned long long)offset, (unsigned long long)seq);
    if (status < 0)
        annal_event_buffer_free(made);
    else if (made != NULL)
        *buffer = made;
    return status;
}
