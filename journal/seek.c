/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding an event in a journal by its seq.
 *
 * (1) Frames have no table: a look at any place in the file finds the next frame that proves itself
 *     by the trailer before it, and its seq shows on which side of it the event is.
 * (2) Between two known places the next look is where the event would be if all had the same size,
 *     or a little before it; every third look halves the distance, so that no journal is worse than
 *     that.
 * (3) A scan that seeks notes where events begin that it has passed (seek_table.h). In the end a
 *     seek is one read.
 * (4) What was noted only says where to look, and proves nothing: the frame there must prove itself
 *     and have the seq. If it does not, everything noted is dropped.
 */
#include "journal/base/error.h"
#include "journal/scan.h"
#include "journal/seek_table.h"

#include <sys/param.h>

/* if at most this many events are between, walk instead of searching */
#define WALK_EVENTS     ((uint64_t)16)
#define WALK_BYTES      ((uint64_t)32 << 10)
#define TABLE_BYTES_MIN ((uint64_t)256 << 10) /* smallest journal for which a table pays off */

/* ---- Looking ---- */

/* Long frames are not read into memory. */
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

/* The first frame that begins at or after offset and proves itself; ANNAL_END if no such frame is
 * near. */
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

/* Rule (2). */
static uint64_t guess(const struct seek_place *low, const struct seek_place *high, uint64_t seq,
                      unsigned tries)
{
    uint64_t bytes = high->offset - low->offset, middle = low->offset + bytes / 2;
    if (high->seq == 0 && tries == 0 && bytes > 2 * WALK_BYTES)
        return high->offset - WALK_BYTES; /* find the last seq first */
    if (high->seq <= seq || tries % 3 == 2)
        return middle;
    double events = (double)(high->seq - low->seq), before = (double)(seq - low->seq);
    double each = (double)bytes / events;
    /* Sizes differ, so the estimate is less certain over longer distances: aim before it. */
    double near = MIN(before, events - before), root = 1;
    while (root * root < near)
        root *= 2;
    double at = (before - 2 * root) * each;
    return at < 1 ? low->offset + 1 : low->offset + (uint64_t)at;
}

/* Approach event seq from below: *low is the first event, or an event with a correct hash. */
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

/* Move to a place. ANNAL_END if no event proves itself there with that seq. */
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

/* Walk the rest one by one; damage before the event is not reported here. */
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
        /* Not there yet, or lost: stop before what is in its place. */
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
    if (scan->table == NULL && end.offset > TABLE_BYTES_MIN) /* without a table it takes longer */
        scan->table = annal__seek_table_take(scan->tables, file.st_dev, file.st_ino);

    struct seek_place low = first, high = end;
    if (scan->table != NULL)
        annal__seek_table_near(scan->table, seq, &low, &high);
    annal_status status = seek_between(scan, seq, low, high, err);
    if (status == ANNAL_END) { /* rule (4) */
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
