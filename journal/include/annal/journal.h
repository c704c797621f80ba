/*
 * Journals: append with a writer, read with a cursor, prove with verify.
 */
#ifndef ANNAL_JOURNAL_H
#define ANNAL_JOURNAL_H

#include <annal/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing ---- */

typedef struct annal_writer annal_writer;

typedef struct annal_writer_options {
    annal_level level; /* default: the store's */
    uint32_t wait_ms;  /* default: the store's */
    /* of the journal, if it must be made: default the store's. One that is there must be in it */
    annal_format format;
} annal_writer_options;

/*
 * Open a writer on a session. Nothing touches the disk yet: the first append makes the journal, and
 * takes the session, if need be from another process. Many writers may share a session. Any thread,
 * and a writer may be used by many threads at once.
 *
 * ANNAL_ERR_INVALID  session is no session id
 * ANNAL_ERR_IO       the store is open for reading only
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_open(annal_store *store, annal_slice session,
                                                          const annal_writer_options *options,
                                                          annal_writer **out_writer,
                                                          annal_error *err);

/*
 * Free the writer. What it appended stays; durability of batch appends is the matter of
 * annal_writer_sync() and annal_sync().
 */
ANNAL_API void annal_writer_close(annal_writer *writer);

typedef enum annal_expect {
    ANNAL_EXPECT_ANY = 0,
    ANNAL_EXPECT_NONE = 1, /* the session has no events */
    /* the session's last event has exactly this seq; 0 is the same as NONE */
    ANNAL_EXPECT_SEQ = 2
} annal_expect;

typedef struct annal_append_options {
    annal_level level; /* default: the writer's */
    annal_expect expect;
    uint64_t expected_seq; /* with ANNAL_EXPECT_SEQ */
} annal_append_options;

/*
 * Append count events as one: all become durable, or none. *out_seq is the seq of the first; the
 * others follow without a gap. The drafts are copied or used before return, never kept.
 *
 * The answer is one of three:
 *   ANNAL_OK            done, at the level that was asked for. At sync: they survive a power cut.
 *   ANNAL_ERR_UNKNOWN   storage failed, or another file took the journal's place, while they were
 *   under
 *                       way. They may or may not be there. With an id, append again and get the
 *                       answer; when that is ANNAL_ERR_CLOSED, the session or the whole store
 *                       object takes no more work: open the store again to see.
 *   any other failure   refused: nothing happened, nothing will.
 *
 * At level batch the answer comes before the events are written. When they are refused after all,
 * the next append of this writer is refused too, with ANNAL_ERR_IO and a message that names the
 * first seq that never happened; it says so once. annal_sync() does too. annal_writer_sync() says
 * what became of each; what it told, the next append does not tell again.
 *
 * Exactly once: a draft whose id is already in the session with the same type, data and cause is
 * not appended again; its first seq is the answer, durable as asked, also while the first copy is
 * still in flight. With other bytes: ANNAL_ERR_CONFLICT. Ids are remembered for the last 65,536
 * events that have one; with ANNAL_EXPECT_SEQ the events behind expected_seq are compared, without
 * limit. With several drafts either all are there already, side by side, or none.
 *
 * Level os writes no log: a process that is killed in the middle of such an append of several
 * events, or a power cut before annal_sync(), may leave the first of them, whole. The same append
 * is then ANNAL_ERR_CONFLICT, by its ids or by its expected_seq; read the session's end to see how
 * far it came. Append one at a time, or at another level, what must not come in part.
 *
 * Data may be given as JSON or as msgpack, whatever the journal's format; it is kept byte for byte
 * when it is in that format, else as the same value (docs/format.md says what becomes of what). The
 * same data means: the same bytes once in the journal's format.
 *
 * ANNAL_ERR_INVALID   a type, id, cause or data that is not accepted; the message says which and
 * where; or
 *                     the writer asks for another format than the journal has
 * ANNAL_ERR_LIMIT     larger than ANNAL_DATA_BYTES_MAX and its kin
 * ANNAL_ERR_CONFLICT  expected_seq is not where the session stands, or id is taken
 * ANNAL_ERR_BUSY      another process has the session and did not give it back in time
 * ANNAL_ERR_CORRUPT   the journal's end is damaged; it stays readable, appends are refused
 * ANNAL_ERR_IO        for instance no space left on the device. Also when the session is behind:
 * its events are
 *                     durable in the commit log, and its journal could not be written yet
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_append(annal_writer *writer,
                                                            const annal_draft *drafts, size_t count,
                                                            const annal_append_options *options,
                                                            uint64_t *out_seq, annal_error *err);

/* What became of a writer's events, by their seq. */
typedef struct annal_sync_result {
    /* from this one on they may or may not be there; 0: no such event */
    uint64_t unknown_seq;
    /* from this one on they never happened, and never will; 0: no such event. Decides where both
     * do */
    uint64_t refused_seq;
} annal_sync_result;

