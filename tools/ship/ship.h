/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipping copies the events of a store to a target, each event exactly once.
 *
 * (1) The target decides. For each session it stores a head: the seq and the hash of its last event
 *     there. The hash depends on all events before it. Each batch starts by reading the heads from
 *     the target, and only events that continue a head are sent: events that the target has are
 *     skipped, missing events are sent again. The store keeps no record of targets.
 * (2) Events and heads become visible together, or not at all. If the outcome of a commit is
 *     unknown, the next batch starts from the heads that the target then reports.
 * (3) If a journal does not contain the target's head, the session has a different history there.
 *     The conflict is reported, and no event of this session is sent; other sessions continue.
 * (4) Nothing is buffered. A batch is read from the journals while it is sent; while the target is
 *     unreachable, the journals are the buffer.
 * (5) A fork is shipped as its own events, with the parent session and the seq of the fork point.
 * (6) The artifacts that events refer to are sent before the events, once per hash. Artifacts
 *     larger than SHIP_ARTIFACT_BYTES_MAX and missing artifacts are left out. An unreadable
 *     artifact is left out and reported.
 * (7) The target's rows of sessions and turns are built after the batches: with follow in parallel
 *     (row_maker.h), otherwise at the end. Each batch stores what they need at the target, so a
 *     crash loses nothing.
 */
#pragma once

#include "tools/cli/progress.h"

#include "journal/base/buf.h"

#include <annal/journal.h>
#include <annal/tail.h>

/* The position after event seq, whose hash is h: the next event starts at byte `at` of the journal.
 * If at is 0, the target has no event of the session, and the first one will have seq + 1. */
struct place {
    uint64_t seq;
    uint64_t h;
    uint64_t at;
};

enum shipment_state {
    SHIPMENT_ACTIVE,
    SHIPMENT_CONFLICT,  /* the journal does not contain the target's last event (rule 3) */
    SHIPMENT_DAMAGED,   /* events after the target's last one cannot be read */
    SHIPMENT_ELSEWHERE, /* the home of the session is another store (home.h) */
    /* the session is shared: the target decides about its events, and stores them before this store
     * does (shared.h) */
    SHIPMENT_SHARED,
    SHIPMENT_GONE /* the local store does not contain the session */
};

/* A session that is being shipped. */
struct shipment {
    const char *session;
    struct place head; /* last event of the session at the target; {0} without events */
    /*
     * position after the last event of this batch, to which head is set when the batch is committed
     */
    struct place next;
    int64_t key; /* number of the session at the target, or 0 if unknown */
    bool has_head;
    /* whether commit() of this batch must create the session's record at the target (its head) */
    bool is_new;
    bool is_queued; /* whether the shipment is in the queue */
    /* whether the home of the session is another store or has another epoch; set by begin() */
    bool is_elsewhere;
    uint64_t epoch;   /* epoch of the local lease, or 0 */
    bool is_reported; /* whether a state other than SHIPMENT_ACTIVE was printed */
    enum shipment_state state;
    uint64_t last_seq; /* highest known seq in the journal */
    int64_t since_us;  /* time when the shipment was queued, in us (monotonic) */
    /* during a batch: header of the journal if the target has no events of the session yet; else
     * NULL */
    annal_session_info *info;
    struct shipment *next_queued; /* next entry of the queue */
};

/* ---- Targets ---- */

enum { SHIP_STORE_BYTES_MAX = 4600, SHIP_ARTIFACT_BYTES_MAX = 16 << 20 };

struct ship_where {
    const char *url;
    const char *store; /* name of this store at the target; may be NULL for a pull */
    /* time without an answer after which the target counts as unreachable, in ms */
    uint32_t quiet_ms;
};

struct ship_target;
struct ship_options;
struct home_kind;

/* Receive the last event of a session at the target. Return ANNAL_OK to continue. */
typedef annal_status (*head_fn)(void *arg, annal_slice session, const struct place *there,
                                annal_error *err);

/* Receive one event from the target. Return ANNAL_OK to continue, ANNAL_END to stop. */
typedef annal_status (*row_fn)(void *arg, const annal_event *event, annal_error *err);

/* Receive the id of one session at the target. Return ANNAL_OK to continue. */
typedef annal_status (*session_fn)(void *arg, annal_slice session, annal_error *err);

struct ship_compact {
    bool today;      /* whether to merge files of the current day, too */
    int64_t keep_us; /* how long replaced files are kept, in us */
};

struct ship_compacted {
    uint64_t read, made, removed; /* numbers of files */
};

