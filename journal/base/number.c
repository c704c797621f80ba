/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/base/number.h"

#include "journal/base/slice.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Decimals ---- */

/* A decimal number: its sign, its digits as 0.d1d2d3…, and a power of ten. */
struct decimal {
    bool negative;
    bool huge;         /* whether the exponent exceeds POWER_MAX */
    const char *digit; /* first digit that is not 0; NULL: the number is zero */
    size_t count;      /* number of digits from the first digit that is not 0 to the last */
    int64_t power;
};

/* greatest exponent that is computed; no text has as many digits */
#define POWER_MAX ((int64_t)1 << 50)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read the exponent of a number; the caller has checked that it has a digit. */
static int64_t read_exponent(const char *at, const char *end, bool *out_huge)
{
    bool negative = *at == '-';
    int64_t value = 0;
    at += negative || *at == '+';
    for (; at < end && is_digit(*at); at++) {
        value = value * 10 + (*at - '0');
        if (value > POWER_MAX) {
            *out_huge = true;
            value = POWER_MAX;
        }
    }
    return negative ? -value : value;
}

static struct decimal read_decimal(annal_slice text)
{
    struct decimal decimal = {0};
    const char *at = text.ptr;
    const char *end = at + text.len;
    size_t seen = 0; /* number of digits since the first that is not 0 */
    bool behind_point = false;
    decimal.negative = *at == '-';
    at += decimal.negative;
    for (; at < end && (is_digit(*at) || *at == '.'); at++) {
        if (*at == '.') {
            behind_point = true;
            continue;
        }
        if (decimal.digit == NULL && *at != '0')
            decimal.digit = at;
        if (decimal.digit == NULL) {
            decimal.power -= behind_point;
            continue;
        }
        decimal.power += !behind_point;
        seen++;
        if (*at != '0')
            decimal.count = seen;
    }
    if (at < end) /* *at is the letter e or E */
        decimal.power += read_exponent(at + 1, end, &decimal.huge);
    return decimal;
}

static char next_digit(const char **at)
{
    while (**at == '.')
        ++*at;
    return *(*at)++;
}

bool annal__number_equal(annal_slice a, annal_slice b)
{
    if (annal__slice_same(a, b))
        return true;
    struct decimal left = read_decimal(a), right = read_decimal(b);
    if (left.negative != right.negative || (left.digit == NULL) != (right.digit == NULL))
        return false;
    if (left.digit == NULL)
        return true;
    if (left.huge || right.huge || left.power != right.power || left.count != right.count)
        return false;
    for (size_t i = 0; i < left.count; i++) {
        if (next_digit(&left.digit) != next_digit(&right.digit))
            return false;
    }
    return true;
}

/* ---- Doubles ---- */

/* Set the locale of this thread to "C", because other locales write a comma for the point. Return
 * the former locale, for end_plain_locale(). */
static locale_t begin_plain_locale(locale_t *out_plain)
{
    *out_plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(*out_plain);
}

static void end_plain_locale(locale_t plain, locale_t before)
{
    uselocale(before);
    if (plain != (locale_t)0)
        freelocale(plain);
}

static size_t print_shortest(double real, char out[NUMBER_TEXT_BYTES])
{
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(out, NUMBER_TEXT_BYTES, "%.*g", digits, real);
        if (strtod(out, NULL) == real)
            break;
    }
    if (strpbrk(out, ".e") == NULL) {
        memcpy(out + length, ".0", 3);
        length += 2;
    }
    return (size_t)length;
}

size_t annal__number_print(double real, char out[NUMBER_TEXT_BYTES])
{
    locale_t plain;
    locale_t before = begin_plain_locale(&plain);
    size_t length = print_shortest(real, out);
    end_plain_locale(plain, before);
    return length;
}

static struct number read_double(annal_slice text)
{
    struct number number = {.kind = NUMBER_OTHER};
    char copy[64], shortest[NUMBER_TEXT_BYTES];
    if (text.len >= sizeof copy)
        return number;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    locale_t plain;
    locale_t before = begin_plain_locale(&plain);
    number.real = strtod(copy, NULL);
    if (isfinite(number.real)) {
        size_t length = print_shortest(number.real, shortest);
        if (annal__number_equal(text, (annal_slice){shortest, length}))
            number.kind = NUMBER_DOUBLE;
    }
    end_plain_locale(plain, before);
    return number;
}

struct number annal__number_read(annal_slice text)
{
    struct number number = {.kind = NUMBER_UINT};
    if (text.len == 0 || (text.ptr[0] != '-' && !is_digit(text.ptr[0])) ||
        (text.len == 1 && text.ptr[0] == '-'))
        return (struct number){.kind = NUMBER_OTHER};
    const char *at = text.ptr;
    const char *end = at + text.len;
    bool negative = *at == '-';
    for (at += negative; at < end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit > 9)
            return read_double(text);
        if (number.uint > (UINT64_MAX - digit) / 10)
            return read_double(text);
        number.uint = number.uint * 10 + digit;
    }
    if (!negative)
        return number;
    if (number.uint == 0 || number.uint > (uint64_t)1 << 63)
        return read_double(text); /* -0 differs from 0, and only a double can express it */
    number.kind = NUMBER_INT;
    number.sint = (int64_t)(0 - number.uint);
    return number;
}

char *annal__number_put(char *at, uint64_t value)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}
