/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writers: turn drafts into events, with the durability of the level that the caller asks for.
 *
 * One call of annal_writer_append() takes these steps; docs/tour.md follows the same call through
 * the other files.
 *
 * (1) With no lock held it checks the drafts, whether storage failed before, and free space; an
 *     append that is refused here has changed nothing. Then it waits if the current group is full.
 * (2) Under the session's lock it owns the session (session.h), reports events that were lost
 *     earlier, converts data to the format of the journal, looks for the events in the journal, and
 *     checks expected_seq. These steps may release the lock to wait, so they are repeated if the
 *     session changed in the meantime.
 * (3) Still under the lock it encodes the events and adds them to the current group (commit.h), and
 *     moves the session's end after them: the next append continues from there, although these
 *     events are not durable yet. Or, at level os, it writes them into the journal at once
 *     (level_os.h).
 * (4) With no lock held, level sync waits until the group is durable and in the journals, leading
 *     the commit if no other thread does. Level batch returns without waiting.
 *
 * Events of level batch may be refused after their append returned. Therefore a writer that added
 * events below level sync to a group is in session->lossy, and the loss is reported by its next
 * append or by annal_writer_sync().
 */
#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/slice.h"
#include "journal/json_msgpack.h"
#include "journal/keeper.h"
#include "journal/lease.h"
#include "journal/level_os.h"
#include "journal/scan.h"
#include "journal/session_file.h"
#include "journal/session_own.h"
#include "journal/store.h"
#include "journal/sync.h"
#include "journal/sys/draft.h"
#include "journal/sys/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

/* Interval of checks for free disk space, in microseconds; if less than FREE_LITTLE_BYTES are free,
 * each append checks. */
#define FREE_CHECK_EVERY_US 100000
#define FREE_LITTLE_BYTES   ((uint64_t)64 << 20)

/* Bytes of the disk that even appends which may use the reserve (annal__writer_spend_reserve())
 * leave free, so that their journals can grow. */
#define SPENDING_RESERVE_BYTES ((uint64_t)64 << 10)
/* memory for frames that a writer keeps between appends */
#define FRAMES_KEPT_BYTES ((size_t)64 << 10)

struct annal_writer {
    annal_store *store;
    struct session *session;
    annal_level level;
    uint32_t wait_ms;
    const struct codec *codec; /* required format of the journal; NULL: any */
    bool has_reserve;
    bool is_lease_exempt;

    /* Guarded by the session's lock. */
    struct session_loss loss;
    /* whether the writer wrote events of level os, or found them in the journal as copies */
    bool loose;
    struct buf frames; /* frames of the append that is running, unless it is one of level os */
};

/* One call of annal_writer_append(). */
struct append {
    annal_writer *writer;
    annal_store *store;
    struct session *session;
    const struct codec *codec; /* format that the caller requires; NULL: any */
    const annal_draft *given;
    /* the given drafts, or copies of them with data in the journal's format */
    const annal_draft *drafts;
    struct buf converted; /* memory of these copies */
    struct buf converted_data;
    size_t count;
    annal_level level;
    annal_expect expect;
    uint64_t expected_seq;
    uint64_t h; /* hash that the journal's last event must have before the append; 0: any */
    uint64_t data_bytes;
    /* where the frames are encoded: writer->frames, or session->loose for level os. They begin at
     * offset frames_at. */
    struct buf *frames;
    size_t frames_at;
    /* whether all events were in the journal already, from an earlier append with the same ids */
    bool is_copy;
};

annal_status annal_writer_open(annal_store *store, annal_slice session,
                               const annal_writer_options *options, annal_writer **out_writer,
                               annal_error *err)
{
    static const annal_writer_options defaults;
    if (options == NULL)
        options = &defaults;
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status == ANNAL_OK)
        status = annal_session_id_check(session, err);
    if (status < 0)
        return status;
    annal_writer *writer = annal__zalloc(sizeof *writer);
    if (writer == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "open a writer on session '%.*s': out of memory",
                           ANNAL_FMT(session));
    writer->store = store;
    writer->level = options->level != 0 ? options->level : store->level;
    writer->codec = annal__codec_of(options->format);
    writer->wait_ms = options->wait_ms != 0 ? options->wait_ms : store->context.wait_ms;
    writer->session = annal__session_get(&store->sessions, session, err);
    if (writer->session == NULL) {
        annal__free(writer);
        return ANNAL_ERR_NOMEM;
    }
    atomic_fetch_add(&store->open_writers, 1);
    *out_writer = writer;
    return ANNAL_OK;
}

void annal__writer_spend_reserve(annal_writer *writer)
{
    writer->has_reserve = true;
}

void annal__writer_ignore_lease(annal_writer *writer)
{
    writer->is_lease_exempt = true;
}

/* ---- Events that are lost after their append returned ---- */

static void leave_lossy(annal_writer *writer)
{
    struct session_loss **at = &writer->session->lossy;
    while (*at != NULL && *at != &writer->loss)
        at = &(*at)->next;
    if (*at != NULL)
        *at = writer->loss.next;
    writer->loss.batched_seq = 0;
}

