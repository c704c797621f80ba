/* SPDX-License-Identifier: Apache-2.0 */
/* Move sessions and artifacts into this store from another store: the last step of importing a
 * bundle. */
#pragma once

#include <annal/artifact.h>
#include <annal/journal.h>

/*
 * Move a session into this store from another store, `from`, which no other process uses and which
 * is on the same filesystem: its journal is synced and renamed, so it keeps its file id and its
 * hashes. It is durable when this returns. At every moment the session is complete in this store,
 * or missing. The caller has checked it in `from` with annal_session_verify(); this function checks
 * its header and, for a fork, that the event at its fork point exists in this store. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  `from` has no such session
 * ANNAL_ERR_CONFLICT  this store has a session with this name
 * ANNAL_ERR_CORRUPT   it is a fork, and its parent does not exist in this store or has another
 *                     history
 * ANNAL_ERR_BUSY      as for annal__replace_delete(); or a commit log still names this journal,
 *                     which was deleted from this store: annal_store_checkpoint() in the process
 *                     that owns the log helps
 * ANNAL_ERR_UNKNOWN   storage failed after the session was moved
 */
ANNAL_MUST_CHECK annal_status annal__journal_adopt(annal_store *store, annal_store *from,
                                                   annal_slice session, annal_error *err);

/*
 * Move an artifact into this store from another store, `from`, which no other process uses and
 * which is on the same filesystem: its file is renamed, and is durable when this returns. An
 * artifact with this name is replaced, because it has the same content. The caller has checked the
 * artifact in `from` with annal_artifact_read(). Any thread.
 *
 * ANNAL_ERR_NOTFOUND  `from` has no such artifact
 */
ANNAL_MUST_CHECK annal_status annal__artifact_adopt(annal_store *store, annal_store *from,
                                                    annal_slice session, annal_slice sha256,
                                                    annal_error *err);
