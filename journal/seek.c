/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find an event in a journal by its seq.
 *
 * (1) A journal has no table of its events. A look at any offset finds the next frame whose hash
 *     follows from the trailer before it, and its seq shows whether the wanted event is before or
 *     after it.
 * (2) The next look is where the event would be, between two known events, if all events had the
 *     same size, or a little before it. Every third look halves the distance, so that the number of
 *     looks is bounded for any sizes.
 * (3) A scan that seeks notes the offsets of events that it reads (seek_table.h). After some seeks,
 *     a seek is one read.
 * (4) A noted offset only says where to look: the frame at this offset must have the right hash and
 *     the noted seq. If it does not, all noted offsets are dropped.
 */
#include "journal/base/error.h"
#include "journal/scan.h"
#include "journal/seek_table.h"

#include <sys/param.h>

/* If at most this many events or bytes precede the wanted event, they are read one by one, because
 * another step of the search would cost as much. */
#define WALK_EVENTS ((uint64_t)16)
#define WALK_BYTES  ((uint64_t)32 << 10)
/* smallest journal for which a table of offsets is worth its memory */
#define TABLE_BYTES_MIN ((uint64_t)256 << 10)

/* ---- Looking ---- */

/* Read a frame as annal__scan_frame() does; a long frame is not read into memory: then *out_long is
 * set. */
static annal_status short_frame(struct scan *scan, uint64_t offset, uint64_t keep,
                                annal_slice *out_frame, bool *out_long, annal_error *err)
{
    scan->hold = scan->codec->parse_head != NULL ? SCAN_HOLD_BYTES : 0;
    annal_status status = annal__scan_frame(scan, offset, keep, out_frame, err);
    *out_long = status == ANNAL_END && scan->hold > 0 &&
                scan->window_offset + scan->window.len >= offset + scan->hold;
    scan->hold = 0;
    return status;
}

/* Find the first valid event that begins after this offset; ANNAL_END if none begins within four
 * frames. */
static annal_status probe(struct scan *scan, uint64_t offset, annal_event *out_event,
                          annal_error *err)
{
    annal_slice rest, frame;
    bool is_long = false;
    annal_status status = short_frame(scan, offset, offset, &rest, &is_long, err);
    if (is_long) {
        uint64_t end = 0;
        status = annal__scan_line_end(scan, offset, &end, err);
        return status == ANNAL_OK ? annal__scan_look(scan, end, out_event, err) : status;
    }
    for (int tries = 0; status == ANNAL_OK && tries < 4; tries++) {
        uint64_t h_before, h, start = offset + rest.len;
        status = short_frame(scan, start, offset, &frame, &is_long, err);
        if (is_long)
            return annal__scan_look(scan, start, out_event, err);
        rest.ptr = frame.ptr - rest.len;
        if (status == ANNAL_OK && scan->codec->trailer(rest, &h_before) &&
            annal__codec_proves(scan->codec, frame, start, h_before, &h) &&
            annal__codec_event(scan->codec, frame, out_event, NULL)) {
            out_event->offset = start;
            if (scan->table != NULL)
                annal__seek_table_note(scan->table, out_event->seq, start);
            return ANNAL_OK;
        }
        offset = start;
        rest = frame;
    }
    return status < 0 ? status : ANNAL_END;
}

/* Choose the offset at which the search reads next (rule 2). high->seq is 0 while the seq at the
 * end of the file is unknown. */
static uint64_t guess(const struct seek_place *low, const struct seek_place *high, uint64_t seq,
                      unsigned tries)
{
    uint64_t bytes = high->offset - low->offset, middle = low->offset + bytes / 2;
    if (high->seq == 0 && tries == 0 && bytes > 2 * WALK_BYTES)
        /* first read near the end of the file, to learn the last seq */
        return high->offset - WALK_BYTES;
    if (high->seq <= seq || tries % 3 == 2)
        return middle;
    double events = (double)(high->seq - low->seq), before = (double)(seq - low->seq);
    double each = (double)bytes / events;
    /* Sizes of events differ, so the estimate is less certain over longer distances: choose an
     * offset before it. */
    double near = MIN(before, events - before), root = 1;
    while (root * root < near)
        root *= 2;
    double at = (before - 2 * root) * each;
    return at < 1 ? low->offset + 1 : low->offset + (uint64_t)at;
}

/* Move *low, which is the first event or a valid event, closer to event seq, until a few events or
 * bytes are between. */
