/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/show/event_out.h"

#include "journal/base/error.h"
#include "journal/base/json_halves.h"
#include "journal/sys/cursor.h"
#include "tools/cli/command.h"
#include "tools/cli/out.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { END_WAITS = 20, END_WAIT_MS = 10, PIECE_BYTES = 65536 };

/* Print a member that needs no escapes: only data can contain characters that JSON escapes, because
 * the journal refuses them elsewhere. */
static int add_member(char *text, size_t room, const char *name, annal_slice value)
{
    return value.len == 0 ? 0 : snprintf(text, room, ",\"%s\":\"%.*s\"", name, ANNAL_FMT(value));
}

size_t event_head(const annal_event *event, annal_slice session, char text[EVENT_HEAD_BYTES])
{
    char ts[ANNAL_TIME_BYTES];
    int len = session.len > 0 ? snprintf(text, EVENT_HEAD_BYTES, "{\"session_id\":\"%.*s\",",
                                         ANNAL_FMT(session))
                              : snprintf(text, EVENT_HEAD_BYTES, "{");
    annal_time_format(event->ts_us, ts);
    len += snprintf(text + len, EVENT_HEAD_BYTES - (size_t)len,
                    "\"seq\":%" PRIu64 ",\"%s\":\"%s\",\"type\":\"%.*s\"", event->seq,
                    session.len > 0 ? "timestamp" : "ts", ts, ANNAL_FMT(event->type));
    len += add_member(text + len, EVENT_HEAD_BYTES - (size_t)len, "id", event->id);
    len += add_member(text + len, EVENT_HEAD_BYTES - (size_t)len, "cause", event->cause);
    len += snprintf(text + len, EVENT_HEAD_BYTES - (size_t)len, ",\"data\":");
    ANNAL_ASSERT(len < EVENT_HEAD_BYTES);
    return (size_t)len;
}

static void print_envelope(const annal_event *event, annal_slice session)
{
    char text[EVENT_HEAD_BYTES];
    out_slice((annal_slice){text, event_head(event, session, text)});
}

static bool keeps_bytes;

void event_keep_bytes(bool keep)
{
    keeps_bytes = keep;
}

annal_status event_put_data(struct buf *out, annal_slice data)
{
    size_t before = out->len;
    annal_status status = annal__buf_append_slice(out, data);
    if (status >= 0 && !keeps_bytes && annal__json_has_halves(data))
        (void)annal__json_mend_halves(out->ptr + before, data.len, true);
    return status;
}

annal_status event_mend(annal_event *event, struct buf *data, annal_error *err)
{
    if (keeps_bytes || !annal__json_has_halves(event->data))
        return ANNAL_OK;
    if (event->data.ptr != data->ptr) {
        annal__buf_clear(data);
        if (annal__buf_append_slice(data, event->data) < 0)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read event %" PRIu64 ": out of memory",
                               event->seq);
    }
    (void)annal__json_mend_halves(data->ptr, data->len, true);
    event->data = annal__buf_slice(data);
    return ANNAL_OK;
}

annal_slice event_strict(annal_slice data, struct buf *room)
{
    annal__buf_clear(room);
    if (keeps_bytes || !annal__json_has_halves(data) || event_put_data(room, data) < 0)
        return data;
    return annal__buf_slice(room);
}

/* Print data in pieces that do not end within a surrogate pair. If cursor is NULL, event->data is
 * complete. */
static bool print_pieces(annal_cursor *cursor, const annal_event *event, uint64_t data_bytes,
                         annal_error *err)
{
    char piece[PIECE_BYTES];
    for (uint64_t at = 0; at < data_bytes && out_wanted();) {
        size_t len = data_bytes - at < sizeof piece ? (size_t)(data_bytes - at) : sizeof piece;
        annal_status status = ANNAL_OK;
        if (cursor == NULL)
            memcpy(piece, event->data.ptr + at, len);
        else
            status = annal__cursor_data(cursor, at, piece, sizeof piece, &len, err);
        if (status >= 0 && len == 0)
            status = annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "read event %" PRIu64 ": the journal became shorter than the event", event->seq);
        if (status < 0)
            return false;
        if (!keeps_bytes)
            len = annal__json_mend_halves(piece, len, at + len >= data_bytes);
        out_slice((annal_slice){piece, len});
        at += len;
    }
    return true;
}

