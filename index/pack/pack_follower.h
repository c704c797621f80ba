/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that the followers of packs and of the index share: both apply the events of
 * journals with the handlers of packs.
 */
#pragma once

#include "index/follow/follower.h"
#include "index/pack/applier.h"

/* Open a follower with annal__follower_open(), and create its applier for these packs. */
annal_status annal__pack_follower_open(struct follower *follower, const annal_pack *const *packs,
                                       size_t pack_count, annal_error *err);
void annal__pack_follower_close(struct follower *follower);

/*
 * Apply an event, or run the sections `-- settle`: the functions follower_ops.event and .settle. An
 * event that a handler cannot accept becomes a finding.
 */
annal_status annal__pack_follower_event(struct follower *follower, annal_slice session,
                                        const annal_event *event, annal_error *err);
annal_status annal__pack_follower_settle(struct follower *follower, annal_slice session,
                                         uint64_t seq, annal_error *err);
