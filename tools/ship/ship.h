/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shipping: the events of a store go to a target, each exactly once.
 *
 * (1) The target decides. It has a head for each session: the last event that it has, and the hash
 *     of that event, which depends on all events before it. A batch begins with the heads as the
 *     target says they are, and what does not continue a head is not sent: what the target has is
 *     skipped, what it lacks is sent again. The store keeps nothing about targets.
 * (2) Events and heads become visible together, or not at all. When it is not known whether a batch
 *     was committed, the next one begins with what the target then says.
 * (3) A session whose journal does not contain the head of the target has another history there. It
 *     is reported, and none of its events is sent; the others go on.
 * (4) Nothing is buffered. A batch is read from the journals while it is sent, and if the target is
 *     away, the journals wait.
 * (5) A fork is shipped as its own events, with the session and the seq that it was forked from.
 * (6) The artifacts that events name come before them, by hash, so each once; those that are larger
 *     than SHIP_ARTIFACT_BYTES_MAX, or not there any more, stay out. So does one that cannot be
 *     read, which is said.
 * (7) Rows of sessions and turns at the target are made after the batches: beside them with follow
 *     (rows.h), else at the end. A batch leaves there what they need, so a crash loses nothing.
 */
#ifndef TOOLS_SHIP_SHIP_H
#define TOOLS_SHIP_SHIP_H

#include "tools/cli/progress.h"

#include "journal/base/buf.h"

#include <annal/journal.h>
#include <annal/tail.h>

/* After event seq, whose hash is h; the next one begins at byte `at` of the journal. at 0: the
 * session has no event there, and its first will be seq + 1. */
struct place {
    uint64_t seq;
    uint64_t h;
    uint64_t at;
};

enum lane_state {
    LANE_GOING,
    LANE_CONFLICT, /* rule 3 */
    LANE_DAMAGED,  /* its events after the head cannot be read */
    LANE_AWAY,     /* this store is not its home (home.h) */
    LANE_SHARED,   /* the target decides its events, so that it has them (shared.h) */
    LANE_GONE      /* there is no such session here */
};

/* One session on its way to the target. */
struct lane {
    const char *session;
    struct place there; /* its head at the target; {0} if there is none */
    struct place next;  /* what the head becomes when this batch is committed */
    int64_t key;        /* the target's number for it; 0: not known */
    bool has_head;
    bool is_new;    /* during a batch: commit() makes its head */
    bool waits;     /* it is in the queue */
    bool away;      /* another store is its home, or another epoch: set by begin() */
    uint64_t epoch; /* of its lease here; 0: it has none */
    bool told;      /* that its state is not LANE_GOING */
    enum lane_state state;
    uint64_t last_seq;         /* of the last event here, as far as that is known */
    int64_t since_us;          /* since when it waits (monotonic) */
    annal_session_info *info;  /* during a batch, if it had no head: what its header says */
    struct lane *next_waiting; /* in the queue */
};

/* ---- Targets ---- */

enum { SHIP_STORE_BYTES_MAX = 4600, SHIP_ARTIFACT_BYTES_MAX = 16 << 20 };

struct ship_where {
    const char *url;
    const char *store; /* what the store is called there; to pull from, NULL is enough */
    uint32_t quiet_ms; /* a target that does not answer for so long is away */
};

struct ship_target;
struct ship_options;
struct home_kind;

/* Called for each head of the store. Return 0 to continue. */
typedef annal_status (*head_fn)(void *arg, annal_slice session, const struct place *there,
                                annal_error *err);

/* An event as the target has it. Return 0 to continue, ANNAL_END if no more is wanted. */
typedef annal_status (*row_fn)(void *arg, const annal_event *event, annal_error *err);

/* A session of the target. Return 0 to continue. */
typedef annal_status (*session_fn)(void *arg, annal_slice session, annal_error *err);

struct ship_compact {
    bool today;      /* also the day that is not over */
    int64_t keep_us; /* for so long the files that were replaced stay */
};

