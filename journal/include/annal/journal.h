/* SPDX-License-Identifier: Apache-2.0 */
/* Journals: append with a writer, read with a cursor, check with verify. */
#ifndef ANNAL_JOURNAL_H
#define ANNAL_JOURNAL_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing ---- */

typedef struct annal_writer annal_writer;

typedef struct annal_writer_options {
    annal_level level; /* level of the writer's appends; default: the level of the store */
    /* time in ms to wait for a process that owns the session; default: the wait_ms of the store */
    uint32_t wait_ms;
    /* format of the journal, if the first append creates it; default: the store's. An existing
     * journal must have this format */
    annal_format format;
} annal_writer_options;

/*
 * Open a writer on a session. Nothing is written yet: the first append creates the journal, and
 * takes the session, if necessary from another process. A session may have many writers. Any
 * thread, and a writer may be used by many threads at once.
 *
 * ANNAL_ERR_INVALID  session is not a session id
 * ANNAL_ERR_READONLY the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_open(annal_store *store, annal_slice session,
                                                          const annal_writer_options *options,
                                                          annal_writer **out_writer,
                                                          annal_error *err);

/* Free the writer. Its events stay. This does not wait until events of level batch are durable:
 * annal_writer_sync() and annal_store_sync() do. */
ANNAL_API void annal_writer_close(annal_writer *writer);

typedef enum annal_expect {
    ANNAL_EXPECT_ANY = 0,
    ANNAL_EXPECT_NONE = 1, /* the session has no events */
    /* the session's last event has exactly this seq; 0 is the same as NONE */
    ANNAL_EXPECT_SEQ = 2
} annal_expect;

typedef struct annal_append_options {
    annal_level level; /* level of this append; default: the level of the writer */
    annal_expect expect;
    uint64_t expected_seq; /* with ANNAL_EXPECT_SEQ; otherwise 0 */
    /* the hash that the last event must get; with another hash nothing is appended
     * (ANNAL_ERR_REFUSED). 0: any hash. A shared session accepts no events without it (lease.h) */
    uint64_t h;
    /* whether the events report what has happened already, so that annal_pack_append() does not
     * check the guards of the core pack: a turn that ends twice is appended, and changes no row */
    bool reports;
    /* whether annal_pack_append() refuses an event of a type in docs/events.md that has an unknown
     * field, lacks a required one, or has one of another kind (ANNAL_ERR_INVALID names the field).
     * annal_writer_append() does not check it */
    bool strict;
} annal_append_options;

/*
 * Append count events as one: all become durable, or none. *out_seq is the seq of the first; the
 * others follow without a gap. The drafts are not used after the call returns.
 *
 * There are three answers:
 *   ANNAL_OK            done, at the requested level. At sync: they survive a power cut.
 *   ANNAL_ERR_UNKNOWN   storage failed, or another file took the journal's place, while they were
 *                       being written. They may or may not have been written. If they have ids,
 *                       append them again to learn the result; if this fails with ANNAL_ERR_CLOSED,
 *                       the session or the store object accepts no more work: open the store again
 *                       and append them again.
 *   any other failure   refused: nothing was written, and nothing will be.
 *
 * At level batch the call returns before the events are written. If they are refused after that,
 * the next append of this writer is refused too, with ANNAL_ERR_IO and a message that names the
 * first refused seq; this is reported once. annal_store_sync() reports it, too. annal_writer_sync()
 * reports the result for each event; the next append does not report it again.
 *
 * Exactly once: a draft whose id is already in the session with the same type, data and cause is
 * not appended again; the answer is the seq of the first copy, as durable as requested, even if
 * that copy is still being written. If type, data or cause differ: ANNAL_ERR_CONFLICT. Ids are
 * remembered for the last 65,536 events with an id; with ANNAL_EXPECT_SEQ the events after
 * expected_seq are compared, without limit. Several drafts must either all exist already, next to
 * each other, or none of them.
 *
 * Level os writes no log: if a process is killed during such an append of several events, or if the
 * power fails before annal_store_sync(), the first of them may be in the journal, each complete.
 * Then the same append returns ANNAL_ERR_CONFLICT, because of its ids or its expected_seq; read the
 * end of the session to see which events it has. Events that must not be split should be appended
 * one at a time, or at another level.
 *
 * Data may be JSON or msgpack, whatever the journal's format; it is kept byte for byte if it is in
 * that format, else as the same value (docs/format.md describes the conversion). Two data are the
 * same if they have the same bytes in the journal's format.
 *
 * ANNAL_ERR_INVALID   a type, id, cause or data that is not accepted; the message says which and
 *                     where; or the writer asks for another format than the journal has; or an
 *                     expected_seq without ANNAL_EXPECT_SEQ
 * ANNAL_ERR_LIMIT     larger than a limit such as ANNAL_DATA_BYTES_MAX
 * ANNAL_ERR_CONFLICT  expected_seq is not the end of the session, or the id belongs to another
 *                     event
 * ANNAL_ERR_BUSY      another process owns the session and did not release it in time
 * ANNAL_ERR_CORRUPT   the journal's end is damaged; it stays readable, appends are refused
 * ANNAL_ERR_REFUSED   the lease of the session has ended, or it is shared (lease.h), or the last
 *                     event would not get the hash h
 * ANNAL_ERR_FULL      the disk has too little room: make room, then append again
 * ANNAL_ERR_DISK      the disk failed
 * ANNAL_ERR_IO        the system refused for another reason. This or ANNAL_ERR_DISK also if earlier
 *                     events of the session are durable in the commit log but could not be written
 *                     to its journal yet
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_append(annal_writer *writer,
                                                            const annal_draft *drafts, size_t count,
                                                            const annal_append_options *options,
                                                            uint64_t *out_seq, annal_error *err);

/* The result of writing a writer's events, by their seq. */
typedef struct annal_sync_result {
    /* events from this seq on may or may not have been written; 0: none */
    uint64_t unknown_seq;
    /* events from this seq on were refused: they were not written, and will not be; 0: none. If an
     * event is at or above both numbers, it was refused */
    uint64_t refused_seq;
} annal_sync_result;

