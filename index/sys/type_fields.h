/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the event types that the core pack knows: index/packs/core/type_fields.json. */
#pragma once

#include <annal/index.h>
#include <annal/query.h>

/* number of events, the newest of the store, which annal__type_fields_each() examines */
#define TYPE_FIELDS_EVENTS_MAX 20000

/* Fail with ANNAL_ERR_INVALID, and name the field, if a draft of a known type has an unknown field
 * or a value of another kind, or lacks a required field. Any thread. */
ANNAL_MUST_CHECK annal_status annal__type_fields_check(annal_index *index, annal_slice session,
                                                       const annal_draft *drafts, size_t count,
                                                       annal_error *err);

/* Free the statement that annal__type_fields_check() keeps in the index. */
void annal__type_fields_done(annal_index *index);

/* Call fn with a row for each fault of the newest events, the most frequent first: type, fault,
 * number of events, and the place of one event. Any thread. */
ANNAL_MUST_CHECK annal_status annal__type_fields_each(annal_index *index, annal_row_fn fn,
                                                      void *arg, annal_error *err);
