/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/scan.h"

#include "journal/base/error.h"
#include "journal/seek_table.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>

/*
 * Bytes of a journal that one read fetches. A walk reads half as much as it has read before: at
 * least READ_FIRST, so that reading a single event reads little, and at most READ_BYTES, which stay
 * in the processor's cache until they are hashed. A search for the last event begins with
 * TAIL_BYTES.
 */
#define READ_FIRST ((size_t)32 << 10)
#define READ_BYTES ((size_t)256 << 10)
#define TAIL_BYTES ((size_t)64 << 10)
/* If the last LONG_REACH bytes of a journal contain no valid event, its last line is probably long:
 * find_long_tail() searches for its beginning. The value must be TAIL_BYTES times a power of 4. */
#define LONG_REACH       ((size_t)256 << 10)
#define WINDOW_BYTES_MAX (3 * (FRAME_BYTES_MAX + READ_BYTES))

/* Maximum number of frames that are joined to repair one: a damaged byte of a trailer that became a
 * newline splits a frame in up to three. */
#define JOINED_FRAMES_MAX 3

void annal__scan_init(struct scan *scan, const struct io *io, int fd, const struct codec *codec)
{
    *scan = (struct scan){.io = io,
                          .fd = fd,
                          .codec = codec,
                          .window = {.limit = WINDOW_BYTES_MAX},
                          .next_seq = 1,
                          .first_seq = 1};
}

void annal__scan_done(struct scan *scan)
{
    annal__buf_done(&scan->window);
    annal__seek_table_give(scan->tables, scan->table);
    scan->table = NULL;
    if (scan->io != NULL && scan->fd >= 0)
        scan->io->close(scan->io->arg, scan->fd);
    scan->fd = -1;
}

void annal__scan_rest(struct scan *scan)
{
    /* keep the window while the scan is reporting damage that is in it */
    if (scan->resume == 0 && scan->sound_length == 0)
        annal__buf_done(&scan->window);
    annal__seek_table_give(scan->tables, scan->table);
    scan->table = NULL;
    scan->read = 0;
}

void annal__scan_stand(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h)
{
    scan->next_seq = seq;
    scan->offset = offset;
    scan->h = h;
    scan->resume = 0;
    scan->sound_length = 0;
    scan->loose = false;
}

/* Drop the bytes that were read, because the file may have changed since. */
static void forget_bytes(struct scan *scan)
{
    annal__buf_clear(&scan->window);
    scan->read = 0;
}

void annal__scan_set(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h)
{
    annal__scan_stand(scan, seq, offset, h);
    forget_bytes(scan);
}

/* ---- Bytes ---- */

/* Read more bytes after the window, and drop those before offset `keep`. ANNAL_END at the end of
 * the file. */
static annal_status read_more(struct scan *scan, uint64_t keep, annal_error *err)
{
    if (keep > scan->window_offset) {
        annal__buf_consume(&scan->window, (size_t)(keep - scan->window_offset));
        scan->window_offset = keep;
    }
    size_t ahead = (size_t)MIN(scan->read / 2, READ_BYTES);
    size_t want = MAX(scan->window.len, MAX(ahead, READ_FIRST));
    annal_status status = annal__buf_reserve(&scan->window, want);
    if (status < 0)
        return annal__fail(err, status, "read a frame of %zu bytes: out of memory",
                           scan->window.len);
    ssize_t got = annal__io_read_full(scan->io, scan->fd, scan->window.ptr + scan->window.len, want,
                                      scan->window_offset + scan->window.len);
    if (got < 0)
        return annal__fail_errno(err, "cannot read a journal at byte %llu",
                                 (unsigned long long)scan->window_offset + scan->window.len);
    scan->window.len += (size_t)got;
    scan->read += (uint64_t)got;
    return got == 0 ? ANNAL_END : ANNAL_OK;
}

/*
 * Return the bytes at this offset up to the end of the next frame (an event or header in the file).
 * If the frame is longer than a frame may be, return its first FRAME_BYTES_MAX bytes. Bytes from
 * offset `keep` on stay in the window, the part of the file in memory. ANNAL_END if the end of the
 * frame is not written yet.
 */