static annal_status approach(struct scan *scan, uint64_t seq, struct seek_place *low,
                             struct seek_place high, annal_error *err)
{
    for (unsigned tries = 0; high.offset - low->offset > WALK_BYTES && seq - low->seq > WALK_EVENTS;
         tries++) {
        annal_event event;
        uint64_t at = guess(low, &high, seq, tries);
        annal_status status = probe(scan, at, &event, err);
        if (status < 0)
            return status;
        if (status == ANNAL_OK && event.offset < high.offset && event.seq <= seq)
            *low = (struct seek_place){event.seq, event.offset};
        else
            high = (struct seek_place){status == ANNAL_OK ? event.seq : high.seq, at};
    }
    return ANNAL_OK;
}

static annal_status stand_at_long(struct scan *scan, const struct seek_place *place,
                                  annal_error *err)
{
    annal_event event;
    uint64_t h_before = 0;
    annal_status status = annal__scan_look(scan, place->offset, &event, err);
    if (status == ANNAL_OK && event.seq != place->seq)
        status = ANNAL_END;
    if (status == ANNAL_OK)
        status = annal__scan_h_before(scan, place->offset, &h_before, err);
    if (status == ANNAL_OK)
        annal__scan_stand(scan, place->seq, place->offset, h_before);
    return status;
}

/* Set the scan to a known place; ANNAL_END if no valid event with the place's seq begins at its
 * offset. */
static annal_status stand(struct scan *scan, const struct seek_place *place, annal_error *err)
{
    annal_slice frame;
    annal_event event;
    uint64_t h_before, h;
    size_t trailer = scan->codec->trailer_bytes;
    if (place->offset == 0) {
        annal__scan_stand(scan, scan->first_seq, 0, 0);
        return ANNAL_OK;
    }
    if (place->offset < trailer)
        return ANNAL_END;
    bool is_long = false;
    annal_status status =
        short_frame(scan, place->offset, place->offset - trailer, &frame, &is_long, err);
    if (is_long)
        return stand_at_long(scan, place, err);
    if (status != ANNAL_OK)
        return status;
    annal_slice before = {frame.ptr - trailer, trailer};
    if (!scan->codec->ends(before) || !scan->codec->trailer(before, &h_before) ||
        !annal__codec_proves(scan->codec, frame, place->offset, h_before, &h) ||
        !annal__codec_event(scan->codec, frame, &event, NULL) || event.seq != place->seq)
        return ANNAL_END;
    annal__scan_stand(scan, place->seq, place->offset, h_before);
    return ANNAL_OK;
}

/* Read events one by one up to event seq; damage before it is not reported. */
static annal_status walk(struct scan *scan, uint64_t seq, annal_error *err)
{
    while (scan->next_seq < seq) {
        uint64_t offset = scan->offset, h = scan->h, next_seq = scan->next_seq;
        annal_event event;
        annal_status status = annal__scan_next_head(scan, &event, err);
        while (status == ANNAL_DAMAGE)
            status = annal__scan_next_head(scan, &event, err);
        if (status < 0)
            return status;
        if (status == ANNAL_OK && event.seq < seq)
            continue;
        /* The event is not written yet, or is lost: stop before the bytes that are in its place. */
        annal__scan_stand(scan, next_seq, offset, h);
        break;
    }
    return ANNAL_OK;
}

static annal_status seek_between(struct scan *scan, uint64_t seq, struct seek_place low,
                                 struct seek_place high, annal_error *err)
{
    annal_status status = approach(scan, seq, &low, high, err);
    return status == ANNAL_OK ? stand(scan, &low, err) : status;
}

annal_status annal__seek(struct scan *scan, uint64_t seq, annal_error *err)
{
    struct stat file;
    annal__scan_set(scan, scan->first_seq, 0, 0);
    if (seq <= scan->first_seq)
        return ANNAL_OK;
    if (scan->io->fstat(scan->io->arg, scan->fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine a journal");
    const struct seek_place first = {scan->first_seq, 0}, end = {0, (uint64_t)file.st_size};
    /* without memory for a table, seeks take longer */
    if (scan->table == NULL && end.offset > TABLE_BYTES_MIN)
        scan->table = annal__seek_table_take(scan->tables, file.st_dev, file.st_ino);

    struct seek_place low = first, high = end;
    if (scan->table != NULL)
        annal__seek_table_near(scan->table, seq, &low, &high);
    annal_status status = seek_between(scan, seq, low, high, err);
    /* a noted offset was wrong: search again without the table (rule 4) */
    if (status == ANNAL_END) {
        if (scan->table != NULL)
            annal__seek_table_clear(scan->table);
        status = seek_between(scan, seq, first, end, err);
    }
    if (status == ANNAL_END) {
        annal__scan_stand(scan, scan->first_seq, 0, 0);
        status = ANNAL_OK;
    }
    return status < 0 ? status : walk(scan, seq, err);
}
