/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log before its turn, while other threads import the logs before it.
 *
 * (1) Events are the same as if each log were read in its turn. Before its turn a log is read, and
 *     its importer runs, but the store is neither read nor changed: events are kept.
 * (2) An importer may ask which session owns a record, which depends on the logs before. Before the
 *     turn the answer is a guess, and is kept with the question. In its turn each question is asked
 *     again, in the same order. If an answer differs, the log is read again, in its turn, and what
 *     was kept is dropped.
 * (3) What depends on more than the owners of records waits for the turn: session ids that the log
 *     does not contain, long strings, and the section "-- end".
 * (4) A log whose events take AHEAD_BYTES waits for its turn. From then on events go to the store.
 */
#pragma once

#include "tools/import/owners.h"

#include <annal/import.h>

#define AHEAD_BYTES ((size_t)32 << 20)

struct ahead;

/* owners may be NULL */
struct ahead *ahead_new(struct owners *owners);

/* Keep an event. */
void ahead_add(struct ahead *ahead, const annal_import_event *event);

/* As owners_guess(), and keep the question. */
annal_slice ahead_owner(struct ahead *ahead, annal_slice origin, annal_slice session);

/* Return whether no more events should be kept. */
bool ahead_is_full(const struct ahead *ahead);

/* Ask the questions again; return whether all answers are the same. */
bool ahead_holds(const struct ahead *ahead);

/* Pass the events to fn. */
annal_status ahead_give(const struct ahead *ahead, annal_import_fn fn, void *arg, annal_error *err);

/* ahead may be NULL */
void ahead_free(struct ahead *ahead);