annal_status annal__scan_frame(struct scan *scan, uint64_t offset, uint64_t keep,
                               annal_slice *out_frame, annal_error *err)
{
    keep = MIN(keep, offset);
    if (keep < scan->window_offset || keep > scan->window_offset + scan->window.len) {
        forget_bytes(scan);
        scan->window_offset = keep;
    }
    size_t searched = 0;
    bool all = false;
    for (;;) {
        size_t start = (size_t)(offset - scan->window_offset);
        if (start < scan->window.len && (start + searched < scan->window.len || all)) {
            annal_slice have = {scan->window.ptr + start, scan->window.len - start};
            size_t length = scan->codec->measure(have, searched, all);
            if (length == 0 && have.len >= FRAME_BYTES_MAX)
                length = have.len;
            if (length > 0) {
                *out_frame = (annal_slice){have.ptr, MIN(length, FRAME_BYTES_MAX)};
                return ANNAL_OK;
            }
            searched = have.len;
            if (scan->hold > 0 && have.len >= scan->hold)
                return ANNAL_END;
        }
        annal_status status = all ? ANNAL_END : read_more(scan, keep, err);
        if (status < 0 || all)
            return status;
        all = status == ANNAL_END;
    }
}

annal_status annal__scan_h_before(const struct scan *scan, uint64_t offset, uint64_t *out_h,
                                  annal_error *err)
{
    char bytes[FRAME_TRAILER_BYTES_MAX];
    annal_slice trailer = {bytes, scan->codec->trailer_bytes};
    if (offset < trailer.len)
        return ANNAL_END;
    ssize_t got = annal__io_read_full(scan->io, scan->fd, bytes, trailer.len, offset - trailer.len);
    if (got < 0)
        return annal__fail_errno(err, "cannot read a journal at byte %llu",
                                 (unsigned long long)offset);
    bool there = got == (ssize_t)trailer.len && scan->codec->ends(trailer) &&
                 scan->codec->trailer(trailer, out_h);
    return there ? ANNAL_OK : ANNAL_END;
}

/* Return whether the frame's hash is right (rule 1). */
static bool proves(const struct scan *scan, annal_slice frame, uint64_t offset, uint64_t h_before,
                   uint64_t *out_h)
{
    return annal__codec_proves(scan->codec, frame, offset, h_before, out_h);
}

/* ---- Damage ---- */

static annal_status report(struct scan *scan, uint64_t length, bool event_lost, const char *what)
{
    scan->damage = (annal_damage){.seq = scan->offset > 0 || event_lost ? scan->next_seq : 0,
                                  .offset = scan->offset,
                                  .length = length,
                                  .event_lost = event_lost,
                                  .what = what};
    return ANNAL_DAMAGE;
}

/* Report damage in the next `length` bytes, which contain a complete event all the same; the next
 * call returns this event. */
static annal_status report_sound(struct scan *scan, uint64_t length, uint64_t h, const char *what)
{
    annal_status status = report(scan, length, false, what);
    if (scan->offset == 0) {
        scan->offset = length;
        scan->h = h;
    } else {
        scan->sound_length = length;
        scan->sound_h = h;
    }
    return status;
}

/* Compute the h that the bytes from the damaged frame up to `end` would have if they were one
 * frame; false if they do not have the shape of a frame. */
static bool joined_h(struct scan *scan, uint64_t end, uint64_t *out_h)
{
    if (end - scan->offset < scan->codec->trailer_bytes || scan->window_offset > scan->offset)
        return false;
    annal_slice joined = {scan->window.ptr + (scan->offset - scan->window_offset),
                          (size_t)(end - scan->offset)};
    annal_event event;
    struct frame_header header;
    if (!(scan->offset == 0 ? scan->codec->parse_header(joined, &header)
                            : annal__codec_event(scan->codec, joined, &event, NULL)))
        return false;
    *out_h = scan->codec->hash(joined, scan->offset, scan->h);
    return true;
}

