/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses fields from outside: from a lake, a database, a stream, a server. Each kind of field has
 * one parser, with its limits. A caller reads one field after the other from the beginning of a
 * text.
 *
 * (1) A field that does not fit sets is_bad, and then nothing more is read. The caller checks that
 *     once, at the end, with outside_end().
 * (2) Each field has one spelling, the one that annal writes: no plus sign, no leading zero, no
 *     space.
 * (3) After a failure the result of a parser is 0, or the empty text.
 */
#pragma once

#include <annal/journal.h>

/* maximum seq: one less than the largest number, so that a next seq exists */
#define OUTSIDE_SEQ_MAX ((uint64_t)INT64_MAX - 1)
/* maximum number of events or rows: a sum of such numbers does not overflow */
#define OUTSIDE_COUNT_MAX UINT64_C(1000000000000)
#define OUTSIDE_BYTES_MAX ((uint64_t)INT64_MAX)
enum { OUTSIDE_DAY_BYTES = 10 };

struct outside {
    const char *at; /* next byte of the text, which ends with a NUL */
    bool is_bad;
};

/* Skip the literal; fail if the text does not continue with it. */
void outside_skip(struct outside *outside, const char *literal);

/* Skip the literal if the text continues with it, and return whether it does. */
bool outside_has(struct outside *outside, const char *literal);

/* Read a session id: all following bytes that an id may contain. */
void outside_session(struct outside *outside, char out[ANNAL_SESSION_ID_BYTES_MAX + 1]);

uint64_t outside_number(struct outside *outside, uint64_t most);
int64_t outside_signed(struct outside *outside); /* reads a signed number of 64 bits */

/* Read a time in us since 1970, from the year 0000 to 9999. */
int64_t outside_time(struct outside *outside);

/* Read a hash: 16 hexadecimal digits. */
uint64_t outside_hash(struct outside *outside);

/* Read exactly this many hexadecimal digits, such as the id of a journal (32) or a SHA-256 (64),
 * and add a NUL. */
void outside_hex(struct outside *outside, size_t digits, char *out);

/* Read a day, YYYY-MM-DD. */
void outside_day(struct outside *outside);

/* Return whether all fields fitted and nothing follows them. */
bool outside_end(const struct outside *outside);
