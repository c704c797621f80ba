/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates for analysts, which SQLite itself does not have:
 *
 *     median(x)          the middle value; if the count is even, the mean of the two middle values
 *     percentile(x, p)   the value below which p percent (0 to 100) of the values are, interpolated
 *                     between two values as in SQLite's percentile.c and PostgreSQL's
 *                     percentile_cont()
 *     stddev(x)          the standard deviation of a sample (n - 1); NULL for fewer than two values
 *
 * NULLs are ignored; without any number the result is NULL. Text is an error.
 */
#include "index/db/functions.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * The values that an aggregate has received so far. SQLite allocates the memory, so that it counts
 * against the limit of a query.
 */
struct numbers {
    double *all;
    sqlite3_uint64 count, room;
    double percent;
    bool failed;
};

static void fail(sqlite3_context *context, struct numbers *numbers, const char *message)
{
    numbers->failed = true;
    if (message == NULL)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_error(context, message, -1);
}

static void add(sqlite3_context *context, struct numbers *numbers, double value)
{
    if (numbers->count == numbers->room) {
        sqlite3_uint64 room = numbers->room == 0 ? 256 : numbers->room * 2;
        double *larger = sqlite3_realloc64(numbers->all, room * sizeof *larger);
        if (larger == NULL) {
            fail(context, numbers, NULL);
            return;
        }
        numbers->all = larger;
        numbers->room = room;
    }
    numbers->all[numbers->count++] = value;
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct numbers *numbers = sqlite3_aggregate_context(context, sizeof *numbers);
    double percent = 50;
    if (numbers == NULL || numbers->failed) {
        if (numbers == NULL)
            sqlite3_result_error_nomem(context);
        return;
    }
    int type = sqlite3_value_type(values[0]);
    if (count == 2) {
        percent = sqlite3_value_double(values[1]);
        if (sqlite3_value_numeric_type(values[1]) > SQLITE_FLOAT || !(percent >= 0) ||
            percent > 100 || (numbers->count > 0 && percent != numbers->percent)) {
            fail(context, numbers, "percentile(x, p): p must be one number from 0 to 100");
            return;
        }
    }
    numbers->percent = percent;
    if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
        add(context, numbers, sqlite3_value_double(values[0]));
    else if (type != SQLITE_NULL)
        fail(context, numbers, "median(), percentile() and stddev() accept only numbers");
}

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

static void give_percentile(sqlite3_context *context)
{
    struct numbers *numbers = sqlite3_aggregate_context(context, 0);
    if (numbers != NULL && !numbers->failed && numbers->count > 0) {
        qsort(numbers->all, numbers->count, sizeof *numbers->all, by_value);
        double place = numbers->percent / 100 * (double)(numbers->count - 1);
        sqlite3_uint64 below = (sqlite3_uint64)place;
        double value = numbers->all[below];
        if (below + 1 < numbers->count)
            value += (numbers->all[below + 1] - value) * (place - (double)below);
        sqlite3_result_double(context, value);
    }
    if (numbers != NULL)
        sqlite3_free(numbers->all);
}

/*
 * Compute the deviation in two passes: the mean first, so that large values with small differences
 * do not lose these differences to rounding.
 */
static void give_deviation(sqlite3_context *context)
{
    struct numbers *numbers = sqlite3_aggregate_context(context, 0);
    if (numbers != NULL && !numbers->failed && numbers->count > 1) {
        double mean = 0, squares = 0, count = (double)numbers->count;
        for (sqlite3_uint64 i = 0; i < numbers->count; i++)
            mean += numbers->all[i] / count;
        for (sqlite3_uint64 i = 0; i < numbers->count; i++)
            squares += (numbers->all[i] - mean) * (numbers->all[i] - mean);
        sqlite3_result_double(context, sqrt(squares / (count - 1)));
    }
    if (numbers != NULL)
        sqlite3_free(numbers->all);
}

int annal__statistics_add(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments;
        void (*give)(sqlite3_context *);
    } functions[] = {{"median", 1, give_percentile},
                     {"percentile", 2, give_percentile},
                     {"stddev", 1, give_deviation}};
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments, flags, NULL,
                                        NULL, step, functions[i].give, NULL);
    return rc;
}
