/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the tables of a pack in place after its text changed, if that is possible; see
 * pack_reconcile.c. */
#pragma once

#include "index/pack/pack.h"

/*
 * Create the pack's tables in memory, without the rows of any event; close the database with
 * annal__db_close(). *out_rest is a hash over what annal__pack_reconcile() does not compare:
 * triggers, and rows that exist from the beginning. Call annal__pack_reconcile() only if this hash
 * is unchanged.
 */
annal_status annal__pack_fresh(const annal_pack *pack, sqlite3 **out_db, uint64_t *out_rest,
                               annal_error *err);

/*
 * Change the tables in db to those in fresh, in a transaction on a pack database. *out_enough:
 * whether this was possible; if not, nothing was changed.
 */
annal_status annal__pack_reconcile(sqlite3 *db, const annal_pack *pack, sqlite3 *fresh,
                                   bool *out_enough, annal_error *err);