/* Find out what is damaged in the frame at scan->offset (rule 2). */
static annal_status diagnose(struct scan *scan, annal_slice frame, annal_error *err)
{
    size_t length;
    uint64_t h;
    if (scan->codec->split != NULL &&
        /* the frame consists of two lines whose newline in between was damaged (rule 3) */
        scan->codec->split(frame, scan->h, &length, &h))
        return report_sound(scan, length, h, "the newline after this line is damaged");

    uint64_t written_h = 0;
    bool has_written = scan->codec->trailer(frame, &written_h);
    uint64_t end = scan->offset + frame.len;
    for (int frames = 1;; frames++) {
        uint64_t should_h = 0;
        bool has_should = frames <= JOINED_FRAMES_MAX && joined_h(scan, end, &should_h);
        annal_slice next;
        annal_status status = annal__scan_frame(
            scan, end, frames < JOINED_FRAMES_MAX ? scan->offset : end, &next, err);
        if (status != ANNAL_OK)
            /* nothing at the end of the file is reported as damage: it may be being written (rule 5
             * of scan.h) */
            return status;
        if (has_should && proves(scan, next, end, should_h, &h))
            return report_sound(scan, end - scan->offset, should_h,
                                "the hash or the end of this frame is damaged");
        if (has_written && proves(scan, next, end, written_h, &h)) {
            scan->resume = end;
            scan->resume_h = written_h;
            annal_event event;
            scan->resume_seq = annal__codec_event(scan->codec, next, &event, NULL) ? event.seq : 0;
            return ANNAL_OK;
        }
        has_written = scan->codec->trailer(next, &written_h);
        end += next.len;
    }
}

/* Report the next of the damaged frames before scan->resume as damage. */
static annal_status pass_damaged_frame(struct scan *scan, annal_error *err)
{
    annal_slice frame;
    annal_status status = annal__scan_frame(scan, scan->offset, scan->offset, &frame, err);
    if (status != ANNAL_OK)
        return status;
    uint64_t length = frame.len;
    /* If a frame has lost its length, bytes in its data may look like frames. So all bytes up to
     * scan->resume are reported as the last missing event. */
    if (scan->codec->split == NULL && scan->next_seq + 1 >= scan->resume_seq)
        length = scan->resume - scan->offset;
    bool last = scan->offset + length >= scan->resume;
    uint64_t h;
    bool whole = scan->codec->trailer(frame, &h);
    /* At offset 0 the header is expected, but an event may be there instead, or the header may
     * follow other bytes. */
    annal_event event;
    struct frame_header header;
    bool lost = scan->offset > 0 ? !scan->codec->parse_header(frame, &header)
                                 : annal__codec_event(scan->codec, frame, &event, NULL);
    report(scan, length, lost,
           whole ? "the hash of this event is wrong, or the event before it was changed"
                 : "these bytes are not an event");
    /* A piece of a frame is not counted as an event, because the frame that it was cut from is
     * counted. */
    if (lost && (whole || last))
        scan->next_seq++;
    scan->loose = true;
    scan->offset += length;
    if (last) {
        scan->h = scan->resume_h;
        scan->resume = 0;
    }
    return ANNAL_DAMAGE;
}

/* ---- Walking ---- */

/* Read the version from the header of the journal; FRAME_VERSION if the header is damaged. */
static annal_status read_version(const struct scan *scan, uint32_t *out_version, annal_error *err)
{
    char bytes[FRAME_ENVELOPE_BYTES];
    struct frame_header header;
    uint64_t h;
    ssize_t got = annal__io_read_full(scan->io, scan->fd, bytes, sizeof bytes, 0);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the header of a journal");
    bool is_header =
        annal__codec_first(scan->codec, (annal_slice){bytes, (size_t)got}, &header, &h);
    *out_version = is_header ? header.version : FRAME_VERSION;
    return ANNAL_OK;
}

/* Report a frame whose hash is right, but which is not a valid event of this version, or not the
 * next event. In a file of a newer version it may be valid, so reading fails there. */
static annal_status refuse(struct scan *scan, annal_slice frame, uint64_t h, const char *fault,
                           annal_error *err)
{
    uint32_t version;
    annal_status status = read_version(scan, &version, err);
    if (status < 0)
        return status;
    if (version > FRAME_VERSION)
        return annal__fail(err, ANNAL_ERR_UNSUPPORTED,
                           "event %llu has format version %u, but this library supports version "
                           "%d: read the session with a newer annal",
                           (unsigned long long)scan->next_seq, version, FRAME_VERSION);
    report(scan, frame.len, scan->offset > 0,
           fault == NULL ? "these bytes have a correct hash, but are not an event" : fault);
    if (scan->offset == 0)
        /* the header may have been that of a fork, so the first seq is unknown */
        scan->loose = true;
    else if (scan->next_seq > 0)
        scan->next_seq++;
    scan->offset += frame.len;
    scan->h = h;
    return ANNAL_DAMAGE;
}

/* Maximum number of events that damage may have removed in one place: a larger gap in the seqs
 * means that a seq is forged. */