/*
 * Return when what this writer appended is durable, whatever its level, or when it is certain that
 * it is not: the answer of annal_writer_append() at level sync, for all the events since the last
 * annal_writer_sync(). What other writers and sessions lose does not show here.
 *
 * *out_result (may be NULL) is set on success, both 0, and on the two failures below. An event of
 * this writer is durable when its seq is below both; else refused when it is at refused_seq or
 * above; else unknown. A refused seq is given to the next event that is appended. A loss that an
 * append of this writer told of is told here too, if no other append came in between. Any thread.
 *
 * ANNAL_ERR_IO       some events were refused, the others are durable
 * ANNAL_ERR_UNKNOWN  storage failed, and of some events nobody can say: open the store again to
 * see. Also when
 *                    their journal was replaced by another file, or when events of level os cannot
 *                    be synced (unknown_seq is then 1)
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_writer_sync(annal_writer *writer,
                                                          annal_sync_result *out_result,
                                                          annal_error *err);

/* ---- Reading ---- */

typedef struct annal_cursor annal_cursor;

/* What a cursor passed over. */
typedef struct annal_damage {
    uint64_t seq;    /* the event that stood here, or 0 for the header */
    uint64_t offset; /* of the bytes, in the journal */
    uint64_t length;
    /* false: only a newline, a hash or the header is damaged, every event is readable */
    bool event_lost;
    const char *what; /* static, one phrase: "the line does not match its hash" */
} annal_damage;

/*
 * Open a cursor that stands before event from_seq (0 and 1: the first). Reads need no lock and wait
 * for nobody. A session without that event yet is fine: annal_cursor_next() answers ANNAL_END until
 * it is there. One thread at a time; open one per thread.
 *
 * A fork is read as one history: first what it has in common with its ancestors, from their
 * journals, then its own events. From an event behind its fork point on, only its own journal is
 * opened.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   it is a fork, and the journal of an ancestor that from_seq needs is not there
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_open(annal_store *store, annal_slice session,
                                                          uint64_t from_seq,
                                                          annal_cursor **out_cursor,
                                                          annal_error *err);

/*
 * The same, but standing at a line whose place is known, for instance from the index: event seq
 * begins at offset, and the line before it ends with hash h_before. When the journal does not agree
 * (ANNAL_ERR_CONFLICT) the place is stale: it is another journal now. ANNAL_ERR_IO: it cannot be
 * read, which says nothing about the place.
 *
 * The place is one in the session's own journal, and only that one is read: of a fork the events
 * behind its fork point. With offset 0 the cursor stands before the first of these, whatever seq.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_open_at(annal_store *store,
                                                             annal_slice session, uint64_t seq,
                                                             uint64_t offset, uint64_t h_before,
                                                             annal_cursor **out_cursor,
                                                             annal_error *err);

/*
 * The next event; every event's hash is checked. Its data is JSON, whatever the format of the
 * journal; from msgpack that JSON cannot say, which no append accepts, it is
 * {"$msgpack.raw":"<base64>"}. Its slices live until the next call on this cursor.
 *
 * ANNAL_END     no further event that proves itself is there now; ask again later
 * ANNAL_DAMAGE  bytes that do not prove themselves were passed over; annal_cursor_damage() tells
 *               which. Go on: the next call gives the next event.
 *
 * ANNAL_ERR_CORRUPT  of a fork: an ancestor's journal is not the one any more that it was made
 *                    from; the message names both
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_next(annal_cursor *cursor,
                                                          annal_event *out_event, annal_error *err);

/*
 * Stand before event seq (0 and 1: the first), wherever the cursor stood. A cursor that seeks often
 * remembers places that it has passed, in at most 520 KiB, so that in the end a seek is one read.
 * A seq that is not there yet is fine: annal_cursor_next() answers ANNAL_END until it is.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_seek(annal_cursor *cursor, uint64_t seq,
                                                          annal_error *err);

/*
 * Stand before the last count events that are there now (all, if there are fewer; 0: behind the
 * last one), without reading those before them.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_cursor_last(annal_cursor *cursor, uint64_t count,
                                                          annal_error *err);

/* After ANNAL_DAMAGE: what was passed over. */
ANNAL_API annal_damage annal_cursor_damage(const annal_cursor *cursor);

/* Where the cursor stands: the seq, offset and hash to hand to annal_cursor_open_at() later. */
typedef struct annal_position {
    uint64_t seq; /* of the event that comes next */
    uint64_t offset;
    uint64_t h_before;
} annal_position;

