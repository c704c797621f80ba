/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a session now and at random places of its past, by snapshots: time, memory,
 * bytes. */
#pragma once

#include <annal/journal.h>

/*
 * Prints three members of a JSON object: "newest", "past" and "snapshots". The store has snapshots,
 * or is folded from its first event each time. Each state is opened by a process of its own, which
 * opens store and index too; a few are compared, by their hash, with what folding gives. Returns
 * false, with a line on stderr, when something fails or differs.
 */
bool past_measure(const char *dir, annal_slice session, uint64_t last_seq);
