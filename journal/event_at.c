/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read single events whose offset and length an index has stored.
 *
 * (1) A query reads many events, of few sessions or of a hundred, so the buffer keeps the
 *     JOURNALS_MAX last used journals open. A journal is reused as long as its name belongs to the
 *     same file.
 * (2) If the caller says which events are next (annal__event_read_ahead()), neighbours are read
 *     together, and missing pages are fetched from the disk all at once instead of one after the
 *     other. The name of each journal is checked once per call, not once per event.
 * (3) If it does not, but reads one event after the other, the bytes after an event are read with
 *     it, and the journal's name is checked once for all of them.
 * (4) An event that was read ahead and whose hash is wrong is read again, as if it had not been
 *     read ahead.
 */
#include "journal/sys/event_at.h"
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/hash.h"
#include "journal/json_msgpack.h"
#include "journal/scan.h"
#include "journal/store.h"
#include "journal/store_journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOURNALS_MAX     128
#define GUESSES          1024
#define AHEAD_EVENTS_MAX 1024
/* maximum number of bytes that are read ahead: small enough for the cache of a processor */
#define AHEAD_BYTES ((size_t)256 << 10)
/* minimum and maximum size of the pieces in rule 3; each is twice as large as the one before */
#define NEAR_BYTES_MIN ((size_t)1 << 10)
#define NEAR_BYTES_MAX ((size_t)64 << 10)
/* two events that are closer than this are read in one call: the bytes between them cost less than
 * a call */
#define AHEAD_GAP_BYTES 4096u

struct journal {
    const annal_store *store; /* store of the session; NULL: this entry is free */
    struct scan scan;
    char *path;
    dev_t device;
    ino_t inode;
    uint64_t used; /* value of the counter buffer->uses when the journal was last used */
    /* value of buffer->looks when this process last checked that the journal's name still belongs
     * to the open file */
    uint64_t look;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
};

/* An event to read ahead, with the trailer before it. */
struct ahead {
    size_t journal; /* index in buffer->journals */
    uint64_t offset, length;
    size_t at; /* offset of the trailer in buffer->ahead_bytes */
    /* number of bytes to read in one call, if this is the first event of a piece; else 0 */
    size_t piece_bytes;
    bool held;
};

/* A piece of a journal that was read because events were read in its order (rule 3). */
struct near {
    size_t journal; /* index in buffer->journals */
    uint64_t begin; /* offset of the piece in the journal */
    uint64_t next;  /* end of the event that was last read from this journal */
    size_t size;    /* number of bytes to read for the next piece */
    struct buf bytes;
};

struct annal__event_buffer {
    struct buf bytes; /* trailer of the previous frame, followed by the frame */
    struct buf json;
    struct journal *journals;
    size_t journal_count, journal_room;
    /* for each hash of a session's id: 1 + the index at which its journal probably is, or 0 */
    uint8_t guess[GUESSES];
    uint64_t uses;
    /* number of calls of annal__event_read_ahead(); each call checks the name of a journal at most
     * once */
    uint64_t looks;
    struct ahead *ahead;
    struct ahead **by_place; /* pointers to `ahead`, sorted by journal and offset */
    size_t ahead_room, ahead_count;
    size_t ahead_next; /* index in `ahead` of the event that is probably asked for next */
    struct buf ahead_bytes;
    struct near near;
};

/* ---- Journals ---- */

/* Close a journal and free its entry; events that were read ahead from it are not used any more. */
static void close_journal(annal__event_buffer *buffer, struct journal *journal)
{
    size_t number = (size_t)(journal - buffer->journals);
    for (size_t i = buffer->ahead_next; i < buffer->ahead_count; i++)
        buffer->ahead[i].held = buffer->ahead[i].held && buffer->ahead[i].journal != number;
    if (buffer->near.journal == number)
        buffer->near.next = buffer->near.bytes.len = 0;
    if (journal->store != NULL)
        annal__scan_done(&journal->scan);
    annal__free(journal->path);
    *journal = (struct journal){0};
}

static void close_all(annal__event_buffer *buffer)
{
    for (size_t i = 0; i < buffer->journal_count; i++)
        close_journal(buffer, &buffer->journals[i]);
}

