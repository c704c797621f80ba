/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tail_stream.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/sys/cursor.h"
#include "journal/sys/say.h"

#include <fnmatch.h>
#include <string.h>

static annal_slice session_of(const struct stream *stream)
{
    return (annal_slice){stream->named.name, stream->named.len};
}

struct stream *annal__tail_stream_of(struct streams *streams, annal_slice session)
{
    struct named *named = annal__name_table_find(&streams->names, session);
    if (named != NULL)
        return (struct stream *)named;
    struct stream *stream =
        (struct stream *)annal__name_table_add(&streams->names, session, sizeof *stream);
    if (stream != NULL)
        stream->own_first_seq = stream->first_seq = stream->next_seq = 1;
    return stream;
}

/* ---- Open journals, rule (3) ---- */

static void list_open(struct streams *streams, struct stream *stream)
{
    stream->open_before = NULL;
    stream->open_behind = streams->open_first;
    *(streams->open_first == NULL ? &streams->open_last : &streams->open_first->open_before) =
        stream;
    streams->open_first = stream;
    streams->open_count++;
}

static void unlist_open(struct streams *streams, struct stream *stream)
{
    *(stream->open_before == NULL ? &streams->open_first : &stream->open_before->open_behind) =
        stream->open_behind;
    *(stream->open_behind == NULL ? &streams->open_last : &stream->open_behind->open_before) =
        stream->open_before;
    streams->open_count--;
}

/* Remember the position of the cursor, if the journal can be opened again at it. */
static void keep_place(struct stream *stream)
{
    stream->place = annal_cursor_position(stream->cursor);
    stream->has_place = stream->place.offset > 0 && stream->place.seq == stream->next_seq &&
                        stream->next_seq >= stream->own_first_seq;
}

void annal__tail_stream_close(struct streams *streams, struct stream *stream)
{
    if (stream->cursor == NULL)
        return;
    if (!stream->has_head)
        keep_place(stream);
    unlist_open(streams, stream);
    annal_cursor_close(stream->cursor);
    stream->cursor = NULL;
    stream->has_head = false;
}

void annal__tail_stream_rest(struct stream *stream)
{
    if (stream->cursor != NULL && !stream->has_head)
        annal__cursor_rest(stream->cursor);
}

void annal__tail_stream_drop(struct streams *streams, struct stream *stream)
{
    annal__tail_stream_close(streams, stream);
    annal__name_table_drop(&streams->names, &stream->named);
}

void annal__tail_streams_done(struct streams *streams)
{
    while (streams->open_first != NULL)
        annal__tail_stream_close(streams, streams->open_first);
    annal__name_table_done(&streams->names);
    annal__free(streams->types);
}

/* ---- Rule (4) ---- */

static void begin_anew(struct stream *stream, const annal_session_info *info, bool own_only)
{
    memcpy(stream->file, info->file, sizeof stream->file);
    stream->own_first_seq = info->first_seq;
    stream->first_seq = own_only ? info->first_seq : 1;
    stream->next_seq = stream->first_seq;
    stream->has_h = stream->must_prove = stream->has_place = false;
}

static void warn_restarted(const struct streams *streams, const struct stream *stream)
{
    annal_error what;
    (void)annal__fail(
        &what, ANNAL_ERR_CONFLICT,
        "session '%s' was replaced since the cursor of the tail was saved: the tail starts "
        "again at its first event",
        stream->named.name);
    annal__say(streams->store, ANNAL_LOG_WARNING, "%s", what.message);
}

annal_status annal__tail_stream_identify(struct streams *streams, struct stream *stream,
                                         bool *out_restarted, annal_error *err)
{
    annal_session_info info;
    *out_restarted = false;
    annal_status status = annal_session_info_get(streams->store, session_of(stream), &info, err);
    if (status < 0)
        return status;
    if (strcmp(info.file, stream->file) == 0)
        return ANNAL_OK;
    annal__tail_stream_close(streams, stream);
    if (stream->file[0] != '\0' && strcmp(info.replaces, stream->file) == 0) {
        memcpy(stream->file, info.file, sizeof stream->file); /* the journal was converted */
        stream->has_h = stream->must_prove = stream->has_place = false;
        return ANNAL_OK;
    }
    *out_restarted = stream->next_seq > stream->first_seq;
    if (*out_restarted && stream->must_prove)
        warn_restarted(streams, stream);
    begin_anew(stream, &info, streams->own_only);
    return ANNAL_OK;
}

void annal__tail_stream_restart(const struct streams *streams, struct stream *stream)
{
    warn_restarted(streams, stream);
    stream->next_seq = stream->first_seq;
    stream->has_h = stream->must_prove = stream->has_place = false;
}

/* Read event next_seq - 1, before which the cursor is. *out_same says whether it is the event that
 * was returned last. */
static annal_status prove(struct stream *stream, bool *out_same, annal_error *err)
{
    annal_event event;
    annal_status status;
    do {
        status = annal__cursor_next_json(stream->cursor, &event, err);
    } while (status == ANNAL_DAMAGE);
    *out_same = status == ANNAL_OK && event.seq == stream->next_seq - 1 && event.h == stream->h;
    return status < 0 ? status : ANNAL_OK;
}

