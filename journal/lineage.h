/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one history of a fork: the journals that contain it.
 *
 * A fork's journal begins with a header that names a session, a seq and a hash: up to that event
 * its history is that session's. No event is copied.
 *
 * (1) A part is what one journal adds to a history: the session's own journal is the last part, the
 *     session that its header names is the part before it, and so on to a session that is not a
 *     fork.
 * (2) Each part contains the seqs from its first to the fork point of the part after it. Fork
 *     points get strictly smaller from part to part, going back, so no lineage is a circle, and
 *     each seq is in exactly one part: annal_session_fork() names the session that really contains
 *     the event.
 * (3) Parts are looked up from the session's own backwards, and no further than necessary: a reader
 *     of the end of a long history opens one journal.
 * (4) The event at a fork point must have the hash that the header of the fork gives. As a hash
 *     follows from all before it, the whole prefix is then the forked prefix. Otherwise another
 *     journal took its place, and the history is ANNAL_ERR_CORRUPT: nothing is guessed. Damage
 *     before or at the fork point is reported as damage, not as another history.
 */
#ifndef JOURNAL_LINEAGE_H
#define JOURNAL_LINEAGE_H

#include "journal/scan.h"
#include "journal/store.h"

/* The origin of a journal's history, from its header. */
struct origin {
    char file[33]; /* these three as in annal_session_info, of the journal whose header it is */
    char replaces[33];
    int64_t created_us;
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1]; /* "": it is not a fork */
    uint64_t seq;
    uint64_t h;
};

/* The part of an ancestor. */
struct part {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t to_seq;      /* the fork point of the part after it */
    uint64_t to_h;        /* the hash that this event must have */
    struct origin origin; /* origin of this journal */
};

struct lineage {
    struct part *parts; /* the nearest ancestor first */
    size_t count;
};

/*
 * Open the journal of a session, and read what its header says; the origin is empty if the header
 * does not prove itself (the walk will report that). ANNAL_ERR_CORRUPT if it is another session's;
 * ANNAL_ERR_NOTFOUND if it does not exist.
 */
annal_status annal__lineage_open_journal(annal_store *store, annal_slice session,
                                         struct scan *out_scan, struct origin *out_origin,
                                         annal_error *err);

/*
 * All parts of a session's history; *out_parts is their number without its own. id has room for
 * ANNAL_SESSION_ID_BYTES_MAX and a NUL. Fails as annal__lineage_open_journal() does. The lineage is
 * empty before; the caller frees it in any case.
 */
annal_status annal__lineage_of(annal_store *store, annal_slice session, struct lineage *lineage,
                               char *id, struct origin *out_origin, size_t *out_parts,
                               annal_error *err);

/*
 * The part that contains seq: 0 is the session's own, n is parts[n - 1]. Looks up parts that are
 * not known yet. session and origin belong to the session's own journal.
 */
annal_status annal__lineage_find(annal_store *store, struct lineage *lineage, const char *session,
                                 const struct origin *origin, uint64_t seq, size_t *out_part,
                                 annal_error *err);

/*
 * Whether the last result of annal__scan_next() shows that the part's journal has another history
 * at the fork point. If the event there is damaged, this is shown only if the next event proves
 * which hash the damaged one had.
 */
bool annal__lineage_differs(const struct scan *scan, annal_status status, const annal_event *event,
                            const struct part *part);

/* The ts of the last event that this session shares with its parent; INT64_MIN if it cannot be
 * read. */
int64_t annal__lineage_fork_ts(annal_store *store, annal_slice session, uint64_t fork_seq);

/* Rule (4): the error that says that it does not hold between these two. */
annal_status annal__lineage_refuse(const char *fork, const struct part *part, annal_error *err);

void annal__lineage_done(struct lineage *lineage);

#endif
