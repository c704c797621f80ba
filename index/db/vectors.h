/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions over vectors; vectors.c describes them. */
#pragma once

#include <sqlite3.h>

/* annal_f32(), vec_distance_l2() and vec_distance_cosine() */
void annal__vectors_f32(sqlite3_context *context, int count, sqlite3_value **values);
void annal__vectors_l2(sqlite3_context *context, int count, sqlite3_value **values);
void annal__vectors_cosine(sqlite3_context *context, int count, sqlite3_value **values);
