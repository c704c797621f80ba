/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of a store: damaged journals, and events that packs could not accept. */
#pragma once

#include <annal/index.h>

/*
 * Call annal_index_finding_each() after catching up the packs with these options. If catching up
 * fails, the store's log says why, and the existing findings are reported. Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__reader_health(annal_index *index, annal_slice session,
                                                   const annal_catch_up_options *options,
                                                   annal_index_finding_fn fn, void *arg,
                                                   annal_error *err);

/*
 * Report the findings that sessions.db contains now, by session and offset, without catching up.
 * Any thread.
 */
ANNAL_MUST_CHECK annal_status annal__reader_core_findings(annal_index *index,
                                                          annal_index_finding_fn fn, void *arg,
                                                          annal_error *err);