void annal_writer_close(annal_writer *writer)
{
    if (writer == NULL)
        return;
    pthread_mutex_lock(&writer->session->lock);
    leave_lossy(writer);
    pthread_mutex_unlock(&writer->session->lock);
    atomic_fetch_sub(&writer->store->open_writers, 1);
    annal__buf_done(&writer->frames);
    annal__free(writer);
}

annal_slice annal__writer_session(const annal_writer *writer)
{
    return annal_slice_of(writer->session->id);
}

static void join_lossy(annal_writer *writer, uint64_t last_seq)
{
    if (writer->loss.batched_seq == 0) {
        writer->loss.next = writer->session->lossy;
        writer->session->lossy = &writer->loss;
    }
    writer->loss.batched_seq = last_seq;
}

static void forget_loss(annal_writer *writer)
{
    leave_lossy(writer);
    writer->loss.lost_seq = 0;
    writer->loss.is_reported = false;
}

/* Fail, once, if earlier events of this writer, of level batch, were refused. */
static annal_status report_loss(annal_writer *writer, annal_error *err)
{
    uint64_t seq = writer->loss.lost_seq;
    if (writer->loss.is_reported)
        forget_loss(writer);
    if (seq == 0 || writer->loss.lost_seq == 0)
        return ANNAL_OK;
    leave_lossy(writer);
    writer->loss.is_reported = true;
    return annal__fail(
        err, ANNAL_ERR_IO,
        "append to session '%s': refused, because earlier events of level batch, from seq "
        "%" PRIu64 " on, could not be written; append them again",
        writer->session->id, seq);
}

/* ---- Before anything is encoded ---- */

/* Fail if two drafts have the same id. */
static annal_status check_ids_differ(const struct append *append, annal_error *err)
{
    struct ids seen = {0};
    annal_status status = ANNAL_OK;
    for (size_t i = 0; i < append->count && status == ANNAL_OK; i++) {
        annal_slice id = append->drafts[i].id;
        uint64_t earlier;
        if (id.len == 0)
            continue;
        if (annal__ids_find(&seen, id, &earlier))
            status =
                annal__fail(err, ANNAL_ERR_INVALID,
                            "append to session '%s': events %" PRIu64 " and %zu have the same id",
                            append->session->id, earlier + 1, i + 1);
        else if (annal__ids_add(&seen, id, i) < 0)
            status = annal__fail(err, ANNAL_ERR_NOMEM, "append to session '%s': out of memory",
                                 append->session->id);
    }
    annal__ids_done(&seen);
    return status;
}

