/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the program that opened a store what no status can express. */
#ifndef JOURNAL_SYS_SAY_H
#define JOURNAL_SYS_SAY_H

#include <annal/store.h>

/* Write one line to the log of the store, if it has one. Any thread. */
void annal__say(const annal_store *store, annal_log_level level, const char *format, ...)
    ANNAL_PRINTF(3, 4);

#endif
