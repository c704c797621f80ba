/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read long events without holding them in memory.
 *
 * (1) An event is long if its frame does not end within SCAN_HOLD_BYTES. Its envelope, at the
 *     front, is kept; the rest is read in pieces, which are hashed and dropped. If the hash is
 *     right, the event is returned with the place of its data.
 * (2) If the hash is wrong, annal__scan_next() reads the complete frame, and the frames after it,
 *     to find out what is damaged (scan.h).
 * (3) Frames of msgpack are read completely, because their data is decoded before it is shown.
 */
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/envelope.h"
#include "journal/scan.h"
#include "journal/seek_table.h"

#include <string.h>

#define PIECE_BYTES ((size_t)256 << 10)

/* Return the bytes of the frame at scan->offset that are in the window. */
static annal_slice head_of(const struct scan *scan)
{
    size_t start = (size_t)(scan->offset - scan->window_offset);
    return (annal_slice){scan->window.ptr + start, scan->window.len - start};
}

/*
 * Read and hash the frame at scan->offset to its end. ANNAL_DAMAGE if it has no trailer or is
 * longer than a frame may be; ANNAL_END if its end is not written yet. piece has room for a trailer
 * and PIECE_BYTES, because bytes that may be the trailer are hashed only after the next piece.
 */
static annal_status prove_in_pieces(struct scan *scan, char *piece, struct hash_stream *hash,
                                    uint64_t *out_length, uint64_t *out_h, annal_error *err)
{
    const struct codec *codec = scan->codec;
    size_t trailer = codec->trailer_bytes;
    annal_slice head = head_of(scan);
    annal__hash_add(hash, head.ptr, head.len - trailer);
    memcpy(piece, head.ptr + head.len - trailer, trailer);
    for (uint64_t seen = head.len; seen <= FRAME_BYTES_MAX;) {
        ssize_t got = annal__io_read_full(scan->io, scan->fd, piece + trailer, PIECE_BYTES,
                                          scan->offset + seen);
        if (got < 0)
            return annal__fail_errno(err, "cannot read a journal at byte %llu",
                                     (unsigned long long)(scan->offset + seen));
        if (got == 0)
            return ANNAL_END;
        size_t end = codec->measure((annal_slice){piece + trailer, (size_t)got}, 0, false);
        size_t before = end > 0 ? end : (size_t)got;
        annal__hash_add(hash, piece, before);
        memmove(piece, piece + before, trailer);
        seen += before;
        if (end > 0) {
            *out_length = seen;
            return codec->trailer((annal_slice){piece, trailer}, out_h) ? ANNAL_OK : ANNAL_DAMAGE;
        }
    }
    return ANNAL_DAMAGE;
}

static annal_status next_long(struct scan *scan, annal_event *out_event, annal_error *err)
{
    SCOPED_BUF piece = {0};
    struct hash_stream *hash = annal__hash_begin(scan->h);
    annal_status status = annal__buf_reserve(&piece, scan->codec->trailer_bytes + PIECE_BYTES);
    uint64_t length = 0, h = 0;
    size_t data_at = 0;
    annal_event event;
    if (hash == NULL || status < 0) {
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read a journal: out of memory");
        goto done;
    }
    status = prove_in_pieces(scan, piece.ptr, hash, &length, &h, err);
    if (status != ANNAL_OK)
        goto done;
    uint64_t proof = annal__hash_end(hash);
    hash = NULL;
    if (proof != h || !scan->codec->parse_head(head_of(scan), &event, &data_at) ||
        annal__envelope_fault(&event) != NULL ||
        (scan->next_seq > 0 && event.seq != scan->next_seq)) {
        status = ANNAL_DAMAGE;
        goto done;
    }
    event.h = h;
    event.offset = scan->offset;
    event.length = length;
    scan->data_at = scan->offset + data_at;
    scan->data_bytes = length - data_at - scan->codec->trailer_bytes;
    if (scan->table != NULL)
        annal__seek_table_note(scan->table, event.seq, event.offset);
    annal__scan_stand(scan, event.seq + 1, event.offset + length, h);
    *out_event = event;

done:
    if (hash != NULL)
        (void)annal__hash_end(hash);
    return status;
}

/* Skip the header as annal__scan_next() does; a damaged header is left to annal__scan_next(). */
static annal_status pass_header(struct scan *scan, annal_error *err)
{
    annal_slice frame;
    struct frame_header header;
    uint64_t h;
    annal_status status = annal__scan_frame(scan, 0, 0, &frame, err);
    if (status == ANNAL_OK && annal__codec_proves(scan->codec, frame, 0, 0, &h) &&
        scan->codec->parse_header(frame, &header))
        annal__scan_stand(scan, header.fork_seq + 1, frame.len, h);
    return status < 0 ? status : ANNAL_OK;
}

annal_status annal__scan_next_head(struct scan *scan, annal_event *out_event, annal_error *err)
{
    scan->data_bytes = 0;
    if (scan->offset == 0 && scan->resume == 0 && scan->codec->parse_head != NULL) {
        annal_status status = pass_header(scan, err);
        if (status < 0)
            return status;
    }
    bool plain = scan->offset > 0 && scan->resume == 0 && scan->sound_length == 0;
    if (!plain || scan->codec->parse_head == NULL)
        return annal__scan_next(scan, out_event, err);

    annal_slice frame;
    scan->hold = SCAN_HOLD_BYTES;
    annal_status status = annal__scan_frame(scan, scan->offset, scan->offset, &frame, err);
    scan->hold = 0;
    if (status == ANNAL_END &&
        scan->window_offset + scan->window.len >= scan->offset + SCAN_HOLD_BYTES)
        status = next_long(scan, out_event, err);
    else if (status >= 0)
        return annal__scan_next(scan, out_event, err);
    return status == ANNAL_DAMAGE ? annal__scan_next(scan, out_event, err) : status;
}

annal_status annal__scan_look(struct scan *scan, uint64_t offset, annal_event *out_event,
                              annal_error *err)
{
    uint64_t h_before;
    annal_event event;
    annal_status status = annal__scan_h_before(scan, offset, &h_before, err);
    if (status != ANNAL_OK)
        return status;
    annal__scan_stand(scan, 0, offset, h_before);
    status = annal__scan_next_head(scan, &event, err);
    if (status < 0)
        return status;
    if (status != ANNAL_OK || event.offset != offset)
        return ANNAL_END;
    *out_event = event;
    return ANNAL_OK;
}

annal_status annal__scan_line_end(const struct scan *scan, uint64_t offset, uint64_t *out_end,
                                  annal_error *err)
{
    SCOPED_BUF piece = {0};
    annal_status status = annal__buf_reserve(&piece, PIECE_BYTES);
    if (status < 0)
        return annal__fail(err, status, "read a journal: out of memory");
    for (status = ANNAL_END; status == ANNAL_END;) {
        ssize_t got = annal__io_read_full(scan->io, scan->fd, piece.ptr, PIECE_BYTES, offset);
        if (got < 0)
            status = annal__fail_errno(err, "cannot read a journal at byte %llu",
                                       (unsigned long long)offset);
        if (got <= 0)
            break;
        size_t end = scan->codec->measure((annal_slice){piece.ptr, (size_t)got}, 0, false);
        offset += end > 0 ? end : (size_t)got;
        if (end > 0)
            status = ANNAL_OK;
    }
    if (status == ANNAL_OK)
        *out_end = offset;
    return status;
}
