/* SPDX-License-Identifier: Apache-2.0 */
/* annal_store_sync() and annal_store_checkpoint(): make durable what all sessions of the store
 * object wrote. */
#pragma once

#include <annal/journal.h>

/* As annal_store_sync(), but do not fail because of events of level batch that were refused
 * earlier. */
annal_status annal__sync_all(annal_store *store, annal_error *err);
