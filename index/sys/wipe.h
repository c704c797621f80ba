/* SPDX-License-Identifier: Apache-2.0 */
/* Removing the content of deleted sessions from the databases of the index. */
#pragma once

#include <annal/index.h>
#include <annal/search.h>

/*
 * Remove deleted sessions from every database of the store, so that no byte of these sessions
 * remains in the databases. Deleted rows are overwritten, the write-ahead logs are emptied, and
 * search.db is merged and rewritten. Waits for other programs up to the index's wait_ms. Any
 * thread.
 *
 * ANNAL_ERR_BUSY  content of the sessions may remain; the message names the database and the reason
 */
ANNAL_MUST_CHECK annal_status annal__maintain_wipe(annal_index *index, const annal_slice *sessions,
                                                   size_t count, annal_error *err);

/*
 * Remove the words of a session that is about to be deleted from search.db, while its journal still
 * contains these words. annal__maintain_wipe() then removes their bytes from the file. If the words
 * cannot be removed, search.db is deleted. Does nothing without a search.db. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__search_forget(annal_index *index, annal_slice session,
                                                   annal_error *err);
