/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of an event's data that a section names: $a and $run::id equal SQLite's data ->> '$.a'
 * and data ->> '$.run.id', to the last digit.
 */
#ifndef INDEX_PACK_PACK_FIELDS_H
#define INDEX_PACK_PACK_FIELDS_H

#include <annal/base.h>

#include <sqlite3.h>

struct pack_fields;

/*
 * Create the fields. names: each followed by a NUL, without the $. *out_fields stays NULL if there
 * are none; all of these functions accept NULL. db must outlive them.
 */
annal_status annal__pack_fields_new(sqlite3 *db, annal_slice names, struct pack_fields **out_fields,
                                    annal_error *err);
void annal__pack_fields_free(struct pack_fields *fields);

/*
 * Read the fields from an event's data, which must stay valid until annal__pack_fields_forget().
 * Returns a result code of SQLite.
 */
int annal__pack_fields_read(struct pack_fields *fields, annal_slice data);
void annal__pack_fields_forget(struct pack_fields *fields);

/* Bind field number i to a parameter. The value is valid until annal__pack_fields_forget(). */
void annal__pack_fields_bind(const struct pack_fields *fields, int i, sqlite3_stmt *stmt, int at);

#endif
