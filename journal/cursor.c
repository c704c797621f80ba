#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/scan.h"
#include "journal/store.h"

#include <errno.h>
#include <fcntl.h>

struct annal_cursor {
    annal_store *store;
    uint64_t from_seq;
    struct scan scan;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

static annal_status open_journal(annal_store *store, annal_slice session, int *out_fd,
                                 annal_error *err)
{
    struct buf path = {0};
    annal_status status = annal__store_check(store, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status == ANNAL_OK)
        status = annal__journal_path(store, session, &path, err);
    if (status == ANNAL_OK) {
        *out_fd = store->io->open(store->io->arg, path.ptr, O_RDONLY, 0);
        if (*out_fd < 0 && errno == ENOENT)
            status = annal__fail(err, ANNAL_ERR_NOTFOUND, "there is no session '%.*s'",
                                 ANNAL_FMT(session));
        else if (*out_fd < 0)
            status = annal__fail_errno(err, "open %s", path.ptr);
    }
    annal__buf_done(&path);
    return status;
}

static annal_status cursor_new(annal_store *store, annal_slice session, annal_cursor **out_cursor,
                               annal_error *err)
{
    int fd;
    annal_status status = open_journal(store, session, &fd, err);
    if (status < 0)
        return status;
    annal_cursor *cursor = annal__zalloc(sizeof *cursor);
    if (cursor == NULL) {
        store->io->close(store->io->arg, fd);
        return annal__fail(err, ANNAL_ERR_NOMEM, "read session '%.*s': no memory",
                           ANNAL_FMT(session));
    }
    cursor->store = store;
    for (size_t i = 0; i < session.len; i++)
        cursor->session[i] = session.ptr[i];
    annal__scan_init(&cursor->scan, store->io, fd, &annal__codec_json);
    *out_cursor = cursor;
    return ANNAL_OK;
}

annal_status annal_cursor_open(annal_store *store, annal_slice session, uint64_t from_seq,
                               annal_cursor **out_cursor, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = cursor_new(store, session, &cursor, err);
    if (status < 0)
        return status;
    cursor->from_seq = from_seq;
    status = annal__scan_seek(&cursor->scan, from_seq, err);
    if (status < 0) {
        annal__error_context(err, "session '%s'", cursor->session);
        annal_cursor_close(cursor);
        return status;
    }
    *out_cursor = cursor;
    return ANNAL_OK;
}

annal_status annal_cursor_open_at(annal_store *store, annal_slice session, uint64_t seq,
                                  uint64_t offset, uint64_t h_before, annal_cursor **out_cursor,
                                  annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = cursor_new(store, session, &cursor, err);
    if (status < 0)
        return status;
    uint64_t h = 0;
    if (offset > 0)
        status = annal__scan_h_before(&cursor->scan, offset, &h, err);
    if (status < 0)
        annal__error_context(err, "session '%s'", cursor->session);
    else if (offset > 0 && (status == ANNAL_END || h != h_before))
        status =
            annal__fail(err, ANNAL_ERR_CONFLICT,
                        "session '%s' is not what it was: event %llu does not begin at byte %llu",
                        cursor->session, (unsigned long long)seq, (unsigned long long)offset);
    if (status < 0) {
        annal_cursor_close(cursor);
        return status;
    }
    cursor->from_seq = seq;
    annal__scan_set(&cursor->scan, seq, offset, offset > 0 ? h_before : 0);
    *out_cursor = cursor;
    return ANNAL_OK;
}

annal_status annal_cursor_next(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    annal_status status = annal__store_check(cursor->store, err);
    if (status < 0)
        return status;
    do {
        status = annal__scan_next(&cursor->scan, out_event, err);
    } while (status == ANNAL_OK && out_event->seq < cursor->from_seq);
    if (status < 0)
        annal__error_context(err, "session '%s'", cursor->session);
    return status;
}

annal_damage annal_cursor_damage(const annal_cursor *cursor)
{
    return cursor->scan.damage;
}

annal_position annal_cursor_position(const annal_cursor *cursor)
{
    return (annal_position){cursor->scan.next_seq, cursor->scan.offset, cursor->scan.h};
}

void annal_cursor_close(annal_cursor *cursor)
{
    if (cursor == NULL)
        return;
    annal__scan_done(&cursor->scan);
    annal__free(cursor);
}

/* A neighbour is damaged, so the line cannot prove itself alone: walk to it. */
static annal_status read_by_walking(struct scan *scan, uint64_t seq, uint64_t offset, char *bytes,
                                    size_t length, annal_event *out_event, annal_error *err)
{
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
    const char *line = scan->window.ptr + (offset - scan->window_offset);
    for (size_t i = 0; i < length; i++)
        bytes[i] = line[i];
    scan->codec->parse_event((annal_slice){bytes, length}, &event);
    *out_event = event;
    out_event->h = scan->h;
    return ANNAL_OK;
}

annal_status annal_event_read_at(annal_store *store, annal_slice session, uint64_t seq,
                                 uint64_t offset, char *bytes, size_t length,
                                 annal_event *out_event, annal_error *err)
{
    int fd;
    annal_status status = open_journal(store, session, &fd, err);
    if (status < 0)
        return status;
    struct scan scan;
    annal__scan_init(&scan, store->io, fd, &annal__codec_json);
    uint64_t h_before = 0, h = 0;
    annal_slice frame = {bytes, length};
    annal_event event = {0};
    bool proven = annal__scan_h_before(&scan, offset, &h_before, NULL) == ANNAL_OK &&
                  annal__read_full(store->io, fd, bytes, length, offset) == (ssize_t)length &&
                  annal__frame_proves(scan.codec, frame, offset, h_before, &h) &&
                  scan.codec->parse_event(frame, &event) && event.seq == seq;
    if (proven)
        event.h = h;
    else
        status = read_by_walking(&scan, seq, offset, bytes, length, &event, err);
    if (status == ANNAL_OK) {
        event.offset = offset;
        event.length = length;
        *out_event = event;
    } else if (status > 0) {
        status =
            annal__fail(err, ANNAL_ERR_CORRUPT,
                        "session '%.*s': byte %llu does not begin event %llu, or it is damaged",
                        ANNAL_FMT(session), (unsigned long long)offset, (unsigned long long)seq);
    }
    annal__scan_done(&scan);
    return status;
}
