/* SPDX-License-Identifier: Apache-2.0 */
/* Times in ISO 8601, UTC. Days are computed from dates as in H. Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms". */
#include "journal/base/clock.h"
#include "journal/base/error.h"

#include <string.h>

#define US_PER_SECOND 1000000LL
#define US_PER_DAY    (86400LL * US_PER_SECOND)

static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = day_of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = year_of_era + era * 400 + (*month <= 2);
}

static void put_digits(char *out, int64_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

int64_t annal__time_clamp(int64_t time_us)
{
    const int64_t earliest = days_from_civil(0, 1, 1) * US_PER_DAY;
    const int64_t latest = days_from_civil(10000, 1, 1) * US_PER_DAY - 1;
    if (time_us < earliest)
        return earliest;
    return time_us > latest ? latest : time_us;
}

void annal_time_format(int64_t time_us, char out[ANNAL_TIME_BYTES])
{
    time_us = annal__time_clamp(time_us);
    int64_t days = time_us / US_PER_DAY;
    int64_t rest = time_us % US_PER_DAY;
    if (rest < 0) {
        days--;
        rest += US_PER_DAY;
    }
    int64_t year, month, day;
    civil_from_days(days, &year, &month, &day);
    memcpy(out, "0000-00-00T00:00:00.000000Z", ANNAL_TIME_BYTES);
    put_digits(out, year, 4);
    put_digits(out + 5, month, 2);
    put_digits(out + 8, day, 2);
    put_digits(out + 11, rest / (3600 * US_PER_SECOND), 2);
    put_digits(out + 14, rest / (60 * US_PER_SECOND) % 60, 2);
    put_digits(out + 17, rest / US_PER_SECOND % 60, 2);
    put_digits(out + 20, rest % US_PER_SECOND, 6);
}

/* A position in a text; `bad` is set at the first character that does not fit. */
struct scan {
    const char *at;
    const char *end;
    bool bad;
};

static int64_t take_digits(struct scan *scan, int digits)
{
    int64_t value = 0;
    for (int i = 0; i < digits; i++) {
        if (scan->at == scan->end || *scan->at < '0' || *scan->at > '9') {
            scan->bad = true;
            return 0;
        }
        value = value * 10 + (*scan->at++ - '0');
    }
    return value;
}

static bool take(struct scan *scan, char expected)
{
    if (scan->at == scan->end || *scan->at != expected)
        return false;
    scan->at++;
    return true;
}

static int64_t take_fraction_us(struct scan *scan)
{
    int64_t value = 0;
    int digits = 0;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
        if (digits < 6)
            value = value * 10 + (*scan->at - '0');
        digits++;
        scan->at++;
    }
    scan->bad |= digits == 0;
    for (; digits < 6; digits++)
        value *= 10;
    return value;
}

/* Read an offset such as "Z", "+02:00" or "-0530", in microseconds; at the end of the text it is
 * 0. */
static int64_t take_zone_us(struct scan *scan)
{
    if (scan->at == scan->end || take(scan, 'Z') || take(scan, 'z'))
        return 0;
    int64_t sign = take(scan, '-') ? -1 : 1;
    if (sign == 1 && !take(scan, '+')) {
        scan->bad = true;
        return 0;
    }
    int64_t hours = take_digits(scan, 2);
    take(scan, ':');
    int64_t minutes = take_digits(scan, 2);
    scan->bad |= hours > 23 || minutes > 59;
    return sign * (hours * 60 + minutes) * 60 * US_PER_SECOND;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    return days_from_civil(month == 12 ? year + 1 : year, month == 12 ? 1 : month + 1, 1) -
           days_from_civil(year, month, 1);
}

/* Return the number in two digits; sets *bad if a character is not a digit. */
static int64_t two_digits(const char *at, unsigned *bad)
{
    unsigned tens = (unsigned)(unsigned char)at[0] - '0',
             ones = (unsigned)(unsigned char)at[1] - '0';
    *bad |= (tens > 9) | (ones > 9);
    return tens * 10 + ones;
}

/* Parse a time in the form that annal_time_format() writes, which every event of a journal has.
 * Return false for another form, or an invalid time. */
static bool parse_fixed(const char *at, int64_t *out_time_us)
{
    bool shape = at[4] == '-' && at[7] == '-' && at[10] == 'T' && at[13] == ':' && at[16] == ':' &&
                 at[19] == '.' && at[26] == 'Z';
    unsigned bad = !shape;
    int64_t year = two_digits(at, &bad) * 100 + two_digits(at + 2, &bad);
    int64_t month = two_digits(at + 5, &bad), day = two_digits(at + 8, &bad);
    int64_t hour = two_digits(at + 11, &bad), minute = two_digits(at + 14, &bad);
    int64_t second = two_digits(at + 17, &bad);
    int64_t us = two_digits(at + 20, &bad) * 10000 + two_digits(at + 22, &bad) * 100 +
                 two_digits(at + 24, &bad);
    if (bad != 0 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 ||
        (day > 28 && day > days_in_month(year, month)))
        return false;
    *out_time_us = days_from_civil(year, month, day) * US_PER_DAY +
                   ((hour * 60 + minute) * 60 + second) * US_PER_SECOND + us;
    return true;
}

annal_status annal_time_parse(annal_slice text, int64_t *out_time_us, annal_error *err)
{
    if (text.len == ANNAL_TIME_BYTES - 1 && parse_fixed(text.ptr, out_time_us))
        return ANNAL_OK;

    struct scan scan = {.at = text.ptr, .end = text.ptr + text.len};
    int64_t year = take_digits(&scan, 4);
    scan.bad |= !take(&scan, '-');
    int64_t month = take_digits(&scan, 2);
    scan.bad |= !take(&scan, '-');
    int64_t day = take_digits(&scan, 2);
    scan.bad |= month < 1 || month > 12 || day < 1;
    if (!scan.bad)
        scan.bad = day > days_in_month(year, month);

    int64_t hour = 0, minute = 0, second = 0, fraction_us = 0, zone_us = 0;
    if (!scan.bad && scan.at != scan.end) {
        scan.bad |= !(take(&scan, 'T') || take(&scan, 't') || take(&scan, ' '));
        hour = take_digits(&scan, 2);
        scan.bad |= !take(&scan, ':');
        minute = take_digits(&scan, 2);
        if (take(&scan, ':')) {
            second = take_digits(&scan, 2);
            if (take(&scan, '.'))
                fraction_us = take_fraction_us(&scan);
        }
        zone_us = take_zone_us(&scan);
        scan.bad |= hour > 23 || minute > 59 || second > 60;
    }
    if (scan.bad || scan.at != scan.end)
        return annal__fail(err, ANNAL_ERR_INVALID,
                           "'%.*s' is not a time; write it like 2026-01-06T07:24:00Z",
                           (int)(text.len < 60 ? text.len : 60), text.ptr);

    *out_time_us = days_from_civil(year, month, day) * US_PER_DAY +
                   ((hour * 60 + minute) * 60 + second) * US_PER_SECOND + fraction_us - zone_us;
    return ANNAL_OK;
}