#define MISSING_EVENTS_MAX 1000000

/* Find out whether the frame after the next `length` bytes is the event after seq, or whether
 * nothing follows yet. This may move the window. */
static annal_status goes_on(struct scan *scan, size_t length, uint64_t seq, uint64_t h,
                            bool *out_goes_on, annal_error *err)
{
    annal_slice next;
    annal_event event;
    uint64_t end = scan->offset + length, next_h;
    annal_status status = annal__scan_frame(scan, end, scan->offset, &next, err);
    *out_goes_on = status == ANNAL_END ||
                   (status == ANNAL_OK && proves(scan, next, end, h, &next_h) &&
                    annal__codec_event(scan->codec, next, &event, NULL) && event.seq == seq + 1);
    return status < 0 ? status : ANNAL_OK;
}

/* Handle a valid frame whose seq is not the next (rule 4). */
static annal_status other_seq(struct scan *scan, size_t length, uint64_t seq, uint64_t h,
                              annal_error *err)
{
    bool stays = seq > scan->next_seq && seq - scan->next_seq <= MISSING_EVENTS_MAX;
    annal_status status = stays ? goes_on(scan, length, seq, h, &stays, err) : ANNAL_OK;
    if (status < 0)
        return status;
    if (!stays)
        return refuse(scan, (annal_slice){NULL, length}, h,
                      "the seq of this event does not follow the previous seq", err);
    report(scan, 0, true, "events are missing before this line");
    scan->next_seq = seq;
    scan->sound_length = length;
    scan->sound_h = h;
    return ANNAL_DAMAGE;
}

static annal_status deliver(struct scan *scan, annal_slice frame, uint64_t h,
                            annal_event *out_event, annal_error *err)
{
    const char *fault;
    annal_event event;
    if (!annal__codec_event(scan->codec, frame, &event, &fault))
        return refuse(scan, frame, h, fault, err);
    if (event.seq != scan->next_seq && scan->next_seq > 0 && !scan->loose)
        return other_seq(scan, frame.len, event.seq, h, err);
    event.h = h;
    event.offset = scan->offset;
    event.length = frame.len;
    if (scan->table != NULL)
        annal__seek_table_note(scan->table, event.seq, scan->offset);
    scan->offset += frame.len;
    scan->h = h;
    scan->next_seq = event.seq + 1;
    scan->loose = false;
    *out_event = event;
    return ANNAL_OK;
}

static annal_status deliver_sound(struct scan *scan, annal_event *out_event, annal_error *err)
{
    annal_slice frame;
    annal_status status = annal__scan_frame(scan, scan->offset, scan->offset, &frame, err);
    while (status == ANNAL_OK &&
           scan->window_offset + scan->window.len < scan->offset + scan->sound_length)
        status = read_more(scan, scan->offset, err);
    if (status != ANNAL_OK)
        return status;
    frame.ptr = scan->window.ptr + (scan->offset - scan->window_offset);
    frame.len = (size_t)scan->sound_length;
    scan->sound_length = 0;
    return deliver(scan, frame, scan->sound_h, out_event, err);
}

annal_status annal__scan_next(struct scan *scan, annal_event *out_event, annal_error *err)
{
    if (scan->sound_length > 0)
        return deliver_sound(scan, out_event, err);

    for (;;) {
        if (scan->resume > 0)
            return pass_damaged_frame(scan, err);

        annal_slice frame;
        uint64_t h;
        annal_status status = annal__scan_frame(scan, scan->offset, scan->offset, &frame, err);
        if (status == ANNAL_OK && proves(scan, frame, scan->offset, scan->h, &h)) {
            struct frame_header header;
            if (scan->offset > 0 || !scan->codec->parse_header(frame, &header))
                return deliver(scan, frame, h, out_event, err);
            scan->offset = frame.len;
            scan->h = h;
            scan->next_seq = header.fork_seq + 1;
            continue;
        }
        if (status == ANNAL_OK)
            status = diagnose(scan, frame, err);
        if (status == ANNAL_END)
            /* these bytes may be cut off and written again before the next call */
            forget_bytes(scan);
        if (status != ANNAL_OK)
            return status;
    }
}

/* ---- The tail ---- */

/* Find the last frame of these bytes, which begin at offset `from` of the file; false if its hash
 * is not right. */