struct ship_compacted {
    uint64_t read, made, removed; /* files */
};

/* A session as it is at the target: the store that shipped it, and of its journal session, file,
 * replaces, created_us, the fork, last_seq and last_h. */
struct ship_origin {
    char store[SHIP_STORE_BYTES_MAX];
    uint64_t stores; /* that have a session of this name */
    annal_session_info info;
};

/* Batches whose events are not in the rows of sessions and turns yet. */
struct ship_rows {
    uint64_t batches;
    double seconds;       /* the age of the oldest */
    uint64_t first, last; /* their numbers; 0: there are none */
};

/*
 * ANNAL_ERR_BUSY from any of them: the target is away, or asks to try again; after that only
 * close() may be called. Any other failure is final.
 */
struct ship_kind {
    uint32_t pace_ms; /* with follow: a batch that is not full waits at least so long */
    bool takes_two;   /* batches of different sessions at the same time */
    annal_status (*open)(const struct ship_where *where, bool to_write,
                         struct ship_target **out_target, annal_error *err);
    void (*close)(struct ship_target *target); /* NULL is accepted */
    annal_status (*heads)(struct ship_target *target, head_fn fn, void *arg, annal_error *err);

    /* A batch. begin() sets there, key and has_head of each lane to what the target says; put()
     * takes events, lane by lane; commit() moves the heads to next. */
    annal_status (*begin)(struct ship_target *target, struct lane **lanes, size_t count,
                          annal_error *err);
    annal_status (*put)(struct ship_target *target, const struct lane *lane,
                        const annal_event *event, annal_error *err);
    annal_status (*commit)(struct ship_target *target, struct lane **lanes, size_t count,
                           annal_error *err);

    /* Artifacts: content by its SHA-256 (64 digits), once. NULL: they stay here. After the last
     * put() of a batch keep() is called with those for which has() says false; it does no harm
     * to one that is there. fetch() adds the content to out; ANNAL_ERR_NOTFOUND. */
    annal_status (*keep)(struct ship_target *target, const char *sha256, annal_slice content,
                         annal_error *err);
    annal_status (*has)(struct ship_target *target, const char *sha256, bool *out,
                        annal_error *err);
    annal_status (*fetch)(struct ship_target *target, const char *sha256, struct buf *out,
                          annal_error *err);

    /* Rows of sessions and turns, which are made after the batches: make_rows() makes those of the
     * oldest, unless that is younger than min_age_ms or another process does so now, and says what
     * is left. NULL: it has none. */
    annal_status (*make_rows)(struct ship_target *target, uint32_t min_age_ms,
                              struct ship_rows *out, annal_error *err);
    annal_status (*look_at_rows)(struct ship_target *target, struct ship_rows *out,
                                 annal_error *err);

    /* Prove that everything is as it was written, from the first event on; *out_events: so many. */
    annal_status (*prove)(struct ship_target *target, uint64_t *out_events, annal_error *err);

    /* Make few large files of many small ones; NULL: it has none. */
    annal_status (*compact)(struct ship_target *target, const struct ship_compact *options,
                            struct ship_compacted *out, annal_error *err);

    /* Without prove: the events of a session after after_seq, by seq; only what is still there. */
    annal_status (*rows)(struct ship_target *target, annal_slice session, uint64_t after_seq,
                         row_fn fn, void *arg, annal_error *err);

    /* With rows: whether the first events of a session may have been dropped with the day on which
     * they arrived; and the last one too, if last_seq is its seq, not 0. */
    annal_status (*may_lack)(struct ship_target *target, annal_slice session, uint64_t last_seq,
                             bool *out, annal_error *err);

    /* NULL: sessions cannot be pulled from here. The session of that name in the store that
     * ship_where names; if it names none, in the one that shipped it last, to which later calls
     * then refer, too. ANNAL_ERR_NOTFOUND. */
    annal_status (*find)(struct ship_target *target, annal_slice session, struct ship_origin *out,
                         annal_error *err);

