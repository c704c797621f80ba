/* SPDX-License-Identifier: Apache-2.0 */
/* Check whether the ancestors of a fork have the history that was forked. */
#pragma once

#include <annal/journal.h>

/*
 * The lineages that were checked during a pass over many sessions, so that a chain of forks is not
 * read again for each fork. Changes by other processes in the meantime may not be noticed. Any
 * thread.
 */
typedef struct annal__proved annal__proved;
/* Return an empty list of checked lineages. NULL: out of memory; the caller may pass NULL to all
 * functions instead. */
annal__proved *annal__lineage_proved_new(void);
void annal__lineage_proved_free(annal__proved *proved); /* NULL is accepted */

/*
 * Check that at each fork point of a session's lineage is the event from which the fork was
 * created. annal_cursor_next() checks this, too; this function is for callers that read in another
 * way. Reads one event of each ancestor's journal. If that event is damaged, this is not reported:
 * ANNAL_OK. proved may be NULL. Any thread.
 *
 * ANNAL_ERR_NOTFOUND  no such session
 * ANNAL_ERR_LIMIT     it has more than ANNAL_ANCESTORS_MAX ancestors
 * ANNAL_ERR_CORRUPT   an ancestor's journal is missing, or has another history
 */
ANNAL_MUST_CHECK annal_status annal__lineage_check(annal_store *store, annal_slice session,
                                                   annal__proved *proved, annal_error *err);
