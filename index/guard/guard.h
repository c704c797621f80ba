/* SPDX-License-Identifier: Apache-2.0 */
/* One guarded append, for the files of this folder. */
#ifndef INDEX_GUARD_GUARD_H
#define INDEX_GUARD_GUARD_H

#include "index/index.h"
#include "journal/base/buf.h"
#include "journal/sys/artifact.h"

#include <annal/pack.h>

/* A database that takes part; packs NULL: sessions.db, which has the core pack. */
struct guard_database {
    struct pack_database *packs;
    struct derived *derived;
    bool begun;
    bool fresh;  /* whether the note in its lock is valid: guard_tables.c, rule 2 */
    bool marked; /* whether the note names the running append */
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
    /* data as JSON, large fields moved out, not yet filled; owned by the call */
    annal_slice *plain;
    annal_draft *drafts; /* the drafts to append; data points into filled */
    struct buf *filled;
    bool *smaller; /* whether plain differs from the given data */
    int64_t deadline_us;
    uint64_t head;                   /* last seq of the session that the tables know */
    annal_event tried;               /* last event that was tried */
    bool whole;                      /* whether all rows of `tried` exist */
    struct guard_decision *decision; /* NULL if the session is not shared */
};

/* An append to a shared session: guard_decide.c. */
struct guard_decision {
    annal_session_info *reads; /* sessions that guards read, too, at the time of the check */
    size_t read_count;
    bool overtaken; /* whether the last try was overtaken: the session ends elsewhere by now */
    bool ids_made;  /* whether the ids were generated here, so that no earlier copy exists */
};

/* ---- guard.c ---- */

/* Return whether the pack has a guard or a fill (or an artifact) for one of the drafts. */
bool annal__guard_cares(const struct guard_call *call, const annal_pack *pack, bool artifacts);

/* Return whether a section is a guard or a fill (or an artifact). */
bool annal__guard_is_of_interest(const struct pack_section *section, bool artifacts);

/* Iterate over the followers of a database; NULL at the end. */
struct follower *annal__guard_follower(const struct guard_call *call,
                                       const struct guard_database *database, size_t i);

/* An iteration over the followers of all databases that run here and are fed by the session. */
struct guard_walk {
    size_t database, follower;
};
struct follower *annal__guard_next(const struct guard_call *call, struct guard_walk *walk);

/*
 * Write the draft's data with the values of the fills into call->filled; stored as in
 * annal__applier_fill().
 */
annal_status annal__guard_fill(struct guard_call *call, size_t draft, const annal_event *event,
                               const annal_event *stored, annal_error *err);

/* ---- guard_decide.c ---- */

/* Call annal_writer_append() for call->drafts, after the decision if the session is shared. */
annal_status annal__guard_write(struct guard_call *call, const annal_append_options *options,
                                uint64_t *out_seq, annal_error *err);

/* Return whether the session is shared, so that the cluster database orders its events. */
annal_status annal__guard_is_shared(annal_index *index, annal_slice session, bool *out,
                                    annal_error *err);

/* Fetch the other sessions that the guards of a shared session read. */
annal_status annal__guard_fetch_reads(struct guard_call *call, annal_error *err);

/* Append to a shared session: call append() until no other store was first. */
typedef annal_status (*guard_append_fn)(const struct guard_call *as, annal_appended *out,
                                        annal_error *err);
annal_status annal__guard_shared(const struct guard_call *as, guard_append_fn append,
                                 annal_appended *out, annal_error *err);

/* ---- guard_tables.c ---- */

/*
 * Find the session that "name$field" of a section's `reads` names for this data: a slice of text,
 * which the caller frees. ANNAL_ERR_NOTFOUND: it names none.
 */
annal_status annal__guard_named(annal_slice data, const char *item, struct buf *text,
                                annal_slice *out_session);

/* Lock the databases, unless that is done, and update them; sets call->head. */
annal_status annal__guard_update(struct guard_call *call, annal_error *err);

/* Note the session before the append, so that its name is kept if the process dies. */
annal_status annal__guard_mark(struct guard_call *call, annal_error *err);

/* Catch up all tables to the current end of the session's journal. */
annal_status annal__guard_catch_up(struct guard_call *call, annal_error *err);

/* Commit or roll back, and release the locks. */
annal_status annal__guard_end(struct guard_call *call, bool keep, annal_error *err);

/* ---- guard_retry.c ---- */

/*
 * Look for an earlier copy of drafts that were refused, or whose id is taken, as *why says.
 * *out_seq is their seq if they are in the journal already; else *why is the answer.
 */
annal_status annal__guard_find_copy(struct guard_call *call, const annal_error *why,
                                    uint64_t *out_seq, annal_error *err);

#endif
