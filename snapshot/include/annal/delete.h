/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting sessions, so that no file of the store holds anything of them.
 */
#ifndef ANNAL_DELETE_H
#define ANNAL_DELETE_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_delete_part {
    ANNAL_DELETE_SESSION = 1, /* the session itself: its journal */
    ANNAL_DELETE_WORDS = 2,   /* in search.db; annal_search_rebuild() removes them later */
    /* its snapshots remain; the next use of the snapshots removes them */
    ANNAL_DELETE_SNAPSHOTS = 3,
    /* its artifacts remain; annal_artifact_sweep() removes them later */
    ANNAL_DELETE_ARTIFACTS = 4,
    ANNAL_DELETE_DATABASES = 5, /* content in databases; annal_index_wal_checkpoint() removes it */
    ANNAL_DELETE_LOGS = 6,      /* content in commit logs; it goes with the process that holds it */
    ANNAL_DELETE_SOURCES = 7    /* copies of its logs, in sources/; they must be removed by hand */
} annal_delete_part;

typedef struct annal_delete_note {
    annal_delete_part part;
    annal_slice session; /* empty: all sessions that were deleted */
    /* A session that was deleted. For a damaged session only the size may be known. */
    const annal_session_info *info;
    const annal_error *error; /* NULL: the session is deleted. Else why it, or this part, remains */
} annal_delete_note;

/* The note lives until this returns. */
typedef void (*annal_delete_fn)(void *arg, const annal_delete_note *note);

/*
 * Delete sessions: the journal, the rows in every database, the words in search.db, the snapshots,
 * the artifacts and the copies of imported logs of each. The content cannot be recovered: rows are
 * overwritten, commit logs too. Other processes are requested to overwrite their logs.
 *
 * fn (may be NULL) is called for each session, and for each part that may remain, which is not a
 * failure; without fn the store's log reports these. A session that cannot be deleted does not stop
 * the others: the first such failure is the answer, after all were tried.
 *
 * A session is taken from its owner first, as for an append. A later append, also through a writer
 * that is open now, begins the session again with seq 1 and another file id; expected_seq tells the
 * two apart. Open cursors continue to read the old journal. It waits for other processes no longer
 * than the store's wait_ms for each session, and once more for all of them. Many sessions in one
 * call cost less than one call for each: every call makes all processes that write overwrite a
 * commit log of 2 MiB. Any thread.
 *
 * It works on a full disk, too: then it creates no commit log, and no tombstone where no commit log
 * names the journal.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      another process owns the session, or is deleting or converting another
 *                     session, and did not finish in the store's wait_ms
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_delete(annal_index *index,
                                                     const annal_slice *sessions, size_t count,
                                                     annal_delete_fn fn, void *arg,
                                                     annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