/* A session at the target: the store that shipped it and the facts of its journal (session, file,
 * replaces, created_us, the fork, last_seq and last_h). */
struct ship_origin {
    char store[SHIP_STORE_BYTES_MAX];
    uint64_t stores; /* number of stores that shipped a session with this id */
    annal_session_info info;
};

/* The batches whose events are not in the rows of sessions and turns yet. */
struct ship_rows {
    uint64_t batches;
    double seconds;       /* age of the oldest batch, in s */
    uint64_t first, last; /* numbers of the first and the last batch, or 0 */
};

/* Any of these functions may return ANNAL_ERR_BUSY: the target is unreachable or asks for a retry;
 * after that only close() may be called. All other failures are final. */

/* A target that has what was shipped: events can be pulled and compared, artifacts are stored. */
struct ship_source {
    /* Read the events of a session after after_seq in order, as far as the target still has
     * them. */
    annal_status (*rows)(struct ship_target *target, annal_slice session, uint64_t after_seq,
                         row_fn fn, void *arg, annal_error *err);

    /* Find the session in the store that ship_where names. If it names no store, use the store that
     * shipped the session last; later calls then refer to that store. Returns ANNAL_ERR_NOTFOUND if
     * it does not exist. */
    annal_status (*find)(struct ship_target *target, annal_slice session, struct ship_origin *out,
                         annal_error *err);

    /* Pass all sub-agents and forks of a session, at every depth, to fn; only those in the same
     * store, in any order. */
    annal_status (*tree)(struct ship_target *target, annal_slice session, session_fn fn, void *arg,
                         annal_error *err);

    /* Artifacts. The target stores each content once, under its SHA-256 (64 digits). has() reports
     * whether it does; keep() stores a content, and is harmless if it is stored already; fetch()
     * appends the content to out, or returns ANNAL_ERR_NOTFOUND. keep() and has() are called after
     * the last put() of a batch. */
    annal_status (*keep)(struct ship_target *target, const char *sha256, annal_slice content,
                         annal_error *err);
    annal_status (*has)(struct ship_target *target, const char *sha256, bool *out,
                        annal_error *err);
    annal_status (*fetch)(struct ship_target *target, const char *sha256, struct buf *out,
                          annal_error *err);
};

/* A target that consists of files, which prove themselves. */
struct ship_files {
    /* Prove that all data at the target is unchanged, from the first event on. *out_events: the
     * number of events that were compared. */
    annal_status (*prove)(struct ship_target *target, uint64_t *out_events, annal_error *err);

    /* Merge the target's small files into a few large files. */
    annal_status (*compact)(struct ship_target *target, const struct ship_compact *options,
                            struct ship_compacted *out, annal_error *err);
};

/* A target that is a database. */
struct ship_database {
    /* Rows of sessions and turns. make_rows() builds the rows of the oldest batches, unless the
     * oldest is younger than min_age_ms or another process is building rows; *out: the batches that
     * remain. look_at_rows() only reports them. */
    annal_status (*make_rows)(struct ship_target *target, uint32_t min_age_ms,
                              struct ship_rows *out, annal_error *err);
    annal_status (*look_at_rows)(struct ship_target *target, struct ship_rows *out,
                                 annal_error *err);

    /* Report whether the first events of a session may have been dropped together with the day on
     * which they arrived. If last_seq is not 0, it is the seq of the last event, and the question
     * includes that event. */
    annal_status (*may_lack)(struct ship_target *target, annal_slice session, uint64_t last_seq,
                             bool *out, annal_error *err);

    /* Run the verb `ship tables` (ship_pack_tables.h). */
    int (*send_pack_tables)(annal_store *store, const struct ship_options *options);
};

/* A kind of target: what every one does, and the roles that it may have, each NULL or complete. */
struct ship_kind {
    uint32_t pace_ms; /* with follow: minimum pause before a batch that is not full, in ms */
    bool takes_two; /* whether the target accepts two batches at a time, with different sessions */
    annal_status (*open)(const struct ship_where *where, bool to_write,
                         struct ship_target **out_target, annal_error *err);
    void (*close)(struct ship_target *target); /* accepts NULL */
    annal_status (*heads)(struct ship_target *target, head_fn fn, void *arg, annal_error *err);

    /*
     * Send a batch. begin() sets head, key and has_head of each shipment to what the target
     * records; put() sends the events, one shipment after the other; commit() makes the events
     * visible, and sets the recorded heads to `next`.
     */
    annal_status (*begin)(struct ship_target *target, struct shipment **shipments, size_t count,
                          annal_error *err);
    annal_status (*put)(struct ship_target *target, const struct shipment *shipment,
                        const annal_event *event, annal_error *err);
    annal_status (*commit)(struct ship_target *target, struct shipment **shipments, size_t count,
                           annal_error *err);