static annal_status check_drafts(struct append *append, annal_error *err)
{
    if (append->count == 0 || append->count > ANNAL_APPEND_EVENTS_MAX)
        return annal__fail(err, append->count == 0 ? ANNAL_ERR_INVALID : ANNAL_ERR_LIMIT,
                           "append to session '%s': %zu events; one append has 1 to %d",
                           append->session->id, append->count, ANNAL_APPEND_EVENTS_MAX);
    uint64_t bytes = 0;
    for (size_t i = 0; i < append->count; i++) {
        annal_status status = annal_draft_check(&append->drafts[i], err);
        if (status < 0) {
            if (append->count > 1)
                annal__error_context(err, "append to session '%s': event %zu of %zu",
                                     append->session->id, i + 1, append->count);
            else
                annal__error_context(err, "append to session '%s'", append->session->id);
            return status;
        }
        append->data_bytes += append->drafts[i].data.len;
        bytes += append->drafts[i].data.len + FRAME_ENVELOPE_BYTES / 2;
    }
    if (append->count > 1 && bytes > ANNAL_APPEND_BYTES_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "append to session '%s': %" PRIu64 " bytes; one append has at most %u",
                           append->session->id, bytes, ANNAL_APPEND_BYTES_MAX);
    return append->count > 1 ? check_ids_differ(append, err) : ANNAL_OK;
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Refuse an append for which the disk has not enough free space, before anything is written (rule 6
 * of the commit log). */
static annal_status check_space(const struct append *append, annal_error *err)
{
    annal_store *store = append->store;
    uint64_t bytes = append->data_bytes, keep = store->events.keep_free_bytes;
    if (append->writer->has_reserve && keep > SPENDING_RESERVE_BYTES)
        keep = SPENDING_RESERVE_BYTES;
    int64_t now_us = annal__context_now_us(&store->context);
    int64_t checked_us = atomic_load(&store->events.space_checked_us);
    if (checked_us == 0 || now_us - checked_us >= FREE_CHECK_EVERY_US ||
        atomic_load(&store->events.space_free) < FREE_LITTLE_BYTES) {
        struct io_space space;
        if (store->context.io->space(store->context.io->arg, store->events.fd, &space) < 0)
            return annal__fail_errno(err, "cannot examine the free space of %s",
                                     store->context.path);
        atomic_store(&store->events.space_free, space.free_bytes);
        atomic_store(&store->events.space_checked_us, now_us);
    }
    uint64_t needed = atomic_load(&store->commit.unapplied_bytes) + bytes + keep;
    uint64_t region_bytes = atomic_load(&store->own_log.region_bytes);
    /* The log grows for an append that is larger than a region, to regions of at most twice the
     * size of the append. */
    if (bytes + LOG_REGION_FIRST / 2 > region_bytes && bytes > LOG_REGION_FIRST / 2)
        needed += 2 * LOG_REGIONS * bytes;
    else if (region_bytes < LOG_REGION_FIRST && bytes > LOG_REGION_LEAST / 2)
        needed += LOG_REGIONS * LOG_REGION_FIRST;
    uint64_t free_bytes = atomic_load(&store->events.space_free);
    if (free_bytes >= needed)
        return ANNAL_OK;
    errno = ENOSPC;
    return annal__fail_errno(
        err,
        "append to store %.200s: refused, nothing was written: %.1f MiB of its disk are free, the "
        "append needs %.1f, and %.1f are kept free (--keep-free, keep_free_bytes)",
        store->context.path, mib(free_bytes), mib(needed - keep), mib(keep));
}

annal_status annal__writer_begin(annal_writer *writer, const annal_draft *drafts, size_t count,
                                 annal_session_info *out, annal_error *err)
{
    annal_store *store = writer->store;
    const struct codec *codec = writer->codec != NULL ? writer->codec : store->codec;
    struct append append = {.writer = writer,
                            .store = store,
                            .session = writer->session,
                            .drafts = drafts,
                            .count = count};
    struct frame_header header;
    SCOPED_BUF frame = {.limit = FRAME_ENVELOPE_BYTES};
    *out = (annal_session_info){.format = codec->format, .first_seq = 1};
    annal_status status = check_drafts(&append, err);
    if (status == ANNAL_OK)
        status = check_space(&append, err);
    if (status == ANNAL_OK)
        status = annal__session_header_new(&store->context, annal__session_id(writer->session),
                                           codec, &header, &frame, &out->last_h, err);
    if (status >= 0) {
        snprintf(out->session, sizeof out->session, "%.*s", ANNAL_FMT(header.session));
        annal__codec_file_id_text(header.file, out->file);
        out->created_us = header.created_us;
        out->end_offset = frame.len;
    }
    return status;
}

/* ---- The format of the journal ---- */

/* Give a new journal the required format, or fail if an existing journal has another format. */
static annal_status choose_format(const struct append *append, annal_error *err)
{
    struct session *session = append->session;
    const struct codec *wanted = append->codec;
    bool begun = session->create_logged || session->exists;
    if (wanted == NULL || wanted == session->codec)
        return ANNAL_OK;
    if (!begun)
        return annal__session_begin(&append->store->sessions, session, wanted, err);
    return annal__fail(
        err, ANNAL_ERR_INVALID,
        "append to session '%s': its journal is %s%s, and the format of a session cannot change",
        session->id, session->id, session->codec->suffix);
}

static bool fits_format(const annal_draft *draft, const struct codec *codec)
{
    return (draft->data_format == ANNAL_FORMAT_MSGPACK) == (codec->format == ANNAL_FORMAT_MSGPACK);
}

static annal_status convert_draft(struct append *append, size_t i, annal_error *err)
{
    const annal_draft *draft = &append->drafts[i];
    struct buf *out = &append->converted_data;
    annal_status status = draft->data_format == ANNAL_FORMAT_MSGPACK
                              ? annal__json_msgpack_to_json(draft->data, out, err)
                              : annal__json_msgpack_from_json(draft->data, out, err);
    if (status < 0 && append->count > 1)
        annal__error_context(err, "append to session '%s': event %zu of %zu", append->session->id,
                             i + 1, append->count);
    else if (status < 0)
        annal__error_context(err, "append to session '%s'", append->session->id);
    return status;
}

/* Convert the data of all drafts to the journal's format. */
static annal_status convert_drafts(struct append *append, annal_error *err)
{
    const struct codec *codec = append->session->codec;
    size_t first = 0;
    while (first < append->count && fits_format(&append->drafts[first], codec))
        first++;
    if (first == append->count)
        return ANNAL_OK;
    annal__buf_clear(&append->converted);
    annal__buf_clear(&append->converted_data);
    append->drafts = append->given;
    annal_status status =
        annal__buf_append_zeros(&append->converted, append->count * sizeof *append->drafts);
    if (status < 0)
        return annal__fail(err, status, "append to session '%s': out of memory",
                           append->session->id);
    /* All converted data is collected in one buffer, which may move, so the pointers to it are set
     * at the end. */
    annal_draft *converted = (annal_draft *)(void *)append->converted.ptr;
    for (size_t i = 0; i < append->count && status == ANNAL_OK; i++) {
        size_t start = append->converted_data.len;
        converted[i] = append->drafts[i];
        if (fits_format(&append->drafts[i], codec))
            continue;
        status = convert_draft(append, i, err);
        converted[i].data = (annal_slice){NULL, append->converted_data.len - start};
    }
    size_t at = 0;
    for (size_t i = 0; i < append->count && status == ANNAL_OK; i++) {
        if (converted[i].data.ptr == NULL) {
            converted[i].data.ptr = append->converted_data.ptr + at;
            at += converted[i].data.len;
        }
        converted[i].data_format = codec->format;
    }
    if (status == ANNAL_OK)
        append->drafts = converted;
    return status;
}

/* ---- Exactly-once appends ---- */

static annal_status open_scan(const struct append *append, struct scan *scan, annal_error *err)
{
    const struct io *io = append->store->context.io;
    int fd = io->open(io->arg, append->session->path, O_RDONLY, 0);
    if (fd < 0)
        return annal__fail_errno(err, "cannot open %s", append->session->path);
    annal__scan_init(scan, io, fd, append->session->codec);
    return ANNAL_OK;
}

/* Find out whether the next events in the journal are the drafts: *out_same, and the seq of the
 * first in *out_seq. */
static annal_status compare_drafts(const struct append *append, struct scan *scan, bool *out_same,
                                   uint64_t *out_seq, annal_error *err)
{
    *out_same = true;
    for (size_t i = 0; i < append->count && *out_same; i++) {
        annal_event event;
        annal_status status = annal__scan_next(scan, &event, err);
        if (status < 0)
            return status;
        const annal_draft *draft = &append->drafts[i];
        *out_same = status == ANNAL_OK && annal__slice_same(event.id, draft->id) &&
                    annal__slice_same(event.type, draft->type) &&
                    annal__slice_same(event.cause, draft->cause) &&
                    annal__slice_same(event.data, draft->data);
        if (i == 0 && status == ANNAL_OK)
            *out_seq = event.seq;
    }
    return ANNAL_OK;
}

/* Wait until all encoded events are in the journal, so that drafts can be compared with them. */
static annal_status wait_until_applied(struct append *append, annal_error *err)
{
    struct session *session = append->session;
    annal_status status = ANNAL_OK;
    while (status == ANNAL_OK && session->pending > 0) {
        pthread_mutex_unlock(&session->lock);
        status = annal__commit_flush(&append->store->commit, err);
        pthread_mutex_lock(&session->lock);
    }
    return status;
}

/* Read the ids of events from the end of the journal backwards, in growing steps, until
 * IDS_REMEMBERED ids or all ids are known. */
static annal_status load_ids(struct append *append, annal_error *err)
{
    struct session *session = append->session;
    if (session->ids_loaded)
        return ANNAL_OK;
    annal_status status = wait_until_applied(append, err);
    uint64_t reach = IDS_REMEMBERED;
    bool enough = session->seq == 0;
    while (status == ANNAL_OK && !enough) {
        struct scan scan;
        uint64_t from = session->seq > reach ? session->seq - reach + 1 : 1;
        uint64_t known = 0;
        annal__ids_done(&session->ids);
        status = open_scan(append, &scan, err);
        if (status < 0)
            return status;
        status = annal__seek(&scan, from, err);
        while (status >= 0 && status != ANNAL_END) {
            annal_event event = {0};
            status = annal__scan_next(&scan, &event, err);
            if (status == ANNAL_OK && event.id.len > 0) {
                known++;
                if (annal__ids_add(&session->ids, event.id, event.offset) < 0)
                    status = annal__fail(err, ANNAL_ERR_NOMEM,
                                         "append to session '%s': out of memory", session->id);
            }
        }
        annal__scan_done(&scan);
        status = status < 0 ? status : ANNAL_OK;
        enough = from == 1 || known >= IDS_REMEMBERED;
        reach *= 4;
    }
    session->ids_loaded = status == ANNAL_OK;
    return status;
}

static bool any_id(const struct append *append)
{
    for (size_t i = 0; i < append->count; i++) {
        if (append->drafts[i].id.len > 0)
            return true;
    }
    return false;
}

/* Look for the drafts in the journal. ANNAL_END: these events are in the journal already, beginning
 * with *out_seq. ANNAL_OK: they are new. ANNAL_ERR_CONFLICT: an id belongs to a different event. */
static annal_status find_copies(struct append *append, uint64_t *out_seq, annal_error *err)
{
    struct session *session = append->session;
    annal_status status = load_ids(append, err);
    uint64_t offset = 0;
    size_t with_id = 0;
    while (status == ANNAL_OK && with_id < append->count &&
           (append->drafts[with_id].id.len == 0 ||
            !annal__ids_find(&session->ids, append->drafts[with_id].id, &offset)))
        with_id++;
    if (status < 0 || with_id == append->count)
        return status;
    /* If the fate of the events that an earlier append wrote with these ids is unknown, the fate of
     * these drafts is unknown, too. */
    annal_error failure;
    if (wait_until_applied(append, &failure) < 0)
        return annal__fail(err, ANNAL_ERR_UNKNOWN, "%.400s", failure.message);
    if (!session->ids_loaded) /* the earlier append was refused in the meantime, so look again */
        return find_copies(append, out_seq, err);

    struct scan scan;
    bool same = false;
    uint64_t h_before = 0;
    status = open_scan(append, &scan, err);
    if (status < 0)
        return status;
    /* The event at offset has the id of the draft with_id. If all drafts were appended together,
     * the first one is therefore with_id events before it: compare from there. */
    annal_event event;
    status = annal__scan_h_before(&scan, offset, &h_before, err);
    if (status == ANNAL_OK) {
        annal__scan_set(&scan, 0, offset, h_before);
        status = annal__scan_next(&scan, &event, err);
        if (status == ANNAL_OK && event.seq > with_id)
            status = annal__seek(&scan, event.seq - with_id, err);
        if (status == ANNAL_OK)
            status = compare_drafts(append, &scan, &same, out_seq, err);
    }
    annal__scan_done(&scan);
    if (status < 0)
        return status;
    if (same)
        return ANNAL_END;
    annal_slice id = append->drafts[with_id].id;
    return annal__fail(err, ANNAL_ERR_CONFLICT,
                       "append to session '%s': id '%.*s' is taken by an event with other bytes",
                       session->id, ANNAL_FMT(id));
}

/* Look for the drafts after event seq, their expected predecessor: a retry finds its events there,
 * however long ago they were appended. ANNAL_END if they are there. */
static annal_status find_copies_behind(struct append *append, uint64_t seq, uint64_t *out_seq,
                                       annal_error *err)
{
    struct scan scan;
    bool same = false;
    annal_status status = wait_until_applied(append, err);
    if (status == ANNAL_OK)
        status = open_scan(append, &scan, err);
    if (status < 0)
        return status;
    status = annal__seek(&scan, seq + 1, err);
    if (status == ANNAL_OK)
        status = compare_drafts(append, &scan, &same, out_seq, err);
    annal__scan_done(&scan);
    /* in a fork whose fork point is after this seq, the next events belong to ancestors, and are
     * not compared */
    same = same && *out_seq == seq + 1;
    return status < 0 ? status : same ? ANNAL_END : ANNAL_OK;
}

static annal_status check_expected(struct append *append, uint64_t *out_seq, annal_error *err)
{
    struct session *session = append->session;
    if (append->expect == ANNAL_EXPECT_ANY)
        return ANNAL_OK;
    uint64_t expected = append->expect == ANNAL_EXPECT_SEQ ? append->expected_seq : 0;
    if (session->seq == expected)
        return ANNAL_OK;
    if (session->seq > expected && any_id(append)) {
        annal_status status = find_copies_behind(append, expected, out_seq, err);
        if (status != ANNAL_OK)
            return status;
    }
    return annal__fail(err, ANNAL_ERR_CONFLICT,
                       "append to session '%s': the session ends at seq %" PRIu64
                       ", not at %" PRIu64,
                       session->id, session->seq, expected);
}

/* ---- Encoding ---- */

/* Return the time of an event: the time that the draft states, or else the present time. The
 * present time is at least the time of the last event, unless that is far ahead of the clock. */
static int64_t choose_time(const struct append *append, const annal_draft *draft, int64_t last_us)
{
    if (draft->ts_us == 0)
        return annal__clock_after(append->store->context.clock, last_us);
    /* limited to times that an event can have in every format */
    return annal__draft_time(draft, 0);
}

/* The end of the session after the encoded events. */
struct advance {
    uint64_t seq;
    int64_t ts_us;
    uint64_t h;
};

static annal_slice frames_of(const struct append *append)
{
    return (annal_slice){append->frames->ptr + append->frames_at,
                         append->frames->len - append->frames_at};
}

static annal_status encode_events(const struct append *append, struct advance *advance,
                                  annal_error *err)
{
    for (size_t i = 0; i < append->count; i++) {
        const annal_draft *draft = &append->drafts[i];
        int64_t ts_us = choose_time(append, draft, advance->ts_us);
        struct frame_place place = {.seq = advance->seq + 1,
                                    .ts_us = ts_us,
                                    .offset = append->session->end + append->frames->len -
                                              append->frames_at,
                                    .h_before = advance->h};
        annal_status status =
            append->session->codec->encode_event(append->frames, draft, &place, &advance->h);
        if (status == ANNAL_ERR_LIMIT)
            return annal__fail(err, status,
                               "append to session '%s': its events take more than %u bytes in the "
                               "format of its journal",
                               append->session->id, ANNAL_APPEND_BYTES_MAX);
        if (status < 0)
            return annal__fail(err, status, "append to session '%s': out of memory",
                               append->session->id);
        advance->seq++;
        advance->ts_us = ts_us;
    }
    if (append->h == 0 || append->h == advance->h)
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_REFUSED,
                       "append to session '%s': the hash of event %" PRIu64 " would be %016" PRIx64
                       ", not %016" PRIx64,
                       append->session->id, advance->seq, advance->h, append->h);
}

