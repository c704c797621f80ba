/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of the reader's zone in SQL, by journal/base/calendar.h:
 *
 *     annal_period(time, unit)        the name of the hour, day, week or month of the time:
 *                                     "2026-03-02T09", "2026-03-02", "2026-W10", "2026-03"
 *     annal_period_begin(time, unit)  when that hour, day, week or month begins, as a time of the
 *                                     tables (in UTC)
 *     annal_instant(text)             an argument of --since or --until ("today", "2026-11-01"),
 *                                     as a time of the tables; NULL if text is not a time
 *
 * The functions depend on the time zone and the clock, so packs cannot call them.
 */
#pragma once

#include <sqlite3.h>

int annal__periods_add(sqlite3 *db);
