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
#include "index/db/functions.h"

#include "journal/base/alloc.h"
#include "journal/base/calendar.h"
#include "journal/base/clock.h"

#include <string.h>

/* The period of the last call, kept because rows are mostly sorted by time and the next time is
 * often in the same period. */
struct last {
    enum period period;
    int64_t begin_us, end_us; /* begin and end of the period; equal: no period is known */
    char name[PERIOD_NAME_BYTES];
    char begin[ANNAL_TIME_BYTES];
};

static bool read_unit(sqlite3_value *value, enum period *out)
{
    const char *word = (const char *)sqlite3_value_text(value);
    for (int i = 0; word != NULL && i < PERIODS; i++) {
        if (strcmp(annal__period_words[i], word) == 0) {
            *out = (enum period)i;
            return true;
        }
    }
    return false;
}

static annal_slice text_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return (annal_slice){text, text == NULL ? 0 : (size_t)sqlite3_value_bytes(value)};
}

static void find(struct last *last, enum period period, int64_t time_us)
{
    if (period == last->period && time_us >= last->begin_us && time_us < last->end_us)
        return;
    last->period = period;
    last->begin_us = annal__calendar_period_begin(period, time_us);
    last->end_us = annal__calendar_period_end(period, time_us);
    annal__calendar_period_name(period, time_us, last->name);
    annal_time_format(last->begin_us, last->begin);
}

/* Return the period that contains the time; NULL if the argument is not a time, or if an error was
 * reported. */
static const struct last *period_of(sqlite3_context *context, sqlite3_value **values)
{
    struct last *last = sqlite3_user_data(context);
    enum period period;
    int64_t time_us;
    if (!read_unit(values[1], &period)) {
        sqlite3_result_error(context, "a period is 'hour', 'day', 'week' or 'month'", -1);
        return NULL;
    }
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT ||
        annal_time_parse(text_of(values[0]), &time_us, NULL) < 0)
        return NULL;
    find(last, period, time_us);
    return last;
}

static void sql_period(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const struct last *last = period_of(context, values);
    if (last != NULL)
        sqlite3_result_text(context, last->name, -1, SQLITE_TRANSIENT);
}

static void sql_begin(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    const struct last *last = period_of(context, values);
    if (last != NULL)
        sqlite3_result_text(context, last->begin, -1, SQLITE_TRANSIENT);
}

static void sql_instant(sqlite3_context *context, int count, sqlite3_value **values)
{
    char text[ANNAL_TIME_BYTES];
    int64_t time_us;
    (void)count;
    if (sqlite3_value_type(values[0]) != SQLITE_TEXT ||
        !annal__calendar_read_instant(
            text_of(values[0]), annal__system_clock.wall_us(annal__system_clock.arg), &time_us))
        return;
    annal_time_format(time_us, text);
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static int add_cached(sqlite3 *db, const char *name,
                      void (*function)(sqlite3_context *, int, sqlite3_value **))
{
    struct last *last = annal__zalloc(sizeof *last);
    if (last == NULL)
        return SQLITE_NOMEM;
    return sqlite3_create_function_v2(db, name, 2, SQLITE_UTF8 | SQLITE_DIRECTONLY, last, function,
                                      NULL, NULL, annal__free);
}

int annal__periods_add(sqlite3 *db)
{
    int rc = add_cached(db, "annal_period", sql_period);
    if (rc == SQLITE_OK)
        rc = add_cached(db, "annal_period_begin", sql_begin);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(db, "annal_instant", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                        NULL, sql_instant, NULL, NULL, NULL);
    return rc;
}
