/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/sys/cursor.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/json_msgpack.h"
#include "journal/lineage.h"
#include "journal/store.h"

#include <string.h>

/*
 * Cursors read the events of a session from one seq on.
 *
 * A cursor reads one history (lineage.h). Its scan walks one part after the other. While it walks
 * the part of an ancestor, the session's own journal stays open: if its name is removed in the
 * meantime, the cursor still reads the removed file. A part of an ancestor is checked against the
 * fork point that it ends with (rule 4 of lineage.h). Events whose journal is in another format
 * than JSON are converted on the way (json_msgpack.h).
 */
struct annal_cursor {
    annal_store *store;
    uint64_t from_seq;
    struct scan scan;
    /* scan of the session's own journal, while `scan` reads an ancestor's journal */
    struct scan own;
    /* part of the history that scan reads: 0: the own journal; n: lineage.parts[n - 1] */
    size_t part;
    struct origin origin;
    struct lineage lineage;
    bool is_head_only; /* whether the next event is read without its data, if the data is long */
    annal_slice data;  /* data of the last event that was returned; empty if it is long */
    struct buf json;   /* data of the last event that was returned, if its journal is not JSON */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

static annal_status cursor_new(annal_store *store, annal_slice session, annal_cursor **out_cursor,
                               annal_error *err)
{
    struct scan scan;
    struct origin origin;
    annal_status status = annal__lineage_open_journal(store, session, &scan, &origin, err);
    if (status < 0)
        return status;
    annal_cursor *cursor = annal__zalloc(sizeof *cursor);
    if (cursor == NULL) {
        annal__scan_done(&scan);
        return annal__fail(err, ANNAL_ERR_NOMEM, "read session '%.*s': out of memory",
                           ANNAL_FMT(session));
    }
    cursor->store = store;
    memcpy(cursor->session, session.ptr, session.len);
    cursor->scan = scan;
    cursor->origin = origin;
    *out_cursor = cursor;
    return ANNAL_OK;
}

annal_session_info annal__cursor_header(const annal_cursor *cursor)
{
    const struct origin *origin = &cursor->origin;
    annal_session_info info = {.created_us = origin->created_us,
                               .fork_seq = origin->seq,
                               .fork_h = origin->h,
                               .first_seq = origin->seq + 1};
    memcpy(info.session, cursor->session, sizeof info.session);
    memcpy(info.file, origin->file, sizeof info.file);
    memcpy(info.replaces, origin->replaces, sizeof info.replaces);
    memcpy(info.fork_session, origin->session, sizeof info.fork_session);
    return info;
}

/* Continue with part number `part` of the history, at its first event. */
static annal_status enter_part(annal_cursor *cursor, size_t part, annal_error *err)
{
    struct scan scan;
    struct origin origin;
    if (part == cursor->part)
        return ANNAL_OK;
    if (part == 0) {
        annal__scan_done(&cursor->scan);
        cursor->scan = cursor->own;
        cursor->part = 0;
        return ANNAL_OK;
    }
    annal_slice ancestor = annal_slice_of(cursor->lineage.parts[part - 1].session);
    annal_status status = annal__lineage_open_journal(cursor->store, ancestor, &scan, &origin, err);
    if (status < 0)
        return status;
    if (cursor->part == 0)
        cursor->own = cursor->scan;
    else
        annal__scan_done(&cursor->scan);
    cursor->scan = scan;
    cursor->part = part;
    return ANNAL_OK;
}

/* Move the cursor to the position before event seq, in the journal that contains this event of the
 * history. */
static annal_status stand(annal_cursor *cursor, uint64_t seq, annal_error *err)
{
    size_t part = 0;
    annal_status status = annal__lineage_find(cursor->store, &cursor->lineage, cursor->session,
                                              &cursor->origin, seq, &part, err);
    if (status == ANNAL_OK)
        status = enter_part(cursor, part, err);
    if (status == ANNAL_OK)
        status = annal__seek(&cursor->scan, seq, err);
    cursor->from_seq = seq;
    cursor->scan.data_bytes = 0;
    cursor->data = (annal_slice){NULL, 0};
    return status;
}

annal_status annal_cursor_open(annal_store *store, annal_slice session, uint64_t from_seq,
                               annal_cursor **out_cursor, annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_status status = cursor_new(store, session, &cursor, err);
    if (status < 0)
        return status;
    status = stand(cursor, from_seq > 0 ? from_seq : 1, err);
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
        status = annal__fail(err, ANNAL_ERR_CONFLICT,
                             "session '%s' was replaced: event %llu no longer starts at byte %llu",
                             cursor->session, (unsigned long long)seq, (unsigned long long)offset);
    if (status < 0) {
        annal_cursor_close(cursor);
        return status;
    }
    if (offset == 0)
        seq = cursor->origin.seq + 1;
    else
        cursor->from_seq = seq;
    annal__scan_set(&cursor->scan, seq, offset, offset > 0 ? h_before : 0);
    *out_cursor = cursor;
    return ANNAL_OK;
}

static annal_status next_of_part(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    if (cursor->is_head_only)
        return annal__scan_next_head(&cursor->scan, out_event, err);
    cursor->scan.data_bytes = 0;
    return annal__scan_next(&cursor->scan, out_event, err);
}

/* Fail, because the ancestor's journal has another history than the fork (rule 4 of lineage.h). */
static annal_status refuse_part(const annal_cursor *cursor, annal_error *err)
{
    const struct part *parts = cursor->lineage.parts;
    const char *fork = cursor->part == 1 ? cursor->session : parts[cursor->part - 2].session;
    return annal__lineage_refuse(fork, &parts[cursor->part - 1], err);
}

/* Read the next event of an ancestor's part; ANNAL_END after its last event. */
static annal_status next_of_ancestor(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    const struct part *part = &cursor->lineage.parts[cursor->part - 1];
    if (cursor->scan.next_seq > part->to_seq)
        return ANNAL_END;
    annal_status status = next_of_part(cursor, out_event, err);
    if (status == ANNAL_END)
        return refuse_part(cursor, err);
    if (annal__lineage_differs(&cursor->scan, status, out_event, part))
        return refuse_part(cursor, err);
    if (status == ANNAL_OK && out_event->seq > part->to_seq)
        /* the last events of the part are lost, and this event follows the fork point */
        return ANNAL_END;
    return status;
}

static annal_status next_of_history(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    while (cursor->part > 0) {
        annal_status status = next_of_ancestor(cursor, out_event, err);
        if (status != ANNAL_END)
            return status;
        status = enter_part(cursor, cursor->part - 1, err);
        if (status < 0)
            return status;
        uint64_t first = cursor->part == 0 ? cursor->origin.seq + 1
                                           : cursor->lineage.parts[cursor->part - 1].origin.seq + 1;
        annal__scan_set(&cursor->scan, first, 0, 0);
    }
    return next_of_part(cursor, out_event, err);
}

/* Source of annal__json_check_pieces(): the data of an event that is too long for memory. */
static bool read_data(void *arg, uint64_t offset, void *bytes, size_t len)
{
    const struct scan *scan = arg;
    ssize_t got = annal__io_read_full(scan->io, scan->fd, bytes, len, scan->data_at + offset);
    return got >= 0 && (size_t)got == len;
}

/* Check the data of an event, which another program may have written: no append accepts such faults
 * (draft.c). *out_fault says what is wrong, or is NULL. */
static annal_status check_data(annal_cursor *cursor, annal_slice data, const char **out_fault,
                               annal_error *err)
{
    json_fault fault = JSON_VALID;
    *out_fault = NULL;
    if (cursor->scan.data_bytes == 0) {
        fault = annal__json_check_line(data, ANNAL_DATA_DEPTH_MAX, NULL);
    } else if (!annal__json_check_pieces(cursor->scan.data_bytes, read_data, &cursor->scan,
                                         ANNAL_DATA_DEPTH_MAX, &fault)) {
        return annal__fail(err, ANNAL_ERR_IO, "session '%s': cannot read the data of event %llu",
                           cursor->session, (unsigned long long)cursor->scan.next_seq - 1);
    }
    *out_fault = fault == JSON_UTF8    ? "the data of this event is not UTF-8"
                 : fault == JSON_DEPTH ? "the data of this event is nested too deep"
                 : fault == JSON_BREAK ? "the data of this event has a line break"
                 : fault != JSON_VALID ? "the data of this event is not one JSON value"
                                       : NULL;
    return ANNAL_OK;
}

/* Turn the data of an event into JSON for readers. ANNAL_DAMAGE for msgpack that JSON cannot
 * express and, if `checks`, for data that is not JSON. */
static annal_status show_data(annal_cursor *cursor, bool checks, annal_event *event,
                              annal_error *err)
{
    if (event->format == ANNAL_FORMAT_JSON && !checks)
        return ANNAL_OK;
    annal_error why = {0};
    const char *fault = NULL;
    annal_status status = annal__json_msgpack_show(event, &cursor->json, &why);
    if (status == ANNAL_DAMAGE)
        fault = "the data of this event is not msgpack that JSON can express";
    else if (status == ANNAL_OK && checks && event->format == ANNAL_FORMAT_JSON)
        status = check_data(cursor, event->data, &fault, &why);
    if (status < 0 && err != NULL)
        *err = why;
    if (status < 0 || fault == NULL)
        return status;
    cursor->scan.damage = (annal_damage){.seq = event->seq,
                                         .offset = event->offset,
                                         .length = event->length,
                                         .event_lost = true,
                                         .what = fault};
    return ANNAL_DAMAGE;
}

static annal_status next_event(annal_cursor *cursor, bool checks, annal_event *out_event,
                               annal_error *err)
{
    annal_status status = annal__context_check(&cursor->store->context, err);
    if (status < 0)
        return status;
    do {
        status = next_of_history(cursor, out_event, err);
    } while (status == ANNAL_OK && out_event->seq < cursor->from_seq);
    if (status == ANNAL_OK)
        status = show_data(cursor, checks, out_event, err);
    if (status < 0)
        annal__error_context(err, "session '%s'", cursor->session);
    cursor->data = status == ANNAL_OK ? out_event->data : (annal_slice){NULL, 0};
    return status;
}

annal_status annal_cursor_next(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    return next_event(cursor, false, out_event, err);
}

annal_status annal__cursor_open_event(annal_store *store, annal_slice session, uint64_t seq,
                                      annal_cursor **out_cursor, annal_event *out_event,
                                      annal_error *err)
{
    annal_status status = annal_cursor_open(store, session, seq, out_cursor, err);
    if (status >= 0)
        status = annal_cursor_next(*out_cursor, out_event, err);
    return status == ANNAL_OK && out_event->seq != seq ? ANNAL_END : status;
}

annal_status annal__cursor_next_json(annal_cursor *cursor, annal_event *out_event, annal_error *err)
{
    return next_event(cursor, true, out_event, err);
}

annal_status annal__cursor_next_head(annal_cursor *cursor, annal_event *out_event,
                                     uint64_t *out_data_bytes, annal_error *err)
{
    cursor->is_head_only = true;
    annal_status status = next_event(cursor, true, out_event, err);
    cursor->is_head_only = false;
    if (status == ANNAL_OK)
        *out_data_bytes =
            cursor->scan.data_bytes > 0 ? cursor->scan.data_bytes : out_event->data.len;
    return status;
}

annal_status annal__cursor_data(annal_cursor *cursor, uint64_t offset, void *bytes, size_t len,
                                size_t *out_len, annal_error *err)
{
    const struct scan *scan = &cursor->scan;
    annal_status status = annal__context_check(&cursor->store->context, err);
    if (status < 0)
        return status;
    uint64_t all = scan->data_bytes > 0 ? scan->data_bytes : cursor->data.len;
    size_t want = offset >= all ? 0 : (size_t)(all - offset < len ? all - offset : len);
    if (scan->data_bytes == 0) {
        if (want > 0)
            memcpy(bytes, cursor->data.ptr + offset, want);
    } else {
        ssize_t got = annal__io_read_full(scan->io, scan->fd, bytes, want, scan->data_at + offset);
        if (got < 0)
            return annal__fail_errno(err, "session '%s': cannot read the data of event %llu",
                                     cursor->session,
                                     (unsigned long long)cursor->scan.next_seq - 1);
        if ((size_t)got < want)
            return annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "session '%s': the journal was cut within event %llu while this event was read",
                cursor->session, (unsigned long long)cursor->scan.next_seq - 1);
    }
    *out_len = want;
    return ANNAL_OK;
}

