/* SPDX-License-Identifier: Apache-2.0 */
/* Bound the memory of a process that writes many sessions, one after another. */
#pragma once

#include <annal/store.h>

/*
 * Free what the store keeps to make the next append to this session fast: the ids of its last
 * events, which the next append with an id reads from the journal again. The session stays with
 * this process. Does nothing while appends are pending. Any thread.
 */
void annal__session_trim(annal_store *store, annal_slice session);