void annal__event_buffer_free(annal__event_buffer *buffer)
{
    if (buffer == NULL)
        return;
    close_all(buffer);
    annal__buf_done(&buffer->bytes);
    annal__buf_done(&buffer->json);
    annal__buf_done(&buffer->ahead_bytes);
    annal__buf_done(&buffer->near.bytes);
    annal__free(buffer->journals);
    annal__free(buffer->ahead);
    annal__free(buffer->by_place);
    annal__free(buffer);
}

static bool is_of(const struct journal *journal, const annal_store *store, annal_slice session)
{
    return journal->store == store && session.len < sizeof journal->session &&
           memcmp(journal->session, session.ptr, session.len) == 0 &&
           journal->session[session.len] == '\0';
}

/* Return the open journal of a session, or NULL. */
static struct journal *find_journal(annal__event_buffer *buffer, const annal_store *store,
                                    annal_slice session)
{
    uint8_t *guess = &buffer->guess[annal__hash(session.ptr, session.len, 0) % GUESSES];
    if (*guess > 0 && *guess <= buffer->journal_count &&
        is_of(&buffer->journals[*guess - 1], store, session))
        return &buffer->journals[*guess - 1];
    for (size_t i = 0; i < buffer->journal_count; i++) {
        if (!is_of(&buffer->journals[i], store, session))
            continue;
        *guess = (uint8_t)(i + 1);
        return &buffer->journals[i];
    }
    return NULL;
}

/* Return a free entry, if necessary by closing the least recently used journal. NULL: out of
 * memory. */
static struct journal *make_room(annal__event_buffer *buffer)
{
    struct journal *oldest = buffer->journals;
    for (size_t i = 1; i < buffer->journal_count; i++)
        if (buffer->journals[i].used < oldest->used)
            oldest = &buffer->journals[i];
    if (buffer->journal_count == JOURNALS_MAX ||
        (buffer->journal_count > 0 && oldest->store == NULL)) {
        close_journal(buffer, oldest);
        return oldest;
    }
    if (buffer->journal_count == buffer->journal_room) {
        size_t room = buffer->journal_room == 0 ? 1 : buffer->journal_room * 2;
        struct journal *bigger = annal__realloc_array(buffer->journals, room, sizeof *bigger);
        if (bigger == NULL)
            return NULL;
        buffer->journals = bigger;
        buffer->journal_room = room;
    }
    struct journal *journal = &buffer->journals[buffer->journal_count++];
    *journal = (struct journal){0};
    return journal;
}

/* Open the journal of a session in a free entry. */
static annal_status fill_journal(struct journal *journal, const annal_store *store,
                                 annal_slice session, annal_error *err)
{
    const struct codec *codec = NULL;
    SCOPED_BUF path = {0};
    struct stat file;
    int fd = -1;
    annal_status status = annal__store_journal_open(&store->context, session, &fd, &codec, err);
    if (status < 0)
        return status;
    status = annal__context_journal_path(&store->context, session, codec, &path, err);
    if (status == ANNAL_OK && store->context.io->fstat(store->context.io->arg, fd, &file) < 0)
        status = annal__fail_errno(err, "cannot examine %s", path.ptr);
    if (status == ANNAL_OK)
        journal->path = annal__strndup(path.ptr, path.len);
    if (status == ANNAL_OK && journal->path == NULL)
        status = annal__fail(err, ANNAL_ERR_NOMEM, "read an event: out of memory");
    if (status < 0) {
        store->context.io->close(store->context.io->arg, fd);
        return status;
    }
    annal__scan_init(&journal->scan, store->context.io, fd, codec);
    journal->device = file.st_dev;
    journal->inode = file.st_ino;
    memcpy(journal->session, session.ptr, session.len);
    journal->session[session.len] = '\0';
    journal->store = store;
    return ANNAL_OK;
}

static bool stands(const struct journal *journal)
{
    const struct io *io = journal->store->context.io;
    dev_t device;
    ino_t inode;
    return io->identify(io->arg, journal->path, &device, &inode) == 0 &&
           device == journal->device && inode == journal->inode;
}

