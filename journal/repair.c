/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repair: copy the valid events of a damaged journal into a new journal.
 *
 * (1) Nothing is written to the damaged journal, and nothing is guessed: an event is copied if its
 *     hash is right, with its own type, ts, id, cause and data.
 * (2) seqs have no gaps, and events are referred to by seq (cause, expected_seq, notes of a user).
 *     So every missing event is replaced by one event annal.gap, and copied events keep their seq.
 * (3) The next valid event shows how many events are missing. After the last valid event their
 *     number is unknown: then one gap event has last_seq null. A torn tail, the piece of an event
 *     that a crash leaves, was never acknowledged: it is reported, and is not a gap.
 * (4) An event whose seq was copied already (repeated lines) is skipped.
 * (5) For a fork, the complete history is copied, so the result is not a fork. If an ancestor's
 *     journal was replaced since the fork, it contains another history: then only the fork's own
 *     events are copied, after gap events.
 */
#include "journal/base/buf.h"
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "journal/json_msgpack.h"
#include "journal/sys/cursor.h"
#include "journal/sys/lineage.h"
#include "journal/verify.h"

#include <inttypes.h>
#include <string.h>

/* Maximum number of gap events in one place. If more are missing, the bytes are not a damaged
 * journal but another journal. */
#define GAP_EVENTS_MAX 1000000

static const char gap_type[] = "annal.gap";

struct repair {
    annal_store *store;
    annal_slice session;
    annal_cursor *cursor;
    annal_writer *writer; /* writer of the new session; NULL: nothing is written */
    annal_gap_fn fn;
    void *arg;
    /* what annal_session_repair() returns; last_seq is the last seq of the new session */
    annal_repair_result result;
    int64_t last_ts_us;
    /* bytes that were skipped since the last valid event; gap.what is NULL if none were */
    annal_gap gap;
    uint64_t passed; /* number of bytes of the journal that were handled */
    struct buf text;
};

/* ---- Writing ---- */

static annal_status append(struct repair *repair, const annal_draft *draft, annal_error *err)
{
    const annal_append_options options = {.level = ANNAL_LEVEL_BATCH,
                                          .expect = ANNAL_EXPECT_SEQ,
                                          .expected_seq = repair->result.last_seq};
    uint64_t seq = repair->result.last_seq + 1;
    annal_status status = ANNAL_OK;
    if (repair->writer != NULL)
        status = annal_writer_append(repair->writer, draft, 1, &options, &seq, err);
    if (status < 0)
        return status;
    if (seq != repair->result.last_seq + 1)
        return annal__fail(
            err, ANNAL_ERR_CONFLICT,
            "repair session '%.*s': events %" PRIu64 " and %" PRIu64 " have the same id '%.*s'",
            ANNAL_FMT(repair->session), seq, repair->result.last_seq + 1, ANNAL_FMT(draft->id));
    repair->result.last_seq++;
    return ANNAL_OK;
}

static annal_status describe_gap(struct repair *repair, annal_error *err)
{
    const annal_gap *gap = &repair->gap;
    struct buf *text = &repair->text;
    annal__buf_clear(text);
    annal_status status =
        annal__buf_printf(text, "{\"session\":\"%.*s\",\"first_seq\":%" PRIu64 ",\"last_seq\":",
                          ANNAL_FMT(repair->session), gap->first_seq);
    if (status == ANNAL_OK)
        status = gap->last_seq == 0 ? annal__buf_printf(text, "null")
                                    : annal__buf_printf(text, "%" PRIu64, gap->last_seq);
    if (status == ANNAL_OK)
        status = annal__buf_printf(text, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"why\":",
                                   gap->offset, gap->bytes);
    if (status >= 0)
        status = annal__json_put(text, "?}", annal_slice_of(gap->what));
    return status < 0 ? annal__fail(err, status, "repair session '%.*s': out of memory",
                                    ANNAL_FMT(repair->session))
                      : ANNAL_OK;
}

/*
 * Write count gap events (rule 2), and call fn once for all of them. next is the event after them,
 * or NULL. They get the time of the last copied event, else of the event after them, else the
 * present time.
 */
static annal_status put_gap(struct repair *repair, uint64_t count, const annal_event *next,
                            annal_error *err)
{
    bool first = repair->result.events == 0;
    if (count > GAP_EVENTS_MAX)
        return annal__fail(err, ANNAL_ERR_LIMIT,
                           "repair session '%.*s': %" PRIu64 " events are missing before event "
                           "%" PRIu64 ", at most %d gap events are written",
                           ANNAL_FMT(repair->session), count, repair->gap.first_seq + count,
                           GAP_EVENTS_MAX);
    annal_status status = describe_gap(repair, err);
    annal_draft draft = {.type = ANNAL_SLICE(gap_type), .data = annal__buf_slice(&repair->text)};
    if (!first)
        draft.ts_us = ANNAL_TS(repair->last_ts_us);
    else if (next != NULL)
        draft.ts_us = ANNAL_TS(next->ts_us);
    for (uint64_t i = 0; status == ANNAL_OK && i < count; i++)
        status = append(repair, &draft, err);
    if (status < 0)
        return status;
    repair->result.gaps++;
    repair->result.gap_events += count;
    if (repair->fn != NULL)
        repair->fn(repair->arg, &repair->gap);
    return ANNAL_OK;
}

/* ---- Reading ---- */

static void pass_over(struct repair *repair, uint64_t offset, uint64_t bytes, const char *what)
{
    if (repair->gap.what == NULL)
        repair->gap = (annal_gap){.offset = offset, .what = what};
    repair->gap.bytes += bytes;
    repair->result.lost_bytes += bytes;
}

