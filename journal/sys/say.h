/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and warnings to the program that opened a store. */
#pragma once

#include <annal/store.h>

/* Pass a message to the log callback of the store, if it has one. Any thread. */
void annal__say(const annal_store *store, annal_log_level level, const char *format, ...)
    ANNAL_PRINTF(3, 4);

/*
 * Report to the log callback that an answer lacks an event, because it is damaged.
 * annal__store_damages_said() returns how many such events were reported since the store was
 * opened, so that a caller can find out whether an answer was incomplete.
 */
void annal__store_say_damage(annal_store *store, annal_slice session, uint64_t seq,
                             uint64_t offset);
uint64_t annal__store_damages_said(const annal_store *store);
