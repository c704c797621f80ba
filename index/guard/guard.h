/* SPDX-License-Identifier: Apache-2.0 */
/* One guarded append, for the files of this folder. */
#ifndef INDEX_GUARD_GUARD_H
#define INDEX_GUARD_GUARD_H

#include "index/index.h"
#include "journal/base/buf.h"
#include "journal/sys/artifact.h"

#include <annal/pack.h>

/* One database that is asked; packs NULL: sessions.db, which has the core pack. */
struct guard_database {
    struct pack_database *packs;
    struct derived *derived;
    bool begun;
    bool fresh;  /* guard_tables.c, rule 2: the note in its lock is valid, */
    bool marked; /* and says which append is running */
};

/* One call of annal_pack_append(). */
struct guard_call {
    annal_index *index;
    annal_writer *writer;
    annal_slice session;
    const annal_append_options *options;
    const annal_draft *given;
    size_t count;
    struct pack_set *set;
    struct guard_database *databases;
    size_t database_count;
    annal__artifact_hold *hold;
    annal_slice *plain;  /* data as JSON, large fields moved out, not yet filled; ours */
    annal_draft *drafts; /* what is appended; data points into filled */
    struct buf *filled;
    bool *smaller; /* plain is different from what was given */
    int64_t deadline_us;
    uint64_t head;                   /* the last seq of the session that the tables know */
    annal_event tried;               /* the last one that was tried */
    bool whole;                      /* and all of its rows exist */
    struct guard_decision *decision; /* NULL: the session is not shared */
};

/* Of an append to a session that is shared: guard_decide.c. */
struct guard_decision {
    annal_session_info *reads; /* sessions that guards look at, too, as they were then */
    size_t read_count;
    bool overtaken; /* the last try was: the session ends elsewhere by now */
    bool ids_made;  /* the caller gave none, so there is no earlier copy */
};

/* ---- guard.c ---- */

/* Whether the pack has a guard or a fill (or an artifact) for one of the drafts. */
bool annal__guard_cares(const struct guard_call *call, const annal_pack *pack, bool artifacts);

/* Whether a section is a guard or a fill (or an artifact). */
bool annal__guard_is_of_interest(const struct pack_section *section, bool artifacts);

/* Followers of a database, one after the other. NULL: no more. */
struct follower *annal__guard_follower(const struct guard_call *call,
                                       const struct guard_database *database, size_t i);

/* Followers of all databases that run here and are fed by the session; NULL: no more. */
struct guard_walk {
    size_t database, follower;
};
struct follower *annal__guard_next(const struct guard_call *call, struct guard_walk *walk);

/* Write into call->filled the draft's data with the values of the fills; stored as in
 * annal__applier_fill(). */
annal_status annal__guard_fill(struct guard_call *call, size_t draft, const annal_event *event,
                               const annal_event *stored, annal_error *err);

/* ---- guard_decide.c ---- */

/* annal_writer_append() of call->drafts, after they were decided if the session is shared. */
annal_status annal__guard_write(struct guard_call *call, const annal_append_options *options,
                                uint64_t *out_seq, annal_error *err);

/* Whether somebody else decides about appends to the session. */
annal_status annal__guard_is_shared(annal_index *index, annal_slice session, bool *out,
                                    annal_error *err);

/* Bring the other sessions that the guards of a shared session look at. */
annal_status annal__guard_bring_reads(struct guard_call *call, annal_error *err);

/* An append to a session that is shared: append() is called until no other store was first. */
typedef annal_status (*guard_append_fn)(const struct guard_call *as, annal_appended *out,
                                        annal_error *err);
annal_status annal__guard_shared(const struct guard_call *as, guard_append_fn append,
                                 annal_appended *out, annal_error *err);

/* ---- guard_tables.c ---- */

/*
 * The session that "name$field" of a section's `reads` is for this data: a slice of text, which the
 * caller frees. ANNAL_ERR_NOTFOUND: it is none.
 */
annal_status annal__guard_named(annal_slice data, const char *item, struct buf *text,
                                annal_slice *out_session);

/* Lock the databases, unless that is done, and bring them up to date; sets call->head. */
annal_status annal__guard_bring_up(struct guard_call *call, annal_error *err);

/* Before the append: a process that dies now leaves the session's name. */
annal_status annal__guard_mark(struct guard_call *call, annal_error *err);

/* Catch up all tables to the present end of the session's journal. */
annal_status annal__guard_catch_up(struct guard_call *call, annal_error *err);

/* Commit or roll back, and release the locks. */
annal_status annal__guard_end(struct guard_call *call, bool keep, annal_error *err);

/* ---- guard_retry.c ---- */

/*
 * The drafts were refused, or their id is taken, as *why says. *out_seq is their seq if they are
 * there already; else *why is the answer.
 */
annal_status annal__guard_find_copy(struct guard_call *call, const annal_error *why,
                                    uint64_t *out_seq, annal_error *err);

#endif