/* Encode the events: if `loose`, into the buffer that keeps the session's bytes of level os until
 * they are durable. A failure leaves the bytes before them unchanged. */
static annal_status encode(struct append *append, bool loose, struct advance *advance,
                           annal_error *err)
{
    append->frames = loose ? &append->session->loose : &append->writer->frames;
    append->frames_at = loose ? append->frames->len : 0;
    annal__buf_cut(append->frames, append->frames_at);
    size_t limit = append->frames->limit;
    append->frames->limit =
        append->frames_at + ANNAL_APPEND_BYTES_MAX + append->count * FRAME_ENVELOPE_BYTES;
    annal_status status = encode_events(append, advance, err);
    append->frames->limit = limit;
    if (status < 0)
        annal__buf_cut(append->frames, append->frames_at);
    return status;
}

static void remember_ids(struct append *append, uint64_t offset)
{
    struct session *session = append->session;
    annal_slice rest = frames_of(append);
    for (size_t i = 0; i < append->count && session->ids_loaded; i++) {
        /* Without memory for an id, the next append with ids reads all of them again. */
        if (append->drafts[i].id.len > 0 &&
            annal__ids_add(&session->ids, append->drafts[i].id, offset) < 0)
            session->ids_loaded = false;
        size_t length = session->codec->measure(rest, 0, true);
        offset += length;
        rest.ptr += length;
        rest.len -= length;
    }
}

