/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of an event's data that a section names: $a and $run::id are what SQLite's data ->>
 * '$.a' and data ->> '$.run.id' are, to the last digit.
 */
#ifndef INDEX_PACK_PACK_FIELDS_H
#define INDEX_PACK_PACK_FIELDS_H

#include <annal/base.h>

#include <sqlite3.h>

struct pack_fields;

/*
 * names: each followed by a NUL, without the $. *out_fields stays NULL if there are none; all of
 * these functions accept that. db must outlive them.
 */
annal_status annal__pack_fields_new(sqlite3 *db, annal_slice names, struct pack_fields **out_fields,
                                    annal_error *err);
void annal__pack_fields_free(struct pack_fields *fields);

/*
 * Look at an event's data; it must stay until annal__pack_fields_forget(). A result code of
 * SQLite's.
 */
int annal__pack_fields_read(struct pack_fields *fields, annal_slice data);
void annal__pack_fields_forget(struct pack_fields *fields);

/* Bind field number i to a parameter. The value is valid until annal__pack_fields_forget(). */
void annal__pack_fields_bind(const struct pack_fields *fields, int i, sqlite3_stmt *stmt, int at);

#endif