static annal_status open_at_place(struct streams *streams, struct stream *stream, annal_error *err)
{
    const annal_position *place = &stream->place;
    return annal_cursor_open_at(streams->store, session_of(stream), place->seq, place->offset,
                                place->h_before, &stream->cursor, err);
}

/* Open the journal after the event that was returned last. *out_same says whether the journal
 * contains that event. */
static annal_status open_behind(struct streams *streams, struct stream *stream, bool *out_same,
                                annal_error *err)
{
    bool proves = stream->has_h && stream->next_seq > 1;
    annal_status status =
        annal_cursor_open(streams->store, session_of(stream),
                          proves ? stream->next_seq - 1 : stream->next_seq, &stream->cursor, err);
    *out_same = true;
    if (status == ANNAL_OK && proves)
        status = prove(stream, out_same, err);
    if ((status < 0 || !*out_same) && stream->cursor != NULL) {
        annal_cursor_close(stream->cursor);
        stream->cursor = NULL;
    }
    return status;
}

static annal_status resolve(struct streams *streams, struct stream *stream, annal_error *err)
{
    bool is_restarted;
    bool claimed = stream->must_prove;
    annal_status status = annal__tail_stream_identify(streams, stream, &is_restarted, err);
    if (status < 0)
        return status;
    if (!is_restarted && claimed && stream->must_prove)
        annal__tail_stream_restart(streams, stream);
    /* the file is the same, so the last event is damaged at most: do not compare it again */
    stream->has_h = false;
    return ANNAL_OK;
}

static annal_status open_stream(struct streams *streams, struct stream *stream, annal_error *err)
{
    annal_status status = ANNAL_ERR_CONFLICT;
    bool same = false;
    while (streams->open_count >= streams->open_max)
        annal__tail_stream_close(streams, streams->open_last);
    if (stream->has_place)
        status = open_at_place(streams, stream, err);
    same = status == ANNAL_OK;
    if (status == ANNAL_ERR_CONFLICT)
        status = open_behind(streams, stream, &same, err);
    if (status == ANNAL_OK && !same) {
        status = resolve(streams, stream, err);
        if (status == ANNAL_OK)
            status = open_behind(streams, stream, &same, err);
    }
    if (status < 0)
        return status;
    stream->must_prove = stream->has_place = false;
    list_open(streams, stream);
    return ANNAL_OK;
}

/* ---- Reading ---- */

static bool is_wanted(const struct streams *streams, annal_slice type)
{
    char text[ANNAL_TYPE_BYTES_MAX + 1];
    if (streams->type_count == 0)
        return true;
    size_t len = type.len < sizeof text ? type.len : sizeof text - 1;
    memcpy(text, type.ptr, len);
    text[len] = '\0';
    for (size_t i = 0; i < streams->type_count; i++) {
        if (fnmatch(streams->types[i], text, FNM_NOESCAPE) == 0)
            return true;
    }
    return false;
}

static annal_status read_on(struct streams *streams, struct stream *stream, annal_error *err)
{
    annal_event event;
    while (stream->next_seq <= stream->upto) {
        keep_place(stream);
        annal_status status = annal__cursor_next_json(stream->cursor, &event, err);
        if (status == ANNAL_DAMAGE) {
            streams->damage = annal_cursor_damage(stream->cursor);
            stream->next_seq = annal_cursor_position(stream->cursor).seq;
            stream->has_h = false;
        }
        if (status != ANNAL_OK)
            return status;
        if (event.seq > stream->upto) { /* damage precedes the event, and is returned first */
            annal__tail_stream_close(streams, stream);
            return ANNAL_END;
        }
        stream->has_head = true;
        stream->head = event;
        if (event.seq >= stream->next_seq && is_wanted(streams, event.type))
            return ANNAL_OK;
        annal__tail_stream_advance(stream);
    }
    return ANNAL_END;
}

annal_status annal__tail_stream_peek(struct streams *streams, struct stream *stream,
                                     annal_error *err)
{
    annal_status status = ANNAL_END;
    if (stream->has_head)
        return ANNAL_OK;
    if (stream->next_seq > stream->upto)
        return ANNAL_END;
    if (stream->cursor != NULL) {
        unlist_open(streams, stream);
        list_open(streams, stream);
        status = read_on(streams, stream, err);
        if (status != ANNAL_END || stream->upto == UINT64_MAX || stream->next_seq > stream->upto)
            return status;
        annal__tail_stream_close(streams, stream); /* a copy may have replaced the journal */
    }
    status = open_stream(streams, stream, err);
    if (status < 0)
        return status == ANNAL_ERR_NOTFOUND ? ANNAL_END : status;
    return read_on(streams, stream, err);
}

void annal__tail_stream_advance(struct stream *stream)
{
    stream->has_head = stream->has_place = false;
    stream->next_seq = stream->head.seq + 1;
    stream->h = stream->head.h;
    stream->has_h = true;
}

/* ---- Where to begin ---- */

enum { REACH_FACTOR = 8 };