static void move_session(struct append *append, const struct advance *advance)
{
    struct session *session = append->session;
    remember_ids(append, session->end);
    session->seq = advance->seq;
    session->ts_us = advance->ts_us;
    session->h = advance->h;
    session->end += frames_of(append).len;
}

/* ---- The two ways into a journal ---- */

/*
 * Handle a failed write of level os, which may have left a piece in the journal. A single event
 * without its newline was read by no reader, and is cut off. The first of several events may be
 * complete, so then the session accepts no more events.
 */
static annal_status take_back(const struct append *append, annal_status status, annal_error *err)
{
    struct session *session = append->session;
    const struct io *io = append->store->context.io;
    if (status != ANNAL_ERR_UNKNOWN && append->count == 1 &&
        (session->fd < 0 || io->ftruncate(io->arg, session->fd, session->end) == 0))
        return status;
    annal_error why = {0};
    session->refused = true;
    annal__fail(&why, ANNAL_ERR_CLOSED,
                "session '%s' accepts no more events, because a write failed; open the store again",
                session->id);
    annal__session_set_refusal(session, &why);
    return annal__fail(err, ANNAL_ERR_UNKNOWN,
                       "append to session '%s': the write failed in the middle; reopen the store "
                       "to learn which events were written",
                       session->id);
}

