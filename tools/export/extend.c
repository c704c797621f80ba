/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export/extend.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/sys/seam.h"

#include <string.h>

/* Number of bytes that an append counts for each event in addition to its data (docs/limits.md). */
enum { ENVELOPE_BYTES = 512 };

struct piece {
    struct buf bytes; /* memory of the data and texts of all drafts */
    annal_draft *drafts;
    size_t count;
    size_t counted; /* size of the event in bytes as an append counts it, with ENVELOPE_BYTES */
};

static annal_status add(struct piece *piece, const annal_event *event, annal_error *err)
{
    bool packed = event->format == ANNAL_FORMAT_MSGPACK;
    annal_draft draft = {.type = event->type,
                         .data = packed ? event->msgpack : event->data,
                         .id = event->id,
                         .cause = event->cause,
                         .ts_us = ANNAL_TS(event->ts_us),
                         .data_format = event->format};
    const annal_slice texts[] = {draft.type, draft.data, draft.id, draft.cause};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == ANNAL_OK; i++)
        status = annal__buf_append_slice(&piece->bytes, texts[i]);
    annal_draft *last = annal__array_add(&piece->drafts, &piece->count, sizeof *last);
    if (status < 0 || last == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "copy events: out of memory");
    *last = draft;
    piece->counted += (size_t)event->length + ENVELOPE_BYTES;
    return ANNAL_OK;
}

/* Point a slice to its copy. The copies are in the order in which add() made them. */
static void place(annal_slice *slice, const char **copy)
{
    slice->ptr = slice->len > 0 ? *copy : NULL;
    *copy += slice->len;
}

static annal_status append(struct piece *piece, annal_writer *writer, uint64_t *after_seq,
                           annal_error *err)
{
    const annal_append_options options = {
        .level = ANNAL_LEVEL_SYNC, .expect = ANNAL_EXPECT_SEQ, .expected_seq = *after_seq};
    const char *copy = piece->bytes.ptr;
    uint64_t seq = 0;
    if (piece->count == 0)
        return ANNAL_OK;
    for (size_t i = 0; i < piece->count; i++) {
        place(&piece->drafts[i].type, &copy);
        place(&piece->drafts[i].data, &copy);
        place(&piece->drafts[i].id, &copy);
        place(&piece->drafts[i].cause, &copy);
    }
    annal_status status =
        annal_writer_append(writer, piece->drafts, piece->count, &options, &seq, err);
    *after_seq += piece->count;
    piece->count = piece->counted = 0;
    annal__buf_clear(&piece->bytes);
    return status;
}

static bool is_full(const struct piece *piece, const annal_event *next)
{
    return piece->count == ANNAL_APPEND_EVENTS_MAX ||
           (piece->count > 0 &&
            piece->counted + next->length + ENVELOPE_BYTES > ANNAL_APPEND_BYTES_MAX);
}

annal_status extend_append(annal_cursor *cursor, annal_writer *writer, uint64_t after_seq,
                           annal_error *err)
{
    annal_event event;
    struct piece piece = {0};
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK) {
        status = annal_cursor_next(cursor, &event, err);
        if (status != ANNAL_OK)
            break;
        if (is_full(&piece, &event))
            status = append(&piece, writer, &after_seq, err);
        if (status == ANNAL_OK)
            status = add(&piece, &event, err);
    }
    if (status == ANNAL_DAMAGE)
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "copy events to the session in the store: an event is damaged, so "
                             "later events were not copied");
    if (status == ANNAL_END)
        status = append(&piece, writer, &after_seq, err);
    annal__buf_done(&piece.bytes);
    annal__free(piece.drafts);
    return status;
}

annal_status extend_session(annal_store *store, annal_store *from, annal_slice session,
                            annal_error *err)
{
    annal_session_info info;
    annal_cursor *cursor = NULL;
    annal_writer *writer = NULL;
    annal_status status = annal_session_info_get(store, session, &info, err);
    if (status >= 0)
        status = annal_cursor_open(from, session, info.last_seq + 1, &cursor, err);
    if (status >= 0)
        status = annal_writer_open(store, session, NULL, &writer, err);
    if (status >= 0)
        annal__writer_ignore_lease(writer);
    if (status >= 0)
        status = extend_append(cursor, writer, info.last_seq, err);
    annal_writer_close(writer);
    annal_cursor_close(cursor);
    return status < 0 ? status : ANNAL_OK;
}