    const struct ship_source *source;
    const struct ship_files *files;
    const struct ship_database *database;
    const struct home_kind *homes;
};

extern const struct ship_kind ship_postgres, ship_lake, ship_bucket, ship_nats;

/* Return the kind of target for this URL; NULL if there is none. */
const struct ship_kind *ship_kind_of(const char *url);

/* As ship_kind_of(), but on failure print a message and return an exit status. */
int ship_find_kind(const char *url, const struct ship_kind **out);

/* Check that the URL contains a valid bucket name. */
bool lake_s3_names_bucket(const char *url);

/* Print the failure, and return an exit status: EXIT_STORAGE, not EXIT_REFUSED, if the target is
 * unreachable. */
int ship_fail_target(const annal_error *err);

/* ---- Shipments ---- */

struct shipments {
    annal_store *store;
    const char *glob;              /* pattern of session ids; NULL for all sessions */
    void *tree;                    /* struct shipment by session; root of tsearch(3) */
    uint64_t count;                /* number of shipments */
    struct shipment *first, *last; /* queue of the sessions with events to send */
    uint64_t here;                 /* number of sessions in the store, at the last survey */
    /* number of sessions that are not shipped, for a reason that was printed */
    uint64_t stopped;
    uint64_t bytes;    /* approximate size of the events to send, in bytes */
    uint64_t reported; /* number of sessions that the target reported, in the current survey */
};

/* Maximum number of sessions of a store that are shipped, and that a target may report. */
enum { SHIPMENTS_MAX = 4000000, SHIPMENTS_REPORTED_MAX = 4 * SHIPMENTS_MAX };

/* Find the shipment of a session, or create it. shipment_try() is for the server: it returns NULL
 * if memory ran out. */
struct shipment *shipment_of(struct shipments *shipments, annal_slice session);
struct shipment *shipment_try(struct shipments *shipments, annal_slice session);
struct shipment *shipment_find(const struct shipments *shipments,
                               annal_slice session); /* NULL if missing */
bool shipment_is_wanted(const struct shipments *shipments, annal_slice session);
void shipment_queue(struct shipments *shipments, struct shipment *shipment);
struct shipment *shipment_take(struct shipments *shipments);
void shipment_resume(struct shipments *shipments,
                     /* if the shipment was stopped, the session counts as shipped from now on */
                     struct shipment *shipment);
void shipments_done(struct shipments *shipments);

/* How much the target lacks: the known number of events of the queued sessions, and the time when
 * the oldest was queued (monotonic, in us; 0 if the queue is empty). */
struct lag {
    uint64_t events;
    int64_t since_us;
};
struct lag shipments_lag(const struct shipments *shipments);

/*
 * Compare all local sessions with their last events at the target (heads), and queue those that
 * differ. The journals of sessions without events at the target are not opened: their last_seq is
 * at least 1 until shipments_learn_ends() is called.
 */
annal_status shipments_survey(struct shipments *shipments, const struct ship_kind *kind,
                              struct ship_target *target, annal_error *err);

void shipments_learn_ends(struct shipments *shipments);

/*
 * Open a cursor after the session's last event at the target. Returns ANNAL_END if the session
 * cannot be shipped: shipment->state gives the reason, and err has a message unless the state is
 * SHIPMENT_GONE.
 */
annal_status shipment_open(struct shipments *shipments, struct shipment *shipment,
                           annal_cursor **out_cursor, annal_error *err);

/* Read the event after shipment->next from a cursor of shipment_open(). Returns ANNAL_END if the
 * session has no more events yet, ANNAL_ERR_CORRUPT with a message in err if the next event is
 * unreadable. */
annal_status shipment_read(const struct shipment *shipment, annal_cursor *cursor,
                           annal_event *out_event, annal_error *err);

/* Call fn for each shipment in the order of session names. A value other than 0 stops the walk and
 * is returned. */
int shipments_each(struct shipments *shipments, int (*fn)(void *arg, struct shipment *shipment),
                   void *arg);

/* ---- Shipping ---- */

struct ship_options {
    struct ship_where target;
    const struct ship_kind *kind;
    const char *glob;
    uint64_t batch_events;
    uint32_t wait_ms; /* without follow: how long to retry while the target is unreachable, in ms */
    bool follow;
    bool json;
};

/* Ship all events. With follow, keep shipping new events until the output is closed or an error
 * occurs. Returns an exit status. */
int ship_run(annal_store *store, const struct ship_options *options);
