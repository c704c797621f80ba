/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot with right hashes and a wrong schema, as a neighbour who may write in the store could
 * make it. */
#pragma once

#include <annal/snapshot.h>

/* Run SQL on the state of the snapshot at seq, and store the result in its place. */
void plant_snapshot(annal_index *index, annal_slice session, uint64_t seq, const char *sql);

/* SQL that changes the text of an object: old and new without quotes. */
#define PLANT_EDIT(table, old, new)                                                                \
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '" old               \
    "', '" new "') WHERE name = '" table "'; PRAGMA writable_schema = RESET"

/* SQL whose result is not a state of the core pack. */
extern const char *const plants[];
#define PLANTS 9
