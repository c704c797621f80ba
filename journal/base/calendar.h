/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hours, days, weeks and months in the zone of this process, which TZ names.
 *
 * This file does all arithmetic with zones, and the C library knows the rules of the zones.
 *
 * (1) A period is the time during which the clock on the wall shows the same hour, day, ISO week
 *     (from Monday) or month. A day may have 23 or 25 hours, and a day that a zone skipped has no
 *     period.
 * (2) Where the clock goes back, the two hours with the same number are two periods: their names
 *     end with the offset, "2026-10-25T02+02:00" and "2026-10-25T02+01:00".
 * (3) A time on the wall means the first instant at which the clock shows it, or a later time if
 *     the clock skips it.
 */
#pragma once

#include <annal/base.h>

enum period { PERIOD_HOUR, PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH, PERIODS };

/* words for the periods, in the order of enum period: "hour", … */
extern const char *const annal__period_words[PERIODS];

/* Return the instant at which the local clock shows this time, which is given as if it were UTC
 * (rule 3). */
int64_t annal__calendar_instant(int64_t wall_us);

/* Return what the local clock shows at an instant, as if it were UTC. */
int64_t annal__calendar_wall(int64_t time_us);

/* annal__calendar_period_begin() returns the first instant of the period that contains an instant,
 * and annal__calendar_period_end() the first instant after this period. */
int64_t annal__calendar_period_begin(enum period period, int64_t time_us);
int64_t annal__calendar_period_end(enum period period, int64_t time_us);

/* Write the name of the period that contains an instant: "2026-03-02T09", "2026-03-02", "2026-W10"
 * or "2026-03". Names sort in the order of the periods. PERIOD_NAME_BYTES is enough for a name and
 * a NUL. */
#define PERIOD_NAME_BYTES 24
void annal__calendar_period_name(enum period period, int64_t time_us, char out[PERIOD_NAME_BYTES]);

/* ---- What users write ---- */

/* Read an age, such as "45s", "30m", "2h", "7d" or "2w", in microseconds; false if the text is not
 * an age. */
bool annal__calendar_read_age(annal_slice text, int64_t *out_us);

/*
 * Read an instant: ISO 8601 (without a zone it is local time, and a date alone is its first
 * instant), "today", "yesterday", or an age before now_us. Return false for any other
 * text.
 */
bool annal__calendar_read_instant(annal_slice text, int64_t now_us, int64_t *out_us);