/* Write events of level os into the journal, in the page cache, after a mark (level_os.h). If more
 * than 1 MiB of such bytes is not synced, sync the journal. */
static annal_status write_loose(struct append *append, const struct advance *advance,
                                annal_error *err)
{
    struct session *session = append->session;
    annal_store *store = append->store;
    annal__session_set_loose(&store->sessions, session, true);
    annal_status status =
        annal__session_write(&store->sessions, session, session->end, frames_of(append), err);
    if (status < 0) {
        annal__buf_cut(&session->loose, append->frames_at);
        return take_back(append, status, err);
    }
    if (append->frames_at == 0)
        session->loose_first_seq = session->seq + 1;
    annal__metrics_add(&store->metrics, METRIC_EVENTS, append->count);
    annal__metrics_add(&store->metrics, METRIC_PAYLOAD_BYTES, append->data_bytes);
    atomic_store(&store->sessions.appended_us, session->used_us);
    move_session(append, advance);
    struct wakeup_page *page = annal__wakeup_page(&store->wakeup, session->used_us, false);
    annal__wakeup_announce(page, annal__session_id(session), session->seq);
    annal__wakeup_wake(page);
    annal_error failure;
    if (session->loose.len > SESSION_LOOSE_BYTES_MAX &&
        annal__session_sync(&store->sessions, session, &failure) < 0)
        status = annal__fail(err, ANNAL_ERR_UNKNOWN, "%.400s", failure.message);
    return status;
}

static annal_status join_group(struct append *append, const struct advance *advance,
                               struct group **out_group, annal_error *err)
{
    struct session *session = append->session;
    struct group_record record = {
        .session = session,
        .create = !session->create_logged,
        .mark = session->marked,
        .offset = session->logged,
        .first_seq = session->loose.len > 0 ? session->loose_first_seq : session->seq + 1,
        .last_seq = advance->seq,
        .h_before = session->logged_h,
        .h_after = advance->h,
    };
    annal_slice header = {NULL, 0};
    if (record.create)
        header = annal__buf_slice(&session->header);
    annal_status status =
        annal__commit_add(&append->store->commit, &record, header,
                          annal__buf_slice(&session->loose), frames_of(append), append->count,
                          append->data_bytes, append->level == ANNAL_LEVEL_BATCH, out_group, err);
    if (status != ANNAL_OK)
        return status;
    move_session(append, advance);
    annal__session_drop_loose(session, session->loose.len);
    annal__session_set_loose(&append->store->sessions, session, false);
    session->create_logged = true;
    session->mark_group = record.mark ? (*out_group)->number : 0;
    session->logged = session->end;
    session->logged_h = session->h;
    return ANNAL_OK;
}