static bool last_proven(const struct codec *codec, annal_slice bytes, uint64_t from,
                        annal_slice *out_frame, uint64_t *out_h, size_t *out_end)
{
    size_t start;
    if (!codec->find_last(bytes, &start, out_end))
        return false;
    *out_frame = (annal_slice){bytes.ptr + start, *out_end - start};
    uint64_t h_before = 0;
    bool first = start == 0 && from == 0;
    return (first || codec->trailer((annal_slice){bytes.ptr, start}, &h_before)) &&
           annal__codec_proves(codec, *out_frame, from + start, h_before, out_h);
}

/* Return whether an event follows the last frame of the bytes before it; true if these bytes do not
 * show it. */
static bool follows(const struct codec *codec, annal_slice before, uint64_t from,
                    const struct journal_tail *tail, const annal_event *event)
{
    annal_slice frame;
    annal_event last;
    uint64_t h;
    size_t end;
    if (!last_proven(codec, before, from, &frame, &h, &end) || end < before.len)
        return true;
    if (from == 0 && frame.ptr == before.ptr && tail->has_header)
        return event->seq == tail->header.fork_seq + 1;
    return annal__codec_event(codec, frame, &last, NULL) && event->seq == last.seq + 1;
}

/* Find the last valid frame in the bytes of the file from offset `from` on. *out_plain is set if
 * its seq is that of the last event; otherwise only a walk through the file finds it (rule 4). */
static bool find_proven_frame(const struct codec *codec, const struct buf *buf, uint64_t from,
                              struct journal_tail *tail, bool *out_plain)
{
    annal_slice bytes = annal__buf_slice(buf), frame;
    size_t end = 0;
    *out_plain = true;
    while (!last_proven(codec, bytes, from, &frame, &tail->h, &end)) {
        if (end == 0 || end > bytes.len)
            return false;
        bytes.len = end - 1;
        end = 0;
    }
    annal_event event;
    size_t start = (size_t)(frame.ptr - bytes.ptr);
    bool first = start == 0 && from == 0;
    if (annal__codec_event(codec, frame, &event, NULL)) {
        tail->seq = event.seq;
        tail->ts_us = event.ts_us;
        *out_plain = first || follows(codec, (annal_slice){bytes.ptr, start}, from, tail, &event);
    } else if (!first && tail->header.version <= FRAME_VERSION)
        *out_plain = false;
    tail->offset = from + start;
    tail->end = from + end;
    return true;
}

/* Find seq and time of the last event by reading all events, because the seq of the last frame does
 * not follow from the frame before it (rule 4). */
static annal_status walk_to_tail(const struct io *io, int fd, const struct codec *codec,
                                 struct journal_tail *tail, annal_error *err)
{
    struct scan scan;
    annal_event event;
    annal_status status = ANNAL_OK;
    annal__scan_init(&scan, io, fd, codec);
    tail->ts_us = 0;
    while (status >= 0 && status != ANNAL_END && scan.offset < tail->end) {
        status = annal__scan_next(&scan, &event, err);
        if (status == ANNAL_OK)
            tail->ts_us = event.ts_us;
    }
    tail->seq = scan.next_seq - 1;
    scan.fd = -1; /* the descriptor belongs to the caller */
    annal__scan_done(&scan);
    return status < 0 ? status : ANNAL_OK;
}

/* Judge the bytes after the last valid frame: TAIL_DAMAGED if they were once a complete frame,
 * TAIL_TORN if they are the rest of an interrupted write, or too short for an event. */
static enum tail_state judge_rest(const struct codec *codec, const struct buf *buf, size_t rest)
{
    if (rest == buf->len)
        return TAIL_WHOLE;
    annal_slice bytes = {buf->ptr + rest, buf->len - rest};
    return bytes.len >= codec->event_bytes_min && codec->was_whole(bytes) ? TAIL_DAMAGED
                                                                          : TAIL_TORN;
}

static annal_status read_range(const struct io *io, int fd, uint64_t from, uint64_t to,
                               struct buf *buf, annal_error *err)
{
    annal__buf_clear(buf);
    annal_status status = annal__buf_reserve(buf, (size_t)(to - from));
    if (status < 0)
        return annal__fail(err, status, "cannot read the last %llu bytes of a journal",
                           (unsigned long long)(to - from));
    ssize_t got = annal__io_read_full(io, fd, buf->ptr, (size_t)(to - from), from);
    if (got < 0)
        return annal__fail_errno(err, "cannot read the end of a journal");
    buf->len = (size_t)got;
    return ANNAL_OK;
}