ANNAL_API annal_position annal_cursor_position(const annal_cursor *cursor);

ANNAL_API void annal_cursor_close(annal_cursor *cursor);

/* ---- Forking ---- */

#define ANNAL_FORK_LAST UINT64_C(0)

typedef struct annal_fork_options {
    annal_format format; /* of the fork's journal; default: that of the session */
} annal_fork_options;

/*
 * Make `child` a fork of a session: up to event at_seq (ANNAL_FORK_LAST: the last one that stands
 * in its journal) the two have one history, and from there on each its own. No event is copied: the
 * fork's journal holds a header that points there, and its own events begin with at_seq + 1. A fork
 * of a fork points at the session that really holds the event.
 *
 * Both are durable when this returns: the history up to at_seq, whatever level its events had, and
 * the fork. Appending to one does not show in the other. What a fork needs is neither deleted nor
 * converted. The ids of events that it has in common with its ancestors are free in the fork:
 * exactly-once counts the events of its own journal. options and out_info (the fork's) may be NULL.
 * Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session, or it has no event at_seq, or none at all
 * ANNAL_ERR_INVALID   an id that is not accepted
 * ANNAL_ERR_CORRUPT   event at_seq is damaged, or an ancestor of the session has another history
 * ANNAL_ERR_CONFLICT  child exists
 * ANNAL_ERR_BUSY      somebody else is making a session of that name, or is deleting or converting
 *                     one, and did not finish in the store's wait_ms
 * ANNAL_ERR_UNKNOWN   storage failed when the fork stood there already: whether a power cut leaves
 *                     it is not known
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_fork(annal_store *store, annal_slice session,
                                                           uint64_t at_seq, annal_slice child,
                                                           const annal_fork_options *options,
                                                           annal_session_info *out_info,
                                                           annal_error *err);

/* A stretch of a history, and the session whose journal holds it. */
typedef struct annal_lineage_part {
    annal_slice session;
    uint64_t from_seq; /* the first event of its journal */
    uint64_t to_seq;   /* the last that belongs to this history; UINT64_MAX: it goes on */
    uint64_t h;        /* of event to_seq, as the fork behind it says; 0: it goes on */
} annal_lineage_part;

/* Return 0 to go on, anything else to stop; that value is handed through. */
typedef int (*annal_lineage_fn)(void *arg, const annal_lineage_part *part);

/*
 * Call fn for each part of a session's history, the last first: the session itself, then those that
 * it was forked from, up to one that is no fork. Reads one header each. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   the journal of an ancestor is not there, or the pointers go in a circle
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_lineage(annal_store *store,
                                                              annal_slice session,
                                                              annal_lineage_fn fn, void *arg,
                                                              annal_error *err);

/* ---- Deleting ---- */

/*
 * Delete a session: its journal goes, durably, and nothing that stands in a commit log brings it
 * back. out_info (may be NULL): what was deleted; of a damaged journal only its size may be known.
 * The index and the snapshots follow when they next look.
 *
 * The session is taken from its owner first, as for an append. An append that comes later, also
 * through a writer that is open now, begins the session anew with seq 1 and another file id;
 * expected_seq tells the two apart. Cursors that are open go on reading what was there. Any thread.
 *
 * Afterwards no commit log of the store holds anything of its content. Other processes are asked to
 * overwrite theirs; when one is stopped, the store's log function is told what remains, and it goes
 * when that process goes on or ends. Databases are the index's. It waits for other processes no
 * longer than the store's wait_ms in all.
 *
 * It works on a full disk, too: then no commit log is made for it, and no tombstone where no commit
 * log names the journal.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      somebody else has the session, or is deleting or converting another one, and
 *                     did not finish in the store's wait_ms
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_delete(annal_store *store,
                                                             annal_slice session,
                                                             annal_session_info *out_info,
                                                             annal_error *err);

/*
 * To delete many sessions: the same, but commit logs keep their content until annal_logs_wipe().
 * Call that once, after the last: each call makes every process that writes overwrite its log of 2
 * MiB. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_delete_unwiped(annal_store *store,
                                                                     annal_slice session,
                                                                     annal_session_info *out_info,
                                                                     annal_error *err);

/*
 * Overwrite what commit logs hold and nobody needs. Any thread.
 *
 * ANNAL_ERR_BUSY  some log may still hold something: the message says which one, and until when
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_logs_wipe(annal_store *store, annal_error *err);

/* ---- Converting ---- */

/* Called now and then while it goes on. Anything but 0 stops it, and ANNAL_END is the answer. */
typedef int (*annal_convert_fn)(void *arg, uint64_t bytes_done, uint64_t bytes_total);