/* Fail if the session accepts no appends. */
static annal_status check_health(const struct session *session, annal_error *err)
{
    if (!session->refused && session->late != LATE_BYTES)
        return ANNAL_OK;
    if (err != NULL)
        *err = *session->refusal;
    /* the status must say that this append is refused: the status of the stored reason may say that
     * the fate of earlier events is unknown */
    if (session->refused)
        return ANNAL_ERR_CLOSED;
    return annal__error_is_io(session->refusal->status) ? session->refusal->status : ANNAL_ERR_IO;
}

/* Own the session, and check whether these events may be appended. ANNAL_END: they are in the
 * journal already. */
static annal_status prepare(struct append *append, int64_t deadline_us, uint64_t *out_seq,
                            annal_error *err)
{
    struct session *session = append->session;
    annal_status status;
    do {
        status = annal__session_own(append->store, session, deadline_us, err);
        if (status == ANNAL_OK)
            status = report_loss(append->writer, err);
        if (status == ANNAL_OK)
            status = check_health(session, err);
        if (status == ANNAL_OK)
            status = choose_format(append, err);
        if (status == ANNAL_OK)
            status = convert_drafts(append, err);
        if (status == ANNAL_OK && any_id(append))
            status = find_copies(append, out_seq, err);
        if (status == ANNAL_OK)
            status = check_expected(append, out_seq, err);
        if (status == ANNAL_OK && !append->writer->is_lease_exempt)
            status = annal__lease_check(append->store, session, append->h, err);
        /* These checks may have released the session's lock while they waited, so another thread
         * may have changed the session. */
    } while (status == ANNAL_OK &&
             (session->state != SESSION_OWNED || check_health(session, NULL) < 0 ||
              append->writer->loss.lost_seq != 0));
    return status;
}

/*
 * Append the events, or find that they are in the journal already. *out_group is the group to wait
 * for, or NULL. ANNAL_END: the current group is full, and nothing was done. The caller holds the
 * session's lock.
 */
static annal_status append_locked(struct append *append, int64_t deadline_us, uint64_t *out_seq,
                                  struct group **out_group, annal_error *err)
{
    struct session *session = append->session;
    bool loose = false;
    do {
        annal_status status = prepare(append, deadline_us, out_seq, err);
        append->is_copy = status == ANNAL_END;
        if (append->is_copy && session->loose.len > 0)
            append->writer->loose = true;
        if (status != ANNAL_OK)
            return append->is_copy ? ANNAL_OK : status;
        loose = append->level == ANNAL_LEVEL_OS && session->pending == 0;
        if (!loose || session->marked)
            break;
        status = annal__level_os_mark(&append->store->commit, session, err);
        if (status != ANNAL_OK)
            return status;
    } while (true);

    struct advance advance = {session->seq, session->ts_us, session->h};
    uint64_t first = session->seq + 1;
    annal_status status = encode(append, loose, &advance, err);
    if (status < 0)
        return status;
    status =
        loose ? write_loose(append, &advance, err) : join_group(append, &advance, out_group, err);
    if (status == ANNAL_OK) {
        *out_seq = first;
        append->writer->loose = append->writer->loose || loose;
        if (append->level != ANNAL_LEVEL_SYNC && !loose)
            join_lossy(append->writer, advance.seq);
    }
    return status;
}

/* ---- After an append ---- */

static annal_status wait_for_group(struct append *append, struct group *group, annal_error *err)
{
    annal_store *store = append->store;
    /* The events are in the journal from an earlier append, perhaps not synced; syncing everything
     * gives them level sync. */
    if (append->is_copy && append->level == ANNAL_LEVEL_SYNC)
        return annal__sync_all(store, err);
    if (group == NULL)
        return ANNAL_OK;
    if (append->level == ANNAL_LEVEL_BATCH) {
        annal__commit_leave(&store->commit, group);
        return ANNAL_OK;
    }
    return annal__commit_wait(&store->commit, group, append->session, err);
}

/* Without a keeper, each append does the keeper's work: it commits old groups of level batch, and
 * releases sessions that other processes want. */
static void keep_in_passing(annal_store *store)
{
    if (!store->keeper.alarm.running)
        annal__keeper_round(store);
}

static void count_failure(annal_store *store, annal_status status)
{
    annal__metrics_add(&store->metrics,
                       status == ANNAL_ERR_UNKNOWN ? METRIC_UNKNOWN : METRIC_REFUSED, 1);
}

