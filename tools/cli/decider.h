/* SPDX-License-Identifier: Apache-2.0 */
/* Who decides about the events of sessions that are shared. */
#ifndef TOOLS_CLI_DECIDER_H
#define TOOLS_CLI_DECIDER_H

#include <annal/index.h>

/*
 * For annal_index_options: the database that the store names, which is not asked before an append
 * to such a session. NULL: no memory. Implemented in tools/ship/decider.c.
 */
const annal_decider *decider_new(annal_store *store);
void decider_free(const annal_decider *decider); /* NULL is accepted */

#endif
