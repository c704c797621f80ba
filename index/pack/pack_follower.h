/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What packs and the index have in common as followers: the handlers of packs apply the events of
 * the journals.
 */
#ifndef INDEX_PACK_PACK_FOLLOWER_H
#define INDEX_PACK_PACK_FOLLOWER_H

#include "index/follow/follower.h"
#include "index/pack/applier.h"

/* Call annal__follower_open(), and create an applier of these packs. */
annal_status annal__pack_follower_open(struct follower *follower, const annal_pack *const *packs,
                                       size_t pack_count, annal_error *err);
void annal__pack_follower_close(struct follower *follower);

/*
 * Apply an event, or settle, for follower_ops.event and .settle: what a handler cannot accept
 * becomes a finding.
 */
annal_status annal__pack_follower_event(struct follower *follower, annal_slice session,
                                        const annal_event *event, annal_error *err);
annal_status annal__pack_follower_settle(struct follower *follower, annal_slice session,
                                         uint64_t seq, annal_error *err);

#endif
