/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/outside.h"

#include "journal/base/hex.h"

#include <string.h>

#define TIME_MIN_US INT64_C(-62167219200000000) /* 0000-01-01, in us since 1970 */
#define TIME_MAX_US INT64_C(253402300799999999) /* the last us of 9999-12-31, in us since 1970 */

bool outside_has(struct outside *outside, const char *literal)
{
    size_t len = strlen(literal);
    bool has = !outside->is_bad && strncmp(outside->at, literal, len) == 0;
    outside->at += has ? len : 0;
    return has;
}

void outside_skip(struct outside *outside, const char *literal)
{
    if (!outside_has(outside, literal))
        outside->is_bad = true;
}

void outside_session(struct outside *outside, char out[ANNAL_SESSION_ID_BYTES_MAX + 1])
{
    size_t len =
        strspn(outside->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    out[0] = '\0';
    outside->is_bad = outside->is_bad ||
                      annal_session_id_check((annal_slice){outside->at, len}, NULL) != ANNAL_OK;
    if (outside->is_bad)
        return;
    memcpy(out, outside->at, len);
    out[len] = '\0';
    outside->at += len;
}

uint64_t outside_number(struct outside *outside, uint64_t most)
{
    uint64_t value = 0;
    const char *at = outside->at;
    size_t digits = strspn(at, "0123456789");
    outside->is_bad = outside->is_bad || digits == 0 || (digits > 1 && at[0] == '0');
    for (size_t i = 0; i < digits && !outside->is_bad; i++) {
        uint64_t digit = (uint64_t)(at[i] - '0');
        outside->is_bad = value > (most - digit) / 10 || digit > most;
        value = value * 10 + digit;
    }
    outside->at += outside->is_bad ? 0 : digits;
    return outside->is_bad ? 0 : value;
}

int64_t outside_signed(struct outside *outside)
{
    bool is_negative = outside_has(outside, "-");
    uint64_t value = outside_number(outside, (uint64_t)INT64_MAX + (is_negative ? 1 : 0));
    outside->is_bad = outside->is_bad || (is_negative && value == 0);
    return is_negative ? -(int64_t)(value - (value > 0)) - (value > 0) : (int64_t)value;
}

int64_t outside_time(struct outside *outside)
{
    int64_t value = outside_signed(outside);
    outside->is_bad = outside->is_bad || value < TIME_MIN_US || value > TIME_MAX_US;
    return outside->is_bad ? 0 : value;
}

void outside_hex(struct outside *outside, size_t digits, char *out)
{
    size_t len = 0;
    out[0] = '\0';
    while (len < digits && annal__is_hex(outside->at[len]))
        len++;
    outside->is_bad = outside->is_bad || len < digits;
    if (outside->is_bad)
        return;
    memcpy(out, outside->at, digits);
    out[digits] = '\0';
    outside->at += digits;
}

uint64_t outside_hash(struct outside *outside)
{
    char digits[17];
    uint64_t value = 0;
    outside_hex(outside, sizeof digits - 1, digits);
    for (const char *c = digits; *c != '\0'; c++)
        value = value << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    return value;
}

void outside_day(struct outside *outside)
{
    static const char shape[] = "0000-00-00";
    for (const char *c = shape; *c != '\0' && !outside->is_bad; c++, outside->at++)
        outside->is_bad =
            *c == '-' ? *outside->at != '-' : *outside->at < '0' || *outside->at > '9';
}

bool outside_end(const struct outside *outside)
{
    return !outside->is_bad && outside->at[0] == '\0';
}
