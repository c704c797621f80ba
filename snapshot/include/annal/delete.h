/* SPDX-License-Identifier: Apache-2.0 */
/* Delete sessions, so that no file of the store contains anything of them. */
#ifndef ANNAL_DELETE_H
#define ANNAL_DELETE_H

#include <annal/index.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annal_delete_part {
    ANNAL_DELETE_SESSION = 1, /* the session itself, that is, its journal */
    /* words of the session in search.db; annal_search_rebuild() removes them later */
    ANNAL_DELETE_WORDS = 2,
    /* snapshots of the session; the next use of its snapshots removes them */
    ANNAL_DELETE_SNAPSHOTS = 3,
    /* artifacts of the session; annal_artifact_sweep() removes them later */
    ANNAL_DELETE_ARTIFACTS = 4,
    /* content of the session in databases; annal_index_wal_checkpoint() removes it later */
    ANNAL_DELETE_DATABASES = 5,
    /* content of the session in commit logs; removed when the process that owns the log ends */
    ANNAL_DELETE_LOGS = 6,
    /* copies of the session's imported logs in sources/; remove them by hand */
    ANNAL_DELETE_SOURCES = 7
} annal_delete_part;

typedef struct annal_delete_note {
    annal_delete_part part;
    annal_slice session; /* session that the note is about; empty: all sessions that were deleted */
    /* The deleted session, or NULL. For a damaged session only the size may be known. */
    const annal_session_info *info;
    /* NULL: the session is deleted; else why the session, or this part of it, remains */
    const annal_error *error;
} annal_delete_note;

/* Receive a note, which is valid until this function returns. */
typedef void (*annal_delete_fn)(void *arg, const annal_delete_note *note);

/*
 * Delete sessions: of each session the journal, the rows in every database, the words in search.db,
 * the snapshots, the artifacts and the copies of imported logs. The content cannot be recovered
 * afterwards: rows and commit logs are overwritten. Other processes are requested to overwrite
 * their commit logs.
 *
 * fn (may be NULL) is called for each session, and for each part that remains. A part that remains
 * is not a failure; if fn is NULL, it is reported to the store's log. A session that cannot be
 * deleted does not stop the deletion of the others: after all were tried, the first such failure is
 * returned.
 *
 * A session is taken from its owner first, as for an append. A later append, also through a writer
 * that is open now, begins the session again with seq 1 and another file id; expected_seq tells the
 * two apart. Open cursors continue to read the old journal. The function waits for other processes
 * for at most the store's wait_ms for each session, and once more for all of them. Many sessions in
 * one call cost less than one call for each, because every call makes all processes that write
 * overwrite a commit log of 2 MiB. Any thread.
 *
 * It also works on a full disk. Then it creates no commit log, and no tombstone unless a commit log
 * names the journal.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  a fork of the session needs the session
 * ANNAL_ERR_BUSY      another process owns the session, or is deleting or converting another
 *                     session, and did not finish in the store's wait_ms
 */
ANNAL_API ANNAL_MUST_CHECK annal_status annal_session_delete(annal_index *index,
                                                             const annal_slice *sessions,
                                                             size_t count, annal_delete_fn fn,
                                                             void *arg, annal_error *err);

#ifdef __cplusplus
}
#endif

#endif
