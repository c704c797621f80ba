/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of an event's data that a section names: $a and $run::id have exactly the values of
 * SQLite's data ->> '$.a' and data ->> '$.run.id'.
 */
#pragma once

#include "journal/base/json_walk.h"

#include <sqlite3.h>

struct pack_fields;

struct pack_member {
    annal_slice name, value; /* as they are in the data, with quotes */
};

#define PACK_MEMBERS_MAX 64

/* The members of an event's data that were read by now. */
struct pack_members {
    annal_slice data;
    struct json_walk rest; /* what follows the members in list */
    size_t count;
    struct pack_member list[PACK_MEMBERS_MAX];
};

/* Begin with the data of an event, which must stay valid as long as the members are used. */
void annal__pack_members_read(struct pack_members *members, annal_slice data);

/*
 * Create the reader of some fields. names: the names of the fields without the $, each followed by
 * a NUL. If there are none, *out_fields is NULL, which all other functions accept. db must outlive
 * the fields.
 */
annal_status annal__pack_fields_new(sqlite3 *db, annal_slice names, struct pack_fields **out_fields,
                                    annal_error *err);
void annal__pack_fields_free(struct pack_fields *fields);

/*
 * Read the fields from an event's data, which must stay valid until annal__pack_fields_forget().
 * Returns a result code of SQLite.
 */
int annal__pack_fields_read(struct pack_fields *fields, struct pack_members *members);
void annal__pack_fields_forget(struct pack_fields *fields);

/* Return whether field number i is not NULL, or, if text is not empty, whether it is this text. */
bool annal__pack_fields_is(const struct pack_fields *fields, int i, annal_slice text);

/* Bind field number i to a parameter. The value is valid until annal__pack_fields_forget(). */
void annal__pack_fields_bind(const struct pack_fields *fields, int i, sqlite3_stmt *stmt, int at);
