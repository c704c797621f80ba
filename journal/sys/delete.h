/* SPDX-License-Identifier: Apache-2.0 */
/* Delete the journal of a session: a part of annal_session_delete(). */
#pragma once

#include <annal/journal.h>

/*
 * Delete a session: its journal is removed, durably, and nothing in a commit log restores it.
 * out_info (may be NULL) receives what was deleted; of a damaged journal only its size may be
 * known. The index and the snapshots remove their rows when they next read the store.
 *
 * The session is taken from its owner first, as for an append. A later append, even by a writer
 * that is open now, begins the session again with seq 1 and another file id; expected_seq
 * distinguishes the two. Open cursors continue to read the old journal. Any thread.
 *
 * Commit logs may contain its events until annal__replace_wipe_logs(). That is called once, after
 * the last of many sessions, because each call makes every process that writes overwrite its log,
 * of 2 MiB or more. Databases are not overwritten here but by the index.
 *
 * It works on a full disk, too: then no commit log is created for it, and no tombstone if no commit
 * log names the journal.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_CONFLICT  a fork of the session needs it
 * ANNAL_ERR_BUSY      another process owns the session, or is deleting or converting another
 *                     session, and did not finish in the store's wait_ms
 */
ANNAL_MUST_CHECK annal_status annal__replace_delete(annal_store *store, annal_slice session,
                                                    annal_session_info *out_info, annal_error *err);

/*
 * Overwrite the parts of commit logs that are not needed any more. Other processes are asked to
 * overwrite theirs, for which this waits no longer than the store's wait_ms in all; the log of a
 * stopped process is overwritten when that continues or ends. Any thread.
 *
 * ANNAL_ERR_BUSY  a log may still contain deleted content: the message says which log, and until
 *                 when
 */
ANNAL_MUST_CHECK annal_status annal__replace_wipe_logs(annal_store *store, annal_error *err);
