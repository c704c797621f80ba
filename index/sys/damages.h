/* SPDX-License-Identifier: Apache-2.0 */
/* Events that an answer of numbers lacks. */
#ifndef INDEX_SYS_DAMAGES_H
#define INDEX_SYS_DAMAGES_H

#include <annal/query.h>

/*
 * After annal_query_count() or annal_query_groups(): name the damaged events that the filter may
 * have meant in the store's log (annal__damages_said() counts them). Their types and times are not
 * known. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__query_say_damages(annal_index *index,
                                                       const annal_filter *filter,
                                                       annal_error *err);

#endif
