/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of a pack that changed, mended in place if that is enough; see pack_reconcile.c. */
#ifndef INDEX_PACK_PACK_RECONCILE_H
#define INDEX_PACK_PACK_RECONCILE_H

#include "index/pack/pack.h"

/*
 * Create the pack's tables in memory, in their state before the first event; close them with
 * annal__db_close(). *out_rest is a hash over what annal__pack_reconcile() does not compare:
 * triggers, and rows that exist from the beginning. Call that only if this hash is the same.
 */
annal_status annal__pack_fresh(const annal_pack *pack, sqlite3 **out_db, uint64_t *out_rest,
                               annal_error *err);

/*
 * Mend the tables, in a transaction on a pack database. If mending is not enough, nothing was
 * changed.
 */
annal_status annal__pack_reconcile(sqlite3 *db, const annal_pack *pack, sqlite3 *fresh,
                                   bool *out_enough, annal_error *err);

#endif