annal_status annal_writer_append(annal_writer *writer, const annal_draft *drafts, size_t count,
                                 const annal_append_options *options, uint64_t *out_seq,
                                 annal_error *err)
{
    static const annal_append_options defaults;
    if (options == NULL)
        options = &defaults;
    struct append append = {
        .writer = writer,
        .store = writer->store,
        .session = writer->session,
        .codec = writer->codec,
        .given = drafts,
        .drafts = drafts,
        .count = count,
        .level = options->level != 0 ? options->level : writer->level,
        .expect = options->expect,
        .expected_seq = options->expected_seq,
        .h = options->h,
    };
    struct group *group = NULL;
    uint64_t seq = 0;
    annal_status status = annal__context_check_writable(&writer->store->context, err);
    if (status == ANNAL_OK)
        status = annal__draft_check_expect(annal__writer_session(writer), options, err);
    if (status == ANNAL_OK)
        status = check_drafts(&append, err);
    if (status == ANNAL_OK)
        status = annal__commit_check(&writer->store->commit, err);
    if (status == ANNAL_OK)
        status = check_space(&append, err);
    if (status < 0) {
        count_failure(writer->store, status);
        return status;
    }

    int64_t deadline_us =
        annal__context_now_us(&writer->store->context) + (int64_t)writer->wait_ms * 1000;
    do {
        status = annal__commit_make_room(&writer->store->commit, err);
        if (status < 0)
            break;
        pthread_mutex_lock(&writer->session->lock);
        status = append_locked(&append, deadline_us, &seq, &group, err);
        if (writer->frames.cap > FRAMES_KEPT_BYTES)
            annal__buf_done(&writer->frames);
        pthread_mutex_unlock(&writer->session->lock);
    } while (status == ANNAL_END);
    if (status == ANNAL_OK)
        status = wait_for_group(&append, group, err);
    annal__buf_done(&append.converted_data);
    annal__buf_done(&append.converted);
    keep_in_passing(writer->store);
    if (status == ANNAL_OK)
        *out_seq = seq;
    else
        count_failure(writer->store, status);
    return status;
}

/* ---- The fate of earlier events ---- */

/*
 * Find the first event of this writer that was refused, and the first whose fate is unknown. All
 * groups with its events have ended. *why is set if such an event exists. The caller holds the
 * session's lock.
 */
static void find_fate(const annal_writer *writer, annal_sync_result *out, annal_error *why)
{
    const struct session *session = writer->session;
    uint64_t unknown, refused;
    annal__commit_find_lost(&writer->store->commit, session, &unknown, &refused, why);
    *out = (annal_sync_result){writer->loss.doubt_seq, writer->loss.lost_seq};
    if (out->unknown_seq > 0)
        *why = *session->refusal;
    else if (writer->loss.batched_seq >= unknown)
        out->unknown_seq = unknown;
    if (out->refused_seq == 0 && writer->loss.batched_seq >= refused)
        out->refused_seq = refused;
    if (out->refused_seq > 0 && out->unknown_seq >= out->refused_seq)
        out->unknown_seq = 0;
}

static annal_status fail_fate(const annal_writer *writer, const annal_sync_result *result,
                              const annal_error *why, annal_error *err)
{
    char unknown[80] = "", refused[80] = "";
    bool both = result->unknown_seq > 0 && result->refused_seq > 0;
    if (result->unknown_seq > 0)
        snprintf(unknown, sizeof unknown,
                 "events from seq %" PRIu64 " on may or may not have been written",
                 result->unknown_seq);
    if (result->refused_seq > 0)
        snprintf(refused, sizeof refused, "events from seq %" PRIu64 " on were not written",
                 result->refused_seq);
    annal_status status =
        annal__fail(err, result->unknown_seq > 0 ? ANNAL_ERR_UNKNOWN : ANNAL_ERR_IO,
                    "sync session '%s': %s%s%s: %.300s", writer->session->id, unknown,
                    both ? ", and " : "", refused, why->message);
    if (err != NULL)
        err->os_errno = why->os_errno;
    return status;
}

annal_status annal_writer_sync(annal_writer *writer, annal_sync_result *out_result,
                               annal_error *err)
{
    annal_store *store = writer->store;
    struct session *session = writer->session;
    annal_sync_result result;
    annal_error failure, why;
    annal_status status = annal__context_check_writable(&store->context, err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&session->lock);
    bool loose = writer->loose;
    pthread_mutex_unlock(&session->lock);
    /* A failure of the sync does not show whose events were lost; those of level os may be this
     * writer's. */
    status =
        loose ? annal__sync_all(store, &failure) : annal__commit_flush(&store->commit, &failure);
    pthread_mutex_lock(&session->lock);
    find_fate(writer, &result, &why);
    writer->loss.doubt_seq = 0;
    if (writer->loss.lost_seq > 0 || session->pending == 0)
        forget_loss(writer);
    pthread_mutex_unlock(&session->lock);
    if (loose && status < 0) {
        result = (annal_sync_result){.unknown_seq = 1};
        why = failure;
    }
    if (out_result != NULL)
        *out_result = result;
    if (result.unknown_seq == 0 && result.refused_seq == 0)
        return ANNAL_OK;
    return fail_fate(writer, &result, &why, err);
}
