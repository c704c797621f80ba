/* SPDX-License-Identifier: Apache-2.0 */
/* Filling search.db before the first search. */
#pragma once

#include <annal/index.h>

/*
 * Add everything that is durable now to search.db, and create the file if it does not exist. If
 * search is switched off, nothing is done. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__search_fill(annal_index *index,
                                                 const annal_catch_up_options *options,
                                                 annal_error *err);

/* Return whether search.db exists, and search is not switched off. Any thread. */
bool annal__search_is_used(const annal_index *index);