annal_status annal_cursor_seek(annal_cursor *cursor, uint64_t seq, annal_error *err)
{
    annal_status status = annal__context_check(&cursor->store->context, err);
    if (status == ANNAL_OK)
        status = stand(cursor, seq > 0 ? seq : 1, err);
    if (status < 0)
        annal__error_context(err, "session '%s'", cursor->session);
    return status;
}

annal_status annal_cursor_last(annal_cursor *cursor, uint64_t count, annal_error *err)
{
    const struct scan *own = cursor->part > 0 ? &cursor->own : &cursor->scan;
    struct journal_tail tail;
    annal_status status = annal__context_check(&cursor->store->context, err);
    if (status == ANNAL_OK)
        status = annal__scan_tail(own->io, own->fd, own->codec, &tail, err);
    if (status < 0) {
        annal__error_context(err, "session '%s'", cursor->session);
        return status;
    }
    return annal_cursor_seek(cursor, count < tail.seq ? tail.seq - count + 1 : 1, err);
}

annal_damage annal_cursor_damage(const annal_cursor *cursor)
{
    return cursor->scan.damage;
}

annal_position annal_cursor_position(const annal_cursor *cursor)
{
    return (annal_position){cursor->scan.next_seq, cursor->scan.offset, cursor->scan.h};
}

void annal__cursor_rest(annal_cursor *cursor)
{
    annal__scan_rest(&cursor->scan);
    annal__buf_done(&cursor->json);
}

annal_slice annal__cursor_journal(const annal_cursor *cursor)
{
    return annal_slice_of(cursor->part == 0 ? cursor->session
                                            : cursor->lineage.parts[cursor->part - 1].session);
}

void annal_cursor_close(annal_cursor *cursor)
{
    if (cursor == NULL)
        return;
    annal__scan_done(&cursor->scan);
    if (cursor->part > 0)
        annal__scan_done(&cursor->own);
    annal__lineage_done(&cursor->lineage);
    annal__buf_done(&cursor->json);
    annal__free(cursor);
}