/*
 * Wait until it is certain, for every event that this writer has appended at any level since the
 * last annal_writer_sync(), whether it is durable: the result is as if annal_writer_append() had
 * appended it at level sync. Losses of other writers and sessions are not reported here.
 *
 * *out_result (may be NULL) is set on success (both are 0) and on the two failures below. An event
 * of this writer is durable if its seq is below both; otherwise refused if it is at refused_seq or
 * above; otherwise unknown. A refused seq is given to the next event that is appended. A loss that
 * an append of this writer has reported is also reported here, unless another append ran in
 * between. Any thread.
 *
 * ANNAL_ERR_IO       some events were refused, the others are durable
 * ANNAL_ERR_UNKNOWN  storage failed, and some events may or may not have been written: open the
 *                    store again to see. Also if their journal was replaced by another file, or if
 *                    events of level os cannot be synced (unknown_seq is then 1)
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_sync(annal_writer *writer,
                                                          annal_sync_result *out_result,
                                                          annal_error *err);

/* ---- Reading ---- */

typedef struct annal_cursor annal_cursor;

/* Damaged bytes that a cursor skipped. */
typedef struct annal_damage {
    uint64_t seq;    /* seq of the damaged event, or 0 for the header */
    uint64_t offset; /* offset of the damaged bytes in the journal */
    uint64_t length;
    /* whether an event is lost; if not, only a newline, a hash or the header is damaged */
    bool event_lost;
    /* what is damaged, a static phrase, such as "the line does not match its hash" */
    const char *what;
} annal_damage;

/*
 * Open a cursor before event from_seq (0 and 1: the first). Reads need no lock and never wait. The
 * session need not have that event yet: annal_cursor_next() returns ANNAL_END until it exists. One
 * thread at a time; open one per thread.
 *
 * A fork is read as one history: first what it has in common with its ancestors, from their
 * journals, then its own events. If from_seq is after its fork point, only its own journal is
 * opened.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   it is a fork, and the journal of an ancestor that from_seq needs is missing
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_open(annal_store *store, annal_slice session,
                                                          uint64_t from_seq,
                                                          annal_cursor **out_cursor,
                                                          annal_error *err);

/*
 * Open a cursor at an event whose offset is known, for instance from the index: event seq begins at
 * offset, and the event before it ends with hash h_before. ANNAL_ERR_CONFLICT if the journal does
 * not agree: another journal has replaced it, and the offset is out of date. ANNAL_ERR_IO if the
 * journal cannot be read, which does not show whether the offset is out of date.
 *
 * The offset is in the session's own journal, and only this journal is read: for a fork, the events
 * after its fork point. With offset 0 the cursor is before the first of these events, whatever seq
 * is.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_open_at(annal_store *store,
                                                             annal_slice session, uint64_t seq,
                                                             uint64_t offset, uint64_t h_before,
                                                             annal_cursor **out_cursor,
                                                             annal_error *err);

/*
 * Read the next event, and check its hash. Its data is JSON, whatever the format of the journal, if
 * Annal wrote the event. Another program can write data that is not JSON with a right hash:
 * annal_session_verify() and the index report such an event as damaged, and the commands omit it; a
 * cursor returns it unchanged, because checking data would cost twice as much as reading it.
 * Msgpack that JSON cannot express is reported as damage here, too. The slices of the event are
 * valid until the next call on this cursor.
 *
 * ANNAL_END     no further valid event at the moment; call again later
 * ANNAL_DAMAGE  damaged bytes were skipped; annal_cursor_damage() says which.
 *               Continue: the next call returns the next event.
 *
 * ANNAL_ERR_CORRUPT  of a fork: an ancestor's journal is no longer the journal from which it was
 *                    forked; the message names both
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_next(annal_cursor *cursor,
                                                          annal_event *out_event, annal_error *err);

/*
 * Move the cursor before event seq (0 and 1: the first). After its first seek a cursor records the
 * offsets of some events that it reads, in at most 520 KiB, so that a later seek needs about one
 * read. The store keeps the recorded offsets of 16 sessions for later cursors. The event need not
 * exist yet: annal_cursor_next() returns ANNAL_END until it does.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_seek(annal_cursor *cursor, uint64_t seq,
                                                          annal_error *err);

/* Move the cursor before the last count events that exist now (before all events if fewer exist; 0:
 * after the last event), without reading the earlier events. */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_last(annal_cursor *cursor, uint64_t count,
                                                          annal_error *err);