static annal_status copy_event(struct repair *repair, const annal_event *event, annal_error *err)
{
    annal_status status = ANNAL_OK;
    uint64_t next = repair->result.last_seq + 1;
    const annal_draft draft = annal__json_msgpack_draft(event);
    annal_error reason;
    if (event->seq < next) { /* an event with this seq was copied already (rule 4) */
        repair->result.doubled++;
        return ANNAL_OK;
    }
    if (annal_draft_check(&draft, &reason) < 0) {
        pass_over(repair, event->offset, event->length,
                  "its hash is right, but it is not an event");
        return ANNAL_OK;
    }
    if (event->seq > next) {
        if (repair->gap.what == NULL)
            pass_over(repair, event->offset, 0, "events are missing before this place");
        repair->gap.first_seq = next;
        repair->gap.last_seq = event->seq - 1;
        status = put_gap(repair, event->seq - next, event, err);
    }
    repair->gap = (annal_gap){0};
    if (status == ANNAL_OK)
        status = append(repair, &draft, err);
    repair->last_ts_us = event->ts_us;
    repair->result.events += status == ANNAL_OK;
    return status;
}

/* Report the bytes after the last valid event: a torn tail, or a gap of unknown length (rule 3). */
static annal_status finish(struct repair *repair, annal_error *err)
{
    annal_session_info info;
    annal_position here = annal_cursor_position(repair->cursor);
    annal_status status = annal_session_info_get(repair->store, repair->session, &info, err);
    if (status < 0)
        return status;
    if (info.bytes > here.offset && info.torn && here.offset > 0) {
        repair->result.torn_bytes = info.bytes - here.offset;
    } else if (info.bytes > here.offset) {
        pass_over(repair, here.offset, info.bytes - here.offset,
                  "nothing proves these bytes at the end");
    }
    if (repair->gap.what == NULL)
        return ANNAL_OK;
    repair->gap.first_seq = repair->result.last_seq + 1;
    repair->gap.last_seq = 0;
    return put_gap(repair, 1, NULL, err);
}

static annal_status copy_all(struct repair *repair, annal_error *err)
{
    int tries = 0;
    annal_status status = ANNAL_OK;
    while (status >= 0 && status != ANNAL_END) {
        annal_event event;
        status = annal__cursor_next_json(repair->cursor, &event, err);
        if (status == ANNAL_OK) {
            status = copy_event(repair, &event, err);
            tries = 0;
        } else if (status == ANNAL_DAMAGE) {
            annal_damage damage = annal_cursor_damage(repair->cursor);
            if (damage.event_lost)
                pass_over(repair, damage.offset, damage.length, damage.what);
            else
                repair->result.mended++;
        } else if (status == ANNAL_END) {
            uint64_t bytes;
            status = annal__verify_settle(repair->store, repair->session, repair->cursor, &tries,
                                          &bytes, err);
            if (status == ANNAL_DAMAGE)
                status = ANNAL_END;
        }
    }
    return status < 0 ? status : finish(repair, err);
}

/* ---- The repair ---- */

static annal_status check_new(annal_store *store, annal_slice to, annal_error *err)
{
    annal_session_info info;
    annal_error missing = {0};
    annal_status status = annal_session_info_get(store, to, &info, &missing);
    if (status == ANNAL_ERR_NOTFOUND)
        return ANNAL_OK;
    if (status < 0 && err != NULL)
        *err = missing;
    return status < 0 ? status
                      : annal__fail(err, ANNAL_ERR_CONFLICT,
                                    "session '%.*s' exists already; a repair writes a new one",
                                    ANNAL_FMT(to));
}

/* Open a writer for the new session, by default in the format of the original. */
static annal_status open_writer(struct repair *repair, annal_slice to, annal_format format,
                                annal_error *err)
{
    annal_session_info info;
    annal_writer_options options = {.format = format};
    annal_status status = annal_session_info_get(repair->store, repair->session, &info, err);
    if (status < 0)
        return status;
    if (format == ANNAL_FORMAT_DEFAULT)
        options.format = info.format;
    return annal_writer_open(repair->store, to, &options, &repair->writer, err);
}

/* Open a cursor on the complete history of the session, or on its own events if an ancestor has
 * another history now (rule 5). */
static annal_status open_history(struct repair *repair, annal_error *err)
{
    annal_error why = {0};
    annal_status status = annal__lineage_check(repair->store, repair->session, NULL, &why);
    if (status == ANNAL_ERR_CORRUPT)
        return annal_cursor_open_at(repair->store, repair->session, 1, 0, 0, &repair->cursor, err);
    if (status == ANNAL_OK)
        return annal_cursor_open(repair->store, repair->session, 0, &repair->cursor, err);
    return annal__error_pass(err, status, &why);
}

annal_status annal_session_repair(annal_store *store, annal_slice session, annal_slice to,
                                  const annal_repair_options *options, annal_gap_fn fn, void *arg,
                                  annal_repair_result *out_result, annal_error *err)
{
    static const annal_repair_options defaults;
    struct repair repair = {.store = store, .session = session, .fn = fn, .arg = arg};
    if (options == NULL)
        options = &defaults;
    annal_status status = open_history(&repair, err);
    if (status == ANNAL_OK && to.len > 0)
        status = check_new(store, to, err);
    if (status == ANNAL_OK && to.len > 0)
        status = open_writer(&repair, to, options->format, err);
    if (status == ANNAL_OK)
        status = copy_all(&repair, err);
    if (status == ANNAL_OK && to.len > 0)
        status = annal_store_sync(store, err);
    annal_writer_close(repair.writer);
    annal_cursor_close(repair.cursor);
    annal__buf_done(&repair.text);
    if (status == ANNAL_OK)
        *out_result = repair.result;
    return status;
}
