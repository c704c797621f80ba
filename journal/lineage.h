/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a fork, and the journals that contain it.
 *
 * A fork's journal begins with a header that names a session, a seq and a hash: up to the event
 * with this seq, the fork's history is the history of that session. No event is copied.
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
 * (4) The event at a fork point must have the hash that the header of the fork states. As each hash
 *     depends on all earlier events, these are then the events that were forked. Otherwise another
 *     journal has replaced the ancestor's, and reading the history fails with ANNAL_ERR_CORRUPT.
 *     Damage before or at the fork point is reported as damage, not as another history.
 */
#pragma once

#include "journal/scan.h"

/* The values in the header of a journal: its file ids, its time of creation, and, for a fork, the
 * parent session and the fork point. */
struct origin {
    char file[33]; /* file, replaces and created_us are as in annal_session_info */
    char replaces[33];
    int64_t created_us;
    /* parent session of a fork; "" if the session is not a fork */
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t seq;
    uint64_t h;
};

/* The part of a history that an ancestor's journal contains. */
struct part {
    char session[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t to_seq;      /* last seq of the part: the fork point of the next part */
    uint64_t to_h;        /* hash that event to_seq must have */
    struct origin origin; /* what the header of the ancestor's journal states */
};

struct lineage {
    struct part *parts; /* ancestors, the nearest first */
    size_t count;
};

/*
 * Open the journal of a session, and read its origin from its header; the origin is empty if the
 * header is damaged, which a walk through the journal reports. ANNAL_ERR_CORRUPT if the journal
 * belongs to another session; ANNAL_ERR_NOTFOUND if it does not exist.
 */
annal_status annal__lineage_open_journal(annal_store *store, annal_slice session,
                                         struct scan *out_scan, struct origin *out_origin,
                                         annal_error *err);

/*
 * Look up all parts of a session's history; *out_parts is their number without the session's own
 * journal. id has room for ANNAL_SESSION_ID_BYTES_MAX bytes and a NUL, and receives the session's
 * id. Fails as annal__lineage_open_journal() does. The lineage is empty before; the caller frees it
 * even after a failure.
 */
annal_status annal__lineage_of(annal_store *store, annal_slice session, struct lineage *lineage,
                               char *id, struct origin *out_origin, size_t *out_parts,
                               annal_error *err);

/*
 * Find the part that contains seq: *out_part is 0 for the session's own journal, n for
 * lineage.parts[n - 1]. Opens only the journals of ancestors that the lineage does not contain yet.
 * session and origin belong to the session's own journal.
 */
annal_status annal__lineage_find(annal_store *store, struct lineage *lineage, const char *session,
                                 const struct origin *origin, uint64_t seq, size_t *out_part,
                                 annal_error *err);

/*
 * Return whether the last result of annal__scan_next() proves that the part's journal has another
 * history at the fork point. If the event at the fork point is damaged, only the next event can
 * prove that, because it depends on the damaged event's hash.
 */
bool annal__lineage_differs(const struct scan *scan, annal_status status, const annal_event *event,
                            const struct part *part);

/* Fail with ANNAL_ERR_CORRUPT, because the ancestor's journal has another history than the fork
 * (rule 4). */
annal_status annal__lineage_refuse(const char *fork, const struct part *part, annal_error *err);

void annal__lineage_done(struct lineage *lineage);
