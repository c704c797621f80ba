/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the decider: the functions that ask the target whether an event may be appended to a
 * shared session. */
#pragma once

#include <annal/index.h>

/*
 * Create a decider for annal_index_options, which asks the database that the store's cluster file
 * names. It connects only before an append to a shared session. Returns NULL if memory ran out.
 * Defined in tools/ship/decider.c.
 */
const annal_decider *decider_new(annal_store *store);
void decider_free(const annal_decider *decider); /* accepts NULL */