/* Return the journal that has the session's name now, open. */
static annal_status open_journal(annal__event_buffer *buffer, const annal_store *store,
                                 annal_slice session, struct journal **out_journal,
                                 annal_error *err)
{
    annal_status status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    struct journal *journal = find_journal(buffer, store, session);
    if (journal != NULL && !stands(journal)) {
        close_journal(buffer, journal);
        journal = NULL;
    }
    if (journal == NULL) {
        journal = make_room(buffer);
        status = journal != NULL
                     ? fill_journal(journal, store, session, err)
                     : annal__fail(err, ANNAL_ERR_NOMEM, "read an event: out of memory");
    }
    if (status < 0)
        return status;
    journal->used = ++buffer->uses;
    *out_journal = journal;
    return ANNAL_OK;
}

/* ---- Reading ahead ---- */

static bool make_ahead_room(annal__event_buffer *buffer, size_t count)
{
    if (count <= buffer->ahead_room)
        return true;
    annal__free(buffer->ahead);
    annal__free(buffer->by_place);
    buffer->ahead = annal__zalloc(count * sizeof *buffer->ahead);
    buffer->by_place = annal__zalloc(count * sizeof *buffer->by_place);
    buffer->ahead_room = buffer->ahead != NULL && buffer->by_place != NULL ? count : 0;
    return buffer->ahead_room > 0;
}

/* Copy the places of events that will be read into buffer->ahead: as many as fit, until a journal
 * cannot be opened. */
static void take_places(annal__event_buffer *buffer, const annal_store *store,
                        const annal__event_place *places, size_t count)
{
    size_t bytes = 0, journals = 0;
    for (size_t i = 0; i < count; i++) {
        const annal__event_place *place = &places[i];
        struct journal *journal = find_journal(buffer, store, place->session);
        if (place->length > AHEAD_BYTES - bytes)
            break;
        if (journal == NULL || journal->look != buffer->looks) {
            if (journals++ == JOURNALS_MAX ||
                open_journal(buffer, store, place->session, &journal, NULL) < 0)
                break;
            journal->look = buffer->looks;
        }
        if (place->offset < journal->scan.codec->trailer_bytes)
            break;
        bytes += (size_t)place->length;
        buffer->ahead[i] = (struct ahead){.journal = (size_t)(journal - buffer->journals),
                                          .offset = place->offset,
                                          .length = place->length};
        buffer->by_place[i] = &buffer->ahead[i];
        buffer->ahead_count = i + 1;
    }
}

static const struct scan *scan_of(const annal__event_buffer *buffer, const struct ahead *ahead)
{
    return &buffer->journals[ahead->journal].scan;
}

static uint64_t begin_of(const annal__event_buffer *buffer, const struct ahead *ahead)
{
    return ahead->offset - scan_of(buffer, ahead)->codec->trailer_bytes;
}