/* Return what was skipped, after ANNAL_DAMAGE. */
ANNAL_API annal_damage annal_cursor_damage(const annal_cursor *cursor);

/* The position of a cursor: seq, offset and hash for a later annal_cursor_open_at(). */
typedef struct annal_position {
    uint64_t seq; /* seq of the next event */
    uint64_t offset;
    uint64_t h_before;
} annal_position;

/* Return the position of the cursor. */
ANNAL_API annal_position annal_cursor_position(const annal_cursor *cursor);

/* Free the cursor. */
ANNAL_API void annal_cursor_close(annal_cursor *cursor);

/* ---- Forking ---- */

#define ANNAL_FORK_LAST UINT64_C(0)

typedef struct annal_fork_options {
    annal_format format; /* format of the fork's journal; default: as the session */
} annal_fork_options;

/*
 * Create `child` as a fork of a session: up to event at_seq (ANNAL_FORK_LAST: the last event) the
 * two share their history, and after it each has its own. No event is copied: the header of the
 * fork's journal names the session and this event, and the fork's own events begin with at_seq + 1.
 * A fork of a fork points at the session that really contains the event.
 *
 * The history up to at_seq, whatever level its events had, and the fork are durable when this
 * returns. An event appended to one session is not in the other. While the fork exists, its
 * ancestors cannot be deleted or converted. The ids of events that it shares with its ancestors are
 * free in the fork: exactly-once applies to the events of its own journal. options and out_info
 * (the fork's) may be NULL. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event at_seq, or no events
 * ANNAL_ERR_INVALID   an id that is not accepted
 * ANNAL_ERR_CORRUPT   event at_seq is damaged, or an ancestor of the session has another history
 * ANNAL_ERR_CONFLICT  child exists
 * ANNAL_ERR_BUSY      another process is creating a session of that name, or is deleting or
 *                     converting a session, and did not finish in the store's wait_ms
 * ANNAL_ERR_UNKNOWN   storage failed after the fork was created: it is not known whether a power
 *                     cut would leave it
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_fork(annal_store *store, annal_slice session,
                                                           uint64_t at_seq, annal_slice child,
                                                           const annal_fork_options *options,
                                                           annal_session_info *out_info,
                                                           annal_error *err);

/* A part of a history (the events of a fork and of its ancestors), and the session whose journal
 * contains the part. */
typedef struct annal_lineage_part {
    annal_slice session;
    uint64_t from_seq; /* seq of the first event in the session's own journal */
    /* seq of the last event of this session that belongs to the history; UINT64_MAX: all later
     * events belong to it */
    uint64_t to_seq;
    /* hash of event to_seq, as stated in the header of the next session on the way to the fork; 0
     * if to_seq is UINT64_MAX */
    uint64_t h;
} annal_lineage_part;

/* Receive a part of a history. Return 0 to continue; any other value stops, and is returned. */
typedef int (*annal_lineage_fn)(void *arg, const annal_lineage_part *part);

/*
 * Call fn for each part of a session's history, the last first: the session itself, then each
 * ancestor, up to a session that is not a fork. Reads one header for each part. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   the journal of an ancestor is missing, or the pointers form a circle
 * ANNAL_ERR_LIMIT     it has more than ANNAL_ANCESTORS_MAX ancestors
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_lineage_each(annal_store *store, annal_slice session,
                                                           annal_lineage_fn fn, void *arg,
                                                           annal_error *err);

/* ---- Converting ---- */

/* A function that is called repeatedly during the work. If it returns a value other than 0, the
 * work stops, and the caller gets ANNAL_END. */
typedef int (*annal_convert_fn)(void *arg, uint64_t bytes_done, uint64_t bytes_total);

typedef struct annal_convert_options {
    annal_format format; /* required */
    annal_convert_fn progress;
    void *arg;
} annal_convert_options;