/* Find the last event if its line is long: search its beginning backwards, and check its hash in
 * pieces. ANNAL_END if the last line is not long, or not valid. */
static annal_status find_long_tail(const struct io *io, int fd, const struct codec *codec,
                                   struct buf *buf, struct journal_tail *tail, annal_error *err)
{
    struct scan scan;
    annal_event event;
    uint64_t end = tail->size;
    const char *newline = NULL;
    annal_status status = read_range(io, fd, end - 1, end, buf, err);
    if (status < 0 || codec->parse_head == NULL || buf->len != 1 || buf->ptr[0] != '\n')
        return status < 0 ? status : ANNAL_END;
    for (end--; end > 0 && newline == NULL && tail->size - end < WINDOW_BYTES_MAX;) {
        uint64_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
        status = read_range(io, fd, from, end, buf, err);
        if (status < 0)
            return status;
        newline = buf->len == 0 ? NULL : memrchr(buf->ptr, '\n', buf->len);
        end = newline == NULL ? from : from + (uint64_t)(newline - buf->ptr) + 1;
    }
    if (newline == NULL)
        return ANNAL_END;
    annal__scan_init(&scan, io, fd, codec);
    status = annal__scan_look(&scan, end, &event, err);
    scan.fd = -1; /* the descriptor belongs to the caller */
    annal__scan_done(&scan);
    if (status != ANNAL_OK || event.offset + event.length != tail->size)
        return status < 0 ? status : ANNAL_END;
    tail->seq = event.seq;
    tail->ts_us = event.ts_us;
    tail->h = event.h;
    tail->offset = event.offset;
    tail->end = tail->size;
    tail->state = TAIL_WHOLE;
    return ANNAL_OK;
}

annal_status annal__scan_tail(const struct io *io, int fd, const struct codec *codec,
                              struct journal_tail *out_tail, annal_error *err)
{
    SCOPED_BUF buf = {.limit = WINDOW_BYTES_MAX};
    struct journal_tail tail = {0};
    struct stat file;
    annal_status status = ANNAL_OK;
    if (io->fstat(io->arg, fd, &file) < 0)
        return annal__fail_errno(err, "cannot examine a journal");
    tail.size = (uint64_t)file.st_size;

    uint64_t head = tail.size < FRAME_ENVELOPE_BYTES ? tail.size : FRAME_ENVELOPE_BYTES;
    status = read_range(io, fd, 0, head, &buf, err);
    if (status < 0)
        return status;
    uint64_t h;
    tail.has_header = annal__codec_first(codec, annal__buf_slice(&buf), &tail.header, &h);
    if (tail.header.session.len > 0 && tail.header.session.len < sizeof tail.session)
        memcpy(tail.session, tail.header.session.ptr, tail.header.session.len);
    if (tail.header.fork.len > 0 && tail.header.fork.len < sizeof tail.fork)
        memcpy(tail.fork, tail.header.fork.ptr, tail.header.fork.len);
    tail.header.session = tail.header.fork = (annal_slice){NULL, 0};

    for (uint64_t reach = TAIL_BYTES;; reach *= 4) {
        if (reach > WINDOW_BYTES_MAX)
            reach = WINDOW_BYTES_MAX;
        uint64_t from = tail.size > reach ? tail.size - reach : 0;
        status = read_range(io, fd, from, tail.size, &buf, err);
        if (status < 0)
            return status;
        bool plain, found = find_proven_frame(codec, &buf, from, &tail, &plain);
        if (found || from == 0) {
            if (found && !plain)
                status = walk_to_tail(io, fd, codec, &tail, err);
            if (status < 0)
                return status;
            tail.state = judge_rest(codec, &buf, (size_t)(tail.end - (found ? from : 0)));
            break;
        }
        if (reach == LONG_REACH) {
            status = find_long_tail(io, fd, codec, &buf, &tail, err);
            if (status < 0)
                return status;
            if (status == ANNAL_OK)
                break;
            status = ANNAL_OK;
        }
        if (reach == WINDOW_BYTES_MAX)
            return annal__fail(
                err, ANNAL_ERR_CORRUPT,
                "the last %llu bytes of the journal contain no event with a correct hash",
                (unsigned long long)reach);
    }
    if (tail.seq == 0)
        tail.seq = tail.header.fork_seq;
    *out_tail = tail;
    return status;
}
