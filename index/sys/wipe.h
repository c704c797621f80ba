/* SPDX-License-Identifier: Apache-2.0 */
/* What the index does when a session is deleted. */
#ifndef INDEX_SYS_WIPE_H
#define INDEX_SYS_WIPE_H

#include <annal/index.h>
#include <annal/search.h>

/*
 * These sessions were deleted: remove them from every database of the store, and make sure that no
 * byte of them is left there. Rows are overwritten when they are deleted; then the write-ahead logs
 * are emptied, and search.db is merged and rewritten. Waits for others up to the index's wait_ms.
 * Any thread.
 *
 * ANNAL_ERR_BUSY  something may remain: the message says where, and why
 */
ANNAL_MUST_CHECK annal_status annal__index_wipe(annal_index *index, const annal_slice *sessions,
                                                size_t count, annal_error *err);

/*
 * A session is about to be deleted: remove its words from search.db while its journal can still say
 * which they are. Their bytes leave the file with annal__index_wipe(). If they cannot be removed
 * search.db is deleted. Does nothing if there is none. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__search_forget(annal_index *index, annal_slice session,
                                                   annal_error *err);

#endif
