/* SPDX-License-Identifier: Apache-2.0 */
/* The damaged events that a count or a grouping could not include. */
#pragma once

#include <annal/query.h>

/*
 * Write the damaged events that the filter may match to the store's log;
 * annal__store_damages_said() counts them. They may match because their types and times are
 * unknown. Call it after annal_query_count() or annal_query_group_each(). Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__query_say_damages(annal_index *index,
                                                       const annal_filter *filter,
                                                       annal_error *err);
