/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the program that opened a store what no status can express. */
#ifndef JOURNAL_SYS_SAY_H
#define JOURNAL_SYS_SAY_H

#include <annal/store.h>

/* Write a line to the log of the store, if any. Any thread. */
void annal__say(const annal_store *store, annal_log_level level, const char *format, ...)
    ANNAL_PRINTF(3, 4);

/*
 * An event that an answer lacks, because its journal does not prove it: one line in the log. How
 * many there were since the store was opened shows whether an answer was short.
 */
void annal__store_say_damage(annal_store *store, annal_slice session, uint64_t seq,
                             uint64_t offset);
uint64_t annal__store_damages_said(const annal_store *store);

#endif