typedef struct annal_convert_result {
    /* number of events that were copied and compared; 0 if the journal had the format already */
    uint64_t events;
    uint64_t bytes_before;
    uint64_t bytes_after;
} annal_convert_result;

/*
 * Replace a session's journal by one in another format: with the same events, as to seq, ts, type,
 * id, cause and the value of data (docs/format.md describes the conversion), but another file id
 * and other hashes. The new journal is synced, read back and compared event by event before it
 * replaces the old one, so until then nothing has changed. Needs room on the disk for both
 * journals; memory is bounded by the largest event. The session is taken from its owner first, as
 * for an append, and appends wait until the end. Tails end with ANNAL_ERR_CONFLICT; index and
 * snapshots are rebuilt. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   the journal is damaged: annal_session_repair() copies its undamaged events
 * ANNAL_ERR_INVALID   an event cannot be expressed in that format, or no format was given
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      another process owns the session, or is deleting or converting another
 *                     session, and did not finish in the store's wait_ms
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_convert(annal_store *store,
                                                              annal_slice session,
                                                              const annal_convert_options *options,
                                                              annal_convert_result *out_result,
                                                              annal_error *err);

/* ---- Proving ---- */

typedef struct annal_finding {
    annal_slice session;
    uint64_t seq; /* seq of the damaged event; 0: the header */
    uint64_t offset;
    uint64_t length;
    const char *what; /* valid until the callback returns */
} annal_finding;

typedef void (*annal_finding_fn)(void *arg, const annal_finding *finding);

typedef struct annal_verify_result {
    uint64_t events; /* number of events with a correct hash */
    uint64_t bytes;  /* number of bytes that were read */
    uint64_t findings;
    uint64_t last_seq;
} annal_verify_result;

/*
 * Read one journal from its first byte to its last and check the header, every hash, every seq,
 * that the data of every event is JSON, or msgpack that JSON can express, and that no second
 * journal exists in the other format. For a fork only its own journal is read, and its ancestors
 * must have, at the fork point, the event from which it was forked. Changes nothing; memory is
 * bounded by the largest event. fn may be NULL. Damage is not a failure of this function: look at
 * findings. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_verify(annal_store *store,
                                                             annal_slice session,
                                                             annal_finding_fn fn, void *arg,
                                                             annal_verify_result *out_result,
                                                             annal_error *err);

/* ---- Repairing ---- */

/* Events that could not be copied. */
typedef struct annal_gap {
    uint64_t first_seq;
    /* seq of the last missing event; 0: unknown, because no intact event follows */
    uint64_t last_seq;
    uint64_t offset; /* offset of the first damaged bytes in the damaged journal */
    uint64_t bytes;
    const char *what; /* why the missing events could not be copied, a static phrase */
} annal_gap;

typedef void (*annal_gap_fn)(void *arg, const annal_gap *gap);

typedef struct annal_repair_result {
    uint64_t events;     /* number of copied events */
    uint64_t gaps;       /* number of places where events are missing */
    uint64_t gap_events; /* number of events of type annal.gap in these places */
    uint64_t lost_bytes; /* number of damaged bytes in these places */
    /* number of places where only a hash, a newline or the header was damaged */
    uint64_t mended;
    uint64_t doubled; /* number of events that were stored twice and were skipped */
    /*
     * size in bytes of an unfinished event at the end of the journal, which was never acknowledged
     */
    uint64_t torn_bytes;
    uint64_t last_seq; /* seq of the last event of the new session */
} annal_repair_result;

typedef struct annal_repair_options {
    annal_format format; /* format of the new journal; default: the format of the damaged journal */
} annal_repair_options;

/*
 * Copy the valid events of a session into a new session, `to`, which must not exist; the copy is
 * durable when this returns. The damaged journal is not changed. Every event keeps its seq, ts,
 * type, id, cause and data. Each missing event is replaced by an event of type annal.gap, whose
 * data says what was lost: {"session","first_seq","last_seq","offset","bytes","why"}. If no valid
 * event follows a gap, the number of missing events is unknown: then the gap is one event, with
 * last_seq null, and the last event of `to`.
 *
 * For a fork the whole history is copied into a session that is not a fork; only its own events,
 * after a gap, if an ancestor's journal has changed.
 *
 * fn (may be NULL) is called for each gap. With an empty `to` nothing is written: a dry run. Gaps
 * are not a failure of this function. After a failure `to` may contain the first events. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  `to` exists, or another process appended to it in the meantime
 * ANNAL_ERR_LIMIT     more than a million events are missing in one place
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_repair(
    annal_store *store, annal_slice session, annal_slice to, const annal_repair_options *options,
    annal_gap_fn fn, void *arg, annal_repair_result *out_result, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
