/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable events that readers cannot see yet, because they are in the log of a dead process and not
 * in their journals: no process has opened the store for writing since, or the process that
 * recovers the log is stopped. Opening the store reports them.
 */
#pragma once

#include <annal/store.h>

/* Warn of the durable events that readers cannot see yet: name their number and their sessions.
 * missing: a slot that another process is recovering without progress (annal__slots_recover()), or
 * SLOTS_MAX. */
void annal__unapplied_warn(annal_store *store, uint32_t missing);