static void print_data(const annal_event *event)
{
    if (keeps_bytes || !annal__json_has_halves(event->data))
        out_slice(event->data);
    else
        (void)print_pieces(NULL, event, event->data.len, NULL);
}

void event_print(const annal_event *event, annal_slice session)
{
    print_envelope(event, session);
    print_data(event);
    fputs("}\n", stdout);
}

bool event_print_data(annal_cursor *cursor, const annal_event *event, uint64_t data_bytes,
                      annal_error *err)
{
    if (event->data.len < data_bytes)
        return print_pieces(cursor, event, data_bytes, err);
    print_data(event);
    return true;
}

bool event_print_head(annal_cursor *cursor, const annal_event *event, annal_slice session,
                      uint64_t data_bytes, annal_error *err)
{
    print_envelope(event, session);
    if (!event_print_data(cursor, event, data_bytes, err))
        return false;
    fputs("}\n", stdout);
    return true;
}

annal_status event_read_whole(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                              struct buf *data, annal_error *err)
{
    size_t len = 0;
    annal__buf_clear(data);
    annal_status status = annal__buf_reserve(data, (size_t)data_bytes);
    if (status < 0)
        return annal__fail(err, ANNAL_ERR_NOMEM, "read event %" PRIu64 ": out of memory",
                           event->seq);
    while (status >= 0 && data->len < data_bytes) {
        status = annal__cursor_data(cursor, data->len, data->ptr + data->len,
                                    (size_t)data_bytes - data->len, &len, err);
        if (status >= 0 && len == 0)
            status = annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "read event %" PRIu64 ": the journal became shorter than the event", event->seq);
        data->len += status >= 0 ? len : 0;
    }
    if (status >= 0)
        event->data = annal__buf_slice(data);
    return status;
}

annal_status event_read_data(annal_cursor *cursor, annal_event *event, uint64_t data_bytes,
                             struct buf *data, annal_error *err)
{
    annal__buf_clear(data);
    if (data_bytes > LONG_DATA_BYTES)
        /* even if the data is in memory: the caller gets no data longer than LONG_DATA_BYTES */
        event->data = (annal_slice){0};
    if (event->data.len == data_bytes || data_bytes > LONG_DATA_BYTES)
        return ANNAL_OK;
    return event_read_whole(cursor, event, data_bytes, data, err);
}

void event_say_damage(annal_slice session, const annal_damage *damage)
{
    say("session '%.*s', event %" PRIu64 " at byte %" PRIu64 ": %s", ANNAL_FMT(session),
        damage->seq, damage->offset, damage->what);
}

int event_check_end(annal_store *store, annal_slice session, annal_position here, int *waits)
{
    annal_error err = {0};
    annal_session_info info;
    for (int i = 0; i < 2 || *waits < END_WAITS; i++) {
        if (i > 0) {
            (void)poll(NULL, 0, END_WAIT_MS);
            (*waits)++;
        }
        if (annal_session_info_get(store, session, &info, &err) < 0)
            return fail_error(&err);
        if (i == 0 && info.end_offset > here.offset)
            here = (annal_position){.seq = info.last_seq + 1, .offset = info.end_offset};
        if (info.bytes <= here.offset || info.end_offset > here.offset)
            return EXIT_DONE;
    }
    if (here.offset == 0)
        say("session '%.*s': all %" PRIu64 " bytes of the journal are not readable: the header is "
            "damaged; see 'annal verify %.*s'",
            ANNAL_FMT(session), info.bytes, ANNAL_FMT(session));
    else
        say("session '%.*s': %" PRIu64 " bytes at byte %" PRIu64 ", after event %" PRIu64
            ", are not readable: a damaged or unfinished line; see 'annal verify %.*s'",
            ANNAL_FMT(session), info.bytes - here.offset, here.offset,
            here.seq > 0 ? here.seq - 1 : 0, ANNAL_FMT(session));
    return EXIT_REFUSED;
}
