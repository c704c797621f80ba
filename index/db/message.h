/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions that compare messages of errors; message.c describes them. */
#pragma once

#include <sqlite3.h>

/* annal_message() and annal_pattern() */
void annal__message_group(sqlite3_context *context, int count, sqlite3_value **values);
void annal__message_pattern(sqlite3_context *context, int count, sqlite3_value **values);
