/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a store, as the commands count it. */
#ifndef INDEX_SYS_FINDINGS_H
#define INDEX_SYS_FINDINGS_H

#include <annal/index.h>

/*
 * Call annal_index_findings() after catching up the packs with these options. If that fails, a line
 * in the store's log says so. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__reader_health(annal_index *index, annal_slice session,
                                                   const annal_catch_up_options *options,
                                                   annal_index_finding_fn fn, void *arg,
                                                   annal_error *err);

/*
 * Report the findings that sessions.db has now, by session and place, without catching up. Any
 * thread.
 */
ANNAL_MUST_CHECK annal_status annal__reader_core_findings(annal_index *index,
                                                          annal_index_finding_fn fn, void *arg,
                                                          annal_error *err);

#endif
