/* SPDX-License-Identifier: Apache-2.0 */
/* Runs annal replay --hash and --verify. */
#pragma once

#include <annal/replay.h>

/* Print the hash of the state of a session after event seq. Returns 0 or an exit status. */
int replay_print_hash(annal_slice session, annal_state *state, uint64_t seq, bool json);

/* Compute the session's states again from event 1 up to this moment, compare them with its
 * snapshots, and print the result. EXIT_REFUSED if a state differs. */
int replay_prove(annal_index *index, annal_slice session, annal_moment at, bool json);