static int compare_places(const void *left, const void *right)
{
    const struct ahead *a = *(struct ahead *const *)left, *b = *(struct ahead *const *)right;
    if (a->journal != b->journal)
        return a->journal < b->journal ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Return whether the places are sorted already. Usually they are, because callers read the events
 * of a session in order. */
static bool is_sorted(const annal__event_buffer *buffer)
{
    size_t i = 1;
    while (i < buffer->ahead_count &&
           compare_places(&buffer->by_place[i - 1], &buffer->by_place[i]) <= 0)
        i++;
    return i >= buffer->ahead_count;
}

/* Group neighbouring events into pieces that are read in one call; return the number of bytes of
 * all pieces. */
static size_t lay_out(annal__event_buffer *buffer)
{
    struct ahead *first = NULL;
    size_t bytes = 0;
    if (!is_sorted(buffer))
        qsort(buffer->by_place, buffer->ahead_count, sizeof *buffer->by_place, compare_places);
    for (size_t i = 0; i < buffer->ahead_count; i++) {
        struct ahead *ahead = buffer->by_place[i];
        uint64_t begin = begin_of(buffer, ahead);
        uint64_t piece = first == NULL ? 0 : begin_of(buffer, first);
        if (first == NULL || first->journal != ahead->journal ||
            begin > piece + first->piece_bytes + AHEAD_GAP_BYTES) {
            bytes += first == NULL ? 0 : first->piece_bytes;
            first = ahead;
            first->at = bytes;
            piece = begin;
        }
        ahead->at = first->at + (size_t)(begin - piece);
        uint64_t end = ahead->offset + ahead->length;
        if (end > piece + first->piece_bytes)
            first->piece_bytes = (size_t)(end - piece);
    }
    return bytes + (first == NULL ? 0 : first->piece_bytes);
}

/* Set `held` for the events of the piece that begins with by_place[first], of which `got` bytes
 * were read. */
static void hold(annal__event_buffer *buffer, size_t first, size_t got)
{
    size_t from = buffer->by_place[first]->at;
    for (size_t i = first; i < buffer->ahead_count; i++) {
        struct ahead *ahead = buffer->by_place[i];
        if (i > first && ahead->piece_bytes > 0)
            break;
        uint64_t end = ahead->at - from + ahead->length;
        ahead->held = end + scan_of(buffer, ahead)->codec->trailer_bytes <= got;
    }
}

/* Read all pieces that buffer->ahead lists. First read the pieces that the system has in its cache,
 * and ask the disk for the others; then wait for the others (rule 2). */
static void read_pieces(annal__event_buffer *buffer)
{
    bool missing = false;
    for (int round = 0; round == 0 || (round == 1 && missing); round++)
        for (size_t i = 0; i < buffer->ahead_count; i++) {
            const struct ahead *ahead = buffer->by_place[i];
            const struct scan *scan = scan_of(buffer, ahead);
            char *bytes = buffer->ahead_bytes.ptr + ahead->at;
            uint64_t begin = begin_of(buffer, ahead);
            size_t len = ahead->piece_bytes;
            if (len == 0 || ahead->held)
                continue;
            ssize_t got = round == 0
                              ? scan->io->pread_now(scan->io->arg, scan->fd, bytes, len, begin)
                              : annal__io_read_full(scan->io, scan->fd, bytes, len, begin);
            if (round == 0 && got != (ssize_t)len) {
                scan->io->will_need(scan->io->arg, scan->fd, begin, len);
                missing = true;
            } else if (got > 0) {
                hold(buffer, i, (size_t)got);
            }
        }
}

size_t annal__event_read_ahead(annal_store *store, const annal__event_place *places, size_t count,
                               annal__event_buffer **buffer)
{
    if (annal__context_check(&store->context, NULL) < 0)
        return 0;
    if (*buffer == NULL)
        *buffer = annal__zalloc(sizeof **buffer);
    annal__event_buffer *used = *buffer;
    if (used == NULL)
        return 0;
    used->ahead_count = used->ahead_next = 0;
    used->looks++;
    count = count < AHEAD_EVENTS_MAX ? count : AHEAD_EVENTS_MAX;
    if (!make_ahead_room(used, count))
        return 0;
    take_places(used, store, places, count);
    size_t bytes = lay_out(used);
    annal__buf_clear(&used->ahead_bytes);
    if (annal__buf_reserve(&used->ahead_bytes, bytes) < 0)
        used->ahead_count = 0;
    read_pieces(used);
    return used->ahead_count;
}

/* Return the event if it was read ahead, else NULL. Callers mostly read events in the order in
 * which they announced them. */
static const struct ahead *find_ahead(annal__event_buffer *buffer, const annal_store *store,
                                      annal_slice session, uint64_t offset, uint64_t length)
{
    for (size_t i = buffer->ahead_next; i < buffer->ahead_count; i++) {
        const struct ahead *ahead = &buffer->ahead[i];
        if (ahead->offset != offset || ahead->length != length ||
            !is_of(&buffer->journals[ahead->journal], store, session))
            continue;
        buffer->ahead_next = i + 1;
        return ahead->held ? ahead : NULL;
    }
    return NULL;
}

/* ---- The event ---- */

/* Read the frame at this offset, and the trailer before it, into the buffer. *out_frame is empty if
 * the journal is too short. */
static annal_status read_frame(annal__event_buffer *buffer, const struct scan *scan,
                               uint64_t offset, uint64_t length, annal_slice *out_before,
                               annal_slice *out_frame, annal_error *err)
{
    size_t before = scan->codec->trailer_bytes;
    *out_before = *out_frame = (annal_slice){NULL, 0};
    annal__buf_clear(&buffer->bytes);
    if (length > FRAME_BYTES_MAX || offset < before)
        /* the offset or length cannot be right: no event is so long, or begins before the end of
         * the header */
        return ANNAL_OK;
    annal_status status = annal__buf_reserve(&buffer->bytes, before + (size_t)length);
    if (status < 0)
        return annal__fail(err, status, "read an event of %llu bytes: out of memory",
                           (unsigned long long)length);
    ssize_t got = annal__io_read_full(scan->io, scan->fd, buffer->bytes.ptr,
                                      before + (size_t)length, offset - before);
    if (got < 0 || (uint64_t)got < before + length)
        return ANNAL_OK;
    *out_before = (annal_slice){buffer->bytes.ptr, before};
    *out_frame = (annal_slice){buffer->bytes.ptr + before, (size_t)length};
    return ANNAL_OK;
}

/* Find the event by reading the journal one event after the other, because the event or its
 * predecessor is damaged, so that the hash of the event alone proves nothing. */
static annal_status read_by_walking(annal__event_buffer *buffer, struct scan *scan, uint64_t seq,
                                    uint64_t offset, uint64_t length, annal_event *out_event,
                                    annal_error *err)
{
    annal_status status = annal__seek(scan, seq, err);
    annal_event event;
    do {
        if (status >= 0)
            status = annal__scan_next(scan, &event, err);
    } while (status == ANNAL_DAMAGE);
    if (status != ANNAL_OK)
        return status;
    if (event.seq != seq || event.offset != offset || event.length != length)
        return ANNAL_END;
    annal_slice frame = {scan->window.ptr + (offset - scan->window_offset), (size_t)length};
    annal__buf_clear(&buffer->bytes);
    status = annal__buf_append_slice(&buffer->bytes, frame);
    if (status < 0)
        return annal__fail(err, status, "read an event of %llu bytes: out of memory",
                           (unsigned long long)length);
    (void)annal__codec_event(scan->codec, annal__buf_slice(&buffer->bytes), &event, NULL);
    *out_event = event;
    out_event->h = scan->h;
    return ANNAL_OK;
}

static bool proves_itself(const struct codec *codec, annal_slice before, annal_slice frame,
                          uint64_t seq, uint64_t offset, annal_event *out_event)
{
    uint64_t h_before = 0, h = 0;
    annal_event event = {0};
    if (frame.len == 0 || !codec->ends(before) || !codec->trailer(before, &h_before) ||
        !annal__codec_proves(codec, frame, offset, h_before, &h) ||
        !annal__codec_event(codec, frame, &event, NULL) || event.seq != seq)
        return false;
    event.h = h;
    *out_event = event;
    return true;
}

static annal_status read_event(annal__event_buffer *buffer, struct scan *scan, uint64_t seq,
                               uint64_t offset, uint64_t length, annal_event *out_event,
                               annal_error *err)
{
    annal_slice before, frame;
    annal_status status = read_frame(buffer, scan, offset, length, &before, &frame, err);
    if (status < 0)
        return status;
    return proves_itself(scan->codec, before, frame, seq, offset, out_event)
               ? ANNAL_OK
               : read_by_walking(buffer, scan, seq, offset, length, out_event, err);
}

static bool take_ahead(annal__event_buffer *buffer, const annal_store *store, annal_slice session,
                       uint64_t seq, uint64_t offset, uint64_t length, annal_event *out_event)
{
    const struct ahead *ahead = find_ahead(buffer, store, session, offset, length);
    if (ahead == NULL)
        return false;
    const struct codec *codec = scan_of(buffer, ahead)->codec;
    annal_slice before = {buffer->ahead_bytes.ptr + ahead->at, codec->trailer_bytes};
    annal_slice frame = {before.ptr + before.len, (size_t)length};
    return proves_itself(codec, before, frame, seq, offset, out_event);
}

/* Take an event from the piece that was read with an event before it (rule 3). */
static bool take_near(annal__event_buffer *buffer, const annal_store *store, annal_slice session,
                      uint64_t seq, uint64_t offset, uint64_t length, annal_event *out_event)
{
    struct near *near = &buffer->near;
    if (near->bytes.len == 0 || !is_of(&buffer->journals[near->journal], store, session))
        return false;
    const struct codec *codec = buffer->journals[near->journal].scan.codec;
    uint64_t begin = offset - codec->trailer_bytes, at = begin - near->begin;
    if (begin > offset || begin < near->begin || at > near->bytes.len ||
        codec->trailer_bytes + length > near->bytes.len - at)
        return false;
    annal_slice before = {near->bytes.ptr + at, codec->trailer_bytes};
    annal_slice frame = {before.ptr + before.len, (size_t)length};
    near->next = offset + length;
    return proves_itself(codec, before, frame, seq, offset, out_event);
}

/* Read a piece from this event on, if the event follows the one that was read last. */
static void read_near(annal__event_buffer *buffer, const struct journal *journal, uint64_t offset,
                      uint64_t length)
{
    struct near *near = &buffer->near;
    const struct scan *scan = &journal->scan;
    size_t before = scan->codec->trailer_bytes, number = (size_t)(journal - buffer->journals);
    bool follows = near->journal == number && near->next != 0 && offset >= near->next &&
                   offset - near->next < AHEAD_GAP_BYTES && offset >= before;
    size_t size = follows ? near->size : NEAR_BYTES_MIN;
    annal__buf_clear(&near->bytes);
    near->journal = number;
    near->begin = offset - before;
    near->next = offset + length;
    near->size = follows && size < NEAR_BYTES_MAX ? size * 2 : size;
    if (!follows || length > size / 2 || annal__buf_reserve(&near->bytes, size) < 0)
        return;
    ssize_t got = annal__io_read_full(scan->io, scan->fd, near->bytes.ptr, size, near->begin);
    near->bytes.len = got > 0 ? (size_t)got : 0;
}

static annal_status open_and_read(annal__event_buffer *buffer, const annal_store *store,
                                  annal_slice session, uint64_t seq, uint64_t offset,
                                  uint64_t length, annal_event *out_event, annal_error *err)
{
    struct journal *journal = NULL;
    annal_error why = {0};
    annal_status status = open_journal(buffer, store, session, &journal, &why);
    if (annal__error_is_io(status) && (why.os_errno == EMFILE || why.os_errno == ENFILE)) {
        close_all(buffer);
        status = open_journal(buffer, store, session, &journal, &why);
    }
    if (status < 0)
        return annal__error_pass(err, status, &why);
    read_near(buffer, journal, offset, length);
    return take_near(buffer, store, session, seq, offset, length, out_event)
               ? ANNAL_OK
               : read_event(buffer, &journal->scan, seq, offset, length, out_event, err);
}

annal_status annal__event_read_at(annal_store *store, annal_slice session, uint64_t seq,
                                  uint64_t offset, uint64_t length, annal__event_buffer **buffer,
                                  annal_event *out_event, annal_error *err)
{
    annal__event_buffer *made = NULL;
    annal_event event = {0};
    annal_status status = annal__context_check(&store->context, err);
    if (status < 0)
        return status;
    if (*buffer == NULL) {
        made = annal__zalloc(sizeof *made);
        if (made == NULL)
            return annal__fail(err, ANNAL_ERR_NOMEM, "read an event: out of memory");
    }
    annal__event_buffer *used = made != NULL ? made : *buffer;
    if (!take_ahead(used, store, session, seq, offset, length, &event) &&
        !take_near(used, store, session, seq, offset, length, &event))
        status = open_and_read(used, store, session, seq, offset, length, &event, err);
    if (status == ANNAL_OK) {
        event.offset = offset;
        event.length = length;
        status = annal__json_msgpack_show(&event, &used->json, err);
    }
    if (status == ANNAL_OK)
        *out_event = event;
    if (status > 0)
        status = annal__fail(
            err, ANNAL_ERR_CORRUPT,
            "session '%.*s': byte %llu does not begin event %llu, or this event is damaged",
            ANNAL_FMT(session), (unsigned long long)offset, (unsigned long long)seq);
    if (status < 0)
        annal__event_buffer_free(made);
    else if (made != NULL)
        *buffer = made;
    return status;
}
