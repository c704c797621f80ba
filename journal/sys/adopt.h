/* SPDX-License-Identifier: Apache-2.0 */
/* Moving sessions and artifacts here from another store: the last step of importing a bundle. */
#ifndef JOURNAL_SYS_ADOPT_H
#define JOURNAL_SYS_ADOPT_H

#include <annal/artifact.h>
#include <annal/journal.h>

/*
 * Move a session into this store from another store, `from`, which no other process uses and which
 * is on the same filesystem: its journal is synced and renamed once, byte for byte, so with its
 * file id and its hashes. It is durable when this returns. At every moment the session is complete
 * in this store, or missing. The caller has proved it there with annal_verify_session(); here its
 * header is checked and, of a fork, that the event at its fork point exists here. Any thread.
 *
 * ANNAL_ERR_NOTFOUND `from` has no such session ANNAL_ERR_CONFLICT this store has a session of that
 * name ANNAL_ERR_CORRUPT of a fork: its parent does not exist in this store, or has another history
 * ANNAL_ERR_BUSY as for annal__replace_delete(); or a commit log still names this very journal,
 *                     which was deleted from this store: annal_checkpoint() in the process that has
 *                     the log helps
 * ANNAL_ERR_UNKNOWN   storage failed after the session was moved
 */
ANNAL_MUST_CHECK annal_status annal__journal_adopt(annal_store *store, annal_store *from,
                                                   annal_slice session, annal_error *err);

/*
 * Move an artifact into this store from another store, `from`, which no other process uses and
 * which is on the same filesystem: its file is renamed once, and is durable when this returns. An
 * artifact with this name is replaced, because it has the same content. The caller has proved the
 * artifact in `from` with annal_artifact_read(). Any thread.
 *
 * ANNAL_ERR_NOTFOUND  `from` has no such artifact
 */
ANNAL_MUST_CHECK annal_status annal__artifact_adopt(annal_store *store, annal_store *from,
                                                    annal_slice session, annal_slice sha256,
                                                    annal_error *err);

#endif
