/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/text.h"

#include "tools/cli/must.h"
#include "tools/cli/out.h"
#include "tools/cli/width.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_MS  1000
#define US_PER_S   1000000
#define US_PER_MIN (60LL * US_PER_S)
#define US_PER_H   (60 * US_PER_MIN)
#define US_PER_DAY (24 * US_PER_H)

void text_repeat(struct buf *out, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        must_append_text(out, text);
}

/* Copy a text to out on one line, with a NUL, and return it. */
static const char *plain(struct buf *out, annal_slice text)
{
    must_status(out_line(out, text));
    return must_cstr(out);
}

int text_width(annal_slice text)
{
    SCOPED_BUF shown = {0};
    return width_of_text(plain(&shown, text));
}

void text_fit(struct buf *out, annal_slice text, int width, bool right)
{
    SCOPED_BUF shown = {0};
    const char *at = plain(&shown, text);
    int own = width_of_text(at);
    if (own > width && width > 0) {
        shown.ptr[width_fitting(at, width - 1)] = '\0';
        own = width_of_text(at) + 1;
        must_printf(out, "%s…%*s", at, width - own, "");
    } else if (own <= width) {
        text_repeat(out, " ", right ? width - own : 0);
        must_append_text(out, at);
        text_repeat(out, " ", right ? 0 : width - own);
    }
}

/* ---- Numbers ---- */

static uint64_t size_of(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

const char *text_exact(char text[TEXT_BYTES], int64_t value, enum unit unit)
{
    char count[HUMAN_BYTES];
    const char *sign = value < 0 ? "-" : "";
    uint64_t size = size_of(value);
    if (unit == UNIT_COUNT)
        snprintf(text, TEXT_BYTES, "%s%s", sign, human_count(count, size));
    else if (size == 0)
        snprintf(text, TEXT_BYTES, "$0");
    else if (size < 10000) /* less than a cent */
        snprintf(text, TEXT_BYTES, "%s$%.6f", sign, (double)size / 1e6);
    else {
        uint64_t cents = (size + 5000) / 10000;
        snprintf(text, TEXT_BYTES, "%s$%s.%02" PRIu64, sign, human_count(count, cents / 100),
                 cents % 100);
    }
    return text;
}

/* Write an amount with at most three digits and a unit, such as "1.5 M" and "12 k"; ".0" is left
 * out. */
static void put_rounded(char text[TEXT_BYTES], const char *before, double amount)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    size_t unit = 0;
    while (amount >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        amount /= 1000;
        unit++;
    }
    bool whole = amount >= 99.95 || fabs(amount - round(amount)) < 0.05;
    snprintf(text, TEXT_BYTES, whole ? "%s%.0f%s" : "%s%.1f%s", before, amount, units[unit]);
}

const char *text_short(char text[TEXT_BYTES], int64_t value, enum unit unit)
{
    uint64_t size = size_of(value);
    if (unit == UNIT_COUNT && size < 10000)
        return text_exact(text, value, unit);
    if (unit == UNIT_COUNT)
        put_rounded(text, value < 0 ? "-" : "", (double)size);
    else if (size == 0 || size >= 100000000)
        put_rounded(text, value < 0 ? "-$" : "$", (double)size / 1e6);
    else
        return text_exact(text, value, unit);
    return text;
}

const char *text_span(char text[TEXT_BYTES], int64_t span_us)
{
    static const struct {
        int64_t us;
        const char *name;
    } units[] = {{US_PER_DAY, "d"}, {US_PER_H, "h"}, {US_PER_MIN, "min"}, {US_PER_S, "s"}};
    int64_t span = span_us < 0 ? 0 : span_us;
    if (span < US_PER_S) {
        snprintf(text, TEXT_BYTES, span > 0 && span < US_PER_MS ? "%.1f ms" : "%.0f ms",
                 (double)span / US_PER_MS);
        return text;
    }
    if (span < 10LL * US_PER_S && span % US_PER_S >= US_PER_S / 10) {
        snprintf(text, TEXT_BYTES, "%.1f s", (double)(span / (US_PER_S / 10)) / 10);
        return text;
    }
    size_t i = 0;
    while (span < units[i].us)
        i++;
    int64_t whole = span / units[i].us;
    int64_t rest = i < 3 ? span % units[i].us / units[i + 1].us : 0;
    if (rest > 0)
        snprintf(text, TEXT_BYTES, "%" PRId64 " %s %" PRId64 " %s", whole, units[i].name, rest,
                 units[i + 1].name);
    else
        snprintf(text, TEXT_BYTES, "%" PRId64 " %s", whole, units[i].name);
    return text;
}

/* ---- Times ---- */

const char *text_time(char text[TEXT_BYTES], int64_t time_us)
{
    enum { SECONDS = 19 }; /* length of "2026-03-02T09:10:00", the text without a fraction */
    annal_time_format(time_us, text);
    size_t len = strlen(text) - 1;
    while (len > SECONDS && text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    memcpy(text + len, "Z", 2);
    return text;
}

const char *text_time_after(char text[TEXT_BYTES], int64_t time_us, int64_t first_us)
{
    char first[TEXT_BYTES];
    text_time(text, time_us);
    text_time(first, first_us);
    if (memcmp(text, first, 11) == 0)
        memmove(text, text + 11, strlen(text + 11) + 1);
    return text;
}