typedef struct annal_convert_options {
    annal_format format; /* required */
    annal_convert_fn progress;
    void *arg;
} annal_convert_options;

typedef struct annal_convert_result {
    uint64_t events; /* copied, read back and compared; 0 when the journal had the format already */
    uint64_t bytes_before;
    uint64_t bytes_after;
} annal_convert_result;

/*
 * Put a journal of another format in the place of a session's: with the same events, as to seq, ts,
 * type, id, cause and the value of data (docs/format.md says what becomes of what), but another
 * file id and other hashes. The new journal is synced, read back and compared event by event before
 * it takes the place, so until then nothing has happened. Needs room on the disk for both; memory
 * is bounded by the largest event. The session is taken from its owner first, as for an append, and
 * appends wait meanwhile. Tails end with ANNAL_ERR_CONFLICT; index and snapshots are made anew. Any
 * thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CORRUPT   it is damaged: annal_session_repair() copies what is sound
 * ANNAL_ERR_INVALID   an event cannot be said in that format, or no format is named
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      as for annal_session_delete()
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_convert(annal_store *store,
                                                              annal_slice session,
                                                              const annal_convert_options *options,
                                                              annal_convert_result *out_result,
                                                              annal_error *err);

/* ---- Proving ---- */

typedef struct annal_finding {
    annal_slice session;
    uint64_t seq; /* 0: the header */
    uint64_t offset;
    uint64_t length;
    const char *what; /* lives until the callback returns */
} annal_finding;

typedef void (*annal_finding_fn)(void *arg, const annal_finding *finding);

typedef struct annal_verify_result {
    uint64_t events; /* that prove themselves */
    uint64_t bytes;  /* read */
    uint64_t findings;
    uint64_t last_seq;
} annal_verify_result;

/*
 * Read one journal from its first byte to its last and check the header, every hash, every seq, and
 * that every data is JSON, or msgpack that JSON can say; and that there is no second journal in the
 * other format. Of a fork its own journal is read, and that its ancestors have, where it forked,
 * what it was made from. Read-only; memory is bounded by the largest event. fn may be NULL. Damage
 * is no failure of this function: look at findings. Any thread.
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_verify_session(annal_store *store,
                                                             annal_slice session,
                                                             annal_finding_fn fn, void *arg,
                                                             annal_verify_result *out_result,
                                                             annal_error *err);

/* ---- Repairing ---- */

/* Events that did not come over. */
typedef struct annal_gap {
    uint64_t first_seq;
    uint64_t last_seq; /* 0: not known, nothing behind it proves itself */
    uint64_t offset;   /* of the first bytes that prove nothing, in the damaged journal */
    uint64_t bytes;
    const char *what; /* static, one phrase */
} annal_gap;

typedef void (*annal_gap_fn)(void *arg, const annal_gap *gap);

typedef struct annal_repair_result {
    uint64_t events;     /* copied */
    uint64_t gaps;       /* places where events are missing */
    uint64_t gap_events; /* written in their place */
    uint64_t lost_bytes; /* in these places */
    uint64_t mended;     /* places where only a hash, a newline or the header was damaged */
    uint64_t doubled;    /* events that stood there a second time and were passed over */
    uint64_t torn_bytes; /* at the end: the piece of an event that was never acknowledged */
    uint64_t last_seq;   /* of the new session */
} annal_repair_result;

typedef struct annal_repair_options {
    annal_format format; /* of the new journal; default: that of the damaged one */
} annal_repair_options;

/*
 * Copy what proves itself of a session into a new one, `to`, which must not exist; what was copied
 * is durable when this returns. The damaged journal is only read. Every event keeps its seq, ts,
 * type, id, cause and data. In the place of each missing event stands one of type annal.gap, whose
 * data says what was lost: {"session","first_seq","last_seq","offset","bytes","why"}. When nothing
 * behind a gap proves itself, nobody knows how many events it had: then it is one event, its
 * last_seq is null, and it is the last.
 *
 * Of a fork the whole history is copied into a session that is none; its own events alone, behind a
 * gap, when an ancestor's journal is not what it was.
 *
 * fn (may be NULL) is told of each gap. With an empty `to` nothing is written: a dry run. Gaps are
 * no failure of this function. After a failure `to` may hold the first events. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  `to` exists, or somebody else appended to it meanwhile
 * ANNAL_ERR_LIMIT     more than a million events are missing in one place
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_repair(
    annal_store *store, annal_slice session, annal_slice to, const annal_repair_options *options,
    annal_gap_fn fn, void *arg, annal_repair_result *out_result, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
