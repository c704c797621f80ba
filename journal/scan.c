#include "journal/scan.h"

#include "journal/base/error.h"

#include <errno.h>
#include <string.h>

#define READ_BYTES       ((size_t)64 << 10)
#define WINDOW_BYTES_MAX (3 * (FRAME_LINE_BYTES_MAX + READ_BYTES))

/* How many lines a newline that was written into a trailer can have made of one. */
#define JOINED_LINES_MAX 3

void annal__scan_init(struct scan *scan, const struct io *io, int fd)
{
    *scan = (struct scan){.io = io, .fd = fd, .window = {.limit = WINDOW_BYTES_MAX}, .next_seq = 1};
}

void annal__scan_done(struct scan *scan)
{
    annal__buf_done(&scan->window);
    if (scan->io != NULL && scan->fd >= 0)
        scan->io->close(scan->io->arg, scan->fd);
    scan->fd = -1;
}

void annal__scan_set(struct scan *scan, uint64_t seq, uint64_t offset, uint64_t h)
{
    scan->next_seq = seq;
    scan->offset = offset;
    scan->h = h;
    scan->resume = 0;
    scan->sound_length = 0;
    annal__buf_clear(&scan->window);
}

/* ---- Bytes ---- */

/* Read more behind the window. ANNAL_END at the end of the file. */
static annal_status read_more(struct scan *scan, annal_error *err)
{
    size_t want = scan->window.len > READ_BYTES ? scan->window.len : READ_BYTES;
    annal_status status = annal__buf_reserve(&scan->window, want);
    if (status < 0)
        return annal__fail(err, status, "read a journal: no memory for a line of %zu bytes",
                           scan->window.len);
    ssize_t got = annal__read_full(scan->io, scan->fd, scan->window.ptr + scan->window.len, want,
                                   scan->window_offset + scan->window.len);
    if (got < 0)
        return annal__fail_errno(err, "read a journal at byte %llu",
                                 (unsigned long long)scan->window_offset + scan->window.len);
    scan->window.len += (size_t)got;
    return got == 0 ? ANNAL_END : ANNAL_OK;
}

/* Make the window begin at keep, or before offset if that is earlier. */
static void slide(struct scan *scan, uint64_t keep, uint64_t offset)
{
    if (keep > offset)
        keep = offset;
    if (keep < scan->window_offset || keep > scan->window_offset + scan->window.len) {
        scan->window_offset = keep;
        annal__buf_clear(&scan->window);
    } else if (keep - scan->window_offset > scan->window.len / 2) {
        annal__buf_consume(&scan->window, (size_t)(keep - scan->window_offset));
        scan->window_offset = keep;
    }
}

/*
 * The line at offset, newline included; a line longer than any may be is cut there. Bytes from keep
 * on stay in the window. ANNAL_END when no newline is there yet.
 */
static annal_status line_at(struct scan *scan, uint64_t offset, uint64_t keep,
                            annal_slice *out_line, annal_error *err)
{
    slide(scan, keep, offset);
    size_t searched = 0;
    for (;;) {
        size_t start = (size_t)(offset - scan->window_offset);
        if (start + searched < scan->window.len) {
            const char *line = scan->window.ptr + start;
            size_t have = scan->window.len - start;
            const char *newline = memchr(line + searched, '\n', have - searched);
            size_t length = newline == NULL ? have : (size_t)(newline - line) + 1;
            if (newline != NULL || have >= FRAME_LINE_BYTES_MAX) {
                *out_line = (annal_slice){
                    line, length < FRAME_LINE_BYTES_MAX ? length : FRAME_LINE_BYTES_MAX};
                return ANNAL_OK;
            }
            searched = have;
        }
        annal_status status = read_more(scan, err);
        if (status != ANNAL_OK)
            return status;
    }
}

annal_status annal__scan_h_before(const struct scan *scan, uint64_t offset, uint64_t *out_h,
                                  annal_error *err)
{
    char bytes[FRAME_TRAILER_BYTES];
    if (offset < sizeof bytes)
        return ANNAL_END;
    ssize_t got = annal__read_full(scan->io, scan->fd, bytes, sizeof bytes, offset - sizeof bytes);
    if (got < 0)
        return annal__fail_errno(err, "read a journal at byte %llu", (unsigned long long)offset);
    bool ends = got == (ssize_t)sizeof bytes && bytes[sizeof bytes - 1] == '\n' &&
                annal__frame_trailer((annal_slice){bytes, sizeof bytes}, out_h);
    return ends ? ANNAL_OK : ANNAL_END;
}

