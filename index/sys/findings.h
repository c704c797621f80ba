/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a store, as the commands count it. */
#ifndef INDEX_SYS_FINDINGS_H
#define INDEX_SYS_FINDINGS_H

#include <annal/index.h>

/*
 * annal_index_findings(), after the packs were caught up with these options. If they could not be,
 * a line in the store's log says so. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__index_health(annal_index *index, annal_slice session,
                                                  const annal_catch_up_options *options,
                                                  annal_index_finding_fn fn, void *arg,
                                                  annal_error *err);

/* Those that sessions.db has now, by session and place; nothing is caught up. Any thread. */
ANNAL_MUST_CHECK annal_status annal__core_findings(annal_index *index, annal_index_finding_fn fn,
                                                   void *arg, annal_error *err);

#endif
