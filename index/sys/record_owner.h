/* SPDX-License-Identifier: Apache-2.0 */
/* The session that contains a record of another log, according to the core table record_origins. */
#pragma once

#include <annal/index.h>

/*
 * A snapshot of the table, on a connection that the index keeps, so opening it again costs little.
 * It does not catch up. Close it soon, like a view. One thread at a time.
 */
typedef struct annal__records annal__records;

ANNAL_MUST_CHECK annal_status annal__record_owner_open(annal_index *index,
                                                       annal__records **out_records,
                                                       annal_error *err);

/*
 * Find the owner of the record with the identity origin: `session` if it contains the record, else
 * the first session that contains it. *out_owner is empty if no session does; it is valid until the
 * next call.
 *
 * ANNAL_ERR_CORRUPT  sessions.db is damaged, and was deleted if that is possible
 */
ANNAL_MUST_CHECK annal_status annal__record_owner_find(annal__records *records, annal_slice origin,
                                                       annal_slice session, annal_slice *out_owner,
                                                       annal_error *err);

/* Close a snapshot of the table. NULL is accepted. */
void annal__record_owner_close(annal__records *records);