/* Rule (1). */
static bool proves(annal_slice line, uint64_t h_before, uint64_t *out_h)
{
    uint64_t h = 0;
    if (!annal__frame_trailer(line, &h) || line.ptr[line.len - 1] != '\n' ||
        annal__frame_hash(line, h_before) != h)
        return false;
    *out_h = h;
    return true;
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

/* The event in the next length bytes is sound although they are damaged; it comes with the next call. */
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

/* Rule (3): a line whose newline was lost runs into the next one. */
static bool find_lost_newline(const struct scan *scan, annal_slice line, size_t *out_length,
                              uint64_t *out_h)
{
    for (size_t end = FRAME_TRAILER_BYTES; end < line.len; end++) {
        uint64_t h;
        annal_slice prefix = {line.ptr, end};
        if (line.ptr[end - 2] == '}' && annal__frame_trailer(prefix, &h) &&
            annal__frame_hash(prefix, scan->h) == h) {
            *out_length = end;
            *out_h = h;
            return true;
        }
    }
    return false;
}

/* The h that the bytes from the damaged line up to end should have, were they one line. */
static bool joined_h(struct scan *scan, uint64_t end, uint64_t *out_h)
{
    if (end - scan->offset < FRAME_TRAILER_BYTES || scan->window_offset > scan->offset)
        return false;
    annal_slice joined = {scan->window.ptr + (scan->offset - scan->window_offset),
                          (size_t)(end - scan->offset)};
    annal_event event;
    struct frame_header header;
    if (!(scan->offset == 0 ? annal__frame_parse_header(joined, &header)
                            : annal__frame_parse_event(joined, &event)))
        return false;
    *out_h = annal__frame_hash(joined, scan->h);
    return true;
}

/* Rule (2): the line at scan->offset does not match. */
static annal_status diagnose(struct scan *scan, annal_slice line, annal_error *err)
{
    size_t length;
    uint64_t h;
    if (find_lost_newline(scan, line, &length, &h))
        return report_sound(scan, length, h, "the newline behind this line is damaged");

    uint64_t written_h = 0;
    bool has_written = annal__frame_trailer(line, &written_h);
    uint64_t end = scan->offset + line.len;
    for (int lines = 1;; lines++) {
        uint64_t should_h = 0;
        bool has_should = lines <= JOINED_LINES_MAX && joined_h(scan, end, &should_h);
        annal_slice next;
        annal_status status =
            line_at(scan, end, lines < JOINED_LINES_MAX ? scan->offset : end, &next, err);
        if (status != ANNAL_OK)
            return status; /* rule (4) */
        if (has_should && proves(next, should_h, &h))
            return report_sound(scan, end - scan->offset, should_h,
                                "the hash or the newline of this line is damaged");
        if (has_written && proves(next, written_h, &h)) {
            scan->resume = end;
            scan->resume_h = written_h;
            return ANNAL_OK;
        }
        has_written = annal__frame_trailer(next, &written_h);
        end += next.len;
    }
}

/* Report the next of the damaged lines before scan->resume. */
static annal_status pass_damaged_line(struct scan *scan, annal_error *err)
{
    annal_slice line;
    annal_status status = line_at(scan, scan->offset, scan->offset, &line, err);
    if (status != ANNAL_OK)
        return status;
    uint64_t length = line.len;
    bool last = scan->offset + length >= scan->resume;
    uint64_t h;
    bool whole = annal__frame_trailer(line, &h);
    /* The header stands first, but something may stand before it, or it may be gone. */
    annal_event event;
    struct frame_header header;
    bool lost = scan->offset > 0 ? !annal__frame_parse_header(line, &header)
                                 : annal__frame_parse_event(line, &event);
    report(scan, length, lost,
           whole ? "this line does not match its hash, or the line before it is not what it was"
                 : "these bytes are not an event");
    /* A piece of a line does not count; the line that it was cut from does. */
    if (lost && (whole || last))
        scan->next_seq++;
    scan->offset += length;
    if (last) {
        scan->h = scan->resume_h;
        scan->resume = 0;
    }
    return ANNAL_DAMAGE;
}

/* ---- Walking ---- */

static annal_status deliver(struct scan *scan, annal_slice line, uint64_t h, annal_event *out_event)
{
    annal_event event = {0};
    if (!annal__frame_parse_event(line, &event)) {
        report(scan, line.len, scan->offset > 0, "this line is proven, and is no event");
        scan->offset += line.len;
        scan->h = h;
        return ANNAL_DAMAGE;
    }
    event.h = h;
    event.offset = scan->offset;
    event.length = line.len;
    scan->offset += line.len;
    scan->h = h;
    scan->next_seq = event.seq + 1;
    *out_event = event;
    return ANNAL_OK;
}

static annal_status deliver_sound(struct scan *scan, annal_event *out_event, annal_error *err)
{
    annal_slice line;
    annal_status status = line_at(scan, scan->offset, scan->offset, &line, err);
    while (status == ANNAL_OK &&
           scan->window_offset + scan->window.len < scan->offset + scan->sound_length)
        status = read_more(scan, err);
    if (status != ANNAL_OK)
        return status;
    line.ptr = scan->window.ptr + (scan->offset - scan->window_offset);
    line.len = (size_t)scan->sound_length;
    scan->sound_length = 0;
    return deliver(scan, line, scan->sound_h, out_event);
}

annal_status annal__scan_next(struct scan *scan, annal_event *out_event, annal_error *err)
{
    if (scan->sound_length > 0)
        return deliver_sound(scan, out_event, err);

    for (;;) {
        if (scan->resume > 0)
            return pass_damaged_line(scan, err);

        annal_slice line;
        uint64_t h;
        annal_status status = line_at(scan, scan->offset, scan->offset, &line, err);
        if (status == ANNAL_OK && proves(line, scan->h, &h)) {
            struct frame_header header;
            if (scan->offset > 0 || !annal__frame_parse_header(line, &header))
                return deliver(scan, line, h, out_event);
            scan->offset = line.len;
            scan->h = h;
            continue;
        }
        if (status == ANNAL_OK)
            status = diagnose(scan, line, err);
        if (status == ANNAL_END)
            annal__buf_clear(&scan->window); /* what stands there may be cut and written again */
        if (status != ANNAL_OK)
            return status;
    }
}

/* ---- Seeking ---- */

/* The first line that begins at or behind offset and proves itself; ANNAL_END when there is none near. */
static annal_status probe(struct scan *scan, uint64_t offset, annal_event *out_event,
                          uint64_t *out_h_before, annal_error *err)
{
    annal_slice line;
    annal_status status = line_at(scan, offset, offset, &line, err); /* the rest of some line */
    for (int tries = 0; status == ANNAL_OK && tries < 4; tries++) {
        offset += line.len;
        uint64_t h_before, h;
        annal_status before = annal__scan_h_before(scan, offset, &h_before, err);
        status = before < 0 ? before : line_at(scan, offset, offset, &line, err);
        if (status == ANNAL_OK && before == ANNAL_OK && proves(line, h_before, &h) &&
            annal__frame_parse_event(line, out_event)) {
            out_event->offset = offset;
            *out_h_before = h_before;
            return ANNAL_OK;
        }
    }
    return status < 0 ? status : ANNAL_END;
}

annal_status annal__scan_seek(struct scan *scan, uint64_t seq, annal_error *err)
{
    annal__scan_set(scan, 1, 0, 0);
    struct stat file;
    if (scan->io->fstat(scan->io->arg, scan->fd, &file) < 0)
        return annal__fail_errno(err, "look at a journal");

    uint64_t low = 0, high = (uint64_t)file.st_size, low_seq = 1, low_h = 0;
    while (seq > 1 && high - low > READ_BYTES) {
        uint64_t middle = low + (high - low) / 2;
        annal_event event;
        uint64_t h_before;
        annal_status status = probe(scan, middle, &event, &h_before, err);
        if (status < 0)
            return status;
        if (status == ANNAL_OK && event.offset < high && event.seq <= seq) {
            low = event.offset;
            low_seq = event.seq;
            low_h = h_before;
        } else {
            high = middle;
        }
    }
    annal__scan_set(scan, low_seq, low, low_h);

    /* The rest one by one; damage in front of the event is nobody's business here. */
    while (scan->next_seq < seq) {
        uint64_t offset = scan->offset, h = scan->h, next_seq = scan->next_seq;
        annal_event event;
        annal_status status = annal__scan_next(scan, &event, err);
        while (status == ANNAL_DAMAGE)
            status = annal__scan_next(scan, &event, err);
        if (status < 0)
            return status;
        if (status == ANNAL_OK && event.seq < seq)
            continue;
        /* Not there yet, or lost: stand before what stands in its place. */
        annal__scan_set(scan, next_seq, offset, h);
        break;
    }
    return ANNAL_OK;
}

/* ---- The tail ---- */

/* Look for the last proven line in bytes [from, size) of the file, which buf holds. */
static bool find_proven_line(const struct buf *buf, uint64_t from, struct journal_tail *tail)
{
    size_t end = buf->len;
    while (end > 0 && buf->ptr[end - 1] != '\n')
        end--;
    while (end > 0) {
        size_t start = end - 1;
        while (start > 0 && buf->ptr[start - 1] != '\n')
            start--;
        annal_slice line = {buf->ptr + start, end - start};
        annal_slice before = {buf->ptr, start};
        uint64_t h_before = 0, h;
        bool first = start == 0 && from == 0;
        if ((first || annal__frame_trailer(before, &h_before)) && proves(line, h_before, &h)) {
            annal_event event;
            if (annal__frame_parse_event(line, &event)) {
                tail->seq = event.seq;
                tail->ts_us = event.ts_us;
            } else if (!first) {
                return false;
            }
            tail->h = h;
            tail->offset = from + start;
            tail->end = from + end;
            return true;
        }
        end = start;
    }
    return false;
}

/*
 * A write that broke off leaves a piece of a line, so no newline. What has a newline, or everything of a line
 * but that, was whole once: it is damaged. Unless it is too short to have been an event.
 */
static enum tail_state judge_rest(const struct buf *buf, size_t rest)
{
    annal_slice bytes = {buf->ptr + rest, buf->len - rest};
    uint64_t h;
    if (bytes.len == 0)
        return TAIL_WHOLE;
    bool was_whole = memchr(bytes.ptr, '\n', bytes.len) != NULL || annal__frame_trailer(bytes, &h);
    return was_whole && bytes.len >= FRAME_EVENT_BYTES_MIN ? TAIL_DAMAGED : TAIL_TORN;
}

static void read_header(const struct buf *first, struct journal_tail *tail)
{
    const char *newline = first->len == 0 ? NULL : memchr(first->ptr, '\n', first->len);
    if (newline == NULL)
        return;
    annal_slice line = {first->ptr, (size_t)(newline - first->ptr) + 1};
    uint64_t h;
    tail->has_header = proves(line, 0, &h) && annal__frame_parse_header(line, &tail->header);
    tail->header.session = (annal_slice){NULL, 0};
}

static annal_status read_range(const struct io *io, int fd, uint64_t from, uint64_t to,
                               struct buf *buf, annal_error *err)
{
    annal__buf_clear(buf);
    annal_status status = annal__buf_reserve(buf, (size_t)(to - from));
    if (status < 0)
        return annal__fail(err, status, "read the end of a journal: %llu bytes do not fit",
                           (unsigned long long)(to - from));
    ssize_t got = annal__read_full(io, fd, buf->ptr, (size_t)(to - from), from);
    if (got < 0)
        return annal__fail_errno(err, "read the end of a journal");
    buf->len = (size_t)got;
    return ANNAL_OK;
}

annal_status annal__scan_tail(const struct io *io, int fd, struct journal_tail *out_tail,
                              annal_error *err)
{
    struct buf buf = {.limit = WINDOW_BYTES_MAX};
    struct journal_tail tail = {0};
    struct stat file;
    annal_status status = ANNAL_OK;
    if (io->fstat(io->arg, fd, &file) < 0)
        return annal__fail_errno(err, "look at a journal");
    tail.size = (uint64_t)file.st_size;

    uint64_t head = tail.size < FRAME_ENVELOPE_BYTES ? tail.size : FRAME_ENVELOPE_BYTES;
    status = read_range(io, fd, 0, head, &buf, err);
    if (status < 0)
        goto done;
    if (head > 0)
        read_header(&buf, &tail);

    for (uint64_t reach = READ_BYTES;; reach *= 4) {
        if (reach > WINDOW_BYTES_MAX)
            reach = WINDOW_BYTES_MAX;
        uint64_t from = tail.size > reach ? tail.size - reach : 0;
        status = read_range(io, fd, from, tail.size, &buf, err);
        if (status < 0)
            goto done;
        bool found = find_proven_line(&buf, from, &tail);
        if (found || from == 0) {
            tail.state = judge_rest(&buf, (size_t)(tail.end - (found ? from : 0)));
            break;
        }
        if (reach == WINDOW_BYTES_MAX) {
            status = annal__fail(err, ANNAL_ERR_CORRUPT,
                                 "nothing in the last %llu bytes of the journal proves itself",
                                 (unsigned long long)reach);
            goto done;
        }
    }
    *out_tail = tail;

done:
    annal__buf_done(&buf);
    return status;
}