/* A search from the end of a session, in pieces of growing length, so that the bytes read are a
 * small multiple of the bytes that were searched for, whatever the length of the session. */
struct look_back {
    struct streams *streams;
    struct stream *stream;
    uint64_t last_seq;
    uint64_t reach;
    uint64_t from_seq; /* seq of the first event of the piece that is searched now */
};

static bool reach_back(struct look_back *back)
{
    uint64_t first = back->stream->first_seq;
    if (back->last_seq < first || back->from_seq == first)
        return false;
    back->reach = back->reach == 0 ? 1 : back->reach * REACH_FACTOR;
    back->from_seq =
        back->last_seq - first < back->reach ? first : back->last_seq - back->reach + 1;
    return true;
}

/* Return the next event of the part of the journal that is being searched, from back->from_seq to
 * back->last_seq; ANNAL_END after the last. *cursor is NULL at first; the caller closes it. */
static annal_status next_of_piece(const struct look_back *back, annal_cursor **cursor,
                                  annal_event *out_event, annal_error *err)
{
    annal_status status = ANNAL_OK;
    if (*cursor == NULL)
        status = annal_cursor_open(back->streams->store, session_of(back->stream), back->from_seq,
                                   cursor, err);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_END; /* the session was deleted after the search began: there are no events */
    do {
        if (status >= 0)
            status = annal__cursor_next_json(*cursor, out_event, err);
    } while (status == ANNAL_DAMAGE);
    return status == ANNAL_OK && out_event->seq > back->last_seq ? ANNAL_END : status;
}

annal_status annal__tail_stream_seek_time(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, int64_t from_us, annal_error *err)
{
    struct look_back back = {.streams = streams, .stream = stream, .last_seq = last_seq};
    annal_status status = ANNAL_END;
    uint64_t older = 0;
    stream->next_seq = stream->first_seq;
    while (status == ANNAL_END && older == 0 && reach_back(&back)) {
        annal_cursor *cursor = NULL;
        annal_event event;
        while ((status = next_of_piece(&back, &cursor, &event, err)) == ANNAL_OK) {
            if (event.ts_us < from_us)
                older = event.seq;
        }
        annal_cursor_close(cursor);
    }
    if (older > 0)
        stream->next_seq = older + 1;
    return status < 0 ? status : ANNAL_OK;
}

static void sift_down(struct lasts *lasts)
{
    struct last *heap = lasts->heap;
    for (size_t at = 0, child; (child = 2 * at + 1) < lasts->count; at = child) {
        if (child + 1 < lasts->count && heap[child + 1].ts_us < heap[child].ts_us)
            child++;
        if (heap[at].ts_us <= heap[child].ts_us)
            return;
        struct last last = heap[at];
        heap[at] = heap[child];
        heap[child] = last;
    }
}

static void put_last(struct lasts *lasts, struct last last)
{
    struct last *heap = lasts->heap;
    if (lasts->count == lasts->want) {
        if (last.ts_us < heap[0].ts_us)
            return;
        heap[0] = last;
        sift_down(lasts);
        return;
    }
    size_t at = lasts->count++;
    for (; at > 0 && heap[(at - 1) / 2].ts_us > last.ts_us; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = last;
}

/* Collect the last events of a wanted type of one piece in a ring of lasts->want events. *out_far
 * says whether earlier pieces need not be read. */
static annal_status collect_piece(const struct look_back *back, const struct lasts *lasts,
                                  struct last *ring, size_t *out_count, bool *out_far,
                                  annal_error *err)
{
    annal_cursor *cursor = NULL;
    annal_event event;
    annal_status status;
    size_t count = 0;
    *out_far = false;
    while ((status = next_of_piece(back, &cursor, &event, err)) == ANNAL_OK) {
        if (!is_wanted(back->streams, event.type))
            continue;
        if (count == 0 && lasts->count == lasts->want && event.ts_us < lasts->heap[0].ts_us)
            *out_far = true;
        ring[count++ % lasts->want] = (struct last){event.ts_us, event.seq, back->stream};
    }
    annal_cursor_close(cursor);
    *out_far = *out_far || count >= lasts->want;
    *out_count = count;
    return status;
}

annal_status annal__tail_stream_seek_last(struct streams *streams, struct stream *stream,
                                          uint64_t last_seq, struct lasts *lasts, annal_error *err)
{
    struct look_back back = {.streams = streams, .stream = stream, .last_seq = last_seq};
    annal_status status = ANNAL_END;
    size_t count = 0;
    bool far = false;
    struct last *ring = annal__realloc_array(NULL, lasts->want, sizeof *ring);
    if (ring == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM,
                           "find the last %zu events of session '%s': out of memory", lasts->want,
                           stream->named.name);
    stream->next_seq = last_seq < stream->first_seq ? stream->first_seq : last_seq + 1;
    while (status == ANNAL_END && !far && reach_back(&back))
        status = collect_piece(&back, lasts, ring, &count, &far, err);
    for (size_t i = count > lasts->want ? lasts->want : count; i > 0 && status >= 0; i--)
        put_last(lasts, ring[(count - i) % lasts->want]);
    annal__free(ring);
    return status < 0 ? status : ANNAL_OK;
}
