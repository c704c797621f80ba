/* SPDX-License-Identifier: Apache-2.0 */
/* The decider for events of shared sessions. */
#ifndef TOOLS_CLI_DECIDER_H
#define TOOLS_CLI_DECIDER_H

#include <annal/index.h>

/*
 * Create a decider for annal_index_options: the database that the store names. It connects only
 * before an append to a shared session. NULL: no memory. Implemented in tools/ship/decider.c.
 */
const annal_decider *decider_new(annal_store *store);
void decider_free(const annal_decider *decider); /* accepts NULL */

#endif