    /* With find: the sub-agents and forks of a session, theirs, and so on; in the same
     * store, and in any order. */
    annal_status (*tree)(struct ship_target *target, annal_slice session, session_fn fn, void *arg,
                         annal_error *err);

    /* The verb tables: pack_tables.h. NULL: it has none. */
    int (*send_pack_tables)(annal_store *store, const struct ship_options *options);

    const struct home_kind *homes; /* NULL: this kind of target knows no homes */
};

extern const struct ship_kind ship_postgres, ship_lake, ship_bucket, ship_nats;

/* NULL: there is none for this url. */
const struct ship_kind *ship_kind_of(const char *url);

/* As above, or an exit status after a sentence. */
int ship_find_kind(const char *url, const struct ship_kind **out);

/* Whether a bucket's url has a name that a bucket can have. */
bool ship_names_bucket(const char *url);

/* Say it. That a target is away is no answer: EXIT_STORAGE. */
int fail_target(const annal_error *err);

/* ---- Lanes ---- */

struct lanes {
    annal_store *store;
    const char *glob;          /* NULL: all sessions */
    void *tree;                /* of tsearch(3) */
    uint64_t count;            /* of lanes */
    struct lane *first, *last; /* the queue: sessions that grew */
    uint64_t here;             /* sessions of the store, at the last survey */
    uint64_t stopped;          /* of which nothing is sent, which was said */
    uint64_t bytes;            /* that it found to be sent, about */
};

/* A target that has heads of more sessions is not believed. */
enum { LANES_MAX = 4000000 };

/* That of a session; a new one if there is none. NULL: no memory. */
struct lane *lane_of(struct lanes *lanes, annal_slice session);
struct lane *lane_find(const struct lanes *lanes, annal_slice session); /* NULL: there is none */
bool lane_is_wanted(const struct lanes *lanes, annal_slice session);
void lane_wait(struct lanes *lanes, struct lane *lane);
struct lane *lane_take(struct lanes *lanes);
void lane_go_on(struct lanes *lanes, struct lane *lane); /* if it was stopped */
void lanes_done(struct lanes *lanes);

/* What waits: events, as far as that is known, and since when (monotonic; 0: nothing). */
struct lag {
    uint64_t events;
    int64_t since_us;
};
struct lag lanes_lag(const struct lanes *lanes);

/* Compare all sessions with the heads of the target; those that differ wait. Of those without a
 * head nothing is read: last_seq is 1, at least, until lanes_learn_ends(). */
annal_status lanes_survey(struct lanes *lanes, const struct ship_kind *kind,
                          struct ship_target *target, annal_error *err);

void lanes_learn_ends(struct lanes *lanes);

/*
 * A cursor after the head of the lane. ANNAL_END: there is none; lane->state says why, and unless
 * that is LANE_GONE err has a sentence.
 */
annal_status lane_open(struct lanes *lanes, struct lane *lane, annal_cursor **out_cursor,
                       annal_error *err);

/* Read the event after lane->next from a cursor of lane_open(). ANNAL_END: the session has no more
 * events yet. ANNAL_ERR_CORRUPT: what follows cannot be read; err->message says why. */
annal_status lane_read(const struct lane *lane, annal_cursor *cursor, annal_event *out_event,
                       annal_error *err);

/* Call fn for each lane, by session; any value but 0 stops, and is returned. */
int lanes_each(struct lanes *lanes, int (*fn)(void *arg, struct lane *lane), void *arg);

/* ---- Shipping ---- */

struct ship_options {
    struct ship_where target;
    const struct ship_kind *kind;
    const char *glob;
    uint64_t batch_events;
    uint32_t wait_ms; /* without follow: how long to try while the target is away */
    bool follow;
    bool json;
};

/* Ship what there is; with follow, and what comes, until nobody reads the output or a failure. An
 * exit status. */
int ship_run(annal_store *store, const struct ship_options *options);

#endif
